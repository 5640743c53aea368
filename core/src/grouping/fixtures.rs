//! Tables for tests: those printed in the theses of Loukides, Tinabo, Gorla and Toth, and random ones.

use std::sync::Arc;

use proptest::prelude::*;

use crate::dependency::Dependencies;
use crate::model::{
    Attribute, Axis, Code, Dependency, NULL_ON_LINE, Sensitive, SensitiveShape, Shape, Shares, Table, Tree,
};

/// A numeric sensitive column over the domain 0..=99, with intervals of values as sensitive ranges; a value in none of
/// them is its own range.
pub(crate) fn income(values: &[f64], policy: &[(f64, f64)]) -> Sensitive {
    number("income", values, (0.0, 99.0), policy)
}

/// The shares of codes that are those of the whole table.
pub(crate) fn shares(codes: &[u32]) -> Arc<Shares> {
    let mut counts = vec![0; codes.iter().max().map_or(0, |&most| most as usize + 1)];
    codes.iter().for_each(|&code| counts[code as usize] += 1);
    Arc::new(Shares::new(&counts))
}

fn number(name: &str, values: &[f64], (min, max): (f64, f64), policy: &[(f64, f64)]) -> Sensitive {
    let mut at = values.to_vec();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let code = |value: f64| at.partition_point(|&other| other < value) as u32;
    let codes = values.iter().map(|&value| code(value)).collect();
    let ranges = at
        .iter()
        .map(|&value| match policy.iter().find(|(lo, hi)| (*lo..=*hi).contains(&value)) {
            Some((lo, hi)) => (code(*lo), at.partition_point(|other| other <= hi) as u32 - 1),
            None => (code(value), code(value)),
        })
        .collect();
    let shape = SensitiveShape::Number { at, min, max };
    let mut column = Sensitive { name: name.into(), codes, shape, null: None, ranges, shares: None };
    column.shares = Some(shares(&column.codes));
    column
}

/// Table 3.1 of the thesis: age, postcode with the hierarchy of 21 leaves, salary.
pub(crate) fn table_3_1() -> Table {
    let share = |leaves: f64| (leaves - 1.0) / 20.0;
    let tree = Tree::new(21, [(0, 5, share(6.0)), (6, 9, share(4.0)), (10, 20, share(11.0))]);
    let axes = [Axis::new("age", Shape::Line { span: 30 }), Axis::new("postcode", Shape::Tree(tree))];
    let rows = [(30, 10), (32, 15), (37, 12), (40, 13), (45, 20), (46, 30), (57, 30), (60, 25)];
    let mut table = Table::new(axes, rows.iter().flat_map(|&(age, nw)| [age - 30, nw - 10]).collect());
    let salaries = [10.0, 10.0, 10.0, 10.0, 20.0, 40.0, 40.0, 30.0];
    table.sensitive = vec![number("salary", &salaries, (10.0, 40.0), &[])];
    table
}

/// Table 3.5 of the thesis: age, height, postcode without a hierarchy, salary.
pub(crate) fn table_3_5() -> Table {
    let axes = [
        Axis::new("age", Shape::Line { span: 20 }),
        Axis::new("height", Shape::Line { span: 5 }),
        Axis::new("postcode", Shape::Set { values: 2 }),
    ];
    let ages = [10, 15, 15, 20, 20, 25, 25, 30];
    let codes = ages.iter().zip([0, 1].iter().cycle()).flat_map(|(age, odd)| [age - 10, odd * 5, *odd]).collect();
    let mut table = Table::new(axes, codes);
    let salaries = [20.0, 20.0, 65.0, 65.0, 20.0, 20.0, 65.0, 65.0];
    table.sensitive = vec![number("salary", &salaries, (20.0, 65.0), &[])];
    table
}

