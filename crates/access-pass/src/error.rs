//! Errors, one variant for each rule. None identifies anybody.

use alpheus_anonymous_credential::error::{HolderError, MessageError, VerifierError};
use alpheus_crypto::agree::LowOrderError;

/// Why a gateway rejects a request or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// The request has no `Alpheus-Pass` header.
    #[error("this service needs a pass: send requests through `alpheus pass client`")]
    NoPass,
    /// The header, or a message, does not parse.
    #[error("the pass header or message is malformed")]
    Malformed,
    /// This gateway has no such session.
    #[error("there is no such session here; connect, or log in")]
    NoSession,
    /// The session was not connected here since this gateway started.
    #[error("the session is not connected to this gateway; connect")]
    NotConnected,
    /// Its holder logged out.
    #[error("the session has ended; log in for an epoch that is not burnt")]
    Ended,
    /// The login was ahead, for an epoch that has not begun.
    #[error("the session's first epoch has not begun; wait until it begins")]
    NotYet,
    /// It was not re-upped for the running epoch.
    #[error("the session was not renewed for the current epoch; log in")]
    Lapsed,
    /// The tag was not made with the session's key, or is for another request.
    #[error("the request is not authenticated by its session's key")]
    Unauthentic,
    /// The counter was used, or is too far behind to know.
    #[error("the request's counter was already used; send it with a new one")]
    Replayed,
    /// The session already has as many running requests as allowed.
    #[error("too many requests of this session run at the same time; retry later")]
    TooMany,
    /// This gateway's clock went back.
    #[error("this gateway's clock was set back; it serves nothing until the clock is corrected")]
    ClockStepped,
    /// The challenge is not this gateway's, expired, or was already answered.
    #[error("the challenge is not this gateway's latest for the session; request another")]
    Challenge,
    /// The session's holder did not sign it.
    #[error("the session's holder did not make the signature")]
    Signature,
    /// The client's agreement key has low order.
    #[error("the client's agreement key is invalid: {0}")]
    Agreement(#[from] LowOrderError),
}

impl GatewayError {
    /// The rule as a word for programs.
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

/// Why a client stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The gateway's answer does not decode.
    #[error("the gateway's answer is malformed")]
    Malformed,
    /// The gateway does not have the agreed key.
    #[error("the gateway did not confirm the agreed key; there may be a party in between")]
    Unconfirmed,
    /// The gateway's agreement key has low order.
    #[error("the gateway's agreement key is invalid: {0}")]
    Agreement(#[from] LowOrderError),
    /// It acknowledged a session other than the one sent, or an epoch that the session was never
    /// presented for.
    #[error(
        "the gateway acknowledged a different session or epoch from the one sent; it may be trying to link sessions, so do not continue"
    )]
    OtherSession,
    /// Rejected by the holder's rules.
    #[error(transparent)]
    Holder(#[from] HolderError),
    /// All counters of the connection are used.
    #[error("the connection has no counters left; connect again")]
    Exhausted,
}

/// The version of the pass file that is written and read.
pub(crate) const FILE_VERSION: u8 = 2;

/// Why a pass file does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is something else, or cut off.
    #[error("this is not a pass file, or it is cut off")]
    Unreadable,
    /// Another version of the program wrote it.
    #[error(
        "version {0} of the pass file is not supported, only version {version}; use the program that wrote it",
        version = FILE_VERSION
    )]
    Version(u8),
    /// The key file or passphrase is another one, or the file is damaged.
    #[error(
        "the pass file does not open: the key file is the wrong one, or the pass file is damaged"
    )]
    Locked,
    /// Its key derivation parameters are out of range.
    #[error("the pass file's key derivation parameters are out of range")]
    Hardness,
}

/// Why a code opens no gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// It is not a code of this deployment.
    #[error("this is not a login code: {0}")]
    Malformed(#[from] MessageError),
    /// It has another version, or a binding that this gate does not accept.
    #[error(
        "the code does not have the binding that this gate requires; scan the gate's own nonce first"
    )]
    Binding,
    /// Its step is over, or has not begun.
    #[error("the code is older than ten seconds, or a clock is wrong; show a fresh one")]
    Stale,
    /// Its holder did not sign for this gate and time.
    #[error("the code was not signed for this gate and time")]
    Signature,
    /// Rejected by the store's rules.
    #[error(transparent)]
    Refused(#[from] VerifierError),
}
