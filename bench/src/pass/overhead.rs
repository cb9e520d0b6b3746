//! The cost of the gateway's check for a request: the same proxy with and without
//! it, in this process, alternating, with one connection each.

use crate::measure::{Comparison, processor_time};
use crate::pass::holders::holder;
use crate::pass::town::Town;
use crate::report::{Figure, Goal};
use alpheus_access_pass::client::{AcknowledgedSession, connect};
use alpheus_access_pass::gateway::{Gateway, Limits};
use alpheus_access_pass::messages::Acknowledgement;
use alpheus_access_pass::request::{HEADER, Stamper, Target};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, SessionId};
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_crypto::hash::Digest;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_pass_service::forward::forward;
use alpheus_pass_service::gateway::sessions::Sessions;
use alpheus_pass_service::gateway::{Api, router};
use alpheus_pass_service::links;
use alpheus_pass_service::verifier::shards::{FOR_CLIENTS, Shards};
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::routing::get;
use prometheus_client::metrics::family::Family;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of an answer, as in the paper's figure 4.
const BODIES: [(&str, usize); 6] = [
    ("1 byte", 1),
    ("256 bytes", 256),
    ("4 KB", 4 << 10),
    ("64 KB", 64 << 10),
    ("1 MB", 1 << 20),
    ("16 MB", 16 << 20),
];
/// Bytes of a turn, within the limit on requests.
const TURN: (usize, usize) = (32 << 20, 200);
/// Connections of one session, one after the other.
const CONNECTIONS: usize = 101;
/// Turns.
const TURNS: usize = 25;

/// Microseconds for a request of each size, with and without.
///
/// # Errors
/// If a process does not start, or a request is rejected.
pub(super) fn figures() -> Result<Vec<Figure>, Failure> {
    // An epoch that lasts as long as the benchmark.
    let town = Town::new(3600, 0)?;
    let trigger = Trigger::new();
    let serve = |router: Router| -> Result<SocketAddr, Failure> {
        let bound = Server::bind(([127, 0, 0, 1], 0).into(), None);
        let server = town.runtime.block_on(bound).blame(Category::Io)?;
        let address = server.address().blame(Category::Io)?;
        town.runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        Ok(address)
    };
    let mut service = Router::new();
    for (_, length) in BODIES {
        let body = Bytes::from(vec![b'x'; length]);
        service = service.route(&format!("/song/{length}"), get(move || async move { body }));
    }
    let upstream = serve(service)?;
    let link = || -> Result<HttpClient, Failure> {
        links::upstream(Base::parse(&format!("http://{upstream}")).blame(Category::Io)?, None)
    };
    let plain = link()?;
    let plain = Router::new().fallback(move |request: Request| {
        let plain = plain.clone();
        async move { forward(&plain, request, None, ()).await.map_err(|e| e.to_string()) }
    });
    let plain = serve(plain)?;
    let (sessions, mut stamper, connection) = session(&town)?;
    let shards =
        Shards::new(&format!("https://{}", town.verifier_at), &town.identity()?, FOR_CLIENTS)?;
    let (pinned, upstream) = (town.pinned.clone(), Some(link()?));
    let hosts = ["issuer", "gateway"].map(str::to_owned);
    let outcomes = Family::default();
    let api = Api { pinned, sessions, shards, upstream, fronted: false, hosts, outcomes };
    let checked = serve(router(Arc::new(api)))?;
    let name = "hello and connect, at the gateway".to_owned();
    let mut figures = vec![Figure::alone("pass, the checks alone", name, "ms", connection)];
    for (named, length) in BODIES {
        let compared = in_turns(plain, checked, &mut stamper, length)?;
        let name = format!("a request of {named}, beside the same proxy without the check");
        let figure = Figure::compared("pass, gateway", name, "µs", compared);
        let goal = (length == 4 << 10).then_some(Goal::RatioAtMost(1.05));
        figures.push(match goal {
            Some(goal) => figure.with_goal(goal),
            None => figure,
        });
    }
    Ok(figures)
}

