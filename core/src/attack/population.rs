//! How many people are unique in the whole population, estimated from a sample when there is no public table: the models
//! that ARX offers, and the rule of Dankar et al. to choose between them.
//!
//! All of them see the sample as a histogram: how many classes of equal quasi-identifiers there are of each size.
//!
//! - *Zayatz* (1991): the chance that a class of one in the sample is a class of one in the population, if population
//!   classes were as large as sample classes are.
//! - *SNB* (Chen and Keller-McNulty, 1998): population classes are shifted negative binomial; their number is
//!   Shlosser's estimate, their two parameters fit the classes of one and of two in the sample.
//! - *Pitman* (Hoshino, 2001): the sampling formula of Pitman; its parameters have the greatest likelihood.
//!
//! Our equations are those of the papers; parameters are found by bracketed search on the likelihood (Pitman) and by
//! Newton's steps with numeric derivatives (SNB), where ARX takes Newton's steps with written-out derivatives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::special::ln_gamma;

/// A sample as its classes: how many there are of each size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleClasses {
    sizes: BTreeMap<u64, u64>,
    population: u64,
}

/// Estimated number of people who are unique in the population; none where a model does not fit the sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Uniques {
    /// By Zayatz.
    pub zayatz: Option<f64>,
    /// By the shifted negative binomial model.
    pub snb: Option<f64>,
    /// By Pitman.
    pub pitman: Option<f64>,
    /// By the model that Dankar et al. choose for this sampling fraction.
    pub chosen: Option<f64>,
}

/// Sampling fraction up to which Pitman's model is chosen (Dankar et al.).
const SMALL_FRACTION: f64 = 0.1;

impl SampleClasses {
    /// A sample of `(size, classes)` from a population of the given size.
    pub fn new(sizes: impl IntoIterator<Item = (u64, u64)>, population: u64) -> Self {
        let mut all = BTreeMap::new();
        for (size, classes) in sizes.into_iter().filter(|&(size, classes)| size > 0 && classes > 0) {
            *all.entry(size).or_default() += classes;
        }
        Self { sizes: all, population }
    }

    /// All estimates.
    pub fn estimate_uniques(&self) -> Uniques {
        if self.of_size(1) == 0.0 || self.sampling_fraction() >= 1.0 {
            let found = Some(self.of_size(1));
            return Uniques { zayatz: found, snb: found, pitman: found, chosen: found };
        }
        let most = self.population as f64;
        let sane = |estimate: f64| (estimate.is_finite() && estimate > 0.0 && estimate <= most).then_some(estimate);
        let (zayatz, snb, pitman) = (sane(self.zayatz()), self.snb().and_then(sane), self.pitman().and_then(sane));
        let chosen = if self.sampling_fraction() <= SMALL_FRACTION {
            pitman.or(zayatz)
        } else {
            match (zayatz, snb) {
                (Some(zayatz), Some(snb)) => Some(zayatz.min(snb)),
                (one, other) => one.or(other),
            }
        };
        Uniques { zayatz, snb, pitman, chosen }
    }

    fn rows(&self) -> f64 {
        self.sizes.iter().map(|(&size, &classes)| (size * classes) as f64).sum()
    }

    fn classes(&self) -> f64 {
        self.sizes.values().map(|&classes| classes as f64).sum()
    }

    fn of_size(&self, size: u64) -> f64 {
        self.sizes.get(&size).map_or(0.0, |&classes| classes as f64)
    }

    fn sampling_fraction(&self) -> f64 {
        self.rows() / self.population.max(1) as f64
    }

    fn zayatz(&self) -> f64 {
        let (rows, population) = (self.rows(), self.population as f64);
        // Chance that exactly one of `size` people is among the sampled.
        let one_of = |size: f64| {
            let outside = ln_choose(population - size, rows - 1.0);
            (size.ln() + outside - ln_choose(population, rows)).exp()
        };
        let total: f64 = self.sizes.iter().map(|(&size, &classes)| classes as f64 * one_of(size as f64)).sum();
        self.of_size(1) * (self.of_size(1) * one_of(1.0) / total) / self.sampling_fraction()
    }

