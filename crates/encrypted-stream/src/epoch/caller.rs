//! The service's side of epochs: it calls, collects attendances, and fixes one list for each
//! epoch.
//!
//! The list is a record in the service's store before anybody sees it, and is never drawn
//! again: a restarted service repeats it. An epoch that gets no list is a record as well.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::{Span, Timestamp, Window};

use super::records::{EpochOutcome, EpochProgress, EpochRecord};
use crate::announced_plan::AnnouncedPlan;
use crate::certificate::{Certificate, Deployment, fingerprint};
use crate::epoch_list::{check_terms, is_epoch_of, plan_of};
use crate::error::{MessageError, PlanShapeError, ReleaseError, WindowRefusalError};
use crate::ledger::{Change, Step};
use crate::mask::params::MaskPreference;
use crate::messages::{
    Attendance, EpochCall, List, ListEntry, ListedOwner, ServiceMessage, WindowRefusal,
};

/// What a caller does.
#[derive(Clone, Debug)]
pub enum EpochOutput {
    /// A message to each of these controllers.
    Call {
        /// Those that have not answered.
        to: Vec<ControllerId>,
        /// The call.
        message: ServiceMessage,
    },
    /// The epoch has its list. A coordinator of this plan runs its windows.
    Listed(Arc<AnnouncedPlan>),
    /// The epoch has none, and its windows do not open.
    NotListed {
        /// Its first window.
        window: Window,
        /// Why.
        reason: ReleaseError,
        /// Controllers that did not attend, by reason.
        refused: BTreeMap<WindowRefusalError, u32>,
    },
}

impl EpochOutput {
    /// The windows that end with a step since they got no list. Their rows belong in the same
    /// commit as the step's records.
    pub fn in_step(step: &Step<Vec<Self>>) -> impl Iterator<Item = &Self> {
        let outputs = step.dangerous_preview().iter();
        outputs.filter(|output| matches!(output, EpochOutput::NotListed { .. }))
    }
}

/// After how long a controller is called again whose clock was behind.
const RETRY: Span = Span(500_000);

/// How often a controller is called for an epoch, to leave out more streams each time.
const MAX_CALLS: u32 = 8;
/// How many streams a controller is asked to leave out.
const MAX_LEFT_OUT: usize = 1 << 16;

/// An attendance whose signature and content were checked.
pub struct VerifiedAttendance {
    attendance: Attendance,
    /// Its streams that are not that owner's at this controller, as far as the service knows.
    misplaced: Vec<StreamId>,
}

/// A controller that was called.
pub(super) struct Candidate {
    pub(super) certificate: Signed<Certificate>,
    key: VerifyingKey,
    pub(super) attended: Option<Attendance>,
    declined: Option<WindowRefusalError>,
    /// If it is to leave streams out: a call of its own.
    own_call: Option<Signed<EpochCall>>,
    /// How often that was changed.
    calls: u32,
}

impl Candidate {
    fn is_waited_for(&self) -> bool {
        self.attended.is_none() && self.declined.is_none()
    }
}

/// An epoch that has no list yet.
pub(super) struct PendingEpoch {
    pub(super) call: Signed<EpochCall>,
    pub(super) window: Window,
    pub(super) windows: u32,
    deadline: Timestamp,
    /// When those are called again whose clocks were behind.
    again: Option<Timestamp>,
    pub(super) called: BTreeMap<ControllerId, Candidate>,
    /// Those who are listed only if there is no list without them.
    pub(super) last: BTreeSet<ControllerId>,
    /// With which controller an owner takes part.
    homes: HashMap<OwnerId, ControllerId>,
    /// How many have neither attended nor declined.
    unanswered: usize,
}

impl PendingEpoch {
    /// The call that a controller has to answer.
    fn call_of<'a>(&'a self, called: &'a Candidate) -> &'a Signed<EpochCall> {
        called.own_call.as_ref().unwrap_or(&self.call)
    }

    /// Streams of owners who already take part with another controller.
    fn of_second_homes(&self, entry: &ListEntry) -> Vec<StreamId> {
        let elsewhere = |listed: &&ListedOwner| {
            self.homes.get(&listed.owner).is_some_and(|home| *home != entry.controller)
        };
        let again = entry.owners.iter().filter(elsewhere);
        again.flat_map(|listed| listed.streams.iter().copied()).collect()
    }

