//! Connections whose handshake has not finished: nobody knows yet who they are.
//!
//! They have a share of their own, so that they cannot crowd out clients that are served.
//! When it is full, a newcomer takes the place of the connection that has waited longest
//! without a word. An honest client speaks at once; a silent one could wait forever. Each
//! address has only a part of the share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A connection that has spoken keeps its place for so long; a handshake takes less.
const GRACE: Duration = Duration::from_secs(1);

/// Strangers at one listener. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Strangers {
    limit: usize,
    of_address: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// In the order of arrival.
    waiting: BTreeMap<u64, Stranger>,
    of: HashMap<Network, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Stranger {
    network: Network,
    since: Instant,
    has_spoken: bool,
    /// Dropped to close the connection.
    _keep: oneshot::Sender<()>,
}

/// What one client controls: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Network(IpAddr);

impl Network {
    pub(super) fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V6(long) => {
                let [a, b, c, d, ..] = long.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            short => short,
        })
    }
}

/// A stranger's place, until it is dropped.
#[derive(Debug)]
pub(super) struct StrangerSlot {
    strangers: Strangers,
    id: u64,
}

/// Ends when a newcomer has taken the place; nothing is ever sent.
pub(super) type EvictionNotice = oneshot::Receiver<()>;

impl Strangers {
    /// At most `limit` at a time, half of them from one address.
    pub(super) fn new(limit: usize) -> Strangers {
        Strangers { limit, of_address: limit.div_ceil(2), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection, if need be that of one that has waited longer. None if
    /// all are in the middle of their handshakes.
    pub(super) fn enter(
        &self,
        address: IpAddr,
        now: Instant,
    ) -> Option<(StrangerSlot, EvictionNotice)> {
        let network = Network::of(address);
        let mut state = self.state();
        let own = state.of.get(&network);
        if own.is_some_and(|own| own.len() >= self.of_address) {
            let oldest = state.giving_way(own.into_iter().flatten().copied(), now)?;
            state.remove(oldest);
        } else if state.waiting.len() >= self.limit {
            let oldest = state.giving_way(state.waiting.keys().copied(), now)?;
            state.remove(oldest);
        }
        let id = state.next;
        state.next += 1;
        let (keep, given_away) = oneshot::channel();
        let stranger = Stranger { network, since: now, has_spoken: false, _keep: keep };
        state.waiting.insert(id, stranger);
        state.of.entry(network).or_default().insert(id);
        drop(state);
        Some((StrangerSlot { strangers: self.clone(), id }, given_away))
    }
}

impl State {
    /// The first of these that may lose its place.
    fn giving_way(&self, ids: impl Iterator<Item = u64>, now: Instant) -> Option<u64> {
        let may_lose = |stranger: &Stranger| {
            !stranger.has_spoken || now.saturating_duration_since(stranger.since) >= GRACE
        };
        let mut ids = ids;
        ids.find(|id| self.waiting.get(id).is_some_and(may_lose))
    }

    fn remove(&mut self, id: u64) {
        let Some(stranger) = self.waiting.remove(&id) else { return };
        if let Some(own) = self.of.get_mut(&stranger.network) {
            own.remove(&id);
            if own.is_empty() {
                self.of.remove(&stranger.network);
            }
        }
    }
}

impl StrangerSlot {
    /// The connection has sent its first bytes.
    pub(super) fn note_speaking(&self) {
        if let Some(stranger) = self.strangers.state().waiting.get_mut(&self.id) {
            stranger.has_spoken = true;
        }
    }
}

impl Drop for StrangerSlot {
    fn drop(&mut self) {
        self.strangers.state().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_given_away((_, given_away): &mut (StrangerSlot, EvictionNotice)) -> bool {
        !matches!(given_away.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    #[test]
    fn a_newcomer_takes_the_place_of_the_one_that_has_been_silent_longest() {
        let (strangers, now) = (Strangers::new(2), Instant::now());
        let mut first = strangers.enter(address(1), now).unwrap();
        let mut second = strangers.enter(address(2), now).unwrap();
        first.0.note_speaking();
        let mut third = strangers.enter(address(3), now).unwrap();
        assert!(!is_given_away(&mut first) && is_given_away(&mut second));
        third.0.note_speaking();
        // Both have just begun their handshakes.
        assert!(strangers.enter(address(4), now).is_none());
        let _fourth = strangers.enter(address(4), now + GRACE).unwrap();
        assert!(is_given_away(&mut first) && !is_given_away(&mut third));
    }

    #[test]
    fn one_address_has_half_of_the_places() {
        let (strangers, now) = (Strangers::new(4), Instant::now());
        let mut other = strangers.enter(address(9), now).unwrap();
        let mut flood: Vec<_> =
            (0..10).map(|_| strangers.enter(address(1), now).unwrap()).collect();
        assert!(!is_given_away(&mut other));
        let kept = flood.iter_mut().filter_map(|one| (!is_given_away(one)).then_some(one.0.id));
        assert_eq!(kept.collect::<Vec<_>>(), [9, 10]);
    }

    #[test]
    fn a_place_that_is_left_is_free() {
        let (strangers, now) = (Strangers::new(1), Instant::now());
        for _ in 0..3 {
            strangers.enter(address(1), now).unwrap().0.note_speaking();
        }
        assert!(strangers.state().waiting.is_empty() && strangers.state().of.is_empty());
    }

    #[test]
    fn addresses_of_one_network_count_as_one() {
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::4"), network("2001:db8:1:3::4"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }
}
