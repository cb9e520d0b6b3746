//! The bodies of requests and responses between processes. Devices and controllers
//! use postcard (`application/octet-stream`), people's tools JSON. The server's
//! `/openapi.json` describes both.
//!
//! # Privacy
//! Frames are ciphertext. Messages are signed and carry what
//! [`alpheus_encrypted_stream::messages`] describes. Annotations are public.

mod moves;

pub use moves::{Arrival, ArrivingKey, Departure, MoveReply, MoveRequest};

use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, Placement};
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::frame::DATA_HEAD;
use alpheus_encrypted_stream::grant::{Days, Grant, HandedDays};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_policy::columns::Column;
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, StreamId};
use alpheus_stream_runtime::controller_host::{FromController, ToController};
use alpheus_stream_runtime::refused_frames::RefusedFrame;
use alpheus_time::{Span, Timestamp};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A running query.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryView {
    /// Its name.
    pub name: String,
    /// The consumer who asked.
    pub consumer: String,
    /// The query as SQL.
    pub sql: String,
    /// The size of its windows, in milliseconds.
    pub window_ms: u64,
    /// The minimum and the maximum number of owners with data in a window.
    pub population: [u32; 2],
    /// The names of the columns that groups differ in.
    pub group: Vec<String>,
    /// The number of groups.
    pub groups: usize,
    /// The number of streams.
    pub streams: usize,
    /// Whether only the consumer reads results, and not the service.
    pub sealed: bool,
    /// Whether controllers sign results, which clients check.
    pub verified: bool,
    /// Whether they also prove that each owner is in bounds.
    #[serde(default)]
    pub bounded: bool,
    /// Whether results have noise.
    pub noise: bool,
    /// The columns, without those of the group.
    pub columns: Vec<Column>,
    /// What events may lack of that which the results are of, so that fewer owners than the
    /// population may be in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
    /// What a window with a result costs each owner in it, by attribute. Empty without noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charge>,
    /// Whether that is the cost of all windows together, as of running totals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub charged_once: bool,
}

impl QueryView {
    /// The same without what it costs, which evidence states with each plan.
    #[must_use]
    pub fn without_charges(self) -> QueryView {
        QueryView { charges: Vec::new(), charged_once: false, ..self }
    }
}

/// What an owner's account of an attribute is charged, as an exact decimal: ε or ρ.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The attribute.
    pub attribute: String,
    /// Of pure differential privacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<String>,
    /// Of zero-concentrated differential privacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<String>,
}

/// Frames of one stream, in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The stream.
    pub stream: StreamId,
    /// The device's outbox: random, drawn when it was made.
    pub outbox: [u8; 16],
    /// Counts the uploads of an outbox, from 1. A repeated upload has the same number
    /// and content.
    pub number: u64,
    /// The frames, none shorter than a frame can be.
    #[serde(deserialize_with = "frames")]
    pub frames: Vec<Vec<u8>>,
}

/// Reads frames and refuses those that are too short to be any. Otherwise a body of empty
/// frames, one byte each, would take 24 times its size in memory.
fn frames<'de, D: Deserializer<'de>>(body: D) -> Result<Vec<Vec<u8>>, D::Error> {
    struct Frames;

    impl<'de> Visitor<'de> for Frames {
        type Value = Vec<Vec<u8>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "frames of at least {DATA_HEAD} bytes each")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut frames = Vec::new();
            while let Some(frame) = seq.next_element::<Vec<u8>>()? {
                if frame.len() < DATA_HEAD {
                    return Err(A::Error::invalid_length(frame.len(), &self));
                }
                frames.push(frame);
            }
            Ok(frames)
        }
    }

    body.deserialize_seq(Frames)
}

/// The outcome of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UploadStatus {
    /// It is durable.
    Taken,
    /// An upload of this number was taken from this outbox before.
    Before {
        /// The last number that was taken before.
        last: u64,
    },
    /// Earlier uploads are missing; continue from this one.
    Missing {
        /// The next expected number.
        next: u64,
    },
    /// The stream is not registered, or is registered for another device.
    NotYours,
    /// A frame is malformed. Nothing of the upload was taken.
    Malformed,
    /// The stream's owner has withdrawn it, which is for good: nothing of it is taken any more. Any
    /// device that knows the stream's id learns this.
    Withdrawn,
}

/// The answer to uploads, once they are durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The outcome of each upload, in order.
    pub uploads: Vec<UploadStatus>,
    /// Frames of these streams that count for nothing although they were taken, now or
    /// earlier, as far as the service has kept them.
    pub refused: Vec<RefusedFrame>,
}

/// A host introduces its controllers, with the certificates by which plans name them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Introduction {
    /// The controllers' certificates.
    pub certificates: Vec<Signed<Certificate>>,
}

/// Messages of a host's controllers, and how long the request waits for messages to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mail {
    /// From its controllers.
    pub messages: Vec<FromController>,
    /// How long to wait, in milliseconds.
    pub wait: u32,
    /// What the host has received.
    pub received: MailCursor,
}

/// How many messages a host has received. The default claims nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailCursor {
    /// The service's run: random, drawn at each start.
    pub life: [u8; 16],
    /// Messages received in that run.
    pub number: u64,
}

/// Messages for a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Post {
    /// For the next [`Mail`]; until then the same messages are sent again.
    pub cursor: MailCursor,
    /// To its controllers.
    pub messages: Vec<ToController>,
}

