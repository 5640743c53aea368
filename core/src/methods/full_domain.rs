//! `full-domain`: the best generalisation of whole columns (Samarati; LeFevre, DeWitt, Ramakrishnan: Incognito).
//!
//! Every attribute is raised to one level for all rows; a *node* of the lattice says which. Of the nodes whose classes all
//! meet the rules, the one with the least cost is taken; of equal ones, the one with the smallest sum of levels, then the
//! first by the levels from the first attribute on. It is the optimum: a node is left out only where that is sure not to
//! matter.
//!
//! 1. Nodes are looked at along paths from the lowest undecided one upwards, by bisection (Kohlmayer et
//!    al.: Flash).
//! 2. What lies above a node that passes, or that costs more than one that passed, costs no less: merging classes never
//!    lowers a cost. It is left out.
//! 3. What lies below a node that fails a rule that [survives merging](crate::privacy::Rule::survives_merging), as k does, fails it too. It
//!    is left out. A node that fails another rule says nothing about other nodes.
//!
//! When no node passes, all rows are left over and are grouped without regard to nodes.
//!
//! Rows are looked at cell by cell, so a table must fit one cell. What is published of a class is the smallest value that
//! covers it, which may say more than its level and covers the same people. No class is suppressed to save the others.
//!
//! [`spalm`](super::spalm) is the same search among public rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::cancel::checkpoint;
use crate::grouping::entry::{Entry, Setting};
use crate::grouping::options::{Key, Kind};
use crate::model::{Axis, Grouping, Levels, Table, lattice_nodes};
use crate::privacy::{GroupView, Rules};

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "full-domain",
    "The best generalisation of whole columns: one level for all values of each.",
    |setting| Arc::new(FullDomain::new(setting)),
)
.options(&[COST])
.of_whole_tables();

pub(super) const COST: Key = Key::new(
    "cost",
    "What the chosen generalisation minimises. Defaults to `loss`.",
    Kind::Word(&[
        ("loss", "Mean loss of the published values."),
        ("discernibility", "Sum of squared class sizes."),
        ("height", "Sum of the levels that columns are raised by."),
    ]),
);

/// Maximum number of nodes of a searched lattice.
pub const MAX_NODES: u64 = 1 << 20;

/// What the best node has least of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cost {
    /// Mean loss of the published values.
    #[default]
    Loss,
    /// Sum over classes of the square of their published rows (DM).
    Discernibility,
    /// Sum of the levels of all published values (AG).
    Height,
}

/// Optimal full-domain generalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FullDomain {
    /// What is minimised.
    pub cost: Cost,
}

impl FullDomain {
    /// The method with the options of a job.
    pub(super) fn new(setting: &Setting<'_>) -> Self {
        let cost = match setting.options.text(&COST) {
            Some("discernibility") => Cost::Discernibility,
            Some("height") => Cost::Height,
            _ => Cost::Loss,
        };
        Self { cost }
    }

    /// The best node and its classes; `None` if no node meets the rules.
    pub fn best_node(&self, cell: &Table, rules: &Rules) -> Option<(Vec<u8>, Grouping)> {
        let levels: Vec<Levels> = cell.axes.iter().map(Levels::from_axis).collect();
        let surviving = rules.others.iter().filter(|rule| rule.survives_merging()).cloned().collect();
        let surviving = Rules { k: rules.k, others: surviving };
        Search { cell, rules, surviving, levels, cost: self.cost }.search_best()
    }
}

impl Method for FullDomain {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        if let Some((_, classes)) = self.best_node(cell, rules) {
            return classes;
        }
        let mut none = Grouping::default();
        none.left_over.extend(0..cell.rows() as u32);
        none
    }

    fn too_much(&self, axes: &[Axis]) -> Option<String> {
        lattice_too_large(axes)
    }
}

