//! What the controllers have said and the service is not known to have heard:
//! kept beside the ledgers, so that an owner who withdraws can have it back.

use crate::runtime::hosts::FromController;
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_policy::ids::ControllerId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What waits to be said.
#[derive(Default)]
pub struct Outgoing {
    said: Vec<FromController>,
    /// Grows whenever something is taken back.
    generation: Arc<AtomicU64>,
}

/// What waited to be said when it was asked for. Before each byte leaves, ask
/// whether it [still stands](Going::stands).
pub struct Going {
    /// The messages.
    pub said: Vec<FromController>,
    taken: u64,
    generation: Arc<AtomicU64>,
}

impl Going {
    /// Whether nothing was taken back since.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.generation.load(Ordering::SeqCst) == self.taken
    }
}

impl Outgoing {
    /// All that waits. It waits on until it is known to have [arrived](Outgoing::arrived).
    #[must_use]
    pub fn going(&self) -> Going {
        let generation = Arc::clone(&self.generation);
        let taken = generation.load(Ordering::SeqCst);
        Going { said: self.said.clone(), taken, generation }
    }

    /// It has arrived. If something was taken back meanwhile, what is left is said
    /// again: the same message twice does no harm.
    pub fn arrived(&mut self, going: &Going) {
        if going.stands() {
            self.said.clear();
        }
    }

    /// More to say.
    pub fn add(&mut self, said: Vec<FromController>) {
        self.said.extend(said);
    }

    /// An owner of this controller has chosen anew or withdrawn: what would open a
    /// window does not leave any more, unless the service asks again and the
    /// controller checks it again.
    pub fn take_back(&mut self, controller: &ControllerId) {
        // First of all stop what is under way.
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.said.retain(|(from, _, message)| {
            from != controller
                || !matches!(message, ControllerMessage::Token(_) | ControllerMessage::Opening(_))
        });
    }

    /// The service will never take it; it asks again for what it misses.
    pub fn drop_all(&mut self) {
        self.said.clear();
    }
}
