//! The secret key of a ledger, and the digests that it makes.
//!
//! Nobody without the key can make a digest, or confirm a guess of a subject or of a value by one. Each purpose has digests of
//! its own. What is digested are the bytes of Arrow's row format, which tell apart whatever differs: values in the types that
//! files carry them in, so that what is read back has the digest of what was written.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, FixedSizeBinaryBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::plan::columns_of;
use crate::write::stored_type;

/// What the key of a ledger is derived under.
const FROM_SECRET: &str = "throng 2026 key of the ledger of a series";

/// Bytes of the digest of a subject.
pub(crate) const SUBJECT_BYTES: i32 = 32;

/// Bytes of all other digests.
pub(crate) const DIGEST_BYTES: i32 = 16;

/// What a digest is of. Every purpose has digests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// The columns that tell subjects apart.
    Subject,
    /// What is published of a row as it is.
    Content,
    /// The quasi-identifiers of a row.
    Quasi,
    /// The class of a row among those that were born in one release.
    Cohort(u64),
    /// A history and what has become of it.
    History,
    /// What is read of a row that has no identity.
    Row,
    /// The identity of such a row: the release that meets it, what is read of it, and which of the rows alike it is.
    Arrival(u64),
    /// The path of a file.
    Path,
    /// A file as it was when it was read.
    Tag,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Subject => b"subject",
            Self::Content => b"content",
            Self::Quasi => b"quasi-identifiers",
            Self::Cohort(_) => b"cohort",
            Self::History => b"history",
            Self::Row => b"row",
            Self::Arrival(_) => b"arrival",
            Self::Path => b"path",
            Self::Tag => b"tag",
        }
    }

    fn digest_bytes(self) -> i32 {
        if matches!(self, Self::Subject | Self::Row | Self::Arrival(_)) { SUBJECT_BYTES } else { DIGEST_BYTES }
    }
}

/// The key of a ledger. It cannot be printed, and is wiped with its last copy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LedgerKey(Arc<Zeroizing<[u8; 32]>>);

impl LedgerKey {
    /// The key that is made of a secret.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(Arc::new(Zeroizing::new(blake3::derive_key(FROM_SECRET, secret))))
    }

    /// Identifies this key without revealing it.
    pub(crate) fn fingerprint(&self) -> String {
        blake3::keyed_hash(&self.0, b"fingerprint").to_hex()[..32].to_owned()
    }

    /// The digest of a text.
    pub(crate) fn digest_text(&self, purpose: Purpose, text: &str) -> Vec<u8> {
        let mut hasher = self.hasher(purpose);
        hasher.update(text.as_bytes());
        hasher.finalize().as_bytes()[..purpose.digest_bytes() as usize].to_vec()
    }

    /// The function that digests columns for a purpose.
    pub(crate) fn digest(&self, purpose: Purpose) -> ScalarUDF {
        ScalarUDF::from(Digest {
            signature: Signature::variadic_any(Volatility::Immutable),
            key: self.clone(),
            purpose,
        })
    }

    fn hasher(&self, purpose: Purpose) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.label());
        hasher.update(&[0]);
        if let Purpose::Cohort(number) | Purpose::Arrival(number) = purpose {
            hasher.update(&number.to_le_bytes());
        }
        hasher
    }

    /// The digests of the rows of some columns.
    pub(super) fn digests(&self, purpose: Purpose, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let columns = columns.iter().map(|column| comparable_column(purpose, column)).collect::<Result<Vec<_>>>()?;
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let bytes = if columns.is_empty() { None } else { Some(converter.convert_columns(&columns)?) };
        let start = self.hasher(purpose);
        let size = purpose.digest_bytes();
        let mut digests = FixedSizeBinaryBuilder::with_capacity(rows, size);
        for row in 0..rows {
            if purpose == Purpose::Subject && columns.iter().any(|column| column.is_null(row)) {
                digests.append_null();
                continue;
            }
            let mut hasher = start.clone();
            if let Some(bytes) = &bytes {
                hasher.update(bytes.row(row).data());
            }
            digests.append_value(&hasher.finalize().as_bytes()[..size as usize])?;
        }
        Ok(Arc::new(digests.finish()))
    }
}

