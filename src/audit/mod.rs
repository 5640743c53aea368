//! What an adversary learns from published files: the reasoning of [`crate::attack`], run over whole releases by
//! DataFusion. [`crate::verify`] checks whether a release keeps its rules; this measures what can be learned from it.

pub(crate) mod attack;
pub(crate) mod buckets;
pub(crate) mod changes;
pub(crate) mod dependencies;
pub(crate) mod histories;
pub(crate) mod inference;
mod inferred;
pub(crate) mod judge;
mod matching;
mod places;
pub(crate) mod population;
pub(crate) mod presence;
mod seating;
pub(crate) mod series;

pub(crate) use attack::{Attack, Membership, Population, Risks};
pub use dependencies::DependencyScore;
pub use inferred::Inferred;
pub use population::PopulationRisk;
pub(crate) use series::{ColumnExposure, ColumnRelease, SeriesAttack};
