//! Who is in the source, from counts and from columns that a public table has too, when `presence` promises to hide it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use serde_json::Value as Json;

use crate::support::{Desk, batch, manifest, write_parquet};

/// Everybody, every third of whom is in the source, and of those some without an age.
const PEOPLE: usize = 3627;

fn everybody() -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(9);
    let age: ArrayRef =
        Arc::new(Int32Array::from_iter((0..PEOPLE).map(|row| (row % 57 != 0).then(|| rng.i32(20..70)))));
    let mut words = |words: &[&'static str]| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..PEOPLE).map(|_| words[rng.usize(0..words.len())])))
    };
    let town = words(&["ash", "birch", "cedar", "elm"]);
    let zone = words(&["north", "south", "west"]);
    let ill = words(&["flu", "cold", "gout", "none"]);
    batch(vec![
        ("person", Arc::new(Int32Array::from_iter_values(0..PEOPLE as i32)) as ArrayRef),
        ("age", age),
        ("town", town),
        ("zone", zone),
        ("ill", ill),
    ])
}

const JOB: &str = "
[privacy]
k = 3
max-suppression = 0.2
presence = { public = \"public.parquet\", min = 0.0, max = 0.8 }
[columns]
person.role = \"identifier\"
age = { role = \"quasi\", nulls = \"drop\" }
town.role = \"quasi\"
zone.role = \"identifier\"
ill.role = \"sensitive\"
[method]
name = \"mpalm\"
";

fn members(everybody: &RecordBatch) -> RecordBatch {
    let rows = (0..PEOPLE as u32).filter(|row| row % 3 == 0);
    take_record_batch(everybody, &UInt32Array::from_iter_values(rows)).unwrap()
}

fn desk() -> (Desk, RecordBatch) {
    let everybody = everybody();
    let desk = Desk::new();
    write_parquet(&desk.path("public.parquet"), &everybody.project(&[0, 1, 2, 3]).unwrap());
    let members = members(&everybody);
    write_parquet(&desk.path("in.parquet"), &members);
    desk.secret_job(JOB);
    (desk, members)
}

fn numbers(value: &Json, path: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Json::Number(number) => found.push((path.to_owned(), number.as_f64().unwrap())),
        Json::Array(items) => items.iter().for_each(|item| numbers(item, path, found)),
        Json::Object(fields) => {
            fields.iter().for_each(|(name, field)| numbers(field, &format!("{path}.{name}"), found))
        }
        _ => {}
    }
}

/// The number of members that were left out is a marginal of the source: those without an age.
#[test]
fn the_manifest_does_not_count_members() {
    let (desk, members) = desk();
    desk.run(&["--quiet"]).ok();
    let dropped = members.column_by_name("age").unwrap().null_count();
    let exact = [members.num_rows() as f64, dropped as f64];
    assert!(dropped > 8);
    let mut found = Vec::new();
    numbers(&manifest(&desk.path("out")), "", &mut found);
    // Shares and scores may be anything; what is looked for are counts.
    // How many published rows or classes have some property may be the same by chance.
    let of_published = |path: &str| path.contains(".rows_by_rd.") || path.contains(".by_size.");
    let reported: Vec<_> =
        found.iter().filter(|(path, number)| exact.contains(number) && !of_published(path)).collect();
    println!("presence by counts: the manifest gives {} of {exact:?}: {reported:?}", reported.len());
    assert!(
        reported.is_empty(),
        "the manifest reveals how many people of the public table are in the source: {reported:?}"
    );
}

/// A column that the public table has too must be generalised: published as it is, it finds members by itself.
#[test]
fn shared_columns_are_not_published_as_they_are() {
    for column in ["zone", "person"] {
        let (desk, _) = desk();
        let role = format!("columns.{column}.role=\"kept\"");
        let ran = desk.run(&["--quiet", "--set", &role]);
        println!("presence by shared columns: `{column}` kept ends with {:?}", ran.code);
        assert!(
            ran.code.is_some_and(|code| [3, 4, 5].contains(&code)),
            "`{column}` is published in the clear: {ran:?}"
        );
        assert!(ran.err.contains(column), "the message does not name `{column}`: {}", ran.err);
        assert!(desk.sink_files().is_empty());
    }
}
