//! Runs the walkthrough, which asserts its own results.

#[path = "../../examples/table_queries.rs"]
mod example;

#[test]
fn the_walkthrough_runs() -> Result<(), Box<dyn std::error::Error>> {
    example::main()
}
