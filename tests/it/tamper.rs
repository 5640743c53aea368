//! `throng verify` against releases that somebody has changed: every change is caught, by the rule it breaks and how
//! often, and no value is told. The forger of these tests is a good one: the manifest agrees with the changed files.

use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, StructArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::Int32Type;

use crate::support::{Desk, counts, lines, manifest, read_parquet, released_files, texts, throng, write_parquet};
use crate::tables::{ILLS, JOB, assert_no_values, people};

const ROWS: usize = 240;

/// A release of one file, with three different illnesses in every class.
fn release() -> Desk {
    let rule = "privacy.k = 5\nprivacy.l-diversity = { column = \"ill\", l = 2 }";
    let desk = Desk::with(people(ROWS), &JOB.replace("privacy.k = 5", rule));
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    desk
}

/// Changes the released file and expects `verify` to refuse it: first for its checksum, then, once the manifest has
/// been forged to go with it, for what was done.
fn caught(change: impl Fn(&RecordBatch) -> RecordBatch, findings: &[&str]) {
    let desk = release();
    let sink = desk.path("out");
    let files = released_files(&sink);
    assert_eq!(files.len(), 1);
    let rows = read_parquet(&files[0]);
    let changed = change(&rows);
    assert_ne!(rows, changed, "the test changes something");
    write_parquet(&files[0], &changed);

    let stale = desk.throng("verify", &[]);
    stale.refused(5, &["files: 1 of 1 files are not the ones that were released"]);
    stale.refused(5, findings);
    assert_no_values(&stale.err);

    let mut forged = manifest(&sink);
    forged["files"][0]["blake3"] = blake3::hash(&fs::read(&files[0]).unwrap()).to_hex().to_string().into();
    let run = forged["run"].as_str().unwrap().to_owned();
    fs::write(sink.join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
    let found = desk.throng("verify", &[]);
    found.refused(5, findings);
    let said: Vec<&str> = found.err.lines().skip(1).map(str::trim).collect();
    assert_eq!(said.len(), findings.len(), "nothing else is wrong: {said:?}");
    assert_no_values(&found.err);
}

/// Pages that cannot be read any more.
#[test]
fn a_damaged_file_is_named() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0xA5);
    fs::write(&file, bytes).unwrap();
    let said = "files: 1 of 1 files are not the ones that were released";
    desk.throng("verify", &[]).refused(5, &[said, &name]);
    throng(&["verify", &desk.name("out")]).refused(5, &[said, &name]);
}

/// The batch with one column exchanged.
fn replaced(rows: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(name).unwrap()] = array;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

fn chosen(rows: &RecordBatch, keep: impl Iterator<Item = usize>) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from_iter_values(keep.map(|row| row as u32))).unwrap()
}

/// Rows of a class of exactly `size` rows.
fn class_of(rows: &RecordBatch, size: usize) -> Vec<usize> {
    let of_row = lines(rows, &["age".to_owned(), "town".to_owned()]);
    let (class, _) = counts(of_row.clone()).into_iter().find(|(_, count)| *count == size).unwrap();
    (0..rows.num_rows()).filter(|row| of_row[*row] == class).collect()
}

/// A row of the largest class.
fn crowded(rows: &RecordBatch) -> usize {
    let of_row = lines(rows, &["age".to_owned(), "town".to_owned()]);
    let (class, size) = counts(of_row.clone()).into_iter().max_by_key(|(_, count)| *count).unwrap();
    assert!(size > 5, "the tests need a class that can lose a row");
    of_row.iter().position(|line| *line == class).unwrap()
}

/// What is found when one row stands in the place of another.
const ONE_ROW_REPLACED: [&str; 3] = [
    "truthful: 1 rows of the source were lost or changed",
    "truthful: 1 published rows are not in the source as they stand",
    "truthful: 1 published rows do not cover the values they were made from",
];

#[test]
fn one_sensitive_value_changed() {
    let change = |rows: &RecordBatch| {
        let row = crowded(rows);
        let mut ills = texts(rows, "ill");
        ills[row] = ILLS.iter().find(|ill| **ill != ills[row]).unwrap().to_string();
        replaced(rows, "ill", Arc::new(StringArray::from(ills)))
    };
    // The row in its place covers nothing that it could have been made from, either.
    caught(change, &ONE_ROW_REPLACED);
}

#[test]
fn variety_taken_away() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let mut ills = texts(rows, "ill");
        class.iter().for_each(|row| ills[*row] = ILLS[0].to_owned());
        replaced(rows, "ill", Arc::new(StringArray::from(ills)))
    };
    let desk = release();
    let files = released_files(&desk.path("out"));
    write_parquet(&files[0], &change(&read_parquet(&files[0])));
    let found = desk.throng("verify", &[]);
    found.refused(5, &["l-diversity: 1 classes do not hold enough variety of `ill` (l = 2)", "truthful: "]);
    assert_no_values(&found.err);
}

