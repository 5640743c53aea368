//! What the published values of a group cover: at least its own codes, and possibly more (a node of a hierarchy covers
//! all its leaves, null with a value covers everything). Two groups whose regions meet cannot be distinguished for a row in
//! both.

use super::{Axis, Code, Cover, MAX_SET_VALUES, Shape, Tree};

/// What is covered on one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Extent {
    /// All codes from the first to the second.
    Span(Code, Code),
    /// These codes, ascending.
    Codes(Vec<Code>),
}

/// What the published values of a group cover, axis by axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region(Vec<Extent>);

impl Region {
    /// The region of a group with this cover.
    pub fn from_cover(axes: &[Axis], cover: &Cover) -> Self {
        let extent = |(a, axis): (usize, &Axis)| {
            let (lo, hi) = (cover.lo[a], cover.hi[a]);
            // Several values may share a code of an inexact axis. On a tree the node above is published then, or a higher
            // one when the code lies on a border; a set may turn out too large to list.
            let blurred = !axis.exact && !matches!(axis.shape, Shape::Line { .. });
            if blurred || axis.null == Some(hi) && (lo < hi || axis.shared_null) {
                return Extent::Span(0, Code::MAX);
            }
            match &axis.shape {
                Shape::Line { .. } => Extent::Span(lo, hi),
                Shape::Tree(tree) => {
                    let (first, last) = node_ends(axis, tree, lo, hi);
                    Extent::Span(first, last)
                }
                Shape::Set { .. } if cover.count_distinct(a) > MAX_SET_VALUES => Extent::Span(0, Code::MAX),
                Shape::Set { .. } => Extent::Codes(cover.codes(a).to_vec()),
            }
        };
        Self(axes.iter().enumerate().map(extent).collect())
    }

    /// Whether some row could lie in both regions.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine.meets(theirs))
    }

    /// Whether a code lies in the region on an axis.
    pub fn holds_code(&self, axis: usize, code: Code) -> bool {
        match &self.0[axis] {
            Extent::Span(lo, hi) => (*lo..=*hi).contains(&code),
            Extent::Codes(codes) => codes.binary_search(&code).is_ok(),
        }
    }

    /// Smallest and largest code on an axis.
    pub fn axis_ends(&self, axis: usize) -> (Code, Code) {
        match &self.0[axis] {
            Extent::Span(lo, hi) => (*lo, *hi),
            Extent::Codes(codes) => (codes.first().copied().unwrap_or(Code::MAX), codes.last().copied().unwrap_or(0)),
        }
    }
}

/// First and last code of what is published on one axis of rows with these codes, which ascend and of which there are as
/// many as rows.
///
/// [`Region`] takes an inexact tree or set to be published as everything. This looks closer: values that share a code lie
/// between those of the codes beside it, and a set lists no more values than it has rows.
pub(crate) fn published_ends(axis: &Axis, codes: &[Code]) -> (Code, Code) {
    let (Some(&lo), Some(&hi)) = (codes.first(), codes.last()) else { return (Code::MAX, 0) };
    if axis.null == Some(hi) {
        return if lo < hi || axis.shared_null { (0, Code::MAX) } else { (lo, hi) };
    }
    match &axis.shape {
        Shape::Tree(tree) if !axis.exact => {
            let codes = tree.codes() - usize::from(axis.null.is_some());
            let last = codes.saturating_sub(1) as Code;
            node_ends(axis, tree, lo.saturating_sub(1), hi.saturating_add(1).min(last))
        }
        Shape::Tree(tree) => node_ends(axis, tree, lo, hi),
        Shape::Set { .. } => {
            let listed = match axis.exact {
                true => codes.chunk_by(|a, b| a == b).count(),
                false => codes.len(),
            };
            if listed > MAX_SET_VALUES as usize { (0, Code::MAX) } else { (lo, hi) }
        }
        Shape::Line { .. } => (lo, hi),
    }
}

/// First and last code below the node that is published for these codes and all between them.
fn node_ends(axis: &Axis, tree: &Tree, lo: Code, hi: Code) -> (Code, Code) {
    match tree.common_ancestor(lo, hi) {
        Some(node) if axis.is_top(tree, node) => (0, Code::MAX),
        Some(node) => (tree.nodes()[node as usize].lo, tree.nodes()[node as usize].hi),
        None if tree.loss(lo, hi) > 0.0 => (0, Code::MAX),
        None => (lo, hi),
    }
}

