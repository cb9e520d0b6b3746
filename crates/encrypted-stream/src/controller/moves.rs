//! Streams that move between controllers, by a placement that their owners sign.
//!
//! The previous controller answers no window that ends after the border, and the next one none that
//! begins before it. The first writes that down before it hands over what the second needs to answer
//! anything. So no window of a stream is answered by both, whatever the service and the network do.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::seal::UnsealError;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Span, Timestamp, Window};
use rand_core::CryptoRng;

use super::Controller;
use super::copies::DeviceCopy;
use super::stream_state::{HeldStream, StreamRecord, StreamState};
use super::tenure::{Tenure, bounds_sets};
use crate::annotation::{self, Annotation, ControllerChange, Placement};
use crate::certificate::{Certificate, CertifiedOwner, Recipient, fingerprint};
use crate::error::MoveError;
use crate::handover::{HandedOver, HandoverContents, Purpose};
use crate::keys::{DAY, MasterSecret};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

type OwnerStep = Step<Vec<ControllerMessage>>;

/// By which placement a stream left, and what was handed over.
pub type Departure = (Signed<Placement>, Signed<HandedOver>);

/// What a stream's next controller gets besides its key.
pub enum Luggage {
    /// From the previous controller, which has signed it.
    Handed {
        /// What was charged, and known copies.
        carried: CarriedRecords,
        /// The version of the owner's choice in force there.
        choice: u32,
    },
    /// Nothing: the previous controller is lost.
    Lost,
}

/// The records of [`HandoverContents`].
pub struct CarriedRecords {
    accounts: Vec<BudgetRecord>,
    copies: Vec<(u64, Option<Timestamp>)>,
}

