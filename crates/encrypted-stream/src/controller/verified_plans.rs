//! What is particular about verified plans: windows that nobody asked about, and what stays of
//! those that are closed.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Verified;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Span, Timestamp, Window};

use super::Controller;
use super::plan_state::PlanState;
use super::presences::check_order;
use crate::ledger::{Change, LogEvent, LogLine, Record, opened_key};
use crate::messages::Summons;

/// Windows of a plan of which it is known what was asked. There are more only if the service asks about
/// windows far apart.
const ASKED: usize = 1024;

/// What the service has asked about the windows of a verified plan, since the start.
#[derive(Default)]
pub(super) struct SummonsHistory {
    /// Windows that end by then are in the owners' log, if streams are missing in them.
    until: Option<Timestamp>,
    /// Of later windows, by their start: the streams that the last summons named, by position.
    windows: BTreeMap<Timestamp, BTreeSet<u32>>,
    /// The last line, and the windows in it.
    last: Option<(Window, LogLine)>,
}

/// Lines of owners' logs about windows that nobody asked about.
#[derive(Default)]
pub(super) struct UnaskedLines {
    pub(super) new: Vec<Record>,
    /// Lines that new ones take the place of, or that are no longer true.
    pub(super) gone: Vec<Record>,
}

impl UnaskedLines {
    fn write(&mut self, line: &LogLine) {
        self.new.push(Record::Log(line.clone()));
    }

    fn strike(&mut self, line: LogLine) {
        let (line, before) = (Record::Log(line), self.new.len());
        self.new.retain(|new| *new != line);
        if self.new.len() == before {
            self.gone.push(line);
        }
    }
}

impl Controller {
    /// Sums of no stream; none at all unless the plan is verified.
    pub(super) fn no_sums(&self, plan: &PlanId) -> Vec<u64> {
        let joined = self.plans.get(plan).filter(|joined| joined.is_verified());
        joined.map_or_else(Vec::new, |joined| vec![0; joined.plan().release.outputs()])
    }

    /// Notes a summons that is answered. Says what owners read of windows before it; if it is late, its
    /// streams are taken out of what they have read.
    pub(super) fn note_summons(&mut self, summons: &Summons, now: Timestamp) -> UnaskedLines {
        let mut lines = self.tell_unasked(&summons.plan, summons.window.start, now);
        if let Some(joined) = self.plans.get_mut(&summons.plan).filter(|own| own.is_verified()) {
            joined.note_asked(summons, &mut lines);
        }
        lines
    }

    /// Notes a summons that is refused. It asked, too, if it is well-formed: of a window that is over, and
    /// about own streams alone, so that it takes little memory.
    pub(super) fn note_refused(&mut self, summons: &Verified<Summons>, now: Timestamp) {
        let by_service = summons.signer() == self.deployment.service();
        let joined = self.plans.get_mut(&summons.plan).filter(|own| own.is_verified());
        let Some(joined) = joined.filter(|own| by_service && own.position == summons.controller)
        else {
            return;
        };
        let (plan, window) = (joined.plan(), summons.window);
        let is_over = plan.window_at(window.start) == window && window.end <= now;
        let is_one = window.start.floor(plan.window) == window.start && window.start >= plan.from;
        let fits = is_over && is_one && check_order(joined, &summons.streams).is_ok();
        if fits && joined.asked.windows.len() < ASKED {
            let named = || summons.streams.iter().map(|stream| stream.position).collect();
            joined.asked.windows.entry(summons.window.start).or_insert_with(named);
        }
    }

    /// What owners read of a plan's windows up to this time: that nobody asked about some of their
    /// streams. It does not rest on what the service says of the windows, and is about streams whose
    /// owners share their data.
    pub(super) fn tell_unasked(
        &mut self,
        plan: &PlanId,
        until: Timestamp,
        now: Timestamp,
    ) -> UnaskedLines {
        let streams = &self.streams;
        let shares = |id: &StreamId, windows: Window| {
            let own = streams.get(id).filter(|own| own.revoked.is_none());
            own.is_some_and(|own| own.tenure.covers(windows))
        };
        let joined = self.plans.get_mut(plan).filter(|joined| joined.is_verified());
        joined.map_or_else(UnaskedLines::default, |own| own.tell_unasked(until, now, shares))
    }

