//! Open files: how many the process may have, and how many connections that allows.
//!
//! A process that runs out of descriptors cannot write its log either. So connections get what
//! is left after the store and calls to others have their part.

use super::http::Bounds;
use crate::settings::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum number of concurrent connections, unless a setting overrides it.
const CONNECTIONS: usize = 16_384;
/// Maximum number of connections whose handshake has not finished.
const STRANGERS: usize = 1_024;
/// Maximum number of concurrent requests of one process to another; each may need a
/// connection.
pub(super) const CONCURRENT_REQUESTS: usize = 128;
/// Descriptors that connections never get: for the store's files, logs and own calls.
const RESERVED: u64 = 256;

/// Raises the process's limit on open files as far as the system lets it, and returns the limit.
#[must_use]
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit on open files could not be raised");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many connections a listener may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Connections that are served.
    pub connections: usize,
    /// Connections whose handshake has not finished.
    pub strangers: usize,
}

/// What each of so many listeners gets, of what is wanted and what so many descriptors allow. A
/// quarter of the descriptors stays free, and [`RESERVED`] at least.
#[must_use]
pub fn share(wanted: Share, listeners: usize, descriptors: u64) -> Share {
    let free = descriptors.saturating_sub(RESERVED.max(descriptors / 4));
    let each = usize::try_from(free / listeners.max(1) as u64).unwrap_or(usize::MAX);
    let strangers = wanted.strangers.min(each / 4).max(1);
    let connections = wanted.connections.min(each.saturating_sub(strangers)).max(1);
    Share { connections, strangers }
}

/// How many connections each of so many listeners may have. The process's limit is raised for them.
#[must_use]
pub fn share_of(settings: &Settings, listeners: usize) -> Share {
    let limit = raise_limit();
    let wanted = settings.connections.unwrap_or(CONNECTIONS);
    let wanted = Share { connections: wanted, strangers: wanted.clamp(64, STRANGERS) };
    let share = share(wanted, listeners, limit);
    if settings.connections.is_some_and(|set| set > share.connections) {
        let (wanted, connections) = (wanted.connections, share.connections);
        tracing::warn!(
            wanted,
            connections,
            limit,
            "the limit on open files allows fewer connections than the settings: raise it (ulimit -n, LimitNOFILE=)"
        );
    }
    share
}

/// Limits for one client. A gateway makes requests for all its clients and needs a connection
/// for each concurrent request, but it must not crowd out others. `streams` is whether clients may
/// listen for hours.
#[must_use]
pub fn bounds(share: Share, streams: bool) -> Bounds {
    let Share { connections, strangers } = share;
    let silence = Bounds::default().silence.filter(|_| !streams);
    let of_one = (connections / 4).max(CONCURRENT_REQUESTS);
    Bounds { connections, of_one, strangers, silence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_may_have_as_many_connections_as_it_uses() {
        let bounds = |connections, streams| bounds(Share { connections, strangers: 64 }, streams);
        for connections in [CONCURRENT_REQUESTS, 300, CONNECTIONS] {
            assert!(bounds(connections, false).of_one >= CONCURRENT_REQUESTS, "{connections}");
        }
        assert_eq!(bounds(CONNECTIONS, false).of_one, CONNECTIONS / 4);
        assert!(bounds(300, true).silence.is_none() && bounds(300, false).silence.is_some());
    }

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        let wanted = Share { connections: 16_384, strangers: 1_024 };
        let share = |listeners, descriptors| {
            let Share { connections, strangers } = share(wanted, listeners, descriptors);
            (connections, strangers)
        };
        assert_eq!(share(2, 1 << 20), (16_384, 1_024));
        assert_eq!(share(1, 1_024), (576, 192));
        assert_eq!(share(2, 1_024), (288, 96));
        assert_eq!(share(2, 100), (1, 1));
    }

    #[test]
    fn the_limit_is_raised_as_far_as_allowed() {
        let limit = raise_limit();
        assert_eq!(limit, getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    }
}
