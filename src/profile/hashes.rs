//! Hashes of the values of a column, cheap where values repeat.
//!
//! A Parquet reader makes equal texts of a dictionary equal views, and a short text is whole in its view: most columns
//! hold a few words over and over, and each of them is hashed once in a while instead of once a row.

use std::hash::BuildHasher;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::common::hash_utils::QualityRandomState;

use super::guess::is_text;
use crate::encode::{row_hashes, text};
use crate::error::Result;

const SEED: u64 = 0x70_726f_6669_6c65;

/// Slots for views seen lately.
const LATELY: usize = 1 << 11;

/// Bytes that a view holds itself.
const INLINE: u32 = 12;

/// Hashes the values of one column, batch after batch.
#[derive(Debug, Clone)]
pub(super) struct Hashes {
    state: QualityRandomState,
    /// Views seen lately, the batches that they were seen in, and their hashes.
    lately: Vec<(u128, u64, u64)>,
    batch: u64,
}

/// What a column says of its rows.
pub(super) struct Hashed {
    /// The hash of every row's value; that of a null means nothing.
    pub hashes: Vec<u64>,
    /// The values, when they are texts.
    pub words: Option<StringViewArray>,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { state: QualityRandomState::with_seed(SEED), lately: Vec::new(), batch: 0 }
    }
}

impl Hashes {
    /// Hashes a batch of the column.
    pub(super) fn of(&mut self, array: &ArrayRef) -> Result<Hashed> {
        if !is_text(array.data_type()) {
            let hashes = row_hashes(std::slice::from_ref(array), array.len(), SEED)?;
            return Ok(Hashed { hashes, words: None });
        }
        let words = text(array)?;
        Ok(Hashed { hashes: self.of_words(&words), words: Some(words) })
    }

    fn of_words(&mut self, words: &StringViewArray) -> Vec<u64> {
        self.lately.resize(LATELY, (u128::MAX, 0, 0));
        self.batch += 1;
        let mut hashes = Vec::with_capacity(words.len());
        let nulls = words.nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, &view) in words.views().iter().enumerate() {
            // In the place of a null stands any view, also one of another value.
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                hashes.push(0);
                continue;
            }
            let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let slot = &mut self.lately[(mixed >> (u64::BITS - LATELY.ilog2())) as usize];
            // The view of a long text points into its own batch.
            let same = slot.0 == view && (view as u32 <= INLINE || slot.1 == self.batch);
            if !same {
                *slot = (view, self.batch, self.state.hash_one(words.value(row)));
            }
            hashes.push(slot.2);
        }
        hashes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{DictionaryArray, StringArray};
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn equal_texts_hash_alike_in_any_batch_and_type() {
        let words = ["", "ox", "a text that is longer than a view", "a text that is longer than a bird"];
        let plain: ArrayRef = Arc::new(StringArray::from_iter_values(words.iter().cycle().take(4000)));
        let turned: ArrayRef = Arc::new(StringArray::from_iter_values(words.iter().rev()));
        let listed: ArrayRef = Arc::new(words.iter().copied().collect::<DictionaryArray<Int32Type>>());
        let mut hashes = Hashes::default();
        let first = hashes.of(&plain).unwrap().hashes;
        let mut second = hashes.of(&turned).unwrap().hashes;
        let third = hashes.of(&listed).unwrap().hashes;
        second.reverse();
        assert_eq!((&first[..4], &first[3996..]), (&second[..], &third[..]));
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4);
        assert_eq!(Hashes::default().of(&plain).unwrap().hashes, first, "whatever was seen before");
    }

    #[test]
    fn what_stands_in_the_place_of_a_null_is_not_looked_at() {
        let words = StringViewArray::from_iter_values(["ox", "ox", "hen"]);
        let nulls = NullBuffer::from(vec![false, true, true]);
        let holed = StringViewArray::new(words.views().clone(), words.data_buffers().to_vec(), Some(nulls));
        let found = Hashes::default().of(&(Arc::new(holed) as ArrayRef)).unwrap().hashes;
        let whole = Hashes::default().of(&(Arc::new(words) as ArrayRef)).unwrap().hashes;
        assert_eq!(found[1..], whole[1..]);
    }
}
