//! Why raw access is refused, or an event cannot be read.

use alpheus_time::Timestamp;

/// Why a controller refuses a grant, or releases no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Not signed by the given key.
    #[error("the grant is not signed by the owner's key")]
    Unsigned,
    /// It names another owner than the stream's.
    #[error("the grant is not from the stream's owner")]
    WrongOwner,
    /// The stream is not held here.
    #[error("this controller does not hold the stream; ask the one that guards it")]
    NotHeld,
    /// Consent was withdrawn, or the key is destroyed.
    #[error("consent for the stream was withdrawn, so none of its keys are handed out any more")]
    Withdrawn,
    /// The owner has not confirmed the annotation since the ledger was restored.
    #[error(
        "this controller was restored from an older ledger; its owner has to confirm the policy (`alpheus owner choose`) and grant again"
    )]
    Unconfirmed,
    /// No day, or too many.
    #[error("a grant is for 1 to {most} days, the first not after the last; grant fewer days")]
    Days {
        /// The maximum.
        most: u64,
    },
    /// Not later than the known one.
    #[error(
        "the grant, signed at {} µs, is not later than the owner's last statement, signed at {} µs; sign it again. If the clock was ahead when the last one was signed, `--stop` is accepted at once; to grant again, have a new certificate issued to the reader", .signed_at.0, .latest.0
    )]
    NotLater {
        /// Of the grant.
        signed_at: Timestamp,
        /// The known one.
        latest: Timestamp,
    },
    /// Signed in the future.
    #[error(
        "the grant was signed at {} µs, ahead of the controller's clock, {} µs; set the owner's clock and grant again", .signed_at.0, .now.0
    )]
    Ahead {
        /// Of the grant.
        signed_at: Timestamp,
        /// The controller's clock.
        now: Timestamp,
    },
    /// Signed before the ledger was restored from a copy that may lack a later statement.
    #[error(
        "the grant was signed at {} µs, before this controller was restored from an older ledger, at {} µs; its owner has to sign a new one", .signed_at.0, .restored.0
    )]
    BeforeRestore {
        /// Of the grant.
        signed_at: Timestamp,
        /// When the ledger was restored.
        restored: Timestamp,
    },
    /// The authority did not sign the reader's certificate for a consumer.
    #[error("the reader's certificate is not a consumer's certificate of this deployment")]
    Certificate,
    /// The authority has revoked the reader's certificate, or the owner's.
    #[error(
        "the authority has revoked the reader's or the owner's certificate; ask it for another, and grant again"
    )]
    Revoked,
    /// The certificate is not that of the reader whom the grant names.
    #[error("the certificate is not that of the reader whom the grant names")]
    OtherReader,
    /// The reader's key is not the one that the certificate in the grant names.
    #[error(
        "the key to seal for is not the one that the reader's certificate names; the reader has to ask with its own"
    )]
    OtherHybrid,
    /// One half of the reader's hybrid key is no key.
    #[error(
        "one half of the reader's key is not a valid key, so the other half alone would protect the days; the reader has to create a new key"
    )]
    HalfHybrid,
    /// Nothing is granted to this reader.
    #[error("the stream's owner grants this reader nothing")]
    NotGranted,
    /// A session crosses an edge of the granted days.
    #[error(
        "a session of this stream crosses the midnight that begins day {day} (UTC, since 1970), so keys of the days next to it would reveal its sums. Its device runs an earlier build: restart it with this one, and grant days whose edges no such session crosses, or include the days around it"
    )]
    SessionCrosses {
        /// Days since the Unix epoch.
        day: u64,
    },
    /// No granted day is over.
    #[error("no granted day is over yet; a day's key is handed out once the day has passed (UTC)")]
    NotOver,
}

/// Why a reader cannot read an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawReadError {
    /// Sealed for another reader, stream, schema or owner, by another controller, or damaged.
    #[error(
        "the keys of days {first} to {last} are for another reader, stream, schema or owner, or of another controller, or damaged"
    )]
    NotForYou {
        /// Days since the Unix epoch.
        first: u64,
        /// The last.
        last: u64,
    },
    /// There is no key for the day of the event, or of the event before it.
    #[error("there is no key for day {day}: the day is not granted, or has not ended")]
    OtherDay {
        /// Days since the Unix epoch.
        day: u64,
    },
    /// The number of words is not that of an event of this schema.
    #[error("the event has {found} words; events of this schema have {expected}")]
    Length {
        /// Words of an event, the check word included.
        expected: usize,
        /// Words of this event.
        found: usize,
    },
    /// It is no event of this stream under these keys.
    #[error("this is not an event of the stream: its check word is not zero")]
    CheckWord,
}
