//! How the cost of a run grows: over rows, k, columns, partitions and cells; and how alike cells are.
//!
//! `cargo bench --features cli --bench scaling -- [ROWS...]`, for example `-- 1000000 10000000`; all but rows is varied on the first of
//! them. Every line shows CPU and wall time, the CPU time of a row and the loss against those of the first line of its
//! table, and rows of the smallest and of the largest cell. The last table is of skewed rows, which are hard to cut into
//! cells of one size.

#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench")]

mod support;

use std::path::Path;

use bytesize::ByteSize;
use support::skew::{self, Skew};
use support::{census, timed};
use throng::{Job, RunOptions, SessionOptions};

/// Skewed rows, by the name of their table.
const SKEWED: [(&str, Skew); 4] =
    [("Zipf", Skew::Zipf), ("one town", Skew::Town), ("copies", Skew::Copies), ("same rows", Skew::Same)];

/// What a line of a table varies.
#[derive(Clone, Copy)]
struct Case {
    rows: u64,
    k: u32,
    columns: usize,
    partitions: Option<usize>,
    /// About how many cells there should be.
    cells: Option<u64>,
    /// Skewed rows instead of the census.
    skew: Option<Skew>,
}

fn main() {
    throng::internals::set_up();
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut rows: Vec<u64> = arguments.map(|rows| rows.parse().expect("ROWS are numbers")).collect();
    if rows.is_empty() {
        rows = vec![1_000_000];
    }
    let usual = Case { rows: rows[0], k: 10, columns: census::QUASI.len(), partitions: None, cells: None, skew: None };
    table("rows", &rows.iter().map(|&rows| (rows.to_string(), Case { rows, ..usual })).collect::<Vec<_>>());
    table("k", &[2, 5, 10, 50, 100].map(|k| (k.to_string(), Case { k, ..usual })));
    table("columns", &[2, 4, 6, 8].map(|columns| (columns.to_string(), Case { columns, ..usual })));
    table("partitions", &[1, 2, 4, 8].map(|n| (n.to_string(), Case { partitions: Some(n), ..usual })));
    table("cells", &[1, 2, 8, 64, 512].map(|cells| (cells.to_string(), Case { cells: Some(cells), ..usual })));
    for (name, skew) in SKEWED {
        let lines = [1, 8, 64].map(|cells| (cells.to_string(), Case { skew: Some(skew), cells: Some(cells), ..usual }));
        table(name, &lines);
    }
}

fn table(what: &str, cases: &[(String, Case)]) {
    println!(
        "{what:>12} {:>8} {:>8} {:>12} {:>6} {:>8} {:>6} {:>6} {:>9} {:>9} {:>6}",
        "CPU s", "wall s", "CPU us/row", "x", "GCP", "x", "cells", "smallest", "largest", "x"
    );
    let mut first = None;
    for (name, case) in cases {
        let sink = census::folder().join("sink-scaling");
        std::fs::remove_dir_all(&sink).ok();
        let job = job(case, &sink);
        let session = SessionOptions::default().with_memory_limit(ByteSize::gib(4).0 as usize);
        let session = match case.partitions {
            Some(partitions) => session.with_partitions(partitions),
            None => session,
        };
        let options = RunOptions::default().with_session(session);
        let options = match case.cells {
            Some(cells) => options.with_cell_rows(case.rows.div_ceil(cells) as usize),
            None => options,
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let ((manifest, _), cpu, wall) = timed(|| runtime.block_on(census::release(job, options)));
        let (per_row, gcp) = (cpu.as_secs_f64() * 1e6 / case.rows as f64, manifest.scores.gcp.unwrap_or(0.0));
        let (first_per_row, first_gcp) = *first.get_or_insert((per_row, gcp));
        let (cost, loss) = (per_row / first_per_row, gcp / first_gcp);
        let cells = manifest.cell_rows.expect("cells have rows");
        let (cpu, wall, count) = (cpu.as_secs_f64(), wall.as_secs_f64(), manifest.cells);
        let (smallest, largest) = (cells.smallest, cells.largest);
        let apart = largest as f64 / smallest as f64;
        println!(
            "{name:>12} {cpu:>8.1} {wall:>8.1} {per_row:>12.3} {cost:>6.2} {gcp:>8.5} {loss:>6.3} {count:>6} \
             {smallest:>9} {largest:>9} {apart:>6.2}"
        );
        std::fs::remove_dir_all(&sink).ok();
    }
}

fn job(case: &Case, sink: &Path) -> Job {
    let Some(skew) = case.skew else {
        return census::job(&census::data(case.rows), sink, case.k, &census::QUASI[..case.columns], "");
    };
    let data = census::folder().join(format!("{skew:?}-{}.parquet", case.rows));
    if !data.exists() {
        std::fs::create_dir_all(census::folder()).expect("the bench folder");
        skew::write(skew, case.rows as usize, 3, &data);
    }
    let (source, sink) = (data.to_string_lossy(), sink.to_string_lossy());
    let text = format!("version = 1\nsource.url = {source:?}\nsink.url = {sink:?}\n{}", skew::JOB);
    Job::parse_with(&text, Path::new("bench.toml"), &[("privacy.k", &case.k.to_string())]).expect("a job")
}
