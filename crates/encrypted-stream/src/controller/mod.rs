//! The privacy controller p: checks every plan and every window against its owners'
//! policies, and releases tokens (Zeph §2.2, §3.4).
//!
//! | file | contents |
//! | --- | --- |
//! | [`identity`] | keys and certificate |
//! | [`owners`] | streams, annotations, withdrawal of consent |
//! | [`grants`] | day keys for readers that owners name |
//! | [`plans`] | accepts or refuses an announced plan |
//! | [`epochs`] | attends an epoch and checks its list |
//! | [`list_sizes`] | how large the last lists were |
//! | [`past_epochs`] | drops plans that are over |
//! | [`policies`] | what the owners' policies allow |
//! | [`segments`] | borders and keys of a stream's part of a window |
//! | [`sessions`] | which of a stream's sessions counts |
//! | [`presences`] | answers a summons |
//! | [`verified_plans`] | what is particular about verified plans |
//! | [`bounded_plans`] | what is particular about bounded ones |
//! | [`generations`] | keys of verified plans that last for a day at most |
//! | [`tokens`] | checks M and spends a token |
//! | [`openings`] | checks S and opens the token |
//! | [`sets`] | over how many sets of owners a day is summed |
//! | [`budgets`] | what noise costs the owners |
//! | [`totals`] | shares of running totals |
//! | [`plan_state`], [`stream_state`] | what is kept of a plan and of a stream |
//! | [`endings`] | the end of windows and of plans |
//! | [`copies`] | what is known about copied devices |
//! | [`moves`], [`tenure`] | streams that come from another controller, or leave for one |
//! | [`restless_owners`] | owners who change their choices too often |
//! | [`revocations`] | certificates that the authority has revoked |
//! | [`restore`] | restart from a ledger |
//!
//! Every handler returns a [`Step`]: its messages come out only once what must be durable
//! is committed. A repeated request produces the same step again, records included. So no
//! answer ever depends on a commit that may have failed.

pub mod identity;
mod log_lines;

mod bounded_plans;
mod budgets;
mod copies;
mod endings;
mod epochs;
mod generations;
mod grants;
mod list_sizes;
mod moves;
mod openings;
mod owners;
mod owners_view;
mod past_epochs;
mod plan_state;
mod plans;
mod policies;
mod presences;
mod restless_owners;
mod restore;
mod revocations;
mod segments;
mod sessions;
mod sets;
mod stream_state;
mod tenure;
mod tokens;
mod totals;
mod verified_plans;

pub use identity::{Identity, IdentitySecrets};
pub use moves::{CarriedRecords, Departure, Luggage};
pub use owners_view::{StatedGrant, StreamHolds};
pub use restore::HostRecords;
pub use stream_state::HeldStream;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, StreamId};
use alpheus_time::{Timestamp, Window};

use crate::certificate::Deployment;
use crate::error::{PlanRefusalError, WindowRefusalError};
use crate::inbox::InboundMessage;
use crate::ledger::{Change, Fence, Record, StampedRecord, Step};
use crate::mask::Storage;
use crate::messages::{ControllerMessage, PlanRefusal, WindowRefusal};
use crate::withdrawal::Erasure;
use budgets::Books;
use epochs::AttendedEpoch;
use generations::Generations;
use grants::GrantState;
use list_sizes::ListSizes;
use past_epochs::Spans;
use plan_state::PlanState;
use sets::Sets;
use stream_state::{StreamRecord, StreamState};
use totals::Allowance;

/// A privacy controller: one identity, with streams of any number of owners.
pub struct Controller {
    identity: Identity,
    deployment: Deployment,
    storage: Storage,
    streams: BTreeMap<StreamId, StreamState>,
    /// Ledger records of streams that have not been handed over yet.
    pending_records: BTreeMap<StreamId, Vec<StreamRecord>>,
    /// Streams whose keys are destroyed: when, and the signed statement for their owners.
    erasures: BTreeMap<StreamId, (Timestamp, Signed<Erasure>)>,
    /// What consumers may read, by stream.
    grants: BTreeMap<(StreamId, ConsumerId), GrantState>,
    plans: BTreeMap<PlanId, PlanState>,
    /// The last epoch attended, by the plan of its call.
    epochs: BTreeMap<PlanId, AttendedEpoch>,
    /// The end of the last epoch that a plan was attended in of which that is forgotten.
    attended_until: Timestamp,
    /// Windows that end at or before this time are settled for fixed plans that are accepted now: plans
    /// that had them were forgotten.
    forgotten_until: Timestamp,
    /// How many controllers the last lists had.
    list_sizes: ListSizes,
    /// The running plans that hold an attribute of a stream: one, or several epochs of a family.
    locks: HashMap<(StreamId, u16), BTreeSet<PlanId>>,
    /// Attributes and spans that ended plans have released.
    released_spans: HashMap<StreamId, Spans>,
    /// Those of them that plans have released which are dropped.
    summed_spans: HashMap<StreamId, Spans>,
    /// What differential privacy has cost owners.
    books: Books,
    /// The sets of owners that sums were opened over.
    sets: Sets,
    /// Rosters for which this controller has published its picks.
    rosters: HashSet<Digest>,
    /// Keys of verified plans that last for a day at most.
    generations: Generations,
    /// Windows that began before this time and are not in the ledger count as released.
    /// Owners have to confirm their annotations again.
    restored_at: Option<Timestamp>,
    /// Spends from this time on may have been lost before the restore.
    lost_from: Timestamp,
    /// Sequence number of the last record.
    sequence: u64,
    /// The last of them that the fence has.
    fenced: u64,
    /// The number of this start, 0 if the ledger was created since.
    start: u64,
    clock: Timestamp,
    /// Seeds of running totals that messages may still cause to be drawn.
    allowance: Allowance,
    /// Digests of certificates that the authority has revoked.
    revoked: Arc<BTreeSet<Digest>>,
}

