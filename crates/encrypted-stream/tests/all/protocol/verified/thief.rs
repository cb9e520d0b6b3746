//! Somebody who kept a receipt, and later steals keys (`docs/protocol.md`, *Keys of a generation*).

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::mask::generation::{Generation, RoundKeys, pair_key};
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Storage, WindowMembers};
use alpheus_encrypted_stream::messages::{
    Closing, ControllerMessage, MaskKey, Membership, Opening, OpeningSet, Retirement,
    ServiceMessage, Token, WindowOutcome,
};
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp};

use super::{advance, gather, long, longer, now, receipt, truth, whole};
use crate::protocol::coordinator::key_of;
use crate::protocol::evil::{Draft, Evil};
use crate::protocol::identities::{keys_of, other_keys};
use crate::protocol::world::{after, stream_id};

const DAY: Span = Span::seconds(86_400);

/// What a thief has of a member: the seed of its keys for life, and its memory if it took that too.
struct Loot {
    position: u32,
    seed: u8,
    memory: Option<Generation>,
}

impl Loot {
    /// A member's keys for life, and the generation that it began with.
    fn with_memory(evil: &Evil, position: u32) -> Self {
        let seed = evil.world.seats[position as usize].0;
        Self { position, seed, memory: Some(keys_of(seed).advance()) }
    }

    /// Keys for life, and what else lies around: a generation of another start.
    fn without_memory(evil: &Evil, position: u32) -> Self {
        let memory = Some(other_keys().advance());
        Self { memory, ..Self::with_memory(evil, position) }
    }

    fn life(&self, label: &str) -> Secret<32> {
        derive::<32>(Secret::from_bytes([self.seed; 32]).expose(), label, &[])
    }

    /// The keys of the pads that this member shares, as the thief computes them: `theirs` are the
    /// keys in M.
    fn keys(&self, plan: PlanId, theirs: &[AgreementPublic], life: &PairKeys) -> Option<RoundKeys> {
        let memory = self.memory.as_ref()?;
        let agreement = memory.agreement(&plan);
        let renewed = life.renewed(|position, key| {
            let agreed = agreement.agree(&theirs[position as usize]).map_err(drop)?;
            Ok::<_, ()>(pair_key(key, &agreed))
        });
        let own = memory.own_key(&self.life(labels::IDENTITY_OWN), &plan);
        Some(RoundKeys::new(renewed.ok()??, own))
    }

    /// What the thief computes of the member: its owners' window sum, if the keys fit.
    fn opens(&self, evil: &Evil, receipt: &Receipt) -> Vec<u64> {
        let (roster, plan) = (evil.world.announced.agreement(), evil.world.id());
        let key = AgreementKey::from_seed(&self.life(labels::IDENTITY_AGREEMENT));
        let pairs = || PairKeys::agree(&key, roster, self.position, Storage::Compact).unwrap();
        let own = OwnKey::new(&self.life(labels::IDENTITY_OWN), &plan);
        let mut masker = Masker::new(evil.world.announced.plan(), pairs(), own).unwrap();
        let membership: Membership = receipt.membership.dangerous_unverified().unwrap();
        let public = |signed: &Signed<MaskKey>| signed.dangerous_unverified().unwrap().key;
        let theirs: Vec<_> = membership.mask_keys.iter().map(public).collect();
        let round = WindowMembers {
            window: whole(),
            members: &membership.members,
            membership: receipt.membership.digest(),
            pickers: &[],
        };
        let share = &receipt.shares[self.position as usize];
        let token: Token = share.token.dangerous_unverified().unwrap();
        let opening: Opening = share.opening.as_ref().unwrap().dangerous_unverified().unwrap();
        let set = receipt.opening_set.as_ref().unwrap();
        let opened: OpeningSet = set.dangerous_unverified().unwrap();
        let keys = self.keys(plan, &theirs, &pairs());
        let (keys, zeros) = (keys.as_ref(), vec![0; token.words.len()]);
        let masks = masker.token_with(keys, &round, zeros).unwrap();
        let bound = (&opened.set, &set.digest());
        let others = masker.opening_with(keys, &round, bound, masks.len()).unwrap();
        // The self-mask is in both, and needs no key.
        let less = |a: &[u64], b: &[u64]| -> Vec<u64> {
            a.iter().zip(b).map(|(a, b)| a.wrapping_sub(*b)).collect()
        };
        less(&less(&token.words, &opening.words), &less(&masks, &others))
    }
}

