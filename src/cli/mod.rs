//! The command line: one file per subcommand. Results go to standard output, everything else to standard error.

mod attack;
mod check;
mod generate;
mod plan;
mod progress;
mod releases;
mod run;
mod schema;
mod sql;
mod summary;
mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::release::SessionOptions;

/// Anonymises large Parquet datasets: every row leaves in a throng of at least k
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    /// Say less: no progress, no summary
    #[arg(short, long, global = true, env = "THRONG_QUIET")]
    quiet: bool,
    /// Say more about what happens
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, or already done; 2 wrong usage; 3 the job file is wrong; 4 the input cannot be used; \
5 a privacy rule cannot be met, or does not hold; 6 memory or disk is too small; 7 the sink holds a conflicting \
release; 75 a passing fault, try again; 130 interrupted";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Check(check::Arguments),
    Plan(plan::Arguments),
    Verify(verify::Arguments),
    Attack(attack::Arguments),
    Generate(generate::Arguments),
    Schema(schema::Arguments),
    Sql(sql::Arguments),
    Releases(releases::Releases),
    Rollback(releases::Rollback),
    Gc(releases::Gc),
}

/// The job file and changes to it.
#[derive(Debug, Args)]
struct JobArguments {
    /// The job file
    job: PathBuf,
    /// Change a key of the job file, for example --set privacy.k=20
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

impl JobArguments {
    /// The job, and the folder that its relative paths start at.
    fn read(&self) -> Result<(Job, PathBuf)> {
        let text = std::fs::read_to_string(&self.job)
            .map_err(|error| Error::Job(format!("{} cannot be read: {error}", self.job.display())))?;
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let job = Job::parse_with(&text, &self.job, &settings).map_err(|error| Error::Job(error.to_string()))?;
        let folder = self.job.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok((job, folder.unwrap_or(Path::new(".")).to_owned()))
    }

    /// Names the job file in front of every problem with it.
    fn blame(&self, error: Error) -> Error {
        let Error::Job(text) = error else { return error };
        let file = self.job.display();
        let help = |line: &str| line.starts_with(' ');
        let named = |line: &str| if help(line) { line.to_owned() } else { format!("{file}: {line}") };
        Error::Job(text.lines().map(named).collect::<Vec<_>>().join("\n"))
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Memory, spill and partitions.
#[derive(Debug, Args)]
struct Limits {
    /// Most memory for the run, for example 4GB; it spills to disk beyond
    #[arg(long, env = "THRONG_MEMORY_LIMIT", value_name = "SIZE")]
    memory_limit: Option<ByteSize>,
    /// Folder for spill files, which hold raw data; the system's temporary folder when absent
    #[arg(long, env = "THRONG_SPILL_DIR", value_name = "FOLDER")]
    spill_dir: Option<PathBuf>,
    /// Most disk space for spill files, for example 100GB
    #[arg(long, env = "THRONG_SPILL_LIMIT", value_name = "SIZE")]
    spill_limit: Option<ByteSize>,
    /// Partitions that work at the same time; one per core when absent. The release does not depend on it
    #[arg(long, env = "THRONG_PARTITIONS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    partitions: Option<u64>,
    /// Rows per batch inside the engine. The release does not depend on it
    #[arg(long, env = "THRONG_BATCH_ROWS", value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    batch_rows: Option<u64>,
}

impl Limits {
    fn options(&self) -> SessionOptions {
        SessionOptions {
            memory_limit: self.memory_limit.map(|size| size.0 as usize),
            spill_dir: self.spill_dir.clone(),
            spill_limit: self.spill_limit.map(|size| size.0),
            partitions: self.partitions.map(|number| number as usize),
            batch_rows: self.batch_rows.map(|number| number as usize),
        }
    }
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.verbose { "throng=debug" } else { "throng=warn" };
    let filter = EnvFilter::try_from_env("THRONG_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Error::Resources(format!("threads cannot be started: {error}"))),
    };
    let done = runtime.block_on(async {
        match cli.command {
            Command::Run(arguments) => run::run(arguments, cli.quiet).await,
            Command::Check(arguments) => check::run(arguments).await,
            Command::Plan(arguments) => plan::run(arguments).await,
            Command::Verify(arguments) => verify::run(arguments, cli.quiet).await,
            Command::Attack(arguments) => attack::run(arguments).await,
            Command::Generate(arguments) => generate::run(&arguments, cli.quiet),
            Command::Schema(arguments) => schema::run(&arguments),
            Command::Sql(arguments) => sql::run(arguments).await,
            Command::Releases(arguments) => releases::list(arguments).await,
            Command::Rollback(arguments) => releases::rollback(arguments, cli.quiet).await,
            Command::Gc(arguments) => releases::gc(arguments, cli.quiet).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    say(&format!("error: {error}"));
    ExitCode::from(error.exit_code())
}

/// Writes a line to standard error; nobody is left to tell when that fails.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
