//! Serves routes of a test from its own process, over TLS, as a server that lies would.

use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::tls;
use alpheus_node::settings::TlsFiles;
use axum::Router;
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
