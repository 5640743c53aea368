//! Trials of settings: the whole job except its release. A trial groups rows under a policy and scores the result;
//! nothing is written but spill files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, ident, lit};
use datafusion::physical_plan::collect;
use datafusion::prelude::{DataFrame, SessionContext};
use serde::{Deserialize, Serialize};

use super::row_hash::row_hash;
use crate::engine::session::{SessionOptions, SpillFolder};
use crate::error::{Error, ErrorKind, Result};
use crate::grouping::options::Value;
use crate::ledger::manifest::{Scores, round_figures};
use crate::measure::classification::Minority;
use crate::measure::{Classes, Groups};
use crate::methods::toc;
use crate::operator::{Anonymize, AnonymizeExec};
use crate::policy::{Form, Inference, Job, MethodName, MethodSpec, Policy, Queries, check};
use crate::published::content_key;
use crate::source::Source;
use crate::storage::Stores;

/// Settings that are tried instead of those of the job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Setting {
    /// Smallest class.
    pub k: u32,
    /// Grouping method.
    pub method: MethodName,
    /// Weight of utility, for `toc`.
    pub w_utility: Option<f64>,
    /// Whether every rule of l-diversity asks for l = k.
    pub l_is_k: bool,
}

impl Setting {
    /// A method at some k, and all else as the job has it.
    pub(crate) fn new(method: MethodName, k: u32) -> Self {
        Self { k, method, w_utility: None, l_is_k: false }
    }

    /// Lists the settings of a sweep: every method at every k, and `toc` with every weight.
    pub(crate) fn list_settings(methods: &[MethodName], ks: &[u32], weights: &[f64]) -> Vec<Self> {
        let mut settings = Vec::new();
        for &method in methods {
            let weights: Vec<Option<f64>> = match method.as_str() {
                "toc" if !weights.is_empty() => weights.iter().copied().map(Some).collect(),
                _ => vec![None],
            };
            for w_utility in weights {
                settings.extend(ks.iter().map(|&k| Self { w_utility, ..Self::new(method, k) }));
            }
        }
        settings
    }

    /// Returns the name of the setting in tables: the method, and its weight if it has one.
    pub(crate) fn name(&self) -> String {
        match self.w_utility {
            Some(weight) => format!("{} (w-utility {weight})", self.method.as_str()),
            None => self.method.as_str().to_owned(),
        }
    }

    /// The job with this setting in it. Suppression is measured rather than refused, and what dependencies give away is
    /// left to the run: a trial has no files to follow them through.
    pub(super) fn apply_to_job(&self, job: &Job) -> Job {
        let mut job = job.clone();
        job.privacy.k = self.k;
        job.privacy.max_suppression = 1.0;
        job.privacy.inference = Inference::Warn;
        if self.l_is_k {
            job.privacy.l_diversity.iter_mut().for_each(|rule| rule.l = f64::from(self.k));
        }
        job.method = self.method_of(&job);
        // Nobody asks the usual queries of a form that publishes values as they are.
        if job.measures.queries.is_none() && job.method.form() == Form::Generalise {
            job.measures.queries = Some(Queries::USUAL);
        }
        job
    }

    /// The `[method]` table of the job with this setting in it.
    pub(crate) fn method_of(&self, job: &Job) -> MethodSpec {
        let mut method = job.method.clone();
        if method.name != self.method {
            // The form is usual for one method and nothing to another; options stand in the table of each.
            method = MethodSpec { name: self.method, form: None, slices: None, ..method };
        }
        if let Some(weight) = self.w_utility {
            let options = std::mem::take(method.options_mut());
            *method.options_mut() =
                options.without_option(&toc::W_PROTECTION).with_option(&toc::W_UTILITY, Value::Number(weight));
        }
        method
    }
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Smallest class.
    pub k: u32,
    /// Method, with its weight where it has one.
    pub method: String,
    /// Rows that were looked at.
    pub rows: u64,
    /// Rows that would be suppressed.
    pub suppressed: u64,
    /// Classes that would be published.
    pub classes: u64,
    /// Scores of what would be published; `None` if the rules cannot be met.
    pub scores: Option<Scores>,
    /// Why the rules cannot be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Time of survey and grouping, in seconds.
    pub seconds: f64,
    /// Peak memory of the whole process during the trial, in bytes, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// Rejects a job that cannot run.
pub(crate) fn ensure_job_runs(job: &Job, base: &Path) -> Result<()> {
    let problems: Vec<String> =
        check(job, base).iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::job(problems.join("\n"))) }
}

/// A job that is tried out under other settings.
pub(crate) struct Trials {
    pub(super) job: Job,
    pub(super) base: PathBuf,
    pub(super) context: SessionContext,
    /// Held because dropping it removes the folder.
    _spill: SpillFolder,
    source: DataFrame,
    rows: u64,
}

