//! Messages of the controllers that the service has not confirmed. They are kept beside
//! the ledgers, so that a withdrawal or a revocation can still take them back.

use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_policy::ids::ControllerId;
use alpheus_stream_runtime::controller_host::FromController;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages that wait to be sent.
#[derive(Default)]
pub struct ControllerOutbox {
    messages: Vec<FromController>,
    /// Grows whenever something is taken back.
    generation: Arc<AtomicU64>,
}

/// The messages that waited at some time. Before each byte is sent, check that the batch
/// is [still current](OutgoingBatch::is_current).
pub struct OutgoingBatch {
    /// The messages.
    pub messages: Vec<FromController>,
    taken: u64,
    generation: Arc<AtomicU64>,
    /// Certificates that are revoked, and those that were when the batch was made.
    revoked: RevokedCertificates,
    known: Arc<BTreeSet<Digest>>,
}

impl OutgoingBatch {
    /// Whether nothing was taken back since, and no certificate was revoked.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.current_check()()
    }

    /// The same check as a function, for the client that sends the messages.
    pub fn current_check(&self) -> impl Fn() -> bool + Send + Sync + Unpin + use<> {
        let (generation, taken) = (Arc::clone(&self.generation), self.taken);
        let (revoked, known) = (self.revoked.clone(), Arc::clone(&self.known));
        move || generation.load(Ordering::SeqCst) == taken && Arc::ptr_eq(&revoked.all(), &known)
    }
}

impl ControllerOutbox {
    /// All waiting messages. They keep waiting until they have [arrived](ControllerOutbox::arrived). `known`
    /// are the revoked certificates for which messages were [taken back](ControllerOutbox::take_back_for).
    #[must_use]
    pub fn batch(
        &self,
        revoked: &RevokedCertificates,
        known: &Arc<BTreeSet<Digest>>,
    ) -> OutgoingBatch {
        let generation = Arc::clone(&self.generation);
        let taken = generation.load(Ordering::SeqCst);
        let (messages, revoked, known) = (self.messages.clone(), revoked.clone(), known.clone());
        OutgoingBatch { messages, taken, generation, revoked, known }
    }

    /// The batch has arrived. If something was taken back meanwhile, the rest is sent
    /// again, which does no harm.
    pub fn arrived(&mut self, batch: &OutgoingBatch) {
        if batch.is_current() {
            self.messages.clear();
        }
    }

    /// Adds messages.
    pub fn add(&mut self, messages: Vec<FromController>) {
        self.messages.extend(messages);
    }

    /// Takes back messages that would open a window, because an owner of this controller
    /// has changed a choice or withdrawn. The service can ask again, and the controller
    /// then checks again.
    pub fn take_back(&mut self, controller: &ControllerId) {
        self.keep(|from, message| from != controller || !may_open(message));
    }

    /// Takes back messages that would open a window, because certificates were revoked: of an
    /// owner, or of the consumer of the result. A revoked controller says nothing more.
    pub fn take_back_for(&mut self, revoked: &BTreeSet<Digest>) {
        self.keep(|from, message| !may_open(message) && !revoked.contains(&Digest(from.0)));
    }

    fn keep(&mut self, keep: impl Fn(&ControllerId, &ControllerMessage) -> bool) {
        // Stop the current transfer first.
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.messages.retain(|(from, _, message)| keep(from, message));
    }

    /// Drops all messages, which the service will never accept; it asks again for what
    /// it needs.
    pub fn drop_all(&mut self) {
        self.messages.clear();
    }
}

/// Whether a message is a part of what opens a window.
fn may_open(message: &ControllerMessage) -> bool {
    matches!(
        message,
        ControllerMessage::Token(_)
            | ControllerMessage::Opening(_)
            | ControllerMessage::Contribution(_)
            | ControllerMessage::BoundedOpening(_)
    )
}
