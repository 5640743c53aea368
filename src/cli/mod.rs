//! The command line: one file per subcommand. Results go to standard output, everything else to standard error.

mod attack;
mod attack_series;
mod bound;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod forget;
mod generate;
mod hierarchy;
mod plan;
mod profile;
mod recommend;
mod releases;
mod report;
mod run;
mod schema;
mod sql;
mod stores;
mod summary;
mod sweep;
mod table;
mod verify;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use bytesize::ByteSize;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result, reason};
use crate::faults;
use crate::policy::Job;
use crate::release::SessionOptions;
use crate::storage::read_job_text;
use crate::telemetry::logging::{LogFormat, Logging};

/// Anonymises large Parquet datasets: every row leaves in a throng of at least k
#[derive(Debug, Parser)]
#[command(version = VERSION, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    /// Say less: no progress, no summary, no warnings
    #[arg(short, long, global = true, env = "THRONG_QUIET")]
    quiet: bool,
    /// Say more about what happens: the phases of a run; -vv and -vvv still more. THRONG_LOG=throng=debug sets the level
    /// by the rules of Rust's tracing instead; lines of other crates (datafusion=debug) may hold raw values
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How log lines on standard error are written
    #[arg(long, global = true, env = "THRONG_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

/// Faults can be planted in builds for tests, which must not pass for others.
const VERSION: &str = if faults::ENABLED {
    concat!(env!("CARGO_PKG_VERSION"), " with fault injection: for tests only")
} else {
    env!("CARGO_PKG_VERSION")
};

const EXIT_CODES: &str = "\
Exit codes:
  0    done, or already done
  1    a fault of Throng itself: please report it
  2    wrong usage
  3    the job file, or a hierarchy it names, is wrong
  4    the input cannot be used, or a place cannot be read or written
  5    a privacy rule cannot be met, or a release does not hold
  6    memory or disk is too small
  7    the sink holds something in the way
  75   a passing fault: try again
  130  interrupted; nothing was published

Example: throng run pipelines/census.toml";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Check(check::Arguments),
    Plan(plan::Arguments),
    Verify(verify::Arguments),
    Attack(attack::Arguments),
    Profile(profile::Arguments),
    Report(report::Arguments),
    Sweep(sweep::Arguments),
    Bound(bound::Arguments),
    Recommend(recommend::Arguments),
    Hierarchy(hierarchy::Arguments),
    Generate(generate::Arguments),
    Schema(schema::Arguments),
    Sql(sql::Arguments),
    Releases(releases::Releases),
    Rollback(releases::Rollback),
    Gc(releases::Gc),
    Forget(forget::Arguments),
    #[cfg(feature = "cluster")]
    Scheduler(cluster::SchedulerArguments),
    #[cfg(feature = "cluster")]
    Executor(cluster::ExecutorArguments),
    Completions(completions::Completions),
    Man(completions::Man),
}

impl Command {
    /// Whether it serves others until it is stopped.
    fn is_daemon(&self) -> bool {
        #[cfg(feature = "cluster")]
        return matches!(self, Self::Scheduler(_) | Self::Executor(_));
        #[cfg(not(feature = "cluster"))]
        false
    }

    /// Whether it can be left at any moment. A run and the roles of a cluster end by their own rules, a rollback is one
    /// step, and the others are done before anybody could ask them to stop.
    fn is_interruptible(&self) -> bool {
        !self.is_daemon()
            && !matches!(
                self,
                Self::Run(_)
                    | Self::Rollback(_)
                    | Self::Generate(_)
                    | Self::Schema(_)
                    | Self::Completions(_)
                    | Self::Man(_)
            )
    }

    async fn run(self, quiet: bool) -> Result<()> {
        match self {
            Self::Run(arguments) => run::run(arguments, quiet).await,
            Self::Check(arguments) => check::run(arguments).await,
            Self::Plan(arguments) => plan::run(arguments).await,
            Self::Verify(arguments) => verify::run(arguments, quiet).await,
            Self::Attack(arguments) => attack::run(arguments).await,
            Self::Profile(arguments) => profile::run(arguments, quiet).await,
            Self::Report(arguments) => report::run(arguments, quiet).await,
            Self::Sweep(arguments) => sweep::run(arguments, quiet).await,
            Self::Bound(arguments) => bound::run(arguments, quiet).await,
            Self::Recommend(arguments) => recommend::run(arguments, quiet).await,
            Self::Hierarchy(arguments) => hierarchy::run(arguments, quiet).await,
            Self::Generate(arguments) => generate::run(&arguments, quiet),
            Self::Schema(arguments) => schema::run(&arguments),
            Self::Sql(arguments) => sql::run(arguments).await,
            Self::Releases(arguments) => releases::list(arguments).await,
            Self::Rollback(arguments) => releases::rollback(arguments, quiet).await,
            Self::Gc(arguments) => releases::gc(arguments, quiet).await,
            Self::Forget(arguments) => forget::run(arguments, quiet).await,
            #[cfg(feature = "cluster")]
            Self::Scheduler(arguments) => cluster::schedule(arguments).await,
            #[cfg(feature = "cluster")]
            Self::Executor(arguments) => cluster::execute(arguments).await,
            Self::Completions(arguments) => completions::completions(&arguments),
            Self::Man(arguments) => completions::man(&arguments, quiet),
        }
    }
}

/// The job file and changes to it.
#[derive(Debug, Args)]
struct JobArguments {
    /// The job file
    job: PathBuf,
    /// Change a key of the job file, for example --set privacy.k=20
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    stores: stores::StoreArguments,
}

