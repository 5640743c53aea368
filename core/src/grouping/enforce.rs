//! Settling: makes the groups of any method meet every rule of the policy.
//!
//! 1. *Merge.* A group that fails a rule merges with a near group: the cheapest one with which it meets all rules; else
//!    with the cheapest one that fails too, to be looked at again in the next round; else it is dissolved. A group that
//!    no further row can repair (it loses too much) is carved up instead, and so is what mergers left larger than needed.
//! 2. *Place.* Each left-over row, in order, joins the group whose loss, times its rows, grows least. When more than the
//!    number of rows is asked, this happens in neighbourhoods, and groups are merged and cut again where no group can
//!    take a row as it is (`repair`).
//! 3. *Carve.* Rows that fit nowhere, and all rows when there is no group, are halved ([`Widest`]) as long as the
//!    halves meet the rules; parts that do become groups, and take in what they can of the rest.
//! 4. What is left then is left over for good: it is suppressed. Only a table of a handful of rows is grouped in every way
//!    before (`every_way`).
//!
//! "Near" means a bounded number of groups before and behind in the list, which stands in the order of the tree that
//! cut the cell, and some at even distances. All choices depend on counts and order only, so settling is deterministic.

use super::apart::settle_apart;
use super::cancel::checkpoint;
use super::every_way::fewest_left_over;
use super::placing::{Placing, cheapest_group};
use super::repair::repair_groups;
use crate::faults::Fault;
use crate::grouping::split::Split;
use crate::grouping::split::widest::Widest;
use crate::model::{Cover, Grouping, Table};
use crate::privacy::{GroupView, Rules};

/// Groups considered on either side of a failing one.
const NEIGHBOURS: usize = 8;
/// Groups considered at even distances.
const PROBES: usize = 16;
/// Cheapest mergers that are tried against the rules.
const MERGERS: usize = 8;

/// Makes every group meet the rules, and lie apart when there are public rows to hide among. Every row of the input is in
/// one group of the result, or left over; those that the method refused are left over.
pub fn enforce_rules(cell: &Table, mut grouping: Grouping, rules: &Rules) -> Grouping {
    let refused = std::mem::take(&mut grouping.refused);
    grouping.assigned.clear();
    if cell.members.is_some() {
        // A refused member would stand out among the public rows around it.
        grouping.left_over.extend(refused);
        return settle_apart(cell, grouping, rules);
    }
    let mut settled = settle_groups(cell, grouping, rules);
    if refused.is_empty() {
        let left_over = settled.left_over.len();
        return fewest_left_over(cell, rules, left_over).unwrap_or(settled);
    }
    settled.left_over.extend(refused);
    settled.left_over.sort_unstable();
    settled
}

/// The steps of settling, for rows without public ones among them.
fn settle_groups(cell: &Table, grouping: Grouping, rules: &Rules) -> Grouping {
    let only_rows = rules.only_rows(cell);
    if only_rows && grouping.left_over.is_empty() && grouping.iter().all(|group| group.len() >= rules.k.max(1)) {
        return grouping;
    }
    let mut left_over = grouping.left_over.clone();
    let mut groups = mend_groups(cell, &grouping, rules, &mut left_over);
    let seat = |groups: &mut Vec<Group>, rows: &mut Vec<u32>| {
        if only_rows {
            place_rows(cell, groups, rows);
        } else {
            repair_groups(cell, groups, rows, rules);
        }
    };
    seat(&mut groups, &mut left_over);
    let mut rest = Vec::new();
    let before = groups.len();
    carve_groups(cell, left_over, rules, &mut groups, &mut rest);
    if groups.len() > before {
        seat(&mut groups, &mut rest);
    }
    let mut settled = Grouping::with_capacity(cell.rows());
    groups.iter().for_each(|group| settled.push(&group.rows));
    rest.sort_unstable();
    if Fault::LeftOverGroup.is_planted() && !rest.is_empty() {
        settled.push(&std::mem::take(&mut rest));
    }
    settled.left_over = rest;
    settled
}

/// A group with its cover and its loss times its rows.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) rows: Vec<u32>,
    pub(crate) cover: Cover,
    pub(crate) burden: f64,
}

impl Group {
    pub(crate) fn new(cell: &Table, rows: Vec<u32>) -> Self {
        let cover = cell.cover(&rows);
        let burden = rows.len() as f64 * cover.cost(&cell.axes);
        Self { rows, cover, burden }
    }