impl Trials {
    /// Opens the source of a job.
    pub(crate) async fn open_source(job: &Job, base: &Path, session: &SessionOptions) -> Result<Self> {
        let (context, spill) = session.open()?;
        let source = Source::find(&Stores::default(), base, job).await?;
        let (plan, _) = source.scan(&context).await?;
        let source = DataFrame::new(context.state(), plan);
        let rows = source.clone().count().await? as u64;
        Ok(Self { job: job.clone(), base: base.to_owned(), context, _spill: spill, source, rows })
    }

    /// Rows of the source.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns all rows of the source.
    pub(crate) fn all_rows(&self) -> DataFrame {
        self.source.clone()
    }

    /// Returns about `rows` rows, chosen by their content and a seed, held in memory.
    pub(crate) async fn sample_rows(&self, rows: u64, seed: u64) -> Result<DataFrame> {
        if rows >= self.rows {
            return Ok(self.source.clone().cache().await?);
        }
        let ceiling = (u64::MAX as f64 * (rows as f64 / self.rows as f64)) as u64;
        let columns = self.source.schema().columns().into_iter().map(Expr::Column).collect();
        Ok(self.source.clone().filter(row_hash(columns, seed).lt(lit(ceiling)))?.cache().await?)
    }

    /// Groups rows under a setting and scores the result.
    pub(crate) async fn run_trial(&self, rows: &DataFrame, setting: Setting) -> Result<Trial> {
        let policy = Arc::new(Policy::of_checked(&setting.apply_to_job(&self.job), &self.base)?);
        forget_peak();
        let started = Instant::now();
        let found = self.group_rows(rows.clone().into_unoptimized_plan(), &policy).await;
        let mut trial = Trial {
            k: setting.k,
            method: setting.name(),
            rows: 0,
            suppressed: 0,
            classes: 0,
            scores: None,
            refused: None,
            seconds: started.elapsed().as_secs_f64(),
            memory: peak_memory(),
        };
        match found {
            Ok(Found { groups, classes, minority, columns }) => {
                trial.suppressed = groups.loss.suppressed();
                trial.rows = groups.loss.rows() + trial.suppressed;
                trial.classes = classes.classes();
                let cm = minority.and_then(|minority| minority.cm(trial.suppressed));
                trial.scores =
                    Some(round_figures(&Scores { cm, ..Scores::new(&groups, &classes, setting.k, &columns) })?);
            }
            Err(error) if error.kind() == ErrorKind::Privacy => trial.refused = Some(error.to_string()),
            Err(other) => return Err(other),
        }
        Ok(trial)
    }

    async fn group_rows(&self, rows: LogicalPlan, policy: &Arc<Policy>) -> Result<Found> {
        let node = Anonymize::new(rows, Arc::clone(policy))?;
        let bound_policy = Arc::clone(node.bound_policy());
        let label = policy.measures.class.as_deref();
        // Without labels a class is all of one.
        let label_of_row = label.map_or_else(|| lit(0_i64), ident).alias("label");
        let keys = vec![content_key(&bound_policy.class_columns()).alias("class"), label_of_row];
        let sizes = DataFrame::new(self.context.state(), node.into_plan())
            .aggregate(keys, vec![count(lit(1)).alias("alike")])?
            .aggregate(
                vec![ident("class")],
                vec![sum(ident("alike")).alias("size"), max(ident("alike")).alias("most")],
            )?
            .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes"), sum(ident("most")).alias("most")])?;
        let plan = sizes.create_physical_plan().await?;
        let (mut classes, mut minority) = (Classes::default(), Minority::default());
        for batch in collect(Arc::clone(&plan), self.context.task_ctx()).await? {
            let [size, number, most] =
                [0, 1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>().values().to_vec());
            for ((size, number), most) in size.into_iter().zip(number).zip(most) {
                classes.add_classes(size as u64, number as u64);
                minority.add_majority((size * number) as u64, most as u64);
            }
        }
        let columns = bound_policy.quasi.iter().map(|column| column.name.clone()).collect();
        let groups = AnonymizeExec::find_measures(&plan)
            .unwrap_or_else(|| Groups::new(bound_policy.quasi.len(), bound_policy.sensitive.len()));
        Ok(Found { groups, classes, minority: label.map(|_| minority), columns })
    }
}

/// What a trial would publish.
struct Found {
    groups: Groups,
    classes: Classes,
    /// Labels that are not of their class's majority, when the job names a column of labels.
    minority: Option<Minority>,
    /// Names of the quasi-identifiers.
    columns: Vec<String>,
}

/// Resets the system's peak-memory counter. Only Linux supports it.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak memory of the process since then.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
