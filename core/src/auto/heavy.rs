//! Heavy tuples first: combinations of codes that occur k times or more are groups as they stand, without any loss.
//!
//! Where they dominate, taking them out is both quicker and better; where they do not, their surplus rows are worth
//! more as fillers of neighbouring groups. So they are counted first (roughly, in an array of hashed counters), and
//! sorted out only when most of the rows are in them.

use super::Judge;
use super::space::{Ruler, Space};
use crate::model::{Code, Grouping, Table};

/// Share of the rows that must be in heavy tuples.
const DOMINANT: f64 = 0.6;

/// Rows on which the share is estimated.
const SAMPLE: usize = 8192;

/// Takes heavy tuples out, as groups, when they dominate. Returns the other rows.
pub(super) fn take_heavy_tuples(table: &Table, ruler: &Ruler, judge: &Judge<'_>, groups: &mut Grouping) -> Vec<u32> {
    let rows = table.rows();
    if heavy_share(table, judge.k) < DOMINANT {
        return (0..rows as u32).collect();
    }
    let mut tuples = heavy_tuples(table, judge);
    if (tuples.rows().len() as f64) < DOMINANT * rows as f64 {
        return (0..rows as u32).collect();
    }
    let mut rest = std::mem::take(&mut tuples.left_over);
    // Too few rows for a group of their own get the tuples nearest to them back as company.
    let mut company = vec![false; tuples.len()];
    if rest.len() < judge.k {
        for &row in &rest {
            if let Some(nearest) = nearest_tuple(table, ruler, &tuples, row) {
                company[nearest] = true;
            }
        }
    }
    for (tuple, joins) in tuples.iter().zip(company) {
        if joins {
            rest.extend_from_slice(tuple);
        } else {
            groups.push(tuple);
        }
    }
    rest.sort_unstable();
    rest
}

fn hash_codes(codes: &[Code]) -> u64 {
    codes.chunks(4).fold(0, |hash: u64, codes| {
        let word = codes.iter().fold(0, |word, &code| (word << 16) | u64::from(code));
        let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    })
}

/// Share of the rows that are in tuples with k copies or more, estimated on a sample, and never much too low.
fn heavy_share(table: &Table, k: usize) -> f64 {
    let slots = (2 * table.rows()).next_power_of_two();
    let slot = |row: usize| (hash_codes(table.row(row as u32)) >> 3) as usize & (slots - 1);
    let mut counts = vec![0u8; slots];
    for row in 0..table.rows() {
        let count = &mut counts[slot(row)];
        *count = count.saturating_add(1);
    }
    let enough = u8::try_from(k).unwrap_or(u8::MAX);
    let sample = table.rows().min(SAMPLE);
    (0..sample).filter(|&row| counts[slot(row)] >= enough).count() as f64 / sample as f64
}

/// All heavy tuples that the rules allow as groups; the rows in none of them are left over.
fn heavy_tuples(table: &Table, judge: &Judge<'_>) -> Grouping {
    let mut keyed: Vec<(u64, u32)> = (0..table.rows() as u32).map(|row| (hash_codes(table.row(row)), row)).collect();
    keyed.sort_unstable();
    let mut tuples = Grouping::default();
    let mut same = Vec::new();
    for run in keyed.chunk_by(|a, b| a.0 == b.0) {
        let first = table.row(run[0].1);
        same.clear();
        for &(_, row) in run {
            // Rows that only share the hash are left to the search.
            let to = if table.row(row) == first { &mut same } else { &mut tuples.left_over };
            to.push(row);
        }
        if same.len() >= judge.k && judge.allows_group(&same) {
            tuples.push(&same);
        } else {
            tuples.left_over.extend_from_slice(&same);
        }
    }
    tuples
}

/// The tuple that a row would widen least, the smallest among equals.
fn nearest_tuple(table: &Table, ruler: &Ruler, tuples: &Grouping, row: u32) -> Option<usize> {
    let mut space = Space::default();
    (0..tuples.len()).min_by_key(|&tuple| {
        let members = tuples.group(tuple);
        space.load_rows(ruler, table, &[members[0], row], |row| row);
        (space.distance(ruler, 0, 1), members.len())
    })
}
