//! Checks of the privacy rules: possible values, columns that fit, sensitive ranges that hold their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check::outside_share;
use super::model::{
    ConfiguredRule, Diversity, Job, LDiversity, ListedRange, RangeDiversity, RangeOf, Ranges, Role, Values,
};
use crate::error::Problem;
use crate::error::problem::nearest_word;
use crate::hierarchy::LevelTree;
use crate::model::Sensitive;
use crate::privacy::{self, Histogram, RuleRecord, SensitiveRule, Setting};

/// Below this k a group is small enough for a person to be picked out with a little outside knowledge.
const SMALL_K: u32 = 5;

/// The level hierarchies of the job that could be opened, by column.
pub(super) type Trees = BTreeMap<String, LevelTree>;

pub(super) fn check_privacy(job: &Job, trees: &Trees, problems: &mut Vec<Problem>) {
    let privacy = &job.privacy;
    if privacy.k < 2 {
        problems.push(Problem::error("privacy.k", format!("must be at least 2, got {}", privacy.k)));
    } else if privacy.k < SMALL_K {
        let message = format!("{} is small: each row hides among only {} others", privacy.k, privacy.k - 1);
        problems.push(Problem::warning("privacy.k", message).help("5 or more is usual, 10 or more for open data"));
    }
    problems.extend(outside_share("privacy.max-suppression", privacy.max_suppression));
    problems.extend(privacy.max_loss.and_then(|max_loss| outside_share("privacy.max-loss", max_loss)));
    if privacy.max_suppression >= 1.0 {
        problems.push(Problem::warning("privacy.max-suppression", "allows every row to be suppressed"));
    }
    let several = privacy.range_diversity.len() > 1;
    let mut seen = BTreeSet::new();
    for (index, rule) in privacy.range_diversity.iter().enumerate() {
        let key = rule_key("range-diversity", several, index);
        check_range_diversity(job, rule, &key, trees, problems);
        if !seen.insert(&rule.column) {
            problems.push(Problem::error(key, format!("there are two range-diversity rules for `{}`", rule.column)));
        }
    }
    let several = privacy.l_diversity.len() > 1;
    for (index, rule) in privacy.l_diversity.iter().enumerate() {
        check_l_diversity(job, rule, &rule_key("l-diversity", several, index), problems);
    }
    for listed in privacy.rules() {
        check_rule(job, &listed, trees, problems);
    }
    check_person(job, problems);
    note_unguarded(job, problems);
}

/// What holds for every rule about a sensitive column.
fn check_rule(
    job: &Job,
    ConfiguredRule { key, rule, .. }: &ConfiguredRule,
    trees: &Trees,
    problems: &mut Vec<Problem>,
) {
    let column = rule.column();
    problems.extend(not_sensitive(job, column, key));
    let flaws = rule.flaws(trees.get(column));
    problems.extend(flaws.into_iter().map(|flaw| Problem::error(format!("{key}.{}", flaw.key), flaw.message)));
    let hierarchy = job.columns.get(column).is_some_and(|column| column.hierarchy.is_some());
    let needs = rule.needs();
    if needs.hierarchy && !hierarchy {
        let message = format!("needs a hierarchy, but `{column}` has none");
        problems.push(Problem::error(key, message).help(format!("give columns.{column} a hierarchy")));
    }
    if (needs.numbers || needs.order) && hierarchy {
        problems.push(Problem::error(key, format!("needs plain numbers, but `{column}` has a hierarchy")));
    }
}

/// The column that identifies people must still identify them when rows are grouped.
fn check_person(job: &Job, problems: &mut Vec<Problem>) {
    let Some(person) = job.privacy.person.as_deref() else { return };
    let key = "privacy.person";
    match job.columns.get(person).map(|column| column.role).or(job.defaults.as_ref().and_then(|defaults| defaults.role))
    {
        Some(Role::Identifier | Role::Sensitive) => {}
        Some(Role::Quasi) => problems.push(
            Problem::error(key, format!("`{person}` is a quasi-identifier, which is generalised"))
                .help("give it the role \"identifier\""),
        ),
        Some(Role::Kept) => problems.push(
            Problem::warning(key, format!("`{person}` is published unchanged, which links all rows of a person"))
                .help("give it the role \"identifier\" to drop it"),
        ),
        None => {
            let problem = Problem::error(key, format!("`{person}` is not among the columns"));
            problems.push(match nearest_word(person, job.columns.keys().map(String::as_str)) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("add {person} = {{ role = \"identifier\" }} to [columns]")),
            });
        }
    }
}