impl Extent {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Span(a, b), Self::Span(c, d)) => a <= d && c <= b,
            (Self::Span(a, b), Self::Codes(codes)) | (Self::Codes(codes), Self::Span(a, b)) => {
                codes.iter().any(|code| (a..=b).contains(&code))
            }
            (Self::Codes(mine), Self::Codes(theirs)) => mine.iter().any(|code| theirs.binary_search(code).is_ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NULL_ON_LINE, Tree};

    #[test]
    fn a_node_over_all_values_is_published_as_everything() {
        let mut axis = Axis::new("tree", Shape::Tree(Tree::new(5, [(0, 3, 1.0), (0, 1, 0.3), (2, 3, 0.3)])));
        let region = |axis: &Axis, rows: &[Code]| {
            let axes = std::slice::from_ref(axis);
            Region::from_cover(axes, &Cover::from_rows(axes, rows.iter().map(std::slice::from_ref)))
        };
        assert!(!region(&axis, &[0, 3]).meets(&region(&axis, &[4])), "4 is a value like others");
        axis.null = Some(4);
        assert!(
            region(&axis, &[0, 3]).meets(&region(&axis, &[4])),
            "nothing distinguishes all values together from null"
        );
        assert!(!region(&axis, &[0, 1]).meets(&region(&axis, &[4])));
    }

    /// Codes of numbers between the ends of two steps: one of them holds values of both.
    #[test]
    fn values_that_share_a_code_may_lie_in_the_node_beside() {
        let mut axis = Axis::new("tree", Shape::Tree(Tree::new(9, [(0, 7, 1.0), (0, 3, 0.4), (4, 7, 0.4)])));
        (axis.null, axis.exact) = (Some(8), false);
        assert_eq!(published_ends(&axis, &[1]), (0, 3));
        assert_eq!(published_ends(&axis, &[5, 7]), (4, 7));
        assert_eq!(published_ends(&axis, &[1, 3]), (0, Code::MAX));
        assert_eq!(published_ends(&axis, &[8]), (8, 8));
        axis.exact = true;
        assert_eq!(published_ends(&axis, &[3]), (3, 3));
        let mut set = Axis::new("set", Shape::Set { values: 9 });
        set.exact = false;
        assert_eq!(published_ends(&set, &[2; 64]), (2, 2));
        assert_eq!(published_ends(&set, &[2; 65]), (0, Code::MAX));
    }

    #[test]
    fn nodes_and_nulls_cover_more_than_their_rows() {
        let tree = Tree::new(6, [(0, 2, 0.4)]);
        let mut line = Axis::new("line", Shape::Line { span: 9 });
        line.null = Some(NULL_ON_LINE);
        let axes = [line, Axis::new("tree", Shape::Tree(tree)), Axis::new("set", Shape::Set { values: 9 })];
        let region = |rows: &[[Code; 3]]| {
            Region::from_cover(&axes, &Cover::from_rows(&axes, rows.iter().map(<[_; 3]>::as_slice)))
        };
        let left = region(&[[1, 0, 3], [4, 2, 5]]);
        assert!(left.meets(&region(&[[4, 1, 5]])), "leaf 1 lies below the node of 0 and 2");
        assert!(!left.meets(&region(&[[5, 1, 5]])) && !left.meets(&region(&[[4, 3, 5]])));
        assert!(!left.meets(&region(&[[4, 1, 4]])), "a set holds its members only");
        assert!(left.meets(&region(&[[9, 2, 3], [NULL_ON_LINE, 2, 3]])), "null and a value are everything");
        assert!(!left.meets(&region(&[[NULL_ON_LINE, 2, 3]])), "null alone is nothing else");
    }

    /// Seen failing: every job with `presence` and a column that holds NaN was refused by its own verification.
    #[test]
    fn what_is_no_number_is_published_as_everything() {
        let mut line = Axis::new("line", Shape::Line { span: 9 });
        (line.null, line.shared_null) = (Some(NULL_ON_LINE), true);
        let axes = [line];
        let region = |code: Code| Region::from_cover(&axes, &Cover::from_rows(&axes, [[code].as_slice()]));
        assert!(region(NULL_ON_LINE).meets(&region(3)) && !region(2).meets(&region(3)));
    }
}
