//! What a reader who knows the dependencies infers from a release: the chase over the published files, and its results.
//!
//! The register that the reader is assumed to hold is the source itself: which combinations of quasi-identifiers occur.
//! Everything is aggregated by DataFusion, which spills; in memory are the combinations that dependencies speak of, and a
//! bit for each of them beside each published label, all of it accounted for. Classes come one after the other.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, RecordBatch};
use datafusion::arrow::datatypes::{Decimal128Type, Int64Type};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::JoinType;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;

use super::inferred::Inferred;
use super::seating::{Alike, Seating};
use crate::attack::chase::{BitSet, Crowds, Kind, Knowledge, Member, View, count_crowds};
use crate::attack::seats::{self, Counted};
use crate::binding::{BoundPolicy, QuasiColumn, published_fields};
use crate::error::{Error, Result};
use crate::model::{Attribute, Dependency};
use crate::policy::Inference;
use crate::published::content_key;
use crate::published::cover::{Original, Published};
use crate::published::exact::KEY;
use crate::verify::{Finding, InProcess, broken_rules};

/// What the chase has found.
#[derive(Debug, Default)]
pub(crate) struct Chased {
    /// What the manifest says of it.
    pub found: Inferred,
    /// Quasi-identifiers that must be withheld to prevent all conclusions, by their index in the bound policy.
    telling: Vec<usize>,
}

/// The dependencies that can distinguish rows of a class: those with quasi-identifiers and plain columns.
struct MixedDependencies {
    dependencies: Vec<(Dependency, f64)>,
    /// Their quasi-identifiers, by place in the bound policy.
    quasi: Vec<usize>,
    /// Their plain columns, by name.
    plain: Vec<String>,
}

impl MixedDependencies {
    fn of_policy(bound_policy: &BoundPolicy) -> Option<Self> {
        let laid = bound_policy.dependencies();
        let (mut quasi, mut plain): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut place = |attribute: &Attribute| {
            let (list, at) = match attribute {
                Attribute::Quasi(at) => (&mut quasi, *at),
                Attribute::Plain(at) => (&mut plain, *at),
            };
            let place = list.iter().position(|other| *other == at).unwrap_or_else(|| {
                list.push(at);
                list.len() - 1
            });
            match attribute {
                Attribute::Quasi(_) => Attribute::Quasi(place),
                Attribute::Plain(_) => Attribute::Plain(place),
            }
        };
        let is_mixed = |dependency: &&(&Dependency, f64)| {
            !dependency.0.quasi_axes().is_empty() && !dependency.0.plain_columns().is_empty()
        };
        let tolerances = bound_policy.policy.dependencies.iter().map(|dependency| dependency.tolerance);
        let all: Vec<(&Dependency, f64)> = laid.list.iter().zip(tolerances).collect();
        let mut dependencies = Vec::new();
        for (dependency, tolerance) in all.iter().filter(is_mixed) {
            let from = dependency.from.iter().map(&mut place).collect();
            let to = dependency.to.iter().map(&mut place).collect();
            dependencies.push((Dependency { from, to }, *tolerance));
        }
        let plain = plain.into_iter().map(|at| laid.plain[at].1.clone()).collect();
        (!dependencies.is_empty()).then_some(Self { dependencies, quasi, plain })
    }

    /// The columns that hide the right sides, or the left where the right are published as they are.
    fn hiding_columns(&self) -> Vec<usize> {
        let quasi = |side: &[Attribute]| -> Vec<usize> {
            let places = side.iter().filter_map(|one| if let Attribute::Quasi(at) = one { Some(*at) } else { None });
            places.map(|place| self.quasi[place]).collect()
        };
        let mut columns = Vec::new();
        for (dependency, _) in &self.dependencies {
            let right = quasi(&dependency.to);
            columns.extend(if right.is_empty() { quasi(&dependency.from) } else { right });
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The keys of the plain columns.
    fn plain_keys(&self) -> Vec<Expr> {
        let key = |(at, name): (usize, &String)| content_key(std::slice::from_ref(name)).alias(plain_name(at));
        self.plain.iter().enumerate().map(key).collect()
    }
}

fn plain_name(at: usize) -> String {
    format!("plain_{at}")
}

/// The names of the keys of a class and of its label.
const CLASS: &str = "class";
const LABEL: &str = "label";

/// Numbers for values, in the order in which they are met.
#[derive(Debug)]
struct Numbers<K>(HashMap<K, usize>);

impl<K: std::hash::Hash + Eq> Numbers<K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn number_of(&mut self, value: K) -> usize {
        let next = self.0.len();
        *self.0.entry(value).or_insert(next)
    }
}

/// Combinations of plain columns, numbered.
#[derive(Debug)]
struct Plains {
    values: Vec<Numbers<i128>>,
    combinations: Numbers<Vec<u32>>,
    list: Vec<Vec<u32>>,
}

impl Plains {
    fn new(columns: usize) -> Self {
        let values = (0..columns).map(|_| Numbers::new()).collect();
        Self { values, combinations: Numbers::new(), list: Vec::new() }
    }

