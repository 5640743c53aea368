//! Functional dependencies in the job file: their form and their checks.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::Schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::outside_share;
use super::identifier::IdentifierAction;
use super::model::{Column, Form, Job};
use crate::error::Problem;
use crate::error::problem::nearest_word;

/// A functional dependency: rows with equal values in `from` have equal values in `to`. Null is a value of its own.
///
/// ```
/// use throng::rules::{Dependency, Inference};
/// use throng::{Column, Policy};
///
/// let county = Dependency { from: vec!["postcode".into()], to: vec!["county".into()], tolerance: 0.001 };
/// let policy = Policy::builder(5)
///     .columns(["postcode", "county"], Column::quasi())
///     .dependency(county)
///     .inference(Inference::Reject)
///     .build()?;
/// # drop(policy);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dependency {
    /// The determining columns.
    pub from: Vec<String>,
    /// The determined columns.
    pub to: Vec<String>,
    /// The largest share of rows that may violate the dependency. Defaults to 0, that is, no row. A run
    /// stops if more do, and reports the share.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tolerance: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Dependency {
    /// `a, b -> c`: for messages and the manifest.
    pub(crate) fn name(&self) -> String {
        format!("{} -> {}", self.from.join(", "), self.to.join(", "))
    }
}

/// What to do if the dependencies let a reader distinguish rows of a class, so that fewer than k of them still fit a
/// person, or the other rules do not hold among those that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// Publish, with a warning in the log and the manifest.
    #[default]
    Warn,
    /// Publish nothing.
    Reject,
    /// Form groups of which enough rows still fit everybody whom they may hold. What is still exposed, because other
    /// cells reveal more, is withheld: the columns on the right of dependencies.
    Repair,
}

