//! The walkthrough runs and prints what it claims.

#[path = "../../examples/statistics_hour.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
