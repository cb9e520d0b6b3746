//! A client against fake gateways, which accept every login. The tests check what the
//! client sends to whom.

use super::*;
use crate::card::{Card, Content};
use crate::refusal::Refusal;
use alpheus_access_pass::file::Evidence;
use alpheus_access_pass::gateway::{Gateway, Limits, session_of};
use alpheus_access_pass::messages::Connect;
use alpheus_anonymous_credential::configuration::Configuration;
use alpheus_anonymous_credential::holder::PendingRequest;
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::error::{Problem, RequestError};
use alpheus_node::service::http::Peer;
use alpheus_time::{Span, Timestamp};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::MutexGuard;
use std::time::Instant;

mod codes;
mod resends;

const SECOND: u64 = 1_000_000;

/// A gateway's log of requests, and its behaviour.
struct FakeState {
    gateway: Gateway,
    pinned: PinnedConfiguration,
    rng: ChaCha20Rng,
    statuses: BTreeMap<SessionId, SessionStatus>,
    logins: Vec<(SessionId, Epoch)>,
    connects: Vec<SessionId>,
    hellos: usize,
    /// Requests for the service.
    requests: usize,
    /// The address of each connection, with its session.
    peers: Vec<(SessionId, SocketAddr)>,
    behaviour: Behaviour,
}

/// How a gateway behaves.
#[derive(Clone, Copy, Default)]
struct Behaviour {
    /// Acknowledges every login with the first session, and refuses re-ups.
    links_sessions: bool,
    /// Refuses logins.
    refuses: bool,
    /// Its verifier is down.
    down: bool,
    /// Rejects its own challenge this many times, as after a restart.
    restarts: usize,
    /// Does not know the connection of this many requests, as after a restart.
    rejects: usize,
    /// Changes its configuration after this many hellos.
    changes_after: Option<usize>,
}

fn down() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", "not now")
}

#[derive(Clone)]
struct Fake(Arc<Mutex<FakeState>>);

impl Fake {
    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap()
    }
}

async fn hello(State(fake): State<Fake>) -> Vec<u8> {
    let FakeState { gateway, rng, hellos, behaviour, .. } = &mut *fake.state();
    *hellos += 1;
    let mut hello = gateway.hello(clock::now(), rng).to_bytes();
    hello[0] ^= u8::from(behaviour.changes_after.is_some_and(|after| *hellos > after));
    hello
}

async fn log_in(
    State(fake): State<Fake>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let login = Login::from_bytes(&body, Limit::ONE).unwrap();
    let mut state = fake.state();
    if state.behaviour.down {
        return Err(down().into());
    }
    let (session, epoch) = (session_of(&state.pinned, &login), login.epoch);
    let status = SessionStatus { session, holder: login.holder, first: epoch, epoch };
    state.gateway.update(status);
    state.statuses.insert(session, status);
    state.logins.push((session, epoch));
    state.peers.push((session, peer.address));
    if state.behaviour.refuses {
        return Err(ApiError::new(StatusCode::CONFLICT, "spent", "in use").into());
    }
    let session = if state.behaviour.links_sessions { state.logins[0].0 } else { session };
    Ok(Acknowledgement { session, epoch }.to_bytes())
}

async fn re_up(State(fake): State<Fake>, body: Bytes) -> Result<Vec<u8>, Refusal> {
    let ReUp { session, epoch, .. } = ReUp::from_bytes(&body).unwrap();
    let mut state = fake.state();
    if state.behaviour.down {
        return Err(down().into());
    }
    if state.behaviour.links_sessions {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "no", "not now").into());
    }
    let status = SessionStatus { epoch, ..state.statuses[&session] };
    state.gateway.update(status);
    state.statuses.insert(session, status);
    Ok(Acknowledgement { session, epoch }.to_bytes())
}

async fn connect_to(
    State(fake): State<Fake>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let connect = Connect::from_bytes(&body)?;
    let mut state = fake.state();
    if state.behaviour.down {
        return Err(down().into());
    }
    if let Some(left) = state.behaviour.restarts.checked_sub(1) {
        state.behaviour.restarts = left;
        return Err(GatewayError::Challenge.into());
    }
    state.connects.push(connect.session);
    state.peers.push((connect.session, peer.address));
    Ok(state.gateway.connect(&connect, clock::now())?.to_bytes())
}