impl Inference {
    /// The name as it is written in the job file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Reject => "reject",
            Self::Repair => "repair",
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Finds what is wrong with the dependencies of a job before its source is known.
pub(crate) fn check_dependencies(job: &Job, problems: &mut Vec<Problem>) {
    let method = job.method.name;
    if job.dependencies.is_empty() && method.entry().preserves {
        let message = format!("is missing: method `{}` preserves dependencies, but the job has none", method.as_str());
        let help = "add [[dependencies]] with from = [\"...\"] and to = [\"...\"], or change method.name";
        problems.push(Problem::error("dependencies", message).help(help));
    }
    if job.dependencies.is_empty() && !job.privacy.inference.is_default() {
        let message = "is about dependencies, but the job has none";
        problems.push(Problem::error("privacy.inference", message).help("add [[dependencies]], or remove it"));
    }
    if !job.dependencies.is_empty() && !job.privacy.inference.is_default() && job.privacy.person.is_some() {
        let message = "counts rows to a reader who knows the dependencies, but k counts people";
        problems
            .push(Problem::error("privacy.inference", message).help("set it to \"warn\", or remove privacy.person"));
    }
    let form = job.method.form();
    if !job.dependencies.is_empty() && form.is_numbered() {
        let message = match form {
            Form::Combined => "have no meaning in the form `combined`, which separates the columns of a row".to_owned(),
            _ => format!(
                "have no meaning in the form `{}`, which publishes quasi-identifiers as they are",
                form.as_str()
            ),
        };
        problems.push(Problem::error("dependencies", message).help("remove them, or choose another method.form"));
    }
    for (index, dependency) in job.dependencies.iter().enumerate() {
        let key = format!("dependencies[{index}]");
        problems.extend(outside_share(&format!("{key}.tolerance"), dependency.tolerance));
        let mut seen = BTreeSet::new();
        for (side, columns) in [("from", &dependency.from), ("to", &dependency.to)] {
            let key = format!("{key}.{side}");
            if columns.is_empty() {
                problems.push(Problem::error(&key, "names no column"));
            }
            for column in columns {
                if !seen.insert(column) {
                    problems.push(Problem::error(&key, format!("names column `{column}` twice")));
                }
                let open = || job.defaults.as_ref().and_then(|defaults| defaults.role).map(Column::new);
                let becomes =
                    match job.columns.get(column).cloned().or_else(open).as_ref().and_then(Column::identifier_action) {
                        Some(IdentifierAction::Drop) => "dropped",
                        Some(IdentifierAction::Constant(_)) => "replaced by a constant",
                        // Equal values have equal pseudonyms, so what depends on one depends on the other.
                        Some(IdentifierAction::Pseudonym(_)) | None => continue,
                    };
                let message = format!("column `{column}` is an identifier, which is {becomes}");
                problems.push(Problem::error(&key, message).help("remove it: it is not published"));
            }
        }
    }
}

/// Columns of dependencies that a source does not have.
pub(crate) fn missing_columns(dependencies: &[Dependency], schema: &Schema) -> Vec<Problem> {
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    let mut problems = Vec::new();
    for (index, dependency) in dependencies.iter().enumerate() {
        for (side, columns) in [("from", &dependency.from), ("to", &dependency.to)] {
            for column in columns.iter().filter(|column| !names().any(|name| name == column.as_str())) {
                let message = format!("the source has no column `{column}`");
                let mut problem = Problem::error(format!("dependencies[{index}].{side}"), message);
                if let Some(near) = nearest_word(column, names()) {
                    problem = problem.help(format!("did you mean `{near}`?"));
                }
                problems.push(problem);
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::policy::{check, check_schema};

    fn job(rest: &str) -> Job {
        let text = format!(
            "version = 1\nsource = {{ url = \".\" }}\nsink = {{ url = \"out\" }}\n\
             columns = {{ zip = {{ role = \"quasi\" }}, state = {{ role = \"quasi\" }}, name = {{ role = \"identifier\" }} }}\n{rest}"
        );
        Job::parse(&text, Path::new("job.toml")).unwrap()
    }

    fn errors(rest: &str) -> Vec<String> {
        let problems = check(&job(rest), Path::new("src"));
        let about = |problem: &Problem| problem.is_error() && !problem.key.starts_with("sink");
        problems.into_iter().filter(about).map(|problem| problem.to_string()).collect()
    }

    const ZIP_TO_STATE: &str = "privacy = { k = 5 }\n[[dependencies]]\nfrom = [\"zip\"]\nto = [\"state\"]\n";

    #[test]
    fn a_dependency_names_each_column_once() {
        assert_eq!(errors(ZIP_TO_STATE), [""; 0]);
        assert_eq!(
            errors(&ZIP_TO_STATE.replace("[\"state\"]", "[\"zip\", \"name\"]\ntolerance = 2.0")),
            [
                "dependencies[0].tolerance: must be from 0 to 1, got 2",
                "dependencies[0].to: names column `zip` twice",
                "dependencies[0].to: column `name` is an identifier, which is dropped\n  help: remove it: it is not \
                 published",
            ]
        );
        assert_eq!(errors(&ZIP_TO_STATE.replace("[\"zip\"]", "[]")), ["dependencies[0].from: names no column"]);
    }

    #[test]
    fn methods_and_inference_need_dependencies() {
        let found = errors(
            "privacy = { k = 5, inference = \"reject\" }\nmethod = { name = \"k-assemble\", k-assemble.seeds = 0 }\n",
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("dependencies: is missing: method `k-assemble` preserves dependencies"));
        assert!(found[1].starts_with("privacy.inference: is about dependencies"));
        assert!(found[2].starts_with("method.k-assemble.seeds: must be at least 1"));
    }

    #[test]
    fn dependencies_fit_people_pseudonyms_and_forms() {
        let found = errors(&ZIP_TO_STATE.replace("k = 5", "k = 5, inference = \"repair\", person = \"state\""));
        assert!(found.iter().any(|problem| problem.starts_with("privacy.inference: counts rows")), "{found:?}");
        let of_name = ZIP_TO_STATE.replace("[\"zip\"]", "[\"name\"]");
        let treated = |treat: IdentifierAction| {
            let mut job = job(&of_name);
            job.columns.get_mut("name").unwrap().treat = Some(treat);
            let mut problems = Vec::new();
            super::check_dependencies(&job, &mut problems);
            problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        let pseudonym = toml::from_str::<Column>("role = \"identifier\"\ntreat.pseudonym.key-env = \"KEY\"");
        let pseudonym = pseudonym.unwrap().treat.unwrap();
        let constant = treated(IdentifierAction::Constant("x".into()));
        assert_eq!(constant, ["column `name` is an identifier, which is replaced by a constant"]);
        assert_eq!(treated(pseudonym), [""; 0]);
        let found = errors(&format!("method.form = \"anatomy\"\n{ZIP_TO_STATE}"));
        assert!(found.iter().any(|problem| problem.starts_with("dependencies: have no meaning")), "{found:?}");
    }

    #[test]
    fn columns_must_exist() {
        let job = job(&ZIP_TO_STATE.replace("\"zip\"", "\"zips\""));
        let field = |name: &str| Field::new(name, DataType::Utf8, true);
        let found = check_schema(&job, &Schema::new(vec![field("zip"), field("state"), field("name")]));
        let found: Vec<String> = found.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
        assert_eq!(found, ["dependencies[0].from: the source has no column `zips`\n  help: did you mean `zip`?"]);
    }
}
