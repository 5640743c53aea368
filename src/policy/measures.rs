//! Optional measures that take time, as the job requests them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::outside_share;
use super::model::{Column, Job, Role};
use crate::error::Problem;

/// Measures in addition to loss, protection and risk, which are always measured. They change the manifest, never the
/// release.
///
/// ```
/// use throng::rules::{MeasureSpec, Queries};
/// use throng::{Column, Policy};
///
/// let queries = Queries { count: 100, dimensions: 1, selectivity: 0.1, seed: 7 };
/// let measures = MeasureSpec { information: true, queries: Some(queries), ..MeasureSpec::default() };
/// let policy = Policy::builder(5).column("age", Column::quasi()).measures(measures).build()?;
/// # drop(policy);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MeasureSpec {
    /// A published column of class labels: measures how many rows are not of their class's majority (CM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Whether to measure entropy, KL divergence, and the chance to reconstruct a row.
    pub information: bool,
    /// Whether the manifest says what follows from original values: parameters that were found from a sample, sizes of cells,
    /// how dependencies hold and are preserved, steps in hierarchies, and classes counted in people. Whoever knows all original
    /// values but one can try those that the release allows, and keep the ones that give these figures.
    pub source: bool,
    /// The COUNT queries whose relative error on the release is measured. Without them, trials ask a few over two columns,
    /// and runs none: an answer of the source follows from its original values, and a manifest holds published ones only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<Queries>,
    /// Measures the share of rows in groups whose range diversity is above this. Defaults to the bound of the
    /// policy, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub unprotected: Option<f64>,
    /// People in the whole population that the source is a part of: estimates how many are unique in it, by the source as
    /// it is and by what is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub population: Option<u64>,
}

/// The warning about a manifest that tells of the source.
pub(crate) const FROM_SOURCE: &str =
    "the manifest holds figures of original values: whoever knows all of them but one can confirm a guess of it";

impl MeasureSpec {
    /// Whether figures are asked for that follow from original values.
    pub(crate) fn tell_of_source(&self) -> bool {
        self.source || self.information || self.queries.is_some() || self.population.is_some()
    }
}

/// A workload of COUNT queries over ranges of quasi-identifiers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Queries {
    /// Number of queries.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
    /// Quasi-identifiers that each query restricts.
    #[serde(default = "default_dimensions")]
    #[schemars(range(min = 1))]
    pub dimensions: u32,
    /// The share of all combinations of values that each query asks for.
    #[serde(default = "default_selectivity")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub selectivity: f64,
    /// Seed of the choice.
    #[serde(default)]
    pub seed: u64,
}

impl Queries {
    /// Queries of a trial whose job asks for none: few enough to cost next to nothing.
    pub(crate) const USUAL: Self = Self { count: 24, dimensions: 2, selectivity: 0.05, seed: 0 };
}

fn default_dimensions() -> u32 {
    2
}

fn default_selectivity() -> f64 {
    0.05
}

/// Most queries of a release: their mean error is known long before.
const MAX_QUERIES: u32 = 10_000;

/// Checks what shows without data.
pub(super) fn check_measures(job: &Job, problems: &mut Vec<Problem>) {
    let measures = &job.measures;
    problems.extend(measures.unprotected.and_then(|bound| outside_share("measures.unprotected", bound)));
    if let Some(queries) = &measures.queries {
        for (key, number) in [("count", queries.count), ("dimensions", queries.dimensions)] {
            if number == 0 {
                problems.push(Problem::error(format!("measures.queries.{key}"), "must be at least 1, got 0"));
            }
        }
        if queries.count > MAX_QUERIES {
            problems.push(Problem::error(
                "measures.queries.count",
                format!("must be at most {MAX_QUERIES}, got {}", queries.count),
            ));
        }
        problems.extend(outside_share("measures.queries.selectivity", queries.selectivity));
    }
    if measures.tell_of_source() {
        problems.push(Problem::warning("measures", FROM_SOURCE).help(
            "ask for `source`, `information`, `queries` and `population` in trials (throng sweep), or keep the manifest as you keep \
             the source",
        ));
    }
    if measures.population == Some(0) {
        problems.push(Problem::error("measures.population", "must be at least 1, got 0"));
    }
    if let Some(class) = &measures.class {
        problems.extend(unfit_class(class, &job.columns, job.defaults.as_ref().and_then(|defaults| defaults.role)));
    }
}

/// The problem with a class column that is not published unchanged.
fn unfit_class(class: &str, columns: &BTreeMap<String, Column>, default: Option<Role>) -> Option<Problem> {
    match columns.get(class).map(|column| column.role).or(default) {
        Some(Role::Kept | Role::Sensitive) => None,
        Some(_) => Some(
            Problem::error("measures.class", format!("`{class}` is not published unchanged"))
                .help("name a column with the role \"kept\" or \"sensitive\""),
        ),
        None => Some(Problem::error("measures.class", format!("`{class}` is not among the columns"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn errors(measures: &str) -> Vec<String> {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\nprivacy.k = 5\n\
             columns.age.role = \"quasi\"\ncolumns.pay.role = \"kept\"\n[measures]\n{measures}\n"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        crate::policy::check(&job, Path::new("."))
            .iter()
            .filter(|problem| problem.is_error())
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn parameters_make_sense() {
        assert_eq!(errors("class = \"pay\"\ninformation = true\nqueries.count = 100\nunprotected = 0.5"), [""; 0]);
        assert_eq!(
            errors("queries = { count = 0, selectivity = 2 }\nunprotected = -1"),
            [
                "measures.unprotected: must be from 0 to 1, got -1",
                "measures.queries.count: must be at least 1, got 0",
                "measures.queries.selectivity: must be from 0 to 1, got 2",
            ]
        );
        assert!(errors("class = \"age\"")[0].starts_with("measures.class: `age` is not published unchanged"));
        assert_eq!(errors("class = \"wage\""), ["measures.class: `wage` is not among the columns"]);
    }
}
