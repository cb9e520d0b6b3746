//! The numbers that C passes and gets. None changes between versions.

/// It is done.
pub const ALPHEUS_OK: i32 = 0;
/// A text is not UTF-8.
pub const ALPHEUS_FILE_NOT_TEXT: i32 = 1;
/// A file cannot be understood.
pub const ALPHEUS_FILE_INVALID: i32 = 2;
/// A schema is not valid.
pub const ALPHEUS_SCHEMA_INVALID: i32 = 3;
/// An event, or a time, is refused. The event leaves no trace.
pub const ALPHEUS_LINE_REFUSED: i32 = 4;
/// A file of a device's identity is missing or not valid.
pub const ALPHEUS_IDENTITY_INVALID: i32 = 5;
/// A certificate is refused.
pub const ALPHEUS_CERTIFICATE_REFUSED: i32 = 6;
/// A key is too short, or does not open what it was given for.
pub const ALPHEUS_KEY_WRONG: i32 = 7;
/// An answer is not one that this version understands.
pub const ALPHEUS_SERVER_OTHER_VERSION: i32 = 8;
/// A card is not valid, or a gateway has another configuration than the card.
pub const ALPHEUS_CARD_INVALID: i32 = 9;
/// A rule of passes forbids it, or an answer is not right.
pub const ALPHEUS_PASS_REFUSED: i32 = 10;
/// There is no pass for this period: request it.
pub const ALPHEUS_PASS_MISSING: i32 = 11;
/// A pass file is not valid.
pub const ALPHEUS_PASSFILE_INVALID: i32 = 12;
/// The caller could not store a pass file, or the system has no randomness.
pub const ALPHEUS_IO_FAILED: i32 = 13;
/// A fault in the library. The handle that was used is closed.
pub const ALPHEUS_INTERNAL_ERROR: i32 = 14;
/// An argument is missing, too long, or not one that the function takes.
pub const ALPHEUS_ARGUMENT_WRONG: i32 = 100;
/// The buffer is smaller than what would be written. The length is said, and nothing has changed.
pub const ALPHEUS_BUFFER_SMALL: i32 = 101;
/// The handle is closed.
pub const ALPHEUS_HANDLE_CLOSED: i32 = 102;
/// Another call uses the pass, for example the one that is storing it.
pub const ALPHEUS_HANDLE_BUSY: i32 = 103;
/// The handle was made in another process, of which this one is a copy.
pub const ALPHEUS_PROCESS_COPIED: i32 = 104;

/// A schema is YAML.
pub const ALPHEUS_YAML: i32 = 0;
/// A schema is an Avro schema, as JSON.
pub const ALPHEUS_AVRO: i32 = 1;

/// There may have been a session: another opens at the next tick of the clock.
pub const ALPHEUS_AGAIN: i32 = 0;
/// The stream never had a session: its first opens at the tick at or before a time, even in the past.
pub const ALPHEUS_FIRST: i32 = 1;

/// A number: `integer` units of 10^-`decimals`.
pub const ALPHEUS_KIND_DECIMAL: i32 = 1;
/// A number: `number`, read by its shortest digits.
pub const ALPHEUS_KIND_NUMBER: i32 = 2;
/// A truth value: `integer`, 0 or 1.
pub const ALPHEUS_KIND_BOOLEAN: i32 = 3;
/// A text of `text_length` bytes.
pub const ALPHEUS_KIND_TEXT: i32 = 4;

/// Bytes that hold any upload.
pub const ALPHEUS_MAX_UPLOAD: usize = 300_000;
/// Bytes that hold any frame.
pub const ALPHEUS_MAX_FRAME: usize = 66_000;
/// Bytes that hold any message of a pass.
pub const ALPHEUS_MAX_MESSAGE: usize = 1_024;
/// Bytes of a re-up, which no login has.
pub const ALPHEUS_RE_UP_LENGTH: usize = 168;
/// Bytes that hold any stamp.
pub const ALPHEUS_MAX_STAMP: usize = 128;

/// The running epoch or period.
pub const ALPHEUS_RUNNING: i32 = 0;
/// The next epoch or period, shortly before it begins.
pub const ALPHEUS_NEXT: i32 = 1;

/// Do nothing before a time.
pub const ALPHEUS_STEP_WAIT: i32 = 0;
/// Carry the session on, by `alpheus_pass_re_up`.
pub const ALPHEUS_STEP_RE_UP: i32 = 1;
/// Log in for the running epoch.
pub const ALPHEUS_STEP_LOG_IN: i32 = 2;
/// Log in for the next epoch.
pub const ALPHEUS_STEP_LOG_IN_NEXT: i32 = 3;

/// The issuer's address.
pub const ALPHEUS_CARD_ISSUER: i32 = 0;
/// The gateway's address.
pub const ALPHEUS_CARD_GATEWAY: i32 = 1;
/// Certificate authorities of both, in PEM form; empty without TLS.
pub const ALPHEUS_CARD_AUTHORITY: i32 = 2;
/// The value of the header `Authorization` for the issuer. It is secret.
pub const ALPHEUS_CARD_AUTHORIZATION: i32 = 3;
