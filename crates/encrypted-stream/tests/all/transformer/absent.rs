//! Streams that come back after an outage, one after the other.

use super::feed::{NOW, Session, everything, plan, shape, stream, take, window};
use alpheus_encrypted_stream::transformer::Transformer;
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;

const T20: Timestamp = Timestamp(20);

/// Streams that are online and have reached 20, in one partition, with windows of 20.
fn deployment(streams: u32) -> (Transformer, PlanId, Vec<Session>) {
    let mut transformer = Transformer::new(shape(2), 1);
    let id = transformer.register(&plan(streams, 20, everything(2))).unwrap();
    let mut sessions = Vec::new();
    for number in 0..streams {
        let (mut session, opening) = Session::open(number.into(), 0, 2);
        let frames = [vec![opening], up_to(&mut session, 0, 20)].concat();
        take(&mut transformer, number, &frames);
        sessions.push(session);
    }
    transformer.watermarks().caught_up(0);
    transformer.close(&id, window(0, 20), 0).unwrap();
    (transformer, id, sessions)
}

fn up_to(session: &mut Session, from: u64, to: u64) -> Vec<Vec<u8>> {
    let tick = |t: u64| [t + 1, t + 10];
    let times = (from..to).step_by(10).flat_map(tick);
    times.map(|t| if t % 10 == 0 { session.border(t) } else { session.data(t, 7) }).collect()
}

#[test]
fn the_first_stream_to_come_back_ends_no_window_of_the_others() {
    let (mut transformer, id, mut sessions) = deployment(2);
    assert_eq!(transformer.wait_for_streams(Timestamp(10), Timestamp(100)), 2);
    // The first has everything up to 120.
    take(&mut transformer, 0, &up_to(&mut sessions[0], 20, 120));
    assert_eq!((transformer.absent_streams(), transformer.watermark()), (1, T20));
    assert_eq!(transformer.closable_window(&id), None);
    // The second comes back with a part of what it has.
    take(&mut transformer, 1, &up_to(&mut sessions[1], 20, 60));
    assert_eq!((transformer.absent_streams(), transformer.watermark()), (1, Timestamp(60)));
    let closed = transformer.closable_window(&id).unwrap();
    let report = transformer.close(&id, closed, 0).unwrap();
    assert_eq!((closed, report.complete().count()), (window(20, 40), 2));
    take(&mut transformer, 1, &up_to(&mut sessions[1], 60, 100));
    assert_eq!((transformer.absent_streams(), transformer.watermark()), (0, Timestamp(120)));
    // From now on event time is as it always was: the second is late.
    for start in [40, 60, 80] {
        let report = transformer.close(&id, window(start, start + 20), 0).unwrap();
        assert_eq!(report.complete().count(), 2, "{start}");
    }
    assert_eq!(transformer.closable_window(&id), Some(window(100, 120)));
}

#[test]
fn streams_that_were_gone_before_or_close_are_not_waited_for() {
    let (mut transformer, id, mut sessions) = deployment(3);
    take(&mut transformer, 0, &up_to(&mut sessions[0], 20, 40));
    take(&mut transformer, 1, &up_to(&mut sessions[1], 20, 40));
    // The third has been silent since 20.
    assert_eq!(transformer.wait_for_streams(Timestamp(30), Timestamp(100)), 2);
    take(&mut transformer, 0, &up_to(&mut sessions[0], 40, 120));
    let closing = sessions[1].closing(50);
    take(&mut transformer, 1, &[closing]);
    assert_eq!((transformer.absent_streams(), transformer.watermark()), (0, Timestamp(120)));
    assert_eq!(transformer.closable_window(&id), Some(window(20, 40)));
}

#[test]
fn a_stream_that_opens_another_session_is_back_once_that_has_reached_the_time() {
    let (mut transformer, _, mut sessions) = deployment(2);
    transformer.wait_for_streams(Timestamp(0), Timestamp(100));
    take(&mut transformer, 0, &up_to(&mut sessions[0], 20, 120));
    let (mut again, opening) = Session::open(9, 90, 2);
    take(&mut transformer, 1, &[opening]);
    assert_eq!((transformer.absent_streams(), transformer.watermark()), (1, Timestamp(90)));
    take(&mut transformer, 1, &up_to(&mut again, 90, 100));
    assert_eq!(transformer.absent_streams(), 0);
}

#[test]
fn the_wait_ends_and_is_in_no_snapshot() {
    let (mut transformer, id, mut sessions) = deployment(2);
    transformer.wait_for_streams(Timestamp(0), Timestamp(100));
    take(&mut transformer, 0, &up_to(&mut sessions[0], 20, 120));
    let restored = Transformer::restore(&transformer.snapshot(Vec::new()).unwrap()).unwrap();
    assert_eq!(restored.closable_window(&id), Some(window(20, 40)));
    assert_eq!(
        (restored.last_entry(), transformer.closable_window(&id)),
        (Some(Timestamp(120)), None)
    );
    transformer.stop_waiting();
    assert_eq!(transformer.closable_window(&id), Some(window(20, 40)));
    // A stream of no plan is not waited for.
    transformer.admit(stream(9));
    let (_, opening) = Session::open(1, 20, 2);
    transformer.handle(0, stream(9), &opening, NOW).unwrap();
    assert!(transformer.unregister(&id));
    assert_eq!(transformer.wait_for_streams(Timestamp(0), Timestamp(900)), 0);
}
