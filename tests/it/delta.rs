//! Delta tables as source and sink. The tables are written and read here by hand, from what the protocol says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use serde_json::{Value, json};

use crate::support::{Desk, INDEPENDENT, batch, multiset, read_parquet, seeded, shell, throng, write_parquet};
use crate::tables::{JOB, people};

/// Writes a version of a Delta log.
fn log(table: &Path, version: u64, actions: &[Value]) {
    fs::create_dir_all(table.join("_delta_log")).unwrap();
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    fs::write(table.join(format!("_delta_log/{version:020}.json")), lines.join("\n")).unwrap();
}

/// Writes rows of [`people`] to a file of a table; its `add` action.
fn add(table: &Path, name: &str, rows: std::ops::Range<usize>) -> Value {
    fs::create_dir_all(table).unwrap();
    write_parquet(&table.join(name), &batch(people(rows.end)).slice(rows.start, rows.len()));
    let size = fs::metadata(table.join(name)).unwrap().len();
    json!({ "add": { "path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": true,
                     "stats": json!({ "numRecords": rows.len() }).to_string() } })
}

/// A table of two versions: 200 rows, then 100 of them exchanged for 150 others.
pub fn people_table(table: &Path) {
    let field = |name: &str, kind: &str| json!({ "name": name, "type": kind, "nullable": true, "metadata": {} });
    let fields = [field("id", "long"), field("age", "integer"), field("town", "string"), field("ill", "string")];
    let schema = json!({ "type": "struct", "fields": fields }).to_string();
    let metadata = json!({ "metaData": { "id": "3a1f2c66-0000-4000-8000-000000000001",
        "format": { "provider": "parquet", "options": {} }, "schemaString": schema, "partitionColumns": [],
        "configuration": {}, "createdTime": 0 } });
    let protocol = json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } });
    log(table, 0, &[protocol, metadata, add(table, "a.parquet", 0..100), add(table, "b.parquet", 100..200)]);
    let remove = json!({ "remove": { "path": "b.parquet", "deletionTimestamp": 0, "dataChange": true } });
    log(table, 1, &[remove, add(table, "c.parquet", 200..350)]);
}

fn job(desk: &Desk, source: &str, sink: &str, rest: &str) {
    desk.write("job.toml", &format!("version = 1\n{source}\n{sink}\n{}", seeded(rest)));
}

fn manifest(desk: &Desk) -> Value {
    serde_json::from_str(&desk.run(&["--json"]).ok().out).unwrap()
}

#[test]
fn a_version_of_a_delta_table_is_read() {
    let desk = Desk::new();
    people_table(&desk.path("table"));
    for (source, version, rows) in [
        ("source.url = \"table\"", 1, 250),
        ("source.url = \"delta://table\"", 1, 250),
        ("source = { url = \"table\", version = 0 }", 0, 200),
    ] {
        job(&desk, source, INDEPENDENT, JOB);
        desk.throng("check", &[]).ok();
        let found = manifest(&desk);
        assert_eq!((&found["input"][0]["version"], &found["rows_read"]), (&json!(version), &json!(rows)), "{source}");
        desk.throng("verify", &[]).ok();
    }
    // Another version is another run; what is committed to the table later does not matter to a fixed one.
    let table = desk.path("table");
    log(&table, 2, &[add(&table, "d.parquet", 350..400)]);
    assert!(desk.run(&[]).ok().err.contains("released before"));
    job(&desk, "source.url = \"table\"", INDEPENDENT, JOB);
    assert_eq!(manifest(&desk)["rows_read"], 300);
    job(&desk, "source = { url = \"table\", version = 9 }", "sink.url = \"out\"", JOB);
    desk.run(&[]).refused(4, &["no version 9"]);
    job(&desk, "source.url = \"delta://job.toml\"", "sink.url = \"out\"", JOB);
    desk.run(&[]).refused(4, &["there is no Delta table"]);
}

#[test]
fn a_delta_table_in_a_query() {
    let desk = Desk::new();
    people_table(&desk.path("table"));
    let source = "source.sql = \"SELECT * FROM people WHERE age > 1040\"\nsource.tables.people = \"table\"";
    job(&desk, source, "sink.url = \"out\"", JOB);
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
}

/// The files that a Delta log names, after its newest version.
fn active(table: &Path) -> Vec<PathBuf> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for version in versions(table) {
        for action in fs::read_to_string(version).unwrap().lines() {
            let action: Value = serde_json::from_str(action).unwrap();
            if let Some(path) = action["add"]["path"].as_str() {
                files.insert(path.to_owned(), table.join(path.replace("%25", "%")));
            }
            if let Some(path) = action["remove"]["path"].as_str() {
                files.remove(path).unwrap();
            }
        }
    }
    files.into_values().collect()
}

