//! The summary of a release, for people.

use std::time::Duration;

use comfy_table::{CellAlignment, Table};

use crate::attack::population::Uniques;
use crate::engine::Phase;
use crate::explore::LossBound;
use crate::ledger::Manifest;
pub(crate) use crate::report::format_count as number;

/// What was published, its quality, and its location.
pub(crate) fn format_release(manifest: &Manifest, sink: &str, times: &[(Phase, Duration)]) -> String {
    let classes = &manifest.verification.classes;
    let nulls = match manifest.dropped {
        0 => String::new(),
        dropped => format!(", {} of them because of a null", number(dropped)),
    };
    let at_most = if manifest.rounded { "at most " } else { "" };
    let mut text = format!(
        "Every row left in a throng of at least {}: {} of {}{} rows in {} {}, {}{} suppressed ({:.2} %{nulls})\n\n",
        manifest.k,
        number(manifest.rows),
        at_most,
        number(manifest.rows_read),
        number(classes.count),
        if classes.count == 1 { "class" } else { "classes" },
        at_most,
        number(manifest.suppressed),
        manifest.suppressed as f64 * 100.0 / manifest.rows_read.max(1) as f64,
    );
    text += &format!("{}\n\n", score_table(manifest));
    if manifest.rows < manifest.rows_read {
        text +=
            "measures over all rows of the source are omitted: they would reveal information about suppressed rows\n\n";
    }
    text += &format!("{}\n\n", class_sizes(manifest));
    let mut columns = self::summary_table(&["quasi-identifier", "loss"]);
    for (name, loss) in &manifest.scores.by_column {
        columns.add_row([name.clone(), format!("{loss:.4}")]);
    }
    // A release of a series tells the loss of its values as a whole.
    if !manifest.scores.by_column.is_empty() {
        text += &format!("{columns}\n\n");
    }
    text += &format_dependencies(manifest);
    text += &format_population(manifest);
    if !manifest.tuned.is_empty() {
        let tuned: Vec<String> = manifest.tuned.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        text += &format!("found from a sample: {}\n", tuned.join(", "));
    }
    if let (Some(method), Some(left_over), Some(repair)) =
        (manifest.scores.placed_by_method, manifest.scores.placed_as_left_over, manifest.scores.placed_by_repair)
    {
        text += &format!(
            "rows placed: {} by the method, {} by its handling of left-over rows, {} by repair\n",
            number(method),
            number(left_over),
            number(repair)
        );
    }
    manifest.warnings.iter().for_each(|warning| text += &format!("WARNING: {warning}\n"));
    text += &earlier_releases(manifest);
    text += &format_series(manifest);
    text += &format!("verified: {}\n", manifest.verification.rule_names().join(", "));
    text += &format!("release:  run {} in {}/{}\n", manifest.run, sink.trim_end_matches('/'), manifest.data);
    if !times.is_empty() {
        let laps: Vec<String> =
            times.iter().map(|(phase, time)| format!("{} {:.2} s", phase.name(), time.as_secs_f64())).collect();
        text += &format!("time:     {}\n", laps.join(", "));
    }
    text
}

/// How near a release comes to what is proven of its source; nothing without a bound.
pub(crate) fn format_bound(manifest: &Manifest, bound: Option<&LossBound>) -> String {
    let Some(bound) = bound else { return String::new() };
    let judged = bound.judge_release(manifest.k, manifest.rows, manifest.scores.gcp).unwrap_or_else(|| {
        format!(
            "no release of all {} rows of the source in classes of {} or more loses less than {:.4}; this one holds other rows",
            bound.rows, bound.k, bound.gcp
        )
    });
    format!("bound:    {judged}; for you alone, since every row of the source counts for it\n")
}

