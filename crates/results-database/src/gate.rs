//! Who may be connected: clients that have not logged in yet, and those of each role.
//!
//! Nobody knows who a client is before it has logged in. It has little time for that, and places of its own, so silent
//! connections keep no role out. If all these places are taken, the client that has waited longest goes. A network
//! address has half of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;

/// How long a client may take to log in.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that have not logged in, of all addresses and of one.
const STRANGERS: (usize, usize) = (100, 50);
/// Clients that have logged in, of all roles and of one.
const CLIENTS: (usize, usize) = (100, 50);
/// How long a wrong password waits for its refusal.
const PAUSE: Duration = Duration::from_secs(1);

/// A role, or all of them, have as many clients as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many clients are connected; close some, or connect again later")]
pub(crate) struct CrowdedError;

/// The places of one listener. Clones are one.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// Clients that have not logged in, in the order in which they came. Dropping the sender ends a connection.
    strangers: BTreeMap<u64, (Network, oneshot::Sender<Infallible>)>,
    clients: BTreeMap<String, usize>,
    /// Wrong passwords so far.
    wrong: u64,
}

/// What one client controls: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Network(IpAddr);

/// A client's place, until it is dropped.
pub(crate) struct Guest {
    gate: Gate,
    id: u64,
    role: OnceLock<String>,
}

/// When a client that has not logged in must go.
pub(crate) struct Deadline {
    sleep: Pin<Box<Sleep>>,
    given_away: oneshot::Receiver<Infallible>,
    is_over: bool,
}

impl Network {
    fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V6(long) => {
                let [a, b, c, d, ..] = long.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            short => short,
        })
    }
}

