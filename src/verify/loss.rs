//! `max-loss` once more: what the published values of a row lose, read from the values themselves.
//!
//! The loss of a row is the mean over its quasi-identifiers, each as a share of a domain:
//!
//! - numbers and points in time: the width of the published range, or of the interval of a ladder or calendar as far as it
//!   lies in the domain, over the width of the domain;
//! - values of a hierarchy: how many leaves lie below the published node, less one, over all leaves, less one;
//! - categories: how many values the published set lists, less one, over all different values, less one;
//! - the top of a column loses 1, a single value and null nothing.
//!
//! Groups were made with the domain of the rows that were read, so that is what is taken: from their values, by plans of
//! its own, or the declared ends where these are wider. What a published value does not show counts as nothing, so
//! that a loss found here is never larger than the true one, and a bound that is broken here is broken indeed: masks below
//! their top, sets of a column some of whose values hold a comma, columns that are withheld or published as one value.
//! Rows that were dropped for a null may widen the domain.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array};
use datafusion::arrow::datatypes::{DataType, i256};
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast, ident, lit,
};
use datafusion::prelude::DataFrame;
use serde::{Deserialize, Serialize};

use super::Finding;
use super::judge::ends_of;
use super::plans::{PlanExecutor, collect_rows, count_rows};
use crate::binding::{BoundPolicy, QuasiColumn, published_fields};
use crate::error::{Error, Result};
use crate::hierarchy::{Hierarchy, SetLabel, TOP};
use crate::plan::columns_of;
use crate::policy::{Form, Publish};
use crate::published::cover::{Published, Span};
use crate::published::exact::{Keys, is_wide, wide_digits};
use crate::published::values::Unit;

/// By how much two ways of rounding the same loss may differ.
const ROUNDING: f64 = 2e-9;

/// Checks that no published row loses more than the policy allows. `read` are the rows that were read, whatever became of
/// them.
pub(crate) async fn check_max_loss(
    plans: &dyn PlanExecutor,
    published: &DataFrame,
    read: &DataFrame,
    bound_policy: &Arc<BoundPolicy>,
) -> Result<Option<Finding>> {
    let Some(bound) = bound_policy.policy.privacy.max_loss.filter(|_| bound_policy.form() == Form::Generalise) else {
        return Ok(None);
    };
    let mut domains = Vec::new();
    for quasi in &bound_policy.quasi {
        domains.push(Domain::find_domain(plans, read, quasi).await?);
    }
    let columns = bound_policy.class_columns().iter().map(ident).collect();
    let loss = ScalarUDF::from(PublishedLoss::new(Arc::clone(bound_policy), domains)).call(columns);
    let beyond = published.clone().select(vec![loss.alias("loss")])?.filter(ident("loss").gt(lit(bound + ROUNDING)))?;
    let rows = count_rows(plans, beyond).await?;
    Ok(Finding::if_any("max-loss", rows, |rows| {
        format!("{rows} rows are published with values that lose more than max-loss = {bound}")
    }))
}

/// What the published values of a quasi-identifier are compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Domain {
    /// Bits of the first and the last place on a line.
    ends: Option<(u64, u64)>,
    /// Different values of a category whose sets can be counted.
    values: Option<u64>,
}

impl Domain {
    /// The domain of a column among the rows that were read.
    async fn find_domain(plans: &dyn PlanExecutor, read: &DataFrame, quasi: &QuasiColumn) -> Result<Self> {
        if quasi.withheld || quasi.publish == Publish::Centroid {
            return Ok(Self::default());
        }
        if quasi.is_ordinal() {
            let ends = Self::find_ends(plans, read, quasi).await?;
            let wider = |(low, high): (f64, f64)| match quasi.domain {
                Some([first, last]) => (low.min(first), high.max(last)),
                None => (low, high),
            };
            let bits = |(low, high): (f64, f64)| (low.to_bits(), high.to_bits());
            return Ok(Self { ends: ends.map(wider).map(bits), values: None });
        }
        if quasi.hierarchy.is_some() {
            return Ok(Self::default());
        }
        let values = read.clone().aggregate(vec![ident(&quasi.name)], vec![])?;
        let text = cast(ident(&quasi.name), DataType::Utf8);
        let joined = count_rows(plans, values.clone().filter(text.like(lit("%, %")))?).await?;
        let values = if joined == 0 { Some(count_rows(plans, values).await?) } else { None };
        Ok(Self { ends: None, values })
    }

