//! Membership epochs, the controller's side: it attends an epoch once, and accepts one list for
//! it. Both are durable before anything leaves.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::comply::Demand;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::list_sizes::ListSizes;
use super::plan_state::PlanState;
use super::stream_state::StreamState;
use crate::announced_plan::AnnouncedPlan;
use crate::epoch_list::{self, check_terms};
use crate::error::{PlanRefusalError, RestoreError, WindowRefusalError};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::mask::quorum::counted_population;
use crate::messages::{Attendance, ControllerMessage, EpochCall, ListEntry, ListedOwner};

/// The last epoch of a plan that a controller attended.
pub(super) struct AttendedEpoch {
    /// The attendance.
    pub(super) attendance: Attendance,
    /// As it was sent.
    pub(super) signed: Signed<Attendance>,
    /// When the controller attended the plan first, as the owners' log states.
    pub(super) since: Timestamp,
    /// The plan of the list that it accepted.
    pub(super) listed: Option<PlanId>,
    /// The most controllers in a list of its group before that one.
    pub(super) most: u32,
}

/// How often a stream may stand in attendances that are remembered, on average. A stream can be in
/// one plan for each of its attributes, so these are more than honest queries need.
const ATTENDED_PER_STREAM: usize = 16;

impl AttendedEpoch {
    /// The end of its last window. Epochs that begin earlier are over.
    fn end(&self) -> Timestamp {
        let Attendance { window, windows, .. } = &self.attendance;
        let size = window.end.0.saturating_sub(window.start.0);
        window.start.plus(alpheus_time::Span(size.saturating_mul(u64::from(*windows))))
    }

    /// The windows before this time that the service has not asked about since: the attended one as
    /// well, if it was in no list.
    fn missed_until(&self, until: Timestamp) -> Option<Window> {
        let from = if self.listed.is_some() { self.end() } else { self.attendance.window.start };
        (from < until).then_some(Window { start: from, end: until })
    }

    /// How many streams stand in it.
    fn streams(&self) -> usize {
        self.attendance.entry.owners.iter().map(|listed| listed.streams.len()).sum()
    }

    fn record(&self) -> Record {
        let (signed, since) = (self.signed.clone(), self.since);
        let (terms, most) = (self.attendance.terms, self.most);
        Record::Attended { terms, signed, since, listed: self.listed, most }
    }
}

impl Controller {
    /// Attends an epoch with all streams whose owners allow the plan, but for those that the call
    /// leaves out. A repeated call gets the same bytes, or fewer streams while no list has been
    /// accepted: a list must say what was attended with last, and only one is accepted.
    ///
    /// # Errors
    /// [`WindowRefusalError`] names the rule.
    pub fn handle_epoch_call(
        &mut self,
        call: &Verified<EpochCall>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let terms = call.terms.id();
        self.check_call(call, now)?;
        let (window, windows) = (call.window, call.windows);
        let last = self.epochs.get(&terms);
        let again = last.is_some_and(|last| last.attendance.window == window);
        let mut line = None;
        if !again {
            let from = last.map_or(self.attended_until, AttendedEpoch::end);
            if window.start < from {
                return Err(WindowRefusalError::AlreadyAttended);
            }
            let since = last.map_or(now.max(self.clock), |last| last.since);
            let missed = last.and_then(|last| last.missed_until(window.start));
            let mut owners = self.attending(&call.terms, terms, window, now)?;
            leave_out(&mut owners, &call.without)?;
            line = missed.and_then(|missed| not_asked(&call.terms, missed, &owners, now));
            let (controller, agreement) = (self.id(), self.identity.agreement().public());
            let entry = ListEntry { controller, agreement, owners };
            let attendance = Attendance { terms, window, windows, entry };
            let signed = Signed::new(&attendance, self.identity.signing());
            let attended = AttendedEpoch { attendance, signed, since, listed: None, most: 0 };
            self.epochs.insert(terms, attended);
        } else if let Some(last) = self.epochs.get_mut(&terms).filter(|own| own.listed.is_none()) {
            let before = last.attendance.entry.owners.clone();
            let mut owners = before.clone();
            leave_out(&mut owners, &call.without)?;
            if owners != before {
                last.attendance.entry.owners = owners;
                last.signed = Signed::new(&last.attendance, self.identity.signing());
            }
        }
        let attended = self.epochs.get(&terms).ok_or(WindowRefusalError::UnknownPlan)?;
        let (record, signed) = (attended.record(), attended.signed.clone());
        let mut changes = self.forget_attended(terms, now);
        let kept = [Some(record), line].into_iter().flatten();
        changes.extend(kept.map(|record| self.put(now, record)).collect::<Vec<_>>());
        Ok(Step::new(changes, vec![ControllerMessage::Attendance(signed)]))
    }

