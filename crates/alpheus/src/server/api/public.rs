//! What anybody of the deployment may know.

use super::Api;
use crate::network::answer::ApiError;
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

/// No such request.
pub(super) async fn unknown(uri: Uri) -> ApiError {
    ApiError::missing(format!("there is nothing at {}", uri.path()))
        .with_help("/openapi.json describes what there is")
}
