//! The worst group under a domain that is not known yet.
//!
//! The loss of a group is a weighted sum of what it covers column by column, and the weights are known when the last row
//! is. Whatever weights it will be, the worst group is none that another one exceeds in every column. So those that no
//! other exceeds are kept: the Pareto frontier, which depends on the groups alone, not on the order they come in.
//!
//! With few columns a frontier is small. With many, nearly every group is on it: then nothing is kept or reported.

use serde::{Deserialize, Serialize};

use crate::model::wire;

/// Points of a frontier beyond which it is discarded.
const MAX_POINTS: usize = 1 << 12;

/// Coordinates, without the first, beyond which no frontier is kept.
pub const MAX_FREE_COLUMNS: usize = 3;

/// The points that no other one exceeds in every coordinate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Frontier {
    points: Vec<Point>,
    given_up: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point(#[serde(with = "wire::list_of_bits")] Vec<f64>);

impl Point {
    /// Whether no coordinate of the other is larger.
    fn covers(&self, other: &[f64]) -> bool {
        self.0.iter().zip(other).all(|(mine, theirs)| mine >= theirs)
    }
}

impl Frontier {
    /// Adds a point.
    pub fn add_point(&mut self, point: &[f64]) {
        if self.given_up {
            return;
        }
        if let Some(at) = self.points.iter().position(|held| held.covers(point)) {
            // What has exceeded one point will exceed others: it is asked earlier the next time.
            self.points.swap(at, at / 2);
            return;
        }
        let point = Point(point.to_vec());
        self.points.retain(|held| !point.covers(&held.0));
        self.points.push(point);
        if self.points.len() > MAX_POINTS {
            self.give_up();
        }
    }

    /// Keeps nothing from now on.
    pub fn give_up(&mut self) {
        self.points = Vec::new();
        self.given_up = true;
    }

    /// Adds the points of another frontier.
    pub fn merge(&mut self, other: &Self) {
        if other.given_up {
            self.give_up();
        }
        other.points.iter().for_each(|point| self.add_point(&point.0));
    }

    /// The largest sum of coordinates times weights; none without points, or if it was discarded.
    pub fn largest_weighted_sum(&self, weights: &[f64]) -> Option<f64> {
        let sum = |point: &Point| point.0.iter().zip(weights).map(|(part, weight)| part * weight).sum::<f64>();
        self.points.iter().map(sum).max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_exceeded_everywhere_is_not_kept() {
        let mut frontier = Frontier::default();
        assert_eq!(frontier.largest_weighted_sum(&[1.0, 1.0]), None);
        [[1.0, 1.0], [2.0, 0.5], [0.5, 0.5], [2.0, 0.5]].iter().for_each(|point| frontier.add_point(point));
        assert_eq!(frontier.points.len(), 2);
        assert_eq!(
            (frontier.largest_weighted_sum(&[1.0, 0.0]), frontier.largest_weighted_sum(&[0.1, 1.0])),
            (Some(2.0), Some(1.1))
        );
        frontier.merge(&Frontier { points: Vec::new(), given_up: true });
        assert_eq!(frontier.largest_weighted_sum(&[1.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn the_largest_of_all_is_on_the_frontier(
            points in prop::collection::vec(prop::collection::vec(-5..9_i32, 3), 1..60),
            weights in prop::collection::vec(0..5_i32, 3),
            cut in 0..60_usize,
        ) {
            let points: Vec<Vec<f64>> = points.into_iter().map(|point| point.into_iter().map(f64::from).collect()).collect();
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let of = |points: &[Vec<f64>]| {
                let mut frontier = Frontier::default();
                points.iter().for_each(|point| frontier.add_point(point));
                frontier
            };
            let (head, tail) = points.split_at(cut.min(points.len()));
            let mut merged = of(tail);
            merged.merge(&of(head));
            let sum = |point: &Vec<f64>| point.iter().zip(&weights).map(|(a, b)| a * b).sum::<f64>();
            let expected = points.iter().map(sum).max_by(f64::total_cmp);
            prop_assert_eq!(merged.largest_weighted_sum(&weights), expected);
            let mut sorted = [merged.points, of(&points).points];
            sorted.iter_mut().for_each(|points| points.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap()));
            prop_assert_eq!(&sorted[0], &sorted[1]);
        }
    }
}
