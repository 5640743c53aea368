//! The manifest of a release: what was published, from what, under which policy, and what the verification found.
//! It holds counts, names and scores; no value of the data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::population::PopulationRisk;
use crate::job::{Form, Role};
use crate::measure::dependency::Preserved;
use crate::measure::workload::QueryError;
use crate::measure::{Cells, Classes, Groups, Information, People, Workload, risk};
use crate::privacy::Figures;

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
    /// Seed of all random choices; not told where it helps to undo them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How groups are published, when it is not by generalising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Columns of the source that stay together inside a group, in forms whose groups have numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Vec<String>>,
    /// Parameters that were found from a sample.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tuned: BTreeMap<String, f64>,
    /// What was read.
    pub input: Vec<InputFile>,
    /// Hash of what was read and how: of every file with its whole path, which `input` may show in part, and of a query
    /// and its options.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
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
    /// Role of every column of the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Role>,
    /// Rows read.
    pub rows_read: u64,
    /// Rows published.
    pub rows: u64,
    /// Rows suppressed.
    pub suppressed: u64,
    /// Those of them that were left out because of a null, as the policy says.
    #[serde(default, skip_serializing_if = "none")]
    pub dropped: u64,
    /// Cells that the table was cut into.
    pub cells: usize,
    /// Rows of the smallest and of the largest of them; not told by older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_rows: Option<CellRows>,
    /// How much was lost and how well people are protected.
    pub scores: Scores,
    /// The dependencies of the policy: how well they hold in the source, and what the release preserves of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependencyScore>,
    /// Risks in the population, as far as a public table or its size is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationRisk>,
    /// What the verification of the written files has found.
    pub verification: Verification,
}

/// How alike the cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRows {
    /// Rows of the smallest cell.
    pub smallest: u64,
    /// Rows of the largest cell.
    pub largest: u64,
}

impl CellRows {
    /// What the cells of a run tell; nothing when no row was read.
    pub(super) fn of(cells: Cells) -> Option<Self> {
        (cells.count > 0).then_some(Self { smallest: cells.smallest, largest: cells.largest })
    }
}

/// How a functional dependency fares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DependencyScore {
    /// `from -> to`.
    pub name: String,
    /// Share of the source's rows that must go for it to hold.
    pub violations: f64,
    /// Distinct combinations of its values in the source.
    pub instances: u64,
    /// Dependency loss of an instance, on average: 0 when some row publishes it as it was, 1 when all of it is lost.
    pub loss: Option<f64>,
    /// Share of instances that some row publishes without loss.
    pub preserved: Option<f64>,
    /// Instances that were looked at, when there are too many to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<u64>,
}

/// What a reader who knows the dependencies makes of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inferred {
    /// Size of the smallest class once the dependencies have been applied.
    pub smallest: u64,
    /// Number of classes then.
    pub classes: u64,
    /// Classes with fewer than k rows.
    pub small_classes: u64,
    /// Rows in them.
    pub exposed_rows: u64,
    /// Quasi-identifiers that were withheld so that there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

fn none(rows: &u64) -> bool {
    *rows == 0
}

impl Manifest {
    /// How groups are published.
    pub fn form(&self) -> Form {
        self.form.unwrap_or(Form::Generalise)
    }
}

/// One file of the input, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path in its store; values of folder columns that are not published are left out.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Version of a Delta table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
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
    /// Normalised certainty penalty: the loss of every published value, added up.
    #[serde(default)]
    pub ncp: f64,
    /// The same per published value: the loss metric (LM).
    #[serde(default)]
    pub lm: Option<f64>,
    /// Sum over rows of the share of the domain that their values cover (ILoss).
    #[serde(default)]
    pub iloss: f64,
    /// Sum of the levels of all published values: minimal distortion (MD), and AG.
    #[serde(default)]
    pub distortion: u64,
    /// Sum of level over height, over the columns with a hierarchy.
    #[serde(default)]
    pub genc: f64,
    /// 1 minus the mean of level over height.
    #[serde(default)]
    pub precision: Option<f64>,
    /// Values published as the top of their column.
    #[serde(default)]
    pub suppressed_values: u64,
    /// Range diversity that a row can expect.
    #[serde(default)]
    pub rd_of_a_row: Option<f64>,
    /// Rows by the range diversity of their group, in hundredths, rounded up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rows_by_rd: BTreeMap<u8, u64>,
    /// Share of rows in groups whose range diversity is above the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprotected: Option<f64>,
    /// Classification metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cm: Option<f64>,
    /// Bits lost over all published values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_uniform_entropy: Option<f64>,
    /// Entropy measure in bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// KL divergence by value, base 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kl: Option<f64>,
    /// The same with one term for each published range where values form ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kl_by_range: Option<f64>,
    /// KL divergence of all quasi-identifiers together, in nats; an upper bound with several cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint_kl: Option<f64>,
    /// Chance to guess all quasi-identifiers of a row from what is published of it, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstruction_mean: Option<f64>,
    /// The same of the row that is easiest to guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstruction_max: Option<f64>,
    /// Relative error of COUNT queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<QueryScores>,
    /// Dependency loss of an instance of any dependency, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_loss: Option<f64>,
}