/// A request for the service.
async fn serve(State(fake): State<Fake>) -> Response {
    let mut state = fake.state();
    state.requests += 1;
    let Some(left) = state.behaviour.rejects.checked_sub(1) else {
        return StatusCode::OK.into_response();
    };
    state.behaviour.rejects = left;
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Alpheus-Pass")]).into_response()
}

/// Epochs of this many seconds, of which the hundredth begins now, and one pass for all.
fn configuration(key: &IssuerKey, seconds: u64) -> Configuration {
    let epoch = seconds * SECOND;
    let schedule = Schedule {
        start: Timestamp((clock::now().0 / SECOND) * SECOND - 100 * epoch),
        epoch: Span(epoch),
        pre_login: Span(epoch / 2),
        border_pre_login: Span(epoch / 2),
        epochs_per_period: 1 << 20,
        ahead: 1,
    };
    let (issuer, limit) = (*key.public(), Limit::ONE);
    Configuration { deployment: [1; 32], kind: 1, tier: 1, limit, incarnation: 1, schedule, issuer }
}

/// A gateway, and a pass file for it.
async fn world(folder: &tempfile::TempDir, seconds: u64, behaviour: Behaviour) -> (Fake, PassFile) {
    let mut rng = alpheus_node::entropy::rng().unwrap();
    let key = IssuerKey::random(&mut rng).unwrap();
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    let signed = Signed::new(&configuration(&key, seconds), &operator);
    let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key()).unwrap();
    let gateway = Gateway::new(pinned.clone(), Limits::default(), &mut rng);
    let state = FakeState {
        gateway,
        pinned,
        rng,
        statuses: BTreeMap::new(),
        logins: Vec::new(),
        connects: Vec::new(),
        hellos: 0,
        requests: 0,
        peers: Vec::new(),
        behaviour,
    };
    let fake = Fake(Arc::new(Mutex::new(state)));
    let router = axum::Router::new()
        .route(PATH, get(hello))
        .route(&format!("{PATH}/login"), post(log_in))
        .route(&format!("{PATH}/re-up"), post(re_up))
        .route(&format!("{PATH}/connect"), post(connect_to))
        .fallback(serve)
        .with_state(fake.clone());
    let any = ([127, 0, 0, 1], 0).into();
    let server = alpheus_node::service::http::Server::bind(any, None).await.unwrap();
    let at = format!("http://{}", server.address().unwrap());
    let trigger = alpheus_node::service::shutdown::Trigger::new();
    let shutdown = trigger.shutdown();
    tokio::spawn(async move {
        let _running = trigger;
        server.serve(router, shutdown, Duration::ZERO).await
    });
    let card = Card::new(&Content::new(&signed, &operator, at.clone(), at, None), &operator);
    let file = pass_file(folder, &card, key);
    (fake, file)
}

fn pass_file(folder: &tempfile::TempDir, card: &Card, key: IssuerKey) -> PassFile {
    let (path, key_file) = (folder.path().join("pass"), folder.path().join("key"));
    std::fs::write(&key_file, "a key file of some length").unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut file = PassFile::create(&path, &key_file, card, "ada", Evidence::default()).unwrap();
    let (pinned, now) = (card.open().unwrap().pinned, clock::now());
    let mut rng = alpheus_node::entropy::rng().unwrap();
    let mut ledger = BTreeMap::new();
    let issuer = Issuer::restore(key, pinned.clone(), [], StateOrigin::New, now).unwrap();
    let mut issuer = issuer.commit(&mut ledger).unwrap();
    let pending = PendingRequest::begin(pinned, b"ada", Timing::Running, now, &mut rng).unwrap();
    let pending = pending.commit(&mut file).unwrap();
    let answer = issuer.issue(Applicant::named(b"ada"), &pending.bytes(), now, &mut rng).unwrap();
    let answer = answer.commit(&mut ledger).unwrap();
    pending.finish(&answer).unwrap().commit(&mut file).unwrap();
    file
}

