//! The search for high prices.
//!
//! Prices go up where little stands against it and down where much does: a box that asks for nearly all it allows weighs
//! on its dearest rows, the more the nearer it is, and a row that many such boxes weigh on yields to those that few
//! do (multiplicative weights for a packing program). After every step, prices are made fair, and the best fair ones are
//! kept.

use super::boxes::Boxes;
use super::{Cuts, Points};
use crate::grouping::cancel::checkpoint;
use crate::model::Table;

/// Boxes that ask for less than this share of what they allow weigh nothing.
const NEAR: f64 = 0.9;

/// How sharply the weight of a box falls with what it has left: per unit, in the first and in the last round.
const SHARPNESS: (f64, f64) = (30.0, 200.0);

/// How far prices move in a round: in the first and in the last.
const STEP: (f64, f64) = (0.25, 0.02);

/// Prices are lowered by this share in the end, so that rounding cannot make them unfair.
const MARGIN: f64 = 1e-9;

pub(super) struct Search<'a> {
    points: &'a Points,
    k: usize,
    boxes: Boxes<'a>,
}

impl<'a> Search<'a> {
    pub(super) fn new(table: &'a Table, points: &'a Points, k: usize) -> Self {
        Self { points, k, boxes: Boxes::new(table, points, k) }
    }

    /// Returns the best fair prices of all rounds, and where ranges are cut.
    pub(super) fn run_rounds(mut self, first: Vec<f64>, rounds: usize) -> (Vec<f64>, Cuts) {
        let mut prices = first;
        let mut weights = self.make_fair(&mut prices, SHARPNESS.0);
        let mut best = prices.clone();
        for round in 0..rounds {
            checkpoint();
            let progress = round as f64 / rounds.max(2) as f64;
            let step = STEP.0 * (STEP.1 / STEP.0).powf(progress);
            self.step_prices(&mut prices, &weights, step);
            weights = self.make_fair(&mut prices, SHARPNESS.0 + (SHARPNESS.1 - SHARPNESS.0) * progress);
            if self.total_price(&prices) > self.total_price(&best) {
                best.clone_from(&prices);
            }
        }
        // Of prices that were fair when ranges were cut more finely it is not known whether they still are.
        self.make_fair(&mut best, SHARPNESS.1);
        best.iter_mut().for_each(|price| *price *= 1.0 - MARGIN);
        (best, self.boxes.cuts())
    }

    fn total_price(&self, prices: &[f64]) -> f64 {
        prices.iter().zip(&self.points.counts).map(|(price, &count)| price * f64::from(count)).sum()
    }

    /// Moves prices from rows on which much weighs to those on which little does.
    fn step_prices(&self, prices: &mut [f64], weights: &[f64], step: f64) {
        let weighed = prices.iter().zip(weights).zip(&self.points.counts);
        let mean = weighed.map(|((price, weight), &count)| price * weight * f64::from(count)).sum::<f64>()
            / self.total_price(prices).max(f64::MIN_POSITIVE);
        for (price, weight) in prices.iter_mut().zip(weights) {
            let burden = weight / mean.max(f64::MIN_POSITIVE);
            *price = (*price * (step * (1.0 - burden).max(-1.0)).exp() * (1.0 + step / 4.0)).min(1.0);
        }
    }

    /// Scales every price by the worst box around it: then every box is kept, since each of its rows came down by at least
    /// what it asks for. Returns what weighs on every row.
    fn make_fair(&mut self, prices: &mut [f64], sharpness: f64) -> Vec<f64> {
        loop {
            let (mut scales, mut weights) = (vec![1.0_f64; prices.len()], vec![0.0; prices.len()]);
            if self.weigh_rows(prices, sharpness, &mut scales, &mut weights) {
                prices.iter_mut().zip(&scales).for_each(|(price, scale)| *price *= scale);
                return weights;
            }
        }
    }

    /// How far every price must come down, and what weighs on it. False when this took too long.
    fn weigh_rows(&mut self, prices: &[f64], sharpness: f64, scales: &mut [f64], weights: &mut [f64]) -> bool {
        let k = self.k as f64;
        self.boxes.walk_boxes(prices, NEAR, &mut |found| {
            let allowed = k * found.loss;
            let scale = (allowed / found.dearest).min(1.0);
            let near = found.dearest / allowed.max(f64::MIN_POSITIVE);
            let weight = (sharpness * (near.min(1.2) - 1.0)).exp() / allowed.max(f64::MIN_POSITIVE);
            for &point in found.points {
                let point = point as usize;
                scales[point] = scales[point].min(scale);
                if prices[point] >= found.least && allowed > 0.0 {
                    weights[point] += weight;
                }
            }
        })
    }
}
