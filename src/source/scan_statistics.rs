//! Drops the column statistics of file scans. Only the numbers of rows and bytes stay.
//!
//! They do harm in two ways:
//!
//! - They are raw values. `EXPLAIN VERBOSE`, the plans that are sent to a cluster and the logs of its processes show the
//!   smallest and the largest value of every column that is read.
//! - They leave NaN out: the smallest and the largest value of {1.0, NaN} are both 1.0. DataFusion 55 takes equal bounds
//!   of a column without nulls for proof that it holds one single value (`constant_columns_from_stats` in the opener of
//!   `datafusion-datasource-parquet`) and reads that value instead of the column, so that every NaN turns into a number.
//!   `min` and `max` are answered from the same bounds.
//!
//! What is lost: files are not passed over by their bounds before they are opened. Row groups still are, by the footer.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::faults::Fault;

/// Removes column statistics from scans. Must run before every rule that answers from statistics.
#[derive(Debug)]
pub(crate) struct DropColumnStatistics;

impl PhysicalOptimizerRule for DropColumnStatistics {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        drop_column_statistics(plan)
    }

    fn name(&self) -> &str {
        "drop_column_statistics"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same plan with scans without column statistics.
pub(crate) fn drop_column_statistics(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if Fault::TrustedStatistics.is_planted() {
        return Ok(plan);
    }
    plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref());
        Ok(match scan.filter(|scan| knows_columns(scan)) {
            Some(scan) => Transformed::yes(DataSourceExec::from_data_source(without_columns(scan)) as _),
            None => Transformed::no(node),
        })
    })
    .data()
}

fn knows_columns(scan: &FileScanConfig) -> bool {
    let of_files = scan.file_groups.iter().flat_map(FileGroup::iter).filter_map(|file| file.statistics.as_deref());
    let of_groups = scan.file_groups.iter().filter_map(|group| group.file_statistics(None));
    let is_known = |statistics: &Statistics| {
        statistics.column_statistics.iter().any(|column| *column != ColumnStatistics::new_unknown())
    };
    of_files.chain(of_groups).any(is_known) || is_known(&scan.statistics())
}

fn without_columns(scan: &FileScanConfig) -> FileScanConfig {
    let groups = scan.file_groups.iter().map(|group| {
        let files = group.iter().map(|file| PartitionedFile {
            statistics: file.statistics.as_deref().map(|statistics| Arc::new(forget(statistics))),
            ..file.clone()
        });
        let files = FileGroup::new(files.collect());
        match group.file_statistics(None) {
            Some(statistics) => files.with_statistics(Arc::new(forget(statistics))),
            None => files,
        }
    });
    let groups = groups.collect();
    let statistics = forget(&scan.statistics());
    FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups).with_statistics(statistics).build()
}

fn forget(statistics: &Statistics) -> Statistics {
    let mut statistics = statistics.clone();
    statistics.column_statistics.fill(ColumnStatistics::new_unknown());
    statistics
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use datafusion::arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{Float32Type, Float64Type};
    use datafusion::execution::SessionStateBuilder;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
    use datafusion::prelude::{ParquetReadOptions, SessionContext};

    use super::*;

    fn write(path: &Path) {
        let columns: [(&str, ArrayRef); 3] = [
            ("wide", Arc::new(Float64Array::from(vec![1.0, f64::NAN, 1.0, f64::NAN]))),
            ("narrow", Arc::new(Float32Array::from(vec![f32::NAN, 2.0, 2.0, 2.0]))),
            ("whole", Arc::new(Int64Array::from(vec![7; 4]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
    }

    fn guarded() -> SessionContext {
        let mut rules = PhysicalOptimizer::new().rules;
        rules.insert(0, Arc::new(DropColumnStatistics));
        let builder = SessionStateBuilder::new().with_default_features().with_physical_optimizer_rules(rules);
        SessionContext::new_with_state(builder.build())
    }

    async fn answer(context: &SessionContext, path: &Path, sql: &str) -> RecordBatch {
        let path = path.to_str().unwrap();
        context.register_parquet("t", path, ParquetReadOptions::default()).await.unwrap();
        let found = context.sql(sql).await.unwrap().collect().await.unwrap();
        datafusion::arrow::compute::concat_batches(&found[0].schema(), &found).unwrap()
    }

    /// How many values of the first two columns are NaN.
    async fn nans(context: &SessionContext, path: &Path) -> (usize, usize) {
        let rows = answer(context, path, "SELECT * FROM t").await;
        let wide = rows.column(0).as_primitive::<Float64Type>().values().iter().filter(|value| value.is_nan());
        let narrow = rows.column(1).as_primitive::<Float32Type>().values().iter().filter(|value| value.is_nan());
        (wide.count(), narrow.count())
    }

    #[tokio::test]
    async fn what_is_no_number_stays_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write(&path);
        let context = guarded();
        assert_eq!(nans(&context, &path).await, (2, 1));
        let top = answer(&guarded(), &path, "SELECT max(wide) FROM t").await;
        assert!(top.column(0).as_primitive::<Float64Type>().value(0).is_nan(), "not answered from statistics");
        let plan = context.sql("SELECT whole, wide FROM t").await.unwrap().create_physical_plan().await.unwrap();
        let scan =
            plan.downcast_ref::<DataSourceExec>().unwrap().data_source().downcast_ref::<FileScanConfig>().unwrap();
        assert!(!knows_columns(scan));
        assert_eq!(scan.statistics().num_rows.get_value(), Some(&4), "the number of rows is not a value");
    }

    /// Whoever may ask for a plan learns no value by it, on the host's own session too.
    #[tokio::test]
    async fn a_plan_shows_no_value_of_the_rows_below_anonymize() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let ages: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40).map(|row| 918_273 + row)));
        let rows = RecordBatch::try_from_iter([("age", ages)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let context = SessionContext::new();
        crate::extension::register(&context).unwrap();
        context.sql("SET datafusion.explain.show_statistics = true").await.unwrap().collect().await.unwrap();
        let released = "anonymize((SELECT * FROM t), k => 5, quasi => ['age'])";
        context.register_parquet("t", path.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
        for (explain, plain) in [("EXPLAIN", "SELECT * FROM t"), ("EXPLAIN VERBOSE", "SELECT * FROM t")] {
            let show = async |query: &str| {
                let shown = context.sql(&format!("{explain} {query}")).await.unwrap().collect().await.unwrap();
                datafusion::arrow::util::pretty::pretty_format_batches(&shown).unwrap().to_string()
            };
            assert!(show(plain).await.contains("918273"), "statistics are shown");
            let shown = show(&format!("SELECT * FROM {released}")).await;
            assert!(shown.contains("AnonymizeExec") && !shown.contains("918273"), "{shown}");
            assert!(!shown.contains("918312"), "{shown}");
        }
    }

    /// Fails when DataFusion reads such columns rightly: then this module can go.
    #[tokio::test]
    async fn datafusion_still_takes_equal_bounds_for_a_constant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write(&path);
        assert_eq!(nans(&SessionContext::new(), &path).await, (0, 0));
    }
}
