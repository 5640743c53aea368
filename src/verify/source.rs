//! A release against the rows it was made from: nothing but the quasi-identifiers has changed, nothing was lost or added,
//! and every published value covers an original one.
//!
//! What has not changed is compared by one `GROUP BY` over the rows of both sides, which spills. Covers are looked up for
//! as many published rows at a time as memory is granted for, with all rows of the source streaming by. Source rows that
//! none of them covers wait on disk for the next ones (`left_over`), so that both ways are checked however many there are.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Decimal128Type, Int64Type};
use datafusion::execution::SpillFile;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, cast, ident, lit, when};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;
use futures::future::BoxFuture;

use super::Finding;
use super::left_over::{Kept, Passed, Shelf, Standing, split_known};
use super::plans::{PlanExecutor, collect_numbers};
use crate::binding::{BoundPolicy, QuasiColumn, published_fields};
use crate::error::Result;
use crate::plan::join_parts;
use crate::policy::Role;
use crate::published::cover::{Original, Published};
use crate::published::exact::{Floats, alike_keys, key_name};
use crate::published::{BoxTree, content_key};

/// Most published rows, equal ones counted once, that are looked up at a time; and fewest, whatever memory is granted.
const MAX_PAIRS: usize = 1 << 19;
const MIN_PAIRS: usize = 1 << 13;

/// Compares a release that generalises with the rows it was made from.
pub(crate) async fn verify_against_source(
    plans: &dyn PlanExecutor,
    published: &DataFrame,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
    suppressed: u64,
) -> Result<Vec<Finding>> {
    let fields = bound_policy.input.fields().iter().zip(&bound_policy.roles);
    let unchanged: Vec<String> = fields
        .filter(|(_, role)| matches!(role, Role::Sensitive | Role::Kept))
        .map(|(field, _)| field.name().clone())
        .collect();
    let mut findings = compare_values(plans, source, published, &unchanged, suppressed).await?;
    findings.extend(find_uncovered(published, source, bound_policy, &unchanged, suppressed).await?);
    Ok(findings)
}

/// Compares how often each combination of values occurs in some columns of the source and of a release: but for so many
/// rows that were suppressed, the release holds all of them and nothing else.
pub(crate) async fn compare_values(
    plans: &dyn PlanExecutor,
    source: &DataFrame,
    published: &DataFrame,
    columns: &[String],
    suppressed: u64,
) -> Result<Vec<Finding>> {
    let side = |rows: &DataFrame, weight: i64| -> Result<DataFrame> {
        let keys = alike_keys(rows, columns, Floats::Bits)?;
        Ok(rows.clone().select(keys.into_iter().chain([lit(weight).alias("weight")]).collect::<Vec<_>>())?)
    };
    let (before, after) = (side(source, 1)?, side(published, -1)?);
    let keys = before.schema().fields().len() - 1;
    // A type that Parquet does not have comes back as another.
    let types = before.schema().fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    let retyped = (0..keys).map(|at| cast(ident(key_name(at)), types[at].clone()).alias(key_name(at)));
    let after = after.select(retyped.chain([ident("weight")]).collect::<Vec<_>>())?;
    let off = before
        .union(after)?
        .aggregate((0..keys).map(|at| ident(key_name(at))).collect(), vec![sum(ident("weight")).alias("off")])?;
    let part = |sign: i64| -> Result<Expr> {
        let off = ident("off") * lit(sign);
        Ok(sum(when(off.clone().gt(lit(0_i64)), off).otherwise(lit(0_i64))?))
    };
    let sums = vec![part(1)?.alias("missing"), part(-1)?.alias("invented")];
    let found = collect_numbers(plans, off.aggregate(vec![], sums)?).await?;
    let (missing, invented) = (found[0], found[1]);
    let lost = missing.saturating_sub(suppressed);
    let mut findings = Vec::new();
    findings
        .extend(Finding::if_any("truthful", lost, |lost| format!("{lost} rows of the source were lost or changed")));
    findings.extend(Finding::if_any("truthful", invented, |invented| {
        format!("{invented} published rows do not occur in the source")
    }));
    Ok(findings)
}

