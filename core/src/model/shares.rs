//! How often each value of a sensitive column occurs in the whole table: what rules that compare a group with the table
//! compare it with.

/// Shares of the table by code, and what makes sums over them quick.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    share: Vec<f64>,
    /// Share of all codes below each code; one longer than `share`.
    below: Vec<f64>,
    /// Sum over the codes before each code of the share up to and with them; one longer than `share`.
    sums: Vec<f64>,
}

impl Shares {
    /// The shares of codes that occur so often.
    pub fn new(counts: &[u64]) -> Self {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let (mut below, mut sums) = (vec![0.0], vec![0.0]);
        let (mut count, mut sum) = (0, 0.0);
        for &of_code in counts {
            count += of_code;
            let up_to = count as f64 / total;
            below.push(up_to);
            sum += up_to;
            sums.push(sum);
        }
        Self { share: counts.iter().map(|&count| count as f64 / total).collect(), below, sums }
    }

    /// Number of codes.
    pub fn len(&self) -> usize {
        self.share.len()
    }

    /// Whether there are no codes.
    pub fn is_empty(&self) -> bool {
        self.share.is_empty()
    }

    /// Share of the rows that hold a code; 0 for a code beyond the last.
    pub fn share_of(&self, code: u32) -> f64 {
        self.share.get(code as usize).copied().unwrap_or(0.0)
    }

    /// Share of the rows that hold a code from `lo` to `hi`, both included.
    pub fn share_between(&self, lo: u32, hi: u32) -> f64 {
        let end = |code: usize| self.below[code.min(self.share.len())];
        end(hi as usize + 1) - end(lo as usize)
    }

    /// Sum over the codes `from..until` of how far the share up to and with them is from `level`.
    pub fn distance_to_level(&self, from: usize, until: usize, level: f64) -> f64 {
        // The share up to a code only grows, so there is one place where it passes the level.
        let up_to = &self.below[from + 1..=until];
        let middle = from + up_to.partition_point(|&up_to| up_to < level);
        let under = (middle - from) as f64 * level - (self.sums[middle] - self.sums[from]);
        let over = (self.sums[until] - self.sums[middle]) - (until - middle) as f64 * level;
        under.max(0.0) + over.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sums() {
        let shares = Shares::new(&[1, 0, 4, 3]);
        assert_eq!((shares.share_of(0), shares.share_of(2), shares.share_of(9)), (0.125, 0.5, 0.0));
        assert_eq!(
            (shares.share_between(0, 2), shares.share_between(1, 1), shares.share_between(2, 9)),
            (0.625, 0.0, 0.875)
        );
    }

    #[test]
    fn distance_is_the_sum_of_gaps() {
        let shares = Shares::new(&[1, 0, 4, 3, 2, 7]);
        let up_to = [1.0, 1.0, 5.0, 8.0, 10.0, 17.0].map(|count| count / 17.0);
        for level in [0.0, 0.1, 0.3, 0.5, 0.9, 1.0] {
            for from in 0..6 {
                for until in from..=6 {
                    let plain: f64 = up_to[from..until].iter().map(|up_to: &f64| (up_to - level).abs()).sum();
                    assert!((shares.distance_to_level(from, until, level) - plain).abs() < 1e-12);
                }
            }
        }
    }
}