/// Table 5.1 of the thesis: age, income with the ranges low, middle and high of its running example.
pub(crate) fn table_5_1() -> Table {
    let ages: [Code; 12] = [30, 22, 29, 29, 31, 35, 37, 39, 41, 42, 44, 45];
    let incomes = [1.0, 4.0, 22.0, 23.0, 24.0, 9.0, 0.0, 9.0, 25.0, 26.0, 90.0, 90.0];
    let axes = [Axis::new("age", Shape::Line { span: 23 })];
    let mut table = Table::new(axes, ages.iter().map(|age| age - 22).collect());
    table.sensitive = vec![income(&incomes, &[(0.0, 9.0), (10.0, 30.0), (80.0, 99.0)])];
    table
}

/// Fig. 2.2 of the thesis of Toth, zip and age with a hierarchy of one level each (537*, 20-30), and who of the ten is in
/// the private table of fig. 2.1: all but the first and the last.
pub(crate) fn p1_t1() -> Table {
    let (public, _) = crate::attack::fixtures::p1_t1();
    let axes = [Axis::new("zip", Shape::Tree(Tree::new(4, []))), Axis::new("age", Shape::Tree(Tree::new(2, [])))];
    let codes = public.iter().flat_map(|row| [(row[0] - 5370) as Code, (row[1] / 27) as Code]).collect();
    let mut table = Table::new(axes, codes);
    table.members = Some((0..10).map(|row| (1..9).contains(&row)).collect());
    table
}

/// Fig. 5.5 of the same: two bits, and those rows in the private table whose bits differ.
pub(crate) fn xor() -> Table {
    let axes = ["col1", "col2"].map(|name| Axis::new(name, Shape::Tree(Tree::new(2, []))));
    let mut table = Table::new(axes, vec![0, 0, 0, 1, 1, 0, 1, 1]);
    table.members = Some(vec![false, true, true, false]);
    table
}

/// A random table of public rows, some of which are members.
pub(crate) fn public_tables() -> impl Strategy<Value = Table> {
    (tables(), any::<u64>(), 1..10_u8).prop_map(|(mut table, seed, tenths)| {
        let mut rng = fastrand::Rng::with_seed(seed);
        table.persons = None;
        table.members = Some((0..table.rows()).map(|_| rng.u8(0..10) < tenths).collect());
        table
    })
}

/// Table 3 of Gorla's thesis: postal code, province and medication, the latter with a tree of height 3.
pub(crate) fn gorla_table_3() -> Table {
    let tree = |leaves, nodes: &[(Code, Code)]| {
        let share = |(lo, hi): (Code, Code)| f64::from(hi - lo) / (leaves - 1) as f64;
        Shape::Tree(Tree::new(leaves, nodes.iter().map(|&node| (node.0, node.1, share(node)))))
    };
    let axes = [
        Axis::new("PC", tree(4, &[(1, 2)])),
        Axis::new("PRV", tree(4, &[(1, 2)])),
        Axis::new("MED", tree(8, &[(0, 3), (0, 1), (4, 7), (6, 7)])),
    ];
    // V6J BC, J5B QC, K2H ON, R7A MB; ibuprofen and diazepam.
    let rows = [[0, 0, 0], [0, 0, 0], [1, 1, 0], [2, 2, 0], [2, 2, 7], [1, 1, 7], [3, 3, 7], [3, 3, 7]];
    Table::new(axes, rows.concat())
}

fn disease(codes: &[u32], values: u32) -> Sensitive {
    let shape = SensitiveShape::Set { values };
    Sensitive { name: "disease".into(), codes: codes.to_vec(), shape, null: None, ranges: Vec::new(), shares: None }
}

/// The nine rows that Tinabo's thesis walks through (tables 3.2 and 4.1, with the box of row 9 as table 4.2 has it):
/// month of birth, gender, post box. Nodes lose what the thesis' NCP counts: their leaves among all.
pub(crate) fn tinabo_walkthrough() -> Table {
    let sevenths = |leaves: f64| leaves / 7.0;
    let born = Tree::new(7, [(0, 1, sevenths(2.0)), (2, 3, sevenths(2.0)), (4, 6, sevenths(3.0))]);
    let boxes = Tree::new(8, [(4, 5, 0.25), (6, 7, 0.25)]);
    let axes = [
        Axis::new("born", Shape::Tree(born)),
        Axis::new("gender", Shape::Tree(Tree::new(2, []))),
        Axis::new("box", Shape::Tree(boxes)),
    ];
    let codes = [[5, 1, 5], [2, 0, 2], [0, 1, 0], [2, 0, 7], [3, 0, 4], [6, 1, 1], [3, 0, 4], [1, 0, 6], [4, 1, 3]];
    let mut table = Table::new(axes, codes.concat());
    // Cancer, HIV, malaria, obesity.
    table.sensitive = vec![disease(&[0, 3, 3, 2, 1, 3, 1, 0, 2], 4)];
    table
}

