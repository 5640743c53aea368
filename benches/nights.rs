//! What a night of a series costs, against a run of the same job that publishes the whole table anew.
//!
//! `cargo bench --features cli --bench nights -- [ROWS] [MEMORY] [CHURN] [NIGHTS]`, for example `-- 10000000 4GB 0.01 2`. Two jobs
//! publish the same nights: one without `[series]`, which is the yardstick of its night, and one with it, whose first night is
//! a whole run with a ledger. Memory is the most that the process held during the run.

#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bytesize::ByteSize;
use support::{census, forget_peak, peak_memory, timed};
use throng::{Job, Manifest, RunOptions, SessionOptions};

/// What the arguments ask for.
struct Setup {
    rows: u64,
    memory: ByteSize,
    churn: String,
    nights: u64,
}

impl Setup {
    fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        let text = |at: usize, default: &str| arguments.get(at).cloned().unwrap_or_else(|| default.to_owned());
        Self {
            rows: text(0, "1000000").parse().expect("ROWS is a number"),
            memory: text(1, "4GB").parse().expect("MEMORY is a size"),
            churn: text(2, "0.01"),
            nights: text(3, "2").parse().expect("NIGHTS is a number"),
        }
    }

    /// The folder of the nights, generated once.
    fn source_folder(&self) -> PathBuf {
        let folder = census::folder().join(format!("nights-{}-{}-{}", self.rows, self.churn, self.nights));
        if !folder.exists() {
            std::fs::create_dir_all(census::folder()).expect("the bench folder");
            let rows = self.rows.to_string();
            let nights = self.nights.to_string();
            let made = Command::new(env!("CARGO_BIN_EXE_throng"))
                .args(["generate", "--rows", &rows, "--nights", &nights, "--churn", &self.churn])
                .arg(&folder)
                .status();
            assert!(made.expect("throng generate").success());
        }
        folder
    }

    fn options(&self, run: &str) -> RunOptions {
        let session = SessionOptions::default().with_memory_limit(self.memory.0 as usize);
        RunOptions::default().with_session(session).with_run_id(run)
    }
}

/// One run over a night, and its line.
fn run_night(setup: &Setup, name: &str, job: Job) -> (Box<Manifest>, Duration) {
    forget_peak();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ((manifest, _), cpu, wall) = timed(|| runtime.block_on(census::release(job, setup.options(name))));
    println!(
        "{name:<18} {:>8.1} {:>8.1} {:>9} {:>6.2} {:>8.5} {:>11} {:>5}",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
        ByteSize(peak_memory()).to_string(),
        peak_memory() as f64 / setup.memory.0 as f64,
        manifest.scores.gcp.unwrap_or(0.0),
        manifest.rows,
        manifest.files.len(),
    );
    (manifest, cpu)
}

fn main() {
    throng::internals::set_up();
    let setup = Setup::from_arguments();
    let source = setup.source_folder();
    let folder = census::folder();
    let [sink, state, key, alone] = ["series", "series-state", "series-key", "alone"].map(|name| folder.join(name));
    for place in [&sink, &state, &alone] {
        std::fs::remove_dir_all(place).ok();
    }
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").expect("a key");
    let series = format!(
        "series.subject = [\"person_id\"]\nseries.state = {:?}\nseries.key-file = {:?}\n",
        state.to_string_lossy(),
        key.to_string_lossy()
    );
    println!("{} people, {} leave and come a night, memory limit {}", setup.rows, setup.churn, setup.memory);
    println!(
        "{:<18} {:>8} {:>8} {:>9} {:>6} {:>8} {:>11} {:>5}",
        "", "CPU s", "wall s", "peak", "x", "GCP", "published", "files"
    );
    for night in 0..setup.nights {
        let data = source.join(format!("night-{night:03}.parquet"));
        let whole = census::job(&data, &alone, 10, &census::QUASI, "");
        let (_, yardstick) = run_night(&setup, &format!("whole-{night}"), whole);
        std::fs::remove_dir_all(&alone).ok();
        let nightly = census::job(&data, &sink, 10, &census::QUASI, &series);
        let (manifest, cpu) = run_night(&setup, &format!("night-{night}"), nightly);
        let counts = manifest.series.as_ref().map(|series| series.counts).unwrap_or_default();
        println!("    {:.2} of the CPU of a whole run; {counts:?}", cpu.div_duration_f64(yardstick));
    }
    for place in [&sink, &state] {
        std::fs::remove_dir_all(place).ok();
    }
}
