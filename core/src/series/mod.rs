//! Releases over time: what a series of releases may show together.
//!
//! A **subject** is what a row is about. Its **history** is the list of classes that it was published in, release by release,
//! "absent" included. The promise of a series:
//!
//! > Take all subjects that have ever been published, and group them by their history. Every such group meets k and every
//! > other rule, on the values that were published of it.
//!
//! It is kept by **cohorts**, classes that never change once they are published: new rows are grouped among themselves, and a
//! cohort leaves as a whole. What is decided here, by counts and rules of real rows and nothing else:
//!
//! - [`retire`]: whether a cohort stays, is split into those who come back together and those who are gone, or is dissolved;
//! - [`terms`]: whether a policy asks at least what another one asks.
//!
//! [`churn`] is who comes and leaves in a simulation.
//!
//! # Choices
//!
//! - The live part of a split cohort comes back alone, as one class. It may happen to be published with the same values as
//!   another class of the night; the two are one cohort then, whose members have different histories.
//! - A cohort is split by histories: of each history that its members have, the gone and the live part must meet the rules.
//! - A history some of whose members were published with other values before is never divided: the rules would have to
//!   hold on the earlier values of both parts too, which nobody has kept.
//! - Who has left with a cohort stays away for good, also when the subject comes back to the source: it would come back from
//!   its group alone.

pub mod churn;
pub mod retire;
pub mod terms;
