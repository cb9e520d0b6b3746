//! What a host of controllers holds: keys, ledgers, fence, and the controllers
//! made of them.

use super::keystore::{KeyStore, StreamKey};
use super::outgoing::{Going, Outgoing};
use crate::network::wire::{Choice, Handover, Notice, Registration};
use crate::runtime::fence::FenceFile;
use crate::runtime::hosts::{ControllerHost, HostError, ToController};
use crate::runtime::seats::{Keys, from_ledger};
use crate::runtime::storage::{StoreLedger, scan_all};
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{self, Annotation};
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords};
use alpheus_encrypted_stream::error::{AnnotationRefused, RestoreError};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{LogLine, Record, Scope, Stamped};
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Space, Store};
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// What the service has not confirmed yet, by stream.
const UNTOLD: &[u8] = b"untold/";

/// Why a host does not do what it was asked, or cannot start.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The key store.
    #[error(transparent)]
    Keys(#[from] super::keystore::KeyStoreError),
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// Ledger or fence.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The fence.
    #[error(transparent)]
    Fence(#[from] crate::runtime::fence::FenceError),
    /// A ledger.
    #[error("a controller cannot be restored from its ledger: {0}")]
    Restore(#[from] RestoreError),
    /// An identity that the authority has not certified.
    #[error(
        "the identity `{0}` has no good certificate: have its request certified, then `alpheus controller init --certificate`"
    )]
    Uncertified(String),
    /// The owner's choice.
    #[error(transparent)]
    Annotation(#[from] AnnotationRefused),
    /// Nobody of that id lives here.
    #[error("no such controller lives here")]
    OtherController,
    /// What was handed over does not open.
    #[error(transparent)]
    NotSealed(#[from] alpheus_crypto::seal::NotSealed),
    /// The stream's schema is not known.
    #[error("the stream is of another schema than this controller's, or another version of it")]
    WrongSchema,
    /// The stream is somebody else's.
    #[error("there is no such stream of yours here")]
    NotYours,
    /// Something ended in a panic, and what it held may be half done.
    #[error("a part of the host ended in a panic, which is a mistake of ours; start it again")]
    Panicked,
}

/// A host of controllers.
pub struct Guard {
    host: ControllerHost,
    keys: KeyStore,
    store: Arc<dyn Store>,
    spaces: Spaces,
    certificates: BTreeMap<ControllerId, Signed<Certificate>>,
    streams: BTreeMap<StreamId, Known>,
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    outgoing: Outgoing,
    rng: ChaCha20Rng,
}

/// Names in the store.
#[derive(Clone)]
pub struct Spaces {
    /// Ledgers.
    pub ledger: Space,
    /// Locked keys.
    pub keys: Space,
    /// Certificates, and what the service must still be told.
    pub host: Space,
}

/// What is known of a stream without its key.
#[derive(Clone)]
pub struct Known {
    controller: ControllerId,
    owner_name: String,
    producer: String,
}

impl Spaces {
    /// The names.
    ///
    /// # Errors
    /// None in practice: the names are valid.
    pub fn new() -> Result<Spaces, alpheus_transport::Error> {
        Ok(Spaces {
            ledger: Space::new("ledger")?,
            keys: Space::new("keys")?,
            host: Space::new("host")?,
        })
    }
}

/// What a guard is made of.
pub struct Parts {
    /// Ledgers and keys.
    pub store: Arc<dyn Store>,
    /// Names in it.
    pub spaces: Spaces,
    /// The key store, open.
    pub keys: KeyStore,
    /// How far the ledgers had come.
    pub fence: FenceFile,
    /// Whose word counts.
    pub deployment: Deployment,
    /// What the streams are streams of.
    pub schema: Schema,
    /// For nonces of locked entries.
    pub rng: ChaCha20Rng,
}

impl Guard {
    /// The host as it was left: every controller restored from its ledger.
    ///
    /// # Errors
    /// [`GuardError`] if anything cannot be read as it was written.
    pub fn open(parts: Parts, layout: Layout, now: Timestamp) -> Result<Guard, GuardError> {
        let Parts { store, spaces, keys, fence, deployment, schema, rng } = parts;
        store.ensure_space(&spaces.ledger)?;
        store.ensure_space(&spaces.host)?;
        let ledger = StoreLedger::new(store.clone(), spaces.ledger.clone());
        let mut guard = Guard {
            host: ControllerHost::new(&deployment, ledger, fence),
            keys,
            store,
            spaces,
            certificates: BTreeMap::new(),
            streams: BTreeMap::new(),
            schema: Arc::new(schema),
            layout: Arc::new(layout),
            outgoing: Outgoing::default(),
            rng,
        };
        guard.seat(&deployment, now)?;
        Ok(guard)
    }

    fn seat(&mut self, deployment: &Deployment, now: Timestamp) -> Result<(), GuardError> {
        let mut held: BTreeMap<ControllerId, Vec<HeldStream>> = BTreeMap::new();
        for stream in self.keys.streams()? {
            held.entry(stream.controller).or_default().push(self.hold(stream)?);
        }
        let records = scan_all(self.store.as_ref(), &self.spaces.ledger, &Scope::Host.prefix())?;
        let host = HostRecords::read(records.iter().map(|(_, value)| value.as_ref()), deployment)?;
        let mut controllers = Vec::new();
        for (name, secrets) in self.keys.identities()? {
            let certificate = certificate_of(self.store.as_ref(), &self.spaces, &name)?;
            let uncertified = || GuardError::Uncertified(name.clone());
            let certificate = certificate.ok_or_else(uncertified)?;
            let identity =
                secrets.certified(&certificate, deployment).map_err(|_| uncertified())?;
            let (id, streams) = (identity.id(), held.remove(&identity.id()).unwrap_or_default());
            self.certificates.insert(id, certificate);
            let prefix = Scope::Controller(id).prefix();
            let records = scan_all(self.store.as_ref(), &self.spaces.ledger, &prefix)?;
            let values: Vec<&[u8]> = records.iter().map(|(_, value)| value.as_ref()).collect();
            let keys = Keys { identity, new: false };
            let fence = self.host.fence_of(&id);
            controllers.push(from_ledger(keys, deployment, streams, &host, &values, now, fence)?);
        }
        Ok(self.host.take(controllers)?)
    }

    fn hold(&mut self, stream: StreamKey) -> Result<HeldStream, GuardError> {
        let StreamKey { purpose, controller, owner_name, producer, master } = stream;
        if purpose.schema != self.schema.id() {
            return Err(GuardError::WrongSchema);
        }
        self.streams.insert(purpose.stream, Known { controller, owner_name, producer });
        let (schema, layout) = (self.schema.clone(), self.layout.clone());
        Ok(HeldStream { stream: purpose.stream, owner: purpose.owner, schema, layout, master })
    }

    /// The controllers' certificates.
    #[must_use]
    pub fn certificates(&self) -> Vec<Signed<Certificate>> {
        self.certificates.values().cloned().collect()
    }

    /// Answers the service's messages; all that must be durable is, when it
    /// returns. The answers wait in [`Guard::going`].
    ///
    /// # Errors
    /// [`HostError`]; nothing may be said then, and the process starts anew.
    pub fn answer(
        &mut self,
        now: Timestamp,
        messages: Vec<ToController>,
    ) -> Result<(), HostError> {
        let said = self.host.handle(now, messages)?;
        self.outgoing.add(said);
        Ok(())
    }

    /// What there is to say.
    #[must_use]
    pub fn going(&self) -> Going {
        self.outgoing.going()
    }

    /// The service has heard it.
    pub fn arrived(&mut self, going: &Going) {
        self.outgoing.arrived(going);
    }

    /// The service refuses to hear it.
    pub fn not_heard(&mut self) {
        self.outgoing.drop_all();
    }

    /// Takes a stream in with its owner's first choice.
    ///
    /// # Errors
    /// [`GuardError`]; nothing is kept then.
    pub fn take(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        handover: &Handover,
    ) -> Result<(), GuardError> {
        let opened = self.opened_choice(&handover.annotation, &handover.owner)?;
        let Annotation { stream, schema, owner, .. } = *opened;
        if self.streams.get(&stream).is_some_and(|known| known.owner_name != owner_name) {
            return Err(GuardError::NotYours);
        }
        let purpose = Purpose { stream, schema, owner };
        let master = self.opened(handover, &purpose)?;
        let (controller, producer) = (handover.controller, handover.producer.clone());
        let owner_name = owner_name.to_owned();
        let key = StreamKey { purpose, controller, owner_name, producer, master };
        self.keys.keep(&key, &mut self.rng)?;
        let held = self.hold(key)?;
        let (signed, owner) = (&handover.annotation, &handover.owner);
        let acted = self.host.with(&controller, |controller| {
            controller.hold(held);
            controller.annotate(now, owner, signed)
        });
        settled(acted)?;
        let registration = Registration {
            annotation: handover.annotation.clone(),
            owner: handover.owner,
            controller,
            producer: handover.producer.clone(),
        };
        self.remember(&stream, &Notice::Registered(Box::new(registration)))
    }

    fn opened_choice(
        &self,
        signed: &Signed<Annotation>,
        owner: &VerifyingKey,
    ) -> Result<Verified<Annotation>, GuardError> {
        Ok(annotation::open_choice(signed, owner, &self.schema)?)
    }

    fn opened(&self, handover: &Handover, purpose: &Purpose) -> Result<MasterSecret, GuardError> {
        let controller = self.host.controller(&handover.controller);
        let controller: &Controller = controller.ok_or(GuardError::OtherController)?;
        Ok(controller.receive(purpose, &handover.sealed)?)
    }

    /// Takes an owner's later choice. Once it returns, nothing leaves that was
    /// answered under the earlier one.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn choose(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        choice: &Choice,
    ) -> Result<(), GuardError> {
        let stream = self.opened_choice(&choice.annotation, &choice.owner)?.stream;
        let known = self.of(owner_name, &stream)?.clone();
        let acted = self.host.with(&known.controller, |controller| {
            controller.annotate(now, &choice.owner, &choice.annotation)
        });
        settled(acted)?;
        self.outgoing.take_back(&known.controller);
        let (annotation, owner) = (choice.annotation.clone(), choice.owner);
        let Known { controller, producer, .. } = known;
        let registration = Registration { annotation, owner, controller, producer };
        self.remember(&stream, &Notice::Registered(Box::new(registration)))
    }

    /// Revokes consent, for good. Once it returns nothing leaves any more.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn revoke(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        stream: &StreamId,
    ) -> Result<(), GuardError> {
        let controller = self.of(owner_name, stream)?.controller;
        settled(self.host.with(&controller, |controller| controller.revoke(now, stream)))?;
        self.outgoing.take_back(&controller);
        self.remember(stream, &Notice::Withdrawn(*stream))
    }

    fn of(&self, owner_name: &str, stream: &StreamId) -> Result<&Known, GuardError> {
        let known = self.streams.get(stream);
        known.filter(|known| known.owner_name == owner_name).ok_or(GuardError::NotYours)
    }

    /// An owner's streams.
    #[must_use]
    pub fn streams_of(&self, owner_name: &str) -> BTreeSet<StreamId> {
        let own = |(_, known): &(&StreamId, &Known)| known.owner_name == owner_name;
        self.streams.iter().filter(own).map(|(stream, _)| *stream).collect()
    }

    /// The log of an owner's stream, oldest first.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn log(&self, owner_name: &str, stream: &StreamId) -> Result<Vec<LogLine>, GuardError> {
        let prefix = Scope::Controller(self.of(owner_name, stream)?.controller).prefix();
        let records = scan_all(self.store.as_ref(), &self.spaces.ledger, &prefix)?;
        let line = |value: &[u8]| match Stamped::read(value).ok()?.record {
            Record::Log(line) if line.concerns(stream) => Some(line),
            _ => None,
        };
        let mut lines: Vec<_> = records.iter().filter_map(|(_, value)| line(value)).collect();
        lines.sort_by_key(|line| line.at);
        Ok(lines)
    }

    /// Keeps what the service must be told until it has it.
    fn remember(&self, stream: &StreamId, notice: &Notice) -> Result<(), GuardError> {
        let value =
            postcard::to_allocvec(notice).map_err(|_| super::keystore::KeyStoreError::Damaged)?;
        let mut batch = Batch::new();
        batch.put(&self.spaces.host, [UNTOLD, &stream.0].concat(), value)?;
        self.store.commit(batch)?;
        Ok(())
    }

    /// What the service does not know yet, each under a key for
    /// [`Guard::told`].
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn untold(&self) -> Result<Vec<(Vec<u8>, Notice)>, GuardError> {
        let entries = scan_all(self.store.as_ref(), &self.spaces.host, UNTOLD)?;
        let read = |value: &[u8]| postcard::from_bytes(value).ok();
        Ok(entries.iter().filter_map(|(key, value)| Some((key.to_vec(), read(value)?))).collect())
    }

    /// The service has it.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn told(&self, key: Vec<u8>, notice: &Notice) -> Result<(), GuardError> {
        // A later choice may have taken its place meanwhile.
        let stored = self.store.get(&self.spaces.host, &key)?;
        let same = stored.is_some_and(|stored| {
            postcard::to_allocvec(notice).is_ok_and(|told| told == stored.as_ref())
        });
        if same {
            let mut batch = Batch::new();
            batch.delete(&self.spaces.host, key)?;
            self.store.commit(batch)?;
        }
        Ok(())
    }
}

