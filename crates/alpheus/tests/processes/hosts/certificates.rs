//! A certificate of the deployment's authority is not enough: it has to be the
//! right party's.

use crate::common::alpheus;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::tls;
use alpheus_stream_runtime::keys::ServiceKeys;
use alpheus_streams::ca::certify;
use axum::routing::get;
use axum::{Json, Router};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A PKI with one of each.
fn pki() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let ran = alpheus(args.iter().copied()).current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run(&["ca", "init", "pki"]);
    for (role, name) in
        [("server", "service"), ("controller", "host"), ("producer", "watch"), ("owner", "alice")]
    {
        run(&["ca", "issue", "pki", "--role", role, "--name", name]);
    }
    folder
}

fn identity(pki: &Path, name: &str, role: Role) -> IdentityFolder {
    IdentityFolder::open(&pki.join("pki").join(name), role).unwrap()
}

/// What a watch hears that means to reach somebody, where another listens.
fn reached(
    pki: &Path,
    listens: (&str, Role),
    expected: ExpectedPeer,
) -> Result<String, RequestError> {
    let files = identity(pki, listens.0, listens.1).tls();
    let config = tls::server(&files, SystemTime::now()).unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = runtime.block_on(Server::bind(any, Some(config))).unwrap();
    let base = format!("https://localhost:{}", server.address().unwrap().port());
    let trigger = Trigger::new();
    let router = Router::new().route("/", get(|| async { Json("taken") }));
    runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
    let watch = identity(pki, "watch", Role::Producer);
    BlockingClient::new(&base, expected, &watch).unwrap().get_json("/", Duration::ZERO)
}

fn expected(role: Role, name: Option<&str>) -> ExpectedPeer {
    ExpectedPeer::Process { role, name: name.map(str::to_owned) }
}

#[test]
fn nobody_poses_as_somebody_else() {
    let (folder, server) = (pki(), ("service", Role::Server));
    let (pki, host) = (folder.path(), ("host", Role::Controller));
    assert_eq!(reached(pki, server, expected(Role::Server, None)).unwrap(), "taken");
    assert_eq!(reached(pki, host, expected(Role::Controller, None)).unwrap(), "taken");
    assert_eq!(reached(pki, host, expected(Role::Controller, Some("host"))).unwrap(), "taken");
    // The authority has signed all of these, for localhost.
    for (listens, expected, says) in [
        (host, expected(Role::Server, None), "alpheus://controller/host"),
        (server, expected(Role::Controller, None), "alpheus://server/service"),
        (host, expected(Role::Controller, Some("other")), "alpheus://controller/other"),
    ] {
        let refused = reached(pki, listens, expected).unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
    }
    // Who only calls has no certificate to listen with, whatever the client means.
    let posing = reached(pki, ("watch", Role::Producer), expected(Role::Producer, None));
    assert!(matches!(posing, Err(RequestError::Unreachable { .. })), "{posing:?}");
}

#[test]
fn the_authority_signs_for_the_name_and_role_that_it_was_given() {
    let folder = pki();
    let pki = folder.path().join("pki");
    let seed = Secret::from_bytes([5; 32]);
    let secrets = IdentitySecrets::from_seed(&seed);
    certify(&pki, &secrets.request("host"), "host").unwrap();
    certify(&pki, &secrets.request("host/second"), "host/second").unwrap();
    for (request, name) in [
        (secrets.request("other"), "host"),
        (secrets.request("host\u{1b}[2J"), "host"),
        (secrets.request("host/../other"), "host/../other"),
        (ServiceKeys::from_seed(&seed).request(), "service"),
    ] {
        let refused = certify(&pki, &request, name);
        let refused = refused.map(|_| ()).unwrap_err().to_string();
        assert!(!refused.contains('\u{1b}'), "{refused:?}");
    }
}
