//! Running totals over their life: dropped early, after restarts, with shares that were
//! lost, with owners who join late.

use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::error::{Failure, Refused};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, Stamped};
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage};
use alpheus_policy::budget::{Horizon, Mechanism, share_variance};
use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_policy::time::{Span, Timestamp};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

use crate::evil::{Draft, Evil};
use crate::net::Net;
use crate::noise::{Noise, four};
use crate::simulation::{CALM, STORM, TREASON, WINDOWS, simulate_in};
use crate::totals::Known;
use crate::world::{GRACE, Memory, Setup, WINDOW, after, window};

/// Whose budgets hold so many such queries, but only one at a time.
fn totals(windows: u32, queries: u64, setup: Setup) -> Setup {
    let noise = Some(Noise::totals(windows, queries, 2_500_000));
    Setup { noise, windows: windows.into(), ..setup }
}

/// Ends the plan, and asks again from a later window on.
fn dropped(net: &mut Net, at: u64, again: u64) {
    let step = net.coordinator.retire();
    net.run(after(at), step);
    net.take_over(net.plan_again(77, window(again).start));
    let step = net.coordinator.announce();
    net.run(after(at), step);
}

/// A query that is dropped gives the time back that it has told nothing of, also after a
/// restart: the next one runs. What it has cost stays charged.
#[test]
fn a_query_that_is_dropped_frees_the_time_after() {
    for restart in [false, true] {
        let mut net = Net::new(totals(8, 2, four(8, 1)));
        (0..3).for_each(|number| net.close(number));
        let owner = net.world.plan.streams[0].owner;
        let rho = |net: &Net| net.controllers[0].accounts().account(owner, 0).unwrap().total().rho;
        let before = rho(&net);
        dropped(&mut net, 2, 4);
        if restart {
            net.restore_controllers(after(3), true);
        }
        assert_eq!(rho(&net), before);
        (4..6).for_each(|number| net.close(number));
        for outcome in &net.outcomes[3..] {
            assert!(outcome.result.is_ok(), "{restart} {outcome:?}");
        }
        assert_eq!(rho(&net).0, 2 * before.0, "and the second costs as much again");
    }
}

/// The same where budgets are by period: no later one is touched by a query that ended.
#[test]
fn a_query_that_is_dropped_frees_periods_after() {
    let period = Span(4 * WINDOW.0);
    let unit = PrivacyUnit::PersonPerPeriod(period);
    let mut noise = Noise::totals(12, 1, 2_500_000);
    noise.budget = Budget { unit, ..noise.budget };
    noise.mechanism = Mechanism::Matrix(Horizon { windows: 12, touched: 5 });
    let setup = Setup { noise: Some(noise), windows: 12, ..four(12, 1) };
    let mut net = Net::new(setup);
    net.close(0);
    assert!(net.outcomes[0].result.is_ok(), "{:?}", net.outcomes[0]);
    let first = (1..9).find(|at| window(*at).start.0.is_multiple_of(period.0)).unwrap();
    dropped(&mut net, 0, first);
    net.close(first);
    assert!(net.outcomes[1].result.is_ok(), "{:?}", net.outcomes[1]);
}

/// Said twice, the end of a plan is the same step; and nothing of the longer charge is
/// left in the ledger.
#[test]
fn the_end_of_a_plan_is_said_again_with_its_charges() {
    let mut evil = Evil::new(totals(6, 2, Setup::new(1)));
    let draft = evil.gather_at(0);
    evil.token_at(0, &draft);
    let retirement = Retirement { plan: evil.world.id() };
    let retirement = Signed::new(&retirement, &evil.world.service);
    let charges = |store: &Memory, id: ControllerId| {
        let own = store.values(Scope::Controller(id));
        let budget = |value: &&[u8]| match Stamped::read(value).unwrap().record {
            Record::Budget(record) => Some(record),
            _ => None,
        };
        own.iter().filter_map(budget).collect::<Vec<_>>()
    };
    let id = evil.controllers[0].id();
    let before = charges(&evil.store, id);
    let mut after_end = Vec::new();
    for _ in 0..2 {
        // The first answer's commit may have failed: the second stands by itself.
        let clean = evil.store.clone();
        evil.say(0, after(0), &ServiceMessage::Retirement(retirement.clone()));
        after_end.push(charges(&evil.store, id));
        if after_end.len() == 1 {
            evil.store = clean;
        }
    }
    assert_eq!((before.len(), after_end[0].len()), (1, 1));
    assert_ne!(before, after_end[0]);
    assert_eq!(after_end[0], after_end[1]);
}

