//! What owners do at their controller: hand streams over, choose, revoke.

use alpheus_crypto::seal::{NotSealed, Sealed};
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::held::{Held, HeldStream};
use crate::annotation::{self, Annotation};
use crate::error::AnnotationRefused;
use crate::handover::Purpose;
use crate::keys::MasterSecret;
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

impl Controller {
    /// Opens a master secret that was sealed for this controller.
    ///
    /// # Errors
    /// [`NotSealed`] if it was sealed for another, for another purpose, or is
    /// damaged.
    pub fn receive(&self, purpose: &Purpose, sealed: &Sealed) -> Result<MasterSecret, NotSealed> {
        purpose.open(self.identity.sealing(), sealed)
    }

    /// Takes a stream in. Nothing is released of it before its owner has
    /// [annotated](Controller::annotate) it. A stream that is already held is
    /// left as it is; what the ledger says of it holds, whenever it is handed over.
    pub fn hold(&mut self, stream: HeldStream) {
        // A ledger that was lost may have known the stream, and another choice.
        let confirmed = self.restored.is_none().then_some(Timestamp(0));
        let id = stream.stream;
        let held = self.streams.entry(id).or_insert_with(|| Held::new(stream, confirmed));
        if let Some(remembered) = self.unheld.remove(&id) {
            remembered.into_iter().for_each(|remembered| held.remember(remembered));
            self.settle_sessions();
        }
    }

    /// Takes a new stream in with its owner's first choice, or leaves everything
    /// as it was.
    ///
    /// # Errors
    /// [`AnnotationRefused`] names the rule.
    pub fn take_in(
        &mut self,
        now: Timestamp,
        stream: HeldStream,
        owner: &VerifyingKey,
        signed: &Signed<Annotation>,
    ) -> Result<Step<ControllerMessage>, AnnotationRefused> {
        let id = stream.stream;
        let is_new = !self.streams.contains_key(&id) && !self.unheld.contains_key(&id);
        self.hold(stream);
        let taken = self.annotate(now, owner, signed);
        if taken.is_err() && is_new {
            self.streams.remove(&id);
        }
        taken
    }

    /// Whether a stream is held.
    #[must_use]
    pub fn holds(&self, stream: &StreamId) -> bool {
        self.streams.contains_key(stream)
    }

    /// Takes an owner's choice for a stream. It is in force once the step is
    /// committed; for windows that have begun before, the earlier choice must
    /// allow a release as well.
    ///
    /// After an untrusted restore nothing leaves of a stream, and no window that
    /// began before is released, until its owner has handed in the annotation
    /// that the ledger knows once more, or a later one.
    ///
    /// # Errors
    /// [`AnnotationRefused`] names the rule.
    pub fn annotate(
        &mut self,
        now: Timestamp,
        owner: &VerifyingKey,
        signed: &Signed<Annotation>,
    ) -> Result<Step<ControllerMessage>, AnnotationRefused> {
        let opened = annotation::open(signed, owner)?;
        let stream = opened.stream;
        let held = self.streams.get_mut(&stream).ok_or(AnnotationRefused::NotHeld)?;
        let waited = held.is_suspended();
        let known = held.current().map(|taken| taken.annotation.version);
        let (id, policy) = (held.owner, opened.policy.clone());
        let (version, since) = held.annotate(opened, now.max(self.clock))?;
        let charged = match waited && known != Some(version) {
            true => self.charge_lost(now, (stream, id), policy, known.is_some()),
            false => Vec::new(),
        };
        let (owner, signed) = (*owner, signed.clone());
        let record = Record::Annotation { stream, version, since, owner, signed };
        let line = log(now, stream, LogEvent::PolicyChanged { version });
        let mut changes = vec![self.put(now, record), self.put(now, line)];
        changes.extend(charged);
        Ok(Step::new(changes, Vec::new()))
    }

    /// After an untrusted restore: what a choice that the ledger had lost may have
    /// paid. Of a stream that it knew nothing of, all time before counts.
    fn charge_lost(
        &mut self,
        now: Timestamp,
        stream: (StreamId, OwnerId),
        policy: ResolvedPolicy,
        was_known: bool,
    ) -> Vec<Change> {
        let Some(end) = self.restored else { return Vec::new() };
        let start = if was_known { self.lost_from } else { Timestamp(0) };
        self.forfeit(now, stream, &[policy], Window { start, end }, 1)
    }

    /// Revokes consent for a stream, for good. Nothing leaves of it from now
    /// on, and once the step is committed, never again.
    ///
    /// # Errors
    /// [`AnnotationRefused::NotHeld`] if no such stream is held.
    pub fn revoke(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
    ) -> Result<Step<ControllerMessage>, AnnotationRefused> {
        let held = self.streams.get_mut(stream).ok_or(AnnotationRefused::NotHeld)?;
        held.revoked = true;
        let line = log(now, *stream, LogEvent::Revoked);
        let record = Record::Revoked { stream: *stream };
        Ok(Step::new(vec![self.put(now, record), self.put(now, line)], Vec::new()))
    }
}

fn log(at: Timestamp, stream: StreamId, event: LogEvent) -> Record {
    Record::Log(LogLine { at, streams: vec![stream], event })
}
