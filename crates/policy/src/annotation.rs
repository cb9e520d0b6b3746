//! Annotations: an owner's signed choice for one stream (Zeph §4.1, figure 3).
//!
//! This crate sees no key. It says which bytes are signed ([`Content::bytes`])
//! and lets the caller check the signature ([`SignedAnnotation::verify`]); only
//! what has passed that check is an [`Annotation`].

use crate::comply::Refusal;
use crate::ids::{OwnerId, SchemaId, StreamId, labelled_hash};
use crate::policy::ResolvedPolicy;
use crate::schema::Schema;
use crate::time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

/// The label that owners sign annotations under.
pub const LABEL: &str = "alpheus/annotation/v1";

/// What an owner says about one stream. Public: the service plans by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The stream.
    pub stream: StreamId,
    /// Whose it is: [`owner_id`] of the key that signs.
    pub owner: OwnerId,
    /// Its schema.
    pub schema: SchemaId,
    /// The service that it is meant for.
    pub service: String,
    /// When it comes into force.
    pub valid_from: Timestamp,
    /// From when on it is no longer in force.
    pub valid_to: Timestamp,
    /// Greater than that of every earlier annotation of the stream.
    pub version: u64,
    /// Public facts, ascending by name.
    pub metadata: Vec<(String, String)>,
    /// What is allowed, in numbers.
    pub policy: ResolvedPolicy,
    /// Whether this ends all consent: once it is known, nothing more leaves.
    pub revoked: bool,
}

impl Content {
    /// The exact bytes that the owner signs under [`LABEL`].
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // Integers and strings only, so serialisation cannot fail.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Whether it speaks about streams of this schema: every attribute has its
    /// policy, and the metadata are those that the schema defines.
    ///
    /// # Errors
    /// What does not fit.
    pub fn fits(&self, schema: &Schema) -> Result<(), AnnotationError> {
        if self.schema != schema.id() || self.policy.attributes.len() != schema.attributes.len() {
            return Err(AnnotationError::OtherSchema);
        }
        for attribute in &schema.metadata {
            let value = self.metadata.iter().find(|(name, _)| *name == attribute.name);
            let name = || attribute.name.clone();
            match value {
                None if attribute.optional => {}
                None => return Err(AnnotationError::MissingMetadata { name: name() }),
                Some((_, value)) => {
                    if !attribute.symbols.is_empty() && !attribute.symbols.contains(value) {
                        return Err(AnnotationError::NoSuchSymbol { name: name() });
                    }
                }
            }
        }
        let known = |name: &String| schema.metadata.iter().any(|attribute| attribute.name == *name);
        match self.metadata.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => Err(AnnotationError::UnknownMetadata { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// The owner that a public key belongs to.
#[must_use]
pub fn owner_id(key: &[u8; 32]) -> OwnerId {
    OwnerId(labelled_hash("alpheus/owner/v1", &[key]))
}

/// An annotation as it travels. Nothing is known about it until it is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedAnnotation {
    /// [`Content::bytes`].
    pub bytes: Vec<u8>,
    /// Signature over the bytes.
    pub signature: Vec<u8>,
    /// The owner's public key.
    pub owner_key: [u8; 32],
}

impl SignedAnnotation {
    /// Checks the signature, by `is_signed(key, bytes, signature)`, and that
    /// the key is the owner's that the content names.
    ///
    /// # Errors
    /// A forged, malformed or contradictory annotation.
    pub fn verify(
        &self,
        is_signed: impl FnOnce(&[u8; 32], &[u8], &[u8]) -> bool,
    ) -> Result<Annotation, AnnotationError> {
        if !is_signed(&self.owner_key, &self.bytes, &self.signature) {
            return Err(AnnotationError::Forged);
        }
        let content: Content =
            postcard::from_bytes(&self.bytes).map_err(|_| AnnotationError::Malformed)?;
        // One content has one encoding: no trailing bytes, no long integers.
        if content.bytes() != self.bytes {
            return Err(AnnotationError::Malformed);
        }
        if content.owner != owner_id(&self.owner_key) {
            return Err(AnnotationError::OtherOwner);
        }
        if content.valid_to <= content.valid_from || content.valid_to > Timestamp::LIMIT {
            return Err(AnnotationError::EmptyValidity);
        }
        if !content.metadata.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(AnnotationError::Malformed);
        }
        Ok(Annotation { content })
    }
}

/// An annotation whose signature has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    content: Content,
}

impl std::ops::Deref for Annotation {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

/// Why an annotation is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationError {
    /// The signature is not the key's over these bytes.
    #[error("the signature is not the owner's")]
    Forged,
    /// The bytes are no annotation, or not its one encoding.
    #[error("the bytes are no annotation")]
    Malformed,
    /// The key that signed is not that of the owner named, or another owner
    /// had annotated the stream before.
    #[error("the stream belongs to another owner")]
    OtherOwner,
    /// It is about another stream.
    #[error("the annotation is about another stream")]
    OtherStream,
    /// It is for another schema, or another version of it.
    #[error("the annotation is for another schema, or another version of it")]
    OtherSchema,
    /// It is never in force.
    #[error("the annotation ends before it begins")]
    EmptyValidity,
    /// A newer one, or another of the same version, is known.
    #[error("version {known} of the annotation is known, {got} came")]
    Stale {
        /// The newest known.
        known: u64,
        /// The one that came.
        got: u64,
    },
    /// A mandatory metadata attribute has no value.
    #[error("metadata attribute `{name}` has no value")]
    MissingMetadata {
        /// Its name.
        name: String,
    },
    /// A metadata attribute that the schema does not define.
    #[error("the schema defines no metadata attribute `{name}`")]
    UnknownMetadata {
        /// Its name.
        name: String,
    },
    /// A metadata value that is none of the attribute's symbols.
    #[error("the value of metadata attribute `{name}` is none of its symbols")]
    NoSuchSymbol {
        /// Its name.
        name: String,
    },
}

/// Why a window of a stream may not be released.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// The owner has revoked consent.
    #[error("the owner has revoked consent")]
    Revoked,
    /// No annotation is in force at that time.
    #[error("no annotation of the owner is in force at {at:?}")]
    NotInForce {
        /// The first such time.
        at: Timestamp,
    },
    /// An annotation that is, or during the window was, in force forbids it.
    #[error("version {version} of the owner's annotation: {refusal}")]
    Refused {
        /// Which.
        version: u64,
        /// Why.
        refusal: Refusal,
    },
}

