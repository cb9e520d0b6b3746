//! A service behind the gateway, in the test's own process: says what it was
//! asked, streams for ever, speaks after an upgrade. And a wire that can be
//! listened to, and that can lose answers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Starts the service; where it is.
pub(crate) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let _open = Open::new(&path);
        match path.split('?').next().unwrap_or_default() {
            "/stream" => return drip(&mut stream),
            "/flood" => return flood(&mut stream),
            "/ws" => {
                write!(
                    stream,
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
                )?;
                let mut bytes = [0; 64];
                loop {
                    let read = reader.read(&mut bytes)?;
                    if read == 0 {
                        return Ok(());
                    }
                    stream.write_all(&bytes[..read])?;
                }
            }
            _ => write!(
                stream,
                "HTTP/1.1 200 OK\r\nSet-Cookie: id=7\r\nContent-Length: {}\r\n\r\n{head}",
                head.len()
            )?,
        }
    }
}

/// Answers that somebody still takes, or could, by path and query.
static OPEN: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// How many answers to a path run.
pub(crate) fn open(path: &str) -> usize {
    OPEN.lock().unwrap().get(path).copied().unwrap_or(0)
}

struct Open(String);

impl Open {
    fn new(path: &str) -> Self {
        *OPEN.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        Self(path.to_owned())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(open) = OPEN.lock().unwrap().get_mut(&self.0) {
            *open -= 1;
        }
    }
}

/// As much as one takes, for ever.
fn flood(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40)?;
    loop {
        stream.write_all(&[b'.'; 64 << 10])?;
    }
}

/// A chunk twenty times a second, for ever.
fn drip(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    loop {
        stream.write_all(b"5\r\ndrip\n\r\n")?;
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A wire to another address.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    pub(crate) heard: Arc<Mutex<Vec<u8>>>,
    loses: Arc<AtomicBool>,
    holds: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
}

impl Wire {
    pub(crate) fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Self {
            address,
            heard: Arc::default(),
            loses: Arc::default(),
            holds: Arc::default(),
            lost: Arc::default(),
        };
        let (heard, loses, lost) = (wire.heard.clone(), wire.loses.clone(), wire.lost.clone());
        let holds = wire.holds.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&target) else { continue };
                let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (heard, holds) = (heard.clone(), holds.clone());
                std::thread::spawn(move || {
                    carry(from, to, |bytes| {
                        heard.lock().unwrap().extend_from_slice(bytes);
                        !holds.load(Ordering::SeqCst)
                    })
                });
                let (loses, lost) = (loses.clone(), lost.clone());
                std::thread::spawn(move || {
                    carry(far, near, |_| {
                        let loses = loses.load(Ordering::SeqCst);
                        lost.fetch_or(loses, Ordering::SeqCst);
                        !loses
                    })
                });
            }
        });
        wire
    }

    /// All that clients sent so far, as text.
    pub(crate) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }

    /// Loses answers from now on, or not. None was lost yet.
    pub(crate) fn lose(&self, loses: bool) {
        self.lost.store(false, Ordering::SeqCst);
        self.loses.store(loses, Ordering::SeqCst);
    }

    /// Hears what clients send from now on and keeps it, or not.
    pub(crate) fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::SeqCst);
    }

    /// Whether an answer was lost since that was asked for.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut pass: impl FnMut(&[u8]) -> bool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if pass(&bytes[..read]) && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}
