//! What owners send to hosts to move a stream from one to another.

use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, Placement};
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::handover::HandedOver;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// An owner moves a stream to another controller: to the one that guards it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MoveRequest {
    /// The next controller and the border.
    pub placement: Signed<Placement>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// The next controller's certificate.
    pub to: Signed<Certificate>,
    /// The key that it names, to seal for.
    pub key: HybridPublic,
}

/// The answer to a [`MoveRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MoveReply {
    /// The stream leaves, or has left before.
    Leaves(Box<Departure>),
    /// Windows that end after the border may have been answered. Nothing has changed.
    TooEarly {
        /// The earliest border that would do.
        earliest: Timestamp,
    },
}

/// What an owner brings to the next controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Departure {
    /// The placement that stands: the requested one, or an earlier one.
    pub placement: Signed<Placement>,
    /// The owner's choice in force.
    pub choice: Signed<Annotation>,
    /// What the next controller needs, sealed for it.
    pub handed: Signed<HandedOver>,
}

/// An owner brings a stream to its next controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// Its controllers, the border and its device.
    pub placement: Signed<Placement>,
    /// The owner's certificate.
    pub owner: Signed<Certificate>,
    /// The owner's choice.
    pub choice: Signed<Annotation>,
    /// Where its key comes from.
    pub key: ArrivingKey,
}

/// Where the key of a stream comes from that arrives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ArrivingKey {
    /// From the previous controller, with what the owner was charged.
    Handed {
        /// What it has signed.
        handed: Signed<HandedOver>,
        /// Its certificate.
        before: Signed<Certificate>,
    },
    /// From the device's file, since the previous controller is lost.
    Lost {
        /// The master secret, sealed for the stream's controller.
        sealed: HybridSealed,
    },
}