    /// Calls a controller once more, to attend without these streams.
    fn call_without(
        &mut self,
        controller: ControllerId,
        streams: &[StreamId],
        key: &SigningKey,
    ) -> Option<EpochOutput> {
        let known = self.called.get(&controller)?;
        let mut call = self.call_of(known).open(&key.verifying_key()).ok()?.into_inner();
        let before = call.without.len();
        call.without.extend(streams);
        call.without.sort_unstable();
        call.without.dedup();
        let is_new = call.without.len() > before;
        let called = self.called.get_mut(&controller)?;
        // The same call is not sent twice: the controller is absent.
        if !is_new || called.calls >= MAX_CALLS || call.without.len() > MAX_LEFT_OUT {
            return None;
        }
        let call = Signed::new(&call, key);
        (called.own_call, called.calls) = (Some(call.clone()), called.calls + 1);
        let message = ServiceMessage::EpochCall(call);
        Some(EpochOutput::Call { to: vec![controller], message })
    }

    fn waiting(&self) -> Vec<ControllerId> {
        let waiting = self.called.iter().filter(|(_, called)| called.is_waited_for());
        waiting.map(|(controller, _)| *controller).collect()
    }

    /// Takes an attendance whose owners take part with nobody else.
    fn take(&mut self, attendance: Attendance) {
        let from = attendance.entry.controller;
        let Some(called) = self.called.get_mut(&from) else { return };
        self.unanswered -= usize::from(called.is_waited_for());
        self.homes.extend(attendance.entry.owners.iter().map(|listed| (listed.owner, from)));
        called.attended = Some(attendance);
    }

    fn take_refusal(&mut self, from: &ControllerId, reason: WindowRefusalError) {
        let Some(called) = self.called.get_mut(from) else { return };
        self.unanswered -= usize::from(called.is_waited_for());
        called.declined = Some(reason);
    }

    /// Controllers that declined, by reason.
    fn refused(&self) -> BTreeMap<WindowRefusalError, u32> {
        let mut counts = BTreeMap::new();
        for reason in self.called.values().filter_map(|called| called.declined) {
            *counts.entry(reason).or_insert(0) += 1;
        }
        counts
    }

    /// Whether more controllers than may collude know the epoch, or a later one, from a state of
    /// the service that was lost.
    fn is_of_lost_state(&self, colluders: u32) -> bool {
        let knows =
            |called: &&Candidate| called.declined == Some(WindowRefusalError::AlreadyAttended);
        self.called.values().filter(knows).count() > colluders as usize
    }
}

/// The service's side of the epochs of one plan.
pub struct Caller {
    pub(super) terms: Plan,
    pub(super) id: PlanId,
    pub(super) consumer: Option<Signed<Certificate>>,
    pub(super) key: Arc<SigningKey>,
    pub(super) deployment: Deployment,
    presences: Span,
    pub(super) masks: Option<MaskPreference>,
    last: BTreeSet<ControllerId>,
    pub(super) calling: Option<PendingEpoch>,
    /// Epochs that are not over, and the last one.
    pub(super) epochs: BTreeMap<Timestamp, EpochRecord>,
}

impl Caller {
    /// For a plan without roster. `presences` is how long an epoch waits for attendances.
    ///
    /// # Errors
    /// [`PlanShapeError`] if the plan cannot be the terms of epochs.
    pub fn new(
        terms: Plan,
        consumer: Option<Signed<Certificate>>,
        key: Arc<SigningKey>,
        deployment: Deployment,
        presences: Span,
        masks: Option<MaskPreference>,
    ) -> Result<Self, PlanShapeError> {
        check_terms(&terms)?;
        let id = terms.id();
        let (last, calling, epochs) = (BTreeSet::new(), None, BTreeMap::new());
        Ok(Self { terms, id, consumer, key, deployment, presences, masks, last, calling, epochs })
    }

    /// From the next call on, these are listed only if there is no list without them.
    pub fn list_last(&mut self, controllers: BTreeSet<ControllerId>) {
        self.last = controllers;
    }

    /// Id of the plan.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// The plan that lists are made for.
    #[must_use]
    pub fn terms(&self) -> &Plan {
        &self.terms
    }

