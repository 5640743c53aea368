//! Hashes of the values of a column: a few multiplications for a value that is whole in its place, as numbers and short
//! texts are, and one more for every sixteen bytes of a long text.
//!
//! A Parquet reader makes equal texts of a dictionary equal views, so that a column which repeats a few texts is hashed
//! once in a while instead of once a row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::guess::is_text;
use crate::encode::{row_hashes, to_text};
use crate::error::Result;

const SEED: u64 = 0x70_726f_6669_6c65;

/// Stands for the hash of null, which is not a value.
pub(super) const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

/// Slots for views seen lately.
const LATELY: usize = 1 << 10;

/// Hashes the values of one column, batch after batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Hashes {
    lately: Vec<Lately>,
    found: Vec<u64>,
}

/// A view that was seen lately in the same batch: that of a long text points into its own batch.
#[derive(Debug, Clone, Copy, Default)]
struct Lately {
    view: u128,
    hash: u64,
    /// The first row that holds it, and how many do; none, when it is of another batch.
    first: u32,
    rows: u32,
}

impl Hashes {
    /// Hashes a batch of the column. It helps to know of texts whether few of them are repeated over and over.
    pub(super) fn add_batch(&mut self, array: &ArrayRef, few: bool) -> Result<()> {
        self.found.clear();
        let data_type = array.data_type();
        let width = data_type.primitive_width();
        match data_type {
            _ if is_text(data_type) => {
                let words = to_text(array)?;
                match few {
                    true => self.count_few(&words, true, |_, _, _| {}),
                    false => self.add_words(&words),
                }
                return Ok(());
            }
            // Adding zero makes one zero of two: -0.0 and 0.0 are the same value.
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values().iter();
                self.found.extend(values.map(|value| mix_value(u64::from((value + 0.0).to_bits()))));
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values().iter();
                self.found.extend(values.map(|value| mix_value((value + 0.0).to_bits())));
            }
            _ if width.is_some_and(|width| matches!(width, 1 | 2 | 4 | 8 | 16)) => {
                let (data, width) = (array.to_data(), width.unwrap_or_default());
                let bytes = &data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width];
                match width {
                    1 => self.found.extend(bytes.iter().map(|byte| mix_value(u64::from(*byte)))),
                    2 => self.add_bytes(bytes, |value| mix_value(u64::from(u16::from_le_bytes(value)))),
                    4 => self.add_bytes(bytes, |value| mix_value(u64::from(u32::from_le_bytes(value)))),
                    8 => self.add_bytes(bytes, |value| mix_value(u64::from_le_bytes(value))),
                    _ => self.add_bytes(bytes, |value| mix_long(u128::from_le_bytes(value))),
                }
            }
            _ => self.found = row_hashes(std::slice::from_ref(array), array.len(), SEED)?,
        }
        self.mask_nulls(array.logical_nulls());
        Ok(())
    }

    /// Null has a hash of its own, whatever stands in its place.
    fn mask_nulls(&mut self, nulls: Option<NullBuffer>) {
        if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
            (!nulls.inner()).set_indices().for_each(|row| self.found[row] = NULL);
        }
    }

    /// The hashes that were added last: of every row's value, or of null.
    pub(super) fn last_hashes(&self) -> &[u64] {
        &self.found
    }

    fn add_bytes<const WIDTH: usize>(&mut self, bytes: &[u8], hash: impl Fn([u8; WIDTH]) -> u64) {
        self.found.extend(bytes.as_chunks::<WIDTH>().0.iter().map(|value| hash(*value)));
    }

    /// Hashes some texts.
    pub(super) fn add_rows(&mut self, words: &StringViewArray, rows: &[usize]) {
        self.found.clear();
        self.found.extend(rows.iter().map(|row| hash_word(words, *row, words.views()[*row])));
    }

    /// Hashes a batch of texts.
    pub(super) fn add_words(&mut self, words: &StringViewArray) {
        self.found.clear();
        let hash = |(row, view): (usize, &u128)| hash_word(words, row, *view);
        self.found.extend(words.views().iter().enumerate().map(hash));
        self.mask_nulls(words.nulls().cloned());
    }

    /// Hashes a batch of texts of which few are repeated over and over, and reports every hash with its rows, once or a few
    /// times, and the first of these rows. With `keep` the hash of every row is kept, too.
    pub(super) fn count_few(&mut self, words: &StringViewArray, keep: bool, count: impl FnMut(u64, u32, usize)) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        match keep {
            true => self.count_words(words, count, |hash| found.push(hash)),
            false => self.count_words(words, count, |_| {}),
        }
        self.found = found;
    }

    #[inline]
    fn count_words(
        &mut self,
        words: &StringViewArray,
        mut count: impl FnMut(u64, u32, usize),
        mut see: impl FnMut(u64),
    ) {
        self.lately.resize(LATELY, Lately::default());
        let nulls = words.nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, &view) in words.views().iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                see(NULL);
                continue;
            }
            let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(GOLDEN);
            let slot = &mut self.lately[(mixed >> (u64::BITS - LATELY.ilog2())) as usize];
            if slot.view != view || slot.rows == 0 {
                if slot.rows > 0 {
                    count(slot.hash, slot.rows, slot.first as usize);
                }
                *slot = Lately { view, hash: hash_word(words, row, view), first: row as u32, rows: 0 };
            }
            slot.rows += 1;
            see(slot.hash);
        }
        for slot in self.lately.iter_mut().filter(|slot| slot.rows > 0) {
            count(slot.hash, std::mem::take(&mut slot.rows), slot.first as usize);
        }
    }
}

