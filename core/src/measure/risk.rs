//! Re-identification risk of a release, from the sizes of its classes.
//!
//! Prosecutor risk: the attacker knows that a person is in the release, so in a class of f rows finds them with
//! probability 1/f.

use super::Classes;

/// The largest prosecutor risk of any row: 1 / smallest class; `None` without classes.
pub fn prosecutor_max(classes: &Classes) -> Option<f64> {
    classes.smallest().map(|size| 1.0 / size as f64)
}

/// The mean prosecutor risk over rows: classes / rows; `None` without classes.
pub fn prosecutor_mean(classes: &Classes) -> Option<f64> {
    (classes.rows() > 0).then(|| classes.classes() as f64 / classes.rows() as f64)
}

/// The share of rows whose prosecutor risk exceeds a threshold; `None` without classes.
pub fn share_above(classes: &Classes, threshold: f64) -> Option<f64> {
    let above: u64 = classes.histogram().filter(|&(size, _)| 1.0 / size as f64 > threshold).map(|(s, n)| s * n).sum();
    (classes.rows() > 0).then(|| above as f64 / classes.rows() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prosecutor_risk_of_class_sizes() {
        let mut classes = Classes::default();
        assert_eq!((prosecutor_max(&classes), prosecutor_mean(&classes)), (None, None));
        classes.add_classes(2, 3);
        classes.add_classes(10, 1);
        assert_eq!(prosecutor_max(&classes), Some(0.5));
        // Six rows at 1/2 and ten at 1/10.
        assert_eq!(prosecutor_mean(&classes), Some(4.0 / 16.0));
        assert_eq!(share_above(&classes, 0.2), Some(6.0 / 16.0));
        assert_eq!(share_above(&classes, 0.5), Some(0.0));
    }
}
