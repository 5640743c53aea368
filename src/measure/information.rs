//! What a release still tells of the original values, by their frequencies. Costly: kept only when asked for.
//!
//! With p(v) the share of an original value in its column, P(u) the share of all original values that a published value u
//! covers, and q(u) the share of u in the published column:
//!
//! - non-uniform entropy (Gionis and Tassa; ARX): sum over values of -log2(p(v) / P(u)), the bits that are lost;
//! - entropy measure Pi (Gorla, 2.1): sum over values of P(u) * H(X | u). The thesis prints H with unconditional
//!   probabilities in (2.2); the conditional ones of (3.1) are meant and used;
//! - KL by value (Tinabo, 3.3, reading a): sum over columns of the mean over rows of |log10(p(v) / q(u))|, which is the
//!   printed sum over values, for values that are published in several ways too;
//! - joint KL (reading c; Kifer and Gehrke): sum over rows t of p(t) ln(p(t) / q(t)), q being the published classes
//!   spread evenly over the combinations that they cover. Classes of other cells are left out of q, so with several
//!   cells it is an upper bound.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Sum, wire};
use crate::domain::{Axis, Code, Cover, Shape, Table};

/// Most different pairs of original and published value that are kept of a column; beyond, its measures are given up.
const MOST_PAIRS: usize = 1 << 20;

/// What a published value covers on one axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Piece {
    /// All codes from the first to the second.
    Span(Code, Code),
    /// Listed codes.
    Listed(Vec<Code>),
    /// Everything.
    Top,
}

impl Piece {
    fn of(axis: &Axis, cover: &Cover, a: usize) -> Self {
        let (lo, hi) = (cover.lo[a], cover.hi[a]);
        match &axis.shape {
            _ if lo == hi => Self::Span(lo, hi),
            _ if axis.loss(lo, hi, cover.distinct(a)) >= 1.0 => Self::Top,
            Shape::Line { .. } => Self::Span(lo, hi),
            Shape::Tree(tree) => tree.ancestor(lo, hi).map_or(Self::Span(lo, hi), |node| {
                let node = &tree.nodes()[node as usize];
                Self::Span(node.lo, node.hi)
            }),
            Shape::Set { .. } => Self::Listed(cover.codes(a).to_vec()),
        }
    }

    /// Number of values covered.
    fn volume(&self, axis: &Axis) -> f64 {
        match self {
            Self::Span(lo, hi) => f64::from(hi - lo) + 1.0,
            Self::Listed(codes) => codes.len() as f64,
            Self::Top => match &axis.shape {
                Shape::Line { span } => f64::from(*span) + 1.0 + f64::from(u8::from(axis.null.is_some())),
                Shape::Tree(tree) => tree.codes() as f64,
                Shape::Set { values } => f64::from(*values),
            },
        }
    }

    fn covers(&self, code: Code) -> bool {
        match self {
            Self::Span(lo, hi) => (*lo..=*hi).contains(&code),
            Self::Listed(codes) => codes.binary_search(&code).is_ok(),
            Self::Top => true,
        }
    }

    /// Sum over the covered codes of what `of` says of each that occurs.
    fn sum(&self, counts: &BTreeMap<Code, u64>, of: impl Fn(u64) -> f64) -> f64 {
        match self {
            Self::Span(lo, hi) => counts.range(lo..=hi).map(|(_, &count)| of(count)).sum(),
            Self::Listed(codes) => codes.iter().filter_map(|code| counts.get(code)).map(|&count| of(count)).sum(),
            Self::Top => counts.values().map(|&count| of(count)).sum(),
        }
    }
}

/// How often each original code was published as each piece, on one axis.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Column {
    #[serde(with = "wire::pairs_of_pairs")]
    pieces: BTreeMap<Piece, BTreeMap<Code, u64>>,
    #[serde(with = "wire::pairs")]
    suppressed: BTreeMap<Code, u64>,
    pairs: usize,
}

impl Column {
    fn add(&mut self, piece: Piece, code: Code, rows: u64) {
        if self.pairs <= MOST_PAIRS {
            let entry = self.pieces.entry(piece).or_default().entry(code).or_insert_with(|| {
                self.pairs += 1;
                0
            });
            *entry += rows;
        }
    }
}

/// Frequencies of original and published values, column by column, and the joint divergence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Information {
    rows: u64,
    columns: Vec<Column>,
    joint: Sum,
}

/// The measures of [`Information`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Divergence {
    /// Bits lost over all published values.
    pub non_uniform_entropy: f64,
    /// The entropy measure Pi in bits.
    pub entropy: f64,
    /// KL by value, base 10.
    pub kl: f64,
    /// Joint KL in nats.
    pub joint_kl: f64,
}

