//! Opening the hierarchies of a job.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::model::{CalendarUnit, HierarchySpec, Job, Side};
use crate::error::{Error as ThrongError, Result};
use crate::hierarchy::{Calendar, End, Hierarchy, HierarchyError, Ladder, LevelTree, MAX_LEVELS, Mask, Unit};
use crate::storage::bounded::read_text;

/// Maximum size of a hierarchy file in bytes: a thousand for every leaf that it may have.
pub(crate) const MAX_HIERARCHY_BYTES: u64 = 64 << 20;

/// The hierarchies of a job.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// Hierarchies by column; those by quantiles are missing, their bounds come from the data.
    pub hierarchies: BTreeMap<String, Arc<Hierarchy>>,
    /// Contents of the hierarchy files, by path as the job writes it.
    pub contents: BTreeMap<String, String>,
}

/// Opens and validates all hierarchies of a job. `base` is the folder of the job file.
pub(crate) fn open_hierarchies(job: &Job, base: &Path) -> Result<Loaded> {
    hierarchies_with(job, |path| read_file(base, path))
}

/// Opens and validates all hierarchies of a job from files that were read before.
pub(crate) fn hierarchies_from(job: &Job, files: &BTreeMap<String, String>) -> Result<Loaded> {
    hierarchies_with(job, |path| {
        let missing = || OpenError::Read { path: path.to_owned(), reason: io::ErrorKind::NotFound.into() };
        files.get(path).cloned().ok_or_else(missing)
    })
}

fn hierarchies_with(job: &Job, read: impl Fn(&str) -> Result<String, OpenError>) -> Result<Loaded> {
    let mut loaded = Loaded { hierarchies: BTreeMap::new(), contents: BTreeMap::new() };
    for (name, column) in &job.columns {
        let Some(spec) = &column.hierarchy else { continue };
        // Read once: what is hashed is what is used.
        let opened = spec.open_with(|path| {
            let text = read(path)?;
            loaded.contents.insert(path.to_owned(), text.clone());
            Ok(text)
        });
        let hierarchy = opened.map_err(|error| ThrongError::job(format!("columns.{name}.hierarchy: {error}")))?;
        loaded.hierarchies.extend(hierarchy.map(|hierarchy| (name.clone(), Arc::new(hierarchy))));
    }
    Ok(loaded)
}

/// A hierarchy that cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file, as the job names it.
        path: String,
        /// The reason.
        reason: io::Error,
    },
    /// The file is too large.
    #[error("{path} holds more than {} MiB, the limit of a hierarchy file", MAX_HIERARCHY_BYTES >> 20)]
    TooLarge {
        /// The file, as the job names it.
        path: String,
    },
    /// A device, a pipe or a folder, which need not end.
    #[error("{path} is not a file; a hierarchy is read from a plain file")]
    NotAFile {
        /// What it is called, as the job names it.
        path: String,
    },
    /// The file is not a hierarchy. Its labels are values of the data, and errors of a run end in logs.
    #[error("{path}: {}", .error.without_labels())]
    File {
        /// The file, as the job names it.
        path: String,
        /// What is wrong with it.
        error: HierarchyError,
    },
    /// The table in the job file is not a hierarchy.
    #[error(transparent)]
    Inline(#[from] HierarchyError),
}

impl HierarchySpec {
    /// Opens and validates the hierarchy. `None` for quantiles, whose bounds come from the data (see
    /// [`Ladder::from_quantiles`]).
    pub(crate) fn open_hierarchy(&self, base: &Path) -> Result<Option<Hierarchy>, OpenError> {
        self.open_with(|path| read_file(base, path))
    }

