//! The reference: try every subset of the public rows (Toth, algorithm 5, Getδ).
//!
//! A *world* is a set of as many public rows as were published that shows the published counts in every column. All
//! worlds are equally likely, so the chance of a person is the share of worlds that holds them. The number of subsets
//! is exponential: this is for buckets of a dozen rows, and to hold [`count`](super::count) against.

use super::{Bucket, Fraction};

/// Number of worlds, and the chance of every public row; `None` if no world fits, so that the release cannot come from
/// these people.
pub fn enumerate_worlds(bucket: &Bucket) -> Option<(u64, Vec<Fraction>)> {
    let rows: Vec<&[u32]> = bucket.class_of.iter().map(|&class| bucket.classes[class as usize].0.as_slice()).collect();
    let mut search = Search { bucket, rows: &rows, chosen: Vec::new(), worlds: 0, holding: vec![0; rows.len()] };
    search.choose_rows(0);
    let Search { worlds, holding, .. } = search;
    (worlds > 0).then(|| (worlds, holding.into_iter().map(|part| Fraction::from((part, worlds))).collect()))
}

struct Search<'a> {
    bucket: &'a Bucket,
    rows: &'a [&'a [u32]],
    chosen: Vec<usize>,
    worlds: u64,
    holding: Vec<u64>,
}

impl Search<'_> {
    fn choose_rows(&mut self, from: usize) {
        if self.chosen.len() == self.bucket.size {
            if self.fits_counts() {
                self.worlds += 1;
                self.chosen.iter().for_each(|&row| self.holding[row] += 1);
            }
            return;
        }
        for row in from..self.rows.len() {
            self.chosen.push(row);
            self.choose_rows(row + 1);
            self.chosen.pop();
        }
    }

    fn fits_counts(&self) -> bool {
        (0..self.bucket.published.len()).all(|column| {
            let count = |value: u32| self.chosen.iter().filter(|&&row| self.rows[row][column] == value).count() as u64;
            self.bucket.published[column].iter().all(|(&value, &need)| count(value) == need)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::fixtures::{self, shares};

    #[test]
    fn toth_4_1_1_sara_is_in_t2_and_ada_is_not() {
        let (public, private) = fixtures::p2_t2();
        let first = Bucket::new(&public[..3], &private[..2]);
        // Julie, Ada, Sara.
        assert_eq!(enumerate_worlds(&first), Some((1, shares(&[(1, 1), (0, 1), (1, 1)]))));
        let second = Bucket::new(&public[3..], &private[2..]);
        // James, Mary, Barbara.
        assert_eq!(enumerate_worlds(&second), Some((1, shares(&[(1, 1), (0, 1), (1, 1)]))));
    }

    #[test]
    fn toth_fig_3_3_buckets_by_age() {
        let (public, private) = fixtures::p1_t1();
        let of_age = |rows: &[[u32; 2]], age| rows.iter().copied().filter(|row| row[1] == age).collect::<Vec<_>>();
        let young = Bucket::new(&of_age(&public, 25), &of_age(&private, 25));
        let two_thirds = [(2, 3); 3];
        // Elizabeth, Clara, Julie, Taylor, Ashley, Amanda.
        let expected = shares(&[&two_thirds[..], &[(1, 1); 3]].concat());
        assert_eq!(enumerate_worlds(&young), Some((3, expected)));
        let old = Bucket::new(&of_age(&public, 27), &of_age(&private, 27));
        // Ada, Sara, Bob, Jesper.
        assert_eq!(enumerate_worlds(&old), Some((1, shares(&[(1, 1), (1, 1), (1, 1), (0, 1)]))));
    }

    #[test]
    fn toth_p1_as_one_bucket_by_lattice_node() {
        let (public, private) = fixtures::p1_t1();
        let at = |zip: u32, age: u32| {
            let recode = |rows: &[[u32; 2]]| rows.iter().map(|row| [row[0] / zip, row[1] / age]).collect::<Vec<_>>();
            enumerate_worlds(&Bucket::new(&recode(&public), &recode(&private))).unwrap()
        };
        // Elizabeth, Clara, Julie, Ada, Sara, Bob, Taylor, Ashley, Amanda, Jesper.
        let (worlds, found) = at(1, 1);
        assert_eq!(worlds, 5);
        let four_fifths = (4, 5);
        let expected =
            [four_fifths, four_fifths, four_fifths, (3, 5), (1, 1), (1, 1), four_fifths, four_fifths, (1, 1), (2, 5)];
        assert_eq!(found, shares(&expected));
        let (worlds, found) = at(1, 100);
        assert_eq!(worlds, 12);
        assert_eq!(
            (&found[0], &found[4], &found[6], &found[8]),
            (&(3, 4).into(), &(1, 1).into(), &(2, 3).into(), &(1, 1).into())
        );
        let (worlds, found) = at(10, 1);
        assert_eq!(worlds, 24);
        assert_eq!((&found[0], &found[3]), (&(5, 6).into(), &(3, 4).into()));
        assert_eq!(at(10, 100), (45, shares(&[(4, 5); 10])));
    }

    #[test]
    fn toth_bucketisation_keeps_the_quasi_identifiers_together() {
        let (public, private) = fixtures::p1_t1();
        let (worlds, found) = enumerate_worlds(&Bucket::sliced(&public, &private, &[vec![0, 1]])).unwrap();
        assert_eq!(worlds, 3);
        let sure = (1, 1);
        assert_eq!(found, shares(&[(2, 3), (2, 3), (2, 3), sure, sure, sure, sure, sure, sure, (0, 1)]));
    }

    #[test]
    fn toth_fig_5_5_xor() {
        let public = [[0, 0], [0, 1], [1, 0], [1, 1]];
        let found = enumerate_worlds(&Bucket::new(&public, &[[0, 1], [1, 0]]));
        assert_eq!(found, Some((2, shares(&[(1, 2); 4]))));
    }

    #[test]
    fn a_release_of_other_people_fits_no_world() {
        assert_eq!(enumerate_worlds(&Bucket::new(&[[1, 1], [2, 2]], &[[3, 3]])), None);
    }
}
