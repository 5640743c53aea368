//! Opening the hierarchies of a job.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::model::{CalendarUnit, HierarchySpec, Job, Side};
use crate::error::{Error as ThrongError, Result};
use crate::hierarchy::{Calendar, End, Hierarchy, HierarchyError, Ladder, LevelTree, Mask, Unit};

/// The hierarchies of a job.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    /// Hierarchies by column; those by quantiles are missing, their bounds come from the data.
    pub hierarchies: BTreeMap<String, Arc<Hierarchy>>,
    /// Contents of the hierarchy files, by path as the job writes it.
    pub contents: BTreeMap<String, String>,
}

/// Opens and validates all hierarchies of a job. `base` is the folder of the job file.
pub(super) fn hierarchies(job: &Job, base: &Path) -> Result<Loaded> {
    hierarchies_with(job, |path| read(base, path))
}

/// Opens and validates all hierarchies of a job from files that were read before.
pub(super) fn hierarchies_from(job: &Job, files: &BTreeMap<String, String>) -> Result<Loaded> {
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
        let hierarchy = opened.map_err(|error| ThrongError::Job(format!("columns.{name}.hierarchy: {error}")))?;
        loaded.hierarchies.extend(hierarchy.map(|hierarchy| (name.clone(), Arc::new(hierarchy))));
    }
    Ok(loaded)
}

/// A hierarchy that cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file, as the job names it.
        path: String,
        /// Why not.
        reason: io::Error,
    },
    /// The file is not a hierarchy.
    #[error("{path}: {error}")]
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
    /// [`Ladder::quantiles`]).
    pub fn open(&self, base: &Path) -> Result<Option<Hierarchy>, OpenError> {
        self.open_with(|path| read(base, path))
    }

    fn open_with(&self, read: impl FnOnce(&str) -> Result<String, OpenError>) -> Result<Option<Hierarchy>, OpenError> {
        let hierarchy = match self {
            Self::File(path) => {
                let tree = LevelTree::from_csv(&read(path)?);
                Hierarchy::Levels(tree.map_err(|error| OpenError::File { path: path.clone(), error })?)
            }
            Self::Tree { tree } => Hierarchy::Levels(LevelTree::from_inline(tree)?),
            Self::Mask { mask, fill, keep } => Hierarchy::Mask(Mask::new((*mask).into(), *fill, keep.as_deref())?),
            Self::Widths { widths, origin } => Hierarchy::Ladder(Ladder::widths(widths, *origin)?),
            Self::Bounds { bounds } => Hierarchy::Ladder(Ladder::bounds(bounds)?),
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

impl Job {
    /// Contents of all hierarchy files, by path as the job writes it.
    pub fn hierarchy_files(&self, base: &Path) -> Result<BTreeMap<String, String>, OpenError> {
        let mut files = BTreeMap::new();
        for column in self.columns.values() {
            if let Some(HierarchySpec::File(path)) = &column.hierarchy {
                files.insert(path.clone(), read(base, path)?);
            }
        }
        Ok(files)
    }
}

fn read(base: &Path, path: &str) -> Result<String, OpenError> {
    std::fs::read_to_string(base.join(path)).map_err(|reason| OpenError::Read { path: path.to_owned(), reason })
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

    #[test]
    fn hierarchies_come_with_the_text_they_were_made_from() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x;*\ny;*\n").unwrap();
        let text = "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nprivacy.k = 2\n[columns]\n\
                    a = { role = \"quasi\", hierarchy = \"a.csv\" }\nb = { role = \"quasi\", hierarchy.widths = [5] }\n\
                    c = { role = \"quasi\", hierarchy.quantiles = [4] }\nd.role = \"quasi\"\n";
        let job = Job::parse(text, Path::new("job.toml")).unwrap();
        let loaded = hierarchies(&job, folder.path()).unwrap();
        assert_eq!(loaded.hierarchies.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(loaded.contents, job.hierarchy_files(folder.path()).unwrap());
        assert_eq!(loaded.contents["a.csv"], "x;*\ny;*\n");
        let missing = hierarchies(&job, Path::new("nowhere")).unwrap_err().to_string();
        assert!(missing.starts_with("columns.a.hierarchy: cannot read a.csv: "), "{missing}");
    }
}
