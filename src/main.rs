//! The `throng` command: arguments, one call, an exit code.

use std::process::ExitCode;

/// Cells are allocated and freed by the thousand; mimalloc gives their memory back sooner than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    throng::cli::main()
}
