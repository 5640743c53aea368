//! How plans are executed: within which limits, in which phase of a run, and where: in this process, or by others.

pub(crate) mod phase;
pub(crate) mod session;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionState;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::policy::Job;
use crate::storage::StoreOptions;
use crate::survey::{Survey, collect_survey};
use crate::verify::PlanExecutor;
pub(crate) use crate::verify::Watch;
pub use phase::Phase;
pub use session::{SessionOptions, SpillFolder};

/// Executes the plans of a run.
#[async_trait]
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Whether the partitions of a plan run in other processes: what a node keeps in memory stays there, and everything
    /// that is to be known must come back as rows.
    fn is_remote(&self) -> bool;

    /// Number of attempts at a pass that fails for a transient reason, such as the loss of a process.
    fn max_attempts(&self) -> usize {
        1
    }

    /// The settings that plans for this engine are made with, for a job that reads and writes these places.
    fn configure(&self, config: SessionConfig, _places: &[StoreLocation]) -> Result<SessionConfig> {
        Ok(config)
    }

    /// Surveys the rows of a plan, whose columns are the quasi-identifiers, then the sensitive ones.
    async fn run_survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        bound_policy: Arc<BoundPolicy>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey>;

    /// Executes a plan over `rows` rows and returns what it emits. The name is the one that a cluster shows.
    async fn collect_rows(
        &self,
        name: &str,
        plan: Arc<dyn ExecutionPlan>,
        rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>>;

    /// Waits until abandoned work has been cancelled.
    async fn wait_for_cancellations(&self) {}

    /// How the plans of both passes are cut into stages, as text; `None` if they run unchanged.
    fn explain_stages(
        &self,
        _survey: Arc<dyn ExecutionPlan>,
        _write: Arc<dyn ExecutionPlan>,
        _bound_policy: &Arc<BoundPolicy>,
        _context: &SessionContext,
    ) -> Result<Option<String>> {
        Ok(None)
    }
}

/// Executes the plans of a verification where a run has its work done.
pub(crate) struct Verifier<'a> {
    /// The engine.
    pub(crate) engine: &'a dyn Engine,
    /// Rows that are verified.
    pub(crate) rows: u64,
    /// Called with every plan.
    pub(crate) watch: &'a Watch<'a>,
}

#[async_trait]
impl PlanExecutor for Verifier<'_> {
    async fn execute_plan(&self, plan: Arc<dyn ExecutionPlan>, state: SessionState) -> Result<Vec<RecordBatch>> {
        let context = SessionContext::new_with_state(state);
        let collect = || self.engine.collect_rows("verify", Arc::clone(&plan), self.rows, &context, self.watch);
        retry_lost(self.engine, collect).await
    }
}

/// Does work on an engine, and repeats it if it runs in other processes and one of them was lost.
pub(crate) async fn retry_lost<T, F: Future<Output = Result<T>>>(
    engine: &dyn Engine,
    work: impl Fn() -> F,
) -> Result<T> {
    let mut tried = 0;
    loop {
        tried += 1;
        match work().await {
            Err(why) if why.is_retryable() && tried < engine.max_attempts() => tracing::warn!("retrying: {why}"),
            done => return done,
        }
    }
}

/// A place that a job reads or writes, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StoreLocation {
    /// Its address.
    pub url: String,
    /// How its store is reached.
    pub options: StoreOptions,
}

impl StoreLocation {
    /// The places of a job.
    pub(crate) fn of_job(job: &Job) -> Vec<Self> {
        let sources = job.source.located_sources();
        let sources = sources.into_iter().map(|(_, spec)| (spec.location().to_owned(), spec.options.clone()));
        let public = job.privacy.presence.as_ref().map(|rule| (rule.public.clone(), job.source.options.clone()));
        let sink = (job.sink.url.clone(), job.sink.options.clone());
        sources.chain(public).chain([sink]).map(|(url, options)| Self { url, options }).collect()
    }
}

/// This process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Local;

#[async_trait]
impl Engine for Local {
    fn is_remote(&self) -> bool {
        false
    }

    async fn run_survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        bound_policy: Arc<BoundPolicy>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey> {
        watch(&plan);
        collect_survey(plan, context.task_ctx(), bound_policy, cell_rows).await
    }