fn rule_key(rule: &str, several: bool, index: usize) -> String {
    if several { format!("privacy.{rule}[{index}]") } else { format!("privacy.{rule}") }
}

fn check_range_diversity(job: &Job, rule: &RangeDiversity, key: &str, trees: &Trees, problems: &mut Vec<Problem>) {
    let k = job.privacy.k;
    if let Some(problem) = outside_share(&format!("{key}.p"), rule.p) {
        problems.push(problem);
    } else if k >= 2 && rule.p < 1.0 / f64::from(k) {
        let least = 1.0 / f64::from(k);
        problems.push(
            Problem::error(
                format!("{key}.p"),
                format!(
                    "{} is below 1/k = {least}, and the range diversity of a group of k = {k} rows is at least 1/k",
                    rule.p
                ),
            )
            .help(format!("set p to {least} or more, or raise k to {} or more", (1.0 / rule.p).ceil())),
        );
    }
    let key = format!("{key}.ranges");
    let tree = trees.get(&rule.column);
    let has_hierarchy = job.columns.get(&rule.column).is_some_and(|column| column.hierarchy.is_some());
    match &rule.ranges {
        Ranges::Identity => {}
        Ranges::Level(_) if !has_hierarchy => {
            let message = format!("a level needs a hierarchy, but `{}` has none", rule.column);
            problems.push(Problem::error(key, message).help("give the column a hierarchy, or use { interval = ... }"));
        }
        Ranges::Level(level) => {
            if let Some(tree) = tree
                && *level as usize > tree.height()
            {
                let message =
                    format!("level {level} is above the top; the hierarchy of `{}` has {}", rule.column, tree.height());
                problems.push(Problem::error(key, message));
            }
        }
        Ranges::Interval(length) => {
            if !(length.is_finite() && *length > 0.0) {
                problems.push(Problem::error(&key, format!("the interval must be longer than 0, got {length}")));
            }
            if has_hierarchy {
                let message = format!("an interval needs numbers, but `{}` has a hierarchy", rule.column);
                problems.push(Problem::error(&key, message).help("use { level = ... }"));
            }
        }
        Ranges::Listed(listed) => {
            for (index, range) in listed.iter().enumerate() {
                let checked = check_listed(range, tree).and_then(|()| ensure_apart(range, &listed[..index]));
                if let Err(message) = checked {
                    problems.push(Problem::error(format!("{key}[{index}]"), message));
                }
            }
        }
    }
}

/// A listed range must hold all values that it belongs to.
fn check_listed(listed: &ListedRange, tree: Option<&LevelTree>) -> Result<(), String> {
    match (&listed.values, &listed.range) {
        (Values::Between([low, high]), RangeOf::Between([from, to])) => {
            if low > high || from > to || [low, high, from, to].iter().any(|end| end.is_nan()) {
                return Err("the lower end must come first".to_owned());
            }
            if from > low || to < high {
                return Err(format!("the range [{from}, {to}] must hold the values [{low}, {high}]"));
            }
            Ok(())
        }
        (Values::Listed(values), RangeOf::Listed(range)) => match values.iter().find(|value| !range.contains(value)) {
            Some(value) => Err(format!("the range must hold the value `{value}`")),
            None if tree.is_some() => Err("the column has a hierarchy: name one of its nodes as the range".to_owned()),
            None => Ok(()),
        },
        (Values::Listed(values), RangeOf::Node(node)) => {
            let Some(tree) = tree else { return Err(format!("the node `{node}` needs a hierarchy of the column")) };
            ensure_known(values, Some(tree))?;
            if tree.span_of(node).is_none() {
                return Err(format!("the hierarchy has no node `{node}`"));
            }
            match values.iter().find(|value| !tree.covers(node, value)) {
                Some(value) => Err(format!("the node `{node}` is not above the value `{value}`")),
                None => Ok(()),
            }
        }
        _ => Err("`values` and `range` must both be numbers or both be texts".to_owned()),
    }
}

