//! The experiments of the works: every job can run, the small ones do, and what the page claims of UPC and `auto` on Adult is
//! so.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::throng;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/experiments")
}

fn jobs() -> Vec<String> {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut jobs: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    jobs.sort();
    jobs
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
    let jobs = jobs();
    assert!(jobs.len() >= 8, "{jobs:?}");
    for job in jobs {
        throng(&["check", folder().join(&job).to_str().unwrap()]).ok();
        assert!(page.contains(&format!("({job})")), "{job} is not on the page");
        assert!(script.contains(job.trim_end_matches(".toml")), "{job} is not in the script");
    }
}

/// Every experiment on data that ships with the repository, on a few rows of it.
#[test]
fn jobs_on_data_at_hand_can_be_tried() {
    for (job, methods) in [
        ("adult.toml", "auto,k-assemble,pair-enum"),
        ("loukides-toc.toml", "k-members-p,mondrian"),
        ("sun-dbca.toml", "density,density-cm"),
        ("tinabo-adult.toml", "kl-redinfo,l-mondrian,g-anatomy"),
    ] {
        let trials = sweep(job, &["--method", methods, "--k", "3,5", "--sample", "500", "--l-is-k"]);
        assert_eq!(trials.len(), 2 * methods.split(',').count());
        for trial in &trials {
            assert!(trial["refused"].is_null() && score(trial, "gcp") > 0.0, "{job}: {trial}");
        }
    }
    let cm =
        |method: &str| score(&sweep("sun-dbca.toml", &["--method", method, "--k", "5", "--sample", "500"])[0], "cm");
    assert!(cm("density-cm") < cm("density"), "one label to a group where that is cheap");
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
