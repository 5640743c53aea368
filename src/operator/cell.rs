//! One cell, from its rows to its published rows: encode, group, settle, recode, measure.
//!
//! The result depends on the content of the cell alone. Rows are first put into canonical order, by a seeded hash of
//! everything that will be published of them, so it does not matter how they arrived; and they leave group by group,
//! so their order tells nothing of the input's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{filter, take};

use super::{Blueprint, members};
use crate::domain::{Cover, Grouping, Table};
use crate::encode::{class_hashes, encode_sensitive, row_hashes, without_nulls};
use crate::error::Result;
use crate::job::{Nulls, Role};
use crate::measure::dependency::Preserved;
use crate::measure::{Cells, Groups as Measures, People};
use crate::method::combined::Raised;
use crate::method::settle;
use crate::permutation::mix;
use crate::privacy::GroupView;
use crate::privacy::range_diversity::range_diversity;
use crate::recode::{self, Groups};

/// The published rows of a cell and what there is to say of them.
#[derive(Debug)]
pub struct Cell {
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
    /// A cell of which nothing is left but how many of its rows were dropped.
    fn of_nothing(blueprint: &Blueprint, dropped: u64, encoding: Duration) -> Self {
        let mut measures = blueprint.measures();
        measures.loss.add_suppressed(dropped);
        let rows = RecordBatch::new_empty(std::sync::Arc::clone(&blueprint.treatment.output));
        Self { rows, measures, encoding, grouping: Duration::ZERO, recoding: Duration::ZERO }
    }
}

/// Anonymises the rows of one cell.
pub fn anonymise(blueprint: &Blueprint, cell: u32, rows: &RecordBatch) -> Result<Cell> {
    let started = Instant::now();
    let treatment = &blueprint.treatment;
    let dropping = treatment.quasi.iter().filter(|quasi| quasi.nulls == Nulls::Drop);
    let dropping = dropping.map(|quasi| rows.column(quasi.index));
    let (rows, dropped) = without_nulls(rows, dropping, treatment.member.map(|member| rows.column(member)))?;
    let rows = &rows;
    if rows.num_rows() == 0 {
        return Ok(Cell::of_nothing(blueprint, dropped, started.elapsed()));
    }
    let (order, salt) = canonical_order(blueprint, rows)?;
    let table = encode(blueprint, rows, &order)?;
    let (table, order) = match treatment.member {
        Some(_) => members::without_doubles(table, order)?,
        None => (table, order),
    };
    let encoded = Instant::now();
    let grouping = blueprint.method.group(&table, &blueprint.rules, cell_seed(blueprint, cell));
    let grouping = settle(&table, grouping, &blueprint.rules);
    let grouped = Instant::now();
    let mut groups = Groups::new(&table, &grouping, &order);
    let raised = blueprint.combined.as_ref().map(|combined| combined.raise(&table, &grouping));
    let (mut published, mut losses) = publish(blueprint, cell, rows, &groups, raised.as_ref(), salt)?;
    let safe = without_clashes(blueprint, &groups, &published)?;
    if let Some(safe) = &safe {
        groups = Groups::new(&table, safe, &order);
        (published, losses) = publish(blueprint, cell, rows, &groups, None, salt)?;
    }
    let mut measures = measure(blueprint, &table, &groups, &losses, raised.as_ref());
    measures.loss.add_suppressed(dropped);
    measures.people = people(blueprint, rows, &groups, &published)?;
    measures.cells = Cells::one(rows.num_rows() as u64);
    Ok(Cell {
        rows: published,
        measures,
        encoding: encoded - started,
        grouping: grouped - encoded,
        recoding: grouped.elapsed(),
    })
}

/// Batch rows in the order of their content's hash, and a number that follows from all of them.
fn canonical_order(blueprint: &Blueprint, rows: &RecordBatch) -> Result<(Vec<u32>, u64)> {
    let treatment = &blueprint.treatment;
    let published: Vec<ArrayRef> = rows
        .columns()
        .iter()
        .enumerate()
        // Of two rows that publish the same, it matters whose they are, and whether they are of the source.
        .filter(|(index, _)| treatment.reads(*index))
        .map(|(_, column)| column.clone())
        .collect();
    let hashes = row_hashes(&published, rows.num_rows(), treatment.policy.method.seed)?;
    let mut order: Vec<(u64, u32)> = hashes.into_iter().zip(0..).collect();
    order.sort_unstable();
    let salt = order.iter().fold(treatment.policy.method.seed, |salt, (hash, _)| mix(salt ^ hash));
    Ok((order.into_iter().map(|(_, row)| row).collect(), salt))
}

