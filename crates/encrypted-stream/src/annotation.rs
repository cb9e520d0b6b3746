//! What an owner signs: the choice for one stream (Zeph §4.1, figure 3).

use alpheus_crypto::hash::labelled;
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Signed, Verified};
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::AnnotationRefused;

/// An owner's choice for one stream. It holds the resolved numbers, so that a
/// schema's option cannot be given another meaning after it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// The stream.
    pub stream: StreamId,
    /// Whose it is: the hash of the key that signs this.
    pub owner: OwnerId,
    /// Its schema.
    pub schema: SchemaId,
    /// Counts the owner's choices for the stream; a later one replaces an earlier.
    pub version: u32,
    /// Data before this is not covered.
    pub valid_from: Timestamp,
    /// Data from this on is not covered, and nothing is released from this on.
    pub valid_to: Timestamp,
    /// Public facts about the stream, by which queries select and group.
    pub metadata: Vec<(String, String)>,
    /// What is allowed.
    pub policy: ResolvedPolicy,
}

impl Message for Annotation {
    const LABEL: &'static str = labels::ANNOTATION;
}

/// Where an owner's stream is guarded and what sends it. Without it whoever has
/// an annotation, which is public, could say that the stream is theirs to guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The stream.
    pub stream: StreamId,
    /// Counts the owner's placements of the stream; a later one replaces an earlier.
    pub version: u32,
    /// Who guards it.
    pub controller: ControllerId,
    /// The name on the certificate of the device that sends it.
    pub producer: String,
}

impl Message for Placement {
    const LABEL: &'static str = labels::PLACEMENT;
}

/// Opens a placement of this stream.
///
/// # Errors
/// [`AnnotationRefused`] if the owner has not signed it, or of another stream.
pub fn open_placement(
    signed: &Signed<Placement>,
    owner: &VerifyingKey,
    stream: &StreamId,
) -> Result<Verified<Placement>, AnnotationRefused> {
    let opened = signed.open(owner).map_err(|_| AnnotationRefused::Unsigned)?;
    if opened.stream == *stream { Ok(opened) } else { Err(AnnotationRefused::OtherPlacement) }
}

/// An owner's id: the hash of their public key.
#[must_use]
pub fn owner_id(key: &VerifyingKey) -> OwnerId {
    OwnerId(labelled(labels::OWNER, &[key.as_bytes()]).0)
}

/// Opens an annotation: its owner's key must be the one that signed it.
///
/// # Errors
/// [`AnnotationRefused`] if the signature fails or the owner is somebody else.
pub fn open(
    signed: &Signed<Annotation>,
    owner: &VerifyingKey,
) -> Result<Verified<Annotation>, AnnotationRefused> {
    let opened = signed.open(owner).map_err(|_| AnnotationRefused::Unsigned)?;
    if opened.owner == owner_id(owner) { Ok(opened) } else { Err(AnnotationRefused::WrongOwner) }
}

/// Opens an annotation that comes from a stranger: besides what [`open`] checks,
/// it is of this schema and chooses among what the schema offers. A policy of
/// its owner's own making would speak for everybody in a plan with them.
///
/// # Errors
/// [`AnnotationRefused`].
pub fn open_choice(
    signed: &Signed<Annotation>,
    owner: &VerifyingKey,
    schema: &Schema,
) -> Result<Verified<Annotation>, AnnotationRefused> {
    let opened = open(signed, owner)?;
    if opened.schema != schema.id() {
        return Err(AnnotationRefused::WrongSchema);
    }
    schema.offers(&opened.policy)?;
    Ok(opened)
}
