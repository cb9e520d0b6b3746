//! Controllers that give tokens and refuse their openings.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::coordinator::{Outcome, WindowResult, Withholders};
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage, WindowRefusal};
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp, Window};
use std::collections::BTreeMap;

use crate::protocol::coordinator::signing_key;
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, World, after, window};

const WITHHOLDER: u32 = 2;

/// Closes a window in which the withholder refuses its opening, if it is in S.
fn ruin(net: &mut Net, number: u64) -> Outcome {
    net.lost = |to, message| to == WITHHOLDER && matches!(message, ServiceMessage::OpeningSet(_));
    net.sent.clear();
    net.close(number);
    let set = net.sent.iter().find_map(|(to, message)| match message {
        ServiceMessage::OpeningSet(set) if *to == WITHHOLDER => Some(set.digest()),
        _ => None,
    });
    if let Some(about) = set {
        let refusal = WindowRefusal {
            plan: net.world.id(),
            window: window(number),
            controller: net.world.plan.roster[WITHHOLDER as usize],
            about,
            reason: WindowRefusalError::PolicyChanged,
        };
        let refusal = Signed::new(&refusal, &signing_key(net, WITHHOLDER));
        let refusal = ControllerMessage::WindowRefusal(refusal);
        let message = net.coordinator.verify(&refusal, WITHHOLDER).unwrap();
        let step = net.coordinator.handle(&message, after(number), &net.world).unwrap();
        net.run(after(number), step);
    }
    net.outcomes.pop().unwrap()
}

/// Five controllers, of which three open a window.
fn five(windows: u64) -> Net {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Net::new(Setup { windows, dropout, ..Setup::new(5) })
}

#[test]
fn who_refuses_each_opening_ruins_ever_fewer_windows_and_is_named() {
    let mut net = five(40);
    let mut failed = Vec::new();
    for number in 0..40 {
        let outcome = ruin(&mut net, number);
        match &outcome.result {
            Ok(opened) => {
                assert_eq!(opened.outputs, net.world.truth([0, 1, 3, 4], number));
                assert_eq!(outcome.excluded.get(&ExclusionError::ControllerAbsent), Some(&1));
                assert_eq!(outcome.unopened, []);
            }
            Err(reason) => {
                let refused = ReleaseError::ControllerRefused(WindowRefusalError::PolicyChanged);
                assert_eq!(*reason, refused);
                assert_eq!(outcome.unopened, [net.world.plan.roster[WITHHOLDER as usize]]);
                failed.push(number);
            }
        }
    }
    // Left out of one, four, and then sixteen windows.
    assert_eq!(failed, [0, 2, 7, 24]);
}

#[test]
fn who_sends_no_opening_until_the_window_is_given_up_is_named() {
    let mut net = five(3);
    net.lost = |to, message| to == WITHHOLDER && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    net.timeout(after(0).plus(Span::seconds(2 * 24 * 3600)));
    let outcome = net.outcomes.pop().unwrap();
    assert_eq!(outcome.result, Err(ReleaseError::OpeningLost));
    assert_eq!(outcome.unopened, [net.world.plan.roster[WITHHOLDER as usize]]);
    net.close(1);
    assert!(net.outcomes.pop().unwrap().result.is_ok(), "the next window opens without it");
}

/// Three homes and one colluder: a window needs all three.
#[test]
fn who_is_needed_is_asked_all_the_same() {
    let mut net = Net::new(Setup { alpha: Fraction::THIRD, minimum: 2, ..Setup::new(3) });
    assert!(ruin(&mut net, 0).result.is_err());
    net.lost = |_, _| false;
    net.close(1);
    let outcome = net.outcomes.pop().unwrap();
    assert_eq!(outcome.result.unwrap().members, 3);
}

