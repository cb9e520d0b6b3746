//! placeholder until written in a moment
use crate::commands::Globals;
use crate::failure::Failure;
#[derive(Debug, clap::Args)]
pub struct Args {}
pub fn run(_: &Args, _: &Globals) -> Result<(), Failure> {
    Ok(())
}
