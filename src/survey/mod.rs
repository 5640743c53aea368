//! Pass 1: what the table looks like.
//!
//! One scan over the quasi-identifiers and sensitive columns collects, per partition, [`ColumnStats`] of every column and a
//! sample of rows; both merge in any order to the same result. From them come the domains, the tuned parameters and
//! the tree of cells. None of it decides privacy: a wrong survey makes the release worse, never less private.

mod borders;
mod choices;
mod collector;
pub(crate) mod file;
mod guard;
mod members;
mod sample;
mod sketch;
mod slices;
#[cfg(feature = "cluster")]
mod state;
pub(crate) mod window;
mod wire;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};

pub(crate) use crate::encode::ColumnStats;
pub(crate) use choices::{build_method, build_rules};
pub(crate) use sample::Sample;
#[cfg(feature = "cluster")]
pub(crate) use sample::first_ceiling;
#[cfg(feature = "cluster")]
pub(crate) use state::{Merged, merge_pieces};
pub(crate) use wire::SurveyMessage;

use crate::binding::BoundPolicy;
use crate::encode::{ColumnEncoder, SensitiveDomain, encode_sensitive, to_ordinals, without_nulls};
use crate::error::{Error, Result};
use crate::grouping::cancel::{CancelOnDrop, run_cancellable};
pub(crate) use crate::grouping::entry::Tuned;
use crate::grouping::split::CellTree;
use crate::model::Table;
use crate::plan::{join_parts, read_rows};
use crate::policy::{Constant, Nulls, Unknown};
use crate::secret::Purpose;
use borders::round_borders;
use collector::{Collector, SensitiveCollector};
use sample::Sampler;

/// Rows of a cell when nothing asks for smaller ones: so many that its borders cost no measurable quality.
pub(crate) const CELL_ROWS: usize = 1 << 17;

/// What pass 1 has found. Small; no row of the input is in it, but values of single columns are.
#[derive(Clone)]
pub(crate) struct Survey {
    /// Rows of the table, and of the public table if there is one.
    pub rows: u64,
    /// How many of them are of the source, when the others are public.
    pub members: Option<u64>,
    /// Rows of the source beside them that are left out, because of nulls.
    pub dropped: u64,
    /// Statistics of every quasi-identifier.
    pub stats: Vec<ColumnStats>,
    /// Domain of every sensitive column.
    pub sensitive: Vec<SensitiveDomain>,
    /// Which rows belong together in a cell.
    pub tree: CellTree,
    /// Parameters that the job left to us.
    pub tuned: Tuned,
    /// How often each code of every quasi-identifier occurs in the sample, when the policy has dependencies.
    pub frequencies: Vec<Vec<u64>>,
    /// Columns that depend on each other, by name, when the policy asks for slices without naming them.
    pub slices: Vec<Vec<String>>,
}

impl Survey {
    /// Rows of the source, those that are left out among them.
    pub(crate) fn source_rows(&self) -> u64 {
        self.members.unwrap_or(self.rows) + self.dropped
    }
}

/// Plans are logged in their debug form, and values of the input must not be.
impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey")
            .field("rows", &self.rows)
            .field("cells", &self.tree.cell_count())
            .finish_non_exhaustive()
    }
}

/// Surveys the output of a plan whose columns are the quasi-identifiers, then the sensitive columns.
pub(crate) async fn collect_survey(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    bound_policy: Arc<BoundPolicy>,
    cell_rows: usize,
) -> Result<Survey> {
    let streams = execute_stream_partitioned(Arc::clone(&plan), Arc::clone(&context))?;
    let parts = streams.into_iter().enumerate().map(|(partition, stream)| {
        let bound_policy = Arc::clone(&bound_policy);
        let reservation = MemoryConsumer::new(format!("Survey[{partition}]")).register(context.memory_pool());
        async move {
            let surveyor = Surveyor::new(&bound_policy, stream.schema());
            surveyor.add_all(stream, &bound_policy, &reservation).await
        }
    });
    let mut whole = Surveyor::new(&bound_policy, plan.schema());
    join_parts("a task of the survey", parts.collect::<Vec<_>>(), |part| whole.merge(part)).await?;
    whole.finish_on_thread(bound_policy, cell_rows).await
}

