//! The page itself: sections in the order in which people ask.

use super::answers::{query_section, tradeoff_section};
use super::chart::Charts;
use super::margin::describe_margin;
use super::population::population_section;
use super::series::series_section;
use super::text::{escape_html, format_count, format_number, format_optional, format_share};
use super::{ColumnReport, Report};
use crate::ledger::Manifest;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(super) fn render_page(report: &Report) -> String {
    let mut charts = Charts::default();
    let manifest = &report.manifest;
    let sections = [
        page_header(report),
        verdict_section(report),
        tile_section(report),
        page_contents(report),
        rule_section(report),
        column_section(report, &mut charts),
        class_section(report, &mut charts),
        risk_section(report),
        population_section(manifest),
        measure_section(manifest, report.bound.as_deref()),
        query_section(report, &mut charts),
        tradeoff_section(report, &mut charts),
        series_section(report, &mut charts),
        provenance_section(report),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>Release {run}</title><style>{STYLE}</style></head>\n<body><main>\n{}\n\
         <footer>Made by Throng {version} from the manifest and the published files alone. \
         No bin on this page holds fewer than {k} rows.</footer></main></body></html>\n",
        sections.join("\n"),
        run = escape_html(&manifest.run),
        version = escape_html(env!("CARGO_PKG_VERSION")),
        k = manifest.k,
    )
}

fn page_header(report: &Report) -> String {
    let manifest = &report.manifest;
    format!(
        "<header><h1>What was published</h1><p>Run <code>{}</code> in <code>{}</code>, committed {}</p></header>",
        escape_html(&manifest.run),
        escape_html(&report.sink),
        escape_html(&format_moment(&manifest.committed)),
    )
}

/// A point in time as people write it.
fn format_moment(timestamp: &str) -> String {
    let read: Result<jiff::Timestamp, _> = timestamp.parse();
    read.map_or_else(|_| timestamp.to_owned(), |time| time.strftime("%-d %B %Y, %H:%M UTC").to_string())
}

/// Ways into the page.
fn page_contents(report: &Report) -> String {
    let sections = [
        ("rules", "Rules", true),
        ("columns", "Columns", true),
        ("sizes", "Classes", true),
        ("risk", "Risk", true),
        ("measures", "Measures", true),
        ("queries", "Queries", report.manifest.scores.queries.is_some()),
        ("tradeoff", "Other settings", !report.sweep.is_empty()),
        ("series", "Several releases", report.series.is_some()),
        ("provenance", "Provenance", true),
    ];
    let links = sections.into_iter().filter(|(.., there)| *there);
    let links: Vec<String> = links.map(|(id, name, _)| format!("<a href=\"#{id}\">{name}</a>")).collect();
    format!("<nav aria-label=\"Sections\">{}</nav>", links.join(""))
}

fn verdict_section(report: &Report) -> String {
    if report.findings.is_empty() {
        let (sizes, noun) = report.manifest.verification.sizes();
        let of = if noun == "people" { "rows of " } else { "" };
        let against = if report.compared { " and compared row by row with the source" } else { "" };
        return format!(
            "<section class=\"verdict holds\" id=\"verdict\"><span class=\"mark\" aria-hidden=\"true\">✓</span><div><strong>The release keeps its promises</strong>\
             <p>Every published row shares its quasi-identifiers with {of}at least {} others. The files were read again for this page, \
             checked by their checksums{against}.</p></div></section>",
            sizes.smallest.saturating_sub(1)
        );
    }
    let found: Vec<String> = report
        .findings
        .iter()
        .map(|finding| format!("<li>{}: {}</li>", escape_html(&finding.rule), escape_html(&finding.message)))
        .collect();
    format!(
        "<section class=\"verdict broken\" id=\"verdict\"><span class=\"mark\" aria-hidden=\"true\">✕</span><div><strong>The release does not keep its promises</strong>\
         <ul>{}</ul></div></section>",
        found.join("")
    )
}

