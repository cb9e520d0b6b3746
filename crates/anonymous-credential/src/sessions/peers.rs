//! Shards that are processes of their own: a session's shard asks the shard of
//! the next tag to hold it and, when the session has moved, to keep it for good.
//!
//! What is asked is believed: shards of one deployment share the issuer's key
//! and must know each other, as by mutual TLS. Nobody else may ask.

use super::{Moved, Reserved, Shard, Spent};
use crate::configuration::Pinned;
use crate::error::Refused;
use crate::ledger::{Change, Step};
use crate::messages::{ReUp, SessionId, TagId};
use crate::schedule::{Epoch, Time};
use crate::sessions::records;
use crate::verifier::ProvenReUp;
use serde::{Deserialize, Serialize};

/// A tag that another shard's session wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wanted {
    /// The tag's epoch.
    pub epoch: Epoch,
    /// The tag.
    pub tag: TagId,
    /// For whom: a session, or a name of its own for a code.
    pub session: SessionId,
}

impl Wanted {
    fn of(pinned: &Pinned, re_up: &ReUp) -> Self {
        let tag = TagId::of(&pinned.fingerprint(), re_up.epoch, &re_up.tag);
        Self { epoch: re_up.epoch, tag, session: re_up.session }
    }
}

impl ProvenReUp {
    /// What to ask of the tag's shard.
    #[must_use]
    pub fn wanted(&self, pinned: &Pinned) -> Wanted {
        Wanted::of(pinned, &self.0.re_up)
    }

    /// Goes on as if this shard had reserved the tag. The caller vouches that the
    /// tag's shard said, over a channel that authenticates it, that the tag is
    /// durably held for this session.
    #[must_use]
    pub fn dangerous_reserved_elsewhere(self) -> Reserved {
        Reserved(self.0)
    }
}

impl Moved {
    /// What to ask of the tag's shard.
    #[must_use]
    pub fn wanted(&self, pinned: &Pinned) -> Wanted {
        Wanted::of(pinned, &self.0)
    }
}

impl Shard {
    /// Holds a tag for a session of another shard if nobody has it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn hold_for_peer(&mut self, now: Time, wanted: Wanted) -> Result<Step<()>, Refused> {
        self.check(now, wanted.epoch)?;
        let change = self.hold(wanted)?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, ()))
    }

    /// The same for a code, whose epochs need not be open yet.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn hold_for_code(&mut self, now: Time, wanted: Wanted) -> Result<Step<()>, Refused> {
        self.check_held(now, wanted.epoch)?;
        let change = self.hold(wanted)?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, ()))
    }

    /// A code is refused: gives back what is held for it. What is held for another, or kept, stays.
    pub fn release_for_peer(&mut self, wanted: Wanted) -> Step<()> {
        let place = (wanted.epoch, wanted.tag);
        if self.tags.get(&place) != Some(&Spent::Pending(wanted.session)) {
            return Step::new(Vec::new(), ());
        }
        self.tags.remove(&place);
        Step::new(vec![records::no_tag(wanted.epoch, wanted.tag)], ())
    }

    /// The session of another shard has moved to the tag: it is kept for good.
    ///
    /// # Errors
    /// [`Refused::MayHaveForgotten`] if it is not held.
    pub fn keep_for_peer(&mut self, wanted: Wanted) -> Result<Step<()>, Refused> {
        Ok(Step::new(vec![self.keep(wanted)?], ()))
    }

    pub(super) fn hold(&mut self, wanted: Wanted) -> Result<Change, Refused> {
        let Wanted { epoch, tag, session } = wanted;
        let spent = match self.tags.get(&(epoch, tag)) {
            None => Spent::Pending(session),
            Some(known @ (Spent::Pending(by) | Spent::Active(by))) if *by == session => *known,
            Some(_) => return Err(Refused::Spent),
        };
        Ok(self.set_tag(epoch, tag, spent))
    }

    pub(super) fn keep(&mut self, wanted: Wanted) -> Result<Change, Refused> {
        let Wanted { epoch, tag, session } = wanted;
        match self.tags.get(&(epoch, tag)) {
            Some(Spent::Pending(by) | Spent::Active(by)) if *by == session => {
                Ok(self.set_tag(epoch, tag, Spent::Active(session)))
            }
            _ => Err(Refused::MayHaveForgotten),
        }
    }

    /// Whether a tag may be held for a code now, here.
    pub(super) fn check_held(&self, now: Time, epoch: Epoch) -> Result<(), Refused> {
        self.running(now)?;
        if !self.pinned.schedule.may_hold(epoch, now) {
            return Err(Refused::Epoch);
        }
        if epoch < self.serves_from { Err(Refused::MayHaveForgotten) } else { Ok(()) }
    }
}
