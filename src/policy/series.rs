//! The `[series]` table: releases of the same subjects, one after another, that stay safe together.
//!
//! What a series cannot keep its promise with is refused here, before any data is read: rules that compare a class with the
//! whole table, which is another table every night; forms that do not generalise; nulls that drop rows.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::check::{check_location, outside_share};
use super::dependencies::Inference;
use super::identifier::read_secret;
use super::measures::MeasureSpec;
use super::model::{Form, HierarchySpec, Job, Nulls, Role};
use super::source::Format;
use crate::error::problem::nearest_word;
use crate::error::{Error, Problem, Result};
use crate::storage::StoreOptions;
use crate::storage::locate::location_names;

/// Releases of the same subjects that stay safe together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Series {
    /// The columns that tell subjects apart: of people, their number. Identifiers that are dropped may be named. With `mode =
    /// "append"` it may be left out: every file of the source is then read once, and each of its rows is a subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) subject: Vec<String>,
    /// Where the ledger of the series is kept: a folder or an object-store prefix that readers of the sink cannot see. A
    /// relative path starts at the job file's folder.
    pub(crate) state: String,
    /// How the object store of the state is reached.
    #[serde(default)]
    pub(crate) options: StoreOptions,
    /// Environment variable that holds the key of the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// File that holds the key of the ledger; a line break at its end is not part of it. A relative path starts at the job
    /// file's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_file: Option<String>,
    /// What the source is: everybody of the day, or rows of which each is published once.
    #[serde(default)]
    pub(crate) mode: SeriesMode,
    /// Rows of a new class in multiples of k. More than 1 leaves room to split the class when some of its rows are gone.
    #[serde(default = "default_reserve")]
    #[schemars(range(min = 1.0))]
    pub(crate) reserve: f64,
    /// The largest mean information loss of a new class; rows that would lose more wait for the next release.
    #[serde(default = "default_max_loss")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) max_loss: f64,
    /// Releases that a row waits for at most; then it goes into the best class there is, or is suppressed.
    #[serde(default = "default_max_wait")]
    pub(crate) max_wait: u32,
    /// The share of rows of a class that are gone or have changed from which on it is retired.
    #[serde(default = "default_retire_at")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) retire_at: f64,
    /// Whether a class that cannot be split is withdrawn as a whole when it is due. Its rows are never published again.
    #[serde(default)]
    pub(crate) dissolve: bool,
    /// How long releases are kept, such as `400d`: `throng gc` removes older ones, and what only they showed is forgotten. The
    /// promise then holds for readers who did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) horizon: Option<String>,
}

/// What the source of a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesMode {
    /// Everybody of the day: who is missing is gone, who has other values has changed.
    #[default]
    Snapshot,
    /// Rows that come: each is published once and stays, whatever the source holds later.
    Append,
}

fn default_reserve() -> f64 {
    1.5
}

fn default_max_loss() -> f64 {
    0.35
}

fn default_max_wait() -> u32 {
    7
}

fn default_retire_at() -> f64 {
    0.5
}

impl Series {
    /// Whether rows have no identity, so that what was read is known by its files.
    pub(crate) fn is_by_file(&self) -> bool {
        self.subject.is_empty()
    }

    /// The secret that the key of the ledger is made of.
    pub(crate) fn read_secret(&self, base: &Path) -> Result<Zeroizing<Vec<u8>>> {
        let secret = read_secret(self.key_env.as_deref(), self.key_file.as_deref(), base);
        secret.map_err(|message| Error::job(format!("series: {message}")))
    }

    /// How long releases are kept, in seconds; none if for ever.
    pub(crate) fn horizon_seconds(&self) -> std::result::Result<Option<u64>, String> {
        let Some(text) = &self.horizon else { return Ok(None) };
        let span = text.parse::<jiff::Span>().ok();
        let span = span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok());
        match span.map(|span| span.as_secs()) {
            Some(seconds) if seconds >= 3600 => Ok(Some(seconds.cast_unsigned())),
            Some(_) => Err("is less than an hour".to_owned()),
            None => Err("is not a time such as \"400d\"".to_owned()),
        }
    }
}

