//! The service's side of epochs: it calls, collects attendances, and fixes one list for each
//! epoch.
//!
//! The list is a record in the service's store before anybody sees it, and is never drawn
//! again: a restarted service repeats it. An epoch that gets no list is a record as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::membership::tolerated;
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};

use crate::announced_plan::AnnouncedPlan;
use crate::certificate::{Certificate, Deployment, fingerprint};
use crate::counts::narrow;
use crate::epoch_list::{check_terms, is_epoch_of, plan_of};
use crate::error::{MessageError, PlanRefusalError, PlanShapeError, ReleaseError, RestoreError};
use crate::ledger::{Change, Scope, Step, read_record, write_record};
use crate::mask::params::{self, MaskPreference};
use crate::mask::quorum::{Roster, counted_population};
use crate::messages::{Attendance, EpochCall, List, Listing, ServiceMessage};

/// Version of the record below. Any other version is refused.
const VERSION: u8 = 1;
/// The record's kind among those of a plan in the service's store.
const EPOCH: u8 = 8;

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
    },
}

/// An attendance whose signature and content were checked.
pub struct VerifiedAttendance(Attendance);

/// The last epoch of a plan in the service's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EpochRecord {
    window: Window,
    windows: u32,
    list: Result<Box<Listing>, ReleaseError>,
}

/// A controller that was called.
struct Called {
    certificate: Signed<Certificate>,
    key: VerifyingKey,
    attended: Option<Attendance>,
    declined: bool,
}

/// An epoch that has no list yet.
struct Calling {
    call: Signed<EpochCall>,
    window: Window,
    windows: u32,
    deadline: Timestamp,
    called: BTreeMap<ControllerId, Called>,
}

impl Calling {
    fn waiting(&self) -> Vec<ControllerId> {
        let waits = |called: &Called| called.attended.is_none() && !called.declined;
        let waiting = self.called.iter().filter(|(_, called)| waits(called));
        waiting.map(|(controller, _)| *controller).collect()
    }
}

