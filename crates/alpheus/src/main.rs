//! The one binary: reads the command line, runs the command, says how it ended.

use std::process::ExitCode;

/// Polynomials of a quarter of a megabyte come and go with each block of a table: the C
/// library gives such memory back to the system, and asks for it again.
#[cfg(feature = "table")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    alpheus::commands::main(std::env::args_os())
}
