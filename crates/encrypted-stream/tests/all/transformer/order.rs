//! Order of arrival, time, restarts and bad bytes.

use super::feed::{NOW, Session, TICK, everything, frames, plan, shape, stream, take, window};
use alpheus_encrypted_stream::transformer::{IngestError, Transformer, WindowReport};
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use proptest::prelude::*;

const STREAMS: u32 = 4;

/// Everything that comes out of the two windows that `all` spans.
fn outcome(transformer: &mut Transformer, plan: &PlanId) -> Vec<(WindowReport, Vec<u64>)> {
    let windows = [window(0, 20), window(20, 40)];
    let outcome = windows.map(|window| {
        let report = transformer.close(plan, window, 0).unwrap();
        let complete: Vec<u32> = report.complete().map(|stream| stream.position).collect();
        let sum = transformer.sum(plan, window, &complete).unwrap();
        (report, sum)
    });
    outcome.into()
}

/// Frames of four streams, each with its own fault, stream by stream.
fn troubled() -> Vec<(u32, Vec<u8>)> {
    let mut streams: Vec<_> =
        (0..STREAMS).map(|i| frames(i.into(), 2, 4, 3, 10 + u64::from(i))).collect();
    streams[1].remove(6);
    let doubled = streams[2][12].clone();
    streams[2].insert(12, doubled);
    let numbered =
        |(number, frames): (u32, Vec<Vec<u8>>)| frames.into_iter().map(move |f| (number, f));
    (0..).zip(streams).flat_map(numbered).collect()
}

fn run(frames: &[(u32, Vec<u8>)]) -> Vec<(WindowReport, Vec<u64>)> {
    let mut transformer = Transformer::new(shape(2), 1);
    let id = transformer.register(&plan(STREAMS, 20, everything(2))).unwrap();
    for (number, frame) in frames {
        // Refusals are part of the outcome only as far as reports show them.
        let _ = transformer.handle(0, stream(*number), frame, NOW);
    }
    outcome(&mut transformer, &id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Streams may interleave in any way, and a stream's events may come in any order once
    /// its session is open: sums and reports are the same. Stream 2 is left as it is,
    /// because its duplicate is harmless behind a frozen tick.
    #[test]
    fn the_order_of_streams_does_not_matter(seed in proptest::collection::vec(any::<u32>(), 80)) {
        let all = troubled();
        let expected = run(&all);
        let mut shuffled: Vec<_> = all.iter().enumerate().map(|(i, frame)| {
            let opening = frame.1[0] == 0x10;
            let within = frame.0 == 2;
            let key = if opening { 0 } else if within { u32::MAX } else { seed[i % seed.len()] / 2 + 1 };
            (key, i, frame.clone())
        }).collect();
        shuffled.sort();
        let shuffled: Vec<_> = shuffled.into_iter().map(|(_, _, frame)| frame).collect();
        prop_assert_eq!(run(&shuffled), expected);
    }

    /// A batch has the same effect as its frames one by one, also if streams alternate,
    /// frames are refused or their stream is unknown.
    #[test]
    fn a_batch_of_frames_has_the_same_effect_as_single_frames(turns in proptest::collection::vec(0usize..6, 0..120)) {
        let mut queues: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 6];
        troubled().into_iter().rev().for_each(|(of, frame)| queues[of as usize].push(frame));
        queues[5] = vec![vec![0x11; 7]; 20];
        let all: Vec<_> = turns.iter().filter_map(|of| Some((*of as u32, queues[*of].pop()?))).collect();
        let fresh = || {
            let mut transformer = Transformer::new(shape(2), 1);
            transformer.register(&plan(STREAMS, 20, everything(2))).unwrap();
            transformer
        };
        let (mut single, mut many) = (fresh(), fresh());
        let expected: Vec<_> = all.iter().map(|(of, frame)| single.handle(0, stream(*of), frame, NOW)).collect();
        let mut became = Vec::new();
        let frames = all.iter().map(|(of, frame)| (stream(*of), frame.as_slice()));
        many.handle_all(0, frames, NOW, |place, taken| {
            assert_eq!(place, became.len());
            became.push(taken);
        });
        prop_assert_eq!(became, expected);
        prop_assert_eq!(many.snapshot(Vec::new()), single.snapshot(Vec::new()));
    }

    /// After a restart from any snapshot, everything continues as if nothing had happened.
    #[test]
    fn a_snapshot_resumes_without_a_difference(at in 0usize..60) {
        let all = troubled();
        let expected = run(&all);
        let mut transformer = Transformer::new(shape(2), 1);
        let id = transformer.register(&plan(STREAMS, 20, everything(2))).unwrap();
        for (i, (number, frame)) in all.iter().enumerate() {
            if i == at {
                let snapshot = transformer.snapshot(Vec::new()).unwrap();
                transformer = Transformer::restore(&snapshot).unwrap();
            }
            let _ = transformer.handle(0, stream(*number), frame, NOW);
        }
        prop_assert_eq!(outcome(&mut transformer, &id), expected);
    }

    /// Bytes that are not a frame, or not this stream's next frame, are refused and have no
    /// other effect.
    #[test]
    fn bad_bytes_change_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        flips in proptest::collection::vec((any::<usize>(), any::<usize>(), 1u8..), 20),
    ) {
        let all = troubled();
        let mut transformer = Transformer::new(shape(2), 1);
        let id = transformer.register(&plan(STREAMS, 20, everything(2))).unwrap();
        transformer.admit(stream(99));
        for (number, frame) in &all {
            let _ = transformer.handle(0, stream(*number), frame, NOW);
            let _ = transformer.handle(0, stream(99), &bytes, NOW);
        }
        // Damaged copies go to their own stream, which they may invalidate.
        for (frame, byte, flip) in flips {
            let mut damaged = all[frame % all.len()].1.clone();
            let byte = byte % damaged.len();
            damaged[byte] ^= flip;
            let _ = transformer.handle(0, stream(99), &damaged, NOW);
        }
        prop_assert_eq!(outcome(&mut transformer, &id), run(&all));
    }
}

