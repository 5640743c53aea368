//! `throng schema`: the JSON schema of the job file.

use clap::Args;

use super::print;
use crate::error::{Error, Result};
use crate::job::json_schema;

/// Print the JSON schema of the job file, for editors that complete and check it
#[derive(Debug, Args)]
pub struct Arguments {}

/// Prints the schema.
pub fn run(_arguments: &Arguments) -> Result<()> {
    print(&serde_json::to_string_pretty(&json_schema()).map_err(|error| Error::Internal(error.to_string()))?)
}
