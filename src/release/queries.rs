//! The COUNT queries of `measures.queries`, answered by DataFusion: how many rows of the source each asks for, and what a
//! reader would estimate from the published files alone (Loukides, 4.5.2 and 6.3.1).
//!
//! Both tables are laid out alike: a row holds, for every quasi-identifier, the runs of codes that its value stands for,
//! which is one code in the source and all that is covered in the release. Whichever it is asked of, a query is then one
//! aggregate: the sum over rows of the product, over the columns it restricts, of the share of their runs that it asks
//! for.
//!
//! A trial has no files; there the operator adds up the same cell by cell ([`crate::measure::workload`]). It looks at
//! groups, and so knows more than a reader if a group of nulls or of values that the hierarchy does not have is
//! published as the top, and other things than a reader sees where a mean is published, or the form is `anatomy`.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListBuilder, StringViewArray, UInt16Builder};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, UInt16Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast, ident, lit,
};
use datafusion::prelude::DataFrame;

use crate::binding::published_fields;
use crate::encode::ColumnEncoder;
use crate::error::{Error, Result};
use crate::hierarchy::{Hierarchy, SetLabel, TOP};
use crate::measure::workload::{self, Query, QueryError};
use crate::model::Code;
use crate::operator::AnonymizeParams;
use crate::plan::columns_of;
use crate::policy::Form;
use crate::published::cover::{Published, Span};

/// Queries that one pass over a table answers.
const AT_ONCE: usize = 256;

/// Sums of shares are kept in decimals, so that they do not depend on the order of the rows.
const DECIMALS: i8 = 12;

/// Asks the queries of a policy of the source and of the release; `None` if every true answer is 0, or nothing is asked.
pub(crate) async fn answer_queries(
    source: &DataFrame,
    published: &DataFrame,
    params: &Arc<AnonymizeParams>,
) -> Result<Option<QueryError>> {
    let mut answers = Vec::with_capacity(params.queries.len());
    let (original, generalised) = (original_runs(source, params)?, class_covers(published, params)?);
    for queries in params.queries.chunks(AT_ONCE) {
        let actual = answer_counts(&original, queries).await?;
        let estimate = answer_counts(&generalised, queries).await?;
        answers.extend(actual.into_iter().map(|actual| actual.round() as u64).zip(estimate));
    }
    Ok(workload::query_error(answers))
}

fn runs_column(axis: usize) -> String {
    format!("runs_{axis}")
}

/// Name of the column that counts the rows behind one.
const SIZE: &str = "size";

/// Every row of a table that holds original values.
fn original_runs(rows: &DataFrame, params: &Arc<AnonymizeParams>) -> Result<DataFrame> {
    let column = |axis: usize| {
        let read = ScalarUDF::from(Read::new(params, axis, true));
        read.call(vec![ident(&params.bound_policy.quasi[axis].name)]).alias(runs_column(axis))
    };
    let mut columns: Vec<Expr> = (0..params.axes.len()).map(column).collect();
    columns.push(lit(1_i64).alias(SIZE));
    Ok(rows.clone().select(columns)?)
}

/// Every class of published values.
fn class_covers(rows: &DataFrame, params: &Arc<AnonymizeParams>) -> Result<DataFrame> {
    let bound_policy = &params.bound_policy;
    if bound_policy.form() == Form::Anatomy {
        return original_runs(rows, params);
    }
    let keys = bound_policy.class_columns().iter().map(ident).collect();
    let classes = rows.clone().aggregate(keys, vec![count(lit(1)).alias(SIZE)])?;
    let column = |axis: usize| {
        let published = published_fields(&bound_policy.quasi[axis]);
        let read = ScalarUDF::from(Read::new(params, axis, false));
        read.call(published.iter().map(|field| ident(field.name())).collect()).alias(runs_column(axis))
    };
    let mut columns: Vec<Expr> = (0..params.axes.len()).map(column).collect();
    columns.push(ident(SIZE));
    Ok(classes.select(columns)?)
}