/// Explains why a lattice cannot be searched, if it has too many nodes.
pub(super) fn lattice_too_large(axes: &[Axis]) -> Option<String> {
    let heights = axes.iter().map(|axis| u64::from(Levels::from_axis(axis).height()) + 1);
    let nodes = heights.fold(1_u64, u64::saturating_mul);
    (nodes > MAX_NODES).then(|| {
        format!(
            "the levels of {} quasi-identifiers can be combined in {nodes} ways, more than the {MAX_NODES} that are \
             searched; take fewer quasi-identifiers, or hierarchies of fewer levels",
            axes.len()
        )
    })
}

/// What a node of the lattice turns out to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// Its classes meet all rules, at this cost.
    Passes(f64),
    /// They would have this cost, and fail a rule that implies nothing for other nodes.
    Fails(f64),
    /// They fail a rule that every node below also fails.
    FailsBelow,
}

struct Search<'a> {
    cell: &'a Table,
    rules: &'a Rules,
    /// Those of the rules that two groups which meet them also meet together.
    surviving: Rules,
    levels: Vec<Levels>,
    cost: Cost,
}

impl Search<'_> {
    fn search_best(&self) -> Option<(Vec<u8>, Grouping)> {
        let heights: Vec<u8> = self.levels.iter().map(Levels::height).collect();
        let nodes = lattice_nodes(&heights);
        let place: HashMap<&[u8], usize> = nodes.iter().enumerate().map(|(at, node)| (node.as_slice(), at)).collect();
        // Whether there is nothing more to find out about a node.
        let mut settled = vec![false; nodes.len()];
        let mut passed: Vec<(f64, usize)> = Vec::new();
        for start in 0..nodes.len() {
            let path = if settled[start] { Vec::new() } else { ascending_path(start, &nodes, &place, &settled) };
            let (mut low, mut high) = (0, path.len());
            while low < high {
                let middle = low.midpoint(high);
                let node = path[middle];
                let least = passed.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
                settled[node] = true;
                match self.judge_node(&nodes[node]) {
                    Verdict::FailsBelow => {
                        mark_nodes(&mut settled, &nodes, |other| lies_below(other, &nodes[node]));
                        low = middle + 1;
                        continue;
                    }
                    Verdict::Passes(cost) => {
                        passed.push((cost, node));
                        mark_nodes(&mut settled, &nodes, |other| lies_below(&nodes[node], other));
                    }
                    Verdict::Fails(cost) if cost > least => {
                        mark_nodes(&mut settled, &nodes, |other| lies_below(&nodes[node], other));
                    }
                    Verdict::Fails(_) => {}
                }
                high = middle;
            }
        }
        // A node above another that passed costs no less, whatever the last digit of its sum says.
        let lowest = |(_, at): &&(f64, usize)| {
            passed.iter().all(|(_, other)| other == at || !lies_below(&nodes[*other], &nodes[*at]))
        };
        let best = passed.iter().filter(lowest).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
        Some((nodes[best.1].clone(), self.node_classes(&nodes[best.1])))
    }

    fn judge_node(&self, node: &[u8]) -> Verdict {
        let classes = self.node_classes(node);
        let mut meets_all = true;
        for rows in classes.iter() {
            let view = GroupView::new(self.cell, rows);
            if !self.surviving.are_met_by(&view) {
                return Verdict::FailsBelow;
            }
            meets_all = meets_all && self.rules.are_met_by(&view);
        }
        let cost = self.node_cost(node, &classes);
        if meets_all { Verdict::Passes(cost) } else { Verdict::Fails(cost) }
    }

    fn node_cost(&self, node: &[u8], classes: &Grouping) -> f64 {
        let members = |rows: &[u32]| GroupView::new(self.cell, rows).members() as f64;
        match self.cost {
            Cost::Loss => classes.iter().map(|rows| members(rows) * self.cell.cover(rows).cost(&self.cell.axes)).sum(),
            Cost::Discernibility => classes.iter().map(|rows| members(rows).powi(2)).sum(),
            Cost::Height => node.iter().map(|&level| f64::from(level)).sum(),
        }
    }

    fn node_classes(&self, node: &[u8]) -> Grouping {
        node_classes(self.cell, &self.levels, node)
    }
}