/// The scores of a release, each with what it means.
fn score_table(manifest: &Manifest) -> Table {
    let scores = &manifest.scores;
    let mut table = summary_table(&["measure", "value", "meaning"]);
    let mut row = |name: &str, value: Option<String>, meaning: &str| {
        if let Some(value) = value {
            table.add_row([name, &value, meaning]);
        }
    };
    let share = |score: Option<f64>| score.map(|score| format!("{score:.4}"));
    row("GCP", share(scores.gcp), "mean loss of a published value: 0 as it was, 1 all lost");
    row("UM", share(scores.um), "mean loss of a group");
    row("WGU", share(scores.wgu), "loss of the worst group");
    row("MPM", share(scores.mpm), "how alike sensitive values of a group are: 0 wide apart, 1 equal");
    row("WGP", share(scores.wgp), "how surely a sensitive range is disclosed in the worst group");
    row("DM", Some(format!("{:.3e}", scores.dm)), "discernibility: sum of squared class sizes");
    row("C_AVG", scores.c_avg.map(|score| format!("{score:.2}")), "mean class size in units of k");
    row("smallest class", Some(number(manifest.verification.classes.smallest)), "rows");
    let people = manifest.verification.people.as_ref();
    row("smallest class", people.map(|people| number(people.classes.smallest)), "people");
    row("risk", share(scores.risk_max), "chance to pick the right row of the most exposed person");
    row("mean risk", share(scores.risk_mean), "the same over all people");
    row("CM", share(scores.cm), "rows outside the majority of their class");
    row("KL", scores.kl.map(|score| format!("{score:.4}")), "divergence of published from original values");
    row("joint KL", scores.joint_kl.map(|score| format!("{score:.4}")), "the same of all quasi-identifiers together");
    let guessed = scores.reconstruction_max.map(|score| format!("{score:.2e}"));
    row("reconstruction", guessed, "chance to guess all quasi-identifiers of the easiest row");
    row("unprotected", share(scores.unprotected), "rows whose sensitive range is disclosed more surely than the bound");
    let error = scores.queries.as_ref();
    row("query error", share(error.map(|error| error.mean)), "mean relative error of COUNT queries");
    row(
        "weighted distortion",
        scores.weighted_distortion.map(|steps| format!("{steps:.1}")),
        "steps up hierarchies, in shares, by priority",
    );
    row("median error", share(error.map(|error| error.median)), "median of the same");
    table
}

/// Estimates of how many people of a population are unique.
pub(crate) fn format_estimates(people: u64, source: Option<&Uniques>, release: Option<&Uniques>) -> String {
    let estimated: Vec<(&str, &Uniques)> = [("source as it is", source), ("release", release)]
        .into_iter()
        .filter_map(|(of, it)| Some((of, it?)))
        .collect();
    let header: Vec<&str> =
        ["unique in the population"].into_iter().chain(estimated.iter().map(|(of, _)| *of)).collect();
    let mut uniques = summary_table(&header);
    let show = |estimate: Option<f64>| estimate.map_or("-".to_owned(), |people| format!("{people:.1}"));
    type Pick = fn(&Uniques) -> Option<f64>;
    let models: [(&str, Pick); 4] = [
        ("Pitman", |found| found.pitman),
        ("Zayatz", |found| found.zayatz),
        ("SNB", |found| found.snb),
        ("chosen (Dankar)", |found| found.chosen),
    ];
    for (model, of) in models {
        uniques.add_row([model.to_owned()].into_iter().chain(estimated.iter().map(|(_, found)| show(of(found)))));
    }
    format!("estimates for a population of {}:\n{uniques}\n", number(people))
}

/// Risks in the population; empty if neither a public table nor its size is known.
fn format_population(manifest: &Manifest) -> String {
    let Some(risk) = &manifest.population else { return String::new() };
    let mut text = String::new();
    if let (Some(journalist), Some(marketer), Some(k_map)) = (risk.journalist, risk.marketer, risk.k_map) {
        text += &format!(
            "against the public table: {} people or more fit every class (k-map), journalist risk {journalist:.4}, marketer \
             risk {marketer:.4}\n",
            number(k_map)
        );
    }
    if let Some(people) = risk.people {
        text += &format_estimates(people, risk.source.as_ref(), risk.release.as_ref());
    }
    text + "\n"
}

