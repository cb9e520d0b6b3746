//! A host of controllers: keys, ledgers, fence, and the controllers built from them.
//! [`owners`]: the requests of owners. [`moves`]: streams that come from other hosts, or leave for them.
//! [`log_keeper`]: how much of their logs is kept.

mod grants;
mod log_clock;
mod log_keeper;
mod moves;
mod owners;
mod view;

pub use log_keeper::LogKeeper;
pub use owners::OwnersLog;

use crate::controller::keystore::{KeyStore, KeyStoreError, StreamKey};
use crate::controller::notices::Notices;
use crate::controller::outbox::{ControllerOutbox, OutgoingBatch};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords, Identity};
use alpheus_encrypted_stream::error::{
    AnnotationError, CertificateError, GrantError, MoveError, RestoreError,
};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::mask::generation::KeySource;
use alpheus_node::entropy;
use alpheus_node::ledger::scan_all;
use alpheus_node::ledger::store::{LedgerWithBatch, StoreLedger};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::controller_host::{ControllerHost, HostError, ToController};
use alpheus_stream_runtime::fences::ControllerFences;
use alpheus_stream_runtime::membership_setup::{Keys, from_ledger};
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Space, Store};
use chacha20::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// Why a host refuses a request or cannot start.
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
    Fence(#[from] alpheus_node::fence::FenceError),
    /// A ledger.
    #[error("a controller cannot be restored from its ledger: {0}")]
    Restore(#[from] RestoreError),
    /// An identity that the authority has not certified.
    #[error(
        "the identity `{0}` has no valid certificate: have its request certified, then run `alpheus controller init --certificate`"
    )]
    Uncertified(String),
    /// The owner's choice.
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
    /// Raw access.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A move to another controller, or from one.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// The stream has another controller.
    #[error(
        "the stream has moved to the controller {0}: ask there. To end what this one still answers until the border, have its key destroyed here with `alpheus owner erase`"
    )]
    Moved(ControllerId),
    /// A host's controllers share its keys.
    #[error("this host already guards the stream: move it to another host")]
    SameHost,
    /// The owner's certificate does not hold for the connection.
    #[error("the owner's certificate is refused: {0}")]
    Owner(#[from] CertificateError),
    /// No controller of this id is on this host.
    #[error("no such controller on this host")]
    OtherController,
    /// The sealed secret cannot be opened.
    #[error(transparent)]
    NotSealed(#[from] alpheus_crypto::seal::UnsealError),
    /// The stream has another schema.
    #[error("the stream has a different schema from this controller's, or another version of it")]
    WrongSchema,
    /// The stream belongs to another owner, or does not exist.
    #[error("you have no such stream here")]
    NotYours,
    /// A known stream is handed over with another key, choice or device.
    #[error(
        "the stream already exists with another key, choice or device; change the choice with `alpheus owner choose`, or create another stream"
    )]
    Here,
    /// Keys cannot be drawn.
    #[error("the operating system returned no random bytes: check its random device and restart")]
    NoRandomness,
    /// A part panicked, and its state may be inconsistent.
    #[error("a part of the host panicked, which is a bug in Alpheus; restart the host")]
    Panicked,
}

/// A host of controllers.
pub struct Guard {
    host: ControllerHost,
    keys: KeyStore,
    store: Arc<dyn Store>,
    spaces: Spaces,
    certificates: BTreeMap<ControllerId, Signed<Certificate>>,
    streams: BTreeMap<StreamId, GuardedStream>,
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    outgoing: ControllerOutbox,
    notices: Notices,
    deployment: Deployment,
    /// Certificates that the authority has revoked, and those that controllers know of.
    revoked: RevokedCertificates,
    applied: Arc<BTreeSet<Digest>>,
    log_keeper: LogKeeper,
    rng: ChaCha20Rng,
}

/// Names in the store.
#[derive(Clone)]
pub struct Spaces {
    /// Ledgers.
    pub ledger: Space,
    /// Locked keys.
    pub keys: Space,
    /// Certificates, and notices for the service.
    pub host: Space,
}

