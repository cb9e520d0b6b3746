//! Known answers from an independent script: `vectors/moves`.

use crate::known_answers::{array, bytes, cases};
use alpheus_crypto::signed_message::{Message, Signed};
use alpheus_crypto::{hash::labelled_hash, secret::Secret, sign::SigningKey};
use alpheus_encrypted_stream::annotation::{ControllerChange, Placement};
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_time::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    stream: String,
    version: u32,
    controller: String,
    producer: String,
    from: Option<String>,
    at: u64,
    lost: bool,
    bytes: String,
    digest: String,
}

#[derive(Deserialize)]
struct Bad {
    bytes: String,
}

/// Reads a message as one whose bytes these are, by any signer.
fn read(bytes: &[u8]) -> Option<Placement> {
    let (placement, rest) = postcard::take_from_bytes::<Placement>(bytes).ok()?;
    let is_canonical = postcard::to_allocvec(&placement).ok()? == bytes;
    (rest.is_empty() && is_canonical).then_some(placement)
}

#[test]
fn placements_match_the_script() {
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    for case in cases::<Case>("moves/v1/placement.json") {
        let moved = case.from.map(|from| ControllerChange {
            from: ControllerId(array(&from)),
            at: Timestamp(case.at),
            lost: case.lost,
        });
        let placement = Placement {
            stream: StreamId(array(&case.stream)),
            version: case.version,
            controller: ControllerId(array(&case.controller)),
            producer: case.producer,
            moved,
        };
        let expected = bytes(&case.bytes);
        assert_eq!(postcard::to_allocvec(&placement).ok().as_ref(), Some(&expected));
        let signed = Signed::new(&placement, &key);
        assert_eq!(signed.digest().0, array(&case.digest));
        assert_eq!(labelled_hash(Placement::LABEL, &[&expected]), signed.digest());
        assert_eq!(
            signed.open(&key.verifying_key()).map(|opened| opened.into_inner()),
            Ok(placement)
        );
    }
}

#[test]
fn damaged_placements_are_none() {
    for Bad { bytes: bad } in cases::<Bad>("moves/v1/bad.json") {
        assert_eq!(read(&bytes(&bad)), None, "{bad}");
    }
}
