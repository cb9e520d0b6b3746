//! Annotations: an owner's signed policy choice for one stream (Zeph §4.1, figure 3).

use alpheus_crypto::labels;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_policy::catalog::CatalogStream;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_time::Timestamp;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

use crate::certificate::CertifiedOwner;
use crate::error::AnnotationError;

/// An owner's choice for one stream. It holds the resolved numbers, so a schema's option
/// cannot change its meaning after the signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// The stream.
    pub stream: StreamId,
    /// The owner, whose certified key signs this.
    pub owner: OwnerId,
    /// Its schema.
    pub schema: SchemaId,
    /// Counts the owner's choices for the stream. A later one replaces an earlier one.
    pub version: u32,
    /// Data before this time is not covered.
    pub valid_from: Timestamp,
    /// Data from this time on is not covered, and nothing is released from then on.
    pub valid_to: Timestamp,
    /// Public facts about the stream, which queries use to select and group.
    pub metadata: Vec<(String, String)>,
    /// What the owner allows.
    pub policy: ResolvedPolicy,
}

impl Annotation {
    /// The stream's catalog entry while `controller` guards it.
    #[must_use]
    pub fn into_catalog(self, controller: ControllerId) -> CatalogStream {
        let Annotation { stream, owner, schema, metadata, policy, .. } = self;
        CatalogStream { stream, owner, controller, schema, metadata, policy }
    }
}

impl Message for Annotation {
    const LABEL: &'static str = labels::ANNOTATION;
}

/// Which controller guards an owner's stream, and which device sends it. An annotation is
/// public. Without a placement, anyone who has it could claim to guard the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The stream.
    pub stream: StreamId,
    /// Counts the owner's placements of the stream, from 1. A later one replaces an earlier one.
    pub version: u32,
    /// The controller that guards it.
    pub controller: ControllerId,
    /// The name on the certificate of the device that sends it.
    pub producer: String,
    /// If another controller guarded it before.
    pub moved: Option<ControllerChange>,
}

/// The border between two controllers of a stream. The one before answers no window that ends after
/// it, the next one none that begins before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerChange {
    /// The previous controller.
    pub from: ControllerId,
    /// The border.
    pub at: Timestamp,
    /// The previous controller is lost for good, so nothing is handed over.
    pub lost: bool,
}

const PLACEMENT_FIELDS: [&str; 5] = ["stream", "version", "controller", "producer", "moved"];

/// A first placement has no more than its four fields, without a mark that no move follows.
impl Serialize for Placement {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let length = 4 + usize::from(self.moved.is_some());
        let mut fields = to.serialize_struct("Placement", length)?;
        fields.serialize_field("stream", &self.stream)?;
        fields.serialize_field("version", &self.version)?;
        fields.serialize_field("controller", &self.controller)?;
        fields.serialize_field("producer", &self.producer)?;
        if let Some(moved) = &self.moved {
            fields.serialize_field("moved", moved)?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Placement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a placement")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Placement, A::Error> {
                let short = |length| A::Error::invalid_length(length, &"a placement");
                Ok(Placement {
                    stream: seq.next_element()?.ok_or_else(|| short(0))?,
                    version: seq.next_element()?.ok_or_else(|| short(1))?,
                    controller: seq.next_element()?.ok_or_else(|| short(2))?,
                    producer: seq.next_element()?.ok_or_else(|| short(3))?,
                    // A message must be the canonical form of what is read, so damaged ends
                    // do not pass for an end.
                    moved: seq.next_element().unwrap_or(None),
                })
            }
        }

        from.deserialize_struct("Placement", &PLACEMENT_FIELDS, Fields)
    }
}

impl Message for Placement {
    const LABEL: &'static str = labels::PLACEMENT;
}

/// Opens a placement of this stream.
///
/// # Errors
/// [`AnnotationError`] if the owner did not sign it, or it is of another stream.
pub fn open_placement(
    signed: &Signed<Placement>,
    owner: &CertifiedOwner,
    stream: &StreamId,
) -> Result<Verified<Placement>, AnnotationError> {
    let opened = signed.open(owner.key()).map_err(|_| AnnotationError::Unsigned)?;
    if opened.stream == *stream { Ok(opened) } else { Err(AnnotationError::OtherPlacement) }
}

/// Opens an annotation. It must be signed by the key of the owner that it names.
///
/// # Errors
/// [`AnnotationError`] if the signature is invalid or the owner is another.
pub fn open(
    signed: &Signed<Annotation>,
    owner: &CertifiedOwner,
) -> Result<Verified<Annotation>, AnnotationError> {
    let opened = signed.open(owner.key()).map_err(|_| AnnotationError::Unsigned)?;
    if opened.owner == owner.id() { Ok(opened) } else { Err(AnnotationError::WrongOwner) }
}

/// Opens an annotation from an unknown party. Besides the checks of [`open`], it must be of
/// this schema and choose among the options of the schema. Otherwise an owner's self-made
/// policy would decide for everybody in the same plan.
///
/// # Errors
/// [`AnnotationError`].
pub fn open_choice(
    signed: &Signed<Annotation>,
    owner: &CertifiedOwner,
    schema: &Schema,
) -> Result<Verified<Annotation>, AnnotationError> {
    let opened = open(signed, owner)?;
    if opened.schema != schema.id() {
        return Err(AnnotationError::WrongSchema);
    }
    schema.offers(&opened.policy)?;
    Ok(opened)
}
