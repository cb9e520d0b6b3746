//! Which aggregates may be defined.

use crate::support::{DAY, Ledger, MINUTE, TODAY, Town, at, proposed, signing};
use alpheus_accountable_statistics::configuration::{
    Configuration, ConfigurationError, KeyEpoch, PinnedConfiguration, SmootherId,
};
use alpheus_accountable_statistics::definition::{
    AgreedDefinition, Definition, DefinitionError, Location, ReleaseRule, Turn,
};
use alpheus_accountable_statistics::endorsement::{Endorsed, EndorsementError};
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::role_error::AgreementError;
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_crypto::group::Element;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use proptest::prelude::*;

fn location(path: &str) -> Location {
    Location::try_from(path.to_owned()).unwrap()
}

/// Definitions that overlap `one`, an aggregate of `speed/a/b` from minute 60 to 120.
fn overlapping(one: &Definition) -> Vec<Definition> {
    vec![
        Definition { slots: 25, ..one.clone() },
        Definition { location: location("speed/a"), ..one.clone() },
        Definition { location: location("speed"), ..one.clone() },
        Definition { location: location("speed/a/b/c"), ..one.clone() },
        Definition { start: at(119), end: at(180), ..one.clone() },
        Definition { start: at(30), end: at(61), ..one.clone() },
        Definition { start: at(80), end: at(81), ..one.clone() },
    ]
}

#[test]
fn definitions_overlap_in_location_and_time() {
    let one = Town::new(4, 2, 60).unwrap().definition("speed/a/b", 24).unwrap();
    for two in overlapping(&one) {
        assert!(one.overlaps(&two) && two.overlaps(&one));
    }
    let apart = [
        Definition { location: location("speed/a/bc"), ..one.clone() },
        Definition { location: location("delay/a/b"), ..one.clone() },
        Definition { start: at(120), end: at(180), ..one.clone() },
        Definition { start: at(30), end: at(60), ..one.clone() },
    ];
    for two in apart {
        assert!(!one.overlaps(&two) && !two.overlaps(&one));
    }
}

#[test]
fn overlapping_aggregates_never_both_have_a_quorum() {
    let mut town = Town::new(4, 2, 60).unwrap();
    let one = town.definition("speed/a/b", 24).unwrap();
    // Half of the smoothers are asked for one first, half for the other. The faulty one, 3, signs
    // everything. Only one definition gets three signatures.
    let two = &overlapping(&one)[1];
    let mut signed = [Endorsed::default(), Endorsed::default()];
    for (smoother, first) in town.smoothers.iter_mut().zip([0, 1, 1]) {
        for at in [first, 1 - first] {
            let definition = if at == 0 { &one } else { two };
            match smoother.handle_proposal(&proposed(definition), crate::support::at(1)) {
                Ok(step) => signed[at]
                    .add(smoother.id(), step.commit(&mut crate::support::Ledger::new()).unwrap()),
                Err(why) => assert_eq!(why, AgreementError::Overlaps),
            }
        }
    }
    signed[0].add(SmootherId(3), Signed::new(&one, &signing(3)));
    signed[1].add(SmootherId(3), Signed::new(two, &signing(3)));
    let open = |signed: &Endorsed<Definition>| AgreedDefinition::open(signed, &town.pinned).err();
    assert_eq!(open(&signed[0]), Some(DefinitionError::NotEndorsed(EndorsementError)));
    assert_eq!(open(&signed[1]), None);
    // With the threshold's number of signatures both would count.
    assert_eq!([0, 1].map(|at| signed[at].signatures().count()), [2, 3]);
    // A smoother that signed one adopts the other, which has a quorum.
    assert!(town.smoothers[0].handle_definition(&signed[1]).is_ok());
    assert_eq!(
        town.smoothers[0].handle_definition(&signed[0]).err(),
        Some(open(&signed[0]).unwrap().into())
    );
}

