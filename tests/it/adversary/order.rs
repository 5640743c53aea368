//! The order of published rows is a function of the published rows, for every method in every form.
//!
//! Where that holds, no order can reveal more than the multiset of rows: rows that publish the same cannot be told
//! apart, and rows that differ stand where their published values put them.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::publication::Publication;
use crate::support::{Desk, WHOLE_TABLE, throng};

/// A census in several cells, written into many small files and row groups.
const CENSUS: &str = "
[privacy]
k = 4
max-loss = 0.95
max-suppression = 0.5
l-diversity = { column = \"diagnosis\", l = 3 }
range-diversity = { column = \"income\", p = 0.9, ranges.interval = 2000.0 }
[defaults]
role = \"identifier\"
[columns]
age.role = \"quasi\"
sex.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
marital_status = { role = \"quasi\", hierarchy = \"marital_status.csv\" }
diagnosis.role = \"sensitive\"
income.role = \"sensitive\"
household_size.role = \"kept\"
[output]
file-rows = 100
row-group-rows = 100
";

/// Rows of the census.
pub const ROWS: usize = 1200;

/// A desk with the census and its job.
pub fn desk(rows: usize) -> Desk {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", &rows.to_string(), "--seed", "5", "--quiet"]).ok();
    let hierarchies = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/hierarchies");
    fs::copy(hierarchies.join("marital_status.csv"), desk.path("marital_status.csv")).unwrap();
    desk.secret_job(CENSUS);
    desk
}

fn names(definition: &Json) -> Vec<String> {
    let listed = definition["oneOf"].as_array().expect("a list of names");
    listed.iter().map(|one| one["const"].as_str().unwrap().to_owned()).collect()
}

/// All methods and forms that the program's own schema offers and that work without a public table.
pub fn methods_and_forms() -> (Vec<String>, Vec<String>) {
    let schema: Json = serde_json::from_str(&throng(&["schema"]).ok().out).unwrap();
    let of = |name: &str, without: &[&str]| {
        names(&schema["$defs"][name]).into_iter().filter(|name| !without.contains(&name.as_str())).collect::<Vec<_>>()
    };
    (of("MethodName", &["mpalm", "spalm", "combined"]), of("Form", &["combined"]))
}

/// The settings that a method needs beside its name.
pub fn settings(method: &str, form: &str) -> Vec<String> {
    let mut settings = vec![format!("method.name=\"{method}\""), format!("method.form=\"{form}\"")];
    // Tuning on a sample is tested once, elsewhere: it takes longer than the run.
    match method {
        "toc" => settings.extend(["method.toc.delta=0.4".to_owned(), "method.toc.s=40".to_owned()]),
        "upc" => settings.push("method.upc.s=40".to_owned()),
        "pair-enum" | "k-assemble" => {
            settings.push("dependencies=[{ from = [\"age\"], to = [\"marital_status\"], tolerance = 0.8 }]".to_owned())
        }
        _ => {}
    }
    if form == "slice" {
        // A sensitive value beside quasi-identifiers would be revealed by them.
        settings.push("method.slices=[[\"diagnosis\"], [\"income\"]]".to_owned());
    }
    settings
}

/// Methods that are only offered in forms of their own say so with exit code 3; everything else must be released.
pub fn release(desk: &Desk, sink: &str, settings: &[String], more: &[&str]) -> Option<Publication> {
    let sink_is = format!("sink.url=\"{sink}\"");
    let mut arguments = vec!["--quiet", "--set", sink_is.as_str()];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let ran = desk.run(&[&arguments, more].concat());
    if ran.code == Some(3) {
        assert!(ran.err.contains("form"), "{settings:?}: {}", ran.err);
        return None;
    }
    ran.ok();
    Some(Publication::open(&desk.path(sink)))
}

#[test]
fn every_method_and_form_publishes_rows_in_the_order_of_their_values() {
    let desk = desk(ROWS);
    let (methods, forms) = methods_and_forms();
    let (mut released, mut files, mut disordered) = (0, 0, Vec::new());
    for method in &methods {
        for form in &forms {
            let cell = if WHOLE_TABLE.contains(&method.as_str()) { ROWS } else { 500 }.to_string();
            let more = ["--cell-rows", &cell, "--partitions", "3"];
            let sink = format!("{method}-{form}");
            let Some(publication) = release(&desk, &sink, &settings(method, form), &more) else { continue };
            files = files.max(publication.pieces.len());
            released += 1;
            let found = publication.disorder();
            if let Some(first) = found.first() {
                disordered.push(format!("{sink}: {} faults, such as {first}", found.len()));
            }
            fs::remove_dir_all(desk.path(&sink)).unwrap();
        }
    }
    println!(
        "order: {released} releases of {} methods and {} forms, {} not in order",
        methods.len(),
        forms.len(),
        disordered.len()
    );
    assert!(released >= methods.len() * 3 && files > 5, "{released} releases of at most {files} files");
    assert!(disordered.is_empty(), "rows do not stand in the order of their values:\n{}", disordered.join("\n"));
}

/// Folders are part of what is published; the order holds inside each.
#[test]
fn partitioned_releases_are_in_order_too() {
    let desk = desk(ROWS);
    for form in ["generalise", "bucketise", "anatomy"] {
        let mut settings = settings("mondrian", form);
        settings.push("output.partition-by=[\"household_size\"]".to_owned());
        let Some(publication) = release(&desk, form, &settings, &["--cell-rows", "500", "--partitions", "3"]) else {
            continue;
        };
        assert!(publication.pieces.iter().any(|piece| piece.folder.contains("household_size=")), "{form}");
        let found = publication.disorder();
        assert!(found.is_empty(), "{form}: {} faults, such as {}", found.len(), found[0]);
    }
}

#[test]
fn disorder_is_seen() {
    let desk = desk(ROWS);
    let publication = release(&desk, "out", &settings("mondrian", "generalise"), &["--partitions", "2"]).unwrap();
    // Sorted by hand it is in order; the last two rows that differ changed, it is not.
    let mut sorted = publication;
    let class = sorted.class_columns();
    for piece in &mut sorted.pieces {
        let schema = piece.rows.schema();
        let (mut columns, others): (Vec<usize>, Vec<usize>) =
            (0..schema.fields().len()).partition(|&at| class.contains(schema.field(at).name()));
        columns.extend(others);
        let rows = super::values::rows(&piece.rows, &columns);
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by(|&a, &b| rows[a as usize].cmp(&rows[b as usize]));
        let order = datafusion::arrow::array::UInt32Array::from(order);
        piece.rows = datafusion::arrow::compute::take_record_batch(&piece.rows, &order).unwrap();
    }
    // Only faults between files may be left.
    let inside = |found: &[String]| found.iter().filter(|fault| fault.contains("stands before")).count();
    assert_eq!(inside(&sorted.disorder()), 0);
    let piece = &mut sorted.pieces[0];
    let turned = (0..piece.rows.num_rows() as u32).rev().collect::<Vec<_>>();
    let turned = datafusion::arrow::array::UInt32Array::from(turned);
    piece.rows = datafusion::arrow::compute::take_record_batch(&piece.rows, &turned).unwrap();
    assert!(inside(&sorted.disorder()) > 10);
}
