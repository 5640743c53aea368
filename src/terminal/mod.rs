//! What commands show: results on standard output, everything else on standard error.

pub(crate) mod summary;
mod table;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
pub(crate) use table::new_table;

use crate::error::{Error, Result};

/// Writes a line to standard error and ignores failures, which could not be reported anywhere.
pub(crate) fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether a result has been written.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Writes a result to standard output as JSON.
pub(crate) fn print_json(result: &impl Serialize) -> Result<()> {
    print_result(&serde_json::to_string_pretty(result).map_err(|error| Error::internal(error.to_string()))?)
}

/// Writes a result to standard output.
pub(crate) fn print_result(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // A reader that closes the pipe early (`| head`) is not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Whether a result has been written to standard output.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}
