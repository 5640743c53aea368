//! Releases whose values have changed places inside their group: who fits which bucket, by the published files alone.
//!
//! 1. Of every slice (columns that stayed together) the combinations of values in every bucket are read, with their counts.
//! 2. A person fits a bucket when each slice of it holds a combination that covers theirs. A tree of boxes finds the few
//!    buckets that may; where values are as they were, so does a list of the buckets that hold a combination.
//! 3. People who fit the same buckets with the same values are alike to a reader, and counted together.
//!
//! The same with the rows of the source in place of public people shows whether a release is made of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, cast, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::places::{Column, Values};
use crate::attack::confidence::ConfidenceHistogram;
use crate::attack::joint::Crowd;
use crate::attack::linkage::Linkage;
use crate::attack::overlap::{self, Budget};
use crate::attack::{Belief, Fraction};
use crate::binding::{BoundPolicy, published_fields};
use crate::error::{Error, Result};
use crate::permutation::Slices;
use crate::policy::{GROUP, Role};
use crate::published::{BoxTree, content_keys};
use crate::verify::Finding;

/// Buckets that hold a combination of values, up to which they are looked through one by one.
const MAX_CANDIDATES: usize = 64;

/// The published files of a release with groups by number.
pub(crate) enum Shown {
    /// One table.
    One(DataFrame),
    /// Two tables: quasi-identifiers and kept columns, and sensitive values.
    Two {
        /// Quasi-identifiers and kept columns.
        quasi: DataFrame,
        /// Sensitive values, one for every row of the other table.
        sensitive: DataFrame,
    },
}

/// Which columns are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The quasi-identifiers: what a public table has.
    Quasi,
    /// All of them: what the source has.
    All,
}

impl Shown {
    /// The rows by which rules are judged, and the table of quasi-identifiers where there is one beside them.
    pub(crate) fn new(quasi: Option<DataFrame>, rows: &DataFrame) -> Self {
        match quasi {
            None => Self::One(rows.clone()),
            Some(quasi) => Self::Two { quasi, sensitive: rows.clone() },
        }
    }

    /// The slices as tables, and the columns of each as places in the input.
    pub(crate) fn slice_tables(
        &self,
        bound_policy: &BoundPolicy,
        slices: &Slices,
        look: Look,
    ) -> Result<Vec<(DataFrame, Vec<usize>)>> {
        let wanted = |column: &&usize| look == Look::All || bound_policy.roles[**column] == Role::Quasi;
        let frame = match self {
            Self::One(rows) => rows,
            Self::Two { quasi, .. } => quasi,
        };
        let of = |slice: &Vec<usize>| (frame.clone(), slice.iter().filter(wanted).copied().collect::<Vec<_>>());
        let mut parts: Vec<_> = slices.columns.iter().map(of).filter(|(_, columns)| !columns.is_empty()).collect();
        if let (Self::Two { sensitive: values, .. }, Look::All) = (self, look) {
            let roles = bound_policy.roles.iter().enumerate();
            let sensitive = roles.filter(|(_, role)| **role == Role::Sensitive).map(|(column, _)| column).collect();
            parts.push((values.clone(), sensitive));
        }
        Ok(parts)
    }
}

/// The buckets of a release.
pub(crate) struct Buckets {
    /// Number of every bucket, ascending.
    numbers: Vec<u64>,
    /// Published rows of every bucket.
    pub(crate) sizes: Vec<u64>,
    slices: Vec<Slice>,
    /// The quasi-identifiers by which boxes are looked up: their place among the columns looked up, and where values lie.
    axes: Vec<(usize, Column)>,
    boxes: BoxTree,
    /// The exact slice with the most combinations: the buckets that hold each.
    index: Option<(usize, HashMap<i128, Vec<u32>>)>,
    /// Columns that are looked up, as they are to be read.
    wanted: Vec<Expr>,
}

/// What a slice shows in every bucket.
struct Slice {
    /// Where the combinations of every bucket begin, and where the last one's end.
    starts: Vec<usize>,
    /// How often each combination is published.
    counts: Vec<u64>,
    values: Shows,
    /// Places among the columns that are looked up.
    columns: Vec<usize>,
}

