//! The utility of the release: errors of counts taken from it, and results of other settings.

use super::Report;
use super::chart::{Charts, Curve};
use super::text::{escape_html, format_count, format_share};
use crate::explore::Trial;
use crate::ledger::Scores;

/// The error of COUNT queries, where the run has measured it.
pub(super) fn query_section(report: &Report, charts: &mut Charts) -> String {
    let Some(found) = &report.manifest.scores.queries else { return String::new() };
    let bars = [
        ("half of the queries".to_owned(), found.median, format_share(found.median)),
        ("mean".to_owned(), found.mean, format_share(found.mean)),
        ("the worst query".to_owned(), found.worst, format_share(found.worst)),
    ];
    let chart = charts.draw_amounts("Relative error of COUNT queries", &bars, None);
    let mut rows = String::new();
    let mut row = |id: &str, name: &str, value: String| {
        rows += &format!("<tr><th scope=\"row\">{name}</th><td class=\"n\" id=\"{id}\">{value}</td></tr>");
    };
    row("q-count", "Queries with an answer", format_count(found.count as u64));
    row("q-empty", "Queries whose true answer is 0, left out", format_count(found.empty as u64));
    row("q-median", "Median relative error: half of the queries are nearer", format_share(found.median));
    row("q-mean", "Mean relative error", format_share(found.mean));
    row("q-worst", "Largest relative error", format_share(found.worst));
    format!(
        "<section id=\"queries\"><h2>Answers to queries</h2><p class=\"lead\">Queries drawn at random ask how many rows lie in a \
         range on some quasi-identifiers. A reader of the release has to spread every class evenly over what it covers: \
         the table shows how far such answers are from those of the source.</p><div class=\"card split\">{chart}<div class=\"wide\"><table>\
         <tbody>{rows}</tbody></table></div></div></section>"
    )
}

/// What a trial of a sweep is measured by.
type Score = fn(&Scores) -> Option<f64>;

/// What other settings would give, when a sweep is at hand.
pub(super) fn tradeoff_section(report: &Report, charts: &mut Charts) -> String {
    let sweep = &report.sweep;
    if sweep.is_empty() {
        return String::new();
    }
    let manifest = &report.manifest;
    let tried = sweep.iter().map(|trial| trial.rows).max().unwrap_or(0);
    // A sample loses more than the whole table: only settings tried on all rows compare with the release.
    let compares = tried == manifest.rows_read;
    let loss: Score = |scores| scores.gcp;
    let error: Score = |scores| Some(scores.queries.as_ref()?.median);
    let mut drawn = String::new();
    for (title, up, score) in [
        ("Loss by k and method", "mean loss (GCP)", loss),
        ("Query error by k and method", "median query error", error),
    ] {
        let mut curves = trial_curves(sweep, score);
        if curves.is_empty() {
            continue;
        }
        if let Some(here) = score(&manifest.scores).filter(|_| compares) {
            curves.push(Curve { name: "this release".into(), points: vec![(f64::from(manifest.k), here)] });
        }
        drawn += &format!("<div class=\"card\"><h3>{title}</h3>{}</div>", charts.draw_curves(title, "k", up, &curves));
    }
    let sample = if compares {
        String::new()
    } else {
        format!(
            " They were tried on a sample of {} rows, which loses more than all {} would: compare the lines with each \
             other, not with the release.",
            format_count(tried),
            format_count(manifest.rows_read)
        )
    };
    let refused: Vec<String> = sweep
        .iter()
        .filter(|trial| trial.refused.is_some())
        .map(|trial| format!("{} at k = {}", escape_html(&trial.method), trial.k))
        .collect();
    let refused = if refused.is_empty() {
        String::new()
    } else {
        format!("<p>Cannot meet the rules: {}.</p>", refused.join(", "))
    };
    format!(
        "<section id=\"tradeoff\"><h2>What other settings would give</h2><p class=\"lead\">Protection to the right, loss upwards: \
         the lower the line, the better the method.{sample}</p><div class=\"columns\">{drawn}</div>{refused}</section>"
    )
}

/// A line for every method, by k.
fn trial_curves(sweep: &[Trial], score: Score) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for trial in sweep {
        let Some(height) = trial.scores.as_ref().and_then(score) else { continue };
        let point = (f64::from(trial.k), height);
        match curves.iter_mut().find(|curve| curve.name == trial.method) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name: trial.method.clone(), points: vec![point] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(method: &str, k: u32, gcp: Option<f64>) -> Trial {
        let scores = gcp.map(|gcp| Scores { gcp: Some(gcp), ..Scores::default() });
        Trial {
            k,
            method: method.into(),
            rows: 100,
            suppressed: 0,
            classes: 1,
            refused: scores.is_none().then(|| "too few rows".into()),
            scores,
            seconds: 0.1,
            memory: None,
        }
    }

    #[test]
    fn every_method_has_a_line_in_the_order_of_k() {
        let sweep =
            [trial("a", 10, Some(0.2)), trial("b", 5, Some(0.3)), trial("a", 5, Some(0.1)), trial("b", 10, None)];
        let found = trial_curves(&sweep, |scores| scores.gcp);
        assert_eq!(found[0].points, [(5.0, 0.1), (10.0, 0.2)]);
        assert_eq!((found.len(), &found[1].points), (2, &vec![(5.0, 0.3)]));
        assert!(trial_curves(&sweep, |scores| scores.um).is_empty(), "what was not measured has no line");
    }
}
