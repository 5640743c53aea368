//! Risks in the population, as a section of the page.

use super::text::{escape_html, format_count, format_share};
use crate::attack::population::Uniques;
use crate::ledger::Manifest;

/// The risks from somebody who does not know that a person is in the data; empty if the manifest does not say.
pub(super) fn population_section(manifest: &Manifest) -> String {
    let Some(risk) = &manifest.population else { return String::new() };
    let mut text = String::from(
        "<section id=\"population\"><h2>Risk in the population</h2><p class=\"lead\">For somebody who does not know whether a \
         person is in the data at all.</p>",
    );
    let mut rows = String::new();
    let mut row = |id: &str, name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows += &format!(
                "<tr id=\"{id}\"><th scope=\"row\">{name}</th><td class=\"n\">{}</td></tr>",
                escape_html(&value)
            );
        }
    };
    row("k-map", "Fewest people of the public table who fit a class (k-map)", risk.k_map.map(format_count));
    row("journalist", "Most exposed person, found by the public table", risk.journalist.map(format_share));
    row("marketer", "Share of correct links to the public table", risk.marketer.map(format_share));
    if !rows.is_empty() {
        text += &format!("<div class=\"wide\"><table><tbody>{rows}</tbody></table></div>");
    }
    if let (Some(people), Some(release)) = (risk.people, &risk.release) {
        let show = |estimate: Option<f64>| estimate.map_or("no estimate".to_owned(), |people| format!("{people:.1}"));
        // If rows of the source were left out, the manifest says nothing about it.
        type Model = (&'static str, fn(&Uniques) -> Option<f64>);
        let models: [Model; 4] = [
            ("Pitman", |found| found.pitman),
            ("Zayatz", |found| found.zayatz),
            ("SNB", |found| found.snb),
            ("chosen (Dankar)", |found| found.chosen),
        ];
        let cell = |value: String| format!("<td class=\"n\">{value}</td>");
        let line = |(model, pick): &(&str, fn(&Uniques) -> Option<f64>)| {
            let source = risk.source.as_ref().map_or(String::new(), |source| cell(show(pick(source))));
            format!("<tr><th scope=\"row\">{model}</th>{source}{}</tr>", cell(show(pick(release))))
        };
        let source = risk.source.as_ref().map_or("", |_| "<th scope=\"col\" class=\"n\">source as it is</th>");
        text += &format!(
            "<h3 class=\"later\">Estimated unique people in a population of {}</h3><div class=\"wide\"><table><thead><tr>\
             <th scope=\"col\">model</th>{source}<th scope=\"col\" class=\"n\">release</th></tr></thead><tbody>{}</tbody></table></div>",
            format_count(people),
            models.iter().map(line).collect::<String>()
        );
    }
    text + "</section>"
}
