//! Why something was refused: one name for each rule. No name holds a value
//! that the other side does not know already.

use crate::ledger::DamagedLog;
use alpheus_crypto::group::{InvalidElement, InvalidScalar};
use alpheus_crypto::sigma::{MalformedProof, NotProven};
use alpheus_crypto::signed::Rejected;

/// A configuration that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfiguration {
    /// Not signed by the pinned key.
    #[error("the configuration is not signed by the pinned key: {0}")]
    Signature(Rejected),
    /// Epochs or periods without length, or logins open for longer than an epoch.
    #[error(
        "the schedule makes no sense: lengths above zero, pre-login at most border pre-login at most an epoch, codes at most 16 epochs ahead"
    )]
    Schedule,
}

/// A key that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// A scalar of it is none.
    #[error("the stored key is damaged: {0}")]
    Scalar(#[from] InvalidScalar),
    /// X0 is the identity.
    #[error("the key is degenerate; draw another")]
    Vanished,
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not as long as a message of its kind is.
    #[error("the message has another length than its kind")]
    Length,
    /// An element of it is none.
    #[error("an element of the message is none: {0}")]
    Element(#[from] InvalidElement),
    /// The holder's key for the session is none.
    #[error("the session key is not a point of large order")]
    Key,
    /// Its proof is none.
    #[error("the proof is malformed: {0}")]
    Proof(#[from] MalformedProof),
}

/// Why the issuer issues nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueRefused {
    /// No request of this deployment.
    #[error("the request is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// Neither the running period's nor the next one's.
    #[error("the request is for a period that is neither the running nor the next one")]
    Period,
    /// The account had a credential of this kind for the period, for another request.
    #[error(
        "the account has its credential for this period; send the request that it was issued for again"
    )]
    AlreadyIssued,
    /// The proof does not hold.
    #[error("the proof of the request does not hold")]
    Proof,
    /// No response could be made; try again.
    #[error("no response could be made: {0}")]
    NotProven(#[from] NotProven),
    /// This issuer may have forgotten who has a credential of the period.
    #[error(
        "this issuer restarted from a ledger that may lack credentials of the period; only later ones are issued anew"
    )]
    MayHaveForgotten,
    /// The ledger is not what it is said to be.
    #[error(transparent)]
    Ledger(#[from] DamagedLog),
    /// The key belongs to another configuration.
    #[error("the issuer's key is not the configuration's")]
    OtherKey,
}

/// Why a login, re-up or logout is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No message of this deployment.
    #[error("the message is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// Not now: too early, or over.
    #[error("the epoch is not open for logins and re-ups now")]
    Epoch,
    /// This party's clock went back: it serves nothing until it is right again.
    #[error(
        "this server's clock went back; set it right, or, if it was ahead before, start from a doubtful log"
    )]
    ClockStepped,
    /// This shard may have forgotten tags of the epoch.
    #[error(
        "this shard restarted from a log that may lack tags of the epoch; log in for a later one"
    )]
    MayHaveForgotten,
    /// The proof does not hold.
    #[error("the proof does not hold")]
    Proof,
    /// The tag is spent by another login or re-up.
    #[error("the credential is in use in this epoch")]
    Spent,
    /// No such session here.
    #[error("there is no such session; log in")]
    NoSession,
    /// The session has ended.
    #[error("the session has ended; log in for an epoch that is not burnt")]
    Ended,
    /// The session's recorded tag is not of the epoch before.
    #[error("the session is not at the epoch before; log in")]
    NotCurrent,
    /// The next epoch is of another period, for which no credential was shown.
    #[error("the next epoch is of another period: log in with its credential")]
    NeedsLogin,
    /// Only credentials that are shown once an epoch are re-upped.
    #[error("re-up is for credentials with a limit of one")]
    LimitForbids,
    /// Not signed by the session's holder.
    #[error("not signed by the session's holder")]
    Signature,
    /// The configuration lets codes spend no epochs.
    #[error("this deployment takes no login codes; its schedule has `ahead` at 0")]
    NoCodes,
    /// The code was used already, at another gate or in another scan.
    #[error("the code was used already")]
    Used,
}

/// Why a holder does not do what it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HolderRefused {
    /// The epoch is not open by the holder's own clock.
    #[error("no epoch is open by this device's clock; wait or set it right")]
    Epoch,
    /// The epoch is of another period than the credential.
    #[error("the credential is of another period; use or request that period's")]
    OtherPeriod,
    /// Everything that may be shown in the epoch has been.
    #[error(
        "the credential is shown in this epoch as often as it may be; resend, or wait for the next epoch"
    )]
    Burnt,
    /// The clock went back behind an epoch that was shown in.
    #[error(
        "this device's clock went back behind an epoch that it showed its credential in; set it right"
    )]
    ClockStepped,
    /// Nothing was shown in the epoch.
    #[error("nothing was shown in this epoch; log in")]
    NothingShown,
    /// The next epoch is of another period.
    #[error("the next epoch is of another period: log in with its credential")]
    NeedsLogin,
    /// Re-up is for a limit of one.
    #[error("re-up is for credentials with a limit of one")]
    LimitForbids,
    /// The configuration lets codes spend no epochs.
    #[error("this deployment takes no login codes; its schedule has `ahead` at 0")]
    NoCodes,
    /// The comparison was of another configuration.
    #[error("the comparison was of another configuration; compare this one")]
    OtherConfiguration,
    /// No proof could be made; mend the random number generator.
    #[error("no proof could be made: {0}")]
    NotProven(#[from] NotProven),
    /// The response does not open: not by the pinned issuer, or not to this request.
    #[error("the response is not the pinned issuer's to this request")]
    Response,
    /// The response is no message.
    #[error("the response is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// What was burnt for a code does not make one.
    #[error("a stored record is damaged; restore it from a copy or request a new credential")]
    Damaged,
}
