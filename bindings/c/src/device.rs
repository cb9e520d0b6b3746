//! A device's files, as texts: which stream it sends, and with which keys.

use crate::codes::Code;
use crate::refusal::Refusal;
use crate::shape::Shape;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::OpeningSecrets;
use alpheus_policy::ids::{SchemaId, StreamId};
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use std::sync::Arc;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// The texts of a device's identity, from `alpheus ca issue`.
#[derive(Clone, Copy)]
pub struct IdentityTexts<'a> {
    /// `deployment.json`.
    pub deployment: &'a str,
    /// `device.txt`.
    pub certificate: &'a str,
    /// `device.seed`.
    pub seed: &'a str,
}

/// A device of a stream. Wiped when dropped.
pub struct Device {
    pub(crate) shape: Arc<Shape>,
    pub(crate) stream: StreamId,
    pub(crate) master: MasterSecret,
    pub(crate) identity: Option<Identity>,
}

/// What opens the sessions of a device with one frame a tick.
pub struct Identity {
    /// The device's signed certificate, which introduces it to the service.
    pub(crate) certificate: Vec<u8>,
    seed: Secret<32>,
    digest: Digest,
    authority: VerifyingKey,
    ingest: (Digest, SealingPublic),
}

/// The file of a device, from `alpheus owner add`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceFile {
    version: u32,
    stream: StreamId,
    schema: SchemaId,
    secret: Zeroizing<String>,
}

/// `deployment.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeploymentFile {
    version: u32,
    authority: String,
    service: String,
    #[serde(default)]
    ingest: Vec<String>,
}

/// What is wrong with a device's file. The reasons are those of the package for browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum DeviceFileError {
    #[error("it is not a device file; use the file that `alpheus owner add` wrote")]
    NotADeviceFile,
    #[error(
        "the device file has version {0}, and this library reads version {VERSION}; use the \
         version that wrote it, or create the stream again with `alpheus owner add`"
    )]
    OtherFormat(u32),
    #[error("the file's secret is not 64 hexadecimal digits")]
    BadSecret,
    #[error("the device file is for another schema, or for another version of it")]
    OtherSchema,
}

/// What is wrong with a device's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum IdentityError {
    #[error(
        "the schema has one frame a tick, for which the device needs deployment.json, device.txt \
         and device.seed; `alpheus ca issue` wrote them"
    )]
    NoIdentity,
    #[error("it is not the deployment.json that `alpheus ca issue` wrote")]
    NotADeployment,
    #[error("deployment.json names no ingest key, but a schema without `frames: events` needs one")]
    NoIngestKey,
    #[error("device.txt is not the certificate that `alpheus ca issue` wrote")]
    NotACertificate,
    #[error("device.seed is not 64 hexadecimal digits")]
    BadSeed,
}

impl Device {
    /// Reads the files of a device of a schema.
    ///
    /// # Errors
    /// [`Code::FileInvalid`], [`Code::IdentityInvalid`] or [`Code::CertificateRefused`].
    pub fn read(
        shape: &Arc<Shape>,
        text: &str,
        identity: Option<IdentityTexts<'_>>,
    ) -> Result<Device, Refusal> {
        let file = DeviceFile::read(text, shape);
        let (stream, master) = file.map_err(|error| Refusal::of(Code::FileInvalid, &error))?;
        let identity = match identity {
            _ if shape.schema.frames.is_events() => None,
            Some(texts) => Some(Identity::read(&texts)?),
            None => return Err(refused(IdentityError::NoIdentity)),
        };
        Ok(Device { shape: Arc::clone(shape), stream, master, identity })
    }
}

impl DeviceFile {
    fn read(text: &str, shape: &Shape) -> Result<(StreamId, MasterSecret), DeviceFileError> {
        let file: DeviceFile =
            serde_json::from_str(text).map_err(|_| DeviceFileError::NotADeviceFile)?;
        if file.version != VERSION {
            return Err(DeviceFileError::OtherFormat(file.version));
        }
        if file.schema != shape.schema.id() {
            return Err(DeviceFileError::OtherSchema);
        }
        let secret = secret_of(&file.secret).ok_or(DeviceFileError::BadSecret)?;
        Ok((file.stream, MasterSecret::new(secret)))
    }
}

impl Identity {
    fn read(texts: &IdentityTexts<'_>) -> Result<Identity, Refusal> {
        let file: Option<DeploymentFile> = serde_json::from_str(texts.deployment).ok();
        let file = file.filter(|file| file.version == VERSION);
        let file = file.ok_or_else(|| refused(IdentityError::NotADeployment))?;
        let authority = bytes_of(&file.authority).and_then(|bytes| bytes.try_into().ok());
        let authority = authority.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let service = signed_of(&file.service).map(|(signed, _)| signed);
        let (Some(authority), Some(service)) = (authority, service) else {
            return Err(refused(IdentityError::NotADeployment));
        };
        let deployment = Deployment::new(authority, &service).map_err(uncertified)?;
        let ingest = file.ingest.first().ok_or_else(|| refused(IdentityError::NoIngestKey))?;
        let ingest = signed_of(ingest).ok_or_else(|| refused(IdentityError::NotADeployment))?;
        let ingest = deployment.ingest(&ingest.0).map_err(uncertified)?;
        let certificate = signed_of(texts.certificate);
        let (signed, certificate) =
            certificate.ok_or_else(|| refused(IdentityError::NotACertificate))?;
        let opened = deployment.device(&signed).map_err(uncertified)?;
        let seed = secret_of(texts.seed).ok_or_else(|| refused(IdentityError::BadSeed))?;
        if opened.party.verifying != SigningKey::from_seed(&seed).verifying_key() {
            return Err(uncertified(CertificateError::OtherKeys));
        }
        Ok(Identity { certificate, seed, digest: opened.digest(), authority, ingest })
    }

    /// What opens one session.
    pub(crate) fn secrets(&self) -> OpeningSecrets {
        let (ingest, ingest_key) = self.ingest;
        OpeningSecrets {
            device: SigningKey::from_seed(&self.seed),
            certificate: self.digest,
            authority: self.authority,
            ingest,
            ingest_key,
        }
    }
}

fn refused(error: IdentityError) -> Refusal {
    Refusal::of(Code::IdentityInvalid, &error)
}

fn uncertified(error: CertificateError) -> Refusal {
    Refusal::of(Code::CertificateRefused, &error)
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(hex.trim().as_bytes()).ok()
}

fn secret_of(hex: &str) -> Option<Secret<32>> {
    let bytes = bytes_of(hex).map(Zeroizing::new)?;
    Secret::from_slice(&bytes)
}

/// A certificate, and its bytes.
fn signed_of(hex: &str) -> Option<(Signed<Certificate>, Vec<u8>)> {
    let bytes = bytes_of(hex)?;
    Some((postcard::from_bytes(&bytes).ok()?, bytes))
}
