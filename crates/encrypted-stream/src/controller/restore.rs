//! Back from a ledger: what was released stays released.

use std::collections::HashMap;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::held::{Held, HeldStream, Remembered};
use super::identity::Identity;
use super::joined::Round;
use super::sessions::Session;
use super::totals::Totals;
use crate::annotation;
use crate::announced::Announced;
use crate::certificate::Deployment;
use crate::error::RestoreError;
use crate::ledger::{Change, Fence, LogEvent, LogLine, Record, Spent, Stamped, Step};
use crate::membership::Fixed;
use crate::messages::ControllerMessage;

/// What the controllers of a host share in its store, read once for all.
#[derive(Debug, Default)]
pub struct HostRecords {
    plans: HashMap<PlanId, Arc<Announced>>,
    memberships: HashMap<Digest, Arc<Fixed>>,
}

impl HostRecords {
    /// Reads the values that stand under [`Scope::Host`](crate::ledger::Scope).
    ///
    /// # Errors
    /// [`RestoreError`] if one cannot be read or a plan does not check out.
    pub fn read<'a>(
        values: impl IntoIterator<Item = &'a [u8]>,
        deployment: &Deployment,
    ) -> Result<Self, RestoreError> {
        let mut host = Self::default();
        for (position, value) in values.into_iter().enumerate() {
            let bad = RestoreError::BadRecord { position };
            let read = Stamped::read(value).map_err(|error| RestoreError::of(position, error));
            match read?.record {
                Record::Announcement { plan, signed } => {
                    let announced = Announced::open(&signed, deployment)
                        .map_err(|_| RestoreError::Plan { plan })?;
                    host.plans.insert(plan, Arc::new(announced));
                }
                Record::Membership { digest, membership } => {
                    let fixed = Fixed::from_ledger(digest, membership).map_err(|_| bad)?;
                    host.memberships.insert(digest, Arc::new(fixed));
                }
                _ => return Err(bad),
            }
        }
        Ok(host)
    }

    /// The plan of this id, if a controller of the host accepted it.
    #[must_use]
    pub fn plan(&self, id: &PlanId) -> Option<&Arc<Announced>> {
        self.plans.get(id)
    }
}

