//! Functional dependencies between the columns of a table: equal values on the left, equal values on the right.

/// Where a column of a dependency stands in a [`Table`](super::Table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// A quasi-identifier, by its axis: published generalised.
    Quasi(usize),
    /// A column that is published as it is, by its place in [`Table::plain`](super::Table::plain).
    Plain(usize),
}

/// Rows with equal values on the left have equal values on the right. The sides have no column in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The left side.
    pub from: Vec<Attribute>,
    /// The right side.
    pub to: Vec<Attribute>,
}

impl Dependency {
    /// The axes of both sides.
    pub fn quasi_axes(&self) -> Vec<usize> {
        self.attributes()
            .filter_map(|attribute| if let Attribute::Quasi(axis) = attribute { Some(axis) } else { None })
            .collect()
    }

    /// The plain columns of both sides.
    pub fn plain_columns(&self) -> Vec<usize> {
        self.attributes()
            .filter_map(|attribute| if let Attribute::Plain(column) = attribute { Some(column) } else { None })
            .collect()
    }

    fn attributes(&self) -> impl Iterator<Item = Attribute> {
        self.from.iter().chain(&self.to).copied()
    }
}
