//! A rule on a sensitive column that stays together with quasi-identifiers when its group is sliced: whoever knows these
//! sees, inside the group, only the values beside them, so the rule must hold for every such part.
//!
//! Slicing's own definition of l-diversity (Li et al.) weighs the parts of all groups that a person fits; when every part
//! meets the bound, so does every weighted mean of them. This is stricter, and can be read from the published rows alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GroupView, Rule, RuleRecord};

/// A rule for every part of a group with equal values on some axes.
#[derive(Debug, Clone)]
pub struct Beside {
    /// The rule.
    pub rule: Arc<dyn Rule>,
    /// The axes that stay with its column.
    pub axes: Vec<usize>,
}

impl Rule for Beside {
    fn record(&self) -> RuleRecord {
        self.rule.record()
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        let mut parts: BTreeMap<Vec<u16>, Vec<u32>> = BTreeMap::new();
        for row in group.table.members_of(group.rows) {
            let codes = group.table.row(row);
            parts.entry(self.axes.iter().map(|&axis| codes[axis]).collect()).or_default().push(row);
        }
        parts.values().all(|rows| self.rule.is_met_by(&GroupView::new(group.table, rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::l_diversity::{Diversity, LDiversity};

    #[test]
    fn every_part_must_be_diverse() {
        let mut table = fixtures::table_3_1();
        let rule = |l| LDiversity { column: table.sensitive[0].name.clone(), kind: Diversity::Distinct { l } };
        let (one, two) = (Arc::new(rule(1)), Arc::new(rule(2)));
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        let width = table.axes.len();
        table.codes.iter_mut().enumerate().for_each(|(at, code)| *code = (at / width) as u16);
        let view = GroupView::new(&table, &all);
        assert!(two.is_met_by(&view));
        assert!(!Beside { rule: two.clone(), axes: vec![0] }.is_met_by(&view), "every row is a part of its own");
        assert!(Beside { rule: one, axes: vec![0] }.is_met_by(&view));
        assert!(Beside { rule: two, axes: vec![] }.is_met_by(&view));
    }
}