impl JobArguments {
    /// The job, and the folder that its relative paths start at.
    fn read(&self) -> Result<(Job, PathBuf)> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let (mut job, base) = read_job(&self.job, &settings)?;
        self.stores.lay_over(&mut job);
        Ok((job, base))
    }

    /// Names the job file in front of every problem with it.
    fn blame(&self, error: Error) -> Error {
        blame(&self.job, error)
    }
}

/// A job file with changes to it, and the folder that its relative paths start at.
fn read_job(path: &Path, settings: &[(&str, &str)]) -> Result<(Job, PathBuf)> {
    let text = read_job_text(path).map_err(|error| {
        let draft = format!("`throng profile {} --write job.toml` drafts a job for the data in it", path.display());
        Error::job(match error.kind() {
            io::ErrorKind::IsADirectory => format!("{} is a folder, not a job file; {draft}", path.display()),
            io::ErrorKind::InvalidData => format!("{} is not text, so no job file; {draft}", path.display()),
            _ => format!("{} cannot be read: {}", path.display(), reason(&error)),
        })
    })?;
    let job = Job::parse_with(&text, path, settings).map_err(|error| Error::job(error.to_string()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((job, folder.unwrap_or(Path::new(".")).to_owned()))
}

/// Names a job file in front of every problem with it.
fn blame(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::Job {
        return error;
    }
    let file = path.display();
    let help = |line: &str| line.starts_with(' ');
    let named = |line: &str| if help(line) { line.to_owned() } else { format!("{file}: {line}") };
    error.map_message(|text| text.lines().map(named).collect::<Vec<_>>().join("\n"))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "must be a size such as 512MB or 4GiB".to_owned())
}

/// Memory, spill and partitions.
#[derive(Debug, Args)]
struct Limits {
    /// Most memory for the run, for example 4GB; it spills to disk beyond
    #[arg(long, env = "THRONG_MEMORY_LIMIT", value_name = "SIZE", value_parser = size)]
    memory_limit: Option<ByteSize>,
    /// Folder for spill files, which hold raw data; the system's temporary folder when absent
    #[arg(long, env = "THRONG_SPILL_DIR", value_name = "FOLDER")]
    spill_dir: Option<PathBuf>,
    /// Most disk space for spill files, for example 100GB
    #[arg(long, env = "THRONG_SPILL_LIMIT", value_name = "SIZE", value_parser = size)]
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

/// Threads beside those of the cores, for cells and files. What a thread has freed stays with it, so a run has no more of
/// them than keep the cores busy; but those of a cluster's roles wait for each other, and must not run out.
fn blocking_threads(command: &Command) -> usize {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    if command.is_daemon() { 512 } else { 2 * cores.max(2) }
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    crate::telemetry::allocator::set_up();
    let matches = Cli::command().get_matches();
    let json = asks_for_json(&matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(fault) = faults::planted() {
        eprint_line(&format!(
            "warning: THRONG_TEST_FAULT plants the fault `{fault}`; nothing that this run makes is fit for use"
        ));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(blocking_threads(&cli.command))
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Error::resources(format!("threads cannot be started: {error}")), json),
    };
    let logging = {
        let _inside = runtime.enter();
        // Roles of a cluster have nothing but their logs to show.
        let verbose = cli.verbose + u8::from(cli.command.is_daemon());
        Logging::start(cli.log_format, verbose, cli.quiet).unwrap_or_else(|message| usage_error(&message))
    };
    let done = runtime.block_on(async {
        if !cli.command.is_interruptible() {
            return cli.command.run(cli.quiet).await;
        }
        // What it holds goes with it: spill folders, uploads, tasks.
        tokio::select! {
            done = cli.command.run(cli.quiet) => done,
            () = run::stopped() => Err(Error::interrupted("nothing was published")),
        }
    });
    logging.finish();
    // Cells that are being grouped when somebody stops the command would be waited for.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, json),
    }
}

/// Whether the command was asked for JSON, whichever command it is.
fn asks_for_json(matches: &ArgMatches) -> bool {
    let command = matches.subcommand().map(|(_, command)| command);
    command.is_some_and(|command| matches!(command.try_get_one::<bool>("json"), Ok(Some(true))))
}

/// Ends the command because it was called wrongly.
fn usage_error(message: &str) -> ! {
    Cli::command().error(clap::error::ErrorKind::InvalidValue, message).exit()
}

/// A failure, for programs.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
    exit_code: u8,
    message: String,
}

/// The documented exit code of a failure.
fn exit_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Internal => 1,
        ErrorKind::Job => 3,
        ErrorKind::Input => 4,
        ErrorKind::Privacy => 5,
        ErrorKind::Resources => 6,
        ErrorKind::Conflict => 7,
        ErrorKind::Retry => 75,
        ErrorKind::Interrupted => 130,
    }
}

fn fail(error: &Error, json: bool) -> ExitCode {
    let code = exit_code(error);
    eprint_line(&format!("error: {error}"));
    if json && !PRINTED.load(Ordering::Relaxed) {
        // The exit code tells of the failure if this one cannot be told.
        let _ = print_json(&Failure { error: error.kind().name(), exit_code: code, message: error.to_string() });
    }
    ExitCode::from(code)
}

/// Writes a line to standard error; nobody is left to tell when that fails.
fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether a result has been written.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Writes a result to standard output as JSON.
fn print_json(result: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(result).map_err(|error| Error::internal(error.to_string()))?)
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
