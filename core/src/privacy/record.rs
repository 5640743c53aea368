//! Rules as they are recorded: what a policy asks for, parameter by parameter, and what a release attains.
//!
//! A record prints as the sentence by which plans, errors and summaries name the rule. Manifests of format 1 hold those
//! sentences alone; [`RuleRecord::parse_sentence`] reads them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A rule, its parameters, and what a release attains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRecord {
    /// The rule, such as `l-diversity`.
    pub rule: String,
    /// Which of its kinds, such as `entropy`; for `k`, what is counted when that is not rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The sensitive column that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Its parameters by their names in the job file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, f64>,
    /// The parameters with which the rule would just hold, as far as they are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attained: BTreeMap<String, f64>,
}

/// Rules about a column whose sentence lists all their parameters, and those parameters in their order.
const LISTED: [(Option<&str>, &str, &[&str]); 14] = [
    (Some("distinct"), "l-diversity", &["l"]),
    (Some("entropy"), "l-diversity", &["l"]),
    (Some("recursive"), "l-diversity", &["c", "l"]),
    (Some("weak"), "l-diversity", &["l"]),
    (None, "t-closeness", &["t"]),
    (Some("equal"), "t-closeness", &["t"]),
    (Some("ordered"), "t-closeness", &["t"]),
    (Some("hierarchical"), "t-closeness", &["t"]),
    (None, "alpha-k", &["alpha"]),
    (None, "p-sensitive", &["p"]),
    (None, "k-e", &["k", "e"]),
    (None, "delta-disclosure", &["delta"]),
    (Some("basic"), "beta-likeness", &["beta"]),
    (Some("enhanced"), "beta-likeness", &["beta"]),
];

impl RuleRecord {
    /// A rule without parameters.
    pub fn new(rule: &str) -> Self {
        let (parameters, attained) = (BTreeMap::new(), BTreeMap::new());
        Self { rule: rule.to_owned(), kind: None, column: None, parameters, attained }
    }

    /// A rule about a column.
    pub fn on_column(rule: &str, column: &str) -> Self {
        Self { column: Some(column.to_owned()), ..Self::new(rule) }
    }

    /// The record of `k`, counted in rows or in people.
    pub fn group_size(k: u32, people: bool) -> Self {
        let record = Self::new("k").with_parameter("k", f64::from(k));
        if people { record.with_kind("people") } else { record }
    }

    /// The same with its kind.
    pub fn with_kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    /// The same with one more parameter.
    pub fn with_parameter(mut self, name: &str, value: f64) -> Self {
        self.parameters.insert(name.to_owned(), value);
        self
    }

    /// Whether two records ask for the same, whatever is attained.
    pub fn asks_same_as(&self, other: &Self) -> bool {
        (&self.rule, &self.kind, &self.column, &self.parameters)
            == (&other.rule, &other.kind, &other.column, &other.parameters)
    }

    /// Reads the sentence that a record prints as. One that is none becomes a rule of that name, which is nobody's.
    pub fn parse_sentence(sentence: &str) -> Self {
        parse_listed(sentence).or_else(|| parse_special(sentence)).unwrap_or_else(|| Self::new(sentence))
    }

