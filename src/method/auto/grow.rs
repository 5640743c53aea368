//! Greedy growth: a group starts with a random row and takes in whatever row costs it least, until it is large enough.
//!
//! What every free row would cost the group stands in one array of 16-bit numbers. When a row joins, only the lanes on
//! which the group widened are looked at again, and only by the difference; most rows widen few lanes. Lanes are kept
//! column by column and dense, so each look is one pass over contiguous memory.

use super::Judge;
use super::space::{LaneShape, Ruler, STRIDE, Space, bit};
use crate::wide::{Work, widest};

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
    /// Grows groups from all rows of a space. Every finished group is handed to `finish`; the indices of rows that no
    /// group took are returned.
    pub fn grow(&mut self, ruler: &Ruler, space: &Space, judge: &Judge<'_>, finish: impl FnMut(&[u32])) -> Vec<u32> {
        widest(Grow { grower: self, ruler, space, judge, finish })
    }

    #[inline(always)]
    fn grow_with(
        &mut self,
        ruler: &Ruler,
        space: &Space,
        judge: &Judge<'_>,
        mut finish: impl FnMut(&[u32]),
    ) -> Vec<u32> {
        self.load(space);
        let mut left_over = Vec::new();
        let mut rows = Vec::new();
        while self.free.len() >= judge.k {
            self.start(ruler, space);
            let limit = judge.growth_limit();
            let complete = loop {
                if self.group.len() >= judge.k {
                    if judge.plain {
                        break true;
                    }
                    rows.clear();
                    rows.extend(self.group.iter().map(|&index| space.rows[index as usize]));
                    if judge.allows(&rows) {
                        break true;
                    }
                }
                if self.free.is_empty() || self.group.len() >= limit {
                    break false;
                }
                self.take_cheapest(ruler, space);
            };
            if complete {
                finish(&self.group);
            } else {
                // The seed is given up; the others may do better with another one.
                left_over.push(self.group[0]);
                for at in 1..self.group.len() {
                    self.put_back(space, self.group[at]);
                }
            }
        }
        left_over.extend_from_slice(&self.free);
        left_over
    }

    fn load(&mut self, space: &Space) {
        let rows = space.rows.len();
        self.room = rows.next_multiple_of(STRIDE);
        self.free.clear();
        self.free.extend(0..rows as u32);
        self.costs.clear();
        self.costs.resize(self.room, 0);
        self.lanes.clear();
        self.lanes.resize(self.room * space.width, 0);
        for index in 0..rows {
            for (lane, &position) in self.lanes.chunks_exact_mut(self.room).zip(space.at(index as u32)) {
                lane[index] = position;
            }
        }
    }

    /// Starts a group with the first free row.
    #[inline(always)]
    fn start(&mut self, ruler: &Ruler, space: &Space) {
        self.group.clear();
        let seed = self.remove(0);
        self.group.push(seed);
        self.reach.clear();
        let free = self.free.len().next_multiple_of(STRIDE);
        let costs = &mut self.costs[..free];
        costs.fill(0);
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.at(seed)).enumerate() {
            let xs = &self.lanes[l * self.room..][..free];
            let mut reach = Reach { lo: position, hi: position, step: 0, seen: bit(position) };
            let (low, high) = space.range[l];
            match &lane.shape {
                _ if low == high => {}
                LaneShape::Line { .. } => {
                    for (cost, &x) in costs.iter_mut().zip(xs) {
                        *cost = cost.wrapping_add(x.saturating_sub(position) + position.saturating_sub(x));
                    }
                }
                LaneShape::Tree(steps) => {
                    reach.step = steps.leaf(position);
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

    /// Moves the free row that costs least into the group.
    #[inline(always)]
    fn take_cheapest(&mut self, ruler: &Ruler, space: &Space) {
        let at = cheapest(&self.costs[..self.free.len()]);
        let index = self.remove(at);
        self.group.push(index);
        let free = self.free.len().next_multiple_of(STRIDE);
        let costs = &mut self.costs[..free];
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.at(index)).enumerate() {
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
                    if reach.seen & bit(position) == 0 {
                        reach.seen |= bit(position);
                        for (cost, &x) in costs.iter_mut().zip(xs) {
                            *cost = cost.wrapping_sub(if x == position { *step } else { 0 });
                        }
                    }
                }
            }
        }
    }

    /// Takes a row out of the free ones, by its place.
    fn remove(&mut self, at: usize) -> u32 {
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
        for (lane, &position) in space.at(index).iter().enumerate() {
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
    finish: F,
}

impl<F: FnMut(&[u32])> Work for Grow<'_, F> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run(self) -> Vec<u32> {
        self.grower.grow_with(self.ruler, self.space, self.judge, self.finish)
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
fn cheapest(costs: &[u16]) -> usize {
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
