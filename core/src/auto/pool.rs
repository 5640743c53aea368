//! The free rows of a space, equal ones as one tuple with a weight, in blocks that can be passed over.
//!
//! Tuples stand in the order of their positions, dearest lane first, so that the tuples of a block of 32 are alike. What
//! each block covers is kept apart: a block that is too far away from a seed is never looked at. Inside of a block
//! positions stand lane by lane, and whether they lie inside of a level is one comparison for all 32 at once.

use super::chain::{Chains, Side};
use super::space::{LaneShape, Ruler, Space};
use crate::simd::{Kernel, dispatch};

/// Tuples of a block.
pub(super) const BLOCK: usize = 32;

/// Numbers that fit one wide vector.
const HALF: usize = BLOCK / 2;

/// The key of what lies outside of every box that is looked at.
pub(super) const OUTSIDE: u16 = u16::MAX;

/// What lies outside of a level gets so much more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    lane: u32,
    lo: u16,
    width: u16,
    also: u16,
    /// Added to the key of a tuple.
    stride: u16,
    /// Added to the least cost of a block.
    cost: u16,
}

impl Op {
    /// Whether what lies outside is left out altogether.
    #[inline(always)]
    fn leaves_out(&self) -> bool {
        self.stride == OUTSIDE
    }

    /// All bits for positions outside, none for the others.
    #[inline(always)]
    fn mask_outside(&self, lane: &[u16; HALF]) -> [u16; HALF] {
        let mut beyond = [0; HALF];
        for (beyond, &x) in beyond.iter_mut().zip(lane) {
            *beyond = 0_u16.wrapping_sub(u16::from(x.wrapping_sub(self.lo) > self.width));
        }
        if self.is_outside() {
            for (beyond, &x) in beyond.iter_mut().zip(lane) {
                *beyond &= 0_u16.wrapping_sub(u16::from(x != self.also));
            }
        }
        beyond
    }

    /// Whether the single position lies outside of the interval.
    #[inline(always)]
    fn is_outside(&self) -> bool {
        self.also.wrapping_sub(self.lo) > self.width
    }

    /// Makes the key of a tuple its cost.
    pub fn count_cost(&mut self) {
        self.stride = self.cost;
    }
}

/// Free tuples.
#[derive(Debug, Default)]
pub(super) struct Pool {
    width: usize,
    /// Positions: block by block, lane by lane.
    positions: Vec<u16>,
    /// Rows of every tuple; 0 once it is taken.
    weights: Vec<u16>,
    /// Tuple in every place.
    names: Vec<u32>,
    /// Place of every tuple.
    places: Vec<u32>,
    /// What the blocks cover, lane by lane, `room` blocks each.
    lows: Vec<u16>,
    highs: Vec<u16>,
    room: usize,
    bounds: Vec<u16>,
    /// What all tuples cover on every lane.
    pub range: Vec<(u16, u16)>,
    /// Positions of every tuple.
    own: Vec<u16>,
    /// Rows of the tuples, and where each ends.
    rows: Vec<u32>,
    ends: Vec<u32>,
    /// Tuple of every row, in the order in which the rows were given.
    pub tuple_of: Vec<u32>,
    /// Rows that are not taken yet.
    pub free: usize,
    dead: usize,
    /// Per lane of a set: frequency rank by position.
    ranks: Vec<Vec<u16>>,
    keyed: Vec<(u128, u32)>,
}