#[test]
fn bytes_that_are_not_a_snapshot_are_refused() {
    let snapshot = Transformer::new(shape(2), 1).snapshot(Vec::new()).unwrap();
    assert!(Transformer::restore(&snapshot).is_ok());
    assert!(Transformer::restore(&snapshot[1..]).is_err());
    assert!(Transformer::restore(&[snapshot.as_slice(), &[0]].concat()).is_err());
    assert!(Transformer::restore(&[]).is_err());
}

#[test]
fn a_future_frame_is_refused_before_it_moves_the_watermark() {
    let mut transformer = Transformer::new(shape(2), 1);
    transformer.admit(stream(0));
    let (mut session, opening) = Session::open(1, 0, 2);
    let clock = Timestamp(20);
    let mut take = |frame: &[u8]| transformer.handle(0, stream(0), frame, clock);
    take(&opening).unwrap();
    // The clock is at 20, and a skew of 5 is allowed.
    take(&session.data(5, 1)).unwrap();
    assert_eq!(take(&session.clone().data(26, 1)), Err(IngestError::Future));
    assert_eq!(transformer.watermark(), Timestamp(5));
}

#[test]
fn each_partition_has_its_watermark() {
    let mut transformer = Transformer::new(shape(2), 3);
    let id = transformer.register(&plan(2, TICK, everything(2))).unwrap();
    let mut take = |partition, number, frames: &[Vec<u8>], transformer: &mut Transformer| {
        for frame in frames {
            transformer.handle(partition, stream(number), frame, NOW).unwrap();
        }
        (transformer.watermark().0, transformer.closable_window(&id))
    };
    let fast = frames(1, 2, 5, 1, 1);
    let slow = frames(2, 2, 3, 1, 1);
    let take = &mut take;
    // Partition 0 runs ahead; 1 and 2 have not been read.
    assert_eq!(take(0, 0, &fast[..7], &mut transformer), (0, None));
    assert_eq!(take(1, 1, &slow[..2], &mut transformer), (0, None));
    transformer.watermarks().caught_up(2);
    assert_eq!(take(1, 1, &slow[2..3], &mut transformer), (10, Some(window(0, 10))));
    // All of partition 1's sessions close in order: it holds nothing back.
    assert_eq!(take(1, 1, &slow[3..], &mut transformer).0, 30);
    assert_eq!(take(0, 0, &fast[7..10], &mut transformer).0, 41);
    // Once all have closed, time stays where the last one left it.
    assert_eq!(take(0, 0, &fast[10..], &mut transformer).0, 50);
}

#[test]
fn windows_become_closable_if_a_stream_was_online() {
    let mut transformer = Transformer::new(shape(2), 1);
    let mut planned = plan(2, TICK, everything(2));
    planned.grace = alpheus_time::Span(5);
    let id = transformer.register(&planned).unwrap();
    let far = 1_000_000_000;
    let (mut first, opening) = Session::open(1, far, 2);
    take(&mut transformer, 0, &[opening, first.closing(far + 10)]);
    let (mut second, opening) = Session::open(2, far + 50, 2);
    take(&mut transformer, 1, &[opening, second.data(far + 54, 1)]);
    let due = |transformer: &mut Transformer| {
        let due = transformer.closable_window(&id)?;
        transformer.close(&id, due, 0).unwrap();
        Some((due.start.0 - far, due.end.0 - far))
    };
    assert_eq!(due(&mut transformer), Some((0, 10)));
    assert_eq!(due(&mut transformer), None);
    take(&mut transformer, 1, &[second.border(far + 60), second.data(far + 64, 1)]);
    assert_eq!(due(&mut transformer), None, "grace");
    take(&mut transformer, 1, &[second.data(far + 65, 1)]);
    assert_eq!(due(&mut transformer), Some((50, 60)));
    assert_eq!(
        transformer.closable_window_by(&id, Timestamp(far + 75)),
        Some(window(far + 60, far + 70))
    );
    transformer.watermarks().seal(Timestamp(far + 75));
    assert_eq!(due(&mut transformer), Some((60, 70)));
}

#[test]
fn a_stream_with_a_hundred_sessions_is_stopped() {
    let mut transformer = Transformer::new(shape(2), 1);
    transformer.register(&plan(1, 100_000, everything(2))).unwrap();
    let mut refused = 0;
    for i in 0..100 {
        let (mut session, opening) = Session::open(i, i * TICK, 2);
        let result = transformer.handle(0, stream(0), &opening, NOW);
        if result.is_ok() {
            take(&mut transformer, 0, &[session.data(i * TICK + 1, 1)]);
        } else {
            assert_eq!(result, Err(IngestError::TooManySessions));
            refused += 1;
        }
    }
    assert_eq!(refused, 36);
}
