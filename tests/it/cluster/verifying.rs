//! Releases are verified where they were made: by stages on the executors, whose verdicts the driver merges.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

use super::fleet::Fleet;
use crate::mutations::forge;
use crate::support::{Desk, Ran, read_parquet, released_files, texts, throng, write_parquet};

const ROWS: i32 = 600;

const JOB: &str = "privacy.k = 5
privacy.max-loss = 0.9
privacy.l-diversity = { column = \"ill\", l = 2 }
privacy.t-closeness = { column = \"ill\", t = 0.8 }
privacy.range-diversity = { column = \"pay\", p = 0.9 }
privacy.person = \"person\"
method.name = \"mondrian\"
[columns]
person.role = \"identifier\"
age.role = \"quasi\"
town = { role = \"quasi\", hierarchy.tree = [{ A = [\"Ash\", \"Alder\"] }, { B = [\"Birch\", \"Beech\"] }] }
ill = { role = \"sensitive\", hierarchy.tree = [{ cold = [\"flu\", \"croup\"] }, { other = [\"gout\", \"rash\"] }] }
pay.role = \"sensitive\"
";

fn table() -> Vec<(&'static str, ArrayRef)> {
    let words = |words: [&'static str; 4], every: i32| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| words[(row / every % 4) as usize])))
    };
    let numbers = |of: &dyn Fn(i32) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values((0..ROWS).map(of))) };
    vec![
        ("person", numbers(&|row| row)),
        ("age", numbers(&|row| row * 7 % 80)),
        ("town", words(["Ash", "Alder", "Birch", "Beech"], 5)),
        ("ill", words(["flu", "croup", "gout", "rash"], 1)),
        ("pay", numbers(&|row| row * 13 % 97 * 100)),
    ]
}

/// The jobs that a driver has sent off to be verified.
fn jobs(log: &str) -> BTreeSet<&str> {
    let sent = log.lines().filter(|line| line.contains("submitted to the cluster: verify"));
    sent.filter_map(|line| line.rsplit_once("job=")).map(|(_, job)| job.trim()).collect()
}

/// Whether executors have ended tasks of every one of some jobs.
fn worked(fleet: &Fleet, jobs: &BTreeSet<&str>) {
    let said: String = fleet.executors.iter().map(|executor| executor.process.said()).collect();
    for job in jobs {
        let done = |line: &&str| line.contains("task finished") && line.contains(job);
        assert!(said.lines().any(|line| done(&line)), "nobody has worked for {job}:\n{said}");
    }
}

#[test]
fn executors_verify_and_catch_faults() {
    let fleet = Fleet::start(2);
    let desk = Desk::with(table(), JOB);
    let mut run = fleet.run(&desk.name("job.toml"), &["--partitions", "3", "--cell-rows", "200"]);
    assert_eq!(run.end(), Some(0), "{}", run.said());
    let log = run.said();
    // Classes and their rules, what these compare with, the order, losses, people.
    assert!(jobs(&log).len() >= 5, "{log}");
    worked(&fleet, &jobs(&log));

    let address = fleet.address();
    let verify = || -> Ran { throng(&["verify", &desk.name("job.toml"), "-v", "--cluster", &address]) };
    let found = verify().ok();
    assert!(jobs(&found.err).len() >= 5, "{found:?}");
    worked(&fleet, &jobs(&found.err));

    // A class without variety, and the first row moved behind all others.
    let file = released_files(&desk.path("out")).remove(0);
    let good = read_parquet(&file);
    let (towns, mut ills) = (texts(&good, "town"), texts(&good, "ill"));
    let ages = crate::support::lines(&good, &["age".to_owned()]);
    let first = (ages[0].clone(), towns[0].clone());
    let class: Vec<usize> = (0..ills.len()).filter(|&row| (&ages[row], &towns[row]) == (&first.0, &first.1)).collect();
    class.iter().for_each(|&row| ills[row] = "gout".into());
    let mut columns = good.columns().to_vec();
    columns[good.schema().index_of("ill").unwrap()] = Arc::new(StringArray::from(ills));
    let bad = datafusion::arrow::array::RecordBatch::try_new(good.schema(), columns).unwrap();
    let rest = bad.slice(1, bad.num_rows() - 1);
    let bad = datafusion::arrow::compute::concat_batches(&bad.schema(), [&rest, &bad.slice(0, 1)]).unwrap();
    write_parquet(&file, &bad);
    forge(&desk, &file, |_| ());
    let found = verify();
    assert_eq!(found.code, Some(5), "{found:?}");
    for rule in ["l-diversity: 1 classes", "order: ", "truthful: "] {
        assert!(found.err.contains(rule), "{rule}: {found:?}");
    }
    assert!(jobs(&found.err).len() >= 5, "{found:?}");
    worked(&fleet, &jobs(&found.err));
}
