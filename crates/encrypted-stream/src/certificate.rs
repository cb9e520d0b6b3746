//! Who is who in a deployment: small certificates that its authority signs
//! (Zeph §2.3 assumes a public-key infrastructure).
//!
//! A plan names its controllers by [`fingerprint`]; whoever checks the plan
//! gets the certificates with it and needs only the authority's key.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Signed, Verified};
use alpheus_policy::ids::{ConsumerId, ControllerId};
use serde::{Deserialize, Serialize};

use crate::error::BadCertificate;

/// What the holder of a certificate may act as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Plans queries and coordinates windows; holds no key to any data.
    Service,
    /// Guards its owners' streams.
    Controller,
    /// Reads results that are sealed to its key.
    Consumer,
}

/// The authority's word that these keys belong to one party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// What the party may act as.
    pub role: Role,
    /// Its name, for people.
    pub name: String,
    /// Verifies its messages (Ed25519); a consumer signs none yet.
    pub verifying: VerifyingKey,
    /// Agrees on keys with it (X25519); the service's is not used.
    pub agreement: AgreementPublic,
    /// Master secrets are sealed for it (HPKE); service and consumers take none.
    pub sealing: Option<SealingPublic>,
}

impl Message for Certificate {
    const LABEL: &'static str = labels::CERTIFICATE;
}

impl Certificate {
    /// Signs it as the deployment's authority.
    #[must_use]
    pub fn issue(&self, authority: &SigningKey) -> Signed<Certificate> {
        Signed::new(self, authority)
    }
}

/// The id by which plans name a controller: the digest of its certificate.
#[must_use]
pub fn fingerprint(certificate: &Verified<Certificate>) -> ControllerId {
    ControllerId(certificate.digest().0)
}

/// The id by which plans name the consumer that results are sealed to: the digest of
/// its certificate.
#[must_use]
pub fn consumer_id(certificate: &Verified<Certificate>) -> ConsumerId {
    ConsumerId(certificate.digest().0)
}

/// The deployment that a party belongs to: whose word it takes, and which
/// service it deals with.
#[derive(Clone, Debug)]
pub struct Deployment {
    authority: VerifyingKey,
    service: Verified<Certificate>,
}

impl Deployment {
    /// Checks the service's certificate.
    ///
    /// # Errors
    /// [`BadCertificate`] if the authority did not sign it for a service.
    pub fn new(
        authority: VerifyingKey,
        service: &Signed<Certificate>,
    ) -> Result<Self, BadCertificate> {
        let service = opened(service, &authority, Role::Service)?;
        Ok(Self { authority, service })
    }

    /// The authority's key.
    #[must_use]
    pub fn authority(&self) -> &VerifyingKey {
        &self.authority
    }

    /// The service's key.
    #[must_use]
    pub fn service(&self) -> &VerifyingKey {
        &self.service.verifying
    }

    /// The agreement key in the service's certificate, which nobody agrees with.
    #[must_use]
    pub fn service_agreement(&self) -> &AgreementPublic {
        &self.service.agreement
    }

    /// Checks a controller's certificate.
    ///
    /// # Errors
    /// [`BadCertificate`] if the authority did not sign it for a controller.
    pub fn controller(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<Verified<Certificate>, BadCertificate> {
        opened(certificate, &self.authority, Role::Controller)
    }

    /// Checks a consumer's certificate.
    ///
    /// # Errors
    /// [`BadCertificate`] if the authority did not sign it for a consumer.
    pub fn consumer(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<Verified<Certificate>, BadCertificate> {
        opened(certificate, &self.authority, Role::Consumer)
    }
}

fn opened(
    certificate: &Signed<Certificate>,
    authority: &VerifyingKey,
    role: Role,
) -> Result<Verified<Certificate>, BadCertificate> {
    let opened = certificate.open(authority).map_err(|_| BadCertificate::Unsigned)?;
    if opened.role != role {
        return Err(BadCertificate::Role);
    }
    if opened.agreement.has_small_order() { Err(BadCertificate::SmallOrder) } else { Ok(opened) }
}
