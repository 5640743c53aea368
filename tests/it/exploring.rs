//! Trying out settings, and the tools for hierarchies: nothing of it publishes.

use std::fs;

use serde_json::Value;

use crate::support::{Desk, throng};

const ADULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/adult.toml");
const WORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/hierarchies/adult/workclass.csv");

#[test]
fn a_sweep_scores_every_setting_and_compares_methods() {
    let desk = Desk::new();
    let (json, csv) = (desk.name("sweep.json"), desk.name("sweep.csv"));
    let sweep = |more: &[&str]| {
        let common = ["sweep", ADULT, "--k", "3,6,12", "--method", "mondrian,k-members", "--sample", "900"];
        throng(&[&common, more].concat()).ok()
    };
    let shown = sweep(&["--output", &json]);
    assert!(shown.out.contains("Wilcoxon signed-rank p = 0.2500"), "three pairs of one sign: {}", shown.out);
    let trials: Vec<Value> = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert!(trial["scores"]["gcp"].as_f64().unwrap() > 0.0 && trial["seconds"].as_f64().unwrap() > 0.0);
        let rows = trial["rows"].as_u64().unwrap();
        assert!((700..1100).contains(&rows), "{rows} rows of about 900");
    }
    let loss = |trial: &Value| trial["scores"]["gcp"].as_f64().unwrap();
    assert!(loss(&trials[0]) < loss(&trials[2]), "a larger k loses more");
    sweep(&["--output", &csv, "--quiet"]);
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 7);
    let again = sweep(&["--json", "--quiet"]);
    let again: Vec<Value> = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again[0]["scores"], trials[0]["scores"], "the same sample, the same groups");
}

#[test]
fn a_trial_of_the_whole_table_scores_what_a_run_publishes() {
    let desk = Desk::new();
    throng(&["generate", "--rows", "1200", &desk.name("in.parquet")]).ok();
    desk.job(
        "privacy.k = 6\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\nsex.role = \"quasi\"\n\
         diagnosis.role = \"sensitive\"\n[method]\nname = \"mondrian\"\n[measures]\nsource = true\nqueries.count = 24",
    );
    let released: Value = serde_json::from_str(&desk.run(&["--json"]).ok().out).unwrap();
    let trials: Vec<Value> =
        serde_json::from_str(&desk.throng("sweep", &["--k", "6", "--json", "--quiet"]).ok().out).unwrap();
    assert_eq!(trials[0]["scores"], released["scores"]);
    assert_eq!(trials[0]["suppressed"], released["suppressed"]);
}

#[test]
fn a_recommendation_comes_with_its_error() {
    let ask = |more: &[&str]| -> Value {
        let common =
            ["recommend", ADULT, "--sample", "800", "--repeats", "3", "--method", "mondrian", "--json", "--quiet"];
        serde_json::from_str(&throng(&[&common, more].concat()).ok().out).unwrap()
    };
    let answer = ask(&["--max-loss", "0.3"]);
    let best = &answer["recommended"];
    assert!(best["k"].as_u64().unwrap() >= 2 && best["loss"]["upper"].as_f64().unwrap() <= 0.3, "{answer}");
    assert!(best["loss"]["lower"].as_f64() < best["loss"]["upper"].as_f64());
    let over = answer["tried"].as_array().unwrap().last().unwrap();
    assert!(over["loss"]["upper"].as_f64().unwrap() > 0.3, "the next k loses too much: {answer}");
    assert_eq!(ask(&["--min-k", "20"])["recommended"]["k"], 20);
    assert!(ask(&["--max-loss", "0.0001"])["recommended"].is_null());
    assert_eq!(throng(&["recommend", ADULT]).code, Some(2), "one of the two wishes is needed");
}

#[test]
fn hierarchies_are_made_checked_drawn_and_converted() {
    let desk = Desk::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/adult.parquet");
    let built = desk.name("occupation.csv");
    throng(&["hierarchy", "build", data, "--column", "occupation", "-o", &built]).ok();
    let checked = throng(&["hierarchy", "check", &built, "--data", data, "--column", "occupation"]).ok();
    assert!(checked.out.contains("contains all 14 values of `occupation`, and 0 more"), "{}", checked.out);
    throng(&["hierarchy", "check", WORK, "--data", data, "--column", "occupation"])
        .refused(3, &["14 values of `occupation` in 30162 rows are not in the hierarchy"]);
    let drawn = throng(&["hierarchy", "draw", WORK]).ok();
    assert!(drawn.out.starts_with("* (") && drawn.out.contains("└── "), "{}", drawn.out);
    let svg = desk.name("work.svg");
    throng(&["hierarchy", "draw", WORK, "--svg", &svg]).ok();
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg "));
    // There and back again: the same tree.
    let (table, back) = (desk.name("work.toml"), desk.name("back.csv"));
    throng(&["hierarchy", "convert", WORK, "--to", "toml", "-o", &table]).ok();
    throng(&["hierarchy", "convert", &table, "--to", "csv", "-o", &back]).ok();
    assert_eq!(throng(&["hierarchy", "draw", &back]).ok().out, throng(&["hierarchy", "draw", &table]).ok().out);
    let age = throng(&["hierarchy", "build", data, "--column", "age"]).ok();
    assert_eq!(age.out.trim(), "hierarchy = { widths = [5, 10, 20, 40] }");
    throng(&["hierarchy", "build", data, "--column", "agee"]).refused(4, &["no column `agee`"]);
}
