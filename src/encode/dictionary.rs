//! Text as places in a sorted word list.
//!
//! The list holds every value of the column when there are few enough, and an even sample of them otherwise; a value
//! that is not in the list takes the place of the nearest word before it. Codes preserve order either way.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::HashMap;
use datafusion::error::Result;

use crate::model::Code;

/// Any column as text, with cheap access to every value.
pub(crate) fn to_text(array: &ArrayRef) -> Result<StringViewArray> {
    let array = match array.data_type() {
        DataType::Utf8View => array.clone(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Dictionary(_, _) => cast(array, &DataType::Utf8View)?,
        // Not every type can be cast to views directly.
        _ => cast(&cast(array, &DataType::Utf8)?, &DataType::Utf8View)?,
    };
    Ok(array.as_string_view().clone())
}

/// A sorted word list and a fast way into it.
#[derive(Debug, Clone)]
pub(crate) struct Dictionary {
    /// The words in the order of their codes.
    pub words: Vec<String>,
    /// The same words in plain lexicographic order of their keys, when codes follow another key.
    keys: Option<Vec<String>>,
    index: HashMap<String, Code>,
    exact: bool,
}

impl Dictionary {
    /// A word list in the order of `key`. `exact` says that no other value occurs.
    pub(crate) fn new(mut words: Vec<String>, exact: bool, key: Option<&dyn Fn(&str) -> String>) -> Self {
        let keys = match key {
            None => {
                words.sort_unstable();
                None
            }
            Some(key) => {
                let mut keyed: Vec<(String, String)> = words.into_iter().map(|word| (key(&word), word)).collect();
                keyed.sort_unstable();
                let (keys, sorted) = keyed.into_iter().unzip();
                words = sorted;
                Some(keys)
            }
        };
        let index = words.iter().enumerate().map(|(code, word)| (word.clone(), code as Code)).collect();
        Self { words, keys, index, exact }
    }

    /// Whether every value of the column is in the list.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// The code of a value; `key` is the order key when the list has one.
    pub(crate) fn code_of(&self, value: &str, key: Option<&dyn Fn(&str) -> String>) -> Code {
        if let Some(code) = self.index.get(value) {
            return *code;
        }
        let before = match (&self.keys, key) {
            (Some(keys), Some(key)) => {
                let key = key(value);
                keys.partition_point(|word| *word <= key)
            }
            _ => self.words.partition_point(|word| word.as_str() <= value),
        };
        before.saturating_sub(1) as Code
    }
}

/// Maps every value of a text column through `code`, which is asked only once for runs of the same value: equal views
/// of one array are equal values, and a small direct-mapped memory of them catches nearly all.
pub(crate) fn map_text<'a, T: Copy>(
    array: &'a StringViewArray,
    null: T,
    mut code: impl FnMut(&'a str) -> T,
    mut put: impl FnMut(usize, T),
) {
    // Few slots for few rows: a memory costs time to set up, too.
    let bits = (array.len() / 8).clamp(1 << 6, 1 << 12).ilog2();
    let mut memory: Vec<(u128, T)> = vec![(u128::MAX, null); 1 << bits];
    for (row, &view) in array.views().iter().enumerate() {
        if array.is_null(row) {
            put(row, null);
            continue;
        }
        let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut memory[(mixed >> (u64::BITS - bits)) as usize];
        if slot.0 != view {
            *slot = (view, code(array.value(row)));
        }
        put(row, slot.1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn unknown_words_take_the_place_of_the_word_before() {
        let words = Dictionary::new(vec!["pear".into(), "apple".into(), "melon".into()], false, None);
        assert_eq!(words.words, ["apple", "melon", "pear"]);
        assert_eq!(words.code_of("melon", None), 1);
        assert_eq!(words.code_of("nut", None), 1);
        assert_eq!(words.code_of("aaa", None), 0);
    }

    #[test]
    fn every_value_is_mapped_whatever_its_length() {
        let array: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("a"),
            Some("a text longer than twelve bytes"),
            None,
            Some("a text longer than twelve letters"),
            Some("a"),
        ]));
        let mut codes = vec![0; 5];
        map_text(&to_text(&array).unwrap(), 9, |value| value.len() as Code, |row, code| codes[row] = code);
        assert_eq!(codes, [1, 31, 9, 33, 1]);
    }
}
