//! Rebox: some neighbouring groups are covered again, from other seeds, and the better of the two covers is kept. Where some
//! axes have no hierarchy, every other time groups grow instead: it is quicker, and what one of the two cannot better, the
//! other often can.

use super::MAX_GROWN;
use super::cover::{Scene, Seeds};
use super::crowd::Bounds;
use super::refine::Search;
use super::space::LaneShape;
use crate::grouping::cancel::checkpoint;

/// By how much costs of boxes are blurred, so that another cover results.
const NOISE: f64 = 0.1;

/// Boxes around one seed beyond which lines are looked at less closely.
const BOXES: usize = 1024;

/// Rows that are to become groups, with what they cover and cost.
#[derive(Debug, Default)]
struct Draft {
    rows: Vec<u32>,
    covers: Vec<Bounds>,
    cost: u32,
}

impl Search<'_> {
    /// Covers neighbourhoods of `near` + 1 groups again, `share` times as many as there are groups.
    pub(super) fn rebox_all(&mut self, near: usize, seeds: usize, share: f64) {
        let attempts = (share * self.crowd.len() as f64).ceil() as usize;
        for _ in 0..attempts {
            if self.crowd.len() < 2 {
                return;
            }
            checkpoint();
            let group = self.rng.usize(..self.crowd.len());
            if self.crowd.cost[group] > 0 {
                self.rebox_group(group, near, seeds);
            }
        }
    }

    /// Covers a group and those nearest to it again, if that lowers their summed cost.
    fn rebox_group(&mut self, group: usize, near: usize, seeds: usize) {
        self.crowd.scan_joins(self.ruler, group);
        self.nearest.clear();
        for other in (0..self.crowd.len()).filter(|&other| other != group) {
            let apart =
                u64::from(2 * u32::from(self.crowd.extra[other])) + (1 << 20) - u64::from(self.crowd.cost[other]);
            if self.nearest.len() < near || apart < self.nearest[self.nearest.len() - 1].0 {
                let place = self.nearest.partition_point(|known| known.0 <= apart);
                self.nearest.insert(place, (apart, other));
                self.nearest.truncate(near);
            }
        }
        let mut groups: Vec<usize> = self.nearest.iter().map(|&(_, other)| other).chain([group]).collect();
        groups.sort_unstable();
        let mut rows: Vec<u32> = groups.iter().flat_map(|&group| &self.crowd.members[group]).copied().collect();
        self.rng.shuffle(&mut rows);
        let before: u64 = groups.iter().map(|&group| self.group_cost(group)).sum();
        let Some(drafts) = self.draft_cover(&rows, seeds, before) else { return };
        let mut drafts = drafts.into_iter();
        // Highest numbers first: removing a group renames the last one.
        for &group in groups.iter().rev() {
            match drafts.next() {
                Some(draft) => self.crowd.replace_rows(self.ruler, self.space, group, draft.rows),
                None => self.crowd.remove_group(group),
            }
        }
        drafts.for_each(|draft| self.crowd.push_group(self.ruler, self.space, &draft.rows));
    }

    /// A cover of the rows that costs less than `before`, if one is found.
    fn draft_cover(&mut self, rows: &[u32], seeds: usize, before: u64) -> Option<Vec<Draft>> {
        let mut made: Vec<Vec<u32>> = Vec::new();
        let how = Seeds { share: 0.0, least: seeds, boxes: BOXES, noise: NOISE };
        let Self { ruler, space, judge, coverer, grower, rng, .. } = self;
        let grows = !ruler.is_lattice() && judge.plain && judge.expected <= MAX_GROWN && rng.bool();
        let finish = |group: &[u32]| made.push(group.to_vec());
        let left = if grows {
            grower.grow_groups(ruler, space, judge, rows, &[], finish)
        } else {
            coverer.cover_rows(Scene { ruler, space, judge }, rows, how, rng, finish)
        };
        let mut drafts: Vec<Draft> = Vec::with_capacity(made.len());
        let mut sum = 0;
        for rows in made {
            let mut draft = Draft { rows, covers: vec![Bounds::EMPTY; self.ruler.lanes.len()], cost: 0 };
            for &row in &draft.rows {
                self.widen_covers(&mut draft.covers, row);
            }
            draft.cost = self.covers_cost(&draft.covers);
            sum += u64::from(draft.cost) * draft.rows.len() as u64;
            drafts.push(draft);
        }
        if sum >= before || (drafts.is_empty() && !left.is_empty()) {
            return None;
        }
        for row in left {
            let rise = |draft: &Draft| {
                let lanes = self.ruler.lanes.iter().zip(&draft.covers).zip(self.space.row_positions(row));
                let cost: u32 = lanes.map(|((lane, bounds), &position)| bounds.cost_with(&lane.shape, position)).sum();
                let size = draft.rows.len() as u64;
                (size + 1) * u64::from(cost) - size * u64::from(draft.cost)
            };
            let (more, home) = (0..drafts.len()).map(|at| (rise(&drafts[at]), at)).min()?;
            sum += more;
            if sum >= before {
                return None;
            }
            let mut draft = std::mem::take(&mut drafts[home]);
            self.widen_covers(&mut draft.covers, row);
            draft.rows.push(row);
            draft.cost = self.covers_cost(&draft.covers);
            drafts[home] = draft;
        }
        let fine = self.judge.plain || drafts.iter().all(|draft| self.allows_group(draft.rows.iter().copied()));
        fine.then_some(drafts)
    }

    fn widen_covers(&self, covers: &mut [Bounds], row: u32) {
        for ((bounds, lane), &position) in covers.iter_mut().zip(&self.ruler.lanes).zip(self.space.row_positions(row)) {
            if matches!(lane.shape, LaneShape::Set { .. }) {
                bounds.add_bit(position);
            } else {
                bounds.add_position(position);
            }
        }
    }

    fn covers_cost(&self, covers: &[Bounds]) -> u32 {
        covers.iter().zip(&self.ruler.lanes).map(|(bounds, lane)| bounds.cost(&lane.shape)).sum()
    }
}
