//! A synthetic census: any number of rows from a seed, for demonstrations, tests and benches.
//!
//! The columns are skewed and depend on each other as in real registers (a postcode implies its region, education
//! shapes occupation, age shapes nearly everything), because that is what good anonymisation profits from and what
//! uniform random tables lack. There are nulls, dates, decimals, lists and exact duplicates.
//!
//! | column | type | role | made of |
//! |---|---|---|---|
//! | `person_id` | Int64 | identifier | row number + 1 |
//! | `name` | Utf8 | identifier | made up |
//! | `age` | Int32 | quasi | 0 to 99, young in cities, old in the countryside |
//! | `sex` | Utf8, null | quasi | two values, about 1% null |
//! | `region` | Utf8 | quasi | 20 regions of 5 countries |
//! | `postcode` | Utf8 | quasi | 5 digits: country, region, district, street; 20 000 values by Zipf's law |
//! | `education` | Utf8 | quasi | 16 levels by age and place |
//! | `occupation` | Utf8 | quasi | 40 by education, sex and age |
//! | `marital_status` | Utf8 | quasi | 7 by age |
//! | `arrival` | Date32, null | quasi | moving in, mostly recent, about 8% null |
//! | `diagnosis` | Utf8 | sensitive | 30 by age, some rare |
//! | `income` | Decimal128(10, 2) | sensitive | log-normal by education, occupation, age and place |
//! | `household_size` | Int16 | kept | 1 to 9 |
//! | `updated_at` | Timestamp(µs, UTC), null | kept | within six years before the census, 2% null |
//! | `tags` | List of Utf8, null | kept | up to three |
//!
//! Every row is a pure function of the seed and its number, so that any part can be made on its own and in parallel:
//!
//! ```
//! use throng::internals::Census;
//!
//! let census = Census::new(42, 1_000_000);
//! let last: Vec<_> = census.batches(999_000..1_000_000, 400).collect::<Result<_, _>>()?;
//! assert_eq!(last.iter().map(|batch| batch.num_rows()).collect::<Vec<_>>(), [400, 400, 200]);
//! # Ok::<(), datafusion::arrow::error::ArrowError>(())
//! ```

mod columns;
mod draw;
mod nights;
mod people;
#[cfg(test)]
mod tests;
mod vocabulary;

pub(crate) use nights::Nights;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;

/// A synthetic census of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    seed: u64,
    rows: u64,
}

impl Census {
    /// Creates the census of a seed with `rows` rows. A larger census of the same seed begins with the same rows.
    pub fn new(seed: u64, rows: u64) -> Self {
        Self { seed, rows }
    }

    /// Returns the schema of every census.
    pub fn schema() -> SchemaRef {
        columns::census_schema()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Generates the rows of `range`, as far as the census has them, in batches of `batch_rows` (the last may be shorter).
    pub fn batches(
        &self,
        range: Range<u64>,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + use<> {
        let seed = self.seed;
        let end = range.end.min(self.rows);
        let batch_rows = batch_rows.max(1);
        let schema = Self::schema();
        (range.start..end).step_by(batch_rows).map(move |first| {
            let rows = (end - first).min(batch_rows as u64) as usize;
            columns::census_batch(Arc::clone(&schema), seed, first, rows)
        })
    }
}
