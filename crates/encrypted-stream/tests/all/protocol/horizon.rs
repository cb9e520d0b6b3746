//! The life of running totals: dropped early, restarted, with lost shares, with owners who
//! join late.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::error::{ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage};
use alpheus_policy::budget::{Horizon, Mechanism, share_variance};
use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::net::Net;
use crate::protocol::noise::{Noise, four};
use crate::protocol::simulation::{CALM, STORM, TREASON, WINDOWS, simulate_in};
use crate::protocol::totals::ExpectedNoise;
use crate::protocol::world::{GRACE, Memory, Setup, WINDOW, after, window};

/// Owners whose budgets cover this many such queries, but only one at a time.
fn totals(windows: u32, queries: u64, setup: Setup) -> Setup {
    let noise = Some(Noise::totals(windows, queries, 2_500_000));
    Setup { noise, windows: windows.into(), ..setup }
}

/// Ends the plan, and submits it again from a later window on.
fn dropped(net: &mut Net, at: u64, again: u64) {
    let step = net.coordinator.retire();
    net.run(after(at), step);
    net.take_over(net.plan_again(77, window(again).start));
    let step = net.coordinator.announce();
    net.run(after(at), step);
}

/// Dropping a query returns the time that it has not released, also after a restart, so the
/// next query can run. Its cost stays charged.
#[test]
fn dropping_a_query_frees_the_time_after_it() {
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

/// The same with budgets by period: an ended query affects no later period.
#[test]
fn dropping_a_query_frees_the_periods_after_it() {
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

/// Repeating the end of a plan produces the same step. Nothing of the longer charge is left
/// in the ledger.
#[test]
fn the_end_of_a_plan_is_repeated_with_its_charges() {
    let mut evil = Evil::new(totals(6, 2, Setup::new(1)));
    let draft = evil.gather_at(0);
    evil.token_at(0, &draft);
    let retirement = Retirement { plan: evil.world.id() };
    let retirement = Signed::new(&retirement, &evil.world.service);
    let charges = |store: &Memory, id: ControllerId| {
        let own = store.values(Scope::Controller(id));
        let budget = |value: &&[u8]| match StampedRecord::read(value).unwrap().record {
            Record::Budget(record) => Some(record),
            _ => None,
        };
        own.iter().filter_map(budget).collect::<Vec<_>>()
    };
    let id = evil.controllers[0].id();
    let before = charges(&evil.store, id);
    let mut after_end = Vec::new();
    for _ in 0..2 {
        // The first answer's commit may have failed; the second is complete in itself.
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

/// Number of seeds that a host draws at once.
const SLICE: u32 = 1024;

/// How many seeds had to be drawn, slice by slice.
fn draw_all(controller: &mut Controller, now: Timestamp) -> u32 {
    let mut all = 0;
    loop {
        let drawn = controller.draw_ahead(SLICE, now);
        assert!(drawn <= SLICE);
        all += drawn;
        if drawn < SLICE {
            return all;
        }
    }
}

/// Late in a long plan, a controller that lacks its seeds asks for patience instead of
/// delaying everybody. The window still opens, with the right noise.
#[test]
fn seeds_are_drawn_a_slice_at_a_time() {
    let mut net = Net::new(totals(1060, 1, Setup::new(1)));
    let known = ExpectedNoise::of(&net.world);
    (0..1040).for_each(|number| drop(net.world.report(number)));
    net.close(1040);
    let declined = |message: &ControllerMessage| match message {
        ControllerMessage::WindowRefusal(own) => {
            Some(own.open(&net.world.announced.verifying()[0]).unwrap().reason)
        }
        _ => None,
    };
    let reasons: Vec<_> = net.heard.iter().filter_map(|(_, message)| declined(message)).collect();
    assert_eq!(reasons, [WindowRefusalError::SeedsUnderWay { left: 1041 - FEW }]);
    assert_eq!(net.outcomes.len(), 0, "it is asked again");
    // An idle host draws the seeds that are waited for, and the next ones.
    assert_eq!(draw_all(&mut net.controllers[0], after(1040)), 1042 - FEW);
    net.timeout(after(1040).plus(Span::seconds(1)));
    let result = net.outcomes[0].result.as_ref().unwrap();
    let truth = net.world.truth([0], 1040)[0];
    assert_eq!(result.outputs[0].cast_signed(), known.result(truth, &[Some(1040)]));
    // An idle host has drawn them before anybody asks.
    net.restore_controllers(after(1041), true);
    assert_eq!(draw_all(&mut net.controllers[0], after(1041)), 1043);
    let heard = net.heard.len();
    net.close(1041);
    assert!(net.outcomes[1].result.is_ok());
    assert_eq!(net.heard.len(), heard + 2, "presence and token, and no refusal");
}

/// Seeds that messages have caused to be drawn at one time of the clock.
const FEW: u32 = 8;

/// A plan continues without this controller until all are asked about this window, in vain.
fn late(evil: &mut Evil, number: u64) -> Timestamp {
    (1..number).for_each(|number| drop(evil.world.report(number)));
    evil.close(number);
    for p in 0..evil.controllers.len() as u32 {
        let summons = evil.summons(p, evil.streams(p));
        let left = u32::try_from(number + 1).unwrap() - FEW;
        assert_eq!(
            evil.ask(p, after(number), &summons).err(),
            Some(WindowRefusalError::SeedsUnderWay { left })
        );
    }
    after(number)
}

/// However often it is asked at one time, as by one batch, a controller draws only a few.
#[test]
fn many_summonses_at_once_draw_few_seeds() {
    let mut evil = Evil::new(totals(600, 1, Setup::new(1)));
    let now = late(&mut evil, 500);
    let summons = evil.summons(0, evil.streams(0));
    for _ in 0..200 {
        assert_eq!(
            evil.ask(0, now, &summons).err(),
            Some(WindowRefusalError::SeedsUnderWay { left: 501 - FEW })
        );
    }
    let later = now.plus(Span(1));
    let asked = evil.ask(0, later, &summons).err();
    assert_eq!(asked, Some(WindowRefusalError::SeedsUnderWay { left: 501 - 2 * FEW }));
}

/// An announcement alone causes no drawing; a request for a share does.
#[test]
fn an_announcement_alone_draws_no_seeds() {
    let mut evil = Evil::new(totals(600, 1, Setup::new(1)));
    assert_eq!(evil.controllers[0].draw_ahead(SLICE, after(500)), 0);
    let now = late(&mut evil, 500);
    assert_eq!(evil.controllers[0].draw_ahead(100, now), 100);
    assert_eq!(evil.controllers[0].draw_ahead(SLICE, now), 502 - FEW - 100);
    // After an untrusted restore, it causes no answer.
    let store = evil.store.clone();
    evil.restore(0, &store, now, None);
    assert_eq!(evil.controllers[0].draw_ahead(SLICE, now), 0);
}

/// The cost of the plan in the owners' log, line by line.
fn cost_lines(store: &Memory, id: ControllerId) -> Vec<usize> {
    let released = |value: &[u8]| match StampedRecord::read(value).unwrap().record {
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

/// An opening that could not be made yet takes nothing from the line about the totals'
/// cost.
#[test]
fn an_opening_that_waits_for_seeds_is_logged_with_its_cost() {
    let mut evil = Evil::new(totals(60, 1, Setup::new(2)));
    let now = late(&mut evil, 40);
    evil.controllers.iter_mut().for_each(|own| assert_eq!(draw_all(own, now), 42 - FEW));
    let draft = evil.gather_at(40);
    (0..2).for_each(|p| drop(evil.token_at(p, &draft)));
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, now, Some(fence));
    let set = evil.set(&draft, &[0, 1]);
    let asked = draft.window.end.plus(GRACE);
    assert_eq!(evil.ask(0, asked, &set), Err(WindowRefusalError::SeedsUnderWay { left: 41 - FEW }));
    draw_all(&mut evil.controllers[0], asked);
    assert!(matches!(evil.ask(0, asked, &set), Ok(ControllerMessage::Opening(_))));
    assert_eq!(cost_lines(&evil.store, evil.controllers[0].id()), [1]);
}

/// An owner who joins late reads the cost with the first window that includes them.
#[test]
fn each_owner_reads_the_cost_of_totals_once() {
    let setup = totals(5, 1, Setup { streams_each: 2, ..Setup::new(1) });
    let mut net = Net::silent(setup, |stream, number| stream == 0 || number >= 2);
    (0..4).for_each(|number| net.close(number));
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert_eq!(cost_lines(&net.store, net.controllers[0].id()), [1, 0, 1, 0]);
    net.restore_controllers(after(4), true);
    net.close(4);
    assert_eq!(cost_lines(&net.store, net.controllers[0].id()), [1, 0, 1, 0, 0]);
}

/// A controller that answers summonses but sends no token delays each window, but not one
/// after the other: steps may be shorter than that wait.
#[test]
fn windows_wait_for_tokens_side_by_side() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::Membership { .. });
    // All four close at once.
    for number in 0..4 {
        let report = net.world.report(number);
        let step = net.coordinator.handle_window_report(&report, after(3));
        net.run(after(3), step);
    }
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (4, 0));
    net.lost = |to, _| to == 2;
    net.timeout(after(3).plus(Timing::default().tokens));
    let windows = net.outcomes.iter().map(|own| own.result.as_ref().unwrap().windows);
    assert_eq!(windows.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// Openings that were made for a failed window leave noise over. Later results state an
/// upper bound for it, also after a restart of the service.
#[test]
fn leftover_noise_of_failed_windows_is_counted() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.close(0);
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(1);
    net.timeout(after(1).plus(Timing::default().openings));
    let lost = |net: &Net| net.outcomes.last().unwrap().result.clone().map(|own| own.lost);
    assert_eq!(lost(&net), Err(ReleaseError::OpeningLost));
    net.lost = |_, _| false;
    let now = after(1).plus(Timing::default().openings).plus(Span::seconds(1));
    let report = net.world.report(2);
    let step = net.coordinator.handle_window_report(&report, now);
    net.run(now, step);
    // All four were asked: as far as the service knows, all may have made one.
    assert_eq!(lost(&net), Ok(4 * share_variance(1, Some(0))));
    net.restart_service(now);
    let report = net.world.report(3);
    let step = net.coordinator.handle_window_report(&report, now);
    net.run(now, step);
    assert_eq!(lost(&net), Ok(4 * share_variance(1, Some(0))));
}

/// The same while a window waits for an opening: later windows state what it may leave
/// over, and what it did leave over if it fails after them.
#[test]
fn leftover_noise_of_waiting_windows_is_counted() {
    let mut net = Net::new(totals(6, 1, four(6, 1)));
    net.close(0);
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(1);
    let close = |net: &mut Net, number: u64, now: Timestamp| {
        let report = net.world.report(number);
        let step = net.coordinator.handle_window_report(&report, now);
        net.run(now, step);
    };
    let patient = after(1).plus(Span::seconds(40));
    close(&mut net, 2, patient);
    net.timeout(patient.plus(Timing::default().tokens));
    let lost = |net: &Net| net.outcomes.last().unwrap().result.clone().map(|own| own.lost);
    let one = share_variance(1, Some(0));
    assert_eq!((net.outcomes.len(), lost(&net)), (2, Ok(4 * one)), "window 2 is before 1");
    net.timeout(after(1).plus(Timing::default().openings));
    assert_eq!((net.outcomes.len(), lost(&net)), (3, Err(ReleaseError::OpeningLost)));
    net.lost = |_, _| false;
    close(&mut net, 3, after(1).plus(Timing::default().openings).plus(Span::seconds(1)));
    assert_eq!((net.outcomes.len(), lost(&net)), (4, Ok(4 * one)));
}

/// A single controller's token holds its share: tokens come in order, and an older copy
/// sends no more of them.
#[test]
fn a_single_controllers_tokens_come_in_order_and_never_from_an_older_copy() {
    let mut evil = Evil::new(totals(9, 1, Setup::new(1)));
    let (old, fence) = (evil.store.clone(), evil.controllers[0].fence());
    let drafts: Vec<_> = (0..3).map(|number| evil.gather_at(number)).collect();
    evil.token_at(0, &drafts[1]);
    let asked = |evil: &mut Evil, draft: &Draft| {
        let message = evil.membership(draft, 0);
        evil.ask(0, after(4), &message).err()
    };
    assert_eq!(asked(&mut evil, &drafts[0]), Some(WindowRefusalError::TotalsOutOfOrder));
    assert_eq!(asked(&mut evil, &drafts[1]), None, "the same again");
    // A copy from before the token of window 1, with a fence that has recorded that token.
    let seen = evil.controllers[0].fence();
    assert!(seen.sequence > fence.sequence);
    evil.restore(0, &old, after(1), Some(seen));
    (3..6).for_each(|number| evil.close(number));
    for number in 6..8 {
        evil.close(number);
        let summons = evil.summons(0, evil.streams(0));
        assert_eq!(
            evil.ask(0, after(8), &summons).err(),
            Some(WindowRefusalError::TotalsLost),
            "{number}"
        );
    }
}

/// With `Neighbours`, and few controllers that all pick each other.
pub fn neighbours(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    let controllers = [3, 5, 6][rng.next_u64() as usize % 3];
    let masks = MaskStrategy::Neighbours { picks: controllers - 1, cut_off: 0 };
    let (alpha, seed) = (Fraction::THIRD, seed as u8);
    totals(WINDOWS as u32, 3, Setup { masks, alpha, seed, ..Setup::new(controllers) })
}

#[test]
fn with_neighbours_totals_include_each_window_once_and_in_order() {
    assert_eq!(simulate_in(neighbours, 1, CALM, 0), WINDOWS as usize);
    let opened: usize = (500..515).map(|seed| simulate_in(neighbours, seed, STORM, 400)).sum();
    assert!(opened > 15 * WINDOWS as usize / 2, "only {opened} windows opened");
    let opened: usize = (600..615).map(|seed| simulate_in(neighbours, seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
}