/// Seeds that a host draws at once.
const SLICE: u32 = 1024;

/// How many seeds had to be drawn, slice by slice.
fn draw_all(controller: &mut Controller, now: Timestamp) -> u32 {
    let mut all = 0;
    loop {
        let drawn = controller.draw_ahead(now, SLICE);
        assert!(drawn <= SLICE);
        all += drawn;
        if drawn < SLICE {
            return all;
        }
    }
}

/// Late in a long plan a controller that lacks its seeds asks for patience instead of
/// holding everybody up; the window opens all the same, with the right noise.
#[test]
fn seeds_are_drawn_a_slice_at_a_time() {
    let mut net = Net::new(totals(1060, 1, Setup::new(1)));
    let known = Known::of(&net.world);
    (0..1040).for_each(|number| drop(net.world.report(number)));
    net.close(1040);
    let declined = |message: &ControllerMessage| match message {
        ControllerMessage::Declined(own) => {
            Some(own.open(&net.world.announced.verifying()[0]).unwrap().reason)
        }
        _ => None,
    };
    let reasons: Vec<_> = net.heard.iter().filter_map(|(_, message)| declined(message)).collect();
    assert_eq!(reasons, [Refused::SeedsUnderWay { left: 1041 - FEW }]);
    assert_eq!(net.outcomes.len(), 0, "it is asked again");
    // A host that has time draws what is waited for, and the next.
    assert_eq!(draw_all(&mut net.controllers[0], after(1040)), 1042 - FEW);
    net.timeout(after(1040).plus(Span::seconds(1)));
    let result = net.outcomes[0].result.as_ref().unwrap();
    let truth = net.world.truth([0], 1040)[0];
    assert_eq!(result.outputs[0].cast_signed(), known.result(truth, &[Some(1040)]));
    // A host that has time has drawn them before anybody asks.
    net.restore_controllers(after(1041), true);
    assert_eq!(draw_all(&mut net.controllers[0], after(1041)), 1043);
    let heard = net.heard.len();
    net.close(1041);
    assert!(net.outcomes[1].result.is_ok());
    assert_eq!(net.heard.len(), heard + 2, "presence and token, and no refusal");
}

/// Seeds that messages have drawn at one time of the clock.
const FEW: u32 = 8;

/// A plan goes on without being asked, until all are asked about this window, in vain.
fn late(evil: &mut Evil, number: u64) -> Timestamp {
    (1..number).for_each(|number| drop(evil.world.report(number)));
    evil.close(number);
    for p in 0..evil.controllers.len() as u32 {
        let summons = evil.summons(p, evil.streams(p));
        let left = u32::try_from(number + 1).unwrap() - FEW;
        assert_eq!(
            evil.ask(p, after(number), &summons).err(),
            Some(Refused::SeedsUnderWay { left })
        );
    }
    after(number)
}

/// However often it is asked at one time, as by one post, a controller draws a few.
#[test]
fn many_summonses_at_once_draw_few_seeds() {
    let mut evil = Evil::new(totals(600, 1, Setup::new(1)));
    let now = late(&mut evil, 500);
    let summons = evil.summons(0, evil.streams(0));
    for _ in 0..200 {
        assert_eq!(
            evil.ask(0, now, &summons).err(),
            Some(Refused::SeedsUnderWay { left: 501 - FEW })
        );
    }
    let later = now.plus(Span(1));
    let asked = evil.ask(0, later, &summons).err();
    assert_eq!(asked, Some(Refused::SeedsUnderWay { left: 501 - 2 * FEW }));
}

