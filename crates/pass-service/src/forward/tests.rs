//! What is forwarded, and that every part of a request counts and ends with its session.

use super::*;
use alpheus_node::network::base::Base;
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use axum::response::IntoResponse;
use axum::{Extension, Router};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

#[test]
fn headers_of_one_connection_are_not_forwarded() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("keep-alive", "5"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("accept", "*/*"),
    ] {
        headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    strip_hop_by_hop(&mut headers);
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
}

#[test]
fn headers_about_a_requests_origin_are_stripped() {
    let mut headers = HeaderMap::new();
    let theirs = ["forwarded", "x-forwarded-for", "x-forwarded-user", "x-real-ip", "via"];
    let ours = ["alpheus-session", "alpheus-pass"];
    for name in theirs.iter().chain(&ours).chain(&["accept"]) {
        headers.insert(name.parse::<HeaderName>().unwrap(), "1".parse().unwrap());
    }
    strip_forwarded(&mut headers);
    assert_eq!(headers.len(), 3);
    strip_ours(&mut headers);
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
}

#[test]
fn an_upgrade_needs_two_headers() {
    let mut headers = HeaderMap::new();
    headers.insert(header::UPGRADE, "websocket".parse().unwrap());
    assert_eq!(requested_upgrade(&headers), None);
    headers.insert(header::CONNECTION, "keep-alive, Upgrade".parse().unwrap());
    assert_eq!(requested_upgrade(&headers).unwrap(), "websocket");
}

/// How long a loaded machine may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts live values.
struct LiveValue(Arc<AtomicUsize>);

impl LiveValue {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for LiveValue {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A service, and a gateway in front of it that cuts all requests on command.
struct World {
    gateway: SocketAddr,
    /// Requests that still count.
    held: Arc<AtomicUsize>,
    /// Connections that the service still serves.
    served: Arc<AtomicUsize>,
    /// Bytes of uploads that reached the service.
    uploaded: Arc<AtomicUsize>,
    cut: watch::Sender<bool>,
    _running: Trigger,
    _runtime: Runtime,
}

impl World {
    fn new() -> Self {
        let (held, served): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let (uploaded, cut): (Arc<AtomicUsize>, _) = (Arc::default(), watch::Sender::new(false));
        let upstream = service(&served, &uploaded);
        let (count, cuts) = (held.clone(), cut.subscribe());
        let handle = move |Extension(closer): Extension<Closer>, request: Request<Body>| {
            let (guard, mut cuts) = (LiveValue::new(&count), cuts.clone());
            async move {
                // One path leads to a port where nothing listens.
                let port = if request.uri().path() == "/nowhere" { 1 } else { upstream.port() };
                let base = Base::parse(&format!("http://127.0.0.1:{port}")).unwrap();
                let cut: Cut = Box::pin(async move { drop(cuts.wait_for(|cut| *cut).await) });
                let link = HttpClient::anonymous(base, ExpectedPeer::External, None).unwrap();
                let cutting = Some(RequestCut { cut, closer });
                match forward(&link, request, cutting, guard).await {
                    Ok(response) => response,
                    Err(ForwardError::Cut) => StatusCode::UNAUTHORIZED.into_response(),
                    Err(_) => StatusCode::BAD_GATEWAY.into_response(),
                }
            }
        };
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::bind(([127, 0, 0, 1], 0).into(), None)).unwrap();
        let gateway = server.address().unwrap();
        let trigger = Trigger::new();
        let router = Router::new().fallback(handle);
        runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        Self { gateway, held, served, uploaded, cut, _running: trigger, _runtime: runtime }
    }

    /// Sends a request's head. Returns the connection and the response's head.
    fn ask(&self, method: &str, path: &str, more: &str) -> (BufReader<TcpStream>, String) {
        let mut stream = TcpStream::connect(self.gateway).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while !line.ends_with("\r\n\r\n") && reader.read_line(&mut line).unwrap_or(0) > 0 {}
        (reader, line)
    }

    /// Waits until nothing counts any more and the service is idle.
    fn is_over(&self, what: &str) {
        until(what, || {
            self.held.load(Ordering::SeqCst) == 0 && self.served.load(Ordering::SeqCst) == 0
        });
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn service(served: &Arc<AtomicUsize>, uploaded: &Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (served, uploaded) = (served.clone(), uploaded.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (served, uploaded) = (served.clone(), uploaded.clone());
            std::thread::spawn(move || drop(serve(stream, &served, &uploaded)));
        }
    });
    address
}

fn serve(
    mut stream: TcpStream,
    served: &Arc<AtomicUsize>,
    uploaded: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let _served = LiveValue::new(served);
    match head.split(' ').nth(1).unwrap_or_default() {
        "/upload" => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?,
        "/slow-upload" => {}
        "/ws" => write!(
            stream,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        )?,
        "/drip" => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40)?;
            loop {
                stream.write_all(b"drip")?;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        _ => return write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    }
    let mut bytes = [0; 4096];
    loop {
        let read = reader.read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        uploaded.fetch_add(read, Ordering::SeqCst);
    }
}

const ENDLESS: &str = "Content-Length: 1099511627776\r\n";

/// A service may respond at once and continue to read.
#[test]
fn an_upload_that_outlives_its_answer_counts_and_is_cut() {
    let world = World::new();
    let (mut upload, answer) = world.ask("POST", "/upload", ENDLESS);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for piece in 1..=3 {
        upload.get_mut().write_all(&[b'.'; 1024]).unwrap();
        until("an upload", || world.uploaded.load(Ordering::SeqCst) >= piece * 1024);
        assert_eq!(world.held.load(Ordering::SeqCst), 1, "it counts while it runs");
    }
    world.cut.send_replace(true);
    world.is_over("the upload continues");
}

/// An upload also ends if it is cut before its response.
#[test]
fn an_upload_without_an_answer_is_cut() {
    let world = World::new();
    let mut stream = TcpStream::connect(world.gateway).unwrap();
    write!(stream, "POST /slow-upload HTTP/1.1\r\nHost: a\r\n{ENDLESS}\r\nbegun").unwrap();
    until("an upload", || world.uploaded.load(Ordering::SeqCst) > 0);
    world.cut.send_replace(true);
    let goes_on = std::thread::spawn(move || {
        while stream.write_all(&[b'.'; 1024]).is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    world.is_over("the upload continues");
    drop(world);
    goes_on.join().unwrap();
}

#[test]
fn a_request_counts_until_it_is_over_however_it_ends() {
    let world = World::new();
    let (mut whole, answer) = world.ask("GET", "/", "Connection: close\r\n");
    let mut rest = String::new();
    whole.read_to_string(&mut rest).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && rest == "ok", "{answer}{rest}");
    world.is_over("a request that was answered");
    let (_nobody, answer) = world.ask("GET", "/nowhere", "");
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    world.is_over("a request without a response");
    let (dripping, _) = world.ask("GET", "/drip", "");
    assert_eq!(world.held.load(Ordering::SeqCst), 1);
    drop(dripping);
    world.is_over("a request whose client disconnected");
    let socket = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    let (left, answer) = world.ask("GET", "/ws", socket);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert_eq!(world.held.load(Ordering::SeqCst), 1);
    drop(left);
    world.is_over("a socket whose client disconnected");
    // The end of a session ends sockets and responses, even if nobody reads them.
    let (_socket, _) = world.ask("GET", "/ws", socket);
    let (_dripping, _) = world.ask("GET", "/drip", "");
    assert_eq!(world.held.load(Ordering::SeqCst), 2);
    world.cut.send_replace(true);
    world.is_over("a running request is not cut");
}