/// The rows that are equal at a node, class by class, in the order of their first rows.
pub(super) fn node_classes(cell: &Table, levels: &[Levels], node: &[u8]) -> Grouping {
    let mut class = vec![0_u32; cell.rows()];
    for (axis, (levels, &level)) in levels.iter().zip(node).enumerate() {
        if level == levels.height() {
            continue;
        }
        // Classes by the attributes before, and by the value of this one.
        let mut finer: HashMap<(u32, u32), u32> = HashMap::new();
        for (row, class) in (0..).zip(&mut class) {
            let next = finer.len() as u32;
            *class = *finer.entry((*class, levels.raise_code(cell.row(row)[axis], level))).or_insert(next);
        }
    }
    let of = |row: &u32| class[*row as usize];
    let mut rows: Vec<u32> = (0..class.len() as u32).collect();
    rows.sort_by_key(of);
    let mut classes = Grouping::with_capacity(rows.len());
    rows.chunk_by(|one, other| of(one) == of(other)).for_each(|rows| classes.push(rows));
    classes
}

/// Whether a node is raised as high as another at most, on every axis.
fn lies_below(node: &[u8], other: &[u8]) -> bool {
    node.iter().zip(other).all(|(low, high)| low <= high)
}

fn mark_nodes(settled: &mut [bool], nodes: &[Vec<u8>], which: impl Fn(&[u8]) -> bool) {
    settled.iter_mut().zip(nodes).filter(|(_, node)| which(node)).for_each(|(settled, _)| *settled = true);
}

