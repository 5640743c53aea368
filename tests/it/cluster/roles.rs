//! Scheduler and executors on their own: when they are ready, how they stop, and what drivers hear of them.

use std::fs;

use super::busy::{self, GROUP, ROWS, SHUFFLE, SMALL};
use super::fleet::{Fleet, get, wait};
use crate::support::{Desk, manifest};
use crate::tables::{JOB, assert_no_values, people};

#[test]
fn a_cluster_says_when_it_is_ready_and_stops_when_told() {
    let mut fleet = Fleet::start(1);
    let health = fleet.executors[0].health;
    assert_eq!(get(health, "/healthz").unwrap().0, 200);
    wait("the executor", || get(health, "/readyz").filter(|(status, _)| *status == 200));
    let executor = &mut fleet.executors[0].process;
    executor.signal("-TERM");
    assert_eq!(executor.end(), Some(0), "{}", executor.said());
    assert_eq!(fleet.work_files().len(), 0, "its folder has gone with it");
    fleet.scheduler.signal("-TERM");
    assert_eq!(fleet.scheduler.end(), Some(0), "{}", fleet.scheduler.said());
}

#[test]
fn an_executor_that_is_told_to_stop_leaves_its_work_to_others() {
    let mut fleet = Fleet::start(2);
    let desk = busy::desk();
    let mut run = fleet.run(&desk.name("job.toml"), &SMALL);
    wait("the grouping", || {
        assert!(run.runs(), "{}", run.said());
        fleet.progress(&run, "group").filter(|progress| progress.past(SHUFFLE) && !progress.past(GROUP))
    });
    let leaving = &mut fleet.executors[0].process;
    leaving.signal("-TERM");
    assert_eq!(leaving.end(), Some(0), "{}", leaving.said());
    // What it had shuffled is made again by the other one.
    assert_eq!(run.end(), Some(0), "{}", run.said());
    assert_eq!(desk.released().num_rows(), ROWS);
}

#[test]
fn a_run_that_is_told_to_stop_calls_its_job_off() {
    let fleet = Fleet::start(1);
    let desk = busy::desk();
    let mut run = fleet.run(&desk.name("job.toml"), &SMALL);
    wait("the grouping", || {
        assert!(run.runs(), "{}", run.said());
        fleet.progress(&run, "group").filter(|progress| progress.past(SHUFFLE) && !progress.past(GROUP))
    });
    run.signal("-INT");
    assert_eq!(run.end(), Some(130), "{}", run.said());
    assert!(run.said().contains("nothing was published"), "{}", run.said());
    assert!(desk.sink_files().is_empty(), "{:?}", desk.sink_files());
    // The executor takes the next job.
    let mut next = fleet.run(&desk.name("job.toml"), &["--set", "method.auto.effort=fast"]);
    assert_eq!(next.end(), Some(0), "{}", next.said());
}

#[test]
fn a_rule_that_cannot_be_met_has_its_own_exit_code_and_tells_no_value() {
    // With all lines that there are: plans are sent, and come with the smallest and the largest value of every column.
    let fleet = Fleet::with(1, &[("THRONG_LOG", "trace")]);
    let desk = Desk::with(
        people(500),
        &JOB.replace("privacy.k = 5", "privacy = { k = 5, l-diversity = { column = \"ill\", l = 4 } }"),
    );
    let mut run = fleet.run(&desk.name("job.toml"), &[]);
    assert_eq!(run.end(), Some(5), "{}", run.said());
    let said = run.said();
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert_no_values(error);
    for log in [fleet.scheduler.said(), fleet.executors[0].process.said()] {
        for value in crate::tables::TOWNS.iter().chain(&crate::tables::ILLS) {
            assert!(!log.contains(value), "{value} is in {log}");
        }
    }
    assert!(desk.sink_files().is_empty());
}

#[test]
fn without_a_scheduler_a_run_is_to_be_tried_again() {
    let desk = Desk::with(people(100), JOB);
    desk.run(&["--cluster", "df://127.0.0.1:1"]).refused(75, &["127.0.0.1:1", "throng scheduler"]);
    assert!(desk.sink_files().is_empty());
    let wrong = desk.run(&["--cluster", "http://127.0.0.1:1"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("df://scheduler:50050"), "{wrong:?}");
}

#[test]
fn without_executors_a_run_is_to_be_tried_again() {
    let fleet = Fleet::start(0);
    let desk = Desk::with(people(100), JOB);
    let mut run = fleet.run(&desk.name("job.toml"), &[]);
    assert_eq!(run.end(), Some(75), "{}", run.said());
    let said = run.said();
    assert!(said.contains("the cluster has no executor"), "{said}");
    assert!(fleet.scheduler.said().contains("no executor for too long"), "{}", fleet.scheduler.said());
    assert!(desk.sink_files().is_empty());
}

#[test]
fn a_release_of_a_cluster_is_known_to_one_machine() {
    let fleet = Fleet::start(1);
    let desk = Desk::with(people(2000), JOB);
    let mut run = fleet.run(&desk.name("job.toml"), &[]);
    assert_eq!(run.end(), Some(0), "{}", run.said());
    let first = manifest(&desk.path("out"));
    let again = desk.run(&[]).ok();
    assert!(again.err.contains("has been released before"), "the same identity: {again:?}");
    let mut again = fleet.run(&desk.name("job.toml"), &[]);
    assert_eq!(again.end(), Some(0), "{}", again.said());
    assert_eq!(manifest(&desk.path("out")), first);
    desk.throng("verify", &[]).ok();
    assert!(fs::read_dir(desk.path("out/data")).unwrap().count() == 1);
}
