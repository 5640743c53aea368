//! Failures of the crate as Python exceptions, one class for each kind.

use pyo3::prelude::*;
use throng::{Error, ErrorKind};

/// The class of a kind, in `throng._errors`.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Job => "JobError",
        ErrorKind::Input => "InputError",
        ErrorKind::Privacy => "PrivacyError",
        ErrorKind::Resources => "ResourcesError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Retry => "RetryError",
        ErrorKind::Interrupted => "InterruptedRunError",
        _ => "InternalError",
    }
}

/// Converts a failure into the exception of its kind, with the same message.
pub(crate) fn to_exception(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    Python::attach(|py| {
        let raised = py
            .import("throng._errors")
            .and_then(|module| module.getattr(class_name(error.kind())))
            .and_then(|class| class.call1((error.to_string(),)));
        raised.map_or_else(|failed| failed, PyErr::from_value)
    })
}
