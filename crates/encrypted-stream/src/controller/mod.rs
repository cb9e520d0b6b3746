//! The privacy controller p: checks every plan and every window against its
//! owners' policies, and releases tokens (Zeph §2.2, §3.4).
//!
//! | file | step |
//! | --- | --- |
//! | [`identity`] | keys and certificate |
//! | [`owners`] | streams, annotations, revocation |
//! | [`grants`] | days' keys for readers that owners name |
//! | [`plans`] | an announcement is accepted or refused |
//! | [`presences`] | a summons is answered |
//! | [`tokens`] | M is checked, a token is spent |
//! | [`openings`] | S is checked, the token opened |
//! | [`budgets`] | what noise costs owners |
//! | [`totals`] | shares of running totals |
//! | [`endings`] | windows and plans end |
//! | [`restore`] | back from a ledger |
//!
//! What a handler decides comes as a [`Step`]: its messages can only be had by
//! committing what must be durable first. Asked again, the controller makes the
//! same step again, records included, so that no answer ever rests on a commit
//! that may have failed.

pub mod identity;

mod budgets;
mod endings;
mod grants;
mod held;
mod joined;
mod openings;
mod owners;
mod plans;
mod policies;
mod presences;
mod restore;
mod sessions;
mod tokens;
mod totals;

pub use held::HeldStream;
pub use identity::{Identity, IdentitySecrets};
pub use restore::HostRecords;

use std::collections::{BTreeMap, HashMap, HashSet};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, StreamId};
use alpheus_policy::time::{Timestamp, Window};

use crate::certificate::Deployment;
use crate::error::{PlanRefused, Refused};
use crate::ledger::{Change, Fence, Record, Stamped, Step};
use crate::mask::Storage;
use crate::messages::{ControllerMessage, Declined, Heard, Refusal};
use crate::withdrawal::Erasure;
use budgets::Books;
use grants::Granted;
use held::{Held, Remembered};
use joined::Joined;
use totals::Allowance;

/// A privacy controller. One identity; streams of any number of owners.
pub struct Controller {
    identity: Identity,
    deployment: Deployment,
    storage: Storage,
    streams: BTreeMap<StreamId, Held>,
    /// What the ledger says of streams that are not held yet.
    unheld: BTreeMap<StreamId, Vec<Remembered>>,
    /// Streams whose keys are destroyed, since when, and what their owners were told.
    erased: BTreeMap<StreamId, (Timestamp, Signed<Erasure>)>,
    /// What consumers may read, by stream.
    grants: BTreeMap<(StreamId, ConsumerId), Granted>,
    plans: BTreeMap<PlanId, Joined>,
    /// The running plan that an attribute of a stream is given to.
    locks: HashMap<(StreamId, u16), PlanId>,
    /// What ended plans have released: attributes and spans.
    released: HashMap<StreamId, Vec<(u16, Window)>>,
    /// What differential privacy has cost owners.
    books: Books,
    /// Rosters that it has given its picks for.
    rosters: HashSet<Digest>,
    /// What had begun by then and is not in the ledger counts as released; owners
    /// confirm their annotations anew.
    restored: Option<Timestamp>,
    /// Spends from then on may be lost with what was restored.
    lost_from: Timestamp,
    /// Sequence number of the last record.
    sequence: u64,
    clock: Timestamp,
    /// What messages may still have drawn of running totals.
    allowance: Allowance,
}

impl Controller {
    /// A new controller with a new, empty ledger: keys and ledger are created
    /// together, once. Commit the step before anything else.
    ///
    /// Ever after, use [`Controller::restore`].
    pub fn create(
        identity: Identity,
        deployment: Deployment,
        now: Timestamp,
    ) -> (Self, Step<ControllerMessage>) {
        let mut controller = Self::empty(identity, deployment);
        let record = Record::Identity { controller: controller.id() };
        let step = Step::new(vec![controller.put(now, record)], Vec::new());
        (controller, step)
    }

    fn empty(identity: Identity, deployment: Deployment) -> Self {
        Self {
            identity,
            deployment,
            storage: Storage::Compact,
            streams: BTreeMap::new(),
            unheld: BTreeMap::new(),
            erased: BTreeMap::new(),
            grants: BTreeMap::new(),
            plans: BTreeMap::new(),
            locks: HashMap::new(),
            released: HashMap::new(),
            books: Books::default(),
            rosters: HashSet::new(),
            restored: None,
            lost_from: Timestamp(0),
            sequence: 0,
            clock: Timestamp(0),
            allowance: Allowance::NONE,
        }
    }

    /// Keeps mask keys of plans accepted from now on expanded: for a process of
    /// its own, where memory is no matter.
    pub fn keep_expanded_keys(&mut self) {
        self.storage = Storage::Expanded;
    }

    /// Its id: the fingerprint of its certificate.
    #[must_use]
    pub fn id(&self) -> ControllerId {
        self.identity.id()
    }

    /// What to keep apart from the ledger: see [`Fence`].
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence { sequence: self.sequence, clock: self.clock, restored: self.restored }
    }

    /// Answers a message of the service. A refusal is an answer too: a signed
    /// one that names the rule.
    ///
    /// `now` is the controller's own clock; in replay, the watermark.
    pub fn handle(&mut self, now: Timestamp, heard: &Heard) -> Step<ControllerMessage> {
        let answer = match heard {
            Heard::Announcement(Ok(announced)) => {
                let plan = announced.id();
                return self.announced(now, announced).unwrap_or_else(|r| self.refuse(plan, r));
            }
            Heard::Announcement(Err((plan, refused))) => {
                return self.refuse(*plan, refused.clone());
            }
            Heard::Summons(summons) => self.summoned(now, summons),
            Heard::Membership(membership, own) => self.membership(now, membership, own),
            Heard::OpeningSet(set) => self.opening_set(now, set),
            Heard::Closing(closing) => self.closing(now, closing),
            Heard::Retirement(retirement) => self.retired(now, retirement),
        };
        answer.unwrap_or_else(|refused| self.decline(heard, refused))
    }

    /// A signed refusal of a plan.
    fn refuse(&self, plan: PlanId, reason: PlanRefused) -> Step<ControllerMessage> {
        let refusal = Signed::new(&Refusal { plan, reason }, self.identity.signing());
        Step::new(Vec::new(), vec![ControllerMessage::Refusal(refusal)])
    }

    /// A signed refusal about a window; nothing if the message asks about none.
    fn decline(&self, heard: &Heard, reason: Refused) -> Step<ControllerMessage> {
        let Some((plan, window, about)) = heard.question() else { return Step::default() };
        let declined = Declined { plan, window, controller: self.id(), about, reason };
        let declined = Signed::new(&declined, self.identity.signing());
        Step::new(Vec::new(), vec![ControllerMessage::Declined(declined)])
    }

    /// Stamps a record and says how to store it.
    fn put(&mut self, now: Timestamp, record: Record) -> Change {
        self.sequence += 1;
        self.clock = self.clock.max(now);
        Stamped { sequence: self.sequence, clock: self.clock, record }.put(self.id())
    }

    /// A plan that goes on and the window of a message about it, both checked.
    fn window_of(
        &self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
        by_service: bool,
    ) -> Result<&Joined, Refused> {
        if !by_service {
            return Err(Refused::NotTheService);
        }
        let joined = self.plans.get(plan).ok_or(Refused::UnknownPlan)?;
        joined.admit(window, now, self.restored)?;
        Ok(joined)
    }
}
