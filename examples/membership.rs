//! Experiments 1 to 3 of B. Toth, "Data Anonymization" (2015), on Adult: who is found in releases that permute, and what
//! hiding them costs. `pipelines/experiments/membership.md` holds the figures beside those of the thesis.
//!
//! `cargo run --release --example membership`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints, and stops when its data is not there")]

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use throng_core::attack::confidence::ConfidenceHistogram;
use throng_core::attack::{BUDGET, Belief, Bounds, Bucket, Fraction, compute_posterior};
use throng_core::grouping::Method;
use throng_core::grouping::mpalm::{Mpalm, Reading};
use throng_core::hierarchy::LevelTree;
use throng_core::methods::combined::{Combination, Published, Raising, permuted_bucket};
use throng_core::methods::mondrian::Mondrian;
use throng_core::model::{Axis, Code, Levels, Shape, Table, Tree};
use throng_core::privacy::Rules;
use throng_core::privacy::presence::Presence;

/// The nine attributes of the thesis, in its order.
const ATTRIBUTES: [&str; 9] =
    ["age", "sex", "race", "marital-status", "education", "native-country", "workclass", "occupation", "salary-class"];

/// Members drawn from the public table.
const MEMBERS: usize = 2000;

/// The seed of the draw.
const SEED: u64 = 42;

/// What stays together in the thesis' slicing: country and race, work class, occupation and salary; the others alone.
fn slices() -> Vec<Vec<usize>> {
    vec![vec![5, 2], vec![6, 7, 8], vec![0], vec![1], vec![3], vec![4]]
}

/// What stays together in bucketisation, in slicing, and when every column is permuted on its own.
fn forms() -> [Vec<Vec<usize>>; 3] {
    [vec![(0..9).collect()], slices(), (0..9).map(|column| vec![column]).collect()]
}

/// The table with hierarchies, and with the same codes on lines, which can be cut anywhere.
struct Adult {
    trees: Table,
    lines: Table,
    levels: Vec<Levels>,
}

impl Adult {
    fn new(columns: &[Vec<String>]) -> Self {
        let axes: Vec<(Axis, Vec<Code>)> =
            ATTRIBUTES.iter().zip(columns).map(|(name, values)| axis(name, values)).collect();
        let rows = columns[0].len();
        let codes: Vec<Code> = (0..rows).flat_map(|row| axes.iter().map(move |(_, codes)| codes[row])).collect();
        let line = |axis: &Axis| {
            let Shape::Tree(tree) = &axis.shape else { return axis.clone() };
            Axis::new(axis.name.clone(), Shape::Line { span: tree.codes() as Code - 1 })
        };
        let members = drawn(rows, SEED);
        let table = |axes: Vec<Axis>| {
            let mut table = Table::new(axes, codes.clone());
            table.members = Some(members.clone());
            table
        };
        let trees = table(axes.iter().map(|(axis, _)| axis.clone()).collect());
        let lines = table(axes.iter().map(|(axis, _)| line(axis)).collect());
        let levels = trees.axes.iter().map(Levels::from_axis).collect();
        Self { trees, lines, levels }
    }

    fn bucket(&self, rows: &[u32], columns: &[Vec<usize>]) -> Bucket {
        let (public, released) = self.records(rows);
        Bucket::sliced(&public, &released, columns)
    }

    /// A bucket in which equal records are one.
    fn bucket_of_sets(&self, rows: &[u32], columns: &[Vec<usize>]) -> Bucket {
        let (public, released) = self.records(rows);
        let set = |records: Vec<Vec<u32>>| Vec::from_iter(BTreeSet::from_iter(records));
        Bucket::sliced(&set(public), &set(released), columns)
    }

    /// The values of all rows, and of those that are members.
    fn records(&self, rows: &[u32]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let values = |row: &u32| self.trees.row(*row).iter().map(|&code| u32::from(code)).collect::<Vec<_>>();
        let public = rows.iter().map(values).collect();
        (public, rows.iter().filter(|&&row| self.trees.is_member(row)).map(values).collect())
    }

    /// The same people, other members.
    fn draw(&mut self, seed: u64) {
        let members = drawn(self.trees.rows(), seed);
        self.trees.members = Some(members.clone());
        self.lines.members = Some(members);
    }

