//! Errors, sorted by who has to act on them.

mod foreign;
pub(crate) mod problem;

use std::fmt;
use std::sync::Arc;

pub use problem::{Problem, Severity};

use datafusion::error::DataFusionError;

/// The result type of Throng.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to act on a failure.
///
/// ```
/// use throng::{Error, ErrorKind};
///
/// fn who_is_called(error: &Error) -> &'static str {
///     match error.kind() {
///         ErrorKind::Job => "whoever wrote the job",
///         ErrorKind::Privacy => "the privacy officer",
///         _ if error.is_retryable() => "nobody: try again",
///         _ => "whoever runs the machine",
///     }
/// }
/// assert_eq!(who_is_called(&Error::new(ErrorKind::Privacy, "k cannot be met")), "the privacy officer");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The job file (or a hierarchy it names) is wrong.
    Job,
    /// The input cannot be read or does not fit the job.
    Input,
    /// A privacy rule cannot be met, or a release does not meet it.
    Privacy,
    /// Memory, disk or another limit is too small.
    Resources,
    /// A conflict in the sink: it holds something that this run must not overwrite.
    Conflict,
    /// A transient failure: the same call may succeed later.
    Retry,
    /// Somebody stopped the run.
    Interrupted,
    /// A fault of Throng itself.
    Internal,
}

impl ErrorKind {
    #[cfg(feature = "cluster")]
    pub(crate) const ALL: [Self; 8] = [
        Self::Job,
        Self::Input,
        Self::Privacy,
        Self::Resources,
        Self::Conflict,
        Self::Retry,
        Self::Interrupted,
        Self::Internal,
    ];

    /// Returns the kind in one word, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Input => "input",
            Self::Privacy => "privacy",
            Self::Resources => "resources",
            Self::Conflict => "conflict",
            Self::Retry => "retry",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An error: who has to act, what to do, and what caused it.
///
/// Messages name the file, key, column or limit, never a value of the data; a cause is kept only if that holds for it,
/// too.
///
/// ```
/// use throng::{Error, ErrorKind};
///
/// let busy = Error::new(ErrorKind::Retry, "the object store is busy");
/// assert!(busy.is_retryable());
/// assert_eq!(busy.to_string(), "the object store is busy");
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Cause>,
}

impl Error {
    /// Creates an error without a cause.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Who has to act on it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind == ErrorKind::Retry
    }

    /// What is wrong, without the prefixes of interrupted runs and internal errors.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Converts the error for DataFusion; [`Error::from`] restores it unchanged.
    #[must_use]
    pub fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }

    /// Adds context in front of the message.
    #[must_use]
    pub fn context(self, what: impl fmt::Display) -> Self {
        self.map_message(|message| format!("{what}: {message}"))
    }

    /// Replaces the message.
    pub(crate) fn map_message(mut self, with: impl FnOnce(String) -> String) -> Self {
        self.message = with(self.message);
        self
    }

    pub(crate) fn job(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Job, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    pub(crate) fn privacy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Privacy, message)
    }

    pub(crate) fn resources(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Resources, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    pub(crate) fn retry(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Retry, message)
    }

    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Interrupted, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Interrupted => write!(f, "interrupted; {}", self.message),
            ErrorKind::Internal => write!(f, "internal error: {} (please report this)", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The reason of an I/O error, without the error number.
pub(crate) fn io_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// The error of a file that cannot be written: a full disk is a lack of resources, a missing or closed folder bad input.
pub(crate) fn unwritable_file(path: &std::path::Path, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let text = format!("{} cannot be written: {}", path.display(), io_reason(error));
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Error::resources(text),
        _ => Error::input(text),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::error::ArrowError;
    use datafusion::parquet::errors::ParquetError;

    use super::*;

    /// Seen failing: the key of DataFusion was named, which nobody can set here.
    #[test]
    fn a_spill_limit_names_our_flag() {
        let text = "The used disk space during the spilling process has exceeded the allowable limit of 1 MB. Please try \
                    increasing the config: `datafusion.runtime.max_temp_directory_size`.";
        let converted = Error::from(DataFusionError::from(std::io::Error::other(text)));
        assert!(
            converted.kind() == ErrorKind::Resources && converted.message().contains("--spill-limit"),
            "{converted:?}"
        );
        assert!(!converted.to_string().contains("datafusion"), "{converted}");
    }

    #[test]
    fn a_full_disk_is_not_a_wrong_place() {
        use std::io::ErrorKind::{NotFound, PermissionDenied, StorageFull};
        let converted = |kind: std::io::ErrorKind| unwritable_file(std::path::Path::new("a/b"), &kind.into()).kind();
        assert_eq!(converted(StorageFull), ErrorKind::Resources);
        assert_eq!([converted(NotFound), converted(PermissionDenied)], [ErrorKind::Input; 2]);
    }

    /// Seen failing: the message of the function was passed on, and it exited with 75 for the name.
    #[test]
    fn what_quotes_values_is_not_passed_on() {
        let secret = || DataFusionError::Execution("Overflow happened on FACTORIAL(7301)".into());
        let foreign = DataFusionError::External("regex parse error: (7301".into());
        for error in [secret(), DataFusionError::Shared(std::sync::Arc::new(secret())), foreign] {
            let converted = Error::from(error);
            assert!(
                converted.kind() == ErrorKind::Input && !format!("{converted:?}").contains("7301"),
                "{converted:?}"
            );
        }
        let named = std::io::Error::from(std::io::ErrorKind::InvalidFilename);
        let error = object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(named) };
        let converted = Error::from(error);
        assert!(converted.kind() == ErrorKind::Input && converted.message().contains("too long"), "{converted:?}");
        let planning = Error::from(DataFusionError::Plan("no function `foo`".into()));
        assert!(planning.to_string().contains("foo"), "the query is the user's own");
    }

    #[test]
    fn a_lost_connection_is_a_passing_fault_however_it_is_wrapped() {
        let lost = || object_store::Error::Generic { store: "S3", source: "connection cut".into() };
        let parquet = || ParquetError::External(Box::new(lost()));
        for error in [
            DataFusionError::ObjectStore(Box::new(lost())),
            DataFusionError::ParquetError(Box::new(parquet())),
            DataFusionError::ArrowError(Box::new(ArrowError::ExternalError(Box::new(parquet()))), None),
            DataFusionError::External(Box::new(parquet())),
            DataFusionError::Shared(std::sync::Arc::new(DataFusionError::ParquetError(Box::new(parquet())))),
        ] {
            let converted = Error::from(error);
            assert!(converted.is_retryable(), "{converted:?}");
        }
        let converted = Error::from(lost()).context("source");
        let cause = std::error::Error::source(&converted).expect("a transient failure has a cause");
        assert!(cause.to_string().contains("connection cut"), "{cause}");
        let damaged = Error::from(ParquetError::EOF("footer".into()));
        assert!(damaged.kind() == ErrorKind::Input, "{damaged:?}");
        // Seen failing: offsets that lead beyond the end of a file were called a transient failure.
        for why in [
            "Requested range was invalid",
            "Out of range of file x, expected: 9, actual: 9",
            "Invalid argument (os error 22)",
        ] {
            let beyond = object_store::Error::Generic { store: "LocalFileSystem", source: why.into() };
            assert_eq!(Error::from(beyond).kind(), ErrorKind::Input, "{why}");
        }
    }
}
