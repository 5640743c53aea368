//! Settling when groups must not only meet the rules but lie apart, because a reader with a public table counts who fits
//! what was published.
//!
//! 1. Groups whose published values cover a common row are merged, until none do. Rows that no group took are groups of
//!    their own.
//! 2. A group that fails a rule is merged with the one whose loss, times its rows, grows least; then step 1 again.
//! 3. A last single group that still fails is dissolved.
//! 4. What was merged is cut again, between values and at nodes of hierarchies, as `mpalm` does: parts lie apart from one
//!    another, and from other groups as the whole did. Clusters overlap by nature, so without this whole tables end in one
//!    group.
//!
//! Methods that cut between values (`mpalm`, strict `mondrian` on attributes without a hierarchy) come through unchanged.

use super::mpalm::{Mpalm, Reading};
use crate::model::{Cover, Grouping, Region, Table};
use crate::privacy::{GroupView, Rules};

/// Makes every group meet the rules and lie apart from all others.
pub fn settle_apart(cell: &Table, grouping: Grouping, rules: &Rules) -> Grouping {
    let singles = grouping.left_over.iter().map(std::slice::from_ref);
    let rows = grouping.iter().chain(singles).filter(|rows| !rows.is_empty());
    let mut groups: Vec<Group> = rows.map(|rows| Group::new(cell, rows.to_vec())).collect();
    loop {
        groups = merge_meeting_groups(cell, groups);
        let Some(failing) = groups.iter().position(|group| !rules.are_met_by(&GroupView::new(cell, &group.rows)))
        else {
            break;
        };
        if groups.len() == 1 {
            break;
        }
        let group = groups.remove(failing);
        let growth = |other: &Group| {
            let mut cover = group.cover.clone();
            cover.merge(&other.cover);
            cover.rows as f64 * cover.cost(&cell.axes) - other.burden(cell)
        };
        let nearest = groups.iter().map(growth).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((nearest, _)) = nearest {
            groups[nearest].absorb_group(cell, group);
        }
    }
    let bounds = rules.others.iter().find_map(|rule| rule.presence_bounds());
    let cuts = bounds.map(|bounds| Mpalm { bounds: bounds.clone(), reading: Reading::Binary });
    let mut settled = Grouping::with_capacity(cell.rows());
    for group in groups {
        if !rules.are_met_by(&GroupView::new(cell, &group.rows)) {
            settled.left_over.extend(group.rows);
            continue;
        }
        match &cuts {
            Some(cuts) if group.merged => cuts.cut_apart(cell, group.rows, rules, |part| settled.push(part)),
            _ => settled.push(&group.rows),
        }
    }
    settled
}

#[derive(Debug)]
struct Group {
    rows: Vec<u32>,
    cover: Cover,
    region: Region,
    /// Whether it took in another group.
    merged: bool,
}

impl Group {
    fn new(cell: &Table, rows: Vec<u32>) -> Self {
        let cover = cell.cover(&rows);
        let region = Region::from_cover(&cell.axes, &cover);
        Self { rows, cover, region, merged: false }
    }

    fn absorb_group(&mut self, cell: &Table, other: Self) {
        self.merged = true;
        self.rows.extend(other.rows);
        self.cover.merge(&other.cover);
        self.region = Region::from_cover(&cell.axes, &self.cover);
    }

    fn burden(&self, cell: &Table) -> f64 {
        self.rows.len() as f64 * self.cover.cost(&cell.axes)
    }
}

/// Step 1. Groups keep their order; a merged one stands where its first part stood.
fn merge_meeting_groups(cell: &Table, mut groups: Vec<Group>) -> Vec<Group> {
    loop {
        let mut root: Vec<usize> = (0..groups.len()).collect();
        let mut met = false;
        for (a, b) in meeting_pairs(cell, &groups) {
            let (a, b) = (find_root(&mut root, a), find_root(&mut root, b));
            met |= a != b;
            root[a.max(b)] = a.min(b);
        }
        if !met {
            return groups;
        }
        let mut merged: Vec<Option<Group>> = Vec::with_capacity(groups.len());
        for (at, group) in groups.into_iter().enumerate() {
            let home = find_root(&mut root, at);
            merged.push(None);
            match &mut merged[home] {
                Some(host) => host.absorb_group(cell, group),
                none => *none = Some(group),
            }
        }
        groups = merged.into_iter().flatten().collect();
    }
}

