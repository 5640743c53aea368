//! One quasi-identifier as the algorithms see it: a line, a tree or a set of codes.

use super::Tree;

/// An order-preserving code of one quasi-identifier value.
pub type Code = u16;

/// A line has the codes `0..=LINE_STEPS`: exact when the values are whole numbers and the domain is no wider.
pub const LINE_STEPS: Code = 65_000;

/// Maximum number of values that a published set lists; a larger one is published as the top.
pub const MAX_SET_VALUES: u32 = 64;

/// The code of null on a line, apart from every value.
pub const NULL_ON_LINE: Code = Code::MAX;

/// How values of an axis relate, and so what a group of them loses.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Numbers, dates, timestamps without a hierarchy: loss = width / domain width. Codes are `0..=span`.
    Line {
        /// The largest code, that of the domain's maximum; 0 for a constant domain.
        span: Code,
    },
    /// Values with a hierarchy: loss of the closest common ancestor.
    Tree(Tree),
    /// Categories without a hierarchy: loss = (distinct - 1) / (values - 1).
    Set {
        /// Size of the domain; codes are `0..values`.
        values: u32,
    },
}

/// A quasi-identifier: its shape, its weight in the search, and which code (if any) stands for null.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Column name, for plans and reports.
    pub name: String,
    /// How codes relate.
    pub shape: Shape,
    /// The code of null, when the column may hold nulls. Null is a value of its own: together with any other value
    /// it widens the group to the top (loss 1).
    pub null: Option<Code>,
    /// Whether what is published of nulls alone may cover everything: NaN shares their code and is published as the top, or
    /// the published form has one word for both.
    pub shared_null: bool,
    /// Weight of this axis in the search (the job's `priority`); measures are never weighted.
    pub weight: f64,
    /// Whether codes stand in the order of numbers or dates, even if a hierarchy lies above them.
    pub ordered: bool,
    /// Whether distinct values have distinct codes. When not, losses derived from codes are short by up to one step.
    pub exact: bool,
    /// Whether every group publishes the top here, whatever its values are.
    pub withheld: bool,
}

impl Axis {
    /// Creates an axis of weight 1 that cannot hold nulls.
    pub fn new(name: impl Into<String>, shape: Shape) -> Self {
        let ordered = matches!(shape, Shape::Line { .. });
        Self {
            name: name.into(),
            shape,
            null: None,
            shared_null: false,
            weight: 1.0,
            ordered,
            exact: true,
            withheld: false,
        }
    }

    /// Whether groups on this axis are sets of codes rather than intervals.
    pub fn is_set(&self) -> bool {
        matches!(self.shape, Shape::Set { .. })
    }

    /// Loss in `[0, 1]` of a group whose codes span `lo..=hi`; for a set axis `distinct` is the number of codes.
    pub fn loss(&self, lo: Code, hi: Code, distinct: u32) -> f64 {
        if lo == hi {
            return match &self.shape {
                Shape::Tree(tree) => tree.loss(lo, hi),
                _ => 0.0,
            };
        }
        // Null codes are the largest of their axis, so a mixed group has one at its upper end.
        if self.null == Some(hi) {
            return 1.0;
        }
        match &self.shape {
            Shape::Line { span } => f64::from(hi - lo) / f64::from((*span).max(1)),
            Shape::Tree(tree) => tree.loss(lo, hi),
            Shape::Set { .. } if distinct > MAX_SET_VALUES => 1.0,
            Shape::Set { values } => f64::from(distinct.saturating_sub(1)) / f64::from(values.saturating_sub(1).max(1)),
        }
    }

    /// Whether a node holds all values, so that it is published as the top, which also covers null and unknown values.
    pub fn is_top(&self, tree: &Tree, node: u32) -> bool {
        let node = &tree.nodes()[node as usize];
        let special = |code: usize| self.null == Some(code as Code) || tree.loss(code as Code, code as Code) > 0.0;
        node.lo == 0 && (usize::from(node.hi) + 1..tree.codes()).all(special)
    }

    /// The most that publishing a group can lose here, given what [`loss`](Self::loss) is by its codes.
    pub fn greatest_loss(&self, loss: f64) -> f64 {
        if self.withheld { 1.0 } else { (loss + self.slack()).min(1.0) }
    }

    /// Bounds by how much [`loss`](Self::loss) can fall short of the true loss because of quantised codes.
    pub fn slack(&self) -> f64 {
        match &self.shape {
            _ if self.exact => 0.0,
            Shape::Line { span } => 1.0 / f64::from((*span).max(1)),
            Shape::Tree(_) | Shape::Set { .. } => 1.0,
        }
    }
}
