//! Exploration before a release: what a dataset looks like and which job suits it ([`profile`]), what other
//! settings would do ([`Trials`], over nights [`SeriesTrials`]), and what no setting can achieve ([`LossBound`]). Nothing is published.

mod bound;
mod compared_bound;
mod nights;
mod problems;
pub(crate) mod profile;
mod row_hash;
pub(crate) mod trial;

pub(crate) use bound::LossBound;
pub(crate) use compared_bound::{BoundRequest, ComparedBound, prove_job_bound};
pub(crate) use nights::{SeriesSetting, SeriesTrial, SeriesTrials, Simulation};
pub(crate) use problems::JobProblems;
pub(crate) use trial::{Setting, Trial, Trials, ensure_job_runs};