enum Shows {
    /// Keys of the values, ascending inside a bucket.
    Exact(Vec<i128>),
    /// Generalised values of a single column.
    Raised(Box<Column>),
}

/// How a person stands to a slice of a bucket.
enum Found {
    Nothing,
    One(u32),
    Several,
}

/// People by what they fit.
#[derive(Debug, Default)]
pub(crate) struct Fits {
    /// People who fit a bucket or more.
    pub(crate) crowds: Vec<Crowd>,
    /// People who fit none.
    pub(crate) outside: u64,
    /// Buckets in which some people fit more than one value of a column, so that counts are inconclusive.
    ambiguous: HashSet<u32>,
}

/// Rows of every bucket, from entries that name their bucket and count their rows.
fn bucket_sizes(numbers: &[u64], buckets: &[u64], counts: &[i64]) -> Vec<u64> {
    let mut sizes = vec![0; numbers.len()];
    for (number, count) in buckets.iter().zip(counts) {
        sizes[numbers.partition_point(|known| known < number)] += *count as u64;
    }
    sizes
}

/// Sorts the keys of every bucket, and their counts with them. Buckets lie between two neighbours of `starts`.
fn sort_in_buckets(keys: Vec<i128>, counts: &mut Vec<u64>, starts: &[usize]) -> Vec<i128> {
    let mut sorted: Vec<(i128, u64)> = keys.into_iter().zip(counts.drain(..)).collect();
    starts.windows(2).for_each(|ends| sorted[ends[0]..ends[1]].sort_unstable());
    let (keys, sorted_counts): (Vec<i128>, Vec<u64>) = sorted.into_iter().unzip();
    *counts = sorted_counts;
    keys
}

/// Where the entries of every bucket start, and where those of the last one end.
fn bucket_starts(numbers: &[u64], groups: &[u64]) -> Vec<usize> {
    let starts = numbers.iter().map(|number| groups.partition_point(|group| group < number));
    starts.chain([groups.len()]).collect()
}

impl Buckets {
    /// Reads the buckets of a release.
    pub(crate) async fn read_buckets(
        shown: &Shown,
        bound_policy: &BoundPolicy,
        slices: &Slices,
        look: Look,
    ) -> Result<Self> {
        let exact = bound_policy.form().is_exact();
        let mut found = Self {
            numbers: Vec::new(),
            sizes: Vec::new(),
            slices: Vec::new(),
            axes: Vec::new(),
            boxes: BoxTree::new(Vec::new(), 0),
            index: None,
            wanted: Vec::new(),
        };
        let mut numbers: Vec<u64> = Vec::new();
        let mut extents: Vec<Vec<(f64, f64)>> = Vec::new();
        for (frame, columns) in shown.slice_tables(bound_policy, slices, look)? {
            let raised = bound_policy.quasi.iter().find(|quasi| !exact && columns == [quasi.index]);
            let names: Vec<String> = match raised {
                Some(quasi) => published_fields(quasi).iter().map(|field| field.name().clone()).collect(),
                None => columns.iter().map(|&column| bound_policy.input.field(column).name().clone()).collect(),
            };
            let entries = count_entries(&frame, &names).await?;
            let groups = entries.column(0).as_primitive::<UInt64Type>();
            let sizes = entries.column(entries.num_columns() - 1).as_primitive::<Int64Type>();
            if numbers.is_empty() {
                numbers = groups.values().to_vec();
                numbers.dedup();
                found.sizes = bucket_sizes(&numbers, groups.values(), sizes.values());
            }
            let starts = bucket_starts(&numbers, groups.values());
            let values = &entries.columns()[1..entries.num_columns() - 1];
            let first = found.wanted.len();
            for (place, &column) in columns.iter().enumerate() {
                let name = bound_policy.input.field(column).name();
                let data_type = match raised {
                    Some(quasi) => quasi.data_type.clone(),
                    None => values[place].data_type().clone(),
                };
                found.wanted.push(cast(ident(name), without_dictionary(&data_type)).alias(name));
                let Some(quasi) = bound_policy.quasi.iter().find(|quasi| quasi.index == column) else { continue };
                let mut axis = match raised {
                    Some(quasi) => Column::read_generalised(quasi, values)?,
                    None => Column::read_plain(quasi, &values[place])?,
                };
                extents.push(starts.windows(2).map(|ends| union_extents(&axis.extents[ends[0]..ends[1]])).collect());
                axis.extents = Vec::new();
                found.axes.push((first + place, axis));
            }
            let mut counts: Vec<u64> = sizes.values().iter().map(|&size| size as u64).collect();
            let values = match raised {
                Some(quasi) => Shows::Raised(Box::new(Column::read_generalised(quasi, values)?)),
                None => {
                    let keys = content_keys(values, entries.num_rows())?;
                    Shows::Exact(sort_in_buckets(keys, &mut counts, &starts))
                }
            };
            let columns = (first..first + columns.len()).collect();
            found.slices.push(Slice { starts, counts, values, columns });
        }
        found.boxes = BoxTree::new(extents.iter().map(Vec::as_slice).collect(), numbers.len());
        found.numbers = numbers;
        found.index = found.index_of_slices();
        Ok(found)
    }