/// Ranges of listed texts are the same or have nothing in common: without an order, no more can be distinguished.
fn ensure_apart(listed: &ListedRange, before: &[ListedRange]) -> Result<(), String> {
    let RangeOf::Listed(range) = &listed.range else { return Ok(()) };
    for other in before {
        let RangeOf::Listed(other) = &other.range else { continue };
        let shared = range.iter().filter(|value| other.contains(value)).count();
        let same = range.iter().all(|value| other.contains(value)) && other.iter().all(|value| range.contains(value));
        if shared > 0 && !same {
            return Err("two ranges overlap; make them equal, or give the column a hierarchy".to_owned());
        }
    }
    Ok(())
}

fn ensure_known<'a>(values: impl IntoIterator<Item = &'a String>, tree: Option<&LevelTree>) -> Result<(), String> {
    match (tree, values.into_iter().find(|value| tree.is_some_and(|tree| tree.find_leaf(value).is_none()))) {
        (Some(_), Some(value)) => Err(format!("the hierarchy does not contain the value `{value}`")),
        _ => Ok(()),
    }
}

fn check_l_diversity(job: &Job, rule: &LDiversity, key: &str, problems: &mut Vec<Problem>) {
    let l = rule.l;
    if !(l.is_finite() && l > 1.0) {
        problems.push(Problem::error(format!("{key}.l"), format!("must be above 1, got {l}")));
    } else if rule.kind != Diversity::Entropy && l.fract() != 0.0 {
        problems.push(Problem::error(format!("{key}.l"), format!("must be a whole number, got {l}")));
    } else if l > f64::from(job.privacy.k) {
        let message = format!("{l} is above k = {}, so every group needs at least {l} rows", job.privacy.k);
        problems.push(Problem::note(format!("{key}.l"), message));
    }
    match (rule.kind, rule.c) {
        (Diversity::Recursive, None) => {
            problems.push(
                Problem::error(format!("{key}.c"), "is missing: recursive (c, l)-diversity needs it").help("c = 3"),
            );
        }
        (Diversity::Recursive, Some(c)) if !(c.is_finite() && c > 0.0) => {
            problems.push(Problem::error(format!("{key}.c"), format!("must be above 0, got {c}")));
        }
        (Diversity::Distinct | Diversity::Entropy, Some(_)) => {
            problems.push(Problem::error(format!("{key}.c"), "is an option of kind = \"recursive\""));
        }
        _ => {}
    }
}

impl LDiversity {
    /// The rule that this form stands for.
    pub(crate) fn to_rule(&self) -> privacy::l_diversity::LDiversity {
        let l = self.l as usize;
        let kind = match self.kind {
            Diversity::Distinct => privacy::l_diversity::Diversity::Distinct { l },
            Diversity::Entropy => privacy::l_diversity::Diversity::Entropy { l: self.l },
            Diversity::Recursive => privacy::l_diversity::Diversity::Recursive { c: self.c.unwrap_or(1.0), l },
        };
        privacy::l_diversity::LDiversity { column: self.column.clone(), kind }
    }
}

impl RangeDiversity {
    /// The rule that this form stands for; the ranges belong to the column.
    pub(crate) fn to_rule(&self) -> privacy::range_diversity::RangeDiversity {
        privacy::range_diversity::RangeDiversity { column: self.column.clone(), bound: self.p }
    }
}

