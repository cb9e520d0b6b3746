//! The doors: OTLP over HTTP in Protobuf and JSON, and over gRPC. Both are on this machine alone,
//! since what comes in is not encrypted yet.

use crate::intake::{Intake, IntakeError, Outcome};
use crate::message::{ExportRequest, ExportResponse, PartialSuccess};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use flate2::read::GzDecoder;
use prost::Message;
use std::convert::Infallible;
use std::future::Future;
use std::io::Read;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// The most bytes of a request, before and after it is unpacked.
const MAX_BYTES: usize = 16 << 20;
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
/// Seconds after which an exporter should come back.
const LATER: &str = "1";

/// A receiver's address that others could reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, and what a program sends is not encrypted yet; run the receiver beside the program, on a loopback address"
)]
pub struct NotLoopbackError(pub SocketAddr);

/// Why a request is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum RequestError {
    #[error("not a metrics request in this format")]
    Malformed,
    #[error("the content type is neither application/x-protobuf nor application/json")]
    ContentType,
    #[error("the content encoding is neither gzip nor none")]
    Encoding,
    #[error("larger than 16 MiB; export smaller batches")]
    TooLarge,
}

/// The answer of OTLP over HTTP to what failed.
#[derive(Clone, PartialEq, Message, serde::Serialize)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Codes of gRPC.
const INVALID: i32 = 3;
const UNAVAILABLE: i32 = 14;

/// The routes of OTLP over HTTP.
pub fn router(intake: Intake) -> Router {
    let limit = DefaultBodyLimit::max(MAX_BYTES);
    Router::new().route("/v1/metrics", post(export)).layer(limit).with_state(intake)
}

async fn export(State(intake): State<Intake>, headers: HeaderMap, body: Bytes) -> Response {
    let said = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let is_json = kind.eq_ignore_ascii_case(JSON);
    let is_known = is_json || kind.eq_ignore_ascii_case(PROTOBUF);
    let read = if is_known {
        unpacked(said(CONTENT_ENCODING), &body)
    } else {
        Err(RequestError::ContentType)
    };
    let request = match read.and_then(|body| parse(&body, is_json)) {
        Ok(request) => request,
        Err(why) => {
            let status = match why {
                RequestError::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                RequestError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                _ => StatusCode::BAD_REQUEST,
            };
            return failed(status, INVALID, why.to_string(), is_json);
        }
    };
    match taken(intake, request).await {
        Ok(response) => answer(StatusCode::OK, &response, is_json),
        Err(why) => failed(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, why, is_json),
    }
}

fn unpacked(encoding: &str, body: &Bytes) -> Result<Vec<u8>, RequestError> {
    match encoding {
        "" | "identity" => Ok(body.to_vec()),
        "gzip" => {
            let mut bytes = Vec::new();
            let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
            let read = GzDecoder::new(body.as_ref()).take(most + 1).read_to_end(&mut bytes);
            read.map_err(|_| RequestError::Malformed)?;
            if bytes.len() > MAX_BYTES { Err(RequestError::TooLarge) } else { Ok(bytes) }
        }
        _ => Err(RequestError::Encoding),
    }
}

/// Reads a request in Protobuf or JSON.
fn parse(body: &[u8], is_json: bool) -> Result<ExportRequest, RequestError> {
    if is_json {
        serde_json::from_slice(body).map_err(|_| RequestError::Malformed)
    } else {
        ExportRequest::decode(body).map_err(|_| RequestError::Malformed)
    }
}

/// Takes a request on a thread that may wait for the disk.
async fn taken(intake: Intake, request: ExportRequest) -> Result<ExportResponse, String> {
    let work = tokio::task::spawn_blocking(move || intake.take(&request));
    match work.await {
        Ok(Ok(taken)) => Ok(response(taken)),
        Ok(Err(error @ IntakeError::Full)) => Err(error.to_string()),
        Ok(Err(error)) => {
            tracing::error!(%error, "metrics were not stored");
            Err("the receiver cannot store metrics".to_owned())
        }
        Err(_) => Err("the receiver is stopping".to_owned()),
    }
}

fn response(taken: Outcome) -> ExportResponse {
    if taken.refused == 0 {
        return ExportResponse { partial_success: None };
    }
    tracing::warn!(points = taken.refused, why = %taken.message, "points were refused");
    let rejected_data_points = i64::try_from(taken.refused).unwrap_or(i64::MAX);
    let partial = PartialSuccess { rejected_data_points, error_message: taken.message };
    ExportResponse { partial_success: Some(partial) }
}

fn answer(
    status: StatusCode,
    message: &(impl Message + serde::Serialize),
    is_json: bool,
) -> Response {
    if is_json {
        let text = serde_json::to_string(message).unwrap_or_default();
        (status, [(CONTENT_TYPE, JSON)], text).into_response()
    } else {
        (status, [(CONTENT_TYPE, PROTOBUF)], message.encode_to_vec()).into_response()
    }
}

fn failed(status: StatusCode, code: i32, message: String, is_json: bool) -> Response {
    let mut response = answer(status, &Status { code, message }, is_json);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static(LATER));
    }
    response
}

/// OTLP over gRPC.
#[derive(Clone)]
pub struct MetricsService(pub Intake);

impl NamedService for MetricsService {
    const NAME: &'static str = "opentelemetry.proto.collector.metrics.v1.MetricsService";
}

type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Service<axum::http::Request<Body>> for MetricsService {
    type Response = axum::http::Response<Body>;
    type Error = Infallible;
    type Future = Answer<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: axum::http::Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(Self::NAME));
        if method != Some("/Export") {
            let unknown = tonic::Status::unimplemented("only metrics are taken here");
            return Box::pin(async move { Ok(unknown.into_http()) });
        }
        let export = Export(self.0.clone());
        Box::pin(async move {
            let codec = ProstCodec::<ExportResponse, ExportRequest>::default();
            let mut door = Grpc::new(codec)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(MAX_BYTES);
            Ok(door.unary(export, request).await)
        })
    }
}

struct Export(Intake);

impl UnaryService<ExportRequest> for Export {
    type Response = ExportResponse;
    type Future = Answer<tonic::Response<ExportResponse>, tonic::Status>;

    fn call(&mut self, request: tonic::Request<ExportRequest>) -> Self::Future {
        let work = taken(self.0.clone(), request.into_inner());
        Box::pin(
            async move { work.await.map(tonic::Response::new).map_err(tonic::Status::unavailable) },
        )
    }
}
