//! One cell, from its rows to its published rows: encode, group, enforce the rules, recode, measure.
//!
//! The result depends on the content of the cell and on the secret key of the run alone. Rows are first put into an order
//! by a keyed hash of what is read of them, so it does not matter how they arrived. They leave class by class, in an order
//! that follows from what is published of them and from the key: how groups were made, and how they grew, does not show.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{filter, take};

use super::measure::measure_groups;
use super::{AnonymizeParams, members};
use crate::encode::{class_hashes, encode_sensitive, row_hashes, without_nulls};
use crate::error::Result;
use crate::faults::{self, Fault};
use crate::grouping::{enforce_rules, group_rows};
use crate::measure::{Cells, Groups as Measures, People, Placement};
use crate::methods::combined::Raised;
use crate::model::{Grouping, Table};
use crate::permutation::mix_bits;
use crate::policy::{Nulls, Role};
use crate::privacy::{GroupView, Rules};
use crate::recode::{self, Groups};
use crate::secret::Purpose;

/// The published rows of a cell and what there is to say of them.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The published rows.
    pub rows: RecordBatch,
    /// Their loss and protection, group by group.
    pub measures: Measures,
    /// How long encoding took.
    pub encoding: Duration,
    /// How long grouping and settling took.
    pub grouping: Duration,
    /// How long recoding took.
    pub recoding: Duration,
}

impl Cell {
    /// A cell without published rows: only the number of its dropped rows.
    fn of_nothing(params: &AnonymizeParams, dropped: u64, encoding: Duration) -> Self {
        let mut measures = params.empty_measures();
        measures.loss.add_suppressed(dropped);
        let rows = RecordBatch::new_empty(std::sync::Arc::clone(&params.bound_policy.output));
        Self { rows, measures, encoding, grouping: Duration::ZERO, recoding: Duration::ZERO }
    }
}

/// Anonymises the rows of one cell.
pub(crate) fn anonymise_cell(params: &AnonymizeParams, cell: u32, rows: &RecordBatch) -> Result<Cell> {
    let started = Instant::now();
    let bound_policy = &params.bound_policy;
    let dropping = bound_policy.quasi.iter().filter(|quasi| quasi.nulls == Nulls::Drop);
    let dropping = dropping.map(|quasi| rows.column(quasi.index));
    let (rows, dropped) = without_nulls(rows, dropping, bound_policy.member.map(|member| rows.column(member)))?;
    let rows = &rows;
    if rows.num_rows() == 0 {
        return Ok(Cell::of_nothing(params, dropped, started.elapsed()));
    }
    let order = keyed_order(params, cell, rows)?;
    let table = encode_rows(params, rows, &order)?;
    let (table, order) = match bound_policy.member {
        Some(_) => members::without_doubles(table, order, rows, bound_policy)?,
        None => (table, order),
    };
    let encoded = Instant::now();
    let rules = params.rules_of(&table);
    let seed = bound_policy.key.random_number(Purpose::Method, cell.into());
    let (mut grouping, built) = group_rows(&*params.method, &table, &rules, seed);
    let grouped = Instant::now();
    let raised = params.combined.as_ref().map(|combined| combined.raise_groups(&table, &grouping));
    let mut attempt = 0;
    let (groups, published) = loop {
        let mut groups = Groups::new(&table, &grouping, &order);
        let published = publish_groups(params, cell, rows, &mut groups, raised.as_ref())?;
        match without_clashes([&params.rules, &rules], &groups, &published.classes, built.refused(), attempt)? {
            Some(next) => grouping = next,
            None => break (groups, published),
        }
        attempt += 1;
    };
    let mut measures = measure_groups(params, rows, &table, &groups, &published.losses, raised.as_ref())?;
    measures.loss.add_suppressed(dropped);
    if Fault::OneRowMore.is_planted() {
        measures.loss.add_group(1, &vec![0.0; published.losses.len()]);
    }
    measures.people = count_people(params, rows, &groups, &published.classes)?;
    measures.cells = Cells::one_cell(measures.loss.rows());
    measures.placement = Placement::of_groups(&built, groups.grouping);
    Ok(Cell {
        rows: published.rows,
        measures,
        encoding: encoded - started,
        grouping: grouped - encoded,
        recoding: grouped.elapsed(),
    })
}

