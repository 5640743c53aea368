//! Tests of independence with fixed significance: an attack must not be right more often than chance, and continuous
//! integration must not fail by chance.

/// Standard deviations beyond which chance is ruled out: one-sided significance of 1e-6.
pub const SIGNIFICANT: f64 = 4.75;

/// How many standard deviations a number of hits lies above what independent chances promise.
pub fn hits_above_chance(hits: usize, chances: &[f64]) -> f64 {
    let mean: f64 = chances.iter().sum();
    let variance: f64 = chances.iter().map(|p| p * (1.0 - p)).sum();
    if variance == 0.0 { 0.0 } else { (hits as f64 - mean) / variance.sqrt() }
}

/// How many standard errors the mean of independent gains lies above zero.
pub fn gain_above_zero(gains: &[f64]) -> f64 {
    let sum: f64 = gains.iter().sum();
    let squares: f64 = gains.iter().map(|gain| gain * gain).sum();
    if squares == 0.0 { 0.0 } else { sum / squares.sqrt() }
}

/// Ranks from 0, ties in the middle of their places.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        let middle = (from + to - 1) as f64 / 2.0;
        order[from..to].iter().for_each(|&at| ranks[at] = middle);
        from = to;
    }
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let product: f64 = a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
    let square = |v: &[f64], mean: f64| v.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let norm = (square(a, mean_a) * square(b, mean_b)).sqrt();
    (norm > 0.0).then(|| product / norm)
}

/// Spearman's rank correlation of two columns in standard deviations of a random permutation; none when one is constant.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    correlation(&ranks(a), &ranks(b)).map(|rho| rho * ((a.len() - 1) as f64).sqrt())
}

/// How alike neighbours are: the serial rank correlation of a sequence, in standard deviations of a random permutation.
pub fn serial_correlation(sequence: &[f64]) -> Option<f64> {
    let ranks = ranks(sequence);
    let n = ranks.len() as f64;
    let mean = ranks.iter().sum::<f64>() / n;
    let square: f64 = ranks.iter().map(|x| (x - mean).powi(2)).sum();
    if ranks.len() < 4 || square == 0.0 {
        return None;
    }
    // Around the circle, so that mean and variance under permutation are simple: -1/(n-1) and close to 1/n.
    let next = ranks.iter().skip(1).chain(&ranks[..1]);
    let product: f64 = ranks.iter().zip(next).map(|(x, y)| (x - mean) * (y - mean)).sum();
    Some((product / square + 1.0 / (n - 1.0)) * n.sqrt())
}

#[test]
fn chance_is_told_from_knowledge() {
    let mut rng = fastrand::Rng::with_seed(7);
    let noise: Vec<f64> = (0..2000).map(|_| rng.f64()).collect();
    let other: Vec<f64> = (0..2000).map(|_| rng.f64()).collect();
    let trend: Vec<f64> = noise.iter().zip(0..).map(|(x, at)| x + f64::from(at) / 2000.0).collect();
    let line: Vec<f64> = (0..2000).map(f64::from).collect();
    assert!(rank_correlation(&noise, &other).unwrap().abs() < SIGNIFICANT);
    assert!(serial_correlation(&noise).unwrap().abs() < SIGNIFICANT);
    assert!(
        rank_correlation(&trend, &line).unwrap() > SIGNIFICANT && serial_correlation(&trend).unwrap() > SIGNIFICANT
    );
    assert!(rank_correlation(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]).is_none());
    assert_eq!(ranks(&[5.0, 1.0, 5.0]), [1.5, 0.0, 1.5]);
    assert!(hits_above_chance(130, &[0.1; 1000]) < SIGNIFICANT && hits_above_chance(175, &[0.1; 1000]) > SIGNIFICANT);
    assert!(gain_above_zero(&[0.1, -0.1, 0.1, -0.1]) == 0.0 && gain_above_zero(&[0.1; 100]) > SIGNIFICANT);
}