/// A form of the job file judges as the rule that it stands for.
macro_rules! as_its_rule {
    ($form:ty) => {
        impl SensitiveRule for $form {
            fn column(&self) -> &str {
                &self.column
            }

            fn record(&self) -> RuleRecord {
                self.to_rule().record()
            }

            fn breach(&self) -> String {
                self.to_rule().breach()
            }

            fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool {
                self.to_rule().allows_histogram(histogram, column)
            }

            fn ready(&self, _setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
                Arc::new(self.to_rule())
            }
        }
    };
}

as_its_rule!(LDiversity);
as_its_rule!(RangeDiversity);

/// The problem with a rule about a column that is not sensitive.
pub(super) fn not_sensitive(job: &Job, column: &str, key: &str) -> Option<Problem> {
    let key = format!("{key}.column");
    match job.columns.get(column).map(|column| column.role) {
        Some(Role::Sensitive) => None,
        Some(_) => Some(
            Problem::error(key, format!("`{column}` is not a sensitive column"))
                .help(format!("set its role to \"sensitive\" in columns.{column}")),
        ),
        None if job.defaults.as_ref().is_some_and(|defaults| defaults.role == Some(Role::Sensitive)) => None,
        None => {
            let problem = Problem::error(key, format!("`{column}` is not among the columns"));
            Some(match nearest_word(column, job.columns.keys().map(String::as_str)) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("add {column} = {{ role = \"sensitive\" }} to [columns]")),
            })
        }
    }
}

