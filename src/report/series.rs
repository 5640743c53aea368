//! What the releases of a sink reveal together, if figures of an attack on them are given.

use super::Report;
use super::chart::{Charts, Curve};
use super::text::{escape_html, format_count, format_share};
use crate::audit::{ColumnExposure, ColumnRelease};

/// Exposure over releases, column by column.
pub(super) fn series_section(report: &Report, charts: &mut Charts) -> String {
    let Some(attack) = &report.series else { return String::new() };
    let mut cards = String::new();
    for (name, column) in &attack.sensitive {
        cards += &exposure_card(name, column, attack.k, charts);
    }
    format!(
        "<section id=\"series\"><h2>Several releases together</h2><p class=\"lead\">What is left to hide behind when {} releases are \
         compared, one after the other, by somebody who knows everybody's quasi-identifiers and who was there for which release. \
         Nobody is named: these are shares of all people.</p><div class=\"columns\">{cards}</div></section>",
        format_count(attack.releases.len() as u64)
    )
}

/// A share of people after a release.
type Figure = fn(&ColumnRelease) -> f64;

fn exposure_card(name: &str, column: &ColumnExposure, k: u32, charts: &mut Charts) -> String {
    let Some(last) = column.releases.last() else { return String::new() };
    let figures: [(String, Figure); 3] = [
        ("one value".into(), |known| known.one_value),
        (format!("fewer than {} values", column.least_values), |known| known.below_least),
        (format!("fewer than {k} rows"), |known| known.below_k),
    ];
    let curve = |(name, figure): (String, Figure)| Curve {
        name,
        points: column.releases.iter().enumerate().map(|(at, known)| ((at + 1) as f64, figure(known))).collect(),
    };
    let curves: Vec<Curve> = figures.into_iter().map(curve).collect();
    let exposed = curves.iter().flat_map(|curve| &curve.points).any(|point| point.1 > 0.0);
    let nobody = if exposed { "" } else { "<p>Nobody is left with less than a single release guarantees.</p>" };
    let drawn = charts.draw_curves(&format!("Exposure of {name}"), "releases compared", "share of people", &curves);
    format!(
        "<article class=\"card\"><h3><code>{}</code></h3><p>In the end {} of {} people may have one value only, and {} fewer than {}.</p>\
         {nobody}{drawn}</article>",
        escape_html(name),
        format_share(last.one_value),
        format_count(last.exposure.people),
        format_share(last.below_least),
        column.least_values
    )
}
