//! Trees of named nodes over listed values.
//!
//! 1. Rows `leaf, level1, ..., root` come from CSV or from the job file (`level_rows`).
//! 2. They are joined into one tree. A label names one node wherever it stands; a label that repeats directly above
//!    itself (`White;White;*`) is one node. Anything but a tree is rejected, every problem with its line.
//! 3. Leaves are numbered depth-first, children in order of first appearance (nodes before leaves), so that every
//!    node is an interval.

use std::collections::HashMap;

use super::level_rows::{self, Row};
use super::{HierarchyError, InlineTree, LineProblem, MAX_LEAVES};
use crate::model::{Code, Tree};

/// A validated tree of named nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelTree {
    /// Inner nodes; the root is node 0.
    nodes: Vec<Inner>,
    /// Leaves in depth-first order.
    leaves: Vec<Leaf>,
    by_leaf: HashMap<String, u32>,
    by_label: HashMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    label: String,
    /// First and last leaf below.
    lo: u32,
    hi: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Leaf {
    label: String,
    /// The inner node of every level above the leaf, as written: level 1 first, the root last.
    above: Vec<u32>,
}

impl LevelTree {
    /// Reads level CSV: lines `leaf;level1;...;root`, separated by `;`, `,`, tab or `|`.
    pub fn from_csv(text: &str) -> Result<Self, HierarchyError> {
        let (rows, problems) = level_rows::from_csv(text)?;
        Self::from_rows(&rows, problems)
    }

    /// Reads a tree written in the job file; its root is called `*`.
    pub fn from_inline(tree: &[InlineTree]) -> Result<Self, HierarchyError> {
        let (rows, problems) = level_rows::from_inline(tree)?;
        Self::from_rows(&rows, problems)
    }

    fn from_rows(rows: &[Row], mut problems: Vec<LineProblem>) -> Result<Self, HierarchyError> {
        let mut sketch = Sketch::default();
        for row in rows {
            problems.extend(sketch.add_row(row).err());
        }
        problems.extend(sketch.stray_leaves());
        problems.sort_by_key(|problem| problem.line);
        if !problems.is_empty() {
            return Err(HierarchyError::Invalid(problems));
        }
        match sketch.leaves.len() {
            0 => Err(HierarchyError::Empty),
            leaves if leaves > MAX_LEAVES => Err(HierarchyError::TooManyLeaves(leaves)),
            _ => Ok(sketch.number_nodes()),
        }
    }

    /// Returns the number of a leaf, in depth-first order.
    pub fn find_leaf(&self, value: &str) -> Option<u32> {
        self.by_leaf.get(value).copied()
    }

