//! The identities of a deployment: small certificates that its authority signs (Zeph §2.3
//! assumes a public-key infrastructure).
//!
//! A plan names its controllers by [`fingerprint`]. A party that checks the plan gets the
//! certificates with it and needs only the authority's key.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Signed, Verified};
use alpheus_policy::ids::{ConsumerId, ControllerId};
use serde::{Deserialize, Serialize};

use crate::error::CertificateError;

/// The role of a certificate's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Plans queries and coordinates windows; holds no key to any data.
    Service,
    /// Guards its owners' streams.
    Controller,
    /// Reads results that are sealed to its key.
    Consumer,
}

/// The authority's statement that these keys belong to one party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The party's role.
    pub role: Role,
    /// Its name, for people.
    pub name: String,
    /// Verifies its messages (Ed25519). Consumers do not sign messages yet.
    pub verifying: VerifyingKey,
    /// Its key agreement key (X25519). The service's is not used.
    pub agreement: AgreementPublic,
    /// Master secrets are sealed for this key (HPKE). Service and consumers receive none.
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

/// The id by which plans refer to a controller: the digest of its certificate.
#[must_use]
pub fn fingerprint(certificate: &Verified<Certificate>) -> ControllerId {
    ControllerId(certificate.digest().0)
}

/// The id by which plans refer to the consumer that results are sealed to: the digest of
/// its certificate.
#[must_use]
pub fn consumer_id(certificate: &Verified<Certificate>) -> ConsumerId {
    ConsumerId(certificate.digest().0)
}

/// The deployment that a party belongs to: the authority it trusts and the service it works
/// with.
#[derive(Clone, Debug)]
pub struct Deployment {
    authority: VerifyingKey,
    service: Verified<Certificate>,
}

impl Deployment {
    /// Checks the service's certificate.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for a service.
    pub fn new(
        authority: VerifyingKey,
        service: &Signed<Certificate>,
    ) -> Result<Self, CertificateError> {
        let service = open_as(service, &authority, Role::Service)?;
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

    /// The agreement key in the service's certificate. Nobody uses it.
    #[must_use]
    pub fn service_agreement(&self) -> &AgreementPublic {
        &self.service.agreement
    }

    /// Checks a controller's certificate.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for a controller.
    pub fn controller(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<Verified<Certificate>, CertificateError> {
        open_as(certificate, &self.authority, Role::Controller)
    }

    /// Checks a consumer's certificate.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for a consumer.
    pub fn consumer(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<Verified<Certificate>, CertificateError> {
        open_as(certificate, &self.authority, Role::Consumer)
    }
}

fn open_as(
    certificate: &Signed<Certificate>,
    authority: &VerifyingKey,
    role: Role,
) -> Result<Verified<Certificate>, CertificateError> {
    let opened = certificate.open(authority).map_err(|_| CertificateError::Unsigned)?;
    if opened.role != role {
        return Err(CertificateError::Role);
    }
    if opened.agreement.has_small_order() { Err(CertificateError::SmallOrder) } else { Ok(opened) }
}
