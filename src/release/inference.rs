//! What a reader who knows the dependencies makes of a release: the chase over the published files, and what follows.
//!
//! The files are streamed once per round of the chase and once more to count classes. Rounds end when nothing more is
//! learnt, usually after two or three. Memory holds what is known of left sides, and is accounted for; the classes are
//! counted by an ordinary aggregate, which spills.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray, FixedSizeBinaryBuilder, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::runtime::JoinSet;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident,
};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::known::{known, shown};
use super::manifest::Inferred;
use super::verify::{Finding, class_sizes};
use crate::attack::chase::{Knowledge, Row};
use crate::domain::Attribute;
use crate::encode::row_hashes;
use crate::error::{Error, Result};
use crate::job::{Inference, Laid, QuasiColumn, Treatment, published_fields};
use crate::measure::Classes;

/// What the chase has found.
#[derive(Debug)]
pub(super) struct Chased {
    /// Classes as the reader sees them in the end.
    pub classes: Classes,
    /// Quasi-identifiers that can tell rows of a class apart, by their place in the treatment.
    pub splitting: Vec<usize>,
}

/// Chases the published rows; none when no dependency says anything of a quasi-identifier.
pub(super) async fn chase(rows: &DataFrame, treatment: &Treatment) -> Result<Option<Chased>> {
    let reader = Arc::new(Reader::new(treatment));
    let mut knowledge = Arc::new(Knowledge::new(&reader.laid.list));
    if !reader.laid.list.iter().any(|dependency| dependency.to.iter().any(|to| matches!(to, Attribute::Quasi(_)))) {
        return Ok(None);
    }
    let columns: Vec<Expr> = reader.columns().iter().map(ident).collect();
    let rows = rows.clone().select(columns.clone())?;
    loop {
        let next = gather(&rows, &reader, &knowledge).await?;
        if next == *knowledge {
            break;
        }
        knowledge = Arc::new(next);
    }
    let splitting = knowledge.splitting();
    let class =
        ScalarUDF::from(ChasedClass { signature: Signature::variadic_any(Volatility::Immutable), reader, knowledge });
    let classes = class_sizes(&rows, vec![class.call(columns).alias("class")], &|_| {}).await?;
    Ok(Some(Chased { classes, splitting }))
}

/// One round: what the rows tell, given what is known.
async fn gather(rows: &DataFrame, reader: &Arc<Reader>, known: &Arc<Knowledge>) -> Result<Knowledge> {
    let context = Arc::new(rows.task_ctx());
    let mut tasks = JoinSet::new();
    for (partition, mut stream) in rows.clone().execute_stream_partitioned().await?.into_iter().enumerate() {
        let (reader, known) = (Arc::clone(reader), Arc::clone(known));
        let reservation = MemoryConsumer::new(format!("Chase[{partition}]")).register(context.memory_pool());
        tasks.spawn(async move {
            let mut next = known.emptied();
            while let Some(batch) = stream.next().await {
                for published in reader.read(&batch?)? {
                    let mut refined = published.clone();
                    known.refine(&mut refined);
                    next.learn(&published, &refined);
                }
                reservation.try_resize(next.size())?;
            }
            Ok::<_, Error>((next, reservation))
        });
    }
    let mut whole = known.emptied();
    let mut held = Vec::new();
    while let Some(part) = tasks.join_next().await {
        let failed = |error| Error::Internal(format!("a task of the chase failed: {error}"));
        let (part, reservation) = part.map_err(failed)??;
        whole.merge(part);
        held.push(reservation);
    }
    whole.distil();
    Ok(whole)
}

/// Reads published rows as the chase sees them.
#[derive(Debug)]
struct Reader {
    laid: Laid,
    /// Every quasi-identifier, and whether a dependency names it.
    quasi: Vec<(QuasiColumn, bool)>,
}

impl Reader {
    fn new(treatment: &Treatment) -> Self {
        let laid = treatment.dependencies();
        let named = |axis: usize| laid.list.iter().any(|dependency| dependency.quasi().contains(&axis));
        let quasi = treatment.quasi.iter().enumerate().map(|(axis, quasi)| (quasi.clone(), named(axis))).collect();
        Self { quasi, laid }
    }

    /// The columns that are read: those of the classes, then the plain ones.
    fn columns(&self) -> Vec<String> {
        let classes = self.quasi.iter().flat_map(|(quasi, _)| published_fields(quasi));
        let classes = classes.map(|field| field.name().clone());
        classes.chain(self.laid.plain.iter().map(|(_, name)| name.clone())).collect()
    }

    fn read(&self, batch: &RecordBatch) -> Result<Vec<Row>> {
        self.read_columns(batch.columns(), batch.num_rows())
    }

