//! What a host of controllers holds: keys, ledgers, fence, and the controllers
//! made of them.

use super::keystore::{ErasedStream, KeyStore, StreamKey};
use super::notices::Notices;
use super::outgoing::{Going, Outgoing};
use crate::network::wire::{Choice, Handover, Notice, Registration};
use crate::runtime::fence::FenceFile;
use crate::runtime::hosts::{ControllerHost, HostError, ToController};
use crate::runtime::seats::{Keys, from_ledger};
use crate::runtime::storage::{StoreLedger, scan_all};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{self, Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords};
use alpheus_encrypted_stream::erasure::Erasure;
use alpheus_encrypted_stream::error::{AnnotationRefused, RestoreError};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{LogLine, Record, Scope, Stamped, log_prefix};
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Space, Store};
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

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
    /// A stream that is here is handed over with another key, choice or device.
    #[error(
        "the stream is here already, and not as it is handed over now; choose anew with `alpheus owner choose`, or make another stream"
    )]
    Here,
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
    notices: Notices,
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
struct Known {
    controller: ControllerId,
    owner_name: String,
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
        let notices = Notices::open(store.clone(), spaces.host.clone())?;
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
            notices,
            rng,
        };
        guard.seat(&deployment, now)?;
        Ok(guard)
    }

    fn seat(&mut self, deployment: &Deployment, now: Timestamp) -> Result<(), GuardError> {
        for (stream, erased) in self.keys.erased()? {
            // A crash may have come between the word and the deed.
            self.keys.destroy(&stream)?;
            let ErasedStream { controller, owner_name, .. } = erased;
            self.streams.insert(stream, Known { controller, owner_name });
        }
        let mut held: BTreeMap<ControllerId, Vec<HeldStream>> = BTreeMap::new();
        for stream in self.keys.streams()? {
            let (known, stream) = self.held(stream)?;
            let id = known.controller;
            self.streams.insert(stream.stream, known);
            held.entry(id).or_default().push(stream);
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

    /// What is known of a stream without its key, and what its controller holds.
    fn held(&self, stream: StreamKey) -> Result<(Known, HeldStream), GuardError> {
        let StreamKey { purpose, controller, owner_name, producer: _, master } = stream;
        if purpose.schema != self.schema.id() {
            return Err(GuardError::WrongSchema);
        }
        let Purpose { stream, owner, .. } = purpose;
        let (schema, layout) = (self.schema.clone(), self.layout.clone());
        let held = HeldStream { stream, owner, schema, layout, master };
        Ok((Known { controller, owner_name }, held))
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
    pub fn answer(&mut self, now: Timestamp, messages: Vec<ToController>) -> Result<(), HostError> {
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

    /// Takes a stream in with its owner's first choice: key, choice and notice in
    /// one commit. The same again changes nothing.
    ///
    /// # Errors
    /// [`GuardError`]; nothing is kept then, and what is known of the stream stays.
    pub fn take(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        handover: &Handover,
    ) -> Result<(), GuardError> {
        let Handover { sealed, annotation, owner, placement } = handover;
        let opened = self.opened_choice(annotation, owner)?;
        let Annotation { stream, schema, owner: owner_id, .. } = *opened;
        let placed = annotation::open_placement(placement, owner, &stream)?;
        let purpose = Purpose { stream, schema, owner: owner_id };
        let master = self.opened(&placed.controller, sealed, &purpose)?;
        let (annotation, placement) = (annotation.clone(), placement.clone());
        let registration = Registration { annotation, owner: *owner, placement };
        let notice = Notice::Registered(Box::new(registration));
        if self.streams.contains_key(&stream) {
            return self.is_same(owner_name, &stream, &notice, &master);
        }
        let Placement { controller, producer, .. } = placed.into_inner();
        let owner_name = owner_name.to_owned();
        let key = StreamKey { purpose, controller, owner_name, producer, master };
        let mut batch = Batch::new();
        self.keys.stage(&key, &mut batch, &mut self.rng)?;
        self.notices.stage(&stream, &notice, &mut batch)?;
        let (known, held) = self.held(key)?;
        let (signed, owner) = (&handover.annotation, &handover.owner);
        let acted = self.host.with_batch(&controller, batch, |controller| {
            controller.take_in(now, held, owner, signed)
        });
        settled(acted)?;
        self.streams.insert(stream, known);
        self.notices.changed(&stream);
        Ok(())
    }

    /// Whether what is handed over is what is here, to the byte.
    fn is_same(
        &self,
        owner_name: &str,
        stream: &StreamId,
        notice: &Notice,
        master: &MasterSecret,
    ) -> Result<(), GuardError> {
        self.of(owner_name, stream)?;
        let bytes = |notice: &Notice| postcard::to_allocvec(notice).ok();
        let known = self.notices.of(stream)?.and_then(|known| bytes(&known));
        let key = self.keys.stream_of(stream)?;
        let same =
            known == bytes(notice) && key.is_some_and(|key| key.master.secret() == master.secret());
        if same { Ok(()) } else { Err(GuardError::Here) }
    }

    fn opened_choice(
        &self,
        signed: &Signed<Annotation>,
        owner: &VerifyingKey,
    ) -> Result<Verified<Annotation>, GuardError> {
        Ok(annotation::open_choice(signed, owner, &self.schema)?)
    }

    fn opened(
        &self,
        controller: &ControllerId,
        sealed: &Sealed,
        purpose: &Purpose,
    ) -> Result<MasterSecret, GuardError> {
        let controller = self.host.controller(controller).ok_or(GuardError::OtherController)?;
        Ok(controller.receive(purpose, sealed)?)
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
        let controller = self.of(owner_name, &stream)?.controller;
        let Some(Notice::Registered(mut registration)) = self.notices.of(&stream)? else {
            return Err(AnnotationRefused::Revoked.into());
        };
        (registration.annotation, registration.owner) = (choice.annotation.clone(), choice.owner);
        let mut batch = Batch::new();
        self.notices.stage(&stream, &Notice::Registered(registration), &mut batch)?;
        let acted = self.host.with_batch(&controller, batch, |controller| {
            controller.annotate(now, &choice.owner, &choice.annotation)
        });
        settled(acted)?;
        self.outgoing.take_back(&controller);
        self.notices.changed(&stream);
        Ok(())
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
        let mut batch = Batch::new();
        self.notices.stage(stream, &Notice::Withdrawn(*stream), &mut batch)?;
        let revoke = |controller: &mut Controller| controller.revoke(now, stream);
        settled(self.host.with_batch(&controller, batch, revoke))?;
        self.outgoing.take_back(&controller);
        self.notices.changed(stream);
        Ok(())
    }

    /// Destroys the key of a stream, after a revocation if there was none. What the
    /// owner is told comes out once nothing is left to read its data with.
    ///
    /// # Errors
    /// [`GuardError`]. The key may still be there then; asked again, or started
    /// again, the host goes on with it.
    pub fn erase(
        &mut self,
        now: Timestamp,
        owner_name: &str,
        stream: &StreamId,
    ) -> Result<Signed<Erasure>, GuardError> {
        let controller = self.of(owner_name, stream)?.controller;
        let mut batch = Batch::new();
        self.keys.stage_erasure(stream, &mut batch, &mut self.rng)?;
        self.notices.stage(stream, &Notice::Withdrawn(*stream), &mut batch)?;
        let mut told = None;
        let erase = |controller: &mut Controller| {
            let (step, signed) = controller.erase(now, stream)?;
            told = Some(signed);
            Ok(step)
        };
        settled(self.host.with_batch(&controller, batch, erase))?;
        self.outgoing.take_back(&controller);
        self.notices.changed(stream);
        self.keys.destroy(stream)?;
        told.ok_or(GuardError::NotYours)
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

    /// What it takes to read the log of an owner's stream, without the guard: the
    /// service's questions are answered meanwhile.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn log(&self, owner_name: &str, stream: &StreamId) -> Result<OwnersLog, GuardError> {
        let controller = self.of(owner_name, stream)?.controller;
        let (store, space) = (self.store.clone(), self.spaces.ledger.clone());
        Ok(OwnersLog { store, space, controller, stream: *stream })
    }

    /// What the service must know.
    pub fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
}

/// A way to the log of one stream.
pub struct OwnersLog {
    store: Arc<dyn Store>,
    space: Space,
    controller: ControllerId,
    stream: StreamId,
}

impl OwnersLog {
    /// Its lines, oldest first. They name no other stream.
    ///
    /// # Errors
    /// What the store says.
    pub fn read(&self) -> Result<Vec<LogLine>, alpheus_transport::Error> {
        let prefix = log_prefix(self.controller);
        let records = scan_all(self.store.as_ref(), &self.space, &prefix)?;
        let line = |value: &[u8]| match Stamped::read(value).ok()?.record {
            Record::Log(line) if line.concerns(&self.stream) => {
                Some(LogLine { streams: vec![self.stream], ..line })
            }
            _ => None,
        };
        let mut lines: Vec<_> = records.iter().filter_map(|(_, value)| line(value)).collect();
        lines.sort_by_key(|line| line.at);
        Ok(lines)
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
