//! Errors of the roles, one variant per rule: whose fault it is and how to fix it. No variant
//! holds a value that the other side does not know.

use crate::configuration::SmootherId;
use crate::definition::DefinitionError;
use crate::error::{PartialError, ProvingError, TupleError, TupleFormatError};
use alpheus_anonymous_credential::error::{
    HolderError, IssuerError, VerifierError as PresentationError,
};
use alpheus_crypto::ledger::DamagedLedgerError;

/// Why a role cannot be restored from its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The ledger does not match its origin, or does not fit this deployment.
    #[error(transparent)]
    Ledger(#[from] DamagedLedgerError),
    /// A key differs from the one in the configuration.
    #[error("a key differs from the one that the configuration has for this party")]
    OtherKey,
}

/// Why a smoother does not sign or adopt a definition or a key card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgreementError {
    /// It is not a valid definition of this deployment.
    #[error(transparent)]
    Bad(#[from] DefinitionError),
    /// Not signed by the definer.
    #[error("the definition is not signed by this deployment's definer")]
    NotProposed,
    /// The aggregate has begun, or its key epoch is neither the current nor the next one.
    #[error("an aggregate must be defined before it begins, for the running or the next key epoch")]
    Time,
    /// The key is not the key epoch's, or no quorum has signed it yet.
    #[error("the key is not the one that a quorum has signed for this key epoch")]
    OtherKey,
    /// It overlaps another aggregate in location and time.
    #[error(
        "it overlaps an existing aggregate: their difference would be a third one that nobody agreed to"
    )]
    Overlaps,
    /// It has signed as many definitions of the key epoch as it remembers.
    #[error(
        "this smoother has signed as many definitions for this day as it remembers; define fewer or longer aggregates"
    )]
    TooMany,
    /// This smoother may have forgotten what it signed.
    #[error(
        "this smoother was restored from a possibly old ledger; it takes part again after the next key epoch"
    )]
    SitsOut,
}

/// Why a smoother grants no slot or signs no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// This smoother does not know the aggregate.
    #[error("this smoother does not know the aggregate; ask another one or send it the definition")]
    Unknown,
    /// No turn is running.
    #[error("no slots of this aggregate are granted or filled now")]
    NotNow,
    /// This smoother may have forgotten what it signed.
    #[error("this smoother was restored from a possibly old ledger; ask another one")]
    SitsOut,
    /// The presentation is invalid or of another credential.
    #[error("the presentation of the slot credential is not valid here: {0}")]
    Presentation(#[from] PresentationError),
    /// The presentation is for another upload.
    #[error("the slot credential was presented for another upload")]
    OtherPresentation,
    /// The presentation's tag was used for another upload.
    #[error("this presentation is spent; each one is for one upload")]
    Spent,
    /// This smoother keeps no free slot at this turn.
    #[error("no slot is free here now; ask the next keeper with the same key")]
    Full,
    /// The key had a slot here at an earlier turn.
    #[error("this key let a slot lapse here; ask the next keeper with the same key")]
    Lapsed,
    /// The grant is not signed by the slot's keeper of this turn, or the keeper gives slots twice.
    #[error("the grant is not from a good keeper of the slot at this turn")]
    NotGranted,
    /// The slot has a receipt for another deposit.
    #[error("the slot holds another deposit")]
    SlotTaken,
    /// The key has a receipt for another deposit.
    #[error("this key has made another deposit")]
    KeyTaken,
    /// Not signed by the grant's key.
    #[error("the deposit is not signed by the key that the slot was granted to")]
    Signature,
    /// The size is not that of this definition's deposits.
    #[error("the deposit's size differs from that of all deposits of this aggregate")]
    Size,
}

/// Why a smoother releases no deposits to the aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// This smoother does not know the aggregate.
    #[error("this smoother does not know the aggregate")]
    Unknown,
    /// Before the release time.
    #[error("the definition's release time has not been reached yet")]
    Early,
    /// Too many slots are empty, or this smoother lacks sealed uploads. The error does not say
    /// which or how many.
    #[error("not all slots are filled, or not all sealed uploads have arrived")]
    NotFilled,
}

