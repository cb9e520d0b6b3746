//! The identities of a deployment: small certificates that its authority signs (Zeph §2.3
//! assumes a public-key infrastructure).
//!
//! A plan names its controllers by [`fingerprint`]. A party that checks the plan gets the
//! certificates with it and needs only the authority's key.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId};
use rand_core::CryptoRng;
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
    /// Decides what may be learned from their streams. One certificate is one owner.
    Owner,
    /// Sends streams.
    Device,
    /// Reads the keys of devices' sessions for the service, which only prove who sent a frame.
    Ingest,
}

/// The authority's name for the party behind a certificate: 16 random bytes, the same when
/// the certificate is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject(pub [u8; 16]);

impl Subject {
    /// A new party's.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Subject {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Subject(bytes)
    }
}

/// A party with its keys, as it asks the authority to certify them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// The party's role.
    pub role: Role,
    /// Its name, for people.
    pub name: String,
    /// Verifies its messages (Ed25519). Consumers do not sign messages yet.
    pub verifying: VerifyingKey,
    /// Its key agreement key (X25519): controllers and consumers have one.
    pub agreement: Option<AgreementPublic>,
    /// Keys of sessions are sealed for this key (HPKE): ingest has one.
    pub sealing: Option<SealingPublic>,
    /// The digest of the hybrid key that secrets are sealed for: controllers and consumers have
    /// one. The key itself would make every roster 40 times as long.
    pub hybrid: Option<Digest>,
}

impl Party {
    /// A party that only signs: a service, an owner or a device.
    #[must_use]
    pub fn signing(role: Role, name: impl Into<String>, verifying: VerifyingKey) -> Party {
        Party { role, name: name.into(), verifying, agreement: None, sealing: None, hybrid: None }
    }

    /// Certifies it as the deployment's authority.
    #[must_use]
    pub fn certify(self, subject: Subject, authority: &SigningKey) -> Signed<Certificate> {
        Signed::new(&Certificate { subject, party: self }, authority)
    }

    /// Whether it has the keys that its role needs, and no others.
    fn check_keys_of_role(&self) -> Result<(), CertificateError> {
        let keys = (self.agreement.is_some(), self.sealing.is_some(), self.hybrid.is_some());
        let needed = match self.role {
            Role::Service | Role::Owner | Role::Device => (false, false, false),
            Role::Controller | Role::Consumer => (true, false, true),
            Role::Ingest => (false, true, false),
        };
        match keys == needed {
            true => Ok(()),
            false if needed.2 && !keys.2 => Err(CertificateError::NoHybrid),
            false => Err(CertificateError::KeysOfRole),
        }
    }
}

/// The authority's statement that these keys belong to one party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The authority's name for it.
    pub subject: Subject,
    /// The party.
    pub party: Party,
}

impl Message for Certificate {
    const LABEL: &'static str = labels::CERTIFICATE;
}

/// A party that secrets are sealed for: its certificate, and the hybrid key that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    certificate: Verified<Certificate>,
    key: HybridPublic,
}

impl Recipient {
    /// Checks that the certificate names the key, and that both halves of the key are usable.
    ///
    /// # Errors
    /// [`CertificateError::NoHybrid`] if it names none; [`CertificateError::OtherHybrid`] if it
    /// names another; [`CertificateError::HalfHybrid`] if one half is no key.
    pub fn new(
        certificate: Verified<Certificate>,
        key: HybridPublic,
    ) -> Result<Recipient, CertificateError> {
        let named = certificate.party.hybrid.ok_or(CertificateError::NoHybrid)?;
        if named != key.digest() {
            return Err(CertificateError::OtherHybrid);
        }
        if !key.is_good() {
            return Err(CertificateError::HalfHybrid);
        }
        Ok(Recipient { certificate, key })
    }

    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> &Verified<Certificate> {
        &self.certificate
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &HybridPublic {
        &self.key
    }
}

/// An owner whose key the authority has certified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedOwner {
    id: OwnerId,
    opened: Verified<Certificate>,
    signed: Signed<Certificate>,
}

impl CertifiedOwner {
    /// The owner's id. It stays when the certificate is renewed, and a second key under the
    /// same certificate cannot exist, so one certificate is one owner.
    #[must_use]
    pub fn id(&self) -> OwnerId {
        self.id
    }

    /// Verifies the owner's statements.
    #[must_use]
    pub fn key(&self) -> &VerifyingKey {
        &self.opened.party.verifying
    }

    /// The name on the certificate.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.opened.party.name
    }

    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> &Signed<Certificate> {
        &self.signed
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
        &self.service.party.verifying
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

    /// Checks a device's certificate.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for a device.
    pub fn device(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<Verified<Certificate>, CertificateError> {
        open_as(certificate, &self.authority, Role::Device)
    }

    /// Checks the certificate of a service's ingest key. Returns its digest and the key.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for that.
    pub fn ingest(
        &self,
        certificate: &Signed<Certificate>,
    ) -> Result<(Digest, SealingPublic), CertificateError> {
        let opened = open_as(certificate, &self.authority, Role::Ingest)?;
        let key = opened.party.sealing.filter(SealingPublic::is_good);
        Ok((opened.digest(), key.ok_or(CertificateError::SmallOrder)?))
    }

    /// Checks an owner's certificate.
    ///
    /// # Errors
    /// [`CertificateError`] if the authority did not sign it for an owner.
    pub fn owner(&self, signed: &Signed<Certificate>) -> Result<CertifiedOwner, CertificateError> {
        let opened = open_as(signed, &self.authority, Role::Owner)?;
        let parts: [&[u8]; 2] = [self.authority.as_bytes(), &opened.subject.0];
        let id = OwnerId(labelled_hash(labels::OWNER, &parts).0);
        Ok(CertifiedOwner { id, opened, signed: signed.clone() })
    }
}

fn open_as(
    certificate: &Signed<Certificate>,
    authority: &VerifyingKey,
    role: Role,
) -> Result<Verified<Certificate>, CertificateError> {
    let opened = certificate.open(authority).map_err(|_| CertificateError::Unsigned)?;
    let party = &opened.party;
    if party.role != role {
        return Err(CertificateError::Role);
    }
    party.check_keys_of_role()?;
    if party.agreement.is_some_and(|key| key.has_small_order()) {
        return Err(CertificateError::SmallOrder);
    }
    Ok(opened)
}
