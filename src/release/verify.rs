//! Checks what was written, by reading it back: ordinary queries over the published files that share nothing with the
//! code that made the groups. What is found names the rule and a count, never a value.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema, UInt64Type};
use datafusion::common::HashMap;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::options::ParquetReadOptions;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident, lit,
};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;

use super::anatomy::Tables;
use super::cover::{Original, Published};
use super::judge::{Look, judge};
use super::location::Location;
use super::manifest::{ClassCounts, Manifest, OutputFile};
use super::source::partitions::Partitions;
use super::source::table::FilesTable;
use super::write::Written;
use crate::encode::{CLASS_SEEDS, SensitiveDomain, row_hashes};
use crate::error::{Error, Result};
use crate::job::{Form, Role, Treatment, published_fields};
use crate::measure::Classes;
use crate::measure::people::Digest;
use crate::permutation::Slices;
use crate::privacy::Figures;

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
    pub(super) fn new(rule: impl Into<String>, count: u64, message: impl Into<String>) -> Self {
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

/// Names of the folders of column values that a published file lies in below the folder of its release.
pub(super) fn folders(path: &str) -> Vec<String> {
    let mut names: Vec<String> = path.split('/').skip(2).map(str::to_owned).collect();
    names.pop();
    names.retain(|name| name.contains('='));
    names
}

/// Where the plan that reads all rows back is shown before it runs, for those who watch it.
pub(crate) type Watch<'a> = dyn Fn(&Arc<dyn ExecutionPlan>) + Send + Sync + 'a;

/// A table over published files. Columns that are folder names have the type of `published`, where it is known.
pub(super) async fn open(
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    published: Option<&Schema>,
) -> Result<DataFrame> {
    context.register_object_store(&sink.root, Arc::clone(&sink.store));
    let below: Vec<Vec<String>> = files.iter().map(|file| folders(&file.path)).collect();
    if below.iter().any(|folders| !folders.is_empty()) {
        let declared = |column: &str| Some(published?.field_with_name(column).ok()?.data_type().clone());
        let partitions = Partitions::find(&below, |file| files[file].path.clone(), declared)?;
        return open_folders(context, sink, files, partitions).await;
    }
    let urls: Vec<String> = files.iter().map(|file| sink.url(&sink.at(&file.path))).collect();
    let frame = context.read_parquet(urls, ParquetReadOptions::default()).await;
    frame.map_err(|error| {
        let what = "a published file cannot be read back";
        match Error::from(error) {
            Error::Input(text) => Error::Privacy(format!("{what}: {text}")),
            other => other.context(what),
        }
    })
}

async fn open_folders(
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    partitions: Partitions,
) -> Result<DataFrame> {
    let unreadable = |error: Error| Error::Privacy(format!("a published file cannot be read back: {error}"));
    let mut found = Vec::new();
    for file in files {
        found.push(sink.store.head(&sink.at(&file.path)).await.map_err(|error| unreadable(error.into()))?);
    }
    let format = Arc::new(ParquetFormat::default());
    let schema = format.infer_schema(&context.state(), &sink.store, &found).await;
    let schema = schema.map_err(|error| unreadable(error.into()))?;
    let table = FilesTable::new(ObjectStoreUrl::parse(&sink.root)?, format, schema, found, partitions);
    Ok(context.read_table(Arc::new(table))?)
}

/// The rows of a release by which the rules are judged, and whether the tables of one that has two fit together.
pub(crate) async fn readable(
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    form: Form,
    published: Option<&Schema>,
) -> Result<(DataFrame, Vec<Finding>)> {
    match Tables::of(context, sink, files, form).await? {
        Some(tables) => Ok((tables.rows()?, tables.check_links().await?)),
        None => Ok((open(context, sink, files, published).await?, Vec::new())),
    }
}

/// A table over files that have just been written.
pub(super) async fn open_written(
    context: &SessionContext,
    sink: &Location,
    data: &str,
    written: &[Written],
    treatment: &Treatment,
) -> Result<DataFrame> {
    let file = |file: &Written| {
        let path = released_path(sink, data, file);
        OutputFile { path, rows: file.rows, size: file.size, blake3: String::new() }
    };
    let files: Vec<OutputFile> = written.iter().map(file).collect();
    open(context, sink, &files, Some(&treatment.output)).await
}

/// Path below the sink of a file that was written to the folder `data`.
pub(super) fn released_path(sink: &Location, data: &str, file: &Written) -> String {
    let folder = sink.at(data);
    let below = file.path.strip_prefix(folder.as_ref()).unwrap_or(&file.path);
    format!("{data}{below}")
}

/// What was found in the published rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Sizes of the classes in rows.
    pub(super) classes: Classes,
    /// The rules that are broken.
    pub(super) findings: Vec<Finding>,
    /// How well each sensitive column is protected.
    pub(super) figures: BTreeMap<String, Figures>,
}

