//! Serves routes of a test from its own process, over TLS, as a server that lies would.

use super::deployment::RunningSite;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::tls;
use alpheus_node::settings::TlsFiles;
use alpheus_streams::links;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Json, Router};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Serves until the trigger is dropped; at which address.
pub(crate) fn serve(files: &TlsFiles, routes: Router) -> (Trigger, String) {
    let tls = tls::server(files, SystemTime::now()).unwrap();
    let trigger = Trigger::new();
    let (shutdown, (address, hear)) = (trigger.shutdown(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let server = Server::bind("127.0.0.1:0".parse().unwrap(), Some(tls)).await.unwrap();
            address.send(server.address().unwrap()).unwrap();
            server.serve(routes, shutdown, Duration::from_secs(1)).await;
        });
    });
    (trigger, format!("https://localhost:{}", hear.recv().unwrap().port()))
}

/// What is changed in the answer to a request.
type Change = Arc<dyn Fn(&Uri, &mut Value) + Send + Sync>;

/// A service with the real one's certificate, which passes consumers' requests on to it and changes its answers. It
/// serves as long as the trigger is kept.
pub(crate) fn between(
    running: &RunningSite,
    change: impl Fn(&Uri, &mut Value) + Send + Sync + 'static,
) -> (Trigger, String) {
    let folder = |name: &str| running.place.path(&format!("pki/{name}"));
    let analyst = IdentityFolder::open(&folder("analyst"), Role::Consumer).unwrap();
    let server = links::service(&running.server, &analyst).unwrap().http().clone();
    let tls = IdentityFolder::open(&folder("service"), Role::Server).unwrap().tls();
    let change: Change = Arc::new(change);
    serve(&tls, Router::new().fallback(pass).with_state((server, change)))
}

async fn pass(
    State((server, change)): State<(HttpClient, Change)>,
    uri: Uri,
    body: Bytes,
) -> Result<Json<Value>, StatusCode> {
    let path = uri.path_and_query().map_or("/", |all| all.as_str());
    let answer = match serde_json::from_slice::<Value>(&body) {
        Ok(statement) => server.post_json::<Value>(path, &statement).await,
        Err(_) => server.get_json::<Value>(path, Duration::from_secs(5)).await,
    };
    let mut answer = answer.map_err(|_| StatusCode::NOT_FOUND)?;
    change(&uri, &mut answer);
    Ok(Json(answer))
}
