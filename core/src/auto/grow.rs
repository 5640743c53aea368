//! Greedy growth: a group starts with a random row and takes in whatever row costs it least, until it is large enough.
//!
//! What every free row would cost the group stands in one array of 16-bit numbers. When a row joins, only the lanes on
//! which the group widened are looked at again, and only by the difference; most rows widen few lanes. Lanes are kept
//! column by column and dense, so each look is one pass over contiguous memory.
//!
//! When more than the number of rows is asked, the last rows are chosen with the rules in view: of the free rows that cost
//! least, the first with which the group meets them, else the one that brings it nearest. A seed around which nothing
//! helps is abandoned, and so is the space once its free rows do not meet the rules even together. Rows with a value that is
//! nearly too common are seeds before all others: groups of the others alone would use up those whom they need.

use std::collections::HashMap;

use super::Judge;
use super::space::{LaneShape, Ruler, STRIDE, Space, position_bit};
use crate::grouping::cancel::checkpoint;
use crate::simd::{Kernel, dispatch};

/// Free rows among which one that helps a group to meet the rules is looked for first.
const WINDOW: usize = 48;

/// Crowded rows in turn around which no group grew before the others are left to other ways.
const IN_VAIN: usize = 8;

/// What the growing group covers on one lane.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    lo: u16,
    hi: u16,
    /// The step of the tree that the group stands on.
    step: u32,
    /// Bits of the set.
    seen: u64,
}

/// The free rows of a space, and room to grow one group at a time.
#[derive(Debug, Default)]
pub(super) struct Grower {
    /// Positions, lane after lane, `room` each, the first `free.len()` in use.
    lanes: Vec<u16>,
    room: usize,
    /// Indices of the free rows.
    free: Vec<u32>,
    /// What each free row would cost.
    costs: Vec<u16>,
    reach: Vec<Reach>,
    group: Vec<u32>,
}

impl Grower {
    /// Grows groups from some rows of a space. Every finished group is handed to `finish`; the indices of rows that no
    /// group took are returned. Where some rows are crowded, groups grow around these only.
    pub fn grow_groups(
        &mut self,
        ruler: &Ruler,
        space: &Space,
        judge: &Judge<'_>,
        rows: &[u32],
        crowded: &[bool],
        finish: impl FnMut(&[u32]),
    ) -> Vec<u32> {
        dispatch(Grow { grower: self, ruler, space, judge, rows, crowded, finish })
    }

    #[inline(always)]
    fn grow_with(
        &mut self,
        ruler: &Ruler,
        space: &Space,
        judge: &Judge<'_>,
        some: &[u32],
        crowded: &[bool],
        mut finish: impl FnMut(&[u32]),
    ) -> Vec<u32> {
        self.load_rows(space, some);
        let mut left_over = Vec::new();
        let mut rows = Vec::new();
        let mut in_vain = 0;
        while self.free.len() >= judge.k {
            checkpoint();
            let is_seed = |index: &u32| crowded.is_empty() || crowded[*index as usize];
            let Some(seed) = self.free.iter().position(is_seed) else { break };
            self.start_group(ruler, space, seed);
            let first_choice = if judge.plain { judge.k } else { judge.k.saturating_sub(1).max(1) };
            while self.group.len() < first_choice && !self.free.is_empty() {
                let at = cheapest_place(&self.costs[..self.free.len()]);
                self.take_row(ruler, space, at);
            }
            let complete = judge.plain || self.complete_group(ruler, space, judge, &mut rows);
            if complete {
                finish(&self.group);
                in_vain = 0;
                continue;
            }
            // The seed is abandoned; the others may do better with another one.
            left_over.push(self.group[0]);
            for at in 1..self.group.len() {
                self.put_back(space, self.group[at]);
            }
            in_vain += 1;
            if !crowded.is_empty() && in_vain >= IN_VAIN {
                break;
            }
            rows.clear();
            rows.extend(self.free.iter().map(|&index| space.rows[index as usize]));
            if !judge.may_hold_together(&rows) {
                break;
            }
        }
        left_over.extend_from_slice(&self.free);
        left_over
    }