/// Pairs of groups that meet, found by a sweep along the axis on which the regions are narrowest. Each group is named
/// with the first that it meets in the sweep and that is enough to merge them all in the end.
fn meeting_pairs(cell: &Table, groups: &[Group]) -> Vec<(usize, usize)> {
    let width = |axis: usize| {
        let of = |group: &Group| {
            let (lo, hi) = group.region.axis_ends(axis);
            u64::from(hi.saturating_sub(lo))
        };
        let largest = groups.iter().map(|group| u64::from(group.region.axis_ends(axis).1)).max().unwrap_or(0);
        groups.iter().map(of).sum::<u64>() as f64 / (largest + 1) as f64
    };
    let narrowest = (0..cell.axes.len()).map(|axis| (width(axis), axis)).min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, axis)) = narrowest else { return (1..groups.len()).map(|at| (0, at)).collect() };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&at| (groups[at].region.axis_ends(axis).0, at));
    let mut open: Vec<usize> = Vec::new();
    let mut met = Vec::new();
    for at in order {
        let start = groups[at].region.axis_ends(axis).0;
        open.retain(|&other| groups[other].region.axis_ends(axis).1 >= start);
        met.extend(
            open.iter().filter(|&&other| groups[other].region.meets(&groups[at].region)).map(|&other| (other, at)),
        );
        open.push(at);
    }
    met
}

fn find_root(root: &mut [usize], mut at: usize) -> usize {
    while root[at] != at {
        root[at] = root[root[at]];
        at = root[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::grouping::{Method, fixtures};
    use crate::methods::k_members::KMembers;
    use crate::methods::mondrian::Mondrian;
    use crate::model::{Axis, Shape, Tree};
    use crate::privacy::presence::Presence;

    proptest! {
        #[test]
        fn any_method_ends_in_groups_that_hold_and_lie_apart(
            table in fixtures::public_tables(),
            k in 1..6_usize,
            method in 0..4_u8,
            (min, max) in prop_oneof![Just((0.0, 0.9)), Just((0.1, 0.9))],
        ) {
            let presence = Presence::new(min, max);
            let mpalm = Mpalm { bounds: presence.bounds.clone(), reading: Reading::Binary };
            let rules = Rules { k, others: vec![Arc::new(presence)] };
            let method: &dyn Method = match method {
                0 => &Mondrian { strict: true },
                1 => &Mondrian { strict: false },
                2 => &KMembers::default(),
                _ => &mpalm,
            };
            let grouping = method.group(&table, &rules, 7);
            let settled = settle_apart(&table, grouping.clone(), &rules);
            let mut all = [settled.rows(), &settled.left_over].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..table.rows() as u32).collect::<Vec<_>>());
            let regions: Vec<Region> = settled.iter().map(|group| Region::from_cover(&table.axes, &table.cover(group))).collect();
            for (at, group) in settled.iter().enumerate() {
                prop_assert!(rules.are_met_by(&GroupView::new(&table, group)));
                prop_assert!(regions[..at].iter().all(|other| !other.meets(&regions[at])));
            }
            if method.name() == "mpalm" && grouping.iter().all(|group| rules.are_met_by(&GroupView::new(&table, group))) {
                prop_assert_eq!(settled, grouping, "what lies apart already passes unchanged");
            }
        }
    }

    /// Clusters of a table with hierarchies overlap, and are cut at its nodes instead of becoming one.
    #[test]
    fn clusters_that_overlap_are_cut_at_nodes() {
        let tree =
            Tree::new(8, [(0, 7, 1.0), (0, 3, 0.5), (4, 7, 0.5), (0, 1, 0.2), (2, 3, 0.2), (4, 5, 0.2), (6, 7, 0.2)]);
        let axes = [Axis::new("a", Shape::Tree(tree.clone())), Axis::new("b", Shape::Tree(tree))];
        let codes = (0..640_u16).flat_map(|row| [row * 7 % 8, row / 8 % 8]).collect();
        let mut table = Table::new(axes, codes);
        table.members = Some((0..640).map(|row| row * 31 % 101 % 3 == 0).collect());
        let rules = Rules { k: 5, others: vec![Arc::new(Presence::new(0.0, 0.9))] };
        for method in [&KMembers::default() as &dyn Method, &Mondrian { strict: true }, &Mondrian { strict: false }] {
            let settled = settle_apart(&table, method.group(&table, &rules, 7), &rules);
            assert!(settled.len() >= 8, "{}: {} groups", method.name(), settled.len());
        }
    }
}
