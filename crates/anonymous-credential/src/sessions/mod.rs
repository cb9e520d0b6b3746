//! Spent tags and sessions: the paper's hash server, in shards.
//!
//! A login is looked up, verified, inserted if absent, made durable and
//! acknowledged, in this order by type: [`Shard::look_up`] gives the
//! [`Unspent`] that verification demands, verification the `ProvenLogin` that
//! [`Shard::log_in`] demands, and committing its step the acknowledgement.
//!
//! A re-up reserves its tag (pending), moves the session from the recorded tag
//! to the new one if it is still there, then activates the tag. The tag and the
//! session may lie on different shards; each step is durable before the next,
//! and each can be repeated after a crash. A logout before the move wins.

pub mod codes;
pub mod peers;
mod records;

use crate::configuration::Pinned;
use crate::error::Refused;
use crate::ledger::{Change, Step};
use crate::messages::{Login, Logout, ReUp, SessionId, TagId};
use crate::schedule::{Epoch, Time};
use crate::verifier::{ProvenLogin, ProvenReUp};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, VerifyingKey};
use peers::Wanted;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One shard: the tags whose names fall to it, and the sessions that were
/// logged in with them.
pub struct Shard {
    pinned: Pinned,
    tags: BTreeMap<(Epoch, TagId), Spent>,
    sessions: BTreeMap<SessionId, Session>,
    /// Scans of codes that were given up, by the login's epoch.
    void: BTreeSet<(Epoch, SessionId)>,
    /// The latest epoch that ran here. A clock before it went back.
    clock: Option<Epoch>,
    /// Tags of earlier epochs may have been forgotten.
    serves_from: Epoch,
}

/// What a tag was spent on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spent {
    Login,
    /// By a re-up that has not moved its session yet, or never will.
    Pending(SessionId),
    Active(SessionId),
    /// By a code, in this scan.
    Admitted(Digest),
}

#[derive(Clone, Copy)]
struct Session {
    holder: VerifyingKey,
    /// The epoch that it was logged in for.
    first: Epoch,
    /// The epoch that it has come to.
    epoch: Epoch,
    /// The tag of that epoch.
    tag: Element,
    ended: bool,
}

/// A login whose tag was not spent when it was looked up.
pub struct Unspent(pub(crate) Box<Login>);

/// What the look-up of a login's tag found.
pub enum LookUp {
    /// Nothing: verify the login.
    Unspent(Unspent),
    /// The same login: acknowledge it again, unverified.
    Same(Step<Acknowledged>),
}

/// A re-up from the recorded tag of a live session.
pub struct DueReUp {
    pub(crate) re_up: ReUp,
    pub(crate) from: Element,
}

/// What the look-up of a re-up's session found.
pub enum Due {
    /// It is due: verify it.
    Due(DueReUp),
    /// The session has moved already: activate the tag again.
    Moved(Step<Moved>),
}

/// A re-up whose tag is durably pending.
pub struct Reserved(DueReUp);

/// A re-up that durably moved its session.
pub struct Moved(ReUp);

/// What a client is told once everything is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The session.
    pub session: SessionId,
    /// The epoch that it has come to.
    pub epoch: Epoch,
}

/// A session that may be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Whose signatures speak for it.
    pub holder: VerifyingKey,
    /// When it lapses unless it is re-upped.
    pub until: Time,
}

/// A session as gateways know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The session.
    pub session: SessionId,
    /// Whose signatures speak for it.
    pub holder: VerifyingKey,
    /// The epoch that it was logged in for.
    pub first: Epoch,
    /// The epoch that it has come to.
    pub epoch: Epoch,
}

