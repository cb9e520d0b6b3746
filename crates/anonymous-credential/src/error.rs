//! Errors, one variant for each rule. None holds a value that the other side does not already
//! know.

use crate::ledger::DamagedLedgerError;
use alpheus_crypto::group::{ElementError, ScalarError};
use alpheus_crypto::sigma::{ProofFormatError, ProvingError};
use alpheus_crypto::signed_message::SignedMessageError;

/// An unusable configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The pinned key did not sign it.
    #[error("the configuration is not signed by the pinned key: {0}")]
    Signature(SignedMessageError),
    /// Epochs or periods have no length, logins are open for longer than an epoch, or codes
    /// reach too far.
    #[error(
        "the schedule is invalid: lengths must be above zero, pre-login must not exceed border pre-login, border pre-login must not exceed an epoch, and codes may reach at most 16 epochs ahead"
    )]
    Schedule,
}

/// An unusable key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// One of its scalars is invalid.
    #[error("the stored key is damaged: {0}")]
    Scalar(#[from] ScalarError),
    /// X0 is the identity.
    #[error("the key is degenerate; draw another")]
    Vanished,
}

/// Bytes that do not decode to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The length is not that of its kind of message.
    #[error("the message has the wrong length for its kind")]
    Length,
    /// One of its elements is invalid.
    #[error("the message holds an invalid element: {0}")]
    Element(#[from] ElementError),
    /// The holder's session key is invalid.
    #[error("the session key is not a point of large order")]
    Key,
    /// Its proof is malformed.
    #[error("the proof is malformed: {0}")]
    Proof(#[from] ProofFormatError),
}

/// Why the issuer rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// The request does not decode.
    #[error("the request is malformed: {0}")]
    Malformed(#[from] MessageError),
    /// The period is neither the current nor the next one.
    #[error(
        "the request is for a period that is neither the current nor the next one; check the clocks"
    )]
    Period,
    /// The account already has a credential of this kind for the period, from another request.
    #[error(
        "the account already has its credential for this period; resend the request that it was issued for"
    )]
    AlreadyIssued,
    /// The proof does not hold.
    #[error("the proof of the request does not hold")]
    Proof,
    /// No response could be made. Retry.
    #[error("no response could be made: {0}; retry")]
    NotProven(#[from] ProvingError),
    /// This issuer may have forgotten who has a credential of the period.
    #[error(
        "this issuer restarted from a ledger that may lack credentials of the period; it issues only for later periods"
    )]
    MayHaveForgotten,
    /// The ledger does not match its declared origin.
    #[error(transparent)]
    Ledger(#[from] DamagedLedgerError),
    /// The key belongs to another configuration.
    #[error("the issuer's key is not the one in the configuration")]
    OtherKey,
}

/// Why a login, re-up, logout or code is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifierError {
    /// The message does not decode.
    #[error("the message is malformed: {0}")]
    Malformed(#[from] MessageError),
    /// The epoch is not open: too early, or over.
    #[error("the epoch is not open for logins and re-ups now")]
    Epoch,
    /// This party's clock went back. It serves nothing until the clock is right again.
    #[error(
        "this server's clock was set back; correct it, or, if it was ahead before, start from a restored ledger"
    )]
    ClockStepped,
    /// This shard may have forgotten tags of the epoch.
    #[error(
        "this shard restarted from a ledger that may lack tags of the epoch; log in for a later one"
    )]
    MayHaveForgotten,
    /// The proof does not hold.
    #[error("the proof does not hold")]
    Proof,
    /// Another login or re-up spent the tag.
    #[error("the credential is already in use in this epoch")]
    Spent,
    /// This shard has no such session.
    #[error("there is no such session; log in")]
    NoSession,
    /// The session has ended.
    #[error("the session has ended; log in for an epoch that is not burnt")]
    Ended,
    /// The session's recorded tag is not of the previous epoch.
    #[error("the session is not at the previous epoch; log in")]
    NotCurrent,
    /// The next epoch is in another period, for which no credential was presented.
    #[error("the next epoch is in another period; log in with its credential")]
    NeedsLogin,
    /// Only credentials with a limit of one are re-upped.
    #[error("re-ups need a credential with a limit of one")]
    LimitForbids,
    /// The session's holder did not sign it.
    #[error("the session's holder did not make the signature")]
    Signature,
    /// The configuration has no login codes.
    #[error("this deployment has no login codes: `ahead` is 0 in its schedule")]
    NoCodes,
    /// The code was used already, at another gate or in another scan.
    #[error("the code was used already; show a new one in a later epoch")]
    Used,
}

/// Why a presentation is not refuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefutationError {
    /// Its V is right, so there is nothing to refute.
    #[error("the presentation is of a valid credential; check its proof")]
    Right,
    /// No proof could be made. Retry.
    #[error("no proof could be made; check the random number generator")]
    NotProven,
}

/// Why a holder does not carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HolderError {
    /// The epoch is not open by the holder's own clock.
    #[error("no epoch is open by this device's clock; wait, or correct the clock")]
    Epoch,
    /// The epoch is in another period than the credential.
    #[error("the credential is for another period; use or request that period's")]
    OtherPeriod,
    /// The credential was presented as often as the epoch allows.
    #[error(
        "the credential was presented as often as this epoch allows; resend, or wait for the next epoch"
    )]
    Burnt,
    /// The epoch belongs to a login code. A session in it would link the code's scan to the channel
    /// of the session.
    #[error(
        "a login code was made for this epoch, and a session would be linked to its scan; log in when the code's epochs are over"
    )]
    Code,
    /// The clock went back behind an epoch with a presentation.
    #[error(
        "this device's clock was set back to before an epoch in which it presented its credential; correct the clock"
    )]
    ClockStepped,
    /// Nothing was presented in the epoch.
    #[error("nothing was presented in this epoch; log in")]
    NothingPresented,
    /// The next epoch is in another period.
    #[error("the next epoch is in another period; log in with its credential")]
    NeedsLogin,
    /// Re-ups need a limit of one.
    #[error("re-ups need a credential with a limit of one")]
    LimitForbids,
    /// The configuration has no login codes.
    #[error("this deployment has no login codes: `ahead` is 0 in its schedule")]
    NoCodes,
    /// Another configuration was compared.
    #[error("the compared configuration is another one; compare the one in use")]
    OtherConfiguration,
    /// No proof could be made. Fix the random number generator.
    #[error("no proof could be made: {0}; check the random number generator")]
    NotProven(#[from] ProvingError),
    /// The response does not open: the pinned issuer did not make it, or not for this request.
    #[error("the response is not the pinned issuer's answer to this request")]
    Response,
    /// The response does not decode.
    #[error("the response is malformed: {0}")]
    Malformed(#[from] MessageError),
    /// The stored records of a code's epochs do not form a code.
    #[error("a stored record is damaged; restore it from a copy, or request a new credential")]
    Damaged,
}
