//! What a reader who knows the dependencies of a policy has found: counts, never who.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::verify::Finding;

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a reader who knows the dependencies makes of a release: among which rows of their class people can still hide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inferred {
    /// Rows in the smallest set of rows of a class that still fit somebody who may be one of them.
    pub smallest: u64,
    /// Number of different such sets.
    pub classes: u64,
    /// Those with fewer than k rows.
    pub small_classes: u64,
    /// Rows whose person may have to hide in one of them.
    pub exposed_rows: u64,
    /// Rows for which this is undecided, because counting who can be where took too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided_rows: u64,
    /// Rules that do not hold in some of the sets, and in how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breaches: BTreeMap<String, u64>,
    /// Quasi-identifiers that were withheld to prevent this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

impl Inferred {
    /// Whether anybody is hidden less well than the policy requires.
    pub fn is_exposed(&self) -> bool {
        self.exposed_rows > 0 || !self.breaches.is_empty()
    }

    /// What was not examined; `None` if everything was.
    pub fn undecided(&self) -> Option<String> {
        let rows = self.undecided_rows;
        (rows > 0).then(|| format!("it is undecided for {rows} rows whether the dependencies expose them"))
    }

    /// What does not hold under a k; `None` if everything does.
    pub fn finding(&self, k: u32) -> Option<Finding> {
        let mut messages = Vec::new();
        if self.exposed_rows > 0 {
            let rows = self.exposed_rows;
            messages.push(format!("{rows} rows fit people whom fewer than k = {k} rows of their class fit"));
        }
        for (rule, sets) in &self.breaches {
            messages.push(format!("{rule} does not hold among {sets} sets of rows that fit somebody"));
        }
        let message = format!("to a reader who knows the dependencies, {}", messages.join(", and "));
        self.is_exposed().then(|| Finding { rule: "inference".into(), count: self.exposed_rows.max(1), message })
    }
}