    /// Forgets the oldest attendances once there are many: the service can call for any number of
    /// plans. Of those plans no epoch is attended that begins before the last one ended, and so no
    /// window twice.
    fn forget_attended(&mut self, newest: PlanId, now: Timestamp) -> Vec<Change> {
        let most = self.streams.len().saturating_mul(ATTENDED_PER_STREAM);
        let mut streams: usize = self.epochs.values().map(AttendedEpoch::streams).sum();
        let (id, before) = (self.id(), self.attended_until);
        let mut changes = Vec::new();
        while streams > most {
            let others = self.epochs.iter().filter(|(terms, _)| **terms != newest);
            let oldest = others.min_by_key(|(terms, own)| (own.end(), **terms));
            let Some(terms) = oldest.map(|(terms, _)| *terms) else { break };
            let Some(gone) = self.epochs.remove(&terms) else { break };
            streams -= gone.streams();
            self.generations.forget(&terms);
            self.attended_until = self.attended_until.max(gone.end());
            changes.push(Change::remove(gone.record().key(id)));
        }
        if self.attended_until > before {
            changes.push(self.epochs_record(now));
        }
        changes
    }

    fn epochs_record(&mut self, now: Timestamp) -> Change {
        let (until, lists) = (self.attended_until, self.list_sizes.records());
        self.put(now, Record::Epochs { until, lists })
    }

    /// What does not depend on this controller's streams.
    fn check_call(
        &self,
        call: &Verified<EpochCall>,
        now: Timestamp,
    ) -> Result<(), WindowRefusalError> {
        if call.signer() != self.deployment.service() {
            return Err(WindowRefusalError::NotTheService);
        }
        check_terms(&call.terms).map_err(|_| WindowRefusalError::NotTerms)?;
        if !epoch_list::is_epoch_of(&call.terms, call.window, call.windows) {
            return Err(WindowRefusalError::WrongWindow);
        }
        if now < call.window.end.plus(call.terms.grace) {
            return Err(WindowRefusalError::NotEnded);
        }
        // What it attended, and which list it accepted, may be lost.
        if self.restored_at.is_some_and(|restored| call.window.start < restored) {
            return Err(WindowRefusalError::CountsAsReleased);
        }
        Ok(())
    }

    /// The owners with streams that may take part, by id.
    fn attending(
        &self,
        terms: &Plan,
        family: PlanId,
        window: Window,
        now: Timestamp,
    ) -> Result<Vec<ListedOwner>, WindowRefusalError> {
        let of_schema = |state: &&StreamState| {
            state.keys.as_ref().is_some_and(|keys| keys.schema() == terms.schema)
        };
        let state = self.streams.values().find(of_schema);
        let state = state.ok_or(WindowRefusalError::NothingToGive)?;
        let demand = Demand::of(terms, &state.schema, &state.layout);
        let demand = demand.map_err(|_| WindowRefusalError::NotTerms)?;
        let restless = self.restless(now);
        let mut owners: BTreeMap<OwnerId, Vec<StreamId>> = BTreeMap::new();
        for (stream, state) in self.streams.iter().filter(|(_, state)| of_schema(state)) {
            let holder = self.holder_of(*stream, &terms.attributes, family, window.start);
            let free = holder.is_none() && !restless.contains(&state.owner);
            if free && consents(state, terms, &demand, window, now) {
                owners.entry(state.owner).or_default().push(*stream);
            }
        }
        let owners = owners.into_iter().map(|(owner, streams)| ListedOwner { owner, streams });
        let owners: Vec<_> = owners.collect();
        if owners.is_empty() { Err(WindowRefusalError::NothingToGive) } else { Ok(owners) }
    }