    /// The combination of a row whose keys begin at a column.
    fn read_combination(&mut self, batch: &RecordBatch, from: usize, row: usize) -> usize {
        let values = self.values.iter_mut().enumerate();
        let combination: Vec<u32> =
            values.map(|(at, values)| values.number_of(read_key(batch, from + at, row)) as u32).collect();
        let at = self.combinations.number_of(combination.clone());
        if at == self.list.len() {
            self.list.push(combination);
        }
        at
    }
}

fn read_key(batch: &RecordBatch, column: usize, row: usize) -> i128 {
    batch.column(column).as_primitive::<Decimal128Type>().value(row)
}

/// The place of a label by its key.
fn label_place(places: &HashMap<i128, usize>, batch: &RecordBatch, column: usize, row: usize) -> Result<usize> {
    let found = places.get(&read_key(batch, column, row));
    found.copied().ok_or_else(|| Error::retry("the published files changed while they were read"))
}

/// Chases the published rows; `None` if no dependency can distinguish rows of a class.
pub(crate) async fn chase_published(
    published: &DataFrame,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
) -> Result<Option<Chased>> {
    let Some(mixed) = MixedDependencies::of_policy(bound_policy) else { return Ok(None) };
    let quasi: Vec<&QuasiColumn> = mixed.quasi.iter().map(|&at| &bound_policy.quasi[at]).collect();
    let context = published.task_ctx();
    let memory = MemoryConsumer::new("Chase").register(context.memory_pool());
    let mut plains = Plains::new(mixed.plain.len());
    let register = Register::read_source(source, &mixed, &quasi, &mut plains, &memory).await?;
    let (labels, label_places) = read_labels(published, &quasi, &register, &memory).await?;
    let label_columns = published_columns(&quasi);

    let kinds = read_kinds(published, &label_columns, &mixed, &label_places, &mut plains, &memory).await?;
    memory.try_grow(plains.list.len() * register.profiles.len().div_ceil(8))?;
    let view = View {
        dependencies: mixed.dependencies.clone(),
        profiles: register.profiles.clone(),
        plains: plains.list.clone(),
        labels,
        kinds,
    };
    let (view, knowledge) = compute_aside("the chase", move || {
        let knowledge = crate::attack::chase::chase_dependencies(&view);
        (view, knowledge)
    })
    .await?;
    let class_keys =
        vec![content_key(&bound_policy.class_columns()).alias(CLASS), content_key(&label_columns).alias(LABEL)];
    let classes = count_kinds(published, class_keys, &mixed)?.sort(vec![ident(CLASS).sort(true, true)])?;
    let alike = read_alike(classes, &label_places, &mut plains, &memory).await?;
    let seated = MemoryConsumer::new("Seating").register(context.memory_pool());
    let width = bound_policy.quasi.len();
    let read_columns = |batch: &RecordBatch| -> Result<Vec<(usize, usize)>> {
        let mut profiles =
            register.find_profiles(&mixed.quasi.iter().map(|&at| batch.column(at)).collect::<Vec<_>>())?;
        Ok(profiles.drain(..).enumerate().map(|(row, at)| (at, plains.read_combination(batch, width, row))).collect())
    };
    let fits =
        |one: &Alike, profile: usize| knowledge.fitting_profiles(&view.labels[one.label], one.plain).contains(profile);
    let seating = Seating::read_seating(
        (published, bound_policy),
        source,
        mixed.plain_keys(),
        &alike,
        &seated,
        read_columns,
        fits,
    )
    .await?;
    let (view, seating) = compute_aside("counting people", move || {
        let seated = seating.map(|seating| {
            let places = seats::possible_places(&view, &seating.people, &seating.seats, seats::MAX_STEPS);
            (seating, places)
        });
        (view, seated)
    })
    .await?;

    let k = u64::from(bound_policy.policy.privacy.k);
    let mut counts = CrowdCounts::new(k, mixed.plain.len(), !bound_policy.configured_rules(false).is_empty());
    let parted = MemoryConsumer::new("ChasedClasses").register(context.memory_pool());
    counts.add_classes(&alike, &parted, |class, places| match &seating {
        Some((seating, people)) => seats::count_hiding_rows(&seating.seats[places.clone()], &people[places], k),
        None => register.count_crowds(&view, &knowledge, class, k),
    })?;
    let breaches = counts.count_breaches(published, &mixed, bound_policy).await?;
    Ok(Some(Chased { found: counts.to_inferred(breaches, bound_policy), telling: mixed.hiding_columns() }))
}

/// Computes what takes a while, sums over rows and profiles, without keeping other tasks from their thread.
async fn compute_aside<T: Send + 'static>(what: &str, compute: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let computed = tokio::task::spawn_blocking(compute).await;
    computed.map_err(|error| Error::internal(format!("{what} failed: {error}")))
}

