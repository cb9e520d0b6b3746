//! The integration tests of this crate. They are one binary, because each binary costs a link.

mod hybrid;
mod sealed_secret;
mod signed_message;
mod vectors;
