//! Where the files of a job are: paths relative to the job file, source and sink compared.

use std::path::{Component, Path, PathBuf};

/// Whether a location is a URL rather than a path of the local file system.
pub(crate) fn is_url(location: &str) -> bool {
    location
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

/// The local path of a location; `None` if it is on an object store.
pub(crate) fn local_path(base: &Path, location: &str) -> Option<PathBuf> {
    match location.strip_prefix("file://") {
        Some(path) => Some(PathBuf::from(path)),
        None if is_url(location) => None,
        None => Some(base.join(location)),
    }
}

/// The part of a location before its first wildcard, without `.` and `..`, as a list of names: two locations overlap
/// when the shorter list begins the longer one.
pub(crate) fn location_names(base: &Path, location: &str) -> Vec<String> {
    let path = match local_path(base, location) {
        Some(path) => std::path::absolute(&path).unwrap_or(path),
        None => PathBuf::from(location.replacen("://", "/", 1)),
    };
    let mut names: Vec<String> = Vec::new();
    for part in path.components() {
        let name = part.as_os_str().to_string_lossy();
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                names.pop();
            }
            _ if name.contains(['*', '?', '[']) => break,
            _ => names.push(name.into_owned()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_at_the_job_file() {
        let base = Path::new("/jobs");
        assert_eq!(local_path(base, "file:///data"), Some(PathBuf::from("/data")));
        assert_eq!(local_path(base, "s3://lake"), None);
    }

    #[test]
    fn names_stop_at_a_wildcard() {
        let base = Path::new("/jobs");
        assert_eq!(location_names(base, "../in/./a/*.parquet"), location_names(base, "/in/a"));
        assert_eq!(location_names(base, "s3://lake/a/?/b"), ["s3", "lake", "a"]);
    }
}