/// What the rows of a window have become.
#[derive(Debug)]
pub(crate) struct Windowed {
    /// The published rows.
    pub(crate) rows: RecordBatch,
    /// The number of groups.
    pub(crate) groups: usize,
    /// Rows of the window that are in no group, ascending.
    pub(crate) left: Vec<u32>,
}

/// Anonymises the rows of one window. What finds no group is left over; of that, the rows that are `due` are settled once
/// more, into groups that meet the `plain` rules.
pub(crate) fn anonymise_window(
    params: &AnonymizeParams,
    number: u32,
    rows: &RecordBatch,
    due: &[bool],
    plain: &Rules,
) -> Result<Windowed> {
    let order = keyed_order(params, number, rows)?;
    let table = encode_rows(params, rows, &order)?;
    let rules = params.rules_of(&table);
    let seed = params.bound_policy.key.random_number(Purpose::Method, number.into());
    let (mut grouping, _) = group_rows(&*params.method, &table, &rules, seed);
    let is_due = |row: &u32| due[order[*row as usize] as usize];
    if grouping.left_over.iter().any(is_due) {
        grouping.left_over.retain(is_due);
        grouping = enforce_rules(&table, grouping, plain);
    }
    let (groups, published) = loop {
        let mut groups = Groups::new(&table, &grouping, &order);
        let published = publish_groups(params, number, rows, &mut groups, None)?;
        // What is dropped here waits for the next window.
        match without_clashes([plain, plain], &groups, &published.classes, &[], REGROUPINGS)? {
            Some(next) => grouping = next,
            None => break (groups, published),
        }
    };
    let mut is_left = vec![true; rows.num_rows()];
    groups.grouping.rows().iter().for_each(|&row| is_left[order[row as usize] as usize] = false);
    let left = (0_u32..).zip(is_left).filter(|(_, left)| *left).map(|(row, _)| row).collect();
    Ok(Windowed { rows: published.rows, groups: groups.grouping.len(), left })
}

/// Publishes all rows of a batch as one group, and returns its mean loss. Whether they may be one is for others to say.
pub(crate) fn publish_together(params: &AnonymizeParams, rows: &RecordBatch) -> Result<(RecordBatch, f64)> {
    let order = keyed_order(params, 0, rows)?;
    let table = encode_rows(params, rows, &order)?;
    let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
    let mut grouping = Grouping::with_capacity(all.len());
    grouping.push(&all);
    let published = generalise_groups(params, rows, &mut Groups::new(&table, &grouping, &order))?;
    let losses: Vec<f64> = published.losses.iter().flatten().copied().collect();
    Ok((published.rows, losses.iter().sum::<f64>() / losses.len().max(1) as f64))
}

/// Batch rows in a random order that follows from their content and the key of the run, however they arrived. Equal
/// rows are spread over it: a split that divides ties must not find the same sensitive value side by side.
fn keyed_order(params: &AnonymizeParams, cell: u32, rows: &RecordBatch) -> Result<Vec<u32>> {
    let bound_policy = &params.bound_policy;
    let read: Vec<ArrayRef> = rows
        .columns()
        .iter()
        .enumerate()
        // Of two rows that publish the same, it matters whose they are, and whether they are of the source.
        .filter(|(index, _)| bound_policy.reads_column(*index))
        .map(|(_, column)| column.clone())
        .collect();
    let key = bound_policy.key.random_number(Purpose::RowOrder, cell.into());
    let hashes = row_hashes(&read, rows.num_rows(), key)?;
    let mut order: Vec<(u64, u32)> = hashes.into_iter().zip(0..).collect();
    order.sort_unstable();
    for equal in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
        (0_u64..).zip(equal).for_each(|(occurrence, (hash, _))| *hash = mix_bits(*hash ^ mix_bits(key ^ occurrence)));
    }
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, row)| row).collect())
}

