//! On every connection between processes the caller demands the role at the other end:
//! a certificate of the same authority for the same host with another role is refused, by a client
//! and by the probe with which `alpheus doctor` asks.
//! `crates/node/README.md` has the table of these pairs for people.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_node::failure::Failure;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::{AUTHORITY, CERTIFICATE, IdentityFolder};
use alpheus_node::network::probe::ProbeError;
use alpheus_node::network::revocation_list::{tls_digest, tls_key_digest};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::network::role::Role;
use alpheus_node::pki;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::tls;
use alpheus_node::settings::TlsFiles;
use alpheus_pass_service::links as pass;
use alpheus_streams::links as streams;
use axum::Router;
use axum::http::Method;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Roles whose certificates are good for a listener.
const LISTENERS: [Role; 9] = [
    Role::Server,
    Role::Controller,
    Role::Issuer,
    Role::Verifier,
    Role::Gateway,
    Role::Board,
    Role::Registrar,
    Role::Smoother,
    Role::Aggregator,
];

/// What a caller has: its identity and the authority of a card.
struct Caller<'a> {
    pki: &'a Path,
    role: Role,
    /// What its authority has revoked.
    revoked: Option<RevokedCertificates>,
}

impl Caller<'_> {
    fn identity(&self) -> IdentityFolder {
        let folder = IdentityFolder::open(&self.pki.join(self.role.as_str()), self.role).unwrap();
        match &self.revoked {
            Some(revoked) => folder.without(revoked.clone()),
            None => folder,
        }
    }

    fn authority(&self) -> String {
        std::fs::read_to_string(self.pki.join(AUTHORITY)).unwrap()
    }
}

type Connect = fn(&Caller, Base) -> Result<HttpClient, Failure>;

fn service(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    Ok(streams::service(&base.origin(), &caller.identity())?.http().clone())
}

fn controller(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    Ok(streams::controller(&base.origin(), None, &caller.identity())?.http().clone())
}

fn table(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    let client = alpheus_table_service::links::server(&base.origin(), &caller.identity())?;
    Ok(client.http().clone())
}

fn board(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    alpheus_board_service::links::server(base, Some(&caller.authority()))
}

/// Who calls, the role that it expects, and how it connects. A person has any role here.
const PAIRS: [(&str, Role, Role, Connect); 19] = [
    ("producer to service", Role::Producer, Role::Server, service),
    ("controller to service", Role::Controller, Role::Server, service),
    ("consumer to service", Role::Consumer, Role::Server, service),
    ("owner to controller", Role::Owner, Role::Controller, controller),
    ("consumer to controller", Role::Consumer, Role::Controller, controller),
    ("owner to table server", Role::Owner, Role::Server, table),
    ("subscriber to issuer", Role::Consumer, Role::Issuer, |caller, base| {
        pass::issuer(base, Some(&caller.authority()))
    }),
    ("subscriber to gateway", Role::Consumer, Role::Gateway, |caller, base| {
        pass::gateway(base, Some(&caller.authority()))
    }),
    ("gateway to verifier", Role::Gateway, Role::Verifier, verifier),
    ("verifier to verifier", Role::Verifier, Role::Verifier, verifier),
    ("writer to board", Role::Consumer, Role::Board, board),
    ("writer to door", Role::Consumer, Role::Board, board),
    ("board to board", Role::Board, Role::Board, board),
    ("client to registrar", Role::Consumer, Role::Registrar, |caller, base| {
        alpheus_stats_service::links::registrar(base, Some(&caller.authority()))
    }),
    ("client to aggregator", Role::Consumer, Role::Aggregator, |caller, base| {
        alpheus_stats_service::links::aggregator(base, Some(&caller.authority()))
    }),
    ("client to smoother", Role::Consumer, Role::Smoother, |caller, base| {
        alpheus_stats_service::links::smoother(base, Some(&caller.authority()))
    }),
    ("aggregator to smoother, as a client", Role::Aggregator, Role::Smoother, |caller, base| {
        alpheus_stats_service::links::smoother(base, Some(&caller.authority()))
    }),
    ("smoother to smoother", Role::Smoother, Role::Smoother, peer),
    ("aggregator to smoother", Role::Aggregator, Role::Smoother, peer),
];

fn verifier(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    pass::verifier(base, &caller.identity())
}

fn peer(caller: &Caller, base: Base) -> Result<HttpClient, Failure> {
    alpheus_stats_service::links::smoother_peer(base, &caller.identity())
}

