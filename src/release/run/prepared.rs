//! Prepared, then surveyed: source, sink and policy fit together, and pass 1 has found the cells.

use std::sync::Arc;
use std::time::Duration;

use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::DataFrame;

use super::{Observer, Outcome, Run};
use crate::audit::dependencies::{self, DependencyScore};
use crate::binding::BoundPolicy;
use crate::engine::phase::{Begun, Phase};
use crate::error::Result;
use crate::ledger::Ledger;
use crate::ledger::guard;
use crate::operator::AnonymizeParams;
use crate::source::Source;
use crate::source::public::Public;
use crate::storage::Location;

/// What a run reads.
pub(super) struct Opened {
    /// Rows to anonymise: those of the source, beside those of the public table if there is one.
    pub input: LogicalPlan,
    /// What happens to the columns.
    pub bound_policy: Arc<BoundPolicy>,
    /// The public table of the presence rule.
    pub public: Option<Public>,
    /// Rows of the source alone, with their identifiers replaced.
    pub rows: LogicalPlan,
    /// Rows of the source as they are.
    pub scanned: LogicalPlan,
}

/// The context of every stage of a run.
pub(super) struct Work<'a> {
    pub run: &'a Run,
    pub source: &'a Source,
    pub opened: Opened,
    pub sink: Location,
    pub ledger: Ledger,
    /// Identity of the run.
    pub id: String,
    pub observer: &'a Observer<'a>,
    /// The phases that are over.
    pub times: Vec<(Phase, Duration)>,
}

impl<'a> Work<'a> {
    /// Opens source and sink.
    pub(super) async fn open(run: &'a Run, source: &'a Source, observer: &'a Observer<'a>) -> Result<Self> {
        let opened = run.open_source(source).await?;
        let sink = run.sink()?;
        let id = run.run_id(source, opened.public.as_ref(), &opened.bound_policy);
        let ledger = Ledger::for_job(&run.job, &opened.bound_policy)?;
        Ok(Self { run, source, opened, sink, ledger, id, observer, times: Vec::new() })
    }

    /// The release of the same run, if it has been made before.
    pub(super) async fn released_before(&self) -> Result<Option<Outcome>> {
        let Some(done) = self.ledger.committed_manifest(&self.sink, &self.id).await? else { return Ok(None) };
        let outcome = self.run.already_done(done, self.source, self.public_identity())?;
        if let Outcome::AlreadyDone(manifest) = &outcome {
            self.ledger.repair_latest_pointer(&self.sink, manifest).await?;
        }
        Ok(Some(outcome))
    }

    /// Checks that nothing prevents the run.
    pub(super) async fn prepare(mut self, phase: Begun) -> Result<Prepared<'a>> {
        let Opened { bound_policy, public, rows, scanned, .. } = &self.opened;
        self.ledger.ensure_own_sink(&self.sink).await?;
        guard::ensure_first_release(&self.ledger, &self.sink, &self.run.job.sink).await?;
        if let (Some(public), Some(rule)) = (public, &self.run.policy.privacy.presence) {
            public.ensure_public_contains_source(&self.data_frame(scanned), rule, bound_policy).await?;
        }
        self.run.check_feasibility(rows, bound_policy).await?;
        let public_files = public.as_ref().map_or(0, |public| public.source.file_count());
        phase.record_count("files", (self.source.file_count() + public_files) as u64);
        self.times.push(phase.finish_phase());
        Ok(Prepared { work: self })
    }

    /// Identity of the public table as it is now.
    pub(super) fn public_identity(&self) -> Option<String> {
        self.opened.public.as_ref().map(|public| self.run.source_identity(&public.source))
    }

    /// A plan of this run as a data frame of its session.
    pub(super) fn data_frame(&self, plan: &LogicalPlan) -> DataFrame {
        DataFrame::new(self.run.context.state(), plan.clone())
    }
}

/// A run that may begin.
pub(super) struct Prepared<'a> {
    work: Work<'a>,
}

impl<'a> Prepared<'a> {
    /// Pass 1.
    pub(super) async fn survey(self) -> Result<Surveyed<'a>> {
        let mut work = self.work;
        let phase = Phase::Survey.begin();
        let Opened { input, bound_policy, .. } = &work.opened;
        let held = dependencies::check_dependencies(&work.data_frame(input), bound_policy).await?;
        let params = match &work.run.options.survey {
            Some(path) => work.run.known_survey(path, input, Arc::clone(bound_policy)).await?,
            None => work.run.survey_input(input, Arc::clone(bound_policy), work.observer).await?,
        };
        phase.record_count("rows", params.shown_rows());
        if !params.hides_counts() && work.run.policy.measures.source {
            phase.record_count("cells", params.survey.tree.cell_count() as u64);
        }
        work.times.push(phase.finish_phase());
        Ok(Surveyed { work, params, held })
    }
}

/// A run that knows its cells.
pub(super) struct Surveyed<'a> {
    pub work: Work<'a>,
    pub params: Arc<AnonymizeParams>,
    /// How far the dependencies hold in the source.
    pub held: Vec<DependencyScore>,
}
