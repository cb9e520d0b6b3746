//! Concurrent scans of codes, step by step in any order: one code at two gates, one scan that a
//! gate asks about twice, and a copy's code for the following epoch. No scan releases what
//! another relies on.

use crate::properties::codes::Gate;
use crate::support::{Ledger, NOTHING, at};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, TagId};
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, VoidOutcome, code_tags};
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_anonymous_credential::sessions::{LoginLookUp, Shard};
use alpheus_anonymous_credential::verifier::ProvenCode;
use alpheus_crypto::hash::Digest;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// In the pre-login of the second epoch.
const NOW: u64 = 14;

type Shards = [(Shard, Ledger); 2];

/// A verifier serves one request of a gate, one step at a time.
struct Request<'a> {
    scan: Digest,
    tags: Vec<HoldRequest>,
    proven: &'a ProvenCode,
    home: usize,
    next: Step,
}

enum Step {
    /// Hold the tag with this number on the other shard, or admit.
    Take(usize),
    GiveUp,
    Release(Vec<HoldRequest>),
    Done(bool),
}

impl Request<'_> {
    fn step(&mut self, shards: &mut Shards, now: Timestamp) {
        self.next = match std::mem::replace(&mut self.next, Step::GiveUp) {
            Step::Take(n) => self.take(n, shards, now),
            Step::GiveUp => {
                let (shard, ledger) = &mut shards[self.home];
                let given_up = shard.void_scan(&self.tags, &self.scan, now).unwrap();
                match given_up.commit(ledger).unwrap() {
                    VoidOutcome::Admitted => Step::Done(true),
                    VoidOutcome::Void(tags) => Step::Release(tags),
                }
            }
            Step::Release(mut tags) => match tags.pop() {
                Some(wanted) => {
                    if Gate::shard_of(&wanted) != self.home {
                        let (shard, ledger) = &mut shards[Gate::shard_of(&wanted)];
                        shard.release_for_peer(wanted).commit(ledger).unwrap();
                    }
                    Step::Release(tags)
                }
                None => Step::Done(false),
            },
            done @ Step::Done(_) => done,
        };
    }

    fn take(&self, n: usize, shards: &mut Shards, now: Timestamp) -> Step {
        let onward = self.tags.iter().skip(1);
        let mut elsewhere = onward.filter(|wanted| Gate::shard_of(wanted) != self.home);
        let (at, taken) = if let Some(wanted) = elsewhere.nth(n) {
            let at = Gate::shard_of(wanted);
            (at, shards[at].0.hold_for_code(*wanted, now).map(|held| (held, Step::Take(n + 1))))
        } else {
            let here = |wanted: &HoldRequest| Gate::shard_of(wanted) == self.home;
            let admitted = shards[self.home].0.admit(self.proven, &self.scan, now, here);
            (self.home, admitted.map(|admitted| (admitted, Step::Done(true))))
        };
        match taken {
            Ok((step, next)) => {
                step.commit(&mut shards[at].1).unwrap();
                next
            }
            Err(refused) => Self::refused(refused),
        }
    }

    fn refused(refused: VerifierError) -> Step {
        match refused {
            VerifierError::Spent => Step::GiveUp,
            VerifierError::Used => Step::Done(false),
            other => panic!("{other}"),
        }
    }

    fn opened(&self) -> Option<bool> {
        if let Step::Done(opened) = self.next { Some(opened) } else { None }
    }
}

fn prove(gate: &mut Gate, code: &Code, now: Timestamp) -> ProvenCode {
    let login = code_tags(&gate.pinned, code, &NOTHING)[0];
    let shard = &gate.shards[Gate::shard_of(&login)].0;
    let CodeLookUp::Unspent(unspent) = shard.look_up_code(code.clone(), &NOTHING, now).unwrap()
    else {
        panic!("it was spent")
    };
    gate.verifier.verify_code(unspent).unwrap()
}