    /// The same, as changes of the ledger.
    pub(super) fn put_unasked(
        &mut self,
        plan: &PlanId,
        until: Timestamp,
        now: Timestamp,
    ) -> Vec<Change> {
        let UnaskedLines { new, gone } = self.tell_unasked(plan, until, now);
        let id = self.id();
        let mut changes: Vec<Change> = gone.iter().map(|r| Change::remove(r.key(id))).collect();
        changes.extend(new.into_iter().map(|record| self.put(now, record)));
        if !gone.is_empty() {
            // The ledger's last sequence number may have been in a line that is gone.
            changes.push(self.put(now, Record::Identity { controller: id }));
        }
        changes
    }

    /// When a query's next list is accepted: what owners read of its last one, and of those of other
    /// queries that end by themselves.
    pub(super) fn put_unasked_before(
        &mut self,
        newest: &PlanId,
        terms: PlanId,
        now: Timestamp,
    ) -> Vec<Change> {
        let by_itself = |own: &PlanState| own.ended.is_none() && own.is_past(now);
        let is_over = |own: &&PlanState| own.family() == terms || by_itself(own);
        let others = self.plans.values().filter(|own| own.id() != *newest);
        let before = others.filter(is_over);
        let before =
            before.filter_map(|own| Some((own.plan().from, own.id(), own.plan().epoch_end()?)));
        let mut before: Vec<_> = before.collect();
        before.sort_unstable();
        before.iter().flat_map(|(_, plan, end)| self.put_unasked(plan, *end, now)).collect()
    }

    /// What remains of a closed window: digests of the answers. Repeated, it changes
    /// nothing more.
    pub(super) fn keep_digests(&mut self, now: Timestamp, digests: Option<Record>) -> Vec<Change> {
        let Some(Record::Closed { plan, window, .. }) = &digests else { return Vec::new() };
        let opened = Change::remove(opened_key(self.id(), plan, window.start));
        digests.map(|record| self.put(now, record)).into_iter().chain([opened]).collect()
    }

    /// Takes what stays of a closed window from the ledger.
    pub(super) fn take_closed(&mut self, plan: &PlanId, window: Window, membership: Digest) {
        let Some(joined) = self.plans.get_mut(plan) else { return };
        let round = joined.rounds.entry(window.start).or_default();
        (round.closed, round.left) = (true, Some(membership));
    }
}

impl PlanState {
    /// Before a window of a verified plan is closed: digests of what this controller said.
    pub(super) fn digests(&self, plan: PlanId, window: Window) -> Option<Record> {
        let round = self.rounds.get(&window.start).filter(|_| self.is_verified())?;
        let (spent, _) = round.spent.as_ref()?;
        let membership = spent.membership;
        let opening = round.opened.as_ref().map(|(_, answer)| answer.digest());
        Some(Record::Closed { plan, window, membership, token: spent.answer.digest(), opening })
    }

    /// A verified plan of one window is accepted: nobody has asked about it before.
    pub(super) fn begin_asked(&mut self) {
        if self.is_verified() && self.plan().epoch.is_some() {
            self.asked.until = Some(self.plan().from);
        }
    }

    /// The controller starts again: nobody knows any more which summonses came before.
    pub(super) fn begin_asked_again(&mut self, now: Timestamp) {
        self.asked.until = Some(self.over_until(now));
    }

    /// When the service ends the plan: until when owners read of windows that it did not ask about. The last
    /// that it asked about or, of a listed plan, the last that is over.
    pub(super) fn asked_until(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.asked.windows.last_key_value();
        let asked = last.map(|(start, _)| self.plan().window_at(*start).end);
        asked.max(self.plan().epoch_end().map(|end| end.min(self.over_until(now))))
    }

    /// The end of the last window that is over, with its grace period.
    fn over_until(&self, now: Timestamp) -> Timestamp {
        let over = Timestamp(now.0.saturating_sub(self.plan().grace.0));
        over.floor(self.plan().window).max(self.plan().from)
    }