    fn merge_group(&mut self, cell: &Table, other: Self) {
        self.rows.extend(other.rows);
        self.cover.merge(&other.cover);
        self.burden = self.rows.len() as f64 * self.cover.cost(&cell.axes);
    }

    pub(crate) fn add_row(&mut self, cell: &Table, row: u32) {
        self.rows.push(row);
        self.cover.add_row(&cell.axes, cell.row(row));
        self.burden = self.rows.len() as f64 * self.cover.cost(&cell.axes);
    }

    /// By how much the burden grows when the other group joins.
    fn merge_cost(&self, cell: &Table, other: &Self) -> f64 {
        let mut cover = self.cover.clone();
        cover.merge(&other.cover);
        cover.rows as f64 * cover.cost(&cell.axes) - self.burden - other.burden
    }
}

/// A slot in the list of groups during merging.
#[derive(Debug)]
struct Slot {
    /// `None` if another slot has absorbed the group.
    group: Option<Group>,
    holds: bool,
    /// Whether the group absorbed another.
    merged: bool,
    /// Next living slots before and behind, ends pointing to themselves.
    before: usize,
    behind: usize,
}

/// Step 1. Returns the groups that meet the rules; rows of dissolved groups are added to `left_over`.
fn mend_groups(cell: &Table, grouping: &Grouping, rules: &Rules, left_over: &mut Vec<u32>) -> Vec<Group> {
    let mut slots: Vec<Slot> = Vec::with_capacity(grouping.len());
    let slot = |group: Group, holds: bool| Slot { group: Some(group), holds, merged: false, before: 0, behind: 0 };
    for rows in grouping.iter().filter(|rows| !rows.is_empty()) {
        let view = GroupView::new(cell, rows);
        let holds = rules.are_met_by(&view);
        if !holds && rules.beyond_growth(&view) {
            let mut parts = Vec::new();
            carve_groups(cell, rows.to_vec(), rules, &mut parts, left_over);
            slots.extend(parts.into_iter().map(|part| slot(part, true)));
        } else {
            slots.push(slot(Group::new(cell, rows.to_vec()), holds));
        }
    }
    let last = slots.len().saturating_sub(1);
    for (index, slot) in slots.iter_mut().enumerate() {
        (slot.before, slot.behind) = (index.saturating_sub(1), (index + 1).min(last));
    }
    let mut failing: Vec<usize> = (0..slots.len()).filter(|&index| !slots[index].holds).collect();
    while !failing.is_empty() {
        checkpoint();
        // Each group grows once a round, so groups grow evenly and the number of rounds stays small.
        let mut grown = vec![false; slots.len()];
        let living: Vec<usize> = (0..slots.len()).filter(|&index| slots[index].group.is_some()).collect();
        let probes: Vec<usize> = living.iter().step_by((living.len() / PROBES).max(1)).copied().collect();
        for &index in &failing {
            if !grown[index] {
                mend_one(cell, rules, &mut slots, index, &probes, &mut grown, left_over);
            }
        }
        failing.retain(|&index| slots[index].group.is_some() && !slots[index].holds);
    }
    let mut groups = Vec::with_capacity(slots.len());
    for slot in slots {
        match slot.group {
            // Mergers may leave more together than the rules need.
            Some(group) if slot.merged => carve_groups(cell, group.rows, rules, &mut groups, left_over),
            group => groups.extend(group),
        }
    }
    groups
}

/// Merges or dissolves one failing group, or leaves it for the next round.
fn mend_one(
    cell: &Table,
    rules: &Rules,
    slots: &mut [Slot],
    index: usize,
    probes: &[usize],
    grown: &mut [bool],
    left_over: &mut Vec<u32>,
) {
    let Some(group) = slots[index].group.take() else { return };
    let mut near = living_neighbours(slots, index);
    near.extend(probes.iter().filter(|&&probe| probe != index && slots[probe].group.is_some()));
    near.sort_unstable();
    near.dedup();
    let cost = |&other: &usize| Some((group.merge_cost(cell, slots[other].group.as_ref()?), other));
    let mut mergers: Vec<(f64, usize)> = near.iter().filter_map(cost).collect();
    mergers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));

    let mut together = Vec::new();
    let mut union = |other: usize| {
        together.clear();
        together.extend_from_slice(&group.rows);
        together.extend(slots[other].group.iter().flat_map(|other| &other.rows));
        let view = GroupView::new(cell, &together);
        (rules.are_met_by(&view), rules.beyond_growth(&view))
    };
    if let Some(&(_, other)) = mergers.iter().take(MERGERS).find(|&&(_, other)| union(other).0) {
        if let Some(host) = &mut slots[other].group {
            host.merge_group(cell, group);
        }
        (slots[other].holds, slots[other].merged) = (true, true);
        unlink_slot(slots, index);
        return;
    }
    let failing: Vec<usize> = mergers.iter().map(|&(_, other)| other).filter(|&other| !slots[other].holds).collect();
    let partner = failing.iter().take(MERGERS).copied().find(|&other| !grown[other] && !union(other).1);
    match partner {
        Some(other) => {
            let mut group = group;
            if let Some(other) = slots[other].group.take() {
                group.merge_group(cell, other);
            }
            unlink_slot(slots, other);
            (slots[index].group, slots[index].merged) = (Some(group), true);
            grown[index] = true;
        }
        None if failing.iter().any(|&other| grown[other]) => slots[index].group = Some(group),
        None => {
            left_over.extend(group.rows);
            unlink_slot(slots, index);
        }
    }
}

