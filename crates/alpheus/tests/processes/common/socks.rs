//! A SOCKS proxy that tells what it was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Names under which clients came, and the servers that they asked for.
type Connections = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

/// A proxy (RFC 1928, RFC 1929) for which all names are this machine.
pub(crate) struct Socks {
    pub(crate) address: SocketAddr,
    seen: Connections,
}

impl Socks {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Connections::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&shared);
                std::thread::spawn(move || serve(near, &seen));
            }
        });
        Self { address, seen }
    }

    /// The servers that were asked for under each name.
    pub(crate) fn seen(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.seen.lock().unwrap().clone()
    }
}

fn take(stream: &mut TcpStream, bytes: usize) -> Option<Vec<u8>> {
    let mut taken = vec![0; bytes];
    stream.read_exact(&mut taken).ok().map(|()| taken)
}

/// A byte, and as many as it says.
fn text(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = take(stream, 1)?[0];
    take(stream, length.into())
}

fn serve(mut near: TcpStream, seen: &Connections) -> Option<()> {
    assert_eq!(take(&mut near, 1)?, [5]);
    assert!(text(&mut near)?.contains(&2), "it has no name");
    near.write_all(&[5, 2]).ok()?;
    assert_eq!(take(&mut near, 1)?, [1]);
    let (name, _) = (text(&mut near)?, text(&mut near)?);
    near.write_all(&[1, 0]).ok()?;
    // To connect, to an address or a name.
    assert_eq!(take(&mut near, 3)?, [5, 1, 0]);
    let host = match take(&mut near, 1)?[0] {
        1 => take(&mut near, 4)?.iter().map(u8::to_string).collect::<Vec<_>>().join("."),
        kind => {
            assert_eq!(kind, 3);
            String::from_utf8(text(&mut near)?).unwrap()
        }
    };
    let port = take(&mut near, 2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    let name = String::from_utf8(name).unwrap();
    seen.lock().unwrap().entry(name).or_default().insert(format!("{host}:{port}"));
    let far = TcpStream::connect(("127.0.0.1", port)).ok()?;
    near.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    let (mut from, mut to) = (near.try_clone().ok()?, far.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let (mut from, mut to) = (far, near);
    std::io::copy(&mut from, &mut to).ok().map(drop)
}
