//! Where a row stands in its class says nothing of its raw values, and where a group stands says nothing of its members:
//! permutation tests over some two hundred small tables, each with a key of its own, for every method in every form.
//!
//! This is the one attack that runs inside the process, because what it looks at is the order in which the operator emits
//! rows, before any writer has sorted them. Only methods that hide people among a public table run as whole releases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::prelude::{SessionConfig, SessionContext};
use throng::{AnonymizeExt, Job, Outcome, Policy, Run, RunOptions, register};
use throng_core::methods::METHODS;

use super::hash_order::hashes;
use super::publication::Publication;
use super::statistics::{SIGNIFICANT, rank_correlation, serial_correlation};
use super::values::{Value, column};
use crate::support::{Desk, batch, write_parquet};

const ROWS: usize = 300;

/// Tables, each with a key of its own, for every method and form.
const RUNS: usize = 3;

const FORMS: [&str; 6] = ["generalise", "bucketise", "slice", "permute", "anatomy", "anatomy-permuted"];

/// Methods that hide people among a public table, with the form that they publish in.
const AMONG_THE_PUBLIC: [(&str, &str); 3] =
    [("mpalm", "generalise"), ("spalm", "generalise"), ("combined", "combined")];

/// Everybody differs from everybody else in every column but `town` and `ill`, so that each value that is published as it
/// is reveals whose it is. No column depends on another one, nor on where a row stands in the table.
fn people(rows: usize, rng: &mut fastrand::Rng) -> RecordBatch {
    let mut unique = |first: i64| -> ArrayRef {
        let mut numbers: Vec<i64> = (0..rows as i64).map(|number| first + 7 * number).collect();
        rng.shuffle(&mut numbers);
        Arc::new(Int64Array::from(numbers))
    };
    let [tag, age, pay, zip] = [50_000, 1_000, 90_000, 10_000].map(&mut unique);
    let mut words = |words: &[&'static str]| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..rows).map(|_| words[rng.usize(..words.len())])))
    };
    let (town, ill) =
        (words(&["ash", "birch", "elm", "oak"]), words(&["cold", "flu", "gout", "mumps", "none", "rash"]));
    batch(vec![("tag", tag), ("age", age), ("zip", zip), ("town", town), ("ill", ill), ("pay", pay)])
}

fn policy(method: &str, form: &str, seed: u64) -> String {
    let more = match method {
        "toc" => "toc = { delta = 0.4, s = 40 }\n",
        "upc" => "upc.s = 40\n",
        "density-cm" => "density-cm.class = \"ill\"\n",
        _ => "",
    };
    // A sensitive value beside quasi-identifiers would be revealed by them.
    let slices = if form == "slice" { "slices = [[\"ill\"], [\"pay\"]]\n" } else { "" };
    let depends = match method {
        "pair-enum" | "k-assemble" => "[[dependencies]]\nfrom = [\"age\"]\nto = [\"town\"]\ntolerance = 0.9\n",
        _ => "",
    };
    format!(
        "[privacy]\nk = 5\nmax-loss = 0.95\nmax-suppression = 0.5\nl-diversity = {{ column = \"ill\", l = 2 }}\n\
         range-diversity = {{ column = \"pay\", p = 0.9, ranges.interval = 70.0 }}\n\
         [columns]\ntag.role = \"kept\"\nage.role = \"quasi\"\nzip.role = \"quasi\"\ntown.role = \"quasi\"\n\
         ill.role = \"sensitive\"\npay.role = \"sensitive\"\n\
         [method]\nname = \"{method}\"\nform = \"{form}\"\nseed = {seed}\n{more}{slices}{depends}"
    )
}

/// The rows as the operator emits them; none where the method is not published in this form.
async fn emitted(people: &RecordBatch, method: &str, form: &str, seed: u64) -> Option<RecordBatch> {
    let table: toml::Table = policy(method, form, seed).parse().unwrap();
    let policy = match Policy::from_table(table, std::path::Path::new(".")) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(error.to_string().contains("form"), "{method} as {form}: {error}");
            return None;
        }
    };
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    register(&context).unwrap();
    let rows = context.read_batch(people.clone()).unwrap().anonymize(&policy).unwrap();
    let batches = rows.collect().await.unwrap_or_else(|error| panic!("{method} as {form}: {error}"));
    Some(concat_batches(&batches[0].schema(), &batches).unwrap())
}