/// The nearest living slots on both sides.
fn living_neighbours(slots: &[Slot], index: usize) -> Vec<usize> {
    let mut near = Vec::with_capacity(2 * NEIGHBOURS + PROBES);
    for step in [|slot: &Slot| slot.before, |slot: &Slot| slot.behind] {
        let mut at = index;
        for _ in 0..NEIGHBOURS {
            let next = step(&slots[at]);
            if next == at {
                break;
            }
            near.push(next);
            at = next;
        }
    }
    near
}

/// Takes an emptied slot out of the list.
fn unlink_slot(slots: &mut [Slot], index: usize) {
    let (before, behind) = (slots[index].before, slots[index].behind);
    slots[before].behind = if behind == index { before } else { behind };
    slots[behind].before = if before == index { behind } else { before };
}

/// Step 2, when the number of rows is all that is asked. Rows stay in `rows` only when there is no group.
fn place_rows(cell: &Table, groups: &mut [Group], rows: &mut Vec<u32>) {
    let mut placing = Placing::new(&cell.axes, groups.iter().map(|group| &group.cover), rows.len());
    rows.retain(|&row| {
        let costs = placing.row_costs(cell.row(row));
        let growth = |g: usize, cost: f64| (groups[g].rows.len() + 1) as f64 * cost - groups[g].burden;
        let Some(home) = cheapest_group(costs, growth, |g, cost| Some(growth(g, cost))) else { return true };
        groups[home].add_row(cell, row);
        placing.update_group(home, &groups[home].cover);
        false
    });
}