fn tile_section(report: &Report) -> String {
    let manifest = &report.manifest;
    let suppressed = manifest.suppressed as f64 / manifest.rows_read.max(1) as f64;
    let tile = |id: &str, value: String, name: &str| {
        format!("<div><dt>{}</dt><dd id=\"{id}\">{}</dd></div>", escape_html(name), escape_html(&value))
    };
    let nulls = match manifest.dropped {
        0 => String::new(),
        dropped => format!(", {} of them because of a null", format_count(dropped)),
    };
    let at_most = if manifest.rounded { "at most " } else { "" };
    let (sizes, noun) = manifest.verification.sizes();
    let mut tiles = vec![
        tile(
            "rows",
            format_count(manifest.rows),
            &format!("rows published of {at_most}{} read", format_count(manifest.rows_read)),
        ),
        tile(
            "suppressed",
            format_count(manifest.suppressed),
            &format!("rows left out {at_most}({}{nulls})", format_share(suppressed)),
        ),
        tile(
            "smallest",
            format_count(sizes.smallest),
            &format!("{noun} in the smallest class; k\u{a0}=\u{a0}{}", manifest.k),
        ),
        tile("classes", format_count(manifest.verification.classes.count), "classes"),
        tile("gcp", format_optional(manifest.scores.gcp), "mean loss of a value (GCP): 0 as it was, 1 all lost"),
        tile("risk-max", format_share(manifest.scores.risk_max.unwrap_or(0.0)), "risk of the most exposed person"),
    ];
    if let Some(queries) = &manifest.scores.queries {
        tiles.push(tile(
            "query-error",
            format_share(queries.median),
            "error of a count taken from the release (median)",
        ));
    }
    format!("<dl class=\"tiles\">{}</dl>", tiles.join(""))
}

fn rule_section(report: &Report) -> String {
    let manifest = &report.manifest;
    let mut rows = String::new();
    for rule in &manifest.verification.rules {
        let margin = describe_margin(rule, report);
        rows += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"yes\">✓ held</td></tr>",
            escape_html(&rule.to_string()),
            escape_html(&margin)
        );
    }
    let mut text = format!(
        "<section id=\"rules\"><h2>Rules</h2><p class=\"lead\">What the policy demands of every class, and how near the release comes to it.</p>\
         <div class=\"wide\"><table><thead><tr><th scope=\"col\">rule</th><th scope=\"col\">worst of the release</th><th scope=\"col\">when committed</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    );
    if !report.varieties.is_empty() {
        text += "<h3 class=\"later\">Worst classes by sensitive column</h3><p class=\"lead\">Classes are identified by their size alone.</p>\
                 <div class=\"wide\"><table id=\"varieties\"><thead><tr><th scope=\"col\">column</th>\
                 <th scope=\"col\" class=\"n\">fewest values in a class</th><th scope=\"col\" class=\"n\">rows in that class</th>\
                 <th scope=\"col\" class=\"n\">largest share of one value</th><th scope=\"col\" class=\"n\">rows in that class</th></tr></thead><tbody>";
        for variety in &report.varieties {
            text += &format!(
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape_html(&variety.column),
                format_count(variety.fewest),
                format_count(variety.fewest_size),
                format_share(variety.largest_share),
                format_count(variety.largest_size)
            );
        }
        text += "</tbody></table></div>";
    }
    text + "</section>"
}

fn column_section(report: &Report, charts: &mut Charts) -> String {
    let mut text = String::from("<section id=\"columns\"><h2>Columns</h2>");
    text += "<p class=\"lead\">Each as it is published; a range is spread evenly over all that it covers, as its readers must. \
             The content of the source is not shown: this page reveals nothing beyond the release.</p>";
    let mut losses: Vec<(String, f64, String)> = report
        .manifest
        .scores
        .by_column
        .iter()
        .map(|(name, loss)| (name.clone(), *loss, format!("{loss:.4}")))
        .collect();
    losses.sort_by(|a, b| b.1.total_cmp(&a.1));
    text += &format!(
        "<div class=\"columns\"><div class=\"card\" id=\"losses\"><h3>Loss by quasi-identifier</h3>\
         <p>Mean loss of a published value: 0 as it was, 1 all lost.</p>{}</div>",
        charts.draw_amounts("Loss by quasi-identifier", &losses, Some(1.0))
    );
    for column in &report.columns {
        text += &column_card(column, charts);
    }
    let dropped: Vec<String> = report
        .manifest
        .roles
        .iter()
        .filter(|(_, role)| **role == crate::policy::Role::Identifier)
        .map(|(name, _)| format!("<code>{}</code>", escape_html(name)))
        .collect();
    text += "</div>";
    if !dropped.is_empty() {
        text += &format!("<p>Not published at all: {}.</p>", dropped.join(", "));
    }
    text + "</section>"
}

