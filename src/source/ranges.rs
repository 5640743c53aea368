//! Scans whose partitions end together.
//!
//! DataFusion cuts the files of a scan into one range of bytes for every partition. A row group is read by the range that
//! it begins in, so that one partition may have half as much again to read as another, which waits for it. All of them
//! take their next range from one queue, though: with several ranges for each the work is shared out as it goes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{
    FileGroup, FileGroupPartitioner, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Ranges that a scan has for every partition.
const RANGES: usize = 16;

/// Bytes of a range that are worth looking into a file once more.
const MIN_BYTES: u64 = 4 << 20;

/// Cuts scans of Parquet files into more ranges than they have partitions.
#[derive(Debug)]
pub(crate) struct FinerRanges;

impl PhysicalOptimizerRule for FinerRanges {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.execution.enable_file_stream_work_stealing {
            return Ok(plan);
        }
        let finer = |node: Arc<dyn ExecutionPlan>| {
            let scan = node.downcast_ref::<DataSourceExec>();
            Ok(match scan.and_then(|scan| split_finer(scan.downcast_to_file_source::<ParquetSource>()?.0)) {
                Some(scan) => Transformed::yes(DataSourceExec::from_data_source(scan) as _),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(finer).data()
    }

    fn name(&self) -> &str {
        "finer_ranges"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same scan with more ranges; `None` if it has an order to keep or reads little.
fn split_finer(scan: &FileScanConfig) -> Option<FileScanConfig> {
    let partitions = scan.file_groups.len();
    let fixed = scan.preserve_order || !scan.output_ordering.is_empty() || scan.output_partitioning.is_some();
    if fixed || partitions < 2 || scan.limit.is_some() {
        return None;
    }
    let bytes: u64 = scan.file_groups.iter().flat_map(FileGroup::iter).map(|file| file.effective_size()).sum();
    let ranges = (bytes / MIN_BYTES).min((partitions * RANGES) as u64) as usize;
    if ranges <= partitions {
        return None;
    }
    let cut = FileGroupPartitioner::new().with_target_partitions(ranges).with_repartition_file_min_size(0);
    let ranges = cut.repartition_file_groups(&scan.file_groups)?;
    // Every partition begins with its share, should it be the only one that runs.
    let groups = ranges.chunks(ranges.len().div_ceil(partitions));
    let groups: Vec<FileGroup> =
        groups.map(|ranges| FileGroup::new(ranges.iter().flat_map(FileGroup::iter).cloned().collect())).collect();
    (groups.len() == partitions).then(|| FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups).build())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::object_store::ObjectStoreUrl;

    use super::*;

    fn scan(groups: &[&[u64]]) -> FileScanConfigBuilder {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
        let file = |size: &u64| PartitionedFile::new(format!("{size}.parquet"), *size);
        let groups = groups.iter().map(|group| FileGroup::new(group.iter().map(file).collect())).collect();
        FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(ParquetSource::new(schema)))
            .with_file_groups(groups)
    }

    #[test]
    fn every_byte_is_read_once_in_as_many_partitions() {
        let sizes = [700_000_000, 1, 50_000_000, 300_000_000];
        let finer = split_finer(&scan(&[&sizes[..3], &sizes[3..]]).build()).unwrap();
        assert_eq!(finer.file_groups.len(), 2);
        for size in sizes {
            let files = finer.file_groups.iter().flat_map(FileGroup::iter);
            let mut next = 0;
            for file in files.filter(|file| file.object_meta.size == size) {
                let (start, end) = file.range();
                assert_eq!(start, next);
                assert!(end - start <= 1_050_000_001_u64.div_ceil(32));
                next = end;
            }
            assert_eq!(next, size);
        }
        let ranges = finer.file_groups.iter().map(FileGroup::len).sum::<usize>();
        assert!((32..36).contains(&ranges), "{ranges}");
    }

    #[test]
    fn what_is_small_or_has_an_order_stays_as_it_is() {
        assert!(split_finer(&scan(&[&[4_000_000], &[4_000_000]]).build()).is_none());
        assert!(split_finer(&scan(&[&[400_000_000]]).build()).is_none(), "nothing to share");
        let large: &[&[u64]] = &[&[400_000_000], &[400_000_000]];
        assert!(split_finer(&scan(large).build()).is_some());
        assert!(split_finer(&scan(large).with_preserve_order(true).build()).is_none());
        assert!(split_finer(&scan(large).with_limit(Some(10)).build()).is_none());
    }
}