/// A smoother remembers what it has signed, so a definer with many ideas does not fill its disk.
#[test]
fn a_smoother_signs_so_many_definitions_of_a_day() {
    let mut town = Town::new(4, 2, 61).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    // As if it had signed them: what it stores of each is its location and time.
    let claim = |number: u32, start: u64| {
        let name = [b"p".as_slice(), &[7; 28], &number.to_be_bytes()].concat();
        let claimed = (format!("delay/{number}"), at(start), at(start + 1));
        (name, postcard::to_allocvec(&claimed).unwrap())
    };
    let tomorrow = (0..9).map(|number| claim(1 << 20 | number, 24 * 60 + 10));
    town.ledgers[0].extend((1..1 << 16).map(|number| claim(number, 200)).chain(tomorrow));
    town.restart(0, StateOrigin::Intact, at(1)).unwrap();
    let mut propose = |definition: &Definition| {
        let step = town.smoothers[0].handle_proposal(&proposed(definition), at(1));
        step.map(|step| drop(step.commit(&mut town.ledgers[0]).unwrap())).err()
    };
    assert_eq!(propose(&one), None, "the last one");
    let more = Definition { location: location("speed/b"), ..one.clone() };
    assert_eq!(propose(&more), Some(AgreementError::TooMany));
    assert_eq!(propose(&one), None, "it has signed this one before");
}

/// Only what the deployment's definer proposes is signed, and nothing below its limits.
#[test]
fn only_the_definer_defines_and_within_its_limits() {
    use crate::support::configuration;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    let mut town = Town::new(4, 2, 69).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    for by in [0, 200, 202] {
        let signed = Signed::new(&one, &signing(by));
        let refusal = town.smoothers[0].handle_proposal(&signed, at(1)).err();
        assert_eq!(refusal, Some(AgreementError::NotProposed));
    }
    let mut rng = ChaCha20Rng::from_seed([69; 32]);
    let keys: Vec<IssuerKey> = (0..=4).map(|_| IssuerKey::random(&mut rng).unwrap()).collect();
    let operator = signing(200);
    let check = |change: &dyn Fn(&mut Configuration), definition: &Definition| {
        let mut configuration = configuration(4, 2, &keys).unwrap();
        change(&mut configuration);
        let signed = Signed::new(&configuration, &operator);
        let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key()).unwrap();
        let deployment = pinned.fingerprint();
        Definition { deployment, ..definition.clone() }.check(&pinned).err()
    };
    assert_eq!(check(&|_| {}, &one), None);
    assert_eq!(check(&|c| c.limits.min_accounts = 3, &one), Some(DefinitionError::Crowd));
    let after = |minutes| check(&|c| c.limits.max_closing = Span(minutes * MINUTE), &one);
    assert_eq!([after(91), after(90)], [None, Some(DefinitionError::Time)]);
    // One account has three presentations for each of four keepers; at three turns two for each
    // slot.
    let wasteful = |c: &mut Configuration| c.limits.wasteful_accounts = 1;
    let slots = |slots| Definition { slots, clients: slots, ..one.clone() };
    assert_eq!(check(&wasteful, &slots(119)), Some(DefinitionError::Wasteful));
    assert_eq!(check(&wasteful, &slots(120)), None, "5 % are 6");
    // Sums that no table reads.
    let wide = |highest, square, slots| Definition {
        interval: Interval::new(0, highest, square).unwrap(),
        slots,
        clients: slots,
        ..one.clone()
    };
    let table = |c: &mut Configuration| c.limits.table_bits = 20;
    assert_eq!(check(&table, &wide(100_000, true, 3000)), None, "the city's");
    assert_eq!(check(&table, &wide(100_000, true, 12_000)), Some(DefinitionError::Unreadable));
    let all = (1 << 32) - 1;
    assert_eq!(check(&table, &wide(all, false, 1000)), None);
    assert_eq!(check(&table, &wide(all, false, 4000)), Some(DefinitionError::Unreadable));
    assert_eq!(check(&table, &wide(all, true, 24)), Some(DefinitionError::Unreadable));
    let mean = Definition { rule: ReleaseRule::Mean { grain: 1, resolution: 1 }, ..one.clone() };
    assert_eq!(check(&|_| {}, &mean), Some(DefinitionError::Squares));
}

