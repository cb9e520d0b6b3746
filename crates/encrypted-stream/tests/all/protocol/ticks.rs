//! Streams with one frame a tick, up to the controllers: lies about a window's claims, words
//! about silent streams, and seeded runs with faults of every kind.

use alpheus_crypto::mac::Tag;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ExclusionError, MessageError};
use alpheus_encrypted_stream::keys::StreamKeys;
use alpheus_encrypted_stream::messages::{
    ControllerMessage, Presence, Segments, ServiceMessage, SummonedStream,
};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind, Statement};
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;

use crate::protocol::coordinator::{receive, signing_key};
use crate::protocol::evil::Evil;
use crate::protocol::net::Net;
use crate::protocol::simulation::{self, CALM, STORM, TREASON, WINDOWS, simulate_in};
use crate::protocol::world::{Setup, WINDOW, World, after, master, stream_id, window};

fn claims(stream: &mut SummonedStream) -> &mut Vec<Vec<Claim>> {
    match &mut stream.segments {
        Segments::OfTicks { claims, .. } => claims,
        Segments::OfEvents(_) => unreachable!("a stream of events"),
    }
}

/// A world with two streams at each of two controllers, and windows of three ticks.
fn long_windows() -> Evil {
    let setup = Setup { streams_each: 2, windows: 9, ..Setup::new(2) }.with_ticks();
    let mut evil = Evil::unannounced(setup);
    let plan = Plan { window: Span(3 * WINDOW.0), ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    evil.accept();
    let id = evil.world.id();
    let (before, whole) = (window(2).start, evil.world.plan.window_at(first()));
    evil.world.transformer.close(&id, evil.world.plan.window_at(before), 0).unwrap();
    let report = evil.world.transformer.close(&id, whole, 0).unwrap();
    evil.report.window = whole;
    evil.report.complete = report.complete().cloned().collect();
    assert_eq!(evil.report.complete.len(), 4);
    evil
}

/// The start of a window of three ticks. The day's session opened a window before.
fn first() -> Timestamp {
    window(5).start
}

/// The first stream of controller 0 after tampering; the second one stays in.
fn tampered(tamper: impl Fn(&mut SummonedStream)) -> ExclusionError {
    let mut evil = long_windows();
    let mut streams = evil.streams(0);
    tamper(&mut streams[0]);
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!(presence.accepted, vec![1]);
    assert_eq!(presence.owners, 1);
    presence.excluded[0].1
}

/// The stream's keys make a claim that the device made in another way.
fn claimed_again(claim: &Claim, change: impl Fn(&mut Statement)) -> Claim {
    let world = World::new(Setup::new(1).with_ticks());
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), world.schema.id());
    let mut statement = keys.open_claim(claim).unwrap();
    change(&mut statement);
    keys.claim(&statement)
}

#[test]
fn a_window_of_ticks_is_accepted_with_a_claim_at_its_ends_and_at_anchors() {
    let mut evil = long_windows();
    let mut streams = evil.streams(0);
    let found: Vec<_> =
        claims(&mut streams[0])[0].iter().map(|claim| (claim.kind, claim.to)).collect();
    let at = |ticks: u64| Timestamp(first().0 + ticks * WINDOW.0);
    let anchors = (1..3).map(at).filter(|at| at.0 % (2 * WINDOW.0) == 0);
    let expected: Vec<_> = [at(0)].into_iter().chain(anchors).chain([at(3)]).collect();
    assert_eq!(found, expected.into_iter().map(|at| (ClaimKind::Tick, at)).collect::<Vec<_>>());
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!((presence.accepted, presence.excluded), (vec![0, 1], vec![]));
    assert_eq!((presence.owners, presence.silent), (2, 0));
}

