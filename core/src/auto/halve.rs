//! Box splits: rows are cut into those inside of a box of the lattice and the others.
//!
//! 1. Some rows of the part are seeds. Around each, the boxes that save most are proposed: rows inside, times what they
//!    cost less than the whole.
//! 2. Of all proposals the one wins that saves most when both sides are measured as they are.
//! 3. Both sides are cut again, as long as they hold enough rows.
//!
//! No border goes through a node that groups on either side could be published by, unlike with cuts along one axis.
//! Proposals are made and measured on a sample.

use super::chain::Side;
use super::crowd::Bounds;
use super::lattice::Finder;
use super::pool::Pool;
use super::space::{LaneShape, Ruler, Space};
use crate::grouping::cancel::checkpoint;

/// Parts that no cut could bring below this many times the fewest rows are chopped.
pub(super) const OVERSIZE: usize = 4;

/// How carefully cuts are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Seeds around which boxes are proposed.
    pub seeds: usize,
    /// Rows that are looked at for it.
    pub sample: usize,
}

/// Cuts parts in two, one after the other.
#[derive(Debug, Default)]
pub(super) struct Halver {
    pool: Pool,
    finder: Finder,
    sample: Vec<u32>,
    proposals: Vec<(u64, Vec<Side>)>,
}

impl Halver {
    /// Cuts all rows of a space into parts of at least `least` rows. Returns the rows, part after part, and where each
    /// part ends.
    pub fn cut_parts(
        &mut self,
        ruler: &Ruler,
        space: &Space,
        least: usize,
        how: Cut,
        rng: &mut fastrand::Rng,
    ) -> (Vec<u32>, Vec<usize>) {
        let mut rows: Vec<u32> = (0..space.rows.len() as u32).collect();
        let mut ends = Vec::new();
        let mut open = vec![(0, rows.len())];
        while let Some((start, end)) = open.pop() {
            checkpoint();
            match self.cut_rows(ruler, space, &mut rows[start..end], least.max(1), how, rng) {
                Some(left) => open.extend([(start + left, end), (start, start + left)]),
                None => {
                    chop_part(space, &mut rows[start..end], least, start, &mut ends);
                    ends.push(end);
                }
            }
        }
        (rows, ends)
    }

    /// Puts the rows inside of a box first and returns their number; `None` if no box is worth it.
    fn cut_rows(
        &mut self,
        ruler: &Ruler,
        space: &Space,
        rows: &mut [u32],
        least: usize,
        how: Cut,
        rng: &mut fastrand::Rng,
    ) -> Option<usize> {
        if rows.len() < 2 * least {
            return None;
        }
        self.sample.clear();
        self.sample.extend(rows.iter().step_by(rows.len().div_ceil(how.sample)));
        self.pool.load_rows(ruler, space, &self.sample);
        let seen = self.sample.len();
        // A little more than the share of the least, because the sample is not the whole.
        let fewest =
            if seen == rows.len() { least } else { least * seen / rows.len() + (seen as f64).sqrt() as usize / 2 };
        let fewest = fewest.clamp(1, seen / 2);
        let bounds = (fewest as u16, (seen - fewest) as u16);
        self.proposals.clear();
        for _ in 0..how.seeds {
            let seed = self.pool.tuple_of[rng.usize(..seen)];
            self.finder.propose_halves(ruler, &mut self.pool, seed, bounds, rng, &mut self.proposals);
        }
        self.proposals.sort_by_key(|proposal| std::cmp::Reverse(proposal.0));
        let whole = self.sample_cost(ruler, space, |_| true).0;
        let mut rated: Vec<(u64, usize)> = Vec::new();
        for (at, (_, sides)) in self.proposals.iter().enumerate() {
            let (inside, outside) = (
                self.sample_cost(ruler, space, |row| self.pool.box_holds_row(space, sides, row)),
                self.sample_cost(ruler, space, |row| !self.pool.box_holds_row(space, sides, row)),
            );
            let spent = inside.0 * inside.1 + outside.0 * outside.1;
            if let Some(saved) = (whole * seen as u64).checked_sub(spent).filter(|&saved| saved > 0) {
                rated.push((saved, at));
            }
        }
        rated.sort_by(|x, y| y.0.cmp(&x.0).then(x.1.cmp(&y.1)));
        rated.iter().find_map(|&(_, at)| {
            let sides = &self.proposals[at].1;
            let inside = rows.iter().filter(|&&row| self.pool.box_holds_row(space, sides, row)).count();
            if inside < least || rows.len() - inside < least {
                return None;
            }
            let (within, without): (Vec<u32>, Vec<u32>) =
                rows.iter().partition(|&&row| self.pool.box_holds_row(space, sides, row));
            rows[..inside].copy_from_slice(&within);
            rows[inside..].copy_from_slice(&without);
            Some(inside)
        })
    }

    /// What some rows of the sample cost together, and how many they are.
    fn sample_cost(&self, ruler: &Ruler, space: &Space, belongs: impl Fn(u32) -> bool) -> (u64, u64) {
        let mut covers = vec![Bounds::EMPTY; ruler.lanes.len()];
        let mut count = 0;
        for &row in self.sample.iter().filter(|&&row| belongs(row)) {
            count += 1;
            for ((bounds, lane), &position) in covers.iter_mut().zip(&ruler.lanes).zip(space.row_positions(row)) {
                if matches!(lane.shape, LaneShape::Set { .. }) {
                    bounds.add_bit(position);
                } else {
                    bounds.lo = bounds.lo.min(position);
                    bounds.hi = bounds.hi.max(position);
                }
            }
        }
        if count == 0 {
            return (0, 0);
        }
        let cost: u32 = covers.iter().zip(&ruler.lanes).map(|(bounds, lane)| bounds.cost(&lane.shape)).sum();
        (u64::from(cost), count)
    }
}

/// Puts the rows of a part that is too large in order, and chops it into even pieces.
fn chop_part(space: &Space, rows: &mut [u32], least: usize, start: usize, ends: &mut Vec<usize>) {
    if rows.len() > OVERSIZE * least {
        rows.sort_by(|&x, &y| space.row_positions(x).cmp(space.row_positions(y)));
        let pieces = rows.len() / least;
        ends.extend((1..pieces).map(|piece| start + piece * rows.len() / pieces));
    }
}
