//! A shard on a thread of its own: one writer. Whatever waits is taken together,
//! verified in one batch and made durable by one flush of the disk.

use crate::pass::ledger::FencedLedger;
use crate::service::engine;
use crate::service::shutdown::Trigger;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::ledger::{Ledger, LedgerError, Step};
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, GivenUp};
use alpheus_anonymous_credential::sessions::peers::Wanted;
use alpheus_anonymous_credential::sessions::{
    Due, DueReUp, LookUp, Moved, Reserved, Shard, Standing, Unspent,
};
use alpheus_anonymous_credential::verifier::{ProvenCode, ProvenReUp, Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// As many are taken together.
const BATCH: usize = 256;
/// Where one comes soon after others, more are on their way: so long it waits for them,
/// since one check of all proofs and one flush of the disk then serve more.
const LINGER: Duration = Duration::from_millis(2);
/// As many are worth a check and a flush of their own.
const ENOUGH: usize = 32;

/// Where an answer goes, or what the shard's rules say against it.
type Reply<T> = engine::Reply<Result<T, Refused>>;

/// Something for the shard to do.
pub enum Job {
    /// Look up, verify, insert, acknowledge.
    LogIn(Box<Login>, Reply<Standing>),
    /// Is the session due? Verify.
    ReUp(Box<ReUp>, Reply<Begun>),
    /// Move a session to a reserved tag.
    Advance(Reserved, Reply<Moved>),
    /// Keep a moved session's tag, which lies here.
    Activate(Moved, Reply<()>),
    /// For another shard: hold a tag.
    Hold(Wanted, Reply<()>),
    /// For another shard: keep a tag.
    Keep(Wanted, Reply<()>),
    /// For a code on another shard: hold a tag of an epoch that may not be open.
    HoldForCode(Wanted, Reply<()>),
    /// For a code on another shard that is refused.
    Release(Wanted, Reply<()>),
    /// End a session.
    LogOut(Logout, Reply<()>),
    /// What is known of a session.
    Session(SessionId, Reply<Standing>),
    /// Look a code up, verify it.
    Code(Box<Code>, Digest, Reply<Option<ProvenCode>>),
    /// A code is refused elsewhere: its scan is void before its tags are given back.
    GiveUp(Vec<Wanted>, Digest, Reply<GivenUp>),
    /// Spend a proven code's tags, those that are ours.
    Admit(Box<ProvenCode>, Digest, Reply<()>),
}

/// How far a re-up is after its first step.
pub enum Begun {
    /// Done: its tag lies here too.
    Done(Standing),
    /// Proven: its tag is to be held by another shard.
    Proven(ProvenReUp),
    /// It has moved already: its tag is to be kept, again.
    Moved(Moved),
}

/// What the thread works on.
pub struct Engine<L> {
    /// The shard.
    pub shard: Shard,
    /// The issuer's key.
    pub verifier: Verifier,
    /// The configuration.
    pub pinned: Pinned,
    /// The shard's ledger.
    pub ledger: L,
    /// Which of how many shards it is.
    pub place: Place,
    /// The wall clock.
    pub clock: fn() -> Time,
}

/// Which of how many shards this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 0.
    pub shard: u64,
    /// At least one.
    pub of: u64,
}

impl Place {
    /// Whether a tag lies here.
    #[must_use]
    pub fn has(&self, wanted: &Wanted) -> bool {
        wanted.tag.shard(self.of) == self.shard
    }
}

/// Works until nobody is left to give jobs, or the ledger fails; then it drops
/// `trigger`, so that the process stops, and starts again from what is durable.
///
/// # Errors
/// [`LedgerError`].
pub fn run(
    mut engine: Engine<FencedLedger>,
    mut jobs: mpsc::Receiver<Job>,
    trigger: Trigger,
) -> Result<(), LedgerError> {
    let worked = engine.work(&mut jobs);
    if let Err(error) = &worked {
        tracing::error!(%error, "the shard stops");
    }
    drop(trigger);
    worked
}

/// Jobs by kind, in the order in which kinds are worked on.
#[derive(Default)]
struct Sorted {
    logins: Vec<(Box<Login>, Reply<Standing>)>,
    re_ups: Vec<(Box<ReUp>, Reply<Begun>)>,
    advances: Vec<(Reserved, Reply<Moved>)>,
    activates: Vec<(Moved, Reply<()>)>,
    peers: Vec<(Asked, Wanted, Reply<()>)>,
    logouts: Vec<(Logout, Reply<()>)>,
    sessions: Vec<(SessionId, Reply<Standing>)>,
    codes: Vec<(Box<Code>, Digest, Reply<Option<ProvenCode>>)>,
    given_up: Vec<(Vec<Wanted>, Digest, Reply<GivenUp>)>,
    admits: Vec<(Box<ProvenCode>, Digest, Reply<()>)>,
}