impl Controller {
    /// Gives a stream away. Once the step is committed, no window that ends after the border is answered, and
    /// nothing with noise any more. Repeating it gives the same bytes.
    ///
    /// # Errors
    /// [`MoveError`] names the rule; nothing changes then.
    pub fn move_away(
        &mut self,
        signed: &Signed<Placement>,
        owner: &CertifiedOwner,
        (to, key): (&Signed<Certificate>, HybridPublic),
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Signed<HandedOver>>>, MoveError> {
        let placement = opened(signed, owner)?;
        let moved = placement.moved.ok_or(MoveError::OtherControllers)?;
        let to = Recipient::new(self.deployment.controller(to)?, key)?;
        let fits = placement.controller == fingerprint(to.certificate())
            && moved.from == self.id()
            && placement.controller != self.id();
        if !fits || moved.lost {
            return Err(MoveError::OtherControllers);
        }
        let (stream, now) = (placement.stream, now.max(self.clock));
        let state = self.streams.get(&stream).ok_or(MoveError::NotHeld)?;
        if let Some(known) = again(state, signed)? {
            return Ok(Step::new(self.move_records(now, &stream, None), vec![known]));
        }
        let choice = self.check_leaving(state, owner, &placement, moved, now)?;
        let digest = placement.digest();
        let sealed = self.pack(&stream, &digest, &to, rng)?;
        let handed = HandedOver { stream, placement: digest, choice, sealed };
        let handed = Signed::new(&handed, self.identity.signing());
        let state = self.streams.get_mut(&stream).ok_or(MoveError::NotHeld)?;
        let from = state.tenure.from;
        state.tenure = Tenure {
            version: placement.version,
            from,
            until: moved.at,
            placement: Some(signed.clone()),
            handed: Some(handed.clone()),
        };
        let line = LogEvent::MovedAway { at: moved.at };
        Ok(Step::new(self.move_records(now, &stream, Some(line)), vec![handed]))
    }

    /// Returns the version of the choice in force.
    fn check_leaving(
        &self,
        state: &StreamState,
        owner: &CertifiedOwner,
        placement: &Placement,
        moved: ControllerChange,
        now: Timestamp,
    ) -> Result<u32, MoveError> {
        if owner.id() != state.owner {
            return Err(MoveError::NotTheOwners);
        }
        if state.tenure.is_over() {
            return Err(MoveError::MovedAway);
        }
        let (version, known) = (placement.version, state.tenure.version);
        if version <= known {
            return Err(MoveError::NotLater { version, known });
        }
        if state.revoked.is_some() || state.keys.is_none() {
            return Err(MoveError::Withdrawn);
        }
        let choice = state.current().ok_or(MoveError::Unconfirmed)?.annotation.version;
        if state.is_suspended() || state.copies.waits() {
            return Err(MoveError::Unconfirmed);
        }
        // Windows are answered once they are over by this clock.
        let earliest = now.max(state.tenure.from);
        check_border(state.policies(), moved.at, earliest)?;
        Ok(choice)
    }

    /// What goes along, sealed. Windows with noise that are under way count as spent.
    fn pack(
        &self,
        stream: &StreamId,
        placement: &Digest,
        to: &Recipient,
        rng: &mut impl CryptoRng,
    ) -> Result<HybridSealed, MoveError> {
        let state = self.streams.get(stream).ok_or(MoveError::NotHeld)?;
        let keys = state.keys.as_ref().ok_or(MoveError::Withdrawn)?;
        let (schema, owner) = (state.schema.id(), state.owner);
        let carried = HandoverContents {
            master: keys.master(),
            accounts: self.books.carried(owner),
            copies: state.copies.known().map(|copy| (copy.session, copy.confirmed)).collect(),
        };
        let purpose = Purpose { stream: *stream, schema, owner };
        Ok(carried.seal(self.deployment.authority(), to, (&purpose, placement), rng)?)
    }

    /// Opens what the previous controller has signed and sealed, for this placement.
    ///
    /// # Errors
    /// [`MoveError::NotHandedOver`].
    pub fn open_carried(
        &self,
        (purpose, placement): (&Purpose, &Verified<Placement>),
        handed: &Signed<HandedOver>,
        before: &Signed<Certificate>,
    ) -> Result<(MasterSecret, Luggage), MoveError> {
        let before = self.deployment.controller(before)?;
        let opened = handed.open(&before.party.verifying).map_err(|_| MoveError::NotHandedOver)?;
        let digest = placement.digest();
        let from = placement.moved.map(|moved| moved.from);
        if from != Some(fingerprint(&before))
            || (opened.stream, opened.placement) != (purpose.stream, digest)
        {
            return Err(MoveError::NotHandedOver);
        }
        let (authority, own) = (self.deployment.authority(), self.id());
        let own = (&own, self.identity.sealing());
        let unpacked = HandoverContents::open(authority, own, (purpose, &digest), &opened.sealed);
        let carried = unpacked.map_err(|_: UnsealError| MoveError::NotHandedOver)?;
        let HandoverContents { master, accounts, copies } = carried;
        if accounts.iter().any(|record| record.owner != purpose.owner) {
            return Err(MoveError::NotHandedOver);
        }
        let carried = CarriedRecords { accounts, copies };
        Ok((master, Luggage::Handed { carried, choice: opened.choice }))
    }

    /// Takes a stream over from another controller, or changes nothing. No window that begins before the
    /// border is answered. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`MoveError`] names the rule.
    pub fn take_over(
        &mut self,
        held: HeldStream,
        (signed, choice): (&Signed<Placement>, &Signed<Annotation>),
        luggage: Luggage,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<OwnerStep, MoveError> {
        let (placement, moved) = self.addressed(&held, signed, &luggage, owner)?;
        let (id, now) = (held.stream, now.max(self.clock));
        let annotation = annotation::open(choice, owner)?;
        if let Luggage::Handed { choice: current, .. } = &luggage
            && annotation.version < *current
        {
            return Err(MoveError::OldChoice { version: annotation.version, current: *current });
        }
        // What the ledger knows of it counts, whether the host still holds it or not.
        let held = match self.pending_records.contains_key(&id) {
            true => {
                self.hold(held);
                None
            }
            false => Some(held),
        };
        if let Some(step) = self.check_arrival(&id, signed, &placement, now)? {
            return Ok(step);
        }
        let earliest = match self.streams.get(&id) {
            Some(state) => state.tenure.until,
            None => Timestamp(0),
        };
        let earliest = if moved.lost { now.max(earliest) } else { earliest };
        check_border(std::iter::once(&annotation.policy), moved.at, earliest)?;
        // Accounts that come back hold all that was charged here.
        let is_back = self.streams.contains_key(&id) && !self.has_others_of(owner.id(), &id);
        let signed_choice = (choice, &*annotation);
        let mut step = self.take_choice_along((id, held), signed_choice, owner, now)?;
        let policy = &annotation.policy;
        let changes = self.unpack(now, (id, owner.id()), luggage, (moved.at, policy, is_back));
        step.merge(Step::new(changes, Vec::new()));
        if let Some(state) = self.streams.get_mut(&id) {
            let (from, until) = (moved.at, Timestamp(u64::MAX));
            let placed = Some(signed.clone());
            let version = placement.version;
            state.tenure = Tenure { version, from, until, placement: placed, handed: None };
        }
        let line = LogEvent::MovedHere { at: moved.at, lost: moved.lost };
        step.merge(Step::new(self.move_records(now, &id, Some(line)), Vec::new()));
        Ok(step)
    }

    /// A placement that moves this stream here, by its owner.
    fn addressed(
        &self,
        held: &HeldStream,
        signed: &Signed<Placement>,
        luggage: &Luggage,
        owner: &CertifiedOwner,
    ) -> Result<(Verified<Placement>, ControllerChange), MoveError> {
        let placement = opened(signed, owner)?;
        let moved = placement.moved.ok_or(MoveError::OtherControllers)?;
        let is_ours = placement.controller == self.id() && moved.from != self.id();
        if !is_ours || matches!(luggage, Luggage::Lost) != moved.lost {
            return Err(MoveError::OtherControllers);
        }
        if placement.stream != held.stream || held.owner != owner.id() {
            return Err(MoveError::NotTheOwners);
        }
        Ok((placement, moved))
    }

    /// Whether the stream may come; or what to write again, if it has.
    fn check_arrival(
        &mut self,
        id: &StreamId,
        signed: &Signed<Placement>,
        placement: &Placement,
        now: Timestamp,
    ) -> Result<Option<OwnerStep>, MoveError> {
        let Some(state) = self.streams.get(id) else { return Ok(None) };
        if state.tenure.placement.as_ref() == Some(signed) {
            return Ok(Some(Step::new(self.move_records(now, id, None), Vec::new())));
        }
        let (version, known) = (placement.version, state.tenure.version);
        if version <= known {
            return Err(MoveError::NotLater { version, known });
        }
        if state.revoked.is_some() || state.keys.is_none() {
            return Err(MoveError::Withdrawn);
        }
        // It never left.
        if !state.tenure.is_over() {
            return Err(MoveError::OtherControllers);
        }
        Ok(None)
    }

    fn has_others_of(&self, owner: OwnerId, stream: &StreamId) -> bool {
        let is_other = |(id, state): (&StreamId, &StreamState)| {
            id != stream && state.owner == owner && !state.tenure.is_over()
        };
        self.streams.iter().any(is_other)
    }

    /// Takes the stream in with its choice, unless that is the one in force here.
    fn take_choice_along(
        &mut self,
        (id, held): (StreamId, Option<HeldStream>),
        (choice, annotation): (&Signed<Annotation>, &Annotation),
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<OwnerStep, MoveError> {
        let known = self.streams.get(&id);
        let is_same = known.is_some_and(|state| {
            !state.is_suspended()
                && state.current().is_some_and(|own| own.annotation == *annotation)
        });
        if is_same {
            return Ok(Step::default());
        }
        Ok(match held {
            Some(held) => self.add_stream(held, choice, owner, now)?,
            None => self.annotate(choice, owner, now)?,
        })
    }

    /// What was charged and which sessions were copied, into the ledger.
    fn unpack(
        &mut self,
        now: Timestamp,
        (stream, owner): (StreamId, OwnerId),
        luggage: Luggage,
        (border, policy, is_back): (Timestamp, &ResolvedPolicy, bool),
    ) -> Vec<Change> {
        let Luggage::Handed { carried, .. } = luggage else {
            let lost = Window { start: Timestamp(0), end: border };
            return self.forfeit(now, (stream, owner), std::slice::from_ref(policy), lost, 2);
        };
        let mut changes = Vec::new();
        if is_back {
            let id = self.id();
            let gone = self.books.forget_owner(owner);
            let stays: Vec<_> = carried.accounts.iter().map(BudgetRecord::key).collect();
            let gone = gone.iter().map(BudgetRecord::key).filter(|key| !stays.contains(key));
            changes.extend(gone.map(|key| Change::remove(Record::budget_key(id, &key))));
        }
        let mut marker = PlanId([3; 32]);
        marker.0[..16].copy_from_slice(&stream.0);
        let records = self.books.accounts().joined(&carried.accounts, marker, border);
        records.iter().for_each(|record| self.books.take(record));
        let records = records.into_iter().map(Record::Budget);
        let copies = carried.copies.into_iter().map(|(session, confirmed)| {
            let known = DeviceCopy { session, confirmed };
            if let Some(state) = self.streams.get_mut(&stream) {
                state.copies.remember(known);
            }
            Record::Cloned { stream, session, confirmed }
        });
        let records: Vec<Record> = copies.collect::<Vec<_>>().into_iter().chain(records).collect();
        changes.extend(records.into_iter().map(|record| self.put(now, record)));
        changes
    }

    /// The owner has placed a stream elsewhere, as a later placement shows that the service has, while this
    /// controller's ledger was lost or its owner took it for lost. Nothing that it cannot know to be its own is
    /// answered any more.
    ///
    /// # Errors
    /// [`MoveError`] if the placement is not the owner's.
    pub fn give_up(
        &mut self,
        signed: &Signed<Placement>,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<OwnerStep, MoveError> {
        let placement = opened(signed, owner)?;
        let moved = placement.moved.ok_or(MoveError::OtherControllers)?;
        let (own, now) = (self.id(), now.max(self.clock));
        let state = self.streams.get_mut(&placement.stream).ok_or(MoveError::NotHeld)?;
        if owner.id() != state.owner {
            return Err(MoveError::NotTheOwners);
        }
        if placement.controller == own || placement.version <= state.tenure.version {
            return Ok(Step::default());
        }
        let border = if moved.from == own { moved.at } else { Timestamp(0) };
        let handed = None;
        let until = border.min(state.tenure.until);
        let (version, from) = (placement.version, state.tenure.from);
        state.tenure = Tenure { version, from, until, placement: Some(signed.clone()), handed };
        let line = LogEvent::MovedAway { at: until };
        Ok(Step::new(self.move_records(now, &placement.stream, Some(line)), Vec::new()))
    }

    fn move_records(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        event: Option<LogEvent>,
    ) -> Vec<Change> {
        let tenure = self.streams.get(stream).map(|state| &state.tenure);
        let record = tenure.and_then(|tenure| tenure.record(*stream));
        let line = |event| Record::Log(LogLine { at: now, streams: vec![*stream], event });
        let records = record.into_iter().chain(event.map(line));
        records.collect::<Vec<_>>().into_iter().map(|record| self.put(now, record)).collect()
    }

    /// Applies a record of the ledger; `None` if it cannot be read.
    pub(super) fn take_moved(&mut self, record: Record) -> Option<()> {
        let Record::Moved { stream, from, until, placement, handed } = record else { return None };
        // Its owner's signature was checked when it was written.
        let version = placement.dangerous_unverified()?.version;
        let tenure = Tenure { version, from, until, placement: Some(placement), handed };
        self.remember(stream, StreamRecord::Tenure(Box::new(tenure)));
        Some(())
    }

    pub(super) fn take_copy(&mut self, record: &Record) {
        if let Record::Cloned { stream, session, confirmed } = *record {
            self.remember(stream, StreamRecord::Copy(DeviceCopy { session, confirmed }));
        }
    }

    /// The placement by which a stream left, if it did, and where to.
    #[must_use]
    pub fn departure(&self, stream: &StreamId) -> Option<(&Signed<Placement>, ControllerId)> {
        let tenure = &self.streams.get(stream)?.tenure;
        let placement = tenure.placement.as_ref().filter(|_| tenure.is_over())?;
        Some((placement, placement.dangerous_unverified()?.controller))
    }

    /// By which placement a stream left, and what was handed over then. Asked again, it is the same, with
    /// its record.
    ///
    /// # Errors
    /// [`MoveError::MovedAway`] if nothing was handed over here, [`MoveError::NotHeld`] if the stream did not
    /// leave.
    pub fn departed(
        &mut self,
        stream: &StreamId,
        now: Timestamp,
    ) -> Result<Step<Departure>, MoveError> {
        let state = self.streams.get(stream).filter(|state| state.tenure.is_over());
        let Tenure { placement, handed, .. } = &state.ok_or(MoveError::NotHeld)?.tenure;
        let left = placement.clone().zip(handed.clone()).ok_or(MoveError::MovedAway)?;
        Ok(Step::new(self.move_records(now.max(self.clock), stream, None), left))
    }

    /// The placement by which a stream came from another controller, or left for one, whichever was last.
    #[must_use]
    pub fn last_move(&self, stream: &StreamId) -> Option<&Signed<Placement>> {
        self.streams.get(stream)?.tenure.placement.as_ref()
    }

    /// The version of the last placement of a stream that is known here.
    #[must_use]
    pub fn placement_version(&self, stream: &StreamId) -> Option<u32> {
        self.streams.get(stream).map(|state| state.tenure.version)
    }
}

/// What was handed over, if the stream has left by this placement.
fn again(
    state: &StreamState,
    signed: &Signed<Placement>,
) -> Result<Option<Signed<HandedOver>>, MoveError> {
    match &state.tenure {
        Tenure { placement: Some(known), handed: Some(handed), .. } if known == signed => {
            Ok(Some(handed.clone()))
        }
        tenure if tenure.is_over() => Err(MoveError::MovedAway),
        _ => Ok(None),
    }
}

fn opened(
    signed: &Signed<Placement>,
    owner: &CertifiedOwner,
) -> Result<Verified<Placement>, MoveError> {
    signed.open(owner.key()).map_err(|_| MoveError::NotTheOwners)
}

/// Checks that the border is late enough, and that no day of which the owner bounds the sets has two
/// controllers.
fn check_border<'a>(
    mut policies: impl Iterator<Item = &'a ResolvedPolicy>,
    border: Timestamp,
    earliest: Timestamp,
) -> Result<(), MoveError> {
    let is_bounded = policies.any(bounds_sets);
    if border < earliest || border > Timestamp::LIMIT {
        let day = Span(DAY);
        let next = if is_bounded && earliest.floor(day) < earliest {
            earliest.floor(day).plus(day)
        } else {
            earliest
        };
        return Err(MoveError::BorderTooEarly { earliest: next });
    }
    if is_bounded && !border.0.is_multiple_of(DAY) {
        return Err(MoveError::WithinDay);
    }
    Ok(())
}
