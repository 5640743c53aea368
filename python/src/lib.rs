//! The extension module behind the Python package `throng`: it converts arguments and results, and calls the crate. What is
//! shown to Python programmers, with its documentation, is in `throng/`.

mod datafusion;
mod errors;
mod input;
mod jobs;
mod output;
mod policy;
mod process;
mod session;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the `throng` command and returns its exit code.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| throng::cli::main(arguments))
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::datafusion::{AnonymizeTables, TableCodec};
    #[pymodule_export]
    use super::jobs::{Job, list_releases, profile_files, profile_rows, report_sink, verify_sink};
    #[pymodule_export]
    use super::output::{AnonymizedRows, Batches, anonymize};
    #[pymodule_export]
    use super::policy::Policy;
    #[pymodule_export]
    use super::run_command;

    use super::{PyModule, PyResult, process};
    use pyo3::types::PyModuleMethods;

    #[pymodule_init]
    fn init(module: &super::Bound<'_, PyModule>) -> PyResult<()> {
        process::remember_main_thread();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
