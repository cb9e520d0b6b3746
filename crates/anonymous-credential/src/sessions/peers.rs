//! Shards in processes of their own. A session's shard asks the shard of the next tag to hold it
//! and, once the session has moved, to keep it.
//!
//! Such requests are trusted. Shards of one deployment share the issuer's key and must
//! authenticate each other, for instance by mutual TLS. Nobody else may send them.

use super::{MovedReUp, ReservedReUp, Shard, TagUse};
use crate::configuration::PinnedConfiguration;
use crate::error::VerifierError;
use crate::ledger::{Change, Step};
use crate::messages::{ReUp, SessionId, TagId};
use crate::schedule::Epoch;
use crate::sessions::records;
use crate::verifier::ProvenReUp;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// A request to hold a tag for another shard's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HoldRequest {
    /// The tag's epoch.
    pub epoch: Epoch,
    /// The tag.
    pub tag: TagId,
    /// The holder of the hold: a session, or a name that a code has for a scan.
    pub session: SessionId,
}

impl HoldRequest {
    fn of(pinned: &PinnedConfiguration, re_up: &ReUp) -> Self {
        let tag = TagId::of(&pinned.fingerprint(), re_up.epoch, &re_up.tag);
        Self { epoch: re_up.epoch, tag, session: re_up.session }
    }
}

impl ProvenReUp {
    /// The request to the tag's shard.
    #[must_use]
    pub fn hold_request(&self, pinned: &PinnedConfiguration) -> HoldRequest {
        HoldRequest::of(pinned, &self.0.re_up)
    }

    /// Continues as if this shard had reserved the tag. The caller vouches that the tag's shard
    /// reported, over an authenticated channel, that it durably holds the tag for this session.
    #[must_use]
    pub fn dangerous_reserved_elsewhere(self) -> ReservedReUp {
        ReservedReUp(self.0)
    }
}

impl MovedReUp {
    /// The request to the tag's shard.
    #[must_use]
    pub fn hold_request(&self, pinned: &PinnedConfiguration) -> HoldRequest {
        HoldRequest::of(pinned, &self.0)
    }
}

impl Shard {
    /// Holds a tag for a session of another shard if the tag is free.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn hold_for_peer(
        &mut self,
        request: HoldRequest,
        now: Timestamp,
    ) -> Result<Step<()>, VerifierError> {
        self.check(request.epoch, now)?;
        let change = self.hold(request)?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, ()))
    }

    /// The same for a code, whose epochs need not be open yet.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn hold_for_code(
        &mut self,
        request: HoldRequest,
        now: Timestamp,
    ) -> Result<Step<()>, VerifierError> {
        self.check_held(request.epoch, now)?;
        let change = self.hold(request)?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, ()))
    }

    /// Releases what is held for a rejected code. Tags that are kept, or held for another
    /// session, stay.
    pub fn release_for_peer(&mut self, request: HoldRequest) -> Step<()> {
        let place = (request.epoch, request.tag);
        if self.tags.get(&place) != Some(&TagUse::Pending(request.session)) {
            return Step::new(Vec::new(), ());
        }
        self.tags.remove(&place);
        Step::new(vec![records::no_tag(request.epoch, request.tag)], ())
    }

    /// Keeps a tag for good, after the other shard's session has moved to it.
    ///
    /// # Errors
    /// [`VerifierError::MayHaveForgotten`] if it is not held.
    pub fn keep_for_peer(&mut self, request: HoldRequest) -> Result<Step<()>, VerifierError> {
        Ok(Step::new(vec![self.keep(request)?], ()))
    }

    pub(super) fn hold(&mut self, request: HoldRequest) -> Result<Change, VerifierError> {
        let HoldRequest { epoch, tag, session } = request;
        let spent = match self.tags.get(&(epoch, tag)) {
            None => TagUse::Pending(session),
            Some(known @ (TagUse::Pending(by) | TagUse::Active(by))) if *by == session => *known,
            Some(_) => return Err(VerifierError::Spent),
        };
        Ok(self.set_tag(epoch, tag, spent))
    }

    pub(super) fn keep(&mut self, request: HoldRequest) -> Result<Change, VerifierError> {
        let HoldRequest { epoch, tag, session } = request;
        match self.tags.get(&(epoch, tag)) {
            Some(TagUse::Pending(by) | TagUse::Active(by)) if *by == session => {
                Ok(self.set_tag(epoch, tag, TagUse::Active(session)))
            }
            _ => Err(VerifierError::MayHaveForgotten),
        }
    }

    /// Checks that a tag may be held for a code on this shard now.
    pub(super) fn check_held(&self, epoch: Epoch, now: Timestamp) -> Result<(), VerifierError> {
        self.running(now)?;
        if !self.pinned.schedule.may_hold(epoch, now) {
            return Err(VerifierError::Epoch);
        }
        if epoch < self.serves_from { Err(VerifierError::MayHaveForgotten) } else { Ok(()) }
    }
}
