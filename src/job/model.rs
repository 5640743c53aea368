//! The job file as plain data: where rows come from and go to, what each column is, what the release must satisfy.
//!
//! Every type here mirrors a part of the TOML file; the doc comments become the descriptions of its JSON schema.
//! Nothing is resolved or opened here: hierarchies are still paths, methods still names. Values that may be written
//! in more than one way (one rule or a list of rules, a path or a table) are read by `forms`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forms;
use crate::hierarchy::InlineTree;

/// A Throng job: anonymise a table by a policy and publish the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Job {
    /// Version of the job file's format. This is version 1.
    pub version: u32,
    /// Where the rows come from.
    pub source: Source,
    /// Where the release goes.
    pub sink: Sink,
    /// What the release must satisfy.
    pub privacy: Privacy,
    /// What holds for columns that `columns` does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,
    /// Every column of the source by name.
    #[serde(default)]
    pub columns: BTreeMap<String, Column>,
    /// How rows are grouped.
    #[serde(default)]
    pub method: MethodSpec,
    /// How the released files are written.
    #[serde(default)]
    pub output: Output,
}

/// Where the rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Source {
    /// Parquet: a file, a folder, a glob or an object-store prefix. A relative path starts at the job file's folder.
    pub url: String,
}

/// Where the release goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sink {
    /// A folder or an object-store prefix. A relative path starts at the job file's folder.
    pub url: String,
}

/// What the release must satisfy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Privacy {
    /// Every combination of published quasi-identifier values occurs at least this often. At least 2.
    #[schemars(range(min = 2))]
    pub k: u32,
    /// The largest share of rows that may be left out of the release.
    #[serde(default = "default_max_suppression")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_suppression: f64,
    /// The largest mean information loss of any group over its quasi-identifiers (U). No bound when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_loss: Option<f64>,
    /// Bounds on how surely a sensitive value can be placed in a range (P). One rule, or a list of rules.
    #[serde(default, deserialize_with = "forms::one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "forms::one_or_many_schema::<RangeDiversity>")]
    pub range_diversity: Vec<RangeDiversity>,
    /// Demands on the variety of sensitive values in every group. One rule, or a list of rules.
    #[serde(default, deserialize_with = "forms::one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "forms::one_or_many_schema::<LDiversity>")]
    pub l_diversity: Vec<LDiversity>,
    /// Hides who is in the source at all from readers who hold a public table of people (delta-presence).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<Presence>,
}

/// delta-presence: from the release and a public table, nobody's chance to be in the source may be told better than
/// between two bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Presence {
    /// Parquet with everybody who might be in the source, and everybody who is: a file, a folder, a glob or an
    /// object-store prefix, with the quasi-identifiers as columns of the same names. A relative path starts at the job
    /// file's folder.
    pub public: String,
    /// The least chance that anybody may seem to have; above 0 it also hides who is not in the source.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min: f64,
    /// The largest chance that anybody may seem to have.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max: f64,
    /// Columns of both tables that tell people apart: every person of the source must be in the public table. When
    /// absent, the quasi-identifiers of the source must occur there often enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
}

/// The share of rows that may be suppressed when the job does not say.
pub const DEFAULT_MAX_SUPPRESSION: f64 = 0.05;

fn default_max_suppression() -> f64 {
    DEFAULT_MAX_SUPPRESSION
}

/// Range diversity: in no group may the values of a sensitive column fall into one sensitive range more surely than P.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RangeDiversity {
    /// The sensitive column.
    pub column: String,
    /// The largest range diversity of any group (P). At least 1/k, which no group of k rows can go below.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
    /// The sensitive range of every value: what its disclosure would reveal.
    #[serde(default)]
    pub ranges: Ranges,
}

/// A sensitive-range policy: which range of values counts as a disclosure of each value.
///
/// `"identity"`, `{ level = 2 }`, `{ interval = 10.0 }`, or a list of `{ values, range }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Ranges {
    /// Every value is its own range: only the exact value is a disclosure.
    #[default]
    Identity,
    /// The ascendant so many levels above the value in the column's hierarchy (the leaf itself is level 0).
    Level(u32),
    /// The interval of this total length centred on the value (numbers).
    Interval(f64),
    /// Listed ranges; a value in none of them is its own range.
    Listed(Vec<ListedRange>),
}

/// One listed range of a sensitive-range policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListedRange {
    /// The values this range belongs to: `[lowest, highest]` for numbers, a list of values for text.
    pub values: Values,
    /// The range itself: `[lowest, highest]` for numbers, the name of a hierarchy node or a list of values for text.
    pub range: RangeOf,
}

/// A set of sensitive values.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Values {
    /// All numbers from the first to the second, both included.
    Between([f64; 2]),
    /// The named values.
    Listed(Vec<String>),
}

/// What the disclosure of a value would reveal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RangeOf {
    /// All numbers from the first to the second, both included.
    Between([f64; 2]),
    /// A node of the column's hierarchy: every value below it.
    Node(String),
    /// The named values.
    Listed(Vec<String>),
}

