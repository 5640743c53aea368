//! Rows with equal keys in one partition, one after the other: an exchange and a sort, both of DataFusion, which spill by
//! themselves.

use std::sync::Arc;

use datafusion::error::Result as DataFusionResult;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::error::Result;

/// Sorts every partition by some columns. With `exchange` rows with equal keys meet in one partition first; without, every
/// row stays in its own. Without columns nothing changes.
pub(super) fn together(
    rows: Arc<dyn ExecutionPlan>,
    columns: &[impl AsRef<str>],
    exchange: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let key = |name: &str| Ok(Arc::new(Column::new_with_schema(name, &schema)?) as Arc<dyn PhysicalExpr>);
    let keys = columns.iter().map(|name| key(name.as_ref())).collect::<DataFusionResult<Vec<_>>>()?;
    let Some(order) = LexOrdering::new(keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)))) else {
        return Ok(rows);
    };
    let partitions = rows.output_partitioning().partition_count();
    let exchanged: Arc<dyn ExecutionPlan> = match partitions {
        0 | 1 => rows,
        _ if !exchange => rows,
        _ => Arc::new(RepartitionExec::try_new(rows, Partitioning::Hash(keys, partitions))?),
    };
    Ok(Arc::new(SortExec::new(order, exchanged).with_preserve_partitioning(true)))
}
