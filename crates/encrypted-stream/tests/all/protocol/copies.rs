//! A device with a copy: its stream waits for its owner, also after a restart, and the owner's
//! log says so.

use alpheus_encrypted_stream::error::{AnnotationError, ExclusionError, WindowRefusalError};
use alpheus_encrypted_stream::keys::StreamKeys;
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{Segments, SummonedStream};
use alpheus_encrypted_stream::tick::claim::Claim;
use alpheus_time::Timestamp;

use crate::protocol::evil::Evil;
use crate::protocol::identities::owner;
use crate::protocol::world::{EPOCH, Setup, WINDOW, after, master, policy, stream_id, window};

fn world() -> Evil {
    Evil::new(Setup { streams_each: 2, windows: 9, ..Setup::new(2) }.with_ticks())
}

/// The service shows two claims of the stream's device for the end of the window.
pub fn show_copy(evil: &Evil, stream: &mut SummonedStream) {
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let Segments::OfTicks { claims, conflict, .. } = &mut stream.segments else { unreachable!() };
    let own = *claims.last().unwrap().last().unwrap();
    let mut statement = keys.open_claim(&own).unwrap();
    statement.count += 1;
    *conflict = Some(Box::new([own, keys.claim(&statement)]));
}

/// Why stream 0 is left out of a window, if it is. The service shows a copy, or does not.
fn left_out(evil: &mut Evil, number: u64, shows: bool) -> Option<ExclusionError> {
    let before = (evil.report.window.start.0 - EPOCH) / WINDOW.0;
    (before..=number).for_each(|between| evil.close(between));
    let mut streams = evil.streams(0);
    if shows {
        show_copy(evil, &mut streams[0]);
    }
    let presence = evil.presence_at(0, streams, after(number)).1;
    assert!(presence.accepted.contains(&1), "{presence:?}");
    presence.excluded.first().map(|(position, reason)| {
        assert_eq!(*position, 0);
        *reason
    })
}

/// The owner submits the same policy again, under this version.
fn confirm(evil: &mut Evil, version: u32, now: Timestamp) -> Result<(), AnnotationError> {
    let id = stream_id(0);
    let signed = evil.world.annotate(id, version, policy(&evil.world.setup));
    let step = evil.controllers[0].annotate(&signed, &owner(id), now)?;
    step.commit(&mut evil.store).unwrap();
    Ok(())
}

/// The ends of ticks of which the owner's log says that there are two.
fn logged(evil: &Evil) -> Vec<Timestamp> {
    let values = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let line = |value: &[u8]| match StampedRecord::read(value).unwrap().record {
        Record::Log(line) => match line.event {
            LogEvent::Cloned { border } => {
                assert_eq!(line.streams, [stream_id(0)]);
                Some(border)
            }
            _ => None,
        },
        _ => None,
    };
    values.into_iter().filter_map(line).collect()
}

const CLONED: Option<ExclusionError> = Some(ExclusionError::Cloned);

#[test]
fn a_copied_stream_waits_for_its_owner_over_restarts() {
    let mut evil = world();
    assert_eq!(left_out(&mut evil, 0, true), CLONED);
    assert_eq!(logged(&evil), [window(0).end]);
    // The service shows it no more.
    evil.start_again(after(0));
    assert_eq!(left_out(&mut evil, 0, false), CLONED);
    assert_eq!(left_out(&mut evil, 3, false), CLONED);
    confirm(&mut evil, 1, after(3)).unwrap();
    let refused = confirm(&mut evil, 1, after(3));
    assert_eq!(refused, Err(AnnotationError::NotLater { version: 1, current: 1 }));
    evil.start_again(after(3));
    // It began before the owner confirmed.
    assert_eq!(left_out(&mut evil, 4, false), CLONED);
    assert_eq!(left_out(&mut evil, 6, false), None);
    assert_eq!(logged(&evil), [window(0).end]);
}

/// The transformer keeps one proof of a session, so it may not show a second one.
#[test]
fn a_session_that_was_copied_is_in_no_window_any_more() {
    let mut evil = world();
    assert_eq!(left_out(&mut evil, 2, true), CLONED);
    confirm(&mut evil, 2, after(2)).unwrap();
    for (number, shows) in [(4, false), (5, true), (6, false)] {
        assert_eq!(left_out(&mut evil, number, shows), CLONED, "window {number}");
    }
    assert_eq!(logged(&evil), [window(2).end], "the same copy is not logged again");
}

#[test]
fn a_copy_in_another_session_is_logged_again() {
    let mut evil = world();
    assert_eq!(left_out(&mut evil, 0, true), CLONED);
    confirm(&mut evil, 2, after(0)).unwrap();
    assert_eq!(left_out(&mut evil, 3, false), None);
    assert_eq!(left_out(&mut evil, 4, true), CLONED);
    assert_eq!(left_out(&mut evil, 5, false), CLONED);
    assert_eq!(logged(&evil), [window(0).end, window(4).end]);
}

/// A service that shows two proofs in turn makes neither the log nor the ledger grow.
#[test]
fn known_proofs_that_are_shown_in_turn_change_nothing() {
    let mut evil = world();
    let mut proofs = Vec::new();
    for number in [0, 4] {
        (0..=number).for_each(|between| evil.close(between));
        let mut streams = evil.streams(0);
        show_copy(&evil, &mut streams[0]);
        proofs.push(conflict(&mut streams[0]).clone());
        evil.presence_at(0, streams, after(number));
        confirm(&mut evil, 2 + number as u32, after(number)).unwrap();
    }
    // From the first restart on, the ledger has a record of the last one.
    evil.start_again(after(4));
    let size = |evil: &Evil| evil.store.values(Scope::Controller(evil.controllers[0].id())).len();
    let before = size(&evil);
    for (number, proof) in (5..9).zip(proofs.iter().cycle()) {
        evil.close(number);
        let mut streams = evil.streams(0);
        *conflict(&mut streams[0]) = proof.clone();
        evil.presence_at(0, streams, after(number));
        if number == 6 {
            evil.start_again(after(number));
        }
    }
    assert_eq!(logged(&evil).len(), 2);
    assert_eq!(size(&evil), before);
}

fn conflict(stream: &mut SummonedStream) -> &mut Option<Box<[Claim; 2]>> {
    let Segments::OfTicks { conflict, .. } = &mut stream.segments else { unreachable!() };
    conflict
}

/// The owner confirms that the copy is gone after the window began, and before its token.
#[test]
fn a_window_of_a_copy_gets_no_token_once_the_copy_is_known() {
    let mut evil = world();
    let draft = evil.gather();
    evil.close(1);
    let mut streams = evil.streams(0);
    show_copy(&evil, &mut streams[0]);
    evil.presence_at(0, streams, after(1));
    confirm(&mut evil, 2, after(1)).unwrap();
    assert_eq!(evil.token(0, &draft).err(), Some(WindowRefusalError::PolicyChanged));
}
