//! Checks what was written, by reading it back: ordinary queries over the published files that share nothing with the
//! code that made the groups. What is found names the rule and a count, never a value.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::HashMap;
use datafusion::datasource::file_format::options::ParquetReadOptions;
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident, lit,
};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;

use super::cover::{Original, Published};
use super::location::Location;
use super::manifest::{Manifest, OutputFile};
use crate::encode::{SensitiveDomain, encode_sensitive, is_number, is_time, positions, row_hashes};
use crate::error::{Error, Result};
use crate::job::{Diversity, LDiversity, Role, SensitiveColumn, Treatment, published_fields};
use crate::measure::Classes;
use crate::privacy::range_diversity::range_diversity;
use crate::privacy::{l_diversity, within};

/// A rule that a release breaks, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// How many rows, classes or files break it.
    pub count: u64,
    /// What that means.
    pub message: String,
}

impl Finding {
    fn new(rule: impl Into<String>, count: u64, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), count, message: message.into() }
    }

    /// All findings as one error.
    pub fn refuse(findings: &[Self]) -> Result<()> {
        if findings.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
        Err(Error::Privacy(format!("the release does not hold what it promises\n  {}", lines.join("\n  "))))
    }
}

/// A table over published files.
pub(super) async fn open(context: &SessionContext, sink: &Location, files: &[OutputFile]) -> Result<DataFrame> {
    context.register_object_store(&sink.root, Arc::clone(&sink.store));
    let urls: Vec<String> = files.iter().map(|file| sink.url(&sink.at(&file.path))).collect();
    let frame = context.read_parquet(urls, ParquetReadOptions::default()).await;
    frame.map_err(|error| Error::Privacy(format!("a published file cannot be read back: {}", Error::from(error))))
}

/// Checks class sizes and all rules that can be read from the published rows; returns the classes.
pub(super) async fn verify_rows(
    rows: &DataFrame,
    treatment: &Treatment,
    domains: Option<&[SensitiveDomain]>,
    expected_rows: u64,
) -> Result<(Classes, Vec<Finding>)> {
    let mut findings = Vec::new();
    let classes = count_classes(rows, &treatment.class_columns()).await?;
    findings.extend(row_count(classes.rows(), expected_rows));
    findings.extend(small_classes(&classes, treatment.policy.privacy.k));
    for (index, column) in treatment.sensitive.iter().enumerate() {
        let privacy = &treatment.policy.privacy;
        let diverse: Vec<&LDiversity> = privacy.l_diversity.iter().filter(|rule| rule.column == column.name).collect();
        let bound = privacy.range_diversity.iter().find(|rule| rule.column == column.name).map(|rule| rule.p);
        if diverse.is_empty() && bound.is_none() {
            continue;
        }
        let domain = match domains {
            Some(domains) => domains[index],
            None => domain_of(rows, column).await?,
        };
        findings.extend(check_sensitive(rows, treatment, column, &domain, &diverse, bound).await?);
    }
    Ok((classes, findings))
}

/// Checks a release against its manifest: every file is the one that was released, with as many rows, and every class
/// is large enough.
pub async fn verify_release(
    context: &SessionContext,
    sink: &Location,
    manifest: &Manifest,
) -> Result<(Classes, Vec<Finding>)> {
    let mut findings = Vec::new();
    let mut present = Vec::new();
    let mut changed = 0;
    for file in &manifest.files {
        match checksum(sink, &file.path).await? {
            Some(found) => {
                changed += u64::from(found != file.blake3);
                present.push(file.clone());
            }
            None => findings.push(Finding::new("files", 1, format!("`{}` is missing", file.path))),
        }
    }
    if changed > 0 {
        let of = manifest.files.len();
        findings.push(Finding::new(
            "files",
            changed,
            format!("{changed} of {of} files are not the ones that were released"),
        ));
    }
    if present.is_empty() {
        return Ok((Classes::default(), findings));
    }
    let rows = open(context, sink, &present).await?;
    let classes = count_classes(&rows, &manifest.class_columns).await?;
    findings.extend(row_count(classes.rows(), manifest.rows));
    findings.extend(small_classes(&classes, manifest.k));
    Ok((classes, findings))
}