/// Accounts pool their presentations: those that faulty smoothers leave unspent in one entry pay
/// for another.
#[test]
fn a_crowd_exceeds_what_its_accounts_can_fill_together() {
    let town = Town::new(4, 2, 59).unwrap();
    let slots = |quota, accounts| town.pinned.max_slots_of_accounts(quota, accounts);
    assert_eq!([slots(1, 1), slots(1, 2), slots(1, 100)], [1, 3, 150]);
    assert_eq!([slots(3, 1), slots(3, 2), slots(3, 100)], [4, 9, 450]);
    let mut one = town.definition("speed/a", 24).unwrap();
    (one.quota, one.accounts, one.clients) = (1.try_into().unwrap(), 3, 40);
    let mut endorsed = Endorsed::default();
    (0..3).for_each(|by| endorsed.add(SmootherId(by.into()), Signed::new(&one, &signing(by))));
    // Two accounts can fill three slots: four samples are the minimum.
    assert_eq!(AgreedDefinition::open(&endorsed, &town.pinned).unwrap().crowd(), 4);
}

#[test]
fn a_definitions_signature_is_returned_again() {
    let mut town = Town::new(4, 2, 61).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    let two = Definition { slots: 23, expected: 23, ..one.clone() };
    let first = town.smoothers[0]
        .handle_proposal(&proposed(&one), at(1))
        .unwrap()
        .commit(&mut town.ledgers[0])
        .unwrap();
    town.restart(0, alpheus_crypto::ledger::StateOrigin::Intact, at(2)).unwrap();
    assert_eq!(
        town.smoothers[0].handle_proposal(&proposed(&two), at(2)).err(),
        Some(AgreementError::Overlaps)
    );
    let again = town.smoothers[0]
        .handle_proposal(&proposed(&one), at(2))
        .unwrap()
        .commit(&mut town.ledgers[0])
        .unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_definition_is_signed_before_its_start_and_under_its_days_key() {
    let mut town = Town::new(4, 2, 62).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    let mut define = |now, definition: &Definition| {
        town.smoothers[0].handle_proposal(&proposed(definition), now).err()
    };
    assert_eq!(define(at(60), &one), Some(AgreementError::Time));
    assert_eq!(define(at(61), &one), Some(AgreementError::Time));
    assert_eq!(define(Timestamp(at(1).0 - 2 * DAY), &one), Some(AgreementError::Time), "not yet");
    let other = ThresholdKey(Element::second_base());
    assert_eq!(
        define(at(1), &Definition { key: other, ..one.clone() }),
        Some(AgreementError::OtherKey)
    );
    let shifted = Definition {
        start: Timestamp(one.start.0 + DAY),
        end: Timestamp(one.end.0 + DAY),
        key_epoch: KeyEpoch(TODAY + 1),
        ..one.clone()
    };
    assert_eq!(define(at(1), &shifted), Some(AgreementError::OtherKey), "no key of tomorrow yet");
    assert_eq!(define(at(1), &one), None);
}

#[test]
fn definitions_that_hide_nothing_are_rejected() {
    let town = Town::new(4, 2, 63).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    let check = |change: &dyn Fn(&mut Definition)| {
        let mut definition = one.clone();
        change(&mut definition);
        definition.check(&town.pinned).err()
    };
    assert_eq!(check(&|_| {}), None);
    let slots = Some(DefinitionError::Slots);
    assert_eq!(check(&|d| d.expected = 25), slots, "more samples than slots");
    assert_eq!(check(&|d| d.clients = 10), None, "24 is 0.8 of 30");
    assert_eq!(check(&|d| d.clients = 9), slots, "volunteers could not fill it");
    assert_eq!(check(&|d| (d.slots, d.expected) = (0, 0)), slots);
    assert_eq!(check(&|d| d.slots = 1_000_001), slots);
    let crowd = Some(DefinitionError::Crowd);
    assert_eq!(check(&|d| d.accounts = 1), crowd);
    assert_eq!(check(&|d| d.accounts = 6), None, "3·5·3/2 + 1 = 23");
    assert_eq!(check(&|d| d.accounts = 7), crowd, "3·6·3/2 + 1 = 28");
    let time = Some(DefinitionError::Time);
    assert_eq!(check(&|d| d.end = d.start), time);
    assert_eq!(check(&|d| d.end = Timestamp(d.end.0 + DAY)), time, "beyond its day");
    assert_eq!(check(&|d| d.key_epoch = KeyEpoch(TODAY + 1)), time);
    assert_eq!(check(&|d| d.closing.turn = Span(0)), time);
    assert_eq!(check(&|d| d.closing.turns = 1), time, "one keeper may be faulty");
    assert_eq!(check(&|d| d.during = 1), time);
    assert_eq!(check(&|d| d.closing.settling = Span(0)), time);
    assert_eq!(check(&|d| d.closing.patience = Span(u64::MAX)), time);
    let mean = |grain, resolution| {
        check(&|d| {
            (d.accounts, d.rule) = (6, ReleaseRule::Mean { grain, resolution });
            d.interval = Interval::new(0, 100, false).unwrap();
        })
    };
    let fine = Some(DefinitionError::Grain);
    assert_eq!([mean(0, 1), mean(1, 0), mean(1, 24), mean(2, 47)], [fine; 4]);
    assert_eq!([mean(1, 1), mean(1, 23), mean(2, 46)], [None; 3], "at least 23 samples");
    let other = alpheus_crypto::hash::Digest([0; 32]);
    assert_eq!(check(&|d| d.deployment = other), Some(DefinitionError::Deployment));
}

#[test]
fn turns_follow_the_interval() {
    let town = Town::new(1, 1, 64).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    let turn = |time: Timestamp| one.turn(time).map(|turn| turn.0);
    let grants = |time: Timestamp| one.granting(time).map(|turn| turn.0);
    let before = |minutes: u64| Timestamp(at(minutes).0 - 1);
    assert_eq!([before(60), at(60), before(90)].map(turn), [None, Some(0), Some(0)]);
    assert_eq!([at(90), before(120), at(120)].map(turn), [Some(1), Some(1), Some(2)]);
    assert_eq!([before(130), at(130), before(150)].map(turn), [Some(2), Some(3), Some(4)]);
    assert_eq!(turn(at(150)), None);
    assert_eq!([at(60), at(82), at(83)].map(grants), [Some(0), Some(0), None]);
    assert_eq!([at(90), at(112), at(113)].map(grants), [Some(1), Some(1), None]);
    assert_eq!([at(120), at(127), at(128)].map(grants), [Some(2), Some(2), None]);
    assert!(!one.fills(Turn(1)) && one.fills(Turn(2)));
    assert_eq!((one.filled(), one.release(), one.deadline()), (at(150), at(151), at(211)));
    // A length that no number of turns divides.
    let odd = Definition { end: Timestamp(at(60).0 + 10), during: 4, ..one };
    let turns: Vec<u16> =
        (0..10).filter_map(|n| odd.turn(Timestamp(at(60).0 + n))).map(|t| t.0).collect();
    assert_eq!(turns, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    // Each slot has another keeper at the next turn.
    let town = Town::new(4, 2, 64).unwrap();
    let mut endorsed = Endorsed::default();
    let one = town.definition("speed/a", 24).unwrap();
    (0..3).for_each(|by| endorsed.add(SmootherId(by.into()), Signed::new(&one, &signing(by))));
    let agreed = AgreedDefinition::open(&endorsed, &town.pinned).unwrap();
    for slot in 0..24 {
        let keepers = [0, 1, 2, 3].map(|turn| agreed.keeper(&town.pinned, slot, Turn(turn)));
        let mut sorted = keepers;
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3].map(SmootherId));
    }
}

