//! Parts of a run on their own, for the benches and the bindings of this repository. Nothing here is stable.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::encode::row_hashes;
use crate::error::{Error, Result};
use crate::extension::AnonymizeExt;
use crate::model::{Code, Grouping, Table};
use crate::operator::{Anonymize, AnonymizeParams};
use crate::policy::Policy;
use crate::recode::{Groups, publish_column};
use crate::source::Source;
use crate::storage::Stores;

pub use crate::bindings::OpenedJob;
pub use crate::generate::Census;
pub use crate::telemetry::allocator::set_up;

/// A table that has been surveyed, and the parts of the second pass over it.
#[derive(Debug)]
pub struct SecondPass {
    params: Arc<AnonymizeParams>,
    batch: RecordBatch,
    quasi: Vec<ArrayRef>,
}

impl SecondPass {
    /// Surveys a table under a policy and loads it.
    pub async fn open(frame: DataFrame, policy: &Policy) -> Result<Self> {
        let surveyed = frame.clone().anonymize_surveyed(policy).await?;
        let unsurveyed = || Error::internal("the node is not on top of its plan");
        let LogicalPlan::Extension(node) = surveyed.logical_plan() else { return Err(unsurveyed()) };
        let node = node.node.as_any().downcast_ref::<Anonymize>().ok_or_else(unsurveyed)?;
        let params = Arc::clone(node.params().ok_or_else(unsurveyed)?);
        let batches = frame.collect().await?;
        let first = batches.first().ok_or_else(|| Error::input("the table has no rows"))?;
        let batch = concat_batches(&first.schema(), &batches)?;
        let columns = params.encoders.iter().map(|encoder| Arc::clone(batch.column(encoder.column().index)));
        Ok(Self { quasi: columns.collect(), params, batch })
    }

    /// The quasi-identifiers.
    pub fn quasi(&self) -> &[ArrayRef] {
        &self.quasi
    }

    /// Cells that the table is cut into.
    pub fn cells(&self) -> usize {
        self.params.survey.tree.cell_count()
    }

    /// Hashes of the quasi-identifiers of every row.
    pub fn hash_rows(&self) -> Result<Vec<u64>> {
        Ok(row_hashes(&self.quasi, self.batch.num_rows(), 1)?)
    }

    /// The quasi-identifiers as codes.
    pub fn encode_rows(&self) -> Result<Table> {
        let width = self.quasi.len();
        let mut codes: Vec<Code> = vec![0; self.batch.num_rows() * width];
        for (axis, (encoder, array)) in self.params.encoders.iter().zip(&self.quasi).enumerate() {
            encoder.encode_values(array, |row, code| codes[row * width + axis] = code)?;
        }
        Ok(Table::new(Arc::clone(&self.params.axes), codes))
    }

    /// The numbers of the cells of all rows, added up.
    pub fn assign_cells(&self, table: &Table) -> u64 {
        let tree = &self.params.survey.tree;
        (0..table.rows() as u32).map(|row| u64::from(tree.assign_cell(table.row(row)))).sum()
    }

    /// Two parts to be compared: taking the quasi-identifiers in the order of their groups, and recoding them.
    pub fn take_and_recode<R>(
        &self,
        table: &Table,
        grouping: &Grouping,
        with: impl FnOnce(&dyn Fn() -> Result<Vec<ArrayRef>>, &dyn Fn() -> Result<usize>) -> R,
    ) -> R {
        let order: Vec<u32> = (0..table.rows() as u32).collect();
        let groups = Groups::new(table, grouping, &order);
        let taken = || -> Result<Vec<ArrayRef>> {
            self.quasi.iter().map(|column| Ok(take(column, groups.rows(), None)?)).collect()
        };
        let recoded = || -> Result<usize> {
            let columns = self.params.encoders.iter().zip(&self.quasi).enumerate();
            let published = columns.map(|(axis, (encoder, column))| publish_column(encoder, axis, column, &groups));
            Ok(published.collect::<Result<Vec<_>>>()?.len())
        };
        with(&taken, &recoded)
    }
}

/// The rows of a folder of Parquet, as a run scans them.
#[derive(Debug)]
pub struct ScannedFolder {
    /// The scan.
    pub plan: LogicalPlan,
}

impl ScannedFolder {
    /// Opens a folder.
    pub async fn open(context: &SessionContext, base: &Path, folder: &str) -> Result<Self> {
        let (plan, _) = Source::at_url(&Stores::default(), base, folder).await?.scan(context).await?;
        Ok(Self { plan })
    }

    /// Profiles the rows, and returns how many they are.
    pub async fn profile_rows(&self, context: &SessionContext) -> Result<u64> {
        Ok(crate::explore::profile::profile_rows(context, self.plan.clone()).await?.rows)
    }
}