/// Relative errors of COUNT queries on the release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryScores {
    /// Queries with an answer above 0.
    pub count: usize,
    /// Queries whose true answer is 0, which have no relative error.
    pub empty: usize,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub worst: f64,
}

/// The mean over the instances of all dependencies; none without any.
fn dependency_loss(preserved: &[Preserved]) -> Option<f64> {
    let instances: usize = preserved.iter().map(Preserved::instances).sum();
    let losses = preserved.iter().filter_map(|one| Some(one.loss()? * one.instances() as f64));
    (instances > 0).then(|| losses.sum::<f64>() / instances as f64)
}

impl From<QueryError> for QueryScores {
    fn from(error: QueryError) -> Self {
        let QueryError { queries, empty, mean, median, worst } = error;
        Self { count: queries, empty, mean, median, worst }
    }
}

/// What the verification counted in the written files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Rules that were checked and hold.
    pub rules: Vec<String>,
    /// Published classes.
    pub classes: ClassCounts,
    /// The same to a reader who knows the dependencies of the policy, when it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inferred>,
    /// The same counted in people, when k does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<PeopleCounts>,
    /// How well each guarded column is protected, by every rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attained: BTreeMap<String, Figures>,
}

/// Classes counted in people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeopleCounts {
    /// Number of people by class.
    pub classes: ClassCounts,
    /// Digest of the classes that were counted; see [`People`].
    pub digest: String,
}

impl From<&People> for PeopleCounts {
    fn from(people: &People) -> Self {
        Self { classes: people.classes().into(), digest: people.digest().to_string() }
    }
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
        let divergence = groups.information.as_ref().and_then(Information::divergence);
        let queries = groups.workload.as_ref().and_then(Workload::error);
        let values = groups.loss.rows() as f64 * columns.len() as f64;
        // Whoever looks for a person chooses among people, not rows.
        let people = groups.people.as_ref().map_or(classes, People::classes);
        Self {
            gcp: groups.loss.gcp(),
            um: groups.loss.um(),
            wgu: groups.loss.wgu(),
            mpm: groups.protection.mpm(),
            wgp: groups.protection.wgp(),
            dm: classes.dm(groups.loss.suppressed()),
            c_avg: classes.c_avg(u64::from(k)),
            risk_max: risk::prosecutor_max(people),
            risk_mean: risk::prosecutor_mean(people),
            by_column: columns.iter().cloned().zip(groups.loss.by_column()).collect(),
            ncp: groups.loss.ncp(),
            lm: (values > 0.0).then(|| groups.loss.ncp() / values),
            iloss: groups.generalisation.iloss(),
            distortion: groups.generalisation.distortion(),
            genc: groups.generalisation.genc(),
            precision: groups.generalisation.precision(),
            suppressed_values: groups.generalisation.suppressed_values(),
            rd_of_a_row: groups.protection.mean_rd_of_a_row(),
            rows_by_rd: groups.protection.by_disclosure().collect(),
            unprotected: groups.protection.unprotected(),
            cm: None,
            non_uniform_entropy: divergence.map(|found| found.non_uniform_entropy),
            entropy: divergence.map(|found| found.entropy),
            kl: divergence.map(|found| found.kl),
            kl_by_range: divergence.map(|found| found.kl_by_range),
            joint_kl: divergence.map(|found| found.joint_kl),
            reconstruction_mean: divergence.map(|found| found.reconstruction_mean),
            reconstruction_max: divergence.map(|found| found.reconstruction_max),
            queries: queries.map(QueryScores::from),
            dependency_loss: dependency_loss(&groups.dependencies),
        }
    }
}