async fn drive(file: PassFile, rotation: u64, time: Duration) -> Option<Result<(), SessionError>> {
    let options = SessionOptions { gateway: None, rotation, fetches: false };
    let (driver, _current) =
        Driver::new(file, &options, alpheus_node::entropy::rng().unwrap()).unwrap();
    let (_orders, ordered) = mpsc::channel(1);
    tokio::time::timeout(time, driver.run(ordered)).await.ok()
}

/// A gateway that wants to link two sessions acknowledges the second login with the first
/// session. A client that connected to that one would confirm the link.
#[tokio::test]
async fn a_client_connects_only_to_the_session_of_its_own_login() {
    let folder = tempfile::tempdir().unwrap();
    let behaviour = Behaviour { links_sessions: true, ..Behaviour::default() };
    let (fake, file) = world(&folder, 1, behaviour).await;
    let ended = drive(file, 1 << 30, Duration::from_secs(20)).await;
    assert!(
        matches!(ended, Some(Err(SessionError::Client(ClientError::OtherSession)))),
        "{ended:?}"
    );
    let state = fake.state();
    assert_eq!(state.logins.len(), 2, "the session could not be renewed");
    assert_eq!(state.connects, [state.logins[0].0]);
}

/// Epochs last a second of the machine's clock. A client that is too slow for a border loses its
/// session and logs in again, as it should, so such a run shows nothing.
#[tokio::test]
async fn all_clients_change_sessions_at_the_same_epochs() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let (fake, file) = world(&folder, 1, Behaviour::default()).await;
        let ended = drive(file, 2, Duration::from_millis(5_500)).await;
        assert!(ended.is_none(), "{ended:?}");
        let state = fake.state();
        if !has_lapsed(&state) {
            return changes_at_even_epochs(&state);
        }
    }
    panic!("sessions lapsed in all runs");
}

/// Whether a session ended before the next one, or before an odd epoch, in which none begins.
fn has_lapsed(state: &FakeState) -> bool {
    state.logins.windows(2).any(|pair| {
        let (last, next) = (state.statuses[&pair[0].0].epoch, pair[1].1);
        last.0 < next.0 - u64::from(next.0 % 2 == 0)
    })
}

fn changes_at_even_epochs(state: &FakeState) {
    // The first session begins with the client, all others at even epochs.
    let FakeState { logins, connects, peers, .. } = state;
    assert!((3..=4).contains(&logins.len()), "{logins:?}");
    assert!(logins[1..].iter().all(|(_, epoch)| epoch.0 % 2 == 0), "{logins:?}");
    // Each is connected once. The run may end before the last connection.
    let sessions: Vec<_> = logins.iter().map(|(session, _)| *session).collect();
    let connected = connects.len().max(sessions.len() - 1);
    assert_eq!(Some(&**connects), sessions.get(..connected), "{logins:?}");
    // Each session has its own connections, from the login on.
    let shares = peers.iter().any(|(session, address)| {
        peers.iter().any(|(other, theirs)| theirs == address && other != session)
    });
    assert!(!shares, "{peers:?}");
}

/// It gets no message that could identify the client: no login, and no session's connection.
#[tokio::test]
async fn a_gateway_with_another_configuration_is_sent_nothing() {
    for (changes_after, logins) in [(0, 0), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let behaviour = Behaviour { changes_after: Some(changes_after), ..Behaviour::default() };
        let (fake, file) = world(&folder, 30, behaviour).await;
        let ended = drive(file, 1 << 30, Duration::from_secs(20)).await;
        assert!(matches!(ended, Some(Err(SessionError::Configuration(_)))), "{ended:?}");
        let state = fake.state();
        assert_eq!((state.logins.len(), state.connects.len()), (logins, 0));
    }
}

/// Retries within the same epoch would be refused as well.
#[tokio::test]
async fn a_refused_login_is_retried_in_the_next_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let behaviour = Behaviour { refuses: true, ..Behaviour::default() };
    let (fake, file) = world(&folder, 60, behaviour).await;
    let ended = drive(file, 1 << 30, MAX_WAIT + Duration::from_secs(2)).await;
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(fake.state().logins.len(), 1);
}

