//! Labels of cells that an exchange deals out evenly.
//!
//! DataFusion's exchange sends a row to the partition that is left over when the hash of its key is divided by the number
//! of partitions. Of a few dozen cells one partition would get half as many again as another, and the others would wait
//! for it. So the key is not the number of a cell but a label, chosen so that the hashes of one label after the other
//! leave 0, 1, 2 and so on: every partition gets as many cells as every other, or one more.
//!
//! Rows leave a partition cell by cell, sorted by label. Which cell has which label is drawn from the key of the run, so
//! that this order does not show the tree of cuts.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::common::hash_utils::create_hashes;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;

use crate::error::Result;
use crate::secret::SecretRng;

/// Divisible by every number of partitions up to ten, and by 12, 14, 15, 16, 18, 20, 24 and more.
const REMAINDERS: usize = 5040;

/// Labels that are looked at together.
const TOGETHER: u32 = 1 << 13;

/// The labels of all cells.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    of_cells: Vec<u32>,
    cells: HashMap<u32, u32>,
}

impl Labels {
    /// Labels for a number of cells: the same wherever they are made from the same random numbers.
    pub(super) fn new(cells: usize, rng: &mut SecretRng) -> Result<Self> {
        let mut of_cells = vec![0; cells];
        // The next cell that wants a label whose hash leaves this remainder.
        let mut next: Vec<usize> = (0..REMAINDERS).collect();
        let (mut wanting, mut first) = (cells, 0);
        let mut hashes = vec![0; TOGETHER as usize];
        while wanting > 0 {
            let labels: ArrayRef = Arc::new(UInt32Array::from_iter_values(first..first + TOGETHER));
            create_hashes([&labels], REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
            for (label, hash) in (first..).zip(&hashes) {
                let next = &mut next[(hash % REMAINDERS as u64) as usize];
                if let Some(of_cell) = of_cells.get_mut(*next) {
                    *of_cell = label;
                    *next += REMAINDERS;
                    wanting -= 1;
                }
            }
            first += TOGETHER;
        }
        rng.shuffle(&mut of_cells);
        let cells = (0..).zip(&of_cells).map(|(cell, label)| (*label, cell)).collect();
        Ok(Self { of_cells, cells })
    }

    /// The label of a cell.
    pub(super) fn label_of(&self, cell: u32) -> u32 {
        self.of_cells[cell as usize]
    }

    /// The cell of a label; none, if no cell has it.
    pub(super) fn cell_of(&self, label: u32) -> Option<u32> {
        self.cells.get(&label).copied()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::RecordBatch;
    use datafusion::physical_expr::expressions::Column;
    use datafusion::physical_plan::Partitioning;
    use datafusion::physical_plan::metrics::Time;
    use datafusion::physical_plan::repartition::BatchPartitioner;

    use super::*;
    use crate::secret::{Purpose, RunKey};

    fn labels(cells: usize, seed: u64) -> Labels {
        Labels::new(cells, &mut RunKey::from_seed(seed).rng(Purpose::CellOrder, 0)).unwrap()
    }

    #[test]
    fn an_exchange_deals_cells_out_evenly() {
        for cells in [1, 2, 7, 76, 764, 12_000] {
            let labels = labels(cells, 1);
            let keys: ArrayRef = Arc::new((0..cells as u32).map(|cell| labels.label_of(cell)).collect::<UInt32Array>());
            let rows = RecordBatch::try_from_iter([("cell", keys)]).unwrap();
            for partitions in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 48] {
                let key = Partitioning::Hash(vec![Arc::new(Column::new("cell", 0))], partitions);
                let mut exchange = BatchPartitioner::try_new(key, Time::new(), 0, 1).unwrap();
                let mut counts = vec![0; partitions];
                exchange
                    .partition(rows.clone(), |partition, rows| {
                        counts[partition] += rows.num_rows();
                        Ok(())
                    })
                    .unwrap();
                assert!(counts.iter().all(|count| (cells / partitions..=cells.div_ceil(partitions)).contains(count)));
            }
        }
    }

    #[test]
    fn every_label_leads_back_to_its_cell() {
        let labels = labels(6000, 1);
        assert!((0..6000).all(|cell| labels.cell_of(labels.label_of(cell)) == Some(cell)));
        assert_eq!(labels.cell_of(u32::MAX), None);
    }

    #[test]
    fn the_order_of_cells_follows_the_key() {
        let order = |seed| {
            let labels = labels(100, seed);
            (0..100).map(|cell| labels.label_of(cell)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