/// l-diversity: every group holds enough variety of sensitive values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LDiversity {
    /// The sensitive column.
    pub column: String,
    /// How variety is counted.
    #[serde(default)]
    pub kind: Diversity,
    /// The least variety: a whole number of values for `distinct` and `recursive`; `entropy` allows fractions.
    #[schemars(range(min = 1.0))]
    pub l: f64,
    /// The constant of recursive (c, l)-diversity; only for `recursive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c: Option<f64>,
}

/// How the variety of sensitive values is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Diversity {
    /// At least l distinct values.
    #[default]
    Distinct,
    /// Entropy at least log(l).
    Entropy,
    /// The commonest value occurs less than c times as often as the l-th commonest and all rarer ones together.
    Recursive,
}

/// What holds for columns that the job does not name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Defaults {
    /// Role of every column that `columns` does not name.
    pub role: Role,
}

/// What a column is to the anonymisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Names a person by itself: dropped.
    Identifier,
    /// Could name a person together with others: generalised.
    Quasi,
    /// Must not be linked to a person: published as it is, guarded by the rules.
    Sensitive,
    /// Published as it is.
    Kept,
}

/// One column of the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Column {
    /// What the column is to the anonymisation.
    pub role: Role,
    /// How values generalise: a level CSV file or one of the built-in forms. Without one, numbers and dates become
    /// ranges and text becomes sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<HierarchySpec>,
    /// What to do with values that the hierarchy does not know; `error` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// What to do when a quasi-identifier holds the same value in every row; `error` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<Constant>,
    /// Published form of a quasi-identifier. When absent: `range` for numbers and dates without a hierarchy, else
    /// `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// Weight of a quasi-identifier in the search for groups: the higher, the less it is generalised. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Smallest and largest value of a numeric domain, when they are not those of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<[f64; 2]>,
}

impl Column {
    /// A column that has a role and nothing else.
    pub fn new(role: Role) -> Self {
        Self { role, hierarchy: None, unknown: None, constant: None, publish: None, priority: None, domain: None }
    }
}

/// How the values of a column generalise.
// Deserialised by hand in `forms`, so that a wrong table says what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(deny_unknown_fields)]
pub enum HierarchySpec {
    /// A CSV file of lines `leaf;level1;...;*`. A relative path starts at the job file's folder.
    File(String),
    /// Masks characters, for codes such as post codes.
    Mask {
        /// The end that is masked first.
        mask: Side,
        /// The character that stands for a masked one; `*` when absent.
        #[serde(rename = "char")]
        #[schemars(default = "default_mask_char")]
        fill: char,
        /// How many characters each level keeps, descending; when absent, one character at a time is masked.
        #[serde(skip_serializing_if = "Option::is_none")]
        keep: Option<Vec<usize>>,
    },
    /// Numbers in intervals of growing, nested widths.
    Widths {
        /// Width of each level's intervals, ascending, each a multiple of the one before.
        widths: Vec<f64>,
        /// A number at which an interval begins on every level; 0 when absent.
        #[schemars(default)]
        origin: f64,
    },
    /// Numbers in intervals between listed bounds.
    Bounds {
        /// Ascending bounds of each level, finest level first; every level's bounds are among those of the one before.
        bounds: Vec<Vec<f64>>,
    },
    /// Numbers in intervals that hold about equally many rows.
    Quantiles {
        /// Number of intervals of each level, descending, each a divisor of the one before.
        quantiles: Vec<u32>,
    },
    /// Dates and timestamps by calendar units.
    Calendar {
        /// The units, ascending.
        calendar: Vec<CalendarUnit>,
    },
    /// A tree written in the job file.
    Tree {
        /// Nested tables of node names; the innermost lists hold the values.
        #[serde(serialize_with = "forms::serialize_tree")]
        #[schemars(schema_with = "forms::tree_schema")]
        tree: Vec<InlineTree>,
    },
}

fn default_mask_char() -> char {
    forms::MASK_CHAR
}

/// An end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The beginning.
    Left,
    /// The end.
    Right,
}

/// A calendar unit, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CalendarUnit {
    /// A day, `2024-03-07`.
    Day,
    /// A month, `2024-03`.
    Month,
    /// A quarter, `2024-Q1`.
    Quarter,
    /// A year, `2024`.
    Year,
    /// A decade, `2020s`.
    Decade,
}

/// What to do with values that a hierarchy does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Stop before anything is written.
    #[default]
    Error,
    /// Publish them as the top of the hierarchy.
    Top,
}

/// What to do when a quasi-identifier holds the same value in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Constant {
    /// Stop before anything is written: the source is broken, or the column need not be a quasi-identifier.
    #[default]
    Error,
    /// Go on.
    Allow,
}

/// Published form of a quasi-identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Publish {
    /// Text: a node's name, `[30, 40]`, or the values of a set.
    Label,
    /// One column of `struct<min, max>` of the original type: for numbers, dates and timestamps without a hierarchy.
    Range,
    /// Two columns of the original type, `x_min` and `x_max`: for numbers, dates and timestamps without a hierarchy.
    Bounds,
    /// One value of the original type, the mean of the group: for numbers, dates and timestamps without a hierarchy.
    Centroid,
}

