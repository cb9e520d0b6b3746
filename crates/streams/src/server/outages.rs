//! Times at which the service was away: stopped, killed or frozen.
//!
//! Devices and controllers kept everything, but they come back one after the other. The first
//! device back has all of the time that passed, and would end the windows of the others. So
//! after an outage the service waits, for so long at most:
//!
//! - for the controllers of running plans: until then it closes no window, and no time counts
//!   for windows that wait for answers;
//! - for the streams that were online: event time does not pass what each has reached.
//!
//! How long a window waits for late streams counts only while the service is up.

use super::outboxes::Outboxes;
use alpheus_stream_runtime::service::Service;
use alpheus_time::{Span, Timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Between two turns of a service that works passes no more than this.
const LONGEST_TURN: Span = Span::seconds(1);
/// Outages that are remembered, for windows that wait for late streams.
const KEPT: usize = 64;
/// A host that was not heard from for this long is silent.
pub const SILENT: Duration = Duration::from_secs(60);
/// One that was not heard from for this long does not count as active in metrics: it calls every two seconds, and
/// pauses for five at most.
pub const UNHEARD: Duration = Duration::from_secs(10);

/// Outages, and the wait after the last one.
pub struct Outages {
    /// How long after its end a window waits for late streams.
    idle: Span,
    /// How long the service waits after an outage.
    most: Span,
    /// When the service last worked.
    last: Option<Timestamp>,
    wait: Option<Wait>,
    /// Outages for which late windows may still be open: from when, and when all were back.
    away: VecDeque<(Timestamp, Timestamp)>,
}

/// The wait after an outage.
struct Wait {
    down: Timestamp,
    up: Timestamp,
    until: Timestamp,
    /// Hosts of controllers that are not back.
    hosts: BTreeSet<String>,
}

impl Outages {
    /// Before the service has worked.
    #[must_use]
    pub fn new(idle: Span, most: Span) -> Outages {
        Outages { idle, most, last: None, wait: None, away: VecDeque::new() }
    }

    /// The service has started and read its log. `hosts` guard its streams.
    pub fn started(&mut self, now: Timestamp, service: &mut Service, hosts: BTreeSet<String>) {
        self.last = Some(now);
        let Some(entry) = service.last_entry() else { return };
        let down = entry.min(now);
        let until = now.plus(self.most);
        self.begin(service, Wait { down, up: now, until, hosts });
    }

    /// Call it before any work: the time in which the service was frozen does not count.
    pub fn wake(&mut self, now: Timestamp, service: &mut Service) {
        let Some(last) = self.last.replace(now) else { return };
        let gap = Span(now.0.saturating_sub(last.0));
        if self.wait.as_ref().is_some_and(|wait| !wait.hosts.is_empty()) {
            service.discount(gap);
            return;
        }
        if gap <= LONGEST_TURN {
            return;
        }
        service.discount(Span(gap.0 - LONGEST_TURN.0));
        if self.wait.is_none() {
            // Connections are still there, so this does not take long.
            let most = Span(gap.0.saturating_add(self.idle.0)).min(self.most);
            let (until, hosts) = (now.plus(most), BTreeSet::new());
            self.begin(service, Wait { down: last, up: now, until, hosts });
        }
    }

    fn begin(&mut self, service: &mut Service, wait: Wait) {
        let heard = Timestamp(wait.down.0.saturating_sub(self.idle.0));
        let streams = service.wait_for_streams(heard, wait.up);
        service.pause(!wait.hosts.is_empty());
        if streams > 0 || !wait.hosts.is_empty() {
            let away = Duration::from_micros(wait.up.0 - wait.down.0);
            let hosts = wait.hosts.len();
            tracing::info!(?away, streams, hosts, "the service was away; waiting for these");
        }
        self.wait = Some(wait);
    }

    /// Looks who has come back. Call it after new frames were read, and before windows are
    /// closed.
    pub fn look(&mut self, now: Timestamp, service: &mut Service, outboxes: &Outboxes) {
        let Some(wait) = &mut self.wait else { return };
        wait.hosts.retain(|host| !outboxes.has_fetched(host));
        service.pause(!wait.hosts.is_empty());
        let streams = service.absent_streams();
        service.show_absent(streams, wait.hosts.len());
        if (streams > 0 || !wait.hosts.is_empty()) && now < wait.until {
            return;
        }
        if streams > 0 || !wait.hosts.is_empty() {
            // A host may be one person's: who is away is no matter for every log.
            wait.hosts.iter().for_each(|host| tracing::debug!(host, "has not come back"));
            let hosts = wait.hosts.len();
            tracing::warn!(streams, hosts, "not all came back in time; continuing without these");
        }
        self.away.push_back((wait.down, now));
        self.wait = None;
        service.stop_waiting();
        service.pause(false);
        service.show_absent(0, 0);
    }

    /// Windows that end at or before this time no longer wait for late streams: since then the
    /// service was up for as long as a window waits.
    pub fn idle_limit(&mut self, now: Timestamp) -> Timestamp {
        let done = |(_, back): &(Timestamp, Timestamp)| back.plus(self.idle) <= now;
        if self.away.back().is_some_and(done) {
            self.away.clear();
        }
        while self.away.len() > KEPT {
            self.away.pop_front();
        }
        let mut at = self.wait.as_ref().map_or(now, |wait| wait.down);
        let mut left = self.idle.0;
        for (down, back) in self.away.iter().rev() {
            let up = at.0.saturating_sub(back.0);
            if up >= left {
                break;
            }
            (left, at) = (left - up, *down);
        }
        Timestamp(at.0.saturating_sub(left))
    }

    /// Whether somebody is waited for.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    fn after(away: &[(u64, u64)]) -> Outages {
        let mut outages = Outages::new(Span::seconds(10), Span::seconds(120));
        outages.away.extend(away.iter().map(|(down, back)| (at(*down), at(*back))));
        outages
    }

    #[test]
    fn windows_wait_for_late_streams_only_while_the_service_is_up() {
        assert_eq!(after(&[]).idle_limit(at(500)), at(490));
        // Away from 100 to 400, and back for 3 seconds: 7 of the 10 passed before.
        assert_eq!(after(&[(100, 400)]).idle_limit(at(403)), at(93));
        assert_eq!(after(&[(100, 400)]).idle_limit(at(409)), at(99));
        assert_eq!(after(&[(100, 400)]).idle_limit(at(410)), at(400));
        // Twice away: 3 seconds since the second time, 4 between, and 3 before.
        assert_eq!(after(&[(100, 400), (404, 500)]).idle_limit(at(503)), at(97));
        assert_eq!(after(&[(100, 400), (404, 500)]).idle_limit(at(507)), at(401));
    }

    #[test]
    fn no_window_ends_by_the_clock_while_somebody_is_waited_for() {
        let mut outages = after(&[]);
        let (down, up, until) = (at(100), at(400), at(520));
        outages.wait = Some(Wait { down, up, until, hosts: BTreeSet::new() });
        assert_eq!(outages.idle_limit(at(519)), at(90));
    }
}
