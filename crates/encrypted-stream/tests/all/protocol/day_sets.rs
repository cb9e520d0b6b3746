//! Owners who bound the sets of a day, members who withhold tokens so that others refuse, members who say
//! that they have had their sets, and owners whom a host has beside others.

use std::collections::BTreeMap;

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::Outcome;
use alpheus_encrypted_stream::error::{ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage, WindowRefusal};
use alpheus_policy::ids::StreamId;
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::protocol::coordinator::signing_key;
use crate::protocol::identities::certified;
use crate::protocol::net::Net;
use crate::protocol::withdrawals;
use crate::protocol::world::{EPOCH, Setup, after, policy, start, stream_id, window};

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
    if net.outcomes.is_empty() {
        net.timeout(after(number).plus(Span::seconds(3)));
    }
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

/// The liar has opened nothing on that day, so nobody believes that it has had its sets. An honest member that
/// crashed between presence and token would have to pay for it, each day.
#[test]
fn who_has_opened_nothing_on_a_day_shifts_no_blame() {
    let mut net = five_at_midnight(4, None);
    net.sleep_after_presence = vec![1];
    let outcome = close_with_refusal(&mut net, 2);
    assert_eq!((outcome.result.map(drop), outcome.unopened), (refused(1), vec![]));
}

/// A window is closed over streams that the service chooses.
fn close_over(net: &mut Net, number: u64, chosen: fn(u32) -> bool) -> Outcome {
    let mut report = net.world.report(number);
    report.complete.retain(|stream| chosen(stream.position));
    let step = net.coordinator.handle_window_report(&report, after(number));
    net.run(after(number), step);
    if net.outcomes.is_empty() {
        net.timeout(after(number).plus(Span::seconds(3)));
    }
    net.outcomes.pop().unwrap()
}

/// A lone controller's token opens by itself, so nobody sees it open a set. Its tokens say that it does.
#[test]
fn a_lone_controller_opens_the_sets_that_its_day_has_had() {
    let mut net =
        Net::new(Setup { streams_each: 2, windows: 6, sets_per_day: Some(1), ..Setup::new(1) });
    (0..2).for_each(|number| assert!(close(&mut net, number).result.is_ok()));
    assert_eq!(close(&mut net, 2).result.unwrap().outputs, net.world.truth(0..2, 2));
    let outcome = close_over(&mut net, 3, |at| at == 0);
    assert_eq!(outcome.result.map(drop), refused(1));
    assert_eq!(close(&mut net, 4).result.unwrap().outputs, net.world.truth(0..2, 4));
}

/// A restarted service does not know what the day has had. Members that give tokens for M would open M.
#[test]
fn a_restarted_service_learns_the_sets_of_the_day_again() {
    let mut net = five_at_midnight(7, Some(1));
    assert!(close(&mut net, 2).result.is_ok());
    net.restart_service(after(2));
    net.asleep = vec![0];
    let outcome = close(&mut net, 3);
    assert_eq!((outcome.result.map(drop), outcome.unopened), (refused(1), vec![]));
    net.asleep = vec![];
    for number in 4..7 {
        let opened = close(&mut net, number).result.unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..5, number));
    }
}

/// The owner of a stream chooses a policy, for data up to a time.
fn choose(net: &mut Net, number: u32, version: u32, now: Timestamp, choice: &Choice) {
    let stream = stream_id(number);
    let key = net.world.setup.owner_key(stream);
    let mut policy = policy(&Setup { sets_per_day: choice.sets, ..net.world.setup.clone() });
    if choice.is_private {
        policy.attributes[0].alternatives.clear();
    }
    let annotation = Annotation {
        stream,
        owner: certified(&key).id(),
        schema: net.world.schema.id(),
        version,
        valid_from: Timestamp(0),
        valid_to: choice.until,
        metadata: vec![],
        policy,
    };
    let at = net.world.plan.streams[number as usize].controller as usize;
    let signed = Signed::new(&annotation, &key);
    let step = net.controllers[at].annotate(&signed, &certified(&key), now).unwrap();
    step.commit(&mut net.store).unwrap();
    net.controllers[at].note_fenced();
}

/// What an owner chooses.
struct Choice {
    sets: Option<u32>,
    is_private: bool,
    until: Timestamp,
}

impl Choice {
    fn sets(sets: u32) -> Self {
        Self { sets: Some(sets), is_private: false, until: Timestamp::LIMIT }
    }
}

/// On a day without any bound, a set is opened. Then an owner bounds the day by one. The set counts, and it is not
/// refused: the service would name the owner's host for it.
#[test]
fn sets_before_a_choice_count_and_nobody_is_named_for_them() {
    let mut net = five_at_midnight(9, None);
    net.asleep = vec![LIAR];
    assert!(close(&mut net, 2).result.is_ok());
    net.asleep = vec![];
    choose(&mut net, 0, 2, after(2), &Choice::sets(1));
    let outcome = close(&mut net, 3);
    assert_eq!(outcome.result.unwrap().outputs, net.world.truth(1..5, 3), "it is another set");
    // The liar gives no token, so that S is what the morning had, if M had more.
    for number in 4..8 {
        let outcome = close_without_token(&mut net, number);
        assert_eq!(outcome.unopened, []);
        let set: Vec<usize> = outcome.opening_set.unwrap().iter().map(|at| at as usize).collect();
        assert!(set.starts_with(&[0, 1, 2, 3]) || set.starts_with(&[1, 2, 3]), "{set:?}");
        assert_eq!(outcome.result.unwrap().outputs, net.world.truth(set, number));
    }
    // Over the set of the morning the first host opens.
    net.asleep = vec![LIAR];
    assert_eq!(close(&mut net, 8).result.unwrap().outputs, net.world.truth(0..4, 8));
}