impl Gate {
    /// The next client. Connections that cannot be accepted, as when too many files are open, are waited for.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> (TcpStream, Arc<Guest>, Deadline) {
        loop {
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let (guest, deadline) = self.enter(peer.ip(), PATIENCE);
                    return (socket, guest, deadline);
                }
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Gives a client a place, if need be that of one that has waited longer.
    fn enter(&self, address: IpAddr, patience: Duration) -> (Arc<Guest>, Deadline) {
        let network = Network::of(address);
        let mut state = self.state();
        let (all, of_one) = STRANGERS;
        let own: Vec<u64> = state
            .strangers
            .iter()
            .filter(|(_, (own, _))| *own == network)
            .map(|(id, _)| *id)
            .collect();
        let oldest = if own.len() >= of_one {
            own.first().copied()
        } else if state.strangers.len() >= all {
            state.strangers.keys().next().copied()
        } else {
            None
        };
        if let Some(oldest) = oldest {
            state.strangers.remove(&oldest);
        }
        let id = state.next;
        state.next += 1;
        let (keep, given_away) = oneshot::channel();
        state.strangers.insert(id, (network, keep));
        drop(state);
        let guest = Arc::new(Guest { gate: self.clone(), id, role: OnceLock::new() });
        (guest, Deadline { sleep: Box::pin(sleep(patience)), given_away, is_over: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Gives a client that has logged in a place of its role.
    pub(crate) fn admit(&self, role: &str) -> Result<(), CrowdedError> {
        let mut state = self.gate.state();
        if self.role.get().is_some() {
            return Ok(());
        }
        let (all, of_one) = CLIENTS;
        let own = state.clients.get(role).copied().unwrap_or(0);
        if own >= of_one || state.clients.values().sum::<usize>() >= all {
            return Err(CrowdedError);
        }
        state.clients.insert(role.to_owned(), own + 1);
        // Before the sender is dropped, which would end the connection of anybody else.
        let _ = self.role.set(role.to_owned());
        state.strangers.remove(&self.id);
        Ok(())
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.role.get().is_some()
    }

    /// Counts a wrong password, and waits before it is refused.
    pub(crate) async fn wrong_password(&self) {
        let wrong = {
            let mut state = self.gate.state();
            state.wrong += 1;
            state.wrong
        };
        // Said of the first, the tenth, the hundredth …
        if 10_u64.checked_pow(wrong.ilog10()) == Some(wrong) {
            eprintln!("warning: logins with a wrong name or password so far: {wrong}");
        }
        sleep(PAUSE).await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.strangers.remove(&self.id);
        let Some(role) = self.role.get() else { return };
        match state.clients.get_mut(role) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(state.clients.remove(role)),
        }
    }
}

impl Deadline {
    /// Whether the client must go.
    fn poll(&mut self, guest: &Guest, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_over && !guest.is_admitted() {
            let is_late = self.sleep.as_mut().poll(context).is_ready();
            let is_given_away = Pin::new(&mut self.given_away).poll(context).is_ready();
            self.is_over = (is_late || is_given_away) && !guest.is_admitted();
        }
        if self.is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ends when the client must go, and never if it logs in.
    pub(crate) async fn passes(mut self, guest: &Guest) {
        poll_fn(|context| self.poll(guest, context)).await;
    }
}

/// A connection that ends if nobody logs in over it in time.
pub(crate) struct Connection {
    socket: TcpStream,
    guest: Arc<Guest>,
    deadline: Deadline,
}

impl Connection {
    pub(crate) fn new((socket, guest, deadline): (TcpStream, Arc<Guest>, Deadline)) -> Connection {
        Connection { socket, guest, deadline }
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<Guest>;

    fn connect_info(&self) -> Arc<Guest> {
        Arc::clone(&self.guest)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        match own.deadline.poll(&own.guest, context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Pin::new(&mut own.socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const HOUR: Duration = Duration::from_secs(3600);

    fn address(last: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, u8::try_from(last).unwrap()])
    }

    /// Whether the client must go now.
    async fn must_go((guest, deadline): (Arc<Guest>, Deadline)) -> bool {
        deadline.passes(&guest).now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_client_that_has_waited_longest_goes_for_another_of_its_address() {
        let gate = Gate::default();
        let other = gate.enter(address(2), HOUR);
        let mut own: Vec<_> = (0..STRANGERS.1).map(|_| gate.enter(address(1), HOUR)).collect();
        let _newest = gate.enter(address(1), HOUR);
        assert!(must_go(own.remove(0)).await);
        assert!(!must_go(own.remove(0)).await);
        assert!(!must_go(other).await, "it has another address");
    }

    #[tokio::test]
    async fn the_oldest_of_all_goes_if_all_places_are_taken() {
        let gate = Gate::default();
        let mut all: Vec<_> = (0..STRANGERS.0).map(|n| gate.enter(address(n), HOUR)).collect();
        assert!(!must_go(all.remove(0)).await, "there is room");
        // It has gone, so there is one place.
        let _more = [gate.enter(address(200), HOUR), gate.enter(address(201), HOUR)];
        assert!(must_go(all.remove(0)).await);
        assert!(!must_go(all.remove(0)).await);
    }

    #[tokio::test]
    async fn who_does_not_log_in_in_time_goes_and_who_has_stays() {
        let gate = Gate::default();
        let (guest, deadline) = gate.enter(address(1), Duration::ZERO);
        guest.admit("ann").unwrap();
        let (late, its_deadline) = gate.enter(address(1), Duration::ZERO);
        its_deadline.passes(&late).await;
        // By now the first one's time is over too, and all places are wanted by others.
        let _others: Vec<_> = (0..STRANGERS.0).map(|_| gate.enter(address(1), HOUR)).collect();
        assert!(!must_go((guest, deadline)).await);
    }

    #[tokio::test]
    async fn a_role_has_half_of_the_places_and_gives_them_back() {
        let gate = Gate::default();
        let enter = || gate.enter(address(1), HOUR).0;
        let admitted = |role: &str| {
            let guest = enter();
            guest.admit(role).map(|()| guest)
        };
        let mut own: Vec<_> = (0..CLIENTS.1).map(|_| admitted("ann").unwrap()).collect();
        assert_eq!(admitted("ann").err(), Some(CrowdedError));
        assert!(own[0].admit("ann").is_ok(), "it has its place");
        let _others: Vec<_> =
            (0..CLIENTS.0 - CLIENTS.1).map(|_| admitted("bob").unwrap()).collect();
        assert_eq!(admitted("eve").err(), Some(CrowdedError), "no place is left");
        own.pop();
        assert!(admitted("ann").is_ok());
    }

    #[test]
    fn a_client_controls_a_part_of_the_addresses() {
        let same = |one: &str, other: &str| {
            Network::of(one.parse().unwrap()) == Network::of(other.parse().unwrap())
        };
        assert!(same("2001:db8::1", "2001:db8::2") && same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2") && !same("2001:db8::1", "2001:db8:0:1::1"));
    }
}
