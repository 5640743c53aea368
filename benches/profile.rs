//! `throng profile` against its yardstick: two scans of the same columns by DataFusion as it comes, in the same process.
//! Two scans that share their work out as those of a profile do are shown beside it.
//!
//! `cargo bench --features cli --bench profile -- [ROWS]`. Data is generated once and kept under the system's temporary folder.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

mod support;

use std::process::Command;

use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use support::timed;
use throng::SessionOptions;
use throng::internals::ScannedFolder;

fn main() {
    throng::internals::set_up();
    let rows = std::env::args().skip(1).find(|argument| argument != "--bench").unwrap_or("1000000".into());
    let folder = std::env::temp_dir().join("throng-bench");
    let data = folder.join(format!("census-{rows}"));
    if !data.exists() {
        std::fs::create_dir_all(&folder).expect("the bench folder");
        let generate = ["generate", "--files", "4", "--rows", &rows];
        let made = Command::new(env!("CARGO_BIN_EXE_throng")).args(generate).arg(&data).status();
        assert!(made.is_ok_and(|status| status.success()), "the census can be generated");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (context, _spill) = SessionOptions::default().open().unwrap();
    let input = runtime.block_on(ScannedFolder::open(&context, &folder, data.to_str().unwrap())).unwrap();
    let plain = SessionContext::new();
    // Every row of every partition, decoded and dropped.
    let scan = |context: &SessionContext| {
        let plan = DataFrame::new(context.state(), input.plan.clone());
        runtime.block_on(async {
            let streams = plan.execute_stream_partitioned().await.unwrap();
            let tasks: Vec<_> = streams
                .into_iter()
                .map(|mut stream| {
                    tokio::spawn(async move {
                        let mut rows = 0;
                        while let Some(batch) = stream.next().await {
                            rows += batch.unwrap().num_rows();
                        }
                        rows
                    })
                })
                .collect();
            let mut rows = 0;
            for task in tasks {
                rows += task.await.unwrap();
            }
            rows
        })
    };
    scan(&plain);
    for _ in 0..5 {
        let (_, scan_cpu, scan_wall) = timed(|| (scan(&plain), scan(&plain)));
        let (_, shared_cpu, shared_wall) = timed(|| (scan(&context), scan(&context)));
        let (found, cpu, wall) = timed(|| runtime.block_on(input.profile_rows(&context)).unwrap());
        println!(
            "{} rows: two scans {:.2} s (CPU {:.2}), profile {:.2} s (CPU {:.2}): {:.2} of the time, {:.2} of the CPU \
             (scans that share their work: {:.2}, {:.2})",
            found,
            scan_wall.as_secs_f64(),
            scan_cpu.as_secs_f64(),
            wall.as_secs_f64(),
            cpu.as_secs_f64(),
            wall.as_secs_f64() / scan_wall.as_secs_f64(),
            cpu.as_secs_f64() / scan_cpu.as_secs_f64(),
            wall.as_secs_f64() / shared_wall.as_secs_f64(),
            cpu.as_secs_f64() / shared_cpu.as_secs_f64(),
        );
    }
}
