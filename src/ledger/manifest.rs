//! The manifest of a release: what was published, from what, under which policy, and what the verification found.
//! It holds counts, names and scores; no value of the data.
//!
//! # What each figure is a function of
//!
//! Everybody may read a manifest, so nothing in it depends on a suppressed or dropped row beyond the fact that there was
//! one. *Published rows* are the rows of the release, with their original values where a measure compares the two; the
//! *published domain* of a column is what these rows hold of it, or what the job or a hierarchy declares
//! ([`crate::measure::published`]). The same figures, and no others, go to the summary, `--json`, the report and the
//! metrics. [`round_figures`] leaves four significant digits of each.
//!
//! | figure | function of | when rows were suppressed |
//! |---|---|---|
//! | `rows_read`, `rows`, `suppressed`, `dropped`, `k` | counts | reported |
//! | `earlier_releases` | number of manifests in the sink | reported |
//! | `series` | counts of subjects by what became of them; digests of keyed digests; mean losses by release | reported |
//! | `cells`, `cell_rows` | with `source`, how many there are and published rows by cell; cells are cut in a sample of the source | left out |
//! | `tuned` | with `source`, one of a few steps that are common to all tables, chosen on a sample of the source | left out |
//! | `input`, `public` | where tables are, as the job writes it; versions of Delta tables | reported |
//! | `snapshot`, `public_snapshot`, `run` | names of files and when they were last changed; with `key-env`, a secret ([`crate::source::snapshot`]) | reported |
//! | `policy` | rules, columns, method, and the content of hierarchy files, which are public | reported |
//! | `gcp`, `um`, `wgu`, `ncp`, `lm`, `by_column` | published values by class, published domain, number of suppressed rows; of a column with `centroid`, and means with one, omitted | reported |
//! | `mpm`, `wgp`, `rd_of_a_row`, `rows_by_rd`, `unprotected` | published sensitive values by class, published domain | reported |
//! | `dm`, `c_avg`, `risk_max`, `risk_mean` | sizes of published classes, number of suppressed rows | reported |
//! | `cm` | published labels by class, number of suppressed rows | reported |
//! | `iloss`, `distortion`, `weighted_distortion`, `genc`, `precision`, `suppressed_values` | with `source`, levels and shares of what groups cover in the domain of the source | left out |
//! | `non_uniform_entropy`, `entropy`, `kl`, `kl_by_range`, `joint_kl`, `reconstruction_*` | where the job asks for them, frequencies and codes of original values | left out |
//! | `queries` | where the job asks for them, answers of the source, drawn over its domain | left out |
//! | `placed_by_method`, `placed_as_left_over`, `placed_by_repair` | with `source`, how groups came about | left out |
//! | `dependency_loss`, `dependency_loss_bound`, `dependencies` | names; with `source`, instances and frequencies of the source | left out but for their names |
//! | `population.source` | where the job asks for it, class sizes of the source | left out |
//! | `population`, the rest | published classes, public table | reported |
//! | `verification` (`classes`, `attained`) | published rows; tables that a rule compares with are the published one | reported |
//! | `inference` | published rows and the quasi-identifiers of everybody, which the adversary knows | reported |
//! | `slices` | what the job says; with `slicing`, which columns follow each other in the source, which readers must know | reported |
//! | `people` | published rows, and k; with `source`, how many people every class holds, who need not be published | reported |
//!
//! What is omitted would have to be measured on published rows alone, in a pass of its own: an answer of the source that
//! counts one row more than the release reveals where that row lies, and a query that is drawn over the domain of the source
//! reveals its extent. Whether something is omitted depends on the number of suppressed rows and on the policy,
//! never on where they lie. A rule such as `max-loss` is judged by the domain that the groups were made with; what is given
//! as attained (`wgu`) is a share of the published domain, which may be narrower, so it may be larger. Declare a domain in
//! the job to have both alike. With a `presence` rule even their number is a secret: then all of this is left out as if rows
//! were suppressed, and figures that count suppressed rows count published ones alone.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::audit::PopulationRisk;
pub use crate::audit::{DependencyScore, Inferred};
use crate::dependency::Preserved;
use crate::error::{Error, Result};
use crate::measure::workload::QueryError;
use crate::measure::{Cells, Classes, Generalisation, Groups, Information, People, Protection, Workload, risk};
use crate::policy::{FROM_SOURCE, Form, Role};
use crate::privacy::{Figures, RuleRecord};
pub use crate::series::counts::{SeriesCounts, SeriesRelease};
pub use crate::source::InputTable;