/// Checks the series of a job.
pub(crate) fn check_series(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    let Some(series) = &job.series else { return };
    check_subject(job, series, problems);
    check_state(job, series, base, problems);
    if let Err(message) = read_secret(series.key_env.as_deref(), series.key_file.as_deref(), base) {
        problems.push(
            Problem::error("series.key-env", message).help(
                "`openssl rand -hex 32` makes a key; keep it where you keep other secrets, apart from the ledger",
            ),
        );
    }
    if !series.reserve.is_finite() || series.reserve < 1.0 {
        problems.push(Problem::error("series.reserve", format!("must be 1 or more, is {}", series.reserve)));
    }
    problems.extend(outside_share("series.max-loss", series.max_loss));
    problems.extend(outside_share("series.retire-at", series.retire_at));
    if series.retire_at == 0.0 {
        problems.push(
            Problem::error("series.retire-at", "is 0: every class would be retired every night")
                .help("0.5 retires a class when half of its rows are stale"),
        );
    }
    if let Err(message) = series.horizon_seconds() {
        problems.push(Problem::error("series.horizon", message).help("write for example \"400d\""));
    }
    check_sink(job, problems);
    check_rules(job, problems);
    check_columns(job, problems);
}

fn check_subject(job: &Job, series: &Series, problems: &mut Vec<Problem>) {
    let key = "series.subject";
    if series.is_by_file() {
        let source = &job.source;
        let is_of_files =
            source.sql.is_none() && source.version.is_none() && source.declared_format() != Some(Format::Delta);
        let message = match series.mode {
            SeriesMode::Snapshot => "names no column, so nobody could be known again",
            SeriesMode::Append if !is_of_files => {
                "names no column, and only files of Parquet or CSV can be known instead"
            }
            SeriesMode::Append => "",
        };
        if !message.is_empty() {
            problems.push(Problem::error(key, message).help("name the columns that tell subjects apart"));
        }
    }
    let default = job.defaults.as_ref().and_then(|defaults| defaults.role);
    for (place, name) in series.subject.iter().enumerate() {
        if series.subject[..place].contains(name) {
            problems.push(Problem::error(key, format!("names `{name}` twice")));
        }
        match job.columns.get(name).map(|column| column.role).or(default) {
            Some(Role::Identifier | Role::Kept) => {}
            Some(Role::Quasi | Role::Sensitive) => problems.push(
                Problem::error(key, format!("`{name}` may change, and a subject must stay the same"))
                    .help("name an identifier, such as the number of a person"),
            ),
            None => {
                let problem = Problem::error(key, format!("`{name}` is not among the columns"));
                problems.push(match nearest_word(name, job.columns.keys().map(String::as_str)) {
                    Some(near) => problem.help(format!("did you mean `{near}`?")),
                    None => problem.help(format!("add {name} = {{ role = \"identifier\" }} to [columns]")),
                });
            }
        }
    }
}

/// The ledger must lie where readers of the sink do not look, and where no run reads its input.
fn check_state(job: &Job, series: &Series, base: &Path, problems: &mut Vec<Problem>) {
    let key = "series.state";
    if let Some(problem) = check_location(key, &series.state) {
        problems.push(problem);
        return;
    }
    problems.extend(series.options.check_options("series"));
    let state = location_names(base, &series.state);
    let overlaps = |other: &str| {
        let other = location_names(base, other);
        !other.is_empty() && (state.starts_with(&other) || other.starts_with(&state))
    };
    if overlaps(&job.sink.url) {
        problems.push(
            Problem::error(key, "and the sink lie inside one another: readers of the sink must not see the ledger")
                .help("choose a folder or a bucket that only this job may read"),
        );
    }
    if job.source.located_sources().into_iter().any(|(_, table)| overlaps(table.location())) {
        problems.push(
            Problem::error(key, "and the source lie inside one another: the next run would read the ledger as input")
                .help("choose a folder beside the source"),
        );
    }
}

