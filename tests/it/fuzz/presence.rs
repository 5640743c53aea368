//! Everybody's chance to be in the source, from published classes and the public table: by counting the ways in which the
//! release may have come about.

use std::collections::BTreeMap;

use super::case::{Case, Public};
use super::check::Classes;
use super::quasi::Columns;
use crate::adversary::values;

/// More ways than that are not counted.
const MAX_STEPS: usize = 200_000;

/// Public people who fit the same classes.
struct Crowd {
    fits: Vec<usize>,
    people: usize,
}

/// What is wrong with the chances of public people.
pub fn faults(case: &Case, public: &Public, classes: &Classes, table: &Columns) -> Vec<String> {
    let people: Vec<Vec<values::Value>> = case
        .quasi
        .iter()
        .map(|quasi| values::column(public.table.column_by_name(&quasi.name).unwrap().as_ref()))
        .collect();
    let rows: Vec<&Vec<usize>> = classes.values().collect();
    let mut crowds: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for person in 0..public.table.num_rows() {
        let fits = |class: &usize| {
            let mut columns = case.quasi.iter().zip(&people);
            columns.all(|(quasi, values)| quasi.covers(table, rows[*class][0], &values[person]))
        };
        *crowds.entry((0..rows.len()).filter(fits).collect()).or_default() += 1;
    }
    let crowds: Vec<Crowd> = crowds.into_iter().map(|(fits, people)| Crowd { fits, people }).collect();
    let sizes: Vec<usize> = rows.iter().map(|rows| rows.len()).collect();
    let mut faults = Vec::new();
    for (class, size) in sizes.iter().enumerate() {
        let fitting: usize = crowds.iter().filter(|crowd| crowd.fits.contains(&class)).map(|crowd| crowd.people).sum();
        if fitting < public.people.max(*size) {
            faults.push(format!("presence: {fitting} people fit a class of {size} rows, people = {}", public.people));
        }
    }
    let Some(chances) = chances(&crowds, &sizes) else { return faults };
    for chance in chances {
        if chance < public.min - 1e-9 || chance > public.max + 1e-9 {
            faults.push(format!("presence: a chance of {chance}, bounds {} and {}", public.min, public.max));
        }
    }
    faults
}

/// The chance of the people of every crowd when all ways to choose the members of the classes are equally likely; none
/// when there are too many ways.
fn chances(crowds: &[Crowd], sizes: &[usize]) -> Option<Vec<f64>> {
    /// Places still to fill in each class, what was chosen of each crowd, and what was counted.
    struct Count<'a> {
        crowds: &'a [Crowd],
        chosen: Vec<usize>,
        ways: f64,
        members: Vec<f64>,
        steps: usize,
    }
    impl Count<'_> {
        /// Chooses people of a crowd for one of its classes after the other.
        fn choose(&mut self, crowd: usize, place: usize, open: &mut [usize], weight: f64) {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return;
            }
            let Some(of) = self.crowds.get(crowd) else {
                if open.iter().all(|&left| left == 0) {
                    self.ways += weight;
                    for (members, chosen) in self.members.iter_mut().zip(&self.chosen) {
                        *members += weight * *chosen as f64;
                    }
                }
                return;
            };
            let Some(&class) = of.fits.get(place) else { return self.choose(crowd + 1, 0, open, weight) };
            // The last class that somebody can be chosen for must be filled.
            let last = self.crowds[crowd + 1..].iter().all(|other| !other.fits.contains(&class));
            let free = of.people - self.chosen[crowd];
            let least = if last { open[class] } else { 0 };
            let mut ways = 1.0;
            for number in 0..=open[class].min(free) {
                if number > 0 {
                    ways *= (free - number + 1) as f64 / number as f64;
                }
                if number < least {
                    continue;
                }
                self.chosen[crowd] += number;
                open[class] -= number;
                self.choose(crowd, place + 1, open, weight * ways);
                open[class] += number;
                self.chosen[crowd] -= number;
            }
        }
    }
    let mut count =
        Count { crowds, chosen: vec![0; crowds.len()], ways: 0.0, members: vec![0.0; crowds.len()], steps: 0 };
    count.choose(0, 0, &mut sizes.to_vec(), 1.0);
    let chance = |(members, crowd): (&f64, &Crowd)| members / count.ways / crowd.people as f64;
    (count.steps <= MAX_STEPS && count.ways.is_finite() && count.ways > 0.0)
        .then(|| count.members.iter().zip(crowds).map(chance).collect())
}

#[test]
fn chances_are_those_of_all_ways_to_choose() {
    let crowd = |fits: &[usize], people: usize| Crowd { fits: fits.to_vec(), people };
    // Two of four, nobody of one, and one of two: classes that have nobody in common.
    let apart = chances(&[crowd(&[0], 4), crowd(&[], 1), crowd(&[1], 2)], &[2, 1]).unwrap();
    assert_eq!(apart, [0.5, 0.0, 0.5]);
    // a fits the first class, b both, c the second; one row each. Ways: a and b, a and c, b and c.
    let both = chances(&[crowd(&[0], 1), crowd(&[0, 1], 1), crowd(&[1], 1)], &[1, 1]).unwrap();
    assert!(both.iter().all(|chance| (chance - 2.0 / 3.0).abs() < 1e-12), "{both:?}");
}
