//! The bound of a job beside what the job itself loses on the same rows.

use std::path::Path;

use serde::Serialize;

use super::bound::LossBound;
use super::trial::{Setting, Trials, ensure_job_runs};
use crate::engine::SessionOptions;
use crate::error::{Error, Result};
use crate::policy::Job;

/// Maximum number of rows that a bound is proven for by default: with more, the search takes long.
const MAX_ROWS: u64 = 200_000;

/// A bound beside what the job loses on the same rows.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedBound {
    /// The bound.
    #[serde(flatten)]
    pub bound: LossBound,
    /// The job's method.
    pub method: String,
    /// Its loss; `None` if its rules cannot be met.
    pub lost: Option<f64>,
    /// How many times the bound that is.
    pub times: Option<f64>,
}

/// What bounds are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundRequest {
    /// Values of k. Defaults to that of the job.
    pub ks: Vec<u32>,
    /// Rounds of search. Defaults to [`LossBound::ROUNDS`].
    pub rounds: Option<usize>,
    /// Prove it for about this many rows, chosen at random.
    pub sample: Option<u64>,
}

impl BoundRequest {
    /// Proves a bound for every k and calls `begin` before each; also returns the number of rows of the source.
    pub(crate) async fn prove_bounds(
        &self,
        job: &Job,
        base: &Path,
        session: &SessionOptions,
        begin: &(dyn Fn(u32) + Sync),
    ) -> Result<(Vec<ComparedBound>, u64)> {
        ensure_job_runs(job, base)?;
        let trials = Trials::open_source(job, base, session).await?;
        let rows = match self.sample {
            Some(sample) => trials.sample_rows(sample, job.method.seed.unwrap_or_default()).await?,
            None => {
                refuse_many_rows(trials.rows())?;
                trials.sample_rows(trials.rows(), 0).await?
            }
        };
        let ks = if self.ks.is_empty() { vec![job.privacy.k] } else { self.ks.clone() };
        let mut found = Vec::new();
        for k in ks {
            begin(k);
            let setting = Setting::new(job.method.name, k);
            let bound = trials.compute_bound(&rows, k, self.rounds.unwrap_or(LossBound::ROUNDS)).await?;
            let trial = trials.run_trial(&rows, setting).await?;
            let lost = trial.scores.and_then(|scores| scores.gcp);
            let times = lost.and_then(|lost| bound.loss_ratio(lost));
            found.push(ComparedBound { bound, method: trial.method, lost, times });
        }
        Ok((found, trials.rows()))
    }
}

/// Proves the bound of a job for all rows of its source.
pub(crate) async fn prove_job_bound(job: &Job, base: &Path, session: &SessionOptions) -> Result<LossBound> {
    ensure_job_runs(job, base)?;
    let trials = Trials::open_source(job, base, session).await?;
    refuse_many_rows(trials.rows())?;
    let rows = trials.sample_rows(trials.rows(), 0).await?;
    trials.compute_bound(&rows, job.privacy.k, LossBound::ROUNDS).await
}

fn refuse_many_rows(rows: u64) -> Result<()> {
    if rows <= MAX_ROWS {
        return Ok(());
    }
    Err(Error::job(format!(
        "the source has {rows} rows, and a bound for more than {MAX_ROWS} takes very long; use `throng bound --sample` to prove \
         one for some of them, or `--sample {rows}` if you can wait"
    )))
}