/// Surveys one partition of such a plan, as pieces for [`merge_pieces`]. The sample is taken of rows below a hash: without
/// it, every small partition would send all of its rows.
#[cfg(feature = "cluster")]
pub(crate) async fn survey_partition(
    rows: SendableRecordBatchStream,
    bound_policy: &BoundPolicy,
    ceiling: u64,
    reservation: &MemoryReservation,
) -> Result<Vec<Vec<u8>>> {
    let mut surveyor = Surveyor::new(bound_policy, rows.schema());
    surveyor.sampler = surveyor.sampler.below_ceiling(ceiling);
    surveyor.add_all(rows, bound_policy, reservation).await?.into_pieces()
}

/// What one partition has contributed so far.
struct Surveyor {
    #[cfg(feature = "cluster")]
    schema: SchemaRef,
    rows: u64,
    members: u64,
    dropped: u64,
    quasi: Vec<Collector>,
    sensitive: Vec<SensitiveCollector>,
    sampler: Sampler,
}

impl Surveyor {
    fn new(bound_policy: &BoundPolicy, schema: SchemaRef) -> Self {
        Self {
            #[cfg(feature = "cluster")]
            schema: Arc::clone(&schema),
            rows: 0,
            members: 0,
            dropped: 0,
            quasi: bound_policy.quasi.iter().map(Collector::new).collect(),
            sensitive: bound_policy.sensitive.iter().map(SensitiveCollector::new).collect(),
            sampler: Sampler::new(schema, bound_policy.key.random_number(Purpose::Sample, 0)),
        }
    }

    /// Adds all rows of a stream.
    async fn add_all(
        mut self,
        mut rows: SendableRecordBatchStream,
        bound_policy: &BoundPolicy,
        reservation: &MemoryReservation,
    ) -> Result<Self> {
        while let Some(batch) = read_rows(&mut rows).await? {
            self.add_batch(bound_policy, &batch)?;
            reservation.try_resize(self.sampler.held_bytes())?;
        }
        Ok(self)
    }

    fn add_batch(&mut self, bound_policy: &BoundPolicy, batch: &RecordBatch) -> Result<()> {
        let quasi = bound_policy.quasi.iter().zip(batch.columns());
        let dropping = quasi.filter(|(column, _)| column.nulls == Nulls::Drop).map(|(_, array)| array);
        let of_source = bound_policy.member.and(batch.columns().last());
        let (batch, dropped) = without_nulls(batch, dropping, of_source)?;
        let batch = &batch;
        self.dropped += dropped;
        self.rows += batch.num_rows() as u64;
        let quasi = &batch.columns()[..bound_policy.quasi.len()];
        for ((collector, column), array) in self.quasi.iter_mut().zip(&bound_policy.quasi).zip(quasi) {
            collector.add_values(column, array)?;
        }
        // Public rows have no sensitive values.
        let of_source = members::member_rows(bound_policy, batch)?;
        self.members += of_source.num_rows() as u64;
        let sensitive = &of_source.columns()[bound_policy.quasi.len()..];
        for ((collector, column), array) in self.sensitive.iter_mut().zip(&bound_policy.sensitive).zip(sensitive) {
            collector.add_values(column, array)?;
        }
        self.sampler.add_batch(batch)
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.rows += other.rows;
        self.members += other.members;
        self.dropped += other.dropped;
        self.quasi.iter_mut().zip(other.quasi).for_each(|(mine, theirs)| mine.merge(theirs));
        self.sensitive.iter_mut().zip(other.sensitive).for_each(|(mine, theirs)| mine.merge(theirs));
        self.sampler.merge(other.sampler)
    }

    /// Finishes on a thread of its own, which ends when nobody waits any more: trying parameters takes its time.
    async fn finish_on_thread(self, bound_policy: Arc<BoundPolicy>, cell_rows: usize) -> Result<Survey> {
        let waiting = CancelOnDrop::default();
        let flag = waiting.flag();
        let work = move || run_cancellable(flag, || self.finish(&bound_policy, cell_rows));
        let done = SpawnedTask::spawn_blocking(work).await;
        drop(waiting);
        done.map_err(|error| Error::internal(format!("the survey failed: {error}")))?
    }

