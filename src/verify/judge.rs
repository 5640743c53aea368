//! All rules that can be read from the published rows, asked of every class.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Decimal128Type, Field, Int64Type};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;

use super::Finding;
use super::classes::{class_sizes, fold_tallies, judge_classes};
use super::links::check_numbers;
use super::plans::{InProcess, PlanExecutor, collect_rows, count_rows};
use super::questions::{AskedOf, Counted, Measured, Questions};
use super::rules::{Asked, asked_rules, range_diversity};
use crate::binding::{BoundPolicy, SensitiveColumn};
use crate::error::{Error, Result};
use crate::measure::Classes;
use crate::permutation::Slices;
use crate::policy::{GROUP, Ranges, Role};
use crate::privacy::Figures;
use crate::published::exact::{Keys, NULL, Ranks, is_wide, order_float, wide_digits};
use crate::published::values::{Unit, Values};

/// Maximum number of distinct values of a column that classes are compared with.
const MAX_VALUES: usize = 1 << 16;

/// Most different decimals of more digits than a key that are ranked.
const MAX_RANKS: usize = 1 << 20;

/// Which sensitive columns are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Those that a rule guards.
    Guarded,
    /// All of them: whoever asks wants to know how well they are protected.
    All,
}

/// What was found in the published rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Sizes of the classes in rows.
    pub(crate) classes: Classes,
    /// The rules that are broken.
    pub(crate) findings: Vec<Finding>,
    /// How well each sensitive column is protected.
    pub(crate) figures: BTreeMap<String, Figures>,
}

/// Checks the number of rows, the sizes of classes and all rules that can be read from the published rows. What rules
/// compare with the whole table they compare with the published table.
pub(crate) async fn verify_rows(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    bound_policy: &Arc<BoundPolicy>,
    slices: &Slices,
    expected_rows: u64,
    look: Look,
) -> Result<Found> {
    let k = bound_policy.policy.privacy.k;
    let own = bound_policy.class_columns();
    // Columns that are looked at by the same classes are looked at together.
    let mut together: BTreeMap<Vec<String>, Vec<Measured>> = BTreeMap::new();
    let rules = asked_rules(bound_policy)?;
    for column in &bound_policy.sensitive {
        let rules: Vec<&Asked> = rules.iter().filter(|rule| rule.column == column.name).collect();
        // Lists, structs and the like cannot be guarded, nor looked at.
        if rules.is_empty() && (look == Look::Guarded || column.data_type.is_nested()) {
            continue;
        }
        let measured = measure_column(plans, rows, column, &rules, look).await?;
        together.entry(classes_beside(bound_policy, slices, column)).or_default().push(measured);
    }
    let person = bound_policy.person.filter(|&person| bound_policy.roles[person] != Role::Identifier);
    // Of two tables, the one that is judged may be without it: there the digest of the counted classes must do.
    let shown = |name: &str| rows.schema().has_column_with_unqualified_name(name);
    let person = person.map(|person| bound_policy.input.field(person)).filter(|person| shown(person.name()));
    if person.is_some() {
        together.entry(own.clone()).or_default();
    }
    let mut found = Found::default();
    let mut sizes: Option<Classes> = None;
    let mut people = None;
    for (columns, measured) in together {
        let person = person.filter(|_| columns == own);
        let (questions, counted) = ask_rules(plans, rows, bound_policy, &columns, measured, person).await?;
        for (looked, (broken, weakest)) in questions.looked().iter().zip(counted.broken.iter().zip(&counted.weakest)) {
            for (rule, &count) in looked.rules.iter().zip(broken) {
                found
                    .findings
                    .extend(Finding::if_any(rule.name, count, |count| format!("{count} classes {}", rule.breach)));
            }
            found.figures.extend(weakest.figures().map(|figures| (looked.name.clone(), figures)));
        }
        people = person.map(|_| counted.people).or(people);
        sizes = (columns == own).then_some(counted.classes).or(sizes);
    }
    found.classes = match sizes {
        Some(sizes) => sizes,
        None => class_sizes(plans, rows, &own).await?,
    };
    if own == [GROUP] {
        found.findings.extend(check_numbers(plans, rows).await?);
    }
    let mut first: Vec<Finding> = row_count(found.classes.rows(), expected_rows).into_iter().collect();
    first.extend(small_classes(&found.classes, k, "rows"));
    first.extend(people.and_then(|people| small_classes(&people, k, "people")));
    found.findings.splice(0..0, first);
    Ok(found)
}