/// Published rows that cover too few source rows of the same unchanged values, and source rows that none covers.
async fn find_uncovered(
    published: &DataFrame,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
    unchanged: &[String],
    suppressed: u64,
) -> Result<Vec<Finding>> {
    let class_columns = bound_policy.class_columns();
    let mut keys = vec![content_key(unchanged).alias("content")];
    keys.extend(class_columns.iter().map(ident));
    let pairs = published.clone().aggregate(keys, vec![count(lit(1)).alias("rows")])?;
    let mut wanted = vec![content_key(unchanged).alias("content")];
    wanted.extend(bound_policy.quasi.iter().map(|quasi| ident(&quasi.name)));
    let originals = source.clone().select(wanted)?;

    let context = pairs.task_ctx();
    let reservation = MemoryConsumer::new("verify").register(context.memory_pool());
    let most = granted_items(&reservation, (bound_policy.quasi.len() + 1) * 64);
    let shelf = Shelf::new(context.runtime_env(), originals.schema().as_arrow());
    let (mut outside, mut bare) = (0, 0);
    let mut left: Option<Vec<Arc<dyn SpillFile>>> = None;
    let mut stream = pairs.execute_stream().await?;
    let mut waiting: Vec<RecordBatch> = Vec::new();
    loop {
        let batch = stream.try_next().await?;
        let ended = batch.is_none();
        waiting.extend(batch);
        let rows: usize = waiting.iter().map(RecordBatch::num_rows).sum();
        if rows >= most || ended {
            let chunk = concat_batches(&stream.schema(), &std::mem::take(&mut waiting))?;
            let lookup = Arc::new(Lookup::new(&chunk, &bound_policy.quasi)?);
            let passed = lookup.stream_originals(&originals, left, shelf.for_pass(ended)).await?;
            outside += passed.short;
            bare += passed.bare;
            left = Some(passed.left);
        }
        if ended {
            break;
        }
    }
    let mut findings = Vec::new();
    findings.extend(Finding::if_any("truthful", outside, |outside| {
        format!("{outside} published rows do not cover the values they were made from")
    }));
    let forgotten = bare.saturating_sub(suppressed);
    findings.extend(Finding::if_any("truthful", forgotten, |forgotten| {
        format!("{forgotten} rows of the source are not covered by any published row with the same other values")
    }));
    Ok(findings)
}

/// How many items of a given size memory is granted for; the reservation then holds it.
fn granted_items(reservation: &MemoryReservation, bytes: usize) -> usize {
    let mut most = MAX_PAIRS;
    while most > MIN_PAIRS && reservation.try_grow(most * bytes).is_err() {
        most /= 2;
    }
    most
}

/// Published rows by what they cover.
struct Lookup {
    quasi: Vec<QuasiColumn>,
    /// The number of every combination of unchanged values.
    contents: HashMap<i128, u32>,
    /// The same by pair.
    content: Vec<u32>,
    columns: Vec<Published>,
    /// Rows of every pair.
    rows: Vec<u64>,
    boxes: BoxTree,
}

impl Lookup {
    fn new(pairs: &RecordBatch, quasi: &[QuasiColumn]) -> Result<Self> {
        let keys = pairs.column(0).as_primitive::<Decimal128Type>();
        let sizes = pairs.column(pairs.num_columns() - 1).as_primitive::<Int64Type>();
        let mut contents = HashMap::new();
        let mut content = Vec::with_capacity(pairs.num_rows());
        for key in keys.values() {
            let next = contents.len() as u32;
            content.push(*contents.entry(*key).or_insert(next));
        }
        let mut columns = Vec::new();
        let mut rest = &pairs.columns()[1..];
        for quasi in quasi {
            let (mine, others) = rest.split_at(published_fields(quasi).len());
            columns.push(Published::read_columns(quasi, mine)?);
            rest = others;
        }
        let mut extents: Vec<Vec<(f64, f64)>> =
            vec![content.iter().map(|&at| (f64::from(at), f64::from(at))).collect()];
        extents.extend(columns.iter().map(|column| (0..pairs.num_rows()).map(|row| column.extent(row)).collect()));
        let boxes = BoxTree::new(extents.iter().map(Vec::as_slice).collect(), pairs.num_rows());
        let rows = sizes.values().iter().map(|&rows| rows as u64).collect();
        Ok(Self { quasi: quasi.to_vec(), contents, content, columns, rows, boxes })
    }