    /// Levels at which some rows have one value per attribute.
    fn top(&self, rows: &[u32]) -> Vec<u8> {
        let single = |axis: usize, level: u8| {
            let mut raised = rows.iter().map(|&row| self.levels[axis].raise_code(self.trees.row(row)[axis], level));
            let first = raised.next();
            raised.all(|value| Some(value) == first)
        };
        let top = |axis: usize| (0..self.levels[axis].height()).find(|&level| single(axis, level));
        (0..self.levels.len()).map(|axis| top(axis).unwrap_or(self.levels[axis].height())).collect()
    }

    /// What stands for the values of a row at a node.
    fn raised(&self, row: u32, node: &[u8]) -> Vec<u32> {
        let codes = self.trees.row(row).iter().zip(node);
        codes.zip(&self.levels).map(|((&code, &level), levels)| levels.raise_code(code, level)).collect()
    }

    fn members(&self, rows: &[u32]) -> u64 {
        rows.iter().filter(|&&row| self.trees.is_member(row)).count() as u64
    }
}

/// Which of so many rows are members.
fn drawn(rows: usize, seed: u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..rows).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let mut members = vec![false; rows];
    order[..MEMBERS].iter().for_each(|&row| members[row] = true);
    members
}

/// An attribute as a tree of codes: by its level file, or by widths of years, or all values below one root.
fn axis(name: &str, values: &[String]) -> (Axis, Vec<Code>) {
    if name == "age" {
        let years: Vec<Code> = values.iter().map(|value| value.parse().unwrap()).collect();
        let nodes = [5, 10, 20, 120].into_iter().flat_map(|width: Code| {
            (0..120 / width).map(move |step| (step * width, step * width + width - 1, f64::from(width - 1) / 119.0))
        });
        return (Axis::new(name, Shape::Tree(Tree::new(120, nodes))), years);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("pipelines/hierarchies/adult/{name}.csv"));
    if let Ok(text) = std::fs::read_to_string(file) {
        let levels = LevelTree::from_csv(&text).unwrap();
        let codes = values.iter().map(|value| levels.find_leaf(value).unwrap() as Code).collect();
        return (Axis::new(name, Shape::Tree(levels.to_tree(false, false))), codes);
    }
    let mut words: Vec<&String> = values.iter().collect();
    words.sort_unstable();
    words.dedup();
    let place: HashMap<&String, Code> = words.iter().copied().zip(0..).collect();
    (Axis::new(name, Shape::Tree(Tree::new(words.len(), []))), values.iter().map(|value| place[value]).collect())
}

async fn load() -> Vec<Vec<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/data/adult.parquet");
    let context = SessionContext::new();
    let frame = context.read_parquet(file.to_string_lossy().into_owned(), ParquetReadOptions::default()).await.unwrap();
    let mut columns = vec![Vec::new(); ATTRIBUTES.len()];
    for batch in frame.sort(vec![datafusion::prelude::ident("id").sort(true, true)]).unwrap().collect().await.unwrap() {
        for (name, values) in ATTRIBUTES.iter().zip(&mut columns) {
            let text = cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
            let text = text.as_string::<i32>();
            values.extend((0..text.len()).map(|row| text.value(row).to_owned()));
        }
    }
    columns
}

/// Members who are certainly found: at least, and at most where a bucket is too large to be counted.
fn attack(adult: &Adult, buckets: &[Vec<u32>], columns: &[Vec<usize>]) -> (f64, f64) {
    let (mut tally, mut possible) = (ConfidenceHistogram::default(), 0);
    for rows in buckets {
        let bucket = adult.bucket(rows, columns);
        let found = compute_posterior(&bucket, BUDGET).unwrap();
        tally.add_bucket(bucket.size as u64, found.row_beliefs(&bucket).map(|belief| (belief, 1)));
        let may_be = |(belief, row): &(&Belief, &u32)| belief.high().is_one() && adult.trees.is_member(**row);
        possible += found.row_beliefs(&bucket).zip(rows).filter(may_be).count();
    }
    (tally.reidentified_share(), possible as f64 / tally.released as f64)
}

/// Different rows that are certainly found when equal records are one, over all members.
fn attack_sets(adult: &Adult, buckets: &[Vec<u32>], columns: &[Vec<usize>]) -> f64 {
    let certain = |rows: &Vec<u32>| {
        let bucket = adult.bucket_of_sets(rows, columns);
        compute_posterior(&bucket, BUDGET).unwrap().row_beliefs(&bucket).filter(|belief| belief.low().is_one()).count()
    };
    percent(buckets.iter().map(certain).sum(), MEMBERS)
}

