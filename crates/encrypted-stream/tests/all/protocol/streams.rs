//! What a malicious service, or a broken producer, may do to one stream: it is excluded
//! with a reason, and no other stream is affected.

use alpheus_crypto::mac::Tag;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::error::{ExclusionError, WindowRefusalError};
use alpheus_encrypted_stream::keys::{BorderClaim, BorderKind, MasterSecret, StreamKeys};
use alpheus_encrypted_stream::messages::{Segment, SegmentBorder, Segments, SummonedStream};
use alpheus_time::{Span, Timestamp};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::net::Net;
use crate::protocol::schemas::schema;
use crate::protocol::world::{Setup, WINDOW, after, master, policy, stream_id, window};
use crate::summoned_borders::segments_mut;

fn two_streams() -> Evil {
    Evil::new(Setup { streams_each: 2, ..Setup::new(2) })
}

/// The first stream of controller 0 after tampering; the second one stays in.
fn tampered(tamper: impl Fn(&mut SummonedStream)) -> ExclusionError {
    let mut evil = two_streams();
    let mut streams = evil.streams(0);
    tamper(&mut streams[0]);
    let presence = evil.presence(0, streams).1;
    assert_eq!(presence.accepted, vec![1]);
    assert_eq!(presence.owners, 1);
    presence.excluded[0].1
}

#[test]
fn a_forged_border_excludes_the_stream() {
    let forged = ExclusionError::ForgedBorder;
    assert_eq!(tampered(|s| segments_mut(s)[0].borders[0].tag = Tag([0; 16])), forged);
    assert_eq!(tampered(|s| segments_mut(s)[0].borders[0].events = 0), forged);
    assert_eq!(tampered(|s| segments_mut(s)[0].borders[0].closing = true), forged);
    assert_eq!(tampered(|s| segments_mut(s)[0].session ^= 1), forged);
    assert_eq!(tampered(|s| segments_mut(s)[0].opening = Some(Tag([0; 16]))), forged);
}

#[test]
fn segments_that_do_not_tile_the_window_exclude_the_stream() {
    let shift = |t: &mut Timestamp| *t = t.plus(WINDOW);
    assert_eq!(tampered(|s| segments_mut(s).clear()), ExclusionError::NotTiled);
    assert_eq!(tampered(|s| segments_mut(s)[0].borders.clear()), ExclusionError::NotTiled);
    assert_eq!(tampered(|s| shift(&mut segments_mut(s)[0].from)), ExclusionError::NotTiled);
    assert_eq!(
        tampered(|s| shift(&mut segments_mut(s)[0].borders[0].at)),
        ExclusionError::NotTiled
    );
    assert_eq!(
        tampered(|s| {
            let twice = segments_mut(s)[0].clone();
            segments_mut(s).push(twice);
        }),
        ExclusionError::NotTiled
    );
    assert_eq!(
        tampered(|s| {
            let border = segments_mut(s)[0].borders[0];
            segments_mut(s)[0].borders.push(border);
        }),
        ExclusionError::NotTiled
    );
}

#[test]
fn a_sum_that_does_not_open_to_zero_excludes_the_stream() {
    assert_eq!(tampered(|s| s.check_sum = s.check_sum.wrapping_add(1)), ExclusionError::CheckWord);
}

#[test]
fn a_summons_with_foreign_repeated_or_unordered_streams_is_refused() {
    let mut evil = two_streams();
    let (own, others) = (evil.streams(0), evil.streams(1));
    for streams in
        [others, vec![own[0].clone(), own[0].clone()], vec![own[1].clone(), own[0].clone()]]
    {
        let summons = evil.summons(0, streams);
        assert_eq!(evil.ask(0, after(0), &summons), Err(WindowRefusalError::MalformedSummons));
    }
}

/// Presences say how many streams were silent: asking for each alone would tell which.
#[test]
fn a_window_has_few_summonses() {
    let mut evil = two_streams();
    let own = evil.streams(0);
    let mut last = None;
    for round in 0..16 {
        let summons = evil.summons(0, vec![own[round % 2].clone()]);
        last = Some((evil.ask(0, after(0), &summons).unwrap(), summons));
    }
    let more = evil.summons(0, own);
    let refused = WindowRefusalError::TooManySummonses { limit: 16 };
    assert_eq!(evil.ask(0, after(0), &more), Err(refused));
    let (answer, summons) = last.unwrap();
    assert_eq!(evil.ask(0, after(0), &summons), Ok(answer));
}

/// A stream of controller 0 as its producer would have made it: sessions of ticks, each
/// border with a valid tag.
struct ScriptedStream {
    keys: StreamKeys,
    check: u16,
}

