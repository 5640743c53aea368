//! What a release loses and how well it protects, measured in its published rows alone: what is given here everybody can
//! work out who has the files.
//!
//! Losses are shares of a domain, and that is the one that the published values show, or that the job declares:
//!
//! - numbers and points in time: from the first to the last end of what is published;
//! - values of a hierarchy of levels: all its leaves, which are public;
//! - masks: a label loses the share of its characters that are hidden;
//! - categories: the values that sets list or that stand alone, and one more where null or the top is published.
//!
//! The top of a column loses 1, a single value and null nothing. Of a value that stands for others (`centroid`) nobody can
//! tell what it covers, so such a column has no loss, and the release no mean. Equal groups are one class: a reader cannot
//! tell them apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, StringViewArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, not};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;
use futures::future::BoxFuture;

use super::classes::fold_classes;
use super::judge::values_of;
use super::plans::PlanExecutor;
use super::rules::range_diversity;
use crate::binding::{BoundPolicy, QuasiColumn, published_fields};
use crate::error::{Error, Result};
use crate::hierarchy::{Hierarchy, SetLabel, TOP};
use crate::measure::Groups;
use crate::policy::Publish;
use crate::published::cover::{Published, Span};
use crate::published::exact::float_of;
use crate::published::key_counts::{Histogram, read_key_counts};
use crate::published::values::{Unit, Values};

/// Different values of a category beyond which they are not counted.
const MAX_VALUES: usize = 1 << 16;

/// Measures all classes of a release that generalises. Rows that were suppressed are not among them. The future is kept on the
/// heap, as are those inside: planning takes much of the stack of whoever waits.
pub(crate) fn measure_classes<'a>(
    plans: &'a dyn PlanExecutor,
    rows: &'a DataFrame,
    bound_policy: &'a Arc<BoundPolicy>,
    bound: Option<f64>,
) -> BoxFuture<'a, Result<Groups>> {
    Box::pin(measure_all(plans, rows, bound_policy, bound))
}

async fn measure_all(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    bound_policy: &Arc<BoundPolicy>,
    bound: Option<f64>,
) -> Result<Groups> {
    let mut columns = Vec::new();
    for quasi in &bound_policy.quasi {
        columns.push(Box::pin(Column::find_domain(rows, quasi)).await?);
    }
    let (mut sensitive, mut tallied) = (Vec::new(), Vec::new());
    for column in bound_policy.sensitive.iter().filter(|column| !column.data_type.is_nested()) {
        let (values, keys) = Box::pin(values_of(plans, rows, column, true)).await?;
        sensitive.push(values);
        tallied.push(keys.key_expr(&column.name));
    }
    let mut first = Groups::new(columns.len(), sensitive.len());
    first.protection = first.protection.with_bound(bound);
    // Without quasi-identifiers nothing is lost, and all rows are one class.
    if columns.is_empty() {
        return Ok(first);
    }
    let classes = Arc::new(MeasuredClasses { columns, sensitive });
    let add = move |part: &mut Groups, batch: &RecordBatch, width: usize| classes.add_classes(part, batch, width);
    let names = bound_policy.class_columns();
    Box::pin(fold_classes(rows, &names, tallied, first, add, |whole, part| whole.merge(&part))).await
}

/// What classes are measured by.
struct MeasuredClasses {
    columns: Vec<Column>,
    sensitive: Vec<Values>,
}

