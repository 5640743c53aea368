//! The cheapest box around a seed that holds enough free rows.
//!
//! A box is one level per lane of the seed's chains. Where these are few enough, all of them are looked at: every free
//! tuple counts for the smallest box that holds it, sums along the lanes make of that what every box holds, and the
//! cheapest one with enough rows wins. Levels and blocks of tuples that cost more than `beta` are left out at first; only
//! when nothing is found below it, `beta` rises. Where the lattice is too large, [`branch`](super::branch) searches it.

use super::branch::Scratch;
use super::chain::{Chains, Side};
use super::pool::{Op, Pool};
use super::space::Ruler;
use crate::simd::{Kernel, dispatch};

/// Most boxes that are looked at one by one.
const MAX_BOXES: usize = 16_384;

/// The same where a cut is looked for.
const MAX_CUT: usize = 4096;

/// Windows that are always looked at on a line.
const MIN_WINDOWS: usize = 4;

/// Boxes around one seed that are proposed for a cut.
const CANDIDATES: usize = 4;

/// Boxes that are counted at once.
const INNER: usize = 16;

/// Limits rise by this factor.
const RISE: (u32, u32) = (5, 2);

/// Searches for boxes, one seed after the other.
#[derive(Debug, Default)]
pub(super) struct Finder {
    pub chains: Chains,
    pub ops: Vec<Op>,
    /// Key, weight and place of the tuples near enough.
    pub found: Vec<(u16, u16, u32)>,
    hist: Vec<[u16; INNER]>,
    costs: Vec<[u16; INNER]>,
    /// Lanes with more than one level, their numbers of levels and their strides: first those of the innermost boxes.
    lanes: Vec<(u32, u16, u16)>,
    inner: usize,
    masks: [[u16; INNER]; INNER],
    /// Boxes beyond which lines are looked at with fewer windows.
    pub largest: usize,
    pub branch: super::branch::Branch,
    /// Levels of the box found last.
    pub levels: Vec<u16>,
}

impl Finder {
    /// Finds the cheapest box around a seed with `need` free rows; returns its cost. `beta` is a first guess of it.
    pub fn find_best_box(
        &mut self,
        ruler: &Ruler,
        pool: &mut Pool,
        seed: u32,
        need: usize,
        mut beta: u32,
    ) -> Option<u32> {
        let need = need.clamp(1, usize::from(u16::MAX)) as u16;
        loop {
            self.chains.build_chains(ruler, pool.tuple_positions(seed), &pool.range, beta);
            self.survey_lanes();
            let mut boxes = self.lay_out_lanes();
            while boxes > self.largest && self.chains.thin_windows(ruler, MIN_WINDOWS) {
                self.survey_lanes();
                boxes = self.lay_out_lanes();
            }
            let (found, skipped) = if boxes <= MAX_BOXES {
                self.all_boxes(pool, boxes, need, beta)
            } else {
                let Self { branch, chains, ops, found, levels, .. } = self;
                branch.find_box(pool, chains, Scratch { ops, found }, need, beta, levels)
            };
            let complete = !skipped && self.chains.all_whole();
            match found {
                Some(cost) if cost <= beta || complete => return Some(cost),
                _ if complete => return None,
                _ => beta = (beta.saturating_mul(RISE.0) / RISE.1).max(1),
            }
        }
    }

    /// Sides of the box found last.
    pub fn box_sides(&self, sides: &mut Vec<Side>) {
        sides.clear();
        sides.extend(
            self.levels.iter().enumerate().map(|(lane, &level)| self.chains.lane_levels(lane)[level as usize].side),
        );
    }

    /// Looks at all boxes. Returns the cost of the cheapest one with enough rows, and whether tuples were passed over.
    fn all_boxes(&mut self, pool: &mut Pool, boxes: usize, need: u16, beta: u32) -> (Option<u32>, bool) {
        self.ops.clear();
        for lane in (0..self.chains.lanes()).filter(|&lane| self.chains.lane_levels(lane).len() == 1) {
            pool.push_ops(&self.chains, lane, 0, &mut self.ops);
        }
        for &(lane, _, stride) in &self.lanes {
            pool.push_ops(&self.chains, lane as usize, stride, &mut self.ops);
        }
        let (count, skipped) = pool.find_tuples(&self.ops, beta, boxes as u16, &mut self.found);
        let rows: usize = self.found[..count].iter().map(|&(_, weight, _)| usize::from(weight)).sum();
        if rows < usize::from(need) {
            return (None, skipped);
        }
        self.count_boxes(boxes, count);
        let Some(best) = dispatch(Cheapest { hist: &self.hist, costs: &self.costs, need }) else {
            return (None, skipped);
        };
        let cost = self.decode_place(best);
        (Some(cost), skipped)
    }