    fn read_columns(&self, mut columns: &[ArrayRef], rows: usize) -> Result<Vec<Row>> {
        let mut read = vec![Row { known: Vec::with_capacity(self.quasi.len()), plain: Vec::new() }; rows];
        for (quasi, named) in &self.quasi {
            let (mine, others) = columns.split_at(published_fields(quasi).len());
            columns = others;
            let values = if *named { known(quasi, mine)? } else { shown(mine, rows)? };
            read.iter_mut().zip(values).for_each(|(row, value)| row.known.push(value));
        }
        for column in columns {
            let hashes = row_hashes(std::slice::from_ref(column), rows, 0)?;
            read.iter_mut().zip(hashes).for_each(|(row, hash)| row.plain.push(hash));
        }
        Ok(read)
    }
}

/// The class of a row after the chase.
#[derive(Debug)]
struct ChasedClass {
    signature: Signature,
    reader: Arc<Reader>,
    knowledge: Arc<Knowledge>,
}

impl PartialEq for ChasedClass {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reader, &other.reader) && Arc::ptr_eq(&self.knowledge, &other.knowledge)
    }
}

impl Eq for ChasedClass {}

impl Hash for ChasedClass {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.reader).hash(state);
    }
}

impl ScalarUDFImpl for ChasedClass {
    fn name(&self) -> &str {
        "chased_class"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::FixedSizeBinary(16))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let arrays = args.args.iter().map(|value| value.to_array(args.number_rows));
        let columns = arrays.collect::<DataFusionResult<Vec<ArrayRef>>>()?;
        let rows = self.reader.read_columns(&columns, args.number_rows).map_err(Error::into_datafusion)?;
        let mut classes = FixedSizeBinaryBuilder::with_capacity(rows.len(), 16);
        for mut row in rows {
            self.knowledge.refine(&mut row);
            classes.append_value(Knowledge::class(&row).to_le_bytes())?;
        }
        let classes: FixedSizeBinaryArray = classes.finish();
        Ok(ColumnarValue::Array(Arc::new(classes)))
    }
}

/// What becomes of files that have been written.
#[derive(Debug)]
pub(super) enum Verdict {
    /// They may be published, as far as the dependencies are concerned.
    Publish(Option<Inferred>),
    /// They may not; those that this treatment makes instead are to be looked at.
    Withhold(Box<Treatment>),
}

/// Chases rows that are about to be published.
///
/// Repair withholds the columns on the right of dependencies whose left side can differ within a class, as far as the
/// chase knows more of them than the release says. Nothing can be learnt of them then: every row says nothing. More may
/// come to light with other groups, so this is repeated; it ends at the latest when all such columns are withheld.
pub(super) async fn weigh(rows: &DataFrame, treatment: &Treatment) -> Result<Verdict> {
    let Some(chased) = chase(rows, treatment).await? else { return Ok(Verdict::Publish(None)) };
    let found = report(&chased, treatment);
    if found.small_classes > 0 && treatment.policy.privacy.inference == Inference::Repair {
        let fresh = |column: &usize| !treatment.quasi[*column].withheld;
        let columns: Vec<usize> = chased.splitting.iter().copied().filter(fresh).collect();
        if !columns.is_empty() {
            return Ok(Verdict::Withhold(Box::new(withhold(treatment, &columns)?)));
        }
    }
    Finding::refuse(judge(&found, treatment).as_slice())?;
    Ok(Verdict::Publish(Some(found)))
}

/// What the manifest says of the chase.
pub(super) fn report(chased: &Chased, treatment: &Treatment) -> Inferred {
    let small = |(size, _): &(u64, u64)| *size < u64::from(treatment.policy.privacy.k);
    let withheld = treatment.quasi.iter().filter(|quasi| quasi.withheld);
    Inferred {
        smallest: chased.classes.smallest().unwrap_or(0),
        classes: chased.classes.classes(),
        small_classes: chased.classes.histogram().filter(small).map(|(_, classes)| classes).sum(),
        exposed_rows: chased.classes.histogram().filter(small).map(|(size, classes)| size * classes).sum(),
        withheld: withheld.map(|quasi| quasi.name.clone()).collect(),
    }
}

/// What follows for a release that has been published or is about to be: a finding, or a warning in the log.
pub(super) fn judge(found: &Inferred, treatment: &Treatment) -> Option<Finding> {
    if found.small_classes == 0 {
        return None;
    }
    let message = format!(
        "to a reader who knows the dependencies, {} classes with {} rows hold fewer than k = {}",
        found.small_classes, found.exposed_rows, treatment.policy.privacy.k
    );
    if treatment.policy.privacy.inference == Inference::Warn {
        tracing::warn!("inference: {message}; privacy.inference = \"repair\" withholds what gives them away");
        return None;
    }
    Some(Finding { rule: "inference".into(), count: found.small_classes, message })
}

/// The treatment that also withholds some quasi-identifiers.
fn withhold(treatment: &Treatment, columns: &[usize]) -> Result<Treatment> {
    let policy = treatment.policy.withholding(columns.iter().map(|&column| treatment.quasi[column].name.as_str()))?;
    Treatment::resolve(Arc::new(policy), Arc::clone(&treatment.input))
}
