//! Whether prices are fair, found out without anything of the search.
//!
//! Every group has, on every axis, a narrowest extent around it: a value, a node of the hierarchy, or a range from one
//! value to another. All combinations of extents are tried, axis by axis in the order of the table, on the rows as they
//! are. A combination is abandoned once what it loses so far covers its dearest rows.

use super::Cuts;
use crate::model::{Axis, Code, Shape, Table, Tree};

/// What rounding may add up to.
const TOLERANCE: f64 = 1e-12;

/// Whether no k rows have prices that are more than what they lose together, with ranges in blocks.
pub(super) fn are_fair(table: &Table, k: usize, prices: &[f64], cuts: &Cuts) -> bool {
    // Ranges have the most extents, so they are tried when few rows are left.
    let mut axes: Vec<usize> = (0..table.axes.len()).collect();
    axes.sort_by_key(|&axis| matches!(table.axes[axis].shape, Shape::Line { .. }));
    let blocks = axes.iter().map(|&axis| range_blocks(table, axis, &cuts[axis])).collect();
    let audit = Audit { table, k, prices, axes, blocks };
    prices.iter().all(|price| (0.0..=1.0).contains(price))
        && audit.is_covered((0..table.rows() as u32).collect(), 0, 0.0)
}

/// The smallest and the largest value of every block of a range.
fn range_blocks(table: &Table, axis: usize, cuts: &[Code]) -> Vec<(Code, Code)> {
    let values =
        (0..table.rows() as u32).map(|row| table.row(row)[axis]).filter(|code| table.axes[axis].null != Some(*code));
    let values: Vec<Code> = values.collect();
    let ends = (0..cuts.len()).filter_map(|at| {
        let inside = values
            .iter()
            .copied()
            .filter(|value| *value >= cuts[at] && cuts.get(at + 1).is_none_or(|next| value < next));
        Some((inside.clone().min()?, inside.max()?))
    });
    ends.collect()
}

struct Audit<'a> {
    table: &'a Table,
    k: usize,
    prices: &'a [f64],
    axes: Vec<usize>,
    blocks: Vec<Vec<(Code, Code)>>,
}

impl Audit<'_> {
    fn is_covered(&self, mut rows: Vec<u32>, depth: usize, loss: f64) -> bool {
        if rows.len() < self.k {
            return true;
        }
        // What holds of the dearest rows of a box holds of all boxes inside that lose as much.
        let mut prices: Vec<f64> = rows.iter().map(|&row| self.prices[row as usize]).collect();
        prices.select_nth_unstable_by(self.k - 1, |x, y| y.total_cmp(x));
        let asked = prices[..self.k].iter().sum::<f64>();
        let mean = loss / self.axes.len() as f64;
        let is_kept = asked <= self.k as f64 * (mean + TOLERANCE);
        let Some(&axis) = self.axes.get(depth) else { return is_kept };
        if is_kept {
            return true;
        }
        rows.sort_by_key(|&row| self.table.row(row)[axis]);
        let codes: Vec<Code> = rows.iter().map(|&row| self.table.row(row)[axis]).collect();
        narrowest_extents(&self.table.axes[axis], &self.blocks[depth], &codes).into_iter().all(|(from, to, more)| {
            let (start, end) = (codes.partition_point(|code| *code < from), codes.partition_point(|code| *code <= to));
            self.is_covered(rows[start..end].to_vec(), depth + 1, loss + more)
        })
    }
}

/// Every narrowest extent around some of the codes: from, to, loss.
fn narrowest_extents(axis: &Axis, blocks: &[(Code, Code)], codes: &[Code]) -> Vec<(Code, Code, f64)> {
    let mut values = codes.to_vec();
    values.dedup();
    let mut found = Vec::new();
    let Some((&first, &last)) = values.first().zip(values.last()) else { return found };
    if axis.null == Some(last) {
        found.push((last, last, 0.0));
        values.pop();
        if !values.is_empty() {
            let least = if let Shape::Set { values } = axis.shape { two_values(values) } else { 1.0 };
            found.push((first, last, least));
        }
    }
    match &axis.shape {
        Shape::Tree(tree) => {
            found.extend(values.iter().map(|&value| (value, value, tree.loss(value, value))));
            let mut nodes: Vec<u32> = values.iter().flat_map(|&value| ancestors(tree, value)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            found.extend(nodes.into_iter().filter_map(|node| {
                let node = &tree.nodes()[node as usize];
                let below = values.iter().filter(|value| (node.lo..=node.hi).contains(value));
                let (from, to) = (below.clone().next()?, below.clone().next_back()?);
                (tree.loss(*from, *to) >= node.loss && from < to).then_some((*from, *to, node.loss))
            }));
        }
        Shape::Line { span } => {
            let holds = |block: &&(Code, Code)| values.iter().any(|value| (block.0..=block.1).contains(value));
            let present: Vec<&(Code, Code)> = blocks.iter().filter(holds).collect();
            for (at, from) in present.iter().enumerate() {
                found.push((from.0, from.1, 0.0));
                found.extend(present[at + 1..].iter().map(|to| {
                    let apart = f64::from(to.0 - from.1) / f64::from((*span).max(1));
                    (from.0, to.1, (apart - axis.slack()).max(0.0))
                }));
            }
        }
        Shape::Set { values: domain } => {
            found.extend(values.iter().map(|&value| (value, value, 0.0)));
            found.extend((values.len() > 1).then_some((values[0], values[values.len() - 1], two_values(*domain))));
        }
    }
    found
}

/// What two values of a set lose.
fn two_values(domain: u32) -> f64 {
    1.0 / f64::from(domain.saturating_sub(1).max(1))
}

fn ancestors(tree: &Tree, value: Code) -> Vec<u32> {
    let mut found = vec![tree.node_above(value)];
    while let Some(&node) = found.last()
        && tree.nodes()[node as usize].parent != node
    {
        found.push(tree.nodes()[node as usize].parent);
    }
    found
}
