//! The bound U: no group may lose more than this share of its information (Loukides, def. 5.2.2: WGU <= U).

use super::{GroupView, Rule, RuleRecord, is_within_bound};
use crate::faults::Fault;
use crate::model::Axis;

/// Bounds the mean loss of every group over the quasi-identifiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxLoss {
    /// U, in `[0, 1]`.
    pub bound: f64,
}

/// The most by which the mean loss of a group, seen in codes, can fall short of that of its values.
pub fn loss_slack(axes: &[Axis]) -> f64 {
    axes.iter().map(Axis::slack).sum::<f64>() / axes.len().max(1) as f64
}

impl MaxLoss {
    /// Whether a loss seen in codes, and whatever quantised axes hide, stays within the bound.
    pub fn allows_loss(&self, loss: f64, slack: f64) -> bool {
        is_within_bound((loss + slack).min(1.0), self.bound) || Fault::AnyLoss.is_planted()
    }
}

impl Rule for MaxLoss {
    fn record(&self) -> RuleRecord {
        RuleRecord::new("max-loss").with_parameter("max-loss", self.bound)
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        let axes = &group.table.axes;
        self.allows_loss(group.cover().loss(axes), loss_slack(axes))
    }

    /// Loss can only grow with more rows.
    fn beyond_growth(&self, group: &GroupView<'_>) -> bool {
        !self.is_met_by(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::model::{Shape, Table};

    #[test]
    fn loukides_table_3_2_losses() {
        let table = fixtures::table_3_1();
        let group = GroupView::new(&table, &[0, 1, 2, 3]);
        let loss = (10.0 / 30.0 + 5.0 / 20.0) / 2.0;
        assert!(MaxLoss { bound: loss }.is_met_by(&group));
        assert!(!MaxLoss { bound: loss - 1e-6 }.is_met_by(&group));
        assert!(MaxLoss { bound: loss - 1e-6 }.beyond_growth(&group));
    }

    #[test]
    fn quantised_codes_are_given_their_slack() {
        let mut axis = Axis::new("x", Shape::Line { span: 100 });
        axis.exact = false;
        let table = Table::new([axis], vec![0, 30, 100]);
        assert!(!MaxLoss { bound: 0.305 }.is_met_by(&GroupView::new(&table, &[0, 1])));
        assert!(MaxLoss { bound: 0.31 }.is_met_by(&GroupView::new(&table, &[0, 1])));
        assert!(
            MaxLoss { bound: 1.0 }.is_met_by(&GroupView::new(&table, &[0, 2])),
            "the whole domain loses 1, not more"
        );
    }
}
