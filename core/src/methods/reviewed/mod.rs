//! Methods of others that the works review or compare with, as their authors describe them.
//!
//! Two that are named beside them are missing on purpose. *mu-Argus* (Hundepool and Willenborg) checks combinations of two and
//! three columns only, so what it publishes need not be k-anonymous and would not pass the verification. *MinGen* (Sweeney)
//! tries every generalisation of every cell and is meant as a definition: what it finds is the optimum, which
//! [`every_way`](crate::grouping::enforce_rules) finds for a handful of rows, and for whole columns
//! [`full-domain`](super::full_domain).

pub mod datafly;
pub mod incognito;
pub mod oka;
pub mod samarati;

use crate::grouping::options::{Key, Kind};
use crate::model::{Grouping, Table};
use crate::privacy::{GroupView, Rules};

/// Rows that may be suppressed.
pub(super) const SUPPRESS: Key = Key::new(
    "suppress",
    "The largest share of the rows that may be suppressed so that fewer columns are raised. Defaults to 0 for `samarati`; \
     `datafly` suppresses up to k rows.",
    Kind::Share,
);

/// The rows of classes that fail a rule.
fn failing_rows(cell: &Table, rules: &Rules, classes: &Grouping) -> usize {
    classes.iter().filter(|rows| !rules.are_met_by(&GroupView::new(cell, rows))).map(<[u32]>::len).sum()
}

/// Classes that meet the rules; the rows of the others are refused.
fn without_failing(cell: &Table, rules: &Rules, classes: &Grouping) -> Grouping {
    let mut grouping = Grouping::with_capacity(cell.rows());
    for rows in classes.iter() {
        if rules.are_met_by(&GroupView::new(cell, rows)) {
            grouping.push(rows);
        } else {
            grouping.refused.extend_from_slice(rows);
        }
    }
    grouping
}
