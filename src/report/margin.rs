//! How near a release comes to each of its rules.

use super::text::{format_count, format_number, format_optional};
use super::{Report, Variety};
use crate::ledger::Manifest;
use crate::privacy::RuleRecord;

/// How near the release comes to a rule: the parameter with which it would just hold, where that is known.
pub(super) fn describe_margin(rule: &RuleRecord, report: &Report) -> String {
    describe_attained(rule, &report.manifest, &report.varieties)
}

fn describe_attained(rule: &RuleRecord, manifest: &Manifest, varieties: &[Variety]) -> String {
    // Format 1 does not say what is attained; what follows from the rest of such a manifest is the same.
    let attained = if rule.attained.is_empty() { manifest.attained_of(rule) } else { rule.attained.clone() };
    let figure = |name: &str| attained.get(name).copied();
    let worst = |name: &str| figure(name).map(|value| format!("{name} = {} in the worst class", format_number(value)));
    let fewest = |fewest: f64| format!("fewest values in a class: {}", format_count(fewest as u64));
    let described = match (rule.rule.as_str(), rule.kind.as_deref()) {
        ("k", kind) => {
            let (sizes, _) = manifest.verification.sizes();
            Some(format!("smallest class: {} {}", format_count(sizes.smallest), kind.unwrap_or("rows")))
        }
        ("max-loss", _) => Some(format!("worst group loses {}", format_optional(figure("max-loss")))),
        ("range-diversity", _) => Some(format!("worst group discloses a range with {}", format_optional(figure("p")))),
        ("l-diversity", Some("distinct")) => figure("l").map(fewest).or_else(|| {
            let variety = varieties.iter().find(|variety| rule.column.as_ref() == Some(&variety.column))?;
            Some(fewest(variety.fewest as f64))
        }),
        ("l-diversity", Some("entropy")) => worst("l"),
        ("l-diversity", Some("recursive")) => figure("c")
            .zip(figure("l"))
            .map(|(c, l)| format!("c = {} with l = {}", format_number(c), format_count(l as u64))),
        ("p-sensitive", _) => figure("p").map(fewest),
        ("alpha-k", _) => worst("alpha"),
        ("t-closeness", _) => worst("t"),
        ("beta-likeness", _) => worst("beta"),
        ("delta-disclosure", _) => worst("delta"),
        _ => None,
    };
    described.unwrap_or_else(|| "counted class by class".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::manifest::tests::small_manifest;
    use crate::privacy::Figures;

    #[test]
    fn every_kind_of_rule_is_told_by_its_own_figure() {
        let mut manifest = small_manifest(99, 99);
        let figures = Figures { l: 3, entropy_l: 2.5, c: 1.25, alpha: 0.4, t: Some(0.3), ..Figures::default() };
        manifest.verification.attained.insert("ill".into(), figures);
        manifest.verification.classes.smallest = 1234;
        let described = |sentence: &str| describe_attained(&RuleRecord::parse_sentence(sentence), &manifest, &[]);
        assert_eq!(described("k = 5"), "smallest class: 1,234 rows");
        assert_eq!(described("max-loss = 0.4"), "worst group loses none");
        assert_eq!(described("distinct l-diversity of ill, l = 2"), "fewest values in a class: 3");
        assert_eq!(described("p-sensitive of ill, p = 2"), "fewest values in a class: 3");
        assert_eq!(described("entropy l-diversity of ill, l = 2"), "l = 2.5 in the worst class");
        assert_eq!(described("recursive l-diversity of ill, c = 2, l = 2"), "c = 1.25 with l = 3");
        assert_eq!(described("alpha-k of ill, alpha = 0.5"), "alpha = 0.4 in the worst class");
        assert_eq!(described("t-closeness of ill, t = 0.5"), "t = 0.3 in the worst class");
        assert_eq!(described("hierarchical t-closeness of ill, t = 0.5"), "counted class by class", "was not measured");
        assert_eq!(described("guarding of ill, 2 nodes, p = 0.5"), "counted class by class");
        assert_eq!(described("t-closeness of pay, t = 0.5"), "counted class by class", "another column");
    }

    /// The record says what is attained; nothing is read from a sentence or looked up elsewhere.
    #[test]
    fn what_a_record_says_is_attained_is_told() {
        let manifest = small_manifest(99, 99);
        let mut rule = RuleRecord::on_column("alpha-k", "a, b of c, alpha = 1").with_parameter("alpha", 0.5);
        rule.attained.insert("alpha".into(), 0.25);
        assert_eq!(describe_attained(&rule, &manifest, &[]), "alpha = 0.25 in the worst class");
        let column = "pay".to_owned();
        let variety = Variety { column, fewest: 4, fewest_size: 9, largest_share: 0.5, largest_size: 9 };
        let distinct = RuleRecord::on_column("l-diversity", "pay").with_kind("distinct");
        assert_eq!(describe_attained(&distinct, &manifest, &[variety]), "fewest values in a class: 4");
    }
}
