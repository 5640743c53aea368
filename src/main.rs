//! The `throng` command: arguments, one call, an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    throng::cli::main()
}
