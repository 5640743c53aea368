//! What two neighbouring releases of a series show that differs: a check by plain SQL over published files, without any secret.
//!
//! For every published combination of quasi-identifiers, of those that were first published in one release, the rows that have
//! come and the rows that have gone are each none, or meet k and the rules by themselves. That is a necessary part of the promise of a series; the whole of it needs the ledger.
//! Files that both releases list cancel out and are not read.

use std::collections::BTreeSet;
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

/// Name of the column that says whether a row is of the release that has more, or of the other: 1 or -1.
const SIDE: &str = "__throng_side";

/// Name of the column that says in which release a row was first published.
const BORN: &str = "__throng_born";

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
    let Some(mut both) = open_side(context, sink, &added, more, 1).await? else { return Ok(Vec::new()) };
    let names: Vec<String> = both.schema().fields().iter().map(|field| field.name().clone()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| name != SIDE).collect();
    if let Some(removed) = open_side(context, sink, &removed, less, -1).await? {
        both = both.union(removed)?;
    }
    let columns = || names.iter().map(ident).collect::<Vec<Expr>>();
    let off = both.aggregate(columns(), vec![sum(ident(SIDE)).alias(OFF)])?.filter(ident(OFF).gt(lit(0_i64)))?;
    let times = range(lit(0_i64), ident(OFF), lit(1_i64)).alias("__throng_copy");
    let rows = off.select(columns().into_iter().chain([times]).collect::<Vec<_>>())?;
    let rows = rows.unnest_columns(&["__throng_copy"])?.select(columns())?;
    // Readers can tell by its file in which release a row came, so a class that leaves and one that comes are two, also where
    // they are published alike.
    let class_columns: Vec<String> = more.class_columns.iter().cloned().chain([BORN.to_owned()]).collect();
    let sizes = class_sizes(&InProcess, &rows, &class_columns).await?;
    let mut findings: Vec<Finding> = small_classes(&sizes, k, "rows").into_iter().collect();
    if let Some(bound_policy) = bound_policy {
        let broken = broken_rules(&InProcess, &rows, &rows, bound_policy, &class_columns).await?;
        findings.extend(broken.into_iter().map(|(rule, count)| Finding {
            message: format!("{count} classes do not meet {rule}"),
            rule,
            count,
        }));
    }
    Ok(findings)
}

/// Some files of a release as rows, with the release in which each was first published and the side that they are on.
async fn open_side(
    context: &SessionContext,
    sink: &Location,
    listed: &[OutputFile],
    of: &Manifest,
    side: i64,
) -> Result<Option<DataFrame>> {
    let born = |file: &OutputFile| of.series.as_ref().and_then(|series| series.born.get(&file.path)).copied();
    let nights: BTreeSet<Option<u64>> = listed.iter().map(born).collect();
    let mut all: Option<DataFrame> = None;
    for night in nights {
        let of_night: Vec<OutputFile> = listed.iter().filter(|file| born(file) == night).cloned().collect();
        let rows = files::open_published(context, sink, &of_night, None).await?;
        let night = lit(night.unwrap_or(0).cast_signed()).alias(BORN);
        let names: Vec<Expr> = rows.schema().fields().iter().map(|field| ident(field.name())).collect();
        let rows = rows.select(names.into_iter().chain([night, lit(side).alias(SIDE)]).collect::<Vec<_>>())?;
        all = Some(match all {
            None => rows,
            Some(others) => others.union(rows)?,
        });
    }
    Ok(all)
}

/// Checks all pairs of neighbours in a sink by their sizes, from the published files alone.
pub(crate) async fn verify_series(context: &SessionContext, sink: &Location) -> Result<(usize, Vec<Finding>)> {
    verify_neighbours(context, sink, None).await
}
