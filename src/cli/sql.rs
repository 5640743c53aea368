//! `throng sql`: queries with `anonymize(...)` in them.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::DFParser;

use crate::arguments::Limits;
use crate::error::{Error, ErrorKind, Result, io_reason};
use crate::extension::register;
use crate::operator::PolicyRegistry;
use crate::storage::read_statements;
use crate::terminal::print_result;

/// Run SQL statements from a file, with `anonymize(...)` as a relation
///
/// Tables come from statements such as CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'people/'; results are
/// written with COPY (SELECT * FROM anonymize(...)) TO 'out/' STORED AS PARQUET. What COPY writes is not verified or
/// committed as a release: that is what `throng run` is for.
///
/// A policy is named by its file, anonymize((SELECT ...), 'job.toml'), which must lie in the working folder, in that of
/// the statements, or in one of --policies, or below them.
///
/// Example: throng sql queries.sql
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of statements; `-` reads standard input
    file: PathBuf,
    /// Folder whose policy files the statements may name; can be repeated
    #[arg(long, value_name = "FOLDER")]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    limits: Limits,
}

/// Runs the statements one after another and prints what they return.
pub(crate) async fn run_sql(arguments: Arguments) -> Result<()> {
    let name = arguments.file.display().to_string();
    let text = match name.as_str() {
        "-" => read_statements(std::io::stdin()),
        _ => File::open(&arguments.file).and_then(read_statements),
    };
    let text = text.map_err(|error| Error::job(format!("{name} cannot be read: {}", io_reason(&error))))?;
    let (context, _spill) = arguments.limits.session_options().open()?;
    register(&context)?;
    let beside = arguments.file.parent().filter(|folder| !folder.as_os_str().is_empty() && name != "-");
    let registry = PolicyRegistry::of_session(&context)?;
    for folder in [Path::new(".")].into_iter().chain(beside).chain(arguments.policies.iter().map(PathBuf::as_path)) {
        registry.allow_files_below(folder)?;
    }
    let statements = DFParser::parse_sql(&text).map_err(|error| statement_error(&name, error))?;
    for statement in statements {
        let plan = context.state().statement_to_plan(statement).await.map_err(|error| statement_error(&name, error))?;
        let batches = context.execute_logical_plan(plan).await?.collect().await?;
        if batches.iter().any(|batch| batch.num_columns() > 0) {
            print_result(&pretty_format_batches(&batches)?.to_string())?;
        }
    }
    Ok(())
}

/// The error of a statement, without the internal prefixes of DataFusion.
fn statement_error(name: &str, error: DataFusionError) -> Error {
    let text = match error.find_root() {
        DataFusionError::SQL(error, _) => error.to_string(),
        DataFusionError::Plan(text) => text.clone(),
        _ => {
            let error = Error::from(error);
            if error.kind() != ErrorKind::Input {
                return error.context(name);
            }
            error.to_string()
        }
    };
    Error::job(format!("{name}: {text}"))
}