    fn index_of_slices(&self) -> Option<(usize, HashMap<i128, Vec<u32>>)> {
        let mut best: Option<(usize, HashMap<i128, Vec<u32>>)> = None;
        for (number, slice) in self.slices.iter().enumerate() {
            let Shows::Exact(keys) = &slice.values else { continue };
            let mut index: HashMap<i128, Vec<u32>> = HashMap::new();
            for (bucket, ends) in slice.starts.windows(2).enumerate() {
                keys[ends[0]..ends[1]].iter().for_each(|key| index.entry(*key).or_default().push(bucket as u32));
            }
            if best.as_ref().is_none_or(|(_, most)| most.len() < index.len()) {
                best = Some((number, index));
            }
        }
        best
    }

    /// Who of a table of people fits which buckets.
    pub(crate) async fn fit_people(&self, people: &DataFrame) -> Result<Fits> {
        let keys: Vec<Expr> = self.wanted.iter().map(|column| ident(column.schema_name().to_string())).collect();
        let distinct =
            people.clone().select(self.wanted.clone())?.aggregate(keys, vec![count(lit(1)).alias("__people")])?;
        let mut crowds: HashMap<Vec<u32>, u64> = HashMap::new();
        let mut fits = Fits::default();
        let mut stream = distinct.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            self.fit_batch(&batch, &mut crowds, &mut fits)?;
        }
        let width = self.slices.len() + 1;
        let crowd = |(fits, people): (Vec<u32>, u64)| Crowd {
            people,
            fits: fits.chunks(width).map(|fit| (fit[0] as usize, fit[1..].to_vec())).collect(),
        };
        fits.crowds = crowds.into_iter().map(crowd).collect();
        fits.crowds.sort_unstable_by(|a, b| a.fits.cmp(&b.fits));
        fits.spread_muddle();
        Ok(fits)
    }

    fn fit_batch(&self, batch: &RecordBatch, crowds: &mut HashMap<Vec<u32>, u64>, fits: &mut Fits) -> Result<()> {
        let people = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        let mut keys: Vec<Vec<i128>> = Vec::with_capacity(self.slices.len());
        let mut raised: Vec<Option<Values>> = Vec::with_capacity(self.slices.len());
        for slice in &self.slices {
            let columns: Vec<ArrayRef> = slice.columns.iter().map(|&column| Arc::clone(batch.column(column))).collect();
            raised.push(match &slice.values {
                Shows::Exact(_) => None,
                Shows::Raised(column) => Some(column.read_values(&columns[0])?),
            });
            keys.push(content_keys(&columns, batch.num_rows())?);
        }
        let mut places = Vec::with_capacity(self.axes.len());
        for (column, axis) in &self.axes {
            places.push(axis.read_values(batch.column(*column))?.at);
        }
        let mut at = vec![0.0; places.len()];
        let mut candidates: Vec<u32> = Vec::new();
        for row in 0..batch.num_rows() {
            candidates.clear();
            let listed =
                self.index.as_ref().map(|(slice, index)| index.get(&keys[*slice][row]).map_or(&[][..], Vec::as_slice));
            match listed {
                Some(few) if few.len() <= MAX_CANDIDATES => candidates.extend(few),
                _ => {
                    at.iter_mut().zip(&places).for_each(|(at, places)| *at = places[row]);
                    self.boxes.query_point(&at, |bucket| candidates.push(bucket));
                    candidates.sort_unstable();
                }
            }
            let mut fitting: Vec<u32> = Vec::new();
            for &bucket in &candidates {
                let before = fitting.len();
                fitting.push(bucket);
                for (slice, (keys, raised)) in self.slices.iter().zip(keys.iter().zip(&raised)) {
                    match slice.find_values(bucket, keys[row], raised.as_ref(), row) {
                        Found::Nothing => {
                            fitting.truncate(before);
                            break;
                        }
                        Found::One(value) => fitting.push(value),
                        Found::Several => {
                            fits.ambiguous.insert(bucket);
                            fitting.push(0);
                        }
                    }
                }
            }
            let number = people.value(row) as u64;
            if fitting.is_empty() {
                fits.outside += number;
            } else {
                *crowds.entry(fitting).or_default() += number;
            }
        }
        Ok(())
    }

    /// How often every combination is published in a bucket, slice by slice.
    fn published_counts(&self, bucket: usize) -> Vec<BTreeMap<u32, u64>> {
        let of = |slice: &Slice| {
            let entries = slice.starts[bucket]..slice.starts[bucket + 1];
            entries.map(|entry| (entry as u32, slice.counts[entry])).collect()
        };
        self.slices.iter().map(of).collect()
    }

    /// What a reader believes about everybody, and published rows that fit nobody.
    pub(crate) fn compute_beliefs(&self, fits: &Fits, effort: Budget) -> (Vec<Belief>, u64) {
        let clear = |crowd: &&Crowd| !fits.is_muddled(crowd);
        let crowds: Vec<Crowd> = fits.crowds.iter().filter(clear).cloned().collect();
        let found = overlap::attack_overlaps(&self.sizes, |bucket| self.published_counts(bucket), &crowds, effort);
        let ambiguous: u64 = fits.ambiguous.iter().map(|&bucket| self.sizes[bucket as usize]).sum();
        let mut believed = found.crowds.into_iter();
        let belief = |crowd: &Crowd| match clear(&crowd) {
            true => believed.next().unwrap_or(Belief::Exact(Fraction::zero())),
            false => Belief::Between(Fraction::zero(), Fraction::one()),
        };
        (fits.crowds.iter().map(belief).collect(), found.unmatched.saturating_sub(ambiguous))
    }

    /// People by how surely they are known to be in the source.
    pub(crate) fn confidence_histogram(&self, fits: &Fits, effort: Budget) -> ConfidenceHistogram {
        let mut tally = ConfidenceHistogram {
            released: self.sizes.iter().sum(),
            buckets: self.sizes.len() as u64,
            ..ConfidenceHistogram::default()
        };
        let (beliefs, _) = self.compute_beliefs(fits, effort);
        let mut bounded: HashSet<usize> = HashSet::new();
        for (crowd, belief) in fits.crowds.iter().zip(&beliefs) {
            tally.add_belief(belief, crowd.people);
            if matches!(belief, Belief::Between(..)) {
                bounded.extend(crowd.fits.iter().map(|(bucket, _)| *bucket));
            }
        }
        tally.bounded_buckets = bounded.len() as u64;
        tally.add_outside(fits.outside);
        tally
    }

    /// People who fit each bucket.
    pub(crate) fn count_people(&self, fits: &Fits) -> Vec<u64> {
        let mut fitting = vec![0; self.sizes.len()];
        for crowd in &fits.crowds {
            crowd.fits.iter().for_each(|(bucket, _)| fitting[*bucket] += crowd.people);
        }
        fitting
    }

    /// The identity of every bucket: the key of its number.
    pub(crate) fn bucket_keys(&self) -> Result<Vec<i128>> {
        let numbers: ArrayRef = Arc::new(UInt64Array::from(self.numbers.clone()));
        Ok(content_keys(&[numbers], self.numbers.len())?)
    }

    /// Risks of linking published rows with public people.
    pub(crate) fn linkage_risks(&self, fits: &Fits) -> Linkage {
        let mut linkage = Linkage::default();
        self.sizes.iter().zip(self.count_people(fits)).for_each(|(&rows, people)| linkage.add_class(rows, people));
        linkage
    }

    /// Whether the release is made of the rows that were fitted: what each bucket shows of every slice is what its rows
    /// have, but for so many that were suppressed.
    pub(crate) fn check_source(&self, fits: &Fits, suppressed: u64) -> Vec<Finding> {
        let nothing = Budget { bucket: 0, whole: 0, joint: 0 };
        let (_, unmatched) = self.compute_beliefs(fits, nothing);
        let mut findings = Vec::new();
        if unmatched > 0 {
            let message = format!("{unmatched} published rows do not occur in the source");
            findings.push(Finding::new("truthful", unmatched, message));
        }
        // Rows that fit one bucket alone must be in it.
        let mut alone = vec![0_u64; self.sizes.len()];
        for crowd in &fits.crowds {
            if let [(bucket, _)] = crowd.fits[..] {
                alone[bucket] += crowd.people;
            }
        }
        let beyond: u64 = alone.iter().zip(&self.sizes).map(|(rows, size)| rows.saturating_sub(*size)).sum();
        let lost = (fits.outside + beyond).saturating_sub(suppressed);
        if lost > 0 {
            findings.push(Finding::new("truthful", lost, format!("{lost} rows of the source were lost or changed")));
        }
        findings
    }
}