impl ScriptedStream {
    fn new() -> Self {
        let stream = stream_id(0);
        let keys = StreamKeys::new(&master(stream), stream, schema().id());
        let layout = alpheus_policy::layout::Layout::of(&schema()).unwrap();
        Self { keys, check: layout.check_word() }
    }

    fn tag(&self, kind: BorderKind, session: u64, t: Timestamp, count: u64) -> Tag {
        self.keys.border_tag(&BorderClaim { kind, session, t, count })
    }

    /// A segment over whole windows, with or without an opening at its start and a closing
    /// at its end.
    fn segment(&self, session: u64, span: (u64, u64), opened: bool, closed: bool) -> Segment {
        let from = window(span.0).start;
        let opening = opened.then(|| self.tag(BorderKind::Opening, session, from, 0));
        let border = |number: u64| {
            let (at, closing) = (window(number).end, closed && number + 1 == span.1);
            let kind = if closing { BorderKind::Closing } else { BorderKind::Interior };
            SegmentBorder { at, closing, events: 0, tag: self.tag(kind, session, at, 0) }
        };
        Segment { session, from, opening, borders: (span.0..span.1).map(border).collect() }
    }

    /// A segment of one window with this many events in it.
    fn busy(&self, session: u64, number: u64, opened: bool, events: u64) -> Segment {
        let mut segment = self.segment(session, (number, number + 1), opened, false);
        let border = &mut segment.borders[0];
        border.events = events;
        border.tag = self.tag(BorderKind::Interior, session, border.at, events);
        segment
    }

    /// The stream with the check sum of zeros in all these segments.
    fn stream(&mut self, segments: Vec<Segment>) -> SummonedStream {
        let mut check_sum = 0_u64;
        for segment in &segments {
            let mut word = |t| self.keys.key_word(segment.session, t, self.check).unwrap();
            check_sum = check_sum.wrapping_add(word(segment.to())).wrapping_sub(word(segment.from));
        }
        let segments = Segments::OfEvents(segments);
        SummonedStream { position: 0, segments, check_sum }
    }
}