/// Checks class sizes and all rules that can be read from the published rows.
pub(super) async fn verify_rows(
    rows: &DataFrame,
    treatment: &Treatment,
    slices: &Slices,
    domains: Option<&[SensitiveDomain]>,
    expected_rows: u64,
    look: Look,
    watch: &Watch<'_>,
) -> Result<Found> {
    let k = treatment.policy.privacy.k;
    let judged = judge(rows, treatment, slices, domains, look, watch).await?;
    let classes = match judged.classes {
        Some(classes) => classes,
        None => count_classes(rows, &treatment.class_columns(), watch).await?,
    };
    let mut findings = Vec::new();
    findings.extend(row_count(classes.rows(), expected_rows));
    findings.extend(small_classes(&classes, k, "rows"));
    let published = treatment.person.filter(|&person| treatment.roles[person] != Role::Identifier);
    if let Some(person) = published {
        let people = count_people(rows, treatment, treatment.input.field(person).name()).await?;
        findings.extend(small_classes(&people, k, "people"));
    }
    findings.extend(judged.findings);
    Ok(Found { classes, findings, figures: judged.figures })
}

/// Checks that the published classes are those in which people were counted, and that there were enough in each.
pub(super) async fn verify_people(
    rows: &DataFrame,
    class_columns: &[String],
    counted: &ClassCounts,
    digest: &str,
    k: u32,
) -> Result<Vec<Finding>> {
    let mut found = Digest::default();
    let mut stream = rows.clone().select(fingerprint(class_columns))?.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        (0..batch.num_rows()).for_each(|row| found.add(class(&batch, row)));
    }
    let mut findings = Vec::new();
    if found.to_string() != digest {
        let message = "the published classes are not those in which people were counted";
        findings.push(Finding::new("person", 1, message));
    }
    let mut classes = Classes::default();
    counted.by_size.iter().for_each(|(&size, &number)| classes.add(size, number));
    findings.extend(small_classes(&classes, k, "people"));
    Ok(findings)
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
    let mut changed = Vec::new();
    for file in &manifest.files {
        match checksum(sink, &file.path).await? {
            Some(found) => {
                changed.extend((found != file.blake3).then(|| file.path.clone()));
                present.push(file.clone());
            }
            None => findings.push(Finding::new("files", 1, format!("`{}` is missing", file.path))),
        }
    }
    if let Some(first) = changed.first() {
        let (number, of) = (changed.len(), manifest.files.len());
        let message =
            format!("{number} of {of} files are not the ones that were released, `{first}` the first of them");
        findings.push(Finding::new("files", number as u64, message));
    }
    if present.is_empty() {
        return Ok((Classes::default(), findings));
    }
    match count_release(context, sink, manifest, &present).await {
        Ok((classes, found)) => {
            findings.extend(found);
            Ok((classes, findings))
        }
        // What has been changed need not be readable any more.
        Err(Error::Input(_) | Error::Privacy(_)) if !changed.is_empty() => Ok((Classes::default(), findings)),
        Err(error) => Err(error),
    }
}