/// How many published rows have the same keys and plain columns.
fn count_kinds(published: &DataFrame, mut keys: Vec<Expr>, mixed: &MixedDependencies) -> Result<DataFrame> {
    keys.extend(mixed.plain_keys());
    Ok(published.clone().aggregate(keys, vec![count(lit(1)).alias("size")])?)
}

/// Reads how often each label is published with the same plain columns.
async fn read_kinds(
    published: &DataFrame,
    label_columns: &[String],
    mixed: &MixedDependencies,
    label_places: &HashMap<i128, usize>,
    plains: &mut Plains,
    memory: &MemoryReservation,
) -> Result<Vec<Kind>> {
    let counted = count_kinds(published, vec![content_key(label_columns).alias(LABEL)], mixed)?;
    let mut kinds = Vec::new();
    let mut stream = counted.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        memory.try_grow(batch.num_rows() * size_of::<Kind>())?;
        let sizes = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let label = label_place(label_places, &batch, 0, row)?;
            kinds.push(Kind { label, plain: plains.read_combination(&batch, 1, row), rows: sizes.value(row) as u64 });
        }
    }
    Ok(kinds)
}

/// Reads the rows of every class that look alike, class by class.
async fn read_alike(
    classes: DataFrame,
    label_places: &HashMap<i128, usize>,
    plains: &mut Plains,
    memory: &MemoryReservation,
) -> Result<Vec<Alike>> {
    let mut alike: Vec<Alike> = Vec::new();
    let mut stream = classes.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        memory.try_grow(batch.num_rows() * (size_of::<Alike>() + size_of::<i128>() * batch.num_columns()))?;
        let sizes = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            alike.push(Alike {
                class: read_key(&batch, 0, row),
                label: label_place(label_places, &batch, 1, row)?,
                plain: plains.read_combination(&batch, 2, row),
                rows: sizes.value(row) as u64,
                plain_keys: (2..batch.num_columns() - 1).map(|column| read_key(&batch, column, row)).collect(),
            });
        }
    }
    Ok(alike)
}

/// Names of the published columns of some quasi-identifiers.
fn published_columns(quasi: &[&QuasiColumn]) -> Vec<String> {
    quasi.iter().flat_map(|quasi| published_fields(quasi)).map(|field| field.name().clone()).collect()
}

/// Which combinations of quasi-identifiers the source has, and beside which plain columns.
struct Register {
    profiles: Vec<Vec<u32>>,
    /// Where each profile stands.
    places: Vec<(usize, usize)>,
    /// The values, by batch and column.
    originals: Vec<Vec<Original>>,
    /// The profiles that occur with every combination of plain columns.
    beside: HashMap<usize, BitSet>,
    /// Numbers of values, by column, and of their combinations.
    values: Vec<Numbers<Vec<u8>>>,
    numbers: Numbers<Vec<u32>>,
}

