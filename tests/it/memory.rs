//! Memory has a limit: beyond it a run spills and publishes the same rows, or says which setting to raise.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};

use crate::support::{Desk, Ran, manifest, multiset};
use crate::tables::{JOB, people};

/// A run within limits into a sink of its own, and how many bytes it has spilled.
fn run(desk: &Desk, sink: &str, more: &[&str]) -> (Ran, f64) {
    let (set, metrics) = (format!("sink.url={}", desk.name(sink)), desk.name("run.prom"));
    let ran = desk.run(&[&["--quiet", "--set", &set, "--metrics-file", &metrics], more].concat());
    let reported = std::fs::read_to_string(&metrics).unwrap();
    let spilled = reported.lines().find_map(|line| line.strip_prefix("throng_spilled_bytes{pipeline=\"job\"} "));
    (ran, spilled.map_or(0.0, |bytes| bytes.parse().unwrap()))
}

/// People with a text of so many bytes each, which is kept.
fn with_histories(rows: usize, bytes: usize) -> Desk {
    let mut columns = people(rows);
    let filler = "The long and winding history of one person. ".repeat(bytes / 44);
    let texts = StringArray::from_iter_values((0..rows).map(|row| format!("{row} {filler}")));
    columns.push(("history", Arc::new(texts) as ArrayRef));
    Desk::with(columns, &format!("{JOB}history.role = \"kept\""))
}

#[test]
fn a_run_within_a_limit_publishes_the_same_rows() {
    let desk = Desk::with(people(100_000), JOB);
    let cells = ["--cell-rows", "1024", "--batch-rows", "512"];
    let (ran, spilled) = run(&desk, "whole", &cells);
    ran.ok();
    assert_eq!(spilled, 0.0);
    for (partitions, limit) in [("1", "1GB"), ("3", "1GB")] {
        let sink = format!("limited{partitions}");
        let limits = ["--memory-limit", limit, "--partitions", partitions];
        run(&desk, &sink, &[&cells[..], &limits].concat()).0.ok();
        let rows = |sink: &str| multiset(&crate::support::released(&desk.path(sink)));
        assert!(rows("whole") == rows(&sink), "rows differ with {partitions} partitions");
    }
}

/// Ten times the limit goes through it, in cells that are small enough; one that is not is refused with the settings.
#[test]
fn ten_times_the_limit() {
    const ROWS: usize = 32_000;
    let desk = with_histories(ROWS, 10_000);
    let limit = ["--memory-limit", "32MB", "--batch-rows", "64", "--partitions", "1"];

    let (ran, _) = run(&desk, "refused", &[&limit[..], &["--cell-rows", "8000"]].concat());
    ran.refused(6, &["a cell needs", "--memory-limit", "--cell-rows"]);
    assert!(!desk.path("refused/_latest").exists(), "nothing was published");

    let (ran, spilled) = run(&desk, "out", &[&limit[..], &["--cell-rows", "250"]].concat());
    ran.ok();
    assert!(spilled > 3e8, "{spilled} bytes were spilled");
    assert_eq!(manifest(&desk.path("out"))["rows"], ROWS);
}
