//! What owners do at their controller: hand over streams, annotate them, withdraw consent.

use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::seal::UnsealError;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::copies::DeviceCopy;
use super::stream_state::{HeldStream, StreamState};
use crate::annotation::{self, Annotation};
use crate::certificate::CertifiedOwner;
use crate::error::AnnotationError;
use crate::handover::Purpose;
use crate::keys::MasterSecret;
use crate::ledger::{Change, LogEvent, LogLine, Record, Step, annotation_key};
use crate::messages::ControllerMessage;
use crate::withdrawal::{self, Erasure, Withdrawal};

/// Owners' requests change records and send nothing to the service.
type OwnerStep = Step<Vec<ControllerMessage>>;

impl Controller {
    /// Opens a master secret that was sealed for this controller.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another controller or purpose, or is damaged.
    pub fn open_master(
        &self,
        purpose: &Purpose,
        sealed: &HybridSealed,
    ) -> Result<MasterSecret, UnsealError> {
        let own = (&self.identity.id(), self.identity.sealing());
        purpose.open(self.deployment.authority(), own, sealed)
    }

    /// The key that master secrets are sealed for. The certificate has its digest.
    #[must_use]
    pub fn hybrid(&self) -> &HybridPublic {
        self.identity.sealing().public()
    }

    /// Takes a stream in. Nothing of it is released before its owner has
    /// [annotated](Controller::annotate) it. A stream that is already held stays as it is.
    /// Ledger records of the stream apply whenever it is handed over.
    pub fn hold(&mut self, stream: HeldStream) {
        // A lost ledger may have held another annotation of this stream.
        let confirmed = self.restored_at.is_none().then_some(Timestamp(0));
        let id = stream.stream;
        let state = self.streams.entry(id).or_insert_with(|| StreamState::new(stream, confirmed));
        if self.erasures.contains_key(&id) {
            state.forget_keys();
        }
        if let Some(remembered) = self.pending_records.remove(&id) {
            remembered.into_iter().for_each(|remembered| state.remember(remembered));
            state.note_revoked(&self.revoked);
            self.settle_sessions();
        }
    }

