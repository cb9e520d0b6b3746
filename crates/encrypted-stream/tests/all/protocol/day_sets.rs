//! Owners who bound the sets of a day, members who withhold tokens so that others refuse, members who say
//! that they have had their sets, and owners whom a host has beside others.

use std::collections::BTreeMap;

use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::coordinator::Outcome;
use alpheus_encrypted_stream::error::{ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage, WindowRefusal};
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::protocol::coordinator::signing_key;
use crate::protocol::identities::certified;
use crate::protocol::net::Net;
use crate::protocol::world::{EPOCH, Setup, after, policy, stream_id, window};

/// The member that misbehaves.
const LIAR: u32 = 4;

/// Five controllers, of which three open a window.
fn five(windows: u64, sets_per_day: Option<u32>) -> Net {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Net::new(Setup { windows, dropout, sets_per_day, ..Setup::new(5) })
}

/// The same, once the first day is over: the third window begins at midnight.
fn five_at_midnight(windows: u64, sets_per_day: Option<u32>) -> Net {
    let mut net = five(windows, sets_per_day);
    (0..2).for_each(|number| assert!(close(&mut net, number).result.is_ok()));
    net
}

/// Closes a window and lets its time pass.
fn close(net: &mut Net, number: u64) -> Outcome {
    net.close(number);
    for seconds in [3, 6, 9] {
        if net.outcomes.is_empty() {
            net.timeout(after(number).plus(Span::seconds(seconds)));
        }
    }
    net.outcomes.pop().unwrap()
}

/// The same, while the liar gives a presence and no token.
fn close_without_token(net: &mut Net, number: u64) -> Outcome {
    net.lost = |to, message| to == LIAR && matches!(message, ServiceMessage::Membership { .. });
    let outcome = close(net, number);
    net.lost = |_, _| false;
    outcome
}

fn refused(limit: u32) -> Result<(), ReleaseError> {
    Err(ReleaseError::ControllerRefused(WindowRefusalError::TooManySets { limit }))
}

/// The first day has the set of all. Then a token is withheld: the set without its member is one too many for
/// the others, who refused, and were left out in its place.
#[test]
fn who_withholds_tokens_is_left_out_and_not_those_whose_sets_are_used_up() {
    let mut net = five(12, Some(1));
    assert!(close(&mut net, 0).result.is_ok());
    let outcome = close_without_token(&mut net, 1);
    assert_eq!(outcome.result.map(drop), refused(1));
    assert_eq!(outcome.unopened, [net.world.plan.roster[LIAR as usize]]);
    // The next day begins. The liar is left out of its first window, whose set is the day's.
    for number in 2..12 {
        let outcome = close_without_token(&mut net, number);
        let opened = outcome.result.unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..4, number), "window {number}");
        assert_eq!(outcome.unopened, []);
    }
}

/// A set that would be refused is not asked for: each opening would use up one of its giver's.
#[test]
fn a_set_that_a_member_is_known_to_refuse_is_not_asked_for() {
    let mut net = five_at_midnight(7, Some(1));
    assert!(close(&mut net, 2).result.is_ok());
    assert_eq!(close_without_token(&mut net, 3).result.map(drop), refused(1));
    let asked = |net: &Net| {
        let sets = net.sent.iter();
        sets.filter(|(_, message)| matches!(message, ServiceMessage::OpeningSet(_))).count()
    };
    net.sent.clear();
    // The others state their bounds in place of a token, now that the liar is left out.
    let outcome = close_without_token(&mut net, 4);
    assert_eq!((outcome.result.map(drop), outcome.unopened), (refused(1), vec![]));
    // It is needed for the only set that the day has had, so it is asked in spite of all.
    let outcome = close_without_token(&mut net, 5);
    assert_eq!(outcome.result.map(drop), refused(1));
    assert_eq!(outcome.unopened, [net.world.plan.roster[LIAR as usize]]);
    assert_eq!(asked(&net), 0);
    // Once it gives its tokens, the day goes on.
    assert_eq!(close(&mut net, 6).result.unwrap().outputs, net.world.truth(0..5, 6));
}