    /// Works out rows and costs of all boxes, from the tuples found.
    fn count_boxes(&mut self, boxes: usize, count: usize) {
        self.spread_inner();
        let Self { chains, found, hist, costs, lanes, inner, masks, .. } = self;
        hist.clear();
        hist.resize(boxes / INNER, [0; INNER]);
        let found = &found[..count];
        dispatch(Count { found, masks, chains, hist, costs, lanes: &lanes[*inner..] });
    }

    /// Turns the place of a box into its levels; returns its cost.
    fn decode_place(&mut self, best: usize) -> u32 {
        self.levels.clear();
        self.levels.resize(self.chains.lanes(), 0);
        let mut cost = 0;
        for (at, &(lane, levels, stride)) in self.lanes.iter().enumerate() {
            let place = if at < self.inner { best % INNER } else { best };
            let level = place as u16 / stride % levels;
            self.levels[lane as usize] = level;
            cost += u32::from(self.chains.lane_levels(lane as usize)[usize::from(level)].cost);
        }
        cost
    }

    /// Proposes boxes around a seed to cut a pool in two: those with at least `least` and at most `most` rows that save
    /// most, each with what it seems to save. Lanes are left as they are, at random, where there are too many boxes.
    pub fn propose_halves(
        &mut self,
        ruler: &Ruler,
        pool: &mut Pool,
        seed: u32,
        (least, most): (u16, u16),
        rng: &mut fastrand::Rng,
        found: &mut Vec<(u64, Vec<Side>)>,
    ) {
        self.chains.build_chains(ruler, pool.tuple_positions(seed), &pool.range, u32::MAX);
        let boxes = loop {
            self.survey_lanes();
            let boxes = self.lay_out_lanes();
            if boxes <= MAX_CUT {
                break boxes;
            }
            let lane = self.lanes[rng.usize(..self.lanes.len())].0;
            self.chains.fix_lane(lane as usize);
        };
        self.ops.clear();
        for &(lane, _, stride) in &self.lanes {
            pool.push_ops(&self.chains, lane as usize, stride, &mut self.ops);
        }
        let (count, _) = pool.find_tuples(&self.ops, u32::MAX, boxes as u16, &mut self.found);
        self.count_boxes(boxes, count);
        let highest =
            |lane: u32| self.chains.lane_levels(lane as usize).last().map_or(0, |level| u64::from(level.cost));
        let whole: u64 = self.lanes.iter().map(|&(lane, _, _)| highest(lane)).sum();
        let mut best: Vec<(u64, usize)> = Vec::new();
        let mut limit = 0;
        for (at, (rows, costs)) in self.hist.iter().zip(&self.costs).enumerate() {
            for (inner, (&rows, &cost)) in rows.iter().zip(costs).enumerate() {
                let saved = whole.saturating_sub(u64::from(cost)) * u64::from(rows);
                if saved > limit && rows >= least && rows <= most {
                    let place = best.partition_point(|other| other.0 >= saved);
                    best.insert(place, (saved, at * INNER + inner));
                    best.truncate(CANDIDATES);
                    limit = if best.len() == CANDIDATES { best[CANDIDATES - 1].0 } else { 0 };
                }
            }
        }
        for (saved, place) in best {
            self.decode_place(place);
            let mut sides = Vec::new();
            self.box_sides(&mut sides);
            found.push((saved, sides));
        }
    }

    /// Lists the lanes with more than one level.
    fn survey_lanes(&mut self) {
        self.lanes.clear();
        for lane in 0..self.chains.lanes() {
            let levels = self.chains.lane_levels(lane).len();
            if levels > 1 {
                self.lanes.push((lane as u32, levels as u16, 1));
            }
        }
    }

    /// Gives every lane its stride: some lanes fill the innermost [`INNER`] boxes as far as they go, the others follow.
    /// Returns the number of boxes, those that only fill up included.
    fn lay_out_lanes(&mut self) -> usize {
        self.lanes.sort_unstable_by(|x, y| y.1.cmp(&x.1).then(x.0.cmp(&y.0)));
        let mut product = 1;
        let mut inner = 0;
        for at in 0..self.lanes.len() {
            if product * self.lanes[at].1 <= INNER as u16 {
                self.lanes[at].2 = product;
                product *= self.lanes[at].1;
                self.lanes.swap(inner, at);
                inner += 1;
            }
        }
        self.inner = inner;
        let mut boxes = INNER;
        for (_, levels, stride) in &mut self.lanes[inner..] {
            *stride = boxes.min(usize::from(u16::MAX)) as u16;
            boxes = boxes.saturating_mul(usize::from(*levels));
        }
        boxes
    }