/// The rows of a release that hides its people among twice as many others.
async fn released(everybody: &RecordBatch, source: &RecordBatch, method: &str, seed: u64) -> RecordBatch {
    let desk = Desk::new();
    write_parquet(&desk.path("public.parquet"), &everybody.project(&[1, 2, 3]).unwrap());
    write_parquet(&desk.path("in.parquet"), source);
    let job = format!(
        "version = 1\nsource.url = \"in.parquet\"\nsink.url = \"out\"\n\
         privacy = {{ k = 5, presence = {{ public = \"public.parquet\", min = 0.05, max = 0.9 }} }}\n\
         method = {{ name = \"{method}\", seed = {seed} }}\n\
         [columns]\ntag.role = \"kept\"\nage.role = \"quasi\"\nzip.role = \"quasi\"\ntown.role = \"quasi\"\n\
         ill.role = \"sensitive\"\npay.role = \"sensitive\"\n"
    );
    let job = Job::parse(&job, &desk.path("job.toml")).unwrap();
    let run = Run::new(job, &desk.path(""), RunOptions::default()).unwrap();
    let outcome = run.execute(&|_, _, _| ()).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    assert!(matches!(outcome, Outcome::Released(..)), "{method}");
    let pieces: Vec<RecordBatch> =
        Publication::open(&desk.path("out")).pieces.into_iter().map(|piece| piece.rows).collect();
    concat_batches(&pieces[0].schema(), &pieces).unwrap()
}

