//! Controllers and streams, as they were introduced, durable in the service's
//! store. All of it is public.

use crate::network::wire::Registration;
use crate::runtime::embedded::RuntimeError;
use crate::runtime::manager::Manager;
use crate::runtime::storage::scan_all;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{self, Annotation};
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::{AnnotationRefused, BadCertificate};
use alpheus_policy::catalog::CatalogStream;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_transport::Batch;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use thiserror::Error;

const CONTROLLERS: &[u8] = b"controller/";
const STREAMS: &[u8] = b"stream/";

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

/// A stream, as stored.
#[derive(Clone, Serialize, Deserialize)]
struct Known {
    version: u32,
    registration: Registration,
}

/// Who was introduced.
#[derive(Default)]
pub struct Registry {
    hosts: HashMap<ControllerId, String>,
    streams: HashMap<StreamId, Known>,
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
            let known: Known = postcard::from_bytes(&value).map_err(|_| damaged())?;
            match open(manager, &known.registration) {
                Ok(opened) => registry.note_stream(manager, opened, known),
                // Stored by a version that asked less: it takes no part any more.
                Err(refused) => tracing::warn!(%refused, "a stored stream is left out"),
            }
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
        self.streams.get(stream).is_some_and(|known| known.registration.producer == producer)
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
        if self.host_of(&registration.controller) != Some(host) {
            return Err(NotIntroduced::UnknownController);
        }
        crate::network::role::Name::new(
            crate::network::role::Role::Producer,
            registration.producer.clone(),
        )?;
        let opened = open(manager, &registration)?;
        if let Some(known) = self.streams.get(&opened.stream) {
            if known.registration.owner != registration.owner {
                return Err(AnnotationRefused::WrongOwner.into());
            }
            if opened.version < known.version {
                let (given, known) = (opened.version, known.version);
                return Err(AnnotationRefused::NotLater { given, known }.into());
            }
        }
        let known = Known { version: opened.version, registration };
        let value = postcard::to_allocvec(&known).map_err(|_| RuntimeError::DamagedPlans)?;
        let mut batch = Batch::new();
        let key = [STREAMS, &opened.stream.0].concat();
        batch.put(&manager.service.topics().service, key, value)?;
        manager.service.store().commit(batch)?;
        self.note_stream(manager, opened, known);
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
        if self.host_of(&known.registration.controller) != Some(host) {
            return Err(NotIntroduced::UnknownController);
        }
        let mut batch = Batch::new();
        batch.delete(&manager.service.topics().service, [STREAMS, &stream.0].concat())?;
        manager.service.store().commit(batch)?;
        self.streams.remove(stream);
        manager.forget(stream);
        Ok(())
    }

    fn note_stream(&mut self, manager: &mut Manager, opened: Verified<Annotation>, known: Known) {
        let controller = known.registration.controller;
        let Annotation { stream, owner, schema, metadata, policy, .. } = opened.into_inner();
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

/// The owner's choice, if it is one that a schema here offers.
fn open(
    manager: &Manager,
    registration: &Registration,
) -> Result<Verified<Annotation>, NotIntroduced> {
    let Registration { annotation, owner, .. } = registration;
    let schema = annotation::open(annotation, owner)?.schema;
    let known = manager.catalog.schemas().find(|known| known.id == schema);
    let known = known.ok_or(NotIntroduced::WrongSchema)?;
    Ok(annotation::open_choice(annotation, owner, &known.schema)?)
}

/// `host` or `host/name`: the certificate's name says which host speaks for it.
fn host_named(name: &str) -> &str {
    name.split_once('/').map_or(name, |(host, _)| host)
}
