//! The walkthrough runs, and comes to what it says.

#[path = "../examples/walkthrough.rs"]
mod walkthrough;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    walkthrough::main()
}
