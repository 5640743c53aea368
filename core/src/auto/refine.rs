//! Local search: small changes to finished groups, each made only when it lowers the summed cost and the rules agree.
//!
//! - *exchange*: a row that makes its group dear moves to another group, when its own can spare it, or changes places
//!   with a row of one of the groups that it fits best.
//! - *dissolve*: all rows of a group move to other groups, each to the one whose cost rises least. Fewer, larger groups
//!   can be tighter than many small ones.
//! - *rebox*: a group and its neighbours are covered again (`rebox.rs`).
//! - *split*: a group of twice the least size becomes two. This never costs anything.

use std::cmp::Reverse;

use super::Judge;
use super::cover::Coverer;
use super::crowd::{Bounds, Crowd};
use super::grow::Grower;
use super::space::{Ruler, Space};

/// Rows that are looked at in turn, each having come back for the one before.
const CHAIN: usize = 3;

/// Rows are moved one by one only where groups have no more rows than this: every move looks at all rows of two groups.
const MAX_MOVED: usize = 500;

/// One step of the search over all groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pass {
    /// Move rows, and swap them with a row of one of the `near` groups that they fit best.
    Exchange { near: usize },
    /// Move rows to groups that they fit better.
    Move,
    /// Dissolve groups, then split those that became too large.
    Dissolve,
    /// Cover a group and its `near` neighbours again, from `seeds` seeds, `share` times per group.
    Rebox { near: usize, seeds: usize, share: f64 },
}

/// A search in one space.
pub(super) struct Search<'a> {
    pub ruler: &'a Ruler,
    pub space: &'a Space,
    pub judge: &'a Judge<'a>,
    pub crowd: &'a mut Crowd,
    pub coverer: &'a mut Coverer,
    pub grower: &'a mut Grower,
    pub rng: &'a mut fastrand::Rng,
    /// Scratch: the groups that a row fits best, and how much dearer it would make them.
    pub nearest: Vec<(u64, usize)>,
    /// Scratch: per lane, what home covers without a row and what another group covers with it.
    pub covers: Vec<(Bounds, Bounds)>,
    /// When each row was last looked at in vain. It is left alone until its group changes.
    pub settled: Vec<u32>,
}

