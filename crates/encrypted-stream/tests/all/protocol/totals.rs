//! Running totals between service and controllers: opened sums have the noise of the matrix
//! mechanism and no other, shares continue from the last one sent, whatever is dropped,
//! crashed or requested, and owners are charged once.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::coordinator::Outcome;
use alpheus_encrypted_stream::error::{ExclusionError, PlanRefusalError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage};
use alpheus_encrypted_stream::noise::{SeedTables, Seeds, seed_generator};
use alpheus_policy::budget::{Cost, Horizon, Mechanism};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::net::Net;
use crate::protocol::noise::{Noise, four};
use crate::protocol::simulation::{Answers, CALM, STORM, TREASON, WINDOWS, simulate_in};
use crate::protocol::world::{EPOCH, Memory, Setup, World, after, window};

/// Four controllers, of which one may collude, for this many windows.
fn totals(windows: u64, micro_epsilon: u64) -> Setup {
    let noise = Noise::totals(windows as u32, 1, micro_epsilon);
    Setup { noise: Some(noise), ..four(windows, 1) }
}

/// The noise of a total, computed from the controllers' secrets.
pub struct ExpectedNoise {
    tables: SeedTables,
    seeds: Vec<Seeds>,
    fraction: u32,
}

impl ExpectedNoise {
    pub fn of(world: &World) -> Self {
        let privacy = world.plan.privacy.as_ref().unwrap();
        let windows = world.plan.horizon().unwrap().windows;
        let tables = SeedTables::new(&privacy.noise, windows).unwrap();
        let drawn = |(seed, _): &(u8, _)| {
            let secret = derive::<32>(&[*seed; 32], labels::IDENTITY_NOISE, &[]);
            let mut seeds = tables.seeds();
            for place in 0..windows {
                seeds.extend(&mut seed_generator(&secret, &world.id(), place)).unwrap();
            }
            seeds
        };
        let seeds = world.seats.iter().map(drawn).collect();
        Self { seeds, fraction: privacy.noise[0].fraction_bits(), tables }
    }

    /// `(Bz_p)_t` of the first row, in units of 2^-f.
    fn total(&self, p: usize, place: u32) -> i64 {
        let share = self.seeds[p].share(self.tables.coefficients(), place, None).unwrap();
        share.expose()[0].cast_signed()
    }

    /// The expected result if these were the controllers' last openings: less their noise,
    /// or plus the noise of a single controller, whose token holds it.
    pub fn result(&self, truth: u64, last: &[Option<u32>]) -> i64 {
        let own = |(p, last): (usize, &Option<u32>)| last.map_or(0, |last| self.total(p, last));
        self.with_noise(truth, last.iter().enumerate().map(own).sum())
    }

    fn with_noise(&self, truth: u64, noise: i64) -> i64 {
        let noise = if self.seeds.len() == 1 { -noise } else { noise };
        let fine = (truth << self.fraction).cast_signed() - noise;
        if self.fraction == 0 { fine } else { (fine + (1 << (self.fraction - 1))) >> self.fraction }
    }
}

/// A sleeping controller makes up for it with its next share. The totals are the truth so
/// far less each controller's own total at its last opening, to the last unit.
#[test]
fn totals_are_the_truth_plus_the_mechanisms_noise_despite_absences() {
    for micro_epsilon in [2_500_000, 14_000_000] {
        let windows = 12;
        let mut net = Net::new(totals(windows, micro_epsilon));
        let known = ExpectedNoise::of(&net.world);
        assert_eq!(known.fraction > 0, micro_epsilon == 14_000_000, "{}", known.fraction);
        let (mut truth, mut last) = ([0_u64; 2], vec![None; 4]);
        for number in 0..windows {
            net.asleep = if number % 3 == 1 { vec![(number % 4) as u32] } else { vec![] };
            net.close(number);
            // The service waits for a sleeping controller, but not forever.
            net.timeout(after(number).plus(Span::seconds(3)));
            let awake: Vec<usize> = (0..4).filter(|p| !net.asleep.contains(&(*p as u32))).collect();
            let own = net.world.truth(awake.iter().copied(), number);
            truth.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
            awake.iter().for_each(|p| last[*p] = Some(number as u32));
            let opened = net.outcomes.last().unwrap().result.as_ref().unwrap();
            assert_eq!(opened.outputs[0].cast_signed(), known.result(truth[0], &last), "{number}");
            assert_eq!(opened.outputs[1..], [truth[1], 0], "counts take none, and add up");
            assert_eq!(u64::from(opened.windows), number + 1);
        }
        // Beyond the horizon the plan has no windows.
        assert!(net.coordinator.has_ended(window(windows).start));
        assert_eq!(net.outcomes.len() as u64, windows);
    }
}