/// All versions of one stream's annotation, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    versions: Vec<Annotation>,
}

impl Annotations {
    /// Takes a newer version. The same one again changes nothing.
    ///
    /// # Errors
    /// Where it is about another stream, owner or schema, or not newer.
    pub fn insert(&mut self, annotation: Annotation) -> Result<(), AnnotationError> {
        if let Some(last) = self.versions.last() {
            if last.stream != annotation.stream {
                return Err(AnnotationError::OtherStream);
            }
            if last.owner != annotation.owner {
                return Err(AnnotationError::OtherOwner);
            }
            if last.schema != annotation.schema {
                return Err(AnnotationError::OtherSchema);
            }
            if *last == annotation {
                return Ok(());
            }
            if annotation.version <= last.version {
                let (known, got) = (last.version, annotation.version);
                return Err(AnnotationError::Stale { known, got });
            }
        }
        self.versions.push(annotation);
        Ok(())
    }

    /// The newest version.
    #[must_use]
    pub fn newest(&self) -> Option<&Annotation> {
        self.versions.last()
    }

    /// The version in force at a time: the newest that has begun, if it has
    /// not ended. None once the newest of all revokes.
    ///
    /// # Errors
    /// Where there is none.
    pub fn in_force(&self, at: Timestamp) -> Result<&Annotation, NotAllowed> {
        if self.newest().is_some_and(|newest| newest.revoked) {
            return Err(NotAllowed::Revoked);
        }
        let begun = self.versions.iter().rev().find(|version| version.valid_from <= at);
        match begun {
            Some(version) if at < version.valid_to && !version.revoked => Ok(version),
            _ => Err(NotAllowed::NotInForce { at }),
        }
    }

    /// Whether a window may be released: every version in force at any time of
    /// it, and the one in force now, must pass `check`.
    ///
    /// # Errors
    /// The first that does not pass, or the first time when none is in force.
    pub fn allows(
        &self,
        window: Window,
        now: Timestamp,
        mut check: impl FnMut(&Annotation) -> Result<(), Refusal>,
    ) -> Result<(), NotAllowed> {
        let mut pass = |version: &Annotation| {
            let refused = |refusal| NotAllowed::Refused { version: version.version, refusal };
            check(version).map_err(refused)
        };
        pass(self.in_force(now)?)?;
        let mut at = window.start;
        loop {
            let version = self.in_force(at)?;
            pass(version)?;
            at = self.next_change(version, at);
            if at >= window.end {
                return Ok(());
            }
        }
    }

    /// When a version that is in force stops being so.
    fn next_change(&self, version: &Annotation, at: Timestamp) -> Timestamp {
        let newer = self.versions.iter().filter(|other| other.version > version.version);
        let begins = newer.map(|other| other.valid_from).filter(|begin| *begin > at).min();
        begins.map_or(version.valid_to, |begin| begin.min(version.valid_to))
    }
}

#[cfg(test)]
#[path = "annotation_tests.rs"]
mod tests;
