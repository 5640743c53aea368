//! A run from start to end: stage, verify, commit.
//!
//! ```text
//! <sink>/data/run=<run id>.<attempt>/part-00000-000.parquet   immutable, written first, seen by nobody
//! <sink>/data/run=<run id>.<attempt>/{qit,st}/part-...        the same for a release of two tables
//! <sink>/_manifest/<run id>.json                              written last and only once: the release exists
//! <sink>/_latest                                              points to the newest release
//! <sink>/_SUCCESS                                             for readers that look for it
//! ```
//!
//! Every attempt writes into a folder of its own, so a crashed or a racing one never mixes its files into a release.
//! Between staging and commit the files are read back and checked against the policy by a code path that shares
//! nothing with the grouping; a release that fails the check is removed and never seen. [`crate::ledger`] holds the step that
//! makes it visible, and what a sink remembers of its releases.

mod feasibility;
mod queries;
mod run;

pub use crate::ledger::{
    CellRows, ClassCounts, Manifest, OutputFile, PeopleCounts, QueryScores, Scores, SeriesCounts, SeriesRelease,
    Verification, collect_garbage, latest_run, releases, rollback,
};
pub(crate) use run::find_release;
pub use run::{Outcome, ReleaseCheck, Run, RunOptions};
pub(crate) use run::{SeriesKnowledge, explain_plan};
