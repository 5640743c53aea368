//! The job file as plain data: where rows come from and go to, what each column is, what the release must satisfy.
//!
//! Every type here mirrors a part of the TOML file; the doc comments become the descriptions of its JSON schema.
//! Nothing is resolved or opened here: hierarchies are still paths, methods still names. Values that may be written
//! in more than one way (one rule or a list of rules, a path or a table) are read by `forms`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dependencies::Dependency;
use super::forms;
use super::identifier::IdentifierAction;
use super::measures::MeasureSpec;
pub(crate) use super::method::MethodName;
pub use super::method::{Form, MethodSpec};
use super::output::FileSize;
pub(crate) use super::privacy::{ConfiguredRule, Privacy};
use super::series::Series;
use super::source::{self, Format, SinkFormat, SinkReleases};
use super::window::Window;
use crate::hierarchy::InlineTree;
use crate::storage::StoreOptions;

/// A Throng job: anonymise a table by a policy and publish the result.
///
/// ```
/// use std::path::Path;
///
/// use throng::Job;
///
/// let text = "version = 1\nsource.url = \"people/\"\nsink.url = \"out/\"\nprivacy.k = 5\ncolumns.age.role = \"quasi\"\n";
/// let job = Job::parse_with(text, Path::new("job.toml"), &[("privacy.k", "20")])?;
/// # drop(job);
/// let wrong = Job::parse(&text.replace("quasi", "quasy"), Path::new("job.toml")).unwrap_err();
/// assert!(wrong.to_string().ends_with("did you mean `quasi`?"));
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Job {
    /// Version of the job file's format. This is version 1.
    pub(crate) version: u32,
    /// Where the rows come from.
    pub(crate) source: Source,
    /// Where the release goes.
    pub(crate) sink: Sink,
    /// What the release must satisfy.
    pub(crate) privacy: Privacy,
    /// Defaults of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) defaults: Option<Defaults>,
    /// Every column of the source by name.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, Column>,
    /// Functional dependencies that hold between the columns and that readers of the release may know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) dependencies: Vec<Dependency>,
    /// How rows are grouped.
    #[serde(default)]
    pub(crate) method: MethodSpec,
    /// How the released files are written.
    #[serde(default)]
    pub(crate) output: Output,
    /// Optional measures.
    #[serde(default)]
    pub(crate) measures: MeasureSpec,
    /// How releases of the same subjects stay safe together. Without it, a sink takes one release, or independent ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) series: Option<Series>,
    /// How rows that never end are anonymised by queries: a window at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Window>,
}

/// Where the rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Source {
    /// A file, a folder, a glob or an object-store prefix; folders named `column=value` become columns. A relative path
    /// starts at the job file's folder. `delta://` before a location is a Delta table, and so is a folder that holds a
    /// Delta log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) url: String,
    /// How its object store is reached.
    #[serde(default)]
    pub(crate) options: StoreOptions,
    /// A query over `tables`, instead of `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sql: Option<String>,
    /// The tables of `sql` by name: a location, or a table of `url` and the keys below.
    #[serde(default, deserialize_with = "source::parse_tables", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "source::tables_schema")]
    pub(crate) tables: BTreeMap<String, Source>,
    /// The format of the files. Defaults to Parquet, or to Delta where there is a Delta log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<Format>,
    /// Types of the columns of CSV files, all of them, and of columns that are folder names, such as `int32`, `text`,
    /// `date`, `timestamp` or `decimal(10, 2)`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) schema: BTreeMap<String, String>,
    /// Columns of CSV files without a header, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
    /// Whether the first line of every CSV file holds the names of the columns. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<bool>,
    /// The separator between values in CSV files. Defaults to a comma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delimiter: Option<char>,
    /// The text that stands for null in CSV files, in addition to an empty field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) null: Option<String>,
    /// Version of a Delta table. Defaults to the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
}

/// Where the release goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Sink {
    /// A folder or an object-store prefix. A relative path starts at the job file's folder.
    pub(crate) url: String,
    /// How its object store is reached.
    #[serde(default)]
    pub(crate) options: StoreOptions,
    /// How releases are kept: as `files` with a manifest (default), or as versions of a `delta` table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<SinkFormat>,
    /// How a release relates to earlier ones in the sink. Without it, a second release is rejected: whoever compares
    /// releases of the same people learns more about them than one release may reveal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) releases: Option<SinkReleases>,
}

