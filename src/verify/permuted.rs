//! Whether values have changed places at all, in forms that say so.
//!
//! Inside a group every slice of columns is brought into an order of which each is equally likely. Where a release shows
//! every value beside its own row, either chance has it so or nobody has permuted anything. The chance can be computed:
//!
//! 1. Take two sets of columns A and B that are permuted against each other, and the combinations of values of A that all
//!    rows of the source with them have been published for, in one group. The source says which values of B are theirs.
//! 2. In a group of n rows, values b of B stand beside these combinations a as often as in the source, n(a, b) times, with
//!    the chance (n - R)! / n! x product of r(a)! / product of n(a, b)! x product of c(b)! / (c(b) - u(b))!, where r(a) are
//!    the rows with a, R all of these, c(b) the rows of the group with b, and u(b) those of them beside such an a.
//! 3. Groups are permuted independently, so the chance of all of them is the product.
//!
//! Combinations in several groups say nothing, because it is not known whose row is in which. A single row that stands
//! beside another's values shows that there was a permutation.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{cast, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::Finding;
use super::links::with_spilling_joins;
use crate::error::Result;
use crate::policy::GROUP;
use crate::published::content_key;

/// Natural logarithm of the probability below which it is not a coincidence: 1e-9.
const UNLIKELY: f64 = -20.723_265_836_946_41;

/// Finds that no value of some columns has changed its place against some others, unless that may be chance.
pub(crate) async fn check_permuted(
    published: &DataFrame,
    source: &DataFrame,
    (stay, move_): (&[String], &[String]),
) -> Result<Option<Finding>> {
    let Some(kept) = chance_of_places(published, source, stay, move_).await? else { return Ok(None) };
    if kept.chance >= UNLIKELY {
        return Ok(None);
    }
    let exponent = (kept.chance / std::f64::consts::LN_10).ceil() as i64;
    let columns = move_.join("`, `");
    Ok(Some(Finding::new(
        "permutation",
        kept.rows,
        format!(
            "all values of `{columns}` in {} rows stand beside their own row, as if nothing had been permuted; the chance \
             of that is below 1e{exponent}",
            kept.rows
        ),
    )))
}

/// Rows that stand beside their own values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct InPlace {
    rows: u64,
    /// Natural logarithm of the chance that they do.
    chance: f64,
}

/// The chance that all rows for which it is known stand beside their own values; `None` if one does not.
async fn chance_of_places(
    published: &DataFrame,
    source: &DataFrame,
    a: &[String],
    b: &[String],
) -> Result<Option<InPlace>> {
    let size = |name: &str| vec![count(lit(1)).alias(name)];
    let shown = with_spilling_joins(published)
        .select(vec![ident(GROUP).alias("bucket"), content_key(a).alias("a"), content_key(b).alias("b")])?
        .aggregate(vec![ident("bucket"), ident("a"), ident("b")], size("rows"))?;
    let of_a = shown.clone().aggregate(
        vec![ident("a").alias("shown_a")],
        vec![
            min(ident("bucket")).alias("first"),
            max(ident("bucket")).alias("last"),
            sum(ident("rows")).alias("shown"),
        ],
    )?;
    let had = with_spilling_joins(source)
        .select(vec![content_key(a).alias("own_a"), content_key(b).alias("own_b")])?
        .aggregate(vec![ident("own_a"), ident("own_b")], size("own_rows"))?;
    let had_a =
        had.clone().aggregate(vec![ident("own_a").alias("had_a")], vec![sum(ident("own_rows")).alias("had")])?;
    let is_known = ident("first").eq(ident("last")).and(ident("shown").eq(ident("had")));
    let pairs = shown
        .join(of_a, JoinType::Inner, &["a"], &["shown_a"], None)?
        .join(had_a, JoinType::Left, &["a"], &["had_a"], None)?
        .join(had, JoinType::Left, &["a", "b"], &["own_a", "own_b"], None)?
        .select(vec![
            cast(ident("bucket"), DataType::UInt64).alias("bucket"),
            ident("a"),
            ident("b"),
            ident("rows"),
            ident("own_rows"),
            is_known.is_true().alias("known"),
        ])?
        .sort(vec![ident("bucket").sort(true, true)])?;
    let mut stream = pairs.execute_stream().await?;
    let mut in_place = InPlace::default();
    let mut bucket = Bucket::default();
    let mut number = None;
    while let Some(batch) = stream.try_next().await? {
        for row in 0..batch.num_rows() {
            let group = batch.column(0).as_primitive::<UInt64Type>().value(row);
            if number != Some(group) {
                std::mem::take(&mut bucket).add_to(&mut in_place);
                number = Some(group);
            }
            if !bucket.add_pair(&batch, row) {
                return Ok(None);
            }
        }
    }
    bucket.add_to(&mut in_place);
    Ok(Some(in_place))
}

/// The pairs of one group.
#[derive(Debug, Default)]
struct Bucket {
    rows: u64,
    /// Rows by known combination.
    known: HashMap<i128, u64>,
    /// All rows, and those beside a known combination, by value.
    values: HashMap<i128, (u64, u64)>,
    /// Sum of the logarithms of the factorials of pairs.
    pairs: f64,
}