impl Register {
    async fn read_source(
        source: &DataFrame,
        mixed: &MixedDependencies,
        quasi: &[&QuasiColumn],
        plains: &mut Plains,
        memory: &MemoryReservation,
    ) -> Result<Self> {
        let mut keys: Vec<Expr> = quasi.iter().map(|quasi| ident(&quasi.name)).collect();
        keys.extend(mixed.plain_keys());
        let distinct = source.clone().aggregate(keys, vec![])?;
        let mut values: Vec<Numbers<Vec<u8>>> = quasi.iter().map(|_| Numbers::new()).collect();
        let mut numbers: Numbers<Vec<u32>> = Numbers::new();
        let (mut profiles, mut places, mut originals) = (Vec::new(), Vec::new(), Vec::new());
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut stream = distinct.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            memory.try_grow(batch.get_array_memory_size())?;
            let mut columns: Vec<Vec<u32>> = Vec::new();
            for (column, values) in batch.columns().iter().zip(&mut values) {
                let rows = comparable_bytes(column)?;
                columns.push(rows.iter().map(|row| values.number_of(row.as_ref().to_vec()) as u32).collect());
            }
            for row in 0..batch.num_rows() {
                let profile: Vec<u32> = columns.iter().map(|column| column[row]).collect();
                let at = numbers.number_of(profile.clone());
                if at == profiles.len() {
                    profiles.push(profile);
                    places.push((originals.len(), row));
                }
                pairs.push((at, plains.read_combination(&batch, quasi.len(), row)));
            }
            let read = quasi.iter().zip(batch.columns()).map(|(quasi, column)| Original::read_column(quasi, column));
            originals.push(read.collect::<Result<Vec<Original>>>()?);
        }
        let mut beside: HashMap<usize, BitSet> = HashMap::new();
        for (profile, plain) in pairs {
            beside.entry(plain).or_insert_with(|| BitSet::with_len(profiles.len())).insert(profile);
        }
        memory.try_grow(beside.len() * profiles.len().div_ceil(8))?;
        Ok(Self { profiles, places, originals, beside, values, numbers })
    }

    /// The profiles of rows of the source, by their quasi-identifiers.
    fn find_profiles(&self, columns: &[&ArrayRef]) -> Result<Vec<usize>> {
        let rows = columns.iter().map(|column| comparable_bytes(column)).collect::<Result<Vec<Rows>>>()?;
        let profile = |row: usize| {
            let values = rows.iter().zip(&self.values);
            let profile: Option<Vec<u32>> =
                values.map(|(rows, values)| values.0.get(rows.row(row).as_ref()).map(|value| *value as u32)).collect();
            let found = profile.and_then(|profile| self.numbers.0.get(&profile).copied());
            found.ok_or_else(|| Error::retry("the source changed while it was read"))
        };
        (0..columns.first().map_or(0, |column| column.len())).map(profile).collect()
    }

    /// Among how many rows of a class people can hide if nobody is counted, which leaves all other rows undecided.
    fn count_crowds(&self, view: &View, knowledge: &Knowledge, class: &[Alike], k: u64) -> Counted {
        let none = BitSet::with_len(self.profiles.len());
        let member = |one: &Alike| {
            let fitting = knowledge.fitting_profiles(&view.labels[one.label], one.plain);
            let people = fitting.intersection(self.beside.get(&one.plain).unwrap_or(&none));
            Member { rows: one.rows, fitting, people }
        };
        let crowds = count_crowds(&class.iter().map(member).collect::<Vec<_>>());
        let open = class.iter().zip(&crowds.smallest).filter(|(_, smallest)| **smallest >= k);
        let undecided = open.map(|(one, _)| one.rows).sum();
        Counted { crowds, undecided }
    }
}

/// Values of a column as bytes that differ when the values do.
fn comparable_bytes(column: &ArrayRef) -> Result<Rows> {
    let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())])?;
    Ok(converter.convert_columns(std::slice::from_ref(column))?)
}