/// A parameter of a rule, and the value with which it would just hold.
type Attained = (&'static str, Option<f64>);

/// Version of the manifest's format. Format 1 named rules by sentences; since format 2 they are records.
pub(crate) const FORMAT: u32 = 2;

/// What a release is.
///
/// ```
/// use throng::Manifest;
///
/// # fn read(text: &str) -> serde_json::Result<()> {
/// let manifest: Manifest = serde_json::from_str(text)?; // _manifest/<run id>.json
/// println!("{} rows in {} files, GCP {:?}", manifest.rows, manifest.files.len(), manifest.scores.gcp);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// Seed of all random choices, where the job sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Warnings for everybody who relies on the release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Earlier releases that the sink held when this one was published, where the job declares releases independent of
    /// each other. Without that, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_releases: Option<u64>,
    /// What the release is in its series, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesRelease>,
    /// How groups are published, when it is not by generalising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Columns of the source that stay together inside a group, in forms whose groups have numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Vec<String>>,
    /// Parameters that were found from a sample; omitted if rows were suppressed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tuned: BTreeMap<String, f64>,
    /// What was read.
    pub input: Vec<InputTable>,
    /// Identity of what was read, by which a later run recognises its input. It reveals nothing of its content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
    /// The public table that people of the source hide among, when the policy names one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public: Vec<InputTable>,
    /// Identity of the public table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub public_snapshot: String,
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
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Whether `suppressed` and `rows_read` are upper bounds, because exact ones would reveal who is in the source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounded: bool,
    /// Cells that the table was cut into, where the job asks for figures of the source and all of it was published; else 0: how
    /// many there are follows from how often values occur in the source.
    #[serde(default)]
    pub cells: usize,
    /// Rows of the smallest and of the largest of them, likewise.
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
#[non_exhaustive]
pub struct CellRows {
    /// Rows of the smallest cell.
    pub smallest: u64,
    /// Rows of the largest cell.
    pub largest: u64,
}

impl CellRows {
    /// The figures of the cells of a run; `None` if no row was read.
    pub(crate) fn from_cells(cells: Cells) -> Option<Self> {
        (cells.count > 0).then_some(Self { smallest: cells.smallest, largest: cells.largest })
    }
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

/// Counts of unpublished rows are rounded up to a multiple of this where exact ones would reveal who is in the source.
const UNPUBLISHED_STEP: u64 = 10;

impl Manifest {
    /// Hides exactly how many rows of the source are not published, and why: with a public table beside it, each of them
    /// is somebody. The count becomes the next larger multiple of ten, even if it is zero.
    pub(crate) fn round_unpublished(&mut self) {
        self.suppressed = (self.suppressed / UNPUBLISHED_STEP + 1) * UNPUBLISHED_STEP;
        self.rows_read = self.rows + self.suppressed;
        self.dropped = 0;
        // There are as many as rows were read ask for.
        self.cells = 0;
        self.cell_rows = None;
        self.rounded = true;
    }

    /// The manifest as published: without comparisons with a source whose rows were partly left out, with figures that follow
    /// from original values only where the job asks for them (`source`), and with every figure rounded. Nothing is added to a
    /// manifest after this.
    pub(crate) fn into_released(mut self, source: bool) -> Result<Self> {
        let whole = self.rows == self.rows_read && self.public.is_empty();
        if !whole {
            self.scores.queries = None;
            if let Some(population) = &mut self.population {
                population.source = None;
            }
        }
        if !source {
            self.leave_out_steps();
            self.leave_out_people();
        }
        if !whole || !source {
            self.tuned.clear();
            (self.cells, self.cell_rows) = (0, None);
            self.leave_out_placement();
            (self.scores.dependency_loss, self.scores.dependency_loss_bound) = (None, None);
            for dependency in &mut self.dependencies {
                *dependency = DependencyScore { name: std::mem::take(&mut dependency.name), ..Default::default() };
            }
        }
        if self.tells_of_source() {
            self.warnings.push(FROM_SOURCE.to_owned());
        }
        // What the policy asks for stays as it was written, and counts are not rounded.
        let rules = std::mem::take(&mut self.verification.rules);
        let mut released = round_figures(&self)?;
        released.verification.rules = rules;
        released.record_attained();
        Ok(released)
    }

    /// Leaves out how far original values have moved up in their hierarchies.
    fn leave_out_steps(&mut self) {
        let scores = &mut self.scores;
        (scores.iloss, scores.genc, scores.precision) = (None, None, None);
        (scores.distortion, scores.weighted_distortion, scores.suppressed_values) = (None, None, None);
    }

    /// Leaves out how rows came into their groups.
    fn leave_out_placement(&mut self) {
        let scores = &mut self.scores;
        (scores.placed_by_method, scores.placed_as_left_over, scores.placed_by_repair) = (None, None, None);
    }

    /// Leaves out how many people classes hold beyond the k that they were counted to hold: whose rows are is not published.
    fn leave_out_people(&mut self) {
        let (k, count) = (u64::from(self.k), self.verification.classes.count);
        if let Some(people) = &mut self.verification.people {
            people.classes = ClassCounts { count, smallest: k, by_size: BTreeMap::new() };
            (self.scores.risk_max, self.scores.risk_mean) = (Some(1.0 / k.max(1) as f64), None);
        }
    }

    /// Whether a figure follows from original values that are not published.
    fn tells_of_source(&self) -> bool {
        let scores = &self.scores;
        !self.tuned.is_empty()
            || self.cell_rows.is_some()
            || scores.kl.is_some()
            || scores.queries.is_some()
            || scores.iloss.is_some()
            || self.dependencies.iter().any(|dependency| dependency.instances.is_some())
            || self.population.as_ref().is_some_and(|population| population.source.is_some())
            || self.verification.people.as_ref().is_some_and(|people| !people.classes.by_size.is_empty())
    }

    /// Records of every rule what the rest of the manifest says is attained.
    pub(crate) fn record_attained(&mut self) {
        let mut rules = std::mem::take(&mut self.verification.rules);
        rules.iter_mut().for_each(|rule| rule.attained = self.attained_of(rule));
        self.verification.rules = rules;
    }

    /// The parameters with which a rule would just hold, as far as the manifest has them elsewhere.
    pub(crate) fn attained_of(&self, rule: &RuleRecord) -> BTreeMap<String, f64> {
        let figures = rule.column.as_ref().and_then(|column| self.verification.attained.get(column));
        let of_column = |pick: fn(&Figures) -> Vec<Attained>| figures.map(pick).unwrap_or_default();
        let attained = match (rule.rule.as_str(), rule.kind.as_deref()) {
            ("k", _) => vec![("k", Some(self.verification.smallest() as f64))],
            ("max-loss", _) => vec![("max-loss", self.scores.wgu)],
            ("range-diversity", _) => vec![("p", self.scores.wgp)],
            ("l-diversity", Some("distinct")) => of_column(|figures| vec![("l", Some(figures.l as f64))]),
            ("l-diversity", Some("entropy")) => of_column(|figures| vec![("l", Some(figures.entropy_l))]),
            ("l-diversity", Some("recursive")) => {
                of_column(|figures| vec![("c", Some(figures.c)), ("l", Some(figures.l as f64))])
            }
            ("p-sensitive", _) => of_column(|figures| vec![("p", Some(figures.l as f64))]),
            ("alpha-k", _) => of_column(|figures| vec![("alpha", Some(figures.alpha))]),
            ("t-closeness", Some("hierarchical")) => of_column(|figures| vec![("t", figures.t_hierarchical)]),
            ("t-closeness", None) => of_column(|figures| vec![("t", figures.t)]),
            ("beta-likeness", Some("enhanced")) => of_column(|figures| vec![("beta", figures.beta_enhanced)]),
            ("beta-likeness", _) => of_column(|figures| vec![("beta", figures.beta)]),
            ("delta-disclosure", _) => of_column(|figures| vec![("delta", figures.delta)]),
            _ => Vec::new(),
        };
        let known = attained.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.filter(|(_, value)| value.is_finite()).collect()
    }

    /// How groups are published.
    pub fn form(&self) -> Form {
        self.form.unwrap_or(Form::Generalise)
    }
}

/// Reads rules as records, or as the sentences of format 1.
fn read_rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RuleRecord>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Record(RuleRecord),
        Sentence(String),
    }
    let rules = Vec::<Written>::deserialize(from)?.into_iter();
    Ok(rules
        .map(|rule| match rule {
            Written::Record(record) => record,
            Written::Sentence(sentence) => RuleRecord::parse_sentence(&sentence),
        })
        .collect())
}

