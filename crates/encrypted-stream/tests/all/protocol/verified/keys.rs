//! Members that send keys for pads which others would refuse, keys that age, and clocks that are set
//! back: none of them costs others a window (`docs/protocol.md`, *Keys of a generation*).

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ExclusionError, MessageError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{
    ControllerMessage, MaskKey, Presence, ServiceMessage, Summons,
};
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp};

use super::{advance, gather, longer, now};
use crate::protocol::coordinator::{key_of, signing_key};
use crate::protocol::evil::Evil;
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after, stream_id};

const DAY: u64 = 86_400_000_000;
const LIAR: u32 = 4;

/// The liar's presence with a key of its choice, which it signs properly.
fn lying_presence(net: &Net, change: impl FnOnce(&mut MaskKey)) -> ControllerMessage {
    let summons = net.sent.iter().rev().find_map(|(to, message)| match message {
        ServiceMessage::Summons(summons) if *to == LIAR => Some(summons),
        _ => None,
    });
    let summons: &Signed<Summons> = summons.unwrap();
    let content: Summons = summons.dangerous_unverified().unwrap();
    let signing = signing_key(net, LIAR);
    let mut key = MaskKey {
        plan: net.world.id(),
        controller: LIAR,
        begun: after(0),
        key: AgreementPublic([9; 32]),
    };
    change(&mut key);
    let presence = Presence {
        plan: net.world.id(),
        window: content.window,
        controller: LIAR,
        summons: summons.digest(),
        accepted: content.streams.iter().map(|stream| stream.position).collect(),
        excluded: vec![],
        owners: 1,
        silent: 0,
        mask_key: Some(Signed::new(&key, &signing)),
    };
    ControllerMessage::Presence(Signed::new(&presence, &signing))
}

/// A window of five, whose liar says that, and what the service says to it. The window's time is up
/// then.
fn window_with(change: impl FnOnce(&mut MaskKey)) -> (Net, Result<(), MessageError>) {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    let mut net = Net::new(Setup { dropout, ..Setup::new(5) }.verified());
    net.lost = |to, message| to == LIAR && matches!(message, ServiceMessage::Summons(_));
    net.close(0);
    assert!(net.outcomes.is_empty());
    let presence = lying_presence(&net, change);
    let message = net.coordinator.verify(&presence, LIAR).unwrap();
    let taken = net.coordinator.handle(&message, after(0), &net.world);
    let taken = taken.map(|step| net.run(after(0), step));
    net.timeout(after(0).plus(Span::seconds(3)));
    net.timeout(after(0).plus(Span::seconds(6)));
    (net, taken)
}

/// Each of these keys made every honest member refuse M, in every window, and nobody was named.
#[test]
fn a_key_that_members_would_refuse_leaves_out_its_controller_alone() {
    let hours = |back: u64| Timestamp(after(0).0 - back * DAY / 24);
    let ahead = Timestamp(after(0).0 + 13 * DAY / 24);
    let low = |key: &mut MaskKey| key.key = AgreementPublic([0; 32]);
    let small = Err(MessageError::SmallOrderKey);
    let old = Err(MessageError::KeyOutOfTime);
    let begun = [hours(37), hours(24 * 365), ahead, Timestamp(u64::MAX >> 12)];
    let cases = begun.into_iter().map(|begun| (Some(begun), old)).chain([(None, small)]);
    for (begun, expected) in cases {
        let (net, taken) = window_with(|key| match begun {
            Some(begun) => key.begun = begun,
            None => low(key),
        });
        assert_eq!(taken, expected);
        let outcome = net.outcomes.last().unwrap();
        assert_eq!(outcome.result.as_ref().unwrap().outputs, net.world.truth(0..4, 0));
        assert_eq!(outcome.unopened, []);
        assert_eq!(outcome.excluded.get(&ExclusionError::ControllerAbsent), Some(&1));
    }
}

/// A key that is known ages all the same.
#[test]
fn a_known_key_is_refused_once_it_is_old() {
    let (mut net, taken) = window_with(|key| key.begun = Timestamp(after(0).0 - 36 * DAY / 24));
    assert_eq!(taken, Ok(()));
    let presence = lying_presence(&net, |key| key.begun = Timestamp(after(0).0 - 36 * DAY / 24));
    let message = net.coordinator.verify(&presence, LIAR).unwrap();
    net.close(1);
    let step = net.coordinator.handle(&message, after(1), &net.world);
    assert_eq!(step.map(drop), Err(MessageError::UnknownWindow), "it is of the window before");
    let presence = lying_presence(&net, |key| key.begun = Timestamp(after(0).0 - 36 * DAY / 24));
    let message = net.coordinator.verify(&presence, LIAR).unwrap();
    let step = net.coordinator.handle(&message, after(1), &net.world);
    assert_eq!(step.map(drop), Err(MessageError::KeyOutOfTime));
}

/// The service's time counts, even if it uses another clock for its deadlines.
#[test]
fn keys_are_judged_by_the_time_of_day_not_by_the_clock_of_deadlines() {
    let mut net = Net::new(Setup::new(3).verified());
    net.coordinator.note_clock(after(0));
    let step = net.coordinator.handle_window_report(&net.world.report(0), Timestamp(1));
    let mut presences = 0;
    // Deadlines count from the beginning of time.
    for output in step.commit(&mut net.store).unwrap() {
        let alpheus_encrypted_stream::coordinator::Output::Send { to, message } = output else {
            continue;
        };
        let heard = net.inbox.open(&message).unwrap();
        let said = net.controllers[to as usize].handle(&heard, after(0));
        for answer in said.commit(&mut net.store).unwrap() {
            let message = net.coordinator.verify(&answer, to).unwrap();
            let taken = net.coordinator.handle(&message, Timestamp(1), &net.world);
            assert!(taken.is_ok());
            presences += u32::from(matches!(answer, ControllerMessage::Presence(_)));
        }
    }
    assert_eq!(presences, 3, "a refusal is an answer as well");
}

