//! The transformer's memory: at most `1.2 · 8·L + 256` bytes for each open window of a
//! stream, and nothing for finished windows. That includes about 200 bytes for the stream
//! itself.

use super::feed::{NOW, Session, TICK, everything, plan, shape, stream, window};
use alpheus_encrypted_stream::transformer::Transformer;
use alpheus_policy::plan::Release;

/// Runs `streams` for some windows, with two events a tick each, and checks the footprint
/// with one window open and one closed but not finished.
fn holds(streams: u32, words: u16, release: Release, windows: u64) {
    let mut transformer = Transformer::new(shape(words), 1);
    let id = transformer.register(&plan(streams, TICK, release)).unwrap();
    let mut sessions = Vec::new();
    for number in 0..streams {
        let (session, opening) = Session::open(number.into(), 0, words);
        transformer.handle(0, stream(number), &opening, NOW).unwrap();
        sessions.push(session);
    }
    let empty = transformer.footprint();
    let limit = |open: f64| open * f64::from(streams) * (1.2 * 8.0 * f64::from(words) + 256.0);
    for tick in 0..windows {
        let start = tick * TICK;
        let feed = |transformer: &mut Transformer, sessions: &mut [Session], t: Option<u64>| {
            for (number, session) in (0..).zip(sessions) {
                let frame = match t {
                    Some(t) => session.data(t, 1),
                    None => session.border(start + TICK),
                };
                transformer.handle(0, stream(number), &frame, NOW).unwrap();
            }
        };
        feed(&mut transformer, &mut sessions, Some(start + 1));
        if let Some(last) = start.checked_sub(TICK) {
            // The previous window is closed and still being opened by its owners.
            assert!((transformer.footprint() as f64) < limit(2.0), "two open");
            assert!(transformer.finish(&id, window(last, start)));
        }
        assert!((transformer.footprint() as f64) < limit(1.0), "{}", transformer.footprint());
        feed(&mut transformer, &mut sessions, Some(start + 2));
        feed(&mut transformer, &mut sessions, None);
        assert!((transformer.footprint() as f64) < limit(1.0));
        let report = transformer.close(&id, window(start, start + TICK), 0).unwrap();
        assert_eq!(report.complete().count(), streams as usize);
    }
    transformer.finish(&id, window((windows - 1) * TICK, windows * TICK));
    // What is left is what a stream without an open window needs.
    assert!(transformer.footprint() < empty + 256 * streams as usize);
}

#[test]
fn an_open_window_needs_little_more_memory_than_its_words() {
    holds(200, 683, everything(683), 5);
    holds(200, 170, Release { rows: vec![vec![0, 5], vec![169]] }, 5);
}

#[test]
fn a_hundred_thousand_streams_need_no_more_memory_each() {
    holds(100_000, 64, everything(64), 2);
}

/// The most memory for a device that sends an event in each tick of a window, and no border.
fn without_borders(ticks: u64) -> usize {
    const WORDS: u16 = 683;
    let mut transformer = Transformer::new(shape(WORDS), 1);
    transformer.register(&plan(1, ticks * TICK, everything(WORDS))).unwrap();
    let (mut session, opening) = Session::open(1, 0, WORDS);
    transformer.handle(0, stream(0), &opening, NOW).unwrap();
    let mut most = 0;
    for tick in 0..ticks {
        // Refused, since the border before it is missing.
        let _ = transformer.handle(0, stream(0), &session.data(tick * TICK + 1, 1), NOW);
        most = most.max(transformer.footprint());
    }
    most
}

#[test]
fn a_device_that_sends_no_borders_needs_bounded_memory() {
    let (few, many) = (without_borders(256), without_borders(2_000));
    assert!(many < few + few / 10, "{many} bytes, and {few} for 256 ticks");
}