impl Shard {
    /// Looks a login's tag up.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn look_up(&self, now: Time, login: Login) -> Result<LookUp, Refused> {
        self.check(now, login.epoch)?;
        let id = self.tag_id(login.epoch, &login.tag);
        if !self.tags.contains_key(&(login.epoch, id)) {
            return Ok(LookUp::Unspent(Unspent(Box::new(login))));
        }
        self.same(id, &login).map(LookUp::Same)
    }

    /// Inserts a verified login's tag if it is absent, and begins the session.
    ///
    /// # Errors
    /// [`Refused`], [`Refused::Spent`] among them if another login was faster.
    pub fn log_in(
        &mut self,
        now: Time,
        ProvenLogin(login): ProvenLogin,
    ) -> Result<Step<Acknowledged>, Refused> {
        self.check(now, login.epoch)?;
        let id = self.tag_id(login.epoch, &login.tag);
        if self.tags.contains_key(&(login.epoch, id)) {
            return self.same(id, &login);
        }
        let Login { epoch, holder, tag, .. } = *login;
        let session = Session { holder, first: epoch, epoch, tag, ended: false };
        let mut changes = self.tick(now);
        changes.push(self.set_tag(epoch, id, Spent::Login));
        changes.push(self.set_session(SessionId(id), session));
        Ok(Step::new(changes, Acknowledged { session: SessionId(id), epoch }))
    }

    /// The tag is spent: by this very login, sent again, or by another.
    fn same(&self, id: TagId, login: &Login) -> Result<Step<Acknowledged>, Refused> {
        let key = (login.epoch, id);
        let logged_in = self.tags.get(&key) == Some(&Spent::Login);
        let session = self.sessions.get(&SessionId(id)).filter(|_| logged_in);
        let session = session.filter(|s| s.holder == login.holder).ok_or(Refused::Spent)?;
        if session.ended {
            return Err(Refused::Ended);
        }
        // Stored again, so that it is durable before it is acknowledged even if
        // the first commit is still on its way to the disk.
        let changes = vec![
            records::tag(login.epoch, id, Spent::Login),
            records::session(SessionId(id), session),
        ];
        Ok(Step::new(changes, Acknowledged { session: SessionId(id), epoch: session.epoch }))
    }

    /// Looks a re-up's session up: it must be live, at the epoch before, and of
    /// the next epoch's period. A re-up shows no credential; this is what it
    /// rests on.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn due(&self, now: Time, re_up: ReUp) -> Result<Due, Refused> {
        self.check(now, re_up.epoch)?;
        if self.pinned.limit != crate::limit::Limit::ONE {
            return Err(Refused::LimitForbids);
        }
        let session = self.sessions.get(&re_up.session).ok_or(Refused::NoSession)?;
        if session.ended {
            return Err(Refused::Ended);
        }
        if session.epoch == re_up.epoch && session.tag == re_up.tag && session.first < session.epoch
        {
            // Stored again, as a login that is sent again.
            let changes = vec![records::session(re_up.session, session)];
            return Ok(Due::Moved(Step::new(changes, Moved(re_up))));
        }
        if session.epoch.next() != re_up.epoch {
            return Err(Refused::NotCurrent);
        }
        let period = |epoch| self.pinned.schedule.period_of(epoch);
        if period(session.epoch) != period(re_up.epoch) {
            return Err(Refused::NeedsLogin);
        }
        Ok(Due::Due(DueReUp { re_up, from: session.tag }))
    }

    /// On the new tag's shard: reserves the tag for the session if nobody has it.
    ///
    /// # Errors
    /// [`Refused::Spent`] if another session or login has it.
    pub fn reserve(
        &mut self,
        now: Time,
        ProvenReUp(due): ProvenReUp,
    ) -> Result<Step<Reserved>, Refused> {
        let (epoch, session) = (due.re_up.epoch, due.re_up.session);
        self.check(now, epoch)?;
        let tag = self.tag_id(epoch, &due.re_up.tag);
        let change = self.hold(Wanted { epoch, tag, session })?;
        let mut changes = self.tick(now);
        changes.push(change);
        Ok(Step::new(changes, Reserved(due)))
    }

    /// On the session's shard: moves the session from the recorded tag to the
    /// new one, if it still has the one and has not ended.
    ///
    /// # Errors
    /// [`Refused`]. The reserved tag then stays spent: nobody has a session of it.
    pub fn advance(&mut self, now: Time, Reserved(due): Reserved) -> Result<Step<Moved>, Refused> {
        let DueReUp { re_up, from } = due;
        self.check(now, re_up.epoch)?;
        let session = *self.sessions.get(&re_up.session).ok_or(Refused::NoSession)?;
        if session.ended {
            return Err(Refused::Ended);
        }
        let moved = session.epoch == re_up.epoch && session.tag == re_up.tag;
        let ready = session.epoch.next() == re_up.epoch && session.tag == from;
        if !moved && !ready {
            return Err(Refused::NotCurrent);
        }
        let mut changes = self.tick(now);
        let session = Session { epoch: re_up.epoch, tag: re_up.tag, ..session };
        changes.push(self.set_session(re_up.session, session));
        Ok(Step::new(changes, Moved(re_up)))
    }

    /// On the new tag's shard: the tag is the session's for good.
    ///
    /// # Errors
    /// [`Refused::MayHaveForgotten`] if the reservation is gone.
    pub fn activate(&mut self, Moved(re_up): Moved) -> Result<Step<Acknowledged>, Refused> {
        let ReUp { epoch, session, tag, .. } = re_up;
        let wanted = Wanted { epoch, tag: self.tag_id(epoch, &tag), session };
        Ok(Step::new(vec![self.keep(wanted)?], Acknowledged { session, epoch }))
    }

    /// All of a re-up at once, where tag and session both lie on this shard: one
    /// commit makes it all durable or none, so no order within it matters.
    ///
    /// # Errors
    /// [`Refused`], as of [`Shard::reserve`] and [`Shard::advance`].
    pub fn re_up_here(
        &mut self,
        now: Time,
        ProvenReUp(due): ProvenReUp,
    ) -> Result<Step<Acknowledged>, Refused> {
        let ReUp { epoch, session, tag, .. } = due.re_up;
        let wanted = Wanted { epoch, tag: self.tag_id(epoch, &tag), session };
        self.check(now, epoch)?;
        let free = match self.tags.get(&(epoch, wanted.tag)) {
            None => true,
            Some(Spent::Pending(by) | Spent::Active(by)) => *by == session,
            Some(_) => false,
        };
        if !free {
            return Err(Refused::Spent);
        }
        let mut changes = self.advance(now, Reserved(due))?.dangerous_changes();
        changes.push(self.set_tag(epoch, wanted.tag, Spent::Active(session)));
        Ok(Step::new(changes, Acknowledged { session, epoch }))
    }

    /// Ends a session. Sent again, it is acknowledged again.
    ///
    /// # Errors
    /// [`Refused::NoSession`], [`Refused::Signature`].
    pub fn log_out(&mut self, logout: &Logout) -> Result<Step<()>, Refused> {
        let session = *self.sessions.get(&logout.session).ok_or(Refused::NoSession)?;
        let id = logout.session.0.0;
        session
            .holder
            .verify(labels::CREDENTIAL_LOGOUT, id.as_bytes(), &logout.signature)
            .map_err(|_| Refused::Signature)?;
        let change = self.set_session(logout.session, Session { ended: true, ..session });
        Ok(Step::new(vec![change], ()))
    }

    /// The session, if it may be served now: it was logged in or re-upped for
    /// the running epoch and has not ended. One logged in ahead waits for its
    /// epoch.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn live(&self, now: Time, id: SessionId) -> Result<Live, Refused> {
        let running = self.running(now)?.ok_or(Refused::Epoch)?;
        let session = self.sessions.get(&id).ok_or(Refused::NoSession)?;
        if session.ended {
            return Err(Refused::Ended);
        }
        if !(session.first..=session.epoch).contains(&running) {
            return Err(Refused::NotCurrent);
        }
        let until = self.pinned.schedule.starts(session.epoch.next());
        Ok(Live { holder: session.holder, until })
    }

    /// What gateways need to know of a session that has not ended, whatever the
    /// time. One that is told while its records are still on their way to the disk
    /// may be lost by a crash: its holder then sends its login again.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn standing(&self, id: SessionId) -> Result<Standing, Refused> {
        let session = self.sessions.get(&id).ok_or(Refused::NoSession)?;
        if session.ended {
            return Err(Refused::Ended);
        }
        let Session { holder, first, epoch, .. } = *session;
        Ok(Standing { session: id, holder, first, epoch })
    }

    /// The first epoch that it serves; tags of earlier ones it may have forgotten.
    #[must_use]
    pub fn serves_from(&self) -> Epoch {
        self.serves_from
    }

    /// A new connection speaks for a session: its holder signed the fresh nonce
    /// that this server drew for the connection.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn connect(
        &self,
        now: Time,
        id: SessionId,
        nonce: &[u8; 32],
        signature: &Signature,
    ) -> Result<Live, Refused> {
        let live = self.live(now, id)?;
        live.holder
            .verify(labels::CREDENTIAL_CONNECTION, &connection(id, nonce), signature)
            .map_err(|_| Refused::Signature)?;
        Ok(live)
    }

    /// Forgets what no message can refer to any more: tags of epochs that are
    /// over, sessions that nobody can re-up.
    ///
    /// # Errors
    /// [`Refused::ClockStepped`].
    pub fn prune(&mut self, now: Time) -> Result<Step<()>, Refused> {
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

    /// The epoch that runs, unless the clock went back.
    fn running(&self, now: Time) -> Result<Option<Epoch>, Refused> {
        let running = self.pinned.schedule.epoch_at(now);
        if running < self.clock { Err(Refused::ClockStepped) } else { Ok(running) }
    }

    /// Whether messages for an epoch are taken now, here.
    fn check(&self, now: Time, epoch: Epoch) -> Result<(), Refused> {
        self.running(now)?;
        if !self.pinned.schedule.is_open(epoch, now) {
            return Err(Refused::Epoch);
        }
        if epoch < self.serves_from { Err(Refused::MayHaveForgotten) } else { Ok(()) }
    }

    /// Remembers the epoch that runs.
    fn tick(&mut self, now: Time) -> Vec<Change> {
        let running = self.pinned.schedule.epoch_at(now);
        if running <= self.clock {
            return Vec::new();
        }
        self.clock = running;
        running.map(records::clock).into_iter().collect()
    }

    fn set_tag(&mut self, epoch: Epoch, id: TagId, spent: Spent) -> Change {
        self.tags.insert((epoch, id), spent);
        records::tag(epoch, id, spent)
    }

    fn set_session(&mut self, id: SessionId, session: Session) -> Change {
        self.sessions.insert(id, session);
        records::session(id, &session)
    }
}

/// What a holder signs for a connection.
pub(crate) fn connection(id: SessionId, nonce: &[u8; 32]) -> Vec<u8> {
    [id.0.0.as_bytes().as_slice(), nonce].concat()
}
