//! A folder with a job, its input and its sink; the command line; and the released rows read back without Throng.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use assert_cmd::Command;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use tempfile::TempDir;

/// What stands for null in a row that is written as text.
pub const NULL: &str = "∅";

/// A sink `out` that may hold several releases of the same people.
pub const INDEPENDENT: &str = "sink = { url = \"out\", releases = \"independent\" }";

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// What a process has left.
    pub fn from(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The same, when it has ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Asserts that it failed with a code and said every one of `words`.
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in {}", self.err);
        }
    }
}

/// The program under test: the one that was built with the tests, or another that `THRONG_UNDER_TEST` names, so that the
/// same attacks can be shown on two versions.
pub fn program() -> PathBuf {
    std::env::var_os("THRONG_UNDER_TEST").map_or_else(|| env!("CARGO_BIN_EXE_throng").into(), PathBuf::from)
}

/// The command with nothing of the caller's environment that could change what it does.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("THRONG_") || key.starts_with("OTEL_")) {
        command.env_remove(key);
    }
    command.args(arguments);
    command
}

/// Runs the command.
pub fn throng(arguments: &[&str]) -> Ran {
    Ran::from(&command(arguments).output().unwrap())
}

/// Runs a shell script, with the command as `$THRONG`.
pub fn shell(folder: &Path, script: &str) -> Ran {
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("THRONG", program()).args(["-c", script]);
    Ran::from(&shell.output().unwrap())
}

/// A folder that holds a job file `job.toml`, an input and a sink `out`, and goes with the test.
pub struct Desk {
    folder: TempDir,
}

impl Desk {
    /// An empty folder.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with an input `in.parquet` of these columns and a job on it.
    pub fn with(columns: Vec<(&str, ArrayRef)>, job: &str) -> Self {
        let desk = Self::new();
        write_parquet(&desk.path("in.parquet"), &batch(columns));
        desk.job(job);
        desk
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the folder as text.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes the job file: `rest` after version, source and sink. A seed makes its runs repeatable.
    pub fn job(&self, rest: &str) {
        self.secret_job(&seeded(rest));
    }

    /// Writes the job file without a seed: every run has a key of its own. Its releases are independent, so that a test can
    /// publish one table several times; `publishing_again` is about jobs that do not say so.
    pub fn secret_job(&self, rest: &str) {
        self.write("job.toml", &format!("version = 1\nsource.url = \"in.parquet\"\n{INDEPENDENT}\n{rest}\n"));
    }

    /// Runs a command on the job.
    pub fn throng(&self, command: &str, more: &[&str]) -> Ran {
        let job = self.name("job.toml");
        throng(&[&[command, job.as_str()], more].concat())
    }

    /// Runs the job.
    pub fn run(&self, more: &[&str]) -> Ran {
        self.throng("run", more)
    }

    /// All files below the sink.
    pub fn sink_files(&self) -> Vec<PathBuf> {
        files(&self.path("out"))
    }

    /// All released rows of the newest release.
    pub fn released(&self) -> RecordBatch {
        released(&self.path("out"))
    }
}

/// The text of a job with a seed, if it has none.
pub fn seeded(job: &str) -> String {
    if job.contains("method.seed") || job.contains("\nseed =") || job.contains("{ seed =") {
        return job.to_owned();
    }
    for (table, with_seed) in [("[method]", "[method]\nseed = 42"), ("method = {", "method = { seed = 42,")] {
        if job.contains(table) {
            return job.replacen(table, with_seed, 1);
        }
    }
    format!("method.seed = 42\n{job}")
}

/// Lets the leases of runs that were killed run out, as they do when nobody renews them.
pub fn expire_leases(sink: &Path) {
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for lease in files(sink).iter().filter(|file| file.ends_with("_lease")) {
        File::options().write(true).open(lease).unwrap().set_modified(long_ago).unwrap();
    }
}

/// All files below a folder, sorted; none when it does not exist.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The manifest that `_latest` of a sink points to.
pub fn manifest(sink: &Path) -> Value {
    let read = |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    read(sink.join(read(sink.join("_latest"))["manifest"].as_str().unwrap()))
}

/// The released files of the newest release of a sink.
pub fn released_files(sink: &Path) -> Vec<PathBuf> {
    let manifest = manifest(sink);
    manifest["files"].as_array().unwrap().iter().map(|file| sink.join(file["path"].as_str().unwrap())).collect()
}

/// All rows of the newest release of a sink.
pub fn released(sink: &Path) -> RecordBatch {
    let parts: Vec<RecordBatch> = released_files(sink).iter().map(|path| read_parquet(path)).collect();
    concat_batches(&parts[0].schema(), &parts).unwrap()
}

/// A batch of columns that may all hold nulls.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Writes a batch as one Parquet file.
pub fn write_parquet(path: &Path, rows: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// Reads a Parquet file.
pub fn read_parquet(path: &Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::clone(builder.schema());
    let parts: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &parts).unwrap()
}

/// Every value of a column as text.
pub fn texts(rows: &RecordBatch, column: &str) -> Vec<String> {
    let array = rows.column_by_name(column).unwrap_or_else(|| panic!("no column {column}"));
    let options = FormatOptions::default().with_null(NULL);
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).unwrap();
    (0..rows.num_rows()).map(|row| formatter.value(row).to_string()).collect()
}

/// Every row as text, some columns of it.
pub fn lines(rows: &RecordBatch, columns: &[String]) -> Vec<String> {
    let mut lines = vec![String::new(); rows.num_rows()];
    for column in columns {
        lines.iter_mut().zip(texts(rows, column)).for_each(|(line, text)| *line += &format!("{text}|"));
    }
    lines
}

/// The rows as a multiset: all columns as text, sorted.
pub fn multiset(rows: &RecordBatch) -> Vec<String> {
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut lines = lines(rows, &names);
    lines.sort_unstable();
    lines
}

/// How often each line occurs.
pub fn counts(lines: Vec<String>) -> std::collections::BTreeMap<String, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

/// Methods that must see all rows of a table in one cell.
pub const WHOLE_TABLE: [&str; 5] = ["full-domain", "incognito", "samarati", "datafly", "spalm"];