/// How rows are grouped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MethodSpec {
    /// The grouping method.
    #[serde(default)]
    pub name: MethodName,
    /// Seed of every random choice: same rows, policy and seed, same release.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How long `auto` searches; `balanced` when absent. Only for `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether equal values stay together in a split; `strict` when absent. Only for `mondrian`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// The largest score at which a row may join a cluster; found from a sample when absent. Only for `toc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Rows per subspace: between s and 2s-1; found from a sample when absent. Only for `toc` and `upc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s: Option<u32>,
    /// Weight of utility in the score; what the other weight leaves of 1 when absent, 0.5 when both are. Only for
    /// `toc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub w_utility: Option<f64>,
    /// Weight of protection in the score; what the other weight leaves of 1 when absent, 0.5 when both are. Only for
    /// `toc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub w_protection: Option<f64>,
    /// How subspaces are split; `widest` when absent. Only for `toc` and `upc`: `auto` always splits by gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// How the width of an attribute is measured when splitting; `normalised` when absent. Only for `toc` and `upc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// How an attribute without a hierarchy is cut; `binary` when absent. Only for `mpalm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Cuts>,
    /// What the chosen generalisation has least of; `loss` when absent. Only for `spalm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The seed when the job does not set one.
pub const DEFAULT_SEED: u64 = 42;

fn default_seed() -> u64 {
    DEFAULT_SEED
}

impl Default for MethodSpec {
    fn default() -> Self {
        Self {
            name: MethodName::default(),
            seed: DEFAULT_SEED,
            effort: None,
            variant: None,
            delta: None,
            s: None,
            w_utility: None,
            w_protection: None,
            split: None,
            width: None,
            cuts: None,
            cost: None,
        }
    }
}

impl MethodSpec {
    /// The weights of utility and of protection in the score of `toc`.
    pub fn weights(&self) -> (f64, f64) {
        match (self.w_utility, self.w_protection) {
            (Some(utility), Some(protection)) => (utility, protection),
            (Some(utility), None) => (utility, 1.0 - utility),
            (None, Some(protection)) => (1.0 - protection, protection),
            (None, None) => (0.5, 0.5),
        }
    }
}

/// The grouping methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// Gain splits, greedy growth, local search: the best for most tables.
    #[default]
    Auto,
    /// Threshold-based clustering that trades utility against protection.
    Toc,
    /// Clustering under hard bounds on loss (U) and range diversity (P).
    Upc,
    /// Median splits down to groups of k.
    Mondrian,
    /// Greedy clusters of exactly k.
    KMembers,
    /// Cuts that keep everybody's chance to be in the source within the bounds of `presence`.
    Mpalm,
    /// The best generalisation of whole columns that does.
    Spalm,
}

impl MethodName {
    /// The name as it is written in the job file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Toc => "toc",
            Self::Upc => "upc",
            Self::Mondrian => "mondrian",
            Self::KMembers => "k-members",
            Self::Mpalm => "mpalm",
            Self::Spalm => "spalm",
        }
    }
}

/// How `mpalm` cuts an attribute without a hierarchy; one with a hierarchy is always cut into the children of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cuts {
    /// In two, as near to the median as the bounds allow.
    #[default]
    Binary,
    /// Into all its values.
    Multiway,
}

/// What the generalisation chosen by `spalm` has least of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Mean loss of the published values.
    #[default]
    Loss,
    /// Sum of squared class sizes.
    Discernibility,
    /// Sum of the levels that columns are raised by.
    Height,
}

/// How long `auto` searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Several times the speed of `balanced` at a little more loss.
    Fast,
    /// The default.
    #[default]
    Balanced,
    /// The least loss, several times slower than `balanced`.
    Thorough,
}

/// The variants of `mondrian`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Equal values stay on one side of a cut.
    #[default]
    Strict,
    /// Values equal to the median are divided between both sides.
    Relaxed,
}

/// How subspaces are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The widest attribute at its rank median; ties are divided.
    Widest,
    /// The widest attribute at the value boundary nearest to its median.
    WidestBoundary,
    /// The attribute and boundary that lower the mean pairwise loss most.
    Gain,
}

/// How the width of an attribute is measured when splitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// As a share of the attribute's domain.
    #[default]
    Normalised,
    /// In the attribute's own unit.
    Raw,
}

/// How the released files are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Output {
    /// Compression of the Parquet pages.
    pub compression: Compression,
    /// Level of the compression; the codec's default when absent. For `zstd` (1 to 22) and `gzip` (0 to 9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Largest number of rows in a Parquet row group.
    #[schemars(range(min = 1))]
    pub row_group_rows: usize,
    /// Number of rows after which a new file is begun.
    #[schemars(range(min = 1))]
    pub file_rows: usize,
}

impl Default for Output {
    fn default() -> Self {
        Self { compression: Compression::Zstd, level: None, row_group_rows: 250_000, file_rows: 10_000_000 }
    }
}

/// Compression of Parquet pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Zstandard.
    #[default]
    Zstd,
    /// Snappy.
    Snappy,
    /// Gzip.
    Gzip,
    /// LZ4 (raw blocks).
    Lz4,
    /// No compression.
    None,
}