    /// The first and the last place of a line.
    async fn find_ends(plans: &dyn PlanExecutor, read: &DataFrame, quasi: &QuasiColumn) -> Result<Option<(f64, f64)>> {
        let unit = Unit::of_type(&quasi.data_type);
        if !is_wide(&quasi.data_type) {
            let keys = read.clone().select(vec![Keys::Line.key_expr(&quasi.name).alias("key")])?;
            let ends = ends_of(plans, keys, &unit).await?;
            return Ok(ends.map(|(low, high)| (unit.position(low), unit.position(high))));
        }
        let ends = read.clone().aggregate(vec![], vec![min(ident(&quasi.name)), max(ident(&quasi.name))])?;
        let ends = collect_rows(plans, ends).await?;
        let Some(row) = ends.iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
        let end = |column: usize| -> Result<Option<i256>> {
            Ok(wide_digits(row.column(column))?.into_iter().flatten().next())
        };
        Ok(end(0)?.zip(end(1)?).map(|(low, high)| (unit.position_wide(low), unit.position_wide(high))))
    }

    fn domain_share(part: f64, whole: f64) -> f64 {
        if whole.is_finite() && whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// What a published value loses at least.
    fn value_loss(&self, published: &Published, row: usize) -> f64 {
        match published {
            Published::Representative => 0.0,
            Published::Line(spans, unit) => {
                let Some((first, last)) = self.ends.map(|(low, high)| (f64::from_bits(low), f64::from_bits(high)))
                else {
                    return 0.0;
                };
                match &spans[row] {
                    Span::Missing | Span::Nothing => 0.0,
                    Span::Anything => 1.0,
                    Span::Between(low, high) => Self::domain_share(unit.distance_between(*low, *high), last - first),
                    Span::Wide(low, high) => Self::domain_share(unit.between_wide(*low, *high), last - first),
                    Span::HalfOpen(low, high) => {
                        let low = low.as_ref().map_or(first, |bound| bound.number.max(first));
                        let high = high.as_ref().map_or(last, |bound| bound.number.min(last));
                        Self::domain_share(high - low, last - first)
                    }
                }
            }
            Published::Text(labels, _) if labels.is_null(row) => 0.0,
            Published::Text(labels, hierarchy) => match (labels.value(row), hierarchy.as_deref()) {
                (TOP, _) => 1.0,
                (label, Some(Hierarchy::Levels(levels))) => {
                    let leaves = levels.leaves().len().max(2) - 1;
                    levels.span_of(label).map_or(0.0, |(lo, hi)| Self::domain_share(f64::from(hi - lo), leaves as f64))
                }
                (_, Some(_)) => 0.0,
                (label, None) => {
                    let listed = SetLabel::parse(label).members().map_or(1, <[_]>::len);
                    let others = self.values.map_or(0.0, |values| values.saturating_sub(1) as f64);
                    Self::domain_share(listed.saturating_sub(1) as f64, others)
                }
            },
        }
    }
}

/// The name of the function.
pub(crate) const PUBLISHED_LOSS: &str = "published_loss";

/// What the published values of a row lose: the mean over the quasi-identifiers.
#[derive(Debug)]
pub(crate) struct PublishedLoss {
    signature: Signature,
    bound_policy: Arc<BoundPolicy>,
    domains: Vec<Domain>,
}

impl PublishedLoss {
    pub(crate) fn new(bound_policy: Arc<BoundPolicy>, domains: Vec<Domain>) -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable), bound_policy, domains }
    }

    pub(crate) fn bound_policy(&self) -> &BoundPolicy {
        &self.bound_policy
    }

    pub(crate) fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn row_losses(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<f64>> {
        let mut losses = vec![0.0; rows];
        let quasi = &self.bound_policy.quasi;
        let mut rest = columns;
        for (quasi, domain) in quasi.iter().zip(&self.domains) {
            let width = published_fields(quasi).len();
            if rest.len() < width {
                return Err(Error::internal("a quasi-identifier is not published"));
            }
            let (mine, others) = rest.split_at(width);
            rest = others;
            if !quasi.withheld {
                let published = Published::read_columns(quasi, mine)?;
                losses.iter_mut().enumerate().for_each(|(row, loss)| *loss += domain.value_loss(&published, row));
            }
        }
        losses.iter_mut().for_each(|loss| *loss /= quasi.len().max(1) as f64);
        Ok(losses)
    }
}