impl fmt::Debug for LedgerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerKey(..)")
    }
}

/// A column in the type in which it is digested: as text for subjects, so that a number stays the same subject when its type
/// is widened; otherwise as files carry it.
fn comparable_column(purpose: Purpose, column: &ArrayRef) -> Result<ArrayRef> {
    let wanted = match (purpose, column.data_type()) {
        (Purpose::Subject, data_type) => {
            let text = cast(column, &DataType::Utf8);
            return text.map_err(|_| {
                Error::job(format!("series.subject: a column of type {data_type} cannot tell subjects apart"))
            });
        }
        (_, DataType::Dictionary(_, values)) => stored_type(values),
        (_, data_type) => stored_type(data_type),
    };
    if wanted == *column.data_type() { Ok(Arc::clone(column)) } else { Ok(cast(column, &wanted)?) }
}

/// `ledger_digest(columns...)`: a scalar function that holds the key of a ledger.
#[derive(Debug)]
struct Digest {
    signature: Signature,
    key: LedgerKey,
    purpose: Purpose,
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.purpose == other.purpose
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.purpose.hash(state);
    }
}

impl ScalarUDFImpl for Digest {
    fn name(&self) -> &str {
        match self.purpose {
            Purpose::Subject => "subject_digest",
            Purpose::Content => "content_digest",
            Purpose::Quasi => "quasi_digest",
            Purpose::Cohort(_) => "cohort_digest",
            Purpose::History => "history_digest",
            Purpose::Row => "row_digest",
            Purpose::Arrival(_) => "arrival_digest",
            Purpose::Path => "path_digest",
            Purpose::Tag => "tag_digest",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::FixedSizeBinary(self.purpose.digest_bytes()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = columns_of(&args)?;
        let digests = self.key.digests(self.purpose, &columns, args.number_rows).map_err(Error::into_datafusion)?;
        Ok(ColumnarValue::Array(digests))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, DictionaryArray, Int32Array, Int64Array, StringArray, StringViewArray};
    use datafusion::arrow::datatypes::Int8Type;

    use super::*;

    fn digests(purpose: Purpose, columns: &[ArrayRef]) -> Vec<Option<Vec<u8>>> {
        let key = LedgerKey::new(b"0123456789abcdef");
        let found = key.digests(purpose, columns, columns[0].len()).unwrap();
        found.as_fixed_size_binary().iter().map(|digest| digest.map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn text_has_one_digest_however_it_is_held() {
        let words = ["a", "b", "a"];
        let plain: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
        let view: ArrayRef = Arc::new(StringViewArray::from(words.to_vec()));
        let dictionary: ArrayRef = Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>());
        let found = digests(Purpose::Content, std::slice::from_ref(&plain));
        assert_eq!(found, digests(Purpose::Content, &[view]));
        assert_eq!(found, digests(Purpose::Content, &[dictionary]));
        assert!(found[0] == found[2] && found[0] != found[1]);
        assert_ne!(found, digests(Purpose::Quasi, &[plain]));
    }

    #[test]
    fn subjects_keep_their_digest_when_a_type_is_widened() {
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let found = digests(Purpose::Subject, &[narrow]);
        assert_eq!(found, digests(Purpose::Subject, &[wide]));
        assert_eq!(found[1], None, "nobody is nobody");
        assert_eq!(found[0].as_ref().map(Vec::len), Some(32));
    }

    #[test]
    fn neighbouring_columns_do_not_run_together() {
        let text = |word: &str| Arc::new(StringArray::from(vec![word])) as ArrayRef;
        let of = |a: &str, b: &str| digests(Purpose::Subject, &[text(a), text(b)]);
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }

    #[test]
    fn cohorts_of_two_nights_differ_and_keys_are_never_shown() {
        let class: ArrayRef = Arc::new(StringArray::from(vec!["[1-2]"]));
        let class = std::slice::from_ref(&class);
        assert_ne!(digests(Purpose::Cohort(1), class), digests(Purpose::Cohort(2), class));
        assert_eq!(format!("{:?}", LedgerKey::new(b"secret")), "LedgerKey(..)");
    }
}
