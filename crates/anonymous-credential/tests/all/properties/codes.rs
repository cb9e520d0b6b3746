//! Login codes: a login and its re-ups, all or none, once.

use crate::support::{AnyError, Ledger, NOTHING, START, at, configuration, pin};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{Holder, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, SessionId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, VoidOutcome, code_tags};
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_anonymous_credential::sessions::{LoginLookUp, ReUpLookUp, ReservedReUp, Shard};
use alpheus_anonymous_credential::verifier::{ProvenCode, ProvenReUp, Verifier, verify_re_ups};
use alpheus_crypto::hash::Digest;
use alpheus_time::Timestamp;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

const SCAN: Digest = Digest([5; 32]);
const OTHER_SCAN: Digest = Digest([6; 32]);

/// A deployment on two shards, whose codes spend three further epochs.
pub(crate) struct Gate {
    pub(crate) pinned: PinnedConfiguration,
    pub(crate) verifier: Verifier,
    pub(crate) shards: [(Shard, Ledger); 2],
    holder: Holder,
    pub(crate) store: Ledger,
    pub(crate) rng: ChaCha20Rng,
}

impl Gate {
    pub(crate) fn new(seed: u8) -> Result<Gate, AnyError> {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        let key = IssuerKey::random(&mut rng)?;
        let mut settings = configuration(&key, Limit::ONE);
        settings.schedule.ahead = 3;
        let pinned = pin(&settings)?;
        let copy = IssuerKey::from_bytes(&key.expose())?;
        let verifier = Verifier::new(copy, pinned.clone())?;
        let shard = || -> Result<(Shard, Ledger), AnyError> {
            let mut ledger = Ledger::new();
            let shard =
                Shard::restore(pinned.clone(), [], StateOrigin::New, at(0))?.commit(&mut ledger)?;
            Ok((shard, ledger))
        };
        let shards = [shard()?, shard()?];
        let (mut books, mut store) = (Ledger::new(), Ledger::new());
        let mut issuer = Issuer::restore(key, pinned.clone(), [], StateOrigin::New, at(0))?
            .commit(&mut books)?;
        let pending =
            PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), &mut rng)?;
        let pending = pending.commit(&mut store)?;
        let answer = issuer
            .issue(Applicant::named(b"ada"), &pending.bytes(), at(0), &mut rng)?
            .commit(&mut books)?;
        let holder = pending.finish(&answer)?.commit(&mut store)?;
        Ok(Gate { pinned, verifier, shards, holder, store, rng })
    }

    pub(crate) fn code(&mut self, now: Timestamp) -> Result<Code, HolderError> {
        let compared = self.pinned.compare(&self.pinned.fingerprint()).unwrap();
        let made = self.holder.code(&compared, now, &mut self.rng)?;
        Ok(Code::from_bytes(&made.commit(&mut self.store).unwrap().bytes).unwrap())
    }

    pub(crate) fn shard_of(wanted: &HoldRequest) -> usize {
        usize::try_from(wanted.tag.shard(2)).unwrap()
    }

    /// Serves a code as a verifier does: look up, verify, hold elsewhere, admit.
    fn admit(&mut self, code: &Code, scan: &Digest, now: Timestamp) -> Result<(), VerifierError> {
        let tags = code_tags(&self.pinned, code, scan);
        let home = Self::shard_of(&tags[0]);
        let (shard, ledger) = &mut self.shards[home];
        let unspent = match shard.look_up_code(code.clone(), scan, now)? {
            CodeLookUp::Same(step) => {
                step.commit(ledger).unwrap();
                return Ok(());
            }
            CodeLookUp::Unspent(unspent) => unspent,
        };
        let proven = self.verifier.verify_code(unspent)?;
        let taken = self.hold(&tags[1..], home, now).and_then(|()| {
            let (shard, ledger) = &mut self.shards[home];
            let here = |wanted: &HoldRequest| Self::shard_of(wanted) == home;
            shard.admit(&proven, scan, now, here).map(|step| step.commit(ledger).unwrap())
        });
        if taken == Err(VerifierError::Spent) {
            let (shard, ledger) = &mut self.shards[home];
            let given_up = shard.void_scan(&tags, scan, now)?.commit(ledger).unwrap();
            let VoidOutcome::Void(held) = given_up else { return Ok(()) };
            for wanted in held.iter().filter(|wanted| Self::shard_of(wanted) != home) {
                let (shard, ledger) = &mut self.shards[Self::shard_of(wanted)];
                shard.release_for_peer(*wanted).commit(ledger).unwrap();
            }
        }
        taken
    }

    fn hold(
        &mut self,
        tags: &[HoldRequest],
        home: usize,
        now: Timestamp,
    ) -> Result<(), VerifierError> {
        for wanted in tags.iter().filter(|wanted| Self::shard_of(wanted) != home) {
            let (shard, ledger) = &mut self.shards[Self::shard_of(wanted)];
            shard.hold_for_code(*wanted, now)?.commit(ledger).unwrap();
        }
        Ok(())
    }

    /// Whether a copy of the pass can log in for an epoch.
    fn friend_logs_in(
        &mut self,
        which: Timing,
        copied: &Ledger,
        now: Timestamp,
    ) -> Result<(), VerifierError> {
        let mut friend = self.copy(copied);
        self.logs_in(which, &mut friend, now)
    }

    pub(crate) fn copy(&self, copied: &Ledger) -> Holder {
        let period = self.holder.period();
        Holder::restore(self.pinned.clone(), period, copied).unwrap().unwrap()
    }

    fn logs_in(
        &mut self,
        which: Timing,
        friend: &mut Holder,
        now: Timestamp,
    ) -> Result<(), VerifierError> {
        let compared = self.pinned.compare(&self.pinned.fingerprint()).unwrap();
        let sent = friend.log_in(which, &compared, &NOTHING, now, &mut self.rng).unwrap();
        let sent = sent.commit(&mut Ledger::new()).unwrap();
        let home = usize::try_from(sent.session.0.shard(2)).unwrap();
        let (shard, ledger) = &mut self.shards[home];
        let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
        match shard.look_up(login, now)? {
            LoginLookUp::Same(step) => drop(step.commit(ledger).unwrap()),
            LoginLookUp::Unspent(login) => {
                let proven = self.verifier.verify(vec![login]).pop().unwrap()?;
                shard.log_in(proven, now)?.commit(ledger).unwrap();
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
    // In its epoch the holder can show it again, also after a restart. It is the same code.
    assert_eq!(gate.code(at(5)).as_ref(), Ok(&code));
    gate.holder.prune().commit(&mut gate.store).unwrap();
    let period = gate.holder.period();
    gate.holder = Holder::restore(gate.pinned.clone(), period, &gate.store).unwrap().unwrap();
    assert_eq!(gate.code(at(6)).as_ref(), Ok(&code));

    assert_eq!(gate.admit(&code, &SCAN, at(2)), Ok(()));
    // The answer was lost: the same gate asks again about the same scan.
    assert_eq!(gate.admit(&code, &SCAN, at(3)), Ok(()));
    // A photograph, at another gate or later at the same one.
    assert_eq!(gate.admit(&code, &OTHER_SCAN, at(3)), Err(VerifierError::Used));
    // A copy of the pass gets none of the code's epochs, but the first one after them.
    for epoch in 0..4 {
        let now = at(2 + 15 * epoch);
        let tried = gate.friend_logs_in(Timing::Running, &copied, now);
        assert_eq!(tried, Err(VerifierError::Spent), "epoch {epoch}");
    }
    assert_eq!(gate.friend_logs_in(Timing::Running, &copied, at(62)), Ok(()));
}

#[test]
fn a_code_spends_all_of_its_tags_or_none() {
    for seed in 60..68 {
        let mut gate = Gate::new(seed).unwrap();
        let copied = gate.store.clone();
        // A friend is faster, in the code's second epoch.
        gate.friend_logs_in(Timing::Next, &copied, at(14)).unwrap();
        let code = gate.code(at(14)).unwrap();
        assert_eq!(gate.admit(&code, &SCAN, at(14)), Err(VerifierError::Spent));
        // Nothing of the code is spent: its first and third epochs are free.
        assert_eq!(gate.friend_logs_in(Timing::Running, &copied, at(14)), Ok(()));
        assert_eq!(gate.friend_logs_in(Timing::Running, &copied, at(31)), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_malformed_or_incomplete_code_is_rejected() {
    let mut gate = Gate::new(51).unwrap();
    let code = gate.code(at(1)).unwrap();
    let mut shorter = code.clone();
    shorter.onward.pop();
    let mut swapped = code.clone();
    swapped.onward.swap(0, 1);
    let mut forged = code.clone();
    forged.onward[2].0 = code.onward[1].0;
    let malformed = gate.admit(&shorter, &SCAN, at(1));
    assert!(matches!(malformed, Err(VerifierError::Malformed(_))), "{malformed:?}");
    for bad in [swapped, forged] {
        assert_eq!(gate.admit(&bad, &SCAN, at(1)), Err(VerifierError::Proof));
    }
    assert_eq!(gate.admit(&code, &SCAN, at(16)), Err(VerifierError::Epoch), "its epoch is over");
    // With `ahead` at 0 no code can be made, and none is accepted.
    let mut plain = crate::properties::town::logged_in(52);
    let town = &mut plain.0;
    let compared = town.pinned().compare(&town.pinned().fingerprint()).unwrap();
    let made = plain.1.holder.code(&compared, at(1), &mut town.rng);
    assert_eq!(made.err(), Some(HolderError::NoCodes));
}

#[test]
fn a_session_and_a_code_exclude_each_other() {
    let mut gate = Gate::new(53).unwrap();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let sent =
        gate.holder.log_in(Timing::Running, &compared, &NOTHING, at(1), &mut gate.rng).unwrap();
    sent.commit(&mut gate.store).unwrap();
    assert_eq!(gate.code(at(2)), Err(HolderError::Burnt));
    assert!(gate.code(at(16)).is_ok(), "the next epoch is not burnt");
}

/// The gateway would learn the code's tags from the client's address. So no message of the code's
/// session reaches it, after a restart of the client either.
#[test]
fn a_code_is_not_sent_as_a_login() {
    let mut gate = Gate::new(57).unwrap();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let code = gate.code(at(1)).unwrap();
    let tags = code.tags(&gate.pinned);
    let mut restored = gate.copy(&gate.store.clone());
    for (epoch, _) in &tags {
        let now = at(2 + 15 * (epoch.0 - START.0));
        for holder in [&mut gate.holder, &mut restored] {
            let login = holder.log_in(Timing::Running, &compared, &NOTHING, now, &mut gate.rng);
            assert_eq!(login.err(), Some(HolderError::Code), "{epoch:?}");
            assert_eq!(holder.resend(*epoch).err(), Some(HolderError::Code), "{epoch:?}");
            assert_eq!(holder.resend_latest(*epoch, now).err(), Some(HolderError::Code));
            let re_up = holder.re_up(now, &mut gate.rng);
            assert!(re_up.is_err(), "{epoch:?}");
        }
    }
    // The pre-login of the first epoch after the code.
    let carried = restored.re_up(at(58), &mut gate.rng).err();
    assert_eq!(carried, Some(HolderError::Code));
    let login = restored.log_in(Timing::Next, &compared, &NOTHING, at(58), &mut gate.rng);
    let sent = login.unwrap().commit(&mut gate.store).unwrap();
    assert!(tags.iter().all(|(_, tag)| sent.session != SessionId(*tag)));
    assert_eq!(sent.epoch, Epoch(START.0 + 4));
    // Nothing of the code outlives its records.
    let mut later = gate.copy(&gate.store.clone());
    let now = at(15 * 20);
    let login = later.log_in(Timing::Running, &compared, &NOTHING, now, &mut gate.rng);
    login.unwrap().commit(&mut gate.store).unwrap();
    later.prune().commit(&mut gate.store).unwrap();
    assert!(gate.store.keys().all(|key| !key.starts_with(b"code")), "{:?}", gate.store.keys());
}

/// Messages that were sent to a gateway are not shown at a gate.
#[test]
fn a_session_that_was_carried_on_is_no_code() {
    let mut gate = Gate::new(58).unwrap();
    let compared = gate.pinned.compare(&gate.pinned.fingerprint()).unwrap();
    let login = gate.holder.log_in(Timing::Running, &compared, &NOTHING, at(1), &mut gate.rng);
    login.unwrap().commit(&mut gate.store).unwrap();
    for epoch in 1..4 {
        let re_up = gate.holder.re_up(at(15 * epoch - 1), &mut gate.rng).unwrap();
        re_up.commit(&mut gate.store).unwrap();
    }
    // A clock that was ahead is corrected: all of the epochs are in the records.
    assert_eq!(gate.code(at(2)), Err(HolderError::Burnt));
}

#[test]
fn only_its_holder_can_sign_for_a_code() {
    let mut gate = Gate::new(54).unwrap();
    let code = gate.code(at(1)).unwrap();
    let challenge = [9; 32];
    let session = code.session(&gate.pinned);
    let signature = gate.holder.connect(session, &challenge).unwrap();
    assert!(code.check_signature(&gate.pinned, &challenge, &signature).is_ok());
    assert!(code.check_signature(&gate.pinned, &[8; 32], &signature).is_err());
}

/// Codes are decoded before anybody checks whether their epoch is open.
#[test]
fn a_code_for_the_last_epoch_number_is_rejected() {
    let mut gate = Gate::new(56).unwrap();
    let mut code = gate.code(at(1)).unwrap();
    code.login.epoch = Epoch(u64::MAX);
    let tags = code_tags(&gate.pinned, &code, &SCAN);
    assert!(tags.iter().all(|wanted| wanted.epoch == Epoch(u64::MAX)));
    assert_eq!(gate.admit(&code, &SCAN, at(1)), Err(VerifierError::Epoch));
}

/// A shard that may have forgotten tags may have forgotten those of codes.
#[test]
fn a_restored_shard_waits_for_as_many_epochs_as_codes_spend() {
    let mut gate = Gate::new(55).unwrap();
    let code = gate.code(at(1)).unwrap();
    let copied = gate.store.clone();
    gate.admit(&code, &SCAN, at(1)).unwrap();
    for (shard, ledger) in &mut gate.shards {
        *shard = Shard::restore(gate.pinned.clone(), [], StateOrigin::Restored, at(2))
            .unwrap()
            .commit(ledger)
            .unwrap();
    }
    let mut served = (0..6).filter(|epoch| {
        let now = at(14 + 15 * epoch);
        let mut fresh = copied.clone();
        fresh.retain(|key, _| !key.starts_with(b"shown") && !key.starts_with(b"code"));
        gate.friend_logs_in(Timing::Next, &fresh, now) != Err(VerifierError::MayHaveForgotten)
    });
    // The code spent epochs 0 to 3. A login at 14 + 15n is for epoch n + 1.
    assert_eq!(served.next(), Some(3), "epoch {:?} is the first", Epoch(START.0 + 4));
}

/// Two servers act on one tag at the same time, step by step. One serves a code, the other a
/// login of a copy of the pass and its re-up.
struct Race {
    gate: Gate,
    /// The tags that are not on the login's shard.
    elsewhere: Vec<HoldRequest>,
    code: ProvenCode,
    /// The login's session.
    session: SessionId,
    re_up: Option<ProvenReUp>,
    wanted: HoldRequest,
    reserved: Option<ReservedReUp>,
    refused: bool,
}

impl Race {
    /// `None` if the second tag is on the first one's shard.
    fn new(seed: u8, friend: &mut Holder, mut gate: Gate, now: Timestamp) -> Option<Race> {
        let code = gate.code(now).unwrap();
        let tags = code_tags(&gate.pinned, &code, &SCAN);
        let home = Gate::shard_of(&tags[0]);
        if Gate::shard_of(&tags[1]) == home {
            return None;
        }
        let CodeLookUp::Unspent(unspent) =
            gate.shards[home].0.look_up_code(code, &SCAN, now).unwrap()
        else {
            panic!("spent, seed {seed}")
        };
        let code = gate.verifier.verify_code(unspent).unwrap();
        let session = SessionId(tags[0].tag);
        gate.logs_in(Timing::Running, friend, now).unwrap();
        let sent = friend.re_up(now, &mut gate.rng).unwrap().commit(&mut Ledger::new()).unwrap();
        let sent = ReUp::from_bytes(&sent.bytes).unwrap();
        let ReUpLookUp::Due(due) = gate.shards[home].0.look_up_re_up(sent, now).unwrap() else {
            panic!("moved")
        };
        let re_up = verify_re_ups(&gate.pinned, vec![due]).pop().unwrap().unwrap();
        let wanted = re_up.hold_request(&gate.pinned);
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
    fn code(&mut self, step: usize, now: Timestamp) {
        let elsewhere = self.elsewhere.clone();
        match step {
            0 => {
                let (shard, ledger) = self.there();
                let held = elsewhere.into_iter().map(|wanted| shard.hold_for_code(wanted, now));
                let held: Vec<_> = held.flatten().collect();
                held.into_iter().for_each(|step| step.commit(ledger).unwrap());
            }
            1 => {
                let there = Gate::shard_of(&self.wanted);
                let (shard, _) = &mut self.gate.shards[1 - there];
                let here = |wanted: &HoldRequest| Gate::shard_of(wanted) != there;
                let admitted = shard.admit(&self.code, &SCAN, now, here);
                assert_eq!(admitted.err(), Some(VerifierError::Spent), "the login was faster");
            }
            _ => {
                let (shard, ledger) = self.there();
                let given_back = elsewhere.into_iter().map(|wanted| shard.release_for_peer(wanted));
                given_back.for_each(|step| step.commit(ledger).unwrap());
            }
        }
    }

    /// Hold, advance, keep.
    fn re_up(&mut self, step: usize, now: Timestamp) {
        let wanted = self.wanted;
        if self.refused {
            return;
        }
        match step {
            0 => {
                let (shard, ledger) = self.there();
                match shard.hold_for_peer(wanted, now) {
                    Ok(step) => step.commit(ledger).unwrap(),
                    Err(refused) => {
                        assert_eq!(refused, VerifierError::Spent);
                        self.refused = true;
                        return;
                    }
                }
                self.reserved = self.re_up.take().map(ProvenReUp::dangerous_reserved_elsewhere);
            }
            1 => {
                let reserved = self.reserved.take().unwrap();
                let (shard, ledger) = self.home();
                shard.advance(reserved, now).unwrap().commit(ledger).unwrap();
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
fn a_rejected_code_releases_nothing_that_a_session_holds() {
    let now = at(13);
    let mut raced = 0;
    // Which three of the six steps are the code's, in every order.
    for order in (0_u8..64).filter(|order| order.count_ones() == 3) {
        let seeds = (0..).map(|seed| order.wrapping_add(64 * seed));
        let race = seeds.take(4).find_map(|seed| {
            let gate = Gate::new(seed).unwrap();
            let mut friend = gate.copy(&gate.store.clone());
            Race::new(seed, &mut friend, gate, now)
        });
        let Some(mut race) = race else { continue };
        let copied: Ledger = race.gate.store.clone();
        let (mut code, mut re_up) = (0..3, 0..3);
        for turn in 0..6 {
            if order & (1 << turn) != 0 {
                race.code(code.next().unwrap(), now);
            } else {
                race.re_up(re_up.next().unwrap(), now);
            }
        }
        // The session has reached the next epoch, so no copy can have another there.
        let session = race.session;
        let epoch = race.home().0.status(session).unwrap().epoch;
        let mut pass = copied;
        pass.retain(|key, _| !key.starts_with(b"shown") && !key.starts_with(b"code"));
        let again = race.gate.friend_logs_in(Timing::Next, &pass, at(14));
        assert!(
            epoch == START || again == Err(VerifierError::Spent),
            "order {order:06b}: {again:?}"
        );
        raced += 1;
    }
    assert!(raced > 15, "{raced}");
}
