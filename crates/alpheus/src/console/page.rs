//! The page's files, which are part of this program: nothing is loaded from elsewhere.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// Where each file is, what it is, and its content.
const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/api.js", SCRIPT, include_str!("page/api.js")),
    ("/app.js", SCRIPT, include_str!("page/app.js")),
    ("/asking.js", SCRIPT, include_str!("page/asking.js")),
    ("/budgets.js", SCRIPT, include_str!("page/budgets.js")),
    ("/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/decisions.js", SCRIPT, include_str!("page/decisions.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/options.js", SCRIPT, include_str!("page/options.js")),
    ("/owner.js", SCRIPT, include_str!("page/owner.js")),
    ("/results.js", SCRIPT, include_str!("page/results.js")),
    ("/service.js", SCRIPT, include_str!("page/service.js")),
    ("/statistics.js", SCRIPT, include_str!("page/statistics.js")),
    ("/timeline.js", SCRIPT, include_str!("page/timeline.js")),
    ("/words.js", SCRIPT, include_str!("page/words.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Nothing from elsewhere, nothing inline, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page. Its content follows from the console's identity.
pub(super) fn router() -> Router {
    let serve = |router: Router,
                 (path, kind, text): &(&'static str, &'static str, &'static str)| {
        let (kind, text) = (*kind, *text);
        router.route(path, get(move || std::future::ready(file(kind, text))))
    };
    FILES.iter().fold(Router::new(), serve)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What every answer says to the browser: of pages, of personal data, and of refusals.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Everything with these headers.
pub(super) fn protected(router: Router) -> Router {
    router.layer(map_response(async |mut response: Response| {
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/page");
        let there = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let there: BTreeSet<String> = there
            .map(|name| name.into_string().unwrap())
            .filter(|name| name != "index.html")
            .collect();
        let served = FILES.iter().map(|(path, ..)| path[1..].to_owned());
        assert_eq!(served.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn no_file_of_the_page_needs_another_place_or_inline_code() {
        for (path, _, text) in FILES {
            let own = text.replace("http://www.w3.org/", "");
            assert!(!own.contains("http://") && !own.contains("https://"), "{path}");
            for inline in ["<script>", " onclick=", " style=", "innerHTML", "eval("] {
                assert!(!text.contains(inline), "{path}: {inline}");
            }
        }
    }
}
