//! The consumer that results are sealed to (`RELEASE TO`). Each controller adds a
//! pad to its token, and only this consumer's key can remove it.
//!
//! | file | holds |
//! | --- | --- |
//! | [`pad`] | the pads that controllers add and the consumer removes |
//! | [`sealed_sum`] | what the service publishes for a window, and its encoding |
//!
//! [`decode`](crate::decode) computes results from the opened rows.
//!
//! # Privacy
//! The service learns that a window opened, when, and over how many owners. The
//! consumer learns the rows. Together they learn what the service learns from a
//! plan without `RELEASE TO`. Anyone who obtains the consumer's key later can
//! read every window that was ever sealed to it.

mod pad;
mod sealed_sum;

pub use pad::{ConsumerPad, pad_digest};
pub use sealed_sum::{SealedSum, SealedSumError};

use std::sync::Arc;

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hybrid::{HybridKey, HybridPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::ConsumerId;

use crate::announced_plan::AnnouncedPlan;
use crate::certificate::{Certificate, Deployment, Party, Role, consumer_id};
use crate::counts::narrow;
use crate::error::{CertificateError, RawReadError, UnsealError};
use crate::grant::{GrantedStream, HandedDays, RawReader};

/// A consumer's keys before certification by the authority, all derived from one seed.
pub struct ConsumerSecrets {
    signing: SigningKey,
    agreement: AgreementKey,
    sealing: HybridKey,
}

/// A consumer's keys with its certificate.
pub struct Consumer {
    id: ConsumerId,
    authority: VerifyingKey,
    agreement: AgreementKey,
    sealing: HybridKey,
}

impl ConsumerSecrets {
    /// Derives the keys from a seed. Anyone who has the seed can read what is
    /// sealed to the consumer.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        let part = |label| derive::<32>(seed.expose(), label, &[]);
        Self {
            signing: SigningKey::from_seed(&part(labels::CONSUMER_SIGNING)),
            agreement: AgreementKey::from_seed(&part(labels::CONSUMER_AGREEMENT)),
            sealing: HybridKey::from_seed(&part(labels::CONSUMER_SEALING)),
        }
    }

    /// The key that secrets are sealed for. The certificate has its digest.
    #[must_use]
    pub fn hybrid(&self) -> &HybridPublic {
        self.sealing.public()
    }

    /// What the authority is asked to certify.
    #[must_use]
    pub fn request(&self, name: impl Into<String>) -> Party {
        Party {
            role: Role::Consumer,
            name: name.into(),
            verifying: self.signing.verifying_key(),
            agreement: Some(self.agreement.public()),
            sealing: None,
            hybrid: Some(self.sealing.public().digest()),
        }
    }

    /// Combines the keys with the certificate that the authority signed.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for a consumer with
    /// these keys.
    pub fn certified(
        self,
        certificate: &Signed<Certificate>,
        deployment: &Deployment,
    ) -> Result<Consumer, CertificateError> {
        let certificate = deployment.consumer(certificate)?;
        if certificate.party != self.request(&*certificate.party.name) {
            return Err(CertificateError::OtherKeys);
        }
        let ConsumerSecrets { agreement, sealing, .. } = self;
        let (id, authority) = (consumer_id(&certificate), *deployment.authority());
        Ok(Consumer { id, authority, agreement, sealing })
    }
}

impl Consumer {
    /// The consumer's id in plans: the fingerprint of its certificate.
    #[must_use]
    pub fn id(&self) -> ConsumerId {
        self.id
    }

    /// The public half of the key that secrets are sealed for.
    #[must_use]
    pub fn hybrid(&self) -> &HybridPublic {
        self.sealing.public()
    }

    /// Opens the keys of a granted stream's days that its controller released, for events of
    /// `words` words according to the schema's layout.
    ///
    /// # Errors
    /// [`RawReadError`] if keys are for another reader, stream, schema or owner, are another
    /// controller's, or are damaged.
    pub fn raw_reader(
        &self,
        (granted, words): (&GrantedStream, u16),
        handed: &[HandedDays],
    ) -> Result<RawReader, RawReadError> {
        RawReader::new(&self.authority, (&self.id, &self.sealing), (granted, words), handed)
    }

    /// Agrees on keys with the roster of a plan that is sealed to this consumer.
    ///
    /// # Errors
    /// [`UnsealError`] if the plan is sealed to another certificate or to none, or a
    /// controller's key is invalid.
    pub fn reader(&self, announced: &Arc<AnnouncedPlan>) -> Result<Reader, UnsealError> {
        match announced.plan().sealed_to {
            None => return Err(UnsealError::NotSealed),
            Some(other) if other != self.id => return Err(UnsealError::OtherConsumer),
            Some(_) => {}
        }
        let pad = |(position, controller)| {
            let low_order = |_| UnsealError::LowOrder { position };
            ConsumerPad::agree(&self.agreement, controller).map_err(low_order)
        };
        let pads = (0..).zip(announced.agreement()).map(pad).collect::<Result<_, _>>()?;
        Ok(Reader { announced: Arc::clone(announced), pads })
    }
}

/// A consumer's keys shared with a plan's controllers.
pub struct Reader {
    announced: Arc<AnnouncedPlan>,
    /// By roster position.
    pads: Vec<ConsumerPad>,
}

impl Reader {
    /// The plan.
    #[must_use]
    pub fn announced(&self) -> &AnnouncedPlan {
        &self.announced
    }

    /// Removes the pads from a window's sum. Returns one word for each row of the
    /// release; the last, the check word, is zero.
    ///
    /// # Errors
    /// [`UnsealError`] if the sum is not of this plan or does not open. It does not
    /// open if the service misstates the opening set, the membership or the words.
    pub fn open(&self, sealed: &SealedSum) -> Result<Vec<u64>, UnsealError> {
        let plan = self.announced.plan();
        if sealed.plan != self.announced.id() {
            return Err(UnsealError::OtherPlan);
        }
        let window = sealed.window;
        let whole = window == plan.window_at(window.start);
        if !whole || !window.start.0.is_multiple_of(plan.window.0) || window.start < plan.from {
            return Err(UnsealError::OtherWindow);
        }
        if sealed.set.roster() != narrow(self.pads.len()) || sealed.set.count() == 0 {
            return Err(UnsealError::OtherRoster);
        }
        if sealed.words.len() != plan.release.outputs() {
            return Err(UnsealError::WrongLength);
        }
        let digest = pad_digest(&sealed.plan, window, &sealed.membership);
        let mut words = sealed.words.clone();
        for pad in sealed.set.iter().filter_map(|position| self.pads.get(position as usize)) {
            pad.subtract_from(&digest, &mut words);
        }
        if words.last() == Some(&0) { Ok(words) } else { Err(UnsealError::CheckWord) }
    }
}
