//! Streams that owners move to another host, and from one.

use super::{Guard, GuardError};
use crate::controller::keystore::{KeyStoreError, StreamKey};
use crate::wire::{Arrival, ArrivingKey, Departure, MoveReply, MoveRequest, Notice, Registration};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{self, Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, CertifiedOwner};
use alpheus_encrypted_stream::controller::{Controller, Luggage};
use alpheus_encrypted_stream::error::{CertificateError, MoveError};
use alpheus_encrypted_stream::handover::{HandedOver, Purpose};
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{Record, StampedRecord, annotations_prefix};
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_time::Timestamp;
use alpheus_transport::Batch;

impl Guard {
    /// Gives a stream away, and introduces it no more, in one commit. Once it has left, the answer is
    /// the same whatever is asked, so that the owner can continue with the valid move.
    ///
    /// # Errors
    /// [`GuardError`]; nothing changes then.
    pub fn move_away(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        asked: &MoveRequest,
    ) -> Result<MoveReply, GuardError> {
        let owner = self.certified(owner_name, &asked.owner)?;
        let stream = asked.placement.open(owner.key()).map_err(|_| MoveError::NotTheOwners)?.stream;
        let controller = self.of(owner_name, &stream)?.controller;
        if self.next_of(&controller, &stream).is_none()
            && let Err(refused) = self.leave((&controller, &stream), asked, &owner, now)
        {
            return match refused {
                GuardError::Move(MoveError::BorderTooEarly { earliest }) => {
                    Ok(MoveReply::TooEarly { earliest })
                }
                refused => Err(refused),
            };
        }
        let left = self.host.answer_of(&controller, Batch::new(), |own| own.departed(&stream, now));
        let (placement, handed) = left.ok_or(GuardError::OtherController)???;
        let choice = self.choice_in_force(controller, &stream, &handed)?;
        Ok(MoveReply::Leaves(Box::new(Departure { placement, choice, handed })))
    }