/// A stream, as its owner signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The owner's choice.
    pub annotation: Signed<Annotation>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// Its controller and its device, signed by the owner.
    pub placement: Signed<Placement>,
}

/// A host's notice to the service about a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Notice {
    /// It is new, or its owner has changed the choice.
    Registered(Box<Registration>),
    /// Its owner has withdrawn.
    Withdrawn(StreamId),
}

/// A controller, as a host presents it to owners.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ControllerView {
    /// Its certificate, in hexadecimal digits.
    pub certificate: String,
    /// The key that the certificate names, in hexadecimal digits.
    pub key: String,
}

/// An owner hands a stream over to a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The master secret, sealed for the stream's controller.
    pub sealed: HybridSealed,
    /// The owner's first choice.
    pub annotation: Signed<Annotation>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// Its controller and its device.
    pub placement: Signed<Placement>,
}

/// An owner changes the choice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Choice {
    /// The choice.
    pub annotation: Signed<Annotation>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
}

/// An owner withdraws consent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WithdrawalRequest {
    /// The owner's signed statement.
    pub signed: Signed<Withdrawal>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
}

/// An owner grants a consumer access, or ends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantRequest {
    /// The owner's signed statement.
    pub signed: Signed<Grant>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
}

/// What a controller shows an owner of a stream, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamView {
    /// The name on the certificate of the device that sends it.
    pub device: String,
    /// The controller here that guards it, or did.
    pub controller: ControllerId,
    /// The owner's last placement of it that is known here, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Consent is withdrawn for good.
    pub revoked: bool,
    /// The key is destroyed.
    pub erased: bool,
    /// The device has a copy: nothing is released until the owner submits a choice again.
    pub copied: bool,
    /// The controller cannot know the owner's latest choice: nothing is released until the owner
    /// submits it again.
    pub unconfirmed: bool,
    /// The owner's signed choices, oldest first.
    pub choices: Vec<SignedChoice>,
    /// What the owner has stated about readers.
    pub grants: Vec<GrantView>,
    /// The plans that use the stream; old ones may be missing.
    pub plans: Vec<PlanView>,
}

/// A choice of an owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedChoice {
    /// When the controller accepted it.
    pub since: Timestamp,
    /// The annotation as its owner signed it, in hexadecimal digits.
    pub annotation: String,
}

/// What an owner has stated about a reader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantView {
    /// The reader.
    pub reader: ConsumerId,
    /// Its name.
    pub name: String,
    /// Its certificate, in hexadecimal digits.
    pub certificate: String,
    /// Which days it may read; none if the access has ended.
    pub days: Option<Days>,
    /// The days whose keys it has, under this grant and earlier ones.
    pub handed: Vec<Days>,
}

/// A plan that uses a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanView {
    /// The plan.
    pub plan: PlanId,
    /// Its result stream.
    pub name: String,
    /// Who asked.
    pub consumer: String,
    /// The size of its windows.
    pub window: Span,
    /// What each window reveals.
    pub columns: Vec<Column>,
    /// Whether it has ended.
    pub ended: bool,
}

/// A consumer asks a controller for the keys of days that it may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeysRequest {
    /// The stream.
    pub stream: StreamId,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
    /// The key that the certificate names, to seal for.
    pub key: HybridPublic,
}

/// The answer to a [`KeysRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeysResponse {
    /// The signed grant, which the service requires.
    pub signed: Signed<Grant>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// The certificate of the controller that sealed the keys.
    pub controller: Signed<Certificate>,
    /// Keys of the days that are over, sealed.
    pub keys: HandedDays,
}

/// A consumer asks the service for the frames that it may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesRequest {
    /// The signed grant.
    pub signed: Signed<Grant>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
    /// Offset in the log to start from; 0 at first.
    pub after: u64,
}

/// The answer to a [`FramesRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesResponse {
    /// In order of arrival.
    pub frames: Vec<Vec<u8>>,
    /// Pass this as `after` to continue; unchanged at the log's end.
    pub next: u64,
}

/// The service's reply to a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeReply {
    /// The notice is durable.
    Yes,
    /// The notice is refused.
    Refused {
        /// The reason, for people.
        why: String,
    },
    /// The owner has placed the stream at another controller since. This is what stands.
    Moved(Box<Registration>),
}

/// The service knows a host's controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The service's run: random, drawn at each start. In another run it may have been
    /// restored from an older copy, so the host sends everything again.
    pub life: [u8; 16],
    /// How long windows wait for answers, in milliseconds. A host that the service has lost
    /// calls it more often.
    pub wait: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decoded values fill memory, not the body that a limit counts.
    #[test]
    fn an_upload_of_frames_that_are_too_short_to_be_any_is_rejected() {
        let upload = |length: usize, count: usize| Upload {
            stream: StreamId([1; 16]),
            outbox: [2; 16],
            number: 1,
            frames: vec![vec![0x11; length]; count],
        };
        let read = |upload: &Upload| {
            let body = postcard::to_allocvec(&vec![upload]).unwrap();
            postcard::from_bytes::<Vec<Upload>>(&body).map(|read| read == [upload.clone()])
        };
        assert_eq!(read(&upload(DATA_HEAD, 3)), Ok(true));
        for short in [0, 1, DATA_HEAD - 1] {
            assert!(read(&upload(short, 1000)).is_err(), "{short}");
        }
    }
}
