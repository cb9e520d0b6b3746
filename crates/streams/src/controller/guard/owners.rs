//! Requests of owners at a host: hand over streams, choose, withdraw, read the log.

use super::{Guard, GuardError, GuardedStream};
use crate::controller::keystore::StreamKey;
use crate::wire::{Choice, Handover, Notice, Registration, WithdrawalRequest};
use alpheus_crypto::hybrid::HybridSealed;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{self, Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, CertifiedOwner};
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::error::{AnnotationError, CertificateError};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{LogLine, Record, StampedRecord, Step, log_prefix};
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_node::ledger::scan_all;
use alpheus_policy::budget::BudgetStanding;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_stream_runtime::controller_host::HostError;
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Space, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Guard {
    /// Takes over a stream with its owner's first choice: key, choice and notice in one
    /// commit. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`GuardError`]; nothing changes then.
    pub fn take(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        handover: &Handover,
    ) -> Result<(), GuardError> {
        let Handover { sealed, annotation, owner, placement } = handover;
        let certified = self.certified(owner_name, owner)?;
        let opened = annotation::open_choice(annotation, &certified, &self.schema)?;
        let Annotation { stream, schema, owner: owner_id, .. } = *opened;
        let placed = annotation::open_placement(placement, &certified, &stream)?;
        let purpose = Purpose { stream, schema, owner: owner_id };
        let master = self.opened(&placed.controller, sealed, &purpose)?;
        let (annotation, placement) = (annotation.clone(), placement.clone());
        let registration = Registration { annotation, owner: owner.clone(), placement };
        let notice = Notice::Registered(Box::new(registration));
        if self.streams.contains_key(&stream) {
            return self.is_same(owner_name, &stream, &notice, &master);
        }
        let Placement { controller, producer, .. } = placed.into_inner();
        let mut batch = Batch::new();
        let whose = (controller, owner_name, producer.as_str());
        self.keys.stage((&purpose, &master), whose, &mut batch, &mut self.rng)?;
        let (owner_name, master) = (owner_name.to_owned(), Some(master));
        let key = StreamKey { purpose, controller, owner_name, producer, master };
        self.notices.stage(&stream, &notice, &mut batch)?;
        let (known, held) = self.held(key)?;
        let signed = &handover.annotation;
        let acted = self.host.with_batch(&controller, batch, |controller| {
            controller.add_stream(held, signed, &certified, now)
        });
        settled(acted)?;
        self.streams.insert(stream, known);
        self.notices.changed(&stream);
        Ok(())
    }

    /// Checks that a repeated handover is identical to the stored one.
    fn is_same(
        &self,
        owner_name: &str,
        stream: &StreamId,
        notice: &Notice,
        master: &MasterSecret,
    ) -> Result<(), GuardError> {
        self.of(owner_name, stream)?;
        let bytes = |notice: &Notice| postcard::to_allocvec(notice).ok();
        let known = self.notices.of(stream)?.and_then(|known| bytes(&known));
        let key = self.keys.stream_of(stream)?;
        let same = known == bytes(notice)
            && key
                .and_then(|key| key.master)
                .is_some_and(|known| known.secret() == master.secret());
        if same { Ok(()) } else { Err(GuardError::Here) }
    }

    /// An owner's certificate, which must have the name on the connection.
    pub(super) fn certified(
        &self,
        owner_name: &str,
        certificate: &Signed<Certificate>,
    ) -> Result<CertifiedOwner, GuardError> {
        let certified = self.deployment.owner(certificate)?;
        if self.revoked.has(&certificate.digest()) {
            return Err(CertificateError::Revoked.into());
        }
        if certified.name() == owner_name {
            Ok(certified)
        } else {
            Err(CertificateError::OtherName.into())
        }
    }

    pub(super) fn opened(
        &self,
        controller: &ControllerId,
        sealed: &HybridSealed,
        purpose: &Purpose,
    ) -> Result<MasterSecret, GuardError> {
        let controller = self.host.controller(controller);
        let controller: &Controller = controller.ok_or(GuardError::OtherController)?;
        Ok(controller.open_master(purpose, sealed)?)
    }

    /// Takes an owner's later choice. Once it returns, no answer under the earlier choice
    /// is sent.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn choose(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        choice: &Choice,
    ) -> Result<(), GuardError> {
        let owner = self.certified(owner_name, &choice.owner)?;
        let stream = annotation::open_choice(&choice.annotation, &owner, &self.schema)?.stream;
        let controller = self.of_here(owner_name, &stream)?.controller;
        let Some(Notice::Registered(mut registration)) = self.notices.of(&stream)? else {
            return Err(AnnotationError::Revoked.into());
        };
        registration.annotation = choice.annotation.clone();
        registration.owner = choice.owner.clone();
        let mut batch = Batch::new();
        self.notices.stage(&stream, &Notice::Registered(registration), &mut batch)?;
        let acted = self.host.with_batch(&controller, batch, |controller| {
            controller.annotate(&choice.annotation, &owner, now)
        });
        settled(acted)?;
        self.outgoing.take_back(&controller);
        self.notices.changed(&stream);
        Ok(())
    }

    /// Withdraws consent permanently: once it returns, nothing more is sent. If the key is
    /// to be erased, the controller's statement is returned once the key is destroyed.
    ///
    /// # Errors
    /// [`GuardError`]. The key may still exist then; another request or a restart
    /// continues the erasure.
    pub fn withdraw(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        asked: &WithdrawalRequest,
    ) -> Result<Option<Signed<Erasure>>, GuardError> {
        let WithdrawalRequest { signed, owner } = asked;
        let owner = &self.certified(owner_name, owner)?;
        let asked = signed.open(owner.key()).map_err(|_| AnnotationError::Unsigned)?.into_inner();
        let stream = asked.stream;
        // Where it has left, its key can still be destroyed. Consent is withdrawn where it is.
        let known = if asked.erase {
            self.of(owner_name, &stream)
        } else {
            self.of_here(owner_name, &stream)
        };
        let controller = known?.controller;
        let mut statement = None;
        // An erased stream needs no withdrawal, which would only delay other streams.
        let known = self.host.controller(&controller).and_then(|own| own.erasure(&stream));
        match known.cloned() {
            Some(known) => statement = Some(known),
            None => self.withdraw_by(&controller, &stream, |own| {
                let (step, erasure) = own.withdraw(signed, owner, now)?;
                statement = erasure;
                Ok(step)
            })?,
        }
        if statement.is_some() {
            self.keys.destroy([&stream])?;
        }
        Ok(statement)
    }

    /// Lets a controller withdraw a stream, with the notice for the service in the same
    /// commit, and takes back outgoing answers. Of a stream that has left, the service hears
    /// from its next host.
    pub(super) fn withdraw_by(
        &mut self,
        controller: &ControllerId,
        stream: &StreamId,
        act: impl FnOnce(&mut Controller) -> Result<Step<Vec<ControllerMessage>>, AnnotationError>,
    ) -> Result<(), GuardError> {
        let (mut batch, is_here) = (Batch::new(), self.next_of(controller, stream).is_none());
        if is_here {
            self.notices.stage(stream, &Notice::Withdrawn(*stream), &mut batch)?;
        }
        settled(self.host.with_batch(controller, batch, act))?;
        self.outgoing.take_back(controller);
        if is_here {
            self.notices.changed(stream);
        }
        Ok(())
    }

    pub(super) fn of(
        &self,
        owner_name: &str,
        stream: &StreamId,
    ) -> Result<&GuardedStream, GuardError> {
        let known = self.streams.get(stream);
        known.filter(|known| known.owner_name == owner_name).ok_or(GuardError::NotYours)
    }

    /// The same, unless it has left.
    pub(super) fn of_here(
        &self,
        owner_name: &str,
        stream: &StreamId,
    ) -> Result<&GuardedStream, GuardError> {
        let known = self.of(owner_name, stream)?;
        match self.next_of(&known.controller, stream) {
            Some(next) => Err(GuardError::Moved(next)),
            None => Ok(known),
        }
    }

    /// An owner's streams.
    #[must_use]
    pub fn streams_of(&self, owner_name: &str) -> BTreeSet<StreamId> {
        let own = |(_, known): &(&StreamId, &GuardedStream)| known.owner_name == owner_name;
        self.streams.iter().filter(own).map(|(stream, _)| *stream).collect()
    }

    /// The state of the budgets of an owner's stream.
    ///
    /// # Errors
    /// [`GuardError::NotYours`].
    pub fn standings(
        &self,
        now: Timestamp,
        owner_name: &str,
        stream: &StreamId,
    ) -> Result<Vec<BudgetStanding>, GuardError> {
        let controller = self.host.controller(&self.of(owner_name, stream)?.controller);
        Ok(controller.and_then(|own| own.standings(stream, now)).unwrap_or_default())
    }

    /// A reader of the log of an owner's stream. It does not need the guard, which can
    /// answer the service meanwhile.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn log(&self, owner_name: &str, stream: &StreamId) -> Result<OwnersLog, GuardError> {
        let controller = self.of(owner_name, stream)?.controller;
        let (store, space) = (self.store.clone(), self.spaces.ledger.clone());
        Ok(OwnersLog { store, space, controller, stream: *stream })
    }
}

/// Reads the log of one stream.
pub struct OwnersLog {
    store: Arc<dyn Store>,
    space: Space,
    controller: ControllerId,
    stream: StreamId,
}

impl OwnersLog {
    /// The log's lines, oldest first. They name no other stream.
    ///
    /// # Errors
    /// The store's error.
    pub fn read(&self) -> Result<Vec<LogLine>, alpheus_transport::Error> {
        let prefix = log_prefix(self.controller);
        let records = scan_all(self.store.as_ref(), &self.space, &prefix)?;
        let line = |value: &[u8]| match StampedRecord::read(value).ok()?.record {
            Record::Log(line) if line.concerns(&self.stream) => {
                Some(LogLine { streams: vec![self.stream], ..line })
            }
            _ => None,
        };
        let mut lines: Vec<_> = records.iter().filter_map(|(_, value)| line(value)).collect();
        lines.sort_by_key(|line| line.at);
        Ok(lines)
    }
}

/// Flattens the result of a controller's action.
fn settled(
    acted: Option<Result<Result<(), HostError>, AnnotationError>>,
) -> Result<(), GuardError> {
    acted.ok_or(GuardError::OtherController)???;
    Ok(())
}
