//! Masks for codes such as post codes: characters disappear from one end.
//!
//! A published value keeps the first (or last) characters and has one mask character for each that is hidden, up to
//! the longest value it covers: `NW1*` covers `NW10`, `NW1A` and, being shorter, `NW1`. A value shorter than what a
//! level keeps is kept whole on that level.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{HierarchyError, MAX_LEVELS, TOP};
use crate::model::{Code, Tree};

/// An end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The beginning.
    Left,
    /// The end.
    Right,
}

/// Which characters are hidden, level by level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    hides: End,
    fill: char,
    /// Characters that each level keeps, descending; none: one fewer on every level.
    keep: Option<Vec<usize>>,
}

impl Mask {
    /// Creates a mask that hides characters from one end: down to the listed lengths, or one at a time.
    pub fn new(hides: End, fill: char, keep: Option<&[usize]>) -> Result<Self, HierarchyError> {
        let wrong = |message: &str| Err(HierarchyError::Levels(message.to_owned()));
        if let Some(keep) = keep {
            if keep.is_empty() || keep.contains(&0) {
                return wrong("keep: each level must keep at least one character; the top keeps none anyway");
            }
            if keep.len() > MAX_LEVELS {
                return Err(HierarchyError::TooManyLevels(keep.len()));
            }
            if keep.windows(2).any(|pair| pair[0] <= pair[1]) {
                return wrong("keep: lengths must descend, because each level hides more");
            }
        }
        if fill.is_alphanumeric() || fill.is_control() {
            return wrong("char: must not be a letter, a digit or a control character");
        }
        Ok(Self { hides, fill, keep: keep.map(<[usize]>::to_vec) })
    }

    /// Returns the end that is hidden first.
    pub fn hides(&self) -> End {
        self.hides
    }

    /// Returns the character that replaces hidden ones.
    pub fn fill(&self) -> char {
        self.fill
    }

