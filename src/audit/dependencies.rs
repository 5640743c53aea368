//! Whether the dependencies of a policy hold on its source: one aggregate per dependency, which spills when it must.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;
use serde::{Deserialize, Serialize};

use crate::binding::BoundPolicy;
use crate::dependency::Preserved;
use crate::error::{Error, Result};
use crate::policy::Dependency;
use crate::published::content_key;

/// How well a functional dependency holds and is preserved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DependencyScore {
    /// `from -> to`.
    pub name: String,
    /// Share of the source's rows that violate it; omitted, like the fields below, if rows were suppressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations: Option<f64>,
    /// Distinct combinations of its values in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// Dependency loss of an instance, on average: 0 when some row publishes it as it was, 1 when all of it is lost. Omitted for
    /// a table of several cells, where only its bound is known.
    pub loss: Option<f64>,
    /// A bound on the same from above, by the rows that hold each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bound: Option<f64>,
    /// Share of instances that some row publishes without loss.
    pub preserved: Option<f64>,
    /// Instances that were looked at, when there are too many to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<u64>,
}

/// Checks every dependency; fails if one is violated by more rows than it tolerates.
pub(crate) async fn check_dependencies(source: &DataFrame, bound_policy: &BoundPolicy) -> Result<Vec<DependencyScore>> {
    let mut scores = Vec::new();
    let mut broken = Vec::new();
    for (index, dependency) in bound_policy.policy.dependencies.iter().enumerate() {
        let (rows, violating, instances) = count_violations(source, dependency).await?;
        let share = violating as f64 / rows.max(1) as f64;
        if share > dependency.tolerance {
            broken.push(format!(
                "dependencies[{index}] `{}`: does not hold in {violating} of {rows} rows ({:.4} %); fix the source, \
                 remove the dependency, or set its tolerance to {share:.6} or more",
                dependency.name(),
                share * 100.0
            ));
        }
        scores.push(DependencyScore {
            name: dependency.name(),
            violations: Some(share),
            instances: Some(instances),
            ..Default::default()
        });
    }
    if broken.is_empty() { Ok(scores) } else { Err(Error::input(broken.join("\n"))) }
}

/// Rows, rows to remove for the dependency to hold (g3), and instances.
async fn count_violations(source: &DataFrame, dependency: &Dependency) -> Result<(u64, u64, u64)> {
    let sides = vec![content_key(&dependency.from).alias("from"), content_key(&dependency.to).alias("to")];
    let size = ident("size");
    let found = source
        .clone()
        .aggregate(sides, vec![count(lit(1)).alias("size")])?
        .aggregate(
            vec![ident("from")],
            vec![sum(size.clone()).alias("rows"), max(size.clone()).alias("most"), count(lit(1)).alias("instances")],
        )?
        .aggregate(vec![], vec![sum(ident("rows")), sum(ident("most")), sum(ident("instances"))])?
        .collect()
        .await?;
    let number = |column: usize| {
        let counted = found.iter().find(|batch| batch.num_rows() > 0);
        counted.map_or(0, |batch| batch.column(column).as_primitive::<Int64Type>().value(0) as u64)
    };
    Ok((number(0), number(0) - number(1), number(2)))
}

/// Fills in what a release preserves.
pub(crate) fn score_preserved(mut scores: Vec<DependencyScore>, preserved: &[Preserved]) -> Vec<DependencyScore> {
    for (score, preserved) in scores.iter_mut().zip(preserved) {
        (score.loss, score.loss_bound) = (preserved.loss(), preserved.loss_bound());
        score.preserved = preserved.complete_share();
        score.sampled = preserved.is_sampled().then(|| preserved.instances() as u64);
    }
    scores
}
