//! The secret of a run, and all randomness that comes from it.
//!
//! What is published is a function of the published rows and of this key, of nothing else: the order in which rows enter
//! a method, the seeds of methods, the sample of the survey, group numbers and permutations are all drawn from it. It
//! comes from the operating system for every run, travels inside plans, is wiped when it is no longer needed and is stored
//! nowhere. A key that is fixed (by a secret in the environment, or by a seed in tests) makes a run repeatable for
//! whoever holds it.

pub(crate) mod pseudonym;

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::error::{Error, Result};
pub use pseudonym::Encoding;
pub(crate) use pseudonym::{Key, Pseudonymiser};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Fewest bytes of a secret that a key is made of.
const MIN_SECRET_BYTES: usize = 32;

/// Fewest different bytes of such a secret: `aaaa...` is not a secret.
const MIN_DISTINCT_BYTES: usize = 8;

/// What keys are derived under.
const FROM_SECRET: &str = "throng 2026 key of a run from a secret";
const FROM_SEED: &str = "throng 2026 key of a run from a seed";

/// What a key is drawn on for. Every purpose has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The order in which the rows of a cell enter a method.
    RowOrder,
    /// The sample of the survey.
    Sample,
    /// The random choices of a method in a cell.
    Method,
    /// The numbers of the groups of a cell.
    GroupNumbers,
    /// The permutations inside the groups of a cell.
    Permutation,
    /// The order in which published rows leave a cell.
    PublishedOrder,
    /// The order of cells.
    CellOrder,
    /// The borders of a ladder by quantiles.
    QuantileBorders,
    /// The digest of what a run has read.
    Snapshot,
    /// The digests of subjects that a window has seen.
    Subjects,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Self::RowOrder => b"row order",
            Self::Sample => b"sample",
            Self::Method => b"method",
            Self::GroupNumbers => b"group numbers",
            Self::Permutation => b"permutation",
            Self::PublishedOrder => b"published order",
            Self::CellOrder => b"cell order",
            Self::QuantileBorders => b"quantile borders",
            Self::Snapshot => b"snapshot",
            Self::Subjects => b"subjects",
        }
    }
}

/// The secret key of a run. It cannot be printed, and is wiped with its last copy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RunKey(Arc<Zeroizing<[u8; KEY_BYTES]>>);

impl RunKey {
    /// Draws a key from the operating system.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut())
            .map_err(|error| Error::resources(format!("the operating system provides no random numbers: {error}")))?;
        Ok(Self(Arc::new(bytes)))
    }

    /// Derives a key from a secret of at least 32 bytes. Errors do not quote it.
    pub(crate) fn from_secret(secret: &[u8]) -> Result<Self, String> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(format!("holds {} bytes; a key must have at least {MIN_SECRET_BYTES}", secret.len()));
        }
        let distinct = secret.iter().collect::<std::collections::BTreeSet<_>>().len();
        if distinct < MIN_DISTINCT_BYTES {
            return Err(format!("holds {distinct} different characters and can be guessed"));
        }
        Ok(Self(Arc::new(Zeroizing::new(blake3::derive_key(FROM_SECRET, secret)))))
    }

    /// Derives a key that everybody knows who knows the seed: for tests and experiments.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(Arc::new(Zeroizing::new(blake3::derive_key(FROM_SEED, &seed.to_le_bytes()))))
    }

    /// The key as it travels inside a plan.
    pub(crate) fn to_wire(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// A key that came inside a plan; `None` if it is not one.
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<Self> {
        Some(Self(Arc::new(Zeroizing::new(bytes.try_into().ok()?))))
    }

    /// Random numbers for a purpose, the same whenever they are requested; `of` identifies the cell.
    pub(crate) fn rng(&self, purpose: Purpose, of: u64) -> SecretRng {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&of.to_le_bytes());
        hasher.update(purpose.label());
        SecretRng(hasher.finalize_xof())
    }

    /// A digest of a text that only holders of the key can make, or confirm a guess of.
    pub(crate) fn digest(&self, purpose: Purpose, text: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.label());
        hasher.update(&[0]);
        hasher.update(text);
        hasher.finalize().to_hex().to_string()
    }

    /// The first half of such a digest of some bytes, for keeping many of them.
    pub(crate) fn short_digest(&self, purpose: Purpose, bytes: &[u8]) -> u128 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.label());
        hasher.update(&[0]);
        hasher.update(bytes);
        let mut short = [0; 16];
        hasher.finalize_xof().fill(&mut short);
        u128::from_le_bytes(short)
    }

    /// One random number for a purpose.
    pub(crate) fn random_number(&self, purpose: Purpose, of: u64) -> u64 {
        self.rng(purpose, of).next_u64()
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunKey(..)")
    }
}

/// A cryptographic generator: the output of BLAKE3 under the key.
pub(crate) struct SecretRng(blake3::OutputReader);

impl SecretRng {
    /// The next 64 bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`, which is not 0, each as likely as the other.
    pub(crate) fn draw_below(&mut self, bound: u64) -> u64 {
        // Lemire: the high half of a product, and again where the low half would favour some numbers.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Brings values into an order of which every one is equally likely.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.draw_below(last as u64 + 1) as usize);
        }
    }
}

impl fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRng(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_operating_system_differ_and_are_never_shown() {
        let (a, b) = (RunKey::random().unwrap(), RunKey::random().unwrap());
        assert_ne!(a.random_number(Purpose::Method, 0), b.random_number(Purpose::Method, 0));
        assert_eq!(format!("{a:?}"), "RunKey(..)");
        assert_eq!(RunKey::from_wire(&a.to_wire()), Some(a));
        assert_eq!(RunKey::from_wire(&[1; 31]), None);
    }

    #[test]
    fn purposes_and_cells_have_numbers_of_their_own() {
        let key = RunKey::from_seed(42);
        let mut seen = std::collections::BTreeSet::new();
        for purpose in [
            Purpose::RowOrder,
            Purpose::Sample,
            Purpose::Method,
            Purpose::GroupNumbers,
            Purpose::Permutation,
            Purpose::PublishedOrder,
            Purpose::CellOrder,
            Purpose::QuantileBorders,
        ] {
            (0..100).for_each(|cell| assert!(seen.insert(key.random_number(purpose, cell))));
        }
        assert_eq!(key.random_number(Purpose::Sample, 7), RunKey::from_seed(42).random_number(Purpose::Sample, 7));
    }

    #[test]
    fn guessable_secrets_are_refused_without_quoting_them() {
        let error = |secret: &str| RunKey::from_secret(secret.as_bytes()).unwrap_err();
        assert!(error("short and sweet").contains("15 bytes"));
        let dull = error(&"ab".repeat(20));
        assert!(dull.contains("2 different characters") && !dull.contains("abab"), "{dull}");
        assert!(RunKey::from_secret(b"8f1c0a4b7d2e9635f0a1c2d3e4b59687").is_ok());
    }

    /// Chi-squared over all 24 orders of four values: the 0.999999 quantile of 23 degrees of freedom is below 75.
    #[test]
    fn every_order_is_equally_likely() {
        let mut rng = RunKey::from_seed(1).rng(Purpose::Permutation, 0);
        let mut counts = std::collections::BTreeMap::new();
        const DRAWS: f64 = 24_000.0;
        for _ in 0..DRAWS as usize {
            let mut values = [0, 1, 2, 3];
            rng.shuffle(&mut values);
            *counts.entry(values).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = DRAWS / 24.0;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 75.0, "{chi}");
    }
}
