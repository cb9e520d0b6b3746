//! Registered controllers and streams, durable in the service's store. All of it is
//! public.

use crate::wire::Registration;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{self, Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::{AnnotationError, CertificateError};
use alpheus_node::ledger::scan_all;
use alpheus_node::network::role::{Name, Role, host_named};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::manager::Manager;
use alpheus_stream_runtime::service::ServiceError;
use alpheus_time::Timestamp;
use alpheus_transport::Batch;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use thiserror::Error;

const CONTROLLERS: &[u8] = b"controller/";
const STREAMS: &[u8] = b"registration/";
const WITHDRAWN: &[u8] = b"withdrawn/";
const DEVICES: &[u8] = b"device/";

/// Why a registration was refused.
#[derive(Debug, Error)]
pub enum IntroductionError {
    /// The authority has not signed the certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A host introduced a controller of another host.
    #[error("the certificate is for the host `{named}`, but `{host}` introduced it")]
    OtherHost {
        /// The host in the certificate.
        named: String,
        /// The host that introduced it.
        host: String,
    },
    /// A device introduced itself with another's certificate.
    #[error("the certificate is for the device `{named}`, but `{device}` sent it")]
    OtherDevice {
        /// The device in the certificate.
        named: String,
        /// The device that sent it.
        device: String,
    },
    /// The stream's controller was not introduced, or by another host.
    #[error("the stream's controller was not introduced by this host")]
    UnknownController,
    /// The owner's choice is not valid.
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
    /// The authority has revoked a certificate of it.
    #[error("the authority has revoked the certificate of its {0}")]
    Revoked(&'static str),
    /// The stream is of a schema that this service does not serve, or of another version.
    #[error(
        "the annotation is for a different schema from this service's, or another version of it"
    )]
    WrongSchema,
    /// The device's name is not valid.
    #[error(transparent)]
    Producer(#[from] alpheus_node::network::role::PeerNameError),
    /// The owner has placed it at another controller since.
    #[error("its owner has moved the stream to another controller")]
    Moved(Box<Registration>),
    /// The store, or the manager.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<alpheus_transport::Error> for IntroductionError {
    fn from(error: alpheus_transport::Error) -> Self {
        IntroductionError::Runtime(error.into())
    }
}

/// A stream, as its owner has signed it.
struct RegisteredStream {
    annotation: Annotation,
    placement: Placement,
    owner: OwnerId,
    /// The digest of the owner's certificate.
    certificate: Digest,
}

/// Registered controllers and streams.
#[derive(Default)]
pub struct Registry {
    hosts: HashMap<ControllerId, String>,
    streams: HashMap<StreamId, RegisteredStream>,
    /// The certificate's digest and the key of each device, by its name.
    devices: HashMap<String, (Digest, VerifyingKey)>,
    /// Streams whose owners have withdrawn them permanently, and when the service was informed, which
    /// older records lack.
    withdrawn: HashMap<StreamId, Option<Timestamp>>,
    /// Devices whose last certificate was revoked.
    barred: HashSet<String>,
    /// Digests of certificates that the authority has revoked.
    revoked: BTreeSet<Digest>,
}

impl Registry {
    /// Loads the registrations from before a restart into the manager.
    ///
    /// # Errors
    /// [`IntroductionError`] if the store cannot be read.
    pub fn load(
        manager: &mut Manager,
        deployment: &Deployment,
    ) -> Result<Registry, IntroductionError> {
        let mut registry = Registry::default();
        let (store, topics) = (manager.service.store().clone(), manager.service.topics().clone());
        let damaged = || IntroductionError::Runtime(RuntimeError::DamagedPlans);
        for (_, value) in scan_all(store.as_ref(), &topics.service, CONTROLLERS)? {
            let certificate = postcard::from_bytes(&value).map_err(|_| damaged())?;
            registry.note_controller(manager, deployment, &certificate)?;
        }
        for (_, value) in scan_all(store.as_ref(), &topics.service, DEVICES)? {
            let certificate = postcard::from_bytes(&value).map_err(|_| damaged())?;
            match deployment.device(&certificate) {
                Ok(opened) => registry.note_device(manager, &opened)?,
                Err(refused) => tracing::warn!(%refused, "a stored device is left out"),
            }
        }
        for (_, value) in scan_all(store.as_ref(), &topics.service, STREAMS)? {
            let registration = postcard::from_bytes(&value).map_err(|_| damaged())?;
            match open(manager, deployment, &registration) {
                Ok(known) => registry.note_stream(manager, known)?,
                // Stored by a version that checked less: it no longer takes part.
                Err(refused) => {
                    tracing::warn!(%refused, "a stored stream is not valid and is left out")
                }
            }
        }
        for (key, value) in scan_all(store.as_ref(), &topics.service, WITHDRAWN)? {
            let id = key.get(WITHDRAWN.len()..).and_then(|id| id.try_into().ok());
            let at = value.as_ref().try_into().ok().map(u64::from_be_bytes).map(Timestamp);
            registry.withdrawn.insert(StreamId(id.ok_or_else(damaged)?), at);
        }
        Ok(registry)
    }

    /// The host that speaks for a controller.
    #[must_use]
    pub fn host_of(&self, controller: &ControllerId) -> Option<&str> {
        self.hosts.get(controller).map(String::as_str)
    }

    /// Each host: its controllers, and the streams that they guard.
    #[must_use]
    pub fn hosts(&self) -> BTreeMap<String, (usize, usize)> {
        let mut hosts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for host in self.hosts.values() {
            hosts.entry(host.clone()).or_default().0 += 1;
        }
        for stream in self.streams.values() {
            let host = self.hosts.get(&stream.placement.controller);
            if let Some(known) = host.and_then(|host| hosts.get_mut(host)) {
                known.1 += 1;
            }
        }
        hosts
    }

    /// Whether a device may send a stream.
    #[must_use]
    pub fn sends(&self, producer: &str, stream: &StreamId) -> bool {
        let placed = self.streams.get(stream).filter(|known| self.stands(known));
        placed.is_some_and(|known| known.placement.producer == producer)
            && !self.barred.contains(producer)
    }

    /// Whether its owner has withdrawn a stream, which is for good.
    #[must_use]
    pub fn is_withdrawn(&self, stream: &StreamId) -> bool {
        self.withdrawn.contains_key(stream)
    }

    /// Whether the certificates of a stream's owner and controller are in force. Versions of
    /// one that does not stand are kept: its owner may get another certificate.
    fn stands(&self, stream: &RegisteredStream) -> bool {
        !self.revoked.contains(&stream.certificate)
            && self.hosts.contains_key(&stream.placement.controller)
    }

    /// Registers controllers that `host` introduces.
    ///
    /// # Errors
    /// [`IntroductionError`]; none of them is registered then.
    pub fn introduce(
        &mut self,
        manager: &mut Manager,
        deployment: &Deployment,
        host: &str,
        certificates: &[Signed<Certificate>],
    ) -> Result<(), IntroductionError> {
        let mut batch = Batch::new();
        for certificate in certificates {
            let opened = deployment.controller(certificate)?;
            self.check(&opened.digest(), "controller")?;
            let named = host_named(&opened.party.name);
            if named != host {
                let (named, host) = (named.to_owned(), host.to_owned());
                return Err(IntroductionError::OtherHost { named, host });
            }
            let key = [CONTROLLERS, &opened.digest().0].concat();
            let value =
                postcard::to_allocvec(certificate).map_err(|_| RuntimeError::DamagedPlans)?;
            batch.put(&manager.service.topics().service, key, value)?;
        }
        manager.service.store().commit(batch)?;
        for certificate in certificates {
            self.note_controller(manager, deployment, certificate)?;
        }
        Ok(())
    }

    fn note_controller(
        &mut self,
        manager: &mut Manager,
        deployment: &Deployment,
        certificate: &Signed<Certificate>,
    ) -> Result<(), IntroductionError> {
        let opened = deployment.controller(certificate)?;
        let id = manager.register_controller(certificate)?;
        self.hosts.insert(id, host_named(&opened.party.name).to_owned());
        Ok(())
    }

    /// Registers the certificate of a device, which opens the sessions of the streams that are
    /// placed at it.
    ///
    /// # Errors
    /// [`IntroductionError`].
    pub fn introduce_device(
        &mut self,
        manager: &mut Manager,
        deployment: &Deployment,
        device: &str,
        certificate: &Signed<Certificate>,
    ) -> Result<(), IntroductionError> {
        let opened = deployment.device(certificate)?;
        self.check(&opened.digest(), "device")?;
        if opened.party.name != device {
            let (named, device) = (opened.party.name.clone(), device.to_owned());
            return Err(IntroductionError::OtherDevice { named, device });
        }
        let value = postcard::to_allocvec(certificate).map_err(|_| RuntimeError::DamagedPlans)?;
        let mut batch = Batch::new();
        let key = [DEVICES, device.as_bytes()].concat();
        batch.put(&manager.service.topics().service, key, value)?;
        manager.service.store().commit(batch)?;
        self.note_device(manager, &opened)
    }

    fn note_device(
        &mut self,
        manager: &mut Manager,
        opened: &Verified<Certificate>,
    ) -> Result<(), IntroductionError> {
        let (name, digest, key) = (&opened.party.name, opened.digest(), opened.party.verifying);
        for (stream, known) in &self.streams {
            if known.placement.producer == *name {
                let admitted = manager.service.admit_device(*stream, digest, key);
                admitted.map_err(RuntimeError::from)?;
            }
        }
        self.devices.insert(name.clone(), (digest, key));
        self.barred.remove(name);
        Ok(())
    }

    /// Registers a stream that `host` guards, or a later choice of its owner.
    ///
    /// # Errors
    /// [`IntroductionError`].
    pub fn register(
        &mut self,
        manager: &mut Manager,
        deployment: &Deployment,
        host: &str,
        registration: Registration,
    ) -> Result<(), IntroductionError> {
        let known = open(manager, deployment, &registration)?;
        self.check(&known.certificate, "owner")?;
        if self.host_of(&known.placement.controller) != Some(host) {
            return Err(IntroductionError::UnknownController);
        }
        Name::new(Role::Producer, known.placement.producer.clone())?;
        let stream = known.annotation.stream;
        if self.withdrawn.contains_key(&stream) {
            return Err(AnnotationError::Revoked.into());
        }
        if let Some(before) = self.streams.get(&stream) {
            if before.owner != known.owner {
                return Err(AnnotationError::WrongOwner.into());
            }
            if known.placement.version < before.placement.version
                && let Some(stands) = stored(manager, &stream)?
            {
                return Err(IntroductionError::Moved(Box::new(stands)));
            }
            let (choice, place) = (&before.annotation, &before.placement);
            let choice =
                is_later((choice, choice.version), (&known.annotation, known.annotation.version))?;
            let place =
                is_later((place, place.version), (&known.placement, known.placement.version))?;
            let same = before.certificate == known.certificate;
            if !choice && !place && same && self.stands(before) {
                return Ok(());
            }
        }
        let value = postcard::to_allocvec(&registration).map_err(|_| RuntimeError::DamagedPlans)?;
        let mut batch = Batch::new();
        let key = [STREAMS, &stream.0].concat();
        batch.put(&manager.service.topics().service, key, value)?;
        manager.service.store().commit(batch)?;
        self.note_stream(manager, known)
    }

    /// Withdraws a stream: no later plan uses it, and uploads of its device are refused.
    ///
    /// # Errors
    /// [`IntroductionError`].
    pub fn withdraw(
        &mut self,
        manager: &mut Manager,
        now: Timestamp,
        host: &str,
        stream: &StreamId,
    ) -> Result<(), IntroductionError> {
        let Some(known) = self.streams.get(stream) else { return Ok(()) };
        if self.host_of(&known.placement.controller) != Some(host) {
            return Err(IntroductionError::UnknownController);
        }
        let (mut batch, space) = (Batch::new(), &manager.service.topics().service);
        batch.delete(space, [STREAMS, &stream.0].concat())?;
        let at = now.0.to_be_bytes().to_vec();
        batch.put(space, [WITHDRAWN, &stream.0].concat(), at)?;
        manager.service.store().commit(batch)?;
        self.streams.remove(stream);
        self.withdrawn.insert(*stream, Some(now));
        manager.forget(stream);
        Ok(())
    }

    /// When the service was informed of each withdrawal, as far as it is known.
    pub fn withdrawals(&self) -> impl Iterator<Item = Option<Timestamp>> {
        self.withdrawn.values().copied()
    }

    /// How many certificates the authority has revoked.
    #[must_use]
    pub fn revoked(&self) -> usize {
        self.revoked.len()
    }

    /// Whether the authority has revoked the certificate with this digest.
    #[must_use]
    pub fn has_revoked(&self, certificate: &Digest) -> bool {
        self.revoked.contains(certificate)
    }

    fn check(&self, certificate: &Digest, whose: &'static str) -> Result<(), IntroductionError> {
        if self.revoked.contains(certificate) {
            return Err(IntroductionError::Revoked(whose));
        }
        Ok(())
    }

    /// The authority has revoked these certificates. Messages of their controllers are dropped,
    /// frames of their devices refused, and streams of their owners in no later plan.
    ///
    /// # Errors
    /// [`ServiceError`] if the store fails.
    pub fn revoke(
        &mut self,
        manager: &mut Manager,
        revoked: BTreeSet<Digest>,
    ) -> Result<(), ServiceError> {
        manager.service.revoke_ingest(&revoked);
        self.hosts.retain(|controller, _| !revoked.contains(&Digest(controller.0)));
        let is_out = |(digest, _): &(Digest, VerifyingKey)| revoked.contains(digest);
        let out = self.devices.extract_if(|_, device| is_out(device));
        self.barred.extend(out.map(|(name, _)| name));
        self.revoked = revoked;
        for (stream, known) in &self.streams {
            if self.barred.contains(&known.placement.producer) {
                manager.service.dismiss_device(stream)?;
            }
            if !self.stands(known) {
                manager.forget(stream);
            }
        }
        Ok(())
    }

    fn note_stream(
        &mut self,
        manager: &mut Manager,
        known: RegisteredStream,
    ) -> Result<(), IntroductionError> {
        let controller = known.placement.controller;
        let stream = known.annotation.stream;
        manager.service.admit(stream);
        if let Some((digest, key)) = self.devices.get(&known.placement.producer) {
            let admitted = manager.service.admit_device(stream, *digest, *key);
            admitted.map_err(RuntimeError::from)?;
        }
        if self.stands(&known) {
            let listed = known.annotation.clone().into_catalog(controller);
            manager.put_stream(listed, known.placement.moved);
        }
        self.streams.insert(stream, known);
        Ok(())
    }
}

/// The registration of a stream that stands.
fn stored(manager: &Manager, stream: &StreamId) -> Result<Option<Registration>, IntroductionError> {
    let (store, space) = (manager.service.store(), &manager.service.topics().service);
    let stored = store.get(space, &[STREAMS, &stream.0].concat())?;
    let read = |bytes: &[u8]| postcard::from_bytes(bytes);
    Ok(stored.map(|bytes| read(&bytes)).transpose().map_err(|_| RuntimeError::DamagedPlans)?)
}

/// Whether a signed statement is later than the known one. The same statement is not
/// later, and no error; another one of the same version is an error.
fn is_later<T: PartialEq>(
    (before, known): (&T, u32),
    (after, given): (&T, u32),
) -> Result<bool, AnnotationError> {
    match given.cmp(&known) {
        Ordering::Less => Err(AnnotationError::NotLater { version: given, current: known }),
        Ordering::Equal if before != after => Err(AnnotationError::Conflicting(given)),
        order => Ok(order == Ordering::Greater),
    }
}

/// Opens what the owner has signed, if a schema of this service offers it.
fn open(
    manager: &Manager,
    deployment: &Deployment,
    registration: &Registration,
) -> Result<RegisteredStream, IntroductionError> {
    let Registration { annotation, owner, placement } = registration;
    let owner = &deployment.owner(owner)?;
    let schema = annotation::open(annotation, owner)?.schema;
    let known = manager.catalog.schemas().find(|known| known.id == schema);
    let known = known.ok_or(IntroductionError::WrongSchema)?;
    let annotation = annotation::open_choice(annotation, owner, &known.schema)?.into_inner();
    let placement = annotation::open_placement(placement, owner, &annotation.stream)?.into_inner();
    let certificate = owner.certificate().digest();
    Ok(RegisteredStream { annotation, placement, owner: owner.id(), certificate })
}
