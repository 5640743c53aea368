//! The cheapest box around a seed where there are too many boxes to look at each: branch and bound.
//!
//! Lane after lane a level is chosen, from the lowest one up, and tuples outside of it are dropped. A branch ends when it
//! costs no less than the best box so far or holds too few rows. The first such box is that of the nearest tuples. The
//! work is bounded, so that the result is the cheapest box nearly always, and a good one otherwise.

use super::chain::Chains;
use super::pool::{Op, Pool};

/// Most choices made for one seed.
const MAX_CHOICES: usize = 500;

/// Room to search in.
#[derive(Debug, Default)]
pub(super) struct Branch {
    /// Level of every near tuple on every lane, lane by lane in the order of choice.
    levels: Vec<u8>,
    weights: Vec<u16>,
    order: Vec<usize>,
    /// Lists of tuples that are still inside, one for every lane chosen.
    lists: Vec<Vec<u32>>,
    chosen: Vec<u8>,
    best: Vec<u8>,
    choices: usize,
}

/// Buffers of the caller.
pub(super) struct Scratch<'a> {
    pub ops: &'a mut Vec<Op>,
    pub found: &'a mut Vec<(u16, u16, u32)>,
}

impl Branch {
    /// Finds a box with `need` rows among the tuples that cost the seed no more than `beta`; its cost, and whether
    /// tuples were passed over. Its levels are put into `out`.
    pub fn find_box(
        &mut self,
        pool: &mut Pool,
        chains: &Chains,
        Scratch { ops, found }: Scratch<'_>,
        need: u16,
        beta: u32,
        out: &mut Vec<u16>,
    ) -> (Option<u32>, bool) {
        let lanes = chains.lanes();
        ops.clear();
        for lane in 0..lanes {
            let from = ops.len();
            pool.push_ops(chains, lane, 0, ops);
            // Keys are costs here.
            ops[from..].iter_mut().for_each(Op::count_cost);
        }
        let limit = beta.min(u32::from(u16::MAX - 1)) as u16;
        let (count, skipped) = pool.find_tuples(ops, beta, limit + 1, found);
        let left_out = skipped || beta < u32::from(u16::MAX);
        let near = &mut found[..count];
        let rows: usize = near.iter().map(|&(_, weight, _)| usize::from(weight)).sum();
        if rows < usize::from(need) {
            return (None, left_out);
        }
        near.sort_unstable_by_key(|&(cost, _, place)| (cost, place));
        self.order.clear();
        self.order.extend((0..lanes).filter(|&lane| chains.lane_levels(lane).len() > 1));
        // The dearest first step first: it is the one that is seldom taken.
        self.order.sort_by_key(|&lane| std::cmp::Reverse(chains.lane_levels(lane)[1].cost));
        self.weights.clear();
        self.weights.extend(near.iter().map(|&(_, weight, _)| weight));
        self.levels.clear();
        for &lane in &self.order {
            let levels = chains.lane_levels(lane);
            self.levels.extend(near.iter().map(|&(_, _, place)| {
                let position = pool.tuple_positions(pool.tuple_at(place))[lane];
                levels.iter().position(|level| level.side.contains_position(position)).unwrap_or(levels.len()) as u8
            }));
        }
        let costs: Vec<Vec<u32>> = self
            .order
            .iter()
            .map(|&lane| chains.lane_levels(lane).iter().map(|level| u32::from(level.cost)).collect())
            .collect();
        // The box of the nearest tuples, and then what it takes no more of.
        self.take_nearest(count, usize::from(need));
        let cost_of = |levels: &[u8]| levels.iter().zip(&costs).map(|(&level, costs)| costs[level as usize]).sum();
        let mut limit: u32 = cost_of(&self.best);
        self.lists.resize(self.order.len() + 1, Vec::new());
        self.lists[0].clear();
        // What is dearer by itself than the best box so far is in no better one.
        let within = near.partition_point(|&(cost, _, _)| u32::from(cost) < limit);
        self.lists[0].extend(0..within as u32);
        self.chosen.clear();
        self.choices = 0;
        self.descend_lanes(&costs, count, usize::from(need), 0, &mut limit);
        out.clear();
        out.resize(lanes, 0);
        for (&lane, &level) in self.order.iter().zip(&self.best) {
            out[lane] = u16::from(level);
        }
        (Some(limit), left_out)
    }

    /// Makes the box of the nearest of `count` tuples that have enough rows the best so far.
    fn take_nearest(&mut self, count: usize, need: usize) {
        self.best.clear();
        self.best.resize(self.order.len(), 0);
        let mut rows = 0;
        for at in 0..count {
            for (choice, best) in self.best.iter_mut().enumerate() {
                *best = (*best).max(self.levels[choice * count + at]);
            }
            rows += usize::from(self.weights[at]);
            if rows >= need {
                break;
            }
        }
    }

    fn descend_lanes(&mut self, costs: &[Vec<u32>], count: usize, need: usize, spent: u32, limit: &mut u32) {
        let depth = self.chosen.len();
        if depth == costs.len() {
            if spent < *limit {
                *limit = spent;
                self.best.copy_from_slice(&self.chosen);
            }
            return;
        }
        let before = self.lists[depth].len();
        for (level, &cost) in costs[depth].iter().enumerate() {
            if spent + cost >= *limit || self.choices >= MAX_CHOICES {
                return;
            }
            self.choices += 1;
            let (lower, upper) = self.lists.split_at_mut(depth + 1);
            let next = &mut upper[0];
            next.clear();
            let levels = &self.levels[depth * count..][..count];
            next.extend(lower[depth].iter().filter(|&&at| usize::from(levels[at as usize]) <= level));
            let rows: usize = next.iter().map(|&at| usize::from(self.weights[at as usize])).sum();
            if rows < need {
                continue;
            }
            let all = next.len() == before;
            self.chosen.push(level as u8);
            self.descend_lanes(costs, count, need, spent + cost, limit);
            self.chosen.pop();
            if all {
                return;
            }
        }
    }
}
