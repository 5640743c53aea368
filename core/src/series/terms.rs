//! What a policy asks of a class, as far as two policies of one series are compared by it.
//!
//! Within a series a policy may only become stricter: k may rise, bounds may tighten, rules may be added. Cohorts that were
//! published before meet the terms of their time, so a release as a whole meets the first ones.

use std::collections::BTreeMap;
use std::fmt;

/// The bounds of a policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// Fewest rows of a class.
    pub k: u32,
    /// Rules by what they are about, such as `l-diversity (distinct) of disease`.
    pub rules: BTreeMap<String, Vec<Bound>>,
}

/// One number of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Its key in the job file.
    pub key: String,
    /// The number.
    pub value: f64,
    /// Whether a larger number asks more.
    pub rises: bool,
}

/// Something that a policy asks less of.
#[derive(Debug, Clone, PartialEq)]
pub enum Loosened {
    /// k is lower.
    K(u32, u32),
    /// A rule is gone.
    Gone(String),
    /// A bound is wider: the rule, its key, the number before and now.
    Wider(String, String, f64, f64),
}

impl fmt::Display for Loosened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::K(before, now) => write!(f, "k was {before} and is {now}"),
            Self::Gone(rule) => write!(f, "{rule} is asked no more"),
            Self::Wider(rule, key, before, now) => write!(f, "{key} of {rule} was {before} and is {now}"),
        }
    }
}

/// What a policy asks less than another one that was in force before.
pub fn find_loosened(before: &Terms, now: &Terms) -> Vec<Loosened> {
    let mut found = Vec::new();
    if now.k < before.k {
        found.push(Loosened::K(before.k, now.k));
    }
    for (rule, bounds) in &before.rules {
        let Some(others) = now.rules.get(rule) else {
            found.push(Loosened::Gone(rule.clone()));
            continue;
        };
        for bound in bounds {
            let other = others.iter().find(|other| other.key == bound.key);
            let is_wider = |now: f64| if bound.rises { now < bound.value } else { now > bound.value };
            match other {
                None => found.push(Loosened::Gone(format!("{} of {rule}", bound.key))),
                Some(other) if is_wider(other.value) => {
                    found.push(Loosened::Wider(rule.clone(), bound.key.clone(), bound.value, other.value));
                }
                Some(_) => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(k: u32, rules: &[(&str, f64, bool)]) -> Terms {
        let bound = |&(rule, value, rises): &(&str, f64, bool)| {
            (rule.to_owned(), vec![Bound { key: "bound".into(), value, rises }])
        };
        Terms { k, rules: rules.iter().map(bound).collect() }
    }

    #[test]
    fn stricter_policies_are_not_loosened() {
        let before = terms(5, &[("variety", 3.0, true), ("share", 0.5, false)]);
        assert!(find_loosened(&before, &before).is_empty());
        let now = terms(6, &[("variety", 4.0, true), ("share", 0.4, false), ("more", 1.0, true)]);
        assert!(find_loosened(&before, &now).is_empty());
    }

    #[test]
    fn whatever_is_looser_is_named() {
        let before = terms(5, &[("variety", 3.0, true), ("share", 0.5, false), ("other", 1.0, true)]);
        let now = terms(4, &[("variety", 2.0, true), ("share", 0.6, false)]);
        let reported: Vec<String> = find_loosened(&before, &now).iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            [
                "k was 5 and is 4",
                "other is asked no more",
                "bound of share was 0.5 and is 0.6",
                "bound of variety was 3 and is 2",
            ]
        );
    }
}
