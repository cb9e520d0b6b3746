//! When re-ups arrive says next to nothing about whose session follows whose.
//!
//! Everybody's sessions rotate at one epoch. A gateway has seen each old session's re-ups, and each
//! new one's login and re-ups, by its own clock. It knows how far clocks are off, and how moments
//! are drawn, and guesses for each old session which new one follows.

use alpheus_access_pass::client::{Next, Pace, next};
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_time::{Span, Timestamp};
use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

/// The epochs of a session, as clients have them by default.
const ROTATION: u64 = 240;
/// How far clocks are off, as a standard deviation in seconds.
const SPREAD: f64 = 0.1;
const SECOND: f64 = 1_000_000.0;
const SCHEDULE: Schedule = Schedule {
    start: Timestamp(0),
    epoch: Span(15_000_000),
    pre_login: Span(3_000_000),
    border_pre_login: Span(10_000_000),
    epochs_per_period: 5_760,
    ahead: 0,
};
/// How long a sub-window is, and how long the time in which it begins.
const HALF: f64 = 3.0 * 3.0 / 8.0;
/// Clocks that a gateway takes into account, in steps of this.
const STEP: f64 = 0.02;

/// How a client draws its next session's pace.
type Rotates = fn(Pace, &mut ChaCha20Rng) -> Pace;

/// Where the sub-window of a session lies for the gateway: the middle of what it has seen, in
/// seconds after the epoch's pre-login opens.
fn seen(first: u64, pace: &mut Pace, clock: f64, rng: &mut ChaCha20Rng) -> f64 {
    let (mut earliest, mut latest) = (f64::MAX, f64::MIN);
    for epoch in first..first + ROTATION - 1 {
        let opens = SCHEDULE.opens(Epoch(epoch + 1));
        let now = Timestamp(opens.0 - 1);
        let Next::Wait(due) = next(&SCHEDULE, now, Some(Epoch(epoch)), *pace, ROTATION) else {
            panic!("the pre-login is not open yet")
        };
        let moment = (due.0 - opens.0) as f64 / SECOND + clock;
        (earliest, latest) = (earliest.min(moment), latest.max(moment));
        *pace = pace.next_epoch(rng);
    }
    (earliest + latest - HALF) / 2.0
}

/// A clock that is off by a normal variate: the sum of twelve uniform ones.
fn clock(rng: &mut ChaCha20Rng) -> f64 {
    let unit = |rng: &mut ChaCha20Rng| f64::from(rng.next_u32()) / f64::from(u32::MAX);
    SPREAD * ((0..12).map(|_| unit(rng)).sum::<f64>() - 6.0)
}

/// Old and new sub-windows of each client.
fn rotation(clients: usize, rotates: Rotates, rng: &mut ChaCha20Rng) -> Vec<[f64; 2]> {
    let client = |_| {
        let (clock, mut pace) = (clock(rng), Pace::draw(rng));
        let old = seen(ROTATION, &mut pace, clock, rng);
        let mut pace = rotates(pace, rng);
        [old, seen(2 * ROTATION, &mut pace, clock, rng)]
    };
    (0..clients).map(client).collect()
}

/// The share of old sessions for which the best guess is right. Among equally good guesses one is
/// drawn.
fn linked(clients: &[[f64; 2]], score: impl Fn(f64, f64) -> f64) -> f64 {
    let right = |(at, [old, _]): (usize, &[f64; 2])| {
        let scores: Vec<f64> = clients.iter().map(|[_, new]| score(*old, *new)).collect();
        let best = scores.iter().copied().fold(f64::MIN, f64::max);
        let alike = scores.iter().filter(|score| **score >= best - 1e-9).count();
        if scores[at] >= best - 1e-9 { 1.0 / alike as f64 } else { 0.0 }
    };
    clients.iter().enumerate().map(right).sum::<f64>() / clients.len() as f64
}

/// Takes the session whose sub-window is nearest.
fn nearest(old: f64, new: f64) -> f64 {
    -(old - new).abs()
}

/// How much likelier the new sub-window is if the clock is the one that the old one suggests
/// (Bayes' rule over all clocks).
fn likelihood(old: f64, new: f64) -> f64 {
    let (mut both, mut of_old, mut of_new) = (0.0, 0.0, 0.0);
    let reach = |at: f64, clock: f64| f64::from(u8::from((0.0..HALF).contains(&(at - clock))));
    for step in -30..=30 {
        let clock = f64::from(step) * STEP;
        let prior = (-clock * clock / (2.0 * SPREAD * SPREAD)).exp();
        both += prior * reach(old, clock) * reach(new, clock);
        of_old += prior * reach(old, clock);
        of_new += prior * reach(new, clock);
    }
    if both == 0.0 { 0.0 } else { both / (of_old * of_new) }
}

/// The better of two gateways, over so many rotations.
fn success(clients: usize, rotations: usize, rotates: Rotates) -> f64 {
    let mut rng = ChaCha20Rng::from_seed([7; 32]);
    let mut found = [0.0, 0.0];
    for _ in 0..rotations {
        let seen = rotation(clients, rotates, &mut rng);
        found[0] += linked(&seen, nearest) / rotations as f64;
        found[1] += linked(&seen, likelihood) / rotations as f64;
    }
    println!("{clients} clients: nearest {:.4}, likelihood {:.4}", found[0], found[1]);
    found[0].max(found[1])
}

#[test]
fn re_ups_do_not_link_sessions_over_a_rotation() {
    let drawn: Rotates = |pace, rng| pace.next_session(rng);
    let few = success(100, 20, drawn);
    assert!(few <= 0.04, "{few} of 100");
    let many = success(1_000, 2, drawn);
    assert!(many <= 0.01, "{many} of 1,000");
    // The same gateway links clients that keep the shift of their first session.
    let kept: Rotates = |pace, rng| pace.next_epoch(rng);
    let careless = success(100, 2, kept);
    assert!(careless > 0.3, "{careless}");
}