impl Information {
    /// Nothing yet, of so many columns.
    pub fn new(columns: usize) -> Self {
        Self { rows: 0, columns: vec![Column::default(); columns], joint: Sum::default() }
    }

    /// Adds the groups of a cell with the covers they are published by, and the rows that are suppressed.
    pub fn add_cell<'a>(
        &mut self,
        table: &Table,
        groups: impl Iterator<Item = (&'a [u32], Cover)>,
        suppressed: &[u32],
    ) {
        let axes = &table.axes;
        let mut boxes: Vec<(Vec<Piece>, f64)> = Vec::new();
        let mut points: BTreeMap<&[Code], u64> = BTreeMap::new();
        for (rows, cover) in groups {
            let pieces: Vec<Piece> = (0..axes.len()).map(|a| Piece::of(&axes[a], &cover, a)).collect();
            let mut published = 0;
            for row in table.members_of(rows) {
                published += 1;
                *points.entry(table.row(row)).or_default() += 1;
                for (a, &code) in table.row(row).iter().enumerate() {
                    self.columns[a].add(pieces[a].clone(), code, 1);
                }
            }
            let volume: f64 = pieces.iter().zip(axes.iter()).map(|(piece, axis)| piece.volume(axis)).product();
            boxes.push((pieces, published as f64 / volume));
            self.rows += published;
        }
        for row in table.members_of(suppressed) {
            for (column, &code) in self.columns.iter_mut().zip(table.row(row)) {
                *column.suppressed.entry(code).or_default() += 1;
            }
        }
        let boxes = distinct(boxes);
        for (point, count) in points {
            let inside = |pieces: &[Piece]| pieces.iter().zip(point).all(|(piece, &code)| piece.covers(code));
            let spread: f64 = boxes.iter().filter(|(pieces, _)| inside(pieces)).map(|(_, density)| density).sum();
            // The number of all rows is the same on both sides, and cancels.
            self.joint.add((count as f64 / spread).ln(), count);
        }
    }

    /// Adds another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.joint.merge(other.joint);
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            for (piece, codes) in &theirs.pieces {
                codes.iter().for_each(|(&code, &rows)| mine.add(piece.clone(), code, rows));
            }
            if theirs.pairs > MOST_PAIRS {
                mine.pairs = theirs.pairs;
            }
            for (&code, &rows) in &theirs.suppressed {
                *mine.suppressed.entry(code).or_default() += rows;
            }
        }
    }

    /// The measures; none without rows, or when a column has been given up.
    pub fn divergence(&self) -> Option<Divergence> {
        if self.rows == 0 || self.columns.iter().any(|column| column.pairs > MOST_PAIRS) {
            return None;
        }
        let published = self.rows as f64;
        let (mut bits, mut entropy, mut kl) = (0.0, 0.0, 0.0);
        for column in &self.columns {
            let mut counts = column.suppressed.clone();
            for (&code, &rows) in column.pieces.values().flatten() {
                *counts.entry(code).or_default() += rows;
            }
            let all = counts.values().sum::<u64>() as f64;
            for (piece, codes) in &column.pieces {
                let rows = codes.values().sum::<u64>() as f64;
                let covered = piece.sum(&counts, |count| count as f64);
                let inner = piece.sum(&counts, |count| -(count as f64 / covered) * (count as f64 / covered).log2());
                entropy += rows * covered / all * inner;
                for (code, &times) in codes {
                    let count = counts[code] as f64;
                    bits -= times as f64 * (count / covered).log2();
                    kl += times as f64 / published * ((count / all) / (rows / published)).log10().abs();
                }
            }
        }
        let joint_kl = self.joint.value() / published;
        Some(Divergence { non_uniform_entropy: bits.max(0.0), entropy: entropy.max(0.0), kl, joint_kl })
    }
}