    /// Streams all originals by: how many rows are missing that pairs should cover, and which originals no pair covers
    /// that was looked up so far. These are all of them in the first pass, and later those that are left.
    async fn stream_originals(
        self: Arc<Self>,
        originals: &DataFrame,
        left: Option<Vec<Arc<dyn SpillFile>>>,
        shelf: Shelf,
    ) -> Result<Passed> {
        let mut parts: Vec<BoxFuture<'static, Result<Passed>>> = Vec::new();
        let first = left.is_none();
        for mut stream in originals.clone().execute_stream_partitioned().await? {
            let (lookup, mut kept) = (Arc::clone(&self), Kept::new(shelf.clone()));
            parts.push(Box::pin(async move {
                let mut covered = vec![0_u64; lookup.rows.len()];
                while let Some(batch) = stream.try_next().await? {
                    let standing = lookup.look_up(&batch, |pair| covered[pair] += 1)?;
                    if first {
                        kept.keep_uncovered(&batch, None, &standing)?;
                    }
                }
                kept.finish(covered)
            }));
        }
        let left = left.unwrap_or_default();
        for files in left.chunks(left.len().div_ceil(parts.len().max(1)).max(1)) {
            let (lookup, mut kept, files) = (Arc::clone(&self), Kept::new(shelf.clone()), files.to_vec());
            parts.push(Box::pin(async move {
                for file in files {
                    let mut stream = kept.read_spilled(file)?;
                    while let Some(batch) = stream.try_next().await? {
                        let (known, rows) = split_known(&batch)?;
                        let standing = lookup.look_up(&rows, |_| ())?;
                        kept.keep_uncovered(&rows, Some(&known), &standing)?;
                    }
                }
                kept.finish(Vec::new())
            }));
        }
        let mut whole = Passed { covered: vec![0; self.rows.len()], ..Passed::default() };
        join_parts("comparing rows", parts, |part| {
            whole.covered.iter_mut().zip(part.covered).for_each(|(all, some)| *all += some);
            whole.bare += part.bare;
            whole.left.extend(part.left);
            Ok(())
        })
        .await?;
        let covered = std::mem::take(&mut whole.covered);
        whole.short = self.rows.iter().zip(covered).map(|(rows, covered)| rows.saturating_sub(covered)).sum();
        Ok(whole)
    }

    /// How the originals of a batch stand to the pairs; `covered` is called with every pair that covers one.
    fn look_up(&self, batch: &RecordBatch, mut covered: impl FnMut(usize)) -> Result<Vec<Standing>> {
        let keys = batch.column(0).as_primitive::<Decimal128Type>();
        let originals = self.quasi.iter().zip(&batch.columns()[1..]);
        let originals =
            originals.map(|(quasi, column)| Original::read_column(quasi, column)).collect::<Result<Vec<Original>>>()?;
        let mut at = vec![0.0; originals.len() + 1];
        let mut standing = vec![Standing::Unknown; batch.num_rows()];
        for (row, standing) in standing.iter_mut().enumerate() {
            let Some(content) = self.contents.get(&keys.value(row)) else { continue };
            *standing = Standing::Bare;
            at[0] = f64::from(*content);
            let places = originals.iter().zip(&self.quasi).map(|(original, quasi)| original.value_place(row, quasi));
            at[1..].iter_mut().zip(places).for_each(|(at, place)| *at = place);
            self.boxes.query_point(&at, |pair| {
                let columns = self.columns.iter().zip(&originals);
                let pair = pair as usize;
                if self.content[pair] == *content
                    && columns.into_iter().all(|(shown, original)| shown.covers(pair, original, row))
                {
                    covered(pair);
                    *standing = Standing::Covered;
                }
            });
        }
        Ok(standing)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, StringArray, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema};
    use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::super::plans::InProcess;
    use super::*;
    use crate::policy::Policy;