/// The rules that classes of some published rows break, and how many classes do. What rules compare with the whole table
/// they compare with all published rows.
pub(crate) async fn broken_rules(
    plans: &dyn PlanExecutor,
    published: &DataFrame,
    rows: &DataFrame,
    bound_policy: &Arc<BoundPolicy>,
    class_columns: &[String],
) -> Result<BTreeMap<String, u64>> {
    let rules = asked_rules(bound_policy)?;
    let mut measured = Vec::new();
    for column in &bound_policy.sensitive {
        let rules: Vec<&Asked> = rules.iter().filter(|rule| rule.column == column.name).collect();
        if !rules.is_empty() {
            measured.push(measure_column(plans, published, column, &rules, Look::Guarded).await?);
        }
    }
    let mut broken = BTreeMap::new();
    if measured.is_empty() {
        return Ok(broken);
    }
    let (questions, counted) = ask_rules(plans, rows, bound_policy, class_columns, measured, None).await?;
    for (looked, counts) in questions.looked().iter().zip(&counted.broken) {
        for (rule, &classes) in looked.rules.iter().zip(counts).filter(|(_, classes)| **classes > 0) {
            *broken.entry(rule.name.to_owned()).or_default() += classes;
        }
    }
    Ok(broken)
}

/// Gives every class to a function: how many rows hold each value of a sensitive column, and the range diversity of the
/// class where the column has sensitive ranges.
pub(crate) async fn fold_histograms<T: Clone + Send + 'static>(
    rows: &DataFrame,
    class_columns: &[String],
    column: &SensitiveColumn,
    first: T,
    add: impl Fn(&mut T, &mut dyn Iterator<Item = u64>, Option<f64>) + Clone + Send + 'static,
    merge: impl Fn(&mut T, T),
) -> Result<T> {
    let is_ranged = column.ranges != Ranges::Identity;
    let (values, keys) = values_of(&InProcess, rows, column, is_ranged).await?;
    let values = Arc::new(values);
    let add = move |part: &mut T, histogram: &[(i128, u64)]| {
        let range = is_ranged.then(|| range_diversity(histogram, &values));
        add(part, &mut histogram.iter().map(|(_, rows)| *rows), range);
    };
    fold_tallies(rows, class_columns, keys.key_expr(&column.name), first, add, merge).await
}

/// The published values of a sensitive column, measured by their own domain where that is asked for, and how they become keys.
pub(super) async fn values_of(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    column: &SensitiveColumn,
    measured: bool,
) -> Result<(Values, Keys)> {
    let ranks = ranks_of(plans, rows, column).await?;
    let keys = Keys::of_column(column, ranks.as_ref());
    let (width, distinct) = if measured { domain_of(plans, rows, column, &keys).await? } else { (0.0, 0) };
    Ok((Values::new(column, width, distinct, None, ranks.as_ref()), keys))
}

/// Rows too many or too few.
pub(crate) fn row_count(found: u64, expected: u64) -> Option<Finding> {
    let off = found.abs_diff(expected);
    Finding::if_any("rows", off, |_| format!("{found} rows are published, {expected} should be"))
}

/// Classes that are too small.
pub(crate) fn small_classes(classes: &Classes, k: u32, what: &str) -> Option<Finding> {
    let small: u64 = classes.histogram().filter(|(size, _)| *size < u64::from(k)).map(|(_, count)| count).sum();
    Finding::if_any("k", small, |small| format!("{small} classes hold fewer than k = {k} {what}"))
}

