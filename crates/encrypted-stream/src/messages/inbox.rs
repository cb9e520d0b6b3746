//! Opening what came from the service: once for all controllers of a host.

use std::collections::VecDeque;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Proof;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Rejected, Signed, Verified};
use alpheus_policy::ids::PlanId;
use alpheus_policy::time::Window;

use super::{Announcement, Closing, Membership, OpeningSet, Retirement, ServiceMessage, Summons};
use crate::announced::Announced;
use crate::certificate::Deployment;
use crate::error::PlanRefused;
use crate::membership::{Fixed, Misfit};

/// How many different broadcasts an [`Inbox`] remembers as opened.
const REMEMBERED: usize = 32;

/// A message of the service whose signature has been checked.
#[derive(Clone, Debug)]
pub enum Heard {
    /// A plan whose participants have been checked, or why not.
    Announcement(Result<Arc<Announced>, (PlanId, PlanRefused)>),
    /// A window has closed.
    Summons(Arc<Verified<Summons>>),
    /// M, or that its numbers do not fit, and what of it is the receiver's own.
    Membership(Arc<HeardMembership>, Own),
    /// S.
    OpeningSet(Arc<Verified<OpeningSet>>),
    /// The end of a window.
    Closing(Arc<Verified<Closing>>),
    /// The end of a plan.
    Retirement(Arc<Verified<Retirement>>),
}

/// What M's tree says to one member, and the path that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// From its leaf to the root.
    pub proof: Proof,
    /// Of a plan with `Neighbours`: the members that picked it.
    pub pickers: Option<Vec<u32>>,
}

/// A membership as it was heard.
#[derive(Debug)]
pub struct HeardMembership {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// H(M).
    pub digest: Digest,
    /// Its content, unless its numbers do not fit each other.
    pub fixed: Result<Arc<Fixed>, Misfit>,
}

impl Heard {
    /// The plan and window that it asks something about, and its digest; none
    /// for what is only told, or is about a plan as a whole.
    #[must_use]
    pub fn question(&self) -> Option<(PlanId, Window, Digest)> {
        match self {
            Heard::Summons(summons) => Some((summons.plan, summons.window, summons.digest())),
            Heard::Membership(m, _) => Some((m.plan, m.window, m.digest)),
            Heard::OpeningSet(set) => Some((set.plan, set.window, set.digest())),
            Heard::Announcement(_) | Heard::Closing(_) | Heard::Retirement(_) => None,
        }
    }
}

/// Opens messages of one deployment's service. A host of many controllers
/// keeps one: what the service broadcasts is then verified once, and all of
/// them share it.
#[derive(Debug)]
pub struct Inbox {
    deployment: Deployment,
    announcements: Recent<Announcement, Result<Arc<Announced>, (PlanId, PlanRefused)>>,
    memberships: Recent<Membership, Arc<HeardMembership>>,
    opening_sets: Recent<OpeningSet, Arc<Verified<OpeningSet>>>,
    closings: Recent<Closing, Arc<Verified<Closing>>>,
}

impl Inbox {
    /// An inbox for messages of this deployment's service.
    #[must_use]
    pub fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            announcements: Recent::default(),
            memberships: Recent::default(),
            opening_sets: Recent::default(),
            closings: Recent::default(),
        }
    }

    /// Checks a message's signature, and of an announcement the participants.
    ///
    /// # Errors
    /// [`Rejected`] if the service did not sign it, or signed bytes that are no
    /// such message: drop it and count it.
    pub fn open(&mut self, message: &ServiceMessage) -> Result<Heard, Rejected> {
        let key = *self.deployment.service();
        Ok(match message {
            ServiceMessage::Announcement(signed) => {
                let deployment = &self.deployment;
                let open = |signed: &Signed<_>| {
                    let opened = signed.open(&key)?;
                    let checked = Announced::check(&opened, signed, deployment).map(Arc::new);
                    Ok(checked.map_err(|refused| (opened.plan.id(), refused)))
                };
                Heard::Announcement(self.announcements.get_or(signed, open)?)
            }
            ServiceMessage::Summons(signed) => Heard::Summons(Arc::new(signed.open(&key)?)),
            ServiceMessage::Membership { membership, proof } => {
                let own = Own { proof: proof.clone(), pickers: None };
                Heard::Membership(self.membership(membership, &key)?, own)
            }
            ServiceMessage::Introduction { membership, proof, pickers } => {
                let own = Own { proof: proof.clone(), pickers: Some(pickers.clone()) };
                Heard::Membership(self.membership(membership, &key)?, own)
            }
            ServiceMessage::OpeningSet(signed) => {
                Heard::OpeningSet(self.opening_sets.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::Closing(signed) => {
                Heard::Closing(self.closings.get_or(signed, opened_by(&key))?)
            }
            ServiceMessage::Retirement(signed) => Heard::Retirement(Arc::new(signed.open(&key)?)),
        })
    }

    fn membership(
        &mut self,
        signed: &Signed<Membership>,
        key: &VerifyingKey,
    ) -> Result<Arc<HeardMembership>, Rejected> {
        self.memberships.get_or(signed, |signed| {
            let verified = signed.open(key)?;
            let fixed = Fixed::new(&verified).map(Arc::new);
            Ok(Arc::new(HeardMembership {
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
) -> impl Fn(&Signed<T>) -> Result<Arc<Verified<T>>, Rejected> {
    |signed| signed.open(key).map(Arc::new)
}

/// The last few messages of a kind beside what they opened to, compared by
/// every byte.
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
        open: impl Fn(&Signed<T>) -> Result<V, Rejected>,
    ) -> Result<V, Rejected> {
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