#[test]
fn endorsements_count_smoothers_and_not_signatures() {
    let town = Town::new(4, 2, 65).unwrap();
    let one = town.definition("speed/a", 24).unwrap();
    let mut endorsed = Endorsed::default();
    endorsed.add(SmootherId(0), Signed::new(&one, &signing(0)));
    endorsed.add(SmootherId(0), Signed::new(&one, &signing(0)));
    endorsed.add(SmootherId(1), Signed::new(&one, &signing(0)));
    endorsed.add(SmootherId(9), Signed::new(&one, &signing(1)));
    endorsed.add(SmootherId(2), Signed::new(&Definition { slots: 20, ..one.clone() }, &signing(2)));
    assert_eq!(endorsed.open(&town.pinned, 2).err(), Some(EndorsementError));
    endorsed.add(SmootherId(3), Signed::new(&one, &signing(3)));
    assert!(endorsed.open(&town.pinned, 2).is_ok());
    assert_eq!(endorsed.open(&town.pinned, 3).err(), Some(EndorsementError));
}

/// A day's key is used with a quorum's signatures on one card, and not with a threshold's.
#[test]
fn a_key_is_used_once_a_quorum_has_signed_its_card() {
    let mut town = Town::new(4, 2, 58).unwrap();
    let (table, day) = (Ledger::new(), KeyEpoch(TODAY));
    let (mut fresh, _) = town.smoother_of(0, &table, StateOrigin::New, at(0)).unwrap();
    let card = |attempt| Card { key_epoch: day, attempt, key: town.shared.clone() };
    let by = |signed: &[(u8, u32)]| {
        let mut cards = Endorsed::default();
        for (id, attempt) in signed {
            cards.add(SmootherId((*id).into()), Signed::new(&card(*attempt), &signing(*id)));
        }
        cards
    };
    let definition = proposed(&town.definition("speed/a", 24).unwrap());
    for few in [by(&[(0, 0)]), by(&[(0, 0), (1, 0)]), by(&[(0, 0), (1, 0), (2, 1)])] {
        let refused = fresh.handle_card(&few, None).err();
        assert_eq!(refused, Some(AgreementError::OtherKey));
        assert_eq!(fresh.handle_proposal(&definition, at(1)).err(), Some(AgreementError::OtherKey));
    }
    let learnt = fresh.handle_card(&by(&[(0, 0), (1, 0), (2, 0)]), None).unwrap();
    learnt.commit(&mut town.ledgers[0]).unwrap();
    assert!(fresh.handle_proposal(&definition, at(1)).is_ok());
}