/// The share of windows that one controller can ruin, whatever it does: it refuses so many times in
/// a row, and then opens so many windows.
#[test]
fn no_strategy_ruins_more_than_a_few_of_a_hundred_windows() {
    let world = World::new(Setup::new(3));
    let windows = 20_000;
    for refusals in [1, 2, 3, 6, 1_000_000] {
        for good in [0, 1, 16, 63, 64, 65, 128] {
            let (mut withholders, mut ruined) = (Withholders::default(), 0);
            let (mut in_a_row, mut opened) = (0, 0);
            for number in 0..windows {
                let window = window(number);
                if withholders.left_out(window.start).contains(&world.plan.roster[1]) {
                    continue;
                }
                let refuses = in_a_row < refusals;
                if refuses {
                    (in_a_row, ruined) = (in_a_row + 1, ruined + 1);
                } else {
                    opened += 1;
                    if opened >= good {
                        (in_a_row, opened) = (0, 0);
                    }
                }
                let result = if refuses { Err(ReleaseError::OpeningLost) } else { Ok(OPENED) };
                let unopened = world.plan.roster[1..].iter().take(usize::from(refuses));
                let outcome = Outcome {
                    window,
                    result,
                    excluded: BTreeMap::new(),
                    unreported: None,
                    refused: BTreeMap::new(),
                    unopened: unopened.copied().collect(),
                    opening_set: Some(RosterSet::full(3)),
                    faults: vec![],
                    silent: vec![],
                };
                withholders.note(&world.plan, &outcome);
            }
            assert!(ruined * 60 < windows, "{ruined} of {windows}: {refusals}, then {good}");
        }
    }
}

/// On how many of so many days a member that opens the first window of each day, and then gives no token, ruins the
/// rest: all others have had their one set. It waits for so many windows first.
fn ruined_days(hour: u64, patient: u64) -> (u64, u64) {
    let (world, days) = (World::new(Setup::new(3)), 400);
    let (mut withholders, mut ruined) = (Withholders::default(), 0);
    let each = 24 * 3_600 / hour;
    for day in 0..days {
        let at = |number: u64| Timestamp((day * 86_400 + number * hour) * 1_000_000);
        if withholders.left_out(at(0)).contains(&world.plan.roster[1]) {
            continue;
        }
        ruined += 1;
        for number in 0..each {
            let lacks = number > patient;
            let reason = WindowRefusalError::TooManySets { limit: 1 };
            let refused = Err(ReleaseError::ControllerRefused(reason));
            let outcome = Outcome {
                window: Window { start: at(number), end: at(number + 1) },
                result: if lacks { refused } else { Ok(OPENED) },
                excluded: BTreeMap::new(),
                unreported: None,
                refused: BTreeMap::new(),
                unopened: world.plan.roster[1..].iter().take(usize::from(lacks)).copied().collect(),
                opening_set: (!lacks).then(|| RosterSet::full(3)),
                faults: vec![],
                silent: vec![],
            };
            withholders.note(&world.plan, &outcome);
        }
    }
    (ruined, days)
}

/// Where each has one set a day, a member that is in the first one can end all later windows of the day. So it is in
/// no first one for days.
#[test]
fn who_uses_up_the_sets_of_a_day_is_left_out_of_the_first_windows_of_days() {
    for (window, patient) in [(60, 0), (60, 100), (3_600, 0), (3_600, 12), (6 * 3_600, 0)] {
        let (ruined, days) = ruined_days(window, patient);
        assert!(ruined * 14 < days, "{ruined} of {days}: windows of {window} s");
    }
}

const OPENED: WindowResult = WindowResult {
    left_out: 0,
    outputs: Vec::new(),
    sealed: None,
    population: 0,
    silent: 0,
    members: 3,
    windows: 0,
    lost: 0,
    receipt: None,
    bounded: None,
};

/// Five controllers of which four must answer, and two that are present and give no tokens.
#[test]
fn who_gives_no_token_is_named_if_too_few_did_and_windows_open_without_it() {
    let dropout = Fraction { numerator: 1, denominator: 5 };
    let mut net = Net::new(Setup { windows: 6, dropout, ..Setup::new(5) });
    net.lost = |to, message| to >= 3 && matches!(message, ServiceMessage::Membership { .. });
    let mut opened = Vec::new();
    for number in 0..6 {
        net.close(number);
        for seconds in [3, 6, 9] {
            if net.outcomes.is_empty() {
                net.timeout(after(number).plus(Span::seconds(seconds)));
            }
        }
        let outcome = net.outcomes.pop().unwrap();
        opened.push(outcome.result.is_ok());
        if let Err(reason) = outcome.result {
            assert!(matches!(reason, ReleaseError::QuorumLost { .. }), "{reason}");
            assert_eq!(outcome.unopened, net.world.plan.roster[3..], "window {number}");
        }
    }
    // They are left out of one window, and of four.
    assert_eq!(opened, [false, true, false, true, true, true]);
}
