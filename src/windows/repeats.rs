//! Subjects that a stream has had before: a ledger of keyed digests in memory, with a bound.
//!
//! A row whose subject was among the latest `remember` ones is dropped and counted. Who reads the memory of the process finds
//! digests that cannot be confirmed without the key of the session.

use std::collections::{HashSet, VecDeque};

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::row::{RowConverter, SortField};

use crate::error::{Error, Result};
use crate::secret::{Purpose, RunKey};

/// The subjects that are remembered.
#[derive(Debug)]
pub(super) struct Repeats {
    columns: Vec<usize>,
    converter: RowConverter,
    key: RunKey,
    most: usize,
    known: HashSet<u128>,
    /// The same, the earliest first.
    order: VecDeque<u128>,
}

impl Repeats {
    /// Nobody yet. `columns` of a batch tell subjects apart.
    pub(super) fn new(columns: &[usize], rows: &RecordBatch, key: &RunKey, most: usize) -> Result<Self> {
        let fields = columns.iter().map(|&column| SortField::new(rows.column(column).data_type().clone())).collect();
        let converter = RowConverter::new(fields)
            .map_err(|_| Error::job("window.subject: a column of its type cannot tell subjects apart"))?;
        let (known, order) = (HashSet::new(), VecDeque::new());
        Ok(Self { columns: columns.to_vec(), converter, key: key.clone(), most: most.max(1), known, order })
    }

    /// The rows whose subject is new, and how many others there are.
    pub(super) fn filter_new(&mut self, rows: &RecordBatch) -> Result<(RecordBatch, u64)> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|&column| rows.column(column).clone()).collect();
        let nobody = columns.iter().map(|column| column.logical_null_count()).max().unwrap_or(0);
        if nobody > 0 {
            return Err(Error::input(format!(
                "window.subject: {nobody} rows do not say who they are of; leave them out before anonymize, or remove \
                 window.subject if no subject comes twice"
            )));
        }
        let bytes = self.converter.convert_columns(&columns)?;
        let mut repeated = 0;
        let mut keep = Vec::with_capacity(rows.num_rows());
        for row in &bytes {
            let is_new = self.remember_subject(self.key.short_digest(Purpose::Subjects, row.data()));
            repeated += u64::from(!is_new);
            keep.push(is_new);
        }
        if repeated == 0 {
            return Ok((rows.clone(), 0));
        }
        Ok((filter_record_batch(rows, &BooleanArray::from(keep))?, repeated))
    }

    /// Whether a subject was not among the remembered ones; it is now. Where there are too many, the earliest is forgotten.
    fn remember_subject(&mut self, subject: u128) -> bool {
        if !self.known.insert(subject) {
            return false;
        }
        self.order.push_back(subject);
        if self.order.len() > self.most
            && let Some(earliest) = self.order.pop_front()
        {
            self.known.remove(&earliest);
        }
        true
    }

    /// Bytes that are held.
    pub(super) fn held_bytes(&self) -> usize {
        // A slot of the set has a byte beside it that says whether it is taken.
        self.known.capacity() * (size_of::<u128>() + 1) * 8 / 7 + self.order.capacity() * size_of::<u128>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn batch(ids: &[Option<i64>]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let words: ArrayRef = Arc::new(StringViewArray::from(vec!["a"; ids.len()]));
        RecordBatch::try_from_iter([("word", words), ("id", ids)]).unwrap()
    }

    fn repeats(most: usize) -> Repeats {
        Repeats::new(&[0, 1], &batch(&[]), &RunKey::from_seed(1), most).unwrap()
    }

    fn new_of(repeats: &mut Repeats, ids: &[i64]) -> (Vec<i64>, u64) {
        let (rows, dropped) = repeats.filter_new(&batch(&ids.iter().map(|&id| Some(id)).collect::<Vec<_>>())).unwrap();
        (rows.column(1).as_primitive::<Int64Type>().values().to_vec(), dropped)
    }

    #[test]
    fn a_subject_is_let_in_once_while_it_is_remembered() {
        let mut repeats = repeats(3);
        assert_eq!(new_of(&mut repeats, &[1, 2, 1]), (vec![1, 2], 1));
        assert_eq!(new_of(&mut repeats, &[2, 3]), (vec![3], 1));
        assert_eq!(new_of(&mut repeats, &[4]), (vec![4], 0), "forgets 1");
        assert_eq!(new_of(&mut repeats, &[1, 3, 4]), (vec![1], 2));
        assert!(repeats.order.len() == 3 && repeats.known.len() == 3);
    }

    #[test]
    fn rows_of_nobody_are_an_error_that_counts_them() {
        let refused = repeats(3).filter_new(&batch(&[Some(1), None, None])).unwrap_err().to_string();
        assert!(refused.contains("2 rows do not say who they are of"), "{refused}");
    }

    #[test]
    fn what_is_held_has_a_bound() {
        let mut repeats = repeats(1000);
        let ids: Vec<i64> = (0..20_000).collect();
        ids.chunks(500).for_each(|ids| assert_eq!(new_of(&mut repeats, ids).1, 0));
        assert!(repeats.held_bytes() < 120_000, "{}", repeats.held_bytes());
    }
}
