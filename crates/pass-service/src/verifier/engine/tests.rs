//! The shard's thread, batch by batch, with a test clock and a ledger that can fail.

use super::*;
use alpheus_anonymous_credential::configuration::Configuration;
use alpheus_anonymous_credential::holder::{Holder, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::{Change, StateOrigin};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::entropy;
use alpheus_node::ledger::ShardIndex;
use alpheus_time::Span;
use std::cell::Cell;
use std::collections::BTreeMap;

const EPOCH: u64 = 15_000_000;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn set(seconds: u64) -> Timestamp {
    NOW.set(100 * EPOCH + seconds * 1_000_000);
    clock()
}

fn clock() -> Timestamp {
    Timestamp(NOW.get())
}

#[derive(Default)]
struct Disk {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    full: bool,
    commits: usize,
}

impl Ledger for Disk {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.commits += 1;
        if self.full { Err(LedgerError) } else { self.records.commit(changes) }
    }
}

fn world() -> (Engine<Disk>, Issuer) {
    let rng = &mut entropy::rng().unwrap();
    let key = IssuerKey::random(rng).unwrap();
    let schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(EPOCH),
        pre_login: Span(EPOCH / 5),
        border_pre_login: Span(EPOCH / 5),
        epochs_per_period: 5760,
        ahead: 0,
    };
    let configuration = Configuration {
        deployment: [1; 32],
        kind: 1,
        tier: 1,
        limit: Limit::ONE,
        incarnation: 1,
        schedule,
        issuer: *key.public(),
    };
    let operator = SigningKey::from_seed(&Secret::random(rng));
    let signed = Signed::new(&configuration, &operator);
    let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key()).unwrap();
    let copy = IssuerKey::from_bytes(&key.expose()).unwrap();
    let issuer = Issuer::restore(copy, pinned.clone(), [], StateOrigin::New, set(0)).unwrap();
    let issuer = issuer.commit(&mut Disk::default()).unwrap();
    let mut ledger = Disk::default();
    let shard = Shard::restore(pinned.clone(), [], StateOrigin::New, set(0)).unwrap();
    let shard = shard.commit(&mut ledger).unwrap();
    let verifier = Verifier::new(key, pinned.clone()).unwrap();
    let place = ShardIndex { index: 0, count: 1 };
    (Engine { shard, verifier, pinned, ledger, place, clock, pruned: None }, issuer)
}

/// A holder, and its login for the current epoch.
fn logging_in(engine: &Engine<Disk>, issuer: &mut Issuer, account: u8) -> (Holder, Box<Login>) {
    let (rng, account) = (&mut entropy::rng().unwrap(), [account]);
    let pinned = engine.pinned.clone();
    let asking = PendingRequest::begin(pinned.clone(), &account, Timing::Running, clock(), rng);
    let asking = asking.unwrap().commit(&mut Disk::default()).unwrap();
    let answer = issuer.issue(Applicant::named(&account), &asking.bytes(), clock(), rng).unwrap();
    let answer = answer.commit(&mut Disk::default()).unwrap();
    let mut holder = asking.finish(&answer).unwrap().commit(&mut Disk::default()).unwrap();
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let sent = holder.log_in(Timing::Running, &compared, &Digest([0; 32]), clock(), rng);
    let sent = sent.unwrap().commit(&mut Disk::default()).unwrap();
    (holder, Box::new(Login::from_bytes(&sent.bytes, Limit::ONE).unwrap()))
}

type Answer<T> = tokio::sync::oneshot::Receiver<Result<T, VerifierError>>;

fn ask<T>(calls: &mut Vec<Call>, call: impl FnOnce(Reply<T>) -> Call) -> Answer<T> {
    let (reply, answer) = tokio::sync::oneshot::channel();
    calls.push(call(reply));
    answer
}

#[test]
fn a_crowd_costs_one_commit_and_a_forged_login_fails_alone() {
    let (mut engine, mut issuer) = world();
    set(1);
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    for account in 0..40 {
        let (_, mut login) = logging_in(&engine, &mut issuer, account);
        if account == 17 {
            login.proof[100] ^= 1;
        }
        answers.push(ask(&mut calls, |reply| Call::LogIn(login, reply)));
    }
    let before = engine.ledger.commits;
    engine.turn(calls).unwrap();
    assert_eq!(engine.ledger.commits - before, 1, "one flush for all");
    for (account, mut answer) in answers.into_iter().enumerate() {
        let answer = answer.try_recv().unwrap();
        assert_eq!(answer.is_ok(), account != 17, "{account}");
    }
}

#[test]
fn no_login_is_served_while_the_clock_is_behind() {
    let (mut engine, mut issuer) = world();
    let early = {
        set(1);
        logging_in(&engine, &mut issuer, 1).1
    };
    set(16);
    let late = logging_in(&engine, &mut issuer, 2).1;
    let mut log_in = |login: &Login, seconds| {
        set(seconds);
        let mut calls = Vec::new();
        let mut answer = ask(&mut calls, |reply| Call::LogIn(Box::new(login.clone()), reply));
        engine.turn(calls).unwrap();
        answer.try_recv().unwrap().map(|status| status.epoch)
    };
    assert_eq!(log_in(&late, 17), Ok(Epoch(101)));
    assert_eq!(log_in(&early, 2), Err(VerifierError::ClockStepped));
    assert_eq!(log_in(&late, 2), Err(VerifierError::ClockStepped));
    assert_eq!(log_in(&late, 18), Ok(Epoch(101)));
}

