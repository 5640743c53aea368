//! `privacy.presence` and its checks: bounds that can be met, a public table that is there, published forms that can be
//! counted.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{check_location, outside_share};
use super::forms::OneOrMany;
use super::model::{Job, Publish};
use super::rules::not_sensitive;
use crate::error::Problem;
use crate::privacy::weak_diversity::WeakDiversity;
use crate::storage::local_path;
use crate::storage::locate::location_names;

/// delta-presence: as inferred from the release and a public table, everybody's chance to be in the source must lie
/// between two bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Presence {
    /// Parquet with everybody who might be in the source, and everybody who is: a file, a folder, a glob or an
    /// object-store prefix, with the quasi-identifiers as columns of the same names. A relative path starts at the job
    /// file's folder.
    pub(crate) public: String,
    /// The least chance that anybody may seem to have; above 0 it also hides who is not in the source.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) min: f64,
    /// The largest chance that anybody may seem to have.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) max: f64,
    /// Fewest people of the public table who fit any published class, whether they are in the source or not: k-map, or
    /// weak k-anonymity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) people: Option<u32>,
    /// Weak l-diversity of sensitive columns: no value is published for more than one in l of the people of the public
    /// table who fit a class. One rule, or a list of rules.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub(crate) diversity: OneOrMany<WeakDiversity>,
    /// Columns of both tables that identify people: every person of the source must be in the public table. Without
    /// them, the quasi-identifiers of the source must occur there often enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) key: Vec<String>,
}

impl Presence {
    /// Nobody of the public table may seem to be in the source with a higher chance than `max`. `public` is a path or the
    /// URL of an object store.
    ///
    /// ```
    /// use throng::rules::Presence;
    /// use throng::{Column, Policy};
    ///
    /// let presence = Presence::new("register.parquet", 0.9).with_min(0.05).with_people(20);
    /// let policy = Policy::builder(5).column("age", Column::quasi()).presence(presence).build()?;
    /// assert_eq!(policy.k(), 5);
    /// # Ok::<(), throng::Error>(())
    /// ```
    pub fn new(public: impl Into<String>, max: f64) -> Self {
        let (people, diversity, key) = (None, OneOrMany::default(), Vec::new());
        Self { public: public.into(), min: 0.0, max, people, diversity, key }
    }

    /// The same with a chance that nobody may fall below, which also hides who is not in the source.
    #[must_use]
    pub fn with_min(self, min: f64) -> Self {
        Self { min, ..self }
    }

    /// The same with so many people of the public table for every published class.
    #[must_use]
    pub fn with_people(self, people: u32) -> Self {
        Self { people: Some(people), ..self }
    }

    /// The same with weak l-diversity of a sensitive column.
    #[must_use]
    pub fn with_diversity(mut self, column: impl Into<String>, l: u32) -> Self {
        self.diversity.push(WeakDiversity { column: column.into(), l });
        self
    }

    /// The same with columns that tell the people of both tables apart.
    #[must_use]
    pub fn with_key<N: Into<String>>(self, columns: impl IntoIterator<Item = N>) -> Self {
        Self { key: columns.into_iter().map(Into::into).collect(), ..self }
    }
}

pub(crate) fn check_presence(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    let Some(Presence { public, min, max, people, diversity, key }) = &job.privacy.presence else { return };
    problems.extend(outside_share("privacy.presence.min", *min));
    problems.extend(outside_share("privacy.presence.max", *max));
    if min > max {
        let message = format!("{min} is above max = {max}");
        problems.push(Problem::error("privacy.presence.min", message));
    } else if *min <= 0.0 && *max >= 1.0 {
        let message = "0 to 1 does not restrict anything";
        problems.push(Problem::warning("privacy.presence", message).help("lower max, or raise min"));
    }
    if *people == Some(0) {
        problems.push(Problem::error("privacy.presence.people", "must be at least 1"));
    }
    for (index, rule) in diversity.iter().enumerate() {
        let place = if diversity.len() > 1 { format!("[{index}]") } else { String::new() };
        let at = format!("privacy.presence.diversity{place}");
        problems.extend(not_sensitive(job, &rule.column, &at));
        if rule.l == 0 {
            problems.push(Problem::error(format!("{at}.l"), "must be at least 1"));
        }
    }
    problems.extend(check_location("privacy.presence.public", public));
    if let Some(path) = local_path(base, public)
        && !public.contains(['*', '?', '['])
        && !public.trim().is_empty()
        && !path.exists()
    {
        let message = format!("there is no file or folder {}", path.display());
        problems.push(
            Problem::error("privacy.presence.public", message)
                .help("a relative path starts at the folder of the job file"),
        );
    }
    let (from, to) = (location_names(base, public), location_names(base, &job.sink.url));
    if from.starts_with(&to) || to.starts_with(&from) {
        problems.push(Problem::error("privacy.presence.public", "and the sink lie inside one another"));
    }
    for (index, name) in key.iter().enumerate().filter(|(index, name)| key[..*index].contains(name)) {
        problems.push(Problem::error(format!("privacy.presence.key[{index}]"), format!("`{name}` is named twice")));
    }
    let form = job.method.form();
    if form.is_exact() {
        let message = format!(
            "the form `{}` publishes quasi-identifiers exactly, and with them who is in the source",
            form.as_str()
        );
        let help = "choose method.form = \"generalise\", or method.name = \"combined\" to permute what is generalised";
        problems.push(Problem::error("privacy.presence", message).help(help));
    }
    for (name, column) in &job.columns {
        if column.publish == Some(Publish::Centroid) {
            problems.push(
                Problem::error(format!("columns.{name}.publish"), "a centroid does not show whom it covers")
                    .help("presence needs label, range or bounds"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(presence: &str, columns: &str) -> Vec<String> {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\n[privacy]\nk = 5\npresence = {presence}\n\
             [method]\nname = \"mpalm\"\n[columns]\n{columns}"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_presence(&job, Path::new("."), &mut problems);
        problems.iter().map(|problem| problem.key.clone()).collect()
    }

    #[test]
    fn bounds_and_places_are_checked() {
        let age = "age = { role = \"quasi\" }";
        assert!(errors("{ public = \"s3://b/voters\", min = 0.1, max = 0.9, key = [\"id\"] }", age).is_empty());
        assert_eq!(errors("{ public = \"s3://b/voters\", min = 0.9, max = 0.1 }", age), ["privacy.presence.min"]);
        assert_eq!(errors("{ public = \"s3://b/voters\", max = 1.5 }", age)[0], "privacy.presence.max");
        assert_eq!(errors("{ public = \"s3://b/v\", max = 0.5, people = 0 }", age), ["privacy.presence.people"]);
        let diverse = |rule: &str| errors(&format!("{{ public = \"s3://b/v\", max = 0.5, diversity = {rule} }}"), age);
        assert_eq!(diverse("{ column = \"age\", l = 0 }").len(), 2);
        assert_eq!(diverse("{ column = \"ill\", l = 2 }"), ["privacy.presence.diversity.column"]);
        assert_eq!(errors("{ public = \"s3://a/out/p\", max = 0.9 }", age), ["privacy.presence.public"]);
        assert_eq!(errors("{ public = \"nowhere\", max = 0.9 }", age), ["privacy.presence.public"]);
        let centroid = "age = { role = \"quasi\", publish = \"centroid\" }";
        assert_eq!(errors("{ public = \"s3://b/v\", max = 0.9 }", centroid), ["columns.age.publish"]);
    }
}
