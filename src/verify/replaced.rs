//! Whether identifiers were replaced and rows without a value were left out, where the policy says so.
//!
//! Both are read from the values: a constant is that constant in every row, a pseudonym has the length and the digits of
//! one, and no more rows are published than have a value in every quasi-identifier that asks for one.

use datafusion::arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, ident, lit, when};
use datafusion::prelude::DataFrame;

use super::Finding;
use super::plans::{PlanExecutor, collect_numbers};
use crate::binding::{BoundPolicy, MEMBER_COLUMN};
use crate::error::Result;
use crate::policy::{IdentifierAction, Nulls};
use crate::secret::Encoding;

/// Checks that every identifier that is published is a pseudonym or the constant of its column.
pub(crate) async fn check_replaced(
    plans: &dyn PlanExecutor,
    published: &DataFrame,
    bound_policy: &BoundPolicy,
) -> Result<Option<Finding>> {
    let is_published = |name: &str| published.schema().has_column_with_unqualified_name(name);
    let raw = |(name, treat): (&String, &IdentifierAction)| {
        let text = cast(ident(name), DataType::Utf8);
        match treat {
            IdentifierAction::Drop => None,
            IdentifierAction::Constant(constant) => Some(text.eq(lit(constant.as_str())).is_not_true()),
            IdentifierAction::Pseudonym(pseudonym) => {
                let digits = match pseudonym.encoding {
                    Encoding::Hex => "^[0-9a-f]{64}$",
                    Encoding::Base64url => "^[A-Za-z0-9_-]{43}$",
                };
                Some(binary_expr(text, Operator::RegexMatch, lit(digits)).is_false())
            }
        }
    };
    let treated =
        bound_policy.policy.columns.iter().filter_map(|(name, column)| Some((name, column.identifier_action()?)));
    let raw = treated.filter(|(name, _)| is_published(name)).filter_map(raw).reduce(Expr::or);
    let Some(raw) = raw else { return Ok(None) };
    Ok(Finding::if_any("identifier", count_where(plans, published, raw).await?, |rows| {
        format!("{rows} rows are published with an identifier that should have been replaced")
    }))
}

/// Checks that rows without a value of a quasi-identifier were left out where it drops them. `read` are the rows that were
/// read, of which so many are not published.
pub(crate) async fn check_dropped(
    plans: &dyn PlanExecutor,
    read: &DataFrame,
    bound_policy: &BoundPolicy,
    left_out: u64,
) -> Result<Option<Finding>> {
    let missing = bound_policy.quasi.iter().filter(|quasi| quasi.nulls == Nulls::Drop).map(|quasi| {
        let is_null = ident(&quasi.name).is_null();
        if !quasi.data_type.is_floating() {
            return is_null;
        }
        // NaN lies beyond the infinite values.
        let number = cast(ident(&quasi.name), DataType::Float64);
        is_null.or(number.clone().gt(lit(f64::INFINITY))).or(number.lt(lit(f64::NEG_INFINITY)))
    });
    let Some(missing) = missing.reduce(Expr::or) else { return Ok(None) };
    // Rows of a public table are not published either way.
    let missing = if bound_policy.member.is_some() { missing.and(ident(MEMBER_COLUMN)) } else { missing };
    let rows = count_where(plans, read, missing).await?;
    Ok(Finding::if_any("nulls", rows.saturating_sub(left_out), |rows| {
        format!("{rows} rows are published without a value in a column whose nulls are dropped")
    }))
}

/// Counts the rows for which a condition is true. It is not a filter: the statistics of files, by which these are skipped,
/// leave NaN out.
async fn count_where(plans: &dyn PlanExecutor, rows: &DataFrame, condition: Expr) -> Result<u64> {
    let one = when(condition.is_true(), lit(1_i64)).otherwise(lit(0_i64))?;
    let counted = rows.clone().aggregate(vec![], vec![sum(one)])?;
    Ok(collect_numbers(plans, counted).await?.first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::prelude::SessionContext;

    use super::super::plans::InProcess;
    use super::*;
    use crate::policy::Policy;

    fn bound_policy() -> BoundPolicy {
        let policy = "privacy.k = 2\n[columns]\nscore = { role = \"quasi\", nulls = \"drop\" }\n\
                      name = { role = \"identifier\", treat = { constant = \"X\" } }";
        let policy = Policy::from_table(toml::from_str(policy).unwrap(), Path::new(".")).unwrap();
        let fields = [Field::new("score", DataType::Float64, true), Field::new("name", DataType::Utf8, true)];
        let (schema, key) = (Arc::new(Schema::new(fields.to_vec())), crate::secret::RunKey::from_seed(1));
        BoundPolicy::bind_schema(Arc::new(policy), schema, key).unwrap()
    }

    fn frame(name: &'static str, values: ArrayRef) -> DataFrame {
        let rows = RecordBatch::try_from_iter_with_nullable([(name, values, true)]).unwrap();
        SessionContext::new().read_batch(rows).unwrap()
    }

    #[tokio::test]
    async fn null_and_nan_are_dropped_alike() {
        let scores = [Some(1.0), None, Some(f64::NAN), Some(-f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)];
        let read = frame("score", Arc::new(Float64Array::from(scores.to_vec())));
        let found = |left_out| {
            let read = read.clone();
            async move { check_dropped(&InProcess, &read, &bound_policy(), left_out).await.unwrap().map(|it| it.count) }
        };
        assert_eq!([found(0).await, found(2).await, found(3).await], [Some(3), Some(1), None]);
    }

    #[tokio::test]
    async fn a_constant_stands_in_every_row() {
        for (names, rows) in
            [([Some("X"), Some("X")], None), ([Some("X"), None], Some(1)), ([Some("Ada"), None], Some(2))]
        {
            let published = frame("name", Arc::new(StringArray::from(names.to_vec())));
            let found = check_replaced(&InProcess, &published, &bound_policy()).await.unwrap();
            assert_eq!(found.map(|finding| finding.count), rows);
        }
    }
}
