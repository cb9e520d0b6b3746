//! Both kinds of frames give the plaintext's sums, whatever happens to device and frames.

use super::device::{START, Sender, Service, TICK, at, schema, window};
use alpheus_encrypted_stream::producer::Start;
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;
use proptest::prelude::*;

/// Ticks of a run, over a midnight.
const TICKS: u64 = 36;
const WINDOWS: [u64; 4] = [1, 2, 3, 12];

/// What happens to the device in a tick.
#[derive(Clone, Debug)]
enum Happens {
    /// Events of these values.
    Awake(Vec<u64>),
    /// It sleeps for so many ticks.
    Asleep(u64),
    /// It loses the tick and starts again in the next one.
    Crash(Vec<u64>),
    /// It closes its session at the end of the tick, and opens another there.
    Restart(Vec<u64>),
}

fn happens() -> impl Strategy<Value = Happens> {
    let values = || proptest::collection::vec(0_u64..1000, 0..4);
    prop_oneof![
        8 => values().prop_map(Happens::Awake),
        2 => (1_u64..9).prop_map(Happens::Asleep),
        1 => values().prop_map(Happens::Crash),
        1 => values().prop_map(Happens::Restart),
    ]
}

/// The values of each tick, or none where they were lost.
type Truth = Vec<Option<Vec<u64>>>;

/// A device lives through all this from a tick on.
fn live(frames: Frames, first: u64, steps: &[Happens]) -> (Vec<Vec<u8>>, Truth) {
    let mut sender = Sender::new(schema(frames), at(first), 3);
    let mut truth: Truth = vec![None; TICKS as usize];
    let mut tick = first;
    for step in steps {
        if tick >= TICKS {
            break;
        }
        match step {
            Happens::Asleep(span) => {
                let end = (tick + span).min(TICKS);
                // A device with events in the open tick was awake in it.
                truth[tick as usize..end as usize].fill(Some(vec![]));
                sender.sleep(at(end));
                tick = end;
            }
            Happens::Awake(values) => {
                events(&mut sender, tick, values);
                sender.advance(at(tick + 1));
                truth[tick as usize] = Some(values.clone());
                tick += 1;
            }
            Happens::Crash(values) => {
                events(&mut sender, tick, values);
                let now = Timestamp(at(tick).0 + 9);
                sender.open(Start::Again { now }, at(tick + 1), None);
                tick += 1;
            }
            Happens::Restart(values) => {
                events(&mut sender, tick, values);
                sender.close(at(tick + 1));
                truth[tick as usize] = Some(values.clone());
                sender.open(Start::Again { now: at(tick + 1) }, at(tick + 1), None);
                tick += 1;
            }
        }
    }
    if tick < TICKS {
        sender.advance(at(TICKS));
        truth[tick as usize..].fill(Some(vec![]));
    }
    (sender.sent(), truth)
}

fn events(sender: &mut Sender, tick: u64, values: &[u64]) {
    for (place, value) in (1..).zip(values) {
        sender.event(Timestamp(at(tick).0 + place), *value);
    }
}

/// Sum and count of a window, if nothing of it was lost.
fn expected(truth: &Truth, from: u64, to: u64) -> Option<Vec<u64>> {
    let ticks: Option<Vec<_>> = truth[from as usize..to as usize].iter().cloned().collect();
    let values: Vec<u64> = ticks?.into_iter().flatten().collect();
    Some(vec![values.iter().sum(), values.len() as u64])
}

