//! A hierarchy seen from code space: nested intervals, each with the loss of publishing it.
//!
//! Leaves are numbered depth-first, so the leaves below any node are one interval of codes and the closest common
//! ancestor of a *set* of leaves is the ancestor of its smallest and its largest code.

use super::Code;

/// One inner node: the interval of codes below it and what publishing it loses.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Smallest code below the node.
    pub lo: Code,
    /// Largest code below the node (inclusive).
    pub hi: Code,
    /// Index of the parent; the root is its own parent.
    pub parent: u32,
    /// Distance from the root.
    pub depth: u16,
    /// Generalisation steps from a leaf up to this node.
    pub steps: u16,
    /// Information loss in `[0, 1]` of publishing this node.
    pub loss: f64,
}

/// Nested intervals over the codes `0..codes`. Node 0 is the root and covers all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
    /// For every code the deepest inner node above it.
    above: Vec<u32>,
    /// Loss of publishing a single leaf: 0 but for leaves that can only be published as the root.
    leaf_loss: Vec<f64>,
    /// Depth of the deepest node that loses everything: the root, or the one below it when the root was added for leaves
    /// that the hierarchy does not have.
    top: u16,
    /// Levels from a leaf to the top.
    levels: u16,
}

impl Tree {
    /// Builds a tree over `codes` leaves from inner nodes given as `(lo, hi, loss)`.
    ///
    /// The intervals must be nested or disjoint; a root over everything with loss 1 is added when it is missing.
    /// Intervals of one code, and repeated intervals, are dropped: they publish nothing that their child does not.
    pub fn new(codes: usize, intervals: impl IntoIterator<Item = (Code, Code, f64)>) -> Self {
        assert!((1..=Code::MAX as usize + 1).contains(&codes), "a tree has 1 to 65536 leaves");
        let last = (codes - 1) as Code;
        let mut spans: Vec<(Code, Code, f64)> = intervals.into_iter().filter(|(lo, hi, _)| lo < hi).collect();
        // Outer intervals first; among equals the smaller loss wins.
        spans.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.total_cmp(&b.2)));
        spans.dedup_by(|later, earlier| later.0 == earlier.0 && later.1 == earlier.1);
        if spans.first().is_none_or(|s| (s.0, s.1) != (0, last)) {
            spans.insert(0, (0, last, if codes > 1 { 1.0 } else { 0.0 }));
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(spans.len());
        let mut above = vec![0; codes];
        let mut open: Vec<u32> = Vec::new();
        for (lo, hi, loss) in spans {
            while open.last().is_some_and(|&top| nodes[top as usize].hi < lo) {
                open.pop();
            }
            let index = nodes.len() as u32;
            let parent = open.last().copied().unwrap_or(index);
            debug_assert!(nodes.get(parent as usize).is_none_or(|p| p.hi >= hi), "intervals must nest");
            let depth = open.len() as u16;
            nodes.push(Node { lo, hi, parent, depth, steps: 1, loss });
            above[lo as usize..=hi as usize].fill(index);
            open.push(index);
        }
        // Children stand behind their parents. Without a better word, a node is one step above its highest child.
        for index in (1..nodes.len()).rev() {
            let parent = nodes[index].parent as usize;
            nodes[parent].steps = nodes[parent].steps.max(nodes[index].steps + 1);
        }
        let deepest = |nodes: &mut dyn Iterator<Item = &Node>| nodes.map(|node| node.depth).max().unwrap_or(0);
        let top = deepest(&mut nodes.iter().filter(|node| node.loss >= 1.0));
        let levels = deepest(&mut nodes.iter()) - top + 1;
        Self { nodes, above, leaf_loss: Vec::new(), top, levels }
    }

    /// Sets how many generalisation steps above its leaves each node is, given the codes below it: a hierarchy may have
    /// levels that leave no trace here, because they hold the same values as the one below.
    pub fn with_steps(mut self, steps: impl Fn(Code, Code) -> u16) -> Self {
        self.nodes.iter_mut().for_each(|node| node.steps = steps(node.lo, node.hi).max(1));
        self
    }

    /// Sets what publishing each node loses, given the codes below it. The root keeps its loss.
    pub fn with_losses(mut self, losses: impl Fn(Code, Code) -> f64) -> Self {
        self.nodes.iter_mut().skip(1).for_each(|node| node.loss = losses(node.lo, node.hi));
        self
    }

    /// Generalisation steps from a leaf to the root.
    pub fn height(&self) -> u16 {
        self.nodes[0].steps
    }

    /// Generalisation steps from a leaf to the closest common ancestor of `lo..=hi`; none for a single leaf.
    pub fn steps(&self, lo: Code, hi: Code) -> u16 {
        self.common_ancestor(lo, hi).map_or(0, |node| self.nodes[node as usize].steps)
    }

    /// The codes below the ancestor of a code at most the given number of steps up.
    pub fn codes_below(&self, code: Code, steps: u16) -> (Code, Code) {
        let mut span = (code, code);
        let mut node = self.above[code as usize];
        while self.nodes[node as usize].steps <= steps {
            span = (self.nodes[node as usize].lo, self.nodes[node as usize].hi);
            let parent = self.nodes[node as usize].parent;
            if parent == node {
                break;
            }
            node = parent;
        }
        span
    }

    /// The codes below the child of a node that a code belongs to: an inner node's, or the code alone.
    pub fn child_codes(&self, node: u32, code: Code) -> (Code, Code) {
        let mut at = self.above[code as usize];
        if at == node {
            return (code, code);
        }
        while self.nodes[at as usize].parent != node && self.nodes[at as usize].parent != at {
            at = self.nodes[at as usize].parent;
        }
        (self.nodes[at as usize].lo, self.nodes[at as usize].hi)
    }

    /// Gives single leaves a loss of their own: those that can only be published as the root.
    pub fn with_leaf_loss(mut self, code: Code, loss: f64) -> Self {
        self.leaf_loss.resize(self.above.len(), 0.0);
        self.leaf_loss[code as usize] = loss;
        self
    }

    /// Number of codes (leaves).
    pub fn codes(&self) -> usize {
        self.above.len()
    }

    /// All inner nodes, the root first, parents before children.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The deepest inner node above a code.
    pub fn node_above(&self, code: Code) -> u32 {
        self.above[code as usize]
    }

    /// Steps from a leaf to the top. Leaves of any depth are at the bottom.
    pub fn levels(&self) -> u16 {
        self.levels
    }

    /// Steps from a leaf to an inner node, counted from the top.
    pub fn node_level(&self, node: u32) -> u16 {
        self.levels - self.nodes[node as usize].depth.saturating_sub(self.top)
    }

    /// The closest common ancestor of all codes between `lo` and `hi`, if they differ; `None` for a single leaf.
    pub fn common_ancestor(&self, lo: Code, hi: Code) -> Option<u32> {
        if lo == hi {
            return None;
        }
        let mut node = self.above[lo as usize];
        while self.nodes[node as usize].hi < hi {
            node = self.nodes[node as usize].parent;
        }
        Some(node)
    }

    /// Loss of publishing the closest common ancestor of `lo..=hi`.
    pub fn loss(&self, lo: Code, hi: Code) -> f64 {
        match self.common_ancestor(lo, hi) {
            Some(node) => self.nodes[node as usize].loss,
            None => self.leaf_loss.get(lo as usize).copied().unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postcodes() -> Tree {
        // NW10..NW30: 21 leaves under three districts.
        let share = |leaves: f64| (leaves - 1.0) / 20.0;
        Tree::new(21, [(0, 5, share(6.0)), (6, 9, share(4.0)), (10, 20, share(11.0))])
    }

    #[test]
    fn ancestor_of_a_set_is_that_of_its_ends() {
        let tree = postcodes();
        assert_eq!(tree.loss(0, 3), 0.25);
        assert_eq!(tree.loss(10, 13), 0.5);
        assert_eq!(tree.loss(5, 6), 1.0);
        assert_eq!(tree.loss(7, 7), 0.0);
        assert_eq!(tree.common_ancestor(0, 20), Some(0));
    }

    #[test]
    fn steps_climb_from_the_leaves_to_the_root() {
        let tree = Tree::new(8, [(0, 3, 0.5), (0, 1, 0.2), (4, 5, 0.2)]);
        assert_eq!((tree.height(), tree.steps(0, 1), tree.steps(1, 2), tree.steps(6, 6)), (3, 1, 2, 0));
        assert_eq!(
            (tree.codes_below(0, 0), tree.codes_below(0, 1), tree.codes_below(0, 2), tree.codes_below(0, 3)),
            ((0, 0), (0, 1), (0, 3), (0, 7))
        );
        assert_eq!((tree.child_codes(0, 1), tree.child_codes(0, 5), tree.child_codes(0, 7)), ((0, 3), (4, 5), (7, 7)));
        assert_eq!(tree.with_steps(|lo, hi| hi - lo).height(), 7);
    }

    #[test]
    fn a_root_above_the_root_is_no_level() {
        let tree = |codes| Tree::new(codes, [(0, 5, 1.0), (0, 3, 0.6), (0, 1, 0.2)]);
        for codes in [6, 8] {
            let tree = tree(codes);
            assert_eq!(tree.levels(), 3);
            let level = |lo, hi| tree.common_ancestor(lo, hi).map(|node| tree.node_level(node));
            assert_eq!([level(0, 1), level(0, 3), level(0, 5), level(0, codes as Code - 1)], [1, 2, 3, 3].map(Some));
        }
    }

    #[test]
    fn single_leaf_tree_has_a_root_without_loss() {
        let tree = Tree::new(1, []);
        assert_eq!(tree.loss(0, 0), 0.0);
        assert_eq!(tree.nodes().len(), 1);
    }
}