/// Significant digits of every published figure: enough to compare releases, too few to solve for a value.
const FIGURE_DIGITS: usize = 4;

/// Rounds all published figures, which are the numbers with a fraction; counts stay as they are.
pub(crate) fn round_figures<T: Serialize + DeserializeOwned>(figures: &T) -> Result<T> {
    let unreadable = |error: serde_json::Error| Error::internal(format!("figures cannot be rounded: {error}"));
    let mut value = serde_json::to_value(figures).map_err(unreadable)?;
    round_value(&mut value);
    serde_json::from_value(value).map_err(unreadable)
}

fn round_value(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let rounded = number.as_f64().filter(|_| number.is_f64()).map(round_figure);
            *number = rounded.and_then(serde_json::Number::from_f64).unwrap_or_else(|| number.clone());
        }
        Value::Array(values) => values.iter_mut().for_each(round_value),
        Value::Object(values) => values.values_mut().for_each(round_value),
        _ => {}
    }
}

fn round_figure(figure: f64) -> f64 {
    format!("{figure:.*e}", FIGURE_DIGITS - 1).parse().unwrap_or(figure)
}

/// One file of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
#[non_exhaustive]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ncp: Option<f64>,
    /// The same per published value: the loss metric (LM).
    #[serde(default)]
    pub lm: Option<f64>,
    /// Sum over rows of the share of the domain that their values cover (ILoss).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iloss: Option<f64>,
    /// Sum of the levels of all published values: minimal distortion (MD), and AG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distortion: Option<u64>,
    /// The same in shares of the height of each hierarchy, times the priority of its column over the largest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_distortion: Option<f64>,
    /// Sum of level over height, over the columns with a hierarchy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genc: Option<f64>,
    /// 1 minus the mean of level over height.
    #[serde(default)]
    pub precision: Option<f64>,
    /// Values published as the top of their column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed_values: Option<u64>,
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
    /// Dependency loss of an instance of any dependency, on average; omitted for a table of several cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_loss: Option<f64>,
    /// A bound on the same from above, by the rows that hold each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_loss_bound: Option<f64>,
    /// Published rows in groups as the method has built them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by_method: Option<u64>,
    /// Published rows that the method has put into a group after they were left over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_as_left_over: Option<u64>,
    /// Published rows whose group is the work of the repair that makes groups meet the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by_repair: Option<u64>,
}

