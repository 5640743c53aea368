//! Everything that touches storage: stage, verify, commit.
//!
//! ```text
//! <sink>/data/run=<run id>.<attempt>/part-00000-000.parquet   immutable, written first, seen by nobody
//! <sink>/_manifest/<run id>.json                              written last and only once: the release exists
//! <sink>/_latest                                              points to the newest release
//! <sink>/_SUCCESS                                             for readers that look for it
//! ```
//!
//! Every attempt writes into a folder of its own, so a crashed or a racing one never mixes its files into a release.
//! Between staging and commit the files are read back and checked against the policy by a code path that shares
//! nothing with the grouping; a release that fails the check is removed and never seen.

mod attack;
mod boxes;
mod commit;
mod cover;
mod location;
mod manifest;
mod matching;
mod presence;
mod public;
mod run;
mod session;
mod source;
mod verify;
mod write;

pub use attack::{Attack, Membership, Population, Risks};
pub use commit::{Latest, collect_garbage, latest_run, releases, roll_back};
pub use location::Location;
pub use manifest::{ClassCounts, InputFile, Manifest, OutputFile, Scores, Verification};
pub use matching::Matching;
pub(crate) use run::find_release;
pub use run::{Observer, Outcome, Phase, Run, RunOptions, plan};
pub use session::{SessionOptions, SpillFolder};
pub use source::Source;
pub use verify::{Finding, verify_against_source, verify_release};