/// A server with the certificate of a role, and its address.
async fn listen(pki: &Path, role: Role, trigger: &Trigger) -> Base {
    let identity = IdentityFolder::open(&pki.join(role.as_str()), role).unwrap();
    let files = TlsFiles { client_ca: None, ..identity.tls() };
    let config = tls::server(&files, SystemTime::now()).unwrap();
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Some(config)).await.unwrap();
    let base = format!("https://localhost:{}", server.address().unwrap().port());
    let router = Router::new().fallback(|| async { "taken" });
    tokio::spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
    Base::parse(&base).unwrap()
}

/// A folder with an authority, which has certified somebody of each role, and what runs the connections.
fn authority(roles: &[Role]) -> (TempDir, Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let named: Vec<_> = roles.iter().map(|role| (*role, role.as_str())).collect();
    pki::make(&folder.path().join("pki"), &named).unwrap();
    (folder, tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap())
}

#[test]
fn every_caller_refuses_another_role_at_the_other_end() {
    let (folder, runtime) = authority(&Role::ALL);
    let pki = folder.path().join("pki");
    runtime.block_on(async {
        let trigger = Trigger::new();
        for listens in LISTENERS {
            let base = listen(&pki, listens, &trigger).await;
            for (pair, caller, expected, connect) in PAIRS {
                let caller = Caller { pki: &pki, role: caller, revoked: None };
                let client = connect(&caller, base.clone()).unwrap();
                let asked = client.exchange(Method::GET, "/", &[], Vec::new(), Limits::SHORT).await;
                let probed = tokio::task::spawn_blocking(move || client.probe().get("/"));
                let probed = probed.await.unwrap();
                if listens == expected {
                    assert_eq!(asked.unwrap(), b"taken", "{pair}");
                    assert_eq!(probed.unwrap().body, b"taken", "{pair}");
                    continue;
                }
                let Err(ProbeError::OtherPeer(is)) = probed else {
                    unreachable!("{pair}: a {listens} has answered a probe: {probed:?}")
                };
                assert_eq!(is.role, listens, "{pair}");
                let RequestError::Unreachable { reason, .. } = asked.unwrap_err() else {
                    unreachable!("{pair}: a {listens} has answered")
                };
                let names_both = [format!("alpheus://{listens}/"), format!("`{expected}`")];
                assert!(names_both.iter().all(|name| reason.contains(name)), "{pair}: {reason}");
            }
        }
    });
}

/// Who shows no certificate has no identity folder, and so no list of what is revoked.
const WITHOUT_IDENTITY: [&str; 9] = [
    "subscriber to issuer",
    "subscriber to gateway",
    "writer to board",
    "writer to door",
    "board to board",
    "client to registrar",
    "client to aggregator",
    "client to smoother",
    "aggregator to smoother, as a client",
];

#[test]
fn every_caller_with_an_identity_refuses_a_revoked_certificate_at_the_other_end() {
    let (folder, runtime) = authority(&Role::ALL);
    let pki = folder.path().join("pki");
    runtime.block_on(async {
        let trigger = Trigger::new();
        for (pair, caller, listens, connect) in PAIRS {
            let base = listen(&pki, listens, &trigger).await;
            let path = pki.join(listens.as_str()).join(CERTIFICATE);
            let certificate = CertificateDer::from_pem_file(path).unwrap();
            let revoked = RevokedCertificates::new(tls_digest, tls_key_digest);
            revoked.replace([tls_digest(&certificate)].into());
            let caller = Caller { pki: &pki, role: caller, revoked: Some(revoked) };
            let client = connect(&caller, base).unwrap();
            let asked = client.exchange(Method::GET, "/", &[], Vec::new(), Limits::SHORT).await;
            if WITHOUT_IDENTITY.contains(&pair) {
                assert_eq!(asked.unwrap(), b"taken", "{pair}");
                continue;
            }
            let refused = format!("{:?}", asked.unwrap_err());
            let why = "the authority has revoked the certificate at the other end";
            assert!(refused.contains(why), "{pair}: {refused}");
        }
    });
}

/// The service behind a gateway is not one of ours, so any certificate for its host is accepted.
#[test]
fn a_gateway_demands_no_role_of_the_service_behind_it() {
    let (folder, runtime) = authority(&[Role::Controller]);
    let pki = folder.path().join("pki");
    runtime.block_on(async {
        let trigger = Trigger::new();
        let base = listen(&pki, Role::Controller, &trigger).await;
        let caller = Caller { pki: &pki, role: Role::Gateway, revoked: None };
        let client = pass::upstream(base, Some(&caller.authority())).unwrap();
        let asked = client.exchange(Method::GET, "/", &[], Vec::new(), Limits::SHORT).await;
        assert_eq!(asked.unwrap(), b"taken");
    });
}