    fn open_with(&self, read: impl FnOnce(&str) -> Result<String, OpenError>) -> Result<Option<Hierarchy>, OpenError> {
        let levels = match self {
            Self::Widths { widths, .. } => widths.len(),
            Self::Bounds { bounds } => bounds.len(),
            Self::Quantiles { quantiles } => quantiles.len(),
            // The others need no data.
            Self::File(_) | Self::Tree { .. } | Self::Mask { .. } | Self::Calendar { .. } => 0,
        };
        if levels > MAX_LEVELS {
            return Err(HierarchyError::TooManyLevels(levels).into());
        }
        let hierarchy = match self {
            Self::File(path) => {
                let tree = LevelTree::from_csv(&read(path)?);
                Hierarchy::Levels(tree.map_err(|error| OpenError::File { path: path.clone(), error })?)
            }
            Self::Tree { tree } => Hierarchy::Levels(LevelTree::from_inline(tree)?),
            Self::Mask { mask, fill, keep } => Hierarchy::Mask(Mask::new((*mask).into(), *fill, keep.as_deref())?),
            Self::Widths { widths, origin } => Hierarchy::Ladder(Ladder::from_widths(widths, *origin)?),
            Self::Bounds { bounds } => Hierarchy::Ladder(Ladder::from_bounds(bounds)?),
            Self::Quantiles { quantiles } => {
                Ladder::check_quantiles(quantiles)?;
                return Ok(None);
            }
            Self::Calendar { calendar } => {
                let units: Vec<Unit> = calendar.iter().map(|&unit| unit.into()).collect();
                Hierarchy::Calendar(Calendar::new(&units)?)
            }
        };
        Ok(Some(hierarchy))
    }
}

fn read_file(base: &Path, path: &str) -> Result<String, OpenError> {
    let (found, path) = (base.join(path), path.to_owned());
    match std::fs::metadata(&found) {
        Err(reason) => return Err(OpenError::Read { path, reason }),
        Ok(known) if !known.is_file() => return Err(OpenError::NotAFile { path }),
        Ok(known) if known.len() > MAX_HIERARCHY_BYTES => return Err(OpenError::TooLarge { path }),
        Ok(_) => {}
    }
    read_text(&found, MAX_HIERARCHY_BYTES, "hierarchy file").map_err(|reason| OpenError::Read { path, reason })
}

impl From<Side> for End {
    fn from(side: Side) -> Self {
        match side {
            Side::Left => Self::Left,
            Side::Right => Self::Right,
        }
    }
}

impl From<CalendarUnit> for Unit {
    fn from(unit: CalendarUnit) -> Self {
        match unit {
            CalendarUnit::Day => Self::Day,
            CalendarUnit::Month => Self::Month,
            CalendarUnit::Quarter => Self::Quarter,
            CalendarUnit::Year => Self::Year,
            CalendarUnit::Decade => Self::Decade,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen failing: `/dev/zero` was read until memory ended.
    #[test]
    fn what_need_not_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |path: &str| read_file(folder.path(), path).unwrap_err().to_string();
        assert_eq!(refusal("/dev/zero"), "/dev/zero is not a file; a hierarchy is read from a plain file");
        assert!(refusal(".").contains("is not a file"));
        let large = std::fs::File::create(folder.path().join("large.csv")).unwrap();
        large.set_len(MAX_HIERARCHY_BYTES + 1).unwrap();
        assert_eq!(refusal("large.csv"), "large.csv holds more than 64 MiB, the limit of a hierarchy file");
        let spec = HierarchySpec::Widths { widths: vec![1.0; 60_000], origin: 0.0 };
        assert!(
            spec.open_hierarchy(folder.path()).unwrap_err().to_string().contains("60000 levels, but the limit is 100")
        );
    }

    #[test]
    fn hierarchies_come_with_the_text_they_were_made_from() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x;*\ny;*\n").unwrap();
        let text = "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nprivacy.k = 2\n[columns]\n\
                    a = { role = \"quasi\", hierarchy = \"a.csv\" }\nb = { role = \"quasi\", hierarchy.widths = [5] }\n\
                    c = { role = \"quasi\", hierarchy.quantiles = [4] }\nd.role = \"quasi\"\n";
        let job = Job::parse(text, Path::new("job.toml")).unwrap();
        let loaded = open_hierarchies(&job, folder.path()).unwrap();
        assert_eq!(loaded.hierarchies.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(loaded.contents.keys().collect::<Vec<_>>(), ["a.csv"]);
        assert_eq!(loaded.contents["a.csv"], "x;*\ny;*\n");
        let missing = open_hierarchies(&job, Path::new("nowhere")).unwrap_err().to_string();
        assert!(missing.starts_with("columns.a.hierarchy: cannot read a.csv: "), "{missing}");
    }
}
