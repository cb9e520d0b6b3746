//! Requests that any process of the deployment may make.

use super::Api;
use alpheus_node::network::answer::ApiError;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::IntoResponse;

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// The schema.
pub(super) async fn schema(State(api): State<Api>) -> impl IntoResponse {
    (JSON, api.schema.to_string())
}

/// The description of this API.
pub(super) async fn openapi() -> impl IntoResponse {
    (JSON, include_str!("openapi.json"))
}

/// Answers unknown paths.
pub(super) async fn unknown(uri: Uri) -> ApiError {
    ApiError::missing(format!("there is nothing at {}", uri.path()))
        .with_help("/openapi.json lists the available requests")
}
