//! The consumer that results are sealed to (`RELEASE TO`): each controller adds a
//! pad to its token that only this consumer's key takes off again.
//!
//! | file | holds |
//! | --- | --- |
//! | [`pad`] | a controller's pads, and the consumer's |
//! | [`sealed`] | what the service publishes of a window, and its encoding |
//!
//! What is read off the rows once they are open is in [`decode`](crate::decode).
//!
//! # Privacy
//! The service learns that a window opened, when, and over how many owners. The
//! consumer learns the rows. Together they learn what the service learns of a plan
//! without `RELEASE TO`. Whoever gets the consumer's key later reads all windows
//! that were ever sealed to it.

mod pad;
mod sealed;

pub use pad::{ConsumerPad, bound};
pub use sealed::{NotSealedSum, SealedSum};

use std::sync::Arc;

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::ConsumerId;

use crate::announced::{Announced, narrow};
use crate::certificate::{Certificate, Deployment, Role, consumer_id};
use crate::error::{BadCertificate, Unreadable};

/// A consumer's keys, which the authority has not vouched for yet: all from one
/// seed.
pub struct ConsumerSecrets {
    signing: SigningKey,
    agreement: AgreementKey,
    sealing: SealingKey,
}

/// A consumer's keys with its certificate.
pub struct Consumer {
    id: ConsumerId,
    agreement: AgreementKey,
    /// None if its certificate is from before days' keys were sealed for consumers.
    sealing: Option<SealingKey>,
}

impl ConsumerSecrets {
    /// The keys that belong to a seed. Whoever has the seed reads what is sealed to
    /// the consumer.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        let part = |label| derive::<32>(seed.expose(), label, &[]);
        Self {
            signing: SigningKey::from_seed(&part(labels::CONSUMER_SIGNING)),
            agreement: AgreementKey::from_seed(&part(labels::CONSUMER_AGREEMENT)),
            sealing: SealingKey::from_seed(&part(labels::CONSUMER_SEALING)),
        }
    }

    /// What the authority is asked to sign.
    #[must_use]
    pub fn request(&self, name: impl Into<String>) -> Certificate {
        Certificate {
            role: Role::Consumer,
            name: name.into(),
            verifying: self.signing.verifying_key(),
            agreement: self.agreement.public(),
            sealing: Some(self.sealing.public()),
        }
    }

    /// Takes the certificate that the authority signed.
    ///
    /// # Errors
    /// [`BadCertificate`] if the authority did not sign it for a consumer with
    /// these keys.
    pub fn certified(
        self,
        certificate: &Signed<Certificate>,
        deployment: &Deployment,
    ) -> Result<Consumer, BadCertificate> {
        let certificate = deployment.consumer(certificate)?;
        let ours = certificate.verifying == self.signing.verifying_key()
            && certificate.agreement == self.agreement.public()
            && certificate.sealing.is_none_or(|sealing| sealing == self.sealing.public());
        if !ours {
            return Err(BadCertificate::OtherKeys);
        }
        let sealing = certificate.sealing.map(|_| self.sealing);
        Ok(Consumer { id: consumer_id(&certificate), agreement: self.agreement, sealing })
    }
}

impl Consumer {
    /// Its id, by which plans name it: the fingerprint of its certificate.
    #[must_use]
    pub fn id(&self) -> ConsumerId {
        self.id
    }

    /// What days' keys are sealed for, if its certificate says.
    pub(crate) fn sealing(&self) -> Option<&SealingKey> {
        self.sealing.as_ref()
    }

    /// Agrees on keys with the roster of a plan that is sealed to it.
    ///
    /// # Errors
    /// [`Unreadable`] if the plan is sealed to another certificate or to none, or a
    /// controller's key is not good.
    pub fn reader(&self, announced: &Arc<Announced>) -> Result<Reader, Unreadable> {
        match announced.plan().sealed_to {
            None => return Err(Unreadable::NotSealed),
            Some(other) if other != self.id => return Err(Unreadable::OtherConsumer),
            Some(_) => {}
        }
        let pad = |(position, controller)| {
            let low_order = |_| Unreadable::LowOrder { position };
            ConsumerPad::agree(&self.agreement, controller).map_err(low_order)
        };
        let pads = (0..).zip(announced.agreement()).map(pad).collect::<Result<_, _>>()?;
        Ok(Reader { announced: Arc::clone(announced), pads })
    }
}

/// A consumer's keys with a plan's controllers.
pub struct Reader {
    announced: Arc<Announced>,
    /// By roster position.
    pads: Vec<ConsumerPad>,
}

impl Reader {
    /// The plan.
    #[must_use]
    pub fn announced(&self) -> &Announced {
        &self.announced
    }

    /// Takes the pads off a window's sum: one word for each row of the release, the
    /// last, the check word, zero.
    ///
    /// # Errors
    /// [`Unreadable`] if the sum is not of this plan, or does not open: the service
    /// says of other controllers that they count, of another membership, or other
    /// words than those that controllers made.
    pub fn open(&self, sealed: &SealedSum) -> Result<Vec<u64>, Unreadable> {
        let plan = self.announced.plan();
        if sealed.plan != self.announced.id() {
            return Err(Unreadable::OtherPlan);
        }
        let window = sealed.window;
        let whole = window == plan.window_at(window.start);
        if !whole || !window.start.0.is_multiple_of(plan.window.0) || window.start < plan.from {
            return Err(Unreadable::OtherWindow);
        }
        if sealed.set.roster() != narrow(self.pads.len()) || sealed.set.count() == 0 {
            return Err(Unreadable::OtherRoster);
        }
        if sealed.words.len() != plan.release.outputs() {
            return Err(Unreadable::WrongLength);
        }
        let bound = bound(&sealed.plan, window, &sealed.membership);
        let mut words = sealed.words.clone();
        for pad in sealed.set.iter().filter_map(|position| self.pads.get(position as usize)) {
            pad.take_off(&bound, &mut words);
        }
        if words.last() == Some(&0) { Ok(words) } else { Err(Unreadable::CheckWord) }
    }
}
