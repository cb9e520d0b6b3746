//! Restart from a ledger: what was released stays released.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::identity::Identity;
use super::plan_state::WindowState;
use super::sessions::Session;
use super::stream_state::{HeldStream, StreamRecord, StreamState};
use super::totals::Totals;
use crate::annotation;
use crate::announced_plan::AnnouncedPlan;
use crate::certificate::Deployment;
use crate::error::RestoreError;
use crate::ledger::{
    Change, Fence, LogEvent, LogLine, Record, Share, SignedOpening, StampedRecord, Start, Step,
};
use crate::membership::FixedMembership;
use crate::messages::ControllerMessage;

/// What the controllers of a host share in its store, read once for all of them.
#[derive(Debug, Default)]
pub struct HostRecords {
    plans: HashMap<PlanId, Arc<AnnouncedPlan>>,
    memberships: HashMap<Digest, Arc<FixedMembership>>,
}

impl HostRecords {
    /// Reads the values under [`Scope::Host`](crate::ledger::Scope).
    ///
    /// # Errors
    /// [`RestoreError`] if a value cannot be read or a plan is not valid.
    pub fn read<'a>(
        values: impl IntoIterator<Item = &'a [u8]>,
        deployment: &Deployment,
    ) -> Result<Self, RestoreError> {
        let mut host = Self::default();
        for (position, value) in values.into_iter().enumerate() {
            let bad = RestoreError::BadRecord { position };
            let read = StampedRecord::read(value).map_err(|error| error.at(position));
            match read?.record {
                Record::Announcement { plan, signed } => {
                    let announced = AnnouncedPlan::open(&signed, deployment)
                        .map_err(|_| RestoreError::Plan { plan })?;
                    host.plans.insert(plan, Arc::new(announced));
                }
                Record::Listing { plan, listing } => {
                    let announced = AnnouncedPlan::open_list(&listing, deployment)
                        .map_err(|_| RestoreError::Plan { plan })?;
                    host.plans.insert(plan, Arc::new(announced));
                }
                Record::Membership { digest, membership } => {
                    let fixed =
                        FixedMembership::from_ledger(digest, membership).map_err(|_| bad)?;
                    host.memberships.insert(digest, Arc::new(fixed));
                }
                _ => return Err(bad),
            }
        }
        Ok(host)
    }

    /// The plan with this id, if a controller of the host accepted it.
    #[must_use]
    pub fn plan(&self, id: &PlanId) -> Option<&Arc<AnnouncedPlan>> {
        self.plans.get(id)
    }

    /// Removes the list that a plan follows from, which no controller of the host knows any
    /// more.
    #[must_use]
    pub fn forget_list(plan: PlanId) -> Change {
        Change::remove(Record::listing_key(plan))
    }

    /// Removes plans that no controller of the host knows any more, and the lists of epochs. The
    /// host calls it at its start, with all plans that its controllers know.
    #[must_use]
    pub fn forget_plans(&self, known: &BTreeSet<PlanId>) -> Vec<Change> {
        let unknown = self.plans.iter().filter(|(id, _)| !known.contains(id));
        let key = |(id, plan): (&PlanId, &Arc<AnnouncedPlan>)| match plan.plan().epoch {
            Some(_) => Record::listing_key(*id),
            None => Record::announcement_key(*id),
        };
        unknown.map(key).map(Change::remove).collect()
    }
}

