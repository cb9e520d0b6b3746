//! Spent tags and sessions: the paper's hash server, divided into shards.
//!
//! A login is looked up, verified, inserted if absent, made durable and acknowledged. Types
//! enforce this order: [`Shard::look_up`] returns the [`UnspentLogin`] that verification
//! requires, verification the `ProvenLogin` that [`Shard::log_in`] requires, and the commit of
//! its step the acknowledgement.
//!
//! A re-up reserves its tag as pending, moves the session from the recorded tag to the new one,
//! then activates the new tag. Tag and session may be on different shards. Each step is durable
//! before the next and can be repeated after a crash. A logout before the move wins.

pub mod codes;
pub mod peers;
mod records;

use crate::configuration::PinnedConfiguration;
use crate::error::VerifierError;
use crate::ledger::{Change, Step};
pub use crate::lookups::{DueReUp, UnspentLogin};
use crate::messages::{Login, Logout, ReUp, SessionId, TagId, connection};
use crate::schedule::Epoch;
use crate::verifier::{ProvenLogin, ProvenReUp};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, VerifyingKey};
use alpheus_time::Timestamp;
use peers::HoldRequest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One shard: the tags whose names belong to it, and the sessions logged in with them.
pub struct Shard {
    pinned: PinnedConfiguration,
    tags: BTreeMap<(Epoch, TagId), TagUse>,
    sessions: BTreeMap<SessionId, Session>,
    /// Void scans of codes, by the login's epoch.
    void: BTreeSet<(Epoch, SessionId)>,
    /// The latest epoch that ran here. An earlier one means that the clock went back.
    clock: Option<Epoch>,
    /// Tags of earlier epochs may be forgotten.
    serves_from: Epoch,
}

/// What a tag was spent on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagUse {
    Login,
    /// A re-up that has not moved its session yet, and may never do so.
    Pending(SessionId),
    Active(SessionId),
    /// A code, in this scan.
    Admitted(Digest),
}

#[derive(Clone, Copy)]
struct Session {
    holder: VerifyingKey,
    /// The epoch of its login.
    first: Epoch,
    /// The epoch that it has reached.
    epoch: Epoch,
    /// The tag of that epoch.
    tag: Element,
    ended: bool,
}

/// The result of looking up a login's tag.
pub enum LoginLookUp {
    /// The tag is unspent: verify the login.
    Unspent(UnspentLogin),
    /// The same login, again: acknowledge it without verifying it.
    Same(Step<Acknowledgement>),
}

/// The result of looking up a re-up's session.
pub enum ReUpLookUp {
    /// It is due: verify it.
    Due(DueReUp),
    /// The session has already moved: activate the tag again.
    Moved(Step<MovedReUp>),
}

/// A re-up whose tag is durably pending.
pub struct ReservedReUp(DueReUp);

/// A re-up that durably moved its session.
pub struct MovedReUp(ReUp);

/// The acknowledgement to a client, once everything is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The session.
    pub session: SessionId,
    /// The epoch that it has reached.
    pub epoch: Epoch,
}

/// A session that may be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSession {
    /// The key that signs for it.
    pub holder: VerifyingKey,
    /// When it lapses unless it is re-upped.
    pub until: Timestamp,
}

/// A session's state, as gateways need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The session.
    pub session: SessionId,
    /// The key that signs for it.
    pub holder: VerifyingKey,
    /// The epoch of its login.
    pub first: Epoch,
    /// The epoch that it has reached.
    pub epoch: Epoch,
}

