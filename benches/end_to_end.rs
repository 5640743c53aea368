//! A whole run, Parquet to verified Parquet, against the yardstick: a sorted copy of the same file by the same
//! DataFusion with the same limits, in the same process.
//!
//! `cargo bench --features cli --bench end_to_end -- [ROWS] [MEMORY] [METHOD...]`, for example `-- 10000000 4GB balanced fast
//! mondrian`. Every round begins with a yardstick of its own; the last lines are the medians of all rounds. Data is
//! generated once and kept under the system's temporary folder.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

mod support;

use std::path::Path;
use std::time::Duration;

use bytesize::ByteSize;
use datafusion::prelude::ParquetReadOptions;
use support::{census, peak_memory, timed};
use throng::{RunOptions, SessionOptions};

/// How often everything is measured.
const ROUNDS: usize = 3;

fn main() {
    throng::internals::set_up();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let rows: u64 = arguments.first().map_or(1_000_000, |rows| rows.parse().expect("ROWS is a number"));
    let memory: ByteSize = arguments.get(1).map_or(ByteSize::gib(4), |size| size.parse().expect("MEMORY is a size"));
    let mut methods: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
    if methods.is_empty() {
        methods = vec!["balanced", "fast", "mondrian"];
    }
    let folder = census::folder();
    let data = census::data(rows);
    let session = SessionOptions::default().with_memory_limit(memory.0 as usize);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");

    println!(
        "{rows} rows, memory limit {memory}, {} cores",
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    println!("{:<22} {:>8} {:>8} {:>7} {:>7} {:>9} {:>8}", "", "CPU s", "wall s", "x CPU", "x wall", "peak", "GCP");
    let mut ratios: Vec<Vec<(f64, f64)>> = vec![Vec::new(); methods.len()];
    for _ in 0..ROUNDS {
        let copy = folder.join("copy");
        let ((), cpu, wall) = timed(|| runtime.block_on(sorted_copy(&session, &data, &copy)));
        let yardstick = (cpu, wall);
        line("sorted copy", cpu, wall, yardstick, None);
        std::fs::remove_dir_all(&copy).ok();
        for (method, ratios) in methods.iter().zip(&mut ratios) {
            let sink = folder.join(format!("sink-{method}"));
            std::fs::remove_dir_all(&sink).ok();
            let (gcp, cpu, wall) = timed(|| runtime.block_on(anonymise(&session, &data, &sink, method)));
            line(method, cpu, wall, yardstick, gcp);
            ratios.push((cpu.div_duration_f64(yardstick.0), wall.div_duration_f64(yardstick.1)));
            std::fs::remove_dir_all(&sink).ok();
        }
    }
    println!("medians of {ROUNDS} rounds");
    for (method, ratios) in methods.iter().zip(ratios) {
        let median = |of: fn(&(f64, f64)) -> f64| {
            let mut sorted: Vec<f64> = ratios.iter().map(of).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted[ROUNDS / 2]
        };
        println!("{method:<22} {:>25.2} {:>7.2}", median(|ratio| ratio.0), median(|ratio| ratio.1));
    }
}

fn line(name: &str, cpu: Duration, wall: Duration, yardstick: (Duration, Duration), gcp: Option<f64>) {
    println!(
        "{name:<22} {:>8.1} {:>8.1} {:>7.2} {:>7.2} {:>9} {:>8}",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
        cpu.div_duration_f64(yardstick.0),
        wall.div_duration_f64(yardstick.1),
        ByteSize(peak_memory()).to_string(),
        gcp.map_or(String::new(), |gcp| format!("{gcp:.5}")),
    );
}

async fn sorted_copy(session: &SessionOptions, data: &Path, copy: &Path) {
    let (context, _spill) = session.open().expect("a session");
    context
        .register_parquet("census", data.to_string_lossy(), ParquetReadOptions::default())
        .await
        .expect("the census");
    let sql = format!(
        "COPY (SELECT * FROM census ORDER BY age, sex, region, postcode, education, occupation, marital_status, \
         arrival) TO '{}/' STORED AS PARQUET OPTIONS (compression 'zstd(1)')",
        copy.display()
    );
    context.sql(&sql).await.expect("a plan").collect().await.expect("a sorted copy");
}

async fn anonymise(session: &SessionOptions, data: &Path, sink: &Path, method: &str) -> Option<f64> {
    let method = match method {
        "fast" | "balanced" | "thorough" | "best" => format!("method.auto.effort = \"{method}\"\n"),
        name => format!("method.name = \"{name}\"\n"),
    };
    let options = RunOptions::default().with_session(session.clone());
    let (manifest, times) = census::run(options, data, sink, 10, &census::QUASI, &method).await;
    let laps: Vec<String> = times.iter().map(|(phase, time)| format!("{phase:?} {:.1}", time.as_secs_f64())).collect();
    println!("    {} cells; {}", manifest.cells, laps.join(", "));
    manifest.scores.gcp
}