/// A host restored from an old copy does not know what its day has had. It is not there for the rest of it, and
/// nobody is named for that.
#[test]
fn a_restored_host_with_a_bound_is_away_for_the_rest_of_the_day() {
    let mut net = five_at_midnight(7, Some(1));
    assert!(close(&mut net, 2).result.is_ok());
    restore_first(&mut net, after(2), |_| true, false);
    choose(&mut net, 0, 1, after(2), &Choice::sets(1));
    for number in 3..7 {
        net.heard.clear();
        let outcome = close(&mut net, number);
        assert_eq!((outcome.result.map(drop), outcome.unopened), (refused(1), vec![]));
        let own = net.heard.iter().filter(|(from, _)| *from == 0);
        let own = own.map(|(_, message)| match message {
            ControllerMessage::WindowRefusal(said) => said.dangerous_unverified().unwrap(),
            other => panic!("{other:?}"),
        });
        let reasons: Vec<WindowRefusalError> = own.map(|said| said.reason).collect();
        assert_eq!(reasons, [WindowRefusalError::CountsAsReleased]);
    }
}

/// The first controller is restored, with those of its streams that it is handed again.
fn restore_first(net: &mut Net, now: Timestamp, held: fn(StreamId) -> bool, with_fence: bool) {
    let host = HostRecords::read(net.store.values(Scope::Host), &net.world.deployment).unwrap();
    let (id, fence) = (net.controllers[0].id(), net.controllers[0].fence());
    let streams = net.world.held(0).into_iter().filter(|own| held(own.stream)).collect();
    let (mut controller, step) = Controller::restore(
        net.world.identity(0),
        net.world.deployment.clone(),
        streams,
        &host,
        net.store.values(Scope::Controller(id)),
        now,
        start(with_fence.then_some(fence)),
    )
    .unwrap();
    step.commit(&mut net.store).unwrap();
    controller.note_fenced();
    net.controllers[0] = controller;
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

/// Two owners at each host. The first bounds its data's sets by one a day, its neighbours by three. The windows up to
/// this one open over all.
fn with_a_strict_owner(first: u64, until: Timestamp) -> Net {
    let mut net = Net::new(Setup {
        streams_each: 2,
        windows: 7,
        sets_per_day: Some(3),
        dropout: Fraction { numerator: 2, denominator: 5 },
        ..Setup::new(5)
    });
    choose(&mut net, 0, 2, Timestamp(EPOCH), &Choice { until, ..Choice::sets(1) });
    for number in 0..=first {
        let opened = close(&mut net, number).result.unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..10, number));
    }
    net
}

/// A service that leaves out that owner in the second window would read it as the difference.
#[test]
fn an_owner_with_a_smaller_bound_than_its_neighbours_is_not_read_in_a_day() {
    let mut net = with_a_strict_owner(2, Timestamp::LIMIT);
    // Its host does not take part, so the sum tells nothing of it.
    let opened = close_over(&mut net, 3, |at| at != 0).result.unwrap();
    assert_eq!(opened.outputs, net.world.truth(2..10, 3));
    // Its neighbour alone has sets left, but what the two have together has been summed.
    assert_eq!(close(&mut net, 4).result.unwrap().outputs, net.world.truth(0..10, 4));
}

/// An owner leaves at a time.
type Leave = fn(&mut Net, Timestamp);

/// What an owner may do, and what may happen to a choice or a host, so that no token covers the stream.
const WAYS_TO_LEAVE: [Leave; 5] = [
    |net, at| {
        choose(net, 0, 3, at, &Choice { sets: None, is_private: true, until: Timestamp::LIMIT });
    },
    // The choice ends.
    |_, _| (),
    |net, at| {
        let step = withdrawals::withdraw(&mut net.controllers[0], at, stream_id(0), false).0;
        step.commit(&mut net.store).unwrap();
    },
    |net, at| {
        let step = withdrawals::withdraw(&mut net.controllers[0], at, stream_id(0), true).0;
        step.commit(&mut net.store).unwrap();
    },
    // The host does not hold the stream any more.
    |net, at| {
        net.controllers[0].note_fenced();
        restore_first(net, at, |stream| stream != stream_id(0), true);
    },
];

/// The bound does not go with its owner: what the day has had is a sum with the owner, and another one without
/// would be the difference. The second day begins with the third window.
#[test]
fn an_owner_who_leaves_during_the_day_is_not_read_either() {
    for (way, leave) in WAYS_TO_LEAVE.into_iter().enumerate() {
        for (first, rest, next_day) in [(0, 1..2, 2..4), (2, 3..6, 6..6)] {
            let at = |seconds| after(first).plus(Span::seconds(seconds));
            let until = if way == 1 { at(1) } else { Timestamp::LIMIT };
            let mut net = with_a_strict_owner(first, until);
            leave(&mut net, at(4));
            for number in rest {
                let opened = close(&mut net, number).result.unwrap();
                assert_eq!(opened.outputs, net.world.truth(2..10, number), "{way}, {number}");
            }
            // An owner who was not there all day binds nobody.
            for number in next_day {
                let opened = close(&mut net, number).result.unwrap();
                assert_eq!(opened.outputs, net.world.truth(1..10, number), "{way}, {number}");
            }
        }
    }
}
