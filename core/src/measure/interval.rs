//! A mean and how far to trust it: Student's t over repeated samples.

use serde::Serialize;

/// The mean of some figures, and the ends of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// Quantiles 0.975 of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 95 % interval of the mean of independent figures; `None` for fewer than two.
pub fn mean_interval(figures: &[f64]) -> Option<Interval> {
    if figures.len() < 2 {
        return None;
    }
    let n = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = T.get(figures.len() - 2).copied().unwrap_or(1.96) * (variance / n).sqrt();
    Some(Interval { mean, lower: mean - reach, upper: mean + reach })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_figures() {
        let found = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        // Standard error sqrt(2.5 / 5), times 2.776.
        assert!((found.mean - 3.0).abs() < 1e-12 && (found.upper - (3.0 + 2.776 * 0.5_f64.sqrt())).abs() < 1e-12);
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(mean_interval(&[2.0, 2.0]).unwrap().upper, 2.0);
    }
}
