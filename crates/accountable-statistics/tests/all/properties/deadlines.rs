//! `deadline` says when `poll` next has something to do, and until then it has nothing to do.

use crate::properties::helpers::people;
use crate::support::{DAY, Ledger, TODAY, Town, at, generate, signing};
use alpheus_accountable_statistics::aggregator::Node;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::Location;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::role_error::AgreementError;
use alpheus_accountable_statistics::tally::{Counter, Tally, TallyDefinition};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

fn before(time: Timestamp) -> Timestamp {
    Timestamp(time.0 - 1)
}

/// The end of an aggregate, of what is remembered of yesterday, of the day, and of what is remembered
/// of it.
#[test]
fn a_smoother_polls_only_at_its_deadlines() {
    let mut town = Town::new(4, 2, 201).unwrap();
    let definition = town.definition("speed/a", 8).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut person = people(&mut town, 1).remove(0);
    town.upload(&mut person, &agreed, at(70), Contribution::Sample(5)).unwrap();
    let smoother = &mut town.smoothers[0];
    assert!(smoother.deadline() < Some(at(70)), "earlier days are pruned at the first poll");
    assert!(!smoother.poll(at(70)).dangerous_changes().is_empty());
    let mut deadlines = Vec::new();
    for _ in 0..4 {
        let due = smoother.deadline().unwrap();
        assert!(smoother.poll(before(due)).dangerous_changes().is_empty(), "{due:?}");
        assert_eq!(smoother.deadline(), Some(due));
        assert!(!smoother.poll(due).dangerous_changes().is_empty(), "{due:?}");
        deadlines.push(due);
    }
    let day = 24 * 60;
    assert_eq!(deadlines, [agreed.deadline(), at(360), at(day), at(day + 360)]);
}

/// A quorum's certificate of a key may arrive at any time, and again; somebody who still has the
/// share may hand it over with it.
#[test]
fn a_destroyed_share_never_comes_back() {
    let mut town = Town::new(4, 2, 205).unwrap();
    let epoch = KeyEpoch(TODAY);
    let card = Card { key_epoch: epoch, attempt: 0, key: town.shared.clone() };
    let mut cards = Endorsed::default();
    (0..4).for_each(|id: u8| cards.add(SmootherId(id.into()), Signed::new(&card, &signing(id))));
    let share = || generate(&town.pinned).unwrap().1.remove(0);
    let secret = *share().expose().expose();
    let holds =
        |ledger: &Ledger| ledger.values().any(|value| value.windows(32).any(|part| part == secret));
    let (smoother, ledger) = (&mut town.smoothers[0], &mut town.ledgers[0]);
    assert!(holds(ledger));
    let _ = smoother.poll(at(24 * 60)).commit(ledger).unwrap();
    assert!(!holds(ledger), "the day is over");
    let again = smoother.handle_card(&cards, Some(share())).unwrap();
    again.commit(ledger).unwrap();
    assert!(!holds(ledger));
    let signed = smoother.sign_card(epoch, 1, town.shared.clone(), Some(share()));
    assert_eq!(signed.err(), Some(AgreementError::OtherKey));
    // Nor after a restart.
    let (smoother, step) =
        town.smoother_of(0, &town.ledgers[0], StateOrigin::Intact, at(24 * 60)).unwrap();
    step.commit(&mut town.ledgers[0]).unwrap();
    town.smoothers[0] = smoother;
    let again = town.smoothers[0].handle_card(&cards, Some(share())).unwrap();
    again.commit(&mut town.ledgers[0]).unwrap();
    assert!(!holds(&town.ledgers[0]));
}

#[test]
fn a_smoother_that_sits_out_has_nothing_to_end() {
    let mut town = Town::new(4, 2, 202).unwrap();
    let definition = town.definition("speed/a", 8).unwrap();
    town.define(&definition).unwrap();
    town.restart(0, alpheus_crypto::ledger::StateOrigin::Restored, at(70)).unwrap();
    let smoother = &mut town.smoothers[0];
    let _ = smoother.poll(at(70));
    assert_eq!(smoother.deadline(), Some(at(360)));
}

#[test]
fn an_aggregator_polls_only_at_its_deadline() {
    let mut town = Town::new(4, 2, 203).unwrap();
    assert_eq!(town.aggregator.0.deadline(), None);
    let definition = town.definition("speed/a", 8).unwrap();
    let agreed = town.define(&definition).unwrap();
    let (aggregator, _) = &mut town.aggregator;
    let due = aggregator.deadline().unwrap();
    assert_eq!(due, agreed.deadline().plus(agreed.closing.patience));
    assert!(aggregator.poll(before(due)).dangerous_changes().is_empty());
    assert!(!aggregator.poll(due).dangerous_changes().is_empty());
    assert_eq!(aggregator.deadline(), None);
}

#[test]
fn a_count_polls_only_at_its_close() {
    let town = Town::new(1, 1, 204).unwrap();
    let definition = TallyDefinition {
        deployment: town.pinned.fingerprint(),
        location: Location::try_from("park/gate".to_owned()).unwrap(),
        start: at(60),
        end: at(120),
        closes: at(180),
        min_count: 1,
    };
    let tally = Tally::open(&Signed::new(&definition, &town.operator), &town.pinned).unwrap();
    let mut counter = Counter::restore(tally, &town.pinned, Node::ALONE, []).unwrap();
    assert_eq!(counter.deadline(), Some(at(180)));
    assert!(counter.poll(before(at(180))).dangerous_changes().is_empty());
    assert!(!counter.poll(at(180)).dangerous_changes().is_empty());
    assert_eq!(counter.deadline(), None);
    assert!(Tally::open(&Signed::new(&definition, &signing(1)), &town.pinned).is_err());
}

/// A period has seven days. Credentials issued in one are forgotten two periods later.
#[test]
fn a_registrar_polls_when_a_period_begins() {
    let mut town = Town::new(1, 1, 205).unwrap();
    people(&mut town, 1);
    let (registrar, _) = &mut town.registrar;
    assert_eq!(registrar.deadline(), Some(at(0)));
    let week = 7 * DAY;
    let first = TODAY * DAY / week;
    let begins = |period: u64| Timestamp((first + period) * week);
    assert!(registrar.poll(at(0)).dangerous_changes().is_empty());
    for (period, forgets) in [(1, false), (2, true), (3, false)] {
        assert_eq!(registrar.deadline(), Some(begins(period)));
        assert!(registrar.poll(before(begins(period))).dangerous_changes().is_empty());
        let changes = registrar.poll(begins(period)).dangerous_changes();
        assert_eq!(!changes.is_empty(), forgets, "{period}");
    }
}
