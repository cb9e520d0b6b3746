//! Why a controller refuses an owner's annotation.

/// Why a controller refuses an owner's annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// Not signed by the given key.
    #[error("the annotation is not signed by the owner's key")]
    Unsigned,
    /// It names another owner than that of the key, or of the stream.
    #[error("the annotation names a different owner from the stream's")]
    WrongOwner,
    /// The stream is not held here.
    #[error("this controller does not hold the stream; hand its secret over first")]
    NotHeld,
    /// For another schema than the stream's.
    #[error("the annotation is for a different schema from the stream's")]
    WrongSchema,
    /// Not later than the one in force.
    #[error(
        "version {version} is not later than version {current}, which is in force; sign a later one"
    )]
    NotLater {
        /// Of the annotation.
        version: u32,
        /// The one in force.
        current: u32,
    },
    /// Consent was revoked for good.
    #[error("consent for the stream was revoked; start a new stream")]
    Revoked,
    /// The placement is of another stream.
    #[error("the placement is for a different stream from the annotation's")]
    OtherPlacement,
    /// An annotation or placement of this version is known and differs.
    #[error("another annotation or placement of version {0} is known; sign a later version")]
    Conflicting(u32),
    /// The schema does not offer what it chooses.
    #[error(transparent)]
    NotOffered(#[from] alpheus_policy::policy::OfferError),
}