/// The published columns that narrow down whose values of a sensitive column they may be: those of the class,
/// and those that stay with the column in its slice.
pub(crate) fn classes_beside(bound_policy: &BoundPolicy, slices: &Slices, column: &SensitiveColumn) -> Vec<String> {
    let beside = bound_policy
        .columns_beside(column.index, slices)
        .into_iter()
        .map(|place| bound_policy.quasi[place].name.clone());
    bound_policy.class_columns().into_iter().chain(beside).collect()
}

/// Asks the rules of some columns of every class.
async fn ask_rules(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    bound_policy: &Arc<BoundPolicy>,
    columns: &[String],
    measured: Vec<Measured>,
    person: Option<&Field>,
) -> Result<(Arc<Questions>, Counted)> {
    let column = |name: &str| bound_policy.sensitive.iter().find(|column| column.name == name);
    let keys =
        |measured: &Measured| column(&measured.name).map(|column| measured.keys(column).key_expr(&measured.name));
    let mut tallied: Vec<Expr> = measured.iter().filter_map(keys).collect();
    tallied.extend(person.map(|person| Keys::of_type(person.data_type()).key_expr(person.name())));
    let people = person.is_some();
    let questions = |width| Questions::new(Arc::clone(bound_policy), AskedOf { width, people, columns: measured });
    judge_classes(plans, rows, columns, tallied, questions).await
}

/// What the published rows show of a column's values as a whole, as far as it is needed.
async fn measure_column(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    column: &SensitiveColumn,
    rules: &[&Asked],
    look: Look,
) -> Result<Measured> {
    let ranks = ranks_of(plans, rows, column).await?;
    let keys = Keys::of_column(column, ranks.as_ref());
    let compared = rules.iter().any(|rule| rule.compares());
    let wanted = compared || look == Look::All;
    let table = if wanted { table_of(plans, rows, column, &keys, compared).await? } else { None };
    let (width, distinct) = match rules.iter().any(|rule| rule.measures()) {
        true => domain_of(plans, rows, column, &keys).await?,
        false => (0.0, 0),
    };
    Ok(Measured::new(&column.name, width, distinct, table, ranks))
}

/// How far the published values of a column lie apart, or how many different ones there are.
async fn domain_of(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    column: &SensitiveColumn,
    keys: &Keys,
) -> Result<(f64, u64)> {
    let key = rows.clone().select(vec![keys.key_expr(&column.name).alias("key")])?;
    let unit = Unit::of_type(&column.data_type);
    Ok(match keys {
        Keys::Line => {
            (ends_of(plans, key, &unit).await?.map_or(0.0, |(low, high)| unit.distance_between(low, high)), 0)
        }
        Keys::Ranks(ranks) => {
            let ends = ranks.values().first().zip(ranks.values().last());
            (ends.map_or(0.0, |(low, high)| unit.between_wide(*low, *high)), 0)
        }
        _ => (0.0, count_rows(plans, key.aggregate(vec![ident("key")], vec![])?).await?),
    })
}

/// The ranks of a column's published values, when these may have more digits than a key.
async fn ranks_of(plans: &dyn PlanExecutor, rows: &DataFrame, column: &SensitiveColumn) -> Result<Option<Arc<Ranks>>> {
    if !is_wide(&column.data_type) || column.hierarchy.is_some() {
        return Ok(None);
    }
    let distinct = rows.clone().aggregate(vec![ident(&column.name)], vec![])?.limit(0, Some(MAX_RANKS + 1))?;
    let mut digits = Vec::new();
    for batch in collect_rows(plans, distinct).await? {
        digits.extend(wide_digits(batch.column(0))?.into_iter().flatten());
    }
    if digits.len() > MAX_RANKS {
        return Err(Error::resources(format!(
            "column `{}`: it holds more than {MAX_RANKS} different decimals of a type of more than 38 digits, too many to \
             rank; give it a type of 38 digits in the source, or round its values there",
            column.name
        )));
    }
    Ok(Some(Arc::new(Ranks::new(digits))))
}

