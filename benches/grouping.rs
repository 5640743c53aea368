//! How fast the grouping methods are, on one core and in memory, and what they lose.
//!
//! One million rows with eight quasi-identifiers, correlated and skewed, are grouped at k = 10 by `auto` at its three
//! efforts and by strict Mondrian, the usual yardstick. Each line is the best of three runs: rows per second of
//! processor time, the mean loss, and the largest memory of the process so far per row, the codes included.

#![allow(missing_docs, clippy::print_stdout, reason = "a bench")]

mod support;

use support::{cpu_time, peak_memory};
use throng::domain::{Axis, Code, Grouping, Shape, Table, Tree};
use throng::method::Method;
use throng::method::auto::{Auto, Effort};
use throng::method::mondrian::Mondrian;
use throng::privacy::Rules;

const ROWS: usize = 1_000_000;
const K: usize = 10;
const RUNS: usize = 3;

fn main() {
    let table = people(ROWS);
    let mut methods: Vec<(String, Box<dyn Method>)> = Vec::new();
    for effort in Effort::ALL {
        methods.push((format!("auto {}", effort.name()), Box::new(Auto::new(effort))));
    }
    methods.push(("mondrian strict".into(), Box::new(Mondrian { strict: true })));
    println!("{ROWS} rows, {} quasi-identifiers, k = {K}", table.axes.len());
    for (name, method) in methods {
        let mut best = f64::INFINITY;
        let mut grouping = Grouping::default();
        for _ in 0..RUNS {
            let start = cpu_time();
            grouping = method.group(&table, &Rules::k(K), 1);
            best = best.min((cpu_time() - start).as_secs_f64());
        }
        let speed = ROWS as f64 / best / 1e3;
        let loss = mean_loss(&table, &grouping);
        let memory = peak_memory() / ROWS as u64;
        println!("{name:16} {speed:7.0} thousand rows/s/core   loss {loss:.4}   {memory} bytes/row");
    }
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
    for _ in 0..rows {
        let traits = [rng.f64(), rng.f64()];
        for (a, (values, _)) in shapes.iter().enumerate() {
            let even = 0.6 * traits[a % 2] + 0.4 * rng.f64();
            let skewed = if a % 3 == 0 { even * even } else { even };
            codes.push((skewed * f64::from(*values)) as Code);
        }
    }
    let axes = shapes.into_iter().enumerate().map(|(a, (_, shape))| Axis::new(format!("q{a}"), shape));
    Table::new(axes.collect::<Vec<_>>(), codes)
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