/// What is known about a stream without its key.
struct GuardedStream {
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

/// The parts of a guard.
pub struct Parts {
    /// Ledgers and keys.
    pub store: Arc<dyn Store>,
    /// Names in it.
    pub spaces: Spaces,
    /// The key store, open.
    pub keys: KeyStore,
    /// How far the ledgers had come.
    pub fence: ControllerFences,
    /// The authority and the service's keys.
    pub deployment: Deployment,
    /// Certificates that the authority has revoked.
    pub revoked: RevokedCertificates,
    /// The schema of the streams.
    pub schema: Schema,
    /// For nonces of locked entries.
    pub rng: ChaCha20Rng,
}

impl Guard {
    /// Opens the host as it was left: every controller is restored from its ledger.
    ///
    /// # Errors
    /// [`GuardError`] if any stored state cannot be read.
    pub fn open(parts: Parts, layout: Layout, now: Timestamp) -> Result<Guard, GuardError> {
        let Parts { store, spaces, keys, fence, deployment, revoked, schema, rng } = parts;
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
            outgoing: ControllerOutbox::default(),
            notices,
            deployment: deployment.clone(),
            revoked,
            applied: Arc::default(),
            log_keeper: LogKeeper::endless(),
            rng,
        };
        guard.seat(&deployment, now)?;
        guard.apply_revocations();
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
            let start = self.host.start_of(&id, &mut self.rng);
            let (mut controller, step) =
                from_ledger(keys, deployment, streams, &host, &values, now, start)?;
            // Not from the generator that lives on: it could give them again.
            let mut once = entropy::rng().map_err(|_| GuardError::NoRandomness)?;
            controller.draw_keys_from(KeySource::new(Secret::random(&mut once)));
            controllers.push((controller, step));
        }
        let known = controllers.iter().flat_map(|(own, _)| own.known_plans().copied()).collect();
        self.host.delete(host.forget_plans(&known))?;
        self.host.take(controllers)?;
        self.finish_erasures(now, destroyed)
    }

    /// Completes erasures: a crash may have come between the record and the deletion. If
    /// the store is an older copy than the slots, the record is written again.
    fn finish_erasures(
        &mut self,
        now: Timestamp,
        destroyed: Vec<(StreamId, ControllerId)>,
    ) -> Result<(), GuardError> {
        for (stream, controller) in destroyed {
            if !self.is_erased(&stream, &controller) {
                tracing::warn!(%stream, "the stream's key was destroyed after this copy of the store was made");
                let erase = |own: &mut Controller| own.erase(&stream, now).map(|(step, _)| step);
                self.withdraw_by(&controller, &stream, erase)?;
            }
        }
        let erased = |(stream, known): &(&StreamId, &GuardedStream)| {
            self.is_erased(stream, &known.controller)
        };
        Ok(self.keys.destroy(self.streams.iter().filter(erased).map(|(stream, _)| stream))?)
    }

    fn is_erased(&self, stream: &StreamId, controller: &ControllerId) -> bool {
        let own = self.host.controller(controller);
        own.is_some_and(|own| own.erasure(stream).is_some())
    }

    /// What is known about a stream without its key, and what its controller holds.
    fn held(&self, stream: StreamKey) -> Result<(GuardedStream, HeldStream), GuardError> {
        let StreamKey { purpose, controller, owner_name, producer: _, master } = stream;
        if purpose.schema != self.schema.id() {
            return Err(GuardError::WrongSchema);
        }
        let Purpose { stream, owner, .. } = purpose;
        let (schema, layout) = (self.schema.clone(), self.layout.clone());
        let held = HeldStream { stream, owner, schema, layout, master };
        Ok((GuardedStream { controller, owner_name }, held))
    }

    /// The controllers' certificates.
    #[must_use]
    pub fn certificates(&self) -> Vec<Signed<Certificate>> {
        self.certificates.values().cloned().collect()
    }

    /// The controllers' certificates, each with the key that it names.
    #[must_use]
    pub fn recipients(&self) -> Vec<(Signed<Certificate>, HybridPublic)> {
        let key = |id| self.host.controller(id).map(|own| own.hybrid().clone());
        let each = self.certificates.iter();
        each.filter_map(|(id, certificate)| Some((certificate.clone(), key(id)?))).collect()
    }

    /// Tells the controllers which certificates are revoked, if that has changed. What they said
    /// before is taken back: the service asks again, and they check again.
    fn apply_revocations(&mut self) {
        let revoked = self.revoked.all();
        if !Arc::ptr_eq(&revoked, &self.applied) {
            self.host.note_revocations(&revoked);
            self.outgoing.take_back_for(&revoked);
            self.applied = revoked;
        }
    }

    /// Answers the service's messages; when it returns, all records are durable. The
    /// answers wait in [`Guard::outgoing_batch`].
    ///
    /// # Errors
    /// [`HostError`]; nothing may be sent then, and the process must restart.
    pub fn answer(&mut self, now: Timestamp, messages: Vec<ToController>) -> Result<(), HostError> {
        self.apply_revocations();
        let answers = self.host.handle(now, messages)?;
        self.outgoing.add(answers);
        Ok(())
    }

    /// Draws some of the noise that controllers lack since the start, and says whether more
    /// is missing. It works in slices, so that owners never wait for it. Wipes keys that are over.
    pub fn draw_ahead(&mut self, now: Timestamp) -> bool {
        self.host.draw_ahead(now)
    }

    /// Limits the owners' logs.
    #[must_use]
    pub fn keeping_logs(self, log_keeper: LogKeeper) -> Guard {
        Guard { log_keeper, ..self }
    }

    /// The messages to send.
    #[must_use]
    pub fn outgoing_batch(&mut self) -> OutgoingBatch {
        self.apply_revocations();
        self.outgoing.batch(&self.revoked, &self.applied)
    }

    /// The service has received it.
    pub fn arrived(&mut self, batch: &OutgoingBatch) {
        self.outgoing.arrived(batch);
    }

    /// The service refuses the messages.
    pub fn drop_outgoing(&mut self) {
        self.outgoing.drop_all();
    }

    /// Notices for the service.
    pub fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
}

const CERTIFICATES: &[u8] = b"certificate/";

/// The certificate of an identity, if it has one.
///
/// # Errors
/// The store's error.
pub fn certificate_of(
    store: &dyn Store,
    spaces: &Spaces,
    name: &str,
) -> Result<Option<Signed<Certificate>>, alpheus_transport::Error> {
    let stored = store.get(&spaces.host, &[CERTIFICATES, name.as_bytes()].concat())?;
    Ok(stored.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
}

/// Stores the certificate of an identity and begins its ledger, in one commit. From then
/// on, a host that finds no ledger or an older one knows that it has lost one. An
/// existing ledger is kept.
///
/// # Errors
/// [`GuardError`].
pub fn begin_identity(
    (store, spaces): (&Arc<dyn Store>, &Spaces),
    fence: &mut ControllerFences,
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
    step.commit(&mut LedgerWithBatch { ledger: &mut ledger, batch }).map_err(HostError::from)?;
    Ok(fence.advance([(id, controller.fence())])?)
}