/// Why a smoother does not accept a closing or a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClosingError {
    /// This smoother does not know the aggregate.
    #[error("this smoother does not know the aggregate")]
    Unknown,
    /// Before the release or after the deadline.
    #[error("an aggregate is closed between its release and its deadline")]
    Time,
    /// This smoother may have forgotten what it agreed to.
    #[error(
        "this smoother was restored from a possibly old ledger; it decrypts nothing of this key epoch"
    )]
    SitsOut,
    /// Not signed by the aggregator.
    #[error("the closing is not signed by the aggregator")]
    Signature,
    /// This smoother has agreed to another set of the aggregate.
    #[error("this smoother has agreed to another set of this aggregate, and may agree to only one")]
    Latched,
    /// This smoother lacks the certificate of an entry in the closing.
    #[error(
        "this smoother lacks certificates of the closing's entries; fetch them from others and send it again"
    )]
    Lacking,
    /// This smoother was not sent a tuple that the closing counts.
    #[error(
        "the closing counts tuples that this smoother was not sent; send them, then send it again"
    )]
    NotShown,
    /// The closing's slots are not in order, or its roots do not match them.
    #[error("the closing's roots do not match its slots")]
    OtherRoots,
    /// More slots are empty or rejected than the tolerance allows.
    #[error("more slots are empty or rejected than this deployment tolerates")]
    TooManyMissing,
    /// The slot has no certified entry, or one of another upload.
    #[error("the tuple does not match the slot's certified entry")]
    NotCertified,
    /// Two slots have one tag.
    #[error("two slots that the closing counts have the same tag")]
    Duplicate,
    /// The bytes do not encode a tuple.
    #[error("the tuple is malformed: {0}")]
    Malformed(#[from] TupleFormatError),
    /// The tuple's proof is invalid.
    #[error("the tuple is rejected: {0}")]
    Refused(#[from] TupleError),
    /// What is disclosed of an upload proves nothing.
    #[error("what is disclosed about an upload proves nothing: {0}")]
    Disclosed(#[from] DisclosureError),
}

/// Why a disclosed upload proves nothing. If it does not count, it counts as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisclosureError {
    /// The sealed upload is not the one that the slot's entry names.
    #[error("the sealed upload is not the one in the slot's entry; send that one")]
    Sealed,
    /// What should open the upload is not proven to, or is of another upload.
    #[error("the value that opens the upload is not proven to be right")]
    Disclosure,
    /// The presentation is not refuted.
    #[error("the proof that the presentation belongs to no credential does not hold")]
    Refutation,
}

/// Why a party rejects another party's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// This party does not know the aggregate.
    #[error("this party does not know the aggregate")]
    Unknown,
    /// Not signed by that party, or malformed.
    #[error("the statement is not signed by {0:?}")]
    Signature(SmootherId),
    /// It is about a key epoch that is over and pruned here.
    #[error("the statement is about a key epoch that this smoother has pruned")]
    Over,
    /// Not signed by a quorum.
    #[error("the certificate is not signed by a quorum")]
    NotCertified,
    /// The smoother's own statement, which it has no record of.
    #[error(
        "this smoother signed a statement that it has no record of; it takes part again after the next key epoch"
    )]
    Forgotten,
    /// The smoother made a different statement before.
    #[error("{0:?} has made two different statements about one aggregate")]
    Equivocation(SmootherId),
    /// It is about another set than this party's.
    #[error("the statement is about another set, or arrives before what it builds on")]
    OtherSet,
    /// A wrong partial decryption.
    #[error("the partial decryption of {0:?} is invalid: {1}")]
    Partial(SmootherId, PartialError),
    /// This smoother could not make its partial decryption.
    #[error(transparent)]
    NotProven(#[from] ProvingError),
}

/// Why a client's contribution failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContributionError {
    /// The aggregate accepts no contributions of this kind now.
    #[error("the aggregate accepts samples in its interval, and volunteers' dummies after it")]
    NotNow,
    /// No presentation is left, or none can be made.
    #[error("the credential does not allow it: {0}")]
    Holder(#[from] HolderError),
    /// The tuple could not be proven.
    #[error(transparent)]
    Tuple(#[from] ProvingError),
    /// The grant is not by that keeper, or not for this upload.
    #[error("the grant is not from the keeper that was asked, or not for this upload")]
    Grant,
    /// The generator is broken: an element is the identity, which has a probability of 2^-252.
    #[error("no key or signature could be made; check the random number generator")]
    Generator,
    /// The receipt is not by that smoother, or not for this deposit.
    #[error("the receipt is not from that smoother, or not for this deposit")]
    Receipt,
    /// What a smoother shows does not conflict with the deposit.
    #[error("the smoother refuses the deposit but shows no conflicting entry; it is faulty")]
    Refusal,
    /// The stored attempt is damaged.
    #[error("the stored record of this contribution is damaged; begin another one")]
    Damaged,
    /// The deposit may still count.
    #[error("the deposit may still be certified; given again, the sample would count twice")]
    MayCount,
    /// Every keeper has been asked.
    #[error("no keeper has a free slot now; try again at a later turn")]
    Full,
}

/// Why the registrar issues no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// One of the requests was refused.
    #[error(transparent)]
    Issue(#[from] IssuerError),
    /// Not one request per credential.
    #[error("a registration needs one request for uploads and one for each smoother")]
    Number,
}

/// Why the aggregator cannot proceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AggregatorError {
    /// This aggregator does not know the aggregate.
    #[error("this aggregator does not know the aggregate")]
    Unknown,
    /// It belongs to another node.
    #[error("this aggregate belongs to another node")]
    Elsewhere,
    /// Too few smoothers have released their lists.
    #[error("no quorum of smoothers has released its ledger yet; ask again")]
    NoLedger,
    /// Some sealed uploads are missing.
    #[error("the sealed upload of some slot has not arrived yet; ask another smoother")]
    Lacking,
    /// The release does not have this aggregate's form.
    #[error("the release does not belong to this aggregate, or its slots are not in order")]
    Malformed,
    /// The aggregate has ended.
    #[error("the aggregate has ended")]
    Ended,
    /// It may have been closed already.
    #[error(
        "this aggregator's state is an old copy; the aggregate may be closed already and is not closed again"
    )]
    SitsOut,
    /// Another ledger than the closed one.
    #[error("the aggregate is closed over another ledger; release what that one lists")]
    Closed,
}