fn check_sink(job: &Job, problems: &mut Vec<Problem>) {
    if job.sink.is_delta() && job.series.as_ref().is_some_and(|series| series.horizon.is_some()) {
        problems.push(
            Problem::error(
                "series.horizon",
                "cannot be kept in a Delta table: its log and VACUUM decide what readers can go back to",
            )
            .help("remove it: histories are then remembered for ever"),
        );
    }
    if job.sink.releases.is_some() {
        problems.push(
            Problem::error("sink.releases", "stands beside [series]: releases are a series, or they are independent")
                .help("remove one of the two"),
        );
    }
    if !job.output.partition_by.is_empty() {
        problems.push(
            Problem::error("output.partition-by", "the files of a series cannot lie in folders of values yet")
                .help("remove it"),
        );
    }
}

/// What a rule is refused for that compares with the whole table.
const OTHER_TABLE: &str = "compares classes with the whole table, which is another one in every release of a series";

fn check_rules(job: &Job, problems: &mut Vec<Problem>) {
    let privacy = &job.privacy;
    let mut report = |key: &str, message: &str, help: &str| problems.push(Problem::error(key, message).help(help));
    for listed in privacy.rules() {
        if listed.rule.needs().table || listed.name == "range-diversity" {
            report(&listed.key, OTHER_TABLE, "ask for l-diversity, p-sensitive, alpha-k, k-e or guarding");
        }
    }
    if privacy.presence.is_some() {
        report("privacy.presence", OTHER_TABLE, "remove it, or publish a single release");
    }
    if privacy.max_loss.is_some() {
        let message = "is measured against the table of one release, which is another one in every release of a series";
        report("privacy.max-loss", message, "set series.max-loss: what would lose more waits");
    }
    if privacy.person.is_some() {
        let message = "a series counts subjects, which have one row each";
        report("privacy.person", message, "name the person as series.subject, with one row for each");
    }
    if !job.dependencies.is_empty() || privacy.inference != Inference::default() {
        report("dependencies", "are not followed through the releases of a series", "remove them");
    }
    if job.method.form() != Form::Generalise {
        let message = format!("`{}` is no form of a series: only classes that generalise", job.method.form().as_str());
        report("method.form", &message, "choose a method and form that generalise, such as method.name = \"auto\"");
    }
    let measures = MeasureSpec { unprotected: job.measures.unprotected, ..MeasureSpec::default() };
    if job.measures != measures {
        report("measures", "are not taken of the releases of a series", "remove [measures]");
    }
}