/// A code, a copy's code for the following epoch, and a copy's login for that epoch.
fn codes_and_login(gate: &mut Gate) -> (Code, Code, Login) {
    let copied = gate.store.clone();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let (mut ahead, mut friend) = (gate.copy(&copied), gate.copy(&copied));
    let code = gate.code(at(NOW)).unwrap();
    // The copy's device has a clock that is ahead.
    let made = ahead.code(&compared, at(NOW + 2), &mut gate.rng).unwrap();
    let made = made.commit(&mut Ledger::new()).unwrap();
    let sent = friend.log_in(Timing::Next, &compared, &NOTHING, at(NOW), &mut gate.rng).unwrap();
    let sent = sent.commit(&mut Ledger::new()).unwrap();
    let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
    (code, Code::from_bytes(&made.bytes).unwrap(), login)
}

#[test]
fn a_scan_releases_nothing_that_another_relies_on() {
    let now = at(NOW);
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..6 {
        let mut gate = Gate::new(seed).unwrap();
        let (code, ahead, login) = codes_and_login(&mut gate);
        let (proven, other) = (prove(&mut gate, &code, now), prove(&mut gate, &ahead, now));
        let begun = gate.shards.each_ref().map(|(_, ledger)| ledger.clone());
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        for _ in 0..400 {
            let mut shards = begun.clone().map(|mut ledger| {
                let shard =
                    Shard::restore(gate.pinned.clone(), ledger.clone(), StateOrigin::Intact, now);
                (shard.unwrap().commit(&mut ledger).unwrap(), ledger)
            });
            let request = |code: &Code, proven, scan: u8| {
                let scan = Digest([scan; 32]);
                let tags = code_tags(&gate.pinned, code, &scan);
                let home = Gate::shard_of(&tags[0]);
                Request { scan, tags, proven, home, next: Step::Take(0) }
            };
            let mut requests = [
                request(&code, &proven, 1),
                request(&code, &proven, 1),
                request(&code, &proven, 2),
                request(&ahead, &other, 3),
            ];
            while requests.iter().any(|request| request.opened().is_none()) {
                let which = usize::try_from(rng.next_u32() % 4).unwrap();
                requests[which].step(&mut shards, now);
            }
            let [same, again, second, after] = requests.map(|request| request.opened().unwrap());
            let gates = [same || again, second, after];
            let gates = gates.iter().filter(|opened| **opened).count();
            assert!(gates <= 1, "{gates} gates opened for one epoch");
            // All three spend the second epoch.
            let tag = TagId::of(&gate.pinned.fingerprint(), login.epoch, &login.tag);
            let home = usize::try_from(tag.shard(2)).unwrap();
            let found = shards[home].0.look_up(login.clone(), now);
            let free = matches!(found, Ok(LoginLookUp::Unspent(_)));
            assert!(gates == 0 || !free, "a gate has opened, and the epoch is free");
            opened += gates;
            refused += usize::from(gates == 0);
        }
    }
    assert!(opened > 200 && refused > 20, "{opened} {refused}");
}

/// A shard that has forgotten, after the epoch, that a scan was admitted does not treat it as
/// rejected.
#[test]
fn nothing_is_released_once_the_epoch_is_over() {
    let (now, later) = (at(NOW), at(NOW + 20));
    let mut gate = Gate::new(0).unwrap();
    let (code, ..) = codes_and_login(&mut gate);
    let proven = prove(&mut gate, &code, now);
    let scan = Digest([1; 32]);
    let tags = code_tags(&gate.pinned, &code, &scan);
    let home = Gate::shard_of(&tags[0]);
    let mut request =
        Request { scan, tags: tags.clone(), proven: &proven, home, next: Step::Take(0) };
    while request.opened().is_none() {
        request.step(&mut gate.shards, now);
    }
    assert_eq!(request.opened(), Some(true));
    let (shard, ledger) = &mut gate.shards[home];
    shard.prune(later).unwrap().commit(ledger).unwrap();
    assert_eq!(shard.void_scan(&tags, &scan, later).err(), Some(VerifierError::Epoch));
}