/// The same for a single controller, whose token holds the share.
#[test]
fn a_single_controllers_tokens_continue_from_each_other() {
    let noise = Some(Noise::totals(6, 1, 2_500_000));
    let mut net = Net::new(Setup { noise, windows: 6, ..Setup::new(1) });
    let known = ExpectedNoise::of(&net.world);
    let mut truth = 0;
    for number in 0..5 {
        net.asleep = if number == 2 { vec![0] } else { vec![] };
        net.close(number);
        net.timeout(after(number).plus(Span::seconds(3)));
        if number == 2 {
            assert!(net.outcomes.last().unwrap().result.is_err());
            continue;
        }
        truth += net.world.truth([0], number)[0];
        let opened = net.outcomes.last().unwrap().result.as_ref().unwrap();
        let expected = known.result(truth, &[Some(number as u32)]);
        assert_eq!(opened.outputs[0].cast_signed(), expected);
        net.restore_controllers(after(number), true);
        net.restart_service(after(number));
    }
}

fn opened(evil: &mut Evil, draft: &Draft, to: u32) -> (ServiceMessage, ControllerMessage) {
    let set = evil.set(draft, &[0, 1, 2, 3]);
    let now = draft.window.end.plus(crate::protocol::world::GRACE);
    let answer = evil.ask(to, now, &set).unwrap();
    (set, answer)
}

fn come_back(evil: &mut Evil, now: Timestamp) {
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, now, Some(fence));
}

/// A service that requests a later window first loses the earlier one: two differences to
/// one total would reveal what lies in between.
#[test]
fn shares_are_sent_in_order_and_the_last_is_durable() {
    let mut evil = Evil::new(totals(5, 2_500_000));
    let drafts: Vec<Draft> = (0..3)
        .map(|number| {
            let draft = evil.gather_at(number);
            (0..4).for_each(|p| drop(evil.token_at(p, &draft)));
            draft
        })
        .collect();
    let (first, answer) = opened(&mut evil, &drafts[0], 0);
    let (third, later) = opened(&mut evil, &drafts[2], 0);
    let second = evil.set(&drafts[1], &[0, 1, 2, 3]);
    for _ in 0..2 {
        let mut ask = |message| evil.ask(0, after(4), message);
        assert_eq!(ask(&second), Err(WindowRefusalError::TotalsOutOfOrder));
        assert_eq!((ask(&first), ask(&third)), (Ok(answer.clone()), Ok(later.clone())));
        come_back(&mut evil, after(4));
    }
    // No token is spent on it either, once that is known.
    let mut evil = Evil::new(totals(5, 2_500_000));
    let earlier = evil.gather_at(0);
    let draft = evil.gather_at(1);
    (0..4).for_each(|p| drop(evil.token_at(p, &draft)));
    opened(&mut evil, &draft, 0);
    come_back(&mut evil, after(4));
    let message = evil.membership(&earlier, 0);
    assert_eq!(evil.ask(0, after(4), &message), Err(WindowRefusalError::TotalsOutOfOrder));
}

/// The last share is recorded in the commit that releases the opening.
#[test]
fn an_opening_and_its_totals_record_share_a_commit() {
    let mut evil = Evil::new(totals(5, 2_500_000));
    let last = |evil: &Evil| {
        let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
        own.iter().find_map(|value| match StampedRecord::read(value).unwrap().record {
            Record::Totals { last, .. } => Some(last),
            _ => None,
        })
    };
    for number in 0..2 {
        let draft = evil.gather_at(number);
        (0..4).for_each(|p| drop(evil.token_at(p, &draft)));
        let commits = evil.store.commits;
        opened(&mut evil, &draft, 0);
        assert_eq!((evil.store.commits, last(&evil)), (commits + 1, Some(number as u32)));
    }
}