    fn finish(self, bound_policy: &BoundPolicy, cell_rows: usize) -> Result<Survey> {
        let mut stats: Vec<ColumnStats> = self.quasi.into_iter().map(Collector::finish).collect();
        ensure_usable(self.rows, self.dropped, &stats, bound_policy)?;
        let members = bound_policy.member.map(|_| self.members);
        members::ensure_feasible(self.rows, members, bound_policy)?;
        let collectors = self.sensitive.into_iter().zip(&bound_policy.sensitive);
        let sensitive =
            collectors.map(|(collector, column)| collector.finish(column)).collect::<Result<Vec<SensitiveDomain>>>()?;
        let sample = self.sampler.finish()?;
        let columns = bound_policy.quasi.iter().zip(&mut stats).zip(sample.rows.columns());
        for (at, ((column, stats), array)) in columns.enumerate() {
            if let (Some([finest, ..]), ColumnStats::Line { quantiles, .. }) = (column.quantiles.as_deref(), stats) {
                let ascending = even_quantiles(to_ordinals(array)?, &sample.counts);
                let mut rng = bound_policy.key.rng(Purpose::QuantileBorders, at as u64);
                *quantiles = round_borders(&ascending, *finest, &mut rng);
            }
        }
        let encoders = bound_policy
            .quasi
            .iter()
            .zip(&stats)
            .map(|(column, stats)| ColumnEncoder::new(column, stats))
            .collect::<Result<Vec<_>>>()?;
        let table = encode_sample(&encoders, &sample.rows)?;
        let weights: Vec<f64> = sample.counts.iter().map(|&count| count as f64).collect();
        let share = cell_rows as f64 / self.rows.max(1) as f64;
        let tree = match choices::presence_bounds(bound_policy) {
            Some(presence) => {
                let flags = members::member_flags(&sample.rows);
                let allowed = members::allowed_cuts(&table, &weights, &flags, &presence.bounds);
                CellTree::build_where(&table, &weights, share, &allowed)
            }
            None => {
                let rules = choices::build_rules(bound_policy, &bound_policy.resolve_slices(&[]));
                if rules.others.is_empty() || share >= 1.0 {
                    CellTree::build(&table, &weights, share)
                } else {
                    let guarded = with_sensitive(table.clone(), bound_policy, &sensitive, &sample.rows)?;
                    let allowed = guard::allowed_cuts(&guarded, &weights, &rules);
                    CellTree::build_where(&table, &weights, share, &allowed)
                }
            }
        };
        ensure_single_cell(&tree, self.rows, cell_rows, bound_policy)?;
        let tuned = tune_method(bound_policy, &encoders, &sensitive, &sample)?;
        let counts = if bound_policy.policy.dependencies.is_empty() {
            Vec::new()
        } else {
            code_frequencies(&table, &sample.counts)
        };
        let slices = slices::find_slices(bound_policy, &sample)?;
        let (rows, dropped) = (self.rows, self.dropped);
        Ok(Survey { rows, members, dropped, stats, sensitive, tree, tuned, frequencies: counts, slices })
    }
}

/// Fails on tables that cannot be anonymised, or whose columns do not fit the job.
fn ensure_usable(rows: u64, dropped: u64, stats: &[ColumnStats], bound_policy: &BoundPolicy) -> Result<()> {
    let k = bound_policy.policy.privacy.k;
    if rows == 0 && dropped > 0 {
        return Err(Error::input(format!(
            "all {dropped} rows hold a null in a quasi-identifier with nulls = \"drop\"; fix the source, or set \
             nulls = \"category\""
        )));
    }
    if rows == 0 {
        return Err(Error::input("the input holds no rows"));
    }
    if rows < u64::from(k) {
        return Err(Error::privacy(format!(
            "the input holds {rows} rows, fewer than k = {k}; lower privacy.k or wait for more rows"
        )));
    }
    let mut problems = Vec::new();
    for (column, stats) in bound_policy.quasi.iter().zip(stats) {
        let name = &column.name;
        let (nulls, constant, unknown) = match stats {
            ColumnStats::Line { nulls, varied, .. } => (*nulls, !varied, 0),
            ColumnStats::Leaves { unknown, nulls, varied } => (*nulls, !varied, *unknown),
            ColumnStats::Words { distinct, nulls, .. } => (*nulls, *distinct <= 1, 0),
        };
        if nulls > 0 && column.nulls == Nulls::Reject {
            problems.push(format!(
                "column `{name}`: {nulls} of {rows} rows{} hold no value, but its nulls are to be rejected; fill them, or \
                 set columns.{name}.nulls = \"drop\" to leave these rows out or \"category\" to publish them",
                if bound_policy.member.is_some() { " of the source and the public table" } else { "" }
            ));
        } else if nulls == rows && column.constant == Constant::Error {
            let empty = if column.data_type.is_floating() { "null or not a number" } else { "null" };
            problems.push(format!(
                "column `{name}`: every value is {empty}, so it cannot be a quasi-identifier; fix the source, or give it \
                 the role \"identifier\" to drop it"
            ));
        } else if unknown > 0 && column.unknown == Unknown::Error {
            problems.push(format!(
                "column `{name}`: {unknown} of {rows} rows hold a value that its hierarchy does not contain; add the \
                 missing leaves, or set columns.{name}.unknown = \"top\""
            ));
        } else if nulls == 0 && constant && column.constant == Constant::Error {
            problems.push(format!(
                "column `{name}`: every row holds the same value, so there is nothing to generalise; give it the role \
                 \"kept\", or set columns.{name}.constant = \"allow\""
            ));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::input(problems.join("\n"))) }
}