/// Relative errors of COUNT queries on the release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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

/// The mean over the instances of all dependencies; `None` without any.
fn mean_by_instance(preserved: &[Preserved], loss: impl Fn(&Preserved) -> Option<f64>) -> Option<f64> {
    let held: Vec<&Preserved> = preserved.iter().filter(|one| one.instances() > 0).collect();
    let instances: usize = held.iter().map(|one| one.instances()).sum();
    let losses = held.iter().map(|one| Some(loss(one)? * one.instances() as f64)).collect::<Option<Vec<f64>>>()?;
    (instances > 0).then(|| losses.iter().sum::<f64>() / instances as f64)
}

impl From<QueryError> for QueryScores {
    fn from(error: QueryError) -> Self {
        let QueryError { queries, empty, mean, median, worst } = error;
        Self { count: queries, empty, mean, median, worst }
    }
}

/// What the verification counted in the written files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verification {
    /// Rules that were checked and hold, `k` the first of them, and what is attained of each.
    #[serde(deserialize_with = "read_rules")]
    pub rules: Vec<RuleRecord>,
    /// Published classes, counted in rows.
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

impl Verification {
    /// The rules by name and parameters.
    pub fn rule_names(&self) -> Vec<String> {
        self.rules.iter().map(ToString::to_string).collect()
    }

