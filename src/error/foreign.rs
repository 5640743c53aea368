//! Converts errors of dependencies. Some of them quote values, which must not be passed on.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

use super::Error;

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(other) => of_others(other.as_ref()).unwrap_or_else(unknown_error),
            },
            DataFusionError::Context(_, inner) => (*inner).into(),
            DataFusionError::Shared(inner) => match inner.find_root() {
                DataFusionError::External(boxed) => match boxed.downcast_ref::<Error>() {
                    Some(ours) => ours.clone(),
                    None => of_others(boxed.as_ref()).unwrap_or_else(unknown_error),
                },
                DataFusionError::ResourcesExhausted(text) => resources_error(text),
                DataFusionError::ObjectStore(error) => object_store(error),
                DataFusionError::ArrowError(error, _) => from_arrow(error),
                DataFusionError::ParquetError(error) => from_parquet(error),
                other => from_datafusion(other),
            },
            DataFusionError::ResourcesExhausted(text) => resources_error(&text),
            DataFusionError::ObjectStore(error) => Self::from(*error),
            DataFusionError::ParquetError(error) => from_parquet(&error),
            DataFusionError::IoError(error) => Self::from(error),
            DataFusionError::ArrowError(error, _) => from_arrow(&error),
            other => from_datafusion(&other),
        }
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let converted = object_store(&error);
        // Otherwise the new message holds all that may be said.
        if converted.is_retryable() { converted.with_source(error) } else { converted }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        // The original message may contain the name of a folder, and so a value.
        from_io(&error).with_source(std::io::Error::from(error.kind()))
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        from_arrow(&error)
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        DataFusionError::from(error).into()
    }
}

/// A value or row that cannot be read; the source may find its position.
#[derive(Debug, thiserror::Error)]
#[error("a value cannot be converted to, or computed in, the type that is asked for")]
struct Unreadable;

impl Error {
    /// A value or row cannot be read.
    pub(crate) fn unreadable() -> Self {
        Self::input(Unreadable.to_string()).with_source(Unreadable)
    }

    /// Whether a value or row could not be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        std::error::Error::source(self).is_some_and(|source| source.is::<Unreadable>())
    }

    /// A transient failure that a library has wrapped, however deeply: of our own code, or of an object store.
    #[cfg(feature = "delta")]
    pub(crate) fn wrapped_retry(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        of_others(error).filter(Self::is_retryable)
    }

    /// A file of the source that the reader cannot decode.
    pub(crate) fn damaged_pages() -> Self {
        Self::input("a file of the source is damaged: its pages contradict its footer")
    }
}

/// The message for a function that fails while a query runs: its own message quotes the value.
const FUNCTION_FAILED: &str = "a function of the query fails for a value of the input; guard it \
    with CASE or WHERE (function and value are withheld, because values must not get into logs)";

/// Converts an error of DataFusion. Planning errors are about the query; execution errors may quote rows, so it withholds
/// them.
fn from_datafusion(error: &DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::Execution(_) => Error::input(FUNCTION_FAILED),
        DataFusionError::Internal(_) | DataFusionError::ExecutionJoin(_) => {
            Error::internal("the query engine failed; its message is withheld, because it may quote values")
        }
        _ => Error::input(error.strip_backtrace()),
    }
}

/// Converts an unknown error, which may quote anything.
fn unknown_error() -> Error {
    Error::input(FUNCTION_FAILED)
}

fn not_parquet(error: &ParquetError) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("Parquet error: ");
    format!("the input cannot be read as Parquet ({text}); it may be truncated, damaged or of another format")
}

/// Arrow quotes the value that it cannot convert or compute with, so its message is not passed on.
fn from_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => of_others(inner.as_ref()).unwrap_or_else(unknown_error),
        },
        ArrowError::MemoryError(text) => resources_error(text),
        ArrowError::IoError(_, error) => from_io(error),
        ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::ComputeError(_)
        | ArrowError::InvalidArgumentError(_)
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::DivideByZero
        | ArrowError::CsvError(_) => Error::unreadable(),
        other => Error::input(other.to_string()),
    }
}

fn from_parquet(error: &ParquetError) -> Error {
    of_others(error).unwrap_or_else(|| Error::input(not_parquet(error)))
}

fn resources_error(text: &str) -> Error {
    Error::resources(format!(
        "the memory limit is too small for this job; raise it with --memory-limit, or lower --partitions ({text})"
    ))
}

fn from_io(error: &std::io::Error) -> Error {
    of_the_system(error).unwrap_or_else(|| Error::input(error.to_string()))
}

/// The error of the operating system, however deeply wrapped: a full disk is not a fault of the input.
fn of_the_system(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    use std::io::ErrorKind::{FileTooLarge, NotADirectory, PermissionDenied, QuotaExceeded, StorageFull};
    use std::io::ErrorKind::{InvalidFilename, NotFound, ReadOnlyFilesystem, Unsupported};
    std::iter::successors(Some(error), |error| error.source()).find_map(|inner| {
        let found = inner.downcast_ref::<std::io::Error>()?;
        // DataFusion names its own key for the disk space of spill files, and has no kind for it.
        if found.to_string().contains("max_temp_directory_size") {
            let text = "spill files need more disk space than --spill-limit allows; raise it";
            return Some(Error::resources(text));
        }
        match found.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => {
                Some(Error::resources(format!("no disk space left: {found}")))
            }
            // The name may hold a value of `output.partition-by`.
            InvalidFilename => Some(Error::input(
                "a file or folder name is too long for the file system; shorten --run-id, the sink, or the values of \
                 output.partition-by",
            )),
            PermissionDenied => Some(Error::input(format!("no permission: {error}"))),
            NotFound | NotADirectory | ReadOnlyFilesystem | Unsupported => Some(Error::input(error.to_string())),
            _ => None,
        }
    })
}

/// The error of our own code, the operating system or an object store, however deeply wrapped: a lost connection is a
/// reason to retry, not a fault of the file that was read.
fn of_others(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    of_the_system(error).or_else(|| {
        std::iter::successors(Some(error), |error| error.source()).find_map(|inner| {
            let ours = inner.downcast_ref::<Error>().cloned();
            ours.or_else(|| inner.downcast_ref().map(object_store))
        })
    })
}

/// Messages of stores about ranges beyond the end of a file.
const BEYOND_FILE: [&str; 3] =
    ["Requested range was invalid", "Out of range of file", "Invalid argument (os error 22)"];

fn object_store(error: &object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { path, .. } => Error::input(format!("there is nothing at `{path}`")),
        object_store::Error::PermissionDenied { path, .. } => Error::input(format!("no permission for `{path}`")),
        object_store::Error::Unauthenticated { path, .. } => {
            Error::input(format!("no valid credentials for `{path}`; set them in the environment"))
        }
        object_store::Error::Generic { .. } => of_the_system(error).unwrap_or_else(|| {
            let text = error.to_string();
            // A listing reports its status only in its message.
            match ["status code: 401", "status code: 403"].iter().any(|status| text.contains(status)) {
                true => Error::input(format!("no permission, or no valid credentials: {text}")),
                // Offsets in a damaged file may lead beyond it.
                false if BEYOND_FILE.iter().any(|why| text.contains(why)) => {
                    Error::input("a file is damaged: it refers to bytes beyond its end")
                }
                false => Error::retry(format!("the object store failed: {text}")),
            }
        }),
        other => of_the_system(other).unwrap_or_else(|| Error::input(other.to_string())),
    }
}
