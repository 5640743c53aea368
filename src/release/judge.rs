//! The rules about sensitive columns, asked of every class of the published rows.

use std::collections::BTreeMap;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::classes::fold_classes;
use super::verify::{Finding, Watch, fingerprint};
use crate::domain::Sensitive;
use crate::encode::{Reference, SensitiveDomain, is_number, is_time, positions};
use crate::error::{Error, Result};
use crate::job::{Listed, SensitiveColumn, Treatment};
use crate::measure::Classes;
use crate::measure::classification::Minority;
use crate::permutation::Slices;
use crate::privacy::{Attained, Figures, Histogram};

/// Which sensitive columns are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Those that a rule guards.
    Guarded,
    /// All of them: whoever asks wants to know how well they are protected.
    All,
}

/// What the classes tell of their sensitive columns.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The rules that are broken.
    pub(super) findings: Vec<Finding>,
    /// How well each column is protected.
    pub(super) figures: BTreeMap<String, Figures>,
    /// The sizes of the classes, when a column was looked at by them: they need not be counted once more.
    pub(super) classes: Option<Classes>,
}

/// Asks every class for every rule. `domains` are those of the source where they are known, else those of the published
/// rows are taken. What rules compare with the whole table they compare with the published table.
pub(super) async fn judge(
    rows: &DataFrame,
    treatment: &Treatment,
    slices: &Slices,
    domains: Option<&[SensitiveDomain]>,
    look: Look,
    watch: &Watch<'_>,
) -> Result<Judged> {
    let all = treatment.rules(false);
    let mut judged = Judged::default();
    for (index, column) in treatment.sensitive.iter().enumerate() {
        let rules: Vec<&Listed> = all.iter().filter(|listed| listed.rule.column() == column.name).collect();
        // Lists, structs and the like cannot be guarded, nor looked at.
        if rules.is_empty() && (look == Look::Guarded || column.data_type.is_nested()) {
            continue;
        }
        let mut domain = match domains {
            Some(domains) => domains[index].clone(),
            None => domain_of(rows, column).await?,
        };
        domain.reference = if column.compared || look == Look::All { reference_of(rows, column).await? } else { None };
        let beside = classes_beside(treatment, slices, column);
        let unwatched: &Watch<'_> = &|_| {};
        let watch = if judged.classes.is_none() { watch } else { unwatched };
        let counted = count_broken(rows, &beside, (column, &domain), &rules, watch).await?;
        for (listed, count) in rules.iter().zip(counted.broken).filter(|(_, count)| *count > 0) {
            let message = format!("{count} classes {}", listed.rule.breach());
            judged.findings.push(Finding::new(listed.name.clone(), count, message));
        }
        judged.figures.extend(counted.attained.figures().map(|figures| (column.name.clone(), figures)));
        if beside == treatment.class_columns() {
            judged.classes = Some(counted.classes);
        }
    }
    Ok(judged)
}

/// Smallest and largest value of a sensitive column, as published.
pub(super) async fn domain_of(rows: &DataFrame, column: &SensitiveColumn) -> Result<SensitiveDomain> {
    let value = ident(&column.name);
    if !(is_number(&column.data_type) || is_time(&column.data_type)) {
        let distinct = rows.clone().aggregate(vec![value], vec![])?.count().await?;
        return Ok(SensitiveDomain { min: 0.0, max: 0.0, distinct: distinct as u64, reference: None });
    }
    let ends = rows.clone().aggregate(vec![], vec![min(value.clone()), max(value)])?.collect().await?;
    let end = |index: usize| -> Result<f64> {
        let batch = ends.first().ok_or_else(|| Error::Internal("an aggregate without a row".into()))?;
        Ok(positions(batch.column(index))?.first().copied().unwrap_or_default())
    };
    Ok(SensitiveDomain { min: end(0)?, max: end(1)?, distinct: 0, reference: None })
}

/// The published columns by which a reader tells apart whose values of a sensitive column they may be: those of the class,
/// and those that stay with the column in its slice.
pub(super) fn classes_beside(treatment: &Treatment, slices: &Slices, column: &SensitiveColumn) -> Vec<String> {
    let beside = treatment.beside(column.index, slices).into_iter().map(|place| treatment.quasi[place].name.clone());
    treatment.class_columns().into_iter().chain(beside).collect()
}

/// How often every value of a sensitive column is published; none when there are too many different ones and no rule
/// needs to know.
async fn reference_of(rows: &DataFrame, column: &SensitiveColumn) -> Result<Option<Reference>> {
    let counted =
        rows.clone().aggregate(vec![ident(&column.name).alias("value")], vec![count(lit(1)).alias("size")])?;
    let mut reference = Reference::default();
    let mut stream = counted.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let sizes = batch.column(1).as_primitive::<Int64Type>();
        reference.add_weighted(column, batch.column(0), |row| sizes.value(row) as u64)?;
        if column.compared {
            reference.refuse_too_many(column)?;
        } else if reference.is_too_large() {
            return Ok(None);
        }
    }
    Ok(Some(reference))
}

/// How often each label occurs in each published class: the classification metric, with so many rows suppressed.
pub(super) async fn classification(
    rows: &DataFrame,
    treatment: &Treatment,
    label: &str,
    suppressed: u64,
) -> Result<Option<f64>> {
    let mut keys = fingerprint(&treatment.class_columns());
    keys.push(ident(label).alias("label"));
    let commonest = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("class_a"), ident("class_b")], vec![sum(ident("size")), max(ident("size"))])?;
    let mut minority = Minority::default();
    let mut stream = commonest.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let (all, most) = (batch.column(2).as_primitive::<Int64Type>(), batch.column(3).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            minority.add(all.value(row) as u64, most.value(row) as u64);
        }
    }
    Ok(minority.cm(suppressed))
}

/// What all classes tell of one sensitive column.
#[derive(Debug, Clone)]
struct Counted {
    /// How many classes break each rule.
    broken: Vec<u64>,
    attained: Attained,
    classes: Classes,
}

impl Counted {
    fn merge(&mut self, other: Self) {
        self.broken.iter_mut().zip(other.broken).for_each(|(mine, theirs)| *mine += theirs);
        self.attained.merge(other.attained);
        self.classes.merge(&other.classes);
    }
}

/// Asks the rules of one sensitive column of every class.
async fn count_broken(
    rows: &DataFrame,
    class_columns: &[String],
    of: (&SensitiveColumn, &SensitiveDomain),
    rules: &[&Listed],
    watch: &Watch<'_>,
) -> Result<Counted> {
    let first = Counted { broken: vec![0; rules.len()], attained: Attained::default(), classes: Classes::default() };
    let rules: Vec<Listed> = rules.iter().map(|&listed| listed.clone()).collect();
    let ask = move |counted: &mut Counted, histogram: Histogram<'_>, sensitive: &Sensitive| {
        for (listed, broken) in rules.iter().zip(&mut counted.broken) {
            *broken += u64::from(!listed.rule.allows(histogram, sensitive));
        }
        counted.attained.add(histogram, sensitive);
        counted.classes.add(histogram.iter().map(|(_, rows)| u64::from(*rows)).sum(), 1);
    };
    fold_classes(rows, class_columns, of, first, ask, Counted::merge, watch).await
}