    fn leave(
        &mut self,
        (controller, stream): (&ControllerId, &StreamId),
        asked: &MoveRequest,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<(), GuardError> {
        self.check_not_revoked(&asked.to)?;
        let next = asked.placement.open(owner.key()).map_err(|_| MoveError::NotTheOwners)?;
        if self.host.controller(&next.controller).is_some() {
            return Err(GuardError::SameHost);
        }
        let mut batch = Batch::new();
        self.notices.unstage(stream, &mut batch)?;
        let (to, rng) = ((&asked.to, asked.key.clone()), &mut self.rng);
        let acted = self.host.answer_of(controller, batch, |own| {
            own.move_away(&asked.placement, owner, to, now, rng)
        });
        acted.ok_or(GuardError::OtherController)???;
        self.notices.gone(stream);
        Ok(())
    }

    fn check_not_revoked(&self, certificate: &Signed<Certificate>) -> Result<(), GuardError> {
        match self.revoked.has(&certificate.digest()) {
            true => Err(MoveError::from(CertificateError::Revoked).into()),
            false => Ok(()),
        }
    }

    /// The choice that was in force when a stream left, as its owner signed it.
    fn choice_in_force(
        &self,
        controller: ControllerId,
        stream: &StreamId,
        handed: &Signed<HandedOver>,
    ) -> Result<Signed<Annotation>, GuardError> {
        // This host's own statement.
        let wanted = handed.dangerous_unverified().map(|said| said.choice);
        let prefix = annotations_prefix(controller, stream);
        for (_, value) in scan_all(self.store.as_ref(), &self.spaces.ledger, &prefix)? {
            let stamped = StampedRecord::read(&value).map_err(|_| KeyStoreError::Damaged)?;
            if let Record::Annotation { version, signed, .. } = stamped.record
                && Some(version) == wanted
            {
                return Ok(signed);
            }
        }
        Err(KeyStoreError::Damaged.into())
    }

    /// Where a stream has gone from a controller, if it has left.
    pub(super) fn next_of(
        &self,
        controller: &ControllerId,
        stream: &StreamId,
    ) -> Option<ControllerId> {
        Some(self.host.controller(controller)?.departure(stream)?.1)
    }

    /// Takes a stream over from another host: key, choice, notice, and what its owner was charged, in
    /// one commit. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`GuardError`]; nothing changes then.
    pub fn arrive(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        asked: &Arrival,
    ) -> Result<(), GuardError> {
        let owner = self.certified(owner_name, &asked.owner)?;
        let choice = annotation::open_choice(&asked.choice, &owner, &self.schema)?;
        let (stream, schema) = (choice.stream, choice.schema);
        let placed = asked.placement.open(owner.key()).map_err(|_| MoveError::NotTheOwners)?;
        let controller = placed.controller;
        let own = self.host.controller(&controller).ok_or(GuardError::OtherController)?;
        let is_again = own.last_move(&stream) == Some(&asked.placement);
        let purpose = Purpose { stream, schema, owner: owner.id() };
        let (master, luggage) = match &asked.key {
            ArrivingKey::Handed { handed, before } => {
                self.check_not_revoked(before)?;
                own.open_carried((&purpose, &placed), handed, before)?
            }
            ArrivingKey::Lost { sealed } => {
                (self.opened(&controller, sealed, &purpose)?, Luggage::Lost)
            }
        };
        let (owner_name, producer) = (owner_name.to_owned(), placed.producer.clone());
        let mut batch = Batch::new();
        self.stage_arrival((&purpose, &master), (controller, &owner_name, &producer), &mut batch)?;
        // The owner may have chosen otherwise here since.
        if !is_again {
            let (annotation, placement) = (asked.choice.clone(), asked.placement.clone());
            let registration = Registration { annotation, owner: asked.owner.clone(), placement };
            self.notices.stage(&stream, &Notice::Registered(Box::new(registration)), &mut batch)?;
        }
        let master = Some(master);
        let (known, held) =
            self.held(StreamKey { purpose, controller, owner_name, producer, master })?;
        let signed: (&Signed<Placement>, _) = (&asked.placement, &asked.choice);
        let acted = self.host.with_batch(&controller, batch, |own: &mut Controller| {
            own.take_over(held, signed, luggage, &owner, now)
        });
        acted.ok_or(GuardError::OtherController)???;
        self.streams.insert(stream, known);
        if !is_again {
            self.notices.changed(&stream);
        }
        Ok(())
    }

    /// Stores the key of a stream that arrives. One that comes back has it here already.
    fn stage_arrival(
        &mut self,
        (purpose, master): (&Purpose, &MasterSecret),
        (controller, owner_name, producer): (ControllerId, &str, &str),
        batch: &mut Batch,
    ) -> Result<(), GuardError> {
        let Some(known) = self.keys.stream_of(&purpose.stream)? else {
            let whose = (controller, owner_name, producer);
            return Ok(self.keys.stage((purpose, master), whose, batch, &mut self.rng)?);
        };
        if known.controller != controller {
            return Err(GuardError::SameHost);
        }
        match known.master {
            None => Err(MoveError::Withdrawn.into()),
            Some(own) if own.secret() == master.secret() && known.purpose == *purpose => Ok(()),
            Some(_) => Err(GuardError::Here),
        }
    }

    /// The service knows a later placement of a stream than this host, whose state may be an older copy.
    /// The stream is introduced no more.
    ///
    /// # Errors
    /// [`GuardError`] if the placement is not the owner's; nothing changes then.
    pub fn give_up(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        stands: &Registration,
    ) -> Result<(), GuardError> {
        let controller = self.streams.get(stream).ok_or(GuardError::NotYours)?.controller;
        let owner = self.deployment.owner(&stands.owner)?;
        let placed = stands.placement.open(owner.key()).map_err(|_| MoveError::NotTheOwners)?;
        if placed.stream != *stream {
            return Err(MoveError::NotTheOwners.into());
        }
        let acted = self.host.with(&controller, |own| own.give_up(&stands.placement, &owner, now));
        acted.ok_or(GuardError::OtherController)???;
        self.outgoing.take_back(&controller);
        if self.next_of(&controller, stream).is_some() {
            let mut batch = Batch::new();
            self.notices.unstage(stream, &mut batch)?;
            self.store.commit(batch)?;
            self.notices.gone(stream);
        }
        Ok(())
    }
}
