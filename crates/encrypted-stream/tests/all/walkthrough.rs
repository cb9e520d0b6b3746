//! The walkthrough runs and opens the expected result.

#[path = "../../examples/stream_window.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
