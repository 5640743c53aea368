//! Two releases of nearly the same table: with one person and without.
//!
//! If both runs made the same choices, they would agree everywhere but in the classes that the person touches, and whoever
//! compares bytes would find the person's class at once. With keys of their own the runs differ all over.

use std::collections::BTreeMap;

use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::take_record_batch;

use super::order::{desk, release, settings};
use super::publication::Publication;
use super::values::{Value, column};
use crate::support::{read_parquet, write_parquet};

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
