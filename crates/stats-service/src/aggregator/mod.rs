//! `alpheus stats aggregator`: checks the smoothers' releases, closes aggregates, and publishes
//! results.
//!
//! - [`engine`]: the role on its own thread, the only writer of its ledger,
//! - [`closing_driver`]: takes aggregates from their release to their result,
//! - [`metrics`]: metrics for its operator,
//! - [`results_log`]: results as a log.
//!
//! | request | answers |
//! | --- | --- |
//! | `GET /v1/results` | aggregates as JSON, a page of them; the header `Link` names the next page |
//! | `GET /v1/results.csv` | the same as CSV |
//! | `GET /v1/rows` | the same in binary form, with what smoothers have signed |
//! | any of these and `/{name}` | those whose names come after this one |
//! | `GET /v1/counts` | open counts, signed by the operator |
//! | `POST /v1/counts` | accepts a count signed by the operator |
//! | `POST /v1/counts/{count}` | accepts an account's presentation |
//! | `GET /v1/closings/{aggregate}` | the signed closing |
//! | `GET /v1/leaves/{aggregate}` | all leaves under the closing, in which clients find their own |

pub mod closing_driver;
pub mod engine;
pub mod metrics;
pub mod results_log;

use crate::card::VerifiedCard;
use crate::counts::tally_server::{CountRejectedError, TallyServer, split_records};
use crate::keys;
use crate::links;
use crate::membership::stated;
use crate::names::{hex, name_in};
use crate::parties::{Parties, PartyClient};
use crate::refusal::Refuse;
use crate::results_reader::ResultsPage;
use crate::role::{RoleArgs, RoleContext};
use crate::row::{Row, csv};
use alpheus_accountable_statistics::aggregator::{Aggregator, Identity, Node};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::tally::{CountError, TallyError};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_node::clock::Clock;
use alpheus_node::engine::{Handle, Worker, channel};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::OpenedLedger;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::door::in_time;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::health::State as HealthState;
use alpheus_node::service::metrics::Requests;
use alpheus_node::settings::TlsFiles;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use engine::{Call, Engine};
use metrics::AggregatorMetrics;
use results_log::ResultsLog;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  alpheus stats aggregator --identity pki/aggregator --card roads/card.json \\
      --keys roads/aggregator --state run/aggregator --api 127.0.0.1:7702
  curl --cacert pki/ca.pem https://localhost:7702/v1/results";

/// The maximum size of a request: a count, or a presentation.
const MAX_REQUEST: usize = 64 << 10;
/// The default number of days for which an aggregate is kept after its end.
const KEPT: u64 = 366;
/// A day in microseconds.
const DAY: u64 = 86_400_000_000;

/// Arguments of `alpheus stats aggregator`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    role: RoleArgs,
    /// Days for which an aggregate is kept after its end; its row stays in the log; by default 366
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u64>,
}

/// Runs the command until a shutdown signal.
///
/// # Errors
/// A setting is missing or wrong, or the store or the address is unavailable.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let own = vec![("stats.retention-days", args.retention_days.map(|days| days.to_string()))];
    let seat = args.role.open(Role::Aggregator, own, globals)?;
    let RoleContext { settings, stats, identity, card, keys, clock, address, found } = seat;
    let kept = stats.retention_days.unwrap_or(KEPT).saturating_mul(DAY);
    let metrics = AggregatorMetrics::new(&globals.metrics);
    let restored = restore(found, (&card, &keys), clock.clone(), (metrics.clone(), kept))?;
    let (handle, calls) = channel();
    let part = globals.health.part("aggregator");
    let (worker, broken) = Worker::start("aggregator", restored, calls)?;
    part.set(HealthState::Ready);
    let signing = keys::signing(&keys.join(keys::SIGNING))?;
    let stated = stated(&card.pinned, identity.name(), &signing);
    let parties = (0..).map(SmootherId).zip(&card.smoothers);
    let parties = parties.map(|(id, (_, peers))| {
        let link = links::smoother_peer(peers.clone(), &identity)?;
        Ok((id, PartyClient::of_member(link, Arc::clone(&stated))))
    });
    let parties = parties.collect::<Result<Vec<_>, Failure>>()?;
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let router = router(handle.clone(), metrics.requests);
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false, revoked: None }]);
    let (driver, pinned) = ((handle.clone(), clock), card.pinned.clone());
    let public = Parties::new(&card)?.smoothers;
    serve(listeners, &settings, globals, broken, |at| {
        note!("serving at {}", at.join(" "));
        tokio::spawn(closing_driver::run(parties, public, pinned, driver));
    })?;
    handle.tell_blocking(Call::Stop);
    worker.end()
}

