//! What a release must satisfy, as it stands in the job file: `k`, a few bounds, the list of rules about sensitive columns, and
//! `presence` with its checks: bounds that can be met, a public table that is there, published forms that can be counted.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{check_location, outside_share};
use super::dependencies::Inference;
use super::forms::OneOrMany;
use super::model::{DEFAULT_MAX_SUPPRESSION, Job, LDiversity, Publish, RangeDiversity};
use super::rules::not_sensitive;
use crate::error::Problem;
use crate::privacy::alpha_k::AlphaK;
use crate::privacy::beta_likeness::BetaLikeness;
use crate::privacy::delta_disclosure::DeltaDisclosure;
use crate::privacy::guarding::Guarding;
use crate::privacy::k_e::KE;
use crate::privacy::p_sensitive::PSensitive;
use crate::privacy::t_closeness::TCloseness;
use crate::privacy::weak_diversity::WeakDiversity;
use crate::privacy::{RuleRecord, SensitiveRule};
use crate::storage::local_path;
use crate::storage::locate::location_names;

fn default_max_suppression() -> f64 {
    DEFAULT_MAX_SUPPRESSION
}

/// Makes [`Privacy`] with a key for every rule of the list.
macro_rules! privacy {
    ($($(#[$doc:meta])* $key:ident: $rule:ident;)*) => {
        /// What the release must satisfy.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct Privacy {
            /// Every combination of published quasi-identifier values occurs at least this often. At least 2.
            #[schemars(range(min = 2))]
            pub k: u32,
            /// The column that identifies people, if a person may have several rows: k then counts people, not rows.
            /// It need not be published; rows without a value in it count as one person.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub person: Option<String>,
            /// The largest share of rows that may be left out of the release.
            #[serde(default = "default_max_suppression")]
            #[schemars(range(min = 0.0, max = 1.0))]
            pub max_suppression: f64,
            /// The largest mean information loss of any group over its quasi-identifiers (U). Unbounded by default.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 0.0, max = 1.0))]
            pub max_loss: Option<f64>,
            /// What to do if a reader who knows the dependencies can distinguish rows of a class, so that fewer than k
            /// are left.
            #[serde(default, skip_serializing_if = "Inference::is_default")]
            pub inference: Inference,
            /// Hides who is in the source at all from readers who hold a public table of people (delta-presence).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub presence: Option<Presence>,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
                pub $key: OneOrMany<$rule>,
            )*
        }

        /// A rule about a sensitive column, of any kind.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum PrivacyRule {
            $(
                $(#[$doc])*
                $rule($rule),
            )*
        }

        $(
            impl From<$rule> for PrivacyRule {
                fn from(rule: $rule) -> Self {
                    Self::$rule(rule)
                }
            }
        )*

        impl Privacy {
            /// k and nothing else.
            pub(crate) fn new(k: u32) -> Self {
                Self {
                    k,
                    person: None,
                    max_suppression: DEFAULT_MAX_SUPPRESSION,
                    max_loss: None,
                    inference: Inference::default(),
                    presence: None,
                    $($key: OneOrMany::default(),)*
                }
            }

            /// Adds a rule.
            pub(crate) fn add_rule(&mut self, rule: PrivacyRule) {
                match rule {
                    $(PrivacyRule::$rule(rule) => self.$key.push(rule),)*
                }
            }

            /// All rules about sensitive columns, each with its key in the job file.
            pub(crate) fn rules(&self) -> Vec<ConfiguredRule> {
                let mut rules = Vec::new();
                $(
                    let name = stringify!($key).replace('_', "-");
                    for (index, rule) in self.$key.iter().enumerate() {
                        let place = if self.$key.len() > 1 { format!("[{index}]") } else { String::new() };
                        let key = format!("privacy.{name}{place}");
                        let rule: Arc<dyn SensitiveRule> = Arc::new(rule.clone());
                        rules.push(ConfiguredRule { name: name.clone(), key, record: rule.record(), rule });
                    }
                )*
                rules
            }
        }
    };
}

// The list of rules. The comment of a line is the description of its key in the JSON schema.
privacy! {
    /// Bounds on how surely a sensitive value can be placed in a range (P). One rule, or a list of rules.
    range_diversity: RangeDiversity;
    /// Demands on the variety of sensitive values in every group. One rule, or a list of rules.
    l_diversity: LDiversity;
    /// Bounds on how far the distribution of sensitive values in a group is from that of the table. One rule, or a list.
    t_closeness: TCloseness;
    /// Bounds on the share of a group that holds the same sensitive value. One rule, or a list of rules.
    alpha_k: AlphaK;
    /// Demands on the number of different sensitive values in every group. One rule, or a list of rules.
    p_sensitive: PSensitive;
    /// Demands on the number of different sensitive numbers in every group and on their range. One rule, or a list.
    k_e: KE;
    /// Bounds on how much more or less a group reveals of a sensitive value than the table. One rule, or a list of rules.
    delta_disclosure: DeltaDisclosure;
    /// Bounds on how much more common a sensitive value is in a group than in the table. One rule, or a list of rules.
    beta_likeness: BetaLikeness;
    /// Nodes of a sensitive column's hierarchy below which a group may hold few values. One rule, or a list of rules.
    guarding: Guarding;
}

/// A rule of the job.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredRule {
    /// The key of its kind, such as `l-diversity`.
    pub name: String,
    /// Its own key, such as `privacy.l-diversity[1]`.
    pub key: String,
    /// Name and parameters as the job has them.
    pub record: RuleRecord,
    /// The rule.
    pub rule: Arc<dyn SensitiveRule>,
}

impl Privacy {
    /// Whether a rule is about a column.
    pub(crate) fn guards_column(&self, column: &str) -> bool {
        self.rules().iter().any(|listed| listed.rule.column() == column)
    }

    /// Whether a rule compares the groups' values of a column with those of the whole table.
    pub(crate) fn compares_column(&self, column: &str) -> bool {
        self.rules().iter().any(|listed| listed.rule.column() == column && listed.rule.needs().table)
    }
}

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