fn column_card(column: &ColumnReport, charts: &mut Charts) -> String {
    let what = match (column.role.as_str(), column.loss) {
        ("quasi", Some(loss)) => format!("quasi-identifier, generalised; loss {loss:.4}"),
        ("quasi", None) => "quasi-identifier, generalised".into(),
        ("sensitive", _) => "sensitive, published unchanged".into(),
        ("kept", _) => "kept, published unchanged".into(),
        _ => "published".into(),
    };
    let chart = if column.histogram.bins.is_empty() {
        "<p>No chart: too many different values, or none that enough rows share.</p>".into()
    } else {
        charts.draw_histogram(&column.name, &column.histogram)
    };
    format!(
        "<article class=\"card column\"><h3>{}</h3><p>{}</p>{chart}</article>",
        escape_html(&column.name),
        escape_html(&what)
    )
}

fn class_section(report: &Report, charts: &mut Charts) -> String {
    let (counted, noun) = report.manifest.verification.sizes();
    let sizes = &counted.by_size;
    let k = u64::from(report.manifest.k);
    let total = sizes.iter().map(|(size, number)| size * number).sum::<u64>().max(1) as f64;
    let (mut bars, mut rows) = (Vec::new(), String::new());
    let mut from = sizes.keys().next().copied().unwrap_or(k).min(k);
    for until in [k, k + k.div_ceil(4), k + k.div_ceil(2), 2 * k, 3 * k, 5 * k, 10 * k, 50 * k, u64::MAX] {
        if until <= from {
            continue;
        }
        let inside = || sizes.range(from..until);
        let (number, covered): (u64, u64) =
            (inside().map(|(_, count)| count).sum(), inside().map(|(size, count)| size * count).sum());
        if number > 0 {
            let name = match until {
                u64::MAX => format!("{} or more", format_count(from)),
                _ if until - from == 1 => format_count(from),
                _ => format!("{} to {}", format_count(from), format_count(until - 1)),
            };
            let part = covered as f64 / total;
            rows += &format!(
                "<tr><th scope=\"row\">{name}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                format_count(number),
                format_count(covered),
                format_share(part)
            );
            bars.push((format!("{name} {noun}"), part, format_share(part)));
        }
        from = until;
    }
    let chart = charts.draw_amounts(&format!("Share of the published {noun} by the size of their class"), &bars, None);
    format!(
        "<section id=\"sizes\"><h2>Classes</h2><p class=\"lead\">{} classes of indistinguishable rows, by size in {noun}. \
         Large ones protect better and reveal less.</p><div class=\"card split\">{chart}<div class=\"wide\"><table><thead><tr>\
         <th scope=\"col\">{noun} in a class</th><th scope=\"col\" class=\"n\">classes</th><th scope=\"col\" class=\"n\">{noun}</th>\
         <th scope=\"col\" class=\"n\">share</th></tr></thead><tbody>{rows}</tbody></table></div></div></section>",
        format_count(report.manifest.verification.classes.count)
    )
}

fn risk_section(report: &Report) -> String {
    let mut rows = String::new();
    let mut row = |id: &str, name: &str, risk: f64| {
        rows +=
            &format!("<tr id=\"{id}\"><th scope=\"row\">{name}</th><td class=\"n\">{}</td></tr>", format_share(risk));
    };
    row("most", "Most exposed person: chance to pick the right row", report.exposure.most);
    row("mean", "The same, mean over all people", report.exposure.mean);
    row("unique", "Unique rows", report.exposure.unique);
    row("below", "Rows in classes of fewer than k", report.exposure.below_k);
    format!(
        "<section id=\"risk\"><h2>Risk of re-identification</h2><p class=\"lead\">For somebody who knows that a person is in the data, \
         and all of that person's quasi-identifiers.</p><div class=\"card\"><div class=\"wide\"><table><thead><tr><th scope=\"col\">risk</th>\
         <th scope=\"col\" class=\"n\">in the release</th></tr></thead><tbody>{rows}</tbody></table></div></div></section>",
    )
}

