//! The requests that a smoother answers. Clients show no certificate: what they send is
//! signed by a key of one upload, and sealed. Peers and the aggregator show theirs.
//!
//! | request | by | answers |
//! | --- | --- | --- |
//! | `POST /v1/slots` | clients | a slot for a showing |
//! | `POST /v1/deposits` | clients | a receipt for a deposit, or what stands in its place |
//! | `POST /v1/certificates` | clients | takes the receipts of a quorum, once they are checked and durable |
//! | `GET /v1/key` | everybody | the keys that were made, signed by a quorum |
//! | `POST /v1/definitions/propose` | whoever defines | this smoother's signature |
//! | `POST /v1/definitions` | everybody | takes a definition that a quorum has signed |
//! | `GET /v1/definitions` | everybody | those that it works by |
//! | `GET /v1/ends/{aggregate}` | everybody | how it ended here, and the set that was agreed to |
//! | `GET /v1/said/{boot}/{from}` | smoothers | what this smoother has said |
//! | `GET /v1/certificates/{aggregate}/{from}` | smoothers | the receipts of quorums that it has, some slots at a time |
//! | `GET /v1/readies/{aggregate}` | smoothers | what others have signed ready for |
//! | `GET /v1/kept/{aggregate}/{slot}` | smoothers | what is sealed for a certified slot |
//! | `GET /v1/release/{aggregate}/{from}` | aggregator | what is deposited, once the time has come, some slots at a time |
//! | `POST /v1/check/{aggregate}` | aggregator | tuples to check |
//! | `POST /v1/close` | aggregator | a closing to agree to |
//! | `GET /v1/outcomes` | aggregator | how aggregates ended |

use super::bulletin::{Bulletin, Page};
use super::engine::Job;
use crate::network::answer::{ApiError, decode, encode};
use crate::network::door::{Door, in_time};
use crate::network::role::Role;
use crate::service::engine::Handle;
use crate::service::metrics::Requests;
use crate::stats::names::{hex, name_in};
use crate::stats::ways::LARGEST;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::refused::{
    NoSlot, NotClosed, NotDefined, NotHeard, NotReleased,
};
use alpheus_crypto::signed::Message;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};

/// What requests need.
#[derive(Clone)]
pub struct Api {
    /// The role.
    pub engine: Handle<Job>,
    /// What it has said.
    pub bulletin: Bulletin,
    /// So many smoothers there are: of one message no more have signed.
    pub smoothers: usize,
    /// Counts requests.
    pub requests: Requests,
}

/// The largest message of a client; one of 64 smoothers and a quota of thousands is smaller.
const LARGEST_OF_CLIENTS: usize = 64 << 10;

/// For clients and everybody.
pub fn clients(api: Api) -> Router {
    let router = Router::new()
        .route("/v1/slots", post(slot))
        .route("/v1/deposits", post(deposit))
        .route("/v1/certificates", post(certify))
        .route("/v1/key", get(key))
        .route("/v1/definitions/propose", post(propose))
        .route("/v1/definitions", post(learn).get(definitions))
        .route("/v1/ends/{aggregate}", get(end))
        .route_layer(middleware::from_fn_with_state(api.clone(), counted))
        .with_state(api);
    in_time(router, LARGEST_OF_CLIENTS)
}

/// For the other smoothers and the aggregator.
pub fn peers(api: Api) -> Router {
    let door = Door::default();
    let smoothers: &[Role] = &[Role::Smoother];
    let aggregator: &[Role] = &[Role::Aggregator];
    Router::new()
        .route("/v1/said/{boot}/{from}", door.guard(get(said), smoothers, 0))
        .route("/v1/certificates/{aggregate}/{from}", door.guard(get(certificates), smoothers, 0))
        .route("/v1/readies/{aggregate}", door.guard(get(readies), smoothers, 0))
        .route("/v1/kept/{aggregate}/{slot}", door.guard(get(kept), smoothers, 0))
        .route("/v1/release/{aggregate}/{from}", door.guard(get(release), aggregator, 0))
        .route("/v1/check/{aggregate}", door.guard(post(check), aggregator, LARGEST))
        .route("/v1/close", door.guard(post(close), aggregator, LARGEST))
        .route("/v1/outcomes", door.guard(get(outcomes), aggregator, 0))
        .route_layer(middleware::from_fn_with_state(api.clone(), counted))
        .with_state(api)
}