impl Pool {
    /// Fills the pool with rows of a space.
    pub fn load_rows(&mut self, ruler: &Ruler, space: &Space, rows: &[u32]) {
        self.width = ruler.lanes.len();
        self.rank_sets(ruler, space, rows);
        let order = &ruler.dearest;
        let position = |row: u32, lane: usize| {
            let position = space.row_positions(row)[lane];
            if self.ranks[lane].is_empty() { position } else { self.ranks[lane][position as usize] }
        };
        let mut keyed = std::mem::take(&mut self.keyed);
        keyed.clear();
        keyed.extend(rows.iter().enumerate().map(|(at, &row)| {
            let key = order.iter().take(8).fold(0, |key, &lane| (key << 16) | u128::from(position(row, lane)));
            (key, at as u32)
        }));
        let rest = if order.len() > 8 { &order[8..] } else { &[] };
        let by_rest = |x: u32, y: u32| {
            let of = |at: u32| rest.iter().map(move |&lane| position(rows[at as usize], lane));
            of(x).cmp(of(y))
        };
        keyed.sort_unstable_by(|x, y| x.0.cmp(&y.0).then_with(|| by_rest(x.1, y.1)).then(x.1.cmp(&y.1)));
        self.own.clear();
        self.weights.clear();
        self.rows.clear();
        self.ends.clear();
        self.tuple_of.clear();
        self.tuple_of.resize(rows.len(), 0);
        let same = |x: &(u128, u32), y: &(u128, u32)| x.0 == y.0 && by_rest(x.1, y.1).is_eq();
        for run in keyed.chunk_by(same) {
            let tuple = self.ends.len() as u32;
            for lane in 0..self.width {
                self.own.push(position(rows[run[0].1 as usize], lane));
            }
            for &(_, at) in run {
                self.rows.push(rows[at as usize]);
                self.tuple_of[at as usize] = tuple;
            }
            self.ends.push(self.rows.len() as u32);
            self.weights.push(run.len().min(usize::from(u16::MAX)) as u16);
        }
        self.keyed = keyed;
        let tuples = self.ends.len();
        self.names.clear();
        self.names.extend(0..tuples as u32);
        self.places.clear();
        self.places.resize(tuples, 0);
        self.free = rows.len();
        self.arrange_blocks();
    }

    /// Ranks the positions of every set by how often they occur.
    fn rank_sets(&mut self, ruler: &Ruler, space: &Space, rows: &[u32]) {
        self.ranks.resize(self.width, Vec::new());
        for (l, lane) in ruler.lanes.iter().enumerate() {
            self.ranks[l].clear();
            if !matches!(lane.shape, LaneShape::Set { .. }) {
                continue;
            }
            let top = rows.iter().map(|&row| space.row_positions(row)[l]).max().unwrap_or(0);
            let mut counts: Vec<(u32, u16)> = (0..=top).map(|position| (0, position)).collect();
            rows.iter().for_each(|&row| counts[space.row_positions(row)[l] as usize].0 += 1);
            counts.sort_unstable_by(|x, y| y.0.cmp(&x.0).then(x.1.cmp(&y.1)));
            self.ranks[l].resize(counts.len(), 0);
            for (rank, (_, position)) in counts.into_iter().enumerate() {
                self.ranks[l][position as usize] = rank as u16;
            }
        }
    }

    /// Puts the living tuples into blocks.
    fn arrange_blocks(&mut self) {
        let living = self.names.len();
        let blocks = living.div_ceil(BLOCK);
        self.dead = 0;
        self.room = blocks.next_multiple_of(BLOCK);
        self.weights.resize(blocks * BLOCK, 0);
        self.positions.clear();
        self.positions.resize(blocks * BLOCK * self.width, 0);
        self.lows.clear();
        self.lows.resize(self.room * self.width, u16::MAX);
        self.highs.clear();
        self.highs.resize(self.room * self.width, 0);
        self.bounds.resize(self.room, 0);
        self.range.clear();
        self.range.resize(self.width, (u16::MAX, 0));
        for block in 0..blocks {
            let names = &self.names[block * BLOCK..living.min((block + 1) * BLOCK)];
            for lane in 0..self.width {
                let (mut low, mut high) = (u16::MAX, 0);
                let positions = &mut self.positions[(block * self.width + lane) * BLOCK..][..BLOCK];
                for (position, &name) in positions.iter_mut().zip(names) {
                    *position = self.own[name as usize * self.width + lane];
                    low = low.min(*position);
                    high = high.max(*position);
                }
                self.lows[lane * self.room + block] = low;
                self.highs[lane * self.room + block] = high;
                let range = &mut self.range[lane];
                *range = (range.0.min(low), range.1.max(high));
            }
        }
        for (place, &name) in self.names.iter().enumerate() {
            self.places[name as usize] = place as u32;
        }
    }