#[test]
fn a_logout_in_the_same_turn_wins_over_a_re_up() {
    let (mut engine, mut issuer) = world();
    set(1);
    let (mut holder, login) = logging_in(&engine, &mut issuer, 1);
    let mut calls = Vec::new();
    let mut answer = ask(&mut calls, |reply| Call::LogIn(login, reply));
    engine.turn(calls).unwrap();
    let session = answer.try_recv().unwrap().unwrap().session;
    let rng = &mut entropy::rng().unwrap();
    let sent = holder.re_up(set(13), rng).unwrap().commit(&mut Disk::default()).unwrap();
    let re_up = Box::new(ReUp::from_bytes(&sent.bytes).unwrap());
    let mut calls = Vec::new();
    let mut carried = ask(&mut calls, |reply| Call::ReUp(re_up, reply));
    let logout = holder.log_out(session).unwrap();
    let mut ended = ask(&mut calls, |reply| Call::LogOut(logout, reply));
    engine.turn(calls).unwrap();
    assert_eq!(ended.try_recv().unwrap(), Ok(()));
    assert_eq!(carried.try_recv().unwrap().err(), Some(VerifierError::Ended));
}

/// Both epochs are open, and a client or a gateway repeats the older request. The
/// acknowledged state must be the durable one.
#[test]
fn a_re_up_that_is_repeated_does_not_take_a_later_one_back() {
    let (mut engine, mut issuer) = world();
    set(1);
    let (mut holder, login) = logging_in(&engine, &mut issuer, 1);
    let mut calls = Vec::new();
    let mut answer = ask(&mut calls, |reply| Call::LogIn(login, reply));
    engine.turn(calls).unwrap();
    let session = answer.try_recv().unwrap().unwrap().session;
    let mut carry = |seconds| {
        let rng = &mut entropy::rng().unwrap();
        let sent = holder.re_up(set(seconds), rng).unwrap().commit(&mut Disk::default()).unwrap();
        Box::new(ReUp::from_bytes(&sent.bytes).unwrap())
    };
    let (first, second) = (carry(13), carry(28));
    let mut calls = Vec::new();
    set(13);
    drop(ask(&mut calls, |reply| Call::ReUp(first.clone(), reply)));
    engine.turn(calls).unwrap();
    set(28);
    let mut calls = Vec::new();
    let mut again = ask(&mut calls, |reply| Call::ReUp(first, reply));
    let mut next = ask(&mut calls, |reply| Call::ReUp(second, reply));
    engine.turn(calls).unwrap();
    assert!(matches!(again.try_recv().unwrap(), Ok(ReUpProgress::Moved(_))));
    let Ok(ReUpProgress::Done(acknowledged)) = next.try_recv().unwrap() else { panic!("not done") };
    let records = engine.ledger.records.clone();
    let restored =
        Shard::restore(engine.pinned.clone(), records, StateOrigin::Intact, clock()).unwrap();
    let restored = restored.commit(&mut Disk::default()).unwrap();
    assert_eq!(restored.status(session), Ok(acknowledged));
    assert_eq!(acknowledged.epoch, Epoch(102));
}

#[test]
fn a_single_job_after_a_pause_does_not_wait() {
    let idle = |microseconds| Some(Duration::from_micros(microseconds));
    let linger = <Engine<Disk> as engine::Engine>::linger;
    assert!(linger(1, None).is_none(), "the very first");
    assert!(linger(1, idle(2_000)).is_none() && linger(MIN_BATCH - 1, idle(50_000)).is_none());
    assert!(linger(1, idle(1_999)).is_some() && linger(MIN_BATCH - 1, idle(0)).is_some());
    assert!(linger(MIN_BATCH, idle(0)).is_none(), "the batch is large enough");
}

/// The thread's loop, with calls that arrive while it waits for more.
#[test]
fn the_loop_serves_every_job_and_ends_with_the_last_sender() {
    let (mut engine, mut issuer) = world();
    // The loop runs on this thread, since the test clock is per thread.
    set(1);
    let mut logins = (0..3).map(|account| logging_in(&engine, &mut issuer, account).1);
    let [first, second, third] = [(); 3].map(|()| logins.next().unwrap());
    drop(logins);
    let (handle, mut calls) = engine::channel();
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let alone = handle.ask(|reply| Call::LogIn(first, reply)).await;
            let two = tokio::join!(
                handle.ask(|reply| Call::LogIn(second, reply)),
                handle.ask(|reply| Call::LogIn(third, reply)),
            );
            [alone, two.0, two.1].map(|answer| answer.unwrap().map(|status| status.epoch))
        })
    });
    engine::run(&mut engine, &mut calls).unwrap();
    assert_eq!(asking.join().unwrap(), [Ok(Epoch(100)); 3]);
}

#[test]
fn a_login_that_was_not_stored_is_not_acknowledged() {
    let (mut engine, mut issuer) = world();
    set(1);
    let (_, login) = logging_in(&engine, &mut issuer, 1);
    let mut calls = Vec::new();
    let mut answer = ask(&mut calls, |reply| Call::LogIn(login, reply));
    engine.ledger.full = true;
    assert_eq!(engine.turn(calls), Err(LedgerError));
    assert!(answer.try_recv().is_err(), "there is no answer");
}
