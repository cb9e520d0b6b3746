//! What requests of a process's API become in its metrics, and what every refusal looks like.
//!
//! | metric | counts |
//! | --- | --- |
//! | `alpheus_requests_total{request,status}` | answers, by the word after `/v1/` |
//! | `alpheus_request_seconds{request}` | how long they took; a request that waits for news takes as long as it waits |
//! | `alpheus_refusals_total{reason}` | refusals, by the rule that they name |
//!
//! Each answer says which program gave it, in the header `server`, for those whose certificate let them in.

use super::answer::{ApiError, Rule};
use super::revoked_certificates::RevokedCertificates;
use super::role::{Name, Role};
use crate::BUILD;
use crate::service::MayRead;
use crate::service::metrics::{Metrics, Requests};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::Arc;
use std::time::Instant;

const PROBLEM: &str = "application/problem+json";
/// Bounds of the latencies that are distinguished, in seconds.
const SECONDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    request: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: String,
}

#[derive(Clone)]
struct RequestMetrics {
    requests: Requests,
    seconds: Family<Kind, Histogram, fn() -> Histogram>,
    refusals: Family<Reason, Counter>,
}

/// Who may read metrics at an API's port: operators alone, while the authority has not `revoked` their
/// certificate. Devices and owners would learn what others do.
#[must_use]
pub fn metrics_readers(revoked: Option<RevokedCertificates>) -> MayRead {
    Arc::new(move |certificate| {
        let is_revoked = revoked.as_ref().is_some_and(|own| own.has_certificate(certificate));
        let name = Name::of_certificate(certificate);
        !is_revoked && name.is_ok_and(|name| name.role == Role::Operator)
    })
}

/// The same router, whose requests are counted and whose refusals all have the form of a problem.
pub fn observed(router: Router, metrics: &Metrics) -> Router {
    let seconds: Family<Kind, Histogram, fn() -> Histogram> =
        Family::new_with_constructor(|| Histogram::new(SECONDS));
    let refusals = Family::<Reason, Counter>::default();
    metrics.with(|registry| {
        registry.register("request_seconds", "How long answers took", seconds.clone());
        registry.register("refusals", "Refused requests, by the rule they broke", refusals.clone());
    });
    let counted = RequestMetrics { requests: metrics.requests("requests"), seconds, refusals };
    router.layer(from_fn(move |request: Request, next: Next| {
        let counted = counted.clone();
        async move { observe(&counted, request, next).await }
    }))
}

async fn observe(counted: &RequestMetrics, request: Request, next: Next) -> Response {
    let (begun, path) = (Instant::now(), request.uri().path().to_owned());
    let mut answer = as_problem(next.run(request).await);
    let status = answer.status();
    // A path that is not ours must not become a label.
    let known = if status == StatusCode::NOT_FOUND { "" } else { word(&path) };
    let request = if known.is_empty() { "other" } else { known }.to_owned();
    if let Some(Rule(reason)) = answer.extensions().get::<Rule>().cloned() {
        counted.refusals.get_or_create(&Reason { reason }).inc();
    }
    counted.requests.count(request.clone(), status.as_u16());
    counted.seconds.get_or_create(&Kind { request }).observe(begun.elapsed().as_secs_f64());
    answer.headers_mut().insert(header::SERVER, HeaderValue::from_static(BUILD));
    answer
}

/// The word after `/v1/`.
fn word(path: &str) -> &str {
    path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()).unwrap_or_default()
}

