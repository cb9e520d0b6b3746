//! Strangers who connect to the service and say nothing, more than it may have files open. All
//! come from one address: those at many addresses can fill every place for handshakes, see
//! SECURITY.md.
//!
//! `ALPHEUS_STRANGERS` says how many; `drills/strangers.sh` has ten thousand.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{QUERY, RunningSite, Site, until};
use alpheus_node::service::descriptors;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

/// What many systems allow a process by default.
const OPEN_FILES: u32 = 1_024;

/// Where strangers come from; everybody else is at 127.0.0.1.
const STRANGERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Connections that are opened again when they are closed, until this is dropped.
pub(crate) struct Flood {
    over: Arc<AtomicBool>,
    opened: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Half of the strangers begin a handshake that they do not end.
    pub(crate) fn start(address: &str, strangers: usize) -> Flood {
        let (over, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let address = address.parse().unwrap();
        let (ends, counter) = (Arc::clone(&over), Arc::clone(&opened));
        let flood = async move {
            let mut held: Vec<Option<TcpStream>> = (0..strangers).map(|_| None).collect();
            for number in (0..strangers).cycle() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                held[number] = connect(address, number % 2 == 0).await.ok();
                counter.fetch_add(usize::from(held[number].is_some()), Ordering::Relaxed);
                if number == 0 {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let flood = move || runtime.block_on(flood);
        Flood { over, opened, thread: Some(std::thread::spawn(flood)) }
    }

    /// How many connections were opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

/// A stranger who stays silent, or who sends the first bytes of a handshake.
async fn connect(address: SocketAddr, is_silent: bool) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((STRANGERS, 0).into())?;
    let stream = socket.connect(address).await?;
    if !is_silent {
        stream.writable().await?;
        stream.try_write(&[22, 3, 1])?;
    }
    Ok(stream)
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let strangers = std::env::var("ALPHEUS_STRANGERS").map_or(2_500, |many| many.parse().unwrap());
    let files = descriptors::raise_limit();
    assert!(files > strangers as u64 + 1_000, "{files} open files are too few: ulimit -n");
    let mut running =
        RunningSite::start_in(Site::with_open_files(OPEN_FILES), |_, api| api.to_owned());
    let flood = Flood::start(running.server.strip_prefix("https://").unwrap(), strangers);
    until("a flood", || (flood.opened() >= strangers).then_some(()));
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let row = running.row(3);
    assert_eq!(row["sum_reading"].as_str(), Some("12"));
    drop(flood);
    assert!(!running.service.has_ended());
}
