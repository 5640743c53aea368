//! Everything that is wrong with a job and the columns of its source, found without reading data.

use std::path::Path;

use serde_json::{Value, json};

use crate::engine::SessionOptions;
use crate::error::{Error, Problem, Result};
use crate::policy::{Job, check, check_schema};
use crate::source::Source;
use crate::storage::Stores;

/// The problems of a job.
#[derive(Debug)]
pub(crate) struct JobProblems {
    /// Those of the job itself, its hierarchies and the columns of its source.
    pub problems: Vec<Problem>,
    /// Why the source cannot be opened, unless a problem says so already.
    pub input: Option<Error>,
}

impl JobProblems {
    /// Checks a job whose paths are relative to `base`.
    pub(crate) async fn find_problems(job: &Job, base: &Path) -> Self {
        let mut problems = check(job, base);
        let mut input = None;
        match open_schema(job, base).await {
            Ok(schema) => problems.extend(check_schema(job, &schema)),
            // A source that is missing altogether is in the list already.
            Err(error) if problems.iter().all(|problem| !problem.key.starts_with("source")) => input = Some(error),
            Err(_) => {}
        }
        Self { problems, input }
    }

    /// Returns whether the job can run: remarks do not stop it.
    pub(crate) fn is_fine(&self) -> bool {
        self.input.is_none() && self.problems.iter().all(|problem| !problem.is_error())
    }

    /// Returns the problems for programs.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        let listed = self.problems.iter().map(|problem| {
            let severity = if problem.is_error() { "error" } else { "remark" };
            json!({ "severity": severity, "key": problem.key, "message": problem.message, "help": problem.help })
        });
        let unusable = self
            .input
            .iter()
            .map(|error| json!({ "severity": "error", "key": "source", "message": error.to_string() }));
        listed.chain(unusable).collect()
    }
}

/// The columns of the source of a job.
async fn open_schema(job: &Job, base: &Path) -> Result<datafusion::arrow::datatypes::SchemaRef> {
    let source = Source::find(&Stores::default(), base, job).await?;
    let (context, _spill) = SessionOptions::default().open()?;
    source.scan(&context).await.map(|(_, schema)| schema)
}
