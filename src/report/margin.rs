//! How near a release comes to each of its rules.

use super::Report;
use super::text::{count, number, optional};
use crate::privacy::Figures;

/// How near the release comes to a rule: the parameter with which it would just hold, where the manifest tells.
pub(super) fn margin(rule: &str, report: &Report) -> String {
    let manifest = &report.manifest;
    let scores = &manifest.scores;
    if rule.starts_with("k = ") {
        let people = manifest.verification.people.as_ref().map(|people| people.classes.smallest);
        return match people {
            Some(people) => format!("smallest class: {} people", count(people)),
            None => format!("smallest class: {} rows", count(manifest.verification.classes.smallest)),
        };
    }
    if rule.starts_with("max-loss") {
        return format!("worst group loses {}", optional(scores.wgu));
    }
    if rule.starts_with("range-diversity") {
        return format!("worst group discloses a range with {}", optional(scores.wgp));
    }
    let figures = manifest.verification.attained.iter().find_map(|(column, figures)| {
        let (kind, rest) = rule.split_once(" of ")?;
        let about = rest.strip_prefix(column.as_str())?;
        (about.is_empty() || about.starts_with([',', ' '])).then(|| of(kind, figures))?
    });
    let varied = report.varieties.iter().find(|variety| rule.contains(&format!(" of {},", variety.column)));
    match (figures, varied) {
        (Some(margin), _) => margin,
        (None, Some(variety)) if rule.starts_with("distinct l-diversity") => {
            format!("fewest values in a class: {}", count(variety.fewest))
        }
        _ => "counted class by class".into(),
    }
}

/// The worst of a release by one kind of rule.
fn of(kind: &str, figures: &Figures) -> Option<String> {
    let up_to =
        |name: &str, value: Option<f64>| value.map(|value| format!("{name} = {} in the worst class", number(value)));
    match kind {
        "distinct l-diversity" | "p-sensitive" => Some(format!("fewest values in a class: {}", count(figures.l))),
        "entropy l-diversity" => up_to("l", Some(figures.entropy_l)),
        "recursive l-diversity" => Some(format!("c = {} with l = {}", number(figures.c), figures.l)),
        "alpha-k" => up_to("alpha", Some(figures.alpha)),
        "hierarchical t-closeness" => up_to("t", figures.t_hierarchical),
        "t-closeness" => up_to("t", figures.t),
        "enhanced beta-likeness" => up_to("beta", figures.beta_enhanced),
        "basic beta-likeness" => up_to("beta", figures.beta),
        "delta-disclosure" => up_to("delta", figures.delta),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_rule_is_told_by_its_own_figure() {
        let figures = Figures { l: 3, entropy_l: 2.5, c: 1.25, alpha: 0.4, t: Some(0.3), ..Figures::default() };
        let told = |kind: &str| of(kind, &figures);
        assert_eq!(told("distinct l-diversity").as_deref(), Some("fewest values in a class: 3"));
        assert_eq!(told("entropy l-diversity").as_deref(), Some("l = 2.5 in the worst class"));
        assert_eq!(told("recursive l-diversity").as_deref(), Some("c = 1.25 with l = 3"));
        assert_eq!(told("alpha-k").as_deref(), Some("alpha = 0.4 in the worst class"));
        assert_eq!(told("t-closeness").as_deref(), Some("t = 0.3 in the worst class"));
        assert_eq!(told("hierarchical t-closeness"), None, "was not measured");
        assert_eq!(told("guarding"), None);
    }
}
