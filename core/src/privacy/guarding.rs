//! Guarding nodes (personalised privacy of Xiao and Tao; Tinabo, section 4): of the sensitive values of a group, no more
//! than a share p may lie below a node that somebody wants guarded.
//!
//! In the paper each person names a node for themselves, and the share below it bounds how surely that person's value
//! can be placed there. Here the job names the nodes that anybody has chosen, and every group is held to all of them:
//! that is at least what each person asked for, and the release need not say who chose what. Sensitive values are
//! published as they are, so the paper's other measure, for a published value that is itself a node, does not arise.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, Needs, RuleRecord, SensitiveRule, Setting, is_within_bound};
use crate::hierarchy::LevelTree;
use crate::model::Sensitive;

/// Guarding nodes: in no group may values below a guarded node of the hierarchy be common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Guarding {
    /// The sensitive column, which has a hierarchy.
    pub column: String,
    /// The guarded nodes or values of the hierarchy.
    pub nodes: Vec<String>,
    /// The largest share of a group whose values may lie below any one of them.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
}

impl Guarding {
    fn guarded_spans(&self, levels: Option<&LevelTree>) -> Vec<(u32, u32)> {
        let Some(levels) = levels else { return Vec::new() };
        self.nodes.iter().filter_map(|node| levels.span_of(node)).collect()
    }
}

/// The rule with its nodes looked up.
#[derive(Debug, Clone)]
struct Guarded {
    rule: Guarding,
    /// First and last code below each node; none when the hierarchy is missing.
    spans: Vec<(u32, u32)>,
}

/// The share of a group whose codes lie between two codes, both included.
pub fn share_between(histogram: Histogram<'_>, (lo, hi): (u32, u32)) -> f64 {
    let rows: u64 = histogram.iter().map(|&(_, count)| u64::from(count)).sum();
    let inside = histogram.iter().filter(|(code, _)| (lo..=hi).contains(code));
    inside.map(|&(_, count)| u64::from(count)).sum::<u64>() as f64 / rows.max(1) as f64
}

impl SensitiveRule for Guarded {
    fn column(&self) -> &str {
        &self.rule.column
    }

    fn record(&self) -> RuleRecord {
        self.rule.record()
    }

    fn breach(&self) -> String {
        self.rule.breach()
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        self.spans.len() == self.rule.nodes.len()
            && self.spans.iter().all(|&span| is_within_bound(share_between(histogram, span), self.rule.p))
    }

    fn excess(&self, histogram: Histogram<'_>, _column: &Sensitive) -> Option<f64> {
        Some(self.spans.iter().map(|&span| (share_between(histogram, span) - self.rule.p).max(0.0)).sum())
    }

    fn needs(&self) -> Needs {
        self.rule.needs()
    }

    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        self.rule.ready(setting)
    }
}

impl SensitiveRule for Guarding {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        let record = RuleRecord::on_column("guarding", &self.column);
        record.with_parameter("nodes", self.nodes.len() as f64).with_parameter("p", self.p)
    }

    fn breach(&self) -> String {
        format!("hold values of `{}` below a guarded node in a share of more than p = {}", self.column, self.p)
    }

    /// Not before its nodes are looked up.
    fn allows_histogram(&self, _histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs { hierarchy: true, ..Needs::default() }
    }

    fn flaws(&self, levels: Option<&LevelTree>) -> Vec<Flaw> {
        let mut flaws: Vec<Flaw> = Flaw::no_share("p", self.p).into_iter().collect();
        if self.nodes.is_empty() {
            flaws.push(Flaw::new("nodes", "names no node to guard"));
        }
        for node in self.nodes.iter().filter(|node| levels.is_some_and(|levels| levels.span_of(node).is_none())) {
            flaws.push(Flaw::new("nodes", format!("the hierarchy of `{}` has no node `{node}`", self.column)));
        }
        flaws
    }

    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        Arc::new(Guarded { rule: self.clone(), spans: self.guarded_spans(setting.levels) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn tinabo_guarding_nodes_bound_what_lies_below_them() {
        let levels = LevelTree::from_csv("flu;lung;*\ncold;lung;*\nrash;skin;*\nHIV;blood;*\n").unwrap();
        let rule = |nodes: &[&str], p| Guarding {
            column: "ill".into(),
            nodes: nodes.iter().map(ToString::to_string).collect(),
            p,
        };
        let column = fixtures::income(&[1.0], &[]);
        let leaf = |name| levels.find_leaf(name).unwrap();
        let mut group = [(leaf("flu"), 1), (leaf("cold"), 1), (leaf("rash"), 2)];
        group.sort_unstable();
        let setting = Setting { levels: Some(&levels), reserve: false };
        let holds = |nodes: &[&str], p| rule(nodes, p).ready(&setting).allows_histogram(&group, &column);
        assert!(holds(&["lung"], 0.5) && !holds(&["lung"], 0.4));
        assert!(holds(&["HIV", "flu"], 0.25) && !holds(&["flu", "skin"], 0.25));
        assert!(!rule(&["lung"], 1.0).allows_histogram(&group, &column), "nodes are not looked up yet");
        assert_eq!(rule(&["brain"], 0.5).flaws(Some(&levels))[0].message, "the hierarchy of `ill` has no node `brain`");
    }
}
