//! How fast the grouping methods are, on one core and in memory, and what they lose.
//!
//! One million rows with eight quasi-identifiers, correlated and skewed, are grouped at k = 10 by `auto` at its four
//! efforts, by strict Mondrian, the usual yardstick, and by methods of the literature that compare rows with each other
//! in subspaces; those also on a quarter of the rows, to see that their cost grows with the rows and not with their
//! square. Then one effort at group sizes up to 2000, whose cost per row should hardly rise. Each line is the best of some runs:
//! rows per second of processor time, the mean loss, and the largest memory of the process so far per row, the codes included.
//!
//! `cargo bench -p throng-core --bench grouping -- [methods] [sizes] [best] [research]`

#![allow(missing_docs, clippy::print_stdout, reason = "a bench")]

mod support;

use support::{cpu_time, peak_memory};
use throng_core::auto::{Auto, Effort};
use throng_core::grouping::Method;
use throng_core::grouping::buckets::Draw;
use throng_core::methods::density::Density;
use throng_core::methods::kl_redinfo::KlRedInfo;
use throng_core::methods::mondrian::Mondrian;
use throng_core::model::{Axis, Code, Grouping, Sensitive, SensitiveShape, Shape, Table, Tree};
use throng_core::privacy::Rules;

const ROWS: usize = 1_000_000;
const K: usize = 10;
const RUNS: usize = 3;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let wants = |part: &str| wanted.is_empty() || wanted.iter().any(|other| other == part);
    let table = people(ROWS);
    if wants("methods") {
        compare_methods(&table);
    }
    if wants("sizes") {
        for k in [10, 50, 200, 500, 2000] {
            measure(&format!("balanced, k = {k}"), &Auto::new(Effort::Balanced), &table, k, 1);
        }
    }
    if wants("best") {
        measure("auto best", &Auto::new(Effort::Best), &table, K, 1);
    }
    if wants("research") {
        compare_research(table);
    }
}

/// The quicker efforts of `auto` beside the usual yardstick, and the slow ones once.
fn compare_methods(table: &Table) {
    println!("{ROWS} rows, {} quasi-identifiers, k = {K}", table.axes.len());
    measure("mondrian strict", &Mondrian { strict: true }, table, K, RUNS);
    for (effort, runs) in [(Effort::Fast, RUNS), (Effort::Balanced, RUNS), (Effort::Thorough, 1)] {
        measure(&format!("auto {}", effort.name()), &Auto::new(effort), table, K, runs);
    }
}

/// Methods that compare rows with each other.
fn compare_research(table: Table) {
    let nearest = KlRedInfo { draw: Draw::Nearest, least: 2048, ..KlRedInfo::new(None, 1) };
    let compared: [(&str, &dyn Method); 3] =
        [("density", &Density::default()), ("kl-redinfo", &KlRedInfo::new(None, 1)), ("kl-redinfo, near", &nearest)];
    for table in [people(ROWS / 4), table] {
        println!("{} rows", table.rows());
        for (name, method) in compared {
            measure(name, method, &table, K, 1);
        }
    }
}

/// Prints the best of some runs of a method.
fn measure(name: &str, method: &dyn Method, table: &Table, k: usize, runs: usize) {
    let mut best = f64::INFINITY;
    let mut grouping = Grouping::default();
    for _ in 0..runs {
        let start = cpu_time();
        grouping = method.group(table, &Rules::k(k), 1);
        best = best.min((cpu_time() - start).as_secs_f64());
    }
    let speed = table.rows() as f64 / best / 1e3;
    let loss = mean_loss(table, &grouping);
    let memory = peak_memory() / table.rows() as u64;
    println!("{name:18} {speed:7.0} thousand rows/s/core   loss {loss:.4}   {memory} bytes/row");
}

/// Rows of people who differ in two hidden traits: every quasi-identifier mixes one of them with chance.
fn people(rows: usize) -> Table {
    let shapes = [
        (91, Shape::Line { span: 90 }),
        (1001, Shape::Line { span: 1000 }),
        (60_001, Shape::Line { span: 60_000 }),
        (8, tree(8, 3)),
        (16, tree(16, 4)),
        (40, tree(40, 5)),
        (100, tree(100, 5)),
        (2, tree(2, 2)),
    ];
    let mut rng = fastrand::Rng::with_seed(7);
    let mut codes = Vec::with_capacity(rows * shapes.len());
    let mut sensitive = fastrand::Rng::with_seed(8);
    for _ in 0..rows {
        let traits = [rng.f64(), rng.f64()];
        for (a, (values, _)) in shapes.iter().enumerate() {
            let even = 0.6 * traits[a % 2] + 0.4 * rng.f64();
            let skewed = if a % 3 == 0 { even * even } else { even };
            codes.push((skewed * f64::from(*values)) as Code);
        }
    }
    let axes = shapes.into_iter().enumerate().map(|(a, (_, shape))| Axis::new(format!("q{a}"), shape));
    let mut table = Table::new(axes.collect::<Vec<_>>(), codes);
    let values = (0..rows).map(|_| (sensitive.f64() * sensitive.f64() * 40.0) as u32).collect();
    let shape = SensitiveShape::Set { values: 40 };
    table.sensitive =
        vec![Sensitive { name: "s".into(), codes: values, shape, null: None, ranges: Vec::new(), shares: None }];
    table
}

/// A hierarchy over `leaves` values in which every node has up to `fan` children.
fn tree(leaves: usize, fan: usize) -> Shape {
    let mut intervals = Vec::new();
    let mut width = fan;
    while width < leaves {
        for start in (0..leaves).step_by(width) {
            let end = (start + width).min(leaves) - 1;
            intervals.push((start as Code, end as Code, (end - start) as f64 / (leaves - 1) as f64));
        }
        width *= fan;
    }
    Shape::Tree(Tree::new(leaves, intervals))
}

fn mean_loss(table: &Table, grouping: &Grouping) -> f64 {
    let sum: f64 = grouping.iter().map(|group| table.cover(group).loss(&table.axes) * group.len() as f64).sum();
    sum / table.rows() as f64
}