impl PartialEq for PublishedLoss {
    fn eq(&self, other: &Self) -> bool {
        self.domains == other.domains && self.bound_policy.policy.hash == other.bound_policy.policy.hash
    }
}

impl Eq for PublishedLoss {}

impl Hash for PublishedLoss {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.domains.hash(state);
    }
}

impl ScalarUDFImpl for PublishedLoss {
    fn name(&self) -> &str {
        PUBLISHED_LOSS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = columns_of(&args)?;
        let losses = self.row_losses(&columns, args.number_rows).map_err(Error::into_datafusion)?;
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from(losses))))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::array::{Int32Array, RecordBatch, StringArray, StructArray};
    use datafusion::arrow::datatypes::{Field, Fields, Schema};
    use datafusion::prelude::SessionContext;

    use super::super::plans::InProcess;
    use super::*;
    use crate::policy::Policy;

    fn bound_policy(bound: f64) -> Arc<BoundPolicy> {
        let policy = format!(
            "privacy.k = 2\nprivacy.max-loss = {bound:?}\n[columns]\nage.role = \"quasi\"\ntown = {{ role = \"quasi\", \
             hierarchy.tree = [{{ A = [\"Ash\", \"Alder\"] }}, {{ B = [\"Birch\", \"Beech\", \"Box\"] }}] }}\n\
             colour.role = \"quasi\"\nzip = {{ role = \"quasi\", hierarchy = {{ mask = \"right\" }} }}"
        );
        let policy = Policy::from_table(toml::from_str(&policy).unwrap(), Path::new(".")).unwrap();
        let mut fields = vec![Field::new("age", DataType::Int32, true)];
        fields.extend(["town", "colour", "zip"].map(|name| Field::new(name, DataType::Utf8, true)));
        Arc::new(BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap())
    }

    fn frame(columns: Vec<(&str, ArrayRef)>) -> DataFrame {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        SessionContext::new().read_batch(RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap()
    }

    fn texts(values: [Option<&str>; 4]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    /// How many rows of a small release are found to lose more than a bound, when one of the colours is called `last`.
    fn beyond(bound: f64, last: &str) -> u64 {
        let ends = Fields::from(["min", "max"].map(|name| Field::new(name, DataType::Int32, true)).to_vec());
        let ints = |values: [i32; 4]| -> ArrayRef { Arc::new(Int32Array::from(values.to_vec())) };
        let ages = StructArray::new(ends, vec![ints([20, 20, 30, 40]), ints([40, 20, 40, 40])], None);
        let published = frame(vec![
            ("age", Arc::new(ages) as ArrayRef),
            ("town", texts([Some("*"), Some("Ash"), Some("B"), None])),
            ("colour", texts([Some("{a, b, c}"), Some("a"), Some("{a, b}"), Some("*")])),
            ("zip", texts([Some("*"), Some("12"), Some("1*"), Some("12")])),
        ]);
        let read = frame(vec![
            ("age", ints([20, 30, 40, 40])),
            ("town", texts([Some("Ash"), Some("Ash"), Some("Box"), None])),
            ("colour", texts([Some("a"), Some("b"), Some(last), Some("a")])),
            ("zip", texts([Some("12"), Some("12"), Some("12"), Some("12")])),
        ]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(check_max_loss(&InProcess, &published, &read, &bound_policy(bound))).unwrap();
        found.map_or(0, |finding| finding.count)
    }

    /// The four rows lose 4 / 4, nothing, (0.5 + 0.5 + 0.5) / 4 and 1 / 4.
    #[test]
    fn losses_are_read_from_values() {
        assert_eq!([0.0, 0.249, 0.25, 0.375, 0.376, 1.0].map(|bound| beyond(bound, "c")), [3, 3, 2, 1, 1, 0]);
        // Where a value holds a comma, sets say nothing: the third row loses 1 / 4 for sure.
        assert_eq!([0.24, 0.25, 0.74, 0.75].map(|bound| beyond(bound, "c, d")), [3, 1, 1, 0]);
    }
}