    /// The sizes of the classes in what k counts as far as they are reported, and what that is: people where the policy says whose
    /// rows are, else rows.
    pub fn sizes(&self) -> (&ClassCounts, &'static str) {
        let people = self.people.as_ref().filter(|people| !people.classes.by_size.is_empty());
        people.map_or((&self.classes, "rows"), |people| (&people.classes, "people"))
    }

    /// The size of the smallest class in what k counts, or the k that all classes were counted to reach.
    pub fn smallest(&self) -> u64 {
        self.people.as_ref().map_or(&self.classes, |people| &people.classes).smallest
    }
}

/// Classes counted in people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PeopleCounts {
    /// Number of people by class. The smallest is k, and the others are omitted, unless the job asks for figures of the source.
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
#[non_exhaustive]
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
        // Comparisons with the values of the source are reported only if all of them are published.
        let whole = groups.is_whole();
        let divergence = groups.information.as_ref().filter(|_| whole).and_then(Information::divergence);
        let queries = groups.workload.as_ref().filter(|_| whole).and_then(Workload::error);
        let generalisation = whole.then_some(&groups.generalisation);
        let protection = (whole || !groups.published.ranges_by_domain).then_some(&groups.protection);
        let losses = groups.released_losses();
        // Where the worst group is within the bound, so is every other.
        let nobody = losses.wgp.filter(|&worst| groups.protection.is_protected(worst) == Some(true)).map(|_| 0.0);
        let values = groups.loss.rows() as f64 * columns.len() as f64;
        // Whoever looks for a person chooses among people, not rows.
        let people = groups.people.as_ref().map_or(classes, People::classes);
        let by_column = columns.iter().cloned().zip(losses.by_column);
        Self {
            gcp: losses.gcp,
            um: losses.um,
            wgu: losses.wgu,
            mpm: losses.mpm,
            wgp: losses.wgp,
            dm: classes.dm(groups.shown_suppressed().unwrap_or(0)),
            c_avg: classes.c_avg(u64::from(k)),
            risk_max: risk::prosecutor_max(people),
            risk_mean: risk::prosecutor_mean(people),
            by_column: by_column.filter_map(|(name, loss)| Some((name, loss?))).collect(),
            ncp: losses.ncp,
            lm: losses.ncp.filter(|_| values > 0.0).map(|ncp| ncp / values),
            iloss: generalisation.map(Generalisation::iloss),
            distortion: generalisation.map(Generalisation::distortion),
            weighted_distortion: generalisation.map(Generalisation::weighted_distortion),
            genc: generalisation.map(Generalisation::genc),
            precision: generalisation.and_then(Generalisation::precision),
            suppressed_values: generalisation.map(Generalisation::suppressed_values),
            rd_of_a_row: protection.and_then(Protection::mean_rd_of_a_row),
            rows_by_rd: protection.map(|protection| protection.by_disclosure().collect()).unwrap_or_default(),
            unprotected: protection.map_or(nobody, Protection::unprotected_share),
            cm: None,
            non_uniform_entropy: divergence.map(|found| found.non_uniform_entropy),
            entropy: divergence.map(|found| found.entropy),
            kl: divergence.map(|found| found.kl),
            kl_by_range: divergence.map(|found| found.kl_by_range),
            joint_kl: divergence.map(|found| found.joint_kl),
            reconstruction_mean: divergence.map(|found| found.reconstruction_mean),
            reconstruction_max: divergence.map(|found| found.reconstruction_max),
            queries: queries.map(QueryScores::from),
            dependency_loss: mean_by_instance(&groups.dependencies, Preserved::loss).filter(|_| whole),
            dependency_loss_bound: mean_by_instance(&groups.dependencies, Preserved::loss_bound).filter(|_| whole),
            placed_by_method: Some(groups.placement.method),
            placed_as_left_over: Some(groups.placement.left_over),
            placed_by_repair: Some(groups.placement.repair),
        }
    }
}

