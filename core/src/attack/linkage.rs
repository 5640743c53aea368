//! Linkage: the chance to pick the right record of a person by their quasi-identifiers.
//!
//! The *prosecutor* knows that the person is in the release: 1 / rows of their class. The *journalist* does not, and
//! must find the person among all public people who fit the class: 1 / people. The *marketer* wants as many right
//! links as possible and does not care which: the mean over all published rows.

use serde::Serialize;

/// Risks of a release against a public table, class by class. Linkages of parts add up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Linkage {
    /// Published rows.
    pub rows: u64,
    /// Classes of equal published quasi-identifiers.
    pub classes: u64,
    /// Rows of the smallest class.
    pub smallest: Option<u64>,
    /// Public people who fit the class with the fewest: the release is k-map anonymous for every k up to it.
    pub k_map: Option<u64>,
    /// Sum over rows of 1 / people who fit.
    right_links: f64,
    /// Published rows that a single public person fits.
    pub unique: u64,
}

impl Linkage {
    /// Adds a class by its numbers of published rows and of public people who fit it.
    pub fn add_class(&mut self, rows: u64, people: u64) {
        if rows == 0 {
            return;
        }
        self.rows += rows;
        self.classes += 1;
        self.smallest = Some(self.smallest.map_or(rows, |least| least.min(rows)));
        self.k_map = Some(self.k_map.map_or(people, |least| least.min(people)));
        self.right_links += rows as f64 / people.max(1) as f64;
        self.unique += if people <= 1 { rows } else { 0 };
    }

    /// Adds the classes of another part.
    pub fn merge(&mut self, other: &Self) {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.rows += other.rows;
        self.classes += other.classes;
        self.smallest = least(self.smallest, other.smallest);
        self.k_map = least(self.k_map, other.k_map);
        self.right_links += other.right_links;
        self.unique += other.unique;
    }

    /// The most exposed person's risk from a prosecutor.
    pub fn prosecutor_risk(&self) -> f64 {
        self.smallest.map_or(0.0, |rows| 1.0 / rows as f64)
    }

    /// The mean risk from a prosecutor.
    pub fn prosecutor_mean(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.classes as f64 / self.rows as f64 }
    }

    /// The most exposed person's risk from a journalist.
    pub fn journalist_risk(&self) -> f64 {
        self.k_map.map_or(0.0, |people| 1.0 / people.max(1) as f64)
    }

    /// The share of correct links that a marketer can expect.
    pub fn marketer_risk(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.right_links / self.rows as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risks_of_a_small_release() {
        let mut linkage = Linkage::default();
        linkage.add_class(2, 10);
        linkage.add_class(3, 4);
        linkage.add_class(0, 7);
        assert_eq!((linkage.prosecutor_risk(), linkage.journalist_risk(), linkage.k_map), (0.5, 0.25, Some(4)));
        assert!((linkage.prosecutor_mean() - 0.4).abs() < 1e-12);
        assert!((linkage.marketer_risk() - (2.0 / 10.0 + 3.0 / 4.0) / 5.0).abs() < 1e-12);
        let mut other = Linkage::default();
        other.add_class(1, 1);
        linkage.merge(&other);
        assert_eq!((linkage.smallest, linkage.k_map, linkage.unique, linkage.classes), (Some(1), Some(1), 1, 3));
    }
}
