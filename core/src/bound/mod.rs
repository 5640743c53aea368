//! How little any release can lose: a certified lower bound of the loss for a table, its hierarchies and k.
//!
//! Publishing a table locally recoded means to partition its rows into groups of at least k; a group loses, for every one
//! of its rows, the loss of the box that covers it. Give every row a **price**. If no group of k rows or more costs less
//! than the prices of its rows together, then no partition costs less than all prices together: that is the dual of the
//! partition as a linear program, and it holds whoever found the prices, and however.
//!
//! A group of more than k rows is no reason to ask for more: with prices that keep every group of exactly k rows, a larger
//! one is kept too (its k dearest rows have a mean price of at most the loss of its box, so every other row has at most
//! that). So prices are **fair** when in every box that holds k rows, the k dearest of them cost at most k times the loss
//! of the box.
//!
//! - `boxes`: the boxes of a table, walked axis by axis, without those that cannot ask for anything;
//! - `prices`: the search for high prices; any prices become fair by scaling every row down by the worst box around it;
//! - `audit`: a second look at fairness, which shares nothing with the search.
//!
//! Ranges and trees are exact. A set without a hierarchy is taken to lose no more than two values of it would, and a range
//! of very many values is cut at some of them: both make the bound lower, never wrong. Rules beyond k only forbid groups, so
//! the bound holds under any rules. A suppressed row loses 1 on every axis, which no price exceeds.

mod audit;
mod boxes;
mod prices;
#[cfg(test)]
mod tests;

use crate::model::{Code, Grouping, Table};
use prices::Search;

/// Nobody can lose less than this.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Mean loss over rows and axes (GCP) that no local recoding of the table goes below.
    pub loss: f64,
    /// The price of every row.
    pub prices: Vec<f64>,
}

/// Distinct rows and how often each occurs. Equal rows have equal prices.
#[derive(Debug)]
struct Points {
    /// Codes, one after the other.
    codes: Vec<Code>,
    axes: usize,
    counts: Vec<u32>,
    /// The point of every row.
    of_row: Vec<u32>,
}

impl Points {
    fn from_table(table: &Table) -> Self {
        let mut order: Vec<u32> = (0..table.rows() as u32).collect();
        order.sort_unstable_by(|&x, &y| table.row(x).cmp(table.row(y)));
        let mut points =
            Self { codes: Vec::new(), axes: table.axes.len(), counts: Vec::new(), of_row: vec![0; order.len()] };
        for equal in order.chunk_by(|&x, &y| table.row(x) == table.row(y)) {
            let number = points.counts.len() as u32;
            equal.iter().for_each(|&row| points.of_row[row as usize] = number);
            points.codes.extend_from_slice(table.row(equal[0]));
            points.counts.push(equal.len() as u32);
        }
        points
    }

    fn len(&self) -> usize {
        self.counts.len()
    }

    fn code(&self, point: u32, axis: usize) -> Code {
        self.codes[point as usize * self.axes + axis]
    }
}

/// Searches prices for some rounds, starting with what the rows lose in a grouping, and audits them. None when the
/// audit finds them unfair, which would be a fault of the search.
pub fn lower_bound(table: &Table, k: usize, grouping: &Grouping, rounds: usize) -> Option<Bound> {
    let k = k.max(1);
    if table.axes.is_empty() || table.rows() < k {
        return Some(Bound { loss: 0.0, prices: vec![0.0; table.rows()] });
    }
    let points = Points::from_table(table);
    let (found, cuts) = Search::new(table, &points, k).run_rounds(first_prices(table, &points, grouping), rounds);
    let prices: Vec<f64> = points.of_row.iter().map(|&point| found[point as usize]).collect();
    let loss = prices.iter().sum::<f64>() / prices.len() as f64;
    audit::are_fair(table, k, &prices, &cuts).then_some(Bound { loss, prices })
}

/// Where the ranges of a table are cut: for every axis the smallest value of each block, none on axes that are not ranges.
/// What lies in one block counts as equal, and what lies in two as apart by no more than the space between them.
type Cuts = Vec<Vec<Code>>;

/// What every point loses in a grouping: its rows may be in several groups.
fn first_prices(table: &Table, points: &Points, grouping: &Grouping) -> Vec<f64> {
    let mut prices = vec![0.0; points.len()];
    for group in grouping.iter() {
        let loss = table.cover(group).loss(&table.axes);
        group.iter().for_each(|&row| prices[points.of_row[row as usize] as usize] += loss);
    }
    grouping.left_over.iter().for_each(|&row| prices[points.of_row[row as usize] as usize] += 1.0);
    prices.iter_mut().zip(&points.counts).for_each(|(price, &count)| *price /= f64::from(count));
    prices
}
