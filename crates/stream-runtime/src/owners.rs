//! Owners in an embedded deployment: they change their choices and read their log.

use super::embedded_deployment::EmbeddedDeployment;
use super::error::RuntimeError;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::certificate::{CertifiedOwner, Party, Role};
use alpheus_encrypted_stream::ledger::{LogLine, Record, Scope, StampedRecord};
use alpheus_node::ledger::scan_all;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::Timestamp;
use bytes::Bytes;

impl EmbeddedDeployment {
    /// An owner's certificate in this deployment.
    pub(super) fn certified_owner(&self, owner: &str) -> Result<CertifiedOwner, RuntimeError> {
        let key = self.root.owner(owner).verifying_key();
        let certificate = self.root.certify(Party::signing(Role::Owner, owner, key));
        Ok(self.deployment.owner(&certificate)?)
    }

    /// Signs and hands in an owner's new choice for a stream.
    ///
    /// # Errors
    /// [`RuntimeError`] if the controller refuses it.
    pub fn annotate(
        &mut self,
        clock: Timestamp,
        member: usize,
        owner: &str,
        annotation: &Annotation,
    ) -> Result<(), RuntimeError> {
        let Some(controller) = self.controller_of.get(member).copied() else { return Ok(()) };
        let signed = Signed::new(annotation, &self.root.owner(owner));
        let owner = self.certified_owner(owner)?;
        let acted =
            self.host.with(&controller, |controller| controller.annotate(&signed, &owner, clock));
        match acted {
            Some(Ok(committed)) => Ok(committed?),
            Some(Err(refused)) => Err(refused.into()),
            None => Ok(()),
        }
    }

    /// All records of the controllers' ledgers, as they are stored.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn ledger_records(&self) -> Result<Vec<(Bytes, Bytes)>, RuntimeError> {
        Ok(scan_all(self.private.as_ref(), &self.topics.ledger, b"")?)
    }

    /// Signs an owner's new policy for a stream and hands it to the controller and then to
    /// the service, whose next plans follow it.
    ///
    /// # Errors
    /// [`RuntimeError`] if the controller refuses it.
    pub fn change_policy(
        &mut self,
        clock: Timestamp,
        member: usize,
        owner: &str,
        version: u32,
        policy: ResolvedPolicy,
    ) -> Result<(), RuntimeError> {
        let stream = self.streams.get(member);
        let known = self.manager.catalog.streams().find(|known| Some(&known.stream) == stream);
        let Some(mut known) = known.cloned() else { return Ok(()) };
        known.policy = policy;
        let annotation = Annotation {
            stream: known.stream,
            owner: known.owner,
            schema: known.schema,
            version,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: known.metadata.clone(),
            policy: known.policy.clone(),
        };
        self.annotate(clock, member, owner, &annotation)?;
        self.manager.put_stream(known, None);
        Ok(())
    }

    /// The owner's log of a member's stream, oldest first.
    ///
    /// # Privacy
    /// The log comes from the controller's ledger; the service does not have it.
    ///
    /// # Errors
    /// [`RuntimeError`] if the ledger cannot be read.
    pub fn owner_log(&self, member: usize) -> Result<Vec<LogLine>, RuntimeError> {
        let (Some(controller), Some(stream)) =
            (self.controller_of.get(member), self.streams.get(member))
        else {
            return Ok(Vec::new());
        };
        let prefix = Scope::Controller(*controller).prefix();
        let records = scan_all(self.private.as_ref(), &self.topics.ledger, &prefix)?;
        let line = |value: &[u8]| match StampedRecord::read(value).ok()?.record {
            Record::Log(line) if line.concerns(stream) => Some(line),
            _ => None,
        };
        Ok(records.iter().filter_map(|(_, value)| line(value)).collect())
    }
}