/// That a plan is announced makes nobody draw: what it is asked for does, or its share.
#[test]
fn plans_that_are_announced_draw_nothing_ahead() {
    let mut evil = Evil::new(totals(600, 1, Setup::new(1)));
    assert_eq!(evil.controllers[0].draw_ahead(after(500), SLICE), 0);
    let now = late(&mut evil, 500);
    assert_eq!(evil.controllers[0].draw_ahead(now, 100), 100);
    assert_eq!(evil.controllers[0].draw_ahead(now, SLICE), 502 - FEW - 100);
    // After an untrusted restore no answer comes of it.
    let store = evil.store.clone();
    evil.restore(0, &store, now, None);
    assert_eq!(evil.controllers[0].draw_ahead(now, SLICE), 0);
}

/// What the owners' log says that the plan costs, line by line.
fn told(store: &Memory, id: ControllerId) -> Vec<usize> {
    let released = |value: &[u8]| match Stamped::read(value).unwrap().record {
        Record::Log(LogLine { at, event: LogEvent::Released { costs, .. }, .. }) => {
            Some((at, costs.len()))
        }
        _ => None,
    };
    let own = store.values(Scope::Controller(id));
    let mut lines: Vec<_> = own.into_iter().filter_map(released).collect();
    lines.sort_unstable();
    lines.into_iter().map(|(_, costs)| costs).collect()
}

/// An opening that could not be made yet takes nothing from the line that says what the
/// totals cost.
#[test]
fn an_opening_that_has_to_wait_is_told_with_its_costs() {
    let mut evil = Evil::new(totals(60, 1, Setup::new(2)));
    let now = late(&mut evil, 40);
    evil.controllers.iter_mut().for_each(|own| assert_eq!(draw_all(own, now), 42 - FEW));
    let draft = evil.gather_at(40);
    (0..2).for_each(|p| drop(evil.token_at(p, &draft)));
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, now, Some(fence));
    let set = evil.set(&draft, &[0, 1]);
    let asked = draft.window.end.plus(GRACE);
    assert_eq!(evil.ask(0, asked, &set), Err(Refused::SeedsUnderWay { left: 41 - FEW }));
    draw_all(&mut evil.controllers[0], asked);
    assert!(matches!(evil.ask(0, asked, &set), Ok(ControllerMessage::Opening(_))));
    assert_eq!(told(&evil.store, evil.controllers[0].id()), [1]);
}

/// Who joins late reads what it costs with the first window that they are in.
#[test]
fn each_owner_reads_once_what_totals_cost() {
    let setup = totals(5, 1, Setup { streams_each: 2, ..Setup::new(1) });
    let mut net = Net::silent(setup, |stream, number| stream == 0 || number >= 2);
    (0..4).for_each(|number| net.close(number));
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert_eq!(told(&net.store, net.controllers[0].id()), [1, 0, 1, 0]);
    net.restore_controllers(after(4), true);
    net.close(4);
    assert_eq!(told(&net.store, net.controllers[0].id()), [1, 0, 1, 0, 0]);
}

/// A controller that answers summonses and gives no token keeps each window waiting for
/// it, and not one after the other: steps may be shorter than that wait.
#[test]
fn windows_wait_for_tokens_side_by_side() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::Membership { .. });
    // All four close at once.
    for number in 0..4 {
        let report = net.world.report(number);
        let step = net.coordinator.window_closed(after(3), &report);
        net.run(after(3), step);
    }
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (4, 0));
    net.lost = |to, _| to == 2;
    net.timeout(after(3).plus(Timing::default().tokens));
    let windows = net.outcomes.iter().map(|own| own.result.as_ref().unwrap().windows);
    assert_eq!(windows.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// Openings that were made for a window that failed leave noise over: the results after it
/// say how much at most, also once the service was restarted.
#[test]
fn what_failed_windows_leave_over_is_counted() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.close(0);
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(1);
    net.timeout(after(1).plus(Timing::default().openings));
    let lost = |net: &Net| net.outcomes.last().unwrap().result.clone().map(|own| own.lost);
    assert_eq!(lost(&net), Err(Failure::OpeningLost));
    net.lost = |_, _| false;
    let now = after(1).plus(Timing::default().openings).plus(Span::seconds(1));
    let report = net.world.report(2);
    let step = net.coordinator.window_closed(now, &report);
    net.run(now, step);
    // All four were asked: as far as the service knows, all may have made one.
    assert_eq!(lost(&net), Ok(4 * share_variance(1, Some(0))));
    net.restart_service(now);
    let report = net.world.report(3);
    let step = net.coordinator.window_closed(now, &report);
    net.run(now, step);
    assert_eq!(lost(&net), Ok(4 * share_variance(1, Some(0))));
}

