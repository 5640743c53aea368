//! What the rules about one sensitive column have in common: they judge a group by how often each value occurs in it.

use std::fmt;
use std::sync::Arc;

use super::{GroupView, Rule, RuleRecord};
use crate::hierarchy::LevelTree;
use crate::model::Sensitive;

/// How often each sensitive code occurs in a group, ascending by code.
pub type Histogram<'a> = &'a [(u32, u32)];

/// A rule about the values of one sensitive column.
///
/// A new one is a file with a type that can be read from the job file and implements this trait, and a line in the list
/// of `job::privacy`. Parsing, JSON schema, checks, settling, verification and manifest follow from that.
pub trait SensitiveRule: fmt::Debug + Send + Sync {
    /// The sensitive column.
    fn column(&self) -> &str;

    /// Name and parameters as in the job file, for plans, errors and the manifest.
    fn record(&self) -> RuleRecord;

    /// What classes that break the rule do, as the continuation of "3 classes".
    fn breach(&self) -> String;

    /// Whether a group with this histogram meets the rule.
    fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool;

    /// How far such a group is from meeting the rule, if that can be measured.
    fn excess(&self, _histogram: Histogram<'_>, _column: &Sensitive) -> Option<f64> {
        None
    }

    /// Whether two groups that meet the rule always meet it together.
    fn survives_merging(&self) -> bool {
        false
    }

    /// What the rule needs of its column.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Problems with the parameters, whatever the data.
    fn flaws(&self, _levels: Option<&LevelTree>) -> Vec<Flaw> {
        Vec::new()
    }

    /// Resolves names in the hierarchy, and keeps some of the bound in reserve if asked to.
    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule>;
}

/// What a rule needs of its column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// How often every value occurs in the whole table.
    pub table: bool,
    /// Numbers, whose differences mean something.
    pub numbers: bool,
    /// Values that have an order.
    pub order: bool,
    /// A hierarchy of levels.
    pub hierarchy: bool,
}

/// Where a rule is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setting<'a> {
    /// The hierarchy of the column.
    pub levels: Option<&'a LevelTree>,
    /// Whether groups are being built and rows may be suppressed later, which shifts the distribution that a rule
    /// compares with: see [`RESERVE`].
    pub reserve: bool,
}

/// Share of its bound that a rule which compares groups with the whole table keeps back while groups are built.
///
/// Groups are built against the distribution of all rows; the release is verified against that of the published ones,
/// because that is the table an adversary sees. The two differ by the suppressed rows. The reserve absorbs a small
/// difference. A larger one fails the verification, and nothing is published.
pub const RESERVE: f64 = 0.02;

/// Something wrong with a parameter of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The key of the parameter.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Flaw {
    /// A flaw of a parameter.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }

    /// The flaw of a parameter that must be above a limit, if it is not.
    pub fn not_above(key: &'static str, value: f64, limit: f64) -> Option<Self> {
        let above = value.is_finite() && value > limit;
        (!above).then(|| Self::new(key, format!("must be above {limit}, got {value}")))
    }

    /// The flaw of a parameter that must be a share above 0, if it is none.
    pub fn no_share(key: &'static str, value: f64) -> Option<Self> {
        let inside = value > 0.0 && value <= 1.0;
        (!inside).then(|| Self::new(key, format!("must be above 0 and at most 1, got {value}")))
    }
}

impl<R: SensitiveRule> Rule for R {
    fn record(&self) -> RuleRecord {
        SensitiveRule::record(self)
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        group_meets_rule(self, group)
    }

    fn excess(&self, group: &GroupView<'_>) -> Option<f64> {
        group_excess(self, group)
    }

    fn counts_values_only(&self) -> bool {
        true
    }

    fn survives_merging(&self) -> bool {
        SensitiveRule::survives_merging(self)
    }
}

/// A rule of the job's list as groups are asked it.
#[derive(Debug, Clone)]
pub struct OnColumn {
    /// Name and parameters as in the job file.
    pub record: RuleRecord,
    /// The rule.
    pub rule: Arc<dyn SensitiveRule>,
}

impl Rule for OnColumn {
    fn record(&self) -> RuleRecord {
        self.record.clone()
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        group_meets_rule(self.rule.as_ref(), group)
    }

    fn excess(&self, group: &GroupView<'_>) -> Option<f64> {
        group_excess(self.rule.as_ref(), group)
    }

    fn counts_values_only(&self) -> bool {
        true
    }

    fn survives_merging(&self) -> bool {
        self.rule.survives_merging()
    }
}

/// A column that the table does not have meets no rule.
fn group_meets_rule(rule: &dyn SensitiveRule, group: &GroupView<'_>) -> bool {
    find_column(rule, group).is_some_and(|column| rule.allows_histogram(&group.histogram(column), column))
}

fn group_excess(rule: &dyn SensitiveRule, group: &GroupView<'_>) -> Option<f64> {
    find_column(rule, group).and_then(|column| rule.excess(&group.histogram(column), column))
}

fn find_column<'a>(rule: &dyn SensitiveRule, group: &GroupView<'a>) -> Option<&'a Sensitive> {
    group.table.sensitive.iter().find(|sensitive| sensitive.name == rule.column())
}