    /// What to sort values by so that those with a masked form in common are neighbours.
    pub fn order_key<'a>(&self, value: &'a str) -> Cow<'a, str> {
        match self.hides {
            End::Right => Cow::Borrowed(value),
            End::Left => Cow::Owned(value.chars().rev().collect()),
        }
    }

    /// Characters from the kept end on.
    fn chars_from_kept_end<'a>(&self, value: &'a str) -> Box<dyn Iterator<Item = char> + 'a> {
        match self.hides {
            End::Right => Box::new(value.chars()),
            End::Left => Box::new(value.chars().rev()),
        }
    }

    /// Characters that two values have in common from the kept end on.
    fn common_length(&self, a: &str, b: &str) -> usize {
        fn count_alike(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
            a.zip(b).take_while(|(a, b)| a == b).count()
        }
        match self.hides {
            End::Right => count_alike(a.chars(), b.chars()),
            End::Left => count_alike(a.chars().rev(), b.chars().rev()),
        }
    }

    /// The most characters that a level keeps when no more than `common` may be kept; 0 is the top.
    fn kept_length(&self, common: usize) -> usize {
        match &self.keep {
            None => common,
            Some(keep) => keep.iter().copied().find(|&length| length <= common).unwrap_or(0),
        }
    }

    /// The least masked form that covers all values: the value itself when there is only one, `*` when they have
    /// nothing in common that a level keeps.
    pub fn cover_values<'a>(&self, values: impl IntoIterator<Item = &'a str>) -> String {
        let mut values = values.into_iter();
        let Some(first) = values.next() else { return TOP.to_owned() };
        let mut longest = first.chars().count();
        let mut common = longest;
        let mut single = true;
        for value in values.filter(|value| *value != first) {
            single = false;
            longest = longest.max(value.chars().count());
            common = common.min(self.common_length(first, value));
        }
        if single {
            return first.to_owned();
        }
        match self.kept_length(common) {
            0 => TOP.to_owned(),
            kept => {
                let hidden = std::iter::repeat_n(self.fill, longest - kept);
                let label: String = self.chars_from_kept_end(first).take(kept).chain(hidden).collect();
                self.order_key(&label).into_owned()
            }
        }
    }

    /// Whether a published form covers a value.
    pub fn covers(&self, label: &str, value: &str) -> bool {
        if label == TOP || label == value {
            return true;
        }
        let kept = match self.hides {
            End::Right => label.trim_end_matches(self.fill),
            End::Left => label.trim_start_matches(self.fill),
        };
        let starts = match self.hides {
            End::Right => value.starts_with(kept),
            End::Left => value.ends_with(kept),
        };
        starts && value.chars().count() <= label.chars().count() && kept.len() < label.len()
    }

    /// What a published form keeps, from the kept end on, and whether it hides nothing; `None` for the top.
    pub fn kept_of(&self, label: &str) -> Option<(String, bool)> {
        if label == TOP {
            return None;
        }
        let label = self.order_key(label);
        let kept = label.trim_end_matches(self.fill);
        Some((kept.to_owned(), kept.len() == label.len()))
    }

    /// The tree over the distinct values of a column, sorted by [`order_key`](Self::order_key): code = position; one
    /// more code for null when asked for. Loss is (values below - 1) / (all values - 1).
    pub fn to_tree(&self, values: &[impl AsRef<str>], null: bool) -> Tree {
        let domain = (values.len().max(2) - 1) as f64;
        let span = |lo: usize, hi: usize| (lo as Code, hi as Code, (hi - lo) as f64 / domain);
        let mut spans = Vec::new();
        if values.len() > 1 {
            spans.push(span(0, values.len() - 1));
        }
        // A stack of the prefixes that are still open: how much each keeps, and where it began.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut kept_by = HashMap::new();
        for at in 1..=values.len() {
            let common = match values.get(at) {
                Some(value) => self.common_length(values[at - 1].as_ref(), value.as_ref()),
                None => 0,
            };
            let mut begin = at - 1;
            while let Some(&(kept, since)) = open.last() {
                if kept <= common {
                    break;
                }
                open.pop();
                begin = since;
                spans.push(span(since, at - 1));
                kept_by.entry((since as Code, (at - 1) as Code)).or_insert(kept);
            }
            // Only the longest form kept in common opens here: shorter ones open where they are first needed, and a
            // shorter form that holds the same values would be the same node.
            let kept = self.kept_length(common);
            if kept > 0 && open.last().is_none_or(|&(length, _)| length < kept) {
                open.push((kept, begin));
            }
        }
        let longest = values.iter().map(|value| value.as_ref().chars().count()).max().unwrap_or(1);
        let level = |kept: usize| match &self.keep {
            None => longest.saturating_sub(kept),
            Some(keep) => 1 + keep.iter().position(|&length| length <= kept).unwrap_or(keep.len()),
        };
        let tree = Tree::new(values.len().max(1) + usize::from(null), spans);
        tree.with_steps(|lo, hi| level(kept_by.get(&(lo, hi)).copied().unwrap_or(0)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right() -> Mask {
        Mask::new(End::Right, '*', None).unwrap()
    }

    #[test]
    fn one_character_at_a_time() {
        assert_eq!(right().cover_values(["13053", "13053"]), "13053");
        assert_eq!(right().cover_values(["13053", "13058"]), "1305*");
        assert_eq!(right().cover_values(["13053", "13068", "13053"]), "130**");
        assert_eq!(right().cover_values(["13053", "14850"]), "1****");
        assert_eq!(right().cover_values(["13053", "94850"]), "*");
        assert_eq!(right().cover_values([]), "*");
    }

    #[test]
    fn listed_lengths() {
        let mask = Mask::new(End::Right, '#', Some(&[3, 1])).unwrap();
        assert_eq!(mask.cover_values(["13053", "13058"]), "130##");
        assert_eq!(mask.cover_values(["13053", "13958"]), "1####");
        assert_eq!(mask.cover_values(["13053", "23053"]), "*");
    }

    #[test]
    fn from_the_left() {
        let mask = Mask::new(End::Left, '*', None).unwrap();
        assert_eq!(mask.cover_values(["AB-77", "AC-77"]), "**-77");
        assert_eq!(mask.cover_values(["AB-77", "AB-78"]), "*");
        assert_eq!(mask.cover_values(["X77", "Y977"]), "**77");
        assert!(mask.covers("**-77", "AB-77") && !mask.covers("**-77", "AB-78"));
        assert_eq!(mask.order_key("abc"), "cba");
    }

    #[test]
    fn unequal_lengths_and_other_alphabets() {
        assert_eq!(right().cover_values(["NW1", "NW10"]), "NW1*");
        assert_eq!(right().cover_values(["12", "12345"]), "12***");
        assert_eq!(right().cover_values(["żółw", "żółć"]), "żół*");
        let mask = Mask::new(End::Right, '*', Some(&[3])).unwrap();
        assert_eq!(mask.cover_values(["12", "1234"]), "*", "a shorter value is kept whole, so nothing is in common");
    }

    #[test]
    fn covers_what_it_was_made_from_and_nothing_else() {
        assert!(right().covers("130**", "13053") && right().covers("130**", "130"));
        assert!(!right().covers("130**", "13153") && !right().covers("130**", "130531"));
        assert!(right().covers("13053", "13053") && !right().covers("13053", "13054"));
        assert!(!right().covers("13053", "13053 "));
        assert!(right().covers("*", "anything"));
    }

    #[test]
    fn nodes_are_intervals_of_the_mask_order() {
        let values = ["13053", "13058", "13068", "148", "14850", "9"];
        let tree = right().to_tree(&values, true);
        assert_eq!(tree.codes(), 7);
        assert_eq!(tree.loss(0, 1), 1.0 / 5.0);
        assert_eq!(tree.loss(0, 2), 2.0 / 5.0);
        assert_eq!(tree.loss(3, 4), 1.0 / 5.0);
        assert_eq!(tree.loss(2, 3), 4.0 / 5.0);
        assert_eq!(tree.loss(4, 5), 1.0);
        assert_eq!(tree.loss(5, 6), 1.0);
    }

    #[test]
    fn tree_agrees_with_the_forms() {
        let mut random = fastrand::Rng::with_seed(7);
        for keep in [None, Some(vec![3, 2]), Some(vec![1])] {
            for hides in [End::Left, End::Right] {
                let mask = Mask::new(hides, '*', keep.as_deref()).unwrap();
                let mut values: Vec<String> = (0..60)
                    .map(|_| (0..random.usize(1..6)).map(|_| random.choice(['a', 'b', 'c']).unwrap_or('a')).collect())
                    .collect();
                values.sort_by_key(|value| mask.order_key(value).into_owned());
                values.dedup();
                let tree = mask.to_tree(&values, false);
                for lo in 0..values.len() {
                    for hi in lo + 1..values.len() {
                        let node = &tree.nodes()[tree.common_ancestor(lo as Code, hi as Code).unwrap() as usize];
                        let ends = mask.cover_values([values[lo].as_str(), &values[hi]]);
                        let all = mask.cover_values(values[lo..=hi].iter().map(String::as_str));
                        let strip = |label: &str| label.replace('*', "");
                        assert_eq!(strip(&ends), strip(&all), "the ends decide");
                        let kept = strip(&all);
                        let below = values.iter().filter(|value| match hides {
                            End::Right => value.starts_with(&kept),
                            End::Left => value.ends_with(&kept),
                        });
                        let loss = (below.count() - 1) as f64 / (values.len() - 1) as f64;
                        assert_eq!(node.loss, loss, "{lo} {hi} {ends} {all}");
                        assert!(values[lo..=hi].iter().all(|value| mask.covers(&all, value)));
                    }
                }
            }
        }
    }

    #[test]
    fn impossible_masks_are_refused() {
        let message = |mask: Result<Mask, HierarchyError>| mask.unwrap_err().to_string();
        assert_eq!(
            message(Mask::new(End::Right, '*', Some(&[2, 3]))),
            "keep: lengths must descend, because each level hides more"
        );
        assert!(message(Mask::new(End::Right, '*', Some(&[0]))).starts_with("keep: each level must keep at least one"));
        assert!(message(Mask::new(End::Right, 'x', None)).starts_with("char: must not be a letter"));
    }
}