/// A receipt of three members, kept by somebody.
fn kept() -> (Evil, Draft, Receipt) {
    let mut evil = long(3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let kept = receipt(&mut evil, &draft, &[0, 1, 2]);
    (evil, draft, kept)
}

/// Everything that could open it must be gone: with the memory of the window's generation it opens.
#[test]
fn keys_for_life_open_no_receipt_without_the_memory_of_its_generation() {
    let (evil, _, kept) = kept();
    assert_eq!(Loot::with_memory(&evil, 1).opens(&evil, &kept), truth(&evil, &[2, 3]));
    assert_ne!(Loot::without_memory(&evil, 1).opens(&evil, &kept), truth(&evil, &[2, 3]));
    let of_life = Loot { memory: None, ..Loot::with_memory(&evil, 1) };
    assert_ne!(of_life.opens(&evil, &kept), truth(&evil, &[2, 3]));
}

/// The thief comes after an owner has had their stream erased, and takes all that the controller has: its keys for life,
/// and the memory that it goes on with.
#[test]
fn a_kept_receipt_does_not_open_once_a_stream_in_it_is_erased() {
    let (mut evil, _, kept) = kept();
    let (seed, plan) = (evil.world.seats[1].0, evil.world.id());
    let mut source = keys_of(seed);
    let (before, left) = (source.advance(), source.advance());
    let key_of = |memory: &Generation| memory.agreement(&plan).public();
    let next = |evil: &mut Evil| {
        let at = now(evil);
        let digest = evil.presence_at(1, vec![], at).0;
        evil.mask_keys[&digest].dangerous_unverified().unwrap().key
    };
    assert_eq!(Loot::with_memory(&evil, 1).opens(&evil, &kept), truth(&evil, &[2, 3]));
    let (step, _) = evil.controllers[1].erase(&stream_id(2), after(9)).unwrap();
    step.commit(&mut evil.store).unwrap();
    evil.report.window = evil.world.plan.window_at(whole().end);
    let shown = next(&mut evil);
    assert_eq!((shown == key_of(&left), shown == key_of(&before)), (true, false));
    let loot = Loot { memory: Some(left), ..Loot::with_memory(&evil, 1) };
    assert_ne!(loot.opens(&evil, &kept), truth(&evil, &[2, 3]));
}

/// Whether controller 0 still has the keys of the window: it repeats a token only then.
fn repeats(evil: &mut Evil, draft: &Draft, now: Timestamp) -> Result<(), WindowRefusalError> {
    let message = evil.membership(draft, 0);
    evil.ask(0, now, &message).map(drop)
}

/// A window whose tokens are sent and that has no opening yet. Controller 0 was asked about its
/// second stream only.
fn between() -> (Evil, Draft, ServiceMessage) {
    let mut evil = long(3, 2, 1);
    let asked = |p: u32| usize::from(p == 0);
    let (draft, _) = gather(&mut evil, |p, streams| streams.into_iter().skip(asked(p)).collect());
    for p in 0..3 {
        let message = evil.membership(&draft, p);
        assert!(matches!(evil.ask(p, after(9), &message), Ok(ControllerMessage::Token(_))));
    }
    let set = evil.set(&draft, &[0, 1, 2]);
    (evil, draft, set)
}

/// A window whose tokens are sent, after another one, of the same plan and day, that both streams of controller 0
/// were in. In this one it was asked about its second stream only.
fn second_between() -> (Evil, Draft, ServiceMessage) {
    let mut evil = longer(2, 3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let _ = receipt(&mut evil, &draft, &[0, 1, 2]);
    advance(&mut evil);
    let asked = |p: u32| usize::from(p == 0);
    let (draft, _) = gather(&mut evil, |p, streams| streams.into_iter().skip(asked(p)).collect());
    for p in 0..3 {
        let (at, message) = (now(&evil), evil.membership(&draft, p));
        assert!(matches!(evil.ask(p, at, &message), Ok(ControllerMessage::Token(_))));
    }
    let set = evil.set(&draft, &[0, 1, 2]);
    (evil, draft, set)
}

/// Also of windows that the erased stream is not in, if it was in another one under the same keys.
#[test]
fn an_erasure_and_a_restart_wipe_the_keys_of_windows_under_way() {
    for erased in [true, false] {
        let (mut evil, draft, set) = second_between();
        let at = now(&evil);
        assert_eq!(repeats(&mut evil, &draft, at), Ok(()));
        if erased {
            let (step, _) = evil.controllers[0].erase(&stream_id(0), at).unwrap();
            step.commit(&mut evil.store).unwrap();
        } else {
            evil.start_again(at);
        }
        assert_eq!(repeats(&mut evil, &draft, at), Err(WindowRefusalError::KeysGone));
        assert_eq!(evil.ask(0, at, &set).map(drop), Err(WindowRefusalError::KeysGone));
        assert!(evil.ask(1, at, &set).is_ok());
        // It takes part in the next window, with another key.
        let first = evil.mask_keys[&draft.members[0].1].clone();
        assert_ne!(next_key(&mut evil, Timestamp(at.0 + DAY.0 / 2)), first);
    }
}

/// An owner whose stream was in no token has nothing there that the keys would open. Erasing it costs
/// others no window.
#[test]
fn an_erasure_of_a_stream_that_was_in_no_token_leaves_windows_alone() {
    let (mut evil, draft, set) = between();
    let (step, _) = evil.controllers[0].erase(&stream_id(0), after(9)).unwrap();
    step.commit(&mut evil.store).unwrap();
    assert_eq!(repeats(&mut evil, &draft, after(9)), Ok(()));
    assert!(evil.ask(0, after(9), &set).is_ok());
}

/// The plan of the first tokens ends, and a stream is erased. When the generation began that another plan's
/// next window gets its keys from, and when the stream was erased.
fn begun_after_an_end(erased: u32) -> (Timestamp, Timestamp) {
    let (mut evil, _, _) = between();
    let at = |hours: u64| after(9).plus(Span::seconds(3_600 * hours));
    let retirement = Retirement { plan: evil.world.id() };
    let retirement = ServiceMessage::Retirement(Signed::new(&retirement, &evil.world.service));
    evil.say(0, at(1), &retirement);
    let (step, _) = evil.controllers[0].erase(&stream_id(erased), at(2)).unwrap();
    step.commit(&mut evil.store).unwrap();
    let window = evil.world.plan.window_at(whole().end);
    let mut plan = Plan { nonce: [9; 16], from: window.start, ..evil.world.plan.clone() };
    plan.streams.retain(|planned| planned.stream != stream_id(erased));
    evil.world.take_over(plan);
    let announcement = evil.world.announcement();
    let answer = evil.say(0, at(3), &announcement);
    assert!(matches!(answer, Some(ControllerMessage::Acceptance(_))), "{answer:?}");
    evil.report.window = window;
    let (digest, _) = evil.presence_at(0, vec![], at(3));
    let key: MaskKey = evil.mask_keys[&digest].dangerous_unverified().unwrap();
    (key.begun, at(2))
}

/// The keys of a plan that has ended are gone, but what they came from gives them again. Controller 0 made a token
/// over its second stream only.
#[test]
fn an_erasure_after_the_plan_has_ended_wipes_what_its_keys_came_from() {
    let (begun, erased) = begun_after_an_end(1);
    assert!(begun > erased, "the keys of before could be made again");
    let (begun, erased) = begun_after_an_end(0);
    assert!(begun < erased, "no token was over the erased stream");
}

#[test]
fn a_generation_lasts_a_day_and_until_its_windows_are_closed_but_two_days_more_at_most() {
    let late = |days: u64| Timestamp(after(9).0 + days * DAY.0);
    // Open windows keep it.
    let (mut evil, draft, set) = between();
    assert_eq!(repeats(&mut evil, &draft, Timestamp(late(3).0 - 1)), Ok(()));
    assert!(evil.ask(0, Timestamp(late(3).0 - 1), &set).is_ok());
    let (mut evil, draft, set) = between();
    assert_eq!(repeats(&mut evil, &draft, late(3)), Err(WindowRefusalError::KeysGone));
    assert_eq!(evil.ask(0, late(3), &set).map(drop), Err(WindowRefusalError::KeysGone));
    // A host that hears nothing wipes as well.
    let (mut evil, _, set) = between();
    evil.controllers[0].wipe_settled_keys(late(3));
    assert_eq!(evil.ask(0, after(9), &set).map(drop), Err(WindowRefusalError::KeysGone));
}

/// The key of the window that the controller would be asked about next.
fn next_key(evil: &mut Evil, now: Timestamp) -> Signed<MaskKey> {
    let streams = evil.streams(0);
    evil.report.window.start = evil.report.window.end;
    let end = evil.report.window.start.0 + (whole().end.0 - whole().start.0);
    evil.report.window.end = Timestamp(end);
    let (digest, _) = evil.presence_at(0, streams, now);
    evil.mask_keys[&digest].clone()
}

#[test]
fn windows_of_a_day_share_a_key_and_the_next_day_has_another() {
    let (mut evil, draft, kept) = kept();
    let first = evil.mask_keys[&draft.members[0].1].clone();
    let outcome = WindowOutcome::Opened { population: 6 };
    let closing = Closing { plan: evil.world.id(), window: whole(), outcome };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    evil.say(0, after(9), &closing);
    let soon = Timestamp(after(9).0 + DAY.0 - 1);
    assert_eq!(next_key(&mut evil, soon), first);
    assert_ne!(next_key(&mut evil, Timestamp(soon.0 + 1)), first);
    // The thief comes now, and takes what the controller has.
    let mut source = keys_of(evil.world.seats[0].0);
    let (_, memory) = (source.advance(), Some(source.advance()));
    let loot = Loot { memory, ..Loot::with_memory(&evil, 0) };
    assert_ne!(loot.opens(&evil, &kept), truth(&evil, &[0, 1]));
}

/// M with another list of keys, for controller 0.
fn with_keys(
    evil: &Evil,
    draft: &Draft,
    change: impl Fn(&mut Vec<Signed<MaskKey>>),
) -> ServiceMessage {
    let ServiceMessage::Membership { membership, proof } = evil.membership(draft, 0) else {
        unreachable!()
    };
    let mut content: Membership = membership.dangerous_unverified().unwrap();
    change(&mut content.mask_keys);
    let membership = Signed::new(&content, &evil.world.service);
    ServiceMessage::Membership { membership, proof }
}

#[test]
fn keys_that_members_did_not_sign_for_the_plan_and_lately_are_refused() {
    let mut evil = long(3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let bad = |position| Err(WindowRefusalError::BadMaskKey { position });
    let signing = key_of(&evil.world, 1);
    let honest: MaskKey = evil.mask_keys[&draft.members[1].1].dangerous_unverified().unwrap();
    let changed = |change: &dyn Fn(&mut MaskKey)| {
        let mut key = honest;
        change(&mut key);
        Signed::new(&key, &signing)
    };
    let by_service = Signed::new(&honest, &evil.world.service);
    let old = changed(&|key| key.begun = Timestamp(after(9).0 - 2 * DAY.0 - 1));
    let later = changed(&|key| key.begun = Timestamp(after(9).0 + DAY.0 + 1));
    let other_plan = changed(&|key| key.plan = PlanId([9; 32]));
    let small = changed(&|key| key.key = AgreementPublic([0; 32]));
    let other_place = changed(&|key| key.controller = 2);
    for key in [by_service, old, later, other_plan, other_place, small] {
        let message = with_keys(&evil, &draft, |keys| keys[1] = key.clone());
        assert_eq!(evil.ask(0, after(9), &message).map(drop), bad(1));
    }
    let swapped = with_keys(&evil, &draft, |keys| keys.swap(1, 2));
    assert_eq!(evil.ask(0, after(9), &swapped).map(drop), bad(1));
    // Its own is another than its presence has.
    let own = with_keys(&evil, &draft, |keys| keys[0] = keys[1].clone());
    assert_eq!(evil.ask(0, after(9), &own).map(drop), bad(0));
    let none = with_keys(&evil, &draft, Vec::clear);
    assert_eq!(evil.ask(0, after(9), &none).map(drop), bad(0));
    assert_eq!(repeats(&mut evil, &draft, after(9)), Ok(()));
}

/// Members that were shown different valid keys of one member have pads that do not cancel.
#[test]
fn members_with_different_lists_open_nothing() {
    let mut evil = long(3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let honest: MaskKey = evil.mask_keys[&draft.members[1].1].dangerous_unverified().unwrap();
    let earlier = MaskKey { begun: Timestamp(honest.begun.0 - 1), ..honest };
    let earlier = Signed::new(&earlier, &key_of(&evil.world, 1));
    let shown = with_keys(&evil, &draft, |keys| keys[1] = earlier.clone());
    assert!(evil.ask(0, after(9), &shown).is_ok());
    // Controller 0 has one M for the window, ever. It is not the one that the others have.
    assert_eq!(repeats(&mut evil, &draft, after(9)), Err(WindowRefusalError::AlreadySpent));
    let set = evil.set(&draft, &[0, 1, 2]);
    assert_eq!(evil.ask(0, after(9), &set).map(drop), Err(WindowRefusalError::OtherMembership));
}
