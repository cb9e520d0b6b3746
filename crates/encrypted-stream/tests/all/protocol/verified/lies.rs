//! A service that lies about sums: whatever does not fit is left out by name, and the rest is the
//! truth.

use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::keys::StreamKeys;
use alpheus_encrypted_stream::messages::{Segments, SummonedStream};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind};
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_encrypted_stream::transformer::IncompleteError;
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};

use super::{gather, long, parts, receipt, tampered, truth, whole};
use crate::protocol::identities::owner;
use crate::protocol::world::{
    Setup, WINDOW, World, after, master, policy, stream_id, transformer, window,
};

const MISMATCH: ExclusionError = ExclusionError::SumMismatch;

#[test]
fn one_changed_bit_of_one_word_of_one_block_excludes_the_stream() {
    let evil = long(2, 2, 1);
    let sizes: Vec<usize> =
        parts(&mut evil.streams(0)[0]).iter().map(|part| part.words.len()).collect();
    // The sum at the window's start, at the anchor, and at its end.
    assert_eq!(sizes.len(), 3);
    let bits = |(claim, words): (usize, usize)| {
        (0..words).flat_map(move |word| [0, 17, 63].map(move |bit| (claim, word, bit)))
    };
    let all: Vec<_> = sizes.into_iter().enumerate().flat_map(bits).collect();
    // A window has so many summonses.
    for some in all.chunks(16) {
        let mut evil = long(2, 2, 1);
        for (claim, word, bit) in some {
            let mut streams = evil.streams(0);
            parts(&mut streams[0])[*claim].words[*word] ^= 1 << bit;
            let presence = evil.presence_at(0, streams, after(9)).1;
            assert_eq!(presence.excluded, [(0, MISMATCH)], "claim {claim}, word {word}");
            assert_eq!(presence.accepted, [1]);
        }
    }
}

/// The service shows the opening of a later session, as if the one before had died, and leaves out
/// the last ticks.
#[test]
fn ticks_that_are_cut_off_at_the_end_exclude_the_stream() {
    let cut = tampered(|stream| {
        let Segments::OfTicks { claims, .. } = &mut stream.segments else { panic!("ticks") };
        let last = claims[0].pop().unwrap();
        let world = World::new(Setup { streams_each: 2, ..Setup::new(2) }.verified());
        let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), world.schema.id());
        let mut opening = keys.open_claim(&last).unwrap();
        (opening.kind, opening.from) = (ClaimKind::Opening, opening.to);
        (opening.session, opening.count) = (opening.session + 1, 0);
        claims.push(vec![keys.claim(&opening)]);
    });
    assert_eq!(cut, ExclusionError::NotTiled);
}

/// The device ended its session within the window and went on in another, which the service does not
/// show.
#[test]
fn a_session_that_ended_early_is_not_the_whole_window() {
    let end_early = |stream: &mut SummonedStream| {
        let Segments::OfTicks { claims, .. } = &mut stream.segments else { panic!("ticks") };
        let world = World::new(Setup { streams_each: 2, ..Setup::new(2) }.verified());
        let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), world.schema.id());
        let mut end = keys.open_claim(&claims[0].pop().unwrap()).unwrap();
        (end.kind, end.from, end.to) = (ClaimKind::ClosingTick, window(6).start, window(6).end);
        claims[0].push(keys.claim(&end));
    };
    assert_eq!(tampered(end_early), ExclusionError::NotTiled);
}

/// Sessions change within the window, and the policy tolerates missing ticks. The service leaves out
/// the last tick of the first session, as if the device had died there.
#[test]
fn ticks_that_are_cut_off_before_another_session_exclude_the_stream() {
    let mut evil = long(1, 1, 1);
    let mut allowed = policy(&evil.world.setup);
    let alternatives = allowed.attributes.iter_mut().flat_map(|own| &mut own.alternatives);
    alternatives.for_each(|alternative| alternative.missing_ticks = 2);
    let (signed, owner) = (evil.world.annotate(stream_id(0), 2, allowed), owner(stream_id(0)));
    let step = evil.controllers[0].annotate(&signed, &owner, Timestamp(0)).unwrap();
    step.commit(&mut evil.store).unwrap();
    let mut streams = evil.streams(0);
    let Segments::OfTicks { claims, .. } = &mut streams[0].segments else { panic!("ticks") };
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let mut end = keys.open_claim(&claims[0].pop().unwrap()).unwrap();
    claims[0].truncate(1);
    let (session, at_end) = (end.session, end);
    (end.from, end.to) = (window(5).start, window(5).end);
    claims[0].push(keys.claim(&end));
    (end.session, end.kind, end.count) = (session + 1, ClaimKind::Opening, 0);
    (end.from, end.to) = (window(7).start, window(7).start);
    let opening = keys.claim(&end);
    (end.kind, end.to) = (at_end.kind, at_end.to);
    claims.push(vec![opening, keys.claim(&end)]);
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!(presence.excluded, [(0, ExclusionError::MissingTicks)]);
}

