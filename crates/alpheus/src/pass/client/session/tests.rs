//! A client against gateways that do as the tests like. They believe every login;
//! what is tested is what the client says to whom.

use super::*;
use crate::network::answer::ApiError;
use crate::pass::card::Card;
use crate::service::http::Peer;
use alpheus_access_pass::gateway::{Gateway, Limits, session_of};
use alpheus_access_pass::messages::Connect;
use alpheus_anonymous_credential::configuration::Configuration;
use alpheus_anonymous_credential::holder::Requesting;
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::{Schedule, Time};
use alpheus_anonymous_credential::sessions::Standing;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::MutexGuard;

const SECOND: u64 = 1_000_000;

/// What a gateway was asked, and how it answers.
struct Asked {
    gateway: Gateway,
    pinned: Pinned,
    rng: ChaCha20Rng,
    standings: BTreeMap<SessionId, Standing>,
    logins: Vec<(SessionId, Epoch)>,
    connects: Vec<SessionId>,
    hellos: usize,
    /// From which connection who spoke for which session.
    peers: Vec<(SessionId, SocketAddr)>,
    manner: Manner,
}

/// How a gateway behaves.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// Acknowledges every login as the first one, and takes no re-ups.
    suspects: bool,
    /// Takes no login.
    refuses: bool,
    /// Its verifier is not there.
    down: bool,
    /// Works by another configuration after so many hellos.
    changes_after: Option<usize>,
}

fn down() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", "not now")
}

#[derive(Clone)]
struct Fake(Arc<Mutex<Asked>>);

impl Fake {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap()
    }
}

async fn hello(State(fake): State<Fake>) -> Vec<u8> {
    let Asked { gateway, rng, hellos, manner, .. } = &mut *fake.asked();
    *hellos += 1;
    let mut hello = gateway.hello(clock::now(), rng).to_bytes();
    hello[0] ^= u8::from(manner.changes_after.is_some_and(|after| *hellos > after));
    hello
}

async fn log_in(
    State(fake): State<Fake>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let login = Login::from_bytes(&body, Limit::ONE).unwrap();
    let mut asked = fake.asked();
    if asked.manner.down {
        return Err(down());
    }
    let (session, epoch) = (session_of(&asked.pinned, &login), login.epoch);
    let standing = Standing { session, holder: login.holder, first: epoch, epoch };
    asked.gateway.note(standing);
    asked.standings.insert(session, standing);
    asked.logins.push((session, epoch));
    asked.peers.push((session, peer.address));
    if asked.manner.refuses {
        return Err(ApiError::new(StatusCode::CONFLICT, "spent", "in use"));
    }
    let session = if asked.manner.suspects { asked.logins[0].0 } else { session };
    Ok(Acknowledgement { session, epoch }.to_bytes())
}

async fn re_up(State(fake): State<Fake>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let ReUp { session, epoch, .. } = ReUp::from_bytes(&body).unwrap();
    let mut asked = fake.asked();
    if asked.manner.down {
        return Err(down());
    }
    if asked.manner.suspects {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "no", "not now"));
    }
    let standing = Standing { epoch, ..asked.standings[&session] };
    asked.gateway.note(standing);
    Ok(Acknowledgement { session, epoch }.to_bytes())
}

async fn connect_to(
    State(fake): State<Fake>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let connect = Connect::from_bytes(&body)?;
    let mut asked = fake.asked();
    if asked.manner.down {
        return Err(down());
    }
    asked.connects.push(connect.session);
    asked.peers.push((connect.session, peer.address));
    Ok(asked.gateway.connect(clock::now(), &connect)?.to_bytes())
}

/// Epochs of so many seconds, the hundredth begins now, and one pass for all of them.
fn configuration(key: &IssuerKey, seconds: u64) -> Configuration {
    let epoch = seconds * SECOND;
    let schedule = Schedule {
        start: Time((clock::now().0 / SECOND) * SECOND - 100 * epoch),
        epoch,
        pre_login: epoch / 2,
        border_pre_login: epoch / 2,
        epochs_per_period: 1 << 20,
        ahead: 0,
    };
    let (issuer, limit) = (*key.public(), Limit::ONE);
    Configuration { deployment: [1; 32], kind: 1, tier: 1, limit, incarnation: 1, schedule, issuer }
}

