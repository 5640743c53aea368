//! The `[window]` table: rows that never end, anonymised a window at a time.
//!
//! What a window cannot keep is refused here, before any row is read: rules that compare a class with the whole table,
//! which a window never sees; forms that do not generalise; borders that follow the rows of a table.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::outside_share;
use super::dependencies::Inference;
use super::model::{Form, HierarchySpec, Job, Role};
use crate::error::problem::nearest_word;
use crate::error::{Error, Problem, Result, io_reason};
use crate::storage::bounded::read_at_most;

/// Windows over input that may never end: rows gather in a window, and whole classes leave it.
///
/// ```
/// use throng::{Column, Policy, Window};
///
/// let policy = Policy::builder(10)
///     .column("age", Column::quasi().with_domain(0.0, 120.0))
///     .column("ward", Column::sensitive())
///     .window(Window::of_rows(100_000).with_time("10m").with_max_wait(3))
///     .build()?;
/// # drop(policy);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Window {
    /// Rows that gather before classes are made of them, at least k. Needed: it bounds the rows that are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub(crate) rows: Option<u64>,
    /// Time after which a window is closed with fewer rows, such as `10m`. Rows that make no class wait for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
    /// Windows that a row waits for a class at most; then it goes into the best class there is, or is suppressed.
    #[serde(default = "default_max_wait")]
    pub(crate) max_wait: u32,
    /// The largest mean information loss of a class; rows that would lose more wait. Without it, rows wait for the rules
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) max_loss: Option<f64>,
    /// The columns that tell subjects apart: a row of a subject that was seen before is dropped. Without it, no subject
    /// may come twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) subject: Vec<String>,
    /// Subjects that are remembered, the latest ones. Defaults to a million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) remember: Option<u64>,
    /// What `throng survey` has found in rows that were at hand before: domains of columns, and how often sensitive values
    /// occur. A relative path starts at the job file's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) survey: Option<String>,
}

fn default_max_wait() -> u32 {
    3
}

/// Subjects that are remembered when nothing is said.
const DEFAULT_REMEMBER: u64 = 1_000_000;

impl Window {
    /// A window of so many rows.
    pub fn of_rows(rows: u64) -> Self {
        Self {
            rows: Some(rows),
            time: None,
            max_wait: default_max_wait(),
            max_loss: None,
            subject: Vec::new(),
            remember: None,
            survey: None,
        }
    }

    /// Closes a window after a time such as `10m`, even with fewer rows.
    #[must_use]
    pub fn with_time(self, time: impl Into<String>) -> Self {
        Self { time: Some(time.into()), ..self }
    }

    /// Lets a row wait for so many windows at most.
    #[must_use]
    pub fn with_max_wait(self, windows: u32) -> Self {
        Self { max_wait: windows, ..self }
    }

    /// Lets rows wait whose class would lose more than this.
    #[must_use]
    pub fn with_max_loss(self, loss: f64) -> Self {
        Self { max_loss: Some(loss), ..self }
    }

    /// Drops rows of a subject that was seen before, among the latest `remember` ones.
    #[must_use]
    pub fn with_subject<N: Into<String>>(self, columns: impl IntoIterator<Item = N>, remember: u64) -> Self {
        Self { subject: columns.into_iter().map(Into::into).collect(), remember: Some(remember), ..self }
    }

    /// Takes domains from a file that `throng survey` has written.
    #[must_use]
    pub fn with_survey(self, path: impl Into<String>) -> Self {
        Self { survey: Some(path.into()), ..self }
    }

    /// Rows of a window.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.unwrap_or(0) as usize
    }

    /// Subjects that are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.remember.unwrap_or(DEFAULT_REMEMBER) as usize
    }

    /// The time after which a window is closed.
    pub(crate) fn duration(&self) -> std::result::Result<Option<Duration>, String> {
        let Some(text) = &self.time else { return Ok(None) };
        let span = text.parse::<jiff::Span>().ok();
        let span = span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok());
        match span.and_then(|span| Duration::try_from(span).ok()) {
            Some(time) if time > Duration::from_hours(24 * 366) => Err("is more than a year".to_owned()),
            Some(time) if !time.is_zero() => Ok(Some(time)),
            _ => Err("is not a time such as \"10m\"".to_owned()),
        }
    }
}

/// The bytes of a survey file. It holds values of columns, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SurveyBytes(pub(crate) Arc<[u8]>);

