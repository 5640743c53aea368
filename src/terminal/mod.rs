//! What commands show: results on standard output, everything else on standard error.

pub(crate) mod summary;
mod table;

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
pub(crate) use table::new_table;

use crate::error::{Error, Result};

/// Text for a terminal: the control characters that a name of the data may hold are escaped, so that none of them acts.
fn escape_controls(text: &str) -> Cow<'_, str> {
    let acts = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if acts(letter) { escaped.extend(letter.escape_default()) } else { escaped.push(letter) }
    }
    Cow::Owned(escaped)
}

/// Writes a line to standard error and ignores failures, which could not be reported anywhere.
pub(crate) fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape_controls(line));
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
    match writeln!(std::io::stdout(), "{}", escape_controls(text.trim_end())) {
        // A reader that closes the pipe early (`| head`) is not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Whether a result has been written to standard output.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_names_do_not_act() {
        assert_eq!(escape_controls("\u{1b}[31mred\0 \r\u{9b}"), "\\u{1b}[31mred\\u{0} \\r\\u{9b}");
        assert!(matches!(escape_controls("two lines\n\tof £ and ü"), Cow::Borrowed(_)));
    }
}
