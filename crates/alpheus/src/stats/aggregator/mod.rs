//! `alpheus stats aggregator`: checks what smoothers release, closes, publishes.
//!
//! - [`engine`]: the role on a thread of its own, one writer of its ledger,
//! - [`conductor`]: brings aggregates from their release to their results,
//! - [`counted`]: what its operator sees of it,
//! - [`published`]: results as a topic.
//!
//! | request | answers |
//! | --- | --- |
//! | `GET /v1/results` | all aggregates as JSON |
//! | `GET /v1/results.csv` | the same for a spreadsheet |
//! | `GET /v1/rows` | the same for this program |
//! | `GET /v1/counts` | counts that are not over, as the operator has signed them |
//! | `POST /v1/counts` | takes a count that the operator has signed |
//! | `POST /v1/counts/{count}` | takes a showing of somebody who counts |
//! | `GET /v1/closings/{aggregate}` | what is counted, signed |
//! | `GET /v1/leaves/{aggregate}` | all leaves under the closing, for clients to find theirs |

pub mod conductor;
pub mod counted;
pub mod engine;
pub mod published;

use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::answer::{ApiError, decode, encode};
use crate::network::door::in_time;
use crate::network::role::Role;
use crate::pass::ledger::Found;
use crate::pass::serve::{Listener, serve};
use crate::service::engine::{Handle, Worker, channel};
use crate::service::health::State as Is;
use crate::service::metrics::Requests;
use crate::service::tls::TlsFiles;
use crate::stats::card::Opened;
use crate::stats::clock::Clock;
use crate::stats::counts::desk::{Desk, NotCounted, divided};
use crate::stats::keys;
use crate::stats::names::name_in;
use crate::stats::results::{Row, csv};
use crate::stats::role::{RoleArgs, Seat};
use crate::stats::ways::{Way, Ways};
use alpheus_accountable_statistics::aggregator::{Aggregator, Identity, Node};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::tally::{BadTally, NotTallied};
use alpheus_crypto::ledger::Log;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use counted::Counted;
use engine::{Engine, Job};
use published::Results;

const EXAMPLES: &str = "\
Examples:
  alpheus stats aggregator --identity pki/aggregator --card roads/card.json --keys roads/aggregator --state run/aggregator --api 127.0.0.1:7702
  curl --cacert pki/ca.pem https://localhost:7702/v1/results";

/// The largest request: a question, or a showing.
const LARGEST: usize = 64 << 10;
/// Days for which an aggregate is kept after its end, unless it is said otherwise.
const KEPT: u64 = 366;
/// In microseconds.
const DAY: u64 = 86_400_000_000;

/// Arguments of `alpheus stats aggregator`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    role: RoleArgs,
    /// For so many days an aggregate is kept after its end, while its row stays in the log; by
    /// default 366
    #[arg(long, value_name = "DAYS")]
    kept_days: Option<u64>,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let own = vec![("stats.kept-days", args.kept_days.map(|days| days.to_string()))];
    let seat = args.role.open(Role::Aggregator, own, globals)?;
    let Seat { settings, stats, identity, card, keys, clock, address, found } = seat;
    let kept = stats.kept_days.unwrap_or(KEPT).saturating_mul(DAY);
    let counted = Counted::new(&globals.metrics);
    let engine = restore(found, (&card, &keys), clock, (counted.clone(), kept))?;
    let (handle, jobs) = channel();
    let part = globals.health.part("aggregator");
    let (worker, broken) =
        Worker::start("aggregator", move |trigger| engine::run(engine, jobs, trigger))?;
    part.set(Is::Ready);
    let ways = (0..).map(SmootherId).zip(&card.smoothers);
    let ways = ways.map(|(id, (_, peers))| Ok((id, Way::named(peers, &identity)?)));
    let ways = ways.collect::<Result<Vec<_>, Failure>>()?;
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let router = router(handle.clone(), counted.requests);
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false }]);
    let (conducted, pinned) = (handle.clone(), card.pinned.clone());
    let public = Ways::new(&card)?.smoothers;
    serve(listeners, &settings, globals, broken, |at| {
        eprintln!("serving at {}", at.join(" "));
        tokio::spawn(conductor::run(ways, public, pinned, conducted));
    })?;
    handle.tell_blocking(Job::Stop);
    worker.end()
}

