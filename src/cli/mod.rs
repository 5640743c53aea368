//! The command line: one file per subcommand. Results go to standard output, everything else to standard error.

mod attack;
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
mod recommend_series;
mod releases;
mod report;
mod run;
mod sql;
mod survey;
mod sweep;
mod verify;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use datafusion::DATAFUSION_VERSION;
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::faults;
use crate::telemetry::logging::{LogFormat, Logging};
use crate::terminal::{eprint_line, has_printed, print_json};

/// Anonymises large Parquet datasets: every row leaves in a throng of at least k
#[derive(Debug, Parser)]
#[command(version = VERSION, long_version = LONG_VERSION.as_str(), max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    /// Less output: no progress, no summary, no warnings
    #[arg(short, long, global = true, env = "THRONG_QUIET")]
    quiet: bool,
    /// More log output: -v logs the phases of a run; -vv and -vvv log more. THRONG_LOG=throng=debug sets the level
    /// with the syntax of Rust's tracing instead; lines of other crates (datafusion=debug) may hold raw values
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Format of log lines on standard error
    #[arg(long, global = true, env = "THRONG_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

/// Builds for tests can plant faults and must not be mistaken for others.
const VERSION: &str = if faults::ENABLED {
    concat!(env!("CARGO_PKG_VERSION"), " with fault injection: for tests only")
} else {
    env!("CARGO_PKG_VERSION")
};

/// The version, and what it was built with.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("aws", cfg!(feature = "aws")),
        ("azure", cfg!(feature = "azure")),
        ("cluster", cfg!(feature = "cluster")),
        ("delta", cfg!(feature = "delta")),
        ("gcp", cfg!(feature = "gcp")),
        ("otel", cfg!(feature = "otel")),
    ];
    let built: Vec<&str> = features.iter().filter(|(_, is_built)| *is_built).map(|(name, _)| *name).collect();
    let features = if built.is_empty() { "none".to_owned() } else { built.join(", ") };
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    format!("{VERSION}\nDataFusion: {DATAFUSION_VERSION}\nfeatures: {features}\nprofile: {profile}")
});

const EXIT_CODES: &str = "\
Exit codes:
  0    done, or already done
  1    an internal error: please report it
  2    wrong usage
  3    the job file, or a hierarchy it names, is wrong
  4    the input cannot be used, or a location cannot be read or written
  5    a privacy rule cannot be met, or a release violates one
  6    memory or disk is too small
  7    a conflict in the sink
  75   a transient failure: try again
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
    Survey(survey::Arguments),
    Sweep(sweep::Arguments),
    Bound(bound::Arguments),
    Recommend(recommend::Arguments),
    Hierarchy(hierarchy::Arguments),
    Generate(generate::Arguments),
    Schema(completions::Schema),
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
    /// Whether it is a service that runs until it is stopped.
    fn is_daemon(&self) -> bool {
        #[cfg(feature = "cluster")]
        return matches!(self, Self::Scheduler(_) | Self::Executor(_));
        #[cfg(not(feature = "cluster"))]
        false
    }

    /// Whether it can be interrupted at any moment. Runs and cluster roles shut down by themselves, a rollback is one
    /// step, and the others finish too quickly to be interrupted.
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

    async fn run_command(self, quiet: bool) -> Result<()> {
        match self {
            Self::Run(arguments) => run::run_job(arguments, quiet).await,
            Self::Check(arguments) => check::run_check(arguments).await,
            Self::Plan(arguments) => plan::run_plan(arguments).await,
            Self::Verify(arguments) => verify::run_verify(arguments, quiet).await,
            Self::Attack(arguments) => attack::run_attack(arguments).await,
            Self::Profile(arguments) => profile::run_profile(arguments, quiet).await,
            Self::Report(arguments) => report::run_report(arguments, quiet).await,
            Self::Survey(arguments) => survey::run_survey(arguments, quiet).await,
            Self::Sweep(arguments) => sweep::run_sweep(arguments, quiet).await,
            Self::Bound(arguments) => bound::run_bound(arguments, quiet).await,
            Self::Recommend(arguments) => recommend::run_recommend(arguments, quiet).await,
            Self::Hierarchy(arguments) => hierarchy::run_hierarchy(arguments, quiet).await,
            Self::Generate(arguments) => generate::run_generate(&arguments, quiet),
            Self::Schema(arguments) => completions::print_schema(&arguments),
            Self::Sql(arguments) => sql::run_sql(arguments).await,
            Self::Releases(arguments) => releases::list_releases(arguments).await,
            Self::Rollback(arguments) => releases::run_rollback(arguments, quiet).await,
            Self::Gc(arguments) => releases::run_gc(arguments, quiet).await,
            Self::Forget(arguments) => forget::run_forget(arguments, quiet).await,
            #[cfg(feature = "cluster")]
            Self::Scheduler(arguments) => cluster::run_scheduler(arguments).await,
            #[cfg(feature = "cluster")]
            Self::Executor(arguments) => cluster::run_executor(arguments).await,
            Self::Completions(arguments) => completions::print_completions(&arguments),
            Self::Man(arguments) => completions::write_man_pages(&arguments, quiet),
        }
    }
}

/// Blocking threads for cells and files. Memory that a thread has freed stays with it, so a run has no more of
/// them than keep the cores busy; but those of a cluster's roles wait for each other, and must not run out.
fn blocking_threads(command: &Command) -> usize {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    if command.is_daemon() { 512 } else { 2 * cores.max(2) }
}

/// Runs the command that some arguments name, the first of which is the name of the program, and returns its exit code. It
/// owns the process: wrong usage ends it, and signals stop the command.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    crate::telemetry::allocator::set_up();
    let matches = Cli::command().get_matches_from(arguments);
    let json = asks_for_json(&matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(fault) = faults::planted() {
        eprint_line(&format!(
            "warning: THRONG_TEST_FAULT plants the fault `{fault}`; the output of this run must not be used"
        ));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(blocking_threads(&cli.command))
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&Error::resources(format!("threads cannot be started: {error}")), json),
    };
    let logging = {
        let _inside = runtime.enter();
        // Roles of a cluster have no output but their logs.
        let verbose = cli.verbose + u8::from(cli.command.is_daemon());
        Logging::start(cli.log_format, verbose, cli.quiet).unwrap_or_else(|message| usage_error(&message))
    };
    let done = runtime.block_on(async {
        if !cli.command.is_interruptible() {
            return cli.command.run_command(cli.quiet).await;
        }
        // Dropping it cleans up its spill folders, uploads and tasks.
        tokio::select! {
            done = cli.command.run_command(cli.quiet) => done,
            () = run::wait_for_stop() => Err(Error::interrupted("nothing was published")),
        }
    });
    logging.finish();
    // Without this, the process would wait for cells that are still being grouped.
    runtime.shutdown_background();
    match done {
        Ok(()) => 0,
        Err(error) => report_failure(&error, json),
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

fn report_failure(error: &Error, json: bool) -> u8 {
    let code = exit_code(error);
    eprint_line(&format!("error: {error}"));
    if json && !has_printed() {
        // The exit code reports the failure if the message cannot be written.
        let _ = print_json(&Failure { error: error.kind().name(), exit_code: code, message: error.to_string() });
    }
    code
}
