//! Values of a column that were seen before, recognised without their hash: most rows of a large table
//! repeat values that are known.

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::arrow::buffer::Buffer;

use super::hashes::{INLINE, NULL};
use crate::binding::is_time;

/// Places of a dictionary at which texts were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    /// The dictionary, held so that nothing else takes its place.
    dictionary: Option<Buffer>,
    /// For every sixteen bytes of it, where a text begins there and how long it is.
    places: Vec<u16>,
}

impl Texts {
    /// The rows whose texts may be new: not those that were read from the same place before.
    pub(super) fn fresh_rows(&mut self, words: &StringViewArray) -> Vec<usize> {
        let nulls = words.nulls().filter(|nulls| nulls.null_count() > 0);
        let valid = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
        let [dictionary] = words.data_buffers() else { return (0..words.len()).filter(valid).collect() };
        if self.dictionary.as_ref().is_none_or(|seen| !seen.ptr_eq(dictionary) || seen.len() != dictionary.len()) {
            self.dictionary = Some(dictionary.clone());
            self.places.clear();
            self.places.resize(dictionary.len() / 16 + 1, 0);
        }
        let mut fresh = Vec::with_capacity(words.len());
        for (row, &view) in words.views().iter().enumerate() {
            let (length, offset) = (view as u32, (view >> 96) as u32);
            if (INLINE + 1..1 << 12).contains(&length) && valid(&row) {
                let place = &mut self.places[offset as usize / 16];
                let text = ((offset % 16) | (length << 4)) as u16;
                if *place == text {
                    continue;
                }
                *place = text;
            }
            fresh.push(row);
        }
        if nulls.is_some() {
            fresh.retain(valid);
        }
        fresh
    }
}

/// Whole numbers, and points in time, that were seen; of those that lie near the first one.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    /// The least number that is near, and a bit for every number from it on.
    least: i64,
    seen: Vec<u64>,
    fresh: Vec<u64>,
}

/// Numbers that are near.
const NEAR: u64 = 1 << 19;

impl Numbers {
    /// The hashes of numbers that may be new, of those of a whole batch.
    pub(super) fn fresh_hashes<'a>(&'a mut self, array: &ArrayRef, hashes: &'a [u64]) -> &'a [u64] {
        let data_type = array.data_type();
        if !data_type.is_integer() && !is_time(data_type) {
            return hashes;
        }
        let data = array.to_data();
        match data_type.primitive_width() {
            Some(4) => self.choose_numbers(data.buffer::<i32>(0).iter().map(|number| i64::from(*number)), hashes),
            Some(8) => self.choose_numbers(data.buffer::<i64>(0).iter().copied(), hashes),
            _ => return hashes,
        }
        &self.fresh
    }

    fn choose_numbers(&mut self, numbers: impl Iterator<Item = i64>, hashes: &[u64]) {
        self.fresh.clear();
        for (number, &hash) in numbers.zip(hashes).filter(|(_, hash)| **hash != NULL) {
            if self.seen.is_empty() {
                self.least = number.wrapping_sub((NEAR / 2) as i64);
                self.seen.resize((NEAR / 64) as usize, 0);
            }
            let at = number.wrapping_sub(self.least) as u64;
            if at < NEAR {
                let (word, bit) = (&mut self.seen[(at / 64) as usize], 1 << (at % 64));
                if *word & bit != 0 {
                    continue;
                }
                *word |= bit;
            }
            self.fresh.push(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Date32Array, Float64Array, UInt64Array};
    use datafusion::arrow::buffer::NullBuffer;

    use super::*;

    #[test]
    fn texts_of_a_dictionary_are_fresh_once() {
        let words = ["a text that is longer than a view", "ox", "a text that is longer than a bird"];
        let plain = StringViewArray::from_iter_values(words);
        let [dictionary] = plain.data_buffers() else { panic!("one buffer") };
        let take = |rows: &[usize], nulls: Vec<bool>| {
            let views: Vec<u128> = rows.iter().map(|row| plain.views()[*row]).collect();
            StringViewArray::new(views.into(), vec![dictionary.clone()], Some(NullBuffer::from(nulls)))
        };
        let mut seen = Texts::default();
        assert_eq!(seen.fresh_rows(&take(&[0, 1, 0, 1], vec![true; 4])), [0, 1, 3], "short texts are always");
        assert_eq!(seen.fresh_rows(&take(&[0, 2, 2, 1], vec![true, false, true, false])), [2]);
        // A text within another text is another text.
        let part = (plain.views()[0] & !u128::from(u32::MAX)) | 20;
        let part = StringViewArray::new(vec![part].into(), vec![dictionary.clone()], None);
        assert_eq!((seen.fresh_rows(&part), part.value(0)), (vec![0], &words[0][..20]));
        let other = StringViewArray::from_iter_values(words);
        assert_eq!(seen.fresh_rows(&other), [0, 1, 2], "another dictionary");
    }

    #[test]
    fn near_numbers_are_fresh_once_and_far_ones_always() {
        let mut numbers = Numbers::default();
        let mut fresh = |array: ArrayRef, hashes: &[u64]| numbers.fresh_hashes(&array, hashes).to_vec();
        let days = |days: Vec<Option<i32>>| Arc::new(Date32Array::from(days)) as ArrayRef;
        assert_eq!(fresh(days(vec![Some(7), None, Some(7), Some(-9)]), &[1, NULL, 1, 2]), [1, 2]);
        // What stands in the place of a null was not seen.
        assert_eq!(fresh(days(vec![Some(0), Some(7), Some(-9)]), &[3, 1, 2]), [3]);
        assert_eq!(fresh(days(vec![Some(i32::MAX), Some(i32::MAX)]), &[4, 4]), [4, 4]);
        assert_eq!(fresh(days(vec![Some(5), Some(-9), Some(6)]).slice(1, 2), &[2, 5]), [5]);
        assert_eq!(fresh(Arc::new(Float64Array::from(vec![1.0, 1.0])), &[6, 6]), [6, 6], "not whole");
        let mut ends = Numbers::default();
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![0, u64::MAX, 0, u64::MAX]));
        assert_eq!(ends.fresh_hashes(&array, &[1, 2, 1, 2]), [1, 2], "they lie side by side");
    }
}