fn check_columns(job: &Job, problems: &mut Vec<Problem>) {
    let default = job.defaults.as_ref().and_then(|defaults| defaults.nulls);
    if default == Some(Nulls::Drop) {
        problems.push(
            Problem::error("defaults.nulls", "a series does not drop rows: whoever is in it must stay in it")
                .help("set nulls = \"category\""),
        );
    }
    for (name, column) in &job.columns {
        if column.role == Role::Quasi && column.nulls == Some(Nulls::Drop) {
            problems.push(
                Problem::error(
                    format!("columns.{name}.nulls"),
                    "a series does not drop rows: whoever is in it must stay",
                )
                .help("set nulls = \"category\""),
            );
        }
        if matches!(column.hierarchy, Some(HierarchySpec::Quantiles { .. })) {
            let message = "quantiles follow the rows of a night, and classes of all nights stand side by side";
            problems.push(
                Problem::error(format!("columns.{name}.hierarchy"), message)
                    .help("give widths or bounds, which stay the same"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    /// Keys of the sink go into its table, all others before the columns.
    fn problems(series: &str, rest: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let (sink, rest) = match rest.strip_prefix("sink.") {
            Some(key) => (format!(", {key}"), ""),
            None => (String::new(), rest),
        };
        let text = format!(
            "version = 1\nsource.url = \"in\"\nsink = {{ url = \"out\"{sink} }}\nprivacy.k = 5\n{rest}\n[columns]\nid.role \
             = \"identifier\"\nage.role = \"quasi\"\nill.role = \"sensitive\"\n[series]\n{series}\n"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_series(&job, folder.path(), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    const GOOD: &str = "subject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"";

    #[test]
    fn a_good_series_has_no_problems() {
        assert_eq!(problems(GOOD, ""), [""; 0]);
        assert_eq!(problems(GOOD, "sink.format = \"delta\""), [""; 0]);
        assert_eq!(problems(&format!("{GOOD}\nhorizon = \"400d\""), ""), [""; 0]);
        assert_eq!(
            problems(&format!("{GOOD}\nmode = \"append\""), "privacy.l-diversity = { column = \"ill\", l = 2 }"),
            [""; 0]
        );
        let nobody = GOOD.replace("subject = [\"id\"]\n", "");
        assert_eq!(problems(&format!("{nobody}\nmode = \"append\""), ""), [""; 0]);
    }

    #[test]
    fn whatever_cannot_be_kept_is_refused() {
        let with = |from: &str, to: &str| GOOD.replace(from, to);
        for (series, rest, expected) in [
            (with("[\"id\"]", "[]"), "", "series.subject: names no column"),
            (with("subject = [\"id\"]\n", ""), "", "series.subject: names no column"),
            (
                format!("{}\nmode = \"append\"", with("[\"id\"]", "[]")),
                "source.format = \"delta\"",
                "only files of Parquet or CSV",
            ),
            (with("[\"id\"]", "[\"id\", \"id\"]"), "", "names `id` twice"),
            (with("\"id\"", "\"age\""), "", "`age` may change"),
            (with("\"id\"", "\"ids\""), "", "did you mean `id`?"),
            (with("ledger", "out/ledger"), "", "readers of the sink must not see the ledger"),
            (with("ledger", "."), "", "readers of the sink must not see the ledger"),
            (with("ledger", "in/ledger"), "", "the next run would read the ledger"),
            (with("key-file = \"key\"", ""), "", "needs `key-env` or `key-file`"),
            (with("\"key\"", "\"none\""), "", "the key file `none` cannot be read"),
            (format!("{GOOD}\nreserve = 0.5"), "", "series.reserve: must be 1 or more"),
            (format!("{GOOD}\nretire-at = 0.0"), "", "every class would be retired"),
            (format!("{GOOD}\nmax-loss = 1.5"), "", "series.max-loss: must be from 0 to 1"),
            (format!("{GOOD}\nhorizon = \"soon\""), "", "series.horizon: is not a time"),
            (format!("{GOOD}\nhorizon = \"5m\""), "", "series.horizon: is less than an hour"),
            (
                GOOD.into(),
                "privacy.t-closeness = { column = \"ill\", t = 0.2 }",
                "privacy.t-closeness: compares classes",
            ),
            (GOOD.into(), "privacy.max-loss = 0.5", "set series.max-loss"),
            (GOOD.into(), "privacy.person = \"id\"", "a series counts subjects"),
            (GOOD.into(), "sink.releases = \"independent\"", "stands beside [series]"),
            (
                format!("{GOOD}\nhorizon = \"400d\""),
                "sink.format = \"delta\"",
                "series.horizon: cannot be kept in a Delta",
            ),
            (GOOD.into(), "output.partition-by = [\"id\"]", "folders of values"),
            (GOOD.into(), "defaults.nulls = \"drop\"", "does not drop rows"),
            (GOOD.into(), "measures.information = true", "are not taken"),
            (GOOD.into(), "method.form = \"anatomy\"", "only classes that generalise"),
        ] {
            let found = problems(&series, rest).join("\n");
            assert!(found.contains(expected), "{series} {rest}: {found}");
        }
    }
}
