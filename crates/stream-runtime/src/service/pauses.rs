//! After an outage: what windows wait for, and time that does not count.

use super::Service;
use alpheus_policy::ids::ControllerId;
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeSet;

impl Service {
    /// The time of the latest entry of the log that was read, as far as it is known.
    #[must_use]
    pub fn last_entry(&self) -> Option<Timestamp> {
        self.plane.last_entry()
    }

    /// Waits for the streams that were online and had reached `since`, until each has reached
    /// `until`. Returns how many.
    pub fn wait_for_streams(&mut self, since: Timestamp, until: Timestamp) -> usize {
        self.plane.wait_for_streams(since, until)
    }

    /// How many streams are still waited for. Call it after [`Service::ingest`].
    pub fn absent_streams(&mut self) -> usize {
        self.plane.absent_streams()
    }

    /// Waits for no stream any more.
    pub fn stop_waiting(&mut self) {
        self.plane.stop_waiting();
    }

    /// Whether windows that have passed stay open, until their controllers are back.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Shows how many streams and hosts of controllers are waited for after an outage.
    pub fn show_absent(&mut self, streams: usize, hosts: usize) {
        let before = (self.counters.absent_streams, self.counters.absent_hosts);
        if before != (streams, hosts) {
            (self.counters.absent_streams, self.counters.absent_hosts) = (streams, hosts);
            self.watch.show(&self.counters);
        }
    }

    /// This much time does not count for how long windows wait.
    pub fn discount(&mut self, span: Span) {
        self.uncounted = Span(self.uncounted.0.saturating_add(span.0));
    }

    /// The controllers of plans that run. By epochs, those of the last lists.
    #[must_use]
    pub fn rosters(&self) -> BTreeSet<ControllerId> {
        let queries = self.queries.values().flat_map(|query| query.place.keys().copied());
        queries.chain(self.epochs.last_members()).collect()
    }

    /// The time as coordinators count it.
    pub(super) fn counted(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(self.uncounted.0))
    }
}