/// How often every value is published; `None` if there are too many different ones and no rule needs to know.
async fn table_of(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    column: &SensitiveColumn,
    keys: &Keys,
    needed: bool,
) -> Result<Option<BTreeMap<i128, u64>>> {
    let keys = vec![keys.key_expr(&column.name).alias("key")];
    let counted = rows.clone().aggregate(keys, vec![count(lit(1)).alias("size")])?;
    // One more than the limit shows that there are too many.
    let counted = counted.limit(0, Some(MAX_VALUES + 1))?;
    let mut counts = BTreeMap::new();
    for batch in collect_rows(plans, counted).await? {
        let (keys, sizes) =
            (batch.column(0).as_primitive::<Decimal128Type>(), batch.column(1).as_primitive::<Int64Type>());
        counts.extend((0..batch.num_rows()).map(|row| (keys.value(row), sizes.value(row) as u64)));
    }
    if counts.len() > MAX_VALUES && !needed {
        return Ok(None);
    }
    if counts.len() > MAX_VALUES {
        return Err(Error::input(format!(
            "column `{}`: it holds more than {MAX_VALUES} different values, too many to compare groups with the \
             distribution of the whole table; guard it by l-diversity, k-e or range-diversity, or round its values in \
             the source",
            column.name
        )));
    }
    Ok(Some(counts))
}

