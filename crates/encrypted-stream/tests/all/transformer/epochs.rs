//! A plan without a roster: streams join, a window closes, and then a list says whose sums go on.

use super::feed::{NOW, Session, TICK, everything, frames, plan, shape, stream, take, window};
use alpheus_encrypted_stream::transformer::{IncompleteError, Transformer, WindowError};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Plan, PlannedStream};
use alpheus_time::Timestamp;

/// Terms that these streams may take part in, with their id.
fn setup(streams: u32) -> (Transformer, PlanId, Plan) {
    let mut transformer = Transformer::new(shape(2), 1);
    let terms = plan(1, TICK, everything(2)).terms();
    let id = transformer.register_terms(&terms).unwrap();
    (0..streams).for_each(|number| transformer.enrol(&id, stream(number)));
    (transformer, id, terms)
}

/// The plan of the epoch that begins then, over these streams.
fn listed(terms: &Plan, from: u64, streams: &[u32]) -> Plan {
    let all = plan(100, TICK, everything(2));
    let named = |planned: &PlannedStream| streams.iter().any(|own| stream(*own) == planned.stream);
    let streams = all.streams.iter().copied().filter(named).collect();
    Plan { from: Timestamp(from), roster: all.roster, streams, ..terms.clone() }
}

#[test]
fn sums_go_on_for_the_listed_and_are_dropped_for_others() {
    let (mut transformer, terms, text) = setup(4);
    for number in 0..3 {
        take(&mut transformer, number, &frames(u64::from(number) + 1, 2, 1, 3, 10));
    }
    let mut lost = frames(4, 2, 1, 3, 10);
    lost.remove(2);
    take(&mut transformer, 3, &lost);
    let report = transformer.close(&terms, window(0, TICK), 0).unwrap();
    assert_eq!(report.complete().count(), 3);
    let (unlisted, online) = transformer.unlisted(&terms).unwrap();
    assert_eq!((unlisted, online.len()), (window(0, TICK), 4));

    // A list that names a stream that was not there as well.
    let epoch = listed(&text, 0, &[0, 2, 9]);
    // The state outlives a restart at any of these points.
    let mut transformer = Transformer::restore(&transformer.snapshot(Vec::new()).unwrap()).unwrap();
    let kept = transformer.list(&terms, &epoch).unwrap();
    let positions: Vec<u32> = kept.report.complete().map(|stream| stream.position).collect();
    assert_eq!(positions, [0, 1], "their positions in the epoch's plan");
    assert_eq!((kept.unlisted, &kept.incomplete[..]), (1, &[IncompleteError::Gap][..]));
    let mut transformer = Transformer::restore(&transformer.snapshot(Vec::new()).unwrap()).unwrap();
    assert_eq!(transformer.list(&terms, &epoch).as_ref(), Some(&kept), "the same again");
    let id = epoch.id();
    assert_eq!(transformer.sum(&id, window(0, TICK), &[0, 1]).unwrap(), [60, 60]);
    let not = WindowError::NotSummable { position: 2 };
    assert_eq!(transformer.sum(&id, window(0, TICK), &[2]), Err(not));
    assert_eq!(transformer.unlisted(&terms), None);
    // Another list of the window finds nothing.
    assert_eq!(transformer.list(&terms, &listed(&text, 0, &[1])), None);
    assert_eq!(transformer.closable_window(&id), None);
    // A stored state may have plans that are over.
    let mut older = Transformer::restore(&transformer.snapshot(Vec::new()).unwrap()).unwrap();
    older.keep_only(&[terms].into());
    assert!(!older.unregister(&id) && older.unregister(&terms));
    assert!(transformer.finish(&id, window(0, TICK)));
    assert!(transformer.unregister(&id));
}

#[test]
fn a_stream_that_joins_is_in_from_the_first_window_that_it_has_whole() {
    let (mut transformer, terms, text) = setup(1);
    take(&mut transformer, 0, &frames(1, 2, 3, 1, 5));
    let (mut late, opening) = Session::open(2, 0, 2);
    transformer.admit(stream(1));
    take(&mut transformer, 1, &[opening, late.data(1, 7)]);
    transformer.enrol(&terms, stream(1));
    transformer.enrol(&terms, stream(1));
    let rest = [late.data(2, 7), late.border(TICK), late.data(TICK + 1, 7), late.border(2 * TICK)];
    take(&mut transformer, 1, &rest);
    for (number, complete) in [(0, vec![0]), (1, vec![0, 1])] {
        let (from, to) = (number * TICK, (number + 1) * TICK);
        let report = transformer.close(&terms, window(from, to), 0).unwrap();
        assert_eq!(report.complete().map(|own| own.position).collect::<Vec<_>>(), complete);
        let epoch = listed(&text, from, &[0, 1]);
        let kept = transformer.list(&terms, &epoch).unwrap();
        assert_eq!(kept.report.complete().count(), complete.len());
        let all: Vec<u32> = (0..).take(complete.len()).collect();
        let sum = transformer.sum(&epoch.id(), window(from, to), &all).unwrap();
        assert_eq!(sum, if number == 0 { [5, 5] } else { [12, 12] });
    }
}

#[test]
fn a_window_without_a_list_leaves_nothing() {
    let (mut transformer, terms, text) = setup(2);
    let empty = transformer.footprint();
    take(&mut transformer, 0, &frames(1, 2, 1, 3, 10));
    transformer.close(&terms, window(0, TICK), 0).unwrap();
    assert_eq!(transformer.give_up(&terms, window(0, TICK)).unwrap().unlisted, 1);
    assert_eq!(transformer.give_up(&terms, window(0, TICK)), None);
    assert_eq!(transformer.list(&terms, &listed(&text, 0, &[0])), None);
    assert!(transformer.footprint() < empty + 600, "{} after {empty}", transformer.footprint());
    let frame = frames(2, 2, 1, 1, 1);
    assert!(transformer.handle(0, stream(0), &frame[1], NOW).is_err(), "its window is closed");
}
