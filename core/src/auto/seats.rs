//! Seats for the last: rows that no group took when groups must meet more than a number of rows, looked for in the cell as a
//! whole.
//!
//! 1. *Unite.* Groups that would be published alike are one class to a reader. Under rules that two groups may meet each, but
//!    not together, they become one group; what it has too much of leaves it, row by row.
//! 2. What can be done for rows without a group among their neighbours is done by [`repair_groups`].
//! 3. *Join.* A row asks one group after the other, from the one whose loss, times its rows, grows least, much further than
//!    its neighbourhood: where everybody near is alike, the group that takes it lies elsewhere.
//! 4. *Trade.* Failing that, a near group takes the row in exchange for one of its own that another group takes.
//! 5. Groups that took rows in may be alike now: the same again, a few times.
//!
//! The questions of all rows together are bounded by a multiple of the rows of the cell.

use std::collections::HashMap;

use super::Judge;
use crate::grouping::cancel::checkpoint;
use crate::grouping::enforce::Group;
use crate::grouping::placing::Placing;
use crate::grouping::repair::repair_groups;
use crate::model::{Axis, Code, Cover, Grouping, MAX_SET_VALUES, Shape};
use crate::privacy::Rule;

/// Groups that are asked to take one row.
const ASKED: usize = 4096;
/// Groups that are asked to take a row in exchange for one of theirs.
const PARTNERS: usize = 64;
/// Groups that are asked to take the row of a partner.
const HOSTS: usize = 32;
/// Questions of all rows of a cell, per row of the cell and at the least.
const QUESTIONS: (usize, usize) = (16, 1 << 20);
/// Groups whose costs take as long to find as one question to answer.
const SWEPT: usize = 256;

/// Rows of a group that are tried out before one leaves it.
const TRIED: usize = 16;
/// Times that groups are united and rows are seated.
const ROUNDS: usize = 4;

/// Finds seats for the rows that a grouping leaves over, as far as there are any.
pub(super) fn find_seats(judge: &Judge<'_>, grouping: Grouping) -> Grouping {
    let cell = judge.table;
    let unites = judge.rules.others.iter().any(|rule| may_clash(rule.as_ref()));
    let complete = grouping.left_over.is_empty() && !unites;
    if judge.plain || complete || grouping.is_empty() || cell.members.is_some() {
        return grouping;
    }
    let mut rows = grouping.left_over.clone();
    let mut groups: Vec<Group> = grouping.iter().map(|group| Group::new(cell, group.to_vec())).collect();
    drop(grouping);
    let mut left = QUESTIONS.1.max(QUESTIONS.0 * cell.rows());
    for round in 0..ROUNDS {
        if unites {
            groups = unite_alike(judge, groups, &mut rows);
        }
        if rows.is_empty() || groups.is_empty() {
            break;
        }
        if round == 0 {
            repair_groups(cell, &mut groups, &mut rows, judge.rules);
        }
        let placing = Placing::new(&cell.axes, groups.iter().map(|group| &group.cover), rows.len());
        let mut seats = Seats { judge, groups, placing, left };
        rows.retain(|&row| !seats.join_group(row) && !seats.trade_place(row));
        (groups, left) = (seats.groups, seats.left);
    }
    if unites {
        groups = unite_alike(judge, groups, &mut rows);
    }
    let mut seated = Grouping::with_capacity(cell.rows());
    groups.iter().for_each(|group| seated.push(&group.rows));
    seated.left_over = rows;
    seated
}

/// Whether groups with equal published values that meet a rule may fail it together.
fn may_clash(rule: &dyn Rule) -> bool {
    rule.counts_values_only() && !rule.survives_merging()
}

/// Makes one group of those that are published alike. Rows that must leave are added to `left_over`.
fn unite_alike(judge: &Judge<'_>, groups: Vec<Group>, left_over: &mut Vec<u32>) -> Vec<Group> {
    let axes = &judge.table.axes;
    let mut place: HashMap<Vec<Code>, usize> = HashMap::new();
    let mut alike: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        let at = *place.entry(published_values(axes, &group.cover)).or_insert(alike.len());
        if at == alike.len() {
            alike.push(Vec::new());
        }
        alike[at].push(group);
    }
    let mut united = Vec::with_capacity(alike.len());
    for mut class in alike {
        checkpoint();
        if class.len() == 1 {
            united.append(&mut class);
            continue;
        }
        let all: Vec<u32> = class.iter().flat_map(|group| group.rows.iter().copied()).collect();
        let (kept, gone) = match thin_group(judge, all) {
            Some(thinned) => thinned,
            None => {
                // Any one of them meets the rules.
                let kept = class.swap_remove(0).rows;
                (kept, class.into_iter().flat_map(|group| group.rows).collect())
            }
        };
        united.push(Group::new(judge.table, kept));
        left_over.extend(gone);
    }
    united
}

