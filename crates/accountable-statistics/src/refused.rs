//! Why a role does not do what it is asked to: one name for each rule, whose fault it
//! is and how to mend it. No name holds a value that the other side does not know.

use crate::configuration::SmootherId;
use crate::definition::BadDefinition;
use crate::error::{BadPartial, Malformed, NotProven};
use alpheus_anonymous_credential::error::{HolderRefused, IssueRefused, Refused as BadShowing};
use alpheus_crypto::ledger::DamagedLog;
use alpheus_crypto::seal::BadSealingKey;

/// Why a role does not come back from its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRestored {
    /// The ledger is not what it is said to be, or holds what this deployment cannot.
    #[error(transparent)]
    Ledger(#[from] DamagedLog),
    /// A key is not the one in the configuration.
    #[error("a key is not the one that the configuration has for this party")]
    OtherKey,
}

/// Why a smoother does not sign a definition or a key's card, or does not work by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDefined {
    /// It is no definition of this deployment.
    #[error(transparent)]
    Bad(#[from] BadDefinition),
    /// Not signed by whoever defines.
    #[error("the definition is not proposed by whoever this deployment lets define")]
    NotProposed,
    /// It has begun, or its key epoch is neither the running nor the next one.
    #[error("an aggregate is defined before it begins, for the running or the next key epoch")]
    Time,
    /// The key is not the key epoch's, or a quorum has not signed that one yet.
    #[error("the key is not the one that a quorum has signed for this key epoch")]
    OtherKey,
    /// It overlaps another one in place and time.
    #[error(
        "it overlaps an aggregate that is defined already: their difference would be a third one that nobody has agreed to"
    )]
    Overlaps,
    /// This smoother may have forgotten what it has signed.
    #[error(
        "this smoother came back from a ledger that may be an old copy; it takes part again after the next key epoch"
    )]
    SitsOut,
}

/// Why a smoother gives no slot, or no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSlot {
    /// There is no such aggregate here.
    #[error("this smoother knows no such aggregate; ask another, or send it the definition")]
    Unknown,
    /// Not now.
    #[error("no slots of this aggregate are given or filled now")]
    NotNow,
    /// This smoother may have forgotten what it has signed.
    #[error("this smoother came back from a ledger that may be an old copy; ask another")]
    SitsOut,
    /// The showing is none, or not for this.
    #[error("the showing of the slot credential does not count: {0}")]
    Showing(#[from] BadShowing),
    /// The showing is for another upload.
    #[error("the slot credential was shown for another upload")]
    OtherShowing,
    /// Its tag was shown for another upload.
    #[error("this showing is spent; each of the quota is for one upload")]
    Spent,
    /// This smoother keeps no free slot at this turn.
    #[error("no slot is free here now; ask the next keeper with the same key")]
    Full,
    /// The key had a slot here at an earlier turn.
    #[error("this key has let a slot lapse here; ask the next keeper with the same key")]
    Lapsed,
    /// The grant is not signed by whoever keeps the slot now, or by one that gives slots twice.
    #[error("the grant is not by a good keeper of the slot at this turn")]
    NotGranted,
    /// Another deposit of the slot has a receipt.
    #[error("the slot holds another deposit")]
    SlotTaken,
    /// The key has a receipt for another deposit.
    #[error("this key has deposited something else")]
    KeyTaken,
    /// Not signed by the grant's key.
    #[error("the deposit is not signed by the key that the slot was given to")]
    Signature,
    /// Not as long as a deposit of this definition is.
    #[error("the deposit has another size than all deposits of this aggregate")]
    Size,
}

/// Why a smoother gives no deposits to the aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReleased {
    /// There is no such aggregate here.
    #[error("this smoother knows no such aggregate")]
    Unknown,
    /// The time has not come.
    #[error("deposits are released at a time that the definition fixes, which has not come")]
    Early,
    /// Too many slots are empty, or this smoother lacks what is sealed for some: it is not said
    /// which, nor how many.
    #[error("not all slots are filled, or not all that is sealed has come")]
    NotFilled,
}

