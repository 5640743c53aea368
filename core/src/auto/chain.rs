//! Chains: the ways to widen a box around a position, lane by lane.
//!
//! A level is what a box may cover on one lane, each level holding the one below it. On a tree these are the nodes above
//! the leaf, on a line windows around the position that double in width, on a set the position together with the most
//! frequent others. Null is one more level on top.

use super::space::{LaneShape, Ruler};

/// What a box covers on one lane: an interval, and one position that may lie outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Side {
    pub lo: u16,
    pub hi: u16,
    pub also: u16,
}

impl Side {
    /// One position.
    pub fn at_position(position: u16) -> Self {
        Self { lo: position, hi: position, also: position }
    }

    /// Whether a position lies inside.
    pub fn contains_position(self, position: u16) -> bool {
        (self.lo..=self.hi).contains(&position) || self.also == position
    }

    /// Whether an interval lies inside.
    fn contains_interval(self, (lo, hi): (u16, u16)) -> bool {
        self.lo <= lo && hi <= self.hi
    }
}

/// One level of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub side: Side,
    pub cost: u16,
}

/// The chains around a seed, one lane after the other, each as far as a cost allows.
#[derive(Debug, Default)]
pub(super) struct Chains {
    levels: Vec<Level>,
    /// Where the levels of every lane end.
    ends: Vec<u32>,
    /// Whether all levels of the lane are there.
    whole: Vec<bool>,
    /// Lanes of which only the highest level is of interest.
    fixed: Vec<bool>,
}

/// Windows on a line start at this share of its scale, or at the distance of two values if that is more.
const FINEST_WINDOW: u16 = 32;

impl Chains {
    /// Builds the chains around a seed. `range` is what the free rows cover on every lane; levels dearer than `limit` are
    /// left out, but never the lowest ones.
    pub fn build_chains(&mut self, ruler: &Ruler, seed: &[u16], range: &[(u16, u16)], limit: u32) {
        self.levels.clear();
        self.ends.clear();
        self.whole.clear();
        self.fixed.clear();
        self.fixed.resize(ruler.lanes.len(), false);
        for ((lane, &position), &range) in ruler.lanes.iter().zip(seed).zip(range) {
            let start = self.levels.len();
            let whole = match &lane.shape {
                _ if range.0 == range.1 => self.add_level(Side::at_position(position), 0, limit, start),
                LaneShape::Tree(steps) => {
                    let mut cost = 0;
                    let mut step = steps.step(steps.first_step(position));
                    loop {
                        let side = Side { lo: step.lo, hi: step.hi, also: position };
                        if !self.add_level(side, cost, limit, start) {
                            break false;
                        }
                        if side.contains_interval(range) {
                            break true;
                        }
                        cost += u32::from(step.cost);
                        step = steps.step(step.up);
                    }
                }
                LaneShape::Line { scale, .. } => {
                    let null = lane.null_position();
                    let top = Side { lo: range.0, hi: range.1, also: position };
                    let values = (range.0, if Some(range.1) == null { *scale } else { range.1 });
                    let mut whole;
                    if Some(position) == null {
                        whole = self.add_level(Side::at_position(position), 0, limit, start);
                    } else {
                        let finest = lane.unit().max(*scale / FINEST_WINDOW).max(1);
                        let mut radius = if lane.unit() >= finest { 0 } else { finest };
                        loop {
                            let lo = position.saturating_sub(radius).max(values.0);
                            let hi = position.saturating_add(radius).min(values.1);
                            // Rows inside seldom reach both ends.
                            let cost = u32::from(hi - lo) * 3 / 4;
                            whole = self.add_level(Side { lo, hi, also: position }, cost, limit, start);
                            if !whole || (lo, hi) == values {
                                break;
                            }
                            radius = if radius == 0 { finest } else { radius.saturating_mul(2) };
                        }
                    }
                    whole && (Some(range.1) != null || self.add_level(top, u32::from(*scale), limit, start))
                }
                LaneShape::Set { step } => self.add_sets(*step, position, range, limit, start),
            };
            self.ends.push(self.levels.len() as u32);
            self.whole.push(whole);
        }
    }

    /// Adds sets of a seed's value and ever more of the commonest; whether all levels were cheap enough. Positions are ranks
    /// of frequency.
    fn add_sets(&mut self, step: u16, position: u16, range: (u16, u16), limit: u32, start: usize) -> bool {
        let mut common = 0;
        loop {
            let side = Side { lo: 0, hi: common, also: position };
            let side = if common == 0 { Side::at_position(position) } else { side };
            let others = if common == 0 { 0 } else { u32::from(common + 1) - u32::from(position <= common) };
            if !self.add_level(side, others * u32::from(step), limit, start) {
                return false;
            }
            if side.contains_interval(range) {
                return true;
            }
            common = (2 * common + 1).min(range.1);
        }
    }

    /// Adds a level if it is cheap enough; a level that costs no more than the one below takes its place.
    fn add_level(&mut self, side: Side, cost: u32, limit: u32, start: usize) -> bool {
        let first = self.levels.len() == start;
        if !first && cost > limit {
            return false;
        }
        // What no box can do without costs nothing, even if it is a window.
        let cost = if first { 0 } else { cost.min(u32::from(u16::MAX)) as u16 };
        match self.levels.last_mut() {
            Some(last) if !first && last.cost >= cost => last.side = side,
            _ => self.levels.push(Level { side, cost }),
        }
        true
    }

    /// Takes every second window from the line with the most of them, down to `fewest`; false when there is none.
    pub fn thin_windows(&mut self, ruler: &Ruler, fewest: usize) -> bool {
        let is_line = |lane: &usize| matches!(ruler.lanes[*lane].shape, LaneShape::Line { .. });
        let Some(lane) = (0..self.lanes()).filter(is_line).max_by_key(|&lane| self.lane_levels(lane).len()) else {
            return false;
        };
        let levels = self.lane_levels(lane).len();
        if levels <= fewest {
            return false;
        }
        let end = self.ends[lane] as usize;
        let start = end - levels;
        // The highest one stays.
        let mut at = start;
        for level in start..end {
            if (end - 1 - level).is_multiple_of(2) {
                self.levels[at] = self.levels[level];
                at += 1;
            }
        }
        self.levels.drain(at..end);
        self.ends[lane..].iter_mut().for_each(|end_of| *end_of -= (end - at) as u32);
        true
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.ends.len()
    }

    /// Levels of a lane, from the seed's own position upwards.
    pub fn lane_levels(&self, lane: usize) -> &[Level] {
        let start = if lane == 0 { 0 } else { self.ends[lane - 1] as usize };
        let end = self.ends[lane] as usize;
        &self.levels[if self.fixed[lane] { end - 1 } else { start }..end]
    }

    /// Leaves only the highest level of a lane.
    pub fn fix_lane(&mut self, lane: usize) {
        self.fixed[lane] = true;
    }

    /// Whether nothing of a lane was left out.
    pub fn is_whole_lane(&self, lane: usize) -> bool {
        self.whole[lane]
    }

    /// Whether nothing was left out on any lane.
    pub fn all_whole(&self) -> bool {
        self.whole.iter().all(|&whole| whole)
    }
}