/// A world whose plan has windows of three ticks.
fn long_windows(missing_ticks: u32, sets_per_day: Option<u32>) -> Evil {
    let mut evil = Evil::unannounced(Setup { windows: 6, ..Setup::new(1) });
    let mut allowed = policy(&evil.world.setup);
    let alternative = &mut allowed.attributes[0].alternatives[0];
    (alternative.missing_ticks, alternative.sets_per_day) = (missing_ticks, sets_per_day);
    let signed = evil.world.annotate(stream_id(0), 2, allowed);
    let owner = crate::protocol::identities::owner(stream_id(0));
    let step = evil.controllers[0].annotate(&signed, &owner, Timestamp(0)).unwrap();
    step.commit(&mut evil.store).unwrap();
    let window = Span(3 * WINDOW.0);
    let from = Timestamp(crate::protocol::world::EPOCH.next_multiple_of(window.0));
    let plan = alpheus_policy::plan::Plan { window, from, ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    evil.report.window = evil.world.plan.window_at(from);
    evil.accept();
    evil
}

/// The result of a window of three ticks made of these segments, given by the numbers of
/// their ticks.
fn tiled(
    missing_ticks: u32,
    segments: &[(u64, (u64, u64), bool, bool)],
) -> Result<(), ExclusionError> {
    tiled_within(long_windows(missing_ticks, None), segments)
}

fn tiled_within(
    mut evil: Evil,
    segments: &[(u64, (u64, u64), bool, bool)],
) -> Result<(), ExclusionError> {
    let first = (evil.report.window.start.0 - crate::protocol::world::EPOCH) / WINDOW.0;
    let mut made = ScriptedStream::new();
    let segments = segments.iter().map(|(session, (from, to), opened, closed)| {
        made.segment(*session, (first + from, first + to), *opened, *closed)
    });
    let segments = segments.collect();
    let stream = made.stream(segments);
    let presence = evil.presence_at(0, vec![stream], Timestamp(1 << 51)).1;
    presence.excluded.first().map_or(Ok(()), |(_, reason)| Err(*reason))
}

#[test]
fn sessions_tile_a_window_with_at_most_the_missing_ticks_that_the_policy_allows() {
    assert_eq!(tiled(0, &[(1, (0, 3), false, false)]), Ok(()));
    assert_eq!(tiled(0, &[(1, (0, 3), true, false)]), Ok(()));
    // One session closes in order; the next opens on the same border.
    assert_eq!(tiled(0, &[(1, (0, 1), false, true), (2, (1, 3), true, false)]), Ok(()));
    // A session died: a tick is missing.
    let died = [(1, (0, 1), false, false), (2, (2, 3), true, false)];
    assert_eq!(tiled(0, &died), Err(ExclusionError::MissingTicks));
    assert_eq!(tiled(1, &died), Ok(()));
    // It came online within the window.
    let late = [(1, (2, 3), true, false)];
    assert_eq!(tiled(1, &late), Err(ExclusionError::MissingTicks));
    assert_eq!(tiled(2, &late), Ok(()));
    // The border at the window's end must be there.
    assert_eq!(tiled(3, &[(1, (0, 2), false, false)]), Err(ExclusionError::NotTiled));
    // A segment within the window opens its session.
    assert_eq!(tiled(3, &[(1, (1, 3), false, false)]), Err(ExclusionError::NotTiled));
}

/// Else the service could cut another tick of a stream from each window over the one set.
#[test]
fn no_tick_may_be_missing_where_the_sets_of_a_day_are_bounded() {
    let died = [(1, (0, 1), false, false), (2, (2, 3), true, false)];
    let bounded = |segments| tiled_within(long_windows(1, Some(1)), segments);
    assert_eq!(bounded(&died), Err(ExclusionError::MissingTicks));
    assert_eq!(bounded(&[(1, (0, 3), false, false)]), Ok(()));
    assert_eq!(tiled_within(long_windows(1, None), &died), Ok(()));
}

#[test]
fn a_session_does_not_reach_back_into_a_dead_one() {
    // The second session opens on the last border of one that was not closed. What followed
    // that border is lost, so the tick must be missing.
    let back = [(1, (0, 1), false, false), (2, (1, 3), true, false)];
    assert_eq!(tiled(3, &back), Err(ExclusionError::SessionOverlap));
    let resumed = [(1, (0, 1), true, true), (1, (2, 3), true, false)];
    assert_eq!(tiled(3, &resumed), Ok(()), "one session, as far as its borders say");
}

/// The layout sizes digits for the schema's events. The service must not pass off a stream
/// that has more of them, whatever its transformer counted.
#[test]
fn a_stream_with_more_events_than_the_schema_allows_is_excluded() {
    let counted = |events: u64| {
        let mut evil = Evil::new(Setup::new(1));
        let mut made = ScriptedStream::new();
        let stream = made.stream(vec![made.busy(1, 0, true, events)]);
        let streams = vec![stream];
        evil.presence(0, streams).1.excluded
    };
    let most = schema().capacity.events;
    assert_eq!(counted(most), []);
    assert_eq!(counted(most + 1), [(0, ExclusionError::TooManyEvents)]);
}

/// The ledger notes a session when it is first seen. How far it reached since then follows
/// from the tokens that were spent on it.
#[test]
fn a_restored_controller_knows_how_far_a_session_had_reached() {
    let spliced = |restored: bool| {
        let mut evil = Evil::new(Setup { windows: 4, ..Setup::new(1) });
        let mut made = ScriptedStream::new();
        for number in 0..2 {
            evil.close(number);
            let stream = made.stream(vec![made.busy(1, number, number == 0, 1)]);
            let (digest, presence) = evil.presence_at(0, vec![stream], after(number));
            let members = vec![(0, digest, presence.owners)];
            evil.token_at(0, &Draft { window: window(number), members });
        }
        if restored {
            evil.start_again(after(1));
        }
        // Another session opens on the last border of one that was not closed.
        evil.close(2);
        let stream = made.stream(vec![made.busy(2, 2, true, 1)]);
        evil.presence_at(0, vec![stream], after(2)).1.excluded
    };
    let overlaps = [(0, ExclusionError::SessionOverlap)];
    assert_eq!(spliced(false), overlaps);
    assert_eq!(spliced(true), overlaps);
}

#[test]
fn a_window_cannot_be_cut_out_of_a_running_session() {
    // Claiming that a session opened later than it did requires an opening border.
    let mut evil = long_windows(2, None);
    let first = (evil.report.window.start.0 - crate::protocol::world::EPOCH) / WINDOW.0;
    let mut made = ScriptedStream::new();
    let mut segment = made.segment(1, (first + 2, first + 3), true, false);
    segment.opening = Some(made.tag(BorderKind::Interior, 1, segment.from, 0));
    let stream = made.stream(vec![segment]);
    let presence = evil.presence_at(0, vec![stream], Timestamp(1 << 51)).1;
    assert_eq!(presence.excluded, vec![(0, ExclusionError::ForgedBorder)]);
}

#[test]
fn a_producer_with_a_wrong_key_affects_no_other_stream() {
    let mut net = Net::with_master(Setup::new(3), |number, master| {
        if number == 1 { MasterSecret::new(Secret::from_bytes([66; 32])) } else { master }
    });
    net.close(0);
    let outcome = &net.outcomes[0];
    let opened = outcome.result.as_ref().unwrap();
    assert_eq!((opened.outputs.clone(), opened.population), (net.world.truth([0, 2], 0), 2));
    // The border's tag itself is under another key.
    assert_eq!(outcome.excluded[&ExclusionError::ForgedBorder], 1);
}
