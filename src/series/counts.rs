//! What a release of a series says of itself in its manifest: counts, never who.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::SeriesMode;

/// A release as one of a series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRelease {
    /// Its number in the series; the first is 1.
    pub number: u64,
    /// What the source of the series is.
    pub mode: SeriesMode,
    /// Digest of the version of the private ledger that belongs to the release.
    pub ledger: String,
    /// Smallest class that cohorts of this release were made with; older ones may have been made with a lower k.
    pub k: u32,
    /// What became of the rows.
    pub counts: SeriesCounts,
    /// Seconds that releases are kept for; for ever without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<u64>,
    /// The release in which the rows of each file were first published.
    pub born: BTreeMap<String, u64>,
    /// Mean loss of the values that were first published in each release.
    pub losses: BTreeMap<u64, f64>,
}

/// What became of the rows of a release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesCounts {
    /// Subjects that are published for the first time.
    pub new: u64,
    /// Subjects that were published before and came back in a class of those who are left of theirs.
    pub returned: u64,
    /// Subjects that wait for enough others.
    pub waiting: u64,
    /// Subjects that have waited for as long as they may, and found no class.
    pub suppressed: u64,
    /// Published rows that are not in the source any more.
    pub gone: u64,
    /// Published rows whose subject has other values by now.
    pub changed: u64,
    /// Classes that left in this release.
    pub retired_classes: u64,
    /// Rows of theirs.
    pub retired: u64,
    /// Subjects of the source that have left with a class and are not published again.
    pub withheld: u64,
    /// Subjects of the source that must not be published again.
    pub forgotten: u64,
}

impl SeriesCounts {
    /// Published rows that are not as the source has them.
    pub fn stale(&self) -> u64 {
        self.gone + self.changed
    }

    /// Rows of the source, by what became of them, when so many rows are published.
    pub fn read(&self, published: u64) -> Option<u64> {
        published.checked_sub(self.gone)?.checked_add(self.waiting + self.suppressed + self.withheld + self.forgotten)
    }
}
