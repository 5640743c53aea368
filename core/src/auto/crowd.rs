//! The groups of a space while they are being improved: who is in which, and what each of them covers.
//!
//! A group remembers the two smallest and the two largest positions per lane (for sets: what occurs at all and what
//! occurs more than once). That suffices to compute in one step what it would cost without any one of its rows. Bounds
//! are kept lane by lane, so that one row can be held against all groups in a few passes over contiguous memory.

use super::space::{LaneShape, Ruler, STRIDE, Space, position_bit};
use crate::simd::{Kernel, dispatch};

/// Bounds of one group on one lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub lo: u16,
    /// The smallest position when one row at `lo` leaves.
    pub lo2: u16,
    pub hi: u16,
    /// The largest position when one row at `hi` leaves.
    pub hi2: u16,
    /// Bits of a set.
    pub once: u64,
    /// Bits that occur more than once.
    pub twice: u64,
}

impl Bounds {
    pub const EMPTY: Self = Self { lo: u16::MAX, lo2: u16::MAX, hi: 0, hi2: 0, once: 0, twice: 0 };

    /// Takes in one more position.
    #[inline]
    pub fn add_position(&mut self, position: u16) {
        self.lo2 = self.lo2.min(self.lo.max(position));
        self.lo = self.lo.min(position);
        self.hi2 = self.hi2.max(self.hi.min(position));
        self.hi = self.hi.max(position);
    }

    /// Takes in one more position of a set.
    #[inline]
    pub fn add_bit(&mut self, position: u16) {
        self.twice |= self.once & position_bit(position);
        self.once |= position_bit(position);
    }

    /// Cost of what is covered.
    #[inline]
    pub fn cost(&self, shape: &LaneShape) -> u32 {
        match shape {
            LaneShape::Set { step } => u32::from(*step) * self.once.count_ones().saturating_sub(1),
            interval => interval.interval_cost(self.lo, self.hi),
        }
    }

    /// The bounds once a row at this position has left; only `lo`, `hi` and `once` are right.
    #[inline]
    pub fn without_position(&self, position: u16) -> Self {
        let lo = if position == self.lo { self.lo2 } else { self.lo };
        let hi = if position == self.hi { self.hi2 } else { self.hi };
        let once = self.once & !(position_bit(position) & !self.twice);
        Self { lo, hi, once, ..*self }
    }

    /// Cost with one more position.
    #[inline]
    pub fn cost_with(&self, shape: &LaneShape, position: u16) -> u32 {
        match shape {
            LaneShape::Set { step } => u32::from(*step) * ((self.once | position_bit(position)).count_ones() - 1),
            interval => interval.interval_cost(self.lo.min(position), self.hi.max(position)),
        }
    }
}

/// A row that is held against all groups.
struct Scan<'a> {
    crowd: &'a mut Crowd,
    ruler: &'a Ruler,
    space: &'a Space,
    row: u32,
}

impl Kernel for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn run_loop(self) {
        self.crowd.scan_with(self.ruler, self.space, self.row);
    }
}

/// A group that is held against all others.
struct ScanJoins<'a> {
    crowd: &'a mut Crowd,
    ruler: &'a Ruler,
    group: usize,
}

impl Kernel for ScanJoins<'_> {
    type Output = ();

    #[inline(always)]
    fn run_loop(self) {
        self.crowd.scan_joins_with(self.ruler, self.group);
    }
}

