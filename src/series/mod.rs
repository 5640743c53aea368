//! Releases over time: one night of a series, from the rows of today and the ledger of yesterday to rows to publish and the
//! ledger of tomorrow. What it decides, and why that is safe, is in [`throng_core::series`].
//!
//! 1. `night` merges the source with the ledger by subject: new, live, changed, gone, withheld (a sort and a merge, which
//!    spill). Subjects that are there twice, or nobody, end the run here.
//! 2. `retirement` looks at cohorts whose share of stale rows is due, one after another, with the values that were published of
//!    their members and those that they have now.
//! 3. `grouping` groups new rows among themselves by the ordinary operator, with the digest of the subject as a column beside
//!    them, and publishes what is left of every split cohort as one class. What would lose too much is left over, and waits.
//! 4. `tomorrow` is the next version of the ledger, and what there is to count.
//!
//! `arrivals` is for rows without an identity, which are known by the files that they came in. `key` makes digests, `state` keeps versions of the ledger, `scratch` the tables of a night. The release room writes the
//! files, has them verified and commits; [`crate::audit::histories`] recounts the promise of the series from what was written.
//!
//! # The ledger
//!
//! | column | what it is |
//! |---|---|
//! | `subject` | keyed digest of the columns that tell subjects apart, 32 bytes |
//! | `cohort` | the cohort that the row is published in: a digest of its class and of the release it was born in |
//! | `history` | a digest of all cohorts so far: subjects with one history have one value |
//! | `quasi`, `content` | keyed digests of the quasi-identifiers it was published by, and of what was published as it is |
//! | `state` | 1 live, 2 stale, 3 withheld, 4 waiting (nothing published yet) |
//! | `since` | the release in which it was first published, or first met and left waiting |
//! | `revised` | whether it was published with other values before |
//! | `moved` | the release in which its cohort last changed |
//!
//! A row counts as changed when a quasi-identifier or anything that is published as it is has changed, also when what is
//! published of it would still be true.

pub(crate) mod arrivals;
pub(crate) mod counts;
mod deal;
pub(crate) mod grouping;
pub(crate) mod key;
mod merge;
pub(crate) mod night;
pub(crate) mod retirement;
pub(crate) mod scratch;
pub(crate) mod state;
pub(crate) mod terms;
pub(crate) mod tomorrow;
