//! Keyed pseudonyms: HMAC-SHA-256 of a value under a key of its column.
//!
//! Every column has a key of its own, derived from the given one and the column's name, so that equal values in two
//! columns do not show. The value goes in as text, so that a number keeps its pseudonym when its type is widened.
//! Null stays null.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::error::{Error, Result};
use crate::faults::Fault;

/// Minimum length of a key in bytes.
const SHORTEST: usize = 16;

/// The fewest different bytes of a key. Of 16 random hexadecimal digits, fewer than one key in 25,000 has less.
const MIN_DISTINCT: usize = 6;

/// What column keys are derived under.
const COLUMN: &[u8] = b"throng pseudonym of column ";

/// What a fingerprint is the hash of.
const FINGERPRINT: &[u8] = b"throng fingerprint of a key";

/// A secret key, ready for use. It cannot be printed.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    /// A key of at least 16 bytes, which must not be a few that repeat: such keys are guessed.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < SHORTEST {
            return Err(format!("holds {} bytes; a key must have at least {SHORTEST}", bytes.len()));
        }
        let mut distinct = bytes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < MIN_DISTINCT {
            return Err(format!(
                "has {} different characters and can be guessed; a key must be random and have at least {MIN_DISTINCT} \
                 (`openssl rand -hex 32`)",
                distinct.len()
            ));
        }
        Self::from_bytes(bytes).map_err(|error| error.to_string())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mac = Hmac::<Sha256>::new_from_slice(bytes).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self(mac))
    }

    /// The fingerprint of the key, which does not reveal it.
    pub(crate) fn fingerprint(&self) -> String {
        Encoding::Hex.encode_bytes(&self.hash_message(FINGERPRINT))
    }

    fn hash_message(&self, message: &[u8]) -> [u8; 32] {
        self.hash_all([message])
    }

    fn hash_all<const N: usize>(&self, parts: [&[u8]; N]) -> [u8; 32] {
        let mut mac = self.0.clone();
        parts.into_iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash_message(FINGERPRINT) == other.hash_message(FINGERPRINT)
    }
}

/// Makes the pseudonyms of one column.
#[derive(Debug, Clone)]
pub(crate) struct Pseudonymiser {
    key: Key,
    encoding: Encoding,
}

impl Pseudonymiser {
    /// Pseudonyms of a column under a key.
    pub(crate) fn new(key: &Key, column: &str, encoding: Encoding) -> Result<Self> {
        let key = if Fault::UnkeyedPseudonym.is_planted() { &Key::from_bytes(COLUMN)? } else { key };
        let key = Key::from_bytes(&key.hash_all([COLUMN, column.as_bytes()]))?;
        Ok(Self { key, encoding })
    }

    /// Returns the pseudonym of a value.
    pub(crate) fn pseudonym(&self, value: &str) -> String {
        self.encoding.encode_bytes(&self.key.hash_message(value.as_bytes()))
    }

    /// Returns the pseudonyms of a column of values.
    pub(crate) fn pseudonyms(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(values, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let mut pseudonyms = StringBuilder::with_capacity(texts.len(), texts.len() * 64);
        texts.iter().for_each(|text| pseudonyms.append_option(text.map(|text| self.pseudonym(text))));
        Ok(Arc::new(pseudonyms.finish()))
    }

    /// What identifies this column's pseudonyms: the fingerprint of its key, and their encoding.
    pub(crate) fn fingerprint(&self) -> (String, Encoding) {
        (self.key.fingerprint(), self.encoding)
    }
}

/// How a pseudonym is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 64 hexadecimal digits.
    #[default]
    Hex,
    /// 43 letters, digits, `-` and `_`.
    Base64url,
}

/// The digits of base 64 as URLs and file names take them.
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Encoding {
    fn encode_bytes(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Base64url => {
                let digit = |bits: u32| char::from(BASE64URL[(bits & 63) as usize]);
                let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
                for chunk in bytes.chunks(3) {
                    let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
                    text.extend((0..=chunk.len()).map(|place| digit(bits >> (18 - 6 * place))));
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn hmac_sha_256_of_rfc_4231() {
        let key = Key::from_bytes(b"Jefe").unwrap();
        assert_eq!(
            Encoding::Hex.encode_bytes(&key.hash_message(b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    /// RFC 4648, section 10, without padding.
    #[test]
    fn base64_of_rfc_4648() {
        for (plain, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(Encoding::Base64url.encode_bytes(plain.as_bytes()), text);
        }
        assert_eq!(Encoding::Base64url.encode_bytes(&[0xfb, 0xff]), "-_8");
    }

    const KEY: &[u8] = b"0123456789abcdef";

    fn of_column(column: &str) -> Pseudonymiser {
        Pseudonymiser::new(&Key::new(KEY).unwrap(), column, Encoding::Hex).unwrap()
    }

    #[test]
    fn columns_and_keys_keep_apart() {
        let name = of_column("name").pseudonym("Ada");
        assert_eq!(name.len(), 64);
        assert_eq!(name, of_column("name").pseudonym("Ada"));
        assert_ne!(name, of_column("patron").pseudonym("Ada"));
        let other = Key::new(b"0123456789abcdeg").unwrap();
        assert_ne!(name, Pseudonymiser::new(&other, "name", Encoding::Hex).unwrap().pseudonym("Ada"));
        assert_ne!(other.fingerprint(), Key::new(KEY).unwrap().fingerprint());
        assert_eq!(format!("{:?}", Key::new(KEY).unwrap()), "Key(..)");
        assert!(Key::new(&KEY[1..]).is_err());
    }

    /// Seen failing: 16 equal letters were a key.
    #[test]
    fn keys_that_can_be_guessed_are_none() {
        for weak in ["aaaaaaaaaaaaaaaa", "abababababababab", "1234512345123451234512345123451234512345"] {
            let refusal = Key::new(weak.as_bytes()).unwrap_err();
            assert!(refusal.contains("can be guessed") && !refusal.contains(weak), "{refusal}");
        }
        assert!(Key::new(b"9f86d081884c7d65").is_ok());
    }

    #[test]
    fn null_stays_null_and_a_wider_type_changes_nothing() {
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None, Some(7)]));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(7)]));
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("7"), None, Some("7")]));
        let made = of_column("id").pseudonyms(&narrow).unwrap();
        assert_eq!(made.null_count(), 1);
        assert_eq!(made.as_string::<i32>().value(0), made.as_string::<i32>().value(2));
        for other in [wide, text] {
            assert_eq!(&of_column("id").pseudonyms(&other).unwrap(), &made);
        }
    }

    proptest! {
        #[test]
        fn equal_values_and_only_they_have_equal_pseudonyms(a in ".*", b in ".*") {
            let column = of_column("name");
            prop_assert_eq!(column.pseudonym(&a) == column.pseudonym(&b), a == b);
            prop_assert!(a.len() < 3 || !column.pseudonym(&a).contains(&a));
        }
    }
}
