//! Raw access at a host: owners grant it, readers fetch days' keys.

use super::{Guard, GuardError};
use crate::network::wire::{GrantAsked, KeysAsked, KeysGiven};
use alpheus_encrypted_stream::certificate::consumer_id;
use alpheus_encrypted_stream::error::GrantRefused;
use alpheus_policy::time::Timestamp;
use alpheus_transport::Batch;

impl Guard {
    /// Takes an owner's word on what a consumer may read.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn grant(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        asked: &GrantAsked,
    ) -> Result<(), GuardError> {
        let GrantAsked { signed, owner, certificate } = asked;
        let stream = signed.open(owner).map_err(|_| GrantRefused::Unsigned)?.stream;
        let controller = self.of(owner_name, &stream)?.controller;
        let acted = self.host.with_batch(&controller, Batch::new(), |controller| {
            controller.grant(now, owner, signed, certificate)
        });
        acted.ok_or(GuardError::OtherController)???;
        Ok(())
    }

    /// Hands days' keys to the reader that an owner named.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn hand_out(
        &mut self,
        now: Timestamp,
        reader_name: &str,
        asked: &KeysAsked,
    ) -> Result<KeysGiven, GuardError> {
        let KeysAsked { stream, certificate } = asked;
        let certified = self.deployment.consumer(certificate);
        let certified = certified.map_err(|_| GrantRefused::Certificate)?;
        if certified.name != reader_name {
            return Err(GrantRefused::OtherReader.into());
        }
        let reader = consumer_id(&certified);
        let known = self.streams.get(stream).ok_or(GrantRefused::NotGranted)?;
        let controller = known.controller;
        let rng = &mut self.rng;
        let acted = self.host.answer_of(&controller, Batch::new(), |controller| {
            controller.hand_out(now, stream, &reader, rng)
        });
        let keys = acted.ok_or(GuardError::OtherController)???;
        let own = self.host.controller(&controller).and_then(|own| own.granted(stream, &reader));
        let (signed, owner) = own.ok_or(GrantRefused::NotGranted)?;
        Ok(KeysGiven { signed: signed.clone(), owner: *owner, keys })
    }
}