/// The default share of rows that may be suppressed.
pub(crate) const DEFAULT_MAX_SUPPRESSION: f64 = 0.05;

/// Range diversity: in no group may the values of a sensitive column fall into one sensitive range more surely than P.
///
/// ```
/// use throng::rules::{RangeDiversity, Ranges};
///
/// let mut incomes = RangeDiversity::new("income", 0.3);
/// incomes.ranges = Ranges::Interval(10_000.0); // an income is disclosed by anything within 5,000 of it
/// ```
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

impl RangeDiversity {
    /// No value of a class is known more surely than `p`; `ranges` says what counts as knowing it.
    pub fn new(column: impl Into<String>, p: f64) -> Self {
        Self { column: column.into(), p, ranges: Ranges::default() }
    }
}

/// A sensitive-range policy: which range of values counts as a disclosure of each value.
///
/// `"identity"`, `{ level = 2 }`, `{ interval = 10.0 }`, or a list of `{ values, range }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Ranges {
    /// Every value is its own range: only the exact value is a disclosure.
    #[default]
    Identity,
    /// The ancestor this many levels above the value in the column's hierarchy (the leaf itself is level 0).
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
///
/// ```
/// use throng::LDiversity;
///
/// let at_least_three_values = LDiversity::distinct("diagnosis", 3);
/// let none_too_common = LDiversity::recursive("diagnosis", 2.0, 3);
/// assert_ne!(at_least_three_values, none_too_common);
/// ```
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

impl LDiversity {
    /// At least `l` distinct values in every class.
    pub fn distinct(column: impl Into<String>, l: u32) -> Self {
        Self { column: column.into(), kind: Diversity::Distinct, l: f64::from(l), c: None }
    }

    /// An entropy of at least log(`l`) in every class.
    pub fn entropy(column: impl Into<String>, l: f64) -> Self {
        Self { column: column.into(), kind: Diversity::Entropy, l, c: None }
    }

    /// Recursive (`c`, `l`)-diversity of every class.
    pub fn recursive(column: impl Into<String>, c: f64, l: u32) -> Self {
        Self { column: column.into(), kind: Diversity::Recursive, l: f64::from(l), c: Some(c) }
    }
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

/// Defaults of the columns of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Defaults {
    /// Role of every column that `columns` does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    /// How nulls are handled in quasi-identifiers that do not say. Defaults to `category`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nulls: Option<Nulls>,
}

/// What a column is to the anonymisation.
///
/// ```
/// use throng::{Column, Policy, Role};
///
/// // A forgotten column is an error, unless all others have a role.
/// let policy = Policy::builder(5).column("age", Column::quasi()).other_columns(Role::Identifier).build()?;
/// assert!(policy.columns().contains_key("age"));
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Names a person by itself: dropped, or replaced as `treat` says.
    Identifier,
    /// Could name a person together with others: generalised.
    Quasi,
    /// Must not be linked to a person: published as it is, guarded by the rules.
    Sensitive,
    /// Published as it is.
    Kept,
}

/// One column of the source.
///
/// ```
/// use throng::columns::{Nulls, Publish};
/// use throng::{Column, HierarchySpec};
///
/// let age = Column::quasi().with_domain(0.0, 120.0).with_publish(Publish::Bounds).with_nulls(Nulls::Drop);
/// let postcode = Column::quasi().with_hierarchy(HierarchySpec::mask_right()).with_priority(2.0);
/// assert_ne!(age, postcode);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Column {
    /// What the column is to the anonymisation.
    pub(crate) role: Role,
    /// How values generalise: a level CSV file or one of the built-in forms. Without one, numbers and dates become
    /// ranges and text becomes sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hierarchy: Option<HierarchySpec>,
    /// What to do with values that the hierarchy does not list. Defaults to `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<Unknown>,
    /// What to do when a quasi-identifier holds the same value in every row. Defaults to `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) constant: Option<Constant>,
    /// How rows with a null in this quasi-identifier are handled. Defaults to the value in `defaults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nulls: Option<Nulls>,
    /// Published form of a quasi-identifier. Defaults to `range` for numbers and dates without a hierarchy, else
    /// `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) publish: Option<Publish>,
    /// Weight of a quasi-identifier in the search for groups: the higher, the less it is generalised. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<f64>,
    /// Publishes nothing of a quasi-identifier: its column stays, every value in it is the top of its domain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) withhold: bool,
    /// Smallest and largest value of a numeric domain, when they are not those of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<[f64; 2]>,
    /// What happens to an identifier. Defaults to `drop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) treat: Option<IdentifierAction>,
}

