//! What happens to rows with a null in a quasi-identifier: published, left out, or the end of the run.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{and, filter_record_batch, is_not_null};

use serde_json::Value;

use crate::support::{Desk, batch, manifest, multiset, texts, throng, write_parquet};
use crate::tables::{JOB, TOWNS, assert_no_values, people, with};

const ROWS: usize = 600;

/// People, some without an age and some without a town: 15 and 10, one of them without both.
fn gaps() -> RecordBatch {
    let ages = (0..ROWS as i32).map(|row| (row % 40 != 7).then_some(1020 + row * 7 % 53));
    let ages: ArrayRef = Arc::new(Int32Array::from_iter(ages));
    let towns = (0..ROWS).map(|row| (row % 60 != 7).then_some(TOWNS[row / 5 % TOWNS.len()]));
    let towns: ArrayRef = Arc::new(StringArray::from_iter(towns));
    batch(with(with(people(ROWS), "age", ages), "town", towns))
}

fn nulls(rows: &RecordBatch, column: &str) -> BooleanArray {
    is_not_null(rows.column_by_name(column).unwrap()).unwrap()
}

fn desk(rows: &RecordBatch, defaults: &str) -> Desk {
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), rows);
    desk.job(&format!("{defaults}{JOB}"));
    desk
}

/// Who is left is published as if the others had never been there, and they are counted.
#[test]
fn dropped_rows_are_suppressed_and_nothing_else_changes() {
    let rows = gaps();
    let whole = and(&nulls(&rows, "age"), &nulls(&rows, "town")).unwrap();
    let without = filter_record_batch(&rows, &whole).unwrap();
    assert_eq!(without.num_rows(), ROWS - 20);
    let engine = ["--cell-rows", "150", "--set", "measures.source=true"];
    let expected = desk(&without, "");
    expected.run(&engine).ok();
    assert!(manifest(&expected.path("out"))["cells"].as_u64().unwrap() > 2);
    for more in [["--partitions", "1", "--batch-rows", "8192"], ["--partitions", "3", "--batch-rows", "37"]] {
        let desk = desk(&rows, "defaults.nulls = \"drop\"\n");
        desk.run(&[&engine[..], &more].concat()).ok();
        desk.throng("verify", &[]).ok();
        let reported = manifest(&desk.path("out"));
        assert_eq!(
            (&reported["rows_read"], &reported["rows"], &reported["suppressed"]),
            (&600.into(), &580.into(), &20.into())
        );
        assert_eq!(reported["cells"], 0, "how many there are follows from the dropped rows too");
        assert_eq!(multiset(&desk.released()), multiset(&expected.released()));
    }
    let allowed = desk(&rows, "privacy.max-suppression = 0.03\ndefaults.nulls = \"drop\"\n");
    let refused = allowed.run(&[]);
    refused.refused(5, &["20 of 600 rows", "hold a null", "privacy.max-suppression", "nulls = \"category\""]);
    assert_no_values(&refused.err);
    assert!(allowed.sink_files().is_empty());
}

#[test]
fn every_column_may_say_for_itself() {
    let of_age = desk(&gaps(), "defaults.nulls = \"reject\"\n");
    of_age.run(&["--set", "columns.age.nulls=\"drop\"", "--set", "columns.town.nulls=\"category\""]).ok();
    let reported = manifest(&of_age.path("out"));
    assert_eq!((&reported["rows"], &reported["suppressed"]), (&585.into(), &15.into()));
    let towns = of_age.released();
    assert_eq!(towns.num_rows(), 585);
    assert!(texts(&towns, "age").iter().all(|age| age.contains("min: 1")), "a range with both ends");
    let wrong = desk(&gaps(), "");
    wrong.run(&["--set", "columns.ill.nulls=\"drop\""]).refused(3, &["columns.ill.nulls", "option of quasi columns"]);
}

#[test]
fn rejected_nulls_end_the_run() {
    let desk = desk(&gaps(), "defaults.nulls = \"reject\"\n");
    let ran = desk.run(&[]);
    ran.refused(4, &["column `age`: 15 of 600 rows", "column `town`: 10 of 600 rows", "columns.town.nulls = \"drop\""]);
    assert_no_values(&ran.err);
    assert!(desk.sink_files().is_empty());
    let rows = gaps();
    let whole = and(&nulls(&rows, "age"), &nulls(&rows, "town")).unwrap();
    write_parquet(&desk.path("in.parquet"), &filter_record_batch(&rows, &whole).unwrap());
    desk.run(&[]).ok();
}

#[test]
fn a_table_of_nulls_is_told() {
    let none: ArrayRef = Arc::new(Int32Array::from(vec![None; 50]));
    let desk = Desk::with(with(people(50), "age", none), &format!("defaults.nulls = \"drop\"\n{JOB}"));
    desk.run(&[]).refused(4, &["all 50 rows hold a null", "nulls = \"category\""]);
}

/// Queries drop such rows too, and other forms.
#[test]
fn queries_and_other_forms_drop_nulls() {
    let desk = desk(&gaps(), "defaults.nulls = \"drop\"\n");
    let query = "SELECT count(*) AS n FROM anonymize((SELECT * FROM people), k => 5, quasi => ['age', 'town'], sensitive => ['ill'], \
                 others => 'identifier', nulls => 'drop')";
    let table = format!("CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION '{}';", desk.name("in.parquet"));
    desk.write("query.sql", &format!("{table}\n{query};\n"));
    let reported = throng(&["sql", &desk.name("query.sql")]).ok();
    assert!(reported.out.contains("580"), "{}", reported.out);
    for form in ["anatomy", "bucketise"] {
        let set = format!("method.form=\"{form}\"");
        let (sink, run) = (format!("sink.url=\"{form}\""), ["--cell-rows", "150"]);
        desk.run(&[&run[..], &["--set", &set, "--set", &sink]].concat()).ok();
        desk.throng("verify", &["--set", &set, "--set", &sink]).ok();
        assert_eq!(manifest(&desk.path(form))["suppressed"], 20);
    }
}

/// Nulls of public people go with those of the source: nobody without a value is hidden, or hides anybody.
#[test]
fn members_without_a_value_are_dropped_with_their_public_rows() {
    let desk = Desk::new();
    let rows = gaps();
    write_parquet(&desk.path("public.parquet"), &rows.project(&[1, 2]).unwrap());
    let inside = BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 3 == 0)));
    let source = filter_record_batch(&rows, &inside).unwrap();
    write_parquet(&desk.path("in.parquet"), &source);
    desk.job(&format!(
        "method.name = \"mpalm\"\nprivacy.presence = {{ public = \"public.parquet\", max = 0.8 }}\ndefaults.nulls = \"drop\"\n{JOB}"
    ));
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let whole = and(&nulls(&source, "age"), &nulls(&source, "town")).unwrap();
    let reported = manifest(&desk.path("out"));
    assert_eq!(reported["rows"], whole.true_count());
    // How many were left out is somebody's secret each: an upper bound in steps of ten is all that is said.
    let left_out = source.num_rows() - whole.true_count();
    assert_eq!(reported["suppressed"], (left_out / 10 + 1) * 10);
    assert_eq!(reported["rows_read"], whole.true_count() + (left_out / 10 + 1) * 10);
    assert_eq!(
        (&reported["rounded"], &reported["dropped"], &reported["cell_rows"]),
        (&true.into(), &Value::Null, &Value::Null)
    );
}