/// The classes of a release, and what its rows break.
async fn count_release(
    context: &SessionContext,
    sink: &Location,
    manifest: &Manifest,
    present: &[OutputFile],
) -> Result<(Classes, Vec<Finding>)> {
    let mut findings = Vec::new();
    let (rows, links) = readable(context, sink, present, manifest.form(), None).await?;
    findings.extend(links);
    let classes = count_classes(&rows, &manifest.class_columns, &|_| {}).await?;
    findings.extend(row_count(classes.rows(), manifest.rows));
    findings.extend(small_classes(&classes, manifest.k, "rows"));
    if let Some(people) = &manifest.verification.people {
        findings
            .extend(verify_people(&rows, &manifest.class_columns, &people.classes, &people.digest, manifest.k).await?);
    }
    Ok((classes, findings))
}

fn row_count(found: u64, expected: u64) -> Option<Finding> {
    let off = found.abs_diff(expected);
    (off > 0).then(|| Finding::new("rows", off, format!("{found} rows are published, {expected} should be")))
}

fn small_classes(classes: &Classes, k: u32, what: &str) -> Option<Finding> {
    let small: u64 = classes.histogram().filter(|(size, _)| *size < u64::from(k)).map(|(_, count)| count).sum();
    (small > 0).then(|| Finding::new("k", small, format!("{small} classes hold fewer than k = {k} {what}")))
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
pub(crate) async fn count_classes(rows: &DataFrame, columns: &[String], watch: &Watch<'_>) -> Result<Classes> {
    class_sizes(rows, fingerprint(columns), watch).await
}

/// Sizes of the classes of rows with equal keys.
pub(super) async fn class_sizes(rows: &DataFrame, keys: Vec<Expr>, watch: &Watch<'_>) -> Result<Classes> {
    let sizes = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes")])?;
    read_sizes(sizes, watch).await
}

/// Rows of (size, number of classes of that size).
async fn read_sizes(sizes: DataFrame, watch: &Watch<'_>) -> Result<Classes> {
    let context = Arc::new(sizes.task_ctx());
    let plan = sizes.create_physical_plan().await?;
    watch(&plan);
    let mut classes = Classes::default();
    for batch in collect(plan, context).await? {
        let (size, number) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        (0..batch.num_rows()).for_each(|row| classes.add(size.value(row) as u64, number.value(row) as u64));
    }
    Ok(classes)
}

/// Sizes of the classes in people, when whose a row is is published.
async fn count_people(rows: &DataFrame, treatment: &Treatment, person: &str) -> Result<Classes> {
    let mut keys = fingerprint(&treatment.class_columns());
    keys.push(ident(person).alias("person"));
    let sizes = rows
        .clone()
        .aggregate(keys, vec![])?
        .aggregate(vec![ident("class_a"), ident("class_b")], vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes")])?;
    read_sizes(sizes, &|_| {}).await
}

/// The class of a row whose first two columns are its fingerprint.
pub(super) fn class(batch: &RecordBatch, row: usize) -> (u64, u64) {
    let part = |index: usize| batch.column(index).as_primitive::<UInt64Type>().value(row);
    (part(0), part(1))
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
pub(super) async fn content(rows: &DataFrame, columns: &[String]) -> Result<HashMap<Key, u64>> {
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
    let distinct = chosen(source, names)?.aggregate(keys, vec![count(lit(1)).alias("__rows")])?;
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
    let classes = chosen(published, class_columns)?.aggregate(keys, vec![count(lit(1)).alias("__rows")])?;
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
pub(crate) fn fingerprint(columns: &[String]) -> Vec<Expr> {
    let part = |name: &str, seed: u64| row_hash(columns.iter().map(ident).collect(), seed).alias(name);
    let [a, b] = CLASS_SEEDS;
    vec![part("class_a", a), part("class_b", b)]
}

/// A seeded hash of some columns. Without columns, all rows are alike.
pub(super) fn row_hash(columns: Vec<Expr>, seed: u64) -> Expr {
    let function = ScalarUDF::from(Fingerprint { signature: Signature::variadic_any(Volatility::Immutable), seed });
    function.call(if columns.is_empty() { vec![lit(0)] } else { columns })
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
