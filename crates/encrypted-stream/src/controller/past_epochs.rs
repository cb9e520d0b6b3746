//! Plans that are over: what they released is summed up, and the plans are dropped.
//!
//! Of an epoch one list is accepted, once. So its plan is needed no more than for the spans that it
//! released, of which one for each stream, attribute and family stays, or several if the family
//! paused or did not list the stream. They are at most [`MAX_SPANS`]. A fixed plan is needed until
//! nobody asks about its windows any more.

use std::collections::BTreeSet;

use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::endings::removals;
use super::plan_state::{PlanState, SETTLE};
use crate::ledger::{Change, Record, StampedRecord};

/// The most spans that are kept of an attribute. A stream that is in every other window has one for
/// each, forever, and all of them are written again with each.
const MAX_SPANS: usize = 256;

/// Spans that a stream has released, each of one attribute.
pub(super) type Spans = Vec<(u16, Window)>;

/// Adds a span, as a longer one if it follows the last one of the attribute. Of too many, the two
/// oldest become one: what lies between them counts as released, so nothing is released twice.
pub(super) fn add_span(spans: &mut Spans, attribute: u16, span: Window) {
    let last = spans.iter_mut().rev().find(|(of, _)| *of == attribute);
    match last.filter(|(_, last)| last.end == span.start) {
        Some((_, last)) => last.end = span.end,
        None => spans.push((attribute, span)),
    }
    let mut own: Vec<usize> =
        (0..spans.len()).filter(|at| spans.get(*at).is_some_and(|s| s.0 == attribute)).collect();
    if own.len() <= MAX_SPANS {
        return;
    }
    own.sort_unstable_by_key(|at| spans.get(*at).map(|(_, span)| span.start));
    let [first, second, ..] = own.as_slice() else { return };
    let Some((_, next)) = spans.get(*second).copied() else { return };
    if let Some((_, oldest)) = spans.get_mut(*first) {
        oldest.end = oldest.end.max(next.end);
    }
    spans.remove(*second);
}

impl Controller {
    /// Drops the plans of epochs that have ended, of all families: a service may ask each of a new
    /// one. One of whose end this controller was not informed ends by itself.
    pub(super) fn drop_past_epochs(&mut self, newest: PlanId, now: Timestamp) -> Vec<Change> {
        let is_past = |joined: &&PlanState| {
            let by_epoch = joined.plan().epoch.is_some() && joined.id() != newest;
            by_epoch && (joined.ended.is_some() || joined.is_past(now))
        };
        let past = self.plans.values().filter(is_past).map(|own| (own.plan().from, own.id()));
        self.drop_plans(past.collect(), now)
    }

    /// Drops fixed plans that ended long ago. Windows before their end are settled for plans that are
    /// accepted from now on: also for one of them, if the service announces it again, so that nothing is
    /// masked twice with what its id and a window give.
    pub(super) fn drop_ended_plans(&mut self, now: Timestamp) -> Vec<Change> {
        let over = |own: &PlanState| own.over_at().filter(|over| over.plus(SETTLE) <= now);
        let past = self.plans.values().filter_map(|own| Some((over(own)?, own.id())));
        let past: Vec<_> = past.collect();
        let Some(until) = past.iter().map(|(over, _)| *over).max() else { return Vec::new() };
        self.forgotten_until = self.forgotten_until.max(until);
        let forgotten = Record::Forgotten { until: self.forgotten_until };
        let mut changes = vec![self.put(now, forgotten)];
        changes.extend(self.drop_plans(past, now));
        changes
    }

    /// Drops plans, those with the earliest times first.
    fn drop_plans(&mut self, mut past: Vec<(Timestamp, PlanId)>, now: Timestamp) -> Vec<Change> {
        past.sort_unstable();
        let (mut streams, id) = (BTreeSet::new(), self.id());
        let mut changes = Vec::new();
        for (_, plan) in past {
            if let Some(joined) = self.plans.get_mut(&plan)
                && joined.ended.is_none()
            {
                // Whatever it has released lies in its epoch.
                joined.ended = joined.plan().epoch_end();
                let windows = joined.rounds.iter();
                let gone = windows.flat_map(|(start, round)| removals(id, &plan, *start, round));
                changes.extend(gone);
                self.release_locks(&plan);
            }
            let Some(joined) = self.plans.remove(&plan) else { continue };
            streams.extend(self.sum_up_spans(&joined));
            let (settled, ended) = (joined.settled, joined.ended);
            let totals = Record::Totals { plan, last: 0 };
            let gone = [joined.record(), Record::Mark { plan, settled, ended }, totals];
            changes.extend(gone.iter().map(|record| Change::remove(record.key(id))));
        }
        let record = |stream: StreamId| {
            let spans = self.summed_spans.get(&stream).cloned().unwrap_or_default();
            Record::Spans { stream, spans }
        };
        let records: Vec<Record> = streams.into_iter().map(record).collect();
        // They come first, because they replace what is deleted.
        let kept = records.into_iter().map(|record| self.put(now, record));
        kept.collect::<Vec<_>>().into_iter().chain(changes).collect()
    }

    /// Adds what an ended plan released to the summed spans. Returns its streams.
    fn sum_up_spans(&mut self, joined: &PlanState) -> Vec<StreamId> {
        let end = joined.ended.unwrap_or(joined.plan().from);
        let span = Window { start: joined.plan().from, end };
        let own = joined.released_streams().map(|(_, planned)| planned.stream);
        let own: Vec<StreamId> = own.collect();
        if span.start >= span.end {
            return Vec::new();
        }
        for stream in &own {
            let spans = self.summed_spans.entry(*stream).or_default();
            joined.plan().attributes.iter().for_each(|at| add_span(spans, *at, span));
        }
        own
    }

    /// Takes the spans of dropped plans from the ledger, before any running plan: they bound it.
    pub(super) fn take_spans(&mut self, records: &[StampedRecord]) {
        for record in records {
            if let Record::Spans { stream, spans } = &record.record {
                self.released_spans.entry(*stream).or_default().extend(spans.iter().copied());
                self.summed_spans.insert(*stream, spans.clone());
            }
        }
    }

    /// The plans that its ledger names.
    pub fn known_plans(&self) -> impl Iterator<Item = &PlanId> {
        self.plans.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other window of a minute, for a thousand windows, of two attributes.
    #[test]
    fn a_stream_in_every_other_window_has_few_spans_which_cover_all_that_it_released() {
        let minute = |n: u64| Timestamp(n * 60_000_000);
        let mut spans = Spans::new();
        let released: Vec<Window> =
            (0..1_000).map(|n| Window { start: minute(2 * n), end: minute(2 * n + 1) }).collect();
        for window in &released {
            add_span(&mut spans, 0, *window);
            add_span(&mut spans, 7, *window);
        }
        assert_eq!(spans.len(), 2 * MAX_SPANS);
        for attribute in [0, 7] {
            let covers = |own: &Window| {
                let mut of = spans.iter().filter(|(at, _)| *at == attribute);
                of.any(|(_, span)| span.start <= own.start && own.end <= span.end)
            };
            assert!(released.iter().all(covers));
            // The pauses that are not long past are still free.
            let late = Window { start: minute(1_801), end: minute(1_802) };
            assert!(!covers(&late));
        }
    }
}