impl Controller {
    /// A new controller with a new, empty ledger. Keys and ledger are created together,
    /// once. Commit the step before anything else.
    ///
    /// From then on, use [`Controller::restore`].
    pub fn create(
        identity: Identity,
        deployment: Deployment,
        now: Timestamp,
    ) -> (Self, Step<Vec<ControllerMessage>>) {
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
            pending_records: BTreeMap::new(),
            erasures: BTreeMap::new(),
            grants: BTreeMap::new(),
            plans: BTreeMap::new(),
            epochs: BTreeMap::new(),
            attended_until: Timestamp(0),
            forgotten_until: Timestamp(0),
            list_sizes: ListSizes::default(),
            locks: HashMap::new(),
            released_spans: HashMap::new(),
            summed_spans: HashMap::new(),
            books: Books::default(),
            sets: Sets::default(),
            rosters: HashSet::new(),
            generations: Generations::default(),
            restored_at: None,
            lost_from: Timestamp(0),
            sequence: 0,
            fenced: 0,
            start: 0,
            clock: Timestamp(0),
            allowance: Allowance::NONE,
            revoked: Arc::default(),
        }
    }

    /// Keeps mask keys expanded for plans accepted from now on. For a controller with a
    /// process of its own, where memory does not matter.
    pub fn keep_expanded_keys(&mut self) {
        self.storage = Storage::Expanded;
    }

    /// The controller's id: the fingerprint of its certificate.
    #[must_use]
    pub fn id(&self) -> ControllerId {
        self.identity.id()
    }

    /// What to store apart from the ledger; see [`Fence`].
    #[must_use]
    pub fn fence(&self) -> Fence {
        let (sequence, start, clock) = (self.sequence, self.start, self.clock);
        Fence { sequence, start, clock, restored: self.restored_at }
    }

    /// Notes that what [`fence`](Self::fence) returns is durable. Records say how far it had come: what
    /// is later may never have left, and is not repeated if the ledger turns out not to be the latest.
    pub fn note_fenced(&mut self) {
        self.fenced = self.sequence;
    }

    /// Answers a message of the service. A refusal is also an answer: it is signed and
    /// names the rule.
    ///
    /// `now` is the controller's own clock; in a replay, the watermark.
    pub fn handle(
        &mut self,
        message: &InboundMessage,
        now: Timestamp,
    ) -> Step<Vec<ControllerMessage>> {
        self.wipe_settled_keys(now);
        let answer = match message {
            InboundMessage::Announcement(Ok(announced)) => {
                let plan = announced.id();
                return self
                    .handle_announcement(announced, now)
                    .unwrap_or_else(|r| self.refuse(plan, r));
            }
            InboundMessage::Announcement(Err((plan, refused))) => {
                return self.refuse(*plan, refused.clone());
            }
            InboundMessage::EpochCall(call) => self.handle_epoch_call(call, now),
            InboundMessage::Summons(summons) => self.handle_summons(summons, now),
            InboundMessage::Membership(membership, own) => {
                self.handle_membership(membership, own, now)
            }
            InboundMessage::OpeningSet(set) => self.handle_opening_set(set, now),
            InboundMessage::EdgeRequest(request) => self.handle_edge_request(request, now),
            InboundMessage::Closing(closing) => self.handle_closing(closing, now),
            InboundMessage::Retirement(retirement) => self.handle_retirement(retirement, now),
        };
        answer.unwrap_or_else(|refused| self.decline(message, refused))
    }

    /// A signed refusal of a plan.
    fn refuse(&self, plan: PlanId, reason: PlanRefusalError) -> Step<Vec<ControllerMessage>> {
        let refusal = Signed::new(&PlanRefusal { plan, reason }, self.identity.signing());
        Step::new(Vec::new(), vec![ControllerMessage::PlanRefusal(refusal)])
    }

    /// A signed refusal of a request about a window; an empty step if the message requests
    /// nothing.
    fn decline(
        &self,
        message: &InboundMessage,
        reason: WindowRefusalError,
    ) -> Step<Vec<ControllerMessage>> {
        let Some((plan, window, about)) = message.question() else { return Step::default() };
        let declined = WindowRefusal { plan, window, controller: self.id(), about, reason };
        let declined = Signed::new(&declined, self.identity.signing());
        Step::new(Vec::new(), vec![ControllerMessage::WindowRefusal(declined)])
    }

    /// Stamps a record and returns the change that stores it.
    fn put(&mut self, now: Timestamp, record: Record) -> Change {
        self.sequence += 1;
        self.clock = self.clock.max(now);
        let (sequence, fenced, clock) = (self.sequence, self.fenced, self.clock);
        StampedRecord { sequence, fenced, clock, record }.put(self.id())
    }

    /// Checks that the plan is running and that the window of a message about it is
    /// admissible.
    fn window_of(
        &self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
        by_service: bool,
    ) -> Result<&PlanState, WindowRefusalError> {
        if !by_service {
            return Err(WindowRefusalError::NotTheService);
        }
        let joined = self.plans.get(plan).ok_or(WindowRefusalError::UnknownPlan)?;
        joined.admit(window, now, self.restored_at)?;
        Ok(joined)
    }
}
