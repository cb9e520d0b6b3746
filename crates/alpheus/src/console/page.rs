//! The page's files, which are part of this program: nothing is loaded from elsewhere.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const SHELL: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const COMMON: &str = include_str!("page/common.js");
const RESULTS: &str = include_str!("page/results.js");
const STREAMS: &str = include_str!("page/streams.js");
#[cfg(feature = "stats")]
const AGGREGATES: &str = include_str!("page/aggregates.js");

/// Nothing from elsewhere, nothing inline, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page, whose main script is `results`, `streams` or `aggregates`.
pub(super) fn router(main: &'static str) -> Router {
    let shell = SHELL.replace("{{main}}", main);
    let router = Router::new()
        .route(
            "/",
            get(move || std::future::ready(file("text/html; charset=utf-8", shell.clone()))),
        )
        .route("/style.css", get(|| std::future::ready(file("text/css", STYLE))))
        .route("/common.js", get(|| std::future::ready(file("text/javascript", COMMON))))
        .route("/results.js", get(|| std::future::ready(file("text/javascript", RESULTS))))
        .route("/streams.js", get(|| std::future::ready(file("text/javascript", STREAMS))));
    #[cfg(feature = "stats")]
    let aggregates = get(|| std::future::ready(file("text/javascript", AGGREGATES)));
    #[cfg(feature = "stats")]
    let router = router.route("/aggregates.js", aggregates);
    router
}

fn file(kind: &'static str, text: impl IntoResponse) -> Response {
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}
