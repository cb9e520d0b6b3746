//! When a controller guards a stream: from its owner's placement to the next one.

use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::StreamId;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Timestamp, Window};

use super::stream_state::StreamState;
use crate::annotation::Placement;
use crate::error::ExclusionError;
use crate::grant::Days;
use crate::handover::HandedOver;
use crate::keys::{DAY, day_of};
use crate::ledger::Record;

/// When a controller guards a stream, by the last placement that it knows.
#[derive(Clone, Debug)]
pub(super) struct Tenure {
    /// Of the placement. The first one has 1, and is not known here.
    pub(super) version: u32,
    /// No window that begins before is answered.
    pub(super) from: Timestamp,
    /// No window that ends later is answered.
    pub(super) until: Timestamp,
    /// The placement, if it is not the first.
    pub(super) placement: Option<Signed<Placement>>,
    /// What is handed over, if the stream left.
    pub(super) handed: Option<Signed<HandedOver>>,
}

impl Default for Tenure {
    fn default() -> Self {
        let (from, until) = (Timestamp(0), Timestamp(u64::MAX));
        Tenure { version: 1, from, until, placement: None, handed: None }
    }
}

impl Tenure {
    /// Whether the stream has left, or will.
    pub(super) fn is_over(&self) -> bool {
        self.until < Timestamp(u64::MAX)
    }

    /// Checks that a plan with noise may still charge the owner here.
    pub(super) fn check_noise(&self, noisy: bool) -> Result<(), ExclusionError> {
        if noisy && self.is_over() { Err(ExclusionError::Moved) } else { Ok(()) }
    }

    /// Whether a window is this controller's.
    pub(super) fn covers(&self, window: Window) -> bool {
        self.from <= window.start && window.end <= self.until
    }

    /// Whether nothing from this time on is this controller's.
    pub(super) fn ends_by(&self, time: Timestamp) -> bool {
        self.until <= time
    }

    /// Whether a day has had another controller before.
    fn began_within(&self, day: u64) -> bool {
        day_of(self.from) == day && !self.from.0.is_multiple_of(DAY)
    }

    /// Those of these days that begin before the stream left.
    pub(super) fn days(&self, days: Days) -> Option<Days> {
        let last = days.last.min(day_of(Timestamp(self.until.0.saturating_sub(1))));
        (days.first <= last).then_some(Days { last, ..days })
    }

    pub(super) fn record(&self, stream: StreamId) -> Option<Record> {
        let Self { from, until, handed, .. } = self;
        let (placement, handed) = (self.placement.clone()?, handed.clone());
        Some(Record::Moved { stream, from: *from, until: *until, placement, handed })
    }
}

impl StreamState {
    /// Whether a window is this controller's. On a day that has had another controller, whose sets of
    /// owners this one does not know, none is once the owner bounds them.
    pub(super) fn is_here(&self, window: Window) -> bool {
        let is_unknown = || self.policies().any(bounds_sets);
        self.tenure.covers(window)
            && !(self.tenure.began_within(day_of(window.start)) && is_unknown())
    }
}

/// Whether an owner bounds over how many sets of owners a day is summed.
pub(super) fn bounds_sets(policy: &ResolvedPolicy) -> bool {
    let mut options = policy.attributes.iter().flat_map(|attribute| &attribute.alternatives);
    options.any(|option| option.sets_per_day.is_some())
}