impl Scores {
    /// The same with the losses and the protection of the published classes, which are functions of the published rows.
    /// `shown` says of which columns these show what was lost; `source` keeps what was measured in original values where they
    /// do not.
    pub(crate) fn of_classes(self, classes: &Groups, columns: &[String], shown: &[bool], source: bool) -> Self {
        let (loss, protection) = (&classes.loss, &classes.protection);
        let scores = Self {
            mpm: protection.mpm(),
            wgp: protection.wgp(),
            rd_of_a_row: protection.mean_rd_of_a_row(),
            rows_by_rd: protection.by_disclosure().collect(),
            unprotected: protection.unprotected_share(),
            ..self
        };
        let all_shown = shown.iter().all(|shown| *shown);
        if !all_shown && source {
            return scores;
        }
        let values = loss.rows() as f64 * columns.len() as f64;
        let of = |figure: Option<f64>| figure.filter(|_| all_shown);
        let by_column = columns.iter().cloned().zip(loss.by_column()).zip(shown);
        Self {
            gcp: of(loss.gcp()),
            um: of(loss.um()),
            wgu: of(loss.wgu()),
            ncp: of(Some(loss.ncp())),
            lm: of((values > 0.0).then(|| loss.ncp() / values)),
            by_column: by_column.filter(|(_, shown)| **shown).map(|(loss, _)| loss).collect(),
            ..scores
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A manifest with so many rows and nothing else in particular, as format 1 had it.
    pub(crate) fn small_manifest(rows_read: u64, rows: u64) -> Manifest {
        let manifest = serde_json::json!({
            "format": 1, "version": "0", "run": "r", "committed": "1", "policy": "p", "k": 2, "method": "toc", "input": [],
            "data": "d", "files": [], "schema": {}, "class_columns": [], "rows_read": rows_read, "rows": rows,
            "suppressed": rows_read - rows, "cells": 2, "cell_rows": { "smallest": 30, "largest": 69 },
            "tuned": { "delta": 0.25, "s": 40.0 },
            "scores": { "gcp": null, "um": null, "wgu": null, "mpm": null, "wgp": null, "dm": 0.0, "c_avg": null,
                        "risk_max": null, "risk_mean": null, "by_column": {} },
            "verification": { "rules": [], "classes": { "count": 0, "smallest": 0, "by_size": {} } },
        });
        serde_json::from_value(manifest).unwrap()
    }

    /// Parameters and cells are found in a sample of all rows.
    #[test]
    fn what_follows_a_sample_of_the_source_is_left_out_with_its_rows() {
        let whole = small_manifest(99, 99).into_released(true).unwrap();
        assert_eq!((whole.tuned.len(), whole.cell_rows.map(|rows| rows.smallest)), (2, Some(30)));
        let unasked = small_manifest(99, 99).into_released(false).unwrap();
        assert_eq!((unasked.tuned.len(), unasked.cell_rows, unasked.warnings.len()), (0, None, 0));
        assert_eq!(whole.warnings, [FROM_SOURCE]);
        let partial = small_manifest(99, 98).into_released(true).unwrap();
        assert_eq!((partial.tuned.len(), partial.cell_rows), (0, None));
        let mut hidden = small_manifest(99, 99);
        hidden.public.push(InputTable { path: "public.parquet".into(), version: None });
        let hidden = hidden.into_released(true).unwrap();
        assert_eq!((hidden.tuned.len(), hidden.cell_rows), (0, None));
    }

    #[test]
    fn figures_are_rounded_and_counts_are_not() {
        let scores = Scores {
            gcp: Some(0.123_456_789),
            dm: 123_456_789.0,
            c_avg: Some(1.0),
            distortion: Some(123_456_789),
            by_column: [("age".to_owned(), 1.234_56e-7)].into(),
            rows_by_rd: [(7, 1_234_567)].into(),
            ..Scores::default()
        };
        let rounded = round_figures(&scores).unwrap();
        assert_eq!((rounded.gcp, rounded.dm, rounded.c_avg), (Some(0.1235), 123_500_000.0, Some(1.0)));
        assert_eq!((rounded.distortion, rounded.rows_by_rd[&7]), (Some(123_456_789), 1_234_567));
        assert_eq!(rounded.by_column["age"], 1.235e-7);
        assert_eq!(round_figures(&rounded).unwrap(), rounded);
        assert_eq!(round_figure(-99_999.0), -100_000.0);
    }

    /// Manifests that were written before rules were records are read as if they had been.
    #[test]
    fn a_manifest_of_format_1_is_read() {
        let mut old = serde_json::to_value(small_manifest(99, 99)).unwrap();
        let sentences = ["k = 2 people", "t-closeness of a, b, t = 0.25", "something that nobody asks for"];
        old["verification"]["rules"] = serde_json::json!(sentences);
        let manifest: Manifest = serde_json::from_value(old).unwrap();
        assert_eq!((manifest.format, manifest.verification.rule_names()), (1, sentences.map(str::to_owned).to_vec()));
        let [size, closeness, other] = manifest.verification.rules.as_slice() else { panic!("three rules") };
        assert_eq!((size.rule.as_str(), size.kind.as_deref()), ("k", Some("people")));
        assert_eq!((closeness.column.as_deref(), closeness.parameters["t"]), (Some("a, b"), 0.25));
        assert_eq!((other.column.as_deref(), other.parameters.len()), (None, 0));
        let again: Manifest = serde_json::from_str(&serde_json::to_string(&manifest).unwrap()).unwrap();
        assert_eq!(again, manifest, "and written as records");
    }

    #[test]
    fn a_rule_attains_what_the_manifest_says_elsewhere() {
        let mut manifest = small_manifest(99, 99);
        manifest.verification.classes.smallest = 12_345;
        (manifest.scores.wgu, manifest.scores.wgp) = (Some(0.5), None);
        let figures = Figures { l: 3, entropy_l: 2.5, c: 1.25, alpha: 0.4, delta: Some(1.5), ..Figures::default() };
        manifest.verification.attained.insert("ill".into(), figures);
        let attained = |sentence: &str| {
            let attained = manifest.attained_of(&RuleRecord::parse_sentence(sentence));
            attained.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        for (sentence, wanted) in [
            ("k = 2", "k=12345"),
            ("max-loss = 0.6", "max-loss=0.5"),
            ("range-diversity of ill = 0.3", ""),
            ("distinct l-diversity of ill, l = 2", "l=3"),
            ("entropy l-diversity of ill, l = 2", "l=2.5"),
            ("recursive l-diversity of ill, c = 2, l = 2", "c=1.25 l=3"),
            ("weak l-diversity of ill, l = 2", ""),
            ("p-sensitive of ill, p = 2", "p=3"),
            ("alpha-k of ill, alpha = 0.5", "alpha=0.4"),
            ("delta-disclosure of ill, delta = 2", "delta=1.5"),
            ("t-closeness of ill, t = 0.5", ""),
            ("alpha-k of pay, alpha = 0.5", ""),
        ] {
            assert_eq!(attained(sentence), wanted, "{sentence}");
        }
    }

    /// Figures are rounded as the manifest leaves; what the policy asks for, and counts, are not.
    #[test]
    fn what_is_asked_leaves_as_it_was_written() {
        let mut manifest = small_manifest(99_999, 99_999);
        manifest.verification.classes.smallest = 12_345;
        let figures = Figures { alpha: 0.123_456, ..Figures::default() };
        manifest.verification.attained.insert("ill".into(), figures);
        manifest.verification.rules = vec![
            RuleRecord::group_size(12_345, false),
            RuleRecord::on_column("alpha-k", "ill").with_parameter("alpha", 0.333_333),
        ];
        let released = manifest.into_released(false).unwrap();
        let [size, alpha] = released.verification.rules.as_slice() else { panic!("two rules") };
        assert_eq!((size.parameters["k"], size.attained["k"]), (12_345.0, 12_345.0));
        assert_eq!((alpha.parameters["alpha"], alpha.attained["alpha"]), (0.333_333, 0.1235));
        assert!(released.verification.rules.iter().all(|rule| rule.attained == released.attained_of(rule)));
    }

    /// With a public table beside it, an exact count of unpublished rows is a count of people.
    #[test]
    fn unpublished_rows_are_rounded_up_to_ten() {
        for (suppressed, rounded) in [(0, 10), (1, 10), (9, 10), (10, 20), (11, 20)] {
            let mut manifest = small_manifest(100 + suppressed, 100);
            manifest.dropped = suppressed;
            manifest.round_unpublished();
            assert_eq!((manifest.suppressed, manifest.rows_read), (rounded, 100 + rounded), "{suppressed}");
            assert_eq!((manifest.dropped, manifest.cell_rows, manifest.rounded), (0, None, true));
        }
    }

    #[test]
    fn the_mean_over_dependencies_is_none_without_instances() {
        assert_eq!(mean_by_instance(&[], Preserved::loss_bound), None);
    }
}