    /// Returns the labels of all leaves in depth-first order.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = &str> {
        self.leaves.iter().map(|leaf| leaf.label.as_str())
    }

    /// Returns the label of a leaf by its number.
    pub fn leaf_label(&self, leaf: u32) -> &str {
        &self.leaves[leaf as usize].label
    }

    /// Returns the label of an inner node; the root is node 0.
    pub fn node_label(&self, node: u32) -> &str {
        &self.nodes[node as usize].label
    }

    /// Returns the label of the root.
    pub fn root(&self) -> &str {
        self.node_label(0)
    }

    /// Levels above the leaves: the columns of the file but the first.
    pub fn height(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.above.len()).max().unwrap_or(0)
    }

    /// First and last leaf below an inner node.
    pub fn node_span(&self, node: u32) -> (u32, u32) {
        let node = &self.nodes[node as usize];
        (node.lo, node.hi)
    }

    /// The inner node with this label; of a leaf and a node of one name, the node.
    pub fn find_node(&self, label: &str) -> Option<u32> {
        self.by_label.get(label).copied()
    }

    /// First and last leaf that a label stands for: those below the node of this name, or the leaf itself.
    pub fn span_of(&self, label: &str) -> Option<(u32, u32)> {
        match self.find_node(label) {
            Some(node) => Some(self.node_span(node)),
            None => self.find_leaf(label).map(|leaf| (leaf, leaf)),
        }
    }

    /// The inner nodes above a leaf, level 1 first, the root last. A node that the file repeats is repeated here.
    pub fn parents(&self, leaf: u32) -> &[u32] {
        &self.leaves[leaf as usize].above
    }

    /// First and last leaf below the ancestor of a leaf at a level; the leaf itself is level 0, and above the root
    /// there is only the root.
    pub fn span_at_level(&self, leaf: u32, level: usize) -> (u32, u32) {
        match level {
            0 => (leaf, leaf),
            _ => self.node_span(self.parents(leaf).get(level - 1).copied().unwrap_or(0)),
        }
    }

    /// Returns the closest common ancestor of the leaves `lo..=hi`, two or more.
    pub fn common_ancestor(&self, lo: u32, hi: u32) -> u32 {
        let covers = |node: &u32| self.nodes[*node as usize].hi >= hi;
        self.parents(lo).iter().copied().find(covers).unwrap_or(0)
    }

    /// What publishes the codes `lo..=hi` of [`to_tree`](Self::to_tree): a leaf, a node, or the root as soon as a
    /// pseudo leaf is among them.
    pub fn published_name(&self, lo: Code, hi: Code) -> &str {
        if usize::from(hi) >= self.leaves.len() {
            self.root()
        } else if lo == hi {
            self.leaf_label(u32::from(lo))
        } else {
            self.node_label(self.common_ancestor(u32::from(lo), u32::from(hi)))
        }
    }

    /// The label of a node of the tree that [`to_tree`](Self::to_tree) made.
    pub fn node_name(&self, tree: &Tree, node: u32) -> &str {
        let node = &tree.nodes()[node as usize];
        self.published_name(node.lo, node.hi)
    }

    /// Whether a published label covers a value. The root covers every value, even those the hierarchy does not contain.
    pub fn covers(&self, label: &str, value: &str) -> bool {
        if label == self.root() {
            return true;
        }
        match (self.span_of(label), self.find_leaf(value)) {
            (Some((lo, hi)), Some(leaf)) => (lo..=hi).contains(&leaf),
            _ => false,
        }
    }

    /// The tree over codes: code = leaf number; then, when asked for, a pseudo leaf for unknown values and one for
    /// null, in this order. Loss is (leaves - 1) / (all leaves - 1); unknown values always lose everything, because
    /// they can only be published as the root.
    pub fn to_tree(&self, null: bool, unknown: bool) -> Tree {
        let leaves = self.leaves.len();
        let share = |node: &Inner| f64::from(node.hi - node.lo) / (leaves.max(2) - 1) as f64;
        let spans = self.nodes.iter().map(|node| (node.lo as Code, node.hi as Code, share(node)));
        let level = |lo: Code, hi: Code| {
            let node = self.common_ancestor(u32::from(lo), u32::from(hi));
            let known = usize::from(hi) < leaves;
            let at = self.parents(u32::from(lo)).iter().position(|&above| above == node).filter(|_| known);
            at.map_or(self.height(), |level| level + 1) as u16
        };
        let tree = Tree::new(leaves + usize::from(unknown) + usize::from(null), spans).with_steps(level);
        if unknown { tree.with_leaf_loss(leaves as Code, 1.0) } else { tree }
    }
}

/// The tree while its rows are being joined.
#[derive(Default)]
struct Sketch<'a> {
    /// Inner nodes in order of first appearance.
    inner: Vec<Known<'a>>,
    by_label: HashMap<&'a str, usize>,
    root: Option<usize>,
    leaves: Vec<Known<'a>>,
    by_leaf: HashMap<&'a str, usize>,
    /// Inner node of every level, per leaf.
    above: Vec<Vec<usize>>,
}

struct Known<'a> {
    label: &'a str,
    line: Option<u64>,
    /// Unset for the root.
    parent: Option<usize>,
}

