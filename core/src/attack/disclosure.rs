//! What is learnt of a sensitive value without knowing which record is whose: everybody of a class is known to have
//! one of its values.
//!
//! *Homogeneity*: the commonest value of the class is right with the share of rows that hold it; with a single value,
//! it is certain. *Range attack*: the same for the sensitive range around a value (range diversity, Loukides).

use serde::Serialize;

/// Confidence levels that people are counted at: certain, and at least these shares.
pub const LEVELS: [f64; 4] = [0.5, 0.75, 0.9, 1.0];

/// How surely the sensitive values of people are known. Disclosures of parts add up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Disclosure {
    /// Published rows.
    pub rows: u64,
    /// Rows of classes whose commonest value is held by at least each share of [`LEVELS`].
    pub value: [u64; LEVELS.len()],
    /// Rows of classes in which some sensitive range holds at least each share.
    pub range: [u64; LEVELS.len()],
    /// The surest guess of a value over all classes.
    pub worst_value: f64,
    /// The surest guess of a range over all classes.
    pub worst_range: f64,
}

impl Disclosure {
    /// Adds a class by how many rows hold each of its values, and how surely a range is known in it; without ranges
    /// every value is its own.
    pub fn add_class(&mut self, counts: impl IntoIterator<Item = u64>, range: Option<f64>) {
        let (rows, most) = counts.into_iter().fold((0, 0), |(rows, most), count| (rows + count, count.max(most)));
        if rows == 0 {
            return;
        }
        let value = most as f64 / rows as f64;
        let range = range.unwrap_or(value).max(value);
        self.rows += rows;
        for (level, (by_value, by_range)) in LEVELS.iter().zip(self.value.iter_mut().zip(&mut self.range)) {
            *by_value += if value >= *level - 1e-12 { rows } else { 0 };
            *by_range += if range >= *level - 1e-12 { rows } else { 0 };
        }
        self.worst_value = self.worst_value.max(value);
        self.worst_range = self.worst_range.max(range);
    }

    /// Adds the classes of another part.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.value.iter_mut().zip(other.value).for_each(|(mine, theirs)| *mine += theirs);
        self.range.iter_mut().zip(other.range).for_each(|(mine, theirs)| *mine += theirs);
        self.worst_value = self.worst_value.max(other.worst_value);
        self.worst_range = self.worst_range.max(other.worst_range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_certain_and_ranges_are_no_less_sure() {
        let mut disclosure = Disclosure::default();
        disclosure.add_class([4], None);
        disclosure.add_class([1, 2, 1], Some(0.75));
        disclosure.add_class([], None);
        assert_eq!(disclosure.rows, 8);
        assert_eq!(disclosure.value, [8, 4, 4, 4]);
        assert_eq!(disclosure.range, [8, 8, 4, 4]);
        assert_eq!((disclosure.worst_value, disclosure.worst_range), (1.0, 1.0));
    }
}
