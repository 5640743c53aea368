//! The experiments of the works: every job can run, the small ones do, and what the page claims of UPC and `auto` on Adult is
//! so.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Desk, throng};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/experiments")
}

fn jobs() -> Vec<String> {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut jobs: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    jobs.sort();
    jobs
}

/// The generated tables with a few rows each.
fn tables() -> Desk {
    let desk = Desk::new();
    let sql = std::fs::read_to_string(folder().join("data.sql")).unwrap();
    let sql = sql
        .replace("50000", "500")
        .replace("30000", "400")
        .replace("30200", "400")
        .replace("pipelines/out/experiments", &desk.name("made"));
    desk.write("data.sql", &sql);
    throng(&["sql", &desk.name("data.sql")]).ok();
    desk
}

/// Where a job finds its rows: as it says, or in the tables of the test.
fn source(job: &str, tables: &Desk) -> String {
    let parsed: toml::Table = std::fs::read_to_string(folder().join(job)).unwrap().parse().unwrap();
    let url = parsed["source"]["url"].as_str().unwrap().to_owned();
    let generated =
        url.strip_prefix("../out/experiments/").map(|name| tables.path("made").join(name).display().to_string());
    format!("source.url={}", generated.unwrap_or(url))
}

fn sweep(job: &str, more: &[&str]) -> Vec<Value> {
    let job = folder().join(job);
    let common = ["sweep", job.to_str().unwrap(), "--json", "--quiet"];
    serde_json::from_str(&throng(&[&common, more].concat()).ok().out).unwrap()
}

fn score(trial: &Value, name: &str) -> f64 {
    trial["scores"][name].as_f64().unwrap_or_else(|| panic!("{name} of {trial}"))
}

#[test]
fn every_job_is_sound_and_named_on_the_page() {
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let script = std::fs::read_to_string(folder().join("run")).unwrap();
    let (jobs, tables) = (jobs(), tables());
    assert!(jobs.len() >= 8, "{jobs:?}");
    for job in jobs {
        throng(&["check", folder().join(&job).to_str().unwrap(), "--set", &source(&job, &tables)]).ok();
        assert!(page.contains(&format!("({job})")), "{job} is not on the page");
        assert!(script.contains(job.trim_end_matches(".toml")), "{job} is not in the script");
    }
}

/// The page's tables, figures and verdicts are those that its script makes of the scores beside it.
#[test]
fn the_page_is_made_of_the_scores() {
    let script = folder().join("page.py");
    let checked = std::process::Command::new("python3").arg("-B").arg(&script).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// Every test that the tables of the works name is there, and every row has a test or says why there is none.
#[test]
fn tests_that_the_works_name_exist() {
    fn read_sources(folder: &Path, into: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                read_sources(&entry, into);
            } else if entry.extension().is_some_and(|kind| kind == "rs") {
                into.push_str(&std::fs::read_to_string(entry).unwrap());
            }
        }
    }
    let mut sources = String::new();
    for part in ["core/src", "src", "tests"] {
        read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &mut sources);
    }
    for work in ["loukides", "sun", "tinabo", "gorla", "toth"] {
        let text = std::fs::read_to_string(folder().join(format!("{work}.md"))).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        let rows: Vec<&Vec<&str>> =
            rows.iter().filter(|cells| cells.len() == 7 && !cells[1].starts_with("--")).collect();
        assert!(rows.len() > 10, "{work} has a table");
        for cells in &rows[1..] {
            let (part, tests) = (cells[1], cells[4]);
            assert!(tests.contains('`') || tests == "-", "{work}: {part}");
            for test in tests.split('`').skip(1).step_by(2) {
                assert!(sources.contains(&format!("fn {test}(")), "{work}: no test is called {test}");
            }
            assert!(cells[2] != "-" || cells[3].starts_with("missing: "), "{work}: {part} is missing without a reason");
        }
    }
}

/// Every experiment on a few rows, by the methods that are tried in no other test of this file.
#[test]
fn every_experiment_can_be_tried() {
    let tables = tables();
    for (job, methods) in [
        ("adult.toml", "auto,k-assemble,pair-enum"),
        ("loukides-toc.toml", "k-members-p,mondrian"),
        ("loukides-policies.toml", "upc"),
        ("sun-dbca.toml", "density,density-cm"),
        ("sun-priorities.toml", "density,mondrian"),
        ("tinabo-adult.toml", "kl-redinfo,l-mondrian,g-anatomy"),
        ("tinabo-patinfo.toml", "kl-redinfo"),
        ("gorla-inspections.toml", "k-assemble,top-down"),
    ] {
        let set = source(job, &tables);
        let trials = sweep(job, &["--method", methods, "--k", "3,5", "--sample", "400", "--l-is-k", "--set", &set]);
        assert_eq!(trials.len(), 2 * methods.split(',').count());
        for trial in &trials {
            assert!(trial["refused"].is_null() && score(trial, "gcp") > 0.0, "{job}: {trial}");
            assert_eq!(
                trial["scores"]["dependency_loss"].is_number(),
                job == "gorla-inspections.toml" || job == "adult.toml"
            );
            let classified = ["sun-dbca.toml", "sun-priorities.toml", "adult.toml"].contains(&job);
            assert_eq!(trial["scores"]["cm"].is_number(), classified);
        }
    }
}

/// A table at k = l asks every class for as many different values.
#[test]
fn l_rises_with_k() {
    let largest = |k: &str, more: &[&str]| {
        let arguments = [&["--method", "l-mondrian", "--k", k, "--sample", "500"], more].concat();
        score(&sweep("tinabo-adult.toml", &arguments)[0], "gcp")
    };
    assert!(largest("9", &["--l-is-k"]) > largest("9", &["--set", "privacy.l-diversity.l=2"]));
}

/// U = 0.7, P = 0.5: UPC keeps every group within both; strict Mondrian and K-members, which do not look, do not.
#[test]
fn upc_keeps_its_bounds_on_adult_where_others_do_not() {
    let upc = &sweep("adult-upc.toml", &["--k", "5"])[0];
    assert!(score(upc, "wgu") <= 0.7 + 1e-9 && score(upc, "wgp") <= 0.5 + 1e-9, "{upc}");
    assert_eq!(score(upc, "unprotected"), 0.0);
    let free = ["--k", "5", "--set", "privacy.range-diversity.p=1.0", "--set", "privacy.max-loss=1.0"];
    for other in sweep("adult-upc.toml", &[&free[..], &["--method", "mondrian,k-members"]].concat()) {
        assert!(score(&other, "wgp") > 0.5 && score(&other, "unprotected") > 0.0, "{other}");
    }
}
