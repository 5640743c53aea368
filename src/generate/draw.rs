//! Randomness by counter: every draw is a pure function of (seed, row, topic).
//!
//! No generator is carried from row to row, so any part of the census can be made on its own, in any order and by any
//! number of threads. Only integer arithmetic and the four basic float operations are used, which give the same bits
//! on every machine; `exp` and `ln` of the system libraries do not.

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64, a bijection on 64 bits.
fn mix_bits(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// What a draw is for: one independent stream per topic.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Topic {
    Twin = 1,
    TwinSource,
    Region,
    District,
    Street,
    Age,
    Sex,
    Education,
    WorkStatus,
    Occupation,
    Marital,
    Arrival,
    ArrivalDay,
    ArrivalNull,
    Diagnosis,
    IncomeSpread,
    IncomeHeap,
    Household,
    Updated,
    UpdatedNull,
    Tags,
    FirstName,
    LastName,
}

/// The draws of one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    key: u64,
}

impl Draws {
    /// The draws of row `row` of the census with that seed.
    pub(super) fn new(seed: u64, row: u64) -> Self {
        Self { key: mix_bits(mix_bits(seed.wrapping_add(GOLDEN)) ^ row) }
    }

    /// 64 uniform bits.
    pub(super) fn bits(self, topic: Topic) -> u64 {
        mix_bits(self.key.wrapping_add(GOLDEN.wrapping_mul(topic as u64)))
    }

    /// A uniform number below `bound`; 0 when `bound` is 0.
    pub(super) fn draw_below(self, topic: Topic, bound: u64) -> u64 {
        scale_bits(self.bits(topic), bound)
    }

    /// True in `per_mille` of a thousand cases.
    pub(super) fn draw_chance(self, topic: Topic, per_mille: u64) -> bool {
        self.draw_below(topic, 1000) < per_mille
    }

    /// A nearly normal number of mean 0 and deviation 1: the sum of four uniform ones (Irwin-Hall), within ±3.47.
    pub(super) fn draw_normal(self, topic: Topic) -> f64 {
        let bits = self.bits(topic);
        let sum: u64 = (0..4).map(|quarter| (bits >> (16 * quarter)) & 0xFFFF).sum();
        // Four uniform numbers on [0, 1) have mean 2 and variance 1/3.
        (sum as f64 / 65_536.0 - 2.0) * 1.732_050_807_568_877_2
    }
}

/// Maps 64 uniform bits to a number below `bound`.
fn scale_bits(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// `exp(x)` for small x, as (1 + x/256)^256: good to a few per cent for |x| < 3, and the same on every machine.
pub(super) fn exp_approx(x: f64) -> f64 {
    let mut power = 1.0 + x / 256.0;
    for _ in 0..8 {
        power *= power;
    }
    power
}

/// Many slots for each choice, as many as its weight deserves, so that choosing is one look-up.
const SLOTS: usize = 4096;

/// A skewed choice among up to 256 things.
#[derive(Debug)]
pub(super) struct Choice {
    slots: Box<[u8; SLOTS]>,
}

impl Choice {
    /// A choice by weight. At least one of the weights must be positive.
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut total = 0.0;
        let sums: Vec<f64> = weights
            .into_iter()
            .map(|weight| {
                total += weight;
                total
            })
            .collect();
        assert!(total > 0.0 && sums.len() <= 256, "a choice needs a positive weight and at most 256 things");
        let mut slots = Box::new([0; SLOTS]);
        for (slot, thing) in slots.iter_mut().enumerate() {
            let level = (slot as f64 + 0.5) / SLOTS as f64 * total;
            *thing = sums.partition_point(|&sum| sum <= level) as u8;
        }
        Self { slots }
    }

    /// A choice where the thing of rank r has weight 1/(r + offset): Zipf's law, flatter for a larger offset.
    pub(super) fn zipf(things: usize, offset: f64) -> Self {
        Self::new((0..things).map(|rank| 1.0 / (rank as f64 + offset)))
    }

    /// The thing chosen by the draw.
    pub(super) fn pick(&self, draws: Draws, topic: Topic) -> usize {
        usize::from(self.slots[draws.draw_below(topic, SLOTS as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_seed_row_and_topic() {
        let draw = |seed, row, topic| Draws::new(seed, row).bits(topic);
        assert_eq!(draw(1, 2, Topic::Age), draw(1, 2, Topic::Age));
        assert_ne!(draw(1, 2, Topic::Age), draw(2, 2, Topic::Age));
        assert_ne!(draw(1, 2, Topic::Age), draw(1, 3, Topic::Age));
        assert_ne!(draw(1, 2, Topic::Age), draw(1, 2, Topic::Sex));
    }

    #[test]
    fn uniform_draws_are_uniform() {
        let mut counts = [0u32; 10];
        for row in 0..100_000 {
            counts[Draws::new(7, row).draw_below(Topic::Age, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn normal_draws_have_mean_zero_and_deviation_one() {
        let values: Vec<f64> = (0..100_000).map(|row| Draws::new(7, row).draw_normal(Topic::IncomeSpread)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "mean {mean}, variance {variance}");
    }

    #[test]
    fn growth_is_close_to_exp() {
        for x in [-2.0, -0.5, 0.0, 0.5, 2.0] {
            assert!((exp_approx(x) / f64::exp(x) - 1.0).abs() < 0.02, "x = {x}");
        }
    }

    #[test]
    fn choices_follow_their_weights_and_never_pick_weight_zero() {
        let choice = Choice::new([6.0, 0.0, 3.0, 1.0]);
        let mut counts = [0u32; 4];
        for row in 0..100_000 {
            counts[choice.pick(Draws::new(3, row), Topic::Region)] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, expected) in counts.iter().zip([60_000u32, 0, 30_000, 10_000]) {
            assert!(count.abs_diff(expected) < 1_000, "{counts:?}");
        }
    }
}