    /// The running plan of another family that holds one of these attributes of a stream, and
    /// may release windows that end after `from`. The plan of an epoch has no others than the
    /// epoch's, so one of whose end this controller was not informed holds up nothing later.
    pub(super) fn holder_of(
        &self,
        stream: StreamId,
        attributes: &[u16],
        family: PlanId,
        from: Timestamp,
    ) -> Option<PlanId> {
        let holds = |holder: &PlanId| {
            let plan = self.plans.get(holder).map(PlanState::plan);
            let own = plan.and_then(|plan| plan.epoch).map_or(*holder, |epoch| epoch.terms);
            let is_over = plan.and_then(Plan::epoch_end).is_some_and(|end| end <= from);
            own != family && !is_over
        };
        let holders = attributes.iter().filter_map(|at| self.locks.get(&(stream, *at)));
        holders.flatten().copied().find(holds)
    }

    /// Takes the last attendance of a plan from the ledger.
    pub(super) fn take_attended(
        &mut self,
        record: Record,
        bad: RestoreError,
    ) -> Result<(), RestoreError> {
        let Record::Attended { signed, since, listed, most, .. } = record else { return Ok(()) };
        let key = self.identity.signing().verifying_key();
        let attendance = signed.open(&key).map_err(|_| bad)?.into_inner();
        let terms = attendance.terms;
        self.epochs.insert(terms, AttendedEpoch { attendance, signed, since, listed, most });
        Ok(())
    }

    /// Takes from the ledger what stays of other epochs.
    pub(super) fn take_epochs(&mut self, record: Record) {
        if let Record::Epochs { until, lists } = record {
            (self.attended_until, self.list_sizes) = (until, ListSizes::of(lists));
        }
    }

    /// Checks a list against what this controller attended with.
    ///
    /// # Errors
    /// [`PlanRefusalError`] names the rule.
    pub(super) fn check_list(
        &self,
        announced: &AnnouncedPlan,
        position: u32,
    ) -> Result<(), PlanRefusalError> {
        let plan = announced.plan();
        let Some(epoch) = plan.epoch else { return Ok(()) };
        if self.restored_at.is_some_and(|restored| plan.from < restored) {
            return Err(PlanRefusalError::EpochBeforeRestore);
        }
        let same = |last: &&AttendedEpoch| {
            (last.attendance.window.start, last.attendance.windows) == (plan.from, epoch.windows)
        };
        let attended = self.epochs.get(&epoch.terms).filter(same);
        let attended = attended.ok_or(PlanRefusalError::NotAttended)?;
        match attended.listed {
            // Its plan is over and dropped: nothing shows any more what it released.
            Some(listed) if listed == announced.id() => return Err(PlanRefusalError::Ended),
            Some(_) => return Err(PlanRefusalError::OtherList),
            None => {}
        }
        let mut own: Vec<(StreamId, OwnerId)> = Vec::new();
        for listed in &attended.attendance.entry.owners {
            own.extend(listed.streams.iter().map(|stream| (*stream, listed.owner)));
        }
        own.sort_unstable();
        let stated = plan.streams.iter().filter(|planned| planned.controller == position);
        if !stated.map(|planned| (planned.stream, planned.owner)).eq(own) {
            return Err(PlanRefusalError::EntryChanged { position });
        }
        check_size(announced, position)
    }