/// Closes all windows in order of their ends, and opens them.
fn opened(service: &mut Service) -> Vec<(u64, u64, Option<Vec<u64>>)> {
    let mut all = Vec::new();
    for end in 1..=TICKS {
        for (plan, ticks) in WINDOWS.iter().enumerate().filter(|(_, ticks)| end % **ticks == 0) {
            let rows = service.open(plan, window(end - ticks, end));
            all.push((end - ticks, end, rows));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn both_kinds_of_frames_give_the_plaintexts_sums(
        first in 0_u64..5,
        steps in proptest::collection::vec(happens(), 1..TICKS as usize),
    ) {
        prop_assert_eq!(START % (12 * TICK), 0);
        for frames in [Frames::Events, Frames::Ticks { anchor: Span(3 * TICK) }] {
            let (sent, truth) = live(frames, first, &steps);
            let mut service = Service::new(schema(frames), &WINDOWS);
            service.take_all(&sent);
            for (from, to, rows) in opened(&mut service) {
                prop_assert_eq!(rows, expected(&truth, from, to), "{:?}: {} to {}", frames, from, to);
            }
        }
    }
}

/// What a storm does to frames: out of a thousand.
struct Storm {
    drop: u32,
    double: u32,
    swap: u32,
    lie: u32,
}

/// Frames as they come, with the start of the time that each is about.
type Come = Vec<(Timestamp, Vec<u8>)>;

/// The frames as they come, and lies among them.
fn weather(sent: &[Vec<u8>], storm: &Storm, rng: &mut ChaCha20Rng) -> Come {
    let mut chance = |of: u32| rng.next_u32() % 1000 < of;
    let mut come = Come::new();
    for frame in sent {
        let from = match TickFrame::parse(frame, Span(TICK)).unwrap() {
            TickFrame::Opening(opening) => opening.head.at,
            TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => claim.from,
        };
        if chance(storm.lie) {
            // The same frame with another byte somewhere.
            let mut other = frame.clone();
            let at = frame.len() / 2 + come.len() % (frame.len() / 2);
            other[at] ^= 1;
            come.push((from, other));
        }
        if chance(storm.drop) {
            continue;
        }
        come.push((from, frame.clone()));
        if chance(storm.double) {
            let (_, again) = come[come.len() / 2].clone();
            come.push((from, again));
        }
    }
    for place in 1..come.len() {
        if chance(storm.swap) {
            come.swap(place - 1, place);
        }
    }
    come
}

/// A restart of the service at any point changes nothing.
fn restarted(mut service: Service) -> Service {
    let bytes = service.transformer.snapshot(Vec::new()).unwrap();
    let (schema, plans) = (service.schema.clone(), service.plans);
    service = Service::new(schema, &[]);
    service.transformer =
        alpheus_encrypted_stream::transformer::Transformer::restore(&bytes).unwrap();
    service.plans = plans;
    service
}

/// Windows close while frames come. A window may be incomplete, but never wrong.
fn run(seed: u64, storm: &Storm) -> (usize, usize) {
    let mut rng = super::device::rng(seed);
    let steps: Vec<Happens> = (0..TICKS)
        .map(|_| match rng.next_u32() % 12 {
            0 => Happens::Asleep(1 + u64::from(rng.next_u32() % 8)),
            1 => Happens::Crash(vec![3]),
            2 => Happens::Restart(vec![1, 2]),
            n => Happens::Awake(vec![u64::from(n); n as usize % 3]),
        })
        .collect();
    let frames = Frames::Ticks { anchor: Span(3 * TICK) };
    let (sent, truth) = live(frames, 0, &steps);
    let come = weather(&sent, storm, &mut rng);
    let mut service = Service::new(schema(frames), &WINDOWS);
    let (mut taken, mut whole, mut right) = (0, 0, 0);
    for end in 1..=TICKS {
        // In a storm some come late.
        let late = if rng.next_u32() % 1000 < storm.drop { 5 } else { 0 };
        let until = come.iter().rposition(|(from, _)| *from < at(end)).map_or(0, |last| last + 1);
        for (_, frame) in &come[taken..until.saturating_sub(late).max(taken)] {
            let _ = service.take(frame);
        }
        taken = taken.max(until.saturating_sub(late));
        if rng.next_u32().is_multiple_of(4) {
            service = restarted(service);
        }
        for (plan, ticks) in WINDOWS.iter().enumerate().filter(|(_, ticks)| end % **ticks == 0) {
            let truth = expected(&truth, end - ticks, end);
            whole += usize::from(truth.is_some());
            if let Some(rows) = service.open(plan, window(end - ticks, end)) {
                assert_eq!(Some(rows), truth, "seed {seed}: {} to {end}", end - ticks);
                right += 1;
            }
        }
    }
    (whole, right)
}

#[test]
fn without_a_storm_every_window_opens() {
    for seed in 0..20 {
        let (whole, right) = run(seed, &Storm { drop: 0, double: 0, swap: 0, lie: 0 });
        assert_eq!(whole, right, "seed {seed}");
    }
}

#[test]
fn in_a_storm_a_window_may_be_missing_but_never_wrong() {
    let storm = Storm { drop: 30, double: 150, swap: 100, lie: 150 };
    let (mut whole, mut right) = (0, 0);
    for seed in 100..220 {
        let (of_seed, opened) = run(seed, &storm);
        (whole, right) = (whole + of_seed, right + opened);
    }
    assert!(right * 2 > whole, "{right} of {whole} windows opened");
}