#[test]
fn configurations_that_one_party_could_break_are_rejected() {
    use crate::support::configuration;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    let mut rng = ChaCha20Rng::from_seed([66; 32]);
    let keys: Vec<IssuerKey> = (0..=4).map(|_| IssuerKey::random(&mut rng).unwrap()).collect();
    let operator = signing(200);
    let open = |change: &dyn Fn(&mut Configuration)| {
        let mut one = configuration(4, 2, &keys).unwrap();
        change(&mut one);
        PinnedConfiguration::open(&Signed::new(&one, &operator), &operator.verifying_key()).err()
    };
    assert_eq!(open(&|_| {}), None);
    assert_eq!(open(&|c| c.threshold = 3), Some(ConfigurationError::Smoothers));
    assert_eq!(open(&|c| c.threshold = 0), Some(ConfigurationError::Smoothers));
    assert_eq!(
        open(&|c| c.smoothers[1].key = c.smoothers[0].key),
        Some(ConfigurationError::SameKey)
    );
    assert_eq!(open(&|c| c.aggregator = c.smoothers[0].key), Some(ConfigurationError::SameKey));
    let shared = |c: &mut Configuration| c.smoothers[1].slots = c.smoothers[0].slots.clone();
    assert_eq!(open(&shared), Some(ConfigurationError::SameKey));
    let uploads = |c: &mut Configuration| c.uploads = c.smoothers[0].slots.clone();
    assert_eq!(open(&uploads), Some(ConfigurationError::SameKey));
    assert_eq!(open(&|c| c.tolerance = 101), Some(ConfigurationError::Bounds));
    assert_eq!(open(&|c| c.days.length = Span(0)), Some(ConfigurationError::Bounds));
    assert_eq!(open(&|c| c.deployment = [2; 32]), Some(ConfigurationError::OtherCredential));
    let signed = Signed::new(&configuration(4, 2, &keys).unwrap(), &signing(1));
    assert!(PinnedConfiguration::open(&signed, &operator.verifying_key()).is_err());
}