    /// Number of classes in the population (Shlosser).
    fn shlosser(&self) -> f64 {
        let f = self.sampling_fraction();
        let sum = |term: &dyn Fn(f64) -> f64| -> f64 {
            self.sizes.iter().map(|(&size, &classes)| classes as f64 * term(size as f64)).sum()
        };
        let first = sum(&|i| i * f * f * (1.0 - f * f).powf(i - 1.0));
        let second = sum(&|i| (1.0 - f).powf(i) * ((1.0 + f).powf(i) - 1.0));
        let third = sum(&|i| (1.0 - f).powf(i));
        let fourth = sum(&|i| i * f * (1.0 - f).powf(i - 1.0));
        self.classes() + self.of_size(1) * (first / second) * (third / fourth).powi(2)
    }

    fn snb(&self) -> Option<f64> {
        let (k, f) = (self.shlosser(), self.sampling_fraction());
        let wanted = [self.of_size(1), self.of_size(2)];
        let miss = |[a, b]: [f64; 2]| {
            let found = snb_expected(k, f, a, b);
            [found[0] - wanted[0], found[1] - wanted[1]]
        };
        // Newton's steps from several starts, halved while they leave the domain or do not come nearer.
        let starts = [0.1, 0.5, 1.0, 2.0, 5.0].into_iter().flat_map(|a| [0.05, 0.3, 0.6, 0.9].map(|b| [a, b]));
        let close = 1e-6 * (1.0 + wanted[0]);
        let size = |[x, y]: [f64; 2]| x.abs() + y.abs();
        let solve = |start: [f64; 2]| -> Option<[f64; 2]> {
            let mut at = start;
            for _ in 0..200 {
                let here = miss(at);
                if size(here) < close {
                    return Some(at);
                }
                let step = |[a, b]: [f64; 2], da: f64, db: f64| miss([a + da, b + db]);
                let (ha, hb) = (at[0] * 1e-6, at[1] * 1e-6);
                let (by_a, by_b) = (step(at, ha, 0.0), step(at, 0.0, hb));
                let [[a, c], [b, d]] = [0, 1].map(|i| [0, 1].map(|j| ([by_a, by_b][i][j] - here[j]) / [ha, hb][i]));
                let determinant = a * d - b * c;
                let move_by = [(d * here[0] - b * here[1]) / determinant, (a * here[1] - c * here[0]) / determinant];
                let tried = (0..40).map(|halving| 0.5_f64.powi(halving)).find_map(|part| {
                    let next = [at[0] - part * move_by[0], at[1] - part * move_by[1]];
                    let inside = next[0] > 0.0 && next[1] > 0.0 && next[1] < 1.0;
                    (inside && size(miss(next)) < size(here)).then_some(next)
                });
                at = tried?;
            }
            None
        };
        starts.into_iter().find_map(solve).map(|[a, b]| k * b.powf(a))
    }

    fn pitman(&self) -> Option<f64> {
        let best_theta = |alpha: f64| {
            // The likelihood has one peak along ln(theta + alpha): golden section.
            golden_section_max(-12.0, 24.0, |log| self.pitman_likelihood(log.exp() - alpha, alpha))
        };
        let alpha = golden_section_max(1e-6, 1.0 - 1e-9, |alpha| {
            self.pitman_likelihood(best_theta(alpha).exp() - alpha, alpha)
        });
        let theta = best_theta(alpha).exp() - alpha;
        let population = self.population as f64;
        Some((ln_gamma(theta + 1.0) - ln_gamma(theta + alpha) + alpha * population.ln()).exp())
    }

    /// Logarithm of the likelihood of Pitman's sampling formula, but for a constant. Needs theta > -alpha.
    fn pitman_likelihood(&self, theta: f64, alpha: f64) -> f64 {
        let (rows, classes) = (self.rows(), self.classes());
        // The product over i = 1 .. classes - 1 of (theta + i alpha), over j = 1 .. rows - 1 of (theta + j).
        let new_classes =
            (classes - 1.0) * alpha.ln() + ln_gamma(theta / alpha + classes) - ln_gamma(theta / alpha + 1.0);
        let all = ln_gamma(theta + rows) - ln_gamma(theta + 1.0);
        let growing: f64 = self
            .sizes
            .iter()
            .filter(|(size, _)| **size > 1)
            .map(|(&size, &classes)| classes as f64 * (ln_gamma(size as f64 - alpha) - ln_gamma(1.0 - alpha)))
            .sum();
        new_classes - all + growing
    }
}

/// Expected classes of one and of two in a sample of fraction f, when k population classes have 1 + NB(a, b) people.
fn snb_expected(k: f64, f: f64, a: f64, b: f64) -> [f64; 2] {
    let d = (1.0 - f) * (1.0 - b);
    let one = k * f * (b / (1.0 - d)).powf(a) * (a * d / (1.0 - d) + 1.0);
    let two = k * a * b.powf(a) * f * f * (1.0 - b) / (2.0 * (1.0 - d).powf(a + 2.0)) * (2.0 - (1.0 - a) * d);
    [one, two]
}