impl Bucket {
    /// Adds a pair; false when a known combination stands beside values that are not its own.
    fn add_pair(&mut self, batch: &RecordBatch, row: usize) -> bool {
        let key = |column: usize| batch.column(column).as_primitive::<Decimal128Type>().value(row);
        let number = |column: usize| {
            let numbers = batch.column(column).as_primitive::<Int64Type>();
            if numbers.is_valid(row) { numbers.value(row) as u64 } else { 0 }
        };
        let is_known = batch.column(5).as_boolean().value(row);
        let rows = number(3);
        self.rows += rows;
        let value = self.values.entry(key(2)).or_default();
        value.0 += rows;
        if is_known {
            value.1 += rows;
            *self.known.entry(key(1)).or_default() += rows;
            self.pairs += ln_factorial(rows);
        }
        !is_known || rows == number(4)
    }

    fn add_to(self, in_place: &mut InPlace) {
        let rows: u64 = self.known.values().sum();
        in_place.rows += rows;
        in_place.chance += ln_factorial(self.rows - rows) - ln_factorial(self.rows) - self.pairs;
        in_place.chance += self.known.values().map(|&rows| ln_factorial(rows)).sum::<f64>();
        let falling = |&(all, beside): &(u64, u64)| ln_factorial(all) - ln_factorial(all - beside);
        in_place.chance += self.values.values().map(falling).sum::<f64>();
    }
}

/// The natural logarithm of n!, by Stirling's series above a few.
fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|factor| (factor as f64).ln()).sum();
    }
    let n = n as f64;
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, UInt64Array};
    use datafusion::prelude::SessionContext;

    use super::*;

    fn frame(columns: Vec<(&str, ArrayRef)>) -> DataFrame {
        SessionContext::new().read_batch(RecordBatch::try_from_iter(columns).unwrap()).unwrap()
    }

    fn ints(values: &[i32]) -> ArrayRef {
        Arc::new(Int32Array::from(values.to_vec()))
    }

    /// What is known of a release of rows (group, a, b) from a source of rows (a, b).
    fn found(release: &[(u64, i32, i32)], source: &[(i32, i32)]) -> Option<InPlace> {
        let of = |pick: fn(&(u64, i32, i32)) -> i32| ints(&release.iter().map(pick).collect::<Vec<_>>());
        let groups: ArrayRef = Arc::new(UInt64Array::from_iter_values(release.iter().map(|row| row.0)));
        let published = frame(vec![(GROUP, groups), ("a", of(|row| row.1)), ("b", of(|row| row.2))]);
        let (a, b): (Vec<i32>, Vec<i32>) = source.iter().copied().unzip();
        let source = frame(vec![("a", ints(&a)), ("b", ints(&b))]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(chance_of_places(&published, &source, &["a".into()], &["b".into()])).unwrap()
    }

    fn chance(release: &[(u64, i32, i32)], source: &[(i32, i32)]) -> Option<(u64, f64)> {
        found(release, source).map(|found| (found.rows, found.chance.exp()))
    }

    fn near(found: Option<(u64, f64)>, rows: u64, chance: f64) -> bool {
        found.is_some_and(|found| found.0 == rows && (found.1 - chance).abs() < 1e-12)
    }

    #[test]
    fn chances_by_hand() {
        // Two rows of different values: one of two orders. Two groups: one of four.
        let source = [(1, 7), (2, 8), (3, 7), (4, 8)];
        assert!(near(chance(&[(5, 1, 7), (5, 2, 8), (6, 3, 7), (6, 4, 8)], &source), 4, 0.25));
        // Rows of one value cannot be distinguished, wherever they stand.
        assert!(near(chance(&[(5, 1, 7), (5, 3, 7)], &[(1, 7), (3, 7)]), 2, 1.0));
        // Three rows, two of them alike: the odd value stands beside its own in one of three orders.
        assert!(near(chance(&[(5, 1, 7), (5, 1, 7), (5, 2, 8)], &[(1, 7), (1, 7), (2, 8)]), 3, 1.0 / 3.0));
        assert_eq!(
            chance(&[(5, 1, 8), (5, 2, 7), (6, 3, 7), (6, 4, 8)], &source),
            None,
            "two values have changed places"
        );
    }

    #[test]
    fn rows_of_which_nothing_is_known_do_not_count() {
        // Nobody knows which of the rows with 1 is in which group.
        let release = [(5, 1, 7), (5, 2, 8), (6, 1, 8), (6, 3, 7)];
        let source = [(1, 7), (2, 8), (1, 8), (3, 7)];
        assert!(near(chance(&release, &source), 2, 0.25));
        // A row with 2 was suppressed: its value may have been any.
        let source = [(1, 7), (2, 8), (1, 8), (3, 7), (2, 7)];
        assert!(near(chance(&release, &source), 1, 0.5));
    }

    #[test]
    fn stirling_is_close_enough() {
        let exact = |n: u64| (2..=n).map(|factor| (factor as f64).ln()).sum::<f64>();
        for n in [0, 1, 2, 15, 16, 17, 100, 1000] {
            assert!((ln_factorial(n) - exact(n)).abs() < 1e-9, "{n}");
        }
    }
}
