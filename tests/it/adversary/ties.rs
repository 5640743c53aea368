//! Equal rows: a method that divides ties must not put rows with the same sensitive value together.
//!
//! The reference is the same job on the same rows with their number as a kept column. It makes all rows different, and
//! changes nothing else: no rule, no quasi-identifier and no sensitive value. What a method reaches there, it must reach
//! where rows are equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array};

use super::adult::{desk, pipelines, release};
use super::publication::Publication;
use super::values::{Value, column};
use crate::support::{Desk, batch, write_parquet};

/// The job of `toc` on Adult as it is, with occupations as categories.
fn toc_on_adult() -> Desk {
    let desk = desk("experiments/loukides-toc.toml");
    let job = std::fs::read_to_string(desk.path("job.toml")).unwrap();
    let data = pipelines().join("data/adult.parquet");
    desk.write("job.toml", &job.replace("out/experiments/adult-numbers.parquet", data.to_str().unwrap()));
    desk
}

/// The release of a job with rows as they are, and with rows that all differ.
fn both(desk: &Desk, settings: &[&str]) -> [Publication; 2] {
    ["identifier", "kept"].map(|role| {
        let (sink, id) = (format!("sink.url=\"{role}\""), format!("columns.id.role=\"{role}\""));
        let mut arguments = vec!["--quiet", "--set", "method.seed=42", "--set", &sink, "--set", &id];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        desk.run(&arguments).ok();
        Publication::open(&desk.path(role))
    })
}

fn score(publication: &Publication, name: &str) -> f64 {
    publication.manifest["scores"][name].as_f64().unwrap_or_else(|| panic!("no score {name}"))
}

/// TOC on Adult, k = 2: 0.73 where equal rows stand side by side, 0.60 where they do not.
#[test]
fn toc_protects_equal_rows_as_well_as_others() {
    let [as_they_are, all_differ] = both(&toc_on_adult(), &["privacy.k=2"]);
    let (mpm, reference) = (score(&as_they_are, "mpm"), score(&all_differ, "mpm"));
    println!("equal rows, toc: MPM {mpm:.3}, with rows that all differ {reference:.3}");
    assert!((reference - 0.60).abs() < 0.05, "the reference is not what it was: {reference}");
    assert!((mpm - reference).abs() < 0.04, "equal rows stand side by side: MPM {mpm}, not {reference}");
}

/// 6,000 rows of which 430 differ: a GCP four times as high, where equal rows stand side by side.
#[test]
fn upc_loses_no_more_for_equal_rows_than_for_others() {
    let mut rng = fastrand::Rng::with_seed(3);
    let places: Vec<[i32; 3]> = (0..43).map(|_| [rng.i32(0..40), rng.i32(0..30), rng.i32(0..20)]).collect();
    let rows: Vec<([i32; 3], i32)> = (0..6000).map(|_| (places[rng.usize(0..43)], rng.i32(0..10))).collect();
    let quasi =
        |at: usize| -> ArrayRef { Arc::new(Int32Array::from_iter_values(rows.iter().map(|(place, _)| place[at]))) };
    let desk = Desk::new();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..6000))),
        ("q1", quasi(0)),
        ("q2", quasi(1)),
        ("q3", quasi(2)),
        ("s", Arc::new(Int32Array::from_iter_values(rows.iter().map(|(_, value)| *value)))),
    ];
    write_parquet(&desk.path("in.parquet"), &batch(columns));
    desk.job(
        "[privacy]\nk = 5\nmax-loss = 0.7\nmax-suppression = 0.0\n\
         range-diversity = { column = \"s\", p = 0.4, ranges.interval = 3.0 }\n\
         [columns]\nid.role = \"identifier\"\nq1.role = \"quasi\"\nq2.role = \"quasi\"\nq3.role = \"quasi\"\ns.role = \"sensitive\"\n\
         [method]\nname = \"upc\"\nupc.s = 20\n",
    );
    let [as_they_are, all_differ] = both(&desk, &[]);
    let (gcp, reference) = (score(&as_they_are, "gcp"), score(&all_differ, "gcp"));
    println!("equal rows, upc: GCP {gcp:.3}, with rows that all differ {reference:.3}");
    assert!(reference < 0.05, "the reference is not what it was: {reference}");
    assert!(gcp < reference + 0.02, "equal rows stand side by side: GCP {gcp}, not {reference}");
}

/// Classes in which everybody has the same occupation.
fn single_value_classes(publication: &Publication) -> usize {
    let mut values: BTreeMap<Vec<Value>, Vec<Value>> = BTreeMap::new();
    for piece in &publication.pieces {
        let of = |name: &String| column(piece.rows.column_by_name(name).unwrap().as_ref());
        let class: Vec<Vec<Value>> = publication.class_columns().iter().map(of).collect();
        for (row, value) in of(&"occupation".to_owned()).into_iter().enumerate() {
            values.entry(class.iter().map(|column| column[row].clone()).collect()).or_default().push(value);
        }
    }
    values.values().filter(|values| values.iter().all(|value| *value == values[0])).count()
}

/// Relaxed Mondrian on Adult, k = 5: 75 classes of one occupation where equal rows stand side by side, one where they do
/// not.
#[test]
fn relaxed_mondrian_does_not_gather_equal_rows() {
    let settings = ["method.name=\"mondrian\"", "method.mondrian.variant=\"relaxed\"", "privacy.k=5"];
    let [as_they_are, all_differ] = both(&toc_on_adult(), &settings);
    let (single, reference) = (single_value_classes(&as_they_are), single_value_classes(&all_differ));
    println!("equal rows, relaxed mondrian: {single} classes of one occupation, with rows that all differ {reference}");
    assert!(single <= 3 * reference + 10, "equal rows stand side by side: {single} classes, not {reference}");
}

/// The parameters of the reference are the job's own.
#[test]
fn the_reference_differs_in_nothing_but_the_kept_number() {
    let publication = release(&toc_on_adult(), &["columns.id.role=\"kept\"", "method.name=\"mondrian\""]);
    let roles = publication.manifest["roles"].as_object().unwrap();
    assert_eq!(roles["id"], "kept");
    assert_eq!(publication.class_columns().len(), 6);
}
