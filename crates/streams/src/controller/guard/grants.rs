//! Raw access at a host: owners grant it, and readers fetch keys of days.

use super::{Guard, GuardError};
use crate::wire::{GrantRequest, KeysRequest, KeysResponse};
use alpheus_encrypted_stream::certificate::consumer_id;
use alpheus_encrypted_stream::error::GrantError;
use alpheus_time::Timestamp;
use alpheus_transport::Batch;

impl Guard {
    /// Takes an owner's grant for a consumer.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn grant(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        asked: &GrantRequest,
    ) -> Result<(), GuardError> {
        let GrantRequest { signed, owner, certificate } = asked;
        let owner = &self.certified(owner_name, owner)?;
        if self.revoked.has(&certificate.digest()) {
            return Err(GrantError::Revoked.into());
        }
        let stated = signed.open(owner.key()).map_err(|_| GrantError::Unsigned)?.into_inner();
        let stream = &stated.stream;
        // Where the stream has left, an access can still be ended.
        let known = match stated.days {
            Some(_) => self.of_here(owner_name, stream),
            None => self.of(owner_name, stream),
        };
        let controller = known?.controller;
        let acted = self.host.with_batch(&controller, Batch::new(), |controller| {
            controller.grant(signed, certificate, owner, now)
        });
        acted.ok_or(GuardError::OtherController)???;
        Ok(())
    }

    /// Hands out keys of days to the reader that an owner named.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn hand_out(
        &mut self,
        now: Timestamp,
        reader_name: &str,
        asked: &KeysRequest,
    ) -> Result<KeysResponse, GuardError> {
        let KeysRequest { stream, certificate, key } = asked;
        let certified = self.deployment.consumer(certificate);
        let certified = certified.map_err(|_| GrantError::Certificate)?;
        if self.revoked.has(&certificate.digest()) {
            return Err(GrantError::Revoked.into());
        }
        if certified.party.name != reader_name {
            return Err(GrantError::OtherReader.into());
        }
        let reader = consumer_id(&certified);
        self.apply_revocations();
        let known = self.streams.get(stream).ok_or(GrantError::NotGranted)?;
        let controller = known.controller;
        let rng = &mut self.rng;
        let acted = self.host.answer_of(&controller, Batch::new(), |controller| {
            controller.hand_out(stream, (&reader, key), now, rng)
        });
        let keys = acted.ok_or(GuardError::OtherController)???;
        let own = self.host.controller(&controller).and_then(|own| own.grant_for(stream, &reader));
        let (signed, owner) = own.ok_or(GrantError::NotGranted)?;
        let (signed, owner) = (signed.clone(), owner.certificate().clone());
        let known = self.certificates.get(&controller);
        let controller = known.ok_or(GuardError::OtherController)?.clone();
        Ok(KeysResponse { signed, owner, controller, keys })
    }
}
