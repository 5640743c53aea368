//! Numbered groups: whether their numbers say nothing; and the two tables of a release that has two: whether they fit
//! together, and whether they are made of the source's rows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, cast, ident, lit, when};
use datafusion::prelude::DataFrame;

use super::Finding;
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray, UInt64Array};
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::super::fixtures::frame;
    use super::super::plans::InProcess;
    use super::*;
    use crate::policy::Policy;

    const A: u64 = 1 << 40;
    const B: u64 = 1 << 50;

    fn groups(groups: &[u64]) -> (&'static str, ArrayRef) {
        (GROUP, Arc::new(UInt64Array::from(groups.to_vec())))
    }

    fn texts(name: &'static str, values: &[&str]) -> (&'static str, ArrayRef) {
        (name, Arc::new(StringArray::from(values.to_vec())))
    }

    fn ages(values: &[i32]) -> (&'static str, ArrayRef) {
        ("age", Arc::new(Int32Array::from(values.to_vec())))
    }

    /// The table of sensitive values: group, value and count.
    fn sensitive(rows: &[(u64, &str, u64)]) -> DataFrame {
        let counts: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2)));
        let (of, values): (Vec<u64>, Vec<&str>) = rows.iter().map(|row| (row.0, row.1)).unzip();
        frame(vec![vec![groups(&of), texts("ill", &values), (COUNT, counts)]])
    }

    async fn linked(st: &[(u64, &str, u64)]) -> Vec<(u64, String)> {
        let qit = frame(vec![vec![groups(&[A, A, B]), ages(&[1, 2, 3])]]);
        let found = check_links(&InProcess, &qit, &sensitive(st)).await.unwrap();
        found.into_iter().map(|one| (one.count, one.message.split_once(' ').unwrap().1.to_owned())).collect()
    }

    #[tokio::test]
    async fn groups_are_equally_large_in_both_tables() {
        let unequal = "groups do not hold as many sensitive values as rows".to_owned();
        assert_eq!(linked(&[(A, "flu", 1), (A, "cold", 1), (B, "flu", 1)]).await, []);
        assert_eq!(linked(&[(A, "flu", 1), (B, "flu", 1)]).await, [(1, unequal.clone())]);
        assert_eq!(linked(&[(A, "flu", 2)]).await, [(1, unequal.clone())], "a group that is in one table alone");
        assert_eq!(linked(&[(A, "flu", 2), (B, "flu", 1), (B + 1, "flu", 1)]).await, [(1, unequal)]);
    }

    #[tokio::test]
    async fn values_that_say_nothing_or_the_same_twice_are_found() {
        let found = linked(&[(A, "flu", 2), (A, "cold", 0), (B, "flu", 1)]).await;
        assert_eq!(found, [(1, "sensitive values have no positive count".to_owned())]);
        let found = linked(&[(A, "flu", 1), (A, "flu", 1), (B, "flu", 1)]).await;
        assert_eq!(found, [(1, "sensitive values are listed more than once for a group".to_owned())]);
    }

    #[tokio::test]
    async fn numbers_that_count_up_are_found_and_random_ones_are_not() {
        let found = |numbers: &'static [u64]| async move {
            check_numbers(&InProcess, &frame(vec![vec![groups(numbers)]])).await.unwrap().map(|one| one.rule)
        };
        assert_eq!(found(&[0, 1, 1, 2]).await.as_deref(), Some("groups"));
        assert_eq!(found(&[3, A]).await, None, "one large number is enough");
        assert_eq!(found(&[]).await, None, "no group has no number");
    }

    /// Both tables are made of the rows of the source, and each value of a group is that of one of its rows.
    #[tokio::test]
    async fn tables_are_compared_with_their_source() {
        let policy =
            "privacy.k = 2\n[columns]\nage.role = \"quasi\"\nill.role = \"sensitive\"\n[method]\nname = \"anatomy\"";
        let policy = Policy::from_table(toml::from_str(policy).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int32, true), Field::new("ill", DataType::Utf8, true)];
        let bound_policy = BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap();
        let source = frame(vec![vec![ages(&[1, 2, 3, 4]), texts("ill", &["flu", "cold", "gout", "rash"])]]);
        let found = |of: &'static [u64], values: &'static [&'static str], suppressed: u64| {
            let (source, bound_policy) = (source.clone(), &bound_policy);
            async move {
                let qit = frame(vec![vec![groups(&[A, A, B, B][..of.len()]), ages(&[1, 2, 3, 4][..of.len()])]]);
                let rows = frame(vec![vec![groups(of), texts("ill", values)]]);
                let found = check_tables(&InProcess, &qit, &rows, &source, bound_policy, suppressed).await.unwrap();
                found.into_iter().map(|one| (one.rule, one.count)).collect::<Vec<_>>()
            }
        };
        assert_eq!(found(&[A, A, B, B], &["cold", "flu", "rash", "gout"], 0).await, []);
        // Values that stand in the group of others are those of the source all the same.
        let strange = found(&[A, A, B, B], &["cold", "rash", "flu", "gout"], 0).await;
        assert_eq!(strange, [("truthful".to_owned(), 2)]);
        assert_eq!(found(&[A, A], &["cold", "flu"], 2).await, [], "two rows were suppressed");
        assert!(!found(&[A, A], &["cold", "flu"], 1).await.is_empty(), "and not one");
    }
}
