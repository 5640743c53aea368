//! Classes counted in people, when a person may have several rows.
//!
//! The published files need not say whose a row is, so people are counted where rows still have an owner: in the rows
//! of a cell as they are about to be published, by what they publish, not by how they were grouped. A [`People`] also
//! keeps a digest of the class of every row it has counted. It is a sum, so it does not depend on order, and whoever
//! reads the files back can make it again: the same digest means that the files hold the very classes that were
//! counted. A class that reaches over several cells is counted in each of them, which can only make it look smaller.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Classes;
use crate::model::wire;

/// Two independent hashes of the published values that make up the class of a row.
pub type ClassHash = (u64, u64);

/// Sizes of classes in people, and what the classes were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    classes: Classes,
    digest: Digest,
}

impl People {
    /// Counts the people of some rows: the class of every row, and who it belongs to.
    pub fn from_rows(rows: impl Iterator<Item = (ClassHash, u64)>) -> Self {
        let mut people = Self::default();
        let mut of_class: HashMap<ClassHash, Vec<u64>> = HashMap::new();
        for (class, person) in rows {
            people.digest.add_row(class);
            of_class.entry(class).or_default().push(person);
        }
        for mut persons in of_class.into_values() {
            persons.sort_unstable();
            persons.dedup();
            people.classes.add_classes(persons.len() as u64, 1);
        }
        people
    }

    /// Adds the classes of another cell.
    pub fn merge(&mut self, other: &Self) {
        self.classes.merge(&other.classes);
        self.digest.merge(other.digest);
    }

    /// Sizes of the classes in people.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// What the classes were.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// A sum over rows that distinguishes multisets of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(#[serde(with = "wire::halves")] u128);

impl Digest {
    /// Adds a row of a class.
    pub fn add_row(&mut self, (a, b): ClassHash) {
        self.0 = self.0.wrapping_add(u128::from(a) << 64 | u128::from(b));
    }

    /// Adds the rows of another digest.
    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_person_are_one_person() {
        let rows = [(1, 7), (1, 7), (1, 8), (2, 7), (2, 7)].map(|(class, person)| ((class, class), person));
        let people = People::from_rows(rows.into_iter());
        assert_eq!(people.classes().histogram().collect::<Vec<_>>(), [(1, 1), (2, 1)]);
        let (mut left, right) =
            (People::from_rows(rows[3..].iter().copied()), People::from_rows(rows[..3].iter().copied()));
        left.merge(&right);
        assert_eq!(left, people);
        assert_ne!(left.digest(), right.digest());
        assert_eq!(Digest::default().to_string().len(), 32);
    }
}
