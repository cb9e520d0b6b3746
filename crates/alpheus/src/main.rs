//! The one binary: reads the command line, runs the command, says how it ended.

use std::process::ExitCode;

fn main() -> ExitCode {
    alpheus::commands::main(std::env::args_os())
}