fn line_prefix(line: Option<u64>) -> String {
    line.map(|line| format!(" (line {line})")).unwrap_or_default()
}

impl<'a> Sketch<'a> {
    fn add_row(&mut self, row: &'a Row) -> Result<(), LineProblem> {
        let Some((leaf, levels)) = row.labels.split_first() else { return Ok(()) };
        if let Some(&known) = self.by_leaf.get(leaf.as_str()) {
            let first = line_prefix(self.leaves[known].line);
            let message = format!("value `{leaf}` occurs twice, first{first}");
            return Err(LineProblem::quoting(row.line, message, format!("its value occurs twice, first{first}")));
        }
        // One entry per node: a label right above itself is the same node.
        let mut path: Vec<&str> = levels.iter().map(String::as_str).collect();
        path.dedup();
        let Some(&top) = path.last() else { return Ok(()) };
        for (i, label) in path.iter().enumerate() {
            if path[..i].contains(label) || (i > 0 && label == leaf) {
                let message = format!("`{label}` is above and below itself: a cycle");
                let discreet = "a label is above and below itself: a cycle".to_owned();
                return Err(LineProblem::quoting(row.line, message, discreet));
            }
        }
        match self.root.map(|root| &self.inner[root]) {
            Some(root) if root.label != top => {
                let first = line_prefix(root.line);
                let message = format!("two roots: `{top}` here, `{}`{first}", root.label);
                return Err(LineProblem::quoting(row.line, message, format!("two roots: one here, another{first}")));
            }
            _ => {}
        }
        // From the root down, so that parents are there before their children.
        let mut parent = None;
        for &label in path.iter().rev() {
            let node = self.inner_node(label, parent, row.line);
            parent = Some(node.map_err(|problem| self.find_cycle(&path, row.line).unwrap_or(problem))?);
        }
        self.root = self.root.or_else(|| self.by_label.get(top).copied());
        let above = levels.iter().filter_map(|label| self.by_label.get(label.as_str()).copied()).collect();
        self.by_leaf.insert(leaf, self.leaves.len());
        self.leaves.push(Known { label: leaf, line: row.line, parent });
        self.above.push(above);
        Ok(())
    }

    fn inner_node(&mut self, label: &'a str, parent: Option<usize>, line: Option<u64>) -> Result<usize, LineProblem> {
        if let Some(&node) = self.by_label.get(label) {
            let known = &self.inner[node];
            if known.parent == parent {
                return Ok(node);
            }
            let name = |parent: Option<usize>| parent.map_or("nothing", |parent| self.inner[parent].label);
            let (here, there, first) = (name(parent), name(known.parent), line_prefix(known.line));
            let message = format!("node `{label}` has two parents: `{here}` here, `{there}`{first}");
            let discreet = format!("a node has two parents: one here, another{first}");
            return Err(LineProblem::quoting(line, message, discreet));
        }
        let node = self.inner.len();
        self.inner.push(Known { label, line, parent });
        self.by_label.insert(label, node);
        Ok(node)
    }

    /// Two labels of a path that stand the other way round in the rows before.
    fn find_cycle(&self, path: &[&str], line: Option<u64>) -> Option<LineProblem> {
        let known: Vec<usize> = path.iter().filter_map(|label| self.by_label.get(label).copied()).collect();
        let turned =
            |i: usize| known[i + 1..].iter().find(|&&upper| self.is_above(known[i], upper)).map(|&j| (known[i], j));
        let (lower, upper) = (0..known.len()).find_map(turned)?;
        let (lower, upper) = (&self.inner[lower], &self.inner[upper]);
        let before = line_prefix(upper.line);
        let message = format!("`{}` is below `{}` here and above it before{before}: a cycle", lower.label, upper.label);
        let discreet = format!("a label is below another here and above it before{before}: a cycle");
        Some(LineProblem::quoting(line, message, discreet))
    }

    fn is_above(&self, node: usize, mut below: usize) -> bool {
        while let Some(parent) = self.inner[below].parent {
            if parent == node {
                return true;
            }
            below = parent;
        }
        false
    }