fn encode_rows(params: &AnonymizeParams, rows: &RecordBatch, order: &[u32]) -> Result<Table> {
    let width = params.axes.len();
    let mut place = vec![0_u32; order.len()];
    (0..).zip(order).for_each(|(at, &row)| place[row as usize] = at);
    let mut codes = vec![0; rows.num_rows() * width];
    for (axis, encoder) in params.encoders.iter().enumerate() {
        let array = rows.column(encoder.column().index);
        encoder.encode_values(array, |row, code| codes[place[row] as usize * width + axis] = code)?;
    }
    let mut table = Table::new(std::sync::Arc::clone(&params.axes), codes);
    let bound_policy = &params.bound_policy;
    for (column, domain) in bound_policy.sensitive.iter().zip(&params.survey.sensitive) {
        let array = rows.column(column.index);
        let mut sensitive = match bound_policy.member.map(|member| rows.column(member).as_boolean()) {
            None => encode_sensitive(column, domain, array)?,
            // Public rows have no sensitive value, and no rule asks for one.
            Some(members) => {
                let mut sensitive = encode_sensitive(column, domain, &filter(array, members)?)?;
                let mut known = std::mem::take(&mut sensitive.codes).into_iter();
                let codes = members.values().iter().map(|member| if member { known.next() } else { None });
                sensitive.codes = codes.map(Option::unwrap_or_default).collect();
                sensitive
            }
        };
        sensitive.codes = order.iter().map(|&row| sensitive.codes[row as usize]).collect();
        table.sensitive.push(sensitive);
    }
    for &column in &params.plain {
        let hashes = row_hashes(std::slice::from_ref(rows.column(column)), rows.num_rows(), 0)?;
        table.plain.push(order.iter().map(|&row| hashes[row as usize]).collect());
    }
    if let Some(member) = bound_policy.member {
        let member = rows.column(member).as_boolean();
        table.members = Some(order.iter().map(|&row| member.value(row as usize)).collect());
    }
    if let Some(hashes) = person_hashes(params, rows)? {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut number = |hash: u64| {
            let next = numbers.len() as u32;
            *numbers.entry(hash).or_insert(next)
        };
        table.persons = Some(order.iter().map(|&row| number(hashes[row as usize])).collect());
    }
    Ok(table)
}

/// A hash of the person that every row belongs to, if k counts people. Rows that do not say count as one person.
fn person_hashes(params: &AnonymizeParams, rows: &RecordBatch) -> Result<Option<Vec<u64>>> {
    let Some(person) = params.bound_policy.person else { return Ok(None) };
    row_hashes(std::slice::from_ref(rows.column(person)), rows.num_rows(), PERSON_SEED).map(Some).map_err(Into::into)
}

/// Seed of the hashes that identify people.
const PERSON_SEED: u64 = 0x7068_6F65_6265;

/// People in the classes of the published rows, when k counts people.
fn count_people(
    params: &AnonymizeParams,
    rows: &RecordBatch,
    groups: &Groups<'_>,
    classes: &[ArrayRef],
) -> Result<Option<People>> {
    let Some(persons) = person_hashes(params, rows)? else { return Ok(None) };
    let classes = class_hashes(classes, groups.grouping.len())?;
    let of_group = groups.grouping.iter().map(|rows| groups.table.members_of(rows));
    let persons = classes.into_iter().zip(of_group).flat_map(|(class, rows)| {
        rows.map(|row| (class, persons[groups.order[row as usize] as usize])).collect::<Vec<_>>()
    });
    Ok(Some(People::from_rows(persons)))
}

/// What the groups of a cell have become.
struct Published {
    /// The rows, with their columns in the order of the source.
    rows: RecordBatch,
    /// The loss of every group per quasi-identifier.
    losses: Vec<Vec<f64>>,
    /// The columns that make up a class, with a value for every group.
    classes: Vec<ArrayRef>,
}

/// Publishes the groups of a cell.
fn publish_groups(
    params: &AnonymizeParams,
    cell: u32,
    rows: &RecordBatch,
    groups: &mut Groups<'_>,
    raised: Option<&Raised>,
) -> Result<Published> {
    let (bound_policy, slices) = (&params.bound_policy, &params.slices);
    if !bound_policy.form().is_numbered() {
        return generalise_groups(params, rows, groups);
    }
    let numbers = recode::permuted::group_numbers(bound_policy, cell, groups);
    let (rows, losses) = if bound_policy.form().is_two_tables() {
        let losses = vec![vec![0.0; groups.grouping.len()]; params.axes.len()];
        (recode::anatomy::publish_anatomy(bound_policy, slices, cell, rows, groups, &numbers)?, losses)
    } else {
        let raised = raised.map(|raised| (params.encoders.as_slice(), raised));
        recode::permuted::publish_permuted(bound_policy, slices, cell, rows, groups, &numbers, raised)?
    };
    Ok(Published { rows, losses, classes: vec![Arc::new(UInt64Array::from(numbers))] })
}