fn restore(
    found: OpenedLedger,
    (card, folder): (&VerifiedCard, &std::path::Path),
    clock: Clock,
    (metrics, kept): (AggregatorMetrics, u64),
) -> Result<Engine, Failure> {
    let identity = Identity {
        key: keys::signing(&folder.join(keys::SIGNING))?,
        sealing: keys::sealing(&folder.join(keys::SEALING))?,
        uploads: keys::issuing(&folder.join(keys::UPLOADS))?,
    };
    let key = identity.key.verifying_key();
    let origin = found.since_it_began();
    let OpenedLedger { mut ledger, records, .. } = found;
    let (counts, records) = split_records(records);
    let tallies =
        TallyServer::restore(&card.pinned, &counts, clock.now()).blame(Category::Input)?;
    let restored = Aggregator::restore(&card.pinned, identity, Node::ALONE, records);
    let mut aggregator = restored.blame(Category::Input)?;
    if origin == StateOrigin::Restored {
        note!(
            "the state is older than its fence: this aggregator closes no aggregate that was released before now, and takes their outcomes from the smoothers"
        );
        aggregator.sit_out(clock.now()).commit(&mut ledger).blame(Category::Io)?;
    }
    let results = ResultsLog::open(&ledger)?;
    Ok(Engine { aggregator, tallies, ledger, clock, key, results, kept, metrics })
}

fn router(engine: Handle<Call>, requests: Requests) -> Router {
    let router = Router::new()
        .route("/v1/results", get(results))
        .route("/v1/results/{after}", get(results))
        .route("/v1/results.csv", get(results_csv))
        .route("/v1/results.csv/{after}", get(results_csv))
        .route("/v1/rows", get(rows))
        .route("/v1/rows/{after}", get(rows))
        .route("/v1/counts", get(questions).post(ask))
        .route("/v1/counts/{count}", post(count))
        .route("/v1/closings/{aggregate}", get(closing))
        .route("/v1/leaves/{aggregate}", get(leaves))
        .route_layer(middleware::from_fn_with_state(requests, count_request))
        .with_state(engine);
    in_time(router, MAX_REQUEST)
}

async fn count_request(State(requests): State<Requests>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let name = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default().to_owned();
    let answer = next.run(request).await;
    requests.count(name, answer.status().as_u16());
    answer
}

impl Refuse for TallyError {
    fn refusal(self) -> ApiError {
        let why = self;
        ApiError::new(StatusCode::CONFLICT, "count", why.to_string())
    }
}

