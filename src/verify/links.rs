//! Numbered groups: whether their numbers say nothing; and the two tables of a release that has two: whether they fit
//! together, and whether they are made of the source's rows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, cast, ident, lit, when};
use datafusion::prelude::DataFrame;

use super::finding::Finding;
use super::plans::{PlanExecutor, collect_numbers, count_rows};
use super::source::compare_values;
use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::policy::{COUNT, GROUP, Role};
use crate::published::content_key;
use crate::published::exact::{Floats, alike_keys};

/// A number that random ones of 64 bits are below once in four billion times.
const SMALL_NUMBER: u64 = 1 << 32;

/// Checks that groups are not numbered one after the other, which would reveal in what order they were made. The chance that
/// random numbers are all that small is 2^-32 for one group, and less for more.
pub(super) async fn check_numbers(plans: &dyn PlanExecutor, rows: &DataFrame) -> Result<Option<Finding>> {
    let large = when(ident(GROUP).gt_eq(lit(SMALL_NUMBER)), lit(1_i64)).otherwise(lit(0_i64))?;
    let counts = rows.clone().aggregate(vec![], vec![count(lit(1_i64)).alias("rows"), sum(large).alias("large")])?;
    let counts = collect_numbers(plans, counts).await?;
    let counted = counts[0] > 0 && counts[1] == 0;
    Ok(counted.then(|| {
        Finding::new("groups", 1, "the numbers of groups are not random, so they may reveal how groups were made")
    }))
}

/// Groups that are not equally large in both tables, and rows of the sensitive table that say nothing or the same twice.
pub(crate) async fn check_links(plans: &dyn PlanExecutor, qit: &DataFrame, st: &DataFrame) -> Result<Vec<Finding>> {
    let left = qit.clone().aggregate(vec![ident(GROUP)], vec![count(lit(1)).alias("left_rows")])?;
    let right = st.clone().aggregate(vec![ident(GROUP).alias("other")], vec![sum(ident(COUNT)).alias("right_rows")])?;
    let pairs = left.join(right, JoinType::Full, &[GROUP], &["other"], None)?;
    let same = cast(ident("left_rows"), DataType::UInt64).eq(ident("right_rows"));
    let off = count_rows(plans, pairs.filter(same.is_not_true())?).await?;
    let counted = ident(COUNT).gt(lit(0_u64));
    let empty = count_rows(plans, st.clone().filter(counted.is_not_true())?).await?;
    let columns: Vec<String> = st.schema().fields().iter().map(|field| field.name().clone()).collect();
    let values: Vec<String> = columns.into_iter().filter(|name| name != COUNT).collect();
    let times = st.clone().aggregate(alike_keys(st, &values, Floats::Read)?, vec![count(lit(1)).alias("times")])?;
    let twice = count_rows(plans, times.filter(ident("times").gt(lit(1)))?).await?;
    let mut findings = Vec::new();
    findings.extend(Finding::if_any("groups", off, |off| {
        format!("{off} groups do not hold as many sensitive values as rows")
    }));
    findings
        .extend(Finding::if_any("groups", empty, |empty| format!("{empty} sensitive values have no positive count")));
    findings.extend(Finding::if_any("groups", twice, |twice| {
        format!("{twice} sensitive values are listed more than once for a group")
    }));
    Ok(findings)
}

/// Compares both tables with the rows they were made from: nothing has changed, nothing was lost or added, and the
/// sensitive values of a group are those of its rows. `rows` is the sensitive table with a row for every published row.
pub(crate) async fn check_tables(
    plans: &dyn PlanExecutor,
    qit: &DataFrame,
    rows: &DataFrame,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
    suppressed: u64,
) -> Result<Vec<Finding>> {
    let names = |roles: &[Role]| -> Vec<String> {
        let fields = bound_policy.input.fields().iter().zip(&bound_policy.roles);
        fields.filter(|(_, role)| roles.contains(role)).map(|(field, _)| field.name().clone()).collect()
    };
    let (left, right) = (names(&[Role::Quasi, Role::Kept]), names(&[Role::Sensitive]));
    let mut findings = compare_values(plans, source, qit, &left, suppressed).await?;
    findings.extend(compare_values(plans, source, rows, &right, suppressed).await?);
    findings.extend(find_unmatched(plans, qit, rows, source, (&left, &right)).await?);
    Ok(findings)
}

/// Sensitive values of a group that fewer source rows have which are in the group: those whose other columns are.
async fn find_unmatched(
    plans: &dyn PlanExecutor,
    qit: &DataFrame,
    rows: &DataFrame,
    source: &DataFrame,
    (left, right): (&[String], &[String]),
) -> Result<Option<Finding>> {
    let size = || vec![count(lit(1)).alias("size")];
    let keyed =
        |rows: &DataFrame, keys: Vec<Expr>| -> Result<DataFrame> { Ok(with_spilling_joins(rows).select(keys)?) };
    let people = keyed(source, vec![content_key(left).alias("left"), content_key(right).alias("right")])?
        .aggregate(vec![ident("left"), ident("right")], size())?;
    let members =
        keyed(qit, vec![ident(GROUP).alias("member_group"), content_key(left).alias("member")])?.distinct()?;
    let possible = members
        .join(people, JoinType::Inner, &["member"], &["left"], None)?
        .aggregate(vec![ident("member_group"), ident("right")], vec![sum(ident("size")).alias("possible")])?;
    let counted = keyed(rows, vec![ident(GROUP).alias("published_group"), content_key(right).alias("published")])?
        .aggregate(vec![ident("published_group"), ident("published")], size())?;
    let pairs =
        counted.join(possible, JoinType::Left, &["published_group", "published"], &["member_group", "right"], None)?;
    let beyond = when(ident("possible").is_null(), ident("size")).otherwise(ident("size") - ident("possible"))?;
    let beyond = pairs.select(vec![beyond.alias("beyond")])?.filter(ident("beyond").gt(lit(0)))?;
    let beyond = beyond.aggregate(vec![], vec![sum(ident("beyond"))])?;
    let strange = collect_numbers(plans, beyond).await?.first().copied().unwrap_or(0);
    Ok(Finding::if_any("truthful", strange, |count| {
        format!("{count} sensitive values are listed for groups whose rows do not have them")
    }))
}

/// The rows with joins that spill.
pub(super) fn with_spilling_joins(rows: &DataFrame) -> DataFrame {
    let (mut state, plan) = rows.clone().into_parts();
    state.config_mut().options_mut().optimizer.prefer_hash_join = false;
    DataFrame::new(state, plan)
}