impl Shard {
    /// Looks up a login's tag.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn look_up(&self, login: Login, now: Timestamp) -> Result<LoginLookUp, VerifierError> {
        self.check(login.epoch, now)?;
        let id = self.tag_id(login.epoch, &login.tag);
        if !self.tags.contains_key(&(login.epoch, id)) {
            return Ok(LoginLookUp::Unspent(UnspentLogin(Box::new(login))));
        }
        self.same(id, &login).map(LoginLookUp::Same)
    }

    /// Inserts a verified login's tag if it is absent, and begins the session.
    ///
    /// # Errors
    /// [`VerifierError`]; [`VerifierError::Spent`] if another login was faster.
    pub fn log_in(
        &mut self,
        ProvenLogin(login): ProvenLogin,
        now: Timestamp,
    ) -> Result<Step<Acknowledgement>, VerifierError> {
        self.check(login.epoch, now)?;
        let id = self.tag_id(login.epoch, &login.tag);
        if self.tags.contains_key(&(login.epoch, id)) {
            return self.same(id, &login);
        }
        let Login { epoch, holder, tag, .. } = *login;
        let session = Session { holder, first: epoch, epoch, tag, ended: false };
        let mut changes = self.tick(now);
        changes.push(self.set_tag(epoch, id, TagUse::Login));
        changes.push(self.set_session(SessionId(id), session));
        Ok(Step::new(changes, Acknowledgement { session: SessionId(id), epoch }))
    }

    /// The tag is spent, either by this very login, sent again, or by another.
    fn same(&self, id: TagId, login: &Login) -> Result<Step<Acknowledgement>, VerifierError> {
        let key = (login.epoch, id);
        let logged_in = self.tags.get(&key) == Some(&TagUse::Login);
        let session = self.sessions.get(&SessionId(id)).filter(|_| logged_in);
        let session = session.filter(|s| s.holder == login.holder).ok_or(VerifierError::Spent)?;
        if session.ended {
            return Err(VerifierError::Ended);
        }
        // Stored again, so that it is durable before it is acknowledged, even if the first
        // commit has not reached the disk yet.
        let changes = vec![
            records::tag(login.epoch, id, TagUse::Login),
            records::session(SessionId(id), session),
        ];
        Ok(Step::new(changes, Acknowledgement { session: SessionId(id), epoch: session.epoch }))
    }

    /// Looks up a re-up's session. It must be live, at the previous epoch, and in the next
    /// epoch's period. A re-up presents no credential, so its security rests on this check.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn look_up_re_up(&self, re_up: ReUp, now: Timestamp) -> Result<ReUpLookUp, VerifierError> {
        self.check(re_up.epoch, now)?;
        if self.pinned.limit != crate::limit::Limit::ONE {
            return Err(VerifierError::LimitForbids);
        }
        let session = self.sessions.get(&re_up.session).ok_or(VerifierError::NoSession)?;
        if session.ended {
            return Err(VerifierError::Ended);
        }
        if session.epoch == re_up.epoch && session.tag == re_up.tag && session.first < session.epoch
        {
            // Stored again, as for a login that is resent.
            let changes = vec![records::session(re_up.session, session)];
            return Ok(ReUpLookUp::Moved(Step::new(changes, MovedReUp(re_up))));
        }
        if session.epoch.next() != re_up.epoch {
            return Err(VerifierError::NotCurrent);
        }
        let period = |epoch| self.pinned.schedule.period_of(epoch);
        if period(session.epoch) != period(re_up.epoch) {
            return Err(VerifierError::NeedsLogin);
        }
        Ok(ReUpLookUp::Due(DueReUp { re_up, from: session.tag }))
    }

    /// On the new tag's shard: reserves the tag for the session if it is free.
    ///
    /// # Errors
    /// [`VerifierError::Spent`] if another session or login has it.
    pub fn reserve(
        &mut self,
        ProvenReUp(due): ProvenReUp,
        now: Timestamp,
    ) -> Result<Step<ReservedReUp>, VerifierError> {
        let (epoch, session) = (due.re_up.epoch, due.re_up.session);
        self.check(epoch, now)?;
        let tag = self.tag_id(epoch, &due.re_up.tag);
        let change = self.hold(HoldRequest { epoch, tag, session })?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, ReservedReUp(due)))
    }

    /// On the session's shard: moves the session from the recorded tag to the new one, if it is
    /// still at the recorded one and has not ended.
    ///
    /// # Errors
    /// [`VerifierError`]. The reserved tag then stays spent, without a session.
    pub fn advance(
        &mut self,
        ReservedReUp(due): ReservedReUp,
        now: Timestamp,
    ) -> Result<Step<MovedReUp>, VerifierError> {
        let DueReUp { re_up, from } = due;
        self.check(re_up.epoch, now)?;
        let session = *self.sessions.get(&re_up.session).ok_or(VerifierError::NoSession)?;
        if session.ended {
            return Err(VerifierError::Ended);
        }
        let moved = session.epoch == re_up.epoch && session.tag == re_up.tag;
        let ready = session.epoch.next() == re_up.epoch && session.tag == from;
        if !moved && !ready {
            return Err(VerifierError::NotCurrent);
        }
        let mut changes = self.tick(now);
        let session = Session { epoch: re_up.epoch, tag: re_up.tag, ..session };
        changes.push(self.set_session(re_up.session, session));
        Ok(Step::new(changes, MovedReUp(re_up)))
    }

    /// On the new tag's shard: makes the reservation permanent.
    ///
    /// # Errors
    /// [`VerifierError::MayHaveForgotten`] if the reservation is gone.
    pub fn activate(
        &mut self,
        MovedReUp(re_up): MovedReUp,
    ) -> Result<Step<Acknowledgement>, VerifierError> {
        let ReUp { epoch, session, tag, .. } = re_up;
        let request = HoldRequest { epoch, tag: self.tag_id(epoch, &tag), session };
        Ok(Step::new(vec![self.keep(request)?], Acknowledgement { session, epoch }))
    }

    /// A whole re-up at once, if tag and session are both on this shard. One commit makes all of
    /// it durable or nothing, so the order within does not matter.
    ///
    /// # Errors
    /// [`VerifierError`], as for [`Shard::reserve`] and [`Shard::advance`].
    pub fn re_up_here(
        &mut self,
        ProvenReUp(due): ProvenReUp,
        now: Timestamp,
    ) -> Result<Step<Acknowledgement>, VerifierError> {
        let ReUp { epoch, session, tag, .. } = due.re_up;
        let request = HoldRequest { epoch, tag: self.tag_id(epoch, &tag), session };
        self.check(epoch, now)?;
        let free = match self.tags.get(&(epoch, request.tag)) {
            None => true,
            Some(TagUse::Pending(by) | TagUse::Active(by)) => *by == session,
            Some(_) => false,
        };
        if !free {
            return Err(VerifierError::Spent);
        }
        let mut changes = self.advance(ReservedReUp(due), now)?.dangerous_changes();
        changes.push(self.set_tag(epoch, request.tag, TagUse::Active(session)));
        Ok(Step::new(changes, Acknowledgement { session, epoch }))
    }

    /// Ends a session. A repeated logout is acknowledged again.
    ///
    /// # Errors
    /// [`VerifierError::NoSession`], [`VerifierError::Signature`].
    pub fn log_out(&mut self, logout: &Logout) -> Result<Step<()>, VerifierError> {
        let session = *self.sessions.get(&logout.session).ok_or(VerifierError::NoSession)?;
        let id = logout.session.0.0;
        session
            .holder
            .verify(labels::CREDENTIAL_LOGOUT, id.as_bytes(), &logout.signature)
            .map_err(|_| VerifierError::Signature)?;
        let change = self.set_session(logout.session, Session { ended: true, ..session });
        Ok(Step::new(vec![change], ()))
    }

    /// The session, if it may be served now: it was logged in or re-upped for the running epoch
    /// and has not ended. A session that logged in ahead waits for its epoch.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn live(&self, id: SessionId, now: Timestamp) -> Result<LiveSession, VerifierError> {
        let running = self.running(now)?.ok_or(VerifierError::Epoch)?;
        let session = self.sessions.get(&id).ok_or(VerifierError::NoSession)?;
        if session.ended {
            return Err(VerifierError::Ended);
        }
        if !(session.first..=session.epoch).contains(&running) {
            return Err(VerifierError::NotCurrent);
        }
        let until = self.pinned.schedule.starts(session.epoch.next());
        Ok(LiveSession { holder: session.holder, until })
    }

    /// The state of a session that has not ended, for gateways, at any time. If its records are
    /// not durable yet, a crash may lose the session; its holder then resends the login.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn status(&self, id: SessionId) -> Result<SessionStatus, VerifierError> {
        let session = self.sessions.get(&id).ok_or(VerifierError::NoSession)?;
        if session.ended {
            return Err(VerifierError::Ended);
        }
        let Session { holder, first, epoch, .. } = *session;
        Ok(SessionStatus { session: id, holder, first, epoch })
    }

    /// The first epoch that it serves. It may have forgotten tags of earlier ones.
    #[must_use]
    pub fn serves_from(&self) -> Epoch {
        self.serves_from
    }

    /// Opens a connection of a session: its holder signed the fresh nonce that this server drew
    /// for the connection.
    ///
    /// # Errors
    /// [`VerifierError`].
    pub fn connect(
        &self,
        id: SessionId,
        nonce: &[u8; 32],
        signature: &Signature,
        now: Timestamp,
    ) -> Result<LiveSession, VerifierError> {
        let live = self.live(id, now)?;
        live.holder
            .verify(labels::CREDENTIAL_CONNECTION, &connection(id, nonce), signature)
            .map_err(|_| VerifierError::Signature)?;
        Ok(live)
    }

    /// Deletes what no message can refer to: tags of past epochs, and sessions that nobody can
    /// re-up.
    ///
    /// # Errors
    /// [`VerifierError::ClockStepped`].
    pub fn prune(&mut self, now: Timestamp) -> Result<Step<()>, VerifierError> {
        let Some(running) = self.running(now)? else { return Ok(Step::new(Vec::new(), ())) };
        let mut changes = self.tick(now);
        let kept = self.tags.split_off(&(running, TagId(Digest([0; 32]))));
        let over = std::mem::replace(&mut self.tags, kept);
        changes.extend(over.keys().map(|(epoch, id)| records::no_tag(*epoch, *id)));
        let nobody = SessionId(TagId(Digest([0; 32])));
        let kept = self.void.split_off(&(running, nobody));
        let over = std::mem::replace(&mut self.void, kept);
        changes.extend(over.iter().map(|(epoch, name)| records::no_void(*epoch, *name)));
        self.sessions.retain(|id, session| {
            let reachable = session.epoch.next() >= running;
            if !reachable {
                changes.push(records::no_session(*id));
            }
            reachable
        });
        Ok(Step::new(changes, ()))
    }

    fn tag_id(&self, epoch: Epoch, tag: &Element) -> TagId {
        TagId::of(&self.pinned.fingerprint(), epoch, tag)
    }

    /// The running epoch, unless the clock went back.
    fn running(&self, now: Timestamp) -> Result<Option<Epoch>, VerifierError> {
        let running = self.pinned.schedule.epoch_at(now);
        if running < self.clock { Err(VerifierError::ClockStepped) } else { Ok(running) }
    }

    /// Checks that this shard accepts messages for an epoch now.
    fn check(&self, epoch: Epoch, now: Timestamp) -> Result<(), VerifierError> {
        self.running(now)?;
        if !self.pinned.schedule.is_open(epoch, now) {
            return Err(VerifierError::Epoch);
        }
        if epoch < self.serves_from { Err(VerifierError::MayHaveForgotten) } else { Ok(()) }
    }

    /// Records the running epoch.
    fn tick(&mut self, now: Timestamp) -> Vec<Change> {
        let running = self.pinned.schedule.epoch_at(now);
        if running <= self.clock {
            return Vec::new();
        }
        self.clock = running;
        running.map(records::clock).into_iter().collect()
    }

    fn set_tag(&mut self, epoch: Epoch, id: TagId, spent: TagUse) -> Change {
        self.tags.insert((epoch, id), spent);
        records::tag(epoch, id, spent)
    }

    fn set_session(&mut self, id: SessionId, session: Session) -> Change {
        self.sessions.insert(id, session);
        records::session(id, &session)
    }
}