/// ln of the ways to choose k of n.
fn ln_choose(n: f64, k: f64) -> f64 {
    if k < 0.0 || k > n { f64::NEG_INFINITY } else { ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0) }
}

/// Where a function with one peak is largest.
fn golden_section_max(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (of(left), of(right));
    for _ in 0..100 {
        if at_left < at_right {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = of(right);
        } else {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = of(left);
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A population of `classes` classes with 1 + geometric sizes, and a sample of each of its people with chance f.
    fn sampled(classes: usize, f: f64, seed: u64) -> (SampleClasses, f64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut sizes, mut uniques, mut population) = (BTreeMap::new(), 0.0, 0);
        for _ in 0..classes {
            let mut people = 1_u64;
            while rng.f64() < 0.7 {
                people += 1;
            }
            population += people;
            uniques += f64::from(u8::from(people == 1));
            let seen = (0..people).filter(|_| rng.f64() < f).count() as u64;
            *sizes.entry(seen).or_insert(0) += 1;
        }
        (SampleClasses::new(sizes, population), uniques)
    }

    #[test]
    fn snb_equations_are_those_of_the_distribution() {
        let (k, f, a, b) = (1000.0, 0.3, 0.8, 0.4);
        let size = |j: f64| {
            (ln_gamma(a + j - 1.0) - ln_gamma(a) - ln_gamma(j) + a * f64::ln(b) + (j - 1.0) * f64::ln(1.0 - b)).exp()
        };
        let seen = |n: f64| {
            (1..400)
                .map(f64::from)
                .filter(|&j| j >= n)
                .map(|j| k * size(j) * (ln_choose(j, n) + n * f64::ln(f) + (j - n) * f64::ln(1.0 - f)).exp())
                .sum::<f64>()
        };
        let found = snb_expected(k, f, a, b);
        assert!((found[0] - seen(1.0)).abs() < 1e-6 && (found[1] - seen(2.0)).abs() < 1e-6);
    }

    #[test]
    fn estimates_come_near_the_truth() {
        let (sample, truth) = sampled(20_000, 0.3, 7);
        let found = sample.estimate_uniques();
        let near = |estimate: Option<f64>, factor: f64| {
            estimate.is_some_and(|found| found > truth / factor && found < truth * factor)
        };
        assert!(near(found.snb, 1.3), "{found:?}, in truth {truth}");
        assert!(near(found.zayatz, 2.0), "{found:?}, in truth {truth}");
        assert_eq!(found.chosen, Some(found.zayatz.unwrap().min(found.snb.unwrap())), "Dankar above a tenth");
        let (small, truth) = sampled(20_000, 0.05, 7);
        let found = small.estimate_uniques();
        assert_eq!(found.chosen, found.pitman, "Dankar up to a tenth");
        assert!(found.pitman.is_some_and(|found| found > 0.0 && found < 4.0 * truth), "{found:?}, in truth {truth}");
    }

    #[test]
    fn pitman_likelihood_is_that_of_the_sampling_formula() {
        let sample = SampleClasses::new([(1, 5), (2, 3), (4, 2)], 1000);
        let direct = |theta: f64, alpha: f64| {
            let new_classes: f64 = (1..10).map(|i| (theta + f64::from(i) * alpha).ln()).sum();
            let all: f64 = (1..19).map(|j| (theta + f64::from(j)).ln()).sum();
            let growing = |size: u32| (1..size).map(|j| (f64::from(j) - alpha).ln()).sum::<f64>();
            new_classes - all + 3.0 * growing(2) + 2.0 * growing(4)
        };
        for (theta, alpha) in [(3.0, 0.4), (0.2, 0.9), (-0.1, 0.3)] {
            assert!((sample.pitman_likelihood(theta, alpha) - direct(theta, alpha)).abs() < 1e-9);
        }
    }

    #[test]
    fn no_uniques_in_the_sample_and_whole_populations() {
        assert_eq!(SampleClasses::new([(2, 50)], 10_000).estimate_uniques().chosen, Some(0.0));
        assert_eq!(
            SampleClasses::new([(1, 40), (3, 20)], 100).estimate_uniques().chosen,
            Some(40.0),
            "the sample is everybody"
        );
    }
}
