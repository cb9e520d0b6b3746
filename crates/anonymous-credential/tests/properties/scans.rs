//! Scans of codes at the same time, step by step in any order: of one code at two
//! gates, of one scan that a gate asks about twice, and of a copy's code for the
//! epoch after. What one gives back is never what another relies on.

use crate::codes::Gate;
use crate::support::{Ledger, NOTHING, at};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, TagId};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, GivenUp, code_tags};
use alpheus_anonymous_credential::sessions::peers::Wanted;
use alpheus_anonymous_credential::sessions::{LookUp, Shard};
use alpheus_anonymous_credential::verifier::ProvenCode;
use alpheus_crypto::hash::Digest;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// In the pre-login of the second epoch.
const NOW: u64 = 14;

type Shards = [(Shard, Ledger); 2];

/// What a verifier does for one request of a gate, a step at a time.
struct Request<'a> {
    scan: Digest,
    tags: Vec<Wanted>,
    proven: &'a ProvenCode,
    home: usize,
    next: Step,
}

enum Step {
    /// Hold the elsewhere tag of this number, or admit.
    Take(usize),
    GiveUp,
    Release(Vec<Wanted>),
    Done(bool),
}

impl Request<'_> {
    fn step(&mut self, now: Time, shards: &mut Shards) {
        self.next = match std::mem::replace(&mut self.next, Step::GiveUp) {
            Step::Take(n) => self.take(n, now, shards),
            Step::GiveUp => {
                let (shard, ledger) = &mut shards[self.home];
                let given_up = shard.give_up(now, &self.tags, &self.scan).unwrap();
                match given_up.commit(ledger).unwrap() {
                    GivenUp::Admitted => Step::Done(true),
                    GivenUp::Void(tags) => Step::Release(tags),
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

    fn take(&self, n: usize, now: Time, shards: &mut Shards) -> Step {
        let onward = self.tags.iter().skip(1);
        let mut elsewhere = onward.filter(|wanted| Gate::shard_of(wanted) != self.home);
        let (at, taken) = if let Some(wanted) = elsewhere.nth(n) {
            let at = Gate::shard_of(wanted);
            (at, shards[at].0.hold_for_code(now, *wanted).map(|held| (held, Step::Take(n + 1))))
        } else {
            let here = |wanted: &Wanted| Gate::shard_of(wanted) == self.home;
            let admitted = shards[self.home].0.admit(now, self.proven, &self.scan, here);
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

    fn refused(refused: Refused) -> Step {
        match refused {
            Refused::Spent => Step::GiveUp,
            Refused::Used => Step::Done(false),
            other => panic!("{other}"),
        }
    }

    fn opened(&self) -> Option<bool> {
        if let Step::Done(opened) = self.next { Some(opened) } else { None }
    }
}

fn prove(gate: &mut Gate, now: Time, code: &Code) -> ProvenCode {
    let login = code_tags(&gate.pinned, code, &NOTHING)[0];
    let shard = &gate.shards[Gate::shard_of(&login)].0;
    let CodeLookUp::Unspent(unspent) = shard.look_up_code(now, code.clone(), &NOTHING).unwrap()
    else {
        panic!("it was spent")
    };
    gate.verifier.verify_code(unspent).unwrap()
}

/// A code, a copy's code for the epoch after, and a copy's login for that epoch.
fn codes_and_login(gate: &mut Gate) -> (Code, Code, Login) {
    let copied = gate.store.clone();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let (mut ahead, mut friend) = (gate.copy(&copied), gate.copy(&copied));
    let code = gate.code(at(NOW)).unwrap();
    // The copy's device has a clock that is ahead.
    let made = ahead.code(at(NOW + 2), &compared, &mut gate.rng).unwrap();
    let made = made.commit(&mut Ledger::new()).unwrap();
    let sent = friend.log_in(at(NOW), Which::Next, &compared, &NOTHING, &mut gate.rng).unwrap();
    let sent = sent.commit(&mut Ledger::new()).unwrap();
    let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
    (code, Code::from_bytes(&made.bytes).unwrap(), login)
}

#[test]
fn scans_give_back_nothing_that_another_relies_on() {
    let now = at(NOW);
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..6 {
        let mut gate = Gate::new(seed).unwrap();
        let (code, ahead, login) = codes_and_login(&mut gate);
        let (proven, other) = (prove(&mut gate, now, &code), prove(&mut gate, now, &ahead));
        let begun = gate.shards.each_ref().map(|(_, ledger)| ledger.clone());
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        for _ in 0..400 {
            let mut shards = begun.clone().map(|mut ledger| {
                let shard = Shard::restore(gate.pinned.clone(), ledger.clone(), Log::Whole, now);
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
                requests[which].step(now, &mut shards);
            }
            let [same, again, second, after] = requests.map(|request| request.opened().unwrap());
            let gates = [same || again, second, after];
            let gates = gates.iter().filter(|opened| **opened).count();
            assert!(gates <= 1, "{gates} gates opened for one epoch");
            // All three spend the second epoch.
            let tag = TagId::of(&gate.pinned.fingerprint(), login.epoch, &login.tag);
            let home = usize::try_from(tag.shard(2)).unwrap();
            let found = shards[home].0.look_up(now, login.clone());
            let free = matches!(found, Ok(LookUp::Unspent(_)));
            assert!(gates == 0 || !free, "a gate has opened, and the epoch is free");
            opened += gates;
            refused += usize::from(gates == 0);
        }
    }
    assert!(opened > 200 && refused > 20, "{opened} {refused}");
}

/// A shard that has forgotten with the epoch that a scan went through does not take it
/// for one that did not.
#[test]
fn nothing_is_given_back_once_the_epoch_is_over() {
    let (now, later) = (at(NOW), at(NOW + 20));
    let mut gate = Gate::new(0).unwrap();
    let (code, ..) = codes_and_login(&mut gate);
    let proven = prove(&mut gate, now, &code);
    let scan = Digest([1; 32]);
    let tags = code_tags(&gate.pinned, &code, &scan);
    let home = Gate::shard_of(&tags[0]);
    let mut request =
        Request { scan, tags: tags.clone(), proven: &proven, home, next: Step::Take(0) };
    while request.opened().is_none() {
        request.step(now, &mut gate.shards);
    }
    assert_eq!(request.opened(), Some(true));
    let (shard, ledger) = &mut gate.shards[home];
    shard.prune(later).unwrap().commit(ledger).unwrap();
    assert_eq!(shard.give_up(later, &tags, &scan).err(), Some(Refused::Epoch));
}