fn versions(table: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(table.join("_delta_log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}

fn rows(table: &Path) -> RecordBatch {
    let parts: Vec<RecordBatch> = active(table).iter().map(|path| read_parquet(path)).collect();
    concat_batches(&parts[0].schema(), &parts).unwrap()
}

const SINK: &str = "sink = { url = \"out\", format = \"delta\", releases = \"independent\" }";

#[test]
fn a_release_is_a_version() {
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &batch(people(300)));
    let files = Desk::with(people(300), JOB);
    files.run(&[]).ok();
    job(&desk, "source.url = \"in.parquet\"", SINK, JOB);
    desk.throng("check", &[]).ok();
    desk.run(&["--run-id", "one"]).ok();
    let out = desk.path("out");
    assert_eq!(versions(&out).len(), 1);
    assert_eq!(multiset(&rows(&out)), multiset(&files.released()));
    assert!(!out.join("_manifest").exists() && !out.join("_latest").exists(), "the log is all there is");
    desk.throng("verify", &[]).ok();
    throng(&["verify", &desk.name("out")]).ok();

    assert!(desk.run(&["--run-id", "one"]).ok().err.contains("released before"), "a repeated run does nothing");
    assert_eq!(versions(&out).len(), 1);
    desk.run(&["--run-id", "one", "--set", "privacy.k=7"]).refused(7, &["another policy"]);

    // The next release replaces the first in one version, also when its columns differ.
    desk.run(&["--run-id", "two", "--set", "columns.age.publish=bounds"]).ok();
    assert_eq!(versions(&out).len(), 2);
    assert_eq!(rows(&out).num_rows(), 300);
    assert!(rows(&out).column_by_name("age_min").is_some());

    let listed = throng(&["releases", &desk.name("out")]).ok().out;
    assert!(listed.contains("one") && listed.contains("two"), "{listed}");
    throng(&["rollback", &desk.name("out"), "one"]).refused(7, &["version 0", "RESTORE"]);
    throng(&["rollback", &desk.name("out"), "none"]).refused(4, &["no release of run `none`"]);
    throng(&["gc", &desk.name("out")]).refused(7, &["VACUUM"]);
    assert!(
        desk.run(&["--run-id", "one"]).ok().err.contains("released before"),
        "also when it is no longer the newest"
    );
}

#[test]
fn what_one_job_writes_another_reads() {
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &batch(people(300)));
    job(
        &desk,
        "source.url = \"in.parquet\"",
        SINK,
        &format!("{JOB}ill.role = \"kept\"\n[output]\npartition-by = [\"ill\"]\n")
            .replace("ill.role = \"sensitive\"\n", ""),
    );
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    assert_eq!(active(&desk.path("out")).len(), 3, "one file for each folder");
    let again = "version = 1\nsource.url = \"out\"\nsink.url = \"again\"\nprivacy.k = 3\ndefaults.role = \"kept\"\n\
                 columns.town.role = \"quasi\"\n";
    desk.write("again.toml", again);
    throng(&["run", &desk.name("again.toml")]).ok();
    let read = crate::support::released(&desk.path("again"));
    assert_eq!(read.num_rows(), 300);
    let ills = crate::support::texts(&read, "ill");
    assert!(crate::tables::ILLS.iter().all(|ill| ills.iter().filter(|other| other == ill).count() == 100));
}

#[test]
fn tables_of_others_are_left_alone() {
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &batch(people(100)));
    people_table(&desk.path("out"));
    job(&desk, "source.url = \"in.parquet\"", SINK, JOB);
    let before = crate::support::files(&desk.path("out"));
    desk.run(&[]).refused(7, &["out"]);
    job(&desk, "source.url = \"in.parquet\"", "sink.url = \"out\"", JOB);
    desk.run(&[]).refused(7, &["not a release"]);
    assert_eq!(crate::support::files(&desk.path("out")), before);
    let desk = Desk::with(people(100), JOB);
    desk.run(&[]).ok();
    job(&desk, "source.url = \"in.parquet\"", SINK, JOB);
    desk.run(&["--run-id", "x"]).refused(7, &["not a release"]);
}

#[test]
fn runs_that_race_leave_one_release() {
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &batch(people(300)));
    job(&desk, "source.url = \"in.parquet\"", SINK, JOB);
    let race = |ids: [&str; 2]| {
        let [one, two] = ids.map(|id| format!("$THRONG run job.toml --run-id {id}"));
        shell(&desk.path("."), &format!("{one} & first=$!; {two}; second=$?; wait $first && exit $second")).ok();
    };
    let out = desk.path("out");
    race(["same", "same"]);
    assert_eq!(versions(&out).len(), 1, "one of them has made the release");
    assert_eq!(rows(&out).num_rows(), 300);
    race(["this", "that"]);
    assert_eq!(versions(&out).len(), 3, "both have");
    assert_eq!(rows(&out).num_rows(), 300, "readers see one release");
    throng(&["verify", &desk.name("out")]).ok();
}