/// A token of controller 0 under a key of controller 1 that began at that time, and S.
fn token_with_key_of(evil: &mut Evil, begun: Timestamp) -> ServiceMessage {
    let (draft, _) = gather(evil, |_, streams| streams);
    let (at, presence) = (now(evil), draft.members[1].1);
    let honest: MaskKey = evil.mask_keys[&presence].dangerous_unverified().unwrap();
    let key = Signed::new(&MaskKey { begun, ..honest }, &key_of(&evil.world, 1));
    evil.mask_keys.insert(presence, key);
    let message = evil.membership(&draft, 0);
    assert!(matches!(evil.ask(0, at, &message), Ok(ControllerMessage::Token(_))));
    evil.set(&draft, &[0, 1, 2])
}

/// A member whose key is just fresh at the token can delay the opening until it is not, and show another
/// key in the meantime. An honest member must not refuse the opening for it: it would be left out.
#[test]
fn a_key_that_ages_between_token_and_opening_is_no_reason_to_refuse() {
    let mut evil = longer(2, 3, 1, 1);
    let first = Timestamp(now(&evil).0 - 2 * DAY);
    let set = token_with_key_of(&mut evil, first);
    advance(&mut evil);
    let later = now(&evil);
    token_with_key_of(&mut evil, later);
    assert!(evil.ask(0, later, &set).is_ok());
}

/// The age counts at each token, also of a key that is known.
#[test]
fn a_key_that_ages_between_two_tokens_is_refused_at_the_second() {
    let mut evil = longer(2, 3, 1, 1);
    let first = Timestamp(now(&evil).0 - 2 * DAY);
    token_with_key_of(&mut evil, first);
    advance(&mut evil);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let presence = draft.members[1].1;
    let honest: MaskKey = evil.mask_keys[&presence].dangerous_unverified().unwrap();
    let key = Signed::new(&MaskKey { begun: first, ..honest }, &key_of(&evil.world, 1));
    evil.mask_keys.insert(presence, key);
    let (at, message) = (now(&evil), evil.membership(&draft, 0));
    let bad = Err(WindowRefusalError::BadMaskKey { position: 1 });
    assert_eq!(evil.ask(0, at, &message).map(drop), bad);
}

/// The key of controller 0's presence, summoned with no stream.
fn key_at(evil: &mut Evil, at: Timestamp) -> Signed<MaskKey> {
    let digest = evil.presence_at(0, vec![], at).0;
    evil.mask_keys[&digest].clone()
}

/// Consumers read it in receipts. The instant would show when a host was last started.
#[test]
fn a_key_says_no_more_than_the_hour_in_which_it_began() {
    let mut evil = longer(1, 3, 1, 1);
    let at = Timestamp(now(&evil).0 + 5_025_000_007);
    let key: MaskKey = key_at(&mut evil, at).dangerous_unverified().unwrap();
    assert_eq!(key.begun, at.floor(Span::seconds(3_600)));
    assert!(key.begun < at && at < key.begun.plus(Span::seconds(3_600)));
}

/// Keys that an erasure has wiped: the same summons gets another presence, which leads to a token.
#[test]
fn a_presence_whose_keys_are_wiped_is_not_repeated() {
    let mut evil = longer(2, 3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let at = now(&evil);
    let message = evil.membership(&draft, 0);
    assert!(matches!(evil.ask(0, at, &message), Ok(ControllerMessage::Token(_))));
    advance(&mut evil);
    let (draft, accepted) = gather(&mut evil, |_, streams| streams);
    assert_eq!(accepted.len(), 6);
    let at = now(&evil);
    let (step, _) = evil.controllers[0].erase(&stream_id(0), at).unwrap();
    step.commit(&mut evil.store).unwrap();
    let (again, accepted) = gather(&mut evil, |_, streams| streams);
    assert_eq!(accepted.len(), 5);
    assert_ne!(again.members[0].1, draft.members[0].1);
    assert_eq!(again.members[1..], draft.members[1..]);
    let message = evil.membership(&again, 0);
    assert!(matches!(evil.ask(0, at, &message), Ok(ControllerMessage::Token(_))));
}

/// Keys live by what the clock goes forward, however often it is set back.
#[test]
fn a_clock_that_is_set_back_keeps_no_keys_longer() {
    let mut evil = longer(1, 3, 1, 1);
    let (start, hours) = (now(&evil), |hours: u64| Timestamp(after(9).0 + hours * DAY / 24));
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let message = evil.membership(&draft, 0);
    assert!(matches!(evil.ask(0, start, &message), Ok(ControllerMessage::Token(_))));
    let set = evil.set(&draft, &[0, 1, 2]);
    // Four times twenty hours, and back.
    for _ in 0..4 {
        for hour in 0..=20 {
            evil.controllers[0].wipe_settled_keys(hours(hour));
        }
    }
    let gone = Err(WindowRefusalError::KeysGone);
    assert_eq!(evil.ask(0, hours(0), &set).map(drop), gone);
}

/// On a clock that was set back, keys of the future are replaced: the service takes none.
#[test]
fn a_clock_that_is_set_back_far_begins_another_generation() {
    let mut evil = longer(2, 3, 1, 1);
    let at = now(&evil);
    let first = key_at(&mut evil, Timestamp(at.0 + DAY / 2));
    advance(&mut evil);
    assert_ne!(key_at(&mut evil, Timestamp(at.0 + DAY / 3)), first);
}
