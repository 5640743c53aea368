//! What each row of a subspace would cost a growing group, by table look-up.
//!
//! The cost of one more row is a sum over axes, and on every axis it depends on the row's code alone. So the cost of
//! each code that occurs is kept per axis and renewed only when the group widens there; asking for a row is then one
//! look-up per axis, whatever the shapes.

use crate::model::{Code, Cover, Table};

/// Costs of the rows of one subspace for the group that is being grown. Rows are named by their place in the subspace.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    table: &'a Table,
    rows: &'a [u32],
    /// Distinct codes of the subspace per axis, ascending.
    palettes: Vec<Vec<Code>>,
    /// Place in its palette of every code, row by row.
    local: Vec<u16>,
    /// Weighted loss of the group with each code of the palette, per axis.
    losses: Vec<Vec<f64>>,
    weight: f64,
    cover: Cover,
}

impl<'a> Reach<'a> {
    /// For some rows of a table; no group yet.
    pub(crate) fn new(table: &'a Table, rows: &'a [u32]) -> Self {
        let width = table.axes.len();
        let palettes: Vec<Vec<Code>> = (0..width)
            .map(|a| {
                let mut codes: Vec<Code> = rows.iter().map(|&row| table.row(row)[a]).collect();
                codes.sort_unstable();
                codes.dedup();
                codes
            })
            .collect();
        let mut local = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            let places = table.row(row).iter().zip(&palettes);
            local.extend(places.map(|(code, palette)| palette.partition_point(|other| other < code) as u16));
        }
        let losses = palettes.iter().map(|palette| vec![0.0; palette.len()]).collect();
        let weight = table.axes.iter().map(|axis| axis.weight).sum();
        Self { table, rows, palettes, local, losses, weight, cover: Cover::empty(width) }
    }

    /// Begins a new group with one row.
    pub(crate) fn start_group(&mut self, row: usize) {
        self.cover = Cover::empty(self.palettes.len());
        self.cover.add_row(&self.table.axes, self.codes(row));
        (0..self.palettes.len()).for_each(|a| self.renew_axis(a));
    }

    /// A row joins the group.
    pub(crate) fn add_row(&mut self, row: usize) {
        let extent = |cover: &Cover, a| (cover.lo[a], cover.hi[a], cover.count_distinct(a));
        let before: Vec<_> = (0..self.palettes.len()).map(|a| extent(&self.cover, a)).collect();
        self.cover.add_row(&self.table.axes, self.codes(row));
        for (a, before) in before.into_iter().enumerate() {
            if before != extent(&self.cover, a) {
                self.renew_axis(a);
            }
        }
    }

    /// Cost of the group with one more row: the same as [`Cover::cost_with`].
    pub(crate) fn cost_with(&self, row: usize) -> f64 {
        let width = self.palettes.len();
        let places = &self.local[row * width..][..width];
        places.iter().zip(&self.losses).map(|(&place, losses)| losses[usize::from(place)]).sum::<f64>() / self.weight
    }

    /// What the group covers.
    pub(crate) fn cover(&self) -> &Cover {
        &self.cover
    }

    /// Codes of a row.
    pub(crate) fn codes(&self, row: usize) -> &'a [Code] {
        self.table.row(self.rows[row])
    }

    fn renew_axis(&mut self, a: usize) {
        let axes = &self.table.axes;
        for (loss, &code) in self.losses[a].iter_mut().zip(&self.palettes[a]) {
            *loss = axes[a].weight * self.cover.axis_loss_with(axes, a, code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn looked_up_costs_are_those_of_the_cover(table in fixtures::tables(), members in 1..9_usize) {
            let rows: Vec<u32> = (0..table.rows() as u32).rev().collect();
            let mut reach = Reach::new(&table, &rows);
            for member in 0..members.min(rows.len()) {
                if member == 0 { reach.start_group(member) } else { reach.add_row(member) }
                let cover = table.cover(&rows[..=member]);
                prop_assert_eq!(reach.cover(), &cover);
                for (place, &row) in rows.iter().enumerate() {
                    prop_assert_eq!(reach.cost_with(place), cover.cost_with(&table.axes, table.row(row)));
                }
            }
        }
    }
}
