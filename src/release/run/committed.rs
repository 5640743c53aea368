//! Committed: readers see the release, or that of another run that was faster.

use std::time::Duration;

use super::prepared::Work;
use crate::engine::Phase;
use crate::error::Result;
use crate::ledger::Commit;
use crate::ledger::guard;
use crate::ledger::manifest::Manifest;

/// A run whose files were read back and keep every promise.
pub(super) struct Verified<'a> {
    pub work: Work<'a>,
    pub manifest: Manifest,
}

/// A run that readers see, if it won.
pub(super) struct Committed {
    pub commit: Commit,
    pub manifest: Manifest,
    /// How long each phase took.
    pub times: Vec<(Phase, Duration)>,
}

impl Verified<'_> {
    /// Makes the release visible, if what was read is still there unchanged.
    pub(super) async fn commit_release(self) -> Result<Committed> {
        let Self { work: Work { run, source, opened, sink, ledger, observer, mut times, .. }, mut manifest } = self;
        let phase = Phase::Commit.begin();
        source.ensure_unchanged().await?;
        if let Some(public) = &opened.public {
            public.source.ensure_unchanged().await?;
        }
        observer(Phase::Commit, None, 0);
        guard::record_earlier(&ledger, &sink, &run.job.sink, &mut manifest).await?;
        run.note_folder(None);
        let manifest = manifest.into_released(run.policy.measures.source)?;
        let commit = ledger.commit_release(&sink, &manifest).await?;
        times.push(phase.finish_phase());
        Ok(Committed { commit, manifest, times })
    }
}
