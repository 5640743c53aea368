//! A series from the command line: what it says, what it refuses, and with which exit code.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array};
use serde_json::Value;

use crate::support::{Desk, Ran, batch, command, files, released, throng, write_parquet};
use crate::tables::{JOB, TOWNS, assert_no_values, people, with, words};

const SERIES: &str =
    "[series]\nsubject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 1.0\nreserve = 1.0\n";

/// A job on people whose number is not published.
fn desk(rows: usize) -> Desk {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    let rules = JOB.replace("id.role = \"kept\"", "id.role = \"identifier\"");
    desk.write("job.toml", &format!("version = 1\nsource.url = \"in.parquet\"\nsink.url = \"out\"\n{rules}{SERIES}"));
    write_parquet(&desk.path("in.parquet"), &batch(people(rows)));
    desk
}

fn night(desk: &Desk, run: &str, rows: usize) -> Ran {
    write_parquet(&desk.path("in.parquet"), &batch(people(rows)));
    desk.run(&["--run-id", run])
}

#[test]
fn nights_from_the_command_line() {
    let desk = desk(60);
    let monday = desk.run(&["--run-id", "monday"]).ok();
    assert!(monday.out.contains("series:   release 1: 60 new"), "{}", monday.out);
    assert!(!monday.out.contains("quasi-identifier"), "no table without a row: {}", monday.out);
    let tuesday = night(&desk, "tuesday", 62).ok();
    assert!(tuesday.out.contains("release 2: 0 new") && tuesday.out.contains("2 wait"), "{}", tuesday.out);
    night(&desk, "wednesday", 90).ok();
    desk.throng("verify", &[]).ok();
    throng(&["verify", &desk.name("out")]).ok();
    let series = throng(&["verify", &desk.name("out"), "--series"]).ok().out;
    assert!(series.contains("3 releases hold"), "{series}");
    assert!(desk.throng("verify", &["--series"]).ok().out.contains("every rule"));
    let listed = throng(&["releases", &desk.name("out"), "--json"]).ok().out;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.iter().map(|release| release["series"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    desk.throng("report", &["-o", &desk.name("page.html")]).ok();
    assert!(fs::read_to_string(desk.path("page.html")).unwrap().contains("Rows of the series"));
    // What earlier nights wrote is listed by later ones.
    assert_eq!(throng(&["gc", &desk.name("out"), "--older-than", "0"]).ok().out, "");
    throng(&["rollback", &desk.name("out"), "monday"]).ok();
    throng(&["verify", &desk.name("out")]).ok();
    let thursday = night(&desk, "thursday", 90).ok();
    assert!(thursday.out.contains("release 4: 0 new"), "{}", thursday.out);
    desk.throng("verify", &[]).ok();
}

/// Those who leave and those who come are published alike: the rows of both are throngs, also where what one has more than the
/// other is not.
#[test]
fn a_class_that_comes_in_the_place_of_another_is_another_class() {
    let desk = desk(0);
    for (run, first, rows) in [("monday", 0, 12), ("tuesday", 12, 14)] {
        let alike = people(first + rows);
        let alike = with(alike, "age", Arc::new(Int32Array::from(vec![1030; first + rows])));
        let alike = with(alike, "town", words(first + rows, &TOWNS[..1], 1));
        write_parquet(&desk.path("in.parquet"), &batch(alike).slice(first, rows));
        desk.run(&["--run-id", run]).ok();
    }
    let rows = released(&desk.path("out")).num_rows();
    assert_eq!(rows, 14, "everybody who was there on monday has left");
    assert!(throng(&["verify", &desk.name("out"), "--series"]).ok().out.contains("2 releases hold"));
    assert!(desk.throng("verify", &["--series"]).ok().out.contains("every rule"));
}

#[test]
fn the_page_shows_what_nights_reveal_together() {
    let desk = desk(60);
    let mut public = Vec::new();
    for (run, rows) in [("monday", 60), ("tuesday", 90), ("wednesday", 120)] {
        night(&desk, run, rows).ok();
        write_parquet(&desk.path(&format!("{run}.parquet")), &batch(people(rows)));
        public.extend(["--public".to_owned(), desk.name(&format!("{run}.parquet"))]);
    }
    let public: Vec<&str> = public.iter().map(String::as_str).collect();
    let output = desk.throng("attack", &[&["--series", "--json", "--subject", "id"], &public[..]].concat()).ok().out;
    let found: Value = serde_json::from_str(&output).unwrap();
    let nights = found["sensitive"]["ill"]["releases"].as_array().unwrap();
    assert_eq!(nights.len(), 3);
    assert!(nights.iter().all(|night| night["below_least"] == 0.0 && night["below_k"] == 0.0), "{output}");
    desk.write("attack.json", &output);
    desk.throng("report", &["--series", &desk.name("attack.json"), "-o", &desk.name("page.html")]).ok();
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    for words in [
        "Several releases together",
        "when 3 releases are compared",
        "href=\"#series\"",
        "Exposure of ill",
        "Nobody is left with less than a single release guarantees",
        "release 3",
        "30 new",
        "0 stale",
        "0 withheld",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

/// The ledger holds no value, and no subject in the clear.
#[test]
fn the_ledger_tells_nothing() {
    let desk = desk(60);
    desk.run(&[]).ok();
    let ledger = files(&desk.path("ledger"));
    assert!(ledger.len() >= 3, "{ledger:?}");
    for file in ledger {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert_no_values(&text);
    }
}

#[test]
fn forgotten_subjects_are_not_published_again() {
    let desk = desk(60);
    desk.run(&["--run-id", "monday"]).ok();
    let erased = people(80).into_iter().filter(|(name, _)| *name == "id").map(|(name, ids)| (name, ids.slice(55, 25)));
    write_parquet(&desk.path("erased.parquet"), &batch(erased.collect()));
    let floats = Float64Array::from_iter_values((55..80).map(f64::from));
    write_parquet(&desk.path("floats.parquet"), &batch(vec![("id", Arc::new(floats) as ArrayRef)]));
    desk.throng("forget", &["--subjects", &desk.name("floats.parquet")]).refused(4, &["`id`", "floating-point"]);
    let reported = desk.throng("forget", &["--subjects", &desk.name("erased.parquet"), "--json"]).ok().out;
    let reported: Value = serde_json::from_str(&reported).unwrap();
    assert_eq!((&reported["subjects"], &reported["published"]), (&Value::from(25), &Value::from(5)), "{reported}");
    assert_eq!(reported["releases"], serde_json::json!([["monday", 5]]));
    // What the manifest counts was so before anybody was forgotten.
    desk.throng("verify", &[]).ok();
    let tuesday = night(&desk, "tuesday", 80).ok();
    assert!(tuesday.out.contains("0 new") && tuesday.out.contains("25 forgotten"), "{}", tuesday.out);
    assert!(tuesday.out.contains("5 gone"), "{}", tuesday.out);
    desk.throng("verify", &[]).ok();
}

#[test]
fn what_does_not_fit_is_refused() {
    let desk = desk(60);
    for (set, words) in [
        ("series.state=out/ledger", "readers of the sink must not see the ledger"),
        ("series.key-file=none", "the key file `none` cannot be read"),
        ("privacy.max-loss=0.5", "set series.max-loss"),
        ("series.subjects=[\"id\"]", "did you mean `subject`?"),
    ] {
        desk.run(&["--set", set]).refused(3, &[words]);
        let checked = desk.throng("check", &["--set", set]);
        assert!(checked.code == Some(3) && checked.err.contains(words), "{checked:?}");
    }
    desk.run(&["--run-id", "monday"]).ok();
    let before = files(&desk.path("out"));
    fs::rename(desk.path("ledger"), desk.path("elsewhere")).unwrap();
    desk.run(&["--run-id", "tuesday"])
        .refused(7, &["the ledger in `ledger` does not fit the sink", "restore series.state"]);
    fs::rename(desk.path("elsewhere"), desk.path("ledger")).unwrap();
    desk.write("key", "fedcba9876543210fedcba9876543210");
    desk.run(&["--run-id", "tuesday"]).refused(7, &["the key of the series is not the one"]);
    assert_eq!(files(&desk.path("out")), before, "nothing is published, nothing stays staged");
    // A sink that holds another release is not a series.
    let alone = fs::read_to_string(desk.path("job.toml")).unwrap().replace(SERIES, "");
    desk.write("alone.toml", &alone);
    throng(&["run", &desk.name("alone.toml"), "--set", "sink.url=single"]).ok();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    desk.run(&["--set", "sink.url=single", "--set", "series.state=other"]).refused(7, &["not of a series"]);
    throng(&["run", &desk.name("alone.toml"), "--run-id", "tuesday"]).refused(7, &["[series]"]);
}

#[test]
fn the_example_is_a_job() {
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/nightly/nightly.toml");
    let arguments = ["check", job.to_str().unwrap(), "--set", "source.url=../data/census.parquet"];
    let ran = Ran::from(&command(&arguments).env("NIGHTLY_KEY", "0123456789abcdef0123456789abcdef").output().unwrap());
    assert!(ran.ok().out.contains("fine"));
}

#[test]
fn nights_are_generated() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("nights"), "--rows", "200", "--nights", "3", "--churn", "0.1"]).ok();
    let names: Vec<String> =
        files(&desk.path("nights")).iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["night-000.parquet", "night-001.parquet", "night-002.parquet"]);
    throng(&["generate", &desk.name("more"), "--nights", "3", "--churn", "1.5"]).refused(3, &["--churn must be"]);
}
