//! The window sum as a monoid, and the errors that its digest detects.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::frame::{Frame, FrameView, Link};
use alpheus_encrypted_stream::sums::{TickSum, expected_digest};
use alpheus_time::Timestamp;
use proptest::prelude::*;

const FROM: Timestamp = Timestamp(1000);
const TO: Timestamp = Timestamp(2000);
const SESSION: u64 = 42;

/// The events of a tick: data at these times and the border at its end.
fn tick(session: u64, times: &[u64]) -> Vec<Vec<u8>> {
    let mut previous = FROM;
    let mut link = |t| {
        let previous = std::mem::replace(&mut previous, t);
        Link { session, previous, t }
    };
    let mut frames: Vec<Vec<u8>> = times
        .iter()
        .map(|t| Frame::Data { link: link(Timestamp(*t)), words: vec![*t, t ^ 7] }.to_bytes())
        .collect();
    let (count, tag, words) = (times.len() as u64, Tag([0; 16]), vec![5, 5]);
    frames.push(Frame::Border { link: link(TO), count, tag, words }.to_bytes());
    frames
}

fn one(frame: &[u8]) -> TickSum {
    let mut sum = TickSum::new(2);
    match FrameView::parse(frame).unwrap() {
        Frame::Data { link, words } => sum.add_data(&link, &words).unwrap(),
        Frame::Border { link, words, .. } | Frame::Closing { link, words, .. } => {
            sum.add_border(&link, &words).unwrap();
        }
        Frame::Opening { .. } => {}
    }
    sum
}

fn sum(frames: &[Vec<u8>]) -> TickSum {
    frames.iter().fold(TickSum::new(2), |mut sum, frame| {
        sum.merge(&one(frame)).unwrap();
        sum
    })
}

fn complete(frames: &[Vec<u8>]) -> bool {
    sum(frames).complete(SESSION, FROM, TO)
}

/// Strictly ascending times between the borders.
fn times() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::btree_set(FROM.0 + 1..TO.0, 1..20)
        .prop_map(|set| set.into_iter().collect())
}

proptest! {
    #[test]
    fn any_order_and_grouping_has_the_same_sum(
        times in times(),
        order in proptest::collection::vec(any::<u64>(), 21),
        cut in any::<usize>(),
    ) {
        let frames = tick(SESSION, &times);
        let mut shuffled: Vec<_> = frames.iter().cloned().zip(order).collect();
        shuffled.sort_by_key(|(_, key)| *key);
        let shuffled: Vec<Vec<u8>> = shuffled.into_iter().map(|(frame, _)| frame).collect();
        let (left, right) = shuffled.split_at(cut % shuffled.len());
        let mut grouped = sum(right);
        grouped.merge(&sum(left)).unwrap();
        prop_assert_eq!(&grouped, &sum(&frames));
        prop_assert!(grouped.complete(SESSION, FROM, TO));
        prop_assert_eq!(grouped.count(), times.len() as u64);
        prop_assert_eq!(grouped.words()[0], times.iter().sum::<u64>() + 5);
    }

    #[test]
    fn a_gap_a_duplicate_and_a_missing_border_change_the_digest(times in times(), at in any::<usize>()) {
        let frames = tick(SESSION, &times);
        let at = at % frames.len();
        let mut lost = frames.clone();
        lost.remove(at);
        prop_assert!(!complete(&lost));
        let mut doubled = frames.clone();
        doubled.push(frames[at].clone());
        prop_assert!(!complete(&doubled));
        let mut exchanged = frames.clone();
        exchanged[at] = frames[(at + 1) % frames.len()].clone();
        prop_assert!(!complete(&exchanged));
    }

    #[test]
    fn an_event_of_another_session_changes_the_digest(times in times(), other: u64, at in any::<usize>()) {
        prop_assume!(other != SESSION);
        let mut frames = tick(SESSION, &times);
        let foreign = tick(other, &times);
        prop_assert!(!complete(&foreign));
        let at = at % frames.len();
        frames[at] = foreign[at].clone();
        prop_assert!(!complete(&frames));
    }

    /// Digests of adjacent segments add up, so a window's digest is the sum of its ticks'.
    #[test]
    fn digests_telescope(session: u64, a in 0u64..1 << 50, b in 0u64..1 << 50, c in 0u64..1 << 50) {
        let [a, b, c] = [a, b, c].map(Timestamp);
        let parts = expected_digest(session, a, b).wrapping_add(expected_digest(session, b, c));
        prop_assert_eq!(parts, expected_digest(session, a, c));
    }
}

#[test]
fn the_empty_sum_is_neutral_and_lengths_must_agree() {
    let frames = tick(SESSION, &[1001, 1500]);
    let mut sum = sum(&frames);
    let before = sum.clone();
    sum.merge(&TickSum::new(2)).unwrap();
    assert_eq!(sum, before);
    assert!(sum.merge(&TickSum::new(3)).is_err());
    assert_eq!(sum, before);
    let FrameView::Data { link, words } = FrameView::parse(&frames[0]).unwrap() else { return };
    let mut short = TickSum::new(1);
    assert!(short.add_data(&link, &words).is_err());
    assert_eq!(short, TickSum::new(1));
}
