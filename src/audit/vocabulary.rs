//! The texts of a public table in an order in which those that are published together are neighbours: what a published
//! label covers is a stretch of them.

use datafusion::common::HashMap;

use super::cover::set_covers;
use crate::hierarchy::{Hierarchy, Mask};

/// Texts by place.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// What texts are sorted by, by place.
    keys: Vec<String>,
    words: Vec<String>,
    places: HashMap<String, u32>,
    /// Texts that read like several members of a set.
    joined: Vec<u32>,
    mask: Option<Mask>,
}

/// Stands between the members of a published set.
const BETWEEN: &str = ", ";

impl Vocabulary {
    /// Orders different texts by how their hierarchy generalises them.
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>, hierarchy: Option<&Hierarchy>) -> Self {
        let mask = match hierarchy {
            Some(Hierarchy::Mask(mask)) => Some(mask.clone()),
            _ => None,
        };
        let key = |word: &str| mask.as_ref().map_or(word.to_owned(), |mask| mask.order_key(word).into_owned());
        let mut keyed: Vec<(String, String)> = texts.map(|word| (key(word), word.to_owned())).collect();
        keyed.sort_unstable();
        let (keys, words): (Vec<String>, Vec<String>) = keyed.into_iter().unzip();
        let places = words.iter().cloned().zip(0..).collect();
        let joined = (0..words.len() as u32).filter(|&place| words[place as usize].contains(BETWEEN)).collect();
        Self { keys, words, places, joined, mask }
    }

    /// The place of a text.
    pub(super) fn place(&self, word: &str) -> Option<u32> {
        self.places.get(word).copied()
    }

    /// The first and the last text that a label covers, and whether it covers all between.
    pub(super) fn reach(&self, label: &str) -> Option<(u32, u32, bool)> {
        let mut covered: Vec<u32> = match &self.mask {
            Some(mask) => {
                self.beginning(mask, label).filter(|&at| mask.covers(label, &self.words[at as usize])).collect()
            }
            None => {
                let members = label.strip_prefix('{').and_then(|label| label.strip_suffix('}')).into_iter();
                let members = members.flat_map(|inside| inside.split(BETWEEN)).chain([label]);
                let listed = members.filter_map(|word| self.place(word)).chain(self.joined.iter().copied());
                listed.filter(|&at| set_covers(label, &self.words[at as usize])).collect()
            }
        };
        covered.sort_unstable();
        covered.dedup();
        let (first, last) = (*covered.first()?, *covered.last()?);
        Some((first, last, covered.len() as u32 == last - first + 1))
    }

    /// Texts that begin (or end, where that is kept) as a label does.
    fn beginning(&self, mask: &Mask, label: &str) -> std::ops::Range<u32> {
        let kept = mask.kept_of(label).map_or(String::new(), |(kept, _)| kept);
        let first = self.keys.partition_point(|key| *key < kept);
        let after = first + self.keys[first..].partition_point(|key| key.starts_with(&kept));
        first as u32..after as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hierarchy::End;

    proptest! {
        /// Against asking the label for every text.
        #[test]
        fn labels_reach_what_they_cover(
            texts in prop::collection::btree_set("[ab*]{1,4}|[ab], [abc]|\\{a, b\\}", 1..30),
            label in "[ab]{0,3}\\*{0,3}|\\*{0,3}[ab]{1,3}|\\{[ab]{1,2}, [abc]{1,2}(, [ab*]{1,3})?\\}|a, b",
            hierarchy in prop_oneof![Just(None), Just(Some(End::Left)), Just(Some(End::Right))],
        ) {
            let mask = hierarchy.map(|end| Mask::new(end, '*', None).unwrap());
            let hierarchy = mask.clone().map(Hierarchy::Mask);
            let vocabulary = Vocabulary::new(texts.iter().map(String::as_str), hierarchy.as_ref());
            let covers = |text: &&String| match &mask {
                Some(mask) => mask.covers(&label, text),
                None => set_covers(&label, text),
            };
            let mut places: Vec<u32> = texts.iter().filter(covers).filter_map(|text| vocabulary.place(text)).collect();
            places.sort_unstable();
            let whole = |first: u32, last: u32| places.len() as u32 == last - first + 1;
            // The top is not asked for here.
            prop_assume!(label != crate::hierarchy::TOP);
            let ends = places.first().zip(places.last());
            prop_assert_eq!(vocabulary.reach(&label), ends.map(|(&first, &last)| (first, last, whole(first, last))));
        }
    }

    #[test]
    fn a_set_with_a_gap_does_not_cover_all_between() {
        let vocabulary = Vocabulary::new(["c", "a", "b"].into_iter(), None);
        assert_eq!(vocabulary.reach("{a, b}"), Some((0, 1, true)));
        assert_eq!(vocabulary.reach("{a, c}"), Some((0, 2, false)));
        assert_eq!(vocabulary.reach("d"), None);
    }
}