    /// Works out which innermost boxes hold a tuple by its innermost levels, and what they cost.
    fn spread_inner(&mut self) {
        let mut costs = [u16::MAX; INNER];
        let mut masks = [[0; INNER]; INNER];
        (costs[0], masks[0][0]) = (0, u16::MAX);
        // Lane by lane: what holds on the lanes before holds for every pair of levels that rise.
        for &(lane, levels, stride) in &self.lanes[..self.inner] {
            let (levels, stride) = (usize::from(levels), usize::from(stride));
            let chain = self.chains.lane_levels(lane as usize);
            for level in 1..levels {
                for at in 0..stride {
                    costs[level * stride + at] = costs[at].saturating_add(chain[level].cost);
                }
            }
            for own in (0..levels).rev() {
                for at in 0..stride {
                    let below = masks[at];
                    let mask = &mut masks[own * stride + at];
                    for level in 0..levels {
                        let part = if level < own { &[0; INNER][..stride] } else { &below[..stride] };
                        mask[level * stride..][..stride].copy_from_slice(part);
                    }
                }
            }
        }
        self.costs.clear();
        self.costs.push(costs);
        self.masks = masks;
    }
}

/// Sums that stop at the largest number.
#[inline(always)]
fn add_saturating(x: [u16; INNER], y: [u16; INNER]) -> [u16; INNER] {
    let mut sums = [0; INNER];
    for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
        let whole = x.wrapping_add(y);
        *sum = whole | 0_u16.wrapping_sub(u16::from(whole < y));
    }
    sums
}

/// Rows and costs of all boxes to be worked out.
struct Count<'a> {
    found: &'a [(u16, u16, u32)],
    masks: &'a [[u16; INNER]; INNER],
    chains: &'a Chains,
    hist: &'a mut Vec<[u16; INNER]>,
    costs: &'a mut Vec<[u16; INNER]>,
    /// The lanes beyond the innermost boxes.
    lanes: &'a [(u32, u16, u16)],
}

impl Kernel for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn run_loop(self) {
        let Self { found, masks, chains, hist, costs, lanes } = self;
        for &(key, weight, _) in found {
            let cells = &mut hist[usize::from(key) / INNER];
            let mask = masks[usize::from(key) % INNER];
            *cells = add_saturating(*cells, mask.map(|mask| mask & weight));
        }
        for &(lane, levels, stride) in lanes {
            let (stride, levels) = (usize::from(stride) / INNER, usize::from(levels));
            for run in hist.chunks_exact_mut(stride * levels) {
                for at in stride..stride * levels {
                    run[at] = add_saturating(run[at], run[at - stride]);
                }
            }
            let inner = costs.len();
            for level in chains.lane_levels(lane as usize).iter().skip(1) {
                costs.extend_from_within(..inner);
                let from = costs.len() - inner;
                for costs in &mut costs[from..] {
                    *costs = add_saturating(*costs, [level.cost; INNER]);
                }
            }
        }
    }
}

/// The cheapest box with enough rows to be found.
struct Cheapest<'a> {
    hist: &'a [[u16; INNER]],
    costs: &'a [[u16; INNER]],
    need: u16,
}

impl Kernel for Cheapest<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run_loop(self) -> Option<usize> {
        let Self { hist, costs, need } = self;
        let mut least = [u16::MAX; INNER];
        for (rows, costs) in hist.iter().zip(costs.iter()) {
            for ((least, &rows), &cost) in least.iter_mut().zip(rows).zip(costs) {
                *least = (*least).min(if rows >= need { cost } else { u16::MAX });
            }
        }
        let least = least.into_iter().fold(u16::MAX, u16::min);
        // The smallest of equally cheap ones.
        let mut best: Option<(u16, usize)> = None;
        for (at, (rows, costs)) in hist.iter().zip(costs.iter()).enumerate() {
            let mut hit = 0;
            for (&rows, &cost) in rows.iter().zip(costs) {
                hit |= if cost == least { u16::from(rows >= need) } else { 0 };
            }
            if hit == 0 {
                continue;
            }
            for (inner, (&rows, &cost)) in rows.iter().zip(costs).enumerate() {
                if cost == least && rows >= need && best.is_none_or(|best| rows < best.0) {
                    best = Some((rows, at * INNER + inner));
                }
            }
        }
        best.filter(|_| least < u16::MAX).map(|best| best.1)
    }
}
