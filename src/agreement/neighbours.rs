//! What two neighbouring releases of a series show that differs: a check by plain SQL over published files, without any secret.
//!
//! For every published combination of quasi-identifiers, the rows that have come and the rows that have gone are each none, or
//! meet k and the rules by themselves. That is a necessary part of the promise of a series; the whole of it needs the ledger.
//! Files that both releases list cancel out and are not read.

use std::sync::Arc;

use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_nested::range::range;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use super::files;
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::ledger;
use crate::ledger::manifest::{Manifest, OutputFile};
use crate::storage::Location;
use crate::verify::{Finding, InProcess, broken_rules, class_sizes, small_classes};

/// Name of the column that counts how many rows one release has more than the other.
const OFF: &str = "__throng_off";

/// Checks all pairs of neighbours in a sink; the rules only where a policy is given. Returns how many releases there are.
pub(crate) async fn verify_neighbours(
    context: &SessionContext,
    sink: &Location,
    bound_policy: Option<&Arc<BoundPolicy>>,
) -> Result<(usize, Vec<Finding>)> {
    let mut releases = ledger::readable_releases(sink).await?;
    let number = |manifest: &Manifest| manifest.series.as_ref().map(|series| series.number);
    if releases.is_empty() || releases.iter().any(|manifest| number(manifest).is_none()) {
        let name = &sink.name;
        return Err(Error::input(format!("`{name}` does not hold releases of a series; leave --series out")));
    }
    releases.sort_by_key(number);
    let mut findings = Vec::new();
    for pair in releases.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        for (what, more, less) in [("come", after, before), ("gone", before, after)] {
            let k = before.k.max(after.k);
            let found = check_difference(context, sink, more, less, k, bound_policy).await?;
            let at = format!("the rows that have {what} between run `{}` and run `{}`", before.run, after.run);
            findings.extend(
                found.into_iter().map(|finding| Finding { message: format!("{at}: {}", finding.message), ..finding }),
            );
        }
    }
    Ok((releases.len(), findings))
}

/// Checks the rows that one release has more than another.
async fn check_difference(
    context: &SessionContext,
    sink: &Location,
    more: &Manifest,
    less: &Manifest,
    k: u32,
    bound_policy: Option<&Arc<BoundPolicy>>,
) -> Result<Vec<Finding>> {
    let own = |one: &Manifest, other: &Manifest| -> Vec<OutputFile> {
        one.files.iter().filter(|file| !other.files.contains(file)).cloned().collect()
    };
    let (added, removed) = (own(more, less), own(less, more));
    if added.is_empty() {
        return Ok(Vec::new());
    }
    let rows = files::open_published(context, sink, &added, None).await?;
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let side = |rows: DataFrame, side: i64| -> Result<DataFrame> {
        Ok(rows.select(names.iter().map(ident).chain([lit(side).alias("__throng_side")]).collect::<Vec<_>>())?)
    };
    let mut both = side(rows, 1)?;
    if !removed.is_empty() {
        both = both.union(side(files::open_published(context, sink, &removed, None).await?, -1)?)?;
    }
    let columns = || names.iter().map(ident).collect::<Vec<Expr>>();
    let off =
        both.aggregate(columns(), vec![sum(ident("__throng_side")).alias(OFF)])?.filter(ident(OFF).gt(lit(0_i64)))?;
    let times = range(lit(0_i64), ident(OFF), lit(1_i64)).alias("__throng_copy");
    let rows = off.select(columns().into_iter().chain([times]).collect::<Vec<_>>())?;
    let rows = rows.unnest_columns(&["__throng_copy"])?.select(columns())?;
    let sizes = class_sizes(&InProcess, &rows, &more.class_columns).await?;
    let mut findings: Vec<Finding> = small_classes(&sizes, k, "rows").into_iter().collect();
    if let Some(bound_policy) = bound_policy {
        let broken = broken_rules(&InProcess, &rows, &rows, bound_policy, &more.class_columns).await?;
        findings.extend(broken.into_iter().map(|(rule, count)| Finding {
            message: format!("{count} classes do not meet {rule}"),
            rule,
            count,
        }));
    }
    Ok(findings)
}

/// Checks all pairs of neighbours in a sink by their sizes, from the published files alone.
pub(crate) async fn verify_series(context: &SessionContext, sink: &Location) -> Result<(usize, Vec<Finding>)> {
    verify_neighbours(context, sink, None).await
}
