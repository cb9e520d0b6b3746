//! The integration tests of this crate. They are one binary, because each binary costs a link.

mod avro_form;
mod budget;
mod editor;
mod examples;
#[cfg(feature = "query")]
mod planner;
mod schema;
mod schema_vectors;