#[derive(Clone, Copy)]
enum Asked {
    Hold,
    Keep,
    HoldForCode,
    Release,
}

impl Sorted {
    fn of(jobs: Vec<Job>) -> Self {
        let mut sorted = Self::default();
        for job in jobs {
            match job {
                Job::LogIn(login, reply) => sorted.logins.push((login, reply)),
                Job::ReUp(re_up, reply) => sorted.re_ups.push((re_up, reply)),
                Job::Advance(reserved, reply) => sorted.advances.push((reserved, reply)),
                Job::Activate(moved, reply) => sorted.activates.push((moved, reply)),
                Job::Hold(wanted, reply) => sorted.peers.push((Asked::Hold, wanted, reply)),
                Job::Keep(wanted, reply) => sorted.peers.push((Asked::Keep, wanted, reply)),
                Job::HoldForCode(wanted, reply) => {
                    sorted.peers.push((Asked::HoldForCode, wanted, reply));
                }
                Job::Release(wanted, reply) => sorted.peers.push((Asked::Release, wanted, reply)),
                Job::LogOut(logout, reply) => sorted.logouts.push((logout, reply)),
                Job::Session(id, reply) => sorted.sessions.push((id, reply)),
                Job::Code(code, scan, reply) => sorted.codes.push((code, scan, reply)),
                Job::GiveUp(tags, scan, reply) => sorted.given_up.push((tags, scan, reply)),
                Job::Admit(code, scan, reply) => sorted.admits.push((code, scan, reply)),
            }
        }
        sorted
    }
}

fn refuse<T>(reply: Reply<T>, refused: Refused) {
    let _ = reply.send(Err(refused));
}

/// Whether a turn waits for more than what came, `rested` after the last one. Whoever
/// comes alone after a rest does not wait.
fn lingers(waiting: usize, rested: Option<Duration>) -> bool {
    waiting < ENOUGH && rested.is_some_and(|rested| rested < LINGER)
}

impl<L: Ledger> Engine<L> {
    fn work(&mut self, jobs: &mut mpsc::Receiver<Job>) -> Result<(), LedgerError> {
        let (mut ended, mut pruned) = (None::<Instant>, None);
        loop {
            let mut waiting = Vec::with_capacity(BATCH);
            if jobs.blocking_recv_many(&mut waiting, BATCH) == 0 {
                return Ok(());
            }
            if lingers(waiting.len(), ended.map(|ended| ended.elapsed())) {
                std::thread::sleep(LINGER);
                let left = BATCH - waiting.len();
                waiting.extend(std::iter::from_fn(|| jobs.try_recv().ok()).take(left));
            }
            self.turn(waiting)?;
            ended = Some(Instant::now());
            let epoch = self.pinned.schedule.epoch_at((self.clock)());
            if epoch != pruned {
                pruned = epoch;
                // A clock that went back forgets nothing.
                if let Ok(step) = self.shard.prune((self.clock)()) {
                    step.commit(&mut self.ledger)?;
                }
            }
        }
    }

    /// One batch of whatever waits. Logouts come before what would carry a session
    /// on, so that they win.
    pub(crate) fn turn(&mut self, jobs: Vec<Job>) -> Result<(), LedgerError> {
        let sorted = Sorted::of(jobs);
        self.log_outs(sorted.logouts)?;
        self.log_ins(sorted.logins)?;
        self.re_ups(sorted.re_ups)?;
        self.each(sorted.advances, |shard, now, reserved| shard.advance(now, reserved))?;
        let kept = |shard: &mut Shard, _, moved| shard.activate(moved);
        self.each_then(sorted.activates, kept, |_| ())?;
        let peers = sorted.peers.into_iter().map(|(asked, wanted, reply)| ((asked, wanted), reply));
        self.each(peers.collect(), |shard, now, (asked, wanted)| match asked {
            Asked::Hold => shard.hold_for_peer(now, wanted),
            Asked::Keep => shard.keep_for_peer(wanted),
            Asked::HoldForCode => shard.hold_for_code(now, wanted),
            Asked::Release => Ok(shard.release_for_peer(wanted)),
        })?;
        self.codes(sorted.codes)?;
        let given_up = sorted.given_up.into_iter().map(|(tags, scan, reply)| ((tags, scan), reply));
        self.each(given_up.collect(), |shard, now, (tags, scan)| shard.give_up(now, &tags, &scan))?;
        let place = self.place;
        let admits = sorted.admits.into_iter().map(|(code, scan, reply)| ((code, scan), reply));
        self.each(admits.collect(), |shard, now, (code, scan)| {
            shard.admit(now, &code, &scan, |wanted| place.has(wanted))
        })?;
        for (id, reply) in sorted.sessions {
            let _ = reply.send(self.shard.standing(id));
        }
        Ok(())
    }

