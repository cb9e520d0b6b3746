//! The walkthrough runs and reaches its results.

#[path = "../../examples/walkthrough.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
