//! A lower bound on the loss of any release of a job's rows, proven for the rows it was computed on.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use datafusion::prelude::DataFrame;
use serde::{Deserialize, Serialize};

use super::trial::{Setting, Trials};
use crate::auto::{Auto, Effort};
use crate::bound::lower_bound;
use crate::encode::{ColumnEncoder, without_nulls};
use crate::error::{Error, Result};
use crate::grouping::Method;
use crate::grouping::cancel::{CancelOnDrop, run_cancellable};
use crate::model::{Axis, Table};
use crate::operator::survey_plan;
use crate::policy::{Nulls, Policy};
use crate::privacy::Rules;
use crate::recode::replace_identifiers;
use crate::survey::collect_survey;

/// A lower bound on the loss of any release of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub(crate) struct LossBound {
    /// Rows that it was computed on.
    pub rows: u64,
    /// Smallest class.
    pub k: u32,
    /// Mean loss (GCP) that no local recoding of these rows goes below, rounded down.
    pub gcp: f64,
}

impl LossBound {
    /// Rounds of search by default.
    pub(crate) const ROUNDS: usize = 12;

    /// How many times the bound a loss is, rounded up; `None` where nothing need be lost.
    pub(crate) fn loss_ratio(&self, lost: f64) -> Option<f64> {
        (self.gcp > 0.0).then(|| (1000.0 * lost / self.gcp).ceil() / 1000.0)
    }

    /// What it says of a release that publishes `rows` rows and loses so much; `None` if it is about other rows.
    pub(crate) fn judge_release(&self, k: u32, rows: u64, lost: Option<f64>) -> Option<String> {
        if (self.k, self.rows) != (k, rows) {
            return None;
        }
        let within = lost.and_then(|lost| self.loss_ratio(lost));
        let within =
            within.map_or_else(String::new, |times| format!(": this one is within {times:.3} times the best possible"));
        Some(format!(
            "no release of these {rows} rows in classes of {k} or more loses less than {:.4}{within}",
            self.gcp
        ))
    }
}

/// Decimal places of a bound.
const PLACES: f64 = 1e4;

impl Trials {
    /// Computes the bound for some rows and a class size in the given number of rounds of search.
    pub(crate) async fn compute_bound(&self, rows: &DataFrame, k: u32, rounds: usize) -> Result<LossBound> {
        let table = self.encode_rows(rows, k).await?;
        let cancel = CancelOnDrop::default();
        let flag = cancel.flag();
        let search = tokio::task::spawn_blocking(move || {
            run_cancellable(flag, || {
                let grouping = Auto::new(Effort::Balanced).group(&table, &Rules::k(k as usize), 0);
                (table.rows() as u64, lower_bound(&table, k as usize, &grouping, rounds))
            })
        });
        let (rows, bound) = search.await.map_err(|error| Error::internal(format!("the search failed: {error}")))?;
        let bound = bound.ok_or_else(|| Error::internal("the audit of a bound has failed"))?;
        Ok(LossBound { rows, k, gcp: (bound.loss * PLACES).floor() / PLACES })
    }

    /// The quasi-identifiers of rows as codes, in one table.
    async fn encode_rows(&self, rows: &DataFrame, k: u32) -> Result<Table> {
        let job = Setting::new(self.job.method.name, k).apply_to_job(&self.job);
        let policy = Arc::new(Policy::of_checked(&job, &self.base)?);
        let (input, bound_policy) = replace_identifiers(rows.clone().into_unoptimized_plan(), policy)?;
        if bound_policy.member.is_some() {
            return Err(Error::job("privacy.presence: there is no bound for rows that hide in a public table"));
        }
        let bound_policy = Arc::new(bound_policy);
        let columns = DataFrame::new(self.context.state(), survey_plan(&input, &bound_policy)?).cache().await?;
        let plan = columns.create_physical_plan().await?;
        let found =
            collect_survey(Arc::clone(&plan), self.context.task_ctx(), Arc::clone(&bound_policy), usize::MAX).await?;
        let encoders =
            bound_policy.quasi.iter().zip(&found.stats).map(|(column, stats)| ColumnEncoder::new(column, stats));
        let encoders = encoders.collect::<Result<Vec<_>>>()?;
        let axes: Arc<[Axis]> = encoders.iter().map(|encoder| encoder.axis().clone()).collect();
        let dropping: Vec<usize> =
            (0..encoders.len()).filter(|&column| bound_policy.quasi[column].nulls == Nulls::Drop).collect();
        let mut codes = Vec::new();
        for batch in collect(plan, self.context.task_ctx()).await? {
            let (batch, _) = without_nulls(&batch, dropping.iter().map(|&column| batch.column(column)), None)?;
            let from = codes.len();
            codes.resize(from + batch.num_rows() * axes.len(), 0);
            for (axis, encoder) in encoders.iter().enumerate() {
                encoder.encode_values(batch.column(axis), |row, code| codes[from + row * axes.len() + axis] = code)?;
            }
        }
        Ok(Table::new(axes, codes))
    }
}