/// The groups of a space.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Rows of every group, as indices into the space.
    pub members: Vec<Vec<u32>>,
    /// Group of every row.
    pub home: Vec<u32>,
    /// Cost of every group.
    pub cost: Vec<u32>,
    /// By how much the cost of its group falls when a row leaves; right once [`compute_relief`](Self::compute_relief) was called.
    pub relief: Vec<u32>,
    /// Groups whose reliefs are right.
    relieved: Vec<bool>,
    /// What the row of the last [`scan_row`](Self::scan_row) would add to the cost of every group.
    pub extra: Vec<u16>,
    /// The smallest of [`extra`](Self::extra) among the groups of equal number modulo [`STRIDE`].
    lowest: [u16; STRIDE],
    /// The part of the cost that comes from trees.
    tree_cost: Vec<u16>,
    /// Smallest and largest positions, lane by lane, `room` groups each.
    lo: Vec<u16>,
    hi: Vec<u16>,
    once: Vec<u64>,
    /// Second smallest and second largest positions and repeated bits, group by group.
    second: Vec<(u16, u16, u64)>,
    room: usize,
    width: usize,
    sizes: Vec<u32>,
    /// Counts changes, and says for every group when it last changed.
    clock: u32,
    changed: Vec<u32>,
    spare: Vec<Vec<u32>>,
    scratch: Vec<u16>,
}

impl Crowd {
    /// Forgets everything and makes room for groups of a space.
    pub fn clear(&mut self, space: &Space, groups: usize) {
        let room = groups.next_multiple_of(STRIDE);
        self.spare.append(&mut self.members);
        self.home.clear();
        self.home.resize(space.rows.len(), u32::MAX);
        self.relief.clear();
        self.relief.resize(space.rows.len(), 0);
        self.relieved.clear();
        self.sizes.clear();
        self.changed.clear();
        self.clock = 0;
        self.width = space.width;
        self.room = room;
        self.cost.clear();
        self.tree_cost.clear();
        self.tree_cost.resize(room, 0);
        for bounds in [&mut self.lo, &mut self.hi] {
            bounds.clear();
            bounds.resize(room * space.width, 0);
        }
        self.once.clear();
        self.once.resize(room * space.width, 0);
        self.second.clear();
        self.second.resize(room * space.width, (0, 0, 0));
        self.extra.clear();
        self.extra.resize(room, 0);
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Summed cost of all groups.
    pub fn total_cost(&self) -> u64 {
        (0..self.len()).map(|group| self.group_size(group) * u64::from(self.cost[group])).sum()
    }

    /// Number of rows in a group.
    #[inline]
    pub fn group_size(&self, group: usize) -> u64 {
        u64::from(self.sizes[group])
    }

    /// The number of changes made so far.
    pub fn change_count(&self) -> u32 {
        self.clock
    }

    /// When a group last changed.
    pub fn last_change(&self, group: usize) -> u32 {
        self.changed[group]
    }

    /// Says that a group is again what it was at that time.
    pub fn set_back(&mut self, group: usize, changed: u32) {
        self.changed[group] = changed;
    }

    /// Adds a group.
    pub fn push_group(&mut self, ruler: &Ruler, space: &Space, rows: &[u32]) {
        assert!(self.len() < self.room, "there is room for every group");
        let group = self.len();
        let mut members = self.spare.pop().unwrap_or_default();
        members.clear();
        members.extend_from_slice(rows);
        for &row in rows {
            self.home[row as usize] = group as u32;
        }
        self.members.push(members);
        self.cost.push(0);
        self.relieved.push(false);
        self.sizes.push(0);
        self.changed.push(0);
        self.refresh_group(ruler, space, group);
    }

    /// Removes a group whose rows have all gone elsewhere; the last group takes its number.
    pub fn remove_group(&mut self, group: usize) {
        let last = self.len() - 1;
        self.spare.push(self.members.swap_remove(group));
        self.cost.swap_remove(group);
        self.tree_cost[group] = self.tree_cost[last];
        self.relieved.swap_remove(group);
        self.sizes.swap_remove(group);
        self.changed.swap_remove(group);
        if group == last {
            return;
        }
        for lane in 0..self.width {
            let bounds = self.bounds(last, lane);
            self.set_bounds(group, lane, bounds);
        }
        for &row in &self.members[group] {
            self.home[row as usize] = group as u32;
        }
    }

    /// Bounds of a group on a lane.
    #[inline]
    pub fn bounds(&self, group: usize, lane: usize) -> Bounds {
        let at = lane * self.room + group;
        let (lo2, hi2, twice) = self.second[group * self.width + lane];
        Bounds { lo: self.lo[at], lo2, hi: self.hi[at], hi2, once: self.once[at], twice }
    }

    fn set_bounds(&mut self, group: usize, lane: usize, bounds: Bounds) {
        let at = lane * self.room + group;
        self.lo[at] = bounds.lo;
        self.hi[at] = bounds.hi;
        self.once[at] = bounds.once;
        self.second[group * self.width + lane] = (bounds.lo2, bounds.hi2, bounds.twice);
    }

    /// Works out bounds and cost of a group anew, after rows left it.
    fn refresh_group(&mut self, ruler: &Ruler, space: &Space, group: usize) {
        self.sizes[group] = self.members[group].len() as u32;
        let width = self.width;
        // All lanes at once, row by row.
        self.scratch.clear();
        self.scratch.resize(2 * width, u16::MAX);
        self.scratch.resize(4 * width, 0);
        let (lows, highs) = self.scratch.split_at_mut(2 * width);
        let ((lo, lo2), (hi, hi2)) = (lows.split_at_mut(width), highs.split_at_mut(width));
        for &row in &self.members[group] {
            let positions = space.row_positions(row);
            for ((lo, lo2), &position) in lo.iter_mut().zip(lo2.iter_mut()).zip(positions) {
                *lo2 = (*lo2).min((*lo).max(position));
                *lo = (*lo).min(position);
            }
            for ((hi, hi2), &position) in hi.iter_mut().zip(hi2.iter_mut()).zip(positions) {
                *hi2 = (*hi2).max((*hi).min(position));
                *hi = (*hi).max(position);
            }
        }
        for (l, lane) in ruler.lanes.iter().enumerate() {
            let at = |bound: usize| self.scratch[bound * width + l];
            let mut bounds = Bounds { lo: at(0), lo2: at(1), hi: at(2), hi2: at(3), once: 0, twice: 0 };
            if matches!(lane.shape, LaneShape::Set { .. }) {
                self.members[group].iter().for_each(|&row| bounds.add_bit(space.row_positions(row)[l]));
            }
            self.set_bounds(group, l, bounds);
        }
        self.price_group(ruler, group);
    }

    /// Puts a row into a group that it is not in.
    pub fn add_row(&mut self, ruler: &Ruler, space: &Space, group: usize, row: u32) {
        self.members[group].push(row);
        self.sizes[group] += 1;
        self.home[row as usize] = group as u32;
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.row_positions(row)).enumerate() {
            let mut bounds = self.bounds(group, l);
            if matches!(lane.shape, LaneShape::Set { .. }) {
                bounds.add_bit(position);
            } else {
                bounds.add_position(position);
            }
            self.set_bounds(group, l, bounds);
        }
        self.price_group(ruler, group);
    }