impl MeasuredClasses {
    /// Adds the classes of a batch: their keys, a tally for every sensitive column, and how many rows they have.
    fn add_classes(&self, part: &mut Groups, batch: &RecordBatch, width: usize) -> Result<()> {
        let mut keys = &batch.columns()[..width];
        let mut losses = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            losses.push(column.read_losses(&mut keys)?);
        }
        let rows = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        let mut of_class = vec![0.0; losses.len()];
        let (mut spreads, mut disclosures, mut histogram) = (Vec::new(), Vec::new(), Histogram::new());
        for row in 0..batch.num_rows() {
            losses.iter().zip(&mut of_class).for_each(|(column, loss)| *loss = column[row]);
            spreads.clear();
            disclosures.clear();
            for (index, values) in self.sensitive.iter().enumerate() {
                read_key_counts(batch.column(width + index), row, &mut histogram);
                spreads.push(values.spread(&histogram));
                disclosures.push(range_diversity(&histogram, values));
            }
            part.add_group(rows.value(row) as u64, &of_class, &spreads, &disclosures);
        }
        Ok(())
    }
}

/// A quasi-identifier as it is published, and the domain that its published values show.
struct Column {
    quasi: QuasiColumn,
    /// Its published columns.
    fields: Vec<Field>,
    ends: Option<(f64, f64)>,
    values: usize,
}

impl Column {
    async fn find_domain(rows: &DataFrame, quasi: &QuasiColumn) -> Result<Self> {
        let fields = published_fields(quasi);
        let as_read = |field: &Field| Ok(rows.schema().field_with_unqualified_name(field.name())?.as_ref().clone());
        let fields = fields.iter().map(as_read).collect::<Result<Vec<Field>>>()?;
        let mut found = Self { quasi: quasi.clone(), fields, ends: None, values: 0 };
        if quasi.withheld {
            return Ok(found);
        }
        if let Some([low, high]) = quasi.domain {
            found.add_ends(low, high);
        }
        let names = found.fields.iter().map(|field| ident(field.name())).collect();
        let mut distinct = rows.clone().aggregate(names, vec![])?.execute_stream().await?;
        let (mut listed, mut unlisted) = (BTreeSet::new(), false);
        while let Some(batch) = distinct.try_next().await? {
            match Published::read_columns(quasi, batch.columns())? {
                Published::Representative => {}
                Published::Line(spans, unit) => spans.iter().for_each(|span| found.add_span(span, &unit)),
                Published::Text(labels, None) => {
                    unlisted |= labels.iter().any(|label| label.is_none_or(|label| label == TOP));
                    if listed.len() <= MAX_VALUES {
                        list_values(&labels, &mut listed);
                    }
                }
                Published::Text(..) => {}
            }
        }
        found.values = listed.len().min(MAX_VALUES) + usize::from(unlisted);
        Ok(found)
    }

    fn add_ends(&mut self, low: f64, high: f64) {
        if low.is_nan() || high.is_nan() {
            return;
        }
        let (first, last) = self.ends.unwrap_or((low, high));
        self.ends = Some((first.min(low), last.max(high)));
    }

    fn add_span(&mut self, span: &Span, unit: &Unit) {
        match span {
            Span::Missing | Span::Nothing | Span::Anything => {}
            Span::Between(low, high) => self.add_ends(unit.position(*low), unit.position(*high)),
            Span::Wide(low, high) => self.add_ends(unit.position_wide(*low), unit.position_wide(*high)),
            Span::HalfOpen(low, high) => {
                low.iter().chain(high).for_each(|bound| self.add_ends(bound.number, bound.number));
            }
        }
    }

