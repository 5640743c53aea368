//! Rows through records and back, against a plain sort of the values.

use datafusion::arrow::array::{Float64Array, Int32Array, ListArray, RecordBatch, StringViewArray, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
use datafusion::physical_plan::execute_stream_partitioned;
use futures::TryStreamExt;
use proptest::prelude::*;

use super::*;

fn order(partition_by: &[&str], class: &[&str], two_tables: bool) -> PublishedOrder {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (partition_by, class) = (names(partition_by), names(class));
    PublishedOrder { partition_by, class, two_tables, with_measures: false, batch_rows: 8192, k: 5 }
}

/// The tables of every partition in their published order.
fn arranged(partitions: &[Vec<RecordBatch>], order: &PublishedOrder, batch_rows: usize) -> Vec<Vec<RecordBatch>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let schema = partitions[0][0].schema();
        let rows = MemorySourceConfig::try_new_exec(partitions, Arc::clone(&schema), None).unwrap();
        let plan = order.arrange_rows(rows, partitions.len()).unwrap();
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut found = Vec::new();
        for records in execute_stream_partitioned(plan, Arc::new(TaskContext::default())).unwrap() {
            let reservation = MemoryConsumer::new("test").register(&pool);
            let expander = Expander::try_new(&schema, order, reservation, batch_rows).unwrap();
            let Tables { pump, streams, .. } = expander.read_tables(records).unwrap();
            let read = streams.into_iter().map(|stream| async move {
                let schema = stream.schema();
                let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
                let (last, others) = batches.split_last().map_or((0, &[][..]), |(last, rest)| (last.num_rows(), rest));
                assert!(others.iter().all(|batch| batch.num_rows() == batch_rows) && last <= batch_rows);
                concat_batches(&schema, &batches).unwrap()
            });
            let (_, tables) = futures::join!(pump, futures::future::join_all(read));
            found.push(tables);
        }
        found
    })
}

/// Rows as text, in their order.
fn lines(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let columns: Vec<_> =
        rows.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap()).collect();
    let line = |row: usize| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..rows.num_rows()).map(line).collect()
}

fn sample(rows: &[(Option<u8>, Option<u8>, u8)]) -> RecordBatch {
    let word = |number: Option<u8>| number.map(|number| format!("a label of the number {number}"));
    let class: ArrayRef = Arc::new(rows.iter().map(|row| word(row.0)).collect::<StringViewArray>());
    let kept: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        rows.iter().map(|row| row.1.map(|length| (0..length % 3).map(|item| Some(i32::from(item))))),
    ));
    let value: ArrayRef = Arc::new(Float64Array::from_iter_values(
        rows.iter().map(|row| [f64::NAN, -0.0, 0.0, 1.5][usize::from(row.2 % 4)]),
    ));
    let number: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| i32::from(row.2))));
    RecordBatch::try_from_iter_with_nullable(vec![
        ("kept", kept, true),
        ("class", class, true),
        ("value", value, true),
        ("number", number, true),
    ])
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The same rows in whatever order and partitions give the same files, each sorted by class and then by the rest.
    #[test]
    fn published_order_follows_from_published_values_alone(
        rows in prop::collection::vec((prop::option::of(0_u8..5), prop::option::of(any::<u8>()), any::<u8>()), 1..300),
        cut in 0_usize..300,
        batch_rows in 1_usize..64,
    ) {
        let order = order(&[], &["class"], false);
        let cut = cut.min(rows.len());
        let mut turned = rows.clone();
        turned.rotate_left(cut);
        let forth = arranged(&[vec![sample(&rows[..cut]), sample(&rows[cut..])], vec![sample(&[])]], &order, batch_rows);
        let back = arranged(&[vec![sample(&turned)], vec![sample(&[])]], &order, batch_rows);
        let mut count = 0;
        for (a, b) in forth.iter().zip(&back) {
            prop_assert_eq!(lines(&a[0]), lines(&b[0]));
            count += a[0].num_rows();
            let columns = [1, 0, 2, 3].map(|column| Arc::clone(a[0].column(column)));
            let bytes = row_converter(columns.iter().map(|column| column.data_type())).unwrap();
            let bytes = bytes.convert_columns(&columns).unwrap();
            prop_assert!((1..a[0].num_rows()).all(|row| bytes.row(row - 1) <= bytes.row(row)));
        }
        prop_assert_eq!(count, rows.len());
        let classes = |part: &Vec<RecordBatch>| -> std::collections::BTreeSet<String> {
            lines(&part[0].project(&[1]).unwrap()).into_iter().collect()
        };
        prop_assert!(classes(&forth[0]).is_disjoint(&classes(&forth[1])));
    }
}

/// Classes of many thousand rows, in long runs and short ones, in many batches.
#[test]
fn large_classes_are_merged_in_order() {
    let mut rows: Vec<(Option<u8>, Option<u8>, u8)> = Vec::new();
    for round in 0..40_u32 {
        let length = if round % 3 == 0 { 3000 } else { 100 };
        rows.extend((0..length).map(|row| (Some((round % 2) as u8), Some((row % 7) as u8), (row * 31 % 251) as u8)));
    }
    let batches: Vec<RecordBatch> = rows.chunks(1000).map(sample).collect();
    let found = arranged(&[batches], &order(&[], &["class"], false), 512);
    let found = &found[0][0];
    assert_eq!(found.num_rows(), rows.len());
    let columns = [1, 0, 2, 3].map(|column| Arc::clone(found.column(column)));
    let bytes =
        row_converter(columns.iter().map(|column| column.data_type())).unwrap().convert_columns(&columns).unwrap();
    assert!((1..found.num_rows()).all(|row| bytes.row(row - 1) <= bytes.row(row)));
    let (mut before, mut after) = (lines(&sample(&rows)), lines(found));
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after);
}

/// Each of two tables is ordered by its own columns: where a value stood beside a row reveals nothing.
#[test]
fn two_tables_are_ordered_apart() {
    let numbers = |values: &[Option<u64>]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let side_by_side = RecordBatch::try_from_iter_with_nullable(vec![
        ("age", numbers(&[Some(3), Some(1), Some(2), Some(9), Some(8)]), true),
        ("group", numbers(&[Some(7), Some(7), Some(7), Some(4), Some(4)]), false),
        ("illness", numbers(&[Some(50), Some(20), None, Some(6), Some(5)]), true),
        ("count", numbers(&[Some(1), Some(2), None, Some(1), Some(1)]), true),
    ])
    .unwrap();
    let found = arranged(&[vec![side_by_side]], &order(&[], &["group"], true), 8192);
    assert_eq!(lines(&found[0][0]), ["8|4", "9|4", "1|7", "2|7", "3|7"]);
    assert_eq!(lines(&found[0][1]), ["4|5|1", "4|6|1", "7|20|2", "7|50|1"]);
}

/// Rows of a folder stand together and in one partition.
#[test]
fn folders_come_before_classes() {
    let rows: Vec<_> = (0..200_u8).map(|row| (Some(row % 5), Some(row), row % 3)).collect();
    let found = arranged(&[vec![sample(&rows)], vec![sample(&rows)]], &order(&["number"], &["class"], false), 50);
    let mut seen = std::collections::BTreeSet::new();
    for part in &found {
        let numbers = lines(&part[0].project(&[3, 1]).unwrap());
        assert!(numbers.is_sorted());
        let folders: std::collections::BTreeSet<String> = numbers.iter().map(|line| line[..1].to_owned()).collect();
        assert!(seen.is_disjoint(&folders));
        seen.extend(folders);
    }
    assert_eq!(seen.len(), 3);
}