impl fmt::Debug for SurveyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SurveyBytes(..)")
    }
}

/// Maximum size of a survey file.
pub(crate) const MAX_SURVEY_BYTES: u64 = 256 << 20;

/// Reads the survey file that a job's window names.
pub(super) fn read_survey(job: &Job, base: &Path) -> Result<Option<SurveyBytes>> {
    let Some(path) = job.window.as_ref().and_then(|window| window.survey.as_ref()) else { return Ok(None) };
    let bytes =
        std::fs::File::open(base.join(path)).and_then(|file| read_at_most(file, MAX_SURVEY_BYTES, "survey file"));
    match bytes {
        Ok(bytes) => Ok(Some(SurveyBytes(bytes.into()))),
        Err(error) => Err(Error::job(format!("window.survey: {path} cannot be read: {}", io_reason(&error)))),
    }
}

/// Checks the window of a job.
pub(super) fn check_window(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    let Some(window) = &job.window else { return };
    check_size(job, window, problems);
    if let Err(message) = window.duration() {
        problems.push(Problem::error("window.time", message).help("write for example \"10m\""));
    }
    if let Some(loss) = window.max_loss {
        problems.extend(outside_share("window.max-loss", loss));
    }
    check_subject(job, window, problems);
    if let Some(path) = &window.survey
        && !base.join(path).is_file()
    {
        problems.push(
            Problem::error("window.survey", format!("there is no file {path}"))
                .help("`throng survey job.toml -o people.survey` makes one of rows that are at hand"),
        );
    }
    check_rules(job, window, problems);
    check_columns(job, problems);
    problems.push(Problem::note("window", "is for queries over streams; `throng run` sees the whole table at once"));
}

fn check_size(job: &Job, window: &Window, problems: &mut Vec<Problem>) {
    let k = u64::from(job.privacy.k);
    match window.rows {
        None => problems.push(
            Problem::error("window.rows", "is missing: time alone does not bound the rows that are held in memory")
                .help("write rows = 100000 beside time; whichever comes first closes a window"),
        ),
        Some(rows) if rows < k => problems.push(
            Problem::error("window.rows", format!("is {rows}, but a class has at least k = {k} rows"))
                .help("windows of 100,000 rows lose little; smaller ones lose more"),
        ),
        Some(_) => {}
    }
}

fn check_subject(job: &Job, window: &Window, problems: &mut Vec<Problem>) {
    if window.remember == Some(0) {
        problems.push(Problem::error("window.remember", "is 0: no subject would be known again").help("omit subject"));
    }
    if window.remember.is_some() && window.subject.is_empty() {
        problems.push(
            Problem::error("window.remember", "says how many subjects are remembered, but none are told apart")
                .help("name the columns that tell them apart: subject = [\"person_id\"]"),
        );
    }
    let key = "window.subject";
    let default = job.defaults.as_ref().and_then(|defaults| defaults.role);
    for (place, name) in window.subject.iter().enumerate() {
        if window.subject[..place].contains(name) {
            problems.push(Problem::error(key, format!("names `{name}` twice")));
        }
        if job.columns.get(name).map(|column| column.role).or(default).is_none() {
            let problem = Problem::error(key, format!("`{name}` is not among the columns"));
            problems.push(match nearest_word(name, job.columns.keys().map(String::as_str)) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("add {name} = {{ role = \"identifier\" }} to [columns]")),
            });
        } else if job.columns.get(name).is_some_and(|column| column.role == Role::Identifier && column.treat.is_some())
        {
            problems.push(
                Problem::error(key, format!("`{name}` is replaced before windows see it"))
                    .help("name a column that stays as it is, or an identifier that is dropped"),
            );
        }
    }
}

/// What a rule is refused for that compares with the whole table.
const WHOLE_TABLE: &str = "compares classes with the whole table, which a window does not see";

