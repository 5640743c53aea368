//! `throng completions`, `throng man` and `throng schema`: completions, man pages and the schema of job files.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, usage_error};
use crate::error::{Result, unwritable_file};
use crate::policy::json_schema;
use crate::terminal::{eprint_line, print_json, print_result};

/// Print a completion script for a shell
///
/// Example: throng completions bash > /etc/bash_completion.d/throng
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page of a command, or of all commands
///
/// Example: throng man run | man -l -
///
/// Example: throng man --folder /usr/local/share/man/man1
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command to describe. Defaults to the whole of Throng
    command: Option<String>,
    /// Write one page per command into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    folder: Option<PathBuf>,
}

/// Print the JSON schema of the job file, for editors that complete and check it
///
/// Example: throng schema > job.schema.json
#[derive(Debug, Args)]
pub(crate) struct Schema {}

/// Prints the script.
pub(crate) fn print_completions(arguments: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "throng", &mut script);
    print_result(&String::from_utf8_lossy(&script))
}

/// Prints or writes manual pages.
pub(crate) fn write_man_pages(arguments: &Man, quiet: bool) -> Result<()> {
    let mut throng = Cli::command();
    if let Some(folder) = &arguments.folder {
        let failed = |error| unwritable_file(folder, &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(throng, folder).map_err(failed)?;
        if !quiet {
            eprint_line(&format!("wrote manual pages to {}", folder.display()));
        }
        return Ok(());
    }
    throng.build();
    let command = match &arguments.command {
        None => throng,
        Some(name) => {
            let found = throng.find_subcommand(name).cloned();
            found.unwrap_or_else(|| usage_error(&format!("there is no command `{name}`; `throng help` lists them all")))
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    print_result(&String::from_utf8_lossy(&page))
}

/// Prints the schema.
pub(crate) fn print_schema(_arguments: &Schema) -> Result<()> {
    print_json(&json_schema())
}