impl Search<'_> {
    /// Makes one pass over everything.
    pub fn run_pass(&mut self, pass: Pass) {
        match pass {
            Pass::Exchange { .. } | Pass::Move | Pass::Dissolve if self.judge.expected > MAX_MOVED => {}
            Pass::Exchange { near } => self.exchange_all(near),
            Pass::Move => self.exchange_all(0),
            Pass::Rebox { near, seeds, share } => self.rebox_all(near, seeds, share),
            Pass::Dissolve => {
                self.dissolve_all();
                self.split_all();
            }
        }
    }

    /// Summed cost of a group.
    pub(super) fn group_cost(&self, group: usize) -> u64 {
        u64::from(self.crowd.cost[group]) * self.crowd.group_size(group)
    }

    /// Whether rows of the space may form a group.
    pub(super) fn allows_group(&self, rows: impl Iterator<Item = u32>) -> bool {
        let rows: Vec<u32> = rows.map(|row| self.space.rows[row as usize]).collect();
        self.judge.allows_group(&rows)
    }

    fn exchange_all(&mut self, near: usize) {
        for row in 0..self.space.rows.len() as u32 {
            let mut next = Some(row);
            // The row that came back in a swap is looked at next: it may have better places to go to.
            for _ in 0..CHAIN {
                let Some(row) = next else { break };
                next = self.exchange_row(row, near);
            }
        }
    }

    /// Moves or swaps a row, if that helps. Returns the row that it was swapped with.
    fn exchange_row(&mut self, row: u32, near: usize) -> Option<u32> {
        let home = self.crowd.home[row as usize] as usize;
        if home >= self.crowd.len() || self.settled[row as usize] > self.crowd.last_change(home) {
            return None;
        }
        let cost = self.crowd.cost[home];
        if cost == 0 {
            return None;
        }
        self.crowd.compute_relief(self.ruler, self.space, home);
        let relief = self.crowd.relief[row as usize];
        let spared = self.crowd.members[home].len() > self.judge.k;
        let swaps = relief > 0 && near > 0;
        if !spared && !swaps {
            return None;
        }
        self.crowd.scan_row(self.ruler, self.space, row);
        let saved = self.crowd.group_size(home) * u64::from(relief);
        if spared
            && let Some((target, _)) = self.crowd.cheapest_group(home, self.judge.k, saved + u64::from(cost - relief))
            && self.may_move(row, home, target)
        {
            self.crowd.remove_row(self.ruler, self.space, home, row);
            self.crowd.add_row(self.ruler, self.space, target, row);
            return None;
        }
        if !swaps {
            return None;
        }
        let mut nearest = std::mem::take(&mut self.nearest);
        self.crowd.nearest_groups(home, self.judge.k, near, &mut nearest);
        let mut swapped = None;
        for &(rise, other) in &nearest {
            if let Some(back) = self.best_swap(row, home, saved, other, rise)
                && self.may_swap(row, home, back, other)
            {
                self.crowd.replace_row(self.ruler, self.space, home, row, back);
                self.crowd.replace_row(self.ruler, self.space, other, back, row);
                swapped = Some(back);
                break;
            }
        }
        self.nearest = nearest;
        if swapped.is_none() {
            self.settled[row as usize] = self.crowd.change_count() + 1;
        }
        swapped
    }

    fn may_move(&self, row: u32, home: usize, target: usize) -> bool {
        let crowd = &self.crowd;
        self.judge.plain
            || (self.allows_group(crowd.members[home].iter().copied().filter(|&member| member != row))
                && self.allows_group(crowd.members[target].iter().copied().chain([row])))
    }

    fn may_swap(&self, row: u32, home: usize, back: u32, other: usize) -> bool {
        let swapped = |group: usize, out: u32, into: u32| {
            self.allows_group(self.crowd.members[group].iter().map(|&member| if member == out { into } else { member }))
        };
        self.judge.plain || (swapped(home, row, back) && swapped(other, back, row))
    }

    /// The row of another group to change places with, if that lowers the summed cost of the two groups. `saved` is
    /// what home gains without the row and `rise` what the other group loses with it.
    ///
    /// A row adds the less to a group the more the group covers. So the sums with both changes are bounded by those
    /// with one change each, which are known, and few pairs are worth the exact sum.
    fn best_swap(&mut self, row: u32, home: usize, saved: u64, other: usize, rise: u64) -> Option<u32> {
        let Self { ruler, space, crowd, covers, .. } = self;
        crowd.compute_relief(ruler, space, other);
        let (here, there) = (crowd.group_size(home), crowd.group_size(other));
        let sum_here = here * u64::from(crowd.cost[home]);
        let sum_there = there * u64::from(crowd.cost[other]);
        let mut limit = sum_here + sum_there;
        let mut best = None;
        covers.clear();
        for &back in &crowd.members[other] {
            let least_there = sum_there + rise - there * u64::from(crowd.relief[back as usize]);
            if sum_here - saved + least_there >= limit {
                continue;
            }
            if covers.is_empty() {
                covers.extend(space.row_positions(row).iter().enumerate().map(|(l, &position)| {
                    let mut with = crowd.bounds(other, l);
                    with.add_position(position);
                    with.add_bit(position);
                    (crowd.bounds(home, l).without_position(position), with)
                }));
            }
            let lanes = || ruler.lanes.iter().zip(space.row_positions(back)).zip(covers.iter());
            let cost_here: u32 =
                lanes().map(|((lane, &position), (without, _))| without.cost_with(&lane.shape, position)).sum();
            let sum = here * u64::from(cost_here);
            if sum + least_there >= limit {
                continue;
            }
            let cost_there: u32 =
                lanes().map(|((lane, &position), (_, with))| with.without_position(position).cost(&lane.shape)).sum();
            let sum = sum + there * u64::from(cost_there);
            if sum < limit {
                (best, limit) = (Some(back), sum);
            }
        }
        best
    }

    fn dissolve_all(&mut self) {
        // No row is placed for less than the cost of a group, and groups only get dearer from here on.
        let floor = u64::from(self.crowd.cost.iter().copied().min().unwrap_or(0));
        let mut group = self.crowd.len();
        while group > 0 {
            group -= 1;
            if self.crowd.len() > 1 {
                self.dissolve_group(group, floor);
            }
        }
    }

    /// Gives all rows of a group to others if that lowers the summed cost.
    fn dissolve_group(&mut self, group: usize, floor: u64) {
        let size = self.crowd.group_size(group);
        let Some(mut budget) = self.group_cost(group).checked_sub(floor * size) else { return };
        if budget == 0 {
            return;
        }
        // The rows that widen the group most are hardest to place: if the group cannot be dissolved, they show it first.
        self.crowd.compute_relief(self.ruler, self.space, group);
        let mut rows = self.crowd.members[group].clone();
        rows.sort_by_key(|&row| Reverse(self.crowd.relief[row as usize]));
        let mut placed: Vec<(u32, usize, u32)> = Vec::with_capacity(rows.len());
        for &row in &rows {
            self.crowd.scan_row(self.ruler, self.space, row);
            let Some((target, rise)) = self.crowd.cheapest_group(group, self.judge.k, budget + floor) else { break };
            placed.push((row, target, self.crowd.last_change(target)));
            self.crowd.add_row(self.ruler, self.space, target, row);
            budget -= rise - floor;
        }
        let kept = placed.len() == rows.len()
            && (self.judge.plain
                || placed.iter().all(|&(_, target, _)| self.allows_group(self.crowd.members[target].iter().copied())));
        if kept {
            self.crowd.remove_group(group);
            return;
        }
        for &(row, target, changed) in placed.iter().rev() {
            self.crowd.remove_row(self.ruler, self.space, target, row);
            self.crowd.set_back(target, changed);
            self.crowd.home[row as usize] = group as u32;
        }
    }

    fn split_all(&mut self) {
        let mut group = 0;
        while group < self.crowd.len() {
            // A part that is still large enough is split again.
            if self.crowd.members[group].len() < 2 * self.judge.k || !self.split_group(group) {
                group += 1;
            }
        }
    }

    /// Splits off k rows around the row that is furthest from the group's first one.
    fn split_group(&mut self, group: usize) -> bool {
        let mut rest = self.crowd.members[group].clone();
        let first = self.space.row_positions(rest[0]);
        let lanes = &self.ruler.lanes;
        let mut covers: Vec<Bounds> = vec![Bounds::EMPTY; lanes.len()];
        let extend = |covers: &mut [Bounds], row: &[u16]| {
            for (bounds, &position) in covers.iter_mut().zip(row) {
                bounds.add_position(position);
                bounds.add_bit(position);
            }
        };
        let cost_with = |covers: &[Bounds], row: u32| -> u32 {
            let terms = lanes.iter().zip(covers).zip(self.space.row_positions(row));
            terms.map(|((lane, bounds), &position)| bounds.cost_with(&lane.shape, position)).sum()
        };
        extend(&mut covers, first);
        let furthest = (0..rest.len()).max_by_key(|&at| cost_with(&covers, rest[at])).unwrap_or(0);
        let mut part = vec![rest.swap_remove(furthest)];
        covers.fill(Bounds::EMPTY);
        extend(&mut covers, self.space.row_positions(part[0]));
        while part.len() < self.judge.k {
            let next = (0..rest.len()).min_by_key(|&at| cost_with(&covers, rest[at])).unwrap_or(0);
            let row = rest.swap_remove(next);
            extend(&mut covers, self.space.row_positions(row));
            part.push(row);
        }
        let fine =
            self.judge.plain || (self.allows_group(part.iter().copied()) && self.allows_group(rest.iter().copied()));
        if !fine {
            return false;
        }
        self.crowd.replace_rows(self.ruler, self.space, group, rest);
        self.crowd.push_group(self.ruler, self.space, &part);
        true
    }
}
