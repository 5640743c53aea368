//! Memory has a limit: beyond it a run spills and publishes the same rows, or says which setting to raise.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};

use crate::support::{Desk, Ran, manifest, multiset};
use crate::tables::{JOB, people};

/// A run within limits into a sink of its own, and how many bytes it has spilled.
fn run(desk: &Desk, sink: &str, more: &[&str]) -> (Ran, f64) {
    let (set, metrics) = (format!("sink.url={}", desk.name(sink)), desk.name("run.prom"));
    let ran = desk.run(&[&["--quiet", "--set", &set, "--metrics-file", &metrics], more].concat());
    let told = std::fs::read_to_string(&metrics).unwrap();
    let spilled = told.lines().find_map(|line| line.strip_prefix("throng_spilled_bytes{pipeline=\"job\"} "));
    (ran, spilled.map_or(0.0, |bytes| bytes.parse().unwrap()))
}

#[test]
fn a_run_that_spills_publishes_the_same_rows() {
    let desk = Desk::with(people(100_000), JOB);
    let cells = ["--cell-rows", "4096"];
    let (ran, spilled) = run(&desk, "whole", &cells);
    ran.ok();
    assert_eq!(spilled, 0.0);
    for partitions in ["1", "3"] {
        let sink = format!("spilled{partitions}");
        let limits = ["--memory-limit", "20MB", "--partitions", partitions];
        let (ran, spilled) = run(&desk, &sink, &[&cells[..], &limits].concat());
        ran.ok();
        assert!(spilled > 0.0, "the test is about a run that spills");
        let rows = |sink: &str| multiset(&crate::support::released(&desk.path(sink)));
        assert!(rows("whole") == rows(&sink), "rows differ with {partitions} partitions");
    }
}

/// Rows, and bytes of a text that every one of them keeps: 240 MB in all.
const ROWS: usize = 24_000;
const TEXT: usize = 10_000;

/// Ten times the limit goes through it, in cells that are small enough; one that is not is refused with the settings.
#[test]
fn ten_times_the_limit() {
    let mut columns = people(ROWS);
    let filler = "The long and winding history of one person. ".repeat(TEXT / 44);
    let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("{row} {filler}")));
    columns.push(("history", Arc::new(texts) as ArrayRef));
    let desk = Desk::with(columns, &format!("{JOB}history.role = \"kept\""));
    let limit = ["--memory-limit", "24MB", "--batch-rows", "64"];

    let (ran, _) = run(&desk, "refused", &[&limit[..], &["--cell-rows", "8000"]].concat());
    ran.refused(6, &["a cell needs", "--memory-limit", "--cell-rows"]);
    assert!(!desk.path("refused/_latest").exists(), "nothing was published");

    let (ran, spilled) = run(&desk, "out", &[&limit[..], &["--cell-rows", "250"]].concat());
    ran.ok();
    assert!(spilled > 2e8, "{spilled} bytes were spilled");
    assert_eq!(manifest(&desk.path("out"))["rows"], ROWS);
}
