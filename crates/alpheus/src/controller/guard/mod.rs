//! What a host of controllers holds: keys, ledgers, fence, and the controllers
//! made of them; [`owners`]: what owners do with it.

mod grants;
mod owners;

pub use owners::OwnersLog;

use crate::controller::keystore::{KeyStore, KeyStoreError, StreamKey};
use crate::controller::notices::Notices;
use crate::controller::outgoing::{Going, Outgoing};
use crate::runtime::fence::FenceFile;
use crate::runtime::hosts::{ControllerHost, HostError, ToController};
use crate::runtime::seats::{Keys, from_ledger};
use crate::runtime::storage::{Beside, StoreLedger, scan_all};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords, Identity};
use alpheus_encrypted_stream::error::{AnnotationRefused, GrantRefused, RestoreError};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Space, Store};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Why a host does not do what it was asked, or cannot start.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The key store.
    #[error(transparent)]
    Keys(#[from] KeyStoreError),
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
    /// Raw access.
    #[error(transparent)]
    Grant(#[from] GrantRefused),
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
    deployment: Deployment,
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
            deployment: deployment.clone(),
            rng,
        };
        guard.seat(&deployment, now)?;
        Ok(guard)
    }

    fn seat(&mut self, deployment: &Deployment, now: Timestamp) -> Result<(), GuardError> {
        let mut held: BTreeMap<ControllerId, Vec<HeldStream>> = BTreeMap::new();
        let mut destroyed = Vec::new();
        for stream in self.keys.streams()? {
            let (known, stream) = self.held(stream)?;
            let id = known.controller;
            if stream.master.is_none() {
                destroyed.push((stream.stream, id));
            }
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
        self.host.take(controllers)?;
        self.finish_erasures(now, destroyed)
    }

    /// A crash may have come between the word and the deed. Or the slots are ahead
    /// of the store, an older copy: then the word is given again.
    fn finish_erasures(
        &mut self,
        now: Timestamp,
        destroyed: Vec<(StreamId, ControllerId)>,
    ) -> Result<(), GuardError> {
        for (stream, controller) in destroyed {
            if !self.is_erased(&stream, &controller) {
                tracing::warn!(%stream, "its key was destroyed after this copy of the store was made");
                let erase = |own: &mut Controller| own.erase(now, &stream).map(|(step, _)| step);
                self.withdraw_by(&controller, &stream, erase)?;
            }
        }
        let erased =
            |(stream, known): &(&StreamId, &Known)| self.is_erased(stream, &known.controller);
        Ok(self.keys.destroy(self.streams.iter().filter(erased).map(|(stream, _)| stream))?)
    }

    fn is_erased(&self, stream: &StreamId, controller: &ControllerId) -> bool {
        let own = self.host.controller(controller);
        own.is_some_and(|own| own.erasure(stream).is_some())
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

    /// Draws some of the noise ahead that controllers lack since the start. Whether there
    /// is more: it is done a slice at a time, so that owners are never kept waiting.
    pub fn draw_ahead(&mut self, now: Timestamp) -> bool {
        self.host.draw_ahead(now)
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

    /// What the service must know.
    pub fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
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

/// Keeps the certificate of an identity and, with it in one commit, begins its
/// ledger: ever after, a host that finds no ledger or an older one knows that it has
/// lost one. What has a ledger keeps it.
///
/// # Errors
/// [`GuardError`].
pub fn found(
    (store, spaces): (&Arc<dyn Store>, &Spaces),
    fence: &mut FenceFile,
    identity: Identity,
    (name, certificate): (&str, &Signed<Certificate>),
    (deployment, now): (&Deployment, Timestamp),
) -> Result<(), GuardError> {
    store.ensure_space(&spaces.host)?;
    store.ensure_space(&spaces.ledger)?;
    let (id, mut batch) = (identity.id(), Batch::new());
    let value = postcard::to_allocvec(certificate).map_err(|_| KeyStoreError::Damaged)?;
    batch.put(&spaces.host, [CERTIFICATES, name.as_bytes()].concat(), value)?;
    if !scan_all(store.as_ref(), &spaces.ledger, &Scope::Controller(id).prefix())?.is_empty() {
        store.commit(batch)?;
        return Ok(());
    }
    let (controller, step) = Controller::create(identity, deployment.clone(), now);
    let mut ledger = StoreLedger::new(store.clone(), spaces.ledger.clone());
    step.commit(&mut Beside { ledger: &mut ledger, batch }).map_err(HostError::from)?;
    Ok(fence.advance([(id, controller.fence())])?)
}