fn row_count(found: u64, expected: u64) -> Option<Finding> {
    let off = found.abs_diff(expected);
    (off > 0).then(|| Finding::new("rows", off, format!("{found} rows are published, {expected} should be")))
}

fn small_classes(classes: &Classes, k: u32) -> Option<Finding> {
    let small: u64 = classes.histogram().filter(|(size, _)| *size < u64::from(k)).map(|(_, count)| count).sum();
    (small > 0).then(|| Finding::new("k", small, format!("{small} classes hold fewer than k = {k} rows")))
}

/// BLAKE3 of a file; none when there is no such file.
pub(super) async fn checksum(sink: &Location, path: &str) -> Result<Option<String>> {
    let found = match sink.store.get(&sink.at(path)).await {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut hasher = blake3::Hasher::new();
    let mut content = found.into_stream();
    while let Some(part) = content.next().await {
        hasher.update(&part?);
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

/// Sizes of the classes of equal published quasi-identifiers.
pub(super) async fn count_classes(rows: &DataFrame, columns: &[String]) -> Result<Classes> {
    let sizes = rows
        .clone()
        .aggregate(fingerprint(columns), vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes")])?;
    let mut classes = Classes::default();
    for batch in sizes.collect().await? {
        let (size, number) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        (0..batch.num_rows()).for_each(|row| classes.add(size.value(row) as u64, number.value(row) as u64));
    }
    Ok(classes)
}

/// Smallest and largest value of a sensitive column, as published.
pub(super) async fn domain_of(rows: &DataFrame, column: &SensitiveColumn) -> Result<SensitiveDomain> {
    let value = ident(&column.name);
    if !(is_number(&column.data_type) || is_time(&column.data_type)) {
        let distinct = rows.clone().aggregate(vec![value], vec![])?.count().await?;
        return Ok(SensitiveDomain { min: 0.0, max: 0.0, distinct: distinct as u64 });
    }
    let ends = rows.clone().aggregate(vec![], vec![min(value.clone()), max(value)])?.collect().await?;
    let end = |index: usize| -> Result<f64> {
        let batch = ends.first().ok_or_else(|| Error::Internal("an aggregate without a row".into()))?;
        Ok(positions(batch.column(index))?.first().copied().unwrap_or_default())
    };
    Ok(SensitiveDomain { min: end(0)?, max: end(1)?, distinct: 0 })
}

/// Rows of (class, value, count) that are looked at together.
const CHUNK_ROWS: usize = 1 << 16;

/// Checks the rules of one sensitive column, class by class.
async fn check_sensitive(
    rows: &DataFrame,
    treatment: &Treatment,
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    diverse: &[&LDiversity],
    bound: Option<f64>,
) -> Result<Vec<Finding>> {
    let mut keys = fingerprint(&treatment.class_columns());
    keys.push(ident(&column.name).alias("value"));
    let histogram = rows.clone().aggregate(keys, vec![count(lit(1)).alias("size")])?;
    let sorted = histogram.sort(vec![ident("class_a").sort(true, true), ident("class_b").sort(true, true)])?;
    let schema = Arc::new(sorted.schema().as_arrow().clone());
    let mut stream = sorted.execute_stream().await?;
    let mut broken = vec![0_u64; diverse.len() + 1];
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
        judge(&chunk.slice(0, cut), column, domain, diverse, bound, &mut broken)?;
        waiting = Some(chunk.slice(cut, chunk.num_rows() - cut));
        if ended {
            break;
        }
    }
    let name = &column.name;
    let mut findings = Vec::new();
    for (rule, count) in diverse.iter().zip(&broken).filter(|(_, count)| **count > 0) {
        let l = rule.l;
        let message = format!("{count} classes do not hold enough variety of `{name}` (l = {l})");
        findings.push(Finding::new("l-diversity", *count, message));
    }
    if let (Some(bound), Some(count)) = (bound, broken.last().filter(|count| **count > 0)) {
        let message = format!("{count} classes disclose a range of `{name}` more surely than p = {bound}");
        findings.push(Finding::new("range-diversity", *count, message));
    }
    Ok(findings)
}

pub(super) fn class(batch: &RecordBatch, row: usize) -> (u64, u64) {
    let part = |index: usize| batch.column(index).as_primitive::<UInt64Type>().value(row);
    (part(0), part(1))
}

/// Where the last class of a chunk begins: it may go on in the next one.
pub(super) fn last_class(chunk: &RecordBatch) -> usize {
    let Some(last) = chunk.num_rows().checked_sub(1) else { return 0 };
    let of_last = class(chunk, last);
    (0..=last).rev().take_while(|row| class(chunk, *row) == of_last).last().unwrap_or(0)
}

fn judge(
    chunk: &RecordBatch,
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    diverse: &[&LDiversity],
    bound: Option<f64>,
    broken: &mut [u64],
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
        for (rule, broken) in diverse.iter().zip(broken.iter_mut()) {
            *broken += u64::from(!is_diverse(rule, &histogram));
        }
        if let (Some(bound), Some(broken)) = (bound, broken.last_mut()) {
            *broken += u64::from(!within(range_diversity(&histogram, &sensitive), bound));
        }
        from = until;
    }
    Ok(())
}

fn is_diverse(rule: &LDiversity, histogram: &[(u32, u32)]) -> bool {
    match rule.kind {
        Diversity::Distinct => histogram.len() as f64 >= rule.l,
        Diversity::Entropy => within(rule.l.ln(), l_diversity::entropy(histogram)),
        Diversity::Recursive => l_diversity::recursive(histogram, rule.c.unwrap_or(1.0), rule.l as usize),
    }
}

/// Original rows that are compared one by one with what was published of them; of a larger table, an even share.
const COMPARED_ROWS: u64 = 1 << 20;

/// Compares a release with the rows it was made from: nothing but the quasi-identifiers has changed, nothing was lost
/// or added, and every published value covers an original one.
pub async fn verify_against_source(
    published: &DataFrame,
    source: &DataFrame,
    treatment: &Treatment,
    suppressed: u64,
) -> Result<Vec<Finding>> {
    let unchanged: Vec<String> = treatment
        .input
        .fields()
        .iter()
        .zip(&treatment.roles)
        .filter(|(_, role)| matches!(role, Role::Sensitive | Role::Kept))
        .map(|(field, _)| field.name().clone())
        .collect();
    let mut findings = Vec::new();
    let before = content(source, &unchanged).await?;
    let after = content(published, &unchanged).await?;
    let missing: u64 = before.iter().map(|(row, count)| count.saturating_sub(*after.get(row).unwrap_or(&0))).sum();
    let invented: u64 = after.iter().map(|(row, count)| count.saturating_sub(*before.get(row).unwrap_or(&0))).sum();
    if missing > suppressed {
        let lost = missing - suppressed;
        findings.push(Finding::new("truthful", lost, format!("{lost} rows of the source were lost or changed")));
    }
    if invented > 0 {
        let message = format!("{invented} published rows are not in the source as they stand");
        findings.push(Finding::new("truthful", invented, message));
    }
    let total: u64 = before.values().sum();
    let share = total.div_ceil(COMPARED_ROWS).max(1);
    let outside = uncovered(published, source, treatment, &unchanged, share).await?;
    if outside > 0 {
        let message = format!("{outside} published rows do not cover the values they were made from");
        findings.push(Finding::new("truthful", outside, message));
    }
    Ok(findings)
}

type Key = (u64, u64);

/// How often each combination of unchanged values occurs.
async fn content(rows: &DataFrame, columns: &[String]) -> Result<HashMap<Key, u64>> {
    let counted = rows.clone().aggregate(fingerprint(columns), vec![count(lit(1)).alias("size")])?;
    let mut content = HashMap::new();
    for batch in counted.collect().await? {
        let sizes = batch.column(2).as_primitive::<Int64Type>();
        (0..batch.num_rows()).for_each(|row| _ = content.insert(class(&batch, row), sizes.value(row) as u64));
    }
    Ok(content)
}

/// Published rows of which no source row with the same unchanged values is covered, among every `share`-th row.
async fn uncovered(
    published: &DataFrame,
    source: &DataFrame,
    treatment: &Treatment,
    unchanged: &[String],
    share: u64,
) -> Result<u64> {
    let chosen = |rows: &DataFrame, columns: Vec<String>| -> Result<DataFrame> {
        let mut wanted = fingerprint(unchanged);
        wanted.extend(columns.iter().map(ident));
        Ok(rows.clone().select(wanted)?.filter((ident("class_a") % lit(share)).eq(lit(0_u64)))?)
    };
    // Equal originals with equal unchanged values are kept once, with their number.
    let names: Vec<String> = treatment.quasi.iter().map(|quasi| quasi.name.clone()).collect();
    let mut keys = vec![ident("class_a"), ident("class_b")];
    keys.extend(names.iter().map(ident));
    let distinct = chosen(source, names)?.aggregate(keys, vec![count(lit(1)).alias("size")])?;
    let mut originals: Vec<Vec<Original>> = Vec::new();
    let mut at: HashMap<Key, Vec<(u32, u32, u64)>> = HashMap::new();
    for (number, batch) in distinct.collect().await?.iter().enumerate() {
        let sizes = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            at.entry(class(batch, row)).or_default().push((number as u32, row as u32, sizes.value(row) as u64));
        }
        let columns = treatment.quasi.iter().zip(&batch.columns()[2..]);
        originals.push(columns.map(|(quasi, column)| Original::read(quasi, column)).collect::<Result<_>>()?);
    }
    // Of published rows with equal unchanged values, a class of n rows must cover n originals.
    let class_columns = treatment.class_columns();
    let mut keys = vec![ident("class_a"), ident("class_b")];
    keys.extend(class_columns.iter().map(ident));
    let classes = chosen(published, class_columns)?.aggregate(keys, vec![count(lit(1)).alias("size")])?;
    let mut outside = 0;
    let mut stream = classes.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let sizes = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        let mut columns = &batch.columns()[2..];
        let mut values = Vec::new();
        for quasi in &treatment.quasi {
            let (mine, rest) = columns.split_at(published_fields(quasi).len());
            values.push(Published::read(quasi, mine)?);
            columns = rest;
        }
        for row in 0..batch.num_rows() {
            let mut wanted = sizes.value(row) as u64;
            for (number, other, rows) in at.get(&class(&batch, row)).map_or(&[][..], Vec::as_slice) {
                let original = originals[*number as usize].iter();
                if values.iter().zip(original).all(|(value, original)| value.covers(row, original, *other as usize)) {
                    wanted = wanted.saturating_sub(*rows);
                    if wanted == 0 {
                        break;
                    }
                }
            }
            outside += wanted;
        }
    }
    Ok(outside)
}

/// Two independent 64-bit hashes of some columns: together they tell combinations of values apart.
pub(super) fn fingerprint(columns: &[String]) -> Vec<Expr> {
    let part = |name: &str, seed: u64| {
        let function = ScalarUDF::from(Fingerprint { signature: Signature::variadic_any(Volatility::Immutable), seed });
        // Without columns, all rows are alike.
        let columns = if columns.is_empty() { vec![lit(0)] } else { columns.iter().map(ident).collect() };
        function.call(columns).alias(name)
    };
    vec![part("class_a", 0x7472_7565), part("class_b", 0x6661_6c73)]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Fingerprint {
    signature: Signature,
    seed: u64,
}

impl ScalarUDFImpl for Fingerprint {
    fn name(&self) -> &str {
        "fingerprint"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = args
            .args
            .iter()
            .map(|value| value.to_array(args.number_rows))
            .collect::<DataFusionResult<Vec<ArrayRef>>>()?;
        let hashes = row_hashes(&columns, args.number_rows, self.seed)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(hashes))))
    }
}
