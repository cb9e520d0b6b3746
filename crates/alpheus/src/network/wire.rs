//! The bodies of requests and answers between processes. Devices and
//! controllers speak postcard (`application/octet-stream`), people's tools JSON;
//! `/openapi.json` of the server describes both.
//!
//! # Privacy
//! Frames are ciphertext, messages are signed and say what
//! [`alpheus_encrypted_stream::messages`] says; annotations are public.

use crate::runtime::hosts::{FromController, ToController};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, Placement};
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::grant::{Grant, HandedDay};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_policy::ids::StreamId;
use serde::{Deserialize, Serialize};

/// Frames of one stream, in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Whose.
    pub stream: StreamId,
    /// The device's outbox: random, drawn when it was made.
    pub outbox: [u8; 16],
    /// Counts the uploads of an outbox, from 1. One that is sent again is the
    /// same again.
    pub number: u64,
    /// The frames.
    pub frames: Vec<Vec<u8>>,
}

/// What has become of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Received {
    /// It is durable now.
    Taken,
    /// One of its number was taken from this outbox at an earlier time.
    Before {
        /// The last number that was taken before.
        last: u64,
    },
    /// Uploads before it are missing; go on from this one.
    Missing {
        /// The number wanted next.
        next: u64,
    },
    /// Nobody has registered the stream, or for another device.
    NotYours,
    /// A frame that is none. Nothing of the upload was taken.
    Malformed,
}

/// A host of controllers introduces them, with the certificates by which plans
/// will name them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Introduction {
    /// The controllers' certificates.
    pub certificates: Vec<Signed<Certificate>>,
}

/// What a host's controllers have to say, and how long it waits for what there
/// is to hear.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mail {
    /// From its controllers.
    pub said: Vec<FromController>,
    /// Milliseconds.
    pub wait: u32,
    /// What it has had.
    pub heard: Heard,
}

/// How much of its post a host has had. The default says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The service's life: random, drawn at each of its starts.
    pub life: [u8; 16],
    /// Messages since then.
    pub number: u64,
}

/// What there is to hear.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Post {
    /// To be said in the next [`Mail`]: until then the same comes again.
    pub heard: Heard,
    /// To its controllers.
    pub messages: Vec<ToController>,
}

/// A stream, as its owner lets it be known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Registration {
    /// The owner's choice.
    pub annotation: Signed<Annotation>,
    /// The owner's key.
    pub owner: VerifyingKey,
    /// Who guards it and what sends it, as the owner says.
    pub placement: Signed<Placement>,
}

/// What a host has to tell the service about a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Notice {
    /// It is there, or its owner has chosen anew.
    Registered(Box<Registration>),
    /// Its owner has withdrawn.
    Withdrawn(StreamId),
}

/// An owner hands a stream over to a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The master secret, sealed for the controller that is to guard it.
    pub sealed: Sealed,
    /// The owner's first choice.
    pub annotation: Signed<Annotation>,
    /// The owner's key.
    pub owner: VerifyingKey,
    /// Who is to guard it and what sends it.
    pub placement: Signed<Placement>,
}

/// An owner chooses anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Choice {
    /// The choice.
    pub annotation: Signed<Annotation>,
    /// The owner's key.
    pub owner: VerifyingKey,
}

/// An owner takes consent back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Withdraw {
    /// What they say.
    pub signed: Signed<Withdrawal>,
    /// The owner's key.
    pub owner: VerifyingKey,
}

impl Withdraw {
    /// Consent for a stream, and its key too if `erase`.
    #[must_use]
    pub fn new(key: &SigningKey, stream: StreamId, erase: bool) -> Withdraw {
        let signed = Signed::new(&Withdrawal { stream, erase }, key);
        Withdraw { signed, owner: key.verifying_key() }
    }
}

/// An owner lets a consumer read, or read no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantAsked {
    /// What they say.
    pub signed: Signed<Grant>,
    /// The owner's key.
    pub owner: VerifyingKey,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
}

/// A consumer asks a controller for the keys of days that it may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeysAsked {
    /// Of which stream.
    pub stream: StreamId,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
}

/// What it gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeysGiven {
    /// What the owner has signed: the service wants to see it.
    pub signed: Signed<Grant>,
    /// The owner's key.
    pub owner: VerifyingKey,
    /// Keys of the days that are over, sealed.
    pub keys: Vec<HandedDay>,
}

/// A consumer asks the service for the frames that it may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesAsked {
    /// What the owner has signed.
    pub signed: Signed<Grant>,
    /// The owner's key.
    pub owner: VerifyingKey,
    /// The consumer's certificate.
    pub certificate: Signed<Certificate>,
    /// From where on in the log; at first 0.
    pub after: u64,
}

/// Some of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesGiven {
    /// In the order in which they came.
    pub frames: Vec<Vec<u8>>,
    /// Say this as `after` to go on; the same as before at the log's end.
    pub next: u64,
}

/// What the service makes of a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Noted {
    /// It has it, durably.
    Yes,
    /// It does not take it.
    Refused {
        /// Why not, for people.
        why: String,
    },
}

/// A service that has heard of a host's controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Its life: random, drawn at each of its starts. One of another life may have
    /// been restored from an older copy, and is told everything again.
    pub life: [u8; 16],
}

/// Done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}