/// The ten rows that Tinabo's program was verified with (section 5.5): gender, marital status, date of birth, address.
pub(crate) fn tinabo_ten_rows() -> Table {
    let tenths = |leaves: f64| leaves / 10.0;
    let born = Tree::new(10, [(0, 1, tenths(2.0)), (2, 6, tenths(5.0)), (7, 9, tenths(3.0))]);
    let axes = [
        Axis::new("gender", Shape::Tree(Tree::new(2, []))),
        Axis::new("status", Shape::Tree(Tree::new(4, [(0, 2, 0.75)]))),
        Axis::new("born", Shape::Tree(born)),
        Axis::new("address", Shape::Tree(Tree::new(6, [(0, 2, 0.5), (3, 4, 0.3)]))),
    ];
    let codes = [
        [0, 0, 0, 5],
        [1, 3, 3, 4],
        [0, 3, 5, 1],
        [1, 1, 8, 2],
        [0, 0, 4, 5],
        [1, 2, 2, 0],
        [1, 1, 1, 5],
        [0, 0, 9, 4],
        [1, 2, 7, 1],
        [0, 3, 6, 3],
    ];
    let mut table = Table::new(axes, codes.concat());
    table.sensitive = vec![disease(&[0, 1, 2, 3, 4, 5, 4, 6, 0, 7], 8)];
    table
}

/// A random line, tree or set, some of them with nulls.
fn axis() -> impl Strategy<Value = Axis> {
    let shape = prop_oneof![
        (0..40 as Code).prop_map(|span| Shape::Line { span }),
        (1..6 as Code).prop_map(|half| Shape::Tree(Tree::new(usize::from(half) * 2 + 1, [(0, half, 0.4)]))),
        (1..9_u32).prop_map(|values| Shape::Set { values }),
    ];
    (shape, any::<bool>(), 1..4_u8, any::<bool>()).prop_map(|(shape, nulls, weight, exact)| {
        let mut axis = Axis::new("axis", shape);
        axis.null = match &axis.shape {
            _ if !nulls => None,
            Shape::Line { .. } => Some(NULL_ON_LINE),
            Shape::Tree(tree) => Some(tree.codes() as Code - 1),
            Shape::Set { values } => Some(*values as Code - 1),
        };
        axis.weight = f64::from(weight);
        axis.exact = exact || !matches!(axis.shape, Shape::Line { .. });
        axis
    })
}

/// A sensitive column called "s" over ten values, with random ranges around them.
fn sensitive(rows: usize) -> impl Strategy<Value = Sensitive> {
    let codes = prop::collection::vec(0..10_u32, rows);
    let ranges = prop::collection::vec((0..4_u32, 0..4_u32), 10);
    (codes, ranges, 0..3_u8, any::<bool>()).prop_map(|(codes, ranges, shape, null)| Sensitive {
        name: "s".into(),
        shares: Some(shares(&codes)),
        codes,
        shape: match shape {
            0 => SensitiveShape::Number { at: (0..10).map(f64::from).collect(), min: 0.0, max: 9.0 },
            1 => SensitiveShape::Tree(Tree::new(10, [(0, 4, 0.5), (5, 9, 0.5)])),
            _ => SensitiveShape::Set { values: 10 },
        },
        null: null.then_some(9),
        ranges: (0_u32..).zip(ranges).map(|(u, (down, up))| (u.saturating_sub(down), (u + up).min(9))).collect(),
    })
}

