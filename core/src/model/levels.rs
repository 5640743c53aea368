//! Full-domain generalisation: every value of an attribute is raised to the same level.
//!
//! Level 0 is the value itself. A tree has as many levels above as it is high, counted from the top, so that all values
//! arrive at the root together; a line or a set without a hierarchy has one, which is everything.

use super::{Axis, Code, Shape, Tree};

/// The levels of one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Depth of every tree code's inner nodes, root first; empty when the only level is everything.
    paths: Vec<Vec<u32>>,
    height: u8,
}

impl Levels {
    /// The levels of an axis.
    pub fn from_axis(axis: &Axis) -> Self {
        let Shape::Tree(tree) = &axis.shape else { return Self { paths: Vec::new(), height: 1 } };
        let paths: Vec<Vec<u32>> = (0..tree.codes()).map(|code| path_from_root(tree, code as Code)).collect();
        let height = paths.iter().map(Vec::len).max().unwrap_or(1) as u8;
        Self { paths, height }
    }

    /// The level at which all values are one.
    pub fn height(&self) -> u8 {
        self.height
    }

    /// What stands for a value at a level: equal numbers mean equal published values. Numbers of one level and axis
    /// only compare with each other.
    pub fn raise_code(&self, code: Code, level: u8) -> u32 {
        if level == 0 {
            return u32::from(code);
        }
        if level >= self.height {
            return u32::MAX;
        }
        let depth = usize::from(self.height - level);
        match self.paths.get(usize::from(code)) {
            // A leaf that hangs higher than the others is its own ancestor until they have come up to it.
            Some(path) if depth < path.len() => u32::from(Code::MAX) + 1 + path[depth],
            _ => u32::from(code),
        }
    }
}

/// Inner nodes above a code, the root first.
fn path_from_root(tree: &Tree, code: Code) -> Vec<u32> {
    let mut path = vec![tree.node_above(code)];
    while let Some(&node) = path.last().filter(|&&node| tree.nodes()[node as usize].parent != node) {
        path.push(tree.nodes()[node as usize].parent);
    }
    path.reverse();
    path
}

/// All nodes of a lattice with these heights: ascending by the sum of levels, then by the levels from the first axis on.
pub fn lattice_nodes(heights: &[u8]) -> Vec<Vec<u8>> {
    let mut nodes: Vec<Vec<u8>> = vec![Vec::new()];
    for &height in heights {
        let raised =
            |node: &Vec<u8>| (0..=height).map(|level| [node.as_slice(), &[level]].concat()).collect::<Vec<_>>();
        nodes = nodes.iter().flat_map(raised).collect();
    }
    nodes.sort_by_cached_key(|node| (node.iter().map(|&level| u32::from(level)).sum::<u32>(), node.clone()));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toth_fig_5_1_down_set_in_order() {
        assert_eq!(lattice_nodes(&[1, 1]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(lattice_nodes(&[1, 2]), [[0, 0], [0, 1], [1, 0], [0, 2], [1, 1], [1, 2]]);
    }

    #[test]
    fn leaves_of_uneven_trees_arrive_together() {
        // ((0 1) 2) 3
        let tree = Tree::new(4, [(0, 1, 0.3), (0, 2, 0.6)]);
        let levels = Levels::from_axis(&Axis::new("t", Shape::Tree(tree)));
        let at = |level| (0..4).map(|code| levels.raise_code(code, level)).collect::<Vec<_>>();
        assert_eq!(levels.height(), 3);
        let same =
            |values: &[u32]| values.iter().map(|v| values.iter().position(|w| w == v).unwrap()).collect::<Vec<_>>();
        assert_eq!(same(&at(0)), [0, 1, 2, 3]);
        assert_eq!(same(&at(1)), [0, 0, 2, 3]);
        assert_eq!(same(&at(2)), [0, 0, 0, 3]);
        assert_eq!(same(&at(3)), [0, 0, 0, 0]);
        assert_eq!(Levels::from_axis(&Axis::new("l", Shape::Line { span: 9 })).height(), 1);
    }
}
