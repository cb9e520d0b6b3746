//! Why raw access is not given, or gives nothing.

use alpheus_policy::time::Timestamp;

/// Why a controller does not take a grant, or hands no key out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefused {
    /// Not signed by the given key.
    #[error("the grant is not signed by the owner's key")]
    Unsigned,
    /// By another owner than the stream's.
    #[error("the grant is by another owner than the stream's")]
    WrongOwner,
    /// No such stream is held here.
    #[error("the stream is not at this controller; ask the one that guards it")]
    NotHeld,
    /// Consent was withdrawn, or the key is destroyed.
    #[error("consent for the stream was withdrawn: nothing of it is handed out any more")]
    Withdrawn,
    /// The owner has not confirmed the choice since the ledger was restored.
    #[error(
        "this controller came back from an older ledger; its owner confirms the policy first (`alpheus owner choose`), and grants again"
    )]
    Unconfirmed,
    /// No day, or too many.
    #[error("a grant is for 1 to {most} days, the first not after the last; grant fewer")]
    Days {
        /// How many.
        most: u64,
    },
    /// Not later than the one that is known.
    #[error(
        "signed at {} µs, it is not later than the owner's last word, of {} µs: sign it anew; if the last was signed by a clock that ran ahead, `--stop` is taken at once, and to grant again have the reader's certificate issued anew", .given.0, .known.0
    )]
    NotLater {
        /// Of the grant.
        given: Timestamp,
        /// The one that is known.
        known: Timestamp,
    },
    /// Signed later than now.
    #[error(
        "signed at {} µs, it is ahead of the controller's clock, {} µs: set the owner's clock and grant again", .given.0, .now.0
    )]
    Ahead {
        /// Of the grant.
        given: Timestamp,
        /// The controller's clock.
        now: Timestamp,
    },
    /// Signed before the ledger was restored from a copy that may lack a later word.
    #[error(
        "signed at {} µs, it is from before this controller came back from an older ledger, at {} µs: its owner signs a new one", .given.0, .restored.0
    )]
    BeforeRestore {
        /// Of the grant.
        given: Timestamp,
        /// When the ledger was restored.
        restored: Timestamp,
    },
    /// The reader's certificate is not the authority's for a consumer.
    #[error("the reader's certificate is not one of this deployment's for a consumer")]
    Certificate,
    /// The reader's certificate is another than the grant names.
    #[error("the certificate is another reader's than the grant names")]
    OtherReader,
    /// It has no key that a secret could be sealed for.
    #[error(
        "the reader's certificate has no good key to seal for; have it issued anew by `alpheus ca issue --role consumer`"
    )]
    NoSealing,
    /// Nothing is granted to this reader.
    #[error("the stream's owner lets this reader read nothing of it")]
    NotGranted,
    /// A session runs over the edge of what would be handed out.
    #[error(
        "a session of this stream runs over the midnight that begins day {day} (UTC, since 1970): keys of days beside it would tell its sums. Its device is of an earlier build: start it anew with this one, and grant days whose edges no such session crosses, or the days around it too"
    )]
    SessionCrosses {
        /// Days since the Unix epoch.
        day: u64,
    },
    /// What is granted has not passed.
    #[error("no granted day is over yet; a day's key is handed out once the day has passed (UTC)")]
    NotOver,
}

/// Why a reader cannot read an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReadable {
    /// The reader's own certificate has no key to open with.
    #[error(
        "this identity has no key to open days' keys with; have it issued anew by `alpheus ca issue --role consumer`"
    )]
    NoSealing,
    /// Sealed for another reader, stream or schema, or damaged.
    #[error("the key of day {day} is for another reader, stream or schema, or damaged")]
    NotForYou {
        /// Days since the Unix epoch.
        day: u64,
    },
    /// There is no key for the day of the event, or of the one before it.
    #[error("there is no key of day {day}, which is not granted or not over")]
    OtherDay {
        /// Days since the Unix epoch.
        day: u64,
    },
    /// Not as long as an event of this schema.
    #[error("it has {found} words, an event of this schema {expected}")]
    Length {
        /// Words of an event, the check word included.
        expected: usize,
        /// Words that came.
        found: usize,
    },
    /// It is no event of this stream under these keys.
    #[error("it is no event of this stream: its check word is not zero")]
    CheckWord,
}
