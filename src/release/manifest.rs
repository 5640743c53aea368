//! The manifest of a release: what was published, from what, under which policy, and what the verification found.
//! It holds counts, names and scores; no value of the data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::{Classes, Groups, risk};

/// Version of the manifest's format.
pub const FORMAT: u32 = 1;

/// What a release is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// Version of Throng.
    pub version: String,
    /// Identity of the run.
    pub run: String,
    /// When it was committed.
    pub committed: String,
    /// Identity of policy and hierarchies.
    pub policy: String,
    /// Smallest class that the policy allows.
    pub k: u32,
    /// The method and its seed.
    pub method: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Parameters that were found from a sample.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tuned: BTreeMap<String, f64>,
    /// What was read.
    pub input: Vec<InputFile>,
    /// The public table that people of the source hide among, when the policy names one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public: Vec<InputFile>,
    /// Folder of the released files below the sink.
    pub data: String,
    /// The released files.
    pub files: Vec<OutputFile>,
    /// Published columns and their types.
    pub schema: BTreeMap<String, String>,
    /// Published columns that make up a class.
    pub class_columns: Vec<String>,
    /// Rows read.
    pub rows_read: u64,
    /// Rows published.
    pub rows: u64,
    /// Rows suppressed.
    pub suppressed: u64,
    /// Cells that the table was cut into.
    pub cells: usize,
    /// How much was lost and how well people are protected.
    pub scores: Scores,
    /// What the verification of the written files has found.
    pub verification: Verification,
}

/// One file of the input, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path in its store.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Version tag of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// When it was last changed.
    pub modified: String,
}

/// One file of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Path below the sink.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Bytes.
    pub size: u64,
    /// BLAKE3 of its content.
    pub blake3: String,
}

/// The scores of a release. Losses and disclosures are shares: 0 is best, 1 worst.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Global certainty penalty: mean loss of a published value.
    pub gcp: Option<f64>,
    /// Mean loss of a group.
    pub um: Option<f64>,
    /// Loss of the worst group.
    pub wgu: Option<f64>,
    /// Mean S-diversity of a group.
    pub mpm: Option<f64>,
    /// Range diversity of the worst group.
    pub wgp: Option<f64>,
    /// Discernibility of the published classes.
    pub dm: f64,
    /// Mean class size in units of k.
    pub c_avg: Option<f64>,
    /// Risk of the most exposed person: 1 / smallest class.
    pub risk_max: Option<f64>,
    /// Mean of 1 / class size over people.
    pub risk_mean: Option<f64>,
    /// Mean loss by column.
    pub by_column: BTreeMap<String, f64>,
}

/// What the verification counted in the written files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Rules that were checked and hold.
    pub rules: Vec<String>,
    /// Published classes.
    pub classes: ClassCounts,
}

/// Sizes of the published classes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCounts {
    /// Number of classes.
    pub count: u64,
    /// Size of the smallest.
    pub smallest: u64,
    /// Number of classes by size.
    pub by_size: BTreeMap<u64, u64>,
}

impl From<&Classes> for ClassCounts {
    fn from(classes: &Classes) -> Self {
        Self {
            count: classes.classes(),
            smallest: classes.smallest().unwrap_or(0),
            by_size: classes.histogram().collect(),
        }
    }
}

impl Scores {
    /// Scores of published groups and classes.
    pub fn new(groups: &Groups, classes: &Classes, k: u32, columns: &[String]) -> Self {
        Self {
            gcp: groups.loss.gcp(),
            um: groups.loss.um(),
            wgu: groups.loss.wgu(),
            mpm: groups.protection.mpm(),
            wgp: groups.protection.wgp(),
            dm: classes.dm(groups.loss.suppressed()),
            c_avg: classes.c_avg(u64::from(k)),
            risk_max: risk::prosecutor_max(classes),
            risk_mean: risk::prosecutor_mean(classes),
            by_column: columns.iter().cloned().zip(groups.loss.by_column()).collect(),
        }
    }
}
