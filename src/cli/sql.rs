//! `throng sql`: queries with `anonymize(...)` in them.

use std::path::PathBuf;

use clap::Args;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::DFParser;

use super::{Limits, print};
use crate::error::{Error, Result, reason};
use crate::operator::register;

/// Run SQL statements from a file, with `anonymize(...)` as a relation
///
/// Tables come from statements such as CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'people/'; results go
/// out with COPY (SELECT * FROM anonymize(...)) TO 'out/' STORED AS PARQUET. What COPY writes is not verified or
/// committed as a release: that is what `throng run` is for.
///
/// Example: throng sql queries.sql
#[derive(Debug, Args)]
pub struct Arguments {
    /// File of statements; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

/// Runs the statements one after another and prints what they return.
pub async fn run(arguments: Arguments) -> Result<()> {
    let name = arguments.file.display().to_string();
    let text =
        if name == "-" { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(&arguments.file) };
    let text = text.map_err(|error| Error::Job(format!("{name} cannot be read: {}", reason(&error))))?;
    let (context, _spill) = arguments.limits.options().open()?;
    register(&context)?;
    let statements = DFParser::parse_sql(&text).map_err(|error| wrong(&name, error))?;
    for statement in statements {
        let plan = context.state().statement_to_plan(statement).await.map_err(|error| wrong(&name, error))?;
        let batches = context.execute_logical_plan(plan).await?.collect().await?;
        if batches.iter().any(|batch| batch.num_columns() > 0) {
            print(&pretty_format_batches(&batches)?.to_string())?;
        }
    }
    Ok(())
}

/// What is wrong with a statement, without the names of the parts that found it.
fn wrong(name: &str, error: DataFusionError) -> Error {
    let text = match error.find_root() {
        DataFusionError::SQL(error, _) => error.to_string(),
        DataFusionError::Plan(text) => text.clone(),
        _ => match Error::from(error) {
            Error::Input(text) => text,
            other => return other.context(name),
        },
    };
    Error::Job(format!("{name}: {text}"))
}