impl Refuse for CountRejectedError {
    fn refusal(self) -> ApiError {
        let why = self;
        let (status, rule) = match why {
            CountRejectedError::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            CountRejectedError::SitsOut => (StatusCode::CONFLICT, "sits-out"),
            CountRejectedError::Presentation(CountError::Time) => (StatusCode::CONFLICT, "not-now"),
            CountRejectedError::Presentation(_) => (StatusCode::FORBIDDEN, "presentation"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

/// The name in a path after which a page begins; none for the first page.
fn after(path: Option<Path<String>>) -> Result<Option<Digest>, ApiError> {
    path.map(|Path(name)| name_in(&name)).transpose()
}

/// Rows and, after RFC 8288, the address of those that follow.
async fn page(
    engine: &Handle<Call>,
    path: Option<Path<String>>,
    at: &str,
) -> Result<(HeaderMap, Vec<Row>), ApiError> {
    let after = after(path)?;
    let ResultsPage { results, next } = engine.ask(|reply| Call::Rows(after, reply)).await?;
    let link = next.map(|next| format!("<{at}/{}>; rel=\"next\"", hex(&next)));
    let link = link.and_then(|link| HeaderValue::try_from(link).ok());
    Ok((link.into_iter().map(|link| (header::LINK, link)).collect(), results))
}

async fn questions(State(engine): State<Handle<Call>>) -> Result<Vec<u8>, ApiError> {
    encode(&engine.ask(Call::Questions).await?)
}

async fn ask(State(engine): State<Handle<Call>>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let signed = Box::new(decode(&body)?);
    engine.ask(|reply| Call::Ask(signed, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn count(
    State(engine): State<Handle<Call>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (name, presentation) = (name_in(&name)?, decode(&body)?);
    engine.ask(|reply| Call::Count(name, presentation, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn results(
    State(engine): State<Handle<Call>>,
    path: Option<Path<String>>,
) -> Result<impl IntoResponse, ApiError> {
    let (link, rows) = page(&engine, path, "/v1/results").await?;
    Ok((link, Json(rows)))
}

async fn results_csv(
    State(engine): State<Handle<Call>>,
    path: Option<Path<String>>,
) -> Result<impl IntoResponse, ApiError> {
    let (link, rows) = page(&engine, path, "/v1/results.csv").await?;
    Ok((link, [(header::CONTENT_TYPE, "text/csv")], csv(&rows)))
}

async fn rows(
    State(engine): State<Handle<Call>>,
    path: Option<Path<String>>,
) -> Result<Vec<u8>, ApiError> {
    let after = after(path)?;
    encode(&engine.ask(|reply| Call::Shown(after, reply)).await?)
}

async fn closing(
    State(engine): State<Handle<Call>>,
    Path(name): Path<String>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    let closing = engine.ask(|reply| Call::Closing(name, reply)).await?;
    encode(
        &closing
            .ok_or_else(|| ApiError::missing("this aggregator has no closing of that aggregate"))?,
    )
}

async fn leaves(
    State(engine): State<Handle<Call>>,
    Path(name): Path<String>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    let leaves = engine.ask(|reply| Call::Leaves(name, reply)).await?;
    encode(
        &leaves
            .ok_or_else(|| ApiError::missing("this aggregator has no closing of that aggregate"))?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::count::CountPlan;
    use crate::results_reader::{PAGE_RESULTS, ShownResult};
    use crate::test_deployment::TestDeployment;
    use alpheus_accountable_statistics::endorsement::Endorsed;
    use alpheus_crypto::signed_message::Signed;
    use alpheus_node::ledger::FencedLedger;
    use alpheus_node::service::metrics::Metrics;
    use alpheus_time::Timestamp;
    use alpheus_transport::simulation::Machine;
    use axum::body::{Body, to_bytes};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use std::collections::BTreeSet;

    const GATE: &str =
        "{ place: park/gate, every: 1hr, release: count, fewest: 5, after: { close: 10min } }";
    const HOUR: u64 = DAY / 24;

    /// An aggregator with these aggregates and counts, and their names.
    fn engine(place: &TestDeployment, counts: u64) -> (Engine, BTreeSet<Digest>) {
        let fence = place.folder.path().join("fence");
        let store = Machine::new().open().unwrap();
        let found = FencedLedger::open_spaces(store, &fence, None, ["s", "f"]).unwrap();
        let metrics = AggregatorMetrics::new(&Metrics::new());
        let keys = place.keys("aggregator");
        let restored = restore(found, (&place.card, &keys), Clock::Process, (metrics, DAY));
        let (mut engine, mut names) = (restored.unwrap(), BTreeSet::new());
        for later in 1..4 {
            let (definition, mut endorsed) = (place.definition(later), Endorsed::default());
            for by in 0..4_u16 {
                endorsed.add(SmootherId(by), place.signed_by(by.into(), &definition));
            }
            let step = engine.aggregator.handle_definition(&endorsed).unwrap();
            names.insert(step.commit(&mut engine.ledger).unwrap().name());
        }
        let operator = keys::signing(&place.keys(crate::init::OPERATOR)).unwrap();
        let (plan, pinned) = (CountPlan::parse(GATE).unwrap(), &place.card.pinned);
        let first = TestDeployment::now().0 / HOUR + 1;
        for hour in first..first + counts {
            let signed = Signed::new(&plan.question(pinned, Timestamp(hour * HOUR)), &operator);
            names.insert(signed.digest());
            let step = engine.tallies.ask(signed, TestDeployment::now()).unwrap();
            step.commit(&mut engine.ledger).unwrap();
        }
        (engine, names)
    }

    async fn get(router: &Router, path: &str) -> (HeaderMap, Vec<u8>) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = TowerToHyperService::new(router.clone()).call(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let (parts, body) = answer.into_parts();
        (parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    /// Results of a year are more than one response may have.
    #[tokio::test]
    async fn results_come_in_pages_that_leave_none_out() {
        let (place, counts) = (TestDeployment::new(), PAGE_RESULTS as u64 + 9);
        let (engine, names) = engine(&place, counts);
        assert_eq!(names.len(), PAGE_RESULTS + 12);
        let (handle, calls) = channel();
        let (_worker, _) = Worker::start("aggregator", engine, calls).unwrap();
        let router = router(handle, Metrics::new().requests("stats_requests"));
        let (mut path, mut shown, mut sizes) = ("/v1/rows".to_owned(), Vec::new(), Vec::new());
        loop {
            let (_, body) = get(&router, &path).await;
            let page: ResultsPage<ShownResult> = postcard::from_bytes(&body).unwrap();
            sizes.push(page.results.len());
            shown.extend(page.results.into_iter().map(|shown| match shown {
                ShownResult::Aggregate(shown) => shown.name().unwrap(),
                ShownResult::Count { question, .. } => question.digest(),
            }));
            let Some(next) = page.next else { break };
            path = format!("/v1/rows/{}", hex(&next));
        }
        assert_eq!(sizes, [PAGE_RESULTS, 12]);
        assert!(shown.iter().eq(&names), "each once, in the order of names");
        for at in ["/v1/results", "/v1/results.csv"] {
            let (headers, first) = get(&router, at).await;
            let link = headers[header::LINK].to_str().unwrap();
            let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
            let (headers, second) = get(&router, next).await;
            assert!(!headers.contains_key(header::LINK), "{at}");
            let count = |body: &[u8]| match at {
                "/v1/results" => serde_json::from_slice::<Vec<Row>>(body).unwrap().len(),
                _ => String::from_utf8_lossy(body).lines().skip(1).count(),
            };
            assert_eq!((count(&first), count(&second)), (PAGE_RESULTS, 12), "{at}");
        }
    }
}
