//! Two releases of nearly the same table: with one person and without.
//!
//! If both runs made the same choices, they would agree everywhere but in the classes that the person touches, and whoever
//! compares bytes would find the person's class at once. With keys of their own the runs differ all over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::take_record_batch;
use serde_json::Value as Json;

use super::order::{desk, release, settings};
use super::publication::Publication;
use super::values::{Value, column};
use crate::support::{read_parquet, throng, write_parquet};

const ROWS: usize = 3000;

/// Classes by what they publish, numbers aside: the rows of each, in order.
fn classes(publication: &Publication) -> Vec<Vec<Vec<Value>>> {
    let class_columns = publication.class_columns();
    let mut classes: BTreeMap<Vec<Value>, Vec<Vec<Value>>> = BTreeMap::new();
    for piece in &publication.pieces {
        let schema = piece.rows.schema();
        let columns: Vec<Vec<Value>> = piece.rows.columns().iter().map(|array| column(array.as_ref())).collect();
        let is_class = |at: usize| class_columns.contains(schema.field(at).name());
        for row in 0..piece.rows.num_rows() {
            let class = (0..columns.len()).filter(|&at| is_class(at)).map(|at| columns[at][row].clone()).collect();
            let shown = (0..columns.len()).filter(|&at| schema.field(at).name() != "group");
            classes.entry(class).or_default().push(shown.map(|at| columns[at][row].clone()).collect());
        }
    }
    let mut classes: Vec<Vec<Vec<Value>>> = classes.into_values().collect();
    classes.iter_mut().for_each(|rows| rows.sort());
    classes.sort();
    classes
}

#[test]
fn one_row_more_changes_classes_everywhere() {
    let desk = desk(ROWS);
    let source = read_parquet(&desk.path("in.parquet"));
    let mut found = Vec::new();
    for method in ["auto", "k-members", "anatomy"] {
        let form = if method == "anatomy" { "bucketise" } else { "generalise" };
        let settings = settings(method, form);
        write_parquet(&desk.path("in.parquet"), &source);
        let with = classes(&release(&desk, &format!("{method}-with"), &settings, &[]).unwrap());
        let others = UInt32Array::from_iter_values((0..ROWS as u32).filter(|row| *row != 1234));
        write_parquet(&desk.path("in.parquet"), &take_record_batch(&source, &others).unwrap());
        let without = classes(&release(&desk, &format!("{method}-without"), &settings, &[]).unwrap());
        let changed = with.iter().filter(|class| without.binary_search(class).is_err()).count();
        println!("differencing, {method}: {changed} of {} classes differ when one row is missing", with.len());
        found.push((method, changed as f64 / with.len() as f64));
    }
    assert!(found.iter().all(|(_, share)| *share > 0.5), "the classes that differ point at one row: {found:?}");
}

/// Figures of a manifest that may differ when one person is missing: counts; what is measured of published rows; and what
/// names this run and its files. Everything else is the job's.
const MAY_DIFFER: [&str; 12] = [
    "rows_read",
    "rows",
    "suppressed",
    "files",
    "data",
    "run",
    "committed",
    "snapshot",
    "scores",
    "verification",
    "cell_rows",
    "population",
];

/// Paths at which two manifests differ.
fn differing(one: &Json, other: &Json, path: &str, found: &mut BTreeSet<String>) {
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => {
            for name in one.keys().chain(other.keys()) {
                let of = |fields: &serde_json::Map<String, Json>| fields.get(name).cloned().unwrap_or_default();
                differing(&of(one), &of(other), &format!("{path}/{name}"), found);
            }
        }
        _ if one == other => {}
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// The words of a page except numbers, without its drawings.
fn words(page: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, drawing)) = rest.split_once("<svg") {
        text += before;
        rest = drawing.split_once("</svg>").expect("a drawing ends").1;
    }
    text += rest;
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // Names of runs and checksums have digits in them.
    words.filter(|word| word.chars().all(char::is_alphabetic)).map(str::to_owned).collect()
}

/// What classes of published rows come to, from the definition: their number, the smallest, and the sum of their squares.
fn counted(publication: &Publication) -> (usize, usize, usize) {
    let classes = classes(publication);
    let sizes = || classes.iter().map(Vec::len);
    (classes.len(), sizes().min().unwrap(), sizes().map(|size| size * size).sum())
}

/// With and without one person, manifests differ in counts and in figures of published rows, and pages in numbers: no
/// name, rule, parameter or word comes or goes with a row.
#[test]
fn one_row_more_changes_counts_and_figures_only() {
    let desk = desk(ROWS);
    let source = read_parquet(&desk.path("in.parquet"));
    let settings = settings("mondrian", "generalise");
    let others = UInt32Array::from_iter_values((0..ROWS as u32).filter(|row| *row != 1234));
    let without = take_record_batch(&source, &others).unwrap();
    let made = [("with", &source), ("without", &without)].map(|(sink, rows)| {
        write_parquet(&desk.path("in.parquet"), rows);
        let publication = release(&desk, sink, &settings, &["--run-id", "one"]).unwrap();
        let page = desk.name("page.html");
        throng(&["report", &desk.name(sink), "--output", &page]).ok();
        (publication, fs::read_to_string(page).unwrap())
    });
    let [(with, page_with), (without, page_without)] = made;
    let mut found = BTreeSet::new();
    differing(&with.manifest, &without.manifest, "", &mut found);
    println!("differencing, manifests: {} figures differ when one row is missing: {found:?}", found.len());
    let may = |path: &&String| MAY_DIFFER.iter().any(|name| path.split('/').nth(1) == Some(name));
    let must_not: Vec<&String> = found.iter().filter(|path| !may(path)).collect();
    assert!(must_not.is_empty(), "the manifest reveals one row by {must_not:?}");
    assert!(found.contains("/rows_read"), "the runs differ: {found:?}");
    for publication in [&with, &without] {
        let (classes, smallest, squares) = counted(publication);
        let (reported, suppressed) =
            (&publication.manifest["verification"]["classes"], &publication.manifest["suppressed"]);
        assert_eq!(
            (reported["count"].as_u64(), reported["smallest"].as_u64()),
            (Some(classes as u64), Some(smallest as u64))
        );
        assert_eq!(suppressed, 0, "so that every row counts by its class");
        let dm = publication.manifest["scores"]["dm"].as_f64().unwrap();
        assert!((dm / squares as f64 - 1.0).abs() < 1e-3, "discernibility is {dm}, not {squares}");
    }
    // Values stand in the order of their counts, which are published, and each page names its own sink.
    let vocabulary = |page: &str| BTreeSet::from_iter(words(page).into_iter().filter(|word| !word.starts_with("with")));
    let (words_with, words_without) = (vocabulary(&page_with), vocabulary(&page_without));
    let differ: Vec<_> = words_with.symmetric_difference(&words_without).collect();
    assert!(differ.is_empty(), "pages differ in words: {differ:?}");
}
