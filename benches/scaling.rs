//! How the cost of a run grows: over rows, k, columns and partitions.
//!
//! `cargo bench --bench scaling -- [ROWS...]`, for example `-- 1000000 10000000`; k, columns and partitions are varied on
//! the first of them. Every line shows CPU and wall time, and the CPU time of a row against that of the first line of its
//! table.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench"
)]

mod support;

use bytesize::ByteSize;
use support::{census, timed};
use throng::release::SessionOptions;

/// What a line of a table varies.
#[derive(Clone, Copy)]
struct Case {
    rows: u64,
    k: u32,
    columns: usize,
    partitions: Option<usize>,
}

fn main() {
    throng::cli::allocator::set_up();
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut rows: Vec<u64> = arguments.map(|rows| rows.parse().expect("ROWS are numbers")).collect();
    if rows.is_empty() {
        rows = vec![1_000_000];
    }
    let usual = Case { rows: rows[0], k: 10, columns: census::QUASI.len(), partitions: None };
    table("rows", &rows.iter().map(|&rows| (rows.to_string(), Case { rows, ..usual })).collect::<Vec<_>>());
    table("k", &[2, 5, 10, 50, 100].map(|k| (k.to_string(), Case { k, ..usual })));
    table("columns", &[2, 4, 6, 8].map(|columns| (columns.to_string(), Case { columns, ..usual })));
    table("partitions", &[1, 2, 4, 8].map(|n| (n.to_string(), Case { partitions: Some(n), ..usual })));
}

fn table(what: &str, cases: &[(String, Case)]) {
    println!("{what:>12} {:>8} {:>8} {:>12} {:>6} {:>8}", "CPU s", "wall s", "CPU us/row", "x", "GCP");
    let mut first = None;
    for (name, case) in cases {
        let data = census::data(case.rows);
        let sink = census::folder().join("sink-scaling");
        std::fs::remove_dir_all(&sink).ok();
        let session = SessionOptions {
            memory_limit: Some(ByteSize::gib(4).0 as usize),
            partitions: case.partitions,
            ..SessionOptions::default()
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let quasi = &census::QUASI[..case.columns];
        let ((manifest, _), cpu, wall) =
            timed(|| runtime.block_on(census::run(&session, &data, &sink, case.k, quasi, "")));
        let per_row = cpu.as_secs_f64() * 1e6 / case.rows as f64;
        let ratio = per_row / *first.get_or_insert(per_row);
        let gcp = manifest.scores.gcp.map_or(String::new(), |gcp| format!("{gcp:.5}"));
        let (cpu, wall) = (cpu.as_secs_f64(), wall.as_secs_f64());
        println!("{name:>12} {cpu:>8.1} {wall:>8.1} {per_row:>12.3} {ratio:>6.2} {gcp:>8}");
        std::fs::remove_dir_all(&sink).ok();
    }
}
