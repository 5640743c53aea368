//! Whether the published classes are those in which people were counted.
//!
//! Files need not say whose a row is, so people are counted where rows still have an owner, and the manifest keeps a digest
//! of the class of every row that was counted: the sum of two hashes of its published values. Here the digest is made again
//! from the files (`digest`).

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;

use super::finding::Finding;
use super::fold::{Fold, FoldExec, read_states};
use super::judge::small_classes;
use super::plans::PlanExecutor;
use crate::error::Result;
use crate::measure::Classes;
use crate::measure::people::Digest;

/// Checks that the published classes are those in which people were counted, and that there were enough in each.
pub(crate) async fn verify_people(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    class_columns: &[String],
    classes_by_size: &BTreeMap<u64, u64>,
    digest: &str,
    k: u32,
) -> Result<Vec<Finding>> {
    let columns = class_columns.iter().map(ident).collect::<Vec<_>>();
    let (state, plan) = rows.clone().select(columns)?.into_parts();
    let plan = state.create_physical_plan(&plan).await?;
    let parts = plans.execute_plan(Arc::new(FoldExec::new(plan, Fold::People)), state).await?;
    let mut found = Digest::default();
    read_states(&parts)?.into_iter().for_each(|part| found.merge(part));
    let mut findings = Vec::new();
    if found.to_string() != digest {
        let message = "the published classes are not those in which people were counted";
        findings.push(Finding::new("person", 1, message));
    }
    let mut classes = Classes::default();
    classes_by_size.iter().for_each(|(&size, &number)| classes.add_classes(size, number));
    findings.extend(small_classes(&classes, k, "people"));
    Ok(findings)
}
