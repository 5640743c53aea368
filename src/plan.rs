//! What plans and functions of DataFusion have in common: nodes with one input, partitions that are folded on a task each, and
//! arguments as columns.
//!
//! DataFusion's trait of nodes cannot be implemented for all of them at once, so a macro writes the methods out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::JoinSet;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::ScalarFunctionArgs;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use futures::{FutureExt, TryStreamExt};

use crate::error::{Error, Result};

/// The arguments of a function as columns of the same length.
pub(crate) fn columns_of(args: &ScalarFunctionArgs) -> DataFusionResult<Vec<ArrayRef>> {
    args.args.iter().map(|value| value.to_array(args.number_rows)).collect()
}

/// Runs a task for every part, and merges what they make in the order in which they end. The first error ends all of them.
pub(crate) async fn join_parts<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
    what: &str,
    parts: impl IntoIterator<Item = F>,
    mut merge: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    parts.into_iter().for_each(|part| _ = tasks.spawn(part));
    while let Some(part) = tasks.join_next().await {
        merge(part.map_err(|error| Error::internal(format!("{what} failed: {error}")))??)?;
    }
    Ok(())
}

/// The next rows of a file's stream. A reader that panics has met a file that is not what its footer says.
pub(crate) async fn read_rows(stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
    let read = AssertUnwindSafe(stream.try_next()).catch_unwind().await;
    Ok(read.map_err(|_| Error::damaged_pages())??)
}

/// The plan properties of a node that emits new rows for every partition of its input.
pub(crate) fn unary_properties(
    input: &Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    emission: EmissionType,
) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
        emission,
        input.boundedness(),
    ))
}

/// The methods of `ExecutionPlan` that every node with one input has: it takes the partitions of its input as they come,
/// holds no expressions, and is made anew when its input is exchanged. The node has the fields `input` and `properties`, and
/// a method `with_input` that returns the same node above another plan.
macro_rules! unary_plan {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            mut children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            _options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::error::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            let Some(input) = children.pop() else {
                return datafusion::common::internal_err!(concat!($name, " needs an input"));
            };
            Ok(std::sync::Arc::new(self.with_input(input)?))
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::error::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        }
    };
}

pub(crate) use unary_plan;

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::ColumnarValue;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::{StreamExt, stream};

    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn parts_are_merged_whatever_order_they_end_in() {
        let parts = [3_u64, 1, 2].map(|rounds| async move {
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
            Ok(rounds)
        });
        let mut found = Vec::new();
        join_parts("adding up", parts, |part| {
            found.push(part);
            Ok(())
        })
        .await
        .unwrap();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3]);
    }

    #[tokio::test]
    async fn the_error_of_a_part_and_that_of_merging_end_the_work() {
        let failing = [async { Err::<u8, _>(Error::resources("no space")) }];
        let error = join_parts("reading", failing, |_| Ok(())).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Resources, "no space"));
        let refused = join_parts("reading", [async { Ok(1) }], |_| Err(Error::input("not this"))).await.unwrap_err();
        assert_eq!(refused.message(), "not this");
        let panicking = [async { if true { panic!("a bug") } else { Ok(()) } }];
        let error = join_parts("reading", panicking, |()| Ok(())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.message().starts_with("reading failed"), "{error}");
    }

    #[tokio::test]
    async fn a_reader_that_panics_has_met_a_damaged_file() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![1, 2]))]).unwrap();
        let rows = stream::iter([0, 1]).map(move |at| if at == 0 { Ok(batch.clone()) } else { panic!("an offset") });
        let mut rows: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        assert_eq!(read_rows(&mut rows).await.unwrap().map(|batch| batch.num_rows()), Some(2));
        let error = read_rows(&mut rows).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Input, Error::damaged_pages().message()));
    }

    #[test]
    fn constants_are_as_long_as_columns() {
        let field = Arc::new(Field::new("a", DataType::Int64, true));
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Scalar(ScalarValue::Int64(Some(7)))],
            arg_fields: vec![Arc::clone(&field)],
            number_rows: 3,
            return_field: field,
            config_options: Arc::default(),
        };
        let columns = columns_of(&args).unwrap();
        assert_eq!(columns[0].as_primitive::<Int64Type>().values(), &[7, 7, 7]);
    }
}