fn measure_section(manifest: &Manifest, bound: Option<&str>) -> String {
    let scores = &manifest.scores;
    let mut rows = String::new();
    let mut row = |id: &str, name: &str, value: Option<String>, meaning: &str| {
        if let Some(value) = value {
            rows += &format!(
                "<tr><th scope=\"row\">{name}</th><td class=\"n\" id=\"{id}\">{value}</td><td>{meaning}</td></tr>"
            );
        }
    };
    let fraction = |score: Option<f64>| score.map(|score| format!("{score:.4}"));
    row("m-gcp", "GCP", fraction(scores.gcp), "mean loss of a published value, rows left out counted as lost");
    row("m-um", "UM", fraction(scores.um), "mean loss of a group");
    row("m-wgu", "WGU", fraction(scores.wgu), "loss of the worst group");
    row("m-mpm", "MPM", fraction(scores.mpm), "how alike sensitive values of a group are: 0 wide apart, 1 equal");
    row("m-wgp", "WGP", fraction(scores.wgp), "how surely a sensitive range is disclosed in the worst group");
    row("m-dm", "DM", Some(format!("{:.3e}", scores.dm)), "discernibility: sum of squared class sizes");
    row("m-cavg", "C_AVG", scores.c_avg.map(|score| format!("{score:.2}")), "mean class size in units of k");
    format!(
        "<section id=\"measures\"><h2>Measures</h2><p class=\"lead\">What the release loses and how well it protects, as in the manifest.</p>\
         <div class=\"wide\"><table><thead><tr><th scope=\"col\">measure</th><th scope=\"col\" class=\"n\">value</th><th scope=\"col\">meaning</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>{}</section>",
        bound.map_or_else(String::new, |bound| format!(
            "<p id=\"bound\">Proven: {}. Every row of the source counts for that, so this line is for the owner of the data, not for \
             readers of the release.</p>",
            escape_html(bound)
        ))
    )
}

fn provenance_section(report: &Report) -> String {
    let manifest = &report.manifest;
    let mut rows = String::new();
    let mut add_row = |name: &str, value: String| {
        rows += &format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    };
    let code = |text: &str| format!("<code>{}</code>", escape_html(text));
    add_row("Policy", code(&manifest.policy));
    add_row("k", manifest.k.to_string());
    let seed = manifest.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    add_row("Method", format!("{}{seed}", code(&manifest.method)));
    if let Some(earlier) = manifest.earlier_releases {
        add_row("Earlier releases", format!("{}, independent of this one", format_count(earlier)));
    }
    if let Some(series) = &manifest.series {
        let counts = &series.counts;
        add_row("Series", format!("release {}", series.number));
        let came = [(counts.new, "new"), (counts.returned, "came back with their class"), (counts.waiting, "wait")];
        let left = [
            (counts.stale(), "stale"),
            (counts.retired, "retired"),
            (counts.withheld, "withheld"),
            (counts.forgotten, "forgotten"),
        ];
        let changes = came.iter().chain(&left).map(|(rows, what)| format!("{} {what}", format_count(*rows)));
        add_row("Rows of the series", changes.collect::<Vec<_>>().join(", "));
    }
    manifest.warnings.iter().for_each(|warning| add_row("Warning", escape_html(warning)));
    if !manifest.tuned.is_empty() {
        let tuned: Vec<String> = manifest
            .tuned
            .iter()
            .map(|(name, value)| format!("{} = {}", escape_html(name), format_number(*value)))
            .collect();
        add_row("Found from a sample", tuned.join(", "));
    }
    let sizes = manifest.cell_rows.map_or(String::new(), |rows| {
        format!(", of {} to {} rows", format_count(rows.smallest), format_count(rows.largest))
    });
    if manifest.cells > 0 {
        add_row("Cells", format_count(manifest.cells as u64) + &sizes);
    }
    add_row("Throng", escape_html(&manifest.version));
    add_row("Committed", escape_html(&manifest.committed));
    add_row("Data", code(&manifest.data));
    let mut input = String::new();
    for table in &manifest.input {
        let version = table.version.map_or(String::new(), format_count);
        let path = escape_html(&table.path);
        input += &format!("<tr><th scope=\"row\"><code>{path}</code></th><td class=\"n\">{version}</td></tr>");
    }
    let mut files = String::new();
    for file in &manifest.files {
        files += &format!(
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"n\">{}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
            escape_html(&file.path),
            format_count(file.rows),
            format_count(file.size),
            escape_html(&file.blake3)
        );
    }
    format!(
        "<section id=\"provenance\"><h2>Policy and provenance</h2><div class=\"wide\"><table><tbody>{rows}</tbody></table></div>\
         <details><summary>{}</summary><div class=\"wide\"><table><thead><tr><th scope=\"col\">table</th><th scope=\"col\" class=\"n\">version</th></tr></thead><tbody>{input}</tbody></table></div></details>\
         <details><summary>{}</summary><div class=\"wide\"><table><thead><tr><th scope=\"col\">file</th><th scope=\"col\" class=\"n\">rows</th><th scope=\"col\" class=\"n\">bytes</th><th scope=\"col\">BLAKE3</th></tr></thead><tbody>{files}</tbody></table></div></details></section>",
        number_of(manifest.input.len(), "input table"),
        number_of(manifest.files.len(), "published file"),
    )
}

fn number_of(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", format_count(number as u64)) }
}