fn check_rules(job: &Job, window: &Window, problems: &mut Vec<Problem>) {
    let privacy = &job.privacy;
    let mut refuse = |key: &str, message: &str, help: &str| problems.push(Problem::error(key, message).help(help));
    for listed in privacy.rules() {
        if listed.name == "range-diversity" {
            let message = "may be worse for two windows' classes of one label together than for each";
            refuse(&listed.key, message, "ask for l-diversity, p-sensitive, alpha-k, k-e or guarding");
        } else if listed.rule.needs().table && window.survey.is_none() {
            let help = "set window.survey to a file of `throng survey`, which says how often values occur, or ask for \
                        l-diversity, p-sensitive, alpha-k, k-e or guarding";
            refuse(&listed.key, WHOLE_TABLE, help);
        }
    }
    if privacy.presence.is_some() {
        refuse("privacy.presence", WHOLE_TABLE, "remove it, or publish a single release with `throng run`");
    }
    if privacy.max_loss.is_some() {
        let message = "is measured against the domains of a whole table, which a window does not see";
        refuse("privacy.max-loss", message, "set window.max-loss: what would lose more waits");
    }
    if !job.dependencies.is_empty() || privacy.inference != Inference::default() {
        let message = "are counted over the whole table, which a window does not see";
        refuse("dependencies", message, "remove them, or publish a single release with `throng run`");
    }
    if job.method.form() != Form::Generalise {
        let message = format!("`{}` is no form of a window: only classes that generalise", job.method.form().as_str());
        refuse("method.form", &message, "choose a method and form that generalise, such as method.name = \"auto\"");
    }
}

fn check_columns(job: &Job, problems: &mut Vec<Problem>) {
    for (name, column) in &job.columns {
        if matches!(column.hierarchy, Some(HierarchySpec::Quantiles { .. })) {
            let message = "quantiles follow the rows of a table, and every window has others";
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

    fn problems(window: &str, rest: &str) -> Vec<String> {
        let (columns, rest) = match rest.strip_prefix("columns.") {
            Some(column) => (column, ""),
            None => ("", rest),
        };
        let text = format!(
            "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nprivacy.k = 5\n{rest}\n[columns]\nid.role = \"identifier\"\n\
             age.role = \"quasi\"\nill.role = \"sensitive\"\n{columns}\n[window]\n{window}\n"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_window(&job, Path::new("/nonexistent"), &mut problems);
        problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_window_has_no_problems() {
        assert_eq!(problems("rows = 100000", ""), [""; 0]);
        let full = "rows = 5\ntime = \"10m\"\nmax-wait = 0\nmax-loss = 0.3\nsubject = [\"id\"]\nremember = 10";
        assert_eq!(problems(full, "privacy.l-diversity = { column = \"ill\", l = 2 }"), [""; 0]);
        assert_eq!(Window::of_rows(9).with_time("10m").duration(), Ok(Some(Duration::from_mins(10))));
    }

    #[test]
    fn whatever_cannot_be_kept_is_refused() {
        for (window, rest, expected) in [
            ("time = \"10m\"", "", "window.rows: is missing: time alone"),
            ("rows = 4", "", "window.rows: is 4, but a class has at least k = 5 rows"),
            ("rows = 9\ntime = \"soon\"", "", "window.time: is not a time"),
            ("rows = 9\ntime = \"0s\"", "", "window.time: is not a time"),
            ("rows = 9\nmax-loss = 1.5", "", "window.max-loss: must be from 0 to 1"),
            ("rows = 9\nremember = 5", "", "but none are told apart"),
            ("rows = 9\nsubject = [\"id\"]\nremember = 0", "", "no subject would be known again"),
            ("rows = 9\nsubject = [\"ids\"]", "", "did you mean `id`?"),
            ("rows = 9\nsubject = [\"id\", \"id\"]", "", "names `id` twice"),
            ("rows = 9\nsurvey = \"none\"", "", "window.survey: there is no file none"),
            ("rows = 9", "privacy.t-closeness = { column = \"ill\", t = 0.2 }", "set window.survey to a file"),
            ("rows = 9", "privacy.range-diversity = { column = \"ill\", p = 0.5 }", "two windows' classes"),
            ("rows = 9", "privacy.max-loss = 0.5", "set window.max-loss"),
            ("rows = 9", "method.form = \"anatomy\"", "only classes that generalise"),
            ("rows = 9", "columns.day = { role = \"quasi\", hierarchy.quantiles = [4, 2] }", "quantiles follow"),
        ] {
            let found = problems(window, rest).join("\n");
            assert!(found.contains(expected), "{window} {rest}: {found}");
        }
    }

    #[test]
    fn a_survey_is_never_shown() {
        assert_eq!(format!("{:?}", SurveyBytes([1, 2].as_slice().into())), "SurveyBytes(..)");
    }
}
