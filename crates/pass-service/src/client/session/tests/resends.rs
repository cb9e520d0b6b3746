//! A request that a gateway refuses is sent again in the same session, and in no other: its address
//! and headers would link the two.

use super::*;
use crate::client::browser::Door;
use crate::client::proxy::{Local, router};
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use axum::http::HeaderName;

/// A driver of the pass that never changes sessions, its session, and how to order it.
async fn driven(
    file: PassFile,
) -> (tokio::task::JoinHandle<Result<(), SessionError>>, CurrentSession, mpsc::Sender<Order>) {
    let options = SessionOptions { gateway: None, rotation: 1 << 30, fetches: false };
    let rng = alpheus_node::entropy::rng().unwrap();
    let (driver, mut current) = Driver::new(file, &options, rng).unwrap();
    let (orders, ordered) = mpsc::channel(16);
    let driven = tokio::spawn(driver.run(ordered));
    current.wait_for(Option::is_some).await.unwrap();
    (driven, current, orders)
}

/// Asks a local proxy over these sessions for a song.
async fn ask(current: CurrentSession, orders: mpsc::Sender<Order>) -> Result<(), RequestError> {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), None).await.unwrap();
    let address = server.address().unwrap();
    let local = Local { door: Arc::new(Door::new("s3cret".into(), address)), current, orders };
    let trigger = Trigger::new();
    tokio::spawn(server.serve(router(local), trigger.shutdown(), Duration::ZERO));
    let base = Base::parse(&format!("http://{address}")).unwrap();
    let link = HttpClient::anonymous(base, ExpectedPeer::External, None).unwrap();
    let secret = [(HeaderName::from_static("alpheus-local"), "s3cret")];
    let limits = alpheus_node::network::client::Limits::SHORT;
    link.exchange(Method::GET, "/songs/7", &secret, Vec::new(), limits).await.map(drop)
}

/// A gateway that wants to link two sessions refuses a request with an address of its own until
/// the session is over.
#[tokio::test]
async fn a_request_is_never_sent_again_in_another_session() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let rejects = Behaviour { rejects: 1, ..Behaviour::default() };
    let (before, file) = world(&folders[0], 60, rejects).await;
    let (after, next) = world(&folders[1], 60, Behaviour::default()).await;
    let ((old, first, _), (new, second, _)) = (driven(file).await, driven(next).await);
    let current = watch::Sender::new(first.borrow().clone());
    let (orders, mut ordered) = mpsc::channel(1);
    // The next session begins while the request waits for a new connection.
    let rotates = async {
        assert!(matches!(ordered.recv().await, Some(Order::Reconnect(_))));
        current.send_replace(second.borrow().clone());
    };
    let (answer, ()) = tokio::join!(ask(current.subscribe(), orders.clone()), rotates);
    assert_eq!((before.state().requests, after.state().requests), (1, 0), "{answer:?}");
    assert_eq!(answer.unwrap_err().rule(), Some("session-over"));
    // The user sends it again.
    assert!(ask(current.subscribe(), orders).await.is_ok());
    assert_eq!((before.state().requests, after.state().requests), (1, 1));
    [old, new].iter().for_each(tokio::task::JoinHandle::abort);
}

/// The gateway was restarted twice.
#[tokio::test]
async fn a_request_is_sent_again_on_a_new_connection_of_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let behaviour = Behaviour { rejects: 2, ..Behaviour::default() };
    let (fake, file) = world(&folder, 60, behaviour).await;
    let (driven, current, orders) = driven(file).await;
    let answer = ask(current, orders).await;
    assert!(answer.is_ok(), "{answer:?}");
    let state = fake.state();
    assert_eq!((state.requests, state.connects.len(), state.logins.len()), (3, 3, 1));
    driven.abort();
}