/// Step 3. Adds groups made of `rows` that meet the rules to `groups`, and the other rows to `rest`.
pub(crate) fn carve_groups(
    cell: &Table,
    mut rows: Vec<u32>,
    rules: &Rules,
    groups: &mut Vec<Group>,
    rest: &mut Vec<u32>,
) {
    rows.sort_unstable();
    let holds = |rows: &[u32]| !rows.is_empty() && rules.are_met_by(&GroupView::new(cell, rows));
    let mut open = vec![(0, rows.len())];
    while let Some((start, end)) = open.pop() {
        let part_holds = holds(&rows[start..end]);
        let cut = Widest::default().cut_rows(cell, &mut rows[start..end], rules.k.max(1));
        match cut.map(|left| start + left) {
            Some(middle) if !part_holds || (holds(&rows[start..middle]) && holds(&rows[middle..end])) => {
                open.extend([(middle, end), (start, middle)]);
            }
            _ if part_holds => groups.push(Group::new(cell, rows[start..end].to_vec())),
            _ => rest.extend_from_slice(&rows[start..end]),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::auto::{Auto, Effort};
    use crate::dependency::Dependencies;
    use crate::grouping::split::Cut;
    use crate::grouping::split::widest::{Ties, Width};
    use crate::grouping::{Method, fixtures};
    use crate::hierarchy::LevelTree;
    use crate::methods::k_assemble::KAssemble;
    use crate::methods::k_members::KMembers;
    use crate::methods::mondrian::Mondrian;
    use crate::methods::pair_enum::PairEnum;
    use crate::methods::toc::{LeftOvers, Toc};
    use crate::methods::upc::Upc;
    use crate::model::{Attribute, Axis, Dependency, Shape};
    use crate::privacy::alpha_k::AlphaK;
    use crate::privacy::beta_likeness::{BetaLikeness, Likeness};
    use crate::privacy::delta_disclosure::DeltaDisclosure;
    use crate::privacy::evenness::Evenness;
    use crate::privacy::guarding::Guarding;
    use crate::privacy::k_e::KE;
    use crate::privacy::l_diversity::{Diversity, LDiversity};
    use crate::privacy::max_loss::MaxLoss;
    use crate::privacy::p_sensitive::PSensitive;
    use crate::privacy::range_diversity::RangeDiversity;
    use crate::privacy::t_closeness::{Distance, TCloseness};
    use crate::privacy::{OnColumn, Rule, SensitiveRule, Setting};

    fn line(values: &[u16]) -> Table {
        Table::new([Axis::new("x", Shape::Line { span: 100 })], values.to_vec())
    }

    fn grouping(groups: &[&[u32]], left_over: &[u32]) -> Grouping {
        let mut grouping = Grouping::default();
        groups.iter().for_each(|group| grouping.push(group));
        grouping.left_over = left_over.to_vec();
        grouping
    }

    #[test]
    fn groups_that_meet_the_rules_pass_unchanged() {
        let given = grouping(&[&[3, 1], &[0, 2]], &[]);
        assert_eq!(enforce_rules(&line(&[1, 2, 3, 4]), given.clone(), &Rules::k(2)), given);
    }

    #[test]
    fn a_small_group_merges_with_its_cheapest_neighbour() {
        let table = line(&[0, 2, 50, 52, 4, 99]);
        let settled = enforce_rules(&table, grouping(&[&[0, 1], &[4], &[2, 3]], &[5]), &Rules::k(2));
        assert_eq!(settled, grouping(&[&[0, 1, 4], &[2, 3, 5]], &[]));
    }

    #[test]
    fn small_groups_merge_with_each_other_and_alone_are_suppressed() {
        let table = line(&[0, 1, 2, 3, 4, 5]);
        let ones = grouping(&[&[0], &[1], &[2], &[3], &[4], &[5]], &[]);
        let settled = enforce_rules(&table, ones.clone(), &Rules::k(3));
        assert!(settled.left_over.is_empty() && settled.iter().all(|group| group.len() >= 3));
        assert_eq!(enforce_rules(&table, ones, &Rules::k(7)), grouping(&[], &[0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn without_groups_the_rows_are_carved() {
        let table = line(&[0, 90, 2, 91]);
        let settled = enforce_rules(&table, grouping(&[], &[0, 1, 2, 3]), &Rules::k(2));
        assert_eq!(settled, grouping(&[&[0, 2], &[1, 3]], &[]));
    }

    #[test]
    fn a_group_that_loses_too_much_is_carved_and_its_outlier_suppressed() {
        let table = line(&[0, 40, 2, 41, 100, 3]);
        let rules = Rules { k: 2, others: vec![Arc::new(MaxLoss { bound: 0.1 })] };
        let settled = enforce_rules(&table, grouping(&[&[0, 1, 2, 3, 5]], &[4]), &rules);
        assert_eq!(settled.left_over, [4]);
        assert!(settled.iter().all(|group| rules.are_met_by(&GroupView::new(&table, group))));
        assert_eq!(settled.rows().len(), 5);
    }

    /// No pair is diverse, any two neighbouring ones are together.
    #[test]
    fn uniform_groups_merge_until_they_are_diverse() {
        let mut table = fixtures::table_5_1();
        table.sensitive[0].ranges = Vec::new();
        table.sensitive[0].codes = (0..12).map(|row| row / 2 % 2).collect();
        let diverse = LDiversity { column: "income".into(), kind: Diversity::Distinct { l: 2 } };
        let rules = Rules { k: 2, others: vec![Arc::new(diverse)] };
        let pairs: Vec<[u32; 2]> = (0..6).map(|pair| [2 * pair, 2 * pair + 1]).collect();
        let pairs: Vec<&[u32]> = pairs.iter().map(|pair| &pair[..]).collect();
        let settled = enforce_rules(&table, grouping(&pairs, &[]), &rules);
        assert!(settled.left_over.is_empty());
        assert!(settled.iter().all(|group| rules.are_met_by(&GroupView::new(&table, group))));
        assert!(settled.len() >= 3, "not all in one group");
    }

    /// No method at all: rows are grouped as they come, some in groups that are too small, some not at all.
    #[derive(Debug)]
    struct AsTheyCome {
        sizes: Vec<usize>,
    }

    impl Method for AsTheyCome {
        fn name(&self) -> &'static str {
            "as-they-come"
        }

        fn group(&self, cell: &Table, _rules: &Rules, _seed: u64) -> Grouping {
            let rows: Vec<u32> = (0..cell.rows() as u32).collect();
            let mut grouping = Grouping::default();
            let mut rest = &rows[..];
            for &size in self.sizes.iter().cycle().take(rows.len()) {
                let (group, behind) = rest.split_at(size.min(rest.len()));
                rest = behind;
                if size == 4 { grouping.left_over.extend(group) } else { grouping.push(group) }
            }
            grouping.left_over.extend(rest);
            grouping
        }
    }

    /// Any rule, mild or strict.
    fn rule() -> BoxedStrategy<Arc<dyn Rule>> {
        let column = || "s".to_string();
        let diverse = move |kind| Arc::new(LDiversity { column: column(), kind }) as Arc<dyn Rule>;
        let distances = vec![None, Some(Distance::Equal), Some(Distance::Ordered)];
        let likeness = prop::sample::select(vec![Likeness::Basic, Likeness::Enhanced]);
        prop_oneof![
            (0.1..1.0_f64).prop_map(|bound| Arc::new(MaxLoss { bound }) as Arc<dyn Rule>),
            (0.1..1.0_f64).prop_map(move |bound| Arc::new(RangeDiversity { column: column(), bound }) as _),
            (2..5_usize).prop_map(move |l| diverse(Diversity::Distinct { l })),
            (1.5..4.0_f64).prop_map(move |l| diverse(Diversity::Entropy { l })),
            (1.0..4.0_f64, 2..4_usize).prop_map(move |(c, l)| diverse(Diversity::Recursive { c, l })),
            (0.05..0.9_f64, prop::sample::select(distances)).prop_map(move |(t, distance)| Arc::new(TCloseness {
                column: column(),
                t,
                distance
            }) as _),
            (0.1..1.0_f64).prop_map(move |alpha| Arc::new(AlphaK { column: column(), alpha }) as _),
            (2..6_u32).prop_map(move |p| Arc::new(PSensitive { column: column(), p }) as _),
            (1..5_u32, 1.0..9.0_f64).prop_map(move |(k, e)| Arc::new(KE { column: column(), k, e }) as _),
            (0.1..3.0_f64).prop_map(move |delta| Arc::new(DeltaDisclosure { column: column(), delta }) as _),
            (0.2..9.0_f64, likeness).prop_map(move |(beta, kind)| Arc::new(BetaLikeness {
                column: column(),
                beta,
                kind
            }) as _),
            (0..4_usize, 0.1..1.0_f64).prop_map(|(node, p)| guarded(node, p)),
            Just(()).prop_map(move |()| Arc::new(Evenness { column: column() }) as _),
        ]
        .boxed()
    }

    /// Every kind of rule in the list of `job::privacy`, and the bound on loss, at a bound that some groups meet and others do
    /// not.
    pub(crate) fn one_of_each() -> Vec<(&'static str, Arc<dyn Rule>)> {
        let column = || "s".to_string();
        let diverse = |kind| Arc::new(LDiversity { column: column(), kind }) as Arc<dyn Rule>;
        let close = |distance| Arc::new(TCloseness { column: column(), t: 0.35, distance }) as Arc<dyn Rule>;
        let like = |kind| Arc::new(BetaLikeness { column: column(), beta: 2.0, kind }) as Arc<dyn Rule>;
        vec![
            ("max-loss", Arc::new(MaxLoss { bound: 0.5 })),
            ("range-diversity", Arc::new(RangeDiversity { column: column(), bound: 0.5 })),
            ("distinct l-diversity", diverse(Diversity::Distinct { l: 3 })),
            ("entropy l-diversity", diverse(Diversity::Entropy { l: 2.5 })),
            ("recursive l-diversity", diverse(Diversity::Recursive { c: 2.0, l: 2 })),
            ("t-closeness", close(None)),
            ("equal t-closeness", close(Some(Distance::Equal))),
            ("ordered t-closeness", close(Some(Distance::Ordered))),
            ("alpha-k", Arc::new(AlphaK { column: column(), alpha: 0.4 })),
            ("p-sensitive", Arc::new(PSensitive { column: column(), p: 3 })),
            ("k-e", Arc::new(KE { column: column(), k: 3, e: 4.0 })),
            ("delta-disclosure", Arc::new(DeltaDisclosure { column: column(), delta: 1.5 })),
            ("basic beta-likeness", like(Likeness::Basic)),
            ("enhanced beta-likeness", like(Likeness::Enhanced)),
            ("guarding", guarded(1, 0.5)),
            ("evenness", Arc::new(Evenness { column: column() })),
        ]
    }

    fn guarded(node: usize, p: f64) -> Arc<dyn Rule> {
        let levels = LevelTree::from_csv("0;low;*\n1;low;*\n2;low;*\n3;high;*\n4;high;*\n").unwrap();
        let nodes = vec![["0", "low", "high", "4"][node].to_owned()];
        let setting = Setting { levels: Some(&levels), reserve: false };
        let rule = Guarding { column: "s".to_string(), nodes, p }.ready(&setting);
        Arc::new(OnColumn { record: rule.record(), rule })
    }

    pub(crate) fn policies() -> impl Strategy<Value = Rules> {
        (2..13_usize, prop::collection::vec(rule(), 0..3)).prop_map(|(k, others)| Rules { k, others })
    }

    /// Each value of the first axis is an instance.
    pub(crate) fn first_axis() -> Arc<Dependencies> {
        let alone = Dependency { from: vec![Attribute::Quasi(0)], to: Vec::new() };
        Arc::new(Dependencies::new(vec![alone], &vec![vec![1; 50]; 6]))
    }

    fn methods() -> impl Strategy<Value = Box<dyn Method>> {
        let split = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(raw, boundary, next)| {
            Cut::Widest(Widest {
                width: if raw { Width::Raw } else { Width::Normalised },
                ties: if boundary { Ties::Boundary } else { Ties::Divide },
                next,
            })
        });
        let least = || prop_oneof![2..60_usize, Just(usize::MAX)];
        let left_overs = || prop::sample::select(vec![LeftOvers::Increment, LeftOvers::Resulting, LeftOvers::Suppress]);
        let protect = |bound| vec![RangeDiversity { column: "s".into(), bound }];
        prop_oneof![
            (0.0..0.8_f64, least(), 0.0..=1.0_f64, split.clone(), left_overs()).prop_map(
                |(delta, least, utility, split, left_overs)| {
                    Box::new(Toc { delta, least, utility, split, left_overs }) as Box<dyn Method>
                }
            ),
            (0.1..=1.0_f64, 0.1..=1.0_f64, least(), split, left_overs()).prop_map(
                move |(u, p, least, split, left_overs)| {
                    Box::new(Upc { split, left_overs, ..Upc::new(u, protect(p), least) }) as _
                }
            ),
            any::<bool>().prop_map(|strict| Box::new(Mondrian { strict }) as _),
            Just(()).prop_map(|()| Box::new(Auto::new(Effort::Fast)) as _),
            least().prop_map(|least| Box::new(KMembers { least }) as _),
            least().prop_map(|least| Box::new(KAssemble { dependencies: first_axis(), seeds: 2, least }) as _),
            (2..24_usize, prop::option::of(1..4_usize)).prop_map(|(least, neighbours)| {
                let ties = Default::default();
                Box::new(PairEnum { dependencies: first_axis(), neighbours, ties, least }) as _
            }),
            prop::collection::vec(0..30_usize, 1..9).prop_map(|sizes| Box::new(AsTheyCome { sizes }) as _),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(800))]
        #[test]
        fn every_settled_group_meets_every_rule_and_no_row_is_lost(
            table in fixtures::tables(), rules in policies(), method in methods()
        ) {
            let grouped = method.group(&table, &rules, 1);
            let of_method = grouped.rows().iter().chain(&grouped.left_over).chain(&grouped.refused);
            let mut seen: Vec<u32> = of_method.copied().collect();
            seen.sort_unstable();
            prop_assert!(seen.iter().copied().eq(0..table.rows() as u32), "the method keeps every row once");

            let settled = enforce_rules(&table, grouped.clone(), &rules);
            let mut seen: Vec<u32> = settled.rows().iter().chain(&settled.left_over).copied().collect();
            seen.sort_unstable();
            prop_assert!(seen.iter().copied().eq(0..table.rows() as u32), "settling keeps every row once");
            for group in settled.iter() {
                prop_assert!(rules.are_met_by(&GroupView::new(&table, group)), "{group:?} fails");
            }
            for group in grouped.iter().map(|group| GroupView::new(&table, group)) {
                prop_assert_eq!(rules.excess(&group) == 0.0, rules.are_met_by(&group));
            }
            if rules.only_rows(&table) && table.rows() - grouped.refused.len() >= rules.k {
                prop_assert_eq!(settled.left_over.len(), grouped.refused.len(), "k alone never needs suppression");
            }
            prop_assert_eq!(settled, enforce_rules(&table, method.group(&table, &rules, 1), &rules));
        }
    }
}