/// Two quorums share as many smoothers as the threshold, and the honest ones are a quorum.
/// Everything depends on that.
#[test]
fn quorums_intersect_and_can_be_reached() {
    use crate::support::configuration;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    let mut rng = ChaCha20Rng::from_seed([67; 32]);
    let keys: Vec<IssuerKey> = (0..=12).map(|_| IssuerKey::random(&mut rng).unwrap()).collect();
    let operator = signing(200);
    for n in 1..=12_u8 {
        for t in 1..=u16::from(n).div_ceil(3) {
            let signed = Signed::new(&configuration(n, t, &keys).unwrap(), &operator);
            let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key()).unwrap();
            let (n, t, q) = (usize::from(n), usize::from(t), pinned.quorum());
            assert!(2 * q >= n + t, "two quorums share t");
            assert!(n - pinned.faulty() >= q, "the others are enough");
            let most = pinned.max_slots_of_accounts(3, 1);
            assert!(most >= 3 && most <= 3 * (n - t + 1) as u64);
            assert_eq!(pinned.max_missing(1000), 50);
        }
    }
}

proptest! {
    #[test]
    fn locations_overlap_exactly_if_one_contains_the_other(a in "[a-c](/[a-c]){0,3}", b in "[a-c](/[a-c]){0,3}") {
        let (x, y) = (location(&a), location(&b));
        let inside = |outer: &str, inner: &str| outer == inner || inner.starts_with(&format!("{outer}/"));
        prop_assert_eq!(x.overlaps(&y), inside(&a, &b) || inside(&b, &a));
        prop_assert_eq!(x.overlaps(&y), y.overlaps(&x));
    }

    #[test]
    fn only_canonical_paths_are_locations(path in "[ -~]{0,12}") {
        let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.');
        let dots = |part: &str| part.chars().all(|c| c == '.');
        let good = path.split('/').all(|part| !dots(part) && part.chars().all(plain));
        prop_assert_eq!(Location::try_from(path).is_ok(), good);
    }
}

#[test]
fn a_days_key_is_destroyed_when_its_aggregates_are_over() {
    let mut town = Town::new(4, 2, 68).unwrap();
    let mut late = town.definition("speed/a", 24).unwrap();
    (late.start, late.end) = (at(23 * 60), at(24 * 60));
    let agreed = town.define(&late).unwrap();
    let secret = |town: &Town| town.ledgers[0].keys().any(|key| key[0] == b'k');
    let poll = |town: &mut Town, now| {
        let _ = town.smoothers[0].poll(now).commit(&mut town.ledgers[0]).unwrap();
        secret(town)
    };
    assert!(poll(&mut town, at(24 * 60)), "an aggregate of the day is open");
    assert!(poll(&mut town, Timestamp(agreed.deadline().0 - MINUTE)));
    assert!(!poll(&mut town, agreed.deadline()));
}
