//! Staged: pass 2 has grouped and written the rows, and nobody sees them yet.

use std::sync::Arc;

use object_store::path::Path;

use super::prepared::{Surveyed, Work};
use crate::audit::Inferred;
use crate::audit::dependencies::DependencyScore;
use crate::audit::inference::{self, Verdict};
use crate::error::Result;
use crate::ledger;
use crate::ledger::lease::Lease;
use crate::measure::Groups;
use crate::operator::AnonymizeParams;
use crate::release::phase::Phase;
use crate::release::verify;
use crate::storage::Location;
use crate::write::{WrittenFile, unique_name};

/// The folder of a run below its sink, kept from `gc` by a lease.
pub(super) struct Folder {
    sink: Location,
    name: String,
    lease: Lease,
}

impl Folder {
    /// Makes a folder for what a run is about to write.
    pub(super) async fn open(work: &Work<'_>) -> Result<Self> {
        let (sink, name) = (work.sink.clone(), format!("data/run={}.{}", work.id, unique_name()));
        work.run.note_folder(Some((sink.clone(), sink.at(&name))));
        let lease = Lease::create_in(&sink, &sink.at(&name)).await?;
        Ok(Self { sink, name, lease })
    }

    /// Name below the sink.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> Path {
        self.sink.at(&self.name)
    }

    /// Gives the lease back; what was written stays.
    pub(super) async fn keep(self) {
        self.lease.release_lease().await;
    }

    /// Leaves the lease where it is: the next run sees from it that something is left to do.
    pub(super) fn leave_unsettled(self) {
        drop(self.lease);
    }

    /// Gives the lease back, and removes what was written.
    pub(super) async fn discard(self) {
        let (sink, path) = (self.sink.clone(), self.path());
        self.lease.release_lease().await;
        ledger::discard_folder(&sink, &path).await;
    }
}

impl<'a> Surveyed<'a> {
    /// Pass 2, into a folder. Where a reader could infer too much by the dependencies of the policy, less is published, and
    /// the pass begins again.
    pub(super) async fn stage(self, folder: &'a Folder) -> Result<Staged<'a>> {
        let Self { mut work, mut params, held } = self;
        let (run, path) = (work.run, folder.path());
        let phase = Phase::Group.begin();
        let (files, measures, inferred) = loop {
            let target = run.write_target(&work.sink, &path, &work.id, &params.bound_policy);
            let (files, measures) =
                run.group_rows(work.opened.input.clone(), &params, target, work.observer, &phase).await?;
            if run.policy.dependencies.is_empty() {
                break (files, measures, None);
            }
            let bound_policy = &params.bound_policy;
            let written = verify::open_written(&run.context, &work.sink, folder.name(), &files, bound_policy).await?;
            match inference::chase_before_publishing(&written, &work.data_frame(&work.opened.rows), bound_policy)
                .await?
            {
                Verdict::Publish(inferred) => break (files, measures, inferred),
                Verdict::Withhold(bound_policy) => {
                    ledger::delete_unreported(&work.sink, &path, &[]).await?;
                    params = Arc::new(AnonymizeParams::new(Arc::new(*bound_policy), params.survey.clone())?);
                }
            }
        };
        if run.engine.is_remote() {
            ledger::delete_unreported(&work.sink, &path, &files).await?;
        }
        work.times.push(phase.finish_phase());
        Ok(Staged { work, params, held, folder, files, measures, inferred })
    }
}

/// A run whose files are written.
pub(super) struct Staged<'a> {
    pub work: Work<'a>,
    /// What the rows were made by.
    pub params: Arc<AnonymizeParams>,
    pub held: Vec<DependencyScore>,
    pub folder: &'a Folder,
    pub files: Vec<WrittenFile>,
    /// What pass 2 has measured.
    pub measures: Groups,
    /// What the dependencies reveal to a reader.
    pub inferred: Option<Inferred>,
}