/// A session that is connected to a gateway, without a verifier; and milliseconds of
/// the gateway for a connection: the challenge and its answer.
fn session(town: &Town) -> Result<(Arc<Sessions>, Stamper, f64), Failure> {
    let (mut rng, now) = (entropy::rng()?, clock::now());
    let mut holder = holder(&town.key()?, &town.pinned, 0, now)?;
    let compared = town.pinned.compare(&town.pinned.fingerprint()).blame(Category::Io)?;
    let nothing = Digest([0; 32]);
    let login = holder.log_in(Timing::Running, &compared, &nothing, now, &mut rng);
    let login = login.blame(Category::Io)?.commit(&mut BTreeMap::new()).blame(Category::Io)?;
    let session: SessionId = login.session;
    let shown = Login::from_bytes(&login.bytes, Limit::ONE).blame(Category::Io)?;
    let epoch = shown.epoch;
    let gateway = Gateway::new(town.pinned.clone(), Limits::default(), &mut rng);
    let sessions = Sessions::new(gateway, entropy::rng()?);
    sessions.note(SessionStatus { session, holder: shown.holder, first: epoch, epoch });
    let served = AcknowledgedSession::check(&holder, &login, &Acknowledgement { session, epoch });
    let served = served.blame(Category::Io)?;
    let (mut taken, mut stamper) = (Vec::with_capacity(CONNECTIONS), None);
    for _ in 0..CONNECTIONS {
        let start = processor_time();
        let hello = sessions.hello();
        let challenged = processor_time() - start;
        let (message, connecting) =
            connect(&holder, &served, &hello, &mut rng).blame(Category::Io)?;
        let start = processor_time();
        let connected = sessions.connect(&message).blame(Category::Io)?;
        taken.push((challenged + processor_time() - start).as_secs_f64() * 1e3);
        stamper = Some(connecting.finish(&connected).blame(Category::Io)?);
    }
    taken.sort_by(f64::total_cmp);
    let stamper = stamper.ok_or("no connection").blame(Category::Io)?;
    Ok((sessions, stamper, taken[CONNECTIONS / 2]))
}

fn in_turns(
    plain: SocketAddr,
    checked: SocketAddr,
    stamper: &mut Stamper,
    length: usize,
) -> Result<Comparison, Failure> {
    let connection = |at: SocketAddr| -> Result<TcpStream, Failure> {
        let stream = TcpStream::connect(at).blame(Category::Io)?;
        stream.set_nodelay(true).blame(Category::Io)?;
        Ok(stream)
    };
    let mut streams = [connection(plain)?, connection(checked)?];
    let [without, with] = [plain, checked].map(|at| at.to_string());
    let (mut samples, requests) = (Vec::with_capacity(TURNS), (TURN.0 / length).clamp(1, TURN.1));
    let path = format!("/song/{length}");
    for _ in 0..=TURNS {
        let mut stamped = Vec::with_capacity(requests);
        for _ in 0..requests {
            let target = Target { method: "GET", authority: &with, path: &path };
            let stamp = stamper.stamp(&target).blame(Category::Io)?;
            stamped.push(format!("GET {path} HTTP/1.1\r\n{HEADER}: {stamp}\r\n"));
        }
        // The same bytes to both. One of them ignores the stamp.
        let floor = turn(&mut streams[0], &without, &stamped, length)?;
        let ours = turn(&mut streams[1], &with, &stamped, length)?;
        samples.push((floor, ours));
    }
    // The first turn warms up.
    Ok(Comparison::of(&samples[1..]))
}

/// Microseconds for a request.
fn turn(
    stream: &mut TcpStream,
    host: &str,
    requests: &[String],
    length: usize,
) -> Result<f64, Failure> {
    let start = Instant::now();
    for request in requests {
        let request = format!("{request}Host: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).blame(Category::Io)?;
        read_answer(stream, length)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / requests.len() as f64)
}

fn read_answer(stream: &mut TcpStream, length: usize) -> Result<(), Failure> {
    // The header must be within the first bytes. No more of the body is kept.
    let (mut head, mut bytes, mut read) = (Vec::new(), vec![0; 64 << 10], 0);
    let mut body_at = None;
    while body_at.is_none_or(|at| read < at + length) {
        let count = stream.read(&mut bytes).blame(Category::Io)?;
        if count == 0 {
            return Err("the proxy closed the connection").blame(Category::Io);
        }
        read += count;
        if body_at.is_none() {
            head.extend_from_slice(bytes.get(..count).unwrap_or_default());
            let end = head.windows(4).position(|window| window == b"\r\n\r\n");
            body_at = end.map(|end| end + 4);
        }
    }
    let ok = head.starts_with(b"HTTP/1.1 200");
    if ok { Ok(()) } else { Err("the proxy rejected a request").blame(Category::Io) }
}