/// Every published combination of labels: the profiles that it covers, and its place by key.
async fn read_labels(
    published: &DataFrame,
    quasi: &[&QuasiColumn],
    register: &Register,
    memory: &MemoryReservation,
) -> Result<(Vec<BitSet>, HashMap<i128, usize>)> {
    let columns = published_columns(quasi);
    let mut keys = vec![content_key(&columns).alias(LABEL)];
    keys.extend(columns.iter().map(ident));
    let (mut labels, mut places) = (Vec::new(), HashMap::new());
    let mut stream = published.clone().aggregate(keys, vec![])?.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        memory.try_grow(batch.num_rows() * register.profiles.len().div_ceil(8))?;
        let mut arrays: &[ArrayRef] = &batch.columns()[1..];
        let mut shown = Vec::new();
        for quasi in quasi {
            let (mine, others) = arrays.split_at(published_fields(quasi).len());
            shown.push(Published::read_columns(quasi, mine)?);
            arrays = others;
        }
        for row in 0..batch.num_rows() {
            let mut covered = BitSet::with_len(register.profiles.len());
            for (at, (number, other)) in register.places.iter().enumerate() {
                let originals = &register.originals[*number];
                if shown.iter().zip(originals).all(|(shown, original)| shown.covers(row, original, *other)) {
                    covered.insert(at);
                }
            }
            places.insert(read_key(&batch, 0, row), labels.len());
            labels.push(covered);
        }
    }
    Ok((labels, places))
}

/// What is left of all classes.
struct CrowdCounts {
    k: u64,
    crowds: u64,
    small: u64,
    smallest: u64,
    exposed: u64,
    undecided: u64,
    /// Rows that are left of classes that fall apart, on which rules are checked: class, plain columns, crowd. `None` if
    /// there is no rule.
    parted: Option<Vec<Vec<i128>>>,
}

impl CrowdCounts {
    fn new(k: u64, plain: usize, rules: bool) -> Self {
        let parted = rules.then(|| vec![Vec::new(); 1 + plain + 1]);
        Self { k, crowds: 0, small: 0, smallest: 0, exposed: 0, undecided: 0, parted }
    }

    /// Adds every class of rows that are sorted by class; `count` gets its rows and where they stand.
    fn add_classes(
        &mut self,
        alike: &[Alike],
        memory: &MemoryReservation,
        count: impl Fn(&[Alike], Range<usize>) -> Counted,
    ) -> Result<()> {
        let mut start = 0;
        for class in alike.chunk_by(|one, next| one.class == next.class) {
            let end = start + class.len();
            self.add_class(class, &count(class, start..end));
            memory.try_resize(self.size())?;
            start = end;
        }
        Ok(())
    }

    /// Adds what is left of a class.
    fn add_class(&mut self, class: &[Alike], counted: &Counted) {
        let Crowds { crowds, smallest } = &counted.crowds;
        for crowd in crowds {
            self.smallest = if self.crowds == 0 { crowd.rows } else { self.smallest.min(crowd.rows) };
            self.crowds += 1;
            self.small += u64::from(crowd.rows < self.k);
            if let Some(parted) = self.parted.as_mut().filter(|_| crowd.members.len() < class.len()) {
                for &member in &crowd.members {
                    let Alike { class, plain_keys, .. } = &class[member];
                    let row = [*class].into_iter().chain(plain_keys.iter().copied());
                    parted
                        .iter_mut()
                        .zip(row.chain([i128::from(self.crowds)]))
                        .for_each(|(column, value)| column.push(value));
                }
            }
        }
        let exposed = class.iter().zip(smallest).filter(|(_, smallest)| **smallest < self.k);
        self.exposed += exposed.map(|(one, _)| one.rows).sum::<u64>();
        self.undecided += counted.undecided;
    }

    /// What the manifest says of it, with the rules that are broken.
    fn to_inferred(&self, breaches: BTreeMap<String, u64>, bound_policy: &BoundPolicy) -> Inferred {
        let withheld = bound_policy.quasi.iter().filter(|quasi| quasi.withheld);
        Inferred {
            smallest: self.smallest,
            classes: self.crowds,
            small_classes: self.small,
            exposed_rows: self.exposed,
            undecided_rows: self.undecided,
            breaches,
            withheld: withheld.map(|quasi| quasi.name.clone()).collect(),
        }
    }