/// Equal boxes as one: their densities add up.
fn distinct(boxes: Vec<(Vec<Piece>, f64)>) -> Vec<(Vec<Piece>, f64)> {
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<(Vec<Piece>, f64)> = Vec::new();
    for (pieces, density) in boxes {
        match place.entry(format!("{pieces:?}")) {
            std::collections::hash_map::Entry::Occupied(known) => merged[*known.get()].1 += density,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(merged.len());
                merged.push((pieces, density));
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(table: &Table, groups: &[&[u32]], suppressed: &[u32]) -> Divergence {
        let mut information = Information::new(table.axes.len());
        information.add_cell(table, groups.iter().map(|&rows| (rows, table.cover(rows))), suppressed);
        information.divergence().unwrap()
    }

    /// R' generalises postal code and province of four rows, R'' their medication: both lose 4 bits, 1.2041 by log10, and
    /// the entropy measure cannot tell them apart.
    #[test]
    fn gorla_entropy_measure_of_table_3() {
        let table = crate::method::fixtures::gorla_table_3();
        let one = measure(&table, &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]], &[]);
        let two = measure(&table, &[&[0, 1], &[2, 5], &[3, 4], &[6, 7]], &[]);
        assert!((one.entropy - 4.0).abs() < 1e-12 && (two.entropy - 4.0).abs() < 1e-12);
        assert!((one.entropy * 2.0_f64.log10() - 1.2041).abs() < 5e-5);
        // In bits per value it makes a difference: eight values of two equally frequent ones, or four.
        assert!((one.non_uniform_entropy - 8.0).abs() < 1e-12 && (two.non_uniform_entropy - 4.0).abs() < 1e-12);
    }

    /// Reading (a) of fixture 11.2. The thesis publishes `Mwanza` for E1 too, both of whose addresses are the same, so
    /// what is published is given here and not taken from the groups.
    #[test]
    fn tinabo_fixture_11_2_kl_by_value() {
        use Piece::{Span, Top};
        let (early, middle, late) = (Span(0, 1), Span(2, 6), Span(7, 9));
        let (been, single) = (Span(0, 2), Span(3, 3));
        // 1034, 1007, 1029, 1023, 1036, 1035, 1013, 1008, 1039, 1010: gender, status, birth, address.
        let rows: [([Code; 4], &Piece, &Piece); 10] = [
            ([0, 1, 1, 0], &been, &early),
            ([1, 0, 0, 0], &been, &early),
            ([0, 2, 2, 3], &been, &middle),
            ([1, 0, 4, 0], &been, &middle),
            ([0, 2, 7, 2], &been, &late),
            ([1, 0, 9, 1], &been, &late),
            ([0, 1, 8, 4], &been, &late),
            ([0, 3, 3, 1], &single, &middle),
            ([1, 3, 6, 5], &single, &middle),
            ([1, 3, 5, 2], &single, &middle),
        ];
        let mut information = Information { rows: 10, ..Information::new(4) };
        for ([gender, marital, birth, address], status, years) in rows {
            let published = [(Top, gender), (status.clone(), marital), (years.clone(), birth), (Top, address)];
            for (column, (piece, code)) in information.columns.iter_mut().zip(published) {
                column.add(piece, code, 1);
            }
        }
        let kl = information.divergence().unwrap().kl;
        assert!((kl - 1.9183).abs() < 5e-5, "{kl}");
    }

    #[test]
    fn nothing_is_lost_of_values_as_they_were_and_most_of_one_class() {
        let table = Table::new([Axis::new("x", Shape::Line { span: 3 })], vec![0, 0, 1, 1, 2, 2, 3, 3]);
        let same = measure(&table, &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]], &[]);
        assert_eq!((same.entropy, same.non_uniform_entropy, same.kl), (0.0, 0.0, 0.0));
        assert!(same.joint_kl.abs() < 1e-12);
        let one = measure(&table, &[&[0, 1, 2, 3, 4, 5, 6, 7]], &[]);
        assert!((one.non_uniform_entropy - 16.0).abs() < 1e-12, "two bits each");
        assert!(one.joint_kl.abs() < 1e-12, "evenly spread is what it was");
        let skewed = Table::new([Axis::new("x", Shape::Line { span: 1 })], vec![0, 0, 0, 1]);
        let expected = 0.75 * 1.5_f64.ln() + 0.25 * 0.5_f64.ln();
        assert!((measure(&skewed, &[&[0, 1, 2, 3]], &[]).joint_kl - expected).abs() < 1e-12);
    }

    #[test]
    fn cells_add_up_in_any_order() {
        let table = Table::new([Axis::new("x", Shape::Line { span: 9 })], vec![0, 4, 7, 7, 9, 2, 2, 5]);
        let of = |groups: &[&[u32]], suppressed: &[u32]| {
            let mut information = Information::new(1);
            information.add_cell(&table, groups.iter().map(|&rows| (rows, table.cover(rows))), suppressed);
            information
        };
        let (mut left, right) = (of(&[&[0, 1], &[5, 6]], &[]), of(&[&[2, 3]], &[4, 7]));
        let mut other = right.clone();
        other.merge(&left);
        left.merge(&right);
        assert_eq!(left, other);
        assert_eq!(left.rows, 6);
        assert!(left.divergence().unwrap().non_uniform_entropy > 0.0);
    }
}