    /// Takes a row out of a group.
    pub fn remove_row(&mut self, ruler: &Ruler, space: &Space, group: usize, row: u32) {
        self.members[group].retain(|&member| member != row);
        self.refresh_group(ruler, space, group);
    }

    /// Puts a row into a group in the place of another.
    pub fn replace_row(&mut self, ruler: &Ruler, space: &Space, group: usize, out: u32, into: u32) {
        self.home[into as usize] = group as u32;
        for member in self.members[group].iter_mut().filter(|member| **member == out) {
            *member = into;
        }
        self.refresh_group(ruler, space, group);
    }

    /// Gives a group other rows.
    pub fn replace_rows(&mut self, ruler: &Ruler, space: &Space, group: usize, rows: Vec<u32>) {
        for &row in &rows {
            self.home[row as usize] = group as u32;
        }
        self.members[group] = rows;
        self.refresh_group(ruler, space, group);
    }

    fn price_group(&mut self, ruler: &Ruler, group: usize) {
        let (mut cost, mut tree_cost) = (0, 0);
        for (l, lane) in ruler.lanes.iter().enumerate() {
            let more = self.bounds(group, l).cost(&lane.shape);
            cost += more;
            if matches!(lane.shape, LaneShape::Tree(_)) {
                tree_cost += more;
            }
        }
        self.relieved[group] = false;
        self.clock += 1;
        self.changed[group] = self.clock;
        self.cost[group] = cost;
        self.tree_cost[group] = tree_cost as u16;
    }