    /// Drops taken tuples, when they have become many.
    pub fn drop_taken(&mut self) {
        if 8 * self.dead <= self.names.len() {
            return;
        }
        let mut at = 0;
        for place in 0..self.names.len() {
            if self.weights[place] > 0 {
                self.names[at] = self.names[place];
                self.weights[at] = self.weights[place];
                at += 1;
            }
        }
        self.names.truncate(at);
        self.weights.truncate(at);
        self.arrange_blocks();
    }

    /// Number of tuples, taken ones included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether a tuple is free.
    pub fn is_free(&self, tuple: u32) -> bool {
        let place = self.places[tuple as usize] as usize;
        self.names.get(place) == Some(&tuple) && self.weights[place] > 0
    }

    /// Takes a tuple.
    pub fn take_tuple(&mut self, tuple: u32) {
        let place = self.places[tuple as usize] as usize;
        self.weights[place] = 0;
        self.dead += 1;
        self.free -= self.rows_of(tuple).len();
    }

    /// Rows of a tuple.
    pub fn rows_of(&self, tuple: u32) -> &[u32] {
        let start = if tuple == 0 { 0 } else { self.ends[tuple as usize - 1] as usize };
        &self.rows[start..self.ends[tuple as usize] as usize]
    }

    /// Positions of a tuple.
    pub fn tuple_positions(&self, tuple: u32) -> &[u16] {
        &self.own[tuple as usize * self.width..][..self.width]
    }

    /// Adds what to do for one lane of some chains: `strides` for every level that is crossed.
    pub fn push_ops(&self, chains: &Chains, lane: usize, stride: u16, ops: &mut Vec<Op>) {
        let levels = chains.lane_levels(lane);
        for (i, level) in levels.iter().enumerate() {
            let Side { lo, hi, also } = level.side;
            let last = i + 1 == levels.len();
            if last && chains.is_whole_lane(lane) {
                break;
            }
            let (stride, cost) = if last { (OUTSIDE, OUTSIDE) } else { (stride, levels[i + 1].cost - level.cost) };
            ops.push(Op { lane: lane as u32, lo, width: hi - lo, also, stride, cost });
        }
    }

    /// Finds the free tuples whose key is below `limit`, in blocks that are not dearer than `beta`: their keys and
    /// places, first in `found`. Returns how many there are and whether a block was passed over.
    pub fn find_tuples(
        &mut self,
        ops: &[Op],
        beta: u32,
        limit: u16,
        found: &mut Vec<(u16, u16, u32)>,
    ) -> (usize, bool) {
        dispatch(Find { pool: self, ops, beta, limit, found })
    }