#[test]
fn a_forged_or_moved_claim_excludes_the_stream() {
    let forged = ExclusionError::ForgedBorder;
    assert_eq!(tampered(|s| claims(s)[0][0].tag = Tag([0; 16])), forged);
    assert_eq!(tampered(|s| claims(s)[0][1].masked_count ^= 1), forged);
    assert_eq!(tampered(|s| claims(s)[0][1].root.0[0] ^= 1), forged);
    assert_eq!(tampered(|s| claims(s)[0][0].session ^= 1), forged);
    assert_eq!(tampered(|s| claims(s)[0].last_mut().unwrap().kind = ClaimKind::Gap), forged);
    assert_eq!(tampered(|s| claims(s)[0][0].to = window(0).start), forged);
}

/// An opening of the device at a time, for another session.
fn opening(claim: &Claim, to: Timestamp) -> Claim {
    claimed_again(claim, |own| {
        (own.kind, own.from, own.to) = (ClaimKind::Opening, to, to);
        (own.session, own.count) = (own.session + 1, 0);
    })
}

/// The session died within the window, which the opening of the next one shows, after its end.
#[test]
fn a_window_that_ends_in_a_gap_lacks_ticks_if_the_next_opening_shows_it() {
    let end = Timestamp(first().0 + 3 * WINDOW.0);
    let died = |to: Timestamp, forge: fn(&mut Claim)| {
        tampered(|stream| {
            let sessions = claims(stream);
            let last = sessions[0].pop().unwrap();
            let mut opening = opening(&last, to);
            forge(&mut opening);
            sessions.push(vec![opening]);
        })
    };
    // As many as the owner allows are a matter of policy; here none.
    assert_eq!(died(end, |_| {}), ExclusionError::MissingTicks);
    assert_eq!(died(end.plus(WINDOW), |_| {}), ExclusionError::MissingTicks);
    let forged = ExclusionError::ForgedBorder;
    assert_eq!(died(end, |opening| opening.tag = Tag([0; 16])), forged);
    assert_eq!(died(end, |opening| opening.to = opening.to.plus(WINDOW)), forged);
    // Within the window the next session would be in it.
    assert_eq!(died(Timestamp(end.0 - WINDOW.0), |_| {}), ExclusionError::NotTiled);
    // Nothing else shows it: a claim of the same session, or nothing.
    let wrong = ExclusionError::NotTiled;
    let later = |stream: &mut SummonedStream| {
        let last = claims(stream)[0].pop().unwrap();
        claims(stream).push(vec![last]);
    };
    assert_eq!(tampered(later), wrong);
    let whole = |stream: &mut SummonedStream| {
        let next = opening(claims(stream)[0].last().unwrap(), end);
        claims(stream).push(vec![next]);
    };
    assert_eq!(tampered(whole), wrong, "nothing is missing");
}

#[test]
fn claims_that_do_not_tile_the_window_exclude_the_stream() {
    let wrong = ExclusionError::NotTiled;
    assert_eq!(tampered(|s| claims(s).clear()), wrong);
    assert_eq!(tampered(|s| claims(s)[0].clear()), wrong);
    assert_eq!(
        tampered(|s| {
            claims(s)[0].remove(0);
        }),
        wrong,
        "no start"
    );
    assert_eq!(
        tampered(|s| {
            claims(s)[0].pop();
        }),
        wrong,
        "no end"
    );
    assert_eq!(
        tampered(|s| {
            claims(s)[0].remove(1);
        }),
        wrong,
        "no anchor"
    );
    assert_eq!(tampered(|s| claims(s)[0].reverse()), wrong);
    let twice = |s: &mut SummonedStream| {
        let own = claims(s)[0].clone();
        claims(s).push(own);
    };
    assert_eq!(tampered(twice), wrong);
    assert_eq!(tampered(|s| s.segments = Segments::OfEvents(vec![])), wrong);
}

/// A session that is cut off before the window's end, as if it had died.
#[test]
fn a_session_is_not_cut_short() {
    let cut = |s: &mut SummonedStream| {
        // Up to the anchor within the window.
        claims(s)[0].truncate(2);
    };
    assert_eq!(tampered(cut), ExclusionError::NotTiled);
}

#[test]
fn a_wrong_sum_excludes_the_stream() {
    assert_eq!(tampered(|s| s.check_sum ^= 1), ExclusionError::CheckWord);
}