    fn parameter(&self, name: &str) -> f64 {
        self.parameters.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// Reads `<kind> <rule> of <column>, <name> = <value>, ...`. Columns may hold anything, so parameters are taken off the end.
fn parse_listed(sentence: &str) -> Option<RuleRecord> {
    LISTED.iter().find_map(|(kind, rule, names)| {
        let head = kind.map_or_else(|| (*rule).to_owned(), |kind| format!("{kind} {rule}"));
        let mut column = sentence.strip_prefix(&format!("{head} of "))?;
        let mut record = RuleRecord::new(rule);
        record.kind = kind.map(str::to_owned);
        for name in names.iter().rev() {
            let (before, value) = column.rsplit_once(&format!(", {name} = "))?;
            record.parameters.insert((*name).to_owned(), value.parse().ok()?);
            column = before;
        }
        record.column = Some(column.to_owned());
        Some(record)
    })
}

/// Reads the sentences of rules that have one of their own.
fn parse_special(sentence: &str) -> Option<RuleRecord> {
    if let Some(k) = sentence.strip_prefix("k = ") {
        let (k, people) = k.strip_suffix(" people").map_or((k, false), |k| (k, true));
        return Some(RuleRecord::group_size(k.parse().ok()?, people));
    }
    if let Some(bound) = sentence.strip_prefix("max-loss = ") {
        return Some(RuleRecord::new("max-loss").with_parameter("max-loss", bound.parse().ok()?));
    }
    if let Some(bounds) = sentence.strip_prefix("presence between ") {
        let (min, max) = bounds.split_once(" and ")?;
        let record = RuleRecord::new("presence").with_parameter("min", min.parse().ok()?);
        return Some(record.with_parameter("max", max.parse().ok()?));
    }
    if let Some(people) = sentence.strip_suffix(" people of the public table") {
        return Some(RuleRecord::new("k-map").with_parameter("people", people.parse().ok()?));
    }
    if let Some(rest) = sentence.strip_prefix("range-diversity of ") {
        let (column, p) = rest.rsplit_once(" = ")?;
        return Some(RuleRecord::on_column("range-diversity", column).with_parameter("p", p.parse().ok()?));
    }
    if let Some(rest) = sentence.strip_prefix("guarding of ") {
        let (rest, p) = rest.rsplit_once(" nodes, p = ")?;
        let (column, nodes) = rest.rsplit_once(", ")?;
        let record = RuleRecord::on_column("guarding", column).with_parameter("nodes", nodes.parse().ok()?);
        return Some(record.with_parameter("p", p.parse().ok()?));
    }
    let column = sentence.strip_prefix("evenness of ")?;
    Some(RuleRecord::on_column("evenness", column))
}

impl fmt::Display for RuleRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |name: &str| self.parameter(name);
        match (self.rule.as_str(), &self.column) {
            ("k", None) => {
                let counted = self.kind.as_deref().map_or(String::new(), |kind| format!(" {kind}"));
                write!(f, "k = {}{counted}", value("k"))
            }
            ("max-loss", None) => write!(f, "max-loss = {}", value("max-loss")),
            ("presence", None) => write!(f, "presence between {} and {}", value("min"), value("max")),
            ("k-map", None) => write!(f, "{} people of the public table", value("people")),
            ("range-diversity", Some(column)) => write!(f, "range-diversity of {column} = {}", value("p")),
            ("guarding", Some(column)) => {
                write!(f, "guarding of {column}, {} nodes, p = {}", value("nodes"), value("p"))
            }
            (rule, column) => {
                let kind = self.kind.as_deref().map_or(String::new(), |kind| format!("{kind} "));
                let column = column.as_ref().map_or(String::new(), |column| format!(" of {column}"));
                write!(f, "{kind}{rule}{column}")?;
                let names = LISTED.iter().find(|(kind, name, _)| *name == rule && *kind == self.kind.as_deref());
                let ordered = names.map_or(&[][..], |(_, _, names)| *names);
                let listed = ordered.iter().filter_map(|name| self.parameters.get_key_value(*name));
                let others = self.parameters.iter().filter(|(name, _)| !ordered.contains(&name.as_str()));
                listed.chain(others).try_for_each(|(name, value)| write!(f, ", {name} = {value}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every rule that there is, about a column and with numbers.
    fn any_record() -> impl Strategy<Value = RuleRecord> {
        let column = prop_oneof![
            Just("ill".to_owned()),
            Just("a, l = 2".to_owned()),
            Just("x of y".to_owned()),
            Just("q, 3 nodes, p = 1".to_owned()),
            Just("p = 5 people".to_owned()),
            "[a-z ,=]{1,12}",
        ];
        (0..LISTED.len() + 7, column, 1..2000_u32, 1..1000_u32).prop_map(|(which, column, whole, milli)| {
            let (whole_f64, share) = (f64::from(whole), f64::from(milli) / 1000.0);
            if let Some((kind, rule, names)) = LISTED.get(which) {
                let record = RuleRecord::on_column(rule, &column);
                let record = kind.map_or(record.clone(), |kind| record.with_kind(kind));
                let values = [share, whole_f64];
                return names
                    .iter()
                    .zip(values)
                    .fold(record, |record, (name, value)| record.with_parameter(name, value));
            }
            match which - LISTED.len() {
                0 => RuleRecord::group_size(whole, whole % 2 == 0),
                1 => RuleRecord::new("max-loss").with_parameter("max-loss", share),
                2 => RuleRecord::new("presence").with_parameter("min", share / 2.0).with_parameter("max", share),
                3 => RuleRecord::new("k-map").with_parameter("people", whole_f64),
                4 => RuleRecord::on_column("range-diversity", &column).with_parameter("p", share),
                5 => RuleRecord::on_column("guarding", &column)
                    .with_parameter("nodes", whole_f64)
                    .with_parameter("p", share),
                _ => RuleRecord::on_column("evenness", &column),
            }
        })
    }

    proptest! {
        /// What a manifest of format 1 says of a rule is what format 2 says.
        #[test]
        fn sentences_are_read_as_they_were_printed(record in any_record()) {
            let sentence = record.to_string();
            prop_assert_eq!(RuleRecord::parse_sentence(&sentence), record, "{}", sentence);
        }

        #[test]
        fn a_text_that_is_no_rule_stays_itself(text in "[A-Z][a-zA-Z0-9 =,-]{0,20}") {
            prop_assert_eq!(RuleRecord::parse_sentence(&text).to_string(), text);
        }
    }

    #[test]
    fn rules_are_named_as_they_always_were() {
        let on = |rule: &str| RuleRecord::on_column(rule, "ill");
        let named = [
            (RuleRecord::group_size(5, true), "k = 5 people"),
            (
                on("l-diversity").with_kind("recursive").with_parameter("c", 2.5).with_parameter("l", 3.0),
                "recursive l-diversity of ill, c = 2.5, l = 3",
            ),
            (on("k-e").with_parameter("k", 3.0).with_parameter("e", 10.0), "k-e of ill, k = 3, e = 10"),
            (on("guarding").with_parameter("p", 0.4).with_parameter("nodes", 2.0), "guarding of ill, 2 nodes, p = 0.4"),
            (on("t-closeness").with_parameter("t", 0.15), "t-closeness of ill, t = 0.15"),
        ];
        for (record, name) in named {
            assert_eq!(record.to_string(), name);
        }
    }

    #[test]
    fn what_is_attained_is_not_what_is_asked() {
        let asked = RuleRecord::group_size(5, false);
        let mut attained = asked.clone();
        attained.attained.insert("k".into(), 7.0);
        assert!(asked.asks_same_as(&attained) && asked != attained);
        assert!(!asked.asks_same_as(&RuleRecord::group_size(5, true)));
        assert!(!asked.asks_same_as(&RuleRecord::group_size(6, false)));
    }
}
