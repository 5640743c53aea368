//! Arguments that several commands take: the job file and changes to it, limits of a run, object stores and the cluster.

#[cfg(feature = "cluster")]
mod cluster;
mod stores;

use std::io;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use clap::Args;
#[cfg(feature = "cluster")]
pub(crate) use cluster::ClusterArguments;
pub(crate) use stores::StoreArguments;

use crate::engine::SessionOptions;
use crate::error::{Error, ErrorKind, Result, io_reason};
use crate::policy::Job;
use crate::storage::read_job_text;

/// The job file and its overrides.
#[derive(Debug, Args)]
pub(crate) struct JobArguments {
    /// The job file
    pub(crate) job: PathBuf,
    /// Override a key of the job file, for example --set privacy.k=20
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) settings: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) stores: StoreArguments,
}

impl JobArguments {
    /// The job, and the folder to which its paths are relative.
    pub(crate) fn read_job(&self) -> Result<(Job, PathBuf)> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let (mut job, base) = read_job(&self.job, &settings)?;
        self.stores.lay_over(&mut job);
        Ok((job, base))
    }

    /// Names the job file in front of every problem with it.
    pub(crate) fn blame_job_file(&self, error: Error) -> Error {
        blame_job_file(&self.job, error)
    }
}

/// A job file with overrides, and the folder to which its paths are relative.
pub(crate) fn read_job(path: &Path, settings: &[(&str, &str)]) -> Result<(Job, PathBuf)> {
    let text = read_job_text(path).map_err(|error| {
        let draft = format!("`throng profile {} --write job.toml` drafts a job for the data in it", path.display());
        Error::job(match error.kind() {
            io::ErrorKind::IsADirectory => format!("{} is a folder, not a job file; {draft}", path.display()),
            io::ErrorKind::InvalidData => format!("{} is not text, so it is not a job file; {draft}", path.display()),
            _ => format!("{} cannot be read: {}", path.display(), io_reason(&error)),
        })
    })?;
    let job = Job::parse_with(&text, path, settings)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((job, folder.unwrap_or(Path::new(".")).to_owned()))
}

/// Names a job file in front of every problem with it.
pub(crate) fn blame_job_file(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::Job {
        return error;
    }
    let file = path.display();
    let help = |line: &str| line.starts_with(' ');
    let named = |line: &str| if help(line) { line.to_owned() } else { format!("{file}: {line}") };
    error.map_message(|text| text.lines().map(named).collect::<Vec<_>>().join("\n"))
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must have the form KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn parse_size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "must be a size such as 512MB or 4GiB".to_owned())
}

/// Memory, spill and partitions.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// Memory limit of the run, for example 4GB; beyond it, the run spills to disk
    #[arg(long, env = "THRONG_MEMORY_LIMIT", value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<ByteSize>,
    /// Folder for spill files, which hold raw data. Defaults to the system's temporary folder
    #[arg(long, env = "THRONG_SPILL_DIR", value_name = "FOLDER")]
    pub(crate) spill_dir: Option<PathBuf>,
    /// Limit of disk space for spill files, for example 100GB
    #[arg(long, env = "THRONG_SPILL_LIMIT", value_name = "SIZE", value_parser = parse_size)]
    pub(crate) spill_limit: Option<ByteSize>,
    /// Number of concurrent partitions, which does not affect the release. Defaults to one per core
    #[arg(long, env = "THRONG_PARTITIONS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) partitions: Option<u64>,
    /// Rows per batch inside the engine, which does not affect the release
    #[arg(long, env = "THRONG_BATCH_ROWS", value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_rows: Option<u64>,
}

impl Limits {
    pub(crate) fn session_options(&self) -> SessionOptions {
        SessionOptions {
            memory_limit: self.memory_limit.map(|size| size.0 as usize),
            spill_dir: self.spill_dir.clone(),
            spill_limit: self.spill_limit.map(|size| size.0),
            partitions: self.partitions.map(|number| number as usize),
            batch_rows: self.batch_rows.map(|number| number as usize),
        }
    }
}