/// The device's own statements are bounded too.
#[test]
fn more_events_than_the_capacity_exclude_the_stream() {
    let many = |s: &mut SummonedStream| {
        let last = claims(s)[0].last_mut().unwrap();
        *last = claimed_again(last, |statement| statement.count += 101);
    };
    assert_eq!(tampered(many), ExclusionError::TooManyEvents);
}

#[test]
fn two_claims_of_a_device_for_one_tick_exclude_the_stream() {
    let conflict = |s: &mut SummonedStream, other: Claim| {
        let first = claims(s)[0][0];
        if let Segments::OfTicks { conflict, .. } = &mut s.segments {
            *conflict = Some(Box::new([first, other]));
        }
    };
    let cloned = tampered(|s| {
        let other = claimed_again(&claims(s)[0][0], |statement| statement.count += 1);
        conflict(s, other);
    });
    assert_eq!(cloned, ExclusionError::Cloned);
    // A service cannot have a stream left out as copied with anything less.
    let mut evil = long_windows();
    for lie in [
        (|own: Claim| own) as fn(Claim) -> Claim,
        |own| Claim { tag: Tag([1; 16]), ..own },
        |own| claimed_again(&own, |statement| statement.session ^= 1),
        |own| claimed_again(&own, |statement| statement.to = after(90)),
    ] {
        let mut streams = evil.streams(0);
        let other = lie(claims(&mut streams[0])[0][0]);
        conflict(&mut streams[0], other);
        let presence = evil.presence_at(0, streams, after(9)).1;
        assert_eq!(presence.accepted, vec![0, 1]);
    }
}

/// The service cannot know who is silent. The controllers say how many.
#[test]
fn silent_streams_are_in_the_sum_but_not_in_the_population() {
    let setup = Setup { streams_each: 3, ..Setup::new(2) }.with_ticks();
    let mut net = Net::silent(setup, |stream, _| stream != 1);
    net.close(0);
    let result = net.outcomes[0].result.as_ref().unwrap();
    assert_eq!(result.population, 5);
    assert_eq!(result.outputs, net.world.truth([0, 2, 3, 4, 5], 0));
}

/// A presence whose numbers cannot be true.
#[test]
fn impossible_words_about_silent_streams_are_refused() {
    let mut net = Net::new(Setup { streams_each: 3, ..Setup::new(2) }.with_ticks());
    net.lost = |_, message| matches!(message, ServiceMessage::Summons(_));
    net.close(0);
    let summons = net.sent.iter().find_map(|(to, message)| match message {
        ServiceMessage::Summons(signed) if *to == 0 => Some(signed.digest()),
        _ => None,
    });
    let (plan, key) = (net.world.id(), signing_key(&net, 0));
    let mut say = |silent, owners| {
        let presence = Presence {
            plan,
            window: window(0),
            controller: 0,
            summons: summons.unwrap(),
            accepted: vec![0, 1, 2],
            excluded: vec![],
            owners,
            silent,
            mask_key: None,
        };
        receive(&mut net, 0, &ControllerMessage::Presence(Signed::new(&presence, &key)))
    };
    for (silent, owners) in [(0, 2), (0, 4), (1, 3), (2, 2), (3, 1), (4, 0)] {
        let heard = say(silent, owners);
        assert_eq!(heard, Err(MessageError::Malformed), "{silent} silent, {owners} owners");
    }
    assert_eq!(say(1, 2), Ok(()));
}

fn setup(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    simulation::setup(rng, seed).with_ticks()
}

#[test]
fn without_faults_every_window_opens() {
    for seed in 0..10 {
        assert_eq!(simulate_in(setup, seed, CALM, 0), WINDOWS as usize, "seed {seed}");
    }
}

#[test]
fn under_faults_and_lies_nothing_is_released_twice_and_results_are_correct() {
    let opened: usize = (300..330).map(|seed| simulate_in(setup, seed, STORM, 400)).sum();
    assert!(opened > 30 * WINDOWS as usize / 2, "only {opened} windows opened");
    let opened: usize = (400..430).map(|seed| simulate_in(setup, seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
}