/// Takes rows out of a group until it meets the rules, each time of some the one without which it comes nearest to them.
/// Returns those that stay and the others; `None` if it does not get there.
fn thin_group(judge: &Judge<'_>, mut rows: Vec<u32>) -> Option<(Vec<u32>, Vec<u32>)> {
    let (mut gone, fewest) = (Vec::new(), judge.k.max(rows.len() / 2));
    let mut excess = judge.excess(&rows);
    while excess > 0.0 {
        if rows.len() <= fewest || !excess.is_finite() {
            return None;
        }
        // Any of them may be among the tried ones: they move on by a step that does not divide most lengths.
        let (first, len) = (gone.len() * 7, rows.len());
        let tried = (0..TRIED.min(len)).map(|step| (first + step * len / TRIED.min(len)) % len);
        let mut best: Option<(f64, usize)> = None;
        for at in tried {
            let last = rows.len() - 1;
            rows.swap(at, last);
            let after = judge.excess(&rows[..last]);
            rows.swap(at, last);
            if best.is_none_or(|(least, _)| after < least) {
                best = Some((after, at));
            }
        }
        let (after, at) = best?;
        gone.push(rows.remove(at));
        excess = after;
    }
    Some((rows, gone))
}

/// What a reader sees of a cover: equal for covers that are published alike.
fn published_values(axes: &[Axis], cover: &Cover) -> Vec<Code> {
    /// Comes before what stands for everything, and for the node of a tree. No interval is the other way round.
    const EVERYTHING: [Code; 2] = [1, 0];
    let mut seen = Vec::with_capacity(2 * axes.len());
    for (a, axis) in axes.iter().enumerate() {
        let (lo, hi) = (cover.lo[a], cover.hi[a]);
        let with_null = lo != hi && axis.null == Some(hi);
        match &axis.shape {
            _ if with_null => seen.extend(EVERYTHING),
            Shape::Line { .. } => seen.extend([lo, hi]),
            Shape::Tree(tree) => match tree.common_ancestor(lo, hi) {
                None => seen.extend([lo, hi]),
                Some(0) => seen.extend(EVERYTHING),
                Some(node) => seen.extend([tree.nodes()[node as usize].lo, tree.nodes()[node as usize].hi]),
            },
            Shape::Set { .. } if cover.count_distinct(a) > MAX_SET_VALUES => seen.extend(EVERYTHING),
            Shape::Set { .. } => {
                seen.push(cover.codes(a).len() as Code);
                seen.extend_from_slice(cover.codes(a));
            }
        }
    }
    seen
}

/// The groups of a cell, which may take in more rows.
struct Seats<'a> {
    judge: &'a Judge<'a>,
    groups: Vec<Group>,
    placing: Placing<'a>,
    /// Questions that may still be asked.
    left: usize,
}

impl Seats<'_> {
    /// Puts a row into the first group that may take it.
    fn join_group(&mut self, row: u32) -> bool {
        checkpoint();
        let Some(group) = self.find_host(row, ASKED, usize::MAX) else { return false };
        self.admit_row(group, row);
        true
    }

    /// Puts a row into the place of another one for which there is a group.
    fn trade_place(&mut self, row: u32) -> bool {
        for group in self.nearest_groups(row, PARTNERS) {
            checkpoint();
            for at in 0..self.groups[group].rows.len() {
                let mut swapped = self.groups[group].rows.clone();
                let other = std::mem::replace(&mut swapped[at], row);
                if !self.may_hold(&swapped) {
                    continue;
                }
                let Some(host) = self.find_host(other, HOSTS, group) else { continue };
                self.groups[group] = Group::new(self.judge.table, swapped);
                self.placing.update_group(group, &self.groups[group].cover);
                self.admit_row(host, other);
                return true;
            }
        }
        false
    }

    /// The first of the `most` nearest groups, but for one, that may take a row.
    fn find_host(&mut self, row: u32, most: usize, except: usize) -> Option<usize> {
        let nearest = self.nearest_groups(row, most);
        let mut with_row = Vec::new();
        nearest.into_iter().filter(|&group| group != except).find(|&group| {
            with_row.clear();
            with_row.extend_from_slice(&self.groups[group].rows);
            with_row.push(row);
            self.may_hold(&with_row)
        })
    }

    /// The groups whose loss, times their rows, grows least with a row, from the least on.
    fn nearest_groups(&mut self, row: u32, most: usize) -> Vec<usize> {
        self.left = self.left.saturating_sub(self.groups.len() / SWEPT);
        if self.left == 0 {
            return Vec::new();
        }
        let costs = self.placing.row_costs(self.judge.table.row(row));
        let growth = |(cost, group): (f64, &Group)| (group.rows.len() + 1) as f64 * cost - group.burden;
        let all = costs.iter().copied().zip(&self.groups).map(growth).zip(0..);
        let mut found: Vec<(f64, usize)> = all.filter(|(growth, _)| growth.is_finite()).collect();
        let by_growth = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if found.len() > most {
            found.select_nth_unstable_by(most - 1, by_growth);
            found.truncate(most);
        }
        found.sort_unstable_by(by_growth);
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// Whether rows may form a group, as long as there are questions left.
    fn may_hold(&mut self, rows: &[u32]) -> bool {
        let may_ask = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_ask && self.judge.allows_group(rows)
    }

    fn admit_row(&mut self, group: usize, row: u32) {
        self.groups[group].add_row(self.judge.table, row);
        self.placing.update_group(group, &self.groups[group].cover);
    }
}
