//! Settings before a release: what a dataset looks like and which job suits it ([`profile`]), and what other
//! settings would do ([`Trials`]), and what no setting can do ([`LossBound`]). Nothing is published.

mod bound;
pub(crate) mod profile;
mod row_hash;
pub(crate) mod trial;

pub(crate) use bound::LossBound;
pub(crate) use trial::{Setting, Trial, Trials};
