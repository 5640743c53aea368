//! What an adversary learns from a release: who is in it, who is not, and what is true of them.
//!
//! The adversary holds a public table P that contains everybody of the private table T, and looks at a release of T.
//!
//! | file | attack |
//! |---|---|
//! | [`chase`] | dependencies between columns that undo a generalisation |
//! | [`seats`] | the same, and every row is somebody else |
//! | [`bucket`] | a published bucket as the adversary sees it: public rows that may be in it, published value counts |
//! | [`worlds`] | the reference: try every subset of the public rows (Toth, algorithm 5) |
//! | [`count`] | the same posterior by counting classes of equal rows; bounds where that is too much work |
//! | [`joint`] | overlapping buckets: their union (Toth, 4.1.2) and the stronger joint attack |
//! | [`overlap`] | a whole release: buckets that lie apart one by one, others together, bounds where that is too much work |
//! | [`traces`] | membership without P: fake tuples, matching buckets, the bound of He et al. |
//! | [`confidence`] | shares of people at each confidence level, re-identification and absence rates |
//! | [`linkage`] | prosecutor, journalist and marketer risk, k-map |
//! | [`disclosure`] | homogeneity and range attack on sensitive values |
//! | [`series`] | several releases of the same people: intersection and subtraction |
//! | [`population`] | unique people in the population when there is no P: Pitman, Zayatz, SNB |
//!
//! All posteriors are exact [`Fraction`]s, so that closed bounds are met or missed without rounding.

pub mod bucket;
pub mod chase;
pub mod confidence;
pub mod count;
pub mod disclosure;
pub mod fraction;
pub mod joint;
pub mod linkage;
pub mod overlap;
pub mod population;
pub mod seats;
pub mod series;
mod special;
pub mod traces;
pub mod worlds;

#[cfg(test)]
pub(crate) mod fixtures;

pub use bucket::Bucket;
pub use count::{BUDGET, Belief, Posterior, Verdict, compute_posterior, judge_bucket};
pub use fraction::{Bounds, Fraction};
