//! Bounded reading of files that users name and that may not end: `/dev/zero`, a pipe, a growing log.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a job or policy file, or of a file of SQL statements, in bytes.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Reads a job or policy file.
pub(crate) fn read_job_text(path: &Path) -> io::Result<String> {
    read_text(path, MAX_TEXT_BYTES, "job file")
}

/// Reads SQL statements from a file or a stream.
#[cfg(any(feature = "cli", test))]
pub(crate) fn read_statements(from: impl Read) -> io::Result<String> {
    into_text(read_at_most(from, MAX_TEXT_BYTES, "file of statements")?)
}

/// Reads a text file, which may be a pipe, of at most `most` bytes; `what` names its kind in errors.
pub(crate) fn read_text(path: &Path, most: u64, what: &str) -> io::Result<String> {
    into_text(read_at_most(File::open(path)?, most, what)?)
}

/// Reads to the end, or one byte beyond what is allowed.
pub(crate) fn read_at_most(from: impl Read, most: u64, what: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let most = if most < 1 << 20 { format!("{most} bytes") } else { format!("{} megabytes", most >> 20) };
        return Err(io::Error::other(format!("it holds more than {most}, so it is not a {what}")));
    }
    Ok(bytes)
}

fn into_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_where_the_file_does_not() {
        let refusal = |most: u64| read_at_most(io::repeat(0), most, "key file").unwrap_err().to_string();
        assert_eq!(refusal(4096), "it holds more than 4096 bytes, so it is not a key file");
        assert_eq!(refusal(2 << 20), "it holds more than 2 megabytes, so it is not a key file");
        assert_eq!(read_at_most(io::repeat(7).take(10), 10, "key file").unwrap(), [7; 10]);
        let binary = read_statements([0xff_u8, 0xfe].as_slice()).unwrap_err();
        assert_eq!(binary.kind(), io::ErrorKind::InvalidData);
    }
}
