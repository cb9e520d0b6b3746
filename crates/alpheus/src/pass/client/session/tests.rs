//! A client against gateways that do as the tests like. They believe every login;
//! what is tested is what the client says to whom.

use super::*;
use crate::network::answer::ApiError;
use crate::pass::card::Card;
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
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::collections::BTreeMap;
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
    /// Acknowledges every login as the first one, and takes no re-ups.
    suspects: bool,
}

#[derive(Clone)]
struct Fake(Arc<Mutex<Asked>>);

impl Fake {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap()
    }
}

async fn hello(State(fake): State<Fake>) -> Vec<u8> {
    let Asked { gateway, rng, .. } = &mut *fake.asked();
    gateway.hello(clock::now(), rng).to_bytes()
}

async fn log_in(State(fake): State<Fake>, body: Bytes) -> Vec<u8> {
    let login = Login::from_bytes(&body, Limit::ONE).unwrap();
    let mut asked = fake.asked();
    let (session, epoch) = (session_of(&asked.pinned, &login), login.epoch);
    let standing = Standing { session, holder: login.holder, first: epoch, epoch };
    asked.gateway.note(standing);
    asked.standings.insert(session, standing);
    asked.logins.push((session, epoch));
    let session = if asked.suspects { asked.logins[0].0 } else { session };
    Acknowledgement { session, epoch }.to_bytes()
}

async fn re_up(State(fake): State<Fake>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let ReUp { session, epoch, .. } = ReUp::from_bytes(&body).unwrap();
    let mut asked = fake.asked();
    if asked.suspects {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "no", "not now"));
    }
    let standing = Standing { epoch, ..asked.standings[&session] };
    asked.gateway.note(standing);
    Ok(Acknowledgement { session, epoch }.to_bytes())
}

async fn connect_to(State(fake): State<Fake>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let connect = Connect::from_bytes(&body)?;
    let mut asked = fake.asked();
    asked.connects.push(connect.session);
    Ok(asked.gateway.connect(clock::now(), &connect)?.to_bytes())
}

/// Epochs of a second, and one pass for all of them.
fn configuration(key: &IssuerKey) -> Configuration {
    let schedule = Schedule {
        start: Time((clock::now().0 / SECOND - 100) * SECOND),
        epoch: SECOND,
        pre_login: SECOND / 2,
        border_pre_login: SECOND / 2,
        epochs_per_period: 1 << 20,
        ahead: 0,
    };
    let (issuer, limit) = (*key.public(), Limit::ONE);
    Configuration { deployment: [1; 32], kind: 1, tier: 1, limit, incarnation: 1, schedule, issuer }
}

/// A gateway, and a pass file for it.
async fn world(folder: &tempfile::TempDir, suspects: bool) -> (Fake, PassFile) {
    let mut rng = crate::entropy::rng().unwrap();
    let key = IssuerKey::random(&mut rng).unwrap();
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    let signed = Signed::new(&configuration(&key), &operator);
    let pinned = Pinned::open(&signed, &operator.verifying_key()).unwrap();
    let gateway = Gateway::new(pinned.clone(), Limits::default(), &mut rng);
    let (standings, logins, connects) = (BTreeMap::new(), Vec::new(), Vec::new());
    let asked = Asked { gateway, pinned, rng, standings, logins, connects, suspects };
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
    let (fake, file) = world(&folder, true).await;
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
    let (fake, file) = world(&folder, false).await;
    let ended = drive(file, 2, Duration::from_millis(5_500)).await;
    assert!(ended.is_none(), "{ended:?}");
    let asked = fake.asked();
    let (logins, sessions) = (&asked.logins, asked.standings.len());
    assert!((3..=4).contains(&sessions), "{logins:?}");
    // The first began when the client did; whatever came after it, at even epochs.
    assert!(logins[1..].iter().all(|(_, epoch)| epoch.0 % 2 == 0), "{logins:?}");
    assert_eq!(asked.connects.len(), sessions, "each was connected once");
}
