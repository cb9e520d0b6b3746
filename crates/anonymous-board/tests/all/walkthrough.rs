//! The walkthrough runs and produces what it claims.

#[path = "../../examples/board_epoch.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
