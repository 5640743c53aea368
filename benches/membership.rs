//! Hiding who is in the data: `mpalm` over a public table and a source that is a part of it, and the attack on what it
//! publishes, against the yardstick: strict Mondrian of the public table alone, in the same process.
//!
//! `cargo bench --features cli --bench membership -- [PUBLIC] [SOURCE] [MEMORY]`, for example `-- 10000000 1000000 2GB`. Data is generated
//! once and kept under the system's temporary folder.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use datafusion::prelude::ParquetReadOptions;
use support::{census, peak_memory, timed};
use throng::{Run, RunOptions, SessionOptions};

fn main() {
    throng::internals::set_up();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(default, |rows| rows.parse().expect("a number"));
    let (people, members) = (number(0, 1_000_000), number(1, 100_000));
    let memory: ByteSize = arguments.get(2).map_or(ByteSize::gib(2), |size| size.parse().expect("MEMORY is a size"));
    let session = SessionOptions::default().with_memory_limit(memory.0 as usize);
    let options = || RunOptions::default().with_session(session.clone());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let public = census::data(people);
    let source = runtime.block_on(part(&public, people, members));
    let sink = |name: &str| {
        let sink = census::folder().join(format!("sink-{name}"));
        std::fs::remove_dir_all(&sink).ok();
        sink
    };

    println!(
        "P = {people}, T = {members}, memory limit {memory}, {} cores",
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    println!("{:<28} {:>8} {:>8} {:>7} {:>7} {:>9}", "", "CPU s", "wall s", "x CPU", "x wall", "peak");
    let mondrian = sink("mondrian");
    let more = "method.name = \"mondrian\"\n";
    let (ran, cpu, wall) =
        timed(|| runtime.block_on(census::run(options(), &public, &mondrian, 10, &census::QUASI, more)));
    let yardstick = (cpu, wall);
    line("mondrian on P", yardstick, yardstick, Some(&ran));
    std::fs::remove_dir_all(&mondrian).ok();

    let mpalm = sink("mpalm");
    // The share of members over all is in the middle.
    let share = members as f64 / people as f64;
    let more = format!(
        "method.name = \"mpalm\"\nprivacy.presence = {{ public = {:?}, min = {}, max = {} }}\n",
        public.to_string_lossy(),
        share / 10.0,
        share * 5.0
    );
    let (ran, cpu, wall) =
        timed(|| runtime.block_on(census::run(options(), &source, &mpalm, 10, &census::QUASI, &more)));
    line("mpalm on P and T", (cpu, wall), yardstick, Some(&ran));

    let job = census::job(&source, &mpalm, 10, &census::QUASI, &more);
    let attacker = Run::new(job, Path::new("."), options()).expect("a run");
    let (found, cpu, wall) =
        timed(|| runtime.block_on(throng::internals::OpenedJob::attack_newest(&attacker)).expect("an attack"));
    line("attack on the release", (cpu, wall), yardstick, None);
    println!("    {} rows in {} classes", found.0, found.1);
    std::fs::remove_dir_all(&mpalm).ok();
}

fn line(
    name: &str,
    (cpu, wall): (Duration, Duration),
    yardstick: (Duration, Duration),
    ran: Option<&census::Released>,
) {
    println!(
        "{name:<28} {:>8.1} {:>8.1} {:>7.2} {:>7.2} {:>9}",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
        cpu.as_secs_f64() / yardstick.0.as_secs_f64(),
        wall.as_secs_f64() / yardstick.1.as_secs_f64(),
        ByteSize(peak_memory()).to_string(),
    );
    if let Some((manifest, times)) = ran {
        let laps: Vec<String> =
            times.iter().map(|(phase, time)| format!("{phase:?} {:.1}", time.as_secs_f64())).collect();
        println!("    {} cells, {} classes; {}", manifest.cells, manifest.verification.classes.count, laps.join(", "));
    }
}

/// So many people of the public table, spread evenly over it, written once.
async fn part(public: &Path, people: u64, members: u64) -> PathBuf {
    let part = census::folder().join(format!("census-{people}-part-{members}"));
    if !part.exists() {
        let (context, _spill) = SessionOptions::default().open().expect("a session");
        let options = ParquetReadOptions::default();
        context.register_parquet("census", public.to_string_lossy(), options).await.expect("the census");
        // Rows are independent of their numbers, so any numbers are a random draw.
        let sql = format!(
            "COPY (SELECT * FROM census WHERE person_id * {members} % {people} < {members}) TO '{}/' STORED AS PARQUET \
             OPTIONS (compression 'zstd(1)')",
            part.display()
        );
        context.sql(&sql).await.expect("a plan").collect().await.expect("a part of the census");
    }
    part
}
