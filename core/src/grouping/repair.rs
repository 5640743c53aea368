//! Repair: a place for rows that no group took, when groups must meet more than a number of rows.
//!
//! Rows are left over mostly because everybody near them is like them: the young earn alike, so a subspace of young people
//! cannot be made diverse from within. Asking all groups of a cell is too much work, and asking the nearest is in vain. So:
//!
//! 1. *Neighbourhoods.* Groups, each stood for by one of its rows, and left-over rows are halved at the median of the
//!    widest attribute that allows it, as long as the rows of each half that holds left-over rows meet the rules together,
//!    left-over rows counted twice. So there is room for all of them among their neighbours, and for few of them too many
//!    groups to ask.
//! 2. *Joining.* Each left-over row joins the group of its neighbourhood whose loss, times its rows, grows least, among
//!    the nearest that meet the rules with it. Groups that refused several rows are passed over until they change.
//! 3. *Uniting.* A row that nobody takes calls near groups together, each if it brings the union nearer to the rules; a
//!    union that meets them is cut again ([`carve_groups`]).
//! 4. The same in neighbourhoods of more groups, up to the whole cell, with the rows that are left.
//! 5. Neighbourhoods in which rows are left even so are cut anew from the top, where that leaves fewer rows over.
//!
//! Each row asks a bounded number of groups, so the work grows as n log n. Bounds that fewer rows may meet (a largest
//! loss) do not count for neighbourhoods, only for groups.

use std::collections::BTreeMap;

use super::cancel::checkpoint;
use super::enforce::{Group, carve_groups};
use super::placing::Placing;
use crate::grouping::split::widest::{Ties, Widest, cut_at_median};
use crate::model::{Code, Table};
use crate::privacy::{GroupView, Rules};

/// Fewest groups and rows of a neighbourhood, round by round.
const ROUNDS: [usize; 3] = [32, 512, usize::MAX];
/// Groups that are asked to take one row.
const QUESTIONS: usize = 32;
/// Refusals in a row after which a group is passed over until it changes, and rows with equal sensitive values for which no
/// groups could be called together until one can.
const REFUSALS: u8 = 4;
/// Groups that are called together for one row.
const CALLS: usize = 48;
/// Most rows of a union, in multiples of k.
const UNION: usize = 64;

/// Finds places for left-over rows. Groups must meet the rules and still do; rows for which there is no place stay in
/// `rows`.
pub(crate) fn repair_groups(cell: &Table, groups: &mut Vec<Group>, rows: &mut Vec<u32>, rules: &Rules) {
    let mut repair = Repair { cell, rules, groups: std::mem::take(groups) };
    for least in ROUNDS {
        if rows.is_empty() || repair.groups.is_empty() {
            break;
        }
        let mut rest = Vec::new();
        for hood in repair.build_neighbourhoods(rows, least, true) {
            rest.extend(repair.fill_neighbourhood(hood));
        }
        *rows = rest;
        if repair.groups.len() + rows.len() <= least {
            break;
        }
    }
    if !rows.is_empty() && !repair.groups.is_empty() {
        let mut rest = Vec::new();
        for hood in repair.build_neighbourhoods(rows, ROUNDS[0], false) {
            rest.extend(repair.cut_anew(hood));
        }
        *rows = rest;
    }
    repair.groups.retain(|group| !group.rows.is_empty());
    *groups = repair.groups;
}

/// Groups that lie near each other, and left-over rows among them.
#[derive(Debug)]
struct Neighbourhood {
    groups: Vec<usize>,
    rows: Vec<u32>,
}

struct Repair<'a> {
    cell: &'a Table,
    rules: &'a Rules,
    /// A group without rows is gone.
    groups: Vec<Group>,
}

