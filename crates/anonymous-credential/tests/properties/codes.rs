//! Login codes: one login and its re-ups, all or none, once.

use crate::support::{Failed, Ledger, NOTHING, START, at, configuration, pin};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::{HolderRefused, Refused};
use alpheus_anonymous_credential::holder::{Holder, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, GivenUp, code_tags};
use alpheus_anonymous_credential::sessions::peers::Wanted;
use alpheus_anonymous_credential::sessions::{Due, LookUp, Reserved, Shard};
use alpheus_anonymous_credential::verifier::{ProvenCode, ProvenReUp, Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const SCAN: Digest = Digest([5; 32]);
const OTHER_SCAN: Digest = Digest([6; 32]);

/// A deployment whose codes spend three epochs beside their own, over two shards.
pub(crate) struct Gate {
    pub(crate) pinned: Pinned,
    pub(crate) verifier: Verifier,
    pub(crate) shards: [(Shard, Ledger); 2],
    holder: Holder,
    pub(crate) store: Ledger,
    pub(crate) rng: ChaCha20Rng,
}

impl Gate {
    pub(crate) fn new(seed: u8) -> Result<Gate, Failed> {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        let key = IssuerKey::random(&mut rng)?;
        let mut settings = configuration(&key, Limit::ONE);
        settings.schedule.ahead = 3;
        let pinned = pin(&settings)?;
        let copy = IssuerKey::from_bytes(&key.expose())?;
        let verifier = Verifier::new(copy, pinned.clone())?;
        let shard = || -> Result<(Shard, Ledger), Failed> {
            let mut ledger = Ledger::new();
            let shard = Shard::restore(pinned.clone(), [], Log::New, at(0))?.commit(&mut ledger)?;
            Ok((shard, ledger))
        };
        let shards = [shard()?, shard()?];
        let (mut books, mut store) = (Ledger::new(), Ledger::new());
        let mut issuer =
            Issuer::restore(key, pinned.clone(), [], Log::New, at(0))?.commit(&mut books)?;
        let asking = Requesting::begin(pinned.clone(), b"ada", at(0), Which::Running, &mut rng)?;
        let asking = asking.commit(&mut store)?;
        let answer = issuer.issue(at(0), b"ada", &asking.bytes(), &mut rng)?.commit(&mut books)?;
        let holder = asking.finish(&answer)?.commit(&mut store)?;
        Ok(Gate { pinned, verifier, shards, holder, store, rng })
    }

    pub(crate) fn code(&mut self, now: Time) -> Result<Code, HolderRefused> {
        let compared = self.pinned.compare(&self.pinned.fingerprint()).unwrap();
        let made = self.holder.code(now, &compared, &mut self.rng)?;
        Ok(Code::from_bytes(&made.commit(&mut self.store).unwrap().bytes).unwrap())
    }

    pub(crate) fn shard_of(wanted: &Wanted) -> usize {
        usize::try_from(wanted.tag.shard(2)).unwrap()
    }

    /// What a verifier does with a code: look up, verify, hold elsewhere, admit.
    fn admit(&mut self, now: Time, code: &Code, scan: &Digest) -> Result<(), Refused> {
        let tags = code_tags(&self.pinned, code, scan);
        let home = Self::shard_of(&tags[0]);
        let (shard, ledger) = &mut self.shards[home];
        let unspent = match shard.look_up_code(now, code.clone(), scan)? {
            CodeLookUp::Same(step) => {
                step.commit(ledger).unwrap();
                return Ok(());
            }
            CodeLookUp::Unspent(unspent) => unspent,
        };
        let proven = self.verifier.verify_code(unspent)?;
        let taken = self.hold(now, &tags[1..], home).and_then(|()| {
            let (shard, ledger) = &mut self.shards[home];
            let here = |wanted: &Wanted| Self::shard_of(wanted) == home;
            shard.admit(now, &proven, scan, here).map(|step| step.commit(ledger).unwrap())
        });
        if taken == Err(Refused::Spent) {
            let (shard, ledger) = &mut self.shards[home];
            let given_up = shard.give_up(now, &tags, scan)?.commit(ledger).unwrap();
            let GivenUp::Void(held) = given_up else { return Ok(()) };
            for wanted in held.iter().filter(|wanted| Self::shard_of(wanted) != home) {
                let (shard, ledger) = &mut self.shards[Self::shard_of(wanted)];
                shard.release_for_peer(*wanted).commit(ledger).unwrap();
            }
        }
        taken
    }

    fn hold(&mut self, now: Time, tags: &[Wanted], home: usize) -> Result<(), Refused> {
        for wanted in tags.iter().filter(|wanted| Self::shard_of(wanted) != home) {
            let (shard, ledger) = &mut self.shards[Self::shard_of(wanted)];
            shard.hold_for_code(now, *wanted)?.commit(ledger).unwrap();
        }
        Ok(())
    }

    /// Whether a login of a copy of the pass goes through in an epoch.
    fn friend_logs_in(&mut self, now: Time, which: Which, copied: &Ledger) -> Result<(), Refused> {
        let mut friend = self.copy(copied);
        self.logs_in(now, which, &mut friend)
    }

    pub(crate) fn copy(&self, copied: &Ledger) -> Holder {
        let period = self.holder.period();
        Holder::restore(self.pinned.clone(), period, copied).unwrap().unwrap()
    }

    fn logs_in(&mut self, now: Time, which: Which, friend: &mut Holder) -> Result<(), Refused> {
        let compared = self.pinned.compare(&self.pinned.fingerprint()).unwrap();
        let sent = friend.log_in(now, which, &compared, &NOTHING, &mut self.rng).unwrap();
        let sent = sent.commit(&mut Ledger::new()).unwrap();
        let home = usize::try_from(sent.session.0.shard(2)).unwrap();
        let (shard, ledger) = &mut self.shards[home];
        let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
        match shard.look_up(now, login)? {
            LookUp::Same(step) => drop(step.commit(ledger).unwrap()),
            LookUp::Unspent(login) => {
                let proven = self.verifier.verify(vec![login]).pop().unwrap()?;
                shard.log_in(now, proven)?.commit(ledger).unwrap();
            }
        }
        Ok(())
    }
}

#[test]
fn a_code_opens_one_gate_once() {
    let mut gate = Gate::new(50).unwrap();
    let copied = gate.store.clone();
    let code = gate.code(at(1)).unwrap();
    assert_eq!((code.onward.len(), code.to_bytes().len()), (3, 392 + 3 * 128));
    assert_eq!(Code::from_bytes(&code.to_bytes()).as_ref(), Ok(&code));
    // It can be shown again while its epoch runs, also after a restart, and is the same.
    assert_eq!(gate.code(at(5)).as_ref(), Ok(&code));
    gate.holder.prune().commit(&mut gate.store).unwrap();
    let period = gate.holder.period();
    gate.holder = Holder::restore(gate.pinned.clone(), period, &gate.store).unwrap().unwrap();
    assert_eq!(gate.code(at(6)).as_ref(), Ok(&code));

    assert_eq!(gate.admit(at(2), &code, &SCAN), Ok(()));
    // The answer was lost: the same gate asks again about the same scan.
    assert_eq!(gate.admit(at(3), &code, &SCAN), Ok(()));
    // A photograph at another gate, or later at the same.
    assert_eq!(gate.admit(at(3), &code, &OTHER_SCAN), Err(Refused::Used));
    // A copy of the pass has none of the code's epochs, and the one after them.
    for epoch in 0..4 {
        let now = at(2 + 15 * epoch);
        let tried = gate.friend_logs_in(now, Which::Running, &copied);
        assert_eq!(tried, Err(Refused::Spent), "epoch {epoch}");
    }
    assert_eq!(gate.friend_logs_in(at(62), Which::Running, &copied), Ok(()));
}

#[test]
fn all_or_none() {
    for seed in 60..68 {
        let mut gate = Gate::new(seed).unwrap();
        let copied = gate.store.clone();
        // A friend is faster, in the code's second epoch.
        gate.friend_logs_in(at(14), Which::Next, &copied).unwrap();
        let code = gate.code(at(14)).unwrap();
        assert_eq!(gate.admit(at(14), &code, &SCAN), Err(Refused::Spent));
        // Nothing of the code is spent: its first and its third epoch are free.
        assert_eq!(gate.friend_logs_in(at(14), Which::Running, &copied), Ok(()));
        assert_eq!(gate.friend_logs_in(at(31), Which::Running, &copied), Ok(()), "seed {seed}");
    }
}

#[test]
fn what_is_no_code_is_refused() {
    let mut gate = Gate::new(51).unwrap();
    let code = gate.code(at(1)).unwrap();
    let mut shorter = code.clone();
    shorter.onward.pop();
    let mut swapped = code.clone();
    swapped.onward.swap(0, 1);
    let mut forged = code.clone();
    forged.onward[2].0 = code.onward[1].0;
    let malformed = gate.admit(at(1), &shorter, &SCAN);
    assert!(matches!(malformed, Err(Refused::Malformed(_))), "{malformed:?}");
    for bad in [swapped, forged] {
        assert_eq!(gate.admit(at(1), &bad, &SCAN), Err(Refused::Proof));
    }
    assert_eq!(gate.admit(at(16), &code, &SCAN), Err(Refused::Epoch), "its epoch is over");
    // Without codes in the configuration there is none, neither made nor taken.
    let mut plain = crate::town::logged_in(52);
    let town = &mut plain.0;
    let compared = town.pinned().compare(&town.pinned().fingerprint()).unwrap();
    let made = plain.1.holder.code(at(1), &compared, &mut town.rng);
    assert_eq!(made.err(), Some(HolderRefused::NoCodes));
}

#[test]
fn a_session_and_a_code_do_not_mix() {
    let mut gate = Gate::new(53).unwrap();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let sent =
        gate.holder.log_in(at(1), Which::Running, &compared, &NOTHING, &mut gate.rng).unwrap();
    sent.commit(&mut gate.store).unwrap();
    assert_eq!(gate.code(at(2)), Err(HolderRefused::Burnt));
    assert!(gate.code(at(16)).is_ok(), "the next epoch is not burnt");
}

#[test]
fn a_code_is_its_holders_only() {
    let mut gate = Gate::new(54).unwrap();
    let code = gate.code(at(1)).unwrap();
    let challenge = [9; 32];
    let session = code.session(&gate.pinned);
    let signature = gate.holder.connect(session, &challenge).unwrap();
    assert!(code.check_signature(&gate.pinned, &challenge, &signature).is_ok());
    assert!(code.check_signature(&gate.pinned, &[8; 32], &signature).is_err());
}

/// Codes are read before anybody knows whether their epoch is open.
#[test]
fn a_code_for_the_end_of_time_is_refused() {
    let mut gate = Gate::new(56).unwrap();
    let mut code = gate.code(at(1)).unwrap();
    code.login.epoch = Epoch(u64::MAX);
    let tags = code_tags(&gate.pinned, &code, &SCAN);
    assert!(tags.iter().all(|wanted| wanted.epoch == Epoch(u64::MAX)));
    assert_eq!(gate.admit(at(1), &code, &SCAN), Err(Refused::Epoch));
}

/// A shard that may have forgotten tags may have forgotten those of codes.
#[test]
fn a_doubtful_shard_waits_out_codes() {
    let mut gate = Gate::new(55).unwrap();
    let code = gate.code(at(1)).unwrap();
    let copied = gate.store.clone();
    gate.admit(at(1), &code, &SCAN).unwrap();
    for (shard, ledger) in &mut gate.shards {
        *shard = Shard::restore(gate.pinned.clone(), [], Log::Doubtful, at(2))
            .unwrap()
            .commit(ledger)
            .unwrap();
    }
    let mut served = (0..6).filter(|epoch| {
        let now = at(14 + 15 * epoch);
        let mut fresh = copied.clone();
        fresh.retain(|key, _| !key.starts_with(b"shown"));
        gate.friend_logs_in(now, Which::Next, &fresh) != Err(Refused::MayHaveForgotten)
    });
    // The code spent epochs 0 to 3; a login at 14 + 15n is for epoch n + 1.
    assert_eq!(served.next(), Some(3), "epoch {:?} is the first", Epoch(START.0 + 4));
}

/// What two servers do at the same time about one tag, step by step: one about a
/// code, the other about a login of a copy of the pass and its re-up.
struct Race {
    gate: Gate,
    /// The tags that lie elsewhere than the login's.
    elsewhere: Vec<Wanted>,
    code: ProvenCode,
    /// The login's session.
    session: SessionId,
    re_up: Option<ProvenReUp>,
    wanted: Wanted,
    reserved: Option<Reserved>,
    refused: bool,
}

impl Race {
    /// None if the second tag lies where the first one does.
    fn new(seed: u8, now: Time, friend: &mut Holder, mut gate: Gate) -> Option<Race> {
        let code = gate.code(now).unwrap();
        let tags = code_tags(&gate.pinned, &code, &SCAN);
        let home = Gate::shard_of(&tags[0]);
        if Gate::shard_of(&tags[1]) == home {
            return None;
        }
        let CodeLookUp::Unspent(unspent) =
            gate.shards[home].0.look_up_code(now, code, &SCAN).unwrap()
        else {
            panic!("spent, seed {seed}")
        };
        let code = gate.verifier.verify_code(unspent).unwrap();
        let session = SessionId(tags[0].tag);
        gate.logs_in(now, Which::Running, friend).unwrap();
        let sent = friend.re_up(now, &mut gate.rng).unwrap().commit(&mut Ledger::new()).unwrap();
        let sent = ReUp::from_bytes(&sent.bytes).unwrap();
        let Due::Due(due) = gate.shards[home].0.due(now, sent).unwrap() else { panic!("moved") };
        let re_up = verify_re_ups(&gate.pinned, vec![due]).pop().unwrap().unwrap();
        let wanted = re_up.wanted(&gate.pinned);
        let elsewhere = tags.into_iter().filter(|wanted| Gate::shard_of(wanted) != home).collect();
        let (re_up, reserved, refused) = (Some(re_up), None, false);
        Some(Race { gate, elsewhere, code, session, re_up, wanted, reserved, refused })
    }

    fn home(&mut self) -> &mut (Shard, Ledger) {
        &mut self.gate.shards[1 - Gate::shard_of(&self.wanted)]
    }

    fn there(&mut self) -> &mut (Shard, Ledger) {
        &mut self.gate.shards[Gate::shard_of(&self.wanted)]
    }

    /// Hold, admit, release.
    fn code(&mut self, now: Time, step: usize) {
        let elsewhere = self.elsewhere.clone();
        match step {
            0 => {
                let (shard, ledger) = self.there();
                let held = elsewhere.into_iter().map(|wanted| shard.hold_for_code(now, wanted));
                let held: Vec<_> = held.flatten().collect();
                held.into_iter().for_each(|step| step.commit(ledger).unwrap());
            }
            1 => {
                let there = Gate::shard_of(&self.wanted);
                let (shard, _) = &mut self.gate.shards[1 - there];
                let here = |wanted: &Wanted| Gate::shard_of(wanted) != there;
                let admitted = shard.admit(now, &self.code, &SCAN, here);
                assert_eq!(admitted.err(), Some(Refused::Spent), "the login was faster");
            }
            _ => {
                let (shard, ledger) = self.there();
                let given_back = elsewhere.into_iter().map(|wanted| shard.release_for_peer(wanted));
                given_back.for_each(|step| step.commit(ledger).unwrap());
            }
        }
    }

    /// Hold, advance, keep.
    fn re_up(&mut self, now: Time, step: usize) {
        let wanted = self.wanted;
        if self.refused {
            return;
        }
        match step {
            0 => {
                let (shard, ledger) = self.there();
                match shard.hold_for_peer(now, wanted) {
                    Ok(step) => step.commit(ledger).unwrap(),
                    Err(refused) => {
                        assert_eq!(refused, Refused::Spent);
                        self.refused = true;
                        return;
                    }
                }
                self.reserved = self.re_up.take().map(ProvenReUp::dangerous_reserved_elsewhere);
            }
            1 => {
                let reserved = self.reserved.take().unwrap();
                let (shard, ledger) = self.home();
                shard.advance(now, reserved).unwrap().commit(ledger).unwrap();
            }
            _ => {
                let (shard, ledger) = self.there();
                if let Ok(step) = shard.keep_for_peer(wanted) {
                    step.commit(ledger).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_code_gives_back_nothing_that_a_session_holds() {
    let now = at(13);
    let mut raced = 0;
    // Which of six steps are the code's: every way to lay three among three.
    for order in (0_u8..64).filter(|order| order.count_ones() == 3) {
        let seeds = (0..).map(|seed| order.wrapping_add(64 * seed));
        let race = seeds.take(4).find_map(|seed| {
            let gate = Gate::new(seed).unwrap();
            let mut friend = gate.copy(&gate.store.clone());
            Race::new(seed, now, &mut friend, gate)
        });
        let Some(mut race) = race else { continue };
        let copied: Ledger = race.gate.store.clone();
        let (mut code, mut re_up) = (0..3, 0..3);
        for turn in 0..6 {
            if order & (1 << turn) != 0 {
                race.code(now, code.next().unwrap());
            } else {
                race.re_up(now, re_up.next().unwrap());
            }
        }
        // Its session has come to the next epoch: then no copy has another there.
        let session = race.session;
        let epoch = race.home().0.standing(session).unwrap().epoch;
        let mut pass = copied;
        pass.retain(|key, _| !key.starts_with(b"shown"));
        let again = race.gate.friend_logs_in(at(14), Which::Next, &pass);
        assert!(epoch == START || again == Err(Refused::Spent), "order {order:06b}: {again:?}");
        raced += 1;
    }
    assert!(raced > 15, "{raced}");
}
