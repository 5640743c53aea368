//! Does a release keep its promises? This is decided from the published files alone, by an independent way from Parquet to
//! verdict: nothing here is shared with the code that surveys, encodes, groups and recodes.
//!
//! 1. `read` opens the files of a release as a table, without their statistics, once `columns` has found their columns to be
//!    what they should be.
//! 2. `exact` makes columns that DataFusion groups by their exact values, and `tally` counts the values of a class, so
//!    that one `GROUP BY` over the published columns gives every class with the histogram of each sensitive column.
//! 3. `judge` asks the `rules` of every class (`questions`, on the spot by `fold`); their arithmetic is in whole numbers up
//!    to the last comparison. `loss` asks every row what its values lose.
//!    `measured` says what the release loses and how well it protects, by the same classes.
//! 4. `order` checks that rows stand in the order of what is published (`order_exec`).
//! 5. `links` compares the two tables of a release, `people` the classes in which people were counted (`digest`), and
//!    `replaced` looks for identifiers and nulls that should not be there.
//! 6. `source` compares a release with the rows that it was made from, and asks `cover` whether published values hold
//!    the original ones; `box_tree` finds those that may, and `left_over` holds rows that none has covered so far. `permuted`
//!    asks whether values that should have changed places have.
//!
//! All but the covers of 6 are plans whose results are a few rows. `plans` says where they run, and `wire` sends their
//! functions and nodes to executors; the verdict stays with whoever asks.

mod classes;
mod columns;
mod figures;
mod fold;
mod judge;
mod left_over;
mod links;
mod loss;
mod measured;
mod order;
mod order_exec;
mod people;
mod permuted;
mod plans;
mod questions;
mod replaced;
mod rules;
mod source;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only clusters send plans"))]
mod wire;

use crate::error::{Error, Result};
pub(crate) use crate::published::read::{
    Footer, PublishedFile, PublishedFiles, file_checksum, file_schemas, open_published, read_footers,
};
pub(crate) use classes::class_sizes;
pub(crate) use columns::{ColumnCheck, PromisedType, check_columns};
pub(crate) use judge::{
    Found, Look, broken_rules, classes_beside, fold_histograms, row_count, small_classes, verify_rows,
};
pub(crate) use links::{check_links, check_tables};
pub(crate) use loss::check_max_loss;
pub(crate) use measured::{measure_classes, shown_losses};
pub(crate) use order::check_order;
pub(crate) use people::verify_people;
pub(crate) use permuted::check_permuted;
pub(crate) use plans::Watch;
pub(crate) use plans::{InProcess, PlanExecutor};
pub(crate) use replaced::{check_dropped, check_replaced};
pub(crate) use source::{compare_values, verify_against_source};
#[cfg(feature = "cluster")]
pub(crate) use wire::{Sent, is_function, receive_aggregate, receive_function, receive_node, send_function, send_node};

/// A rule that a release breaks, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// How many rows, classes or files break it.
    pub count: u64,
    /// What that means.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub(crate) fn new(rule: impl Into<String>, count: u64, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), count, message: message.into() }
    }

    /// The finding about a number of things, if there are any.
    pub(crate) fn if_any(rule: &str, count: u64, message: impl FnOnce(u64) -> String) -> Option<Self> {
        (count > 0).then(|| Self::new(rule, count, message(count)))
    }

    /// All findings as one error.
    pub fn ensure_none(findings: &[Self]) -> Result<()> {
        if findings.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
        Err(Error::privacy(format!("the release does not keep its promises\n  {}", lines.join("\n  "))))
    }
}

#[cfg(test)]
mod fixtures {
    //! A small release for the tests of this room: rows of an age, which is published as a range, and an illness.

    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
    use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};

    use crate::binding::BoundPolicy;
    use crate::policy::Policy;

    /// A policy of k = 2 with more rules in its section `[privacy]`.
    pub(super) fn bound_policy(rules: &str) -> Arc<BoundPolicy> {
        let policy = format!("[privacy]\nk = 2\n{rules}\n[columns]\nage.role = \"quasi\"\nill.role = \"sensitive\"\n");
        let policy = Policy::from_table(toml::from_str(&policy).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int32, true), Field::new("ill", DataType::Utf8, true)];
        Arc::new(BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap())
    }

    /// Columns as rows, a partition for each.
    pub(super) fn frame(parts: Vec<Vec<(&str, ArrayRef)>>) -> DataFrame {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        let batch = |columns: Vec<(&str, ArrayRef)>| {
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
                .unwrap()
        };
        let parts: Vec<Vec<RecordBatch>> = parts.into_iter().map(|columns| vec![batch(columns)]).collect();
        let schema = parts[0][0].schema();
        let table = datafusion::datasource::MemTable::try_new(schema, parts).unwrap();
        context.read_table(Arc::new(table)).unwrap()
    }

    /// Published rows: the ends of an age, and an illness.
    pub(super) fn published(parts: &[&[(i32, i32, &'static str)]]) -> DataFrame {
        let columns = |rows: &&[(i32, i32, &'static str)]| {
            let ends = |end: fn(&(i32, i32, &str)) -> i32| -> ArrayRef {
                Arc::new(rows.iter().map(|row| Some(end(row))).collect::<Int32Array>())
            };
            let fields = Fields::from(["min", "max"].map(|name| Field::new(name, DataType::Int32, true)).to_vec());
            let ages: ArrayRef = Arc::new(StructArray::new(fields, vec![ends(|row| row.0), ends(|row| row.1)], None));
            let ills: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.2)).collect::<StringArray>());
            vec![("age", ages), ("ill", ills)]
        };
        frame(parts.iter().map(columns).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn nothing_is_found_of_nothing() {
        let found = |count| Finding::if_any("k", count, |count| format!("{count} classes are small"));
        assert_eq!(found(0), None);
        assert_eq!(found(3), Some(Finding::new("k", 3, "3 classes are small")));
    }

    #[test]
    fn findings_are_one_error_that_lists_them() {
        assert!(Finding::ensure_none(&[]).is_ok());
        let findings = [Finding::new("k", 2, "2 classes are small"), Finding::new("files", 1, "`a` is missing")];
        let error = Finding::ensure_none(&findings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Privacy);
        assert_eq!(
            error.message(),
            "the release does not keep its promises\n  k: 2 classes are small\n  files: `a` is missing"
        );
    }
}
