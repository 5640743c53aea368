//! The `throng` command: arguments, one call, an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(throng::cli::main(std::env::args_os()))
}
