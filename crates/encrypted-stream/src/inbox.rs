//! Opens the service's messages once for all controllers of a host.

use std::collections::VecDeque;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Proof;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;

use crate::announced_plan::AnnouncedPlan;
use crate::certificate::Deployment;
use crate::error::PlanRefusalError;
use crate::membership::{FixedMembership, MembershipError};
use crate::messages::{
    Announcement, Closing, EdgeRequest, EpochCall, List, Listing, Membership, OpeningSet,
    Retirement, ServiceMessage, Strike, Summons,
};

/// How many different broadcasts an [`Inbox`] remembers.
const REMEMBERED: usize = 32;

/// A message of the service whose signature has been checked.
#[derive(Clone, Debug)]
pub enum InboundMessage {
    /// A plan whose participants were checked, or why it is refused. It was announced, or
    /// follows from the list of an epoch.
    Announcement(CheckedPlan),
    /// Who takes part in an epoch?
    EpochCall(Arc<Verified<EpochCall>>),
    /// A window has closed.
    Summons(Arc<Verified<Summons>>),
    /// M, or the error if its numbers do not fit, and the receiver's own part.
    Membership(Arc<InboundMembership>, MemberProof),
    /// S.
    OpeningSet(Arc<Verified<OpeningSet>>),
    /// A bounded row does not hold.
    EdgeRequest(Arc<Verified<EdgeRequest>>),
    /// The end of a window.
    Closing(Arc<Verified<Closing>>),
    /// The end of a plan.
    Retirement(Arc<Verified<Retirement>>),
}

/// A plan whose participants were checked, or the id and the reason of a refusal.
type CheckedPlan = Result<Arc<AnnouncedPlan>, (PlanId, PlanRefusalError)>;

/// What M's tree states about one member, with the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberProof {
    /// From the member's leaf to the root.
    pub proof: Proof,
    /// With `Neighbours`: the members that picked it.
    pub pickers: Option<Vec<u32>>,
    /// In a bounded plan: why it leaves out edges. Their signatures are not checked.
    pub strikes: Vec<Strike>,
}

impl MemberProof {
    fn new(proof: &Proof) -> Self {
        Self { proof: proof.clone(), pickers: None, strikes: Vec::new() }
    }
}

/// A received membership.
#[derive(Debug)]
pub struct InboundMembership {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// H(M).
    pub digest: Digest,
    /// Its content, or the error if its numbers do not fit each other.
    pub fixed: Result<Arc<FixedMembership>, MembershipError>,
}

impl InboundMessage {
    /// Plan, window and digest, if the message requests something about a window. `None` if
    /// it only informs, or concerns a whole plan.
    #[must_use]
    pub fn question(&self) -> Option<(PlanId, Window, Digest)> {
        match self {
            InboundMessage::Summons(summons) => {
                Some((summons.plan, summons.window, summons.digest()))
            }
            InboundMessage::Membership(m, _) => Some((m.plan, m.window, m.digest)),
            InboundMessage::OpeningSet(set) => Some((set.plan, set.window, set.digest())),
            InboundMessage::EdgeRequest(ask) => Some((ask.plan, ask.window, ask.digest())),
            InboundMessage::EpochCall(call) => Some((call.terms.id(), call.window, call.digest())),
            InboundMessage::Announcement(_)
            | InboundMessage::Closing(_)
            | InboundMessage::Retirement(_) => None,
        }
    }
}

/// Opens messages of one deployment's service. All controllers of a thread share one inbox, so
/// each broadcast is verified once for all of them.
#[derive(Debug)]
pub struct Inbox {
    deployment: Deployment,
    announcements: Recent<Announcement, CheckedPlan>,
    lists: Recent<List, CheckedPlan>,
    calls: Recent<EpochCall, Arc<Verified<EpochCall>>>,
    memberships: Recent<Membership, Arc<InboundMembership>>,
    opening_sets: Recent<OpeningSet, Arc<Verified<OpeningSet>>>,
    edge_requests: Recent<EdgeRequest, Arc<Verified<EdgeRequest>>>,
    closings: Recent<Closing, Arc<Verified<Closing>>>,
}