    fn context(limit: usize) -> SessionContext {
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(limit))).build_arc().unwrap();
        SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(2), runtime)
    }

    fn frame(context: &SessionContext, columns: Vec<(&str, ArrayRef)>) -> DataFrame {
        let rows = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        context.read_batch(rows).unwrap()
    }

    fn counts(findings: &[Finding]) -> Vec<(u64, &str)> {
        findings.iter().map(|finding| (finding.count, finding.message.split_once(' ').unwrap().1)).collect()
    }

    /// Half a million different rows, and memory for a part of them.
    #[tokio::test]
    async fn more_rows_than_memory_holds_are_compared() {
        const ROWS: i64 = 250_000;
        let context = context(24 << 20);
        let rows = |ids: Box<dyn Iterator<Item = i64>>| {
            let ids: Vec<i64> = ids.collect();
            let texts = ids.iter().map(|id| format!("a text that is long enough not to be held inside a view: {id}"));
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
            frame(&context, vec![("id", Arc::new(Int64Array::from(ids)) as ArrayRef), ("text", texts)])
        };
        let (before, after) = (rows(Box::new(0..ROWS)), rows(Box::new((1..=ROWS).rev())));
        let columns = ["id".to_owned(), "text".to_owned()];
        let found = compare_values(&InProcess, &before, &after, &columns, 0).await.unwrap();
        let expected =
            [(1, "rows of the source were lost or changed"), (1, "published rows do not occur in the source")];
        assert_eq!(counts(&found), expected);
        assert_eq!(counts(&compare_values(&InProcess, &before, &after, &columns, 1).await.unwrap()), expected[1..]);
    }

    #[tokio::test]
    async fn dictionaries_are_compared_by_their_values() {
        let context = context(1 << 30);
        let words = vec![Some("a"), None, Some("b"), Some("a")];
        let coded: DictionaryArray<Int32Type> = words.clone().into_iter().collect();
        let before = frame(&context, vec![("word", Arc::new(coded) as ArrayRef)]);
        let after = frame(&context, vec![("word", Arc::new(StringArray::from(words)) as ArrayRef)]);
        assert_eq!(compare_values(&InProcess, &before, &after, &["word".to_owned()], 0).await.unwrap(), []);
    }

    /// Looking up a few published rows at a time finds what looking up all of them does.
    #[tokio::test]
    async fn covers_are_found_however_little_memory_is_granted() {
        const ROWS: i32 = 300_000;
        let policy = "privacy.k = 2\ncolumns.age.role = \"quasi\"\ncolumns.ill.role = \"sensitive\"";
        let policy = Policy::from_table(toml::from_str(policy).unwrap(), Path::new(".")).unwrap();
        let fields = ["age", "ill"].map(|name| Field::new(name, DataType::Int32, true));
        let bound_policy = BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields.to_vec()))).unwrap();
        for limit in [256 << 20, 24 << 20] {
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit));
            let reservation = MemoryConsumer::new("test").register(&pool);
            // Two rows of the same values make a pair.
            assert_eq!(granted_items(&reservation, 128) < ROWS as usize / 2, limit == 24 << 20);
            let context = context(limit);
            let ints =
                |of: &dyn Fn(i32) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values((0..ROWS).map(of))) };
            let ill = ints(&|row| row % 7);
            let source = frame(&context, vec![("age", ints(&|row| row)), ("ill", Arc::clone(&ill))]);
            let ends = Fields::from(["min", "max"].map(|name| Field::new(name, DataType::Int32, true)).to_vec());
            // Classes of fourteen rows; the range of one lies where nobody is.
            let low = |row: i32| row / 14 * 14 - 10_000 * i32::from(row / 14 == 100);
            let range = StructArray::new(ends, vec![ints(&low), ints(&|row| low(row) + 13)], None);
            let published = frame(&context, vec![("age", Arc::new(range) as ArrayRef), ("ill", ill)]);
            let found = verify_against_source(&InProcess, &published, &source, &bound_policy, 0).await.unwrap();
            let short = (14, "published rows do not cover the values they were made from");
            let bare = (14, "rows of the source are not covered by any published row with the same other values");
            assert_eq!(counts(&found), [short, bare]);
        }
    }
}