/// The warning of an independent release about earlier ones; empty for the first.
fn earlier_releases(manifest: &Manifest) -> String {
    match manifest.earlier_releases.unwrap_or(0) {
        0 => String::new(),
        earlier => format!(
            "WARNING: independent of {} earlier {} in the sink: k and the rules hold for each alone, not for somebody who \
             compares them\n",
            number(earlier),
            if earlier == 1 { "release" } else { "releases" }
        ),
    }
}

/// What became of the rows of a release of a series; nothing of any other.
fn format_series(manifest: &Manifest) -> String {
    let Some(series) = &manifest.series else { return String::new() };
    let counts = &series.counts;
    format!(
        "series:   release {}: {} new, {} came back with their class, {} wait, {} published rows are stale ({} gone, {} \
         changed), {} classes of {} rows retired, {} withheld, {} forgotten\n",
        series.number,
        number(counts.new),
        number(counts.returned),
        number(counts.waiting),
        number(counts.stale()),
        number(counts.gone),
        number(counts.changed),
        number(counts.retired_classes),
        number(counts.retired),
        number(counts.withheld),
        number(counts.forgotten)
    )
}

/// How well the dependencies of the policy are preserved; empty without any.
fn format_dependencies(manifest: &Manifest) -> String {
    if manifest.dependencies.is_empty() {
        return String::new();
    }
    let mut scores = summary_table(&["dependency", "loss", "at most", "preserved", "instances", "violated by"]);
    let share = |score: Option<f64>| score.map_or(String::new(), |score| format!("{score:.4}"));
    for score in &manifest.dependencies {
        let violations = score.violations.map_or(String::new(), |share| format!("{:.4} %", share * 100.0));
        let instances = score.instances.map_or(String::new(), number);
        let cells = [share(score.loss), share(score.loss_bound), share(score.preserved), instances, violations];
        scores.add_row([vec![score.name.clone()], cells.to_vec()].concat());
    }
    let mut text = format!("{scores}\n\n");
    if let Some(inferred) = &manifest.verification.inference {
        text += &format!(
            "to a reader who knows the dependencies: {} sets of {} rows or more fit somebody, {} rows fit people with fewer \
             than k\n",
            number(inferred.classes),
            inferred.smallest,
            number(inferred.exposed_rows)
        );
        if let Some(finding) = inferred.finding(manifest.k) {
            text += &format!("WARNING: {}\n", finding.message);
        }
        if let Some(message) = inferred.undecided() {
            text += &format!("WARNING: {message}\n");
        }
        if !inferred.withheld.is_empty() {
            text += &format!("withheld: {}\n", inferred.withheld.join(", "));
        }
    }
    text
}

/// How many classes there are of which size, in steps of k and in what it counts.
fn class_sizes(manifest: &Manifest) -> Table {
    let k = u64::from(manifest.k);
    let (counted, noun) = manifest.verification.sizes();
    let mut sizes = summary_table(&[&format!("{noun} in a class"), "classes", noun]);
    if let Some(all) = sizes.column_mut(2) {
        all.set_cell_alignment(CellAlignment::Right);
    }
    let mut from = k;
    for until in [k + k.div_ceil(2), 2 * k, 5 * k, 10 * k, u64::MAX] {
        let inside = || counted.by_size.range(from..until);
        let (classes, all) = (inside().map(|(_, count)| count).sum(), inside().map(|(size, count)| size * count).sum());
        if classes > 0 {
            let range = if until == u64::MAX { format!("{from} or more") } else { format!("{from} to {}", until - 1) };
            sizes.add_row([range, number(classes), number(all)]);
        }
        from = until;
    }
    sizes
}

pub(crate) fn summary_table(header: &[&str]) -> Table {
    let mut table = super::new_table(header);
    if let Some(values) = table.column_mut(1) {
        values.set_cell_alignment(CellAlignment::Right);
    }
    table
}
