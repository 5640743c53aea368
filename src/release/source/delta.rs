//! A version of a Delta table as input: the newest when the run begins, or the one that the job names. Whatever is
//! committed to the table meanwhile, the run reads that version.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionContext;
use deltalake_core::DeltaTable;

use crate::error::{Error, Result};
use crate::job;
use crate::release::delta::{self, failed};
use crate::release::location::Location;
use crate::release::manifest::InputFile;
use crate::release::stores::Stores;

/// A Delta table at a version.
pub(super) struct DeltaInput {
    table: DeltaTable,
    location: Location,
}

impl DeltaInput {
    /// Opens a table at the version that is to be read.
    pub(super) async fn find(stores: &Stores, base: &LocalPath, spec: &job::Source) -> Result<Self> {
        let location = stores.open(base, spec.location(), &spec.options)?;
        let table = delta::open(&location, spec.version).await;
        let table = table.map_err(|error| error.context(format!("source `{}`", spec.url)))?;
        match table {
            Some(table) => Ok(Self { table, location }),
            None => Err(Error::Input(format!("source `{}`: there is no Delta table", spec.url))),
        }
    }

    /// Where the table is.
    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// What is read: the table by its identity, at its version.
    pub(super) fn input(&self) -> InputFile {
        let state = self.table.snapshot().ok();
        InputFile {
            path: self.location.prefix.to_string(),
            size: state.map_or(0, |state| state.log_data().iter().map(|file| file.size().max(0) as u64).sum()),
            version: self.table.version(),
            etag: state.map(|state| state.metadata().id().to_owned()),
            modified: self
                .table
                .version()
                .and_then(|version| state.and_then(|state| state.version_timestamp(version)))
                .and_then(|milliseconds| jiff::Timestamp::from_millisecond(milliseconds).ok())
                .map(|time| time.to_string())
                .unwrap_or_default(),
        }
    }

    /// The rows of the version.
    pub(super) async fn table(&self, context: &SessionContext) -> Result<Arc<dyn TableProvider>> {
        self.table.update_datafusion_session(&context.state()).map_err(failed)?;
        Ok(self.table.table_provider().await?)
    }
}