/// Members in buckets whose public rows are all members: everybody known from a generalised bucket.
fn generalised(adult: &Adult, buckets: &[Vec<u32>]) -> f64 {
    let all_in = buckets.iter().filter(|rows| adult.members(rows) == rows.len() as u64);
    all_in.map(|rows| rows.len()).sum::<usize>() as f64 / MEMBERS as f64
}

fn mondrian(table: &Table, k: usize, on_public: bool) -> Vec<Vec<u32>> {
    let mut table = table.clone();
    if on_public {
        table.members = None;
    }
    Mondrian { strict: true }.group(&table, &Rules::k(k), 0).iter().map(<[u32]>::to_vec).collect()
}

fn mpalm(table: &Table, min: f64, max: f64) -> Vec<Vec<u32>> {
    let rules = Rules { k: 1, others: vec![Arc::new(Presence::new(min, max))] };
    let method = Mpalm { bounds: Bounds::new(min, max), reading: Reading::Binary };
    method.group(table, &rules, 0).iter().map(<[u32]>::to_vec).collect()
}

/// Algorithm 6 over a given partition.
fn combine(adult: &Adult, buckets: &[Vec<u32>], bounds: &Bounds) -> Combination {
    let method = Raising::new(bounds.clone());
    let mut found = Combination::default();
    for rows in buckets {
        match method.find_node(&adult.trees, &adult.levels, rows) {
            Some(node) => found.buckets.push(Published { rows: rows.clone(), node }),
            None => found.failed.extend(rows),
        }
    }
    found
}

/// Members of permuted and raised buckets who are certainly in.
fn certain(adult: &Adult, found: &Combination) -> f64 {
    let mut tally = ConfidenceHistogram::default();
    for Published { rows, node } in &found.buckets {
        let bucket = permuted_bucket(&adult.trees, &adult.levels, rows, node);
        let beliefs = compute_posterior(&bucket, BUDGET).unwrap();
        tally.add_bucket(bucket.size as u64, beliefs.row_beliefs(&bucket).map(|belief| (belief, 1)));
    }
    tally.reidentified_share()
}

/// Draws of members by which shares are told apart from chance.
const DRAWS: u64 = 1000;

/// People of a public table of which the members are so many that bucketisation would make 94 % of them certain.
const FEWER: usize = 2800;

/// What the nine attributes can tell at all: who is alone with them in P, and in T, over many draws of T.
fn uniqueness(adult: &Adult) {
    let rows = adult.trees.rows();
    let mut in_public: HashMap<&[Code], u64> = HashMap::new();
    (0..rows as u32).for_each(|row| *in_public.entry(adult.trees.row(row)).or_default() += 1);
    let alone = in_public.values().filter(|&&people| people == 1).count();
    println!(
        "{:.2} % of P are alone with their values; {} of {rows} rows are different",
        percent(alone, rows),
        in_public.len()
    );
    let mut readings: [(&str, Vec<f64>); 6] = [
        ("members whom bucketisation makes certain", Vec::new()),
        ("members who are alone with their values in T", Vec::new()),
        ("different rows among the members", Vec::new()),
        ("others whom bucketisation rules out", Vec::new()),
        ("people who are certain, or ruled out", Vec::new()),
        ("members who are certain with a P of 2,800 people", Vec::new()),
    ];
    for seed in 0..DRAWS {
        let mut order: Vec<u32> = (0..rows as u32).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let among = |rows: &[u32]| {
            let mut among: HashMap<&[Code], u64> = HashMap::new();
            rows.iter().for_each(|&row| *among.entry(adult.trees.row(row)).or_default() += 1);
            among
        };
        let (in_private, in_fewer) = (among(&order[..MEMBERS]), among(&order[..FEWER]));
        // All who have these values are members: every world holds them.
        let sure = |public: &HashMap<&[Code], u64>| {
            let alone = in_private.iter().filter(|(values, members)| public[*values] == **members);
            alone.map(|(_, members)| members).sum::<u64>() as usize
        };
        let absent = in_public.iter().filter(|(values, _)| !in_private.contains_key(*values));
        let absent = absent.map(|(_, people)| people).sum::<u64>() as usize;
        let unique = in_private.values().filter(|&&members| members == 1).count();
        let shares = [
            percent(sure(&in_public), MEMBERS),
            percent(unique, MEMBERS),
            percent(in_private.len(), MEMBERS),
            percent(absent, rows - MEMBERS),
            percent(absent + sure(&in_public), rows),
            percent(sure(&in_fewer), MEMBERS),
        ];
        readings.iter_mut().zip(shares).for_each(|((_, all), share)| all.push(share));
    }
    for (what, shares) in &mut readings {
        shares.sort_by(f64::total_cmp);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        println!("{what}, {DRAWS} draws: {mean:.2} % ({:.2} to {:.2})", shares[0], shares[shares.len() - 1]);
    }
    println!();
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole as f64
}