/// The same while a window waits for an opening: later ones say what it may leave over, and
/// what it did leave over when it fails after them.
#[test]
fn what_windows_that_wait_may_leave_over_is_counted() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.close(0);
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(1);
    let close = |net: &mut Net, number: u64, now: Timestamp| {
        let report = net.world.report(number);
        let step = net.coordinator.window_closed(now, &report);
        net.run(now, step);
    };
    let patient = after(1).plus(Span::seconds(40));
    close(&mut net, 2, patient);
    net.timeout(patient.plus(Timing::default().tokens));
    let lost = |net: &Net| net.outcomes.last().unwrap().result.clone().map(|own| own.lost);
    let one = share_variance(1, Some(0));
    assert_eq!((net.outcomes.len(), lost(&net)), (2, Ok(4 * one)), "window 2 is before 1");
    net.timeout(after(1).plus(Timing::default().openings));
    assert_eq!((net.outcomes.len(), lost(&net)), (3, Err(Failure::OpeningLost)));
    net.lost = |_, _| false;
    close(&mut net, 3, after(1).plus(Timing::default().openings).plus(Span::seconds(1)));
    assert_eq!((net.outcomes.len(), lost(&net)), (4, Ok(4 * one)));
}

/// A lone controller's token holds its share: tokens come in order, and an older copy gives
/// no more of them.
#[test]
fn a_lone_controllers_tokens_come_in_order_and_from_no_older_copy() {
    let mut evil = Evil::new(totals(9, 1, Setup::new(1)));
    let (old, fence) = (evil.store.clone(), evil.controllers[0].fence());
    let drafts: Vec<_> = (0..3).map(|number| evil.gather_at(number)).collect();
    evil.token_at(0, &drafts[1]);
    let asked = |evil: &mut Evil, draft: &Draft| {
        let message = evil.membership(draft, 0);
        evil.ask(0, after(4), &message).err()
    };
    assert_eq!(asked(&mut evil, &drafts[0]), Some(Refused::TotalsOutOfOrder));
    assert_eq!(asked(&mut evil, &drafts[1]), None, "the same again");
    // A copy from before the token of window 1, and a fence that has seen it.
    let seen = evil.controllers[0].fence();
    assert!(seen.sequence > fence.sequence);
    evil.restore(0, &old, after(1), Some(seen));
    (3..6).for_each(|number| evil.close(number));
    for number in 6..8 {
        evil.close(number);
        let summons = evil.summons(0, evil.streams(0));
        assert_eq!(evil.ask(0, after(8), &summons).err(), Some(Refused::TotalsLost), "{number}");
    }
}

/// Under `Neighbours`, with few controllers that all pick each other.
pub fn neighbours(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    let controllers = [3, 5, 6][rng.next_u64() as usize % 3];
    let masks = MaskStrategy::Neighbours { picks: controllers - 1, cut_off: 0 };
    let (alpha, seed) = (Fraction::THIRD, seed as u8);
    totals(WINDOWS as u32, 3, Setup { masks, alpha, seed, ..Setup::new(controllers) })
}

#[test]
fn totals_under_neighbours_hold_each_window_once_and_in_order() {
    assert_eq!(simulate_in(neighbours, 1, CALM, 0), WINDOWS as usize);
    let opened: usize = (500..515).map(|seed| simulate_in(neighbours, seed, STORM, 400)).sum();
    assert!(opened > 15 * WINDOWS as usize / 2, "only {opened} windows opened");
    let opened: usize = (600..615).map(|seed| simulate_in(neighbours, seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
}