/// Counts requests, of clients only what this smoother failed to answer: how many ask for slots,
/// and when, is the number of samples, which is nobody's business before the aggregate closes.
async fn counted(State(api): State<Api>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let name = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default().to_owned();
    let answer = next.run(request).await;
    if !hidden(&name) || answer.status().is_server_error() {
        api.requests.count(name, answer.status().as_u16());
    }
    answer
}

/// Whether requests of this kind say how many samples there are.
fn hidden(name: &str) -> bool {
    matches!(name, "slots" | "deposits" | "certificates" | "readies" | "kept" | "said")
}

impl From<NoSlot> for ApiError {
    fn from(why: NoSlot) -> Self {
        let (status, rule) = match why {
            NoSlot::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            NoSlot::NotNow => (StatusCode::CONFLICT, "not-now"),
            NoSlot::SitsOut => (StatusCode::CONFLICT, "sits-out"),
            NoSlot::Full | NoSlot::Lapsed => (StatusCode::CONFLICT, "full"),
            NoSlot::NotGranted => (StatusCode::CONFLICT, "not-granted"),
            NoSlot::SlotTaken => (StatusCode::CONFLICT, "slot-taken"),
            NoSlot::KeyTaken => (StatusCode::CONFLICT, "key-taken"),
            NoSlot::Spent => (StatusCode::FORBIDDEN, "spent"),
            _ => (StatusCode::FORBIDDEN, "showing"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

impl From<NotHeard> for ApiError {
    fn from(why: NotHeard) -> Self {
        let (status, rule) = match why {
            NotHeard::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            NotHeard::NotCertified => (StatusCode::FORBIDDEN, "not-certified"),
            NotHeard::Over => (StatusCode::CONFLICT, "over"),
            _ => (StatusCode::CONFLICT, "not-taken"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

impl From<NotDefined> for ApiError {
    fn from(why: NotDefined) -> Self {
        let rule = match why {
            NotDefined::Bad(_) => "definition",
            NotDefined::NotProposed => "definer",
            NotDefined::Time => "time",
            NotDefined::OtherKey => "key",
            NotDefined::Overlaps => "overlaps",
            NotDefined::SitsOut => "sits-out",
        };
        ApiError::new(StatusCode::CONFLICT, rule, why.to_string())
    }
}

impl From<NotReleased> for ApiError {
    fn from(why: NotReleased) -> Self {
        ApiError::new(StatusCode::CONFLICT, "not-released", why.to_string())
    }
}

impl From<NotClosed> for ApiError {
    fn from(why: NotClosed) -> Self {
        let rule = match why {
            NotClosed::Time => "time",
            NotClosed::SitsOut => "sits-out",
            NotClosed::Unknown => "unknown",
            _ => "not-closed",
        };
        ApiError::new(StatusCode::CONFLICT, rule, why.to_string())
    }
}

async fn slot(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let request = Box::new(decode(&body)?);
    encode(&api.engine.ask(|reply| Job::Request(request, reply)).await??)
}

async fn deposit(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let deposit = Box::new(decode(&body)?);
    encode(&api.engine.ask(|reply| Job::Deposit(deposit, reply)).await??)
}

/// What several smoothers have signed: no more of them than there are, and each once.
fn decode_endorsed<T: Message>(api: &Api, body: &[u8]) -> Result<Box<Endorsed<T>>, ApiError> {
    let endorsed: Endorsed<T> = decode(body)?;
    if endorsed.signatures().count() > api.smoothers {
        return Err(ApiError::malformed("the body has more signatures than there are smoothers"));
    }
    Ok(Box::new(endorsed))
}

async fn certify(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let certificate = decode_endorsed(&api, &body)?;
    api.engine.ask(|reply| Job::Certify(certificate, reply)).await??;
    encode(&())
}

async fn certificates(
    State(api): State<Api>,
    Path((name, from)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Job::Certificates(name, from, reply)).await?)
}

async fn readies(State(api): State<Api>, Path(name): Path<String>) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Job::Readies(name, reply)).await?)
}

async fn kept(
    State(api): State<Api>,
    Path((name, slot)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Job::Kept(name, slot, reply)).await?)
}

async fn key(State(api): State<Api>) -> Result<Vec<u8>, ApiError> {
    encode(&api.bulletin.keys())
}

async fn propose(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let definition = Box::new(decode(&body)?);
    encode(&api.engine.ask(|reply| Job::Define(definition, reply)).await??)
}

async fn learn(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let signed = decode_endorsed(&api, &body)?;
    api.engine.ask(|reply| Job::Learn(signed, reply)).await??;
    encode(&())
}

async fn definitions(State(api): State<Api>) -> Result<Vec<u8>, ApiError> {
    encode(&api.bulletin.definitions())
}

async fn end(State(api): State<Api>, Path(name): Path<String>) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Job::End(name, reply)).await?)
}

