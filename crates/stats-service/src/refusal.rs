//! How protocol errors become API errors.

use alpheus_node::network::answer::ApiError;

/// A protocol error that a request can cause.
pub(crate) trait Refuse {
    /// The API error: status, rule and detail.
    fn refusal(self) -> ApiError;
}