    /// The first window of the plan is due. Calls the controllers with these certificates. An
    /// epoch that is fixed is repeated, and one that is over is left alone.
    pub fn call(
        &mut self,
        window: Window,
        controllers: &[Signed<Certificate>],
        now: Timestamp,
    ) -> Step<Vec<EpochOutput>> {
        if let Some(known) = self.epochs.get(&window.start) {
            return self.outcome(known, BTreeMap::new());
        }
        if self.progress(window.start) == EpochProgress::Over {
            return Step::default();
        }
        let windows = 1;
        let begun = self.calling.as_ref().is_some_and(|calling| calling.window == window);
        if begun || !is_epoch_of(&self.terms, window, windows) {
            return Step::default();
        }
        let deadline = now.plus(self.presences);
        let terms = self.terms.clone();
        let without = Vec::new();
        let call = EpochCall { terms, window, windows, answer_by: deadline, without };
        let called = controllers.iter().filter_map(|signed| {
            let certificate = self.deployment.controller(signed).ok()?;
            let (key, id) = (certificate.party.verifying, fingerprint(&certificate));
            let (certificate, attended, declined) = (signed.clone(), None, None);
            let (own_call, calls) = (None, 0);
            Some((id, Candidate { certificate, key, attended, declined, own_call, calls }))
        });
        let called: BTreeMap<ControllerId, Candidate> = called.collect();
        let call = Signed::new(&call, &self.key);
        let (again, unanswered, homes) = (None, called.len(), HashMap::new());
        let last = self.last.clone();
        self.calling = Some(PendingEpoch {
            call,
            window,
            windows,
            deadline,
            again,
            called,
            last,
            homes,
            unanswered,
        });
        self.ask()
    }

    /// The call, to those that have not answered.
    pub fn ask(&self) -> Step<Vec<EpochOutput>> {
        let Some(calling) = &self.calling else { return Step::default() };
        let own = |id: &ControllerId| calling.called.get(id)?.own_call.as_ref();
        let (apart, to): (Vec<_>, Vec<_>) =
            calling.waiting().into_iter().partition(|id| own(id).is_some());
        let message = ServiceMessage::EpochCall(calling.call.clone());
        let apart = apart.into_iter().filter_map(|id| {
            let message = ServiceMessage::EpochCall(own(&id)?.clone());
            Some(EpochOutput::Call { to: vec![id], message })
        });
        let calls = [EpochOutput::Call { to, message }].into_iter().chain(apart);
        Step::new(Vec::new(), calls.collect())
    }

    /// The call once more, if some could not answer it yet.
    fn call_again(&mut self, now: Timestamp) -> Step<Vec<EpochOutput>> {
        let again = |calling: &mut PendingEpoch| calling.again.take_if(|again| *again <= now);
        if self.calling.as_mut().and_then(again).is_some() { self.ask() } else { Step::default() }
    }

    /// Checks an attendance. `guards` is the service's catalog: the owner of a stream and the
    /// controller that the owner placed it at.
    ///
    /// # Errors
    /// [`MessageError`]: drop the message and count it.
    pub fn verify(
        &self,
        from: ControllerId,
        signed: &Signed<Attendance>,
        guards: impl Fn(&StreamId) -> Option<(OwnerId, ControllerId)>,
    ) -> Result<VerifiedAttendance, MessageError> {
        let calling = self.calling.as_ref().ok_or(MessageError::Late)?;
        let called = calling.called.get(&from).ok_or(MessageError::UnknownController)?;
        let attendance = signed.open(&called.key)?.into_inner();
        if attendance.terms != self.id {
            return Err(MessageError::OtherPlan);
        }
        if (attendance.window, attendance.windows) != (calling.window, calling.windows) {
            return Err(MessageError::Mismatched);
        }
        let (entry, guards) = (&attendance.entry, &guards);
        let misplaced = entry.owners.iter().flat_map(|listed| {
            let placed = Some((listed.owner, from));
            listed.streams.iter().copied().filter(move |stream| guards(stream) != placed)
        });
        let misplaced = misplaced.collect();
        let alone = List {
            terms: self.id,
            window: calling.window,
            windows: calling.windows,
            masks: MaskStrategy::Single,
            entries: vec![entry.clone()],
        };
        let whole = plan_of(&self.terms, &alone).is_ok();
        if entry.controller != from || !whole {
            return Err(MessageError::Malformed);
        }
        Ok(VerifiedAttendance { attendance, misplaced })
    }

