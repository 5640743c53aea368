//! What grouping loses, and what it costs, on a table of one's own: CSV and hierarchies in the form of ARX.
//!
//! ```text
//! cargo bench -p throng-core --bench loss -- TABLE.csv --hierarchies FOLDER --quasi age,sex,... [option ...]
//!
//! --ranges age,...       columns of numbers that are published as ranges, whatever hierarchies there are
//! --k 5,10,50            group sizes (5,10,50)
//! --efforts best,...     efforts of `auto` (all), `mondrian`, or `none`
//! --seeds 3              runs with as many seeds, each with its own order of rows (1)
//! --cells 1,8,64         cells that the table is cut into first, as whole runs cut it (1)
//! --bound 2000           rounds that a lower bound of the loss is searched for, from the best grouping (none)
//! --published FILE.csv   a file of published rows, in the order of the source, to be judged by the same rule
//! ```
//!
//! A hierarchy is a file `COLUMN.csv` without header, `;` between leaf, levels and `*`; if it has a leaf `NULL`, empty values are
//! that leaf. The loss of a column is (leaves - 1) / (all leaves - 1), but where all leaves are numbers: there it is the share of
//! the range that the values of the table span. GCP is the mean over rows and columns.
//!
//! Groups are written as labels first, and judged from these and the source alone (`judge.rs`): that every value lies in its label,
//! that every class of equal labels has k rows, and what is lost. Each line has the processor seconds of one thread, without
//! reading and judging.

#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench")]

mod judge;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use std::collections::BTreeMap;

use judge::Judge;
use support::cpu_time;
use tables::Source;
use throng_core::auto::{Auto, Effort};
use throng_core::bound::lower_bound;
use throng_core::grouping::Method;
use throng_core::grouping::split::CellTree;
use throng_core::methods::mondrian::Mondrian;
use throng_core::model::{Grouping, Table};
use throng_core::privacy::Rules;

/// Rows of the sample that the cells are cut by, as in a whole run.
const SAMPLE: usize = 131_072;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut table, mut options) = (None, BTreeMap::new());
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some(name) => drop(options.insert(name.to_owned(), arguments.next().expect("a value of the option"))),
            None => table = Some(argument),
        }
    }
    let Some(table) = table else {
        println!("cargo bench -p throng-core --bench loss -- TABLE.csv --hierarchies FOLDER --quasi a,b,...");
        return;
    };
    let list = |name: &str, default: &str| -> Vec<String> {
        let text = options.get(name).map_or(default, String::as_str);
        text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    let source = Source::read(&table, options.get("hierarchies"), &list("quasi", ""), &list("ranges", ""));
    let judge = Judge::new(&source);
    println!("{} rows, {} quasi-identifiers", source.rows(), source.columns.len());
    if let Some(path) = options.get("published") {
        let (gcp, smallest, classes) = judge.score_file(&source, path);
        println!("published   GCP {gcp:.5}   {classes} classes, the smallest of {smallest} rows");
        return;
    }
    let number = |name: &str, default: &str| list(name, default)[0].parse::<usize>().expect("a number");
    for k in list("k", "5,10,50").iter().map(|k| k.parse().expect("a number")) {
        let mut least: Option<(f64, Grouping)> = None;
        for cells in list("cells", "1").iter().map(|cells| cells.parse().expect("a number")) {
            for name in list("efforts", "fast,balanced,thorough,best") {
                let runs = (0..number("seeds", "1") as u64).map(|seed| run(&source, &judge, &name, k, cells, seed));
                let runs: Vec<(f64, f64, String, Grouping)> = runs.collect();
                let mean = |figures: Vec<f64>| figures.iter().sum::<f64>() / runs.len() as f64;
                let (gcp, seconds) =
                    (mean(runs.iter().map(|run| run.0).collect()), mean(runs.iter().map(|run| run.1).collect()));
                println!("k = {k:<4} {name:9} GCP {gcp:.5}   {seconds:7.2} CPU s   {}", runs[0].2);
                for (gcp, _, _, grouping) in runs {
                    if least.as_ref().is_none_or(|least| gcp < least.0) {
                        least = Some((gcp, grouping));
                    }
                }
            }
        }
        let rounds = number("bound", "0");
        if let Some((gcp, grouping)) = least.filter(|_| rounds > 0) {
            let start = cpu_time();
            let bound = lower_bound(&source.table, k, &grouping, rounds).expect("fair prices").loss;
            let seconds = (cpu_time() - start).as_secs_f64();
            println!(
                "k = {k:<4} bound     GCP {bound:.5}   {seconds:7.2} CPU s   the best is {:.3} times that",
                gcp / bound
            );
        }
    }
}