/// Sensitive columns without a rule.
fn note_unguarded(job: &Job, problems: &mut Vec<Problem>) {
    let privacy = &job.privacy;
    for (name, column) in &job.columns {
        // The column that identifies people is counted, not guarded.
        let counted = privacy.person.as_deref() == Some(name);
        if column.role == Role::Sensitive && !counted && !privacy.guards_column(name) {
            problems.push(
                Problem::note(
                    format!("columns.{name}"),
                    "no rule guards it: all rows of a group may hold the same value",
                )
                .help(format!("add l-diversity = {{ column = \"{name}\", l = 2 }} to [privacy]")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Severity;
    use std::path::Path;

    fn problems(privacy: &str) -> Vec<Problem> {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\n[columns]\nage.role = \"quasi\"\n\
             pay.role = \"sensitive\"\nill = {{ role = \"sensitive\", hierarchy.tree = {{ lung = [\"flu\", \"cold\"], \
             skin = [\"rash\"] }} }}\n[privacy]\n{privacy}\n"
        );
        crate::policy::check(&Job::parse(&text, Path::new("job.toml")).unwrap(), Path::new("."))
    }

    fn errors(privacy: &str) -> Vec<String> {
        problems(privacy).iter().filter(|problem| problem.is_error()).map(Problem::to_string).collect()
    }

    fn range(rule: &str) -> String {
        errors(&format!("k = 5\nrange-diversity = {{ {rule} }}")).join("|")
    }

    #[test]
    fn k_and_shares() {
        assert_eq!(errors("k = 1"), ["privacy.k: must be at least 2, got 1"]);
        assert_eq!(errors("k = 0"), ["privacy.k: must be at least 2, got 0"]);
        assert_eq!(
            errors("k = 5\nmax-loss = 1.2\nmax-suppression = -0.1"),
            [
                "privacy.max-suppression: must be from 0 to 1, got -0.1",
                "privacy.max-loss: must be from 0 to 1, got 1.2"
            ]
        );
        assert_eq!(errors("k = 5\nmax-suppression = nan"), ["privacy.max-suppression: must be from 0 to 1, got NaN"]);
        let small = problems("k = 2");
        assert!(small.iter().any(|p| p.key == "privacy.k" && p.severity == Severity::Warning), "{small:?}");
    }

    #[test]
    fn p_below_one_over_k_is_refused_with_the_reason() {
        assert_eq!(
            range("column = \"pay\", p = 0.1"),
            "privacy.range-diversity.p: 0.1 is below 1/k = 0.2, and the range diversity of a group of k = 5 rows is at \
             least 1/k\n  help: set p to 0.2 or more, or raise k to 10 or more"
        );
        assert_eq!(range("column = \"pay\", p = 0.2"), "");
        assert_eq!(range("column = \"pay\", p = 1.1"), "privacy.range-diversity.p: must be from 0 to 1, got 1.1");
    }

    #[test]
    fn rules_are_about_sensitive_columns() {
        assert!(
            range("column = \"age\", p = 0.5")
                .starts_with("privacy.range-diversity.column: `age` is not a sensitive column")
        );
        assert_eq!(
            errors("k = 5\nl-diversity = { column = \"il\", l = 2 }"),
            ["privacy.l-diversity.column: `il` is not among the columns\n  help: did you mean `ill`?"]
        );
        let two = "k = 5\nrange-diversity = [{ column = \"pay\", p = 0.5 }, { column = \"pay\", p = 0.6 }]";
        assert_eq!(errors(two), ["privacy.range-diversity[1]: there are two range-diversity rules for `pay`"]);
    }

    #[test]
    fn ranges_fit_the_column() {
        let key = "privacy.range-diversity.ranges";
        assert_eq!(range("column = \"ill\", p = 0.5, ranges.level = 1"), "");
        assert_eq!(
            range("column = \"ill\", p = 0.5, ranges.level = 3"),
            format!("{key}: level 3 is above the top; the hierarchy of `ill` has 2")
        );
        assert!(
            range("column = \"pay\", p = 0.5, ranges.level = 1")
                .starts_with(&format!("{key}: a level needs a hierarchy"))
        );
        assert_eq!(range("column = \"pay\", p = 0.5, ranges.interval = 10"), "");
        assert_eq!(
            range("column = \"pay\", p = 0.5, ranges.interval = 0"),
            format!("{key}: the interval must be longer than 0, got 0")
        );
        assert!(range("column = \"ill\", p = 0.5, ranges.interval = 2").contains("an interval needs numbers"));
    }

    #[test]
    fn listed_ranges_hold_their_values() {
        let listed =
            |column: &str, listed: &str| range(&format!("column = \"{column}\", p = 0.5, ranges = [{{ {listed} }}]"));
        let key = "privacy.range-diversity.ranges[0]";
        assert_eq!(listed("pay", "values = [10, 20], range = [0, 20]"), "");
        assert_eq!(
            listed("pay", "values = [10, 20], range = [11, 20]"),
            format!("{key}: the range [11, 20] must hold the values [10, 20]")
        );
        assert_eq!(
            listed("pay", "values = [20, 10], range = [0, 20]"),
            format!("{key}: the lower end must come first")
        );
        assert_eq!(
            listed("pay", "values = [10, 20], range = \"lung\""),
            format!("{key}: `values` and `range` must both be numbers or both be texts")
        );
        assert_eq!(listed("ill", "values = [\"flu\"], range = \"lung\""), "");
        assert_eq!(
            listed("ill", "values = [\"flu\"], range = \"bone\""),
            format!("{key}: the hierarchy has no node `bone`")
        );
        assert_eq!(
            listed("ill", "values = [\"flu\"], range = \"skin\""),
            format!("{key}: the node `skin` is not above the value `flu`")
        );
        assert_eq!(
            listed("ill", "values = [\"gout\"], range = \"skin\""),
            format!("{key}: the hierarchy does not contain the value `gout`")
        );
        assert_eq!(
            listed("ill", "values = [\"flu\"], range = [\"cold\"]"),
            format!("{key}: the range must hold the value `flu`")
        );
        assert_eq!(
            listed("ill", "values = [\"flu\"], range = [\"flu\", \"cold\"]"),
            format!("{key}: the column has a hierarchy: name one of its nodes as the range")
        );
        assert_eq!(
            listed("pay", "values = [\"flu\"], range = \"lung\""),
            format!("{key}: the node `lung` needs a hierarchy of the column")
        );
    }

    #[test]
    fn l_diversity() {
        let rule = |rule: &str| errors(&format!("k = 5\nl-diversity = {{ column = \"ill\", {rule} }}")).join("|");
        let key = "privacy.l-diversity";
        assert_eq!(rule("l = 2"), "");
        assert_eq!(rule("l = 1"), format!("{key}.l: must be above 1, got 1"));
        assert_eq!(rule("l = 2.5"), format!("{key}.l: must be a whole number, got 2.5"));
        assert_eq!(rule("kind = \"entropy\", l = 2.5"), "");
        assert!(rule("kind = \"recursive\", l = 2").starts_with(&format!("{key}.c: is missing")));
        assert_eq!(rule("kind = \"recursive\", l = 2, c = 0"), format!("{key}.c: must be above 0, got 0"));
        assert_eq!(rule("l = 2, c = 2"), format!("{key}.c: is an option of kind = \"recursive\""));
        let above = problems("k = 5\nl-diversity = { column = \"ill\", l = 7 }");
        assert!(
            above.iter().any(|p| p.message == "7 is above k = 5, so every group needs at least 7 rows"),
            "{above:?}"
        );
    }

    #[test]
    fn every_rule_of_the_list_is_checked() {
        let all = "k = 5\nt-closeness = { column = \"ill\", t = 0.3 }\nalpha-k = { column = \"ill\", alpha = 0.5 }\n\
                   p-sensitive = { column = \"pay\", p = 2 }\nk-e = { column = \"pay\", k = 2, e = 10 }\n\
                   delta-disclosure = { column = \"ill\", delta = 2 }\n\
                   beta-likeness = [{ column = \"ill\", beta = 3 }, { column = \"pay\", beta = 3, kind = \"enhanced\" }]\n\
                   guarding = { column = \"ill\", nodes = [\"lung\", \"rash\"], p = 0.5 }";
        assert_eq!(errors(all), [""; 0]);
        assert_eq!(
            errors("k = 5\nt-closeness = { column = \"ill\", t = 0 }"),
            ["privacy.t-closeness.t: must be above 0 and at most 1, got 0"]
        );
        assert_eq!(
            errors("k = 5\nk-e = { column = \"pay\", k = 0, e = -1 }"),
            ["privacy.k-e.k: must be at least 1, got 0", "privacy.k-e.e: must be above 0, got -1"]
        );
        assert_eq!(
            errors("k = 5\nguarding = { column = \"ill\", nodes = [\"lungs\"], p = 0.5 }"),
            ["privacy.guarding.nodes: the hierarchy of `ill` has no node `lungs`"]
        );
        assert_eq!(
            errors("k = 5\nguarding = { column = \"pay\", nodes = [\"lung\"], p = 0.5 }"),
            ["privacy.guarding: needs a hierarchy, but `pay` has none\n  help: give columns.pay a hierarchy"]
        );
        assert_eq!(
            errors("k = 5\nk-e = { column = \"ill\", k = 2, e = 1 }"),
            ["privacy.k-e: needs plain numbers, but `ill` has a hierarchy"]
        );
        assert!(errors("k = 5\nalpha-k = { column = \"age\", alpha = 0.5 }")[0].contains("is not a sensitive column"));
        let two = "k = 5\nbeta-likeness = [{ column = \"ill\", beta = 3 }, { column = \"ill\", beta = 0 }]";
        assert_eq!(errors(two), ["privacy.beta-likeness[1].beta: must be above 0, got 0"]);
    }

    #[test]
    fn the_person_column_tells_people_apart() {
        assert_eq!(errors("k = 5\nperson = \"pay\""), [""; 0]);
        assert_eq!(
            errors("k = 5\nperson = \"age\""),
            [
                "privacy.person: `age` is a quasi-identifier, which is generalised\n  help: give it the role \"identifier\""
            ]
        );
        assert_eq!(
            errors("k = 5\nperson = \"pey\""),
            ["privacy.person: `pey` is not among the columns\n  help: did you mean `pay`?"]
        );
    }

    #[test]
    fn unguarded_columns_are_noted() {
        let noted: Vec<String> = problems("k = 5\nl-diversity = { column = \"ill\", l = 2 }")
            .iter()
            .filter(|problem| problem.severity == Severity::Note)
            .map(|problem| problem.key.clone())
            .collect();
        assert_eq!(noted, ["columns.pay"]);
    }
}