fn experiment_1(adult: &Adult) {
    println!("Experiment 1: members found with certainty, in per cent");
    println!("bounds of MPALM and Algorithm 6: (0, 0.9); `a..b`: some buckets too large to be counted");
    let [together, sliced, one_by_one] = forms();
    let show = |(least, most): (f64, f64)| {
        if least == most {
            format!("{:.2}", least * 100.0)
        } else {
            format!("{:.2}..{:.2}", least * 100.0, most * 100.0)
        }
    };
    let mpalm = generalised(adult, &mpalm(&adult.lines, 0.0, 0.9));
    for on_public in [true, false] {
        println!("\nk counts rows of {}", if on_public { "P" } else { "T" });
        println!("k | bucketisation | slicing | one column each | K-Mondrian | Algorithm 6 (failed buckets) | MPALM");
        // Buckets of 8 members and hundreds of public rows are beyond an exact count.
        for k in [2, 4, 8, 16, 32].into_iter().filter(|k| on_public || *k <= 4) {
            let started = Instant::now();
            let buckets = mondrian(&adult.lines, k, on_public);
            let whole = attack(adult, &buckets, &together);
            let in_slices = attack(adult, &buckets, &sliced);
            let apart = attack(adult, &buckets, &one_by_one);
            let plain = generalised(adult, &buckets);
            let combined = combine(adult, &buckets, &Bounds::new(0.0, 0.9));
            let failed = buckets.len() - combined.buckets.len();
            let combined = format!("{:.2} ({failed})", certain(adult, &combined) * 100.0);
            println!(
                "{k} | {} | {} | {} | {:.2} | {combined} | {:.2} | {:.1} s",
                show(whole),
                show(in_slices),
                show(apart),
                plain * 100.0,
                mpalm * 100.0,
                started.elapsed().as_secs_f64()
            );
        }
    }
}

/// Draws of members in the reading of sets.
const SET_DRAWS: u64 = 20;

/// Experiment 1 for the forms that permute, when equal records are one: of P, of T and of what is counted.
fn experiment_1_of_sets(adult: &mut Adult) {
    println!("\nExperiment 1 with equal records as one: different rows found with certainty, in per cent of |T|");
    println!("for seed {SEED}, then the mean (least to largest) of {SET_DRAWS} draws with k on P");
    println!("k | bucketisation | slicing | one column each");
    for (on_public, k) in [2, 4, 8, 16, 32].map(|k| (true, k)).into_iter().chain([2, 4].map(|k| (false, k))) {
        let buckets = mondrian(&adult.lines, k, on_public);
        let once = forms().map(|columns| attack_sets(adult, &buckets, &columns));
        let mut shown = once.map(|share| format!("{share:.2}"));
        if on_public {
            let mut shares: [Vec<f64>; 3] = Default::default();
            for seed in 0..SET_DRAWS {
                adult.draw(seed);
                forms()
                    .iter()
                    .zip(&mut shares)
                    .for_each(|(columns, shares)| shares.push(attack_sets(adult, &buckets, columns)));
            }
            adult.draw(SEED);
            for (shown, shares) in shown.iter_mut().zip(&mut shares) {
                shares.sort_by(f64::total_cmp);
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                *shown += &format!(", {mean:.2} ({:.2} to {:.2})", shares[0], shares[shares.len() - 1]);
            }
        }
        let on = if on_public { "P" } else { "T" };
        println!("{k} on {on} | {} | {} | {}", shown[0], shown[1], shown[2]);
    }
}