/// Why a smoother does not accept a closing, or a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotClosed {
    /// There is no such aggregate here.
    #[error("this smoother knows no such aggregate")]
    Unknown,
    /// Before the release, or after the deadline.
    #[error("an aggregate is closed between its release and its deadline")]
    Time,
    /// This smoother may have forgotten what it has agreed to.
    #[error(
        "this smoother came back from a ledger that may be an old copy; it decrypts nothing of this key epoch"
    )]
    SitsOut,
    /// Not by the aggregator.
    #[error("the closing is not signed by the aggregator")]
    Signature,
    /// Another set of this aggregate has been agreed to.
    #[error("this smoother has agreed to another set of this aggregate, and to one only")]
    Latched,
    /// This smoother lacks the certificate of an entry that the closing rests on.
    #[error(
        "this smoother lacks certificates of the closing's entries; fetch them from the others, then send it again"
    )]
    Lacking,
    /// A tuple that the closing counts was not shown.
    #[error("the closing counts tuples that were not shown; show them, then send it again")]
    NotShown,
    /// The closing's slots are not in order, or its roots are not theirs.
    #[error("the closing's roots are not those of its slots")]
    OtherRoots,
    /// More slots are empty or rejected than the tolerance.
    #[error("more slots are empty or rejected than this deployment tolerates")]
    TooManyMissing,
    /// The slot has no certified entry, or one of another upload.
    #[error("the tuple is not that of the slot's certified entry")]
    NotCertified,
    /// A tag stands in two slots.
    #[error("two slots that the closing counts have one tag")]
    Duplicate,
    /// No tuple.
    #[error("the tuple is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The proof does not hold.
    #[error("the tuple is refused: {0}")]
    Refused(#[from] crate::error::Refused),
}

/// Why a statement of another party is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeard {
    /// There is no such aggregate here.
    #[error("this party knows no such aggregate")]
    Unknown,
    /// Not signed by that party, or no statement.
    #[error("the statement is not signed by {0:?}")]
    Signature(SmootherId),
    /// It is about a key epoch that is over, and forgotten here.
    #[error("the statement is about a key epoch that this smoother has forgotten")]
    Over,
    /// Not signed by a quorum.
    #[error("the certificate is not signed by a quorum")]
    NotCertified,
    /// This smoother's own, of which it knows nothing: it has forgotten what it said.
    #[error(
        "this smoother has said what it does not remember; it takes part again after the next key epoch"
    )]
    Forgotten,
    /// It said something else before.
    #[error("{0:?} has said two different things of one aggregate")]
    Equivocation(SmootherId),
    /// It is about another set than this party's.
    #[error("the statement is about another set, or comes before what it rests on")]
    OtherSet,
    /// A wrong partial decryption.
    #[error("the partial decryption of {0:?} does not hold: {1}")]
    Partial(SmootherId, BadPartial),
    /// A partial decryption could not be made.
    #[error(transparent)]
    NotProven(#[from] NotProven),
}

/// Why a client contributes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotContributed {
    /// The aggregate takes no contributions of this kind now.
    #[error("the aggregate takes samples in its interval, and volunteers' dummies after it")]
    NotNow,
    /// No showing is left, or none can be made.
    #[error("the credential does not allow it: {0}")]
    Holder(#[from] HolderRefused),
    /// No tuple.
    #[error(transparent)]
    Tuple(#[from] NotProven),
    /// The grant is not by that keeper, or not for this.
    #[error("the grant is not by the keeper that was asked, or not for this upload")]
    Grant,
    /// The aggregator's key is none.
    #[error("the aggregator's key is unusable: {0}")]
    Key(#[from] BadSealingKey),
    /// The receipt is not by that smoother, or not for this.
    #[error("the receipt is not by that smoother, or not for this deposit")]
    Receipt,
    /// What a smoother shows is not in the deposit's place.
    #[error(
        "the smoother refuses the deposit and shows nothing that stands in its place; it is faulty"
    )]
    Refusal,
    /// What is stored is damaged.
    #[error("what is stored of this contribution is damaged; begin another one")]
    Damaged,
    /// What was deposited may count yet.
    #[error("what was deposited may be certified yet; given again, it would count twice")]
    MayCount,
    /// Every keeper was asked.
    #[error("no keeper has a free slot now; try again at a later turn")]
    Full,
}

/// Why the registrar gives no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRegistered {
    /// One of them was refused.
    #[error(transparent)]
    Issue(#[from] IssueRefused),
    /// Not one request for each credential.
    #[error("a registration has one request for uploads and one for each smoother")]
    Number,
}

/// Why the aggregator does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGathered {
    /// There is no such aggregate here.
    #[error("this aggregator knows no such aggregate")]
    Unknown,
    /// It is another node's.
    #[error("this aggregate belongs to another node")]
    Elsewhere,
    /// Too few smoothers say the same.
    #[error("no quorum of smoothers has given the same ledger yet; ask again")]
    NoLedger,
    /// Some uploads are lacking.
    #[error("what is sealed for some slot has not come yet; ask another smoother")]
    Lacking,
    /// The release is not of this aggregate's shape.
    #[error("the release is not of this aggregate, or its slots are not in order")]
    Malformed,
    /// The aggregate is over.
    #[error("the aggregate has ended")]
    Ended,
    /// It may have been closed already.
    #[error(
        "this aggregator's state is an old copy: the aggregate may be closed already, and is not closed again"
    )]
    SitsOut,
    /// Another ledger than the closed one.
    #[error("the aggregate is closed over another ledger; give what that one lists")]
    Closed,
}
