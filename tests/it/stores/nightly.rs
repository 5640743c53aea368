//! A job that runs every night: three days, a run that is repeated, a rollback, a clean-up, and at every moment readers
//! who see the rows of one release, whole.

use std::fs;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use serde_json::Value;

use crate::support::{Desk, INDEPENDENT, batch, throng, write_parquet};
use crate::tables::{FIRST_ID, JOB, people};

/// Rows of a day: each begins with those of the day before.
const DAYS: [(&str, usize); 3] = [("2026-11-14", 60), ("2026-11-15", 80), ("2026-11-16", 110)];

/// The ids that a day's release holds.
fn ids(day: usize) -> Vec<i64> {
    (FIRST_ID..FIRST_ID + DAYS[day].1 as i64).collect()
}

/// The ids that DataFusion reads where `_latest` points to.
fn read_by_datafusion(sink: &str) -> Vec<i64> {
    let latest: Value = serde_json::from_slice(&fs::read(format!("{sink}/_latest")).unwrap()).unwrap();
    let folder = format!("{sink}/{}/", latest["data"].as_str().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let batches = runtime.block_on(async {
        let frame = SessionContext::new().read_parquet(folder, ParquetReadOptions::default()).await.unwrap();
        frame.select_columns(&["id"]).unwrap().collect().await.unwrap()
    });
    let mut ids: Vec<i64> =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().copied()).collect();
    ids.sort_unstable();
    ids
}

/// The ids that every other reader sees, by its name.
#[cfg(feature = "test-servers")]
fn read_by_others(sink: &str) -> Vec<(String, Vec<i64>)> {
    let reported: std::collections::BTreeMap<String, Vec<i64>> =
        serde_json::from_str(&super::servers::python("readers.py", &[sink])).unwrap();
    assert_eq!(reported.keys().collect::<Vec<_>>(), ["duckdb", "pyarrow"]);
    reported.into_iter().collect()
}

#[cfg(not(feature = "test-servers"))]
fn read_by_others(_sink: &str) -> Vec<(String, Vec<i64>)> {
    Vec::new()
}

/// Three nights on one folder.
struct Nights {
    desk: Desk,
}

impl Nights {
    fn new() -> Self {
        let desk = Desk::new();
        desk.write(
            "job.toml",
            &format!("version = 1\nsource.url = \"today.parquet\"\n{INDEPENDENT}\n{}", job_with_hierarchy()),
        );
        desk.write("town.csv", TOWNS);
        Self { desk }
    }

    /// The table as it is on a day. A day's table is written once: its age counts.
    fn dawn(&self, day: usize) {
        let table = self.desk.path(&format!("day-{day}.parquet"));
        if !table.exists() {
            write_parquet(&table, &batch(people(DAYS[day].1)));
        }
        let today = self.desk.path("today.parquet");
        let _ = fs::remove_file(&today);
        fs::hard_link(table, today).unwrap();
    }

    /// The run of a day; what it says.
    fn run(&self, day: usize) -> String {
        self.desk.run(&["--run-id", DAYS[day].0]).ok().err
    }

    /// Asserts that all readers see a day.
    fn readers_see(&self, day: usize) {
        let sink = self.desk.name("out");
        assert_eq!(read_by_datafusion(&sink), ids(day));
        for (reader, seen) in read_by_others(&sink) {
            assert_eq!(seen, ids(day), "{reader}");
        }
        throng(&["verify", &sink, "--quiet"]).ok();
    }
}

/// The towns, each in a county.
const TOWNS: &str = "Quuxham;North;*\nZyxford;North;*\nVexbury;North;*\nWyrmley;South;*\nIxworth;South;*\n\
                     Jynx End;South;*\n";

fn job_with_hierarchy() -> String {
    JOB.replace("town.role = \"quasi\"", "town = { role = \"quasi\", hierarchy = \"town.csv\" }")
}

#[test]
fn three_nights() {
    let nights = Nights::new();
    let sink = nights.desk.name("out");
    for day in 0..DAYS.len() {
        nights.dawn(day);
        nights.run(day);
        nights.readers_see(day);
    }

    // The scheduler repeats the second night on the table of that day: it is done, and readers stay with the third.
    nights.dawn(1);
    assert!(nights.run(1).contains("has been released before"));
    nights.readers_see(2);
    // On the table of another day it is not the same run.
    nights.dawn(2);
    nights.desk.run(&["--run-id", DAYS[1].0]).refused(7, &["another input"]);
    nights.readers_see(2);

    throng(&["rollback", &sink, DAYS[1].0]).ok();
    nights.readers_see(1);
    // Until somebody decides otherwise, repeated runs leave it so, and the next night moves on.
    assert!(nights.run(2).contains("has been released before"));
    nights.readers_see(1);

    let killed = nights.desk.path("out/data/run=2026-11-17.dead");
    fs::create_dir(&killed).unwrap();
    fs::write(killed.join("part-00000-000.parquet"), "half a file").unwrap();
    let found = throng(&["gc", &sink, "--older-than", "0", "--dry-run"]).ok();
    assert_eq!(found.out.trim(), "data/run=2026-11-17.dead/part-00000-000.parquet");
    nights.readers_see(1);
    throng(&["gc", &sink, "--older-than", "0"]).ok();
    assert_eq!(throng(&["gc", &sink, "--older-than", "0", "--dry-run"]).ok().out, "");
    nights.readers_see(1);

    throng(&["rollback", &sink, DAYS[2].0]).ok();
    nights.readers_see(2);
    let listed = throng(&["releases", &sink]).ok().out;
    for (day, _) in DAYS {
        assert!(listed.contains(day), "{listed}");
    }
}

#[test]
fn one_line_of_a_hierarchy_makes_another_run() {
    let nights = Nights::new();
    nights.dawn(0);
    nights.run(0);
    let named = nights.desk.run(&["--json"]).ok().out;
    let run = |text: &str| serde_json::from_str::<Value>(text).unwrap()["run"].clone();
    assert_eq!(run(&nights.desk.run(&["--json"]).ok().out), run(&named), "the same work has the same name");

    nights.desk.write("town.csv", &TOWNS.replace("Wyrmley;South", "Wyrmley;North"));
    nights.desk.run(&["--run-id", DAYS[0].0]).refused(7, &["another policy"]);
    assert_ne!(run(&nights.desk.run(&["--json"]).ok().out), run(&named));

    // A release of another version of Throng is not this run's either.
    nights.desk.write("town.csv", TOWNS);
    let manifest = nights.desk.path(&format!("out/_manifest/{}.json", DAYS[0].0));
    let text = fs::read_to_string(&manifest).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    fs::write(&manifest, text.replace(&version, "\"version\": \"0.0.9\"")).unwrap();
    nights.desk.run(&["--run-id", DAYS[0].0]).refused(7, &["released by Throng 0.0.9"]);
}