impl Inbox {
    /// An inbox for messages of this deployment's service.
    #[must_use]
    pub fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            announcements: Recent::default(),
            lists: Recent::default(),
            calls: Recent::default(),
            memberships: Recent::default(),
            opening_sets: Recent::default(),
            edge_requests: Recent::default(),
            closings: Recent::default(),
        }
    }

    /// Checks a message's signature, and the participants of an announcement.
    ///
    /// # Errors
    /// [`SignedMessageError`] if the service did not sign it, or signed bytes that are no such
    /// message. Drop it and count it.
    pub fn open(&mut self, message: &ServiceMessage) -> Result<InboundMessage, SignedMessageError> {
        let key = *self.deployment.service();
        Ok(match message {
            ServiceMessage::Announcement(signed) => {
                let deployment = &self.deployment;
                let open = |signed: &Signed<_>| {
                    let opened = signed.open(&key)?;
                    let checked = AnnouncedPlan::check(&opened, signed, deployment).map(Arc::new);
                    Ok(checked.map_err(|refused| (opened.plan.id(), refused)))
                };
                InboundMessage::Announcement(self.announcements.get_or(signed, open)?)
            }
            ServiceMessage::EpochCall(signed) => {
                InboundMessage::EpochCall(self.calls.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::List(listing) => InboundMessage::Announcement(self.list(listing)?),
            ServiceMessage::Summons(signed) => {
                InboundMessage::Summons(Arc::new(signed.open(&key)?))
            }
            ServiceMessage::Membership { membership, proof } => {
                let own = MemberProof::new(proof);
                InboundMessage::Membership(self.membership(membership, &key)?, own)
            }
            ServiceMessage::Introduction { membership, proof, pickers } => {
                let own = MemberProof { pickers: Some(pickers.clone()), ..MemberProof::new(proof) };
                InboundMessage::Membership(self.membership(membership, &key)?, own)
            }
            ServiceMessage::BoundedMembership { membership, proof, strikes } => {
                let own = MemberProof { strikes: strikes.clone(), ..MemberProof::new(proof) };
                InboundMessage::Membership(self.membership(membership, &key)?, own)
            }
            ServiceMessage::EdgeRequest(signed) => {
                InboundMessage::EdgeRequest(self.edge_requests.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::OpeningSet(signed) => {
                InboundMessage::OpeningSet(self.opening_sets.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::Closing(signed) => {
                InboundMessage::Closing(self.closings.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::Retirement(signed) => {
                InboundMessage::Retirement(Arc::new(signed.open(&key)?))
            }
        })
    }

    fn list(&mut self, listing: &Arc<Listing>) -> Result<CheckedPlan, SignedMessageError> {
        let deployment = &self.deployment;
        let call = self.calls.get_or(&listing.call, opened_by(deployment.service()))?;
        self.lists.get_or(&listing.list, |signed| {
            let list = signed.open(deployment.service())?;
            Ok(AnnouncedPlan::of_list(&call, &list, listing, deployment).map(Arc::new))
        })
    }

    fn membership(
        &mut self,
        signed: &Signed<Membership>,
        key: &VerifyingKey,
    ) -> Result<Arc<InboundMembership>, SignedMessageError> {
        self.memberships.get_or(signed, |signed| {
            let verified = signed.open(key)?;
            let fixed = FixedMembership::new(&verified).map(Arc::new);
            Ok(Arc::new(InboundMembership {
                plan: verified.plan,
                window: verified.window,
                digest: verified.digest(),
                fixed,
            }))
        })
    }
}

fn opened_by<T: Message>(
    key: &VerifyingKey,
) -> impl Fn(&Signed<T>) -> Result<Arc<Verified<T>>, SignedMessageError> {
    |signed| signed.open(key).map(Arc::new)
}

/// The last few messages of a kind with what they opened to, compared byte by byte.
#[derive(Debug)]
struct Recent<T, V>(VecDeque<(Signed<T>, V)>);

impl<T, V> Default for Recent<T, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Message, V: Clone> Recent<T, V> {
    fn get_or(
        &mut self,
        signed: &Signed<T>,
        open: impl Fn(&Signed<T>) -> Result<V, SignedMessageError>,
    ) -> Result<V, SignedMessageError> {
        if let Some((_, known)) = self.0.iter().find(|(seen, _)| seen == signed) {
            return Ok(known.clone());
        }
        let opened = open(signed)?;
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((signed.clone(), opened.clone()));
        Ok(opened)
    }
}