    /// What every published value of a batch of classes loses; takes its keys from the front of those that are left.
    fn read_losses(&self, keys: &mut &[ArrayRef]) -> Result<Vec<f64>> {
        let mut columns = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            columns.push(published_column(field, keys)?);
        }
        let rows = columns.first().map_or(0, |column| column.len());
        if self.quasi.withheld {
            return Ok(vec![1.0; rows]);
        }
        let published = Published::read_columns(&self.quasi, &columns)?;
        Ok((0..rows).map(|row| self.value_loss(&published, row)).collect())
    }

    fn value_loss(&self, published: &Published, row: usize) -> f64 {
        match published {
            Published::Representative => 0.0,
            Published::Line(spans, unit) => self.line_loss(&spans[row], unit),
            Published::Text(labels, _) if labels.is_null(row) => 0.0,
            Published::Text(labels, _) if labels.value(row) == TOP => 1.0,
            Published::Text(labels, hierarchy) => match (labels.value(row), hierarchy.as_deref()) {
                (label, Some(Hierarchy::Levels(levels))) => {
                    let others = levels.leaves().len().saturating_sub(1) as f64;
                    levels.span_of(label).map_or(0.0, |(lo, hi)| share_of(f64::from(hi - lo), others))
                }
                (label, Some(Hierarchy::Mask(mask))) => {
                    let kept = mask.kept_of(label).map_or(0, |(kept, _)| kept.chars().count());
                    let all = label.chars().count();
                    share_of(all.saturating_sub(kept) as f64, all as f64)
                }
                (_, Some(_)) => 0.0,
                (label, None) => {
                    let listed = SetLabel::parse(label).members().map_or(1, <[_]>::len);
                    share_of(listed as f64 - 1.0, self.values as f64 - 1.0)
                }
            },
        }
    }

    fn line_loss(&self, span: &Span, unit: &Unit) -> f64 {
        let Some((first, last)) = self.ends else { return if *span == Span::Anything { 1.0 } else { 0.0 } };
        match span {
            Span::Missing | Span::Nothing => 0.0,
            Span::Anything => 1.0,
            Span::Between(low, high) => share_of(unit.distance_between(*low, *high), last - first),
            Span::Wide(low, high) => share_of(unit.between_wide(*low, *high), last - first),
            Span::HalfOpen(low, high) => {
                let low = low.as_ref().map_or(first, |bound| bound.number.max(first));
                let high = high.as_ref().map_or(last, |bound| bound.number.min(last));
                share_of(high - low, last - first)
            }
        }
    }
}