    /// Adds rows until the group meets the rules; false when it does not get there. `rows` is scratch.
    #[inline(always)]
    fn complete_group(&mut self, ruler: &Ruler, space: &Space, judge: &Judge<'_>, rows: &mut Vec<u32>) -> bool {
        rows.clear();
        rows.extend(self.group.iter().map(|&index| space.rows[index as usize]));
        let mut excess = judge.excess(rows);
        while excess > 0.0 {
            if self.free.is_empty() || excess == f64::INFINITY || rows.len() >= judge.growth_limit() {
                return false;
            }
            let Some((at, after)) = self.most_helpful(space, judge, rows, excess) else { return false };
            excess = after;
            rows.push(space.rows[self.free[at] as usize]);
            self.take_row(ruler, space, at);
        }
        true
    }

    /// The place of the free row that helps a group to meet the rules, and how far the group is from them with it.
    fn most_helpful(&self, space: &Space, judge: &Judge<'_>, rows: &mut Vec<u32>, excess: f64) -> Option<(usize, f64)> {
        let nearest = cheapest_place(&self.costs[..self.free.len()]);
        // Most rules count values: what was found for one row is true of all with the same.
        let mut known: HashMap<u64, f64> = HashMap::new();
        let mut with = |at: usize| {
            let row = space.rows[self.free[at] as usize];
            let mut ask = || {
                rows.push(row);
                let after = judge.excess(rows);
                rows.pop();
                after
            };
            if judge.by_values { *known.entry(judge.sensitive_code(row)).or_insert_with(ask) } else { ask() }
        };
        let first = with(nearest);
        if first == 0.0 {
            return Some((nearest, first));
        }
        let mut near: Vec<(u16, u32)> = self.costs[..self.free.len()].iter().copied().zip(0..).collect();
        let (mut asked, mut window) = (0, WINDOW);
        let mut best: Option<(f64, u32)> = None;
        while asked < near.len() && best.is_none() {
            let end = (asked + window).min(near.len());
            if end < near.len() {
                near[asked..].select_nth_unstable(end - asked - 1);
            }
            near[asked..end].sort_unstable();
            for &(_, at) in &near[asked..end] {
                let after = with(at as usize);
                if after == 0.0 {
                    return Some((at as usize, after));
                }
                if after < best.map_or(excess, |(least, _)| least) {
                    best = Some((after, at));
                }
            }
            (asked, window) = (end, 4 * window);
        }
        // How far a group is from some rules cannot be measured: the nearest rows may help in the end.
        let onwards =
            || (!judge.is_measured(rows)).then(|| (excess, cheapest_place(&self.costs[..self.free.len()]) as u32));
        best.or_else(onwards).map(|(after, at)| (at as usize, after))
    }

    fn load_rows(&mut self, space: &Space, some: &[u32]) {
        let rows = some.len();
        self.room = rows.next_multiple_of(STRIDE);
        self.free.clear();
        self.free.extend_from_slice(some);
        self.costs.clear();
        self.costs.resize(self.room, 0);
        self.lanes.clear();
        self.lanes.resize(self.room * space.width, 0);
        for (place, &index) in some.iter().enumerate() {
            for (lane, &position) in self.lanes.chunks_exact_mut(self.room).zip(space.row_positions(index)) {
                lane[place] = position;
            }
        }
    }