    async fn collect_rows(
        &self,
        _name: &str,
        plan: Arc<dyn ExecutionPlan>,
        _rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>> {
        watch(&plan);
        Ok(collect(plan, context.task_ctx()).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;
    use crate::error::{Error, ErrorKind};

    /// An engine that fails for so many times, for a reason, before it returns no rows.
    #[derive(Debug)]
    struct Failing {
        tries: usize,
        failures: usize,
        kind: ErrorKind,
        calls: AtomicUsize,
    }

    impl Failing {
        fn new(tries: usize, failures: usize, kind: ErrorKind) -> Self {
            Self { tries, failures, kind, calls: AtomicUsize::new(0) }
        }

        fn fail(&self) -> Result<()> {
            match self.calls.fetch_add(1, Ordering::Relaxed) < self.failures {
                true if self.kind == ErrorKind::Retry => Err(Error::retry("an executor is lost")),
                true => Err(Error::input("a file is damaged")),
                false => Ok(()),
            }
        }
    }

    #[async_trait]
    impl Engine for Failing {
        fn is_remote(&self) -> bool {
            true
        }

        fn max_attempts(&self) -> usize {
            self.tries
        }

        async fn run_survey(
            &self,
            _plan: Arc<dyn ExecutionPlan>,
            _context: &SessionContext,
            _bound_policy: Arc<BoundPolicy>,
            _cell_rows: usize,
            _watch: &Watch<'_>,
        ) -> Result<Survey> {
            Err(Error::internal("nothing is surveyed here"))
        }

        async fn collect_rows(
            &self,
            name: &str,
            _plan: Arc<dyn ExecutionPlan>,
            rows: u64,
            _context: &SessionContext,
            _watch: &Watch<'_>,
        ) -> Result<Vec<RecordBatch>> {
            assert_eq!((name, rows), ("verify", 9));
            self.fail().map(|()| Vec::new())
        }
    }

    #[tokio::test]
    async fn lost_work_is_repeated_as_often_as_the_engine_says_and_no_more() {
        for (tries, failures, kind, calls, is_done) in [
            (3, 2, ErrorKind::Retry, 3, true),
            (2, 2, ErrorKind::Retry, 2, false),
            (1, 1, ErrorKind::Retry, 1, false),
            (3, 1, ErrorKind::Input, 1, false),
        ] {
            let engine = Failing::new(tries, failures, kind);
            let done = retry_lost(&engine, || async { engine.fail() }).await;
            assert_eq!((engine.calls.into_inner(), done.is_ok()), (calls, is_done), "{tries} {failures} {kind:?}");
            assert!(done.is_ok() || done.is_err_and(|error| error.kind() == kind));
        }
    }

    /// A verification outlives the loss of an executor as the passes do.
    #[tokio::test]
    async fn plans_of_a_verification_are_repeated_too() {
        let engine = Failing::new(2, 1, ErrorKind::Retry);
        let verifier = Verifier { engine: &engine, rows: 9, watch: &|_| {} };
        let plan = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        let found = verifier.execute_plan(plan, SessionContext::new().state()).await.unwrap();
        assert_eq!((found.len(), engine.calls.load(Ordering::Relaxed)), (0, 2));
    }

    /// Executors must reach everything that a job reads and writes, each as the job says.
    #[test]
    fn all_places_of_a_job_are_named() {
        let text = "version = 1\n[source]\nurl = \"s3://a/in\"\noptions.region = \"eu\"\n[sink]\nurl = \"s3://b/out\"\n\
                    [privacy]\nk = 2\npresence = { public = \"s3://c/all\", min = 0.1, max = 0.9 }\n[columns]\nage.role = \"quasi\"";
        let job = Job::parse(text, Path::new("job.toml")).unwrap();
        let places = StoreLocation::of_job(&job);
        let urls: Vec<&str> = places.iter().map(|place| place.url.as_str()).collect();
        assert_eq!(urls, ["s3://a/in", "s3://c/all", "s3://b/out"]);
        assert_eq!(places[0].options, places[1].options, "a public table is reached as the source is");
        assert_ne!(places[0].options, places[2].options);
    }
}