/// Publishes groups by values that cover their rows.
fn generalise_groups(params: &AnonymizeParams, rows: &RecordBatch, groups: &mut Groups<'_>) -> Result<Published> {
    let bound_policy = &params.bound_policy;
    let mut quasi = Vec::with_capacity(params.encoders.len());
    for (axis, encoder) in params.encoders.iter().enumerate() {
        quasi.push(recode::publish_column(encoder, axis, rows.column(encoder.column().index), groups)?);
    }
    let classes: Vec<ArrayRef> = quasi.iter().flat_map(|published| &published.columns).cloned().collect();
    let columns = || rows.columns().iter().zip(&bound_policy.roles);
    let rest: Vec<ArrayRef> = columns()
        .filter(|(_, role)| matches!(role, Role::Sensitive | Role::Kept))
        .map(|(column, _)| Arc::clone(column))
        .collect();
    let key = bound_policy.key.random_number(Purpose::PublishedOrder, 0);
    let class_of_group = row_hashes(&classes, groups.grouping.len(), key)?;
    groups.order_by_content(&class_of_group, &row_hashes(&rest, rows.num_rows(), key)?);
    let (mut published, mut of_quasi) = (Vec::with_capacity(bound_policy.output.fields().len()), quasi.iter());
    for (column, role) in columns() {
        match role {
            Role::Identifier => {}
            Role::Sensitive | Role::Kept => published.push(take(column, groups.rows(), None)?),
            Role::Quasi => {
                for column in of_quasi.next().into_iter().flat_map(|quasi| &quasi.columns) {
                    published.push(groups.expand_groups(column)?);
                }
            }
        }
    }
    let rows = RecordBatch::try_new(Arc::clone(&bound_policy.output), published)?;
    let rows = if faults::ENABLED { super::planted::distort_published(rows, bound_policy)? } else { rows };
    let losses = quasi.into_iter().map(|published| published.losses).collect();
    Ok(Published { rows, losses, classes })
}

/// How often groups that publish the same values are grouped anew before rows are given up.
const REGROUPINGS: usize = 3;

/// Groups that publish the same values are one class to a reader, and a rule may hold in each of them and not in all of
/// them together. Returns the grouping to publish instead where a class of this cell violates a rule; none where every class
/// is as good as its groups. Classes that reach beyond the cell are seen by the verification.
///
/// The groups of such a class are united first, and the rules enforced again; if that does not help, groups are dropped,
/// the last first, until the class meets the rules. `refused` rows, which the method suppresses, stay out.
fn without_clashes(
    [rules, enforced]: [&Rules; 2],
    groups: &Groups<'_>,
    classes: &[ArrayRef],
    refused: &[u32],
    attempt: usize,
) -> Result<Option<Grouping>> {
    // Groups among public rows lie apart, so each is a class of its own.
    if rules.others.is_empty() || groups.table.members.is_some() {
        return Ok(None);
    }
    let hashes = row_hashes(classes, groups.grouping.len(), 0)?;
    let mut groups_of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    hashes.into_iter().enumerate().for_each(|(group, class)| groups_of.entry(class).or_default().push(group));
    let rows_of = |members: &[usize]| -> Vec<u32> {
        members.iter().flat_map(|&group| groups.grouping.group(group)).copied().collect()
    };
    let is_met = |members: &[usize]| rules.are_met_by(&GroupView::new(groups.table, &rows_of(members)));
    let clashes: Vec<Vec<usize>> =
        groups_of.into_values().filter(|members| members.len() > 1 && !is_met(members)).collect();
    if clashes.is_empty() {
        return Ok(None);
    }
    let (mut next, mut taken) = (Grouping::with_capacity(groups.grouping.rows().len()), BTreeSet::new());
    next.left_over.extend_from_slice(&groups.grouping.left_over);
    for mut members in clashes {
        taken.extend(members.iter().copied());
        if attempt < REGROUPINGS {
            next.push(&rows_of(&members));
            continue;
        }
        while members.len() > 1 && !is_met(&members) {
            next.left_over.extend(members.pop().map_or(&[][..], |group| groups.grouping.group(group)));
        }
        members.iter().for_each(|&group| next.push(groups.grouping.group(group)));
    }
    let others = groups.grouping.iter().enumerate().filter(|(group, _)| !taken.contains(group));
    others.for_each(|(_, rows)| next.push(rows));
    if attempt < REGROUPINGS {
        let refused: BTreeSet<u32> = refused.iter().copied().collect();
        next.left_over.retain(|row| !refused.contains(row));
        next.refused.extend(refused);
        next = enforce_rules(groups.table, next, enforced);
    }
    Ok(Some(next))
}