impl Controller {
    /// A controller as its ledger left it, with the streams that it held then.
    ///
    /// Unless the fence shows that the ledger is the latest, every window that has
    /// begun by now counts as released and as opened: only what the ledger holds
    /// is said again, as it was said. And a revocation or a stricter policy may be
    /// lost: nothing leaves of a stream before its owner has
    /// [annotated](Controller::annotate) it again. Commit the step before anything
    /// else.
    ///
    /// `values` stand under the controller's own scope. `now` is its clock: in
    /// replay, the watermark stored with the ledger, so anything up to that.
    ///
    /// # Errors
    /// [`RestoreError`]; with [`RestoreError::NoLedger`] if there is nothing:
    /// keys without a ledger start nowhere.
    pub fn restore<'a>(
        identity: Identity,
        deployment: Deployment,
        streams: Vec<HeldStream>,
        host: &HostRecords,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: Timestamp,
        fence: Option<Fence>,
    ) -> Result<(Self, Step<ControllerMessage>), RestoreError> {
        let mut controller = Self::empty(identity, deployment);
        let records = controller.read(values)?;
        let distrusted = records.iter().filter_map(restored_before).max();
        controller.restored = distrusted.map(|(_, at, _)| at);
        controller.lost_from = distrusted.map_or(Timestamp(0), |(.., since)| since);
        streams.into_iter().for_each(|stream| controller.hold(stream));
        // An old copy's own clock is old; the fence may know better.
        let fenced = fence.map_or(Timestamp(0), |fence| fence.clock);
        let now = now.max(controller.clock).max(fenced);
        controller.take_plans(&records, host)?;
        let distrusted = distrusted.map_or(0, |(sequence, ..)| sequence);
        let ended: Vec<_> = records.iter().filter_map(ended).collect();
        for (position, record) in records.into_iter().enumerate() {
            let handed_in = (record.sequence > distrusted).then_some(record.clock);
            controller.take(record.record, host, position, handed_in)?;
        }
        controller.close_ended(&ended);
        controller.settle_sessions();
        let current = fence.is_some_and(|fence| {
            fence.restored == controller.restored && fence.sequence <= controller.sequence
        });
        let changes = if current { Vec::new() } else { controller.distrust(now, fence) };
        Ok((controller, Step::new(changes, Vec::new())))
    }

    /// A controller whose keys are older than this: its ledger is lost, if it
    /// ever had one. Every window that has begun by now counts as released.
    pub fn create_again(
        identity: Identity,
        deployment: Deployment,
        now: Timestamp,
    ) -> (Self, Step<ControllerMessage>) {
        let (mut controller, mut step) = Self::create(identity, deployment, now);
        controller.clock = Timestamp(0);
        step.merge(Step::new(controller.distrust(now, None), Vec::new()));
        (controller, step)
    }

    /// Begins a history of its own: no copy of another, older or newer, passes for
    /// the latest of this one later on.
    ///
    /// What it may lack of what budgets have paid counts as paid at their highest rate.
    fn distrust(&mut self, now: Timestamp, fence: Option<Fence>) -> Vec<Change> {
        // Of streams still unconfirmed since the last time, what was lost then counts on.
        let waiting = self.streams.values().any(Held::is_suspended);
        let since = self.lost_since();
        self.lost_from = if waiting { since.min(self.lost_from) } else { since };
        let seen = fence.map_or(0, |fence| fence.sequence);
        self.sequence = self.sequence.max(seen);
        let before = self.restored.max(fence.and_then(|fence| fence.restored));
        let at = before.map_or(now, |before| now.max(Timestamp(before.0.saturating_add(1))));
        self.restored = Some(at);
        self.streams.values_mut().for_each(Held::suspend);
        self.unheld.values_mut().flatten().for_each(Remembered::suspend);
        let mut changes = vec![self.put(at, Record::Restored { at, since: self.lost_from })];
        let lost = Window { start: self.lost_from, end: at };
        for (stream, owner, policies) in self.known_choices() {
            changes.extend(self.forfeit(at, (stream, owner), &policies, lost, 0));
        }
        changes
    }

    /// Every stream that the ledger has a choice of, with all that was chosen.
    fn known_choices(&self) -> Vec<(StreamId, OwnerId, Vec<ResolvedPolicy>)> {
        let held = self.streams.iter().map(|(stream, held)| {
            (*stream, held.owner, held.policies().cloned().collect::<Vec<_>>())
        });
        let unheld = self.unheld.iter().filter_map(|(stream, remembered)| {
            let choices: Vec<_> = remembered.iter().filter_map(Remembered::choice).collect();
            let owner = choices.first()?.owner;
            Some((*stream, owner, choices.iter().map(|choice| choice.policy.clone()).collect()))
        });
        held.chain(unheld).collect()
    }

    /// Reads all records: whose they are, how far sequence and clock had come.
    fn read<'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<Stamped>, RestoreError> {
        let (mut records, mut ours) = (Vec::new(), false);
        for (position, value) in values.into_iter().enumerate() {
            let read = Stamped::read(value);
            let stamped = read.map_err(|error| RestoreError::of(position, error))?;
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

    /// Plans first, ended ones before those that run: what they released
    /// bounds the others.
    fn take_plans(&mut self, records: &[Stamped], host: &HostRecords) -> Result<(), RestoreError> {
        let mut marks = HashMap::new();
        for record in records {
            if let Record::Mark { plan, settled, ended } = &record.record {
                marks.insert(*plan, (*settled, *ended));
            }
        }
        let plans = records.iter().filter_map(|record| match &record.record {
            Record::Plan { plan } => Some(*plan),
            _ => None,
        });
        let mut plans: Vec<_> = plans.collect();
        plans.sort_by_key(|plan| marks.get(plan).is_none_or(|(_, ended)| ended.is_none()));
        for plan in plans {
            let gone = RestoreError::Plan { plan };
            let announced = host.plans.get(&plan).ok_or(gone)?;
            let position = announced.position(&self.id()).ok_or(gone)?;
            let mut joined = self.enter(announced, position).map_err(|_| gone)?;
            if let Some((settled, ended)) = marks.get(&plan) {
                (joined.settled, joined.ended) = (*settled, *ended);
            }
            let ended = joined.ended.is_some();
            // Tables of a plan that has ended are of no use any more.
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
            Record::Annotation { stream, since, owner, signed, .. } => {
                let opened = annotation::open(&signed, &owner).map_err(|_| bad)?;
                let choice = Remembered::Annotation(Box::new(opened), since, handed_in);
                self.remember(stream, choice);
            }
            Record::Revoked { stream, at } => self.remember(stream, Remembered::Revoked(at)),
            Record::Spent(spent) => self.take_spent(spent, host),
            Record::Opened { plan, window, opening_set, answer } => {
                if let Some(round) = self.round_of(&plan, window) {
                    round.opened = Some((opening_set, answer));
                }
            }
            Record::Session { stream, session, from, to, closed } => {
                let session = Session { session, from, to, closed };
                self.remember(stream, Remembered::Session(session));
            }
            Record::Erased { stream, at, signed } => self.note_erased(stream, at, signed),
            Record::Identity { .. }
            | Record::Restored { .. }
            | Record::Plan { .. }
            | Record::Mark { .. } => {}
            Record::Log(line) => self.take_line(&line),
            Record::Budget(record) => self.books.take(&record),
            Record::Pickers { plan, window, pickers } => {
                if let Some(round) = self.round_of(&plan, window) {
                    round.pickers = pickers;
                }
            }
            Record::Roster { digest } => self.rosters.extend([digest]),
            Record::Grant { at, owner, signed, certificate, handed, stopped, .. } => {
                let so_far = (handed, stopped);
                self.remember_grant((at, &owner), (&signed, &certificate), so_far, bad)?;
            }
            Record::Totals { plan, last } => {
                self.plans.get_mut(&plan).into_iter().for_each(|own| own.remember_totals(last));
            }
            Record::Announcement { .. } | Record::Membership { .. } => return Err(bad),
        }
        Ok(())
    }

    fn take_line(&mut self, line: &LogLine) {
        if let LogEvent::PlanAccepted { plan, .. } = &line.event
            && let Some(joined) = self.plans.get_mut(plan)
        {
            joined.accepted = Some(line.at);
            joined.begin_noise();
        }
        if let LogEvent::Released { plan, costs, .. } = &line.event
            && !costs.is_empty()
            && let Some(joined) = self.plans.get_mut(plan)
            && joined.totals.is_some()
        {
            joined.remember_told(&line.streams);
        }
    }

    /// Of a stream that is held now or later.
    fn remember(&mut self, stream: StreamId, remembered: Remembered) {
        match self.streams.get_mut(&stream) {
            Some(held) => held.remember(remembered),
            None => self.unheld.entry(stream).or_default().push(remembered),
        }
    }

    fn take_spent(&mut self, spent: Spent, host: &HostRecords) {
        let fixed = host.memberships.get(&spent.membership).cloned();
        if let Some(round) = self.round_of(&spent.plan, spent.window) {
            round.spent = Some((spent, fixed));
        }
    }

    fn round_of(&mut self, plan: &PlanId, window: Window) -> Option<&mut Round> {
        self.plans.get_mut(plan).map(|joined| joined.rounds.entry(window.start).or_default())
    }

    /// Windows of which the log says how they ended are closed.
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
                    let held = stream.and_then(|stream| self.streams.get_mut(&stream));
                    if let Some(held) = held {
                        held.sessions.extend(spent.window.end);
                    }
                }
            }
        }
    }
}

/// A window of which the log says how it ended.
fn ended(record: &Stamped) -> Option<(PlanId, Window)> {
    match &record.record {
        Record::Log(LogLine { event: LogEvent::Ended { plan, window, .. }, .. }) => {
            Some((*plan, *window))
        }
        _ => None,
    }
}

/// When and under which number a ledger was restored without being the latest, and
/// since when it may have lacked what was spent.
fn restored_before(record: &Stamped) -> Option<(u64, Timestamp, Timestamp)> {
    match record.record {
        Record::Restored { at, since } => Some((record.sequence, at, since)),
        _ => None,
    }
}
