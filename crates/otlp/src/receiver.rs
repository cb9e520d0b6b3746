//! The doors: OTLP over HTTP in Protobuf and JSON, and over gRPC. Both are on this machine alone,
//! since what comes in is not encrypted yet.

use crate::intake::{Intake, IntakeError, Outcome};
use crate::message::{ExportRequest, ExportResponse, PartialSuccess};
use crate::recorder::Recorder;
use crate::request_bounds::{self, BoundError};
use alpheus_node::clock;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use flate2::read::GzDecoder;
use prost::Message;
use prost::bytes::Buf;
use std::convert::Infallible;
use std::future::Future;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// The most bytes of a request, before and after it is unpacked.
const MAX_BYTES: usize = 16 << 20;
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
/// How long a request may take to arrive.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds after which an exporter should come back.
const LATER: &str = "1";

/// A receiver's address that others could reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, but what a program sends is not encrypted yet; run the receiver on the program's machine, on a loopback address"
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
    #[error("more than half a million points and attributes; export smaller batches")]
    TooMany,
    #[error("the request did not arrive in time")]
    Slow,
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

/// What takes requests.
#[derive(Clone)]
pub enum Sink {
    /// Counts their points.
    Intake(Intake),
    /// Keeps them in a file.
    Recorder(Recorder),
}

impl Sink {
    fn door(&self) -> Option<OwnedSemaphorePermit> {
        match self {
            Sink::Intake(intake) => intake.door(),
            Sink::Recorder(recorder) => recorder.door(),
        }
    }

    fn take(&self, request: &ExportRequest) -> Result<Outcome, IntakeError> {
        match self {
            Sink::Intake(intake) => intake.take(request, clock::now()),
            Sink::Recorder(recorder) => recorder.add(request),
        }
    }
}

/// The routes of OTLP over HTTP.
pub fn router(sink: Sink) -> Router {
    Router::new().route("/v1/metrics", post(export)).with_state(sink)
}

async fn export(State(sink): State<Sink>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    let said = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // HTTP/2 names it in the address.
    if !is_of_this_machine(uri.authority().map_or(said(HOST), |named| named.as_str())) {
        return (StatusCode::FORBIDDEN, "send to localhost").into_response();
    }
    let kind = said(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let is_json = kind.eq_ignore_ascii_case(JSON);
    let is_known = is_json || kind.eq_ignore_ascii_case(PROTOBUF);
    // Bodies are read only while few are in memory.
    let Some(_door) = sink.door() else {
        let why = "too many requests at once; send it again later".to_owned();
        return failed(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, why, is_json);
    };
    let read = if is_known {
        received(body).await.and_then(|body| unpacked(said(CONTENT_ENCODING), &body))
    } else {
        Err(RequestError::ContentType)
    };
    let request = match read.and_then(|body| parse(&body, is_json)) {
        Ok(request) => request,
        Err(why) => {
            let status = match why {
                RequestError::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                RequestError::TooLarge | RequestError::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
                RequestError::Slow => StatusCode::REQUEST_TIMEOUT,
                _ => StatusCode::BAD_REQUEST,
            };
            return failed(status, INVALID, why.to_string(), is_json);
        }
    };
    match taken(sink, request).await {
        Ok(response) => answer(StatusCode::OK, &response, is_json),
        Err(why) => failed(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, why, is_json),
    }
}

/// Whether a request names this machine. A page in a browser may point its own name at this address.
fn is_of_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The whole body.
async fn received(body: Body) -> Result<Bytes, RequestError> {
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, MAX_BYTES)).await;
    // It is either too long, or does not arrive.
    read.map_err(|_| RequestError::Slow)?.map_err(|_| RequestError::TooLarge)
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
    let read = if is_json { request_bounds::json(body) } else { request_bounds::protobuf(body) };
    read.map_err(|why| match why {
        BoundError::Malformed => RequestError::Malformed,
        BoundError::TooMany => RequestError::TooMany,
    })
}

/// Takes a request on a thread that may wait for the disk.
async fn taken(sink: Sink, request: ExportRequest) -> Result<ExportResponse, String> {
    let work = tokio::task::spawn_blocking(move || sink.take(&request));
    match work.await {
        Ok(Ok(taken)) => Ok(response(taken)),
        Ok(Err(error @ (IntakeError::Full | IntakeError::Long))) => Err(error.to_string()),
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
pub struct MetricsService(pub Sink);

impl NamedService for MetricsService {
    const NAME: &'static str = "opentelemetry.proto.collector.metrics.v1.MetricsService";
}

type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Service<axum::http::Request<tonic::body::Body>> for MetricsService {
    type Response = axum::http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Answer<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: axum::http::Request<tonic::body::Body>) -> Self::Future {
        let path = request.uri().path();
        let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(Self::NAME));
        if method != Some("/Export") {
            let unknown = tonic::Status::unimplemented("only metrics are taken here");
            return Box::pin(async move { Ok(unknown.into_http()) });
        }
        let export = Export(self.0.clone());
        Box::pin(async move {
            let Some(_door) = export.0.door() else {
                let why = "too many requests at once; send it again later";
                return Ok(tonic::Status::unavailable(why).into_http());
            };
            let codec = BoundedCodec::default();
            let mut door = Grpc::new(codec)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(MAX_BYTES);
            Ok(door.unary(export, request).await)
        })
    }
}

/// Reads requests that take little memory, and writes answers.
#[derive(Default)]
struct BoundedCodec(ProstCodec<ExportResponse, ExportRequest>);

struct BoundedDecoder;

impl Codec for BoundedCodec {
    type Encode = ExportResponse;
    type Decode = ExportRequest;
    type Encoder = <ProstCodec<ExportResponse, ExportRequest> as Codec>::Encoder;
    type Decoder = BoundedDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> BoundedDecoder {
        BoundedDecoder
    }
}

impl Decoder for BoundedDecoder {
    type Item = ExportRequest;
    type Error = tonic::Status;

    fn decode(
        &mut self,
        source: &mut DecodeBuf<'_>,
    ) -> Result<Option<ExportRequest>, tonic::Status> {
        let bytes = source.copy_to_bytes(source.remaining());
        let read = parse(&bytes, false);
        read.map(Some).map_err(|why| tonic::Status::invalid_argument(why.to_string()))
    }
}

struct Export(Sink);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_this_machine_are_taken() {
        for host in [
            "localhost",
            "localhost:4318",
            "LocalHost:1",
            "127.0.0.1:4318",
            "[::1]:4318",
            "127.0.0.2",
            "[::1]",
        ] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:4318",
            "localhost.evil.example",
            "10.0.0.1:4318",
            "[2001:db8::1]:4318",
        ] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }
}