/// A gateway, and a pass file for it.
async fn world(folder: &tempfile::TempDir, seconds: u64, manner: Manner) -> (Fake, PassFile) {
    let mut rng = crate::entropy::rng().unwrap();
    let key = IssuerKey::random(&mut rng).unwrap();
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    let signed = Signed::new(&configuration(&key, seconds), &operator);
    let pinned = Pinned::open(&signed, &operator.verifying_key()).unwrap();
    let gateway = Gateway::new(pinned.clone(), Limits::default(), &mut rng);
    let asked = Asked {
        gateway,
        pinned,
        rng,
        standings: BTreeMap::new(),
        logins: Vec::new(),
        connects: Vec::new(),
        hellos: 0,
        peers: Vec::new(),
        manner,
    };
    let fake = Fake(Arc::new(Mutex::new(asked)));
    let router = axum::Router::new()
        .route(PATH, get(hello))
        .route(&format!("{PATH}/login"), post(log_in))
        .route(&format!("{PATH}/re-up"), post(re_up))
        .route(&format!("{PATH}/connect"), post(connect_to))
        .with_state(fake.clone());
    let any = ([127, 0, 0, 1], 0).into();
    let server = crate::service::http::Server::bind(any, None).await.unwrap();
    let at = format!("http://{}", server.address().unwrap());
    let trigger = crate::service::shutdown::Trigger::new();
    let shutdown = trigger.shutdown();
    tokio::spawn(async move {
        let _running = trigger;
        server.serve(router, shutdown, Duration::ZERO).await
    });
    let card = Card::new(&signed, &operator, at.clone(), at, None);
    let file = pass_file(folder, &card, key);
    (fake, file)
}

fn pass_file(folder: &tempfile::TempDir, card: &Card, key: IssuerKey) -> PassFile {
    let (path, key_file) = (folder.path().join("pass"), folder.path().join("key"));
    std::fs::write(&key_file, "a key file of some length").unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut file = PassFile::create(&path, &key_file, card, "ada", "secret").unwrap();
    let (pinned, now) = (card.open().unwrap().pinned, clock::now());
    let mut rng = crate::entropy::rng().unwrap();
    let mut books = BTreeMap::new();
    let issuer = Issuer::restore(key, pinned.clone(), [], Log::New, now).unwrap();
    let mut issuer = issuer.commit(&mut books).unwrap();
    let asking = Requesting::begin(pinned, b"ada", now, Which::Running, &mut rng).unwrap();
    let asking = asking.commit(&mut file).unwrap();
    let answer = issuer.issue(now, b"ada", &asking.bytes(), &mut rng).unwrap();
    let answer = answer.commit(&mut books).unwrap();
    asking.finish(&answer).unwrap().commit(&mut file).unwrap();
    file
}

async fn drive(file: PassFile, rotation: u64, time: Duration) -> Option<Result<(), SessionError>> {
    let habits = Habits { gateway: None, rotation, fetches: false };
    let (driver, _seen) = Driver::new(file, &habits, crate::entropy::rng().unwrap()).unwrap();
    let (_orders, ordered) = mpsc::channel(1);
    tokio::time::timeout(time, driver.run(ordered)).await.ok()
}

/// A gateway that suspects that two sessions are one person's acknowledges the
/// second login with the first session. Were that one spoken for, it would know.
#[tokio::test]
async fn another_session_than_was_sent_is_not_spoken_for() {
    let folder = tempfile::tempdir().unwrap();
    let manner = Manner { suspects: true, ..Manner::default() };
    let (fake, file) = world(&folder, 1, manner).await;
    let ended = drive(file, 1 << 30, Duration::from_secs(20)).await;
    assert!(
        matches!(ended, Some(Err(SessionError::Client(ClientRefused::OtherSession)))),
        "{ended:?}"
    );
    let asked = fake.asked();
    assert_eq!(asked.logins.len(), 2, "the session could not be carried on");
    assert_eq!(asked.connects, [asked.logins[0].0]);
}