/// Answers some queries.
async fn answer_counts(rows: &DataFrame, queries: &[Query]) -> Result<Vec<f64>> {
    let share = ScalarUDF::from(Share { signature: Signature::any(3, Volatility::Immutable) });
    let asked = |query: &Query| {
        let shares = query.ranges().iter();
        let shares =
            shares.map(|&(axis, first, last)| share.call(vec![ident(runs_column(axis)), lit(first), lit(last)]));
        let rows = shares.fold(cast(ident(SIZE), DataType::Float64), |rows, share| rows * share);
        sum(cast(rows, DataType::Decimal128(38, DECIMALS)))
    };
    let sums = queries.iter().enumerate().map(|(at, query)| asked(query).alias(format!("q{at}"))).collect();
    let mut answers = vec![0.0; queries.len()];
    for batch in rows.clone().aggregate(vec![], sums)?.collect().await? {
        for (answer, column) in answers.iter_mut().zip(batch.columns()) {
            let column = column.as_primitive::<Decimal128Type>();
            *answer += column.iter().flatten().map(|sum| sum as f64).sum::<f64>() / 10_f64.powi(DECIMALS.into());
        }
    }
    Ok(answers)
}

/// The codes that a value stands for, as runs: the first and the last code of each, one after the other.
#[derive(Debug)]
struct Read {
    signature: Signature,
    params: Arc<AnonymizeParams>,
    axis: usize,
    original: bool,
}

impl Read {
    fn new(params: &Arc<AnonymizeParams>, axis: usize, original: bool) -> Self {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Self { signature, params: Arc::clone(params), axis, original }
    }
}

impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.params, &other.params) && (self.axis, self.original) == (other.axis, other.original)
    }
}

impl Eq for Read {}

impl Hash for Read {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.params), self.axis, self.original).hash(state);
    }
}

impl ScalarUDFImpl for Read {
    fn name(&self) -> &str {
        if self.original { "code_of" } else { "codes_covered_by" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::new_list(DataType::UInt16, true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let arrays = columns_of(&args)?;
        let encoder = &self.params.encoders[self.axis];
        let read = if self.original { encode_originals(encoder, &arrays[0]) } else { encode_covered(encoder, &arrays) };
        let mut list = ListBuilder::new(UInt16Builder::new());
        for runs in read.map_err(Error::into_datafusion)? {
            runs.iter().for_each(|&(first, last)| list.values().append_slice(&[first, last]));
            list.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(list.finish())))
    }
}

/// First and last code of every run.
type Runs = Vec<(Code, Code)>;

/// What original values stand for: themselves.
fn encode_originals(encoder: &ColumnEncoder, values: &ArrayRef) -> Result<Vec<Runs>> {
    let mut read = vec![Runs::new(); values.len()];
    encoder.encode_values(values, |row, code| read[row] = vec![(code, code)])?;
    Ok(read)
}

/// What published values stand for.
fn encode_covered(encoder: &ColumnEncoder, columns: &[ArrayRef]) -> Result<Vec<Runs>> {
    let all: Runs = vec![(0, (workload::count_values(encoder.axis()) - 1) as Code)];
    let missing: Runs = encoder.axis().null.map(|code| (code, code)).into_iter().collect();
    let at = |position: f64| encoder.code_at(position).unwrap_or_default();
    let rows = columns[0].len();
    Ok(match Published::read_columns(encoder.column(), columns)? {
        Published::Representative if encoder.column().withheld => vec![all; rows],
        Published::Representative => encode_originals(encoder, &columns[0])?,
        Published::Line(spans, unit) => {
            let covered = |span: &Span| match span {
                Span::Missing => missing.clone(),
                Span::Anything | Span::Nothing => all.clone(),
                Span::Between(low, high) => vec![(at(unit.position(*low)), at(unit.position(*high)))],
                Span::Wide(low, high) => vec![(at(unit.position_wide(*low)), at(unit.position_wide(*high)))],
                Span::HalfOpen(low, high) => {
                    let lower = low.as_ref().map_or(f64::NEG_INFINITY, |bound| bound.number);
                    let upper = high.as_ref().map_or(f64::INFINITY, |bound| bound.number);
                    encoder.codes_between(lower, upper).into_iter().collect()
                }
            };
            spans.iter().map(covered).collect()
        }
        Published::Text(labels, hierarchy) => {
            map_labels(&labels, &missing, |label| match (hierarchy.as_deref(), encoder.dictionary()) {
                (Some(Hierarchy::Levels(levels)), _) => match levels.span_of(label) {
                    Some((first, last)) if label != levels.root() => vec![(first as Code, last as Code)],
                    _ => all.clone(),
                },
                _ if label == TOP => all.clone(),
                (Some(Hierarchy::Mask(mask)), Some(list)) => {
                    let words = list.words.iter().enumerate().filter(|(_, word)| mask.covers(label, word));
                    join_codes(words.map(|(code, _)| code as Code).collect())
                }
                (_, Some(list)) => match SetLabel::parse(label).members() {
                    Some(members) => join_codes(members.iter().map(|member| list.code_of(member, None)).collect()),
                    None => all.clone(),
                },
                (_, None) => all.clone(),
            })
        }
    })
}

/// What every label stands for, each different one read once.
fn map_labels(labels: &StringViewArray, missing: &Runs, read: impl Fn(&str) -> Runs) -> Vec<Runs> {
    let mut known: HashMap<&str, Runs> = HashMap::new();
    let mut of = |row: usize| match labels.is_null(row) {
        true => missing.clone(),
        false => known.entry(labels.value(row)).or_insert_with(|| read(labels.value(row))).clone(),
    };
    (0..labels.len()).map(&mut of).collect()
}

/// Codes as runs.
fn join_codes(mut codes: Vec<Code>) -> Runs {
    codes.sort_unstable();
    codes.dedup();
    codes.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run[run.len() - 1])).collect()
}