    /// Bytes held, about.
    fn size(&self) -> usize {
        self.parted.iter().flatten().map(|column| column.capacity() * size_of::<i128>()).sum()
    }

    /// The rules that do not hold among the rows that are left, and among how many sets of rows.
    async fn count_breaches(
        &mut self,
        published: &DataFrame,
        mixed: &MixedDependencies,
        bound_policy: &BoundPolicy,
    ) -> Result<BTreeMap<String, u64>> {
        let Some(parted) = self.parted.take().filter(|parted| !parted[0].is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let on: Vec<String> = [CLASS.to_owned()].into_iter().chain((0..mixed.plain.len()).map(plain_name)).collect();
        let of_crowd: Vec<String> = on.iter().map(|name| format!("crowd_{name}")).collect();
        let names = of_crowd.iter().map(String::as_str).chain(["crowd"]);
        let array = |keys: Vec<i128>| Arc::new(Decimal128Array::from(keys).with_data_type(KEY)) as ArrayRef;
        let batch = RecordBatch::try_from_iter(names.zip(parted.into_iter().map(array)))?;
        let context = SessionContext::new_with_state(published.clone().into_parts().0);
        let mut wanted = vec![content_key(&bound_policy.class_columns()).alias(CLASS)];
        wanted.extend(mixed.plain_keys());
        wanted.extend(bound_policy.sensitive.iter().map(|column| ident(&column.name)));
        let [on, of_crowd] = [&on, &of_crowd].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        let sets = context.read_batch(batch)?;
        let rows = published.clone().select(wanted)?.join(sets, JoinType::Inner, &on, &of_crowd, None)?;
        let bound_policy = Arc::new(bound_policy.clone());
        broken_rules(&InProcess, published, &rows, &bound_policy, &["crowd".to_owned()]).await
    }
}

/// The verdict on written files.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// They may be published as far as the dependencies are concerned.
    Publish(Option<Inferred>),
    /// They may not; rows under this bound policy are to be tried instead.
    Withhold(Box<BoundPolicy>),
}

/// Chases rows that are about to be published.
///
/// Repair is mainly done by the grouping, which keeps enough people together who fit each other's rows. What
/// it could not see (other cells know more of a left side) is repaired here: the columns on the right of dependencies are
/// withheld, or those on the left where the right are published as they are. Nothing can be learnt of them then.
pub(crate) async fn chase_before_publishing(
    rows: &DataFrame,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
) -> Result<Verdict> {
    let Some(Chased { found, telling }) = chase_published(rows, source, bound_policy).await? else {
        return Ok(Verdict::Publish(None));
    };
    if found.is_exposed() && bound_policy.policy.privacy.inference == Inference::Repair {
        let fresh = |column: &usize| !bound_policy.quasi[*column].withheld;
        let columns: Vec<usize> = telling.iter().copied().filter(fresh).collect();
        if !columns.is_empty() {
            return Ok(Verdict::Withhold(Box::new(withhold_columns(bound_policy, &columns)?)));
        }
    }
    match judge_inferred(&found, bound_policy) {
        Some(finding) if bound_policy.policy.privacy.inference == Inference::Warn => {
            tracing::warn!("inference: {}; privacy.inference = \"repair\" keeps them together", finding.message);
        }
        finding => Finding::ensure_none(finding.as_slice())?,
    }
    Ok(Verdict::Publish(Some(found)))
}

/// What does not hold for a reader who knows the dependencies. What was not examined is a warning in the log.
pub(crate) fn judge_inferred(found: &Inferred, bound_policy: &BoundPolicy) -> Option<Finding> {
    if let Some(message) = found.undecided() {
        tracing::warn!("inference: {message}");
    }
    found.finding(bound_policy.policy.privacy.k)
}

/// The bound policy that also withholds some quasi-identifiers.
fn withhold_columns(bound_policy: &BoundPolicy, columns: &[usize]) -> Result<BoundPolicy> {
    let policy =
        bound_policy.policy.withholding(columns.iter().map(|&column| bound_policy.quasi[column].name.as_str()))?;
    BoundPolicy::bind_schema(Arc::new(policy), Arc::clone(&bound_policy.input), bound_policy.key.clone())
}