/// An older copy does not know the last share, so it sends nothing more of this plan or of
/// one that it has forgotten.
#[test]
fn an_older_ledger_sends_no_more_shares_of_totals() {
    let mut evil = Evil::unannounced(totals(6, 2_500_000));
    let before = evil.store.clone();
    evil.accept();
    let old = evil.store.clone();
    let draft = evil.gather_at(0);
    (0..4).for_each(|p| drop(evil.token_at(p, &draft)));
    opened(&mut evil, &draft, 0);
    let fence = evil.controllers[0].fence();
    evil.restore(0, &old, after(0), Some(fence));
    (1..4).for_each(|number| evil.close(number));
    let summons = evil.summons(0, evil.streams(0));
    assert_eq!(evil.ask(0, after(4), &summons).err(), Some(WindowRefusalError::TotalsLost));
    evil.restore(0, &before, after(0), Some(fence));
    let announcement = evil.world.announcement();
    let answer = evil.say(0, after(4), &announcement);
    let Some(ControllerMessage::PlanRefusal(refusal)) = answer else { panic!("{answer:?}") };
    let key = evil.world.announced.verifying()[0];
    assert_eq!(refusal.open(&key).unwrap().reason, PlanRefusalError::TotalsLost);
}

/// All windows together cost what the plan states, once, and the log states it once.
#[test]
fn all_windows_together_are_charged_once() {
    let windows = 100;
    let mut net = Net::new(totals(windows, 2_500_000));
    (0..windows).for_each(|number| net.close(number));
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let owner = net.world.plan.streams[0].owner;
    let id = net.controllers[0].id();
    let cost = {
        let (schema, layout) = (&net.world.schema, &net.world.layout);
        let calibrated = net.world.plan.calibration(schema, layout).unwrap().unwrap();
        calibrated.charges[0].1
    };
    let Cost::Concentrated(rho) = cost else { panic!("{cost:?}") };
    for restored in [false, true] {
        let total = net.controllers[0].accounts().account(owner, 0).unwrap().total();
        assert_eq!(total.rho, rho, "{restored}");
        net.restore_controllers(after(windows), true);
    }
    let costs = net.store.values(Scope::Controller(id)).into_iter().filter_map(|value| {
        match StampedRecord::read(value).unwrap().record {
            Record::Log(LogLine { event: LogEvent::Released { costs, .. }, .. }) => Some(costs),
            _ => None,
        }
    });
    let costs: Vec<_> = costs.collect();
    assert_eq!(costs.len() as u64, windows);
    assert_eq!(costs.into_iter().flatten().collect::<Vec<_>>(), [(0, cost)]);
}

/// A budget for one such query covers all of its windows and no window of another query.
#[test]
fn a_budget_of_one_query_is_spent_by_it() {
    let mut net = Net::new(totals(6, 2_500_000));
    (0..3).for_each(|number| net.close(number));
    let step = net.coordinator.retire();
    net.run(after(2), step);
    net.take_over(net.plan_again(77, window(4).start));
    let step = net.coordinator.announce();
    net.run(after(2), step);
    net.close(4);
    let outcome = net.outcomes.last().unwrap();
    assert_eq!(outcome.excluded[&ExclusionError::BudgetSpent], 4);
}

