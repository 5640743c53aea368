//! Staged: pass 2 has grouped and written the rows, and nobody sees them yet.

use std::sync::Arc;

use object_store::path::Path;

use super::prepared::{Surveyed, Work};
use crate::agreement::files;
use crate::audit::Inferred;
use crate::audit::dependencies::DependencyScore;
use crate::audit::inference::{self, Verdict};
use crate::engine::Phase;
use crate::error::Result;
use crate::ledger;
use crate::ledger::lease::Lease;
use crate::measure::Groups;
use crate::operator::AnonymizeParams;
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
            let target = run.write_target(&work.sink, &path, &work.id, &params.bound_policy, run.engine.is_remote());
            let (files, measures) =
                run.group_rows(work.opened.input.clone(), &params, target, work.observer, &phase).await?;
            if run.policy.dependencies.is_empty() {
                break (files, measures, None);
            }
            let bound_policy = &params.bound_policy;
            let written = files::open_written(&run.context, &work.sink, folder.name(), &files, bound_policy).await?;
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
        warn_of_repair(run.policy.method.name.as_str(), &measures);
        Ok(Staged { work, params, held, folder, files, measures, inferred })
    }
}

/// Warns where most groups are not those of the method that the job names. How many they are may follow from suppressed rows.
fn warn_of_repair(method: &str, measures: &Groups) {
    if 2 * measures.placement.repair > measures.loss.rows() && !measures.published.hides_counts {
        tracing::warn!(
            "most published rows are in groups that repair has made: `{method}` found none for them that meet the rules; \
             `throng sweep` counts them (`placed_by_repair`)"
        );
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

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::ExecutionPlan;
    use object_store::{ObjectStoreExt, PutPayload};

    use super::super::tests::Lab;
    use super::*;
    use crate::source::Source;

    fn ignore(_: Phase, _: Option<&Arc<dyn ExecutionPlan>>, _: u64) {}

    /// A folder of a run with a file in it, and what is left of both in the end.
    async fn left_after(end: impl AsyncFnOnce(Folder)) -> Vec<String> {
        let lab = Lab::new().await;
        let run = lab.run("monday");
        let source = Source::find(&run.options.stores, &run.base, &run.job).await.unwrap();
        let work = Work::open(&run, &source, &ignore).await.unwrap();
        let folder = Folder::open(&work).await.unwrap();
        assert!(folder.name().starts_with("data/run=monday."), "{}", folder.name());
        assert_ne!(folder.name(), Folder::open(&work).await.unwrap().name(), "every attempt has its own");
        let file = folder.path().join("part.parquet");
        work.sink.store.put(&file, PutPayload::from_static(b"rows")).await.unwrap();
        let name = format!("out/{}/", folder.name());
        end(folder).await;
        let paths = lab.paths().await;
        paths.iter().filter_map(|path| path.strip_prefix(&name).map(str::to_owned)).collect()
    }

    #[tokio::test]
    async fn a_folder_ends_as_its_run_does() {
        assert_eq!(left_after(Folder::keep).await, ["part.parquet"], "released");
        assert_eq!(left_after(Folder::discard).await, [""; 0], "failed");
        let unsettled = left_after(async |folder: Folder| folder.leave_unsettled()).await;
        assert_eq!(unsettled, ["_lease", "part.parquet"], "the next run sees that something is left to do");
    }
}