    /// Works out, for every row of a group, by how much the cost would fall without it, into [`relief`](Self::relief).
    pub fn compute_relief(&mut self, ruler: &Ruler, space: &Space, group: usize) {
        if std::mem::replace(&mut self.relieved[group], true) {
            return;
        }
        let members = &self.members[group];
        for &row in members {
            self.relief[row as usize] = 0;
        }
        for (l, lane) in ruler.lanes.iter().enumerate() {
            let bounds = self.bounds(group, l);
            let cost = bounds.cost(&lane.shape);
            if cost == 0 {
                continue;
            }
            if let LaneShape::Set { step } = &lane.shape {
                for &row in members {
                    let single = position_bit(space.row_positions(row)[l]) & !bounds.twice != 0;
                    self.relief[row as usize] += if single { u32::from(*step) } else { 0 };
                }
                continue;
            }
            let low = cost - lane.shape.interval_cost(bounds.lo2, bounds.hi);
            let high = cost - lane.shape.interval_cost(bounds.lo, bounds.hi2);
            if low > 0 || high > 0 {
                for &row in members {
                    let position = space.row_positions(row)[l];
                    self.relief[row as usize] += if position == bounds.lo { low } else { 0 };
                    self.relief[row as usize] += if position == bounds.hi { high } else { 0 };
                }
            }
        }
    }

    /// Works out what a row would add to the cost of every group, into [`extra`](Self::extra).
    pub fn scan_row(&mut self, ruler: &Ruler, space: &Space, row: u32) {
        dispatch(Scan { crowd: self, ruler, space, row });
    }

    #[inline(always)]
    fn scan_with(&mut self, ruler: &Ruler, space: &Space, row: u32) {
        let groups = self.len().next_multiple_of(STRIDE);
        let extra = &mut self.extra[..groups];
        extra.fill(0);
        for (l, (lane, &position)) in ruler.lanes.iter().zip(space.row_positions(row)).enumerate() {
            let (low, high) = space.range[l];
            if low == high {
                continue;
            }
            let from = l * self.room;
            let los = &self.lo[from..][..groups];
            let his = &self.hi[from..][..groups];
            match &lane.shape {
                LaneShape::Line { .. } => {
                    for ((extra, &lo), &hi) in extra.iter_mut().zip(los).zip(his) {
                        *extra = extra.wrapping_add(position.saturating_sub(hi) + lo.saturating_sub(position));
                    }
                }
                LaneShape::Tree(steps) => {
                    let mut step = steps.step(steps.first_step(position));
                    while low < step.lo || step.hi < high {
                        if step.cost > 0 {
                            for ((extra, &lo), &hi) in extra.iter_mut().zip(los).zip(his) {
                                let outside = step.lo.saturating_sub(lo) | hi.saturating_sub(step.hi);
                                *extra = extra.wrapping_add(if outside > 0 { step.cost } else { 0 });
                            }
                        }
                        step = steps.step(step.up);
                    }
                }
                LaneShape::Set { step } => {
                    let onces = &self.once[from..][..groups];
                    for (extra, &once) in extra.iter_mut().zip(onces) {
                        *extra = extra.wrapping_add(if once & position_bit(position) == 0 { *step } else { 0 });
                    }
                }
            }
        }
        let mut lowest = [u16::MAX; STRIDE];
        for (extras, tree_costs) in extra.chunks_exact_mut(STRIDE).zip(self.tree_cost.chunks_exact(STRIDE)) {
            for ((extra, &tree_cost), lowest) in extras.iter_mut().zip(tree_costs).zip(&mut lowest) {
                *extra = extra.wrapping_sub(tree_cost);
                *lowest = (*lowest).min(*extra);
            }
        }
        self.lowest = lowest;
    }

    /// Works out what every group would cost together with one of them, into [`extra`](Self::extra).
    pub fn scan_joins(&mut self, ruler: &Ruler, group: usize) {
        dispatch(ScanJoins { crowd: self, ruler, group });
    }