/// Promises that were never spent are free again once the plan has ended.
#[test]
fn an_unspent_promise_ends_with_the_plan() {
    let mut evil = Evil::new(totals(6, 2_500_000));
    evil.gather();
    let retirement = Retirement { plan: evil.world.id() };
    let signed = Signed::new(&retirement, &evil.world.service);
    evil.say(0, after(0), &ServiceMessage::Retirement(signed));
    let plan = Plan { nonce: [78; 16], ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    let announcement = evil.world.announcement();
    evil.say(0, after(0), &announcement);
    evil.report = evil.world.report(0);
    (1..3).for_each(|number| evil.close(number));
    let streams = evil.streams(0);
    assert_eq!(evil.presence_at(0, streams, after(2)).1.accepted, [0]);
}

/// The service's claims about horizon, unit and noise are compared with the policies.
#[test]
fn a_plan_that_misstates_its_totals_is_refused() {
    let refused = |change: fn(&mut Plan)| {
        let mut evil = Evil::unannounced(totals(6, 2_500_000));
        let mut plan = evil.world.plan.clone();
        change(&mut plan);
        evil.world.take_over(plan);
        let announcement = evil.world.announcement();
        matches!(
            evil.say(0, Timestamp(EPOCH), &announcement),
            Some(ControllerMessage::PlanRefusal(_))
        )
    };
    assert!(!refused(|_| ()));
    // More windows than the noise is for; a unit that is in none.
    assert!(refused(|plan| {
        let privacy = plan.privacy.as_mut().unwrap();
        privacy.mechanism = Mechanism::Matrix(Horizon { windows: 600, touched: 1 });
    }));
    assert!(refused(|plan| {
        let privacy = plan.privacy.as_mut().unwrap();
        privacy.mechanism = Mechanism::Matrix(Horizon { windows: 6, touched: 0 });
    }));
    assert!(refused(|plan| plan.privacy.as_mut().unwrap().mechanism = Mechanism::Skellam));
    assert!(refused(|plan| plan.privacy.as_mut().unwrap().noise.reverse()));
}

/// Without totals in its store a service starts from zero; with them it continues.
#[test]
fn the_service_continues_its_totals_after_a_restart() {
    let mut net = Net::new(totals(6, 2_500_000));
    let known = ExpectedNoise::of(&net.world);
    let mut truth = 0;
    for number in 0..6 {
        net.close(number);
        truth += net.world.truth(0..4, number)[0];
        let result = net.outcomes.last().unwrap().result.as_ref().unwrap();
        let expected = known.result(truth, &[Some(number as u32); 4]);
        assert_eq!(result.outputs[0].cast_signed(), expected, "{number}");
        net.restart_service(after(number));
    }
}

/// Messages of one window to one controller are lost until a later window is in progress.
/// The later window waits, and both open.
#[test]
fn a_later_window_waits_for_openings_of_an_earlier_one() {
    let mut net = Net::new(totals(4, 2_500_000));
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    assert_eq!(net.coordinator.under_way(), 1);
    net.close(1);
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (2, 0));
    net.lost = |_, _| false;
    net.timeout(after(1).plus(Span::seconds(2)));
    let windows = net.outcomes.iter().map(|own| own.result.as_ref().unwrap().windows);
    assert_eq!(windows.collect::<Vec<_>>(), [1, 2]);
    // A controller that delays it for long is left out, and makes up for it later.
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(2);
    net.close(3);
    let late = after(3).plus(Span::seconds(40));
    (0..8).for_each(|at| net.timeout(late.plus(Span::seconds(30 * at))));
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (1, 3));
    assert_eq!(net.outcomes[2].result.as_ref().unwrap().population, 3);
    net.lost = |_, _| false;
    net.timeout(late.plus(Span::seconds(400)));
    assert_eq!(net.outcomes[3].result.as_ref().unwrap().windows, 4);
}

/// No opening of running totals is sent after that of a later window.
pub fn in_order(seen: &Answers, (from, plan, start): (u32, PlanId, Timestamp)) {
    let known = seen.contains_key(&(from, plan, start));
    let later = seen.range((from, plan, Timestamp(start.0 + 1))..=(from, plan, Timestamp::LIMIT));
    assert!(known || later.count() == 0, "controller {from} opened {start:?} after a later one");
}

/// What a run has observed of shares: for which windows controllers made one, whether or
/// not it arrived, and which controllers the service asked.
#[derive(Default)]
pub struct Shares {
    pub made: BTreeSet<(u32, Timestamp)>,
    pub asked: BTreeMap<Timestamp, RosterSet>,
}