#[test]
fn a_changed_root_or_path_excludes_the_stream() {
    assert_eq!(tampered(|s| parts(s)[0].path.push(Digest([0; 32]))), MISMATCH);
    let forged = tampered(|s| {
        if let Segments::OfTicks { claims, .. } = &mut s.segments {
            claims[0][0].root.0[0] ^= 1;
        }
    });
    assert_eq!(forged, ExclusionError::ForgedBorder);
}

#[test]
fn sums_that_are_missing_too_many_or_in_another_order_exclude_the_stream() {
    assert_eq!(tampered(|s| drop(parts(s).pop())), MISMATCH);
    assert_eq!(tampered(|s| parts(s).clear()), MISMATCH);
    assert_eq!(tampered(|s| parts(s).reverse()), MISMATCH);
    assert_eq!(
        tampered(|s| {
            let again = parts(s)[0].clone();
            parts(s).push(again);
        }),
        MISMATCH
    );
    let none = |s: &mut SummonedStream| {
        if let Segments::OfTicks { sums, .. } = &mut s.segments {
            sums.clear();
        }
    };
    assert_eq!(tampered(none), MISMATCH);
}

/// Sums of other ticks and anchors of the same session, each with the claims of this window.
#[test]
fn sums_of_other_claims_exclude_the_stream() {
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        assert_eq!(tampered(|s| parts(s).swap(one, other)), MISMATCH, "{one} and {other}");
    }
}

#[test]
fn sums_of_another_stream_exclude_both() {
    let mut evil = long(2, 2, 1);
    let mut streams = evil.streams(0);
    let (one, other) = (parts(&mut streams[0]).clone(), parts(&mut streams[1]).clone());
    (*parts(&mut streams[0]), *parts(&mut streams[1])) = (other, one);
    let presence = evil.presence_at(0, streams.clone(), after(9)).1;
    assert_eq!(presence.excluded, [(0, MISMATCH), (1, MISMATCH)]);
    // With their claims as well: the tags are not this stream's.
    let mut streams = evil.streams(0);
    let (one, other) = (streams[0].segments.clone(), streams[1].segments.clone());
    (streams[0].segments, streams[1].segments) = (other, one);
    let presence = evil.presence_at(0, streams, after(9)).1;
    let forged = ExclusionError::ForgedBorder;
    assert_eq!(presence.excluded, [(0, forged), (1, forged)]);
}

/// The session of the day before, and that of another run of the same stream.
#[test]
fn sums_of_another_session_exclude_the_stream() {
    let other = long(2, 2, 7);
    let theirs = parts(&mut other.streams(0)[0]).clone();
    let mut evil = long(2, 2, 1);
    let mut streams = evil.streams(0);
    assert_ne!(*parts(&mut streams[0]), theirs);
    *parts(&mut streams[0]) = theirs;
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!(presence.excluded, [(0, MISMATCH)]);
    let session = |s: &mut SummonedStream| {
        if let Segments::OfTicks { claims, .. } = &mut s.segments {
            claims[0].iter_mut().for_each(|claim| claim.session ^= 1);
        }
    };
    assert_eq!(tampered(session), ExclusionError::ForgedBorder);
}

/// A whole segment of another window, with its true claims and sums.
#[test]
fn segments_of_another_window_exclude_the_stream() {
    let mut evil = long(2, 2, 1);
    let mut plan = evil.world.plan.clone();
    plan.nonce = [9; 16];
    let mut other = long(2, 2, 1);
    other.world.take_over(plan);
    let id = other.world.id();
    let before = other.world.plan.window_at(window(2).start);
    let report = other.world.transformer.close(&id, before, 0).unwrap();
    let theirs: Vec<SummonedStream> = report.complete().cloned().collect();
    let mut streams = evil.streams(0);
    streams[0].segments = theirs[0].segments.clone();
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!(presence.excluded, [(0, ExclusionError::NotTiled)]);
}