impl Repair<'_> {
    /// Step 1. Neighbourhoods that hold left-over rows; together they hold all of them. With `room`, left-over rows count
    /// twice.
    fn build_neighbourhoods(&self, rows: &[u32], least: usize, room: bool) -> Vec<Neighbourhood> {
        let living: Vec<usize> = (0..self.groups.len()).filter(|&group| !self.groups[group].rows.is_empty()).collect();
        let mut codes: Vec<Code> = Vec::with_capacity((living.len() + rows.len()) * self.cell.axes.len());
        living.iter().for_each(|&group| codes.extend_from_slice(self.cell.row(self.groups[group].rows[0])));
        rows.iter().for_each(|&row| codes.extend_from_slice(self.cell.row(row)));
        let places = Table::new(std::sync::Arc::clone(&self.cell.axes), codes);
        let is_row = |item: u32| item as usize >= living.len();
        let row = |item: u32| rows[item as usize - living.len()];
        let mut together = Vec::new();
        let mut allows = |items: &[u32]| {
            if !items.iter().any(|&item| is_row(item)) {
                return true;
            }
            together.clear();
            for &item in items {
                if is_row(item) {
                    together.extend(std::iter::repeat_n(row(item), if room { 2 } else { 1 }));
                } else {
                    together.extend_from_slice(&self.groups[living[item as usize]].rows);
                }
            }
            self.rules.hold_in_parts(&GroupView::new(self.cell, &together))
        };
        let mut found = Vec::new();
        let mut items: Vec<u32> = (0..(living.len() + rows.len()) as u32).collect();
        let mut open = vec![(0, items.len())];
        while let Some((start, end)) = open.pop() {
            checkpoint();
            let part = &mut items[start..end];
            if !part.iter().any(|&item| is_row(item)) {
                continue;
            }
            let axes = if part.len() / 2 < least { Vec::new() } else { Widest::BOUNDARY.axes_by_width(&places, part) };
            let cut = axes.into_iter().find_map(|axis| {
                let mut tried = part.to_vec();
                let left = cut_at_median(&places, &mut tried, axis, Ties::Boundary, least)?;
                (allows(&tried[..left]) && allows(&tried[left..])).then_some((tried, left))
            });
            if let Some((tried, left)) = cut {
                part.copy_from_slice(&tried);
                open.extend([(start + left, end), (start, start + left)]);
                continue;
            }
            let (rows, groups): (Vec<u32>, Vec<u32>) = part.iter().copied().partition(|&item| is_row(item));
            let groups = groups.into_iter().map(|item| living[item as usize]).collect();
            found.push(Neighbourhood { groups, rows: rows.into_iter().map(row).collect() });
        }
        found
    }

    /// Steps 2 and 3. Returns the rows for which there is no place.
    fn fill_neighbourhood(&mut self, hood: Neighbourhood) -> Vec<u32> {
        let Neighbourhood { groups: near, mut rows } = hood;
        let covers = near.iter().map(|&group| &self.groups[group].cover);
        let mut placing = Placing::new(&self.cell.axes, covers, rows.len());
        let mut refusals = vec![0_u8; near.len()];
        let mut with_row = Vec::new();
        rows.retain(|&row| {
            let costs = placing.row_costs(self.cell.row(row));
            let open = |at: usize| refusals[at] < REFUSALS;
            for at in self.nearest_groups(&near, costs, QUESTIONS, open) {
                let group = &mut self.groups[near[at]];
                with_row.clear();
                with_row.extend_from_slice(&group.rows);
                with_row.push(row);
                if self.rules.are_met_by(&GroupView::new(self.cell, &with_row)) {
                    group.add_row(self.cell, row);
                    placing.update_group(at, &group.cover);
                    refusals[at] = 0;
                    return false;
                }
                refusals[at] += 1;
            }
            true
        });
        let mut in_vain: BTreeMap<Vec<u32>, u8> = BTreeMap::new();
        rows.retain(|&row| {
            checkpoint();
            let attempts = in_vain.entry(self.sensitive_codes(row)).or_default();
            if *attempts >= REFUSALS {
                return true;
            }
            *attempts += 1;
            let costs = placing.row_costs(self.cell.row(row));
            let called = self.nearest_groups(&near, costs, CALLS, |_| true);
            let Some((united, union)) = self.unite_groups(&near, row, &called) else { return true };
            *attempts = 0;
            let (mut parts, mut none) = (Vec::new(), Vec::new());
            carve_groups(self.cell, union, self.rules, &mut parts, &mut none);
            debug_assert!(none.is_empty(), "a union that meets the rules is cut into parts that do");
            let mut parts = parts.into_iter();
            for at in united {
                let group = &mut self.groups[near[at]];
                match parts.next() {
                    Some(part) => {
                        *group = part;
                        placing.update_group(at, &group.cover);
                    }
                    None => group.rows.clear(),
                }
            }
            self.groups.extend(parts);
            false
        });
        rows
    }

    fn sensitive_codes(&self, row: u32) -> Vec<u32> {
        self.cell.sensitive.iter().map(|column| column.codes[row as usize]).collect()
    }

    /// Places in `near` of the groups whose burden grows least, given their costs with a row, from the least on.
    fn nearest_groups(&self, near: &[usize], costs: &[f64], most: usize, open: impl Fn(usize) -> bool) -> Vec<usize> {
        let growth = |at: usize| {
            let group = &self.groups[near[at]];
            (group.rows.len() + 1) as f64 * costs[at] - group.burden
        };
        let asked = |&at: &usize| costs[at].is_finite() && !self.groups[near[at]].rows.is_empty() && open(at);
        let mut found: Vec<(f64, usize)> = (0..near.len()).filter(asked).map(|at| (growth(at), at)).collect();
        let by_growth = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if found.len() > most {
            found.select_nth_unstable_by(most - 1, by_growth);
            found.truncate(most);
        }
        found.sort_by(by_growth);
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// Step 3: the groups, as places in `near`, that meet the rules together with a row, and all their rows.
    fn unite_groups(&self, near: &[usize], row: u32, called: &[usize]) -> Option<(Vec<usize>, Vec<u32>)> {
        let excess = |rows: &[u32]| self.rules.excess(&GroupView::new(self.cell, rows));
        let mut union = vec![row];
        let mut united = Vec::new();
        let mut least = excess(&union);
        for &at in called {
            let before = union.len();
            union.extend_from_slice(&self.groups[near[at]].rows);
            let after = if union.len() > UNION * self.rules.k.max(1) { f64::INFINITY } else { excess(&union) };
            if after >= least {
                union.truncate(before);
                continue;
            }
            least = after;
            united.push(at);
            if least == 0.0 {
                return Some((united, union));
            }
        }
        None
    }

    /// Step 5. Returns the rows for which there is no place.
    fn cut_anew(&mut self, hood: Neighbourhood) -> Vec<u32> {
        let mut all = hood.rows.clone();
        hood.groups.iter().for_each(|&group| all.extend_from_slice(&self.groups[group].rows));
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        carve_groups(self.cell, all, self.rules, &mut parts, &mut rest);
        if rest.len() >= hood.rows.len() {
            return hood.rows;
        }
        hood.groups.iter().for_each(|&group| self.groups[group].rows.clear());
        self.groups.extend(parts);
        rest
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::auto::Auto;
    use crate::grouping::{Method, enforce_rules};
    use crate::methods::mondrian::Mondrian;
    use crate::model::{Axis, Grouping, Sensitive, SensitiveShape, Shape, Shares};
    use crate::privacy::Rule;
    use crate::privacy::alpha_k::AlphaK;
    use crate::privacy::max_loss::MaxLoss;
    use crate::privacy::range_diversity::RangeDiversity;
    use crate::privacy::t_closeness::TCloseness;

    /// People on a line and in one of eight places; what they earn follows from where they are on the line, more so at its
    /// beginning: the first fifth are nearly all alike.
    fn people(rows: usize, seed: u64) -> Table {
        let mut rng = fastrand::Rng::with_seed(seed);
        let axes = [Axis::new("age", Shape::Line { span: 999 }), Axis::new("place", Shape::Set { values: 8 })];
        let mut codes = Vec::with_capacity(2 * rows);
        let mut pay = Vec::with_capacity(rows);
        for _ in 0..rows {
            let age = rng.u16(0..1000);
            codes.extend([age, rng.u16(0..8)]);
            pay.push(if age < 200 && rng.u8(0..20) > 0 { 0 } else { rng.u32(0..60) });
        }
        let mut counts = vec![0; 60];
        pay.iter().for_each(|&pay| counts[pay as usize] += 1);
        let mut table = Table::new(axes, codes);
        table.sensitive.push(Sensitive {
            name: "pay".into(),
            codes: pay,
            shape: SensitiveShape::Number { at: (0..60).map(f64::from).collect(), min: 0.0, max: 59.0 },
            null: None,
            ranges: Vec::new(),
            shares: Some(Arc::new(Shares::new(&counts))),
        });
        table
    }

    fn policy(name: &str) -> Rules {
        let column = || "pay".to_owned();
        let others: Vec<Arc<dyn Rule>> = match name {
            "range-diversity" => {
                vec![Arc::new(RangeDiversity { column: column(), bound: 0.35 }), Arc::new(MaxLoss { bound: 0.8 })]
            }
            "alpha-k" => vec![Arc::new(AlphaK { column: column(), alpha: 0.4 })],
            _ => vec![Arc::new(TCloseness { column: column(), t: 0.25, distance: None })],
        };
        Rules { k: 5, others }
    }

    fn assert_kept(table: &Table, settled: &Grouping, rules: &Rules) {
        let mut seen: Vec<u32> = settled.rows().iter().chain(&settled.left_over).copied().collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..table.rows() as u32), "every row is in one place");
        assert!(settled.iter().all(|group| rules.are_met_by(&GroupView::new(table, group))));
    }

    /// Rows of the common value are seated first and cuts leave room for them, so hardly anything is left to be repaired.
    #[test]
    fn auto_keeps_company_for_common_values() {
        let table = people(12_000, 7);
        let rules = Rules { k: 5, others: vec![Arc::new(AlphaK { column: "pay".into(), alpha: 0.3 })] };
        let grouping = Auto::default().group(&table, &rules, 1);
        assert!(grouping.left_over.len() < 60, "{} left over", grouping.left_over.len());
        assert!(enforce_rules(&table, grouping, &rules).left_over.is_empty());
    }

    /// Whole subspaces are alike here, so what is left over must be mixed with people who are further away.
    #[test]
    fn auto_suppresses_nobody_where_mondrian_need_not() {
        let table = people(12_000, 7);
        for name in ["range-diversity", "alpha-k", "t-closeness"] {
            let rules = policy(name);
            let settled = enforce_rules(&table, Auto::default().group(&table, &rules, 1), &rules);
            assert_kept(&table, &settled, &rules);
            let mondrian = enforce_rules(&table, Mondrian { strict: true }.group(&table, &rules, 1), &rules);
            assert_eq!((settled.left_over.len(), mondrian.left_over.len()), (0, 0), "{name}");
            assert!(settled.len() > mondrian.len(), "{name}: {} groups of {}", settled.len(), mondrian.len());
        }
    }

    /// Two groups of five with one 0 each cannot take another 0 at a largest share of 0.3; together they can.
    #[test]
    fn groups_unite_to_take_a_row_that_none_of_them_can() {
        let mut table = people(11, 1);
        table.sensitive[0].codes = vec![0, 1, 2, 3, 4, 0, 5, 6, 7, 8, 0];
        let rules = Rules { k: 5, others: vec![Arc::new(AlphaK { column: "pay".into(), alpha: 0.3 })] };
        let mut groups = vec![Group::new(&table, (0..5).collect()), Group::new(&table, (5..10).collect())];
        let mut rows = vec![10];
        repair_groups(&table, &mut groups, &mut rows, &rules);
        assert_eq!((groups.len(), rows.len()), (1, 0));
        assert_eq!(groups[0].rows.len(), 11);
    }

    #[test]
    fn what_is_in_excess_stays_left_over() {
        let mut table = people(40, 1);
        table.sensitive[0].codes = (0..40).map(|row| if row < 20 { 0 } else { row }).collect();
        let rules = Rules { k: 5, others: vec![Arc::new(AlphaK { column: "pay".into(), alpha: 0.2 })] };
        let mut groups: Vec<Group> = (4..8).map(|g| Group::new(&table, (5 * g..5 * g + 5).collect())).collect();
        let mut rows: Vec<u32> = (0..20).collect();
        repair_groups(&table, &mut groups, &mut rows, &rules);
        // Twenty others let five of them in: 5 / 25.
        assert_eq!(rows.len(), 15);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn repaired_groups_meet_the_rules_and_keep_every_row(
            rows in 20..600_usize, seed in any::<u64>(), rule in 0..3_usize, share in 1..9_u32,
        ) {
            let table = people(rows, seed);
            let rules = policy(["range-diversity", "alpha-k", "t-closeness"][rule]);
            let (taken, mut left): (Vec<u32>, Vec<u32>) = (0..rows as u32).partition(|row| row % 9 < share);
            let hold = |group: &[u32]| rules.are_met_by(&GroupView::new(&table, group));
            let (fine, others): (Vec<&[u32]>, Vec<&[u32]>) = taken.chunks(7).partition(|group| hold(group));
            left.extend(others.concat());
            let run = || {
                let mut groups: Vec<Group> = fine.iter().map(|group| Group::new(&table, group.to_vec())).collect();
                let mut rest = left.clone();
                repair_groups(&table, &mut groups, &mut rest, &rules);
                let mut grouping = Grouping::default();
                groups.iter().for_each(|group| grouping.push(&group.rows));
                grouping.left_over = rest;
                grouping
            };
            let found = run();
            assert_kept(&table, &found, &rules);
            prop_assert!(found.left_over.len() <= left.len());
            prop_assert_eq!(found, run());
        }
    }
}