impl Shares {
    /// Takes what a controller's disk records about its shares. They count whether or not
    /// they arrived.
    pub fn note(&mut self, world: &World, p: u32, disk: &Memory) {
        if world.plan.horizon().is_none() {
            return;
        }
        let (own, single) = (world.id(), world.announced.is_single());
        for value in disk.values(Scope::Controller(world.identity(p).id())) {
            let made = match StampedRecord::read(value).unwrap().record {
                Record::Opened { plan, window, .. } => Some((plan, window)),
                Record::Spent(spent) if single => Some((spent.plan, spent.window)),
                _ => None,
            };
            let made = made.filter(|(plan, _)| *plan == own);
            self.made.extend(made.map(|(_, window)| (p, window.start)));
        }
    }

    /// The noise of a window that opened: each controller's difference to its last share.
    fn noise(&self, world: &World, known: &ExpectedNoise, start: Timestamp) -> i64 {
        let place = |start| world.plan.index_in_totals(world.plan.window_at(start)).unwrap();
        let lone = RosterSet::of(1, [0]);
        let set = if world.announced.is_single() { &lone } else { &self.asked[&start] };
        let share = |p: u32| {
            let before = self.made.range((p, Timestamp(0))..(p, start)).next_back();
            let before = before.map_or(0, |(_, last)| known.total(p as usize, place(*last)));
            known.total(p as usize, place(start)) - before
        };
        set.iter().map(share).sum()
    }
}

/// Each window of a run is in the totals once, or failed with a reason. Their noise is that
/// of shares that continue from each controller's last one.
pub fn check(
    world: &World,
    outcomes: &BTreeMap<Timestamp, Vec<Outcome>>,
    shares: &Shares,
    seed: u64,
) {
    let (mut opened, known, mut noise) = (Vec::new(), ExpectedNoise::of(world), 0);
    for number in 0..WINDOWS {
        let outcomes = outcomes.get(&window(number).start);
        let outcomes = outcomes.unwrap_or_else(|| panic!("seed {seed}: no outcome {number}"));
        assert_eq!(outcomes.len(), 1, "seed {seed}: two outcomes of window {number}");
        let result = outcomes[0].result.as_ref().ok();
        opened.extend(result.map(|result| (window(number).start, result)));
    }
    opened.sort_by_key(|(_, opened)| opened.windows);
    let (mut before, streams) = (0, world.plan.streams.len() as u64);
    for ((start, result), place) in opened.into_iter().zip(1_u32..) {
        assert_eq!(result.windows, place, "seed {seed}");
        noise += shares.noise(world, &known, start);
        let expected = known.with_noise(result.outputs[1] / 2, noise);
        assert_eq!(result.outputs[0].cast_signed(), expected, "seed {seed}: noise at {start:?}");
        // The second row has no noise: twice the values 1, 2, … of the streams inside.
        let (own, inside) = ((result.outputs[1] - before) / 2, u64::from(result.population));
        before = result.outputs[1];
        let (least, most) = (inside * (inside + 1) / 2, inside * (2 * streams - inside + 1) / 2);
        assert!((least..=most).contains(&own), "seed {seed}: {own} of {inside}");
        assert_eq!(result.outputs[2], 0);
    }
}

/// A world drawn by the seed, whose plan has running totals.
fn cumulating(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    let controllers = [1, 2, 4, 5][rng.next_u64() as usize % 4];
    let alpha = if controllers > 2 { Fraction::THIRD } else { Fraction::ZERO };
    Setup {
        alpha,
        noise: Some(Noise::totals(WINDOWS as u32, 3, 2_500_000)),
        windows: WINDOWS,
        seed: seed as u8,
        ..Setup::new(controllers)
    }
}

#[test]
fn without_faults_totals_include_every_window() {
    for seed in 0..8 {
        assert_eq!(simulate_in(cumulating, seed, CALM, 0), WINDOWS as usize, "seed {seed}");
    }
}

#[test]
fn under_faults_totals_include_each_window_once_and_in_order() {
    let opened: usize = (0..40).map(|seed| simulate_in(cumulating, 300 + seed, STORM, 400)).sum();
    assert!(opened > 40 * WINDOWS as usize / 2, "only {opened} windows opened");
}

#[test]
fn with_a_lying_service_and_old_copies_totals_keep_their_order() {
    let opened: usize = (0..40).map(|seed| simulate_in(cumulating, 400 + seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
}