    fn note_asked(&mut self, summons: &Summons, lines: &mut UnaskedLines) {
        let window = summons.window;
        let named: BTreeSet<u32> = summons.streams.iter().map(|stream| stream.position).collect();
        match self.asked.until.get_or_insert(window.start) {
            until if *until > window.start => self.take_back(window, &named, lines),
            _ => drop(self.asked.windows.insert(window.start, named)),
        }
    }

    /// Takes streams of a late summons out of the last line.
    fn take_back(&mut self, late: Window, named: &BTreeSet<u32>, lines: &mut UnaskedLines) {
        let is_inside = |windows: &Window| windows.start <= late.start && late.end <= windows.end;
        let positions = Vec::from_iter(named.iter().copied());
        let named: BTreeSet<StreamId> = self.streams_at(&positions).collect();
        let last = self.asked.last.take_if(|(windows, line)| {
            is_inside(windows) && line.streams.iter().any(|stream| named.contains(stream))
        });
        let Some((windows, line)) = last else { return };
        let (at, all) = (line.at, line.streams.clone());
        lines.strike(line);
        let others = all.iter().filter(|stream| !named.contains(*stream));
        let others: Vec<StreamId> = others.copied().collect();
        let before = Window { start: windows.start, end: late.start };
        let after = Window { start: late.end, end: windows.end };
        for (part, streams) in [(before, all.clone()), (late, others), (after, all)] {
            if part.start < part.end && !streams.is_empty() {
                self.write_unasked(part, streams, at, lines);
            }
        }
    }

    fn tell_unasked(
        &mut self,
        until: Timestamp,
        at: Timestamp,
        shares: impl Fn(&StreamId, Window) -> bool,
    ) -> UnaskedLines {
        let mut lines = UnaskedLines::default();
        // Windows before the first that anything is heard of may be from before all have accepted.
        let mut from = *self.asked.until.get_or_insert(until);
        while from < until {
            let (windows, mut missed) = self.missed(from, until);
            missed.retain(|stream| shares(stream, windows));
            if !missed.is_empty() {
                self.write_unasked(windows, missed, at, &mut lines);
            }
            from = windows.end;
        }
        self.asked.until = Some(from);
        self.asked.windows = self.asked.windows.split_off(&from);
        lines
    }

    /// From a window on: the next windows with the same answer, and own streams that the service has not
    /// asked about in them.
    fn missed(&self, from: Timestamp, until: Timestamp) -> (Window, Vec<StreamId>) {
        let window = self.plan().window_at(from);
        let asked = self.asked.windows.get(&from);
        let none = BTreeSet::new();
        let named = asked.unwrap_or(&none);
        let own = self.own_streams().filter(|(at, _)| !named.contains(at));
        let missed = own.map(|(_, planned)| planned.stream).collect();
        if asked.is_some() {
            return (window, missed);
        }
        let next = self.asked.windows.range(window.end..).next().map(|(start, _)| *start);
        let end = next.map_or(until, |next| next.min(until));
        (Window { start: from, end: end.max(window.end) }, missed)
    }

    /// Writes of streams in windows. A line right after another one takes its place: a device that is
    /// off costs a line a day, and not one for each window.
    fn write_unasked(
        &mut self,
        windows: Window,
        streams: Vec<StreamId>,
        at: Timestamp,
        lines: &mut UnaskedLines,
    ) {
        let before = self.asked.last.take().filter(|(before, line)| {
            let is_next = before.end == windows.start && line.streams == streams;
            is_next && windows.end <= before.start.plus(Span::DAY)
        });
        let start = before.as_ref().map_or(windows.start, |(before, _)| before.start);
        let windows = Window { start, end: windows.end };
        let line = self.not_summoned(windows, streams, at);
        lines.write(&line);
        self.asked.last = Some((windows, line));
        before.into_iter().for_each(|(_, line)| lines.strike(line));
    }

    fn not_summoned(&self, windows: Window, streams: Vec<StreamId>, at: Timestamp) -> LogLine {
        let (plan, name) = (self.family(), self.plan().name.clone());
        LogLine { at, streams, event: LogEvent::NotSummoned { plan, name, windows } }
    }
}