/// The share of a domain; nothing is lost in a domain of one value.
fn share_of(part: f64, whole: f64) -> f64 {
    if whole.is_finite() && whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// The values that labels without a hierarchy list.
fn list_values(labels: &StringViewArray, into: &mut BTreeSet<String>) {
    for label in labels.iter().flatten().filter(|label| *label != TOP) {
        into.extend(SetLabel::parse(label).members().into_iter().flatten().map(ToString::to_string));
    }
}

/// A published column of the keys that classes were grouped by.
fn published_column(field: &Field, keys: &mut &[ArrayRef]) -> Result<ArrayRef> {
    let mut take = || -> Result<ArrayRef> {
        let missing = || Error::internal("a class has fewer keys than columns");
        let (first, rest) = keys.split_first().ok_or_else(missing)?;
        *keys = rest;
        Ok(Arc::clone(first))
    };
    let DataType::Struct(parts) = field.data_type() else { return as_published(&take()?, field.data_type()) };
    let nulls = if field.is_nullable() { Some(take()?) } else { None };
    let mut columns = Vec::with_capacity(parts.len());
    for part in parts {
        columns.push(as_published(&take()?, part.data_type())?);
    }
    let present = |nulls: &ArrayRef| -> Result<NullBuffer> {
        let missing: &BooleanArray = nulls.as_boolean();
        Ok(NullBuffer::new(not(missing)?.values().clone()))
    };
    let nulls = nulls.as_ref().map(present).transpose()?;
    Ok(Arc::new(StructArray::try_new(parts.clone(), columns, nulls)?))
}

/// A key as the value that it stands for.
fn as_published(key: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if data_type.is_floating() && *key.data_type() == DataType::Int64 {
        let numbers = key.as_primitive::<Int64Type>().iter().map(|key| key.map(float_of));
        let numbers: ArrayRef = Arc::new(numbers.collect::<Float64Array>());
        return Ok(cast(&numbers, data_type)?);
    }
    Ok(Arc::clone(key))
}

/// Of which quasi-identifiers a reader can tell what was lost: not of values that stand for others.
pub(crate) fn shown_losses(bound_policy: &BoundPolicy) -> Vec<bool> {
    bound_policy.quasi.iter().map(|quasi| quasi.withheld || quasi.publish != Publish::Centroid).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::array::{Int32Array, StringArray};
    use datafusion::arrow::datatypes::{Fields, Schema};
    use datafusion::prelude::SessionContext;

    use super::super::plans::InProcess;
    use super::*;
    use crate::policy::Policy;

    fn texts(values: [Option<&str>; 4]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn measured(pays: [i32; 4]) -> Groups {
        let policy = "privacy.k = 2\n[columns]\nage.role = \"quasi\"\ncolour.role = \"quasi\"\npay.role = \"sensitive\"\n\
                      zip = { role = \"quasi\", hierarchy.mask = \"right\" }\n\
                      size = { role = \"quasi\", hierarchy.widths = [10, 50] }\n";
        let policy = Policy::from_table(toml::from_str(policy).unwrap(), Path::new(".")).unwrap();
        let column = |name: &str, data_type| Field::new(name, data_type, true);
        let [int, text] = [DataType::Int32, DataType::Utf8];
        let input = vec![
            column("age", DataType::Float64),
            column("colour", text.clone()),
            column("zip", text),
            column("size", int.clone()),
            column("pay", int),
        ];
        let bound_policy = Arc::new(BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(input))).unwrap());
        let ends = Fields::from(["min", "max"].map(|name| column(name, DataType::Float64)).to_vec());
        let floats = |values: [Option<f64>; 4]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
        let low = floats([Some(-20.0), Some(-20.0), Some(60.0), None]);
        let ages = StructArray::new(ends, vec![low, floats([Some(20.0), Some(20.0), Some(60.0), None])], None);
        let pays: ArrayRef = Arc::new(Int32Array::from(pays.to_vec()));
        let published = RecordBatch::try_from_iter_with_nullable([
            ("age", Arc::new(ages) as ArrayRef, true),
            ("colour", texts([Some("{a, b}"), Some("{a, b}"), Some("c"), Some("*")]), true),
            ("zip", texts([Some("12*"), Some("12*"), Some("123"), Some("*")]), true),
            ("size", texts([Some("[0, 10)"), Some("[0, 10)"), Some("[0, 50)"), None]), true),
            ("pay", pays, true),
        ]);
        let rows = SessionContext::new().read_batch(published.unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(measure_classes(&InProcess, &rows, &bound_policy, Some(0.9))).unwrap()
    }

    /// Three classes, of two rows, one and one: ages lose 40 of 80, colours one of three others, masks one of three
    /// characters, and sizes 10 of the 50 that are shown.
    #[test]
    fn losses_are_shares_of_what_is_published() {
        let found = measured([0, 10, 20, 20]);
        let thirds = |losses: Vec<f64>| losses.iter().map(|loss| (loss * 1e4).round() / 1e4).collect::<Vec<f64>>();
        let by_column = [2.0 * 0.5 + 1.0, 2.0 / 3.0 + 1.0, 2.0 / 3.0 + 1.0, 2.0 * 0.2 + 1.0].map(|sum| sum / 4.0);
        assert_eq!(thirds(found.loss.by_column()), thirds(by_column.to_vec()));
        assert_eq!((found.loss.groups(), found.loss.rows(), found.loss.wgu()), (3, 4, Some(0.75)));
        assert!((found.loss.um().unwrap() - (0.5 + 2.0 / 3.0 + 0.2 + 1.0 + 3.0) / 12.0).abs() < 1e-9);
        // Pays spread over half of their domain in the class of two, and are certain in the others.
        assert!((found.protection.mpm().unwrap() - (0.5 + 1.0 + 1.0) / 3.0).abs() < 1e-9);
        assert_eq!((found.protection.wgp(), found.protection.unprotected_share()), (Some(1.0), Some(0.5)));
        assert_eq!(measured([7, 7, 7, 7]).protection.mpm(), Some(1.0));
    }
}