/// Groups the table cell by cell, and judges the labels. Returns GCP, CPU seconds, what else there is to say, and the groups.
fn run(source: &Source, judge: &Judge, name: &str, k: usize, cells: usize, seed: u64) -> (f64, f64, String, Grouping) {
    let method: Box<dyn Method> = match Effort::from_name(name) {
        Some(effort) => Box::new(Auto::new(effort)),
        None => Box::new(Mondrian { strict: true }),
    };
    let mut order: Vec<u32> = (0..source.rows() as u32).collect();
    fastrand::Rng::with_seed(seed + 1).shuffle(&mut order);
    let parts = cut_cells(&source.table, &order, cells);
    let (mut grouping, mut seconds) = (Grouping::with_capacity(order.len()), 0.0);
    for rows in &parts {
        let codes = rows.iter().flat_map(|&row| source.table.row(row)).copied().collect();
        let cell = Table::new(source.table.axes.clone(), codes);
        let start = cpu_time();
        let groups = method.group(&cell, &Rules::k(k), seed + 1);
        seconds += (cpu_time() - start).as_secs_f64();
        let names = |group: &[u32]| group.iter().map(|&row| rows[row as usize]).collect::<Vec<_>>();
        groups.iter().for_each(|group| grouping.push(&names(group)));
        assert!(groups.left_over.is_empty(), "rows are left over");
    }
    let (gcp, smallest, classes) = judge.score_grouping(source, &grouping);
    assert!(smallest >= k, "a class of {smallest} rows");
    let mut more = format!("{classes} classes, the smallest of {smallest}");
    if cells > 1 {
        let sizes = parts.iter().map(Vec::len);
        let (low, high) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
        more += &format!("; {} cells of {low} to {high} rows, {:.2} times", parts.len(), high as f64 / low as f64);
    }
    (gcp, seconds, more, grouping)
}

/// Cuts the rows into cells as a whole run does: by a tree made from the distinct rows that come first by a hash.
fn cut_cells(table: &Table, order: &[u32], cells: usize) -> Vec<Vec<u32>> {
    if cells == 1 {
        return vec![order.to_vec()];
    }
    let mut counts: BTreeMap<(u64, &[u16]), u32> = BTreeMap::new();
    for &row in order {
        let codes = table.row(row);
        let mix = |hash: u64, &code: &u16| (hash ^ u64::from(code)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        *counts.entry((codes.iter().fold(7, mix), codes)).or_default() += 1;
    }
    let sample: Vec<(&[u16], f64)> =
        counts.iter().take(SAMPLE).map(|(&(_, codes), &count)| (codes, f64::from(count))).collect();
    let codes = sample.iter().flat_map(|(codes, _)| *codes).copied().collect();
    let weights: Vec<f64> = sample.iter().map(|&(_, weight)| weight).collect();
    let tree = CellTree::build(&Table::new(table.axes.clone(), codes), &weights, 1.0 / cells as f64);
    let mut parts = vec![Vec::new(); tree.cell_count()];
    order.iter().for_each(|&row| parts[tree.assign_cell(table.row(row)) as usize].push(row));
    parts
}