/// A refusal that some layer below wrote as plain text, as a problem.
fn as_problem(answer: Response) -> Response {
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_refusal = status.is_client_error() || status.is_server_error();
    if !is_refusal || kind.is_some_and(|kind| kind.starts_with(PROBLEM)) {
        return answer;
    }
    let (rule, detail) = match status {
        StatusCode::METHOD_NOT_ALLOWED => ("method", "this request has another method"),
        StatusCode::PAYLOAD_TOO_LARGE => ("size", "the body is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("media", "the body is of another media type"),
        StatusCode::NOT_FOUND => ("missing", "there is nothing at this path"),
        _ if status.is_client_error() => ("malformed", "the request cannot be read"),
        _ => ("failed", "the process failed to answer; see its log"),
    };
    let mut problem = ApiError::new(status, rule, detail).into_response();
    if let Some(allowed) = answer.headers().get(header::ALLOW) {
        problem.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::door::tests::certificate;
    use crate::network::revocation_list::{tls_digest, tls_key_digest};
    use axum::Json;
    use axum::body::{Body, to_bytes};
    use axum::routing::{get, post};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    fn certificate_of(role: &str) -> Arc<[u8]> {
        certificate(&format!("alpheus://{role}/eve"))
    }

    fn router(metrics: &Metrics) -> TowerToHyperService<Router> {
        let taken = |Json(number): Json<u32>| async move { number.to_string() };
        let refused = || async { ApiError::policy("no") };
        let router = Router::new()
            .route("/v1/status", get(|| async { "well" }))
            .route("/v1/queries/{name}/results", get(|| async { "rows" }))
            .route("/v1/numbers", post(taken))
            .route("/v1/refused", get(refused));
        TowerToHyperService::new(observed(router, metrics))
    }

    async fn answer(metrics: &Metrics, method: &str, path: &str, body: &'static str) -> Response {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        router(metrics).call(request.body(Body::from(body)).unwrap()).await.unwrap()
    }

    #[test]
    fn an_operator_reads_metrics_until_the_certificate_is_revoked() {
        let revoked = RevokedCertificates::new(tls_digest, tls_key_digest);
        let readers = metrics_readers(Some(revoked.clone()));
        let [operator, owner] = ["operator", "owner"].map(certificate_of);
        assert!(readers(&operator) && !readers(&owner) && !readers(b"no certificate"));
        revoked.replace([tls_digest(&operator)].into());
        assert!(!readers(&operator) && readers(&certificate_of("operator")), "another one may");
    }

    #[tokio::test]
    async fn every_refusal_is_a_problem_from_any_layer() {
        let metrics = Metrics::new();
        for (method, path, body, status, rule) in [
            ("GET", "/v1/refused", "", 403, "policy"),
            ("POST", "/v1/status", "", 405, "method"),
            ("POST", "/v1/numbers", "\"x\"", 422, "malformed"),
            ("POST", "/v1/numbers", "", 400, "malformed"),
            ("GET", "/nothing", "", 404, "missing"),
        ] {
            let answer = answer(&metrics, method, path, body).await;
            assert_eq!(answer.status(), status, "{path}");
            assert_eq!(answer.headers()[header::CONTENT_TYPE], PROBLEM, "{path}");
            let body = to_bytes(answer.into_body(), 1000).await.unwrap();
            let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((&problem["rule"], &problem["status"]), (&rule.into(), &status.into()));
        }
        let well = answer(&metrics, "GET", "/v1/status", "").await;
        assert_eq!(well.headers()[header::SERVER], BUILD);
        assert_eq!(to_bytes(well.into_body(), 1000).await.unwrap(), "well");
    }

    #[tokio::test]
    async fn requests_are_counted_by_kind_and_no_name_becomes_a_label() {
        let metrics = Metrics::new();
        let service = router(&metrics);
        let ask = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            service.call(request).await.unwrap().status().as_u16()
        };
        assert_eq!(ask("/v1/queries/Secret/results").await, 200);
        assert_eq!((ask("/v1/eve-1").await, ask("/eve-2").await), (404, 404));
        assert_eq!(ask("/v1/refused").await, 403);
        let text = metrics.text();
        for line in [
            "alpheus_requests_total{request=\"queries\",status=\"200\"} 1",
            "alpheus_requests_total{request=\"other\",status=\"404\"} 2",
            "alpheus_refusals_total{reason=\"policy\"} 1",
            "alpheus_request_seconds_count{request=\"refused\"} 1",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line} in {text}");
        }
        assert!(!text.contains("Secret") && !text.contains("eve"), "{text}");
    }
}
