//! Checks that rows stand in the order of what is published, so that their positions reveal nothing else.
//!
//! - Within a file rows ascend by the columns of their class, then by all other columns, in Arrow's order: nulls first,
//!   floating-point numbers in their total order, text by its bytes.
//! - Files `part-<part>-<number>.parquet` of one part and folder continue each other.
//! - All rows of a class that lie in one folder lie in the files of one part.
//!
//! It is a plan: every part is read from its first row to its last by one partition of `OrderExec`, which counts rows that
//! are out of order and passes on the key of every class that begins. A `GROUP BY` over the keys finds classes that two
//! parts hold. Where executors run it, each reads whole parts; nothing comes together but two numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::expr_fn::{max, min, sum};
use datafusion::logical_expr::{Expr, cast, ident, lit, when};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use object_store::ObjectMeta;

use super::Finding;
use super::order_exec::{CLASS, DISORDERED, OrderExec, PART, order_schema};
use super::plans::{PlanExecutor, collect_numbers};
use crate::error::Result;
use crate::published::read::{PublishedFiles, find_files, read_schemas};

/// The files of every part by number; a part by folder and name.
type Parts<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<u64, ObjectMeta>>;

/// Checks the order of the rows of a release.
pub(crate) async fn check_order(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    files: &PublishedFiles,
    class_columns: &[String],
) -> Result<Vec<Finding>> {
    context.register_object_store(&files.root, Arc::clone(&files.store));
    let found = find_files(files).await?;
    let schemas = read_schemas(context, files, &found).await?;
    let mut misnamed = 0;
    // Files of one schema are one table.
    let mut tables: Vec<(SchemaRef, Parts<'_>)> = Vec::new();
    for ((file, found), schema) in files.files.iter().zip(found).zip(schemas) {
        let (folder, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
        let Some((part, number)) = part_of(name) else {
            misnamed += 1;
            continue;
        };
        let at = tables.iter().position(|(known, _)| *known == schema);
        let at = at.unwrap_or_else(|| {
            tables.push((schema, Parts::new()));
            tables.len() - 1
        });
        let known = tables[at].1.entry((folder, part)).or_default().insert(number, found);
        misnamed += u64::from(known.is_some());
    }
    let (mut rows, mut scattered) = (0, 0);
    for (schema, parts) in tables {
        let table = PartsTable::new(files, schema, parts, class_columns)?;
        let [more_rows, more_scattered] = count_disorder(plans, context, table).await?;
        rows += more_rows;
        scattered += more_scattered;
    }
    let mut findings = Vec::new();
    findings.extend(Finding::if_any("order", misnamed, |count| {
        format!("{count} files have names that do not show which file they continue")
    }));
    findings.extend(Finding::if_any("order", rows, |count| {
        format!("{count} rows are not in the order of their published values")
    }));
    findings.extend(Finding::if_any("order", scattered, |count| {
        format!("{count} classes lie in the files of more than one part")
    }));
    Ok(findings)
}

/// The part that a file belongs to, and its number there.
fn part_of(name: &str) -> Option<(&str, u64)> {
    let (part, number) = name.strip_prefix("part-")?.strip_suffix(".parquet")?.rsplit_once('-')?;
    Some((part, number.parse().ok()?))
}

/// Rows that are out of order, and classes in more than one part of a folder.
async fn count_disorder(plans: &dyn PlanExecutor, context: &SessionContext, table: PartsTable) -> Result<[u64; 2]> {
    let mut state = context.state();
    // Parts are read from their beginning, each by one partition: nothing may divide or exchange files.
    let options = state.config_mut().options_mut();
    options.optimizer.repartition_file_scans = false;
    options.execution.enable_file_stream_work_stealing = false;
    let context = SessionContext::new_with_state(state);
    let classes = context.read_table(Arc::new(table))?.aggregate(
        vec![ident(CLASS)],
        vec![
            min(ident(PART)).alias("first_part"),
            max(ident(PART)).alias("last_part"),
            sum(ident(DISORDERED)).alias("rows"),
        ],
    )?;
    let several = ident(CLASS).is_not_null().and(ident("first_part").not_eq(ident("last_part")));
    let several = when(several, lit(1_i64)).otherwise(lit(0_i64))?;
    let number = |name: &str| -> Expr { cast(ident(name), DataType::Int64) };
    let sums = vec![sum(number("rows")).alias("rows"), sum(number("several")).alias("several")];
    let counted = classes.select(vec![ident("rows"), several.alias("several")])?.aggregate(vec![], sums)?;
    let found = collect_numbers(plans, counted).await?;
    Ok([found[0], found[1]])
}

/// The parts of a release as a table of their classes.
#[derive(Debug)]
struct PartsTable {
    store: ObjectStoreUrl,
    schema: TableSchema,
    /// The files of every part in their order, with the numbers of its folder and of itself.
    parts: Vec<Vec<PartitionedFile>>,
    class_columns: Vec<String>,
}

impl PartsTable {
    fn new(files: &PublishedFiles, schema: SchemaRef, parts: Parts<'_>, class_columns: &[String]) -> Result<Self> {
        let number = |name: &str| Arc::new(Field::new(name, DataType::UInt32, false));
        let schema = TableSchema::builder(schema)
            .with_table_partition_cols(vec![number("__throng_folder"), number("__throng_part")])
            .build();
        let mut folders: BTreeMap<&str, u32> = BTreeMap::new();
        let mut listed = Vec::new();
        for (part, ((folder, _), files)) in parts.into_iter().enumerate() {
            let next = folders.len() as u32;
            let folder = *folders.entry(folder).or_insert(next);
            let place = [folder, part as u32].map(|number| ScalarValue::UInt32(Some(number))).to_vec();
            let placed = |file| PartitionedFile::new_from_meta(file).with_partition_values(place.clone());
            listed.push(files.into_values().map(placed).collect());
        }
        let store = ObjectStoreUrl::parse(&files.root)?;
        Ok(Self { store, schema, parts: listed, class_columns: class_columns.to_vec() })
    }
}

#[async_trait]
impl TableProvider for PartsTable {
    fn schema(&self) -> SchemaRef {
        order_schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        if projection.is_some_and(|columns| !columns.iter().copied().eq(0..order_schema().fields().len())) {
            return internal_err!("the order of a release is read as a whole");
        }
        let mut groups = vec![Vec::new(); state.config().target_partitions().clamp(1, self.parts.len().max(1))];
        let turns = groups.len();
        self.parts.iter().enumerate().for_each(|(part, files)| groups[part % turns].extend(files.iter().cloned()));
        let format = ParquetFormat::default();
        let config = FileScanConfigBuilder::new(self.store.clone(), format.file_source(self.schema.clone()))
            .with_file_groups(groups.into_iter().map(FileGroup::new).collect())
            .with_preserve_order(true)
            .build();
        let rows = format.create_physical_plan(state, config).await?;
        Ok(Arc::new(OrderExec::new(rows, self.class_columns.clone())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use datafusion::arrow::array::{
        ArrayRef, Float64Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray,
    };
    use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::prelude::SessionConfig;
    use object_store::local::LocalFileSystem;

    use super::super::plans::InProcess;
    use super::*;
    use crate::published::read::PublishedFile;

    fn write(folder: &Path, name: &str, columns: Vec<(&str, ArrayRef)>) -> String {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let rows = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        name.to_owned()
    }

    fn file(folder: &Path, name: &str, rows: &[(Option<i32>, &str)]) -> String {
        let ages: ArrayRef = Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0)));
        let ills: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        // The class stands behind the other column: its place in the file does not matter.
        write(folder, name, vec![("ill", ills), ("age", ages)])
    }

    fn found(folder: &Path, files: &[String]) -> Vec<(u64, String)> {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let file = |name: &String| PublishedFile { name: name.clone(), path: name.as_str().into() };
        let files = PublishedFiles {
            store: Arc::new(LocalFileSystem::new_with_prefix(folder).unwrap()),
            root: "test://files".parse().unwrap(),
            files: files.iter().map(file).collect(),
        };
        let mut config = SessionConfig::new().with_target_partitions(3);
        // Files are small; without this, nobody would think of dividing them.
        config.options_mut().optimizer.repartition_file_min_size = 1;
        let context = SessionContext::new_with_config(config);
        let found = runtime.block_on(check_order(&InProcess, &context, &files, &["age".into()])).unwrap();
        assert!(found.iter().all(|finding| finding.rule == "order"));
        found.into_iter().map(|finding| (finding.count, finding.message)).collect()
    }

    #[test]
    fn files_continue_each_other_and_classes_stay_in_one_part() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let files = [
            file(at, "a/part-00000-000.parquet", &[(None, "x"), (Some(1), "a"), (Some(1), "a"), (Some(3), "b")]),
            file(at, "a/part-00000-001.parquet", &[(Some(3), "b"), (Some(3), "c"), (Some(7), "a")]),
            file(at, "a/part-00001-000.parquet", &[(Some(2), "b"), (Some(9), "c")]),
            // Another folder may hold the same class.
            file(at, "b/part-00001-000.parquet", &[(Some(3), "b")]),
        ];
        assert_eq!(found(at, &files), []);
        let turned = [files[1].clone(), files[0].clone()];
        assert_eq!(found(at, &turned), [], "the list need not be in order");
        let swapped = [
            file(at, "c/part-00000-000.parquet", &[(Some(3), "b"), (Some(3), "c")]),
            file(at, "c/part-00000-001.parquet", &[(Some(1), "a"), (Some(3), "b")]),
        ];
        assert_eq!(found(at, &swapped)[0].0, 1, "the second file begins before the first ends");
        let inside = [file(at, "d/part-00000-000.parquet", &[(Some(3), "c"), (Some(3), "b"), (Some(4), "a")])];
        assert_eq!(found(at, &inside)[0].0, 1, "rows of a class are in order too");
        let scattered = [files[0].clone(), files[2].clone(), file(at, "a/part-00002-000.parquet", &[(Some(1), "z")])];
        assert_eq!(found(at, &scattered), [(1, "1 classes lie in the files of more than one part".to_owned())]);
        let named = [file(at, "e/part.parquet", &[(Some(3), "c")])];
        assert_eq!(found(at, &named)[0].0, 1);
    }

    #[test]
    fn every_value_has_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let fields =
            Fields::from(vec![Field::new("min", DataType::Int32, true), Field::new("max", DataType::Int32, true)]);
        let structs = |ends: Vec<(Option<i32>, Option<i32>)>, valid: Vec<bool>| -> ArrayRef {
            let (low, high): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
            let ends: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(low)), Arc::new(Int32Array::from(high))];
            Arc::new(StructArray::new(fields.clone(), ends, Some(valid.into())))
        };
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            None,
            Some(f64::NEG_INFINITY),
            Some(-0.0),
            Some(0.0),
            Some(f64::INFINITY),
            Some(f64::NAN),
        ]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
            None,
            Some(vec![]),
            Some(vec![None]),
            Some(vec![Some(1)]),
            Some(vec![Some(1), Some(0)]),
            Some(vec![Some(2)]),
        ]));
        let ranges = structs(
            vec![
                (None, None),
                (None, None),
                (None, Some(3)),
                (Some(1), Some(2)),
                (Some(1), Some(9)),
                (Some(2), Some(2)),
            ],
            vec![false, true, true, true, true, true],
        );
        for (number, column) in [floats, lists, ranges].into_iter().enumerate() {
            let rows = column.len();
            let back = datafusion::arrow::compute::take(
                &column,
                &datafusion::arrow::array::UInt32Array::from_iter_values((0..rows as u32).rev()),
                None,
            );
            let up = write(folder.path(), &format!("{number}/part-0-0.parquet"), vec![("age", column)]);
            assert_eq!(found(folder.path(), &[up]), []);
            let down = write(folder.path(), &format!("{number}/part-0-1.parquet"), vec![("age", back.unwrap())]);
            assert_eq!(found(folder.path(), &[down])[0].0, rows as u64 - 1);
        }
    }
    /// Several files a part, and more parts than partitions.
    #[test]
    fn parts_are_never_divided() {
        let folder = tempfile::tempdir().unwrap();
        let rows = |from: i32| -> Vec<(Option<i32>, &str)> { (from..from + 500).map(|age| (Some(age), "a")).collect() };
        let name = |part: i32, number: i32| format!("a/part-{part:05}-{number:03}.parquet");
        let mut files = Vec::new();
        for part in 0..5 {
            for number in 0..4 {
                files.push(file(folder.path(), &name(part, number), &rows(part * 10_000 + number * 500)));
            }
        }
        assert_eq!(found(folder.path(), &files), []);
        files[7] = file(folder.path(), &name(1, 3), &rows(0));
        let messages: Vec<u64> = found(folder.path(), &files).into_iter().map(|(count, _)| count).collect();
        assert_eq!(messages, [1, 500], "one row stands before the file it follows, 500 classes lie in two parts");
    }
}