/// Random tables: 1 to 6 axes, 0 to 300 rows, with or without a sensitive column, now and then with persons.
pub(crate) fn tables() -> impl Strategy<Value = Table> {
    let size = prop_oneof![0..20_usize, 0..300_usize];
    (prop::collection::vec(axis(), 1..=6), size, any::<bool>(), 0..4_u8).prop_flat_map(|(axes, rows, with, persons)| {
        let codes = prop::collection::vec(any::<Code>(), rows * axes.len());
        (Just(axes), codes, sensitive(rows), prop::collection::vec(0..rows.max(1) as u32, rows)).prop_map(
            move |(axes, raw, column, people)| {
                let codes = raw.iter().enumerate().map(|(i, &raw)| {
                    let axis = &axes[i % axes.len()];
                    match &axis.shape {
                        Shape::Line { .. } if axis.null.is_some() && raw % 11 == 0 => NULL_ON_LINE,
                        Shape::Line { span } => raw % (span + 1),
                        Shape::Tree(tree) => raw % tree.codes() as Code,
                        Shape::Set { values } => raw % *values as Code,
                    }
                });
                let codes = codes.collect();
                let mut table = Table::new(axes, codes);
                table.sensitive = if with { vec![column] } else { Vec::new() };
                table.persons = (persons == 0).then_some(people);
                table
            },
        )
    })
}

/// Table 3 of Gorla's thesis: postal code, province and medication, and the diagnosis published as it is; postal code ->
/// province, diagnosis -> medication.
pub(crate) fn gorla() -> (Table, Dependencies) {
    // J5B K2H | R7A V6J; QC ON | AB MB | NS NB BC; the NSAIDs ibuprofen, addaprin, naproxen | five others.
    let postal = Tree::new(4, [(0, 1, 0.4)]);
    let province = Tree::new(7, [(0, 1, 0.2), (2, 3, 0.2)]);
    let medication = Tree::new(8, [(0, 2, 0.3), (0, 4, 0.6)]);
    let axis = |name: &str, tree: Tree| Axis::new(name, Shape::Tree(tree));
    let axes = [axis("PC", postal), axis("PRV", province), axis("MED", medication)];
    let (v6j, j5b, k2h, r7a) = ([3, 6], [0, 0], [1, 1], [2, 3]);
    let places = [v6j, v6j, j5b, k2h, k2h, j5b, r7a, r7a];
    let bound_policies: [Code; 8] = [0, 0, 0, 0, 7, 7, 7, 7];
    let codes =
        places.iter().zip(bound_policies).flat_map(|(place, medication)| [place[0], place[1], medication]).collect();
    let mut table = Table::new(axes, codes);
    table.plain = vec![vec![1, 1, 1, 1, 2, 2, 2, 2]];
    use Attribute::{Plain, Quasi};
    let list = vec![
        Dependency { from: vec![Quasi(0)], to: vec![Quasi(1)] },
        Dependency { from: vec![Plain(0)], to: vec![Quasi(2)] },
    ];
    let dependencies = Dependencies::of_table(list, &table);
    (table, dependencies)
}

/// Random tables with random dependencies, which need not hold.
pub(crate) fn dependent_tables() -> impl Strategy<Value = (Table, Vec<Dependency>)> {
    (tables(), 1..4_usize, any::<u64>()).prop_map(|(mut table, dependencies, seed)| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rows = table.rows().min(40);
        let width = table.axes.len();
        table.codes.truncate(rows * width);
        table.sensitive.clear();
        table.persons = None;
        table.plain = (0..2).map(|_| (0..rows).map(|_| rng.u64(..4)).collect()).collect();
        let list = (0..dependencies).map(|_| {
            let mut columns: Vec<Attribute> =
                (0..width).map(Attribute::Quasi).chain((0..2).map(Attribute::Plain)).collect();
            rng.shuffle(&mut columns);
            columns.truncate(rng.usize(2..=3.min(width + 2)));
            let to = columns.split_off(1);
            Dependency { from: columns, to }
        });
        (table.clone(), list.collect())
    })
}
