//! Limits of a session, as Python passes them.

use std::path::PathBuf;

use bytesize::ByteSize;
use pyo3::prelude::*;
use throng::{Error, ErrorKind, SessionOptions};

use crate::errors::to_exception;

/// A number of bytes, or a size such as `"4GB"`.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    fn to_bytes(&self, key: &str) -> PyResult<u64> {
        match self {
            Self::Bytes(bytes) => Ok(*bytes),
            Self::Text(text) => text.parse::<ByteSize>().map(|size| size.0).map_err(|_| {
                to_exception(Error::new(ErrorKind::Job, format!("{key} must be a size such as 512MB or 4GiB")))
            }),
        }
    }
}

/// Memory, spill and partitions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Limits {
    memory_limit: Option<Size>,
    spill_dir: Option<PathBuf>,
    spill_limit: Option<Size>,
    partitions: Option<usize>,
}

impl Limits {
    /// Returns the options of a session.
    pub(crate) fn session_options(&self) -> PyResult<SessionOptions> {
        let mut options = SessionOptions::default();
        options.memory_limit = self
            .memory_limit
            .as_ref()
            .map(|size| size.to_bytes("memory_limit"))
            .transpose()?
            .map(|bytes| bytes as usize);
        options.spill_dir = self.spill_dir.clone();
        options.spill_limit = self.spill_limit.as_ref().map(|size| size.to_bytes("spill_limit")).transpose()?;
        options.partitions = self.partitions.filter(|&partitions| partitions > 0);
        Ok(options)
    }
}
