//! The dependencies of a policy, bound to the columns of a table.

use super::BoundPolicy;
use crate::model::{self, Attribute};

/// Dependencies bound to a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BoundDependencies {
    /// The dependencies, by axis and by place in `plain`.
    pub list: Vec<model::Dependency>,
    /// Columns that are published as they are and that a dependency names: place in the input, and name.
    pub plain: Vec<(usize, String)>,
}

impl BoundPolicy {
    /// The dependencies of the policy, bound to the columns of the input.
    pub(crate) fn dependencies(&self) -> BoundDependencies {
        let mut plain: Vec<(usize, String)> = Vec::new();
        let mut attribute = |name: &String| {
            if let Some(axis) = self.quasi.iter().position(|quasi| quasi.name == *name) {
                return Some(Attribute::Quasi(axis));
            }
            let index = self.input.index_of(name).ok()?;
            let known = plain.iter().position(|(_, known)| known == name);
            let at = known.unwrap_or_else(|| {
                plain.push((index, name.clone()));
                plain.len() - 1
            });
            Some(Attribute::Plain(at))
        };
        let mut list = Vec::new();
        for dependency in &self.policy.dependencies {
            let from = dependency.from.iter().filter_map(&mut attribute).collect();
            let to = dependency.to.iter().filter_map(&mut attribute).collect();
            list.push(model::Dependency { from, to });
        }
        BoundDependencies { list, plain }
    }
}
