//! Why something was refused: one name for each rule, and none says who anybody is.

use alpheus_anonymous_credential::error::{HolderRefused, Malformed, Refused};
use alpheus_crypto::agree::LowOrder;

/// Why a gateway lets no request, or no connection, through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The request has no `Alpheus-Pass` header.
    #[error("this service needs a pass: send requests through `alpheus pass client`")]
    NoPass,
    /// The header, or a message, is not of this protocol.
    #[error("the pass header or message is malformed")]
    Malformed,
    /// No such session is known here.
    #[error("there is no such session here; connect, or log in")]
    NoSession,
    /// The session was never connected here, or not since this gateway started.
    #[error("the session is not connected to this gateway; connect")]
    NotConnected,
    /// Its holder logged out.
    #[error("the session has ended; log in for an epoch that is not burnt")]
    Ended,
    /// Logged in ahead, for an epoch that has not begun.
    #[error("the session's first epoch has not begun; wait for it")]
    NotYet,
    /// It was not re-upped for the running epoch.
    #[error("the session was not carried on to the running epoch; log in")]
    Lapsed,
    /// The request was not made with the session's key, or is another request.
    #[error("the request is not authenticated by its session's key")]
    Unauthentic,
    /// The request came before, or so much later than others that nobody can tell.
    #[error("the request's counter was used already")]
    Replayed,
    /// So many requests of the session run already.
    #[error("too many requests of this session run at the same time; try again later")]
    TooMany,
    /// This gateway's clock went back.
    #[error("this gateway's clock went back; it serves nothing until it is set right")]
    ClockStepped,
    /// The challenge is not this gateway's, too old, or was answered before.
    #[error("the challenge is not this gateway's latest for the session; ask for another")]
    Challenge,
    /// Not signed by the session's holder.
    #[error("not signed by the session's holder")]
    Signature,
    /// The client's agreement key is a bad one.
    #[error("the agreement key is not a good one: {0}")]
    Agreement(#[from] LowOrder),
}

impl Denied {
    /// The rule as a word that programs can tell.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self {
            Self::NoPass => "no-pass",
            Self::Malformed => "malformed",
            Self::NoSession => "no-session",
            Self::NotConnected => "not-connected",
            Self::Ended => "ended",
            Self::NotYet => "not-yet",
            Self::Lapsed => "lapsed",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::TooMany => "too-many",
            Self::ClockStepped => "clock",
            Self::Challenge => "challenge",
            Self::Signature => "signature",
            Self::Agreement(_) => "agreement",
        }
    }
}

/// Why a client does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientRefused {
    /// The gateway's answer is none.
    #[error("the gateway's answer is malformed")]
    Malformed,
    /// The gateway does not have the key that was agreed.
    #[error("the gateway did not confirm the agreed key; somebody may be in between")]
    Unconfirmed,
    /// The gateway's agreement key is a bad one.
    #[error("the gateway's agreement key is not a good one: {0}")]
    Agreement(#[from] LowOrder),
    /// It acknowledged another session than the one that was sent, or an epoch that
    /// this session was never shown for.
    #[error(
        "the gateway acknowledged another session or epoch than was sent; it may be trying to link sessions, so do not go on"
    )]
    OtherSession,
    /// The holder's rules.
    #[error(transparent)]
    Holder(#[from] HolderRefused),
    /// All counters of the connection are used: connect again.
    #[error("the connection has no counters left; connect again")]
    Exhausted,
}

/// Why a pass file does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileRefused {
    /// Something else, or cut off.
    #[error("this is no pass file, or it is cut off")]
    Unreadable,
    /// Of a later version of this program.
    #[error("version {0} of the pass file is not known here, only version 1")]
    Version(u8),
    /// Another passphrase, or damaged.
    #[error("the pass file does not open: another key file, or it is damaged")]
    Locked,
    /// Its key derivation is out of range.
    #[error("the pass file asks for a key derivation that is out of range")]
    Hardness,
}

/// Why a code opens no gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeRefused {
    /// Not a code of this deployment's shape.
    #[error("this is no login code: {0}")]
    Malformed(#[from] Malformed),
    /// Of another version, or bound to something else than this gate takes.
    #[error("the code is not bound as this gate wants it; scan the gate's own nonce first")]
    Binding,
    /// Its ten seconds are over, or have not come.
    #[error("the code is older than ten seconds, or a clock is wrong; show a fresh one")]
    Stale,
    /// Its holder did not sign for this gate and time.
    #[error("the code was not signed for this gate and time")]
    Signature,
    /// The store's rules.
    #[error(transparent)]
    Refused(#[from] Refused),
}
