//! The benchmark program: reads the command line, measures, prints figures.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = alpheus_bench::Args::parse();
    alpheus_node::service::children::go_along();
    match alpheus_bench::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If standard error is closed, nobody reads this.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.exit_code()
        }
    }
}
