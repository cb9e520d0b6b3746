//! What was seen. Each part is missing where its caller cannot see it.

use crate::fault::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that a caller has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The program that asks, as `alpheus/VERSION`.
    pub build: String,
    /// The role as which the caller means to act.
    pub acts_as: Option<String>,
    /// The caller's identity folder.
    pub identity: Option<IdentityFacts>,
    /// The caller's schema.
    pub schema: Option<SchemaFacts>,
    /// Folders that processes of this machine write to.
    pub folders: Vec<FolderFacts>,
    /// The caller's card, and who answers at its addresses.
    pub card: Option<CardFacts>,
    /// The service.
    pub service: Option<ServiceFacts>,
    /// Hosts of controllers that the caller knows by address.
    pub controllers: Vec<Endpoint>,
    /// What the service says of a query that the caller would ask.
    pub refusal: Option<RefusalFacts>,
}

/// A folder that makes a process somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFacts {
    /// Its path.
    pub folder: String,
    /// The role in its certificate.
    pub role: String,
    /// The name in its certificate.
    pub name: String,
    /// Seconds until the certificate is over; negative if it is.
    pub valid_seconds: i64,
    /// Files whose key is not that of the certificate beside them.
    pub other_keys: Vec<String>,
}

/// A schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFacts {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// What covers all of it, in hexadecimal digits.
    pub id: String,
}

/// A folder on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFacts {
    /// Its path.
    pub path: String,
    /// Bytes that may still be written there.
    pub free_bytes: u64,
}

/// A card, and who answers at its addresses for a caller who trusts the card's authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFacts {
    /// Its file.
    pub file: String,
    /// Why the file is no card, if it is none.
    pub fault: Option<String>,
    /// Whether its fingerprint is the one that the caller expects, if they expect one.
    pub is_expected: Option<bool>,
    /// Its addresses.
    pub endpoints: Vec<Endpoint>,
}

/// A process at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL.
    pub address: String,
    /// What came of a request.
    pub reach: Reach,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It answered.
    Answered(Answer),
    /// The host's name is unknown.
    NoSuchHost,
    /// Nothing listens there.
    Refused,
    /// Nobody answers, or the line breaks.
    Silent,
    /// What listens there does not speak TLS.
    NotTls,
    /// Its certificate is for another host name.
    OtherHost,
    /// Its certificate is of another authority than the caller's.
    OtherAuthority,
    /// Its certificate is over.
    Expired,
    /// Its certificate is not valid yet.
    NotYetValid,
    /// Its certificate was revoked.
    Revoked,
    /// It is another process than the caller expects.
    OtherPeer {
        /// The role in its certificate.
        role: String,
        /// The name in its certificate.
        name: String,
        /// The role that was expected.
        expected: String,
    },
    /// It refuses the caller's certificate.
    RejectedUs(Rejection),
}

/// Why a process refuses the caller's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is over.
    Expired,
    /// It is of another authority.
    OtherAuthority,
    /// It was revoked.
    Revoked,
    /// Another reason.
    Other,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The name in its certificate.
    pub name: String,
    /// Its program, as `alpheus/VERSION`.
    pub build: Option<String>,
    /// How far its clock is ahead of the caller's, in seconds.
    pub ahead_seconds: Option<i64>,
    /// The parts in its report on health, each with its state.
    pub parts: BTreeMap<String, String>,
    /// What its report on health notes.
    pub notes: BTreeMap<String, String>,
}

/// The service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Whether and how it answers.
    pub endpoint: Endpoint,
    /// The schema that it serves.
    pub schema: Option<SchemaFacts>,
    /// What it counts, for consumers and operators.
    pub counts: Option<CountFacts>,
    /// Hosts of controllers that were not heard from lately, for operators.
    pub silent_hosts: Vec<String>,
    /// Running queries, for consumers and operators.
    pub queries: Vec<QueryFacts>,
    /// What it found itself, for operators.
    pub found: Vec<Finding>,
}

/// What a service has counted lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountFacts {
    /// Signs of faults, and how often each was seen.
    pub recent: BTreeMap<Sign, u64>,
    /// Whether its state is older than what others have seen.
    pub is_state_lost: bool,
    /// Hosts of controllers that were not heard from lately.
    pub silent_hosts: usize,
}

/// What a service counts that is a sign of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Streams left out: their owners' budgets are spent.
    BudgetSpent,
    /// Streams left out: their owners have not confirmed since a controller was restored.
    Unconfirmed,
    /// Streams left out: their owners' policies do not allow it.
    PolicyForbids,
    /// Streams left out: their controllers took no part.
    ControllerAbsent,
    /// Frames of unknown sessions.
    UnknownSession,
    /// Frames, or sums of them, that the device of their stream did not make.
    Forged,
    /// Frames from the future.
    FutureFrames,
}

/// A running query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryFacts {
    /// Its name.
    pub name: String,
    /// The least number of owners in a window.
    pub least: u32,
    /// The streams in it.
    pub streams: usize,
}

/// Why the service would refuse a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalFacts {
    /// The id of the error; `alpheus errors` explains it.
    pub id: String,
    /// What the service says.
    pub detail: String,
}
