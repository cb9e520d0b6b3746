//! A shard on its own thread, with one writer. All waiting calls form one batch, which is
//! verified together and made durable by one disk flush.

use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::ledger::{Ledger, LedgerError, Step};
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, VoidOutcome};
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_anonymous_credential::sessions::{
    DueReUp, LoginLookUp, MovedReUp, ReUpLookUp, ReservedReUp, SessionStatus, Shard, UnspentLogin,
};
use alpheus_anonymous_credential::verifier::{ProvenCode, ProvenReUp, Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_node::engine;
use alpheus_node::ledger::ShardIndex;
use alpheus_time::Timestamp;
use std::ops::ControlFlow;
use std::time::Duration;

/// If a call arrives soon after the last batch, more are likely to follow. The engine waits
/// this long for them, so that one check and one disk flush serve more calls.
const LINGER: Duration = Duration::from_millis(2);
/// A batch of this size does not wait for more calls.
const MIN_BATCH: usize = 32;

/// Receives the answer, or the rule that was broken.
type Reply<T> = engine::Reply<Result<T, VerifierError>>;

/// A call to the shard.
pub enum Call {
    /// Look up, verify, insert, acknowledge.
    LogIn(Box<Login>, Reply<SessionStatus>),
    /// Check that the session is due, verify.
    ReUp(Box<ReUp>, Reply<ReUpProgress>),
    /// Move a session to a reserved tag.
    Advance(ReservedReUp, Reply<MovedReUp>),
    /// Activate a moved session's tag, which is on this shard.
    Activate(MovedReUp, Reply<()>),
    /// For another shard: hold a tag.
    Hold(HoldRequest, Reply<()>),
    /// For another shard: keep a tag.
    Keep(HoldRequest, Reply<()>),
    /// For a code on another shard: hold a tag, even of an epoch that is not open yet.
    HoldForCode(HoldRequest, Reply<()>),
    /// For a code that another shard refused: release a tag.
    Release(HoldRequest, Reply<()>),
    /// End a session.
    LogOut(Logout, Reply<()>),
    /// Return a session's status.
    Session(SessionId, Reply<SessionStatus>),
    /// Look up and verify a code.
    Code(Box<Code>, Digest, Reply<Option<ProvenCode>>),
    /// A code is refused elsewhere: void its scan, before its tags are released.
    VoidScan(Vec<HoldRequest>, Digest, Reply<VoidOutcome>),
    /// Spend those tags of a proven code that are on this shard.
    Admit(Box<ProvenCode>, Digest, Reply<()>),
}

/// The progress of a re-up after its first step.
pub enum ReUpProgress {
    /// Done. Its new tag is on this shard too.
    Done(SessionStatus),
    /// Proven. Another shard must hold its new tag.
    Proven(ProvenReUp),
    /// Already moved. Its new tag must be activated again.
    Moved(MovedReUp),
}

/// The state of the thread.
pub struct Engine<L> {
    /// The shard.
    pub shard: Shard,
    /// The issuer's key.
    pub verifier: Verifier,
    /// The configuration.
    pub pinned: PinnedConfiguration,
    /// The shard's ledger.
    pub ledger: L,
    /// The index of this shard.
    pub place: ShardIndex,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
    /// The epoch in which old records were last removed.
    pub pruned: Option<Epoch>,
}

/// Whether a tag belongs to this shard.
#[must_use]
pub fn is_on(shard: ShardIndex, wanted: &HoldRequest) -> bool {
    wanted.tag.shard(shard.count) == shard.index
}

/// Calls by kind, in the order in which the kinds are processed.
#[derive(Default)]
struct JobsByKind {
    logins: Vec<(Box<Login>, Reply<SessionStatus>)>,
    re_ups: Vec<(Box<ReUp>, Reply<ReUpProgress>)>,
    advances: Vec<(ReservedReUp, Reply<MovedReUp>)>,
    activates: Vec<(MovedReUp, Reply<()>)>,
    peers: Vec<(PeerRequest, HoldRequest, Reply<()>)>,
    logouts: Vec<(Logout, Reply<()>)>,
    sessions: Vec<(SessionId, Reply<SessionStatus>)>,
    codes: Vec<(Box<Code>, Digest, Reply<Option<ProvenCode>>)>,
    void_scans: Vec<(Vec<HoldRequest>, Digest, Reply<VoidOutcome>)>,
    admits: Vec<(Box<ProvenCode>, Digest, Reply<()>)>,
}

#[derive(Clone, Copy)]
enum PeerRequest {
    Hold,
    Keep,
    HoldForCode,
    Release,
}

impl JobsByKind {
    fn of(calls: Vec<Call>) -> Self {
        let mut sorted = Self::default();
        for call in calls {
            match call {
                Call::LogIn(login, reply) => sorted.logins.push((login, reply)),
                Call::ReUp(re_up, reply) => sorted.re_ups.push((re_up, reply)),
                Call::Advance(reserved, reply) => sorted.advances.push((reserved, reply)),
                Call::Activate(moved, reply) => sorted.activates.push((moved, reply)),
                Call::Hold(wanted, reply) => sorted.peers.push((PeerRequest::Hold, wanted, reply)),
                Call::Keep(wanted, reply) => sorted.peers.push((PeerRequest::Keep, wanted, reply)),
                Call::HoldForCode(wanted, reply) => {
                    sorted.peers.push((PeerRequest::HoldForCode, wanted, reply));
                }
                Call::Release(wanted, reply) => {
                    sorted.peers.push((PeerRequest::Release, wanted, reply))
                }
                Call::LogOut(logout, reply) => sorted.logouts.push((logout, reply)),
                Call::Session(id, reply) => sorted.sessions.push((id, reply)),
                Call::Code(code, scan, reply) => sorted.codes.push((code, scan, reply)),
                Call::VoidScan(tags, scan, reply) => sorted.void_scans.push((tags, scan, reply)),
                Call::Admit(code, scan, reply) => sorted.admits.push((code, scan, reply)),
            }
        }
        sorted
    }
}

fn refuse<T>(reply: Reply<T>, refused: VerifierError) {
    let _ = reply.send(Err(refused));
}

impl<L: Ledger> engine::Engine for Engine<L> {
    type Call = Call;
    type Error = LedgerError;

    fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, LedgerError> {
        self.turn(calls)?;
        let epoch = self.pinned.schedule.epoch_at((self.clock)());
        if epoch != self.pruned {
            self.pruned = epoch;
            // If the clock went backwards, nothing is pruned.
            if let Ok(step) = self.shard.prune((self.clock)()) {
                step.commit(&mut self.ledger)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A single call after a pause does not wait.
    fn linger(waiting: usize, idle: Option<Duration>) -> Option<Duration> {
        let more = waiting < MIN_BATCH && idle.is_some_and(|idle| idle < LINGER);
        more.then_some(LINGER)
    }
}

impl<L: Ledger> Engine<L> {
    /// Processes one batch. Logouts come before re-ups, so that they win.
    pub(crate) fn turn(&mut self, calls: Vec<Call>) -> Result<(), LedgerError> {
        let sorted = JobsByKind::of(calls);
        self.log_outs(sorted.logouts)?;
        self.log_ins(sorted.logins)?;
        self.re_ups(sorted.re_ups)?;
        self.each(sorted.advances, |shard, now, reserved| shard.advance(reserved, now))?;
        let activate = |shard: &mut Shard, _, moved| shard.activate(moved);
        self.each_then(sorted.activates, activate, |_| ())?;
        let peers = sorted.peers.into_iter().map(|(kind, wanted, reply)| ((kind, wanted), reply));
        self.each(peers.collect(), |shard, now, (kind, wanted)| match kind {
            PeerRequest::Hold => shard.hold_for_peer(wanted, now),
            PeerRequest::Keep => shard.keep_for_peer(wanted),
            PeerRequest::HoldForCode => shard.hold_for_code(wanted, now),
            PeerRequest::Release => Ok(shard.release_for_peer(wanted)),
        })?;
        self.codes(sorted.codes)?;
        let void = sorted.void_scans.into_iter().map(|(tags, scan, reply)| ((tags, scan), reply));
        self.each(void.collect(), |shard, now, (tags, scan)| shard.void_scan(&tags, &scan, now))?;
        let place = self.place;
        let admits = sorted.admits.into_iter().map(|(code, scan, reply)| ((code, scan), reply));
        self.each(admits.collect(), |shard, now, (code, scan)| {
            shard.admit(&code, &scan, now, |wanted| is_on(place, wanted))
        })?;
        for (id, reply) in sorted.sessions {
            let _ = reply.send(self.shard.status(id));
        }
        Ok(())
    }

    /// Applies each call to the shard, and commits all of them at once.
    fn each<J, T>(
        &mut self,
        calls: Vec<(J, Reply<T>)>,
        act: impl Fn(&mut Shard, Timestamp, J) -> Result<Step<T>, VerifierError>,
    ) -> Result<(), LedgerError> {
        self.each_then(calls, act, |released| released)
    }

    fn each_then<J, T, U>(
        &mut self,
        calls: Vec<(J, Reply<U>)>,
        act: impl Fn(&mut Shard, Timestamp, J) -> Result<Step<T>, VerifierError>,
        answer: impl Fn(T) -> U,
    ) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (call, reply) in calls {
            match act(&mut self.shard, (self.clock)(), call) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let released = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, released) in replies.into_iter().zip(released) {
            let _ = reply.send(Ok(answer(released)));
        }
        Ok(())
    }

    fn log_outs(&mut self, calls: Vec<(Logout, Reply<()>)>) -> Result<(), LedgerError> {
        self.each(calls, |shard, _, logout| shard.log_out(&logout))
    }

    fn log_ins(
        &mut self,
        calls: Vec<(Box<Login>, Reply<SessionStatus>)>,
    ) -> Result<(), LedgerError> {
        let (mut unspent, mut waiting, mut steps, mut replies) =
            (Vec::<UnspentLogin>::new(), Vec::new(), Vec::new(), Vec::new());
        for (login, reply) in calls {
            match self.shard.look_up(*login, (self.clock)()) {
                Ok(LoginLookUp::Unspent(login)) => {
                    unspent.push(login);
                    waiting.push(reply);
                }
                Ok(LoginLookUp::Same(step)) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        for (proven, reply) in self.verifier.verify(unspent).into_iter().zip(waiting) {
            match proven.and_then(|proven| self.shard.log_in(proven, (self.clock)())) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let acknowledged = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, acknowledged) in replies.into_iter().zip(acknowledged) {
            let _ = reply.send(self.shard.status(acknowledged.session));
        }
        Ok(())
    }

    fn re_ups(&mut self, calls: Vec<(Box<ReUp>, Reply<ReUpProgress>)>) -> Result<(), LedgerError> {
        let (mut due, mut waiting) = (Vec::<DueReUp>::new(), Vec::new());
        let (mut moved, mut again) = (Vec::new(), Vec::new());
        for (re_up, reply) in calls {
            match self.shard.look_up_re_up(*re_up, (self.clock)()) {
                Ok(ReUpLookUp::Due(re_up)) => {
                    due.push(re_up);
                    waiting.push(reply);
                }
                Ok(ReUpLookUp::Moved(step)) => {
                    moved.push(step);
                    again.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let mut here = Vec::new();
        for (proven, reply) in verify_re_ups(&self.pinned, due).into_iter().zip(waiting) {
            match proven {
                Ok(proven) if is_on(self.place, &proven.hold_request(&self.pinned)) => {
                    here.push((proven, reply));
                }
                other => drop(reply.send(other.map(ReUpProgress::Proven))),
            }
        }
        // These records hold the old state of their sessions. They must not overwrite the
        // records of sessions that are renewed in this batch.
        let moved = Step::join(moved).commit(&mut self.ledger)?;
        for (reply, moved) in again.into_iter().zip(moved) {
            let _ = reply.send(Ok(ReUpProgress::Moved(moved)));
        }
        self.re_ups_here(here)
    }

    fn re_ups_here(
        &mut self,
        calls: Vec<(ProvenReUp, Reply<ReUpProgress>)>,
    ) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (proven, reply) in calls {
            match self.shard.re_up_here(proven, (self.clock)()) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let done = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, done) in replies.into_iter().zip(done) {
            let _ = reply.send(self.shard.status(done.session).map(ReUpProgress::Done));
        }
        Ok(())
    }

    fn codes(
        &mut self,
        calls: Vec<(Box<Code>, Digest, Reply<Option<ProvenCode>>)>,
    ) -> Result<(), LedgerError> {
        for (code, scan, reply) in calls {
            let answer = match self.shard.look_up_code(*code, &scan, (self.clock)()) {
                Ok(CodeLookUp::Unspent(code)) => self.verifier.verify_code(code).map(Some),
                Ok(CodeLookUp::Same(step)) => {
                    step.commit(&mut self.ledger)?;
                    Ok(None)
                }
                Err(refused) => Err(refused),
            };
            let _ = reply.send(answer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