impl Column {
    /// A column that has a role and nothing else.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            hierarchy: None,
            unknown: None,
            constant: None,
            nulls: None,
            publish: None,
            priority: None,
            withhold: false,
            domain: None,
            treat: None,
        }
    }
}

/// How the values of a column generalise.
// Deserialised by hand in `forms`, so that a wrong table says what is wrong with it.
///
/// ```
/// use throng::HierarchySpec;
/// use throng::columns::{CalendarUnit, InlineTree};
///
/// let ages = HierarchySpec::widths([5.0, 10.0, 20.0]); // 37, [35, 40), [30, 40), [20, 40)
/// let arrivals = HierarchySpec::calendar([CalendarUnit::Month, CalendarUnit::Year]);
/// let leaf = |name: &str| InlineTree::Leaf(name.into());
/// let towns = HierarchySpec::tree([
///     InlineTree::Node("North".into(), vec![leaf("York"), leaf("Leeds")]),
///     InlineTree::Node("South".into(), vec![leaf("Bath")]),
/// ]);
/// # drop((ages, arrivals, towns));
/// ```
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
        /// The character that replaces masked ones. Defaults to `*`.
        #[serde(rename = "char")]
        #[schemars(default = "default_mask_char")]
        fill: char,
        /// How many characters each level keeps, descending. Defaults to masking one more character per level.
        #[serde(skip_serializing_if = "Option::is_none")]
        keep: Option<Vec<usize>>,
    },
    /// Numbers in intervals of growing, nested widths.
    Widths {
        /// Width of each level's intervals, ascending, each a multiple of the one before.
        widths: Vec<f64>,
        /// A number at which an interval begins on every level. Defaults to 0.
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
///
/// ```
/// use throng::columns::Unknown;
/// use throng::{Column, HierarchySpec};
///
/// // Occupations that the file does not list are published as `*` instead of ending the run.
/// let occupation = Column::quasi().with_hierarchy(HierarchySpec::file("occupation.csv")).with_unknown(Unknown::Top);
/// # drop(occupation);
/// ```
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

/// How rows with a null in a quasi-identifier are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nulls {
    /// A null is a value of its own, which matches nothing else.
    #[default]
    Category,
    /// They are left out, and count as suppressed.
    Drop,
    /// Stop before anything is written.
    Reject,
}

/// Published form of a quasi-identifier.
///
/// ```
/// use throng::Column;
/// use throng::columns::Publish;
///
/// // Two columns, `age_min` and `age_max`, that queries can go on computing with.
/// let age = Column::quasi().with_publish(Publish::Bounds);
/// # drop(age);
/// ```
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

/// How the released files are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Output {
    /// Compression of the Parquet pages.
    pub(crate) compression: Compression,
    /// Compression level, for `zstd` (1 to 22) and `gzip` (0 to 9). Defaults to the codec's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<u32>,
    /// Largest number of rows in a Parquet row group, at least 100.
    #[schemars(range(min = 100))]
    pub(crate) row_group_rows: usize,
    /// Number of rows after which a new file starts, at least 100.
    #[schemars(range(min = 100))]
    pub(crate) file_rows: usize,
    /// Size after which a new file starts, such as `256MB`.
    pub(crate) file_size: FileSize,
    /// Kept columns whose values become folders, `column=value`, outermost first; they are left out of the files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) partition_by: Vec<String>,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            compression: Compression::Zstd,
            level: None,
            row_group_rows: 250_000,
            file_rows: 10_000_000,
            file_size: FileSize::default(),
            partition_by: Vec::new(),
        }
    }
}

/// Compression of Parquet pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Compression {
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