/// Nodes from one upwards, each a step above the one before, as long as there is one that is not settled.
fn ascending_path(start: usize, nodes: &[Vec<u8>], place: &HashMap<&[u8], usize>, settled: &[bool]) -> Vec<usize> {
    let mut path = vec![start];
    let mut node = nodes[start].clone();
    let step = |node: &mut Vec<u8>| {
        (0..node.len()).find_map(|axis| {
            node[axis] += 1;
            let above = place.get(node.as_slice()).copied().filter(|&above| !settled[above]);
            if above.is_none() {
                node[axis] -= 1;
            }
            above
        })
    };
    while let Some(above) = step(&mut node) {
        checkpoint();
        path.push(above);
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grouping::enforce::tests::one_of_each;
    use crate::grouping::fixtures;
    use crate::model::{Shape, Tree};
    use crate::privacy::Rule;
    use crate::privacy::k_map::KMap;
    use crate::privacy::presence::Presence;
    use crate::privacy::weak_diversity::WeakDiversity;

    fn search<'a>(cell: &'a Table, rules: &'a Rules, cost: Cost) -> Search<'a> {
        let levels = cell.axes.iter().map(Levels::from_axis).collect();
        Search { cell, rules, surviving: Rules::k(rules.k), levels, cost }
    }

    /// The least cost of all nodes, each of them tried.
    fn brute_force(cell: &Table, rules: &Rules, cost: Cost) -> Option<f64> {
        let search = search(cell, rules, cost);
        let heights: Vec<u8> = search.levels.iter().map(Levels::height).collect();
        let costs = lattice_nodes(&heights).into_iter().filter_map(|node| {
            let classes = search.node_classes(&node);
            let pass = classes.iter().all(|rows| rules.are_met_by(&GroupView::new(cell, rows)));
            pass.then(|| search.node_cost(&node, &classes))
        });
        costs.min_by(f64::total_cmp)
    }

    fn assert_best(cell: &Table, rules: &Rules, kind: &str) -> Result<(), TestCaseError> {
        for cost in [Cost::Loss, Cost::Discernibility, Cost::Height] {
            let least = brute_force(cell, rules, cost);
            let found = FullDomain { cost }.best_node(cell, rules);
            prop_assert_eq!(found.is_some(), least.is_some(), "{}", kind);
            let (Some((node, classes)), Some(least)) = (found, least) else { continue };
            prop_assert!(classes.iter().all(|rows| rules.are_met_by(&GroupView::new(cell, rows))), "{}", kind);
            let search = search(cell, rules, cost);
            prop_assert_eq!(&classes, &search.node_classes(&node));
            let cost = search.node_cost(&node, &classes);
            prop_assert!((cost - least).abs() < 1e-9, "{kind}: {cost} is not the least, {least}");
        }
        Ok(())
    }

    #[test]
    fn the_lowest_of_equal_nodes_is_taken() {
        // Two columns that say the same: either is enough to raise.
        let axes = ["a", "b"].map(|name| Axis::new(name, Shape::Line { span: 1 }));
        let table = Table::new(axes, vec![0, 0, 0, 1, 1, 0, 1, 1]);
        let best = |k| FullDomain { cost: Cost::Height }.best_node(&table, &Rules::k(k)).map(|(node, _)| node);
        assert_eq!(best(1), Some(vec![0, 0]));
        assert_eq!(best(2), Some(vec![0, 1]));
        assert_eq!(best(3), Some(vec![1, 1]));
        assert_eq!(best(5), None);
    }

    #[test]
    fn lattices_beyond_all_bounds_are_reported() {
        let axes = |columns| vec![Axis::new("a", Shape::Tree(Tree::new(9, [(0, 2, 0.3), (0, 4, 0.6)]))); columns];
        assert_eq!(FullDomain::default().too_much(&axes(10)), None, "4 to the power of 10");
        assert!(FullDomain::default().too_much(&axes(11)).unwrap().contains("4194304 ways"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// With any rule, whether pruning may rely on it or not, with and without public rows.
        #[test]
        fn the_best_is_that_of_trying_all_nodes(
            table in fixtures::tables(), public in fixtures::public_tables(), k in 1..6_usize, rule in any::<prop::sample::Index>(),
        ) {
            let (kind, rule) = rule.get(&one_of_each()).clone();
            assert_best(&table, &Rules::k(k), "k")?;
            assert_best(&table, &Rules { k, others: vec![Arc::clone(&rule)] }, kind)?;
            let presence: Arc<dyn Rule> = Arc::new(Presence::new(0.1, 0.8));
            assert_best(&public, &Rules { k, others: vec![Arc::clone(&presence)] }, "presence")?;
            assert_best(&public, &Rules { k, others: vec![presence, rule] }, kind)?;
        }

        /// What pruning relies on: two groups that meet such a rule meet it together.
        #[test]
        fn rules_that_survive_merging_do(
            table in prop_oneof![fixtures::tables(), fixtures::public_tables()], sides in prop::collection::vec(0..3_u8, 300),
        ) {
            let side = |wanted: u8| (0..table.rows() as u32).filter(move |&row| sides[row as usize] == wanted);
            let (one, other): (Vec<u32>, Vec<u32>) = (side.clone()(0).collect(), side(1).collect());
            let both = [one.as_slice(), &other].concat();
            let of_people: [(&str, Arc<dyn Rule>); 3] = [
                ("presence", Arc::new(Presence::new(0.3, 0.7))),
                ("k-map", Arc::new(KMap { people: 20 })),
                ("weak l-diversity", Arc::new(WeakDiversity { column: "s".into(), l: 6 })),
            ];
            let rules = one_of_each().into_iter().chain(of_people);
            for (kind, rule) in rules.filter(|(_, rule)| rule.survives_merging()) {
                let rules = Rules { k: 3, others: vec![rule] };
                let holds = |rows: &[u32]| rules.are_met_by(&GroupView::new(&table, rows));
                prop_assert!(!(holds(&one) && holds(&other)) || holds(&both), "{kind}");
            }
        }
    }

    #[test]
    fn most_rules_survive_merging() {
        let surviving = |(kind, rule): (&'static str, Arc<dyn Rule>)| rule.survives_merging().then_some(kind);
        let surviving: Vec<&str> = one_of_each().into_iter().filter_map(surviving).collect();
        assert!(surviving.contains(&"t-closeness") && surviving.contains(&"entropy l-diversity"), "{surviving:?}");
        assert!(!surviving.contains(&"max-loss") && !surviving.contains(&"evenness"), "{surviving:?}");
    }
}
