//! Risks in the population, as a section of the page.

use super::text::{count, escape, share};
use crate::release::Manifest;

/// What somebody can do who does not know that a person is in the data; nothing when the manifest does not tell.
pub(super) fn population(manifest: &Manifest) -> String {
    let Some(risk) = &manifest.population else { return String::new() };
    let mut text = String::from(
        "<section id=\"population\"><h2>Risk in the population</h2><p class=\"lead\">For somebody who does not know whether a \
         person is in the data at all.</p>",
    );
    let mut rows = String::new();
    let mut row = |id: &str, name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows +=
                &format!("<tr id=\"{id}\"><th scope=\"row\">{name}</th><td class=\"n\">{}</td></tr>", escape(&value));
        }
    };
    row("k-map", "Fewest people of the public table who fit a class (k-map)", risk.k_map.map(count));
    row("journalist", "Most exposed person, found by the public table", risk.journalist.map(share));
    row("marketer", "Share of right links to the public table", risk.marketer.map(share));
    if !rows.is_empty() {
        text += &format!("<div class=\"wide\"><table><tbody>{rows}</tbody></table></div>");
    }
    if let (Some(people), Some(source), Some(release)) = (risk.people, &risk.source, &risk.release) {
        let show = |estimate: Option<f64>| estimate.map_or("no estimate".to_owned(), |people| format!("{people:.1}"));
        let models = [
            ("Pitman", source.pitman, release.pitman),
            ("Zayatz", source.zayatz, release.zayatz),
            ("SNB", source.snb, release.snb),
            ("chosen (Dankar)", source.chosen, release.chosen),
        ];
        let line = |(model, before, after): &(&str, Option<f64>, Option<f64>)| {
            format!(
                "<tr><th scope=\"row\">{model}</th><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                show(*before),
                show(*after)
            )
        };
        text += &format!(
            "<h3 class=\"later\">Estimated unique people in a population of {}</h3><div class=\"wide\"><table><thead><tr>\
             <th scope=\"col\">model</th><th scope=\"col\" class=\"n\">source as it is</th><th scope=\"col\" class=\"n\">release</th>\
             </tr></thead><tbody>{}</tbody></table></div>",
            count(people),
            models.iter().map(line).collect::<String>()
        );
    }
    text + "</section>"
}