/// Flattens what comes of a controller's own doing.
fn settled(
    acted: Option<Result<Result<(), HostError>, AnnotationRefused>>,
) -> Result<(), GuardError> {
    acted.ok_or(GuardError::OtherController)???;
    Ok(())
}

const CERTIFICATES: &[u8] = b"certificate/";

/// The certificate of an identity, if it has one.
///
/// # Errors
/// What the store says.
pub fn certificate_of(
    store: &dyn Store,
    spaces: &Spaces,
    name: &str,
) -> Result<Option<Signed<Certificate>>, alpheus_transport::Error> {
    let stored = store.get(&spaces.host, &[CERTIFICATES, name.as_bytes()].concat())?;
    Ok(stored.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
}

/// Keeps an identity's certificate.
///
/// # Errors
/// What the store says.
pub fn put_certificate(
    store: &dyn Store,
    spaces: &Spaces,
    name: &str,
    certificate: &Signed<Certificate>,
) -> Result<(), alpheus_transport::Error> {
    store.ensure_space(&spaces.host)?;
    let mut batch = Batch::new();
    let value = postcard::to_allocvec(certificate).unwrap_or_default();
    batch.put(&spaces.host, [CERTIFICATES, name.as_bytes()].concat(), value)?;
    store.commit(batch).map(|_| ())
}
