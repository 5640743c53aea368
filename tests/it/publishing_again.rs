//! Publishing the same people again: rejected, unless the job says that releases are independent; and then everybody is warned.

use std::fs;

use serde_json::Value;

use crate::support::{Desk, batch, files, manifest, multiset, shell, throng, write_parquet};
use crate::tables::{JOB, people};

/// A job on 60 people with a sink that says what `sink` does.
fn desk(sink: &str) -> Desk {
    let desk = Desk::new();
    desk.write(
        "job.toml",
        &format!("version = 1\nsource.url = \"in.parquet\"\nsink = {{ url = \"out\"{sink} }}\n{JOB}"),
    );
    write_parquet(&desk.path("in.parquet"), &batch(people(60)));
    desk
}

const REASON: [&str; 5] =
    ["holds a release of another run already", "compares releases", "[series]", "releases = \"independent\"", "[sink]"];

#[test]
fn a_second_release_is_refused_with_the_reason_and_the_ways_on() {
    let desk = desk("");
    desk.run(&["--run-id", "monday"]).ok();
    assert!(manifest(&desk.path("out")).get("earlier_releases").is_none(), "there is none before the only one");
    let (published, before) = (multiset(&desk.released()), files(&desk.path("out")));
    // The same table again under another name, another table, another policy.
    desk.run(&["--run-id", "tuesday"]).refused(7, &REASON);
    desk.run(&["--set", "privacy.k=6"]).refused(7, &REASON);
    write_parquet(&desk.path("in.parquet"), &batch(people(61)));
    desk.run(&[]).refused(7, &REASON);
    assert_eq!(files(&desk.path("out")), before, "nothing is published, nothing stays staged");
    assert_eq!(multiset(&desk.released()), published);
    throng(&["verify", &desk.name("out")]).ok();
    // Elsewhere it is the first.
    desk.run(&["--run-id", "tuesday", "--set", "sink.url=elsewhere"]).ok();
}

#[test]
fn a_run_that_is_repeated_is_done_before() {
    let desk = desk("");
    for run in [&["--run-id", "monday"][..], &[]] {
        let sink = format!("sink.url=out{}", run.len());
        let run = [run, &["--set", &sink]].concat();
        desk.run(&run).ok();
        assert!(desk.run(&run).ok().err.contains("has been released before"));
    }
    desk.run(&["--run-id", "monday", "--set", "sink.url=out2", "--set", "privacy.k=6"]).refused(7, &["another policy"]);
}

#[test]
fn a_release_that_was_never_finished_is_none() {
    let desk = desk("");
    fs::create_dir_all(desk.path("out/data/run=monday.dead")).unwrap();
    fs::write(desk.path("out/data/run=monday.dead/part-00000-000.parquet"), "half a file").unwrap();
    desk.run(&["--run-id", "tuesday"]).ok();
    assert_eq!(desk.released().num_rows(), 60);
}

#[test]
fn independent_releases_say_how_many_are_before_them() {
    let desk = desk(", releases = \"independent\"");
    for (earlier, day) in ["monday", "tuesday", "wednesday"].iter().enumerate() {
        let ran = desk.run(&["--run-id", day]).ok();
        let manifest = manifest(&desk.path("out"));
        assert_eq!((&manifest["earlier_releases"], &manifest["run"]), (&Value::from(earlier), &Value::from(*day)));
        desk.throng("report", &["-o", &desk.name("page.html")]).ok();
        let page = fs::read_to_string(desk.path("page.html")).unwrap();
        assert!(page.contains(&format!("<td>{earlier}, independent of this one</td>")), "{page}");
        let warnings = manifest["warnings"].to_string();
        for (text, reported) in
            [(&ran.out, "independent of"), (&warnings, "not for somebody"), (&page, "not for somebody")]
        {
            assert_eq!(text.contains(reported), earlier > 0, "{earlier}: {text}");
        }
        let released = match earlier {
            0 => continue,
            1 => "1 earlier release in the sink",
            _ => "2 earlier releases in the sink",
        };
        assert!(ran.out.contains(released), "{}", ran.out);
    }
    desk.run(&["--run-id", "monday", "--json"]).ok();
    // Whoever takes the word back publishes no more.
    desk.write(
        "job.toml",
        &fs::read_to_string(desk.path("job.toml")).unwrap().replace(", releases = \"independent\"", ""),
    );
    desk.run(&["--run-id", "thursday"]).refused(7, &["holds 3 releases of another run already"]);
    desk.run(&["--set", "sink.releases=dependent"]).refused(3, &["dependent", "independent"]);
}

/// Two runs that both find the sink empty: one release at most.
#[test]
fn runs_that_race_for_an_empty_sink_leave_one_release_at_most() {
    for sink in [
        "",
        #[cfg(feature = "delta")]
        ", format = \"delta\"",
    ] {
        let desk = desk(sink);
        let [one, two] = ["one", "two"].map(|id| format!("$THRONG run job.toml --quiet --run-id {id}"));
        let ran = shell(&desk.path("."), &format!("{one} & first=$!; {two}; second=$?; wait $first; echo $? $second"));
        let codes: Vec<&str> = ran.out.trim().split(' ').collect();
        assert!(codes.iter().all(|code| ["0", "7", "75"].contains(code)), "{ran:?}");
        let won = codes.iter().filter(|code| **code == "0").count();
        assert!(won <= 1, "{ran:?}");
        if won == 1 {
            let listed = throng(&["releases", &desk.name("out"), "--json"]).ok().out;
            let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
            assert_eq!(listed.len(), 1, "{listed:?}");
        }
    }
}

#[cfg(feature = "delta")]
#[test]
fn a_delta_table_likewise() {
    let desk = desk(", format = \"delta\"");
    desk.run(&["--run-id", "monday"]).ok();
    assert!(desk.run(&["--run-id", "monday"]).ok().err.contains("has been released before"));
    let before = files(&desk.path("out"));
    desk.run(&["--run-id", "tuesday"]).refused(7, &REASON);
    assert_eq!(files(&desk.path("out")), before);
    let reported = desk.run(&["--run-id", "tuesday", "--json", "--set", "sink.releases=independent"]).ok().out;
    assert_eq!(serde_json::from_str::<Value>(&reported).unwrap()["earlier_releases"], 1);
    assert!(!throng(&["releases", &desk.name("out"), "--json"]).ok().out.is_empty());
}