/// The login was accepted, and only the connection is missing.
#[tokio::test]
async fn a_gateway_restart_between_login_and_connection_costs_no_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 60, Behaviour { restarts: 2, ..Behaviour::default() }).await;
    let options = SessionOptions { gateway: None, rotation: 1 << 30, fetches: false };
    let (driver, mut current) =
        Driver::new(file, &options, alpheus_node::entropy::rng().unwrap()).unwrap();
    let (_orders, ordered) = mpsc::channel(1);
    let driven = tokio::spawn(driver.run(ordered));
    let connected =
        tokio::time::timeout(Duration::from_secs(60), current.wait_for(Option::is_some));
    assert!(connected.await.is_ok_and(|live| live.is_ok()));
    let state = fake.state();
    assert!(state.logins.windows(2).all(|pair| pair[0] == pair[1]), "one session");
    driven.abort();
}

/// Only a verifier's own rules end the retries of an epoch.
#[test]
fn temporary_failures_are_not_refusals() {
    let kind = |rule: &str, status| {
        let (rule, detail) = (rule.to_owned(), String::new());
        SessionError::Link(RequestError::Refused(Problem {
            rule,
            detail,
            help: None,
            query: None,
            status,
            id: None,
        }))
        .kind()
    };
    for refused in ["spent", "ended", "no-session", "proof", "malformed", "may-have-forgotten"] {
        assert_eq!(kind(refused, 409), FailureKind::Refused, "{refused}");
    }
    assert_eq!(kind("epoch", 403), FailureKind::Early);
    // A slow body, too many requests, a proxy without its upstream, another shard.
    for (rule, status) in [("slow", 408), ("too-many", 429), ("http", 404), ("shard", 421)] {
        assert_eq!(kind(rule, status), FailureKind::Lost, "{rule}");
    }
    assert_eq!(
        SessionError::Link(RequestError::Malformed { base: String::new() }).kind(),
        FailureKind::Lost
    );
    assert_eq!(SessionError::NoPass(NoPassError).kind(), FailureKind::Early);
}

/// Gateway and verifier restart, the gateway first. Open pages keep pending for a connection.
#[tokio::test]
async fn a_client_survives_a_service_that_is_down_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 1, Behaviour::default()).await;
    let options = SessionOptions { gateway: None, rotation: 1 << 30, fetches: false };
    let (driver, mut current) =
        Driver::new(file, &options, alpheus_node::entropy::rng().unwrap()).unwrap();
    let (orders, ordered) = mpsc::channel(1);
    let driven = tokio::spawn(driver.run(ordered));
    let first = current.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    fake.state().behaviour.down = true;
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Some(live) = current.borrow_and_update().clone() {
            let _ = orders.try_send(Order::Reconnect(live));
        }
    }
    assert!(!driven.is_finished(), "{:?}", driven.await);
    fake.state().behaviour.down = false;
    let another = |live: &Option<Arc<LiveSession>>| {
        live.as_ref().is_some_and(|live| !Arc::ptr_eq(live, &first))
    };
    let again = tokio::time::timeout(Duration::from_secs(60), current.wait_for(another)).await;
    assert!(again.is_ok_and(|live| live.is_ok()));
    driven.abort();
}

/// All requests of a page notice together that the gateway has restarted.
#[tokio::test]
async fn many_orders_to_reconnect_make_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 60, Behaviour::default()).await;
    let options = SessionOptions { gateway: None, rotation: 1 << 30, fetches: false };
    let (driver, mut current) =
        Driver::new(file, &options, alpheus_node::entropy::rng().unwrap()).unwrap();
    let (orders, ordered) = mpsc::channel(16);
    let driven = tokio::spawn(driver.run(ordered));
    let first = current.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    for _ in 0..16 {
        orders.send(Order::Reconnect(first.clone())).await.unwrap();
    }
    let end = Instant::now() + Duration::from_secs(60);
    while fake.state().connects.len() < 2 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // If there were more, they would come now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.state().connects.len(), 2, "the first, and one for all of them");
    driven.abort();
}