    /// Notes the list of an epoch, and the plan in the owners' log: once, unless its streams
    /// change.
    pub(super) fn note_list(&mut self, announced: &AnnouncedPlan, now: Timestamp) -> Vec<Change> {
        let plan = announced.plan();
        let Some(epoch) = plan.epoch else { return Vec::new() };
        let Some(attended) = self.epochs.get_mut(&epoch.terms) else { return Vec::new() };
        // A list that is repeated is of an epoch before the one that was attended last.
        if attended.attendance.window.start != plan.from {
            return Vec::new();
        }
        let controllers = announced.controllers();
        if attended.listed.replace(announced.id()).is_none() {
            attended.most = self.list_sizes.note(plan, controllers);
        }
        let (at, record) = (attended.since, attended.record());
        let owners = &attended.attendance.entry.owners;
        let streams: Vec<StreamId> =
            owners.iter().flat_map(|listed| listed.streams.clone()).collect();
        let (terms, window) = (epoch.terms, attended.attendance.window);
        let (listed, most) = (controllers, attended.most);
        let shrunk = (listed.saturating_mul(2) < most).then(|| {
            let event = LogEvent::SmallList { plan: terms, window, listed, most };
            Record::Log(LogLine { at: window.end, streams: streams.clone(), event })
        });
        let (name, consumer) = (plan.name.clone(), plan.consumer.clone());
        let (sealed, verified) = (plan.sealed_to.is_some(), plan.integrity.is_verified());
        let plan = epoch.terms;
        let event = LogEvent::PlanAccepted { plan, name, consumer, sealed, verified };
        let line = Record::Log(LogLine { at, streams, event });
        let kept = [record, line].into_iter().chain(shrunk);
        let kept = kept.map(|record| self.put(now, record));
        let mut changes: Vec<Change> = kept.collect();
        changes.extend(self.put_unasked_before(&announced.id(), plan, now));
        changes.push(self.epochs_record(now));
        changes.extend(self.drop_past_epochs(announced.id(), now));
        changes
    }
}

/// By a verified query: the line for the owners' log about windows that nobody asked about.
fn not_asked(
    terms: &Plan,
    windows: Window,
    owners: &[ListedOwner],
    at: Timestamp,
) -> Option<Record> {
    if !terms.integrity.is_verified() {
        return None;
    }
    let streams = owners.iter().flat_map(|listed| listed.streams.clone()).collect();
    let event = LogEvent::NotSummoned { plan: terms.id(), name: terms.name.clone(), windows };
    Some(Record::Log(LogLine { at, streams, event }))
}

/// Leaves streams out, and owners of whom none is left.
fn leave_out(
    owners: &mut Vec<ListedOwner>,
    without: &[StreamId],
) -> Result<(), WindowRefusalError> {
    let without: BTreeSet<&StreamId> = without.iter().collect();
    owners.retain_mut(|listed| {
        listed.streams.retain(|stream| !without.contains(stream));
        !listed.streams.is_empty()
    });
    if owners.is_empty() { Err(WindowRefusalError::NothingToGive) } else { Ok(()) }
}

/// Whether the owner allows the terms now, for data of the window.
fn consents(
    state: &StreamState,
    terms: &Plan,
    demand: &Demand<'_>,
    window: Window,
    now: Timestamp,
) -> bool {
    let waits = !state.is_confirmed_for(window) || !state.copies.is_without_any_in(window);
    if state.revoked.is_some() || state.is_barred || waits || !state.is_here(window) {
        return false;
    }
    let current = state.current().filter(|taken| now < taken.annotation.valid_to);
    current.is_some_and(|taken| {
        let metadata = &taken.annotation.metadata;
        let fits = terms.group.iter().all(|value| metadata.contains(value));
        fits && demand.allowed_by(&taken.annotation.policy).is_ok()
    })
}

/// Whether enough owners are listed: if all have data, this controller must count the plan's
/// minimum.
fn check_size(announced: &AnnouncedPlan, position: u32) -> Result<(), PlanRefusalError> {
    let (plan, controllers) = (announced.plan(), announced.controllers());
    // Who is alone in a list opens only what one owner allows, without colluders.
    if controllers == 1 && (plan.population.min > 1 || plan.alpha.numerator > 0) {
        return Err(PlanRefusalError::ListedAlone);
    }
    let others = (0..controllers).filter(|other| *other != position);
    let others: Vec<u32> = others.map(|other| announced.owners(other)).collect();
    let own = announced.owners(position);
    // Of two controllers, each may trust the other: the token depends on it.
    let counted = counted_population(own, &others, announced.discounted(), controllers, true);
    if counted < u64::from(plan.population.min) {
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        return Err(PlanRefusalError::ListTooSmall { counted, needed: plan.population.min });
    }
    Ok(())
}