    /// Leaves that share their name with a node that is not above them: the name would stand for two things.
    fn stray_leaves(&self) -> Vec<LineProblem> {
        let mut problems = Vec::new();
        for (leaf, above) in self.leaves.iter().zip(&self.above) {
            if let Some(node) = self.by_label.get(leaf.label)
                && !above.contains(node)
            {
                let other = line_prefix(self.inner[*node].line);
                let message = format!("`{}` is a value, but also a node above other values{other}", leaf.label);
                let discreet = format!("its value is also a node above other values{other}");
                problems.push(LineProblem::quoting(leaf.line, message, discreet));
            }
        }
        problems
    }

    /// Numbers leaves and inner nodes depth-first.
    fn number_nodes(self) -> LevelTree {
        enum Child {
            Inner(usize),
            Leaf(usize),
        }
        let mut children: Vec<Vec<Child>> = self.inner.iter().map(|_| Vec::new()).collect();
        for (index, node) in self.inner.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(Child::Inner(index));
            }
        }
        for (index, leaf) in self.leaves.iter().enumerate() {
            if let Some(parent) = leaf.parent {
                children[parent].push(Child::Leaf(index));
            }
        }
        let mut tree = LevelTree {
            nodes: Vec::with_capacity(self.inner.len()),
            leaves: Vec::with_capacity(self.leaves.len()),
            by_leaf: HashMap::with_capacity(self.leaves.len()),
            by_label: HashMap::with_capacity(self.inner.len()),
        };
        let mut place = vec![0; self.inner.len()];
        let mut todo: Vec<Child> = self.root.map(Child::Inner).into_iter().collect();
        while let Some(next) = todo.pop() {
            match next {
                Child::Inner(index) => {
                    let node = &self.inner[index];
                    let number = tree.nodes.len() as u32;
                    place[index] = number;
                    tree.by_label.insert(node.label.to_owned(), number);
                    tree.nodes.push(Inner { label: node.label.to_owned(), lo: u32::MAX, hi: 0 });
                    todo.extend(std::mem::take(&mut children[index]).into_iter().rev());
                }
                Child::Leaf(index) => {
                    let number = tree.leaves.len() as u32;
                    let label = self.leaves[index].label.to_owned();
                    let above: Vec<u32> = self.above[index].iter().map(|&node| place[node]).collect();
                    tree.by_leaf.insert(label.clone(), number);
                    for &node in &above {
                        let node = &mut tree.nodes[node as usize];
                        (node.lo, node.hi) = (node.lo.min(number), node.hi.max(number));
                    }
                    tree.leaves.push(Leaf { label, above });
                }
            }
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The post codes of Loukides, Table 3.1: NW10..NW30 below three districts.
    fn postcodes() -> LevelTree {
        let district = |code: u32| match code {
            10..=15 => "NW[10-15]",
            16..=19 => "NW[16-19]",
            _ => "NW[20-30]",
        };
        let text: String = (10..=30).map(|code| format!("NW{code};{};*\n", district(code))).collect();
        LevelTree::from_csv(&text).unwrap()
    }

    fn problems(text: &str) -> String {
        LevelTree::from_csv(text).unwrap_err().to_string()
    }

    #[test]
    fn loukides_post_codes() {
        let levels = postcodes();
        let tree = levels.to_tree(false, false);
        assert_eq!((levels.leaves().len(), tree.codes(), tree.nodes().len()), (21, 21, 4));
        let code = |label: &str| levels.find_leaf(label).unwrap() as Code;
        // Example 3.1.3: qd({NW10, NW13}) = 0.25, qd({NW20, NW23}) = 0.5; 6 of 21 leaves lose 5/20.
        assert_eq!(tree.loss(code("NW10"), code("NW13")), 0.25);
        assert_eq!(tree.loss(code("NW20"), code("NW23")), 0.5);
        assert_eq!(tree.loss(code("NW16"), code("NW17")), 3.0 / 20.0);
        assert_eq!(tree.loss(code("NW15"), code("NW16")), 1.0);
        assert_eq!(levels.published_name(code("NW10"), code("NW13")), "NW[10-15]");
        assert_eq!(levels.published_name(code("NW15"), code("NW16")), "*");
        assert_eq!(levels.published_name(code("NW12"), code("NW12")), "NW12");
        let node = tree.common_ancestor(code("NW20"), code("NW21")).unwrap();
        assert_eq!(levels.node_name(&tree, node), "NW[20-30]");
    }

    #[test]
    fn leaves_of_one_node_are_neighbours_whatever_the_order_of_lines() {
        let levels = LevelTree::from_csv("b1;B;*\na1;A;*\nb2;B;*\na2;A;*\n").unwrap();
        assert_eq!(levels.leaves().collect::<Vec<_>>(), ["b1", "b2", "a1", "a2"]);
        assert_eq!(levels.to_tree(false, false).loss(0, 1), 1.0 / 3.0);
    }

    #[test]
    fn repeated_labels_are_one_node() {
        let levels = LevelTree::from_csv("White;White;*\nBlack;Other;*\nAsian;Other;*\n").unwrap();
        assert_eq!(levels.leaves().collect::<Vec<_>>(), ["White", "Black", "Asian"]);
        assert!(levels.covers("White", "White") && !levels.covers("White", "Black"));
        assert_eq!(levels.to_tree(false, false).nodes().len(), 2);
        // A value named like the node above it: the name stands for the whole node.
        let levels = LevelTree::from_csv("Other;Other;*\nx;Other;*\ny;y;*\n").unwrap();
        assert_eq!(levels.span_of("Other"), Some((0, 1)));
        assert!(levels.covers("Other", "x") && levels.covers("Other", "Other"));
        // A level may repeat for some values only.
        let levels = LevelTree::from_csv("a;X;X;*\nb;Y;X;*\nc;Y;X;*\n").unwrap();
        assert_eq!(levels.published_name(0, 2), "X");
        assert_eq!(levels.leaves().collect::<Vec<_>>(), ["b", "c", "a"]);
        assert_eq!(levels.published_name(0, 1), "Y");
    }

    #[test]
    fn pseudo_leaves_come_last_and_are_published_as_the_root() {
        let levels = postcodes();
        let tree = levels.to_tree(true, true);
        assert_eq!(tree.codes(), 23);
        assert_eq!(tree.loss(21, 21), 1.0, "unknown alone is the root");
        assert_eq!(tree.loss(22, 22), 0.0, "null alone is null");
        assert_eq!(tree.loss(0, 22), 1.0);
        assert_eq!(tree.loss(0, 20), 1.0);
        assert_eq!(tree.loss(0, 3), 0.25, "pseudo leaves do not change the size of the domain");
        assert_eq!(levels.published_name(20, 21), "*");
        assert_eq!(levels.published_name(21, 21), "*");
        assert!(levels.covers("*", "N1 9GU") && !levels.covers("NW[10-15]", "N1 9GU"));
    }

    #[test]
    fn ascendants_count_from_the_leaf() {
        let levels = LevelTree::from_csv("a;X;P;*\nb;Y;P;*\nc;Z;Q;*\n").unwrap();
        assert_eq!(levels.span_at_level(0, 0), (0, 0));
        assert_eq!(levels.span_at_level(0, 2), (0, 1));
        assert_eq!(levels.span_at_level(0, 9), (0, 2));
        let labels: Vec<&str> = levels.parents(2).iter().map(|&node| levels.node_label(node)).collect();
        assert_eq!(labels, ["Z", "Q", "*"]);
        assert_eq!(levels.height(), 3);
    }

    #[test]
    fn inline_trees() {
        let leaf = |label: &str| InlineTree::Leaf(label.to_owned());
        let node = |label: &str, below| InlineTree::Node(label.to_owned(), below);
        let tree = [
            node("Europe", vec![leaf("France"), leaf("Spain")]),
            node("Asia", vec![node("East", vec![leaf("Japan")]), leaf("India")]),
        ];
        let levels = LevelTree::from_inline(&tree).unwrap();
        assert_eq!(levels.leaves().collect::<Vec<_>>(), ["France", "Spain", "Japan", "India"]);
        assert_eq!(levels.published_name(2, 3), "Asia");
        assert_eq!(levels.root(), "*");
        assert_eq!(LevelTree::from_inline(&[]), Err(HierarchyError::Empty));
        let empty = LevelTree::from_inline(&[node("Europe", vec![])]).unwrap_err();
        assert_eq!(empty.to_string(), "node `Europe` has no values below it");
        let twice = LevelTree::from_inline(&[node("A", vec![leaf("x")]), node("B", vec![leaf("x")])]).unwrap_err();
        assert_eq!(twice.to_string(), "value `x` occurs twice, first");
    }

    #[test]
    fn every_problem_can_be_reported_without_labels() {
        for text in [
            "Quux;x;*\nQuux;y;*\n",
            "Quux;x;*\nb;x;Zyx\n",
            "a;Quux;y;*\nb;Quux;Zyx;*\n",
            "a;Quux;b;Quux;*\n",
            "a;Quux;Zyx;*\nb;Zyx;Quux;*\n",
            "Quux;y;*\nb;Quux;*\n",
        ] {
            let error = LevelTree::from_csv(text).unwrap_err();
            let (quoting, discreet) = (error.to_string(), error.without_labels());
            assert!(quoting.contains("Quux") || quoting.contains("Zyx"), "{quoting}");
            assert!(!discreet.contains("Quux") && !discreet.contains("Zyx"), "{discreet}");
            assert_eq!(discreet.contains("line 2"), quoting.contains("line 2"), "{discreet}");
        }
        let roots = LevelTree::from_csv("a;x;*\nb;x;All\n").unwrap_err();
        assert_eq!(roots.without_labels(), "line 2: two roots: one here, another (line 1)");
    }

    #[test]
    fn what_is_not_a_tree_is_refused_with_all_its_lines() {
        assert_eq!(problems("a;x;*\nb;x;*\na;y;*\n"), "line 3: value `a` occurs twice, first (line 1)");
        assert_eq!(problems("a;x;*\nb;x;All\n"), "line 2: two roots: `All` here, `*` (line 1)");
        assert_eq!(problems("a;x;P;*\nb;x;Q;*\n"), "line 2: node `x` has two parents: `Q` here, `P` (line 1)");
        assert_eq!(problems("a;x;y;x;*\n"), "line 1: `x` is above and below itself: a cycle");
        assert_eq!(
            problems("a;x;y;*\nb;y;x;*\n"),
            "line 2: `y` is below `x` here and above it before (line 1): a cycle"
        );
        assert_eq!(
            problems("Asia;Europe;*\nJapan;Asia;*\n"),
            "line 1: `Asia` is a value, but also a node above other values (line 2)"
        );
        assert_eq!(
            problems("a;x;*\nb;*\na;x;*\nc;x;All\n"),
            "line 2: has 2 columns, but line 1 has 3; line 3: value `a` occurs twice, first (line 1); \
             line 4: two roots: `All` here, `*` (line 1)"
        );
        assert_eq!(problems(""), "the hierarchy is empty");
    }

    #[test]
    fn size_is_limited() {
        let many: String = (0..60_001).map(|i| format!("v{i};*\n")).collect();
        assert_eq!(problems(&many), "the hierarchy has 60001 leaves, but the limit is 60000");
    }

    #[test]
    fn one_value_is_a_tree() {
        let levels = LevelTree::from_csv("only;*\n").unwrap();
        assert_eq!(levels.to_tree(false, false).loss(0, 0), 0.0);
        assert_eq!(levels.to_tree(true, false).loss(0, 1), 1.0);
    }
}
