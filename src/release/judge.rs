//! The rules about sensitive columns, asked of every class of the published rows: how often each value occurs in each
//! class is counted by a query, and the rules are asked of these counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::verify::{Finding, class, fingerprint};
use crate::encode::{Reference, SensitiveDomain, encode_sensitive, is_number, is_time, positions};
use crate::error::{Error, Result};
use crate::job::{Listed, SensitiveColumn, Treatment};
use crate::measure::classification::Minority;
use crate::permutation::Slices;
use crate::privacy::{Attained, Figures};

/// Which sensitive columns are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Those that a rule guards.
    Guarded,
    /// All of them: whoever asks wants to know how well they are protected.
    All,
}

/// Asks every class for every rule. `domains` are those of the source where they are known, else those of the published
/// rows are taken. What rules compare with the whole table they compare with the published table.
pub(super) async fn judge(
    rows: &DataFrame,
    treatment: &Treatment,
    slices: &Slices,
    domains: Option<&[SensitiveDomain]>,
    look: Look,
) -> Result<(Vec<Finding>, BTreeMap<String, Figures>)> {
    let all = treatment.rules(false);
    let (mut findings, mut figures) = (Vec::new(), BTreeMap::new());
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
        let (broken, attained) =
            count_broken(rows, &classes_beside(treatment, slices, column), column, &domain, &rules).await?;
        for (listed, count) in rules.iter().zip(broken).filter(|(_, count)| *count > 0) {
            let message = format!("{count} classes {}", listed.rule.breach());
            findings.push(Finding::new(listed.name.clone(), count, message));
        }
        figures.extend(attained.figures().map(|figures| (column.name.clone(), figures)));
    }
    Ok((findings, figures))
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

/// Rows of (class, value, count) that are looked at together.
const CHUNK_ROWS: usize = 1 << 16;

/// How many classes break each rule of one sensitive column, and what all classes attain.
async fn count_broken(
    rows: &DataFrame,
    class_columns: &[String],
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    rules: &[&Listed],
) -> Result<(Vec<u64>, Attained)> {
    let mut keys = fingerprint(class_columns);
    keys.push(ident(&column.name).alias("value"));
    let histogram = rows.clone().aggregate(keys, vec![count(lit(1)).alias("size")])?;
    let sorted = histogram.sort(vec![ident("class_a").sort(true, true), ident("class_b").sort(true, true)])?;
    let schema = Arc::new(sorted.schema().as_arrow().clone());
    let mut stream = sorted.execute_stream().await?;
    let (mut broken, mut attained) = (vec![0_u64; rules.len()], Attained::default());
    let mut waiting: Option<RecordBatch> = None;
    loop {
        let next = stream.try_next().await?;
        let ended = next.is_none();
        let chunk = concat_batches(&schema, waiting.iter().chain(&next))?;
        let cut = if ended { chunk.num_rows() } else { last_class(&chunk) };
        if !ended && (cut == 0 || chunk.num_rows() < CHUNK_ROWS) {
            waiting = Some(chunk);
            continue;
        }
        ask(&chunk.slice(0, cut), column, domain, rules, &mut broken, &mut attained)?;
        waiting = Some(chunk.slice(cut, chunk.num_rows() - cut));
        if ended {
            return Ok((broken, attained));
        }
    }
}

/// Where the last class of a chunk begins: it may go on in the next one.
pub(super) fn last_class(chunk: &RecordBatch) -> usize {
    let Some(last) = chunk.num_rows().checked_sub(1) else { return 0 };
    let of_last = class(chunk, last);
    (0..=last).rev().take_while(|row| class(chunk, *row) == of_last).last().unwrap_or(0)
}

fn ask(
    chunk: &RecordBatch,
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    rules: &[&Listed],
    broken: &mut [u64],
    attained: &mut Attained,
) -> Result<()> {
    let sensitive = encode_sensitive(column, domain, chunk.column(2))?;
    let sizes = chunk.column(3).as_primitive::<Int64Type>();
    let mut from = 0;
    while from < chunk.num_rows() {
        let this = class(chunk, from);
        let until = (from..chunk.num_rows()).find(|row| class(chunk, *row) != this).unwrap_or(chunk.num_rows());
        let mut histogram: Vec<(u32, u32)> =
            (from..until).map(|row| (sensitive.codes[row], sizes.value(row) as u32)).collect();
        histogram.sort_unstable();
        // Values that cannot be told apart count as one.
        histogram.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0 };
            same
        });
        for (listed, broken) in rules.iter().zip(broken.iter_mut()) {
            *broken += u64::from(!listed.rule.allows(&histogram, &sensitive));
        }
        attained.add(&histogram, &sensitive);
        from = until;
    }
    Ok(())
}