impl Fits {
    fn is_muddled(&self, crowd: &Crowd) -> bool {
        !self.ambiguous.is_empty() && crowd.fits.iter().any(|(bucket, _)| self.ambiguous.contains(&(*bucket as u32)))
    }

    /// Buckets connected with an inconclusive one are inconclusive, too.
    fn spread_muddle(&mut self) {
        let mut known = usize::MAX;
        while !self.ambiguous.is_empty() && known != self.ambiguous.len() {
            known = self.ambiguous.len();
            for crowd in &self.crowds {
                if crowd.fits.iter().any(|(bucket, _)| self.ambiguous.contains(&(*bucket as u32))) {
                    self.ambiguous.extend(crowd.fits.iter().map(|(bucket, _)| *bucket as u32));
                }
            }
        }
    }
}

impl Slice {
    fn find_values(&self, bucket: u32, key: i128, raised: Option<&Values>, row: usize) -> Found {
        let (from, to) = (self.starts[bucket as usize], self.starts[bucket as usize + 1]);
        match (&self.values, raised) {
            (Shows::Raised(column), Some(values)) => {
                let mut covering = (from..to).filter(|&entry| column.covers(entry, values, row));
                match (covering.next(), covering.next()) {
                    (None, _) => Found::Nothing,
                    (Some(entry), None) => Found::One(entry as u32),
                    _ => Found::Several,
                }
            }
            (Shows::Exact(keys), _) => {
                keys[from..to].binary_search(&key).map_or(Found::Nothing, |at| Found::One((from + at) as u32))
            }
            _ => Found::Nothing,
        }
    }
}

/// Group, values and count of every combination in every bucket, by group.
async fn count_entries(frame: &DataFrame, names: &[String]) -> Result<RecordBatch> {
    let mut keys = vec![ident(GROUP)];
    for name in names {
        // People are read without dictionaries.
        let data_type = frame.schema().field_with_unqualified_name(name)?.data_type();
        keys.push(match data_type {
            DataType::Dictionary(..) => cast(ident(name), without_dictionary(data_type)).alias(name),
            _ => ident(name),
        });
    }
    let counted = frame.clone().aggregate(keys, vec![count(lit(1)).alias("__rows")])?;
    let schema = Arc::new(counted.schema().as_arrow().clone());
    let sorted = counted.sort(vec![ident(GROUP).sort(true, true)])?.collect().await?;
    let entries = concat_batches(&schema, &sorted)?;
    if entries.column(0).data_type() != &DataType::UInt64 || entries.column(0).null_count() > 0 {
        return Err(Error::privacy(format!("the published column `{GROUP}` does not hold numbers of groups")));
    }
    Ok(entries)
}

/// What some extents cover together.
fn union_extents(extents: &[(f64, f64)]) -> (f64, f64) {
    extents.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// The type without a dictionary around it.
fn without_dictionary(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    }
}