    #[inline(always)]
    fn find_with(&mut self, ops: &[Op], beta: u32, limit: u16, found: &mut Vec<(u16, u16, u32)>) -> (usize, bool) {
        let blocks = self.names.len().div_ceil(BLOCK);
        let padded = blocks.next_multiple_of(BLOCK);
        let bounds = &mut self.bounds[..padded];
        bounds.fill(0);
        // What is out of reach altogether comes last.
        let out = |op: &&Op| op.cost == OUTSIDE;
        for op in ops.iter().filter(|op| !out(op)).chain(ops.iter().filter(out)) {
            let lows = &self.lows[op.lane as usize * self.room..][..padded];
            let highs = &self.highs[op.lane as usize * self.room..][..padded];
            let (lo, hi) = (op.lo.min(op.also), (op.lo + op.width).max(op.also));
            for ((bound, &low), &high) in bounds.iter_mut().zip(lows).zip(highs) {
                // A block lies on one side at the most.
                let apart = 0_u16.wrapping_sub(u16::from(low > hi) | u16::from(high < lo));
                *bound = if op.cost == OUTSIDE { *bound | apart } else { bound.wrapping_add(apart & op.cost) };
            }
        }
        let beta = beta.min(u32::from(u16::MAX - 1)) as u16;
        let mut skipped = false;
        found.resize(found.len().max(self.names.len() + BLOCK), (0, 0, 0));
        let mut count = 0;
        for block in 0..blocks {
            if self.bounds[block] > beta {
                skipped = true;
                continue;
            }
            let positions = &self.positions[block * self.width * BLOCK..][..self.width * BLOCK];
            let (lanes, _) = positions.as_chunks::<HALF>();
            let mut keys = [[0_u16; HALF]; 2];
            let mut outs = [[0_u16; HALF]; 2];
            for op in ops {
                for half in 0..2 {
                    let beyond = op.mask_outside(&lanes[2 * op.lane as usize + half]);
                    if op.leaves_out() {
                        outs[half] = or_lanes(outs[half], beyond);
                    } else {
                        keys[half] = add_masked(keys[half], beyond, op.stride);
                    }
                }
            }
            let keys = [or_lanes(keys[0], outs[0]), or_lanes(keys[1], outs[1])];
            let keys = keys.as_flattened();
            let weights = &self.weights[block * BLOCK..][..BLOCK];
            for (at, (&key, &weight)) in keys.iter().zip(weights).enumerate() {
                found[count] = (key, weight, (block * BLOCK + at) as u32);
                count += usize::from((key < limit) & (weight > 0));
            }
        }
        (count, skipped)
    }

    /// The free tuples inside of a box, and how many rows they have.
    pub fn tuples_inside(&mut self, sides: &[Side], found: &mut Vec<(u16, u16, u32)>, tuples: &mut Vec<u32>) -> usize {
        let ops: Vec<Op> = sides
            .iter()
            .enumerate()
            .filter(|&(lane, side)| !(side.lo <= self.range[lane].0 && self.range[lane].1 <= side.hi))
            .map(|(lane, side)| Op {
                lane: lane as u32,
                lo: side.lo,
                width: side.hi - side.lo,
                also: side.also,
                stride: OUTSIDE,
                cost: OUTSIDE,
            })
            .collect();
        let (count, _) = self.find_tuples(&ops, 0, 1, found);
        tuples.clear();
        tuples.extend(found[..count].iter().map(|&(_, _, place)| self.names[place as usize]));
        tuples.iter().map(|&tuple| self.rows_of(tuple).len()).sum()
    }

    /// Whether a row of a space lies inside of a box.
    pub fn box_holds_row(&self, space: &Space, sides: &[Side], row: u32) -> bool {
        space.row_positions(row).iter().zip(sides).zip(&self.ranks).all(|((&position, side), ranks)| {
            side.contains_position(if ranks.is_empty() {
                position
            } else {
                ranks.get(position as usize).copied().unwrap_or(u16::MAX)
            })
        })
    }

    /// The tuple in a place.
    pub fn tuple_at(&self, place: u32) -> u32 {
        self.names[place as usize]
    }
}

#[inline(always)]
fn or_lanes(x: [u16; HALF], y: [u16; HALF]) -> [u16; HALF] {
    let mut both = x;
    both.iter_mut().zip(y).for_each(|(both, y)| *both |= y);
    both
}

/// Adds a number where the mask allows it.
#[inline(always)]
fn add_masked(x: [u16; HALF], mask: [u16; HALF], more: u16) -> [u16; HALF] {
    let mut sums = x;
    sums.iter_mut().zip(mask).for_each(|(sum, mask)| *sum = sum.wrapping_add(mask & more));
    sums
}

/// Tuples to be found.
struct Find<'a> {
    pool: &'a mut Pool,
    ops: &'a [Op],
    beta: u32,
    limit: u16,
    found: &'a mut Vec<(u16, u16, u32)>,
}

impl Kernel for Find<'_> {
    type Output = (usize, bool);

    #[inline(always)]
    fn run_loop(self) -> (usize, bool) {
        self.pool.find_with(self.ops, self.beta, self.limit, self.found)
    }
}
