//! Measures on their way between machines: as serde writes them, but to the last bit and in any format. Numbers in text
//! may lose their last bit, and keys of a map may have to be text; so fractions go as bits and maps as lists.

/// A fraction as its bits.
pub(crate) mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(fraction: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(fraction.to_bits())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// A fraction that may be missing.
pub(crate) mod optional_bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(fraction: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        fraction.map(f64::to_bits).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(f64::from_bits))
    }
}

/// Fractions.
pub(crate) mod list_of_bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(fractions: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(fractions.iter().map(|fraction| fraction.to_bits()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<u64>::deserialize(from)?.into_iter().map(f64::from_bits).collect())
    }
}

/// A map as a list of pairs.
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K, V, S>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        to.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

/// A map of fractions.
pub(crate) mod pairs_of_bits {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(map: &BTreeMap<u64, f64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map.iter().map(|(key, fraction)| (key, fraction.to_bits())))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, f64>, D::Error> {
        let pairs = Vec::<(u64, u64)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(key, bits)| (key, f64::from_bits(bits))).collect())
    }
}

/// A map of maps.
pub(crate) mod pairs_of_pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K, L, V, S>(map: &BTreeMap<K, BTreeMap<L, V>>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        L: Serialize,
        V: Serialize,
        S: Serializer,
    {
        to.collect_seq(map.iter().map(|(key, inner)| (key, inner.iter().collect::<Vec<_>>())))
    }

    pub fn deserialize<'de, K, L, V, D>(from: D) -> Result<BTreeMap<K, BTreeMap<L, V>>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        L: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let pairs = Vec::<(K, Vec<(L, V)>)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(key, inner)| (key, inner.into_iter().collect())).collect())
    }
}

/// A wide whole number as its upper and lower half.
pub(crate) mod halves {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        ((number >> 64) as u64, *number as u64).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let (upper, lower) = <(u64, u64)>::deserialize(from)?;
        Ok(u128::from(upper) << 64 | u128::from(lower))
    }
}