    #[inline(always)]
    fn scan_joins_with(&mut self, ruler: &Ruler, group: usize) {
        let groups = self.len().next_multiple_of(STRIDE);
        self.extra[..groups].fill(0);
        for (l, lane) in ruler.lanes.iter().enumerate() {
            let own = self.bounds(group, l);
            let extra = &mut self.extra[..groups];
            let from = l * self.room;
            let los = &self.lo[from..][..groups];
            let his = &self.hi[from..][..groups];
            match &lane.shape {
                LaneShape::Line { .. } => {
                    for ((extra, &lo), &hi) in extra.iter_mut().zip(los).zip(his) {
                        *extra = extra.wrapping_add(hi.max(own.hi).wrapping_sub(lo.min(own.lo)));
                    }
                }
                LaneShape::Tree(steps) => {
                    let mut step = steps.step(steps.first_step(own.lo));
                    while step.hi < own.hi {
                        step = steps.step(step.up);
                    }
                    let cost = lane.shape.interval_cost(own.lo, own.hi) as u16;
                    extra.iter_mut().for_each(|extra| *extra = extra.wrapping_add(cost));
                    loop {
                        if step.cost > 0 {
                            for ((extra, &lo), &hi) in extra.iter_mut().zip(los).zip(his) {
                                let outside = step.lo.saturating_sub(lo) | hi.saturating_sub(step.hi);
                                *extra = extra.wrapping_add(if outside > 0 { step.cost } else { 0 });
                            }
                        }
                        let up = steps.step(step.up);
                        if (up.lo, up.hi) == (step.lo, step.hi) {
                            break;
                        }
                        step = up;
                    }
                }
                LaneShape::Set { step } => {
                    let onces = &self.once[from..][..groups];
                    for (extra, &once) in extra.iter_mut().zip(onces) {
                        let values = (once | own.once).count_ones() as u16;
                        *extra = extra.wrapping_add(step.wrapping_mul(values.saturating_sub(1)));
                    }
                }
            }
        }
    }

    /// Classes of groups after the last [`scan_row`](Self::scan_row), by number modulo [`STRIDE`], and the smallest addition in
    /// each: the most promising one first, then the others in order.
    fn stride_classes(&self) -> impl Iterator<Item = (usize, u64)> {
        let first = (0..STRIDE).min_by_key(|&class| self.lowest[class]);
        let others = (0..STRIDE).filter(move |&class| Some(class) != first);
        first.into_iter().chain(others).map(|class| (class, u64::from(self.lowest[class])))
    }

    /// The group, other than the row's own, whose summed cost rises least if the scanned row joins, and that rise; none
    /// when no rise stays below `limit`. No group has fewer than `least` rows.
    pub fn cheapest_group(&self, own: usize, least: usize, limit: u64) -> Option<(usize, u64)> {
        let (mut best, mut limit) = (None, limit);
        for (class, lowest) in self.stride_classes() {
            if lowest * (least as u64 + 1) >= limit {
                continue;
            }
            for group in (class..self.len()).step_by(STRIDE) {
                let rise = u64::from(self.extra[group]) * (self.group_size(group) + 1) + u64::from(self.cost[group]);
                if rise < limit && group != own {
                    (best, limit) = (Some((group, rise)), rise);
                }
            }
        }
        best
    }

    /// The `near` groups, other than the row's own, that the scanned row would make dearer by the least sums.
    pub fn nearest_groups(&self, own: usize, least: usize, near: usize, found: &mut Vec<(u64, usize)>) {
        found.clear();
        let mut limit = u64::MAX;
        for (class, lowest) in self.stride_classes() {
            if lowest * least as u64 >= limit {
                continue;
            }
            for group in (class..self.len()).step_by(STRIDE) {
                let rise = u64::from(self.extra[group]) * self.group_size(group);
                if rise < limit && group != own {
                    let place = found.partition_point(|other| other.0 <= rise);
                    found.insert(place, (rise, group));
                    found.truncate(near);
                    if found.len() == near {
                        limit = found[near - 1].0;
                    }
                }
            }
        }
    }
}
