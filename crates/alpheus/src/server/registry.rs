//! Controllers and streams, as they were introduced, durable in the service's
//! store. All of it is public.

use crate::network::role::{Name, Role, host_named};
use crate::network::wire::Registration;
use crate::runtime::embedded::RuntimeError;
use crate::runtime::manager::Manager;
use crate::runtime::storage::scan_all;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::annotation::{self, Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::{AnnotationRefused, BadCertificate};
use alpheus_policy::catalog::CatalogStream;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_transport::Batch;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

const CONTROLLERS: &[u8] = b"controller/";
const STREAMS: &[u8] = b"registration/";
const WITHDRAWN: &[u8] = b"withdrawn/";

/// Why an introduction was refused.
#[derive(Debug, Error)]
pub enum NotIntroduced {
    /// The authority has not signed the certificate.
    #[error(transparent)]
    Certificate(#[from] BadCertificate),
    /// A host introduces a controller of another.
    #[error("the certificate is for the host `{named}`, and `{host}` introduces it")]
    OtherHost {
        /// Whom it names.
        named: String,
        /// Who introduced it.
        host: String,
    },
    /// Nobody has introduced the stream's controller, or another host has.
    #[error("the stream's controller was not introduced by this host")]
    UnknownController,
    /// The owner's choice is not good.
    #[error(transparent)]
    Annotation(#[from] AnnotationRefused),
    /// The stream is of a schema that this service does not serve, or of another version.
    #[error("the annotation is for another schema than this service's, or another version of it")]
    WrongSchema,
    /// The device's name is none.
    #[error(transparent)]
    Producer(#[from] crate::network::role::NoName),
    /// The store, or the manager.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<alpheus_transport::Error> for NotIntroduced {
    fn from(error: alpheus_transport::Error) -> Self {
        NotIntroduced::Runtime(error.into())
    }
}

/// A stream, as its owner has signed it.
struct Known {
    annotation: Annotation,
    placement: Placement,
    owner: VerifyingKey,
}

/// Who was introduced.
#[derive(Default)]
pub struct Registry {
    hosts: HashMap<ControllerId, String>,
    streams: HashMap<StreamId, Known>,
    /// Streams whose owners have withdrawn them, for good.
    withdrawn: HashSet<StreamId>,
}

impl Registry {
    /// What was introduced before a restart, told to the manager again.
    ///
    /// # Errors
    /// [`NotIntroduced`] if the store cannot be read.
    pub fn load(manager: &mut Manager, deployment: &Deployment) -> Result<Registry, NotIntroduced> {
        let mut registry = Registry::default();
        let (store, topics) = (manager.service.store().clone(), manager.service.topics().clone());
        let damaged = || NotIntroduced::Runtime(RuntimeError::DamagedPlans);
        for (_, value) in scan_all(store.as_ref(), &topics.service, CONTROLLERS)? {
            let certificate = postcard::from_bytes(&value).map_err(|_| damaged())?;
            registry.note_controller(manager, deployment, &certificate)?;
        }
        for (_, value) in scan_all(store.as_ref(), &topics.service, STREAMS)? {
            let registration = postcard::from_bytes(&value).map_err(|_| damaged())?;
            match open(manager, &registration) {
                Ok(known) => registry.note_stream(manager, known),
                // Stored by a version that asked less: it takes no part any more.
                Err(refused) => tracing::warn!(%refused, "a stored stream is left out"),
            }
        }
        for (key, _) in scan_all(store.as_ref(), &topics.service, WITHDRAWN)? {
            let id = key.get(WITHDRAWN.len()..).and_then(|id| id.try_into().ok());
            registry.withdrawn.insert(StreamId(id.ok_or_else(damaged)?));
        }
        Ok(registry)
    }

    /// The host that speaks for a controller.
    #[must_use]
    pub fn host_of(&self, controller: &ControllerId) -> Option<&str> {
        self.hosts.get(controller).map(String::as_str)
    }

    /// Whether a device sends a stream.
    #[must_use]
    pub fn sends(&self, producer: &str, stream: &StreamId) -> bool {
        self.streams.get(stream).is_some_and(|known| known.placement.producer == producer)
    }

    /// Takes note of controllers that `host` introduces.
    ///
    /// # Errors
    /// [`NotIntroduced`]; none of them is known then.
    pub fn introduce(
        &mut self,
        manager: &mut Manager,
        deployment: &Deployment,
        host: &str,
        certificates: &[Signed<Certificate>],
    ) -> Result<(), NotIntroduced> {
        let mut batch = Batch::new();
        for certificate in certificates {
            let opened = deployment.controller(certificate)?;
            let named = host_named(&opened.name);
            if named != host {
                let (named, host) = (named.to_owned(), host.to_owned());
                return Err(NotIntroduced::OtherHost { named, host });
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
    ) -> Result<(), NotIntroduced> {
        let opened = deployment.controller(certificate)?;
        let id = manager.know(certificate)?;
        self.hosts.insert(id, host_named(&opened.name).to_owned());
        Ok(())
    }

    /// Takes note of a stream that `host` guards, or of its owner's later choice.
    ///
    /// # Errors
    /// [`NotIntroduced`].
    pub fn register(
        &mut self,
        manager: &mut Manager,
        host: &str,
        registration: Registration,
    ) -> Result<(), NotIntroduced> {
        let known = open(manager, &registration)?;
        if self.host_of(&known.placement.controller) != Some(host) {
            return Err(NotIntroduced::UnknownController);
        }
        Name::new(Role::Producer, known.placement.producer.clone())?;
        let stream = known.annotation.stream;
        if self.withdrawn.contains(&stream) {
            return Err(AnnotationRefused::Revoked.into());
        }
        if let Some(before) = self.streams.get(&stream) {
            if before.owner != known.owner {
                return Err(AnnotationRefused::WrongOwner.into());
            }
            let (choice, place) = (&before.annotation, &before.placement);
            let choice =
                is_later((choice, choice.version), (&known.annotation, known.annotation.version))?;
            let place =
                is_later((place, place.version), (&known.placement, known.placement.version))?;
            if !choice && !place {
                return Ok(());
            }
        }
        let value = postcard::to_allocvec(&registration).map_err(|_| RuntimeError::DamagedPlans)?;
        let mut batch = Batch::new();
        let key = [STREAMS, &stream.0].concat();
        batch.put(&manager.service.topics().service, key, value)?;
        manager.service.store().commit(batch)?;
        self.note_stream(manager, known);
        Ok(())
    }

    /// A stream's owner has withdrawn: no later plan asks for it, and its device
    /// is not listened to any more.
    ///
    /// # Errors
    /// [`NotIntroduced`].
    pub fn withdraw(
        &mut self,
        manager: &mut Manager,
        host: &str,
        stream: &StreamId,
    ) -> Result<(), NotIntroduced> {
        let Some(known) = self.streams.get(stream) else { return Ok(()) };
        if self.host_of(&known.placement.controller) != Some(host) {
            return Err(NotIntroduced::UnknownController);
        }
        let (mut batch, space) = (Batch::new(), &manager.service.topics().service);
        batch.delete(space, [STREAMS, &stream.0].concat())?;
        batch.put(space, [WITHDRAWN, &stream.0].concat(), Vec::new())?;
        manager.service.store().commit(batch)?;
        self.streams.remove(stream);
        self.withdrawn.insert(*stream);
        manager.forget(stream);
        Ok(())
    }

    fn note_stream(&mut self, manager: &mut Manager, known: Known) {
        let controller = known.placement.controller;
        let Annotation { stream, owner, schema, metadata, policy, .. } = known.annotation.clone();
        manager.service.admit(stream);
        manager.catalog.put_stream(CatalogStream {
            stream,
            owner,
            controller,
            schema,
            metadata,
            policy,
        });
        self.streams.insert(stream, known);
    }
}

/// Whether what is given is later than what is known. The same again is not, and
/// is no mistake; something else of the same version is.
fn is_later<T: PartialEq>(
    (before, known): (&T, u32),
    (after, given): (&T, u32),
) -> Result<bool, AnnotationRefused> {
    match given.cmp(&known) {
        Ordering::Less => Err(AnnotationRefused::NotLater { given, known }),
        Ordering::Equal if before != after => Err(AnnotationRefused::Conflicting(given)),
        order => Ok(order == Ordering::Greater),
    }
}

/// What the owner has signed, if it is what a schema here offers.
fn open(manager: &Manager, registration: &Registration) -> Result<Known, NotIntroduced> {
    let Registration { annotation, owner, placement } = registration;
    let schema = annotation::open(annotation, owner)?.schema;
    let known = manager.catalog.schemas().find(|known| known.id == schema);
    let known = known.ok_or(NotIntroduced::WrongSchema)?;
    let annotation = annotation::open_choice(annotation, owner, &known.schema)?.into_inner();
    let placement = annotation::open_placement(placement, owner, &annotation.stream)?.into_inner();
    Ok(Known { annotation, placement, owner: *owner })
}
