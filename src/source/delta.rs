//! A version of a Delta table as input: the newest when the run begins, or the one that the job names. Whatever is
//! committed to the table meanwhile, the run reads that version.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionContext;
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::{DeltaTable, DeltaTableError};
use object_store::ObjectStoreExt;
use object_store::prefix::PrefixStore;
use url::Url;

use crate::error::{Error, Result};
use crate::policy;
use crate::storage::{Location, Stores};

/// How the reader of a log begins to say that the store has failed, and not that something is missing or forbidden.
const STORE_FAILED: &str = "Error interacting with object store: Generic";

/// A failure of the Delta log.
pub(crate) fn delta_error(error: DeltaTableError) -> Error {
    match error {
        DeltaTableError::ObjectStore { source } => source.into(),
        DeltaTableError::InvalidJsonLog { version, .. } => {
            Error::input(format!("version {version} of the Delta log is damaged"))
        }
        DeltaTableError::Transaction { source: TransactionError::ObjectStore { source } } => source.into(),
        other if is_contention(&other) => contention_error(),
        other => {
            let text = other.to_string();
            match Error::wrapped_retry(&other) {
                Some(transient) => transient,
                // The reader of the log hides the error of the store in its text.
                None if text.contains(STORE_FAILED) => Error::retry(format!("the object store failed: {text}")),
                None => Error::input(format!("the Delta table cannot be used: {text}")),
            }
        }
    }
}

/// Whether a commit failed because another one came first, and surely was not done.
pub(crate) fn is_contention(error: &DeltaTableError) -> bool {
    matches!(
        error,
        DeltaTableError::Transaction {
            source: TransactionError::MaxCommitAttempts(_)
                | TransactionError::CommitConflict(_)
                | TransactionError::VersionAlreadyExists(_),
        }
    )
}

pub(crate) fn contention_error() -> Error {
    Error::retry("conflicting commits to the Delta log; run again")
}

/// The log of a table.
pub(crate) fn log_store(location: &Location) -> Result<LogStoreRef> {
    let url = Url::parse(&location.url(&location.prefix)).map_err(|error| Error::internal(error.to_string()))?;
    let prefixed = Arc::new(PrefixStore::new(Arc::clone(&location.store), location.prefix.clone()));
    Ok(default_logstore(prefixed, Arc::clone(&location.store), &url, &StorageConfig::default()))
}

/// The table at a location, at a version or as it is now; `None` if there is none.
pub(crate) async fn open_table(location: &Location, version: Option<u64>) -> Result<Option<DeltaTable>> {
    let mut table = DeltaTable::new(log_store(location)?);
    let is_file = location.store.head(&location.prefix).await.is_ok();
    if is_file || !table.verify_deltatable_existence().await.map_err(delta_error)? {
        return Ok(None);
    }
    match version {
        None => table.load().await.map_err(delta_error)?,
        Some(version) => {
            let missing = |_| Error::input(format!("the Delta table has no version {version}"));
            table.load_version(version).await.map_err(missing)?;
        }
    }
    Ok(Some(table))
}

/// A Delta table at a version.
pub(crate) struct DeltaInput {
    table: DeltaTable,
    location: Location,
}

impl DeltaInput {
    /// Opens a table at the version that is to be read.
    pub(crate) async fn find_table(stores: &Stores, base: &LocalPath, spec: &policy::Source) -> Result<Self> {
        let location = stores.open(base, spec.location(), &spec.options)?;
        let table = open_table(&location, spec.version).await;
        let table = table.map_err(|error| error.context(format!("source `{}`", spec.url)))?;
        match table {
            Some(table) => Ok(Self { table, location }),
            None => Err(Error::input(format!("source `{}`: there is no Delta table", spec.url))),
        }
    }

    /// Where the table is.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The version that is read.
    pub(crate) fn version(&self) -> Option<u64> {
        self.table.version()
    }

    /// The table by where it is, the name that it was given when it was made, and its version. None of it follows its rows.
    pub(crate) fn identity(&self) -> String {
        let id = self.table.snapshot().ok().map(|state| state.metadata().id().to_owned());
        format!("{}\0{:?}\0{id:?}", self.location.prefix, self.table.version())
    }

    /// The rows of the version.
    pub(crate) async fn table(&self, context: &SessionContext) -> Result<Arc<dyn TableProvider>> {
        self.table.update_datafusion_session(&context.state()).map_err(delta_error)?;
        Ok(self.table.table_provider().await?)
    }
}
