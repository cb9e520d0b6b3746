//! A controller's keys. All come from one seed, so a backup is one secret.

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hybrid::{HybridKey, HybridPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::ControllerId;

use crate::certificate::{Certificate, Deployment, Party, Role, fingerprint};
use crate::error::CertificateError;

/// Keys that the authority has not certified yet.
pub struct IdentitySecrets {
    signing: SigningKey,
    agreement: AgreementKey,
    sealing: HybridKey,
    own: Secret<32>,
    noise: Secret<32>,
}

/// A controller's keys with its certificate.
pub struct Identity {
    id: ControllerId,
    secrets: IdentitySecrets,
}

impl IdentitySecrets {
    /// The keys that belong to a seed. Anyone who has the seed is the controller.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> Self {
        let part = |label| derive::<32>(seed.expose(), label, &[]);
        Self {
            signing: SigningKey::from_seed(&part(labels::IDENTITY_SIGNING)),
            agreement: AgreementKey::from_seed(&part(labels::IDENTITY_AGREEMENT)),
            sealing: HybridKey::from_seed(&part(labels::IDENTITY_SEALING)),
            own: part(labels::IDENTITY_OWN),
            noise: part(labels::IDENTITY_NOISE),
        }
    }

    /// The key that master secrets are sealed for. The certificate has its digest.
    #[must_use]
    pub fn hybrid(&self) -> &HybridPublic {
        self.sealing.public()
    }

    /// What the authority is asked to certify.
    #[must_use]
    pub fn request(&self, name: impl Into<String>) -> Party {
        Party {
            role: Role::Controller,
            name: name.into(),
            verifying: self.signing.verifying_key(),
            agreement: Some(self.agreement.public()),
            sealing: None,
            hybrid: Some(self.sealing.public().digest()),
        }
    }

    /// Takes the certificate that the authority signed.
    ///
    /// # Errors
    /// [`CertificateError`] unless the authority signed it for a controller with these keys.
    pub fn certified(
        self,
        certificate: &Signed<Certificate>,
        deployment: &Deployment,
    ) -> Result<Identity, CertificateError> {
        let certificate = deployment.controller(certificate)?;
        if certificate.party != self.request(&*certificate.party.name) {
            return Err(CertificateError::OtherKeys);
        }
        Ok(Identity { id: fingerprint(&certificate), secrets: self })
    }
}

impl Identity {
    /// The controller's id: the fingerprint of its certificate.
    #[must_use]
    pub fn id(&self) -> ControllerId {
        self.id
    }

    pub(super) fn signing(&self) -> &SigningKey {
        &self.secrets.signing
    }

    pub(super) fn agreement(&self) -> &AgreementKey {
        &self.secrets.agreement
    }

    pub(super) fn sealing(&self) -> &HybridKey {
        &self.secrets.sealing
    }

    /// Secret of the self-masks.
    pub(super) fn own(&self) -> &Secret<32> {
        &self.secrets.own
    }

    /// Secret that shares of noise are drawn from.
    pub(super) fn noise(&self) -> &Secret<32> {
        &self.secrets.noise
    }
}