    /// Takes an attendance. The first of a controller stands. If it has streams that are placed
    /// elsewhere, or of owners who take part with another controller already, the controller is
    /// called again to leave these out.
    pub fn attend(
        &mut self,
        attended: VerifiedAttendance,
        now: Timestamp,
    ) -> Step<Vec<EpochOutput>> {
        let VerifiedAttendance { attendance, mut misplaced } = attended;
        let Some(calling) = &mut self.calling else { return Step::default() };
        let from = attendance.entry.controller;
        let waits = calling.called.get(&from).is_some_and(|called| called.attended.is_none());
        let mut step = Step::default();
        if calling.window == attendance.window && waits {
            misplaced.extend(calling.of_second_homes(&attendance.entry));
            if !misplaced.is_empty() {
                let again = calling.call_without(from, &misplaced, &self.key);
                step = Step::new(Vec::new(), again.into_iter().collect());
            } else {
                calling.take(attendance);
            }
        }
        step.merge(self.poll(now));
        step
    }

    /// Checks a refusal of the call.
    ///
    /// # Errors
    /// [`MessageError`]: drop the message and count it.
    pub fn verify_refusal(
        &self,
        from: ControllerId,
        signed: &Signed<WindowRefusal>,
    ) -> Result<WindowRefusalError, MessageError> {
        let calling = self.calling.as_ref().ok_or(MessageError::Late)?;
        let called = calling.called.get(&from).ok_or(MessageError::UnknownController)?;
        let refusal = signed.open(&called.key)?.into_inner();
        if refusal.plan != self.id {
            return Err(MessageError::OtherPlan);
        }
        let about = calling.call_of(called).digest();
        let fits = refusal.window == calling.window && refusal.about == about;
        match fits && refusal.controller == from {
            true => Ok(refusal.reason),
            false => Err(MessageError::Mismatched),
        }
    }

    /// A controller has refused the call.
    pub fn decline(
        &mut self,
        from: ControllerId,
        reason: WindowRefusalError,
        now: Timestamp,
    ) -> Step<Vec<EpochOutput>> {
        let Some(calling) = &mut self.calling else { return Step::default() };
        if reason.may_pass() {
            // Its clock is behind.
            calling.again = Some(now.plus(RETRY));
        } else {
            calling.take_refusal(&from, reason);
        }
        self.poll(now)
    }

    /// The window that controllers are called for.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.calling.as_ref().map(|calling| calling.window)
    }

    /// When [`Caller::poll`] is next needed.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let due = |calling: &PendingEpoch| {
            calling.again.map_or(calling.deadline, |again| again.min(calling.deadline))
        };
        self.calling.as_ref().map(due)
    }

    /// Fixes the list once all have answered or time is up.
    pub fn poll(&mut self, now: Timestamp) -> Step<Vec<EpochOutput>> {
        let due = |calling: &mut PendingEpoch| now >= calling.deadline || calling.unanswered == 0;
        let Some(calling) = self.calling.take_if(due) else { return self.call_again(now) };
        let outcome = match self.fix(&calling) {
            Ok(listing) => EpochOutcome::Listed(listing),
            Err(_) if calling.is_of_lost_state(self.terms.colluders) => {
                EpochOutcome::NotListed(ReleaseError::StateLost)
            }
            Err(reason) => EpochOutcome::NotListed(reason),
        };
        let members = match &outcome {
            EpochOutcome::Listed(listing) => self.members(listing),
            EpochOutcome::NotListed(_) | EpochOutcome::Over => Vec::new(),
        };
        let (window, windows) = (calling.window, calling.windows);
        let record = EpochRecord { window, windows, members, outcome };
        // Earlier ones stay only for their lists.
        let over = |_: &Timestamp, known: &mut EpochRecord| {
            !matches!(known.outcome, EpochOutcome::Listed(_))
        };
        let over: Vec<Timestamp> = self.epochs.extract_if(.., over).map(|(at, _)| at).collect();
        let mut changes: Vec<Change> =
            over.into_iter().map(|start| Change::remove(self.key_of(start))).collect();
        changes.push(self.put(&record));
        let mut step = Step::new(changes, Vec::new());
        step.merge(self.outcome(&record, calling.refused()));
        self.epochs.insert(record.window.start, record);
        step
    }
}