    /// Does one thing to the shard for each job, and commits all of it at once.
    fn each<J, T>(
        &mut self,
        jobs: Vec<(J, Reply<T>)>,
        act: impl Fn(&mut Shard, Time, J) -> Result<Step<T>, Refused>,
    ) -> Result<(), LedgerError> {
        self.each_then(jobs, act, |released| released)
    }

    fn each_then<J, T, U>(
        &mut self,
        jobs: Vec<(J, Reply<U>)>,
        act: impl Fn(&mut Shard, Time, J) -> Result<Step<T>, Refused>,
        said: impl Fn(T) -> U,
    ) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (job, reply) in jobs {
            match act(&mut self.shard, (self.clock)(), job) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let released = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, released) in replies.into_iter().zip(released) {
            let _ = reply.send(Ok(said(released)));
        }
        Ok(())
    }

    fn log_outs(&mut self, jobs: Vec<(Logout, Reply<()>)>) -> Result<(), LedgerError> {
        self.each(jobs, |shard, _, logout| shard.log_out(&logout))
    }

    fn log_ins(&mut self, jobs: Vec<(Box<Login>, Reply<Standing>)>) -> Result<(), LedgerError> {
        let (mut unspent, mut waiting, mut steps, mut replies) =
            (Vec::<Unspent>::new(), Vec::new(), Vec::new(), Vec::new());
        for (login, reply) in jobs {
            match self.shard.look_up((self.clock)(), *login) {
                Ok(LookUp::Unspent(login)) => {
                    unspent.push(login);
                    waiting.push(reply);
                }
                Ok(LookUp::Same(step)) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        for (proven, reply) in self.verifier.verify(unspent).into_iter().zip(waiting) {
            match proven.and_then(|proven| self.shard.log_in((self.clock)(), proven)) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let acknowledged = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, acknowledged) in replies.into_iter().zip(acknowledged) {
            let _ = reply.send(self.shard.standing(acknowledged.session));
        }
        Ok(())
    }

    fn re_ups(&mut self, jobs: Vec<(Box<ReUp>, Reply<Begun>)>) -> Result<(), LedgerError> {
        let (mut due, mut waiting) = (Vec::<DueReUp>::new(), Vec::new());
        let (mut moved, mut again) = (Vec::new(), Vec::new());
        for (re_up, reply) in jobs {
            match self.shard.due((self.clock)(), *re_up) {
                Ok(Due::Due(re_up)) => {
                    due.push(re_up);
                    waiting.push(reply);
                }
                Ok(Due::Moved(step)) => {
                    moved.push(step);
                    again.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let mut here = Vec::new();
        for (proven, reply) in verify_re_ups(&self.pinned, due).into_iter().zip(waiting) {
            match proven {
                Ok(proven) if self.place.has(&proven.wanted(&self.pinned)) => {
                    here.push((proven, reply));
                }
                other => drop(reply.send(other.map(Begun::Proven))),
            }
        }
        // Their records are as the sessions were before: they must not be written over
        // those of sessions that go on in this very turn.
        let moved = Step::join(moved).commit(&mut self.ledger)?;
        for (reply, moved) in again.into_iter().zip(moved) {
            let _ = reply.send(Ok(Begun::Moved(moved)));
        }
        self.re_ups_here(here)
    }

    fn re_ups_here(&mut self, jobs: Vec<(ProvenReUp, Reply<Begun>)>) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (proven, reply) in jobs {
            match self.shard.re_up_here((self.clock)(), proven) {
                Ok(step) => {
                    steps.push(step);
                    replies.push(reply);
                }
                Err(refused) => refuse(reply, refused),
            }
        }
        let done = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, done) in replies.into_iter().zip(done) {
            let _ = reply.send(self.shard.standing(done.session).map(Begun::Done));
        }
        Ok(())
    }

    fn codes(
        &mut self,
        jobs: Vec<(Box<Code>, Digest, Reply<Option<ProvenCode>>)>,
    ) -> Result<(), LedgerError> {
        for (code, scan, reply) in jobs {
            let answer = match self.shard.look_up_code((self.clock)(), *code, &scan) {
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