fn encode(blueprint: &Blueprint, rows: &RecordBatch, order: &[u32]) -> Result<Table> {
    let width = blueprint.axes.len();
    let mut place = vec![0_u32; order.len()];
    (0..).zip(order).for_each(|(at, &row)| place[row as usize] = at);
    let mut codes = vec![0; rows.num_rows() * width];
    for (axis, coder) in blueprint.coders.iter().enumerate() {
        let array = rows.column(coder.column().index);
        coder.encode(array, |row, code| codes[place[row] as usize * width + axis] = code)?;
    }
    let mut table = Table::new(std::sync::Arc::clone(&blueprint.axes), codes);
    let treatment = &blueprint.treatment;
    for (column, domain) in treatment.sensitive.iter().zip(&blueprint.survey.sensitive) {
        let array = rows.column(column.index);
        let mut sensitive = match treatment.member.map(|member| rows.column(member).as_boolean()) {
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
    for &column in &blueprint.plain {
        let hashes = row_hashes(std::slice::from_ref(rows.column(column)), rows.num_rows(), 0)?;
        table.plain.push(order.iter().map(|&row| hashes[row as usize]).collect());
    }
    if let Some(member) = treatment.member {
        let member = rows.column(member).as_boolean();
        table.members = Some(order.iter().map(|&row| member.value(row as usize)).collect());
    }
    if let Some(hashes) = person_hashes(blueprint, rows)? {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut number = |hash: u64| {
            let next = numbers.len() as u32;
            *numbers.entry(hash).or_insert(next)
        };
        table.persons = Some(order.iter().map(|&row| number(hashes[row as usize])).collect());
    }
    Ok(table)
}

/// A hash of the person that every row belongs to, when k counts people. Rows that do not tell are of one person.
fn person_hashes(blueprint: &Blueprint, rows: &RecordBatch) -> Result<Option<Vec<u64>>> {
    let Some(person) = blueprint.treatment.person else { return Ok(None) };
    row_hashes(std::slice::from_ref(rows.column(person)), rows.num_rows(), PERSON_SEED).map(Some).map_err(Into::into)
}

/// Seed of the hashes that tell people apart.
const PERSON_SEED: u64 = 0x7068_6F65_6265;

/// People in the classes of the published rows, when k counts people.
fn people(
    blueprint: &Blueprint,
    rows: &RecordBatch,
    groups: &Groups<'_>,
    published: &RecordBatch,
) -> Result<Option<People>> {
    let Some(persons) = person_hashes(blueprint, rows)? else { return Ok(None) };
    let classes = class_hashes(&class_columns(blueprint, published), published.num_rows())?;
    let persons = groups.rows().values().iter().map(|&row| persons[row as usize]).collect::<Vec<_>>();
    Ok(Some(People::count(classes.into_iter().zip(persons))))
}

/// The published columns that make up a class.
fn class_columns(blueprint: &Blueprint, published: &RecordBatch) -> Vec<ArrayRef> {
    let names = blueprint.treatment.class_columns();
    names.iter().filter_map(|name| published.column_by_name(name)).cloned().collect()
}

/// The published columns in the order of the source, and the loss of every group per quasi-identifier.
fn publish(
    blueprint: &Blueprint,
    cell: u32,
    rows: &RecordBatch,
    groups: &Groups<'_>,
    raised: Option<&Raised>,
    salt: u64,
) -> Result<(RecordBatch, Vec<Vec<f64>>)> {
    let (treatment, slices) = (&blueprint.treatment, &blueprint.slices);
    if treatment.form().is_two_tables() {
        let losses = vec![vec![0.0; groups.grouping.len()]; blueprint.axes.len()];
        return Ok((recode::anatomy::publish(treatment, slices, cell, rows, groups, salt)?, losses));
    }
    if treatment.form().is_permuted() {
        return recode::permuted::publish(treatment, &blueprint.coders, slices, cell, rows, groups, raised, salt);
    }
    let kept = groups.rows();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let mut losses = Vec::new();
    let mut coders = blueprint.coders.iter().enumerate();
    for (column, role) in rows.columns().iter().zip(&blueprint.treatment.roles) {
        match role {
            Role::Identifier => {}
            Role::Sensitive | Role::Kept => columns.push(take(column, &kept, None)?),
            Role::Quasi => {
                if let Some((axis, coder)) = coders.next() {
                    let published = recode::publish(coder, axis, column, groups)?;
                    columns.extend(published.columns);
                    losses.push(published.losses);
                }
            }
        }
    }
    let schema = std::sync::Arc::clone(&blueprint.treatment.output);
    Ok((RecordBatch::try_new(schema, columns)?, losses))
}

/// Groups that publish the same values are one class to a reader, and range diversity of a class may be worse than that
/// of each group in it. Where a class of this cell breaks a rule, its groups are given up, the last first, until it does
/// not; none: every class is as good as its groups. Classes that reach beyond the cell are seen by the verification.
fn without_clashes(blueprint: &Blueprint, groups: &Groups<'_>, published: &RecordBatch) -> Result<Option<Grouping>> {
    // Groups among public rows lie apart, so each is a class of its own.
    if blueprint.rules.others.is_empty() || groups.table.members.is_some() {
        return Ok(None);
    }
    let hashes = row_hashes(&class_columns(blueprint, published), published.num_rows(), 0)?;
    let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut first = 0;
    for (group, rows) in groups.grouping.iter().enumerate() {
        classes.entry(hashes[first]).or_default().push(group);
        first += rows.len();
    }
    let mut given_up: BTreeSet<usize> = BTreeSet::new();
    for mut members in classes.into_values() {
        while members.len() > 1 {
            let rows: Vec<u32> = members.iter().flat_map(|&group| groups.grouping.group(group)).copied().collect();
            if blueprint.rules.hold(&GroupView::new(groups.table, &rows)) {
                break;
            }
            given_up.extend(members.pop());
        }
    }
    if given_up.is_empty() {
        return Ok(None);
    }
    let mut safe = Grouping::with_capacity(groups.grouping.rows().len());
    safe.left_over.extend_from_slice(&groups.grouping.left_over);
    for (group, rows) in groups.grouping.iter().enumerate() {
        if given_up.contains(&group) {
            safe.left_over.extend_from_slice(rows);
        } else {
            safe.push(rows);
        }
    }
    Ok(Some(safe))
}

fn measure(
    blueprint: &Blueprint,
    table: &Table,
    groups: &Groups<'_>,
    losses: &[Vec<f64>],
    raised: Option<&Raised>,
) -> Measures {
    let mut measures = blueprint.measures();
    let withheld: Vec<bool> = blueprint.treatment.quasi.iter().map(|quasi| quasi.withheld).collect();
    // What a reader sees of a group: everything is possible on an axis that is withheld.
    let show = |rows: &[u32], cover: &mut Cover| {
        cover.clear();
        rows.iter().for_each(|&row| cover.add(&table.axes, table.row(row)));
        (0..withheld.len()).filter(|&a| withheld[a]).for_each(|a| cover.widen(&table.axes, a));
    };
    let (mut cover, mut histogram) = (Cover::empty(table.axes.len()), Vec::new());
    let mut of_group = vec![0.0; losses.len()];
    let (mut spreads, mut disclosures) = (Vec::new(), Vec::new());
    for (group, rows) in groups.grouping.iter().enumerate() {
        losses.iter().zip(&mut of_group).for_each(|(axis, loss)| *loss = axis[group]);
        spreads.clear();
        disclosures.clear();
        let view = GroupView::new(table, rows);
        let published = view.members() as u64;
        if published == 0 {
            continue;
        }
        for sensitive in &table.sensitive {
            view.histogram_into(sensitive, &mut histogram);
            spreads.push(1.0 - crate::measure::protection::s_diversity(&histogram, sensitive));
            disclosures.push(range_diversity(&histogram, sensitive));
        }
        measures.add_group(published, &of_group, &spreads, &disclosures);
        show(rows, &mut cover);
        if blueprint.treatment.form().is_numbered() {
            measures.generalisation.add_rows(&table.axes, published);
        } else {
            measures.generalisation.add_group(&table.axes, &cover, published);
        }
        if let Some(workload) = &mut measures.workload {
            workload.add_group(&blueprint.queries, &table.axes, &cover, published);
        }
    }
    for (axis, parts) in raised.into_iter().flat_map(|raised| raised.parts.iter().enumerate()) {
        for rows in parts.iter() {
            let published = table.members_of(rows).count() as u64;
            measures.generalisation.add_values(&table.axes, axis, &table.cover(rows), published);
        }
    }
    let suppressed = &groups.grouping.left_over;
    measures.loss.add_suppressed(GroupView::new(table, suppressed).members() as u64);
    if let Some(workload) = &mut measures.workload {
        workload.add_table(&blueprint.queries, table);
    }
    if let Some(information) = &mut measures.information {
        let shown = groups.grouping.iter().map(|rows| {
            show(rows, &mut cover);
            (rows, cover.clone())
        });
        information.add_cell(table, shown, suppressed);
    }
    if !blueprint.dependencies.list.is_empty() {
        measures.dependencies = Preserved::of(&blueprint.dependencies, table, groups.grouping, &withheld);
    }
    measures
}

/// A seed of its own for every cell.
fn cell_seed(blueprint: &Blueprint, cell: u32) -> u64 {
    blueprint.treatment.policy.method.seed ^ u64::from(cell).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
