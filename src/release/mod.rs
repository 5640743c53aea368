//! Everything that touches storage: stage, verify, commit.
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
//! nothing with the grouping; a release that fails the check is removed and never seen.

mod anatomy;
mod attack;
mod boxes;
mod buckets;
mod classes;
mod cloud;
mod commit;
mod cover;
#[cfg(feature = "delta")]
mod delta;
mod dependencies;
mod engine;
mod feasibility;
mod inference;
mod judge;
mod known;
mod ledger;
mod location;
mod manifest;
mod matching;
mod phase;
mod places;
mod population;
mod presence;
#[cfg(feature = "aws")]
mod profile;
mod public;
mod queries;
mod ranges;
mod run;
mod session;
mod source;
mod stores;
mod together;
mod trial;
mod upload;
mod verify;
mod vocabulary;
mod write;

pub use attack::{Attack, Membership, Population, Risks};
pub use commit::Latest;
pub(crate) use cover::Published;
pub use engine::{Engine, Local, Place, Watch};
pub use feasibility::Report;
pub use ledger::{collect_garbage, latest_run, releases, roll_back};
pub use location::Location;
pub use manifest::{
    CellRows, ClassCounts, DependencyScore, Inferred, InputFile, Manifest, OutputFile, PeopleCounts, QueryScores,
    Scores, Verification,
};
pub use matching::Matching;
#[cfg(feature = "cluster")]
pub(crate) use phase::known_rows;
pub use phase::{PHASES, Phase, rows_read, spilled_bytes};
pub use population::PopulationRisk;
pub(crate) use run::find_release;
pub use run::{Observer, Outcome, Run, RunOptions, Verified, plan};
#[cfg(feature = "cluster")]
pub(crate) use session::unique_name;
pub use session::{SessionOptions, SpillFolder};
pub use source::Source;
pub use stores::{Service, Stores};
pub use trial::{Setting, Trial, Trials};
#[cfg(feature = "cluster")]
pub(crate) use upload::Uploads;
pub use verify::{Finding, verify_against_source, verify_release};
pub(crate) use verify::{count_classes, fingerprint, readable};
#[cfg(feature = "cluster")]
pub(crate) use write::{Target, WriteExec};
