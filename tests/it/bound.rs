//! `throng bound`: a loss that no release goes below, beside what the job loses.

use std::fs;

use serde_json::Value;

use crate::support::{Desk, manifest, throng};
use crate::tables::{JOB, people};

#[test]
fn a_bound_is_below_what_every_method_loses() {
    let desk = Desk::with(people(300), JOB);
    for method in ["auto", "mondrian"] {
        let set = format!("method.name={method}");
        let said = desk.throng("bound", &["--k", "5,20", "--rounds", "3", "--json", "--set", &set]).ok();
        let found: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        assert_eq!(found.len(), 2);
        for bound in &found {
            let number = |name: &str| bound[name].as_f64().unwrap();
            assert_eq!(bound["rows"], 300);
            assert!(number("gcp") > 0.0 && number("gcp") <= number("lost"), "{bound}");
            assert!((number("times") - number("lost") / number("gcp")).abs() < 0.01, "{bound}");
        }
        // Larger classes cannot lose less.
        assert!(found[0]["gcp"].as_f64() < found[1]["gcp"].as_f64(), "{found:?}");
    }
}

#[test]
fn an_owner_who_asks_learns_how_near_a_release_comes_to_the_best() {
    let desk = Desk::with(people(300), JOB);
    let ran = desk.run(&["--bound"]).ok();
    let line = ran.out.lines().find(|line| line.starts_with("bound:")).expect("a line about the bound");
    assert!(line.contains("no release of these 300 rows in classes of 5 or more loses less than 0."), "{line}");
    assert!(line.contains("times the best possible"), "{line}");
    // What every row of the source counts for does not leave with the release.
    assert!(manifest(&desk.path("out")).get("bound").is_none());
    // The run is done, and can still be asked about; without being asked, nothing is reported.
    let again: Value = serde_json::from_str(&desk.run(&["--bound", "--json"]).ok().out).unwrap();
    let (bound, gcp) = (again["bound"]["gcp"].as_f64().unwrap(), again["scores"]["gcp"].as_f64().unwrap());
    assert!(bound > 0.0 && bound <= gcp, "{bound} {gcp}");
    let unasked: Value = serde_json::from_str(&desk.run(&["--json"]).ok().out).unwrap();
    assert!(unasked.get("bound").is_none());

    let bounds = desk.throng("bound", &["--k", "5,20", "--rounds", "3", "--json"]).ok();
    desk.write("bound.json", &bounds.out);
    let (job, file, page) = (desk.name("job.toml"), desk.name("bound.json"), desk.name("page.html"));
    throng(&["report", &job, "--bound", &file, "-o", &page]).ok();
    let shown = fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(shown.contains("id=\"bound\"") && shown.contains("times the best possible"));
    let plain = desk.name("plain.html");
    throng(&["report", &job, "-o", &plain]).ok();
    assert!(!fs::read_to_string(desk.path("plain.html")).unwrap().contains("id=\"bound\""));
    // A bound for another k says nothing about this release.
    let other = desk.throng("bound", &["--k", "20", "--rounds", "1", "--json"]).ok();
    desk.write("other.json", &other.out);
    let other = desk.name("other.json");
    throng(&["report", &job, "--bound", &other, "-o", &page]).refused(4, &["none of the bounds is for k = 5"]);
}