/// What one partition costs when its buckets are generalised: DM, AG when what is published covers all public rows of a
/// bucket, AG when it covers the members alone (as the thesis prints algorithm 2), and the share of members who are then
/// certain.
fn cost(adult: &Adult, buckets: &[Vec<u32>]) -> (u64, u64, u64, f64) {
    let (mut dm, mut whole, mut tight) = (0, 0, 0);
    // Rows published under each label: levels, then what stands for the values.
    let mut published: HashMap<Vec<u8>, HashMap<Vec<u32>, u64>> = HashMap::new();
    for rows in buckets {
        let members: Vec<u32> = rows.iter().copied().filter(|&row| adult.trees.is_member(row)).collect();
        let Some(&first) = members.first() else { continue };
        let count = members.len() as u64;
        let node = adult.top(&members);
        dm += count.pow(2);
        whole += height(&adult.top(rows)) * count;
        tight += height(&node) * count;
        let label = adult.raised(first, &node);
        *published.entry(node).or_default().entry(label).or_default() += count;
    }
    let mut certain = 0;
    for (node, labels) in &published {
        let mut fitting: HashMap<Vec<u32>, u64> = HashMap::new();
        (0..adult.trees.rows() as u32).for_each(|row| *fitting.entry(adult.raised(row, node)).or_default() += 1);
        certain +=
            labels.iter().filter(|(label, count)| fitting[*label] == **count).map(|(_, count)| count).sum::<u64>();
    }
    (dm, whole, tight, percent(certain as usize, MEMBERS))
}

fn height(node: &[u8]) -> u64 {
    node.iter().map(|&level| u64::from(level)).sum()
}

fn experiment_2(adult: &Adult) {
    println!("\nExperiment 2: Algorithm 6 over K-Mondrian (k on P) with the least k that works, against MPALM");
    println!("AG (members): what is published covers the members of a bucket alone, and so many per cent are certain");
    println!(
        "bounds | least k | Algorithm 6: DM, AG | MPALM, cut in two: DM, AG, AG (members) | by hierarchy: the same"
    );
    for max in [0.5, 0.6, 0.7, 0.8, 0.9] {
        let bounds = Bounds::new(0.0, max);
        let fits = |k: &usize| {
            let share =
                |rows: &Vec<u32>| bounds.contains_fraction(&Fraction::from((adult.members(rows), rows.len() as u64)));
            // At its top a bucket has the share of its members: when all tops pass, every bucket has a node.
            mondrian(&adult.lines, *k, true).iter().all(share)
        };
        let Some(k) = (1..=64).find(fits) else { continue };
        let found = combine(adult, &mondrian(&adult.lines, k, true), &bounds);
        assert!(found.failed.is_empty());
        let (dm, ag) = found.buckets.iter().fold((0, 0), |(dm, ag), bucket| {
            let members = adult.members(&bucket.rows);
            (dm + members.pow(2), ag + height(&bucket.node) * members)
        });
        let of_mpalm = [&adult.lines, &adult.trees].map(|table| {
            let (dm, whole, tight, certain) = cost(adult, &mpalm(table, 0.0, max));
            format!("{dm}, {whole}, {tight} ({certain:.1} %)")
        });
        println!("(0, {max}) | {k} | {dm}, {ag} | {} | {}", of_mpalm[0], of_mpalm[1]);
    }
}

fn experiment_3(adult: &Adult) {
    println!("\nExperiment 3: Algorithm 6 over K-Mondrian (k on P) with growing k, bounds (0, 0.9)");
    let (_, whole, tight, _) = cost(adult, &mpalm(&adult.lines, 0.0, 0.9));
    println!("AG of MPALM, whatever k: {whole}; by the members of its buckets alone: {tight}");
    println!("k | buckets | failed | AG of Algorithm 6 | seconds");
    let bounds = Bounds::new(0.0, 0.9);
    for k in [4, 8, 16, 32, 64] {
        let started = Instant::now();
        let buckets = mondrian(&adult.lines, k, true);
        let found = combine(adult, &buckets, &bounds);
        let ag: u64 = found.buckets.iter().map(|bucket| height(&bucket.node) * adult.members(&bucket.rows)).sum();
        let failed = buckets.len() - found.buckets.len();
        println!("{k} | {} | {failed} | {ag} | {:.1}", buckets.len(), started.elapsed().as_secs_f64());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut adult = Adult::new(&load().await);
    println!("P = {} people, T = {MEMBERS} of them, seed {SEED}\n", adult.trees.rows());
    uniqueness(&adult);
    experiment_1(&adult);
    experiment_1_of_sets(&mut adult);
    experiment_2(&adult);
    experiment_3(&adult);
}