    /// Starts a group with a free row, by its place.
    #[inline(always)]
    fn start_group(&mut self, ruler: &Ruler, space: &Space, at: usize) {
        self.group.clear();
        let seed = self.remove_free_row(at);
        self.group.push(seed);
        self.reach.clear();
        let free = self.free.len().next_multiple_of(STRIDE);
        let costs = &mut self.costs[..free];
        costs.fill(0);
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.row_positions(seed)).enumerate() {
            let xs = &self.lanes[l * self.room..][..free];
            let mut reach = Reach { lo: position, hi: position, step: 0, seen: position_bit(position) };
            let (low, high) = space.range[l];
            match &lane.shape {
                _ if low == high => {}
                LaneShape::Line { .. } => {
                    for (cost, &x) in costs.iter_mut().zip(xs) {
                        *cost = cost.wrapping_add(x.saturating_sub(position) + position.saturating_sub(x));
                    }
                }
                LaneShape::Tree(steps) => {
                    reach.step = steps.first_step(position);
                    let mut step = steps.step(reach.step);
                    while low < step.lo || step.hi < high {
                        add_outside(costs, xs, step.lo, step.hi - step.lo, step.cost);
                        step = steps.step(step.up);
                    }
                }
                LaneShape::Set { step } => add_outside(costs, xs, position, 0, *step),
            }
            self.reach.push(reach);
        }
    }

    /// Moves a free row into the group, by its place.
    #[inline(always)]
    fn take_row(&mut self, ruler: &Ruler, space: &Space, at: usize) {
        let index = self.remove_free_row(at);
        self.group.push(index);
        let free = self.free.len().next_multiple_of(STRIDE);
        let costs = &mut self.costs[..free];
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.row_positions(index)).enumerate() {
            let xs = &self.lanes[l * self.room..][..free];
            let reach = &mut self.reach[l];
            match &lane.shape {
                LaneShape::Line { .. } if position > reach.hi => {
                    for (cost, &x) in costs.iter_mut().zip(xs) {
                        *cost = cost.wrapping_sub(x.saturating_sub(reach.hi) - x.saturating_sub(position));
                    }
                    reach.hi = position;
                }
                LaneShape::Line { .. } if position < reach.lo => {
                    for (cost, &x) in costs.iter_mut().zip(xs) {
                        *cost = cost.wrapping_sub(reach.lo.saturating_sub(x) - position.saturating_sub(x));
                    }
                    reach.lo = position;
                }
                LaneShape::Line { .. } => {}
                LaneShape::Tree(steps) => {
                    let mut step = steps.step(reach.step);
                    while position < step.lo || position > step.hi {
                        add_outside(costs, xs, step.lo, step.hi - step.lo, step.cost.wrapping_neg());
                        reach.step = step.up;
                        step = steps.step(step.up);
                    }
                }
                LaneShape::Set { step } => {
                    if reach.seen & position_bit(position) == 0 {
                        reach.seen |= position_bit(position);
                        for (cost, &x) in costs.iter_mut().zip(xs) {
                            *cost = cost.wrapping_sub(if x == position { *step } else { 0 });
                        }
                    }
                }
            }
        }
    }

    /// Takes a row out of the free ones, by its place.
    fn remove_free_row(&mut self, at: usize) -> u32 {
        let last = self.free.len() - 1;
        self.costs[at] = self.costs[last];
        for lane in self.lanes.chunks_exact_mut(self.room) {
            lane[at] = lane[last];
        }
        self.free.swap_remove(at)
    }

    fn put_back(&mut self, space: &Space, index: u32) {
        let at = self.free.len();
        self.free.push(index);
        for (lane, &position) in space.row_positions(index).iter().enumerate() {
            self.lanes[lane * self.room + at] = position;
        }
    }
}

/// Groups to be grown from all rows of a space.
struct Grow<'a, F> {
    grower: &'a mut Grower,
    ruler: &'a Ruler,
    space: &'a Space,
    judge: &'a Judge<'a>,
    rows: &'a [u32],
    crowded: &'a [bool],
    finish: F,
}

impl<F: FnMut(&[u32])> Kernel for Grow<'_, F> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run_loop(self) -> Vec<u32> {
        let Self { grower, ruler, space, judge, rows, crowded, finish } = self;
        grower.grow_with(ruler, space, judge, rows, crowded, finish)
    }
}

/// Adds to the cost of every position outside of an interval.
#[inline(always)]
fn add_outside(costs: &mut [u16], xs: &[u16], lo: u16, width: u16, more: u16) {
    if more == 0 {
        return;
    }
    for (cost, &x) in costs.iter_mut().zip(xs) {
        *cost = cost.wrapping_add(if x.wrapping_sub(lo) > width { more } else { 0 });
    }
}

/// Place of the first smallest cost.
#[inline(always)]
fn cheapest_place(costs: &[u16]) -> usize {
    let (mut best, mut chunk_of_best) = (u16::MAX, 0);
    for (c, chunk) in costs.chunks(256).enumerate() {
        let least = chunk.iter().fold(u16::MAX, |least, &cost| least.min(cost));
        if least < best {
            (best, chunk_of_best) = (least, c);
        }
    }
    let mut start = chunk_of_best * 256;
    for chunk in costs[start..].chunks(32) {
        if chunk.iter().fold(u16::MAX, |least, &cost| least.min(cost)) == best {
            break;
        }
        start += chunk.len();
    }
    start + costs[start..].iter().position(|&cost| cost == best).unwrap_or(0)
}