async fn said(
    State(api): State<Api>,
    Path((boot, from)): Path<(u64, usize)>,
) -> Result<Vec<u8>, ApiError> {
    let page: Page = api.bulletin.page(boot, from);
    encode(&page)
}

async fn release(
    State(api): State<Api>,
    Path((name, from)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Job::Release(name, from, reply)).await??)
}

async fn check(
    State(api): State<Api>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (name, shown) = (name_in(&name)?, decode(&body)?);
    tracing::debug!(aggregate = hex(&name), "tuples to check");
    api.engine.ask(|reply| Job::Check(name, shown, reply)).await??;
    encode(&())
}

async fn close(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let closing = Box::new(decode(&body)?);
    api.engine.ask(|reply| Job::Close(closing, reply)).await??;
    encode(&())
}

async fn outcomes(State(api): State<Api>) -> Result<Vec<u8>, ApiError> {
    encode(&api.bulletin.outcomes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::engine::channel;
    use crate::service::http::Peer;
    use crate::service::metrics::Metrics;
    use axum::Extension;
    use axum::body::Body;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use rcgen::{CertificateParams, KeyPair, SanType};
    use std::sync::Arc;

    /// What a smoother serves, whose engine does nothing any more.
    fn api(metrics: &Metrics) -> Api {
        let (engine, _) = channel();
        let requests = metrics.requests("stats_requests");
        Api { engine, bulletin: Bulletin::new(1), smoothers: 4, requests }
    }

    async fn ask(router: &Router, method: &str, path: &str) -> StatusCode {
        let request = Request::builder().method(method).uri(path).body(Body::from("no message"));
        let answer = TowerToHyperService::new(router.clone()).call(request.unwrap()).await;
        answer.unwrap().status()
    }

    /// The routes of peers as this party reaches them; none shows no certificate.
    fn reached_by(name: Option<&str>) -> Router {
        let certificate = name.map(|name| {
            let mut params = CertificateParams::new([]).unwrap();
            params.subject_alt_names.push(SanType::URI(name.try_into().unwrap()));
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            Arc::from(certificate.der().as_ref())
        });
        let address = "127.0.0.1:1".parse().unwrap();
        peers(api(&Metrics::new())).layer(Extension(Peer { address, certificate }))
    }

    /// Until an aggregate closes, nobody is to know how many samples it has; who reads metrics
    /// neither.
    #[tokio::test]
    async fn requests_of_clients_are_not_counted_unless_this_smoother_fails() {
        let metrics = Metrics::new();
        let router = clients(api(&metrics));
        for path in ["/v1/slots", "/v1/deposits", "/v1/certificates", "/v1/definitions"] {
            assert!(ask(&router, "POST", path).await.is_client_error());
        }
        let said = metrics.text();
        assert!(["slots", "deposits", "certificates"].iter().all(|name| !said.contains(name)));
        assert!(said.contains("definitions"));
    }

    /// What says when deposits came, or opens a sum, is for smoothers; what is deposited, and how
    /// it ended, for the aggregator.
    #[tokio::test]
    async fn nobody_asks_what_is_anothers() {
        let name = "00".repeat(32);
        let of = |path: &str| path.replace("NAME", &name);
        let of_smoothers =
            ["said/1/0", "certificates/NAME/0", "readies/NAME", "kept/NAME/0"].map(of);
        let of_aggregator = [format!("release/{name}/0"), "outcomes".into()];
        let posted = [format!("check/{name}"), "close".into()];
        let gets = |paths: &[String]| paths.iter().map(|path| ("GET", path.clone())).collect();
        let [smoothers, mut aggregator]: [Vec<_>; 2] = [gets(&of_smoothers), gets(&of_aggregator)];
        aggregator.extend(posted.into_iter().map(|path| ("POST", path)));
        let (one, two) = ("alpheus://smoother/eve", "alpheus://aggregator/eve");
        for (routes, who) in [(&smoothers, one), (&aggregator, two)] {
            for (method, path) in routes {
                for other in [Some(one), Some(two), Some("alpheus://registrar/eve"), None] {
                    let status = ask(&reached_by(other), method, &format!("/v1/{path}")).await;
                    let shut = [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&status);
                    assert_eq!(shut, other != Some(who), "{path} by {other:?}: {status}");
                }
            }
        }
    }
}