    /// Takes a new stream in with its owner's first annotation, or changes nothing.
    ///
    /// # Errors
    /// [`AnnotationError`] names the rule.
    pub fn add_stream(
        &mut self,
        stream: HeldStream,
        signed: &Signed<Annotation>,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<OwnerStep, AnnotationError> {
        let id = stream.stream;
        let is_new = !self.streams.contains_key(&id) && !self.pending_records.contains_key(&id);
        self.hold(stream);
        let taken = self.annotate(signed, owner, now);
        if taken.is_err() && is_new {
            self.streams.remove(&id);
        }
        taken
    }

    /// Whether this controller holds a stream.
    #[must_use]
    pub fn holds(&self, stream: &StreamId) -> bool {
        self.streams.contains_key(stream)
    }

    /// Takes an owner's annotation of a stream. It is in force once the step is committed.
    /// For windows that have begun before, the earlier annotation must allow a release as
    /// well.
    ///
    /// After an untrusted restore, nothing of a stream is released until its owner has
    /// submitted the annotation in the ledger again, or a later one. No window that began
    /// before that is released. The same holds after two frames have shown that the stream's
    /// device has a copy.
    ///
    /// # Errors
    /// [`AnnotationError`] names the rule.
    pub fn annotate(
        &mut self,
        signed: &Signed<Annotation>,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<OwnerStep, AnnotationError> {
        let opened = annotation::open(signed, owner)?;
        let stream = opened.stream;
        let state = self.streams.get_mut(&stream).ok_or(AnnotationError::NotHeld)?;
        let waited = state.is_suspended();
        let known = state.current().map(|taken| taken.annotation.version);
        let (id, policy) = (state.owner, opened.policy.clone());
        let (version, since) = state.annotate(opened, now.max(self.clock))?;
        let forgotten = state.forget_oldest();
        state.note_owner(owner.certificate().digest(), &self.revoked);
        let copies = state.copies.confirm(now.max(self.clock));
        let charged = match waited && known != Some(version) {
            true => self.charge_lost(now, (stream, id), policy, known.is_some()),
            false => Vec::new(),
        };
        let (owner, signed) = (owner.certificate().clone(), signed.clone());
        let record = Record::Annotation { stream, version, since, owner, signed };
        let line = log(now, stream, LogEvent::PolicyChanged { version });
        let mut changes = vec![self.put(now, record), self.put(now, line)];
        changes.extend(charged);
        let own = self.identity.id();
        let forgotten = forgotten.map(|version| annotation_key(own, stream, version));
        changes.extend(forgotten.map(Change::remove));
        for DeviceCopy { session, confirmed } in copies {
            changes.push(self.put(now, Record::Cloned { stream, session, confirmed }));
        }
        Ok(Step::new(changes, Vec::new()))
    }

    /// After an untrusted restore, charges what releases under an annotation that the
    /// ledger had lost may have cost. For a stream that the ledger did not know, all time
    /// before the restore counts.
    fn charge_lost(
        &mut self,
        now: Timestamp,
        stream: (StreamId, OwnerId),
        policy: ResolvedPolicy,
        was_known: bool,
    ) -> Vec<Change> {
        let Some(end) = self.restored_at else { return Vec::new() };
        let start = if was_known { self.lost_from } else { Timestamp(0) };
        self.forfeit(now, stream, &[policy], Window { start, end }, 1)
    }

    /// Withdraws an owner's consent for good, and deletes the keys if the owner requests
    /// it. Nothing of the stream is released from now on, and once the step is committed,
    /// never again. Repeating it returns the same statement.
    ///
    /// An erasure also wipes the keys of verified windows that are under way in plans with tokens over the
    /// stream. Those windows are lost here. If a key
    /// is to be erased, destroy the stored master secret once the step is
    /// committed. Only then send the controller's statement.
    ///
    /// # Errors
    /// [`AnnotationError`] names the rule.
    pub fn withdraw(
        &mut self,
        signed: &Signed<Withdrawal>,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<(OwnerStep, Option<Signed<Erasure>>), AnnotationError> {
        let stream = signed.open(owner.key()).map_err(|_| AnnotationError::Unsigned)?.stream;
        let state = self.streams.get(&stream).ok_or(AnnotationError::NotHeld)?;
        let opened = withdrawal::open(signed, owner, &state.owner)?;
        if opened.erase {
            let (step, said) = self.erase(&stream, now)?;
            return Ok((step, Some(said)));
        }
        Ok((Step::new(self.revoke(now, &stream)?, Vec::new()), None))
    }

    /// What [`Controller::withdraw`] does to erase a stream. For a host that finds a master
    /// secret destroyed while its ledger, an older copy, has no record of it.
    ///
    /// # Errors
    /// [`AnnotationError::NotHeld`] if the stream is not held.
    pub fn erase(
        &mut self,
        stream: &StreamId,
        now: Timestamp,
    ) -> Result<(OwnerStep, Signed<Erasure>), AnnotationError> {
        let mut changes = self.revoke(now, stream)?;
        let owner = self.streams.get(stream).map(|state| state.owner);
        let owner = owner.ok_or(AnnotationError::NotHeld)?;
        let (at, signed) = self.erasures.get(stream).cloned().unwrap_or_else(|| {
            let erasure = Erasure { stream: *stream, owner, controller: self.id(), at: now };
            (now, Signed::new(&erasure, self.identity.signing()))
        });
        self.note_erased(*stream, at, signed.clone());
        // Windows of those plans between token and opening are lost with them.
        self.wipe_keys_of(stream);
        let record = Record::Erased { stream: *stream, at, signed: signed.clone() };
        changes.push(self.put(now, record));
        changes.push(self.put(now, log(at, *stream, LogEvent::Erased)));
        Ok((Step::new(changes, Vec::new()), signed))
    }

    fn revoke(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
    ) -> Result<Vec<Change>, AnnotationError> {
        let state = self.streams.get_mut(stream).ok_or(AnnotationError::NotHeld)?;
        let at = *state.revoked.get_or_insert(now);
        let record = Record::Revoked { stream: *stream, at };
        Ok(vec![self.put(now, record), self.put(now, log(at, *stream, LogEvent::Revoked))])
    }

    /// The controller's statement about a stream whose key is destroyed.
    #[must_use]
    pub fn erasure(&self, stream: &StreamId) -> Option<&Signed<Erasure>> {
        self.erasures.get(stream).map(|(_, signed)| signed)
    }

    /// Its keys are never used again, even if somebody hands them over once more.
    pub(super) fn note_erased(&mut self, stream: StreamId, at: Timestamp, signed: Signed<Erasure>) {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.forget_keys();
        }
        self.erasures.insert(stream, (at, signed));
    }
}

fn log(at: Timestamp, stream: StreamId, event: LogEvent) -> Record {
    Record::Log(LogLine { at, streams: vec![stream], event })
}
