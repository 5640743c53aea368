//! Whether the published classes are those in which people were counted.
//!
//! Files need not say whose a row is, so people are counted where rows still have an owner, and the manifest keeps a digest
//! of the class of every row that was counted: the sum of two hashes of its published values. Here the digest is made again
//! from the files (`digest`).

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;

use super::Finding;
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

#[cfg(test)]
mod tests {
    use super::super::fixtures::published;
    use super::super::plans::InProcess;
    use super::*;

    const ROWS: [(i32, i32, &str); 3] = [(20, 30, "flu"), (20, 30, "cold"), (40, 50, "flu")];

    /// The digest of the classes of some rows, as it is found in them.
    async fn digest_of(parts: &[&[(i32, i32, &'static str)]]) -> String {
        let (state, plan) = published(parts).select(vec![ident("age")]).unwrap().into_parts();
        let plan = state.create_physical_plan(&plan).await.unwrap();
        let parts = InProcess.execute_plan(Arc::new(FoldExec::new(plan, Fold::People)), state).await.unwrap();
        let mut digest = Digest::default();
        read_states(&parts).unwrap().into_iter().for_each(|part| digest.merge(part));
        digest.to_string()
    }

    async fn found(parts: &[&[(i32, i32, &'static str)]], digest: &str, sizes: &[(u64, u64)]) -> Vec<(String, u64)> {
        let sizes = sizes.iter().copied().collect();
        let columns = ["age".to_owned()];
        let found = verify_people(&InProcess, &published(parts), &columns, &sizes, digest, 2).await.unwrap();
        found.into_iter().map(|one| (one.rule, one.count)).collect()
    }

    #[tokio::test]
    async fn the_digest_is_that_of_the_rows_in_any_order_and_partition() {
        let digest = digest_of(&[&ROWS]).await;
        assert_eq!(digest_of(&[&ROWS[2..], &ROWS[..1], &ROWS[1..2]]).await, digest);
        assert_ne!(digest_of(&[&ROWS[..2]]).await, digest, "a row less");
        assert_ne!(digest_of(&[&ROWS[..1], &ROWS[..1], &ROWS[2..], &ROWS[2..]]).await, digest, "a row twice");
        assert_ne!(digest_of(&[&[(20, 31, "flu"), (20, 30, "cold"), (40, 50, "flu")]]).await, digest, "another range");
    }

    #[tokio::test]
    async fn classes_that_were_not_counted_and_classes_of_few_people_are_found() {
        let digest = digest_of(&[&ROWS]).await;
        assert_eq!(found(&[&ROWS], &digest, &[(2, 2)]).await, []);
        assert_eq!(found(&[&ROWS], &digest, &[(1, 1), (2, 1)]).await, [("k".to_owned(), 1)]);
        assert_eq!(found(&[&ROWS[1..]], &digest, &[(2, 2)]).await, [("person".to_owned(), 1)]);
    }
}