/// Columns that reveal whose a value is, each with what a reader must not learn from the place of that value: everything that
/// does not stand beside it.
fn hidden(form: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    const BESIDE_NOTHING: [&str; 3] = ["row", "hash", "oddness"];
    let with = |columns: &[&'static str]| [columns, &BESIDE_NOTHING].concat();
    match form {
        "generalise" => vec![("tag", with(&["age", "zip", "town"]))],
        "combined" => {
            vec![("tag", with(&["age", "zip", "town", "pay"])), ("pay", with(&["age", "zip", "town", "tag"]))]
        }
        "bucketise" | "slice" | "anatomy" => {
            vec![("age", vec!["pay", "ill", "row", "hash"]), ("pay", with(&["age", "zip", "town", "tag"]))]
        }
        _ => vec![
            ("tag", with(&["age", "zip", "town", "pay"])),
            ("age", with(&["tag", "zip", "town", "pay"])),
            ("zip", with(&["tag", "age", "town", "pay"])),
            ("pay", with(&["tag", "age", "zip", "town"])),
        ],
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        // Text by its first bytes: a number that sorts the same.
        Value::Bytes(bytes) => (0..4).fold(0.0, |all, at| all * 256.0 + f64::from(*bytes.get(at).unwrap_or(&0))),
        other => panic!("no number for {other:?}"),
    }
}

/// What is true of everybody, by row of the source; and of whom every value is.
struct Truth {
    features: BTreeMap<&'static str, Vec<f64>>,
    owners: HashMap<&'static str, HashMap<Value, usize>>,
}

impl Truth {
    fn new(people: &RecordBatch) -> Self {
        let of = |name: &str| column(people.column_by_name(name).unwrap().as_ref());
        let names = ["tag", "age", "zip", "town", "ill", "pay"];
        let mut features: BTreeMap<&str, Vec<f64>> =
            names.iter().map(|&name| (name, of(name).iter().map(number).collect())).collect();
        features.insert("row", (0..people.num_rows()).map(|row| row as f64).collect());
        features.insert("hash", hashes(people.columns()).into_iter().map(|hash| hash as f64).collect());
        let owners = ["tag", "age", "zip", "pay"].map(|name| (name, of(name).into_iter().zip(0..).collect()));
        Self { features, owners: owners.into() }
    }

    /// A feature of the people of a group. The oddness of somebody is the distance from the middle of the group: methods that
    /// grow groups take odd people last.
    fn of(&self, feature: &str, group: &[usize]) -> Vec<f64> {
        if feature != "oddness" {
            return group.iter().map(|&person| self.features[feature][person]).collect();
        }
        let mut oddness = vec![0.0; group.len()];
        for feature in ["age", "zip"] {
            let values = self.of(feature, group);
            let middle = values.iter().sum::<f64>() / values.len() as f64;
            oddness.iter_mut().zip(&values).for_each(|(sum, value)| *sum += (value - middle).abs());
        }
        oddness
    }
}

/// Standard normal scores of independent tests, by what they are about.
type Scores = BTreeMap<String, Vec<f64>>;

/// Adds the scores of one release. A writer sorts classes by what they publish, so their order is only looked at where none
/// did, or where it goes by random numbers.
fn examine(scores: &mut Scores, published: &RecordBatch, form: &str, written: bool, truth: &Truth) {
    let of = |name: &str| column(published.column_by_name(name).unwrap().as_ref());
    let class_columns = if form == "generalise" { vec!["age", "zip", "town"] } else { vec!["group"] };
    let class: Vec<Vec<Value>> = class_columns.into_iter().map(of).collect();
    let mut places: BTreeMap<Vec<&Value>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for row in 0..published.num_rows() {
        let next = places.len();
        let place = *places.entry(class.iter().map(|column| &column[row]).collect()).or_insert(next);
        groups.resize(places.len(), Vec::new());
        groups[place].push(row);
    }
    let hidden = hidden(form);
    let first = hidden[0].0;
    for (identity, features) in hidden {
        let values = of(identity);
        let owners = &truth.owners[identity];
        let people = |rows: &Vec<usize>| rows.iter().filter_map(|&row| owners.get(&values[row]).copied()).collect();
        let people: Vec<Vec<usize>> = groups.iter().map(people).collect();
        assert_eq!(
            people.iter().map(Vec::len).sum::<usize>(),
            published.num_rows(),
            "{form}: {identity} reveals whose"
        );
        for feature in features {
            for group in people.iter().filter(|group| group.len() > 1) {
                let order: Vec<f64> = (0..group.len()).map(|place| place as f64).collect();
                let score = rank_correlation(&order, &truth.of(feature, group));
                scores.entry(format!("place of {identity} and {feature}")).or_default().extend(score);
            }
        }
        // Groups may not stand by what their members are, nor beside those that they are like.
        if identity != first || groups.len() < 12 || (written && form == "generalise") {
            continue;
        }
        let order: Vec<f64> = (0..groups.len()).map(|place| place as f64).collect();
        for feature in ["age", "zip", "pay", "row"] {
            let mean = |group: &Vec<usize>| truth.of(feature, group).iter().sum::<f64>() / group.len() as f64;
            let means: Vec<f64> = people.iter().map(mean).collect();
            scores
                .entry(format!("order of groups and {feature}"))
                .or_default()
                .extend(rank_correlation(&order, &means));
            scores.entry(format!("neighbours and {feature}")).or_default().extend(serial_correlation(&means));
        }
    }
}

/// How far the sum of independent normal scores is from nothing, in standard deviations.
fn pooled(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>().abs() / (scores.len() as f64).sqrt().max(1.0)
}

#[tokio::test]
async fn places_are_independent_of_raw_values() {
    let mut all: BTreeMap<(&str, &str), Scores> = BTreeMap::new();
    let (mut releases, mut seed) = (0, 0);
    for _ in 0..RUNS {
        let ordinary = METHODS.iter().filter(|entry| !AMONG_THE_PUBLIC.iter().any(|(name, _)| *name == entry.name));
        for method in ordinary.map(|entry| entry.name) {
            for form in FORMS {
                seed += 1;
                let source = people(ROWS, &mut fastrand::Rng::with_seed(seed));
                let Some(published) = emitted(&source, method, form, seed).await else { continue };
                releases += 1;
                examine(all.entry((method, form)).or_default(), &published, form, false, &Truth::new(&source));
            }
        }
        for (method, form) in AMONG_THE_PUBLIC {
            seed += 1;
            let everybody = people(3 * ROWS, &mut fastrand::Rng::with_seed(seed));
            let source = take_record_batch(&everybody, &UInt32Array::from_iter_values(0..ROWS as u32)).unwrap();
            let published = released(&everybody, &source, method, seed).await;
            releases += 1;
            examine(all.entry((method, form)).or_default(), &published, form, true, &Truth::new(&source));
        }
    }
    // By method and form, and all methods of a form together, which sees what is too faint in one.
    let mut together: BTreeMap<&str, Scores> = BTreeMap::new();
    for ((_, form), scores) in &all {
        let of_form = together.entry(form).or_default();
        scores.iter().for_each(|(name, scores)| of_form.entry(name.clone()).or_default().extend(scores));
    }
    let methods: BTreeSet<&str> = all.keys().map(|(method, _)| *method).collect();
    assert_eq!(methods.len(), METHODS.len(), "a method is published in no form");
    let (mut tests, mut largest, mut telling) = (0, 0.0_f64, Vec::new());
    let by_method = all.iter().map(|((method, form), scores)| (format!("{method} as {form}"), scores));
    for (name, scores) in by_method.chain(together.iter().map(|(form, scores)| (format!("all as {form}"), scores))) {
        for (what, scores) in scores.iter().filter(|(_, scores)| !scores.is_empty()) {
            let score = pooled(scores);
            tests += 1;
            largest = largest.max(score);
            if score > SIGNIFICANT {
                telling.push(format!("{name}: {what}, {score:.1} standard deviations"));
            }
        }
    }
    println!(
        "places: {releases} releases of {} methods and forms, {tests} tests of independence, the largest {largest:.1} \
         standard deviations, {} significant",
        all.len(),
        telling.len()
    );
    assert!(releases > 150 && tests > 500, "{releases} releases, {tests} tests");
    assert!(telling.is_empty(), "places reveal raw values:\n{}", telling.join("\n"));
}