/// The service's side of the epochs of one plan.
pub struct Caller {
    terms: Plan,
    id: PlanId,
    consumer: Option<Signed<Certificate>>,
    key: Arc<SigningKey>,
    deployment: Deployment,
    presences: Span,
    masks: Option<MaskPreference>,
    calling: Option<Calling>,
    last: Option<EpochRecord>,
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
        let (calling, last) = (None, None);
        Ok(Self { terms, id, consumer, key, deployment, presences, masks, calling, last })
    }

    /// The caller as its store left it: `values` are those under [`Scope::Service`] of the
    /// plan. An epoch that has a list has the same one.
    ///
    /// # Errors
    /// [`RestoreError::BadRecord`] if a value cannot be read.
    pub fn restore<'a>(
        mut self,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RestoreError> {
        for (position, value) in values.into_iter().enumerate() {
            let read =
                read_record(value, VERSION).map_err(|error| RestoreError::of(position, error));
            self.last = Some(read?);
        }
        Ok(self)
    }

    /// Id of the plan.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// The first window of the plan is due. Calls the controllers with these certificates. An
    /// epoch that is fixed is repeated, and one that is over is left alone.
    pub fn call(
        &mut self,
        window: Window,
        controllers: &[Signed<Certificate>],
        now: Timestamp,
    ) -> Step<Vec<EpochOutput>> {
        if let Some(last) = &self.last
            && last.window.start >= window.start
        {
            let again = last.window == window;
            return if again { self.outcome(last.clone()) } else { Step::default() };
        }
        let windows = 1;
        let begun = self.calling.as_ref().is_some_and(|calling| calling.window == window);
        if begun || !is_epoch_of(&self.terms, window, windows) {
            return Step::default();
        }
        let deadline = now.plus(self.presences);
        let terms = self.terms.clone();
        let call = EpochCall { terms, window, windows, answer_by: deadline };
        let called = controllers.iter().filter_map(|signed| {
            let certificate = self.deployment.controller(signed).ok()?;
            let (key, id) = (certificate.party.verifying, fingerprint(&certificate));
            let (certificate, attended, declined) = (signed.clone(), None, false);
            Some((id, Called { certificate, key, attended, declined }))
        });
        let called = called.collect();
        let call = Signed::new(&call, &self.key);
        self.calling = Some(Calling { call, window, windows, deadline, called });
        self.ask()
    }

    /// The call, to those that have not answered.
    pub fn ask(&self) -> Step<Vec<EpochOutput>> {
        let Some(calling) = &self.calling else { return Step::default() };
        let message = ServiceMessage::EpochCall(calling.call.clone());
        Step::new(Vec::new(), vec![EpochOutput::Call { to: calling.waiting(), message }])
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
        let entry = &attendance.entry;
        let placed = entry.owners.iter().all(|listed| {
            let placed = Some((listed.owner, from));
            listed.streams.iter().all(|stream| guards(stream) == placed)
        });
        let alone = List {
            terms: self.id,
            window: calling.window,
            windows: calling.windows,
            masks: MaskStrategy::Single,
            entries: vec![entry.clone()],
        };
        let whole = plan_of(&self.terms, &alone).is_ok();
        if entry.controller != from || !placed || !whole {
            return Err(MessageError::Malformed);
        }
        Ok(VerifiedAttendance(attendance))
    }

    /// Takes an attendance. The first of a controller stands.
    pub fn attend(
        &mut self,
        attended: VerifiedAttendance,
        now: Timestamp,
    ) -> Step<Vec<EpochOutput>> {
        let VerifiedAttendance(attendance) = attended;
        let Some(calling) = &mut self.calling else { return Step::default() };
        let called = calling.called.get_mut(&attendance.entry.controller);
        if calling.window == attendance.window
            && let Some(called) = called
        {
            called.attended.get_or_insert(attendance);
        }
        self.poll(now)
    }

    /// A controller has refused the call.
    pub fn decline(&mut self, from: ControllerId, now: Timestamp) -> Step<Vec<EpochOutput>> {
        let called = self.calling.as_mut().and_then(|calling| calling.called.get_mut(&from));
        if let Some(called) = called {
            called.declined = true;
        }
        self.poll(now)
    }

    /// When [`Caller::poll`] is next needed.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.calling.as_ref().map(|calling| calling.deadline)
    }

    /// Fixes the list once all have answered or time is up.
    pub fn poll(&mut self, now: Timestamp) -> Step<Vec<EpochOutput>> {
        let due = |calling: &mut Calling| now >= calling.deadline || calling.waiting().is_empty();
        let Some(calling) = self.calling.take_if(due) else { return Step::default() };
        let list = self.fix(&calling).map(Box::new);
        let record = EpochRecord { window: calling.window, windows: calling.windows, list };
        let change = self.put(&record);
        self.last = Some(record.clone());
        let mut step = Step::new(vec![change], Vec::new());
        step.merge(self.outcome(record));
        step
    }

    /// The list over all that attended.
    fn fix(&self, calling: &Calling) -> Result<Listing, ReleaseError> {
        let attended = calling.called.values().filter_map(|called| {
            Some((called.attended.as_ref()?.entry.clone(), called.certificate.clone()))
        });
        let mut members: Vec<_> = attended.collect();
        leave_out_second_homes(&mut members);
        let (entries, certificates): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let owners: Vec<u32> = entries.iter().map(|entry| narrow(entry.owners.len())).collect();
        let masks = self.masks_for(&owners)?;
        let (terms, window, windows) = (self.id, calling.window, calling.windows);
        let list = List { terms, window, windows, masks, entries };
        let list = Signed::new(&list, &self.key);
        let (call, consumer) = (calling.call.clone(), self.consumer.clone());
        let listing = Listing { call, list, certificates, consumer };
        // What no member would accept is not sent.
        match AnnouncedPlan::open_list(&listing, &self.deployment) {
            Ok(_) => Ok(listing),
            Err(_) => Err(ReleaseError::NotListed),
        }
    }

    /// How the members mask, or why their windows would not open.
    fn masks_for(&self, owners: &[u32]) -> Result<MaskStrategy, ReleaseError> {
        let listed = narrow(owners.len());
        let tolerated = tolerated(listed, self.terms.alpha, self.terms.colluders);
        let min = self.terms.population.min;
        let alone = listed == 1 && (min > 1 || self.terms.alpha.numerator > 0);
        if listed == 0 || alone {
            return Err(ReleaseError::QuorumLost { held: listed, needed: listed + 1 });
        }
        let roster = Roster::new(owners, tolerated, min);
        let counted = least_count(owners, tolerated, listed);
        if counted < u64::from(min) {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            return Err(ReleaseError::PopulationTooSmall { counted, needed: min });
        }
        // The graph of `Epoch` lasts for many windows, and a list for few.
        let sparse = listed >= params::SPARSE_FROM;
        let wanted = match self.masks {
            Some(MaskPreference::Clique | MaskPreference::Dream) => self.masks,
            _ if sparse => Some(MaskPreference::Dream),
            _ => None,
        };
        params::choose(wanted, &roster, self.terms.delta_exponent)
            .map_err(|_| ReleaseError::NotListed)
    }

    fn outcome(&self, record: EpochRecord) -> Step<Vec<EpochOutput>> {
        let window = record.window;
        let listed = record.list.and_then(|listing| {
            let announced = AnnouncedPlan::open_list(&listing, &self.deployment);
            announced.map_err(|_: PlanRefusalError| ReleaseError::NotListed)
        });
        let output = match listed {
            Ok(announced) => EpochOutput::Listed(Arc::new(announced)),
            Err(reason) => EpochOutput::NotListed { window, reason },
        };
        Step::new(Vec::new(), vec![output])
    }

    fn put(&self, record: &EpochRecord) -> Change {
        let mut key = Scope::Service(self.id).prefix();
        key.push(EPOCH);
        Change::put(key, write_record(record, VERSION))
    }
}

/// An owner with streams at two controllers takes part with one. An entry must be what its
/// controller attended with, so the smaller one is left out.
fn leave_out_second_homes(members: &mut Vec<(crate::messages::ListEntry, Signed<Certificate>)>) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let size = |at: &usize| members.get(*at).map_or(0, |(entry, _)| entry.owners.len());
    order.sort_by_key(|at| std::cmp::Reverse(size(at)));
    let (mut known, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for at in order {
        let Some((entry, _)) = members.get(at) else { continue };
        if entry.owners.iter().all(|listed| !known.contains(&listed.owner)) {
            known.extend(entry.owners.iter().map(|listed| listed.owner));
            kept.insert(at);
        }
    }
    let mut at = 0;
    members.retain(|_| {
        at += 1;
        kept.contains(&(at - 1))
    });
}

/// The owners that the worst placed member counts. Its token is needed as well: without it the
/// others count even fewer.
fn least_count(owners: &[u32], tolerated: u32, listed: u32) -> u64 {
    let mut owners = owners.to_vec();
    owners.sort_unstable();
    let (own, others) = owners.split_first().map_or((0, &[][..]), |(own, others)| (*own, others));
    counted_population(own, others, tolerated, listed, true)
}
