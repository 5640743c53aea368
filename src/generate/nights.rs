//! The census night after night: people who come and leave, for series of releases.
//!
//! Who is there on which night is decided by [`Churn`].

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use throng_core::series::churn::Churn;

use super::Census;

/// A census that people come into and leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nights {
    seed: u64,
    churn: Churn,
}

impl Nights {
    /// So many people, of whom a share leaves every night while as many come.
    pub(crate) fn new(seed: u64, people: u64, churn: f64) -> Self {
        Self { seed, churn: Churn::new(seed, people, churn) }
    }

    /// The rows of a night; the first is 0.
    pub(crate) fn night_batches(
        &self,
        night: u64,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + use<> {
        let (churn, so_far) = (self.churn, self.churn.subjects_until(night));
        let batch_rows = batch_rows.max(1);
        let batches = Census::new(self.seed, so_far).batches(0..so_far, batch_rows);
        batches.zip((0..).step_by(batch_rows)).map(move |(batch, first)| {
            let batch = batch?;
            let here = (first..first + batch.num_rows() as u64).map(|person| Some(churn.is_there(person, night)));
            filter_record_batch(&batch, &here.collect::<BooleanArray>())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn ids(nights: &Nights, night: u64) -> BTreeSet<i64> {
        let batches = nights.night_batches(night, 100).map(Result::unwrap);
        batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    }

    #[test]
    fn as_many_come_as_leave() {
        let nights = Nights::new(1, 2000, 0.05);
        let mut before = ids(&nights, 0);
        assert_eq!(before.len(), 2000);
        for night in 1..10 {
            let now = ids(&nights, night);
            let (came, left) = (now.difference(&before).count(), before.difference(&now).count());
            assert!(came == 100 && (60..150).contains(&left), "night {night}: {came} came, {left} left");
            before = now;
        }
        assert!((1800..2200).contains(&before.len()), "{}", before.len());
        assert_eq!(ids(&Nights::new(1, 50, 0.0), 3).len(), 50);
    }
}
