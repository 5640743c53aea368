//! Nights of a series on a cluster: the driver keeps the ledger and makes the classes, executors judge what readers will see,
//! and both publish and remember what one machine does.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fleet::{Fleet, Process};
use crate::support::{Desk, batch, multiset, read_parquet, released, throng, write_parquet};
use crate::tables::{self, JOB};

const SERIES: &str = "[series]\nsubject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 1.0\nreserve = 1.0\n\
                      retire-at = 0.3\ndissolve = true\n";

/// A job whose second night has newcomers, and whose third has people who have left.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    let job = JOB.replace("[columns]", "method.seed = 7\nprivacy.l-diversity = { column = \"ill\", l = 2 }\n[columns]");
    desk.write("job.toml", &format!("version = 1\nsource.url = \"in.parquet\"\nsink.url = \"out\"\n{job}{SERIES}"));
    desk
}

/// The newest version of a ledger, as text.
fn ledger(state: &Path) -> Vec<String> {
    let mut pointers: Vec<_> =
        fs::read_dir(state.join("pointer")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pointers.sort();
    let pointer: Value = serde_json::from_slice(&fs::read(pointers.last().unwrap()).unwrap()).unwrap();
    let version = state.join(pointer["folder"].as_str().unwrap());
    multiset(&read_parquet(&version.join("part-00000.parquet")))
}

fn succeeded(mut run: Process) -> String {
    assert_eq!(run.end(), Some(0), "{}", run.said());
    run.said()
}

#[test]
fn a_series_on_a_cluster_is_that_of_one_machine() {
    let (fleet, desk) = (Fleet::start(2), desk());
    let alone = |key: &str, folder: &str| ["--set".to_owned(), format!("{key}={}", desk.name(folder))];
    let alone = [alone("sink.url", "alone"), alone("series.state", "alone-ledger")].concat();
    let alone: Vec<&str> = alone.iter().map(String::as_str).collect();
    for (night, from, rows) in [("monday", 0, 200), ("tuesday", 0, 320), ("wednesday", 130, 250)] {
        write_parquet(&desk.path("in.parquet"), &batch(tables::people(from + rows)).slice(from, rows));
        let more = ["--run-id", night, "--cell-rows", "100"];
        let log = succeeded(fleet.run(&desk.name("job.toml"), &[&more[..], &["--partitions", "3"]].concat()));
        assert!(log.contains("submitted to the cluster: verify"), "{log}");
        desk.run(&[&more[..], &["--quiet"], &alone].concat()).ok();
        assert_eq!(multiset(&released(&desk.path("out"))), multiset(&released(&desk.path("alone"))), "{night}");
        assert_eq!(ledger(&desk.path("ledger")), ledger(&desk.path("alone-ledger")), "{night}");
    }
    let said: String = fleet.executors.iter().map(|executor| executor.process.said()).collect();
    assert!(said.contains("task finished"), "{said}");
    // What the ledger knows stays with the driver also when it is checked later.
    throng(&["verify", &desk.name("job.toml"), "--cluster", &fleet.address()]).ok();
    throng(&["verify", &desk.name("out"), "--series"]).ok();
    desk.throng("verify", &alone).ok();
}