#[test]
fn a_doubled_stream_is_no_summons_and_a_doubled_session_is_left_out() {
    let mut evil = long(2, 2, 1);
    let streams = evil.streams(0);
    let twice = vec![streams[0].clone(), streams[0].clone(), streams[1].clone()];
    let summons = evil.summons(0, twice);
    assert_eq!(evil.ask(0, after(9), &summons), Err(WindowRefusalError::MalformedSummons));
    let doubled = tampered(|s| {
        if let Segments::OfTicks { claims, sums, .. } = &mut s.segments {
            let (more, parts) = (claims[0].clone(), sums[0].clone());
            claims.push(more);
            sums.push(parts);
        }
    });
    assert_eq!(doubled, ExclusionError::NotTiled);
}

/// A dropped stream is missing from the row: the service decides who is asked. Its owner reads of it.
#[test]
fn dropped_and_damaged_streams_cost_nobody_else_anything() {
    let mut evil = long(3, 2, 1);
    let (draft, accepted) = gather(&mut evil, |p, mut streams| {
        match p {
            0 => drop(streams.remove(0)),
            1 => parts(&mut streams[1])[2].words[0] ^= 1,
            _ => {}
        }
        streams
    });
    assert_eq!(accepted, [1, 2, 4, 5]);
    let receipt = receipt(&mut evil, &draft, &[0, 1, 2]);
    let row = receipt.verify(&evil.world.announced, whole()).unwrap();
    assert_eq!(row.words(), truth(&evil, &accepted));
    assert_eq!(row.population(), 4);
}

/// The sum of the check words that the service states plays no part.
#[test]
fn the_services_own_sum_of_check_words_does_not_count() {
    let mut evil = long(2, 2, 1);
    let mut streams = evil.streams(0);
    streams[0].check_sum ^= 1;
    assert_eq!(evil.presence_at(0, streams, after(9)).1.accepted, [0, 1]);
}

/// Two streams send in windows 0 to 7, of which 2 to 5 are one period. `late` says
/// which come only once windows 0 to 4 are closed, or never. Returns why stream 0 is left out.
fn with_late_frames(
    late: impl Fn(StreamId, &Claim) -> Option<bool>,
) -> Vec<Option<IncompleteError>> {
    let frames = Frames::Ticks { anchor: Span(4 * WINDOW.0) };
    let mut world = World::new(Setup { windows: 8, frames, ..Setup::new(2).verified() });
    let sent = world.frames.clone();
    world.transformer = transformer(&world.schema, &world.layout);
    let plan = world.plan.clone();
    world.transformer.register(&plan).unwrap();
    let when = |world: &World, stream: StreamId, bytes: &[u8]| match TickFrame::parse(
        bytes,
        world.schema.tick,
    )
    .unwrap()
    {
        TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => late(stream, &claim),
        TickFrame::Opening(opening) => late(stream, &opening.claim()),
    };
    let mut found = Vec::new();
    for is_late in [false, true] {
        for (stream, bytes) in &sent {
            if when(&world, *stream, bytes) == Some(is_late) {
                // Those of closed windows are refused as late.
                let taken = world.offer(*stream, bytes);
                assert!(is_late || taken.is_ok(), "{taken:?}");
            }
        }
        for number in if is_late { 5..7 } else { 0..5 } {
            let report = world.transformer.close(&plan.id(), window(number), 0).unwrap();
            let own = report.excluded().find(|(at, _)| *at == 0);
            found.push(own.map(|(_, reason)| reason));
        }
    }
    found
}

/// A frame that the service lost costs its stream the windows up to the next anchor, by name.
#[test]
fn a_lost_frame_costs_windows_until_the_next_anchor() {
    let lost = window(2).end;
    let found = with_late_frames(|stream, claim| {
        let is_lost = stream == stream_id(0) && claim.to == lost;
        if is_lost { None } else { Some(false) }
    });
    assert_eq!(found[..2], [None; 2]);
    assert_eq!(found[2], Some(IncompleteError::MissingBorder));
    // The window starts with the frame that is lost.
    assert_eq!(found[3], Some(IncompleteError::BeforePlan));
    assert_eq!(found[4..6], [Some(IncompleteError::SumUnknown); 2]);
    assert_eq!(found[6], None, "the period has begun again");
}

/// A device that was out of reach sends what it kept: too late for windows, in time for its sum.
#[test]
fn frames_that_are_late_for_windows_are_in_the_sum() {
    let found = with_late_frames(|stream, claim| {
        Some(stream == stream_id(0) && claim.from >= window(3).start)
    });
    assert_eq!(found[..3], [None; 3]);
    assert!(found[3..5].iter().all(Option::is_some), "{found:?}");
    assert_eq!(found[5..], [None; 2]);
}