/// The hash of a text by its view.
fn hash_word(words: &StringViewArray, row: usize, view: u128) -> u64 {
    match view as u32 {
        ..=INLINE => mix_long(view),
        // In the place of a null stands any view, also one that points nowhere.
        _ if words.is_null(row) => NULL,
        _ => mix_bytes(words.value(row).as_bytes()),
    }
}

/// Bytes that a view holds itself.
pub(super) const INLINE: u32 = 12;

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// 2^64 divided by the square root of two.
const SILVER: u64 = 0xB504_F333_F9DE_6485;

/// The hash of a value of up to eight bytes: no two of them are alike.
fn mix_value(value: u64) -> u64 {
    let mixed = (value ^ SEED).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The hash of a value of sixteen bytes.
fn mix_long(value: u128) -> u64 {
    mix_value(fold_product(value as u64 ^ GOLDEN, (value >> 64) as u64 ^ SILVER))
}

/// The hash of more than twelve bytes.
fn mix_bytes(bytes: &[u8]) -> u64 {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let length = bytes.len();
    // The first sixteen bytes and the last, some of them twice; what is between them is rare.
    let mut mixed = fold_product(word(0) ^ length as u64 ^ GOLDEN, word((length - 8).min(8)) ^ SILVER);
    for at in (16..length.saturating_sub(16)).step_by(16) {
        mixed = fold_product(word(at) ^ mixed, word(at + 8) ^ SILVER);
    }
    mix_value(fold_product(word(length.saturating_sub(16)) ^ mixed, word(length - 8) ^ SILVER))
}

/// All bits of a product.
fn fold_product(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int16Array, StringArray,
    };
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;

    fn hashes(array: ArrayRef) -> Vec<u64> {
        let mut hashes = Hashes::default();
        hashes.add_batch(&array, false).unwrap();
        hashes.found
    }

    fn distinct(mut hashes: Vec<u64>) -> usize {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len()
    }

    #[test]
    fn equal_texts_hash_alike_in_any_batch_and_type() {
        let words = ["", "ox", "a text that is longer than a view", "a text that is longer than a bird"];
        let plain: ArrayRef = Arc::new(StringArray::from_iter_values(words.iter().cycle().take(4000)));
        let turned: ArrayRef = Arc::new(StringArray::from_iter_values(words.iter().rev()));
        let listed: ArrayRef = Arc::new(words.iter().copied().collect::<DictionaryArray<Int32Type>>());
        let short: ArrayRef = Arc::new(StringArray::from_iter_values(&words[..2]));
        let (mut both, mut few) = (Hashes::default(), false);
        let mut of = |array: &ArrayRef| {
            few = !few;
            both.add_batch(array, few).unwrap();
            both.last_hashes().to_vec()
        };
        let first = of(&plain);
        let mut second = of(&turned);
        let third = of(&listed);
        second.reverse();
        assert_eq!((&first[..4], &first[3996..]), (&second[..], &third[..]));
        assert_eq!(of(&short), first[..2]);
        assert_eq!(distinct(first.clone()), 4);
        assert_eq!(hashes(plain), first, "whatever was seen before");
    }

    #[test]
    fn what_stands_in_the_place_of_a_null_is_not_looked_at() {
        let words = StringViewArray::from_iter_values(["a text that is long", "a text that is long", "hen"]);
        let nulls = NullBuffer::from(vec![false, true, true]);
        let holed = StringViewArray::new(words.views().clone(), words.data_buffers().to_vec(), Some(nulls));
        let found = hashes(Arc::new(holed));
        let whole = hashes(Arc::new(words));
        assert_eq!((found[0], &found[1..]), (NULL, &whole[1..]));
    }

    #[test]
    fn values_of_every_type_are_told_apart() {
        let numbers = Int16Array::from_iter((0..1000).map(|n| (n % 10 != 3).then_some(n)));
        let found = hashes(Arc::new(numbers.slice(500, 500)));
        assert_eq!((distinct(found.clone()), found[3]), (451, NULL));
        assert_eq!(found, hashes(Arc::new(numbers))[500..]);
        let money = Decimal128Array::from_iter_values((-500..500).map(|n| n * 1_000_000_007));
        assert_eq!(distinct(hashes(Arc::new(money))), 1000);
        let zeros = Float64Array::from(vec![0.0, -0.0, 1.0]);
        assert_eq!(distinct(hashes(Arc::new(zeros))), 2);
        let flags = BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]);
        assert_eq!(distinct(hashes(Arc::new(flags))), 3);
    }

    #[test]
    fn every_byte_of_a_text_counts() {
        for length in 13..70 {
            let plain = vec![b'a'; length];
            let mut found = vec![mix_bytes(&plain)];
            for at in 0..length {
                let mut other = plain.clone();
                other[at] = b'b';
                found.push(mix_bytes(&other));
            }
            assert_eq!(distinct(found), length + 1, "{length}");
        }
    }

    #[test]
    fn hashes_are_spread_evenly() {
        // Numbers in a row, and texts that begin with them: how many of a million fall below a hundredth of all hashes.
        let numbers = (0..1_000_000).map(mix_value).collect::<Vec<u64>>();
        let short = StringViewArray::from_iter_values((0..1_000_000).map(|n| format!("{n:07}")));
        let long =
            StringViewArray::from_iter_values((0..1_000_000).map(|n| format!("{n}, a street that is long{}", n % 7)));
        for hashes in [numbers, hashes(Arc::new(short)), hashes(Arc::new(long))] {
            let below = hashes.iter().filter(|hash| **hash < u64::MAX / 100).count();
            assert!((9_700..10_300).contains(&below), "{below}");
            assert_eq!(distinct(hashes), 1_000_000);
        }
    }
}
