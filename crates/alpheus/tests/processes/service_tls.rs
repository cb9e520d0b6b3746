//! TLS: who is let in, who is not, and what is said of files that will not do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common;
use crate::common::tls::Connection;
use alpheus_node::key_exchange;
use alpheus_node::service::health::Health;
use alpheus_node::service::http::{Peer, Server, observability};
use alpheus_node::service::metrics::Metrics;
use alpheus_node::service::reload::Live;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::tls::{self, TlsError};
use alpheus_node::settings::TlsFiles;
use alpheus_test_support::skip;
use axum::routing::get;
use axum::{Extension, Router};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, StreamOwned};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An authority, and the certificates it gives.
struct Authority(CertifiedIssuer<'static, KeyPair>);

struct Leaf {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn leaf(&self, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Leaf { certificate: params.signed_by(&key, &self.0).unwrap(), key }
    }
}

/// A directory with a server's files.
struct Site {
    dir: tempfile::TempDir,
    authority: Authority,
    files: TlsFiles,
}

impl Site {
    fn new() -> Self {
        let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let place = Self { dir, authority, files: TlsFiles::default() };
        let leaf = place.authority.leaf(|_| ());
        let certificate = Some(place.write("server.pem", &leaf.certificate.pem()));
        let key = Some(place.write("server.key", &leaf.key.serialize_pem()));
        Self { files: TlsFiles { certificate, key, client_ca: None }, ..place }
    }

    fn requiring_clients(authority: &Authority) -> Self {
        let mut place = Self::new();
        place.files.client_ca = Some(place.write("clients.pem", &authority.0.pem()));
        place
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn load(&self) -> Result<Arc<Live<rustls::ServerConfig>>, TlsError> {
        tls::server(&self.files, SystemTime::now())
    }

    fn serve(&self) -> RunningServer {
        let config = self.load().unwrap();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let server = runtime.block_on(Server::bind(any, Some(config))).unwrap();
        let address = server.address().unwrap();
        let trigger = Trigger::new();
        let whoami = |Extension(peer): Extension<Peer>| async move {
            peer.certificate.map_or("nobody".to_owned(), |der| format!("{} bytes", der.len()))
        };
        let router = Router::new().route("/whoami", get(whoami));
        let router = router.merge(observability(Health::new(), Metrics::new(), Arc::new(|_| true)));
        runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        RunningServer { address, _trigger: trigger, _runtime: runtime }
    }
}

struct RunningServer {
    address: SocketAddr,
    _trigger: Trigger,
    _runtime: tokio::runtime::Runtime,
}

impl RunningServer {
    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
        stream
    }

    /// GET as a client that trusts `authority` and shows `leaf`; nothing if refused.
    fn get(&self, path: &str, authority: &Authority, leaf: Option<&Leaf>) -> Option<(u16, String)> {
        common::get_over(self.connect(authority, leaf), path)
    }

    fn connect(&self, authority: &Authority, leaf: Option<&Leaf>) -> Connection {
        self.connect_by(ring::default_provider(), authority, leaf)
    }

    fn connect_by(
        &self,
        provider: CryptoProvider,
        authority: &Authority,
        leaf: Option<&Leaf>,
    ) -> Connection {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let config = match leaf {
            None => builder.with_no_client_auth(),
            Some(leaf) => {
                let chain = vec![CertificateDer::from(leaf.certificate.der().to_vec())];
                let key = PrivateKeyDer::try_from(leaf.key.serialize_der()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(connection, self.tcp())
    }
}

#[test]
fn a_client_that_trusts_the_authority_is_served_and_one_that_does_not_leaves() {
    let place = Site::new();
    let running = place.serve();
    assert_eq!(running.get("/healthz", &place.authority, None).unwrap().0, 200);
    assert_eq!(running.get("/whoami", &place.authority, None).unwrap().1, "nobody");
    assert_eq!(running.get("/healthz", &Authority::new(), None), None);
    assert_eq!(common::get_over(running.tcp(), "/healthz"), None, "without TLS");
}

#[test]
fn keys_are_hybrid_with_clients_that_know_it_and_classical_with_others() {
    let place = Site::new();
    let running = place.serve();
    for (provider, group) in [
        (key_exchange::provider(), NamedGroup::X25519MLKEM768),
        (ring::default_provider(), NamedGroup::X25519),
    ] {
        let mut connection = running.connect_by(provider, &place.authority, None);
        connection.conn.complete_io(&mut connection.sock).unwrap();
        assert_eq!(connection.conn.negotiated_key_exchange_group().unwrap().name(), group);
    }
}

/// A client whose TLS nobody here wrote, by its own log of the connection.
#[test]
fn chromium_agrees_on_hybrid_keys_with_our_servers() {
    const X25519MLKEM768: u64 = 0x11ec;
    if !skip::has_program("chromium") {
        return;
    }
    let place = Site::new();
    let running = place.serve();
    let log = place.dir.path().join("log.json");
    let mut chromium = Command::new("timeout");
    chromium.args(["300", "chromium", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"]);
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    chromium.args(["--ignore-certificate-errors", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", place.dir.path().join("profile").display()));
    chromium.arg(format!("--log-net-log={}", log.display()));
    chromium.arg(format!("https://localhost:{}/whoami", running.address.port()));
    let page = chromium.output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains("nobody"), "{page:?}");
    let log: Value = serde_json::from_slice(&fs::read(&log).unwrap()).unwrap();
    let events = log["events"].as_array().unwrap().iter();
    let groups: Vec<_> =
        events.filter_map(|event| event["params"]["key_exchange_group"].as_u64()).collect();
    assert!(!groups.is_empty());
    assert!(groups.iter().all(|group| *group == X25519MLKEM768), "{groups:?}");
}

#[test]
fn clients_without_a_certificate_from_the_right_authority_are_refused() {
    let clients = Authority::new();
    let place = Site::requiring_clients(&clients);
    let running = place.serve();
    let ours = clients.leaf(|_| ());
    let (status, body) = running.get("/whoami", &place.authority, Some(&ours)).unwrap();
    assert_eq!((status, body), (200, format!("{} bytes", ours.certificate.der().len())));
    assert_eq!(running.get("/whoami", &place.authority, None), None, "no certificate");
    let foreign = Authority::new().leaf(|_| ());
    assert_eq!(running.get("/whoami", &place.authority, Some(&foreign)), None, "wrong authority");
    let old = clients.leaf(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    assert_eq!(running.get("/whoami", &place.authority, Some(&old)), None, "expired");
}

#[test]
fn one_certificate_does_not_take_all_connections() {
    common::in_some_attempt("connections that are all held", others_have_room);
}

/// An idle connection is closed after ten seconds.
fn others_have_room() -> Option<()> {
    let begun = std::time::Instant::now();
    let clients = Authority::new();
    let place = Site::requiring_clients(&clients);
    let running = place.serve();
    let (greedy, other) = (clients.leaf(|_| ()), clients.leaf(|_| ()));
    let held: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = running.connect(&place.authority, Some(&greedy));
            stream.write_all(b"GET /whoami HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream.read_exact(&mut [0; 12]).unwrap();
            stream
        })
        .collect();
    let refused = running.get("/whoami", &place.authority, Some(&greedy)).is_none();
    if begun.elapsed() > Duration::from_secs(9) {
        return None;
    }
    assert!(refused);
    assert_eq!(running.get("/whoami", &place.authority, Some(&other)).unwrap().0, 200);
    drop(held);
    let end = std::time::Instant::now() + common::PATIENCE;
    while running.get("/whoami", &place.authority, Some(&greedy)).is_none() {
        assert!(std::time::Instant::now() < end, "there is no room again");
    }
    Some(())
}

#[test]
fn a_connection_lasts_no_longer_than_its_certificate() {
    common::in_some_attempt("an end before an idle connection's", ended_with_its_certificate);
}

/// An idle connection would be left alone for ten seconds.
fn ended_with_its_certificate() -> Option<()> {
    let clients = Authority::new();
    let place = Site::requiring_clients(&clients);
    let running = place.serve();
    let end = time::OffsetDateTime::from(SystemTime::now()) + time::Duration::seconds(5);
    let brief = clients.leaf(|params| params.not_after = end);
    let mut stream = running.connect(&place.authority, Some(&brief));
    stream.write_all(b"GET /whoami HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    stream.read_exact(&mut [0; 12]).ok()?;
    let begun = std::time::Instant::now();
    let _ = stream.read_to_end(&mut Vec::new());
    (begun.elapsed() < Duration::from_secs(9)).then_some(())
}

/// A ClientHello as of TLS 1.2: no `supported_versions`, the suites and curves
/// that a modern server would take.
fn hello_of_tls12() -> Vec<u8> {
    let extensions: &[u8] = &[
        0, 10, 0, 4, 0, 2, 0, 29, // x25519
        0, 11, 0, 2, 1, 0, // uncompressed points
        0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 8, 7, // ECDSA, RSA-PSS, Ed25519
    ];
    let mut body = vec![3, 3];
    body.extend_from_slice(&[7; 32]); // random
    body.push(0); // no session
    body.extend_from_slice(&[0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0]); // ECDHE with AES-128-GCM
    body.extend_from_slice(&u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend_from_slice(extensions);
    let length = u16::try_from(body.len()).unwrap();
    let mut record = vec![22, 3, 1];
    record.extend_from_slice(&(length + 4).to_be_bytes());
    record.extend_from_slice(&[1, 0]);
    record.extend_from_slice(&length.to_be_bytes());
    record.extend_from_slice(&body);
    record
}

#[test]
fn a_client_of_tls_1_2_is_refused_for_its_version() {
    let running = Site::new().serve();
    let mut stream = running.tcp();
    stream.write_all(&hello_of_tls12()).unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    // A fatal alert, protocol_version.
    assert_eq!((answer[0], &answer[5..]), (21, &[2, 70][..]));
}

#[test]
fn a_client_that_never_shakes_hands_holds_up_nobody() {
    let place = Site::new();
    let running = place.serve();
    let _silent: Vec<_> = (0..20).map(|_| running.tcp()).collect();
    assert_eq!(running.get("/healthz", &place.authority, None).unwrap().0, 200);
}

fn error(place: &Site) -> TlsError {
    match place.load() {
        Ok(_) => panic!("taken"),
        Err(error) => error,
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let at = |place: &Site, name: &str| place.dir.path().join(name);
    let named = |error: &TlsError, path: &Path| {
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    };

    let mut place = Site::new();
    place.files.key = None;
    assert!(matches!(error(&place), TlsError::Missing { setting: "key" }));

    let mut place = Site::new();
    place.files.certificate = Some(at(&place, "absent.pem"));
    let absent = error(&place);
    assert!(matches!(absent, TlsError::Read { .. }));
    named(&absent, &at(&place, "absent.pem"));

    let place = Site::new();
    place.write("server.key", "nothing here");
    let empty = error(&place);
    assert!(matches!(empty, TlsError::Empty { wanted: "private key", .. }), "{empty}");
    named(&empty, &at(&place, "server.key"));

    let place = Site::new();
    place.write("server.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let malformed = error(&place);
    assert!(matches!(malformed, TlsError::Malformed { wanted: "certificate", .. }), "{malformed}");

    let place = Site::new();
    place.write("server.key", &KeyPair::generate().unwrap().serialize_pem());
    let mismatch = error(&place);
    assert!(matches!(mismatch, TlsError::KeyMismatch { .. }), "{mismatch}");
    named(&mismatch, &at(&place, "server.key"));
    named(&mismatch, &at(&place, "server.pem"));

    let place = Site::requiring_clients(&Authority::new());
    place.write("clients.pem", "");
    let empty = error(&place);
    assert!(matches!(empty, TlsError::Empty { wanted: "certificate", .. }));
    named(&empty, &at(&place, "clients.pem"));
}

#[test]
fn a_certificate_out_of_its_time_is_refused_before_any_client_comes() {
    let place = Site::new();
    let old = place.authority.leaf(|p| p.not_after = rcgen::date_time_ymd(2020, 1, 2));
    place.write("server.pem", &old.certificate.pem());
    let expired = error(&place);
    assert!(matches!(expired, TlsError::Expired { .. }));
    assert!(
        expired.to_string().contains("server.pem: the certificate expired at 2020-01-02"),
        "{expired}"
    );

    let early = place.authority.leaf(|p| p.not_before = rcgen::date_time_ymd(3020, 1, 2));
    place.write("server.pem", &early.certificate.pem());
    assert!(matches!(error(&place), TlsError::NotYetValid { .. }));
}
