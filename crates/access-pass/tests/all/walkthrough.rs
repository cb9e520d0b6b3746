//! The walkthrough runs and reaches its results.

#[path = "../../examples/pass_login.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