#[test]
fn row_removed() {
    let change = |rows: &RecordBatch| {
        let gone = crowded(rows);
        chosen(rows, (0..rows.num_rows()).filter(|row| *row != gone))
    };
    caught(
        change,
        &["rows: 239 rows are published, 240 should be", "truthful: 1 rows of the source were lost or changed"],
    );
}

#[test]
fn row_duplicated() {
    let change = |rows: &RecordBatch| {
        let twin = chosen(rows, std::iter::once(7));
        concat_batches(&rows.schema(), [rows, &twin]).unwrap()
    };
    caught(
        change,
        &[
            "rows: 241 rows are published, 240 should be",
            "truthful: 1 published rows are not in the source as they stand",
            "truthful: 1 published rows do not cover the values they were made from",
        ],
    );
}

#[test]
fn row_replaced_by_a_copy_of_another() {
    let change = |rows: &RecordBatch| {
        let gone = crowded(rows);
        let kept = (0..rows.num_rows()).map(|row| if row == gone { (gone + 40) % ROWS } else { row });
        chosen(rows, kept)
    };
    caught(change, &ONE_ROW_REPLACED);
}

#[test]
fn class_of_k_minus_one() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        // One row of the class gets a range of its own that covers everything: true, but alone.
        let ages = rows.column_by_name("age").unwrap().as_struct();
        let end = |index: usize, all: i32| -> ArrayRef {
            let old = ages.column(index).as_primitive::<Int32Type>();
            let ends = (0..old.len()).map(|row| if row == class[0] { all } else { old.value(row) });
            Arc::new(Int32Array::from_iter_values(ends))
        };
        let ends = StructArray::new(ages.fields().clone(), vec![end(0, 0), end(1, 9999)], None);
        replaced(rows, "age", Arc::new(ends))
    };
    // The class of four, and the new class of one that cannot hold two illnesses.
    caught(
        change,
        &[
            "k: 2 classes hold fewer than k = 5 rows",
            "l-diversity: 1 classes do not hold enough variety of `ill` (l = 2)",
        ],
    );
}

#[test]
fn range_that_does_not_hold_its_value() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let ages = rows.column_by_name("age").unwrap().as_struct();
        let end = |index: usize| -> ArrayRef {
            let old = ages.column(index).as_primitive::<Int32Type>();
            let moved = |row: usize| old.value(row) + if class.contains(&row) { 500 } else { 0 };
            Arc::new(Int32Array::from_iter_values((0..old.len()).map(moved)))
        };
        let ends = StructArray::new(ages.fields().clone(), vec![end(0), end(1)], None);
        replaced(rows, "age", Arc::new(ends))
    };
    caught(change, &["truthful: 5 published rows do not cover the values they were made from"]);
}

#[test]
fn label_that_does_not_hold_its_value() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let mut towns = texts(rows, "town");
        class.iter().for_each(|row| towns[*row] = "Elsewhere".to_owned());
        replaced(rows, "town", Arc::new(StringArray::from(towns)))
    };
    caught(change, &["truthful: 5 published rows do not cover the values they were made from"]);
}

#[test]
fn file_missing_or_garbage() {
    let desk = release();
    let file = &released_files(&desk.path("out"))[0];
    fs::write(file, b"PAR1 is not all there is to it").unwrap();
    let found = desk.throng("verify", &[]);
    assert_eq!(found.code, Some(5), "{found:?}");
    fs::remove_file(file).unwrap();
    desk.throng("verify", &[]).refused(5, &["files: ", "is missing"]);
}

#[test]
fn another_policy_or_source() {
    let desk = release();
    desk.throng("verify", &["--set", "privacy.k=6"]).refused(5, &["policy: ", "another policy"]);
    write_parquet(&desk.path("in.parquet"), &crate::support::batch(people(ROWS + 1)));
    desk.throng("verify", &[]).refused(5, &["source: ", "has changed since the release"]);
}

#[test]
fn sink_alone() {
    let desk = release();
    let sink = desk.name("out");
    let file = &released_files(&desk.path("out"))[0];
    let rows = read_parquet(file);
    let gone = class_of(&rows, 5)[0];
    write_parquet(file, &chosen(&rows, (0..ROWS).filter(|row| *row != gone)));
    let found = crate::support::throng(&["verify", &sink]);
    found.refused(5, &["files: 1 of 1", "rows: 239 rows", "k: 1 classes hold fewer than k = 5 rows"]);
    assert_no_values(&found.err);
}