#[tokio::test]
async fn sessions_begin_anew_at_epochs_that_are_everybodys() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 1, Manner::default()).await;
    let ended = drive(file, 2, Duration::from_millis(5_500)).await;
    assert!(ended.is_none(), "{ended:?}");
    let asked = fake.asked();
    let (logins, sessions) = (&asked.logins, asked.standings.len());
    assert!((3..=4).contains(&sessions), "{logins:?}");
    // The first began when the client did; whatever came after it, at even epochs.
    assert!(logins[1..].iter().all(|(_, epoch)| epoch.0 % 2 == 0), "{logins:?}");
    assert_eq!(asked.connects.len(), sessions, "each was connected once");
    // On connections of its own, from the login on.
    for (session, address) in &asked.peers {
        let others = asked.peers.iter().filter(|(_, other)| other == address);
        assert!(others.into_iter().all(|(other, _)| other == session), "{:?}", asked.peers);
    }
}

/// It is asked nothing but who it is: neither at the login, nor by a session that it
/// could be told apart by.
#[tokio::test]
async fn a_gateway_with_another_configuration_is_sent_nothing() {
    for (changes_after, logins) in [(0, 0), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let manner = Manner { changes_after: Some(changes_after), ..Manner::default() };
        let (fake, file) = world(&folder, 30, manner).await;
        let ended = drive(file, 1 << 30, Duration::from_secs(20)).await;
        assert!(matches!(ended, Some(Err(SessionError::Configuration(_)))), "{ended:?}");
        let asked = fake.asked();
        assert_eq!((asked.logins.len(), asked.connects.len()), (logins, 0));
    }
}

/// Not again and again within the epoch, which it would be refused in as well.
#[tokio::test]
async fn what_is_refused_waits_for_the_next_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let manner = Manner { refuses: true, ..Manner::default() };
    let (fake, file) = world(&folder, 60, manner).await;
    let ended = drive(file, 1 << 30, LONGEST_WAIT + Duration::from_secs(2)).await;
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(fake.asked().logins.len(), 1);
}

/// Gateway and verifier start again, the gateway first; open pages ask for a connection
/// all the while.
#[tokio::test]
async fn a_service_that_is_down_for_a_while_ends_no_client() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 1, Manner::default()).await;
    let habits = Habits { gateway: None, rotation: 1 << 30, fetches: false };
    let (driver, mut seen) = Driver::new(file, &habits, crate::entropy::rng().unwrap()).unwrap();
    let (orders, ordered) = mpsc::channel(1);
    let driven = tokio::spawn(driver.run(ordered));
    let first = seen.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    fake.asked().manner.down = true;
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Some(live) = seen.borrow_and_update().clone() {
            let _ = orders.try_send(Order::Reconnect(live));
        }
    }
    assert!(!driven.is_finished(), "{:?}", driven.await);
    fake.asked().manner.down = false;
    let another =
        |live: &Option<Arc<Live>>| live.as_ref().is_some_and(|live| !Arc::ptr_eq(live, &first));
    let again = tokio::time::timeout(Duration::from_secs(20), seen.wait_for(another)).await;
    assert!(again.is_ok_and(|live| live.is_ok()));
    driven.abort();
}

/// Requests of a page find out together that the gateway has forgotten them.
#[tokio::test]
async fn many_requests_ask_for_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, file) = world(&folder, 60, Manner::default()).await;
    let habits = Habits { gateway: None, rotation: 1 << 30, fetches: false };
    let (driver, mut seen) = Driver::new(file, &habits, crate::entropy::rng().unwrap()).unwrap();
    let (orders, ordered) = mpsc::channel(16);
    let driven = tokio::spawn(driver.run(ordered));
    let first = seen.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    for _ in 0..16 {
        orders.send(Order::Reconnect(first.clone())).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.asked().connects.len(), 2, "the first, and one for all of them");
    driven.abort();
}