/// The liar refuses S, and says that it has had its sets.
fn close_with_refusal(net: &mut Net, number: u64) -> Outcome {
    net.lost = |to, message| to == LIAR && matches!(message, ServiceMessage::OpeningSet(_));
    net.sent.clear();
    net.close(number);
    let set = net.sent.iter().find_map(|(to, message)| match message {
        ServiceMessage::OpeningSet(set) if *to == LIAR => Some(set.digest()),
        _ => None,
    });
    if let Some(about) = set {
        let refusal = WindowRefusal {
            plan: net.world.id(),
            window: window(number),
            controller: net.world.plan.roster[LIAR as usize],
            about,
            reason: WindowRefusalError::TooManySets { limit: 1 },
        };
        let refusal = Signed::new(&refusal, &signing_key(net, LIAR));
        let refusal = ControllerMessage::WindowRefusal(refusal);
        let message = net.coordinator.verify(&refusal, LIAR).unwrap();
        let step = net.coordinator.handle(&message, after(number), &net.world).unwrap();
        net.run(after(number), step);
    }
    net.outcomes.pop().unwrap()
}

/// Nobody can tell at first. Then it is in sets that it has opened, and in no other.
#[test]
fn who_says_falsely_that_it_has_had_its_sets_ruins_a_window_a_day() {
    let mut net = five_at_midnight(10, None);
    assert_eq!(close_with_refusal(&mut net, 2).result.map(drop), refused(1));
    for number in 3..10 {
        let outcome = close_with_refusal(&mut net, number);
        let opened = outcome.result.unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..4, number), "window {number}");
    }
}

#[test]
fn who_refuses_a_set_that_it_has_opened_on_that_day_is_named() {
    let mut net = five_at_midnight(5, None);
    assert!(close(&mut net, 2).result.is_ok());
    let outcome = close_with_refusal(&mut net, 3);
    assert_eq!(outcome.result.map(drop), refused(1));
    assert_eq!(outcome.unopened, [net.world.plan.roster[LIAR as usize]]);
}

/// Seeded days: members are away, and one withholds tokens as it likes. No other is ever said to
/// have ruined a window, and what opens is the truth.
#[test]
fn no_honest_member_is_left_out_for_its_bound_whatever_the_others_do() {
    let mut tally: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..24_u64 {
        let mut dice = ChaCha20Rng::seed_from_u64(seed);
        let mut below = |most: u32| dice.next_u32() % most;
        let mut net = five(16, Some(1 + below(3)));
        for number in 0..16 {
            net.asleep = if below(3) == 0 { vec![below(4)] } else { vec![] };
            let outcome = match below(2) {
                0 => close_without_token(&mut net, number),
                _ => close(&mut net, number),
            };
            let liar = net.world.plan.roster[LIAR as usize];
            assert!(outcome.unopened.iter().all(|id| *id == liar), "{seed}, window {number}");
            *tally.entry("named").or_default() += u32::from(!outcome.unopened.is_empty());
            match outcome.result {
                Ok(opened) => {
                    let set = outcome.opening_set.unwrap();
                    let members = set.iter().map(|at| at as usize);
                    assert_eq!(opened.outputs, net.world.truth(members, number), "{seed}");
                    *tally.entry("opened").or_default() += 1;
                }
                Err(_) => *tally.entry("lost").or_default() += 1,
            }
        }
    }
    assert!(tally["named"] > 20 && tally["opened"] > 150, "{tally:?}");
}

/// Two owners at each host. The first bounds its data's sets by one a day, its neighbours by three. A service that
/// leaves out that owner in the second window would read it as the difference.
#[test]
fn an_owner_with_a_smaller_bound_than_its_neighbours_is_not_read_in_a_day() {
    let mut net = Net::new(Setup {
        streams_each: 2,
        windows: 6,
        sets_per_day: Some(3),
        dropout: Fraction { numerator: 2, denominator: 5 },
        ..Setup::new(5)
    });
    let strict = policy(&Setup { sets_per_day: Some(1), ..net.world.setup.clone() });
    let stream = stream_id(0);
    let signed = net.world.annotate(stream, 2, strict);
    let owner = certified(&net.world.setup.owner_key(stream));
    let step = net.controllers[0].annotate(&signed, &owner, Timestamp(EPOCH)).unwrap();
    step.commit(&mut net.store).unwrap();
    for number in 0..3 {
        let opened = close(&mut net, number).result.unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..10, number));
    }
    let mut report = net.world.report(3);
    report.complete.retain(|stream| stream.position != 0);
    let step = net.coordinator.handle_window_report(&report, after(3));
    net.run(after(3), step);
    net.timeout(after(3).plus(Span::seconds(3)));
    // Its host does not take part, so the sum tells nothing of it.
    let opened = net.outcomes.pop().unwrap().result.unwrap();
    assert_eq!(opened.outputs, net.world.truth(2..10, 3));
    // Its neighbour alone has sets left, but what the two have together has been summed.
    assert_eq!(close(&mut net, 4).result.unwrap().outputs, net.world.truth(0..10, 4));
}