/// The smallest and the largest number among some keys; `None` without any.
pub(crate) async fn ends_of(plans: &dyn PlanExecutor, keys: DataFrame, unit: &Unit) -> Result<Option<(i128, i128)>> {
    let literal = |key: i128| lit(ScalarValue::Decimal128(Some(key), 38, 0));
    let mut numbers = keys.filter(ident("key").not_eq(literal(NULL)))?;
    if *unit == Unit::Float {
        numbers = numbers.filter(ident("key").not_eq(literal(i128::from(order_float(f64::NAN)))))?;
    }
    let ends = numbers.aggregate(vec![], vec![min(ident("key")), max(ident("key"))])?;
    let ends = collect_rows(plans, ends).await?;
    let end = |index: usize| {
        let row = ends.iter().find(|batch| batch.num_rows() > 0)?;
        row.column(index).as_primitive::<Decimal128Type>().iter().next().flatten()
    };
    Ok(end(0).zip(end(1)))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{bound_policy, published};
    use super::*;

    /// Two classes of two rows: one of two illnesses, one of the same twice.
    const ROWS: [(i32, i32, &str); 4] = [(20, 30, "flu"), (20, 30, "cold"), (40, 50, "flu"), (40, 50, "flu")];

    const DIVERSE: &str = "l-diversity = { column = \"ill\", l = 2 }";

    async fn verify(rows: &[&[(i32, i32, &'static str)]], rules: &str, expected: u64, look: Look) -> Found {
        let bound_policy = bound_policy(rules);
        let slices = bound_policy.resolve_slices(&[]);
        verify_rows(&InProcess, &published(rows), &bound_policy, &slices, expected, look).await.unwrap()
    }

    fn said(found: &Found) -> Vec<(&str, u64, &str)> {
        found.findings.iter().map(|one| (one.rule.as_str(), one.count, one.message.as_str())).collect()
    }

    #[tokio::test]
    async fn what_holds_is_not_found_however_rows_are_parted() {
        for parts in [vec![&ROWS[..]], vec![&ROWS[..1], &ROWS[1..3], &ROWS[3..]]] {
            let found = verify(&parts, "", 4, Look::All).await;
            assert_eq!(said(&found), []);
            assert_eq!(found.classes.histogram().collect::<Vec<_>>(), [(2, 2)]);
            let figures = &found.figures["ill"];
            assert_eq!((figures.l, figures.alpha), (1, 1.0), "the weakest class counts");
        }
    }

    #[tokio::test]
    async fn small_classes_and_missing_rows_are_told_before_broken_rules() {
        let found = verify(&[&ROWS[..3]], DIVERSE, 4, Look::Guarded).await;
        let variety = "1 classes do not hold enough variety of `ill` (l = 2)";
        assert_eq!(
            said(&found),
            [
                ("rows", 1, "3 rows are published, 4 should be"),
                ("k", 1, "1 classes hold fewer than k = 2 rows"),
                ("l-diversity", 1, variety),
            ]
        );
    }

    /// Of a column that no rule guards, nothing is counted unless it is asked for.
    #[tokio::test]
    async fn only_guarded_columns_are_looked_at_unless_all_are() {
        assert!(verify(&[&ROWS], "", 4, Look::Guarded).await.figures.is_empty());
        assert_eq!(verify(&[&ROWS], DIVERSE, 4, Look::Guarded).await.figures.len(), 1);
    }

    /// The table is what rules compare classes with, also where only some of its rows are judged.
    #[tokio::test]
    async fn broken_rules_are_counted_by_their_names() {
        let rules = format!("{DIVERSE}\nt-closeness = {{ column = \"ill\", t = 0.1 }}");
        let bound_policy = bound_policy(&rules);
        let (all, some) = (published(&[&ROWS]), published(&[&ROWS[..2]]));
        let of = |table: DataFrame, rows: DataFrame| {
            let bound_policy = Arc::clone(&bound_policy);
            async move { broken_rules(&InProcess, &table, &rows, &bound_policy, &["age".to_owned()]).await.unwrap() }
        };
        let expected = |rules: &[(&str, u64)]| -> BTreeMap<String, u64> {
            rules.iter().map(|(rule, count)| ((*rule).to_owned(), *count)).collect()
        };
        assert_eq!(of(all.clone(), all.clone()).await, expected(&[("l-diversity", 1), ("t-closeness", 2)]));
        assert_eq!(of(all, some.clone()).await, expected(&[("t-closeness", 1)]));
        assert_eq!(of(some.clone(), some).await, expected(&[]), "compared with themselves they are the table");
    }

    #[tokio::test]
    async fn histograms_are_folded_class_by_class() {
        let bound_policy = bound_policy("");
        let add = |most: &mut u64, histogram: &mut dyn Iterator<Item = u64>, range: Option<f64>| {
            assert_eq!(range, None, "the column has no sensitive ranges");
            *most = (*most).max(histogram.max().unwrap_or(0));
        };
        let (rows, columns) = (published(&[&ROWS[..2], &ROWS[2..]]), ["age".to_owned()]);
        let most = fold_histograms(&rows, &columns, &bound_policy.sensitive[0], 0, add, |a, b| *a = (*a).max(b));
        assert_eq!(most.await.unwrap(), 2);
    }

    #[test]
    fn rows_too_many_are_found_as_rows_too_few_are() {
        assert_eq!(row_count(4, 4), None);
        assert_eq!(row_count(3, 4).map(|one| one.count), Some(1));
        assert_eq!(
            row_count(9, 4).map(|one| (one.count, one.message)),
            Some((5, "9 rows are published, 4 should be".into()))
        );
    }

    #[test]
    fn classes_of_exactly_k_are_large_enough() {
        let mut classes = Classes::default();
        [(1, 2), (4, 3), (5, 1)].into_iter().for_each(|(size, number)| classes.add_classes(size, number));
        assert_eq!(small_classes(&classes, 1, "rows"), None);
        assert_eq!(
            small_classes(&classes, 4, "people").map(|one| one.message),
            Some("2 classes hold fewer than k = 4 people".into())
        );
        assert_eq!(small_classes(&classes, 6, "rows").map(|one| one.count), Some(6));
        assert_eq!(small_classes(&Classes::default(), 6, "rows"), None, "no class is not a small one");
    }
}
