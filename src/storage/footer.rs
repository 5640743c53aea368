//! Checks of a Parquet file before it is handed to a reader.

use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::arrow_schema::ensure_arrow_schema;
use crate::error::{Error, Result};

/// Rejects a Parquet file that could crash a reader; see [`read_footer`].
pub(crate) async fn ensure_footer(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<()> {
    read_footer(store, file).await.map(|_| ())
}

/// Reads the footer of a Parquet file; `None` if it cannot be decoded, which the reader reports itself. Rejects one that
/// claims to be longer than the file, because the reader computes with it unchecked, one whose Arrow schema would make the
/// reader panic, and one with two columns of one name, of which only the first would be read.
pub(crate) async fn read_footer(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<Option<ParquetMetaData>> {
    const TRAILER: u64 = 8;
    /// Mostly holds the whole footer.
    const TAIL: u64 = 64 << 10;
    if file.size < TRAILER {
        return Ok(None);
    }
    let tail = store.get_range(&file.location, file.size.saturating_sub(TAIL)..file.size).await?;
    let length = tail[..tail.len() - 4].last_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    // Without the magic bytes at its end, it is not a Parquet file, which the reader reports itself.
    if !tail.ends_with(b"PAR1") {
        return Ok(None);
    }
    if length + TRAILER > file.size {
        return Err(Error::input(
            "the file cannot be read as Parquet (its footer claims to be longer than the file); it may be truncated, \
             damaged or of another format",
        ));
    }
    let footer = file.size - TRAILER - length..file.size - TRAILER;
    let footer = match tail.len().checked_sub((length + TRAILER) as usize) {
        Some(from) => tail.slice(from..tail.len() - TRAILER as usize),
        None => store.get_range(&file.location, footer).await?,
    };
    let Ok(footer) = ParquetMetaDataReader::decode_metadata(&footer) else { return Ok(None) };
    let metadata = footer.file_metadata().key_value_metadata().into_iter().flatten();
    let mut schemas =
        metadata.filter(|entry| entry.key == ARROW_SCHEMA_META_KEY).filter_map(|entry| entry.value.as_deref());
    schemas.try_for_each(ensure_arrow_schema)?;
    let fields = footer.file_metadata().schema_descr().root_schema().get_fields();
    let twice = |at: &usize| fields[..*at].iter().any(|other| other.name() == fields[*at].name());
    if let Some(at) = (0..fields.len()).find(twice) {
        return Err(Error::input(format!(
            "it holds two columns named `{}`; give one of them another name",
            fields[at].name()
        )));
    }
    Ok(Some(footer))
}
