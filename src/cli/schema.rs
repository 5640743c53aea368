//! `throng schema`: the JSON schema of the job file.

use clap::Args;

use crate::error::Result;
use crate::policy::json_schema;
use crate::terminal::print_json;

/// Print the JSON schema of the job file, for editors that complete and check it
///
/// Example: throng schema > job.schema.json
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// Prints the schema.
pub(crate) fn run_schema(_arguments: &Arguments) -> Result<()> {
    print_json(&json_schema())
}