impl Controller {
    /// A controller as its ledger left it, with the streams that it held then.
    ///
    /// Unless the fence shows that the ledger is the latest, every window that has begun by
    /// now counts as released and opened. The controller then only repeats answers that the
    /// ledger holds and its fence had. (Others may never have left, and another copy may have given
    /// other ones.) A revocation or a stricter policy may also be lost. So nothing of a
    /// stream is released until its owner has [annotated](Controller::annotate) it again.
    /// Commit the step before anything else.
    ///
    /// `values` are those under the controller's own scope. `now` is the controller's
    /// clock. In a replay that is at most the watermark stored with the ledger.
    ///
    /// # Errors
    /// [`RestoreError`]; [`RestoreError::NoLedger`] if there are no records, since keys
    /// without a ledger cannot start.
    pub fn restore<'a>(
        identity: Identity,
        deployment: Deployment,
        streams: Vec<HeldStream>,
        host: &HostRecords,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: Timestamp,
        start: Start,
    ) -> Result<(Self, Step<Vec<ControllerMessage>>), RestoreError> {
        let mut controller = Self::empty(identity, deployment);
        let records = controller.read(values)?;
        let fence = start.fence;
        let distrusted = records.iter().filter_map(restored_before).max();
        controller.restored_at = distrusted.map(|(_, at, _)| at);
        controller.lost_from = distrusted.map_or(Timestamp(0), |(.., since)| since);
        streams.into_iter().for_each(|stream| controller.hold(stream));
        // An old copy holds an old clock; the fence may hold a later one.
        let fenced = fence.map_or(Timestamp(0), |fence| fence.clock);
        let now = now.max(controller.clock).max(fenced);
        controller.take_spans(&records);
        controller.take_plans(&records, host, now)?;
        let distrusted = distrusted.map_or(0, |(sequence, ..)| sequence);
        let ended: Vec<_> = records.iter().filter_map(ended_window).collect();
        let is_latest = controller.meet_fence(&records, fence);
        let mut changes = Vec::new();
        for (position, record) in records.into_iter().enumerate() {
            if !is_latest && record.sequence > controller.fenced && is_answer(&record.record) {
                changes.push(Change::remove(record.record.key(controller.id())));
                continue;
            }
            let handed_in = (record.sequence > distrusted).then_some(record.clock);
            controller.take(record.record, host, position, handed_in)?;
        }
        controller.close_ended(&ended);
        controller.settle_sessions();
        if is_latest {
            changes.push(controller.begin(start));
        } else {
            changes.extend(controller.distrust(now, start));
        }
        Ok((controller, Step::new(changes, Vec::new())))
    }

    /// Whether the fence shows that the ledger is the latest: it holds the fence's commit, of the same
    /// start. Also finds out how far the fence has come in this history.
    fn meet_fence(&mut self, records: &[StampedRecord], fence: Option<Fence>) -> bool {
        self.fenced = records.iter().map(|record| record.fenced).max().unwrap_or(0);
        // Only the ledger's creation has no start before it.
        let (from, number, before) = records.iter().find_map(started).unwrap_or((0, 0, None));
        self.start = number;
        let Some(fence) = fence else { return false };
        if fence.start == number {
            // A start has one history. If this is a copy from the middle of it, all of it was fenced.
            self.fenced = self.fenced.max(fence.sequence.min(self.sequence));
        }
        let is_known = match fence.sequence >= from {
            true => fence.start == number,
            false => before == Some((fence.sequence, fence.start)),
        };
        is_known && fence.restored == self.restored_at && fence.sequence <= self.sequence
    }

    /// Records that this start continues from here, and the fence's position.
    fn begin(&mut self, start: Start) -> Change {
        self.start = start.number;
        let fence = start.fence.map(|fence| (fence.sequence, fence.start));
        self.put(self.clock, Record::Started { number: start.number, fence })
    }

    /// A controller whose keys are older than this call: its ledger, if it ever had one, is
    /// lost. Every window that has begun by now counts as released. `number` is that of a [`Start`].
    pub fn create_again(
        identity: Identity,
        deployment: Deployment,
        now: Timestamp,
        number: u64,
    ) -> (Self, Step<Vec<ControllerMessage>>) {
        let (mut controller, mut step) = Self::create(identity, deployment, now);
        controller.clock = Timestamp(0);
        let start = Start { number, fence: None };
        step.merge(Step::new(controller.distrust(now, start), Vec::new()));
        (controller, step)
    }

    /// Begins a new history, so that no copy of another history, older or newer, can later
    /// pass for the latest of this one.
    ///
    /// Charges to budgets that the ledger may lack count as paid at their highest rate.
    fn distrust(&mut self, now: Timestamp, start: Start) -> Vec<Change> {
        let fence = start.fence;
        // If streams are still unconfirmed since the last restore, losses count from that
        // time.
        let waiting = self.streams.values().any(StreamState::is_suspended);
        let since = self.lost_since();
        self.lost_from = if waiting { since.min(self.lost_from) } else { since };
        let seen = fence.map_or(0, |fence| fence.sequence);
        self.sequence = self.sequence.max(seen);
        let before = self.restored_at.max(fence.and_then(|fence| fence.restored));
        let at = before.map_or(now, |before| now.max(Timestamp(before.0.saturating_add(1))));
        self.restored_at = Some(at);
        self.streams.values_mut().for_each(StreamState::suspend);
        self.pending_records.values_mut().flatten().for_each(StreamRecord::suspend);
        let began = self.begin(start);
        let mut changes = vec![began, self.put(at, Record::Restored { at, since: self.lost_from })];
        let lost = Window { start: self.lost_from, end: at };
        for (stream, owner, policies) in self.known_choices() {
            changes.extend(self.forfeit(at, (stream, owner), &policies, lost, 0));
        }
        changes
    }

    /// Every stream with an annotation in the ledger, and all policies its owner chose.
    fn known_choices(&self) -> Vec<(StreamId, OwnerId, Vec<ResolvedPolicy>)> {
        let state = self.streams.iter().map(|(stream, state)| {
            (*stream, state.owner, state.policies().cloned().collect::<Vec<_>>())
        });
        let pending = self.pending_records.iter().filter_map(|(stream, remembered)| {
            let choices: Vec<_> = remembered.iter().filter_map(StreamRecord::choice).collect();
            let owner = choices.first()?.owner;
            Some((*stream, owner, choices.iter().map(|choice| choice.policy.clone()).collect()))
        });
        state.chain(pending).collect()
    }

    /// Reads all records: the controller's identity, the sequence number and the clock.
    fn read<'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<StampedRecord>, RestoreError> {
        let (mut records, mut ours) = (Vec::new(), false);
        for (position, value) in values.into_iter().enumerate() {
            let read = StampedRecord::read(value);
            let stamped = read.map_err(|error| error.at(position))?;
            self.sequence = self.sequence.max(stamped.sequence);
            self.clock = self.clock.max(stamped.clock);
            if let Record::Identity { controller } = stamped.record {
                ours = controller == self.id();
                if !ours {
                    return Err(RestoreError::OtherController);
                }
            }
            records.push(stamped);
        }
        if ours { Ok(records) } else { Err(RestoreError::NoLedger) }
    }

    /// Takes the plans in: ended ones first, because what they released bounds the running
    /// ones.
    fn take_plans(
        &mut self,
        records: &[StampedRecord],
        host: &HostRecords,
        now: Timestamp,
    ) -> Result<(), RestoreError> {
        let mut marks = HashMap::new();
        for record in records {
            if let Record::Mark { plan, settled, ended } = &record.record {
                marks.insert(*plan, (*settled, *ended));
            }
        }
        let plans = records.iter().filter_map(|record| match &record.record {
            Record::Plan { plan, at, held } => Some((*plan, *at, held)),
            _ => None,
        });
        let mut plans: Vec<_> = plans.collect();
        plans.sort_by_key(|(plan, ..)| marks.get(plan).is_none_or(|(_, ended)| ended.is_none()));
        for (plan, at, held) in plans {
            let gone = RestoreError::Plan { plan };
            let announced = host.plans.get(&plan).ok_or(gone)?;
            let position = announced.position(&self.id()).ok_or(gone)?;
            let mut joined = self.enter(announced, position).map_err(|_| gone)?;
            joined.held_elsewhere = held.iter().copied().collect();
            joined.accepted_at = Some(at);
            if let Some((settled, ended)) = marks.get(&plan) {
                (joined.settled, joined.ended) = (*settled, *ended);
            }
            joined.begin_noise();
            joined.begin_asked_again(now);
            let ended = joined.ended.is_some();
            // An ended plan needs no tables.
            if !ended {
                joined.totals = Totals::of(announced).map_err(|_| gone)?;
            }
            self.insert(joined);
            if ended {
                self.release_locks(&plan);
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        record: Record,
        host: &HostRecords,
        position: usize,
        handed_in: Option<Timestamp>,
    ) -> Result<(), RestoreError> {
        let bad = RestoreError::BadRecord { position };
        match record {
            choice @ Record::Annotation { .. } => self.take_choice(choice, handed_in).ok_or(bad)?,
            Record::Revoked { stream, at } => self.remember(stream, StreamRecord::Revoked(at)),
            spent @ (Record::Spent(_) | Record::Contributed(_)) => self.take_spent(spent, host),
            Record::Closed { plan, window, membership, .. } => {
                self.take_closed(&plan, window, membership);
            }
            opened @ (Record::Opened { .. } | Record::BoundedOpened { .. }) => {
                self.take_opened(opened);
            }
            Record::Session { stream, session, from, to, closed } => {
                let session = Session { session, from, to, closed };
                self.remember(stream, StreamRecord::Session(session));
            }
            copied @ Record::Cloned { .. } => self.take_copy(&copied),
            moved @ Record::Moved { .. } => self.take_moved(moved).ok_or(bad)?,
            Record::Erased { stream, at, signed } => self.note_erased(stream, at, signed),
            Record::Identity { .. }
            | Record::Restored { .. }
            | Record::Started { .. }
            | Record::Plan { .. }
            | Record::Spans { .. }
            | Record::Mark { .. } => {}
            Record::Log(line) => self.take_line(&line),
            Record::Budget(record) => self.books.take(&record),
            sets @ Record::Sets { .. } => self.sets.take(sets),
            Record::Pickers { plan, window, pickers } => self.take_pickers(&plan, window, pickers),
            Record::Roster { digest } => self.rosters.extend([digest]),
            Record::Grant { at, owner, signed, certificate, handed, stopped, .. } => {
                let so_far = (handed, stopped);
                self.remember_grant((at, &owner), (&signed, &certificate), so_far, bad)?;
            }
            Record::Totals { plan, last } => self.take_totals(&plan, last),
            attended @ Record::Attended { .. } => self.take_attended(attended, bad)?,
            epochs @ Record::Epochs { .. } => self.take_epochs(epochs),
            Record::Forgotten { until } => self.forgotten_until = self.forgotten_until.max(until),
            Record::Announcement { .. } | Record::Listing { .. } | Record::Membership { .. } => {
                return Err(bad);
            }
        }
        Ok(())
    }

    fn take_totals(&mut self, plan: &PlanId, last: u32) {
        self.plans.get_mut(plan).into_iter().for_each(|own| own.remember_totals(last));
    }

    /// Takes an annotation from the ledger; `None` if it is not the owner's.
    fn take_choice(&mut self, record: Record, handed_in: Option<Timestamp>) -> Option<()> {
        let Record::Annotation { stream, since, owner, signed, .. } = record else { return None };
        let certified = self.deployment.owner(&owner).ok()?;
        let opened = annotation::open(&signed, &certified).ok()?;
        let choice = Box::new((opened, owner.digest()));
        self.remember(stream, StreamRecord::Annotation(choice, since, handed_in));
        Some(())
    }

    /// Applies a record to a stream that is held now, or keeps it until the stream is
    /// handed over.
    pub(super) fn remember(&mut self, stream: StreamId, remembered: StreamRecord) {
        match self.streams.get_mut(&stream) {
            Some(state) => state.remember(remembered),
            None => self.pending_records.entry(stream).or_default().push(remembered),
        }
    }

    fn take_spent(&mut self, spent: Record, host: &HostRecords) {
        let spent = match spent {
            Record::Spent(spent) => spent.with(Share::Words),
            Record::Contributed(spent) => spent.with(Share::Committed),
            _ => return,
        };
        let fixed = host.memberships.get(&spent.membership).cloned();
        if let Some(round) = self.round_of(&spent.plan, spent.window) {
            round.spent = Some((spent, fixed));
        }
    }

    fn take_opened(&mut self, opened: Record) {
        let (plan, window, opened) = match opened {
            Record::Opened { plan, window, opening_set, answer } => {
                (plan, window, (opening_set, SignedOpening::Words(answer)))
            }
            Record::BoundedOpened { plan, window, opening_set, answer } => {
                (plan, window, (opening_set, SignedOpening::Committed(answer)))
            }
            _ => return,
        };
        if let Some(round) = self.round_of(&plan, window) {
            round.opened = Some(opened);
        }
    }

    fn take_pickers(&mut self, plan: &PlanId, window: Window, pickers: Vec<u32>) {
        if let Some(round) = self.round_of(plan, window) {
            round.pickers = pickers;
        }
    }

    fn round_of(&mut self, plan: &PlanId, window: Window) -> Option<&mut WindowState> {
        self.plans.get_mut(plan).map(|joined| joined.rounds.entry(window.start).or_default())
    }

    /// Closes windows whose end is in the log.
    fn close_ended(&mut self, ended: &[(PlanId, Window)]) {
        for (plan, window) in ended {
            let joined = self.plans.get_mut(plan);
            if let Some(round) = joined.and_then(|joined| joined.rounds.get_mut(&window.start)) {
                round.close();
            }
        }
    }

    /// Sessions had reached at least the end of the windows spent on them.
    pub(super) fn settle_sessions(&mut self) {
        for joined in self.plans.values() {
            for (spent, _) in joined.rounds.values().filter_map(|round| round.spent.as_ref()) {
                for position in &spent.accepted {
                    let stream = joined.own(*position).map(|planned| planned.stream);
                    let state = stream.and_then(|stream| self.streams.get_mut(&stream));
                    if let Some(state) = state {
                        state.sessions.extend(spent.window.end);
                    }
                }
            }
        }
    }
}

/// The window, if the record is a log line about the end of one.
fn ended_window(record: &StampedRecord) -> Option<(PlanId, Window)> {
    match &record.record {
        Record::Log(LogLine { event: LogEvent::Ended { plan, window, .. }, .. }) => {
            Some((*plan, *window))
        }
        _ => None,
    }
}

/// Whether the record makes this controller repeat an answer about a window.
fn is_answer(record: &Record) -> bool {
    matches!(
        record,
        Record::Spent(_)
            | Record::Contributed(_)
            | Record::Opened { .. }
            | Record::BoundedOpened { .. }
            | Record::Pickers { .. }
    )
}

/// Sequence number and number of a start, and what the fence had then.
type StartRecord = (u64, u64, Option<(u64, u64)>);

/// The last start.
fn started(record: &StampedRecord) -> Option<StartRecord> {
    match record.record {
        Record::Started { number, fence } => Some((record.sequence, number, fence)),
        _ => None,
    }
}

/// Sequence number and time at which an untrusted ledger was restored, and the time since
/// which it may have lacked spends.
fn restored_before(record: &StampedRecord) -> Option<(u64, Timestamp, Timestamp)> {
    match record.record {
        Record::Restored { at, since } => Some((record.sequence, at, since)),
        _ => None,
    }
}
