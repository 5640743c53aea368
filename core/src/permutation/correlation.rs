//! How strongly two columns depend on each other: 0 not at all, 1 one gives the other.

use std::collections::{BTreeMap, BTreeSet};

/// A column as correlations see it.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Categories by code.
    Codes(Vec<u32>),
}

/// Values that numbers are cut into when they are held against categories.
const STEPS: usize = 10;

impl Column {
    /// The column as categories: numbers by tenths of their ranks.
    fn rank_codes(&self) -> Vec<u32> {
        let numbers = match self {
            Self::Codes(codes) => return codes.clone(),
            Self::Numbers(numbers) => numbers,
        };
        let mut sorted = numbers.clone();
        sorted.sort_by(f64::total_cmp);
        let step = |number: &f64| sorted.partition_point(|other| other < number) * STEPS / sorted.len().max(1);
        numbers.iter().map(|number| step(number) as u32).collect()
    }
}

/// Dependence of two columns: Pearson's coefficient without its sign between numbers, the mean-square contingency
/// coefficient when one of them holds categories.
pub fn dependence(a: &Column, b: &Column) -> f64 {
    match (a, b) {
        (Column::Numbers(a), Column::Numbers(b)) => pearson(a, b).abs(),
        _ => contingency(&a.rank_codes(), &b.rank_codes()),
    }
}

/// Pearson's coefficient; 0 when a column is constant.
pub fn pearson(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (of_a, of_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(&a, &b)| of(a - of_a, b - of_b)).sum::<f64>();
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if scale > 0.0 { sum(&|a, b| a * b) / scale } else { 0.0 }
}

/// The mean-square contingency coefficient: the sum over pairs of values of (f_ij - f_i f_j)² / (f_i f_j), f being shares
/// of rows, divided by the fewer values less one; 0 when a column is constant.
pub fn contingency(a: &[u32], b: &[u32]) -> f64 {
    let rows = a.len().max(1) as f64;
    let shares = |values: &[u32]| {
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        values.iter().for_each(|&value| *shares.entry(value).or_default() += 1.0 / rows);
        shares
    };
    let (of_a, of_b) = (shares(a), shares(b));
    let fewer = BTreeSet::from_iter(a).len().min(BTreeSet::from_iter(b).len());
    if fewer < 2 {
        return 0.0;
    }
    let mut pairs: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    a.iter().zip(b).for_each(|(&a, &b)| *pairs.entry((a, b)).or_default() += 1.0 / rows);
    // Pairs that do not occur contribute f_i f_j each; together 1 minus what the others would.
    let (mut sum, mut expected) = (0.0, 0.0);
    for ((a, b), share) in pairs {
        let independent = of_a[&a] * of_b[&b];
        sum += (share - independent).powi(2) / independent;
        expected += independent;
    }
    ((sum + 1.0 - expected) / (fewer - 1) as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_and_independent_columns() {
        assert!((contingency(&[0, 0, 1, 1, 2, 2], &[5, 5, 7, 7, 9, 9]) - 1.0).abs() < 1e-12);
        assert!(contingency(&[0, 0, 1, 1], &[3, 4, 3, 4]).abs() < 1e-12);
        assert_eq!(contingency(&[1, 1, 1], &[1, 2, 3]), 0.0);
        assert!((pearson(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]) + 1.0).abs() < 1e-12);
        assert_eq!(pearson(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }

    #[test]
    fn contingency_by_hand() {
        // f = [[2, 1], [0, 1]] / 4; f_i = 3/4, 1/4; f_j = 1/2, 1/2: sum = 1/3.
        assert!((contingency(&[0, 0, 0, 1], &[0, 0, 1, 1]) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_against_categories() {
        let numbers = Column::Numbers((0..100).map(f64::from).collect());
        let tenths = Column::Codes((0..100).map(|row| row / 10).collect());
        let parity = Column::Codes((0..100).map(|row| row % 2).collect());
        assert!((dependence(&numbers, &tenths) - 1.0).abs() < 1e-9);
        assert!(dependence(&numbers, &parity) < 0.01);
        assert!((dependence(&numbers, &numbers) - 1.0).abs() < 1e-12);
    }
}
