//! Runs that are stopped: politely or not, readers see a whole release, and nothing raw stays behind.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Desk, expire_leases, files, manifest, throng};
use crate::tables::{JOB, people};

/// Rows that take a run of these tests a second or more.
const ROWS: usize = 40_000;

/// Names in the spill folder.
fn spilling(desk: &Desk) -> BTreeSet<OsString> {
    fs::read_dir(desk.path("spill")).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Starts a run, sends it a signal a while after it has made its spill folder, and returns its exit code; none when the
/// signal ended it.
fn stopped(desk: &Desk, run: &str, signal: &str, after: Duration) -> Option<i32> {
    let before = spilling(desk);
    let mut child = Command::new(env!("CARGO_BIN_EXE_throng"))
        .args(["run", &desk.name("job.toml"), "--quiet", "--run-id", run, "--spill-dir", &desk.name("spill")])
        .args(["--set", "method.auto.effort=thorough"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while spilling(desk).is_subset(&before) && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(5));
    }
    sleep(after);
    Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    child.wait().unwrap().code()
}

#[test]
fn a_run_told_to_stop_cleans_up_and_publishes_nothing() {
    let desk = Desk::with(people(ROWS), JOB);
    let mut interrupted = 0;
    for (number, after) in [100, 300, 600].into_iter().enumerate() {
        let run = format!("try-{number}");
        // The run may have ended before the signal came; then it has published, and that is right too.
        match stopped(&desk, &run, "-TERM", Duration::from_millis(after)) {
            Some(130) => {
                interrupted += 1;
                assert!(!desk.path(&format!("out/_manifest/{run}.json")).exists());
                let staged = files(&desk.path("out")).into_iter().filter(|file| file.to_string_lossy().contains(&run));
                assert_eq!(staged.count(), 0);
            }
            Some(0) => assert_eq!(manifest(&desk.path("out"))["run"], run.as_str()),
            // The signal came before anybody listened.
            other => assert_eq!(other, None),
        }
    }
    assert!(interrupted > 0, "no run was caught at work");
}

/// Ten moments at random between the making of the spill folder and a little after the end.
#[test]
fn a_killed_run_leaves_the_last_release_and_the_next_one_cleans_up() {
    let desk = Desk::with(people(ROWS), JOB);
    let spill = desk.name("spill");
    desk.run(&["--quiet", "--run-id", "old", "--spill-dir", &spill]).ok();
    let started = Instant::now();
    stopped(&desk, "whole", "-0", Duration::ZERO);
    let whole = started.elapsed().as_millis() as u64;
    let mut killed = 0;
    let moments: Vec<u64> = (0..10).map(|_| fastrand::u64(0..whole * 11 / 10)).collect();
    for (number, &after) in moments.iter().enumerate() {
        let run = format!("try-{number}");
        let before = manifest(&desk.path("out"))["run"].clone();
        match stopped(&desk, &run, "-KILL", Duration::from_millis(after)) {
            None => {
                killed += 1;
                let seen = manifest(&desk.path("out"))["run"].clone();
                assert!(seen == before || seen == run.as_str(), "{seen}");
                // Of a run that was killed before its commit there is no manifest either.
                let written = desk.path(&format!("out/_manifest/{run}.json")).exists();
                assert!(written || seen == before, "{run} is the newest release without a manifest");
            }
            code => assert_eq!(code, Some(0)),
        }
        throng(&["verify", &desk.name("out"), "--quiet"]).ok();
    }
    eprintln!("{killed} of 10 runs of {whole} ms were killed, after {moments:?} ms");
    assert!(killed >= 5, "{killed} runs of {whole} ms were killed, after {moments:?} ms");
    desk.run(&["--quiet", "--run-id", "next", "--spill-dir", &spill]).ok();
    assert_eq!(manifest(&desk.path("out"))["run"], "next");
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0);
    // What the killed ones have staged is found and removed, and nothing else.
    expire_leases(&desk.path("out"));
    throng(&["gc", &desk.name("out"), "--older-than", "0"]).ok();
    throng(&["verify", &desk.name("out"), "--quiet"]).ok();
    let left = throng(&["gc", &desk.name("out"), "--older-than", "0", "--dry-run"]).ok();
    assert_eq!(left.out, "");
}