fn restore(
    found: Found,
    (card, folder): (&Opened, &std::path::Path),
    clock: Clock,
    (counted, kept): (Counted, u64),
) -> Result<Engine, Failure> {
    let identity = Identity {
        key: keys::signing(&folder.join(keys::SIGNING))?,
        sealing: keys::sealing(&folder.join(keys::SEALING))?,
        uploads: keys::issuing(&folder.join(keys::UPLOADS))?,
    };
    let key = identity.key.verifying_key();
    let log = found.since_it_began();
    let Found { mut ledger, records, .. } = found;
    let (counts, records) = divided(records);
    let desk = Desk::restore(&card.pinned, &counts, clock.now()).blame(Category::Input)?;
    let restored = Aggregator::restore(&card.pinned, identity, Node::ALONE, records);
    let mut aggregator = restored.blame(Category::Input)?;
    if log == Log::Doubtful {
        eprintln!(
            "the state is older than its fence: what was released until now is not closed here; smoothers say how it ended"
        );
        aggregator.sit_out(clock.now()).commit(&mut ledger).blame(Category::Io)?;
    }
    let results = Results::open(&aggregator, &ledger)?;
    Ok(Engine { aggregator, desk, ledger, clock, key, results, kept, counted })
}

fn router(engine: Handle<Job>, requests: Requests) -> Router {
    let router = Router::new()
        .route("/v1/results", get(results))
        .route("/v1/results.csv", get(results_csv))
        .route("/v1/rows", get(rows))
        .route("/v1/counts", get(questions).post(ask))
        .route("/v1/counts/{count}", post(count))
        .route("/v1/closings/{aggregate}", get(closing))
        .route("/v1/leaves/{aggregate}", get(leaves))
        .route_layer(middleware::from_fn_with_state(requests, counted_by))
        .with_state(engine);
    in_time(router, LARGEST)
}

async fn counted_by(State(requests): State<Requests>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let name = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default().to_owned();
    let answer = next.run(request).await;
    requests.count(name, answer.status().as_u16());
    answer
}

impl From<BadTally> for ApiError {
    fn from(why: BadTally) -> Self {
        ApiError::new(StatusCode::CONFLICT, "count", why.to_string())
    }
}

impl From<NotCounted> for ApiError {
    fn from(why: NotCounted) -> Self {
        let (status, rule) = match why {
            NotCounted::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            NotCounted::SitsOut => (StatusCode::CONFLICT, "sits-out"),
            NotCounted::Showing(NotTallied::Time) => (StatusCode::CONFLICT, "not-now"),
            NotCounted::Showing(_) => (StatusCode::FORBIDDEN, "showing"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

async fn all(engine: &Handle<Job>) -> Result<Vec<Row>, ApiError> {
    Ok(engine.ask(Job::All).await?)
}

async fn questions(State(engine): State<Handle<Job>>) -> Result<Vec<u8>, ApiError> {
    encode(&engine.ask(Job::Questions).await?)
}

async fn ask(State(engine): State<Handle<Job>>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let signed = Box::new(decode(&body)?);
    engine.ask(|reply| Job::Ask(signed, reply)).await??;
    encode(&())
}

async fn count(
    State(engine): State<Handle<Job>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (name, showing) = (name_in(&name)?, decode(&body)?);
    engine.ask(|reply| Job::Count(name, showing, reply)).await??;
    encode(&())
}

async fn results(State(engine): State<Handle<Job>>) -> Result<Json<Vec<Row>>, ApiError> {
    Ok(Json(all(&engine).await?))
}

async fn results_csv(State(engine): State<Handle<Job>>) -> Result<impl IntoResponse, ApiError> {
    Ok(([(header::CONTENT_TYPE, "text/csv")], csv(&all(&engine).await?)))
}

async fn rows(State(engine): State<Handle<Job>>) -> Result<Vec<u8>, ApiError> {
    encode(&all(&engine).await?)
}

async fn closing(
    State(engine): State<Handle<Job>>,
    Path(name): Path<String>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    let closing = engine.ask(|reply| Job::Closing(name, reply)).await?;
    encode(&closing.ok_or_else(|| ApiError::missing("the aggregate is not closed here"))?)
}

async fn leaves(
    State(engine): State<Handle<Job>>,
    Path(name): Path<String>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    let leaves = engine.ask(|reply| Job::Leaves(name, reply)).await?;
    encode(&leaves.ok_or_else(|| ApiError::missing("the aggregate is not closed here"))?)
}