/// Fails if a method that must see all rows at once would see them cell by cell.
fn ensure_single_cell(tree: &CellTree, rows: u64, cell_rows: usize, bound_policy: &BoundPolicy) -> Result<()> {
    let method = bound_policy.policy.method.name;
    if !method.entry().whole || tree.cell_count() == 1 {
        return Ok(());
    }
    Err(Error::resources(format!(
        "method.name: `{}` must see all rows at once, but {rows} rows make {} cells of {cell_rows}; raise --cell-rows to \
         {rows} (and --memory-limit with it), or choose another method",
        method.as_str(),
        tree.cell_count()
    )))
}

/// Quantiles kept of a column: enough for ladders of hundreds of steps.
const QUANTILES: u64 = 1 << 12;

/// Evenly spaced quantiles of weighted values, ascending; NaN is left out.
fn even_quantiles(values: Vec<f64>, counts: &[u64]) -> Vec<f64> {
    let mut weighted: Vec<(f64, u64)> =
        values.into_iter().zip(counts.iter().copied()).filter(|(value, _)| !value.is_nan()).collect();
    weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = weighted.iter().map(|(_, count)| count).sum();
    let points = QUANTILES.min(total);
    let (mut quantiles, mut seen) = (Vec::new(), 0);
    for (value, count) in weighted {
        seen += count;
        while (quantiles.len() as u64) < points && quantiles.len() as u64 * total < seen * points {
            quantiles.push(value);
        }
    }
    quantiles
}

fn encode_sample(encoders: &[ColumnEncoder], rows: &RecordBatch) -> Result<Table> {
    let axes: Vec<_> = encoders.iter().map(|encoder| encoder.axis().clone()).collect();
    let width = axes.len();
    let mut codes = vec![0; rows.num_rows() * width];
    for (axis, (encoder, array)) in encoders.iter().zip(rows.columns()).enumerate() {
        encoder.encode_values(array, |row, code| codes[row * width + axis] = code)?;
    }
    Ok(Table::new(axes, codes))
}

/// How often each code occurs on every axis, in weighted rows.
fn code_frequencies(table: &Table, weights: &[u64]) -> Vec<Vec<u64>> {
    let mut frequencies = vec![Vec::new(); table.axes.len()];
    for (row, &weight) in (0..table.rows() as u32).zip(weights) {
        for (counts, &code) in frequencies.iter_mut().zip(table.row(row)) {
            crate::dependency::count_code(counts, code, weight);
        }
    }
    frequencies
}

/// Rows on which parameters are tried out: the runs are quadratic in it.
const TUNING_ROWS: usize = 1500;

fn tune_method(
    bound_policy: &BoundPolicy,
    encoders: &[ColumnEncoder],
    domains: &[SensitiveDomain],
    sample: &Sample,
) -> Result<Tuned> {
    if !choices::has_open_parameters(bound_policy) {
        return Ok(Tuned::default());
    }
    let rows = sample.expand_rows(TUNING_ROWS)?;
    let table = with_sensitive(encode_sample(encoders, &rows)?, bound_policy, domains, &rows)?;
    Ok(choices::tune_parameters(bound_policy, &table))
}

/// The sample with its sensitive columns, which stand behind the quasi-identifiers.
fn with_sensitive(
    mut table: Table,
    bound_policy: &BoundPolicy,
    domains: &[SensitiveDomain],
    rows: &RecordBatch,
) -> Result<Table> {
    let sensitive = rows.columns().iter().skip(table.axes.len());
    for ((column, domain), array) in bound_policy.sensitive.iter().zip(domains).zip(sensitive) {
        table.sensitive.push(encode_sensitive(column, domain, array)?);
    }
    Ok(table)
}
