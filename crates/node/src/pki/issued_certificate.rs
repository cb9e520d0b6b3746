//! A certificate that the authority has issued before, read so that it can be extended.

use super::LOCAL;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm};
use rustls::SignatureScheme;
use rustls::crypto::ring;
use std::net::IpAddr;
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// What is kept of it.
pub(super) struct IssuedCertificate {
    pub(super) key: PublicKey,
    /// But those that every process that listens has.
    pub(super) hosts: Vec<String>,
}

/// A key without its private half.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PublicKey(Vec<u8>);

impl PublicKey {
    /// The key that a certificate is for.
    pub(super) fn of(certificate: &Certificate) -> Option<PublicKey> {
        let info = certificate.tbs_certificate().subject_public_key_info();
        Some(PublicKey(info.subject_public_key.as_bytes()?.to_vec()))
    }

    /// Whether a certificate is for this key.
    pub(super) fn is_of(&self, certificate: &Certificate) -> bool {
        PublicKey::of(certificate).is_some_and(|key| key == *self)
    }
}

impl From<&KeyPair> for PublicKey {
    fn from(pair: &KeyPair) -> PublicKey {
        PublicKey(pair.der_bytes().to_vec())
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// Why a certificate is not extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownError {
    #[error("the certificate cannot be read")]
    Malformed,
    #[error("another authority issued this certificate; name the folder of that authority")]
    Foreign,
    #[error(
        "its key is of a kind that is not issued here; `alpheus ca issue` creates another identity"
    )]
    Key,
}

impl IssuedCertificate {
    /// Reads a certificate, whose time may be over, and checks that one of these keys has signed it.
    pub(super) fn open(
        der: &[u8],
        authorities: &[PublicKey],
    ) -> Result<IssuedCertificate, UnknownError> {
        let malformed = |_| UnknownError::Malformed;
        let certificate = Certificate::from_der(der).map_err(malformed)?;
        let signed = certificate.tbs_certificate();
        let message = signed.to_der().map_err(malformed)?;
        let signature = certificate.signature().as_bytes().ok_or(UnknownError::Malformed)?;
        if !authorities.iter().any(|key| is_signed(&message, signature, key)) {
            return Err(UnknownError::Foreign);
        }
        let info = signed.subject_public_key_info();
        let key = PublicKey::of(&certificate).ok_or(UnknownError::Malformed)?;
        if info.to_der().map_err(malformed)? != key.subject_public_key_info() {
            return Err(UnknownError::Key);
        }
        let names = signed.get_extension::<SubjectAltName>().map_err(malformed)?;
        let hosts = names.iter().flat_map(|(_, names)| &names.0).filter_map(host);
        Ok(IssuedCertificate {
            key,
            hosts: hosts.filter(|host| !LOCAL.contains(&host.as_str())).collect(),
        })
    }
}

fn is_signed(message: &[u8], signature: &[u8], authority: &PublicKey) -> bool {
    let schemes = ring::default_provider().signature_verification_algorithms.mapping;
    let ours = schemes.iter().find(|(scheme, _)| *scheme == SignatureScheme::ECDSA_NISTP256_SHA256);
    let mut algorithms = ours.into_iter().flat_map(|(_, algorithms)| algorithms.iter());
    algorithms.any(|algorithm| {
        algorithm.verify_signature(authority.der_bytes(), message, signature).is_ok()
    })
}

/// A host's name or address; a role is none.
fn host(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::identity::CERTIFICATE;
    use crate::network::role::{Name, Role};
    use crate::pki::{Folder, Lifetime, issue, make_authority, read_certificate, renew};
    use std::path::Path;

    fn authority(folder: &Path) -> Folder {
        let authority = Folder::create(folder).unwrap();
        make_authority(&authority).unwrap();
        authority
    }

    fn identity(authority: &Folder, folder: &Path, hosts: &[&str]) {
        let name = Name::new(Role::Server, "service").unwrap();
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        issue(authority, &Folder::create(folder).unwrap(), &name, &hosts, Lifetime::days(1))
            .unwrap();
    }

    #[test]
    fn a_renewed_certificate_has_the_same_key_names_and_role_and_another_end() {
        let place = tempfile::tempdir().unwrap();
        let authority = authority(&place.path().join("pki"));
        let folder = place.path().join("service");
        identity(&authority, &folder, &["service.example", "10.1.2.3", "::1"]);
        let file = folder.join(CERTIFICATE);
        let read = || Certificate::from_der(&read_certificate(&file).unwrap()).unwrap();
        let before = read();
        renew(&authority, &file, Lifetime::days(30)).unwrap();
        let after = read();
        let (before, after) = (before.tbs_certificate(), after.tbs_certificate());
        assert_eq!(before.subject_public_key_info(), after.subject_public_key_info());
        assert_eq!(before.subject(), after.subject());
        let names = |of: &x509_cert::TbsCertificate| {
            of.get_extension::<SubjectAltName>().unwrap().unwrap().1.0
        };
        assert_eq!(names(before), names(after));
        let days = |of: &x509_cert::TbsCertificate| {
            let validity = of.validity();
            (validity.not_after.to_unix_duration() - validity.not_before.to_unix_duration())
                .as_secs()
                / 86_400
        };
        assert_eq!((days(before), days(after)), (1, 30));
    }

    #[test]
    fn what_another_authority_has_issued_is_not_extended() {
        let place = tempfile::tempdir().unwrap();
        let (own, other) =
            (authority(&place.path().join("own")), authority(&place.path().join("other")));
        let folder = place.path().join("service");
        identity(&other, &folder, &[]);
        let file = folder.join(CERTIFICATE);
        let before = std::fs::read(&file).unwrap();
        let refused = renew(&own, &file, Lifetime::days(30)).unwrap_err().to_string();
        assert!(refused.contains("another authority"), "{refused}");
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
}
