//! Which uploads are taken, and what an answer says of this state.

use super::*;
use alpheus_transport::simulation::Machine;

const STREAM: StreamId = StreamId([3; 16]);
const OUTBOX: [u8; 16] = [7; 16];

/// An intake over an empty store, and its signs of a lost state.
fn intake() -> (Intake, LostState) {
    let (store, topics) = (Machine::new().open().unwrap(), Topics::new(1).unwrap());
    store.ensure_topic(&topics.events, topics.partitions).unwrap();
    store.ensure_space(&topics.service).unwrap();
    let lost = LostState::default();
    let intake = Intake::new(store, topics);
    (intake.with_signs(lost.clone(), DeviceTimes::default()), lost)
}

/// Uploads with these numbers, without frames.
fn uploads(numbers: impl IntoIterator<Item = u64>) -> Vec<Upload> {
    let of = |number| Upload { stream: STREAM, outbox: OUTBOX, number, frames: Vec::new() };
    numbers.into_iter().map(of).collect()
}

fn streams_of_lost_state(lost: &LostState) -> u64 {
    lost.report().map_or(0, |report| report.streams)
}

/// The answer to the first request is lost, so the device sends it again, with what it has
/// recorded since.
#[test]
fn a_request_that_repeats_uploads_is_no_sign_of_a_lost_state() {
    let (intake, lost) = intake();
    let taken = intake.take_alone("device", &uploads(1..=2)).unwrap();
    assert_eq!(taken, [UploadStatus::Taken; 2]);
    let again = intake.take_alone("device", &uploads(1..=5)).unwrap();
    assert_eq!(again[..2], [UploadStatus::Before { last: 2 }; 2]);
    assert_eq!(again[2..], [UploadStatus::Missing { next: 3 }; 3]);
    assert_eq!(streams_of_lost_state(&lost), 0);
    assert_eq!(intake.take_alone("device", &uploads(3..=5)).unwrap(), [UploadStatus::Taken; 3]);
}

/// A corrupted upload is not taken, and what follows it is no sign either, in the same request or
/// in the next one.
#[test]
fn what_follows_a_malformed_upload_is_no_sign_of_a_lost_state() {
    let (intake, lost) = intake();
    let mut all = uploads(1..=4);
    all[1].frames = vec![vec![0; 3]];
    let said = intake.take_alone("device", &all).unwrap();
    assert_eq!(said[..2], [UploadStatus::Taken, UploadStatus::Malformed]);
    assert_eq!(said[2..], [UploadStatus::Missing { next: 2 }; 2]);
    intake.take_alone("device", &uploads(3..=4)).unwrap();
    assert_eq!(streams_of_lost_state(&lost), 0);
}

/// This state was restored from a copy, or emptied: the device continues an outbox beyond it.
#[test]
fn a_request_that_begins_beyond_the_next_upload_is_a_sign_of_a_lost_state() {
    let (intake, lost) = intake();
    intake.take_alone("device", &uploads(1..=2)).unwrap();
    let said = intake.take_alone("device", &uploads(7..=8)).unwrap();
    assert_eq!(said, [UploadStatus::Missing { next: 3 }; 2]);
    assert_eq!(streams_of_lost_state(&lost), 1);
}