/// `share(runs, first, last)`: the share of some codes that lies between two of them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Share {
    signature: Signature,
}

impl ScalarUDFImpl for Share {
    fn name(&self) -> &str {
        "share"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let [
            runs,
            ColumnarValue::Scalar(ScalarValue::UInt16(Some(first))),
            ColumnarValue::Scalar(ScalarValue::UInt16(Some(last))),
        ] = args.args.as_slice()
        else {
            return Err(Error::internal("`share` is asked with two codes").into_datafusion());
        };
        let runs = runs.to_array(args.number_rows)?;
        let runs = runs.as_list::<i32>();
        let codes = runs.values().as_primitive::<UInt16Type>().values();
        let shares = runs
            .value_offsets()
            .windows(2)
            .map(|ends| range_share(&codes[ends[0] as usize..ends[1] as usize], (*first, *last)));
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(shares))))
    }
}

fn range_share(runs: &[Code], (first, last): (Code, Code)) -> f64 {
    let (mut all, mut asked) = (0.0, 0.0);
    for run in runs.chunks_exact(2) {
        all += f64::from(run[1] - run[0]) + 1.0;
        asked += f64::from((i32::from(run[1].min(last)) - i32::from(run[0].max(first)) + 1).max(0));
    }
    if all > 0.0 { asked / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loukides_region_of_a_query_within_that_of_a_row() {
        // Eleven ages, of which five are asked for (table 3.2); two of three listed values; nothing.
        assert_eq!(range_share(&[0, 10], (0, 4)), 5.0 / 11.0);
        assert_eq!(range_share(&[2, 3, 9, 9], (3, 20)), 2.0 / 3.0);
        assert_eq!(range_share(&[7, 7], (8, 9)), 0.0);
        assert_eq!(range_share(&[], (0, 9)), 0.0);
    }

    /// A label is read once, however often it is published.
    #[test]
    fn labels_are_read_once_and_nulls_are_not_read() {
        let labels = StringViewArray::from(vec![Some("a"), None, Some("b"), Some("a"), None]);
        let reads = std::cell::RefCell::new(Vec::new());
        let found = map_labels(&labels, &vec![(9, 9)], |label| {
            reads.borrow_mut().push(label.to_owned());
            vec![(0, label.len() as Code)]
        });
        assert_eq!(found, [vec![(0, 1)], vec![(9, 9)], vec![(0, 1)], vec![(0, 1)], vec![(9, 9)]]);
        assert_eq!(reads.into_inner(), ["a", "b"]);
        assert_eq!(map_labels(&StringViewArray::from(vec![None::<&str>]), &Vec::new(), |_| panic!("null")), [vec![]]);
    }

    #[test]
    fn codes_join_to_runs() {
        assert_eq!(join_codes(vec![4, 2, 3, 9, 2]), [(2, 4), (9, 9)]);
        assert_eq!(join_codes(Vec::new()), []);
    }
}
