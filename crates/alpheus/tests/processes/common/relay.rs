//! Stands between a controller's host and the service, with the keys of both ends of the connection, and may
//! change what either says.

use super::route_server::serve;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_streams::links;
use alpheus_streams::wire::{Introduction, Mail, Notice, NoticeReply, Post, Welcome};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::routing::post;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Who stands there.
pub(crate) trait Relay: Send + Sync + 'static {
    /// Changes what controllers say to the service.
    fn says(&self, _mail: &mut Mail) {}

    /// Changes what the service says to controllers.
    fn hears(&self, _post: &mut Post) {}
}

/// Both ends: the service, and who is in its place for the host.
type Ends<R> = State<(HttpClient, Arc<R>)>;

/// Stands before the service at a URL, with the identity folders of the service and of a host. It serves as long as
/// the trigger is kept; at which address.
pub(crate) fn relay<R: Relay>(
    (service, host): (&Path, &Path),
    url: &str,
    relay: Arc<R>,
) -> (Trigger, String) {
    let identity = IdentityFolder::open(host, Role::Controller).unwrap();
    let server = links::service(url, &identity).unwrap().http().clone();
    let tls = IdentityFolder::open(service, Role::Server).unwrap().tls();
    let routes = Router::new()
        .route("/v1/controllers", post(pass::<R, Introduction, Welcome>))
        .route("/v1/streams", post(pass::<R, Vec<Notice>, Vec<NoticeReply>>))
        .route("/v1/mail", post(mail::<R>))
        .with_state((server, relay));
    let (trigger, address) = serve(&tls, routes);
    (trigger, address.trim_start_matches("https://").to_owned())
}

/// Passes a request on.
async fn pass<R: Relay, Q, A>(
    State((server, _)): Ends<R>,
    uri: Uri,
    body: Bytes,
) -> Result<Vec<u8>, StatusCode>
where
    Q: DeserializeOwned + Serialize + Send + Sync + 'static,
    A: DeserializeOwned + Serialize + Send + 'static,
{
    let asked: Q = postcard::from_bytes(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    answered(server.call::<A>(uri.path(), &asked, Duration::ZERO).await.ok())
}

/// Passes messages on, both ways.
async fn mail<R: Relay>(
    State((server, relay)): Ends<R>,
    body: Bytes,
) -> Result<Vec<u8>, StatusCode> {
    let mut mail: Mail = postcard::from_bytes(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    relay.says(&mut mail);
    let wait = Duration::from_millis(u64::from(mail.wait));
    let mut answer = server.call::<Post>("/v1/mail", &mail, wait).await.ok();
    if let Some(post) = &mut answer {
        relay.hears(post);
    }
    answered(answer)
}

fn answered<A: Serialize>(answer: Option<A>) -> Result<Vec<u8>, StatusCode> {
    let answer = answer.ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    postcard::to_allocvec(&answer).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}
