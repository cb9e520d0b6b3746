//! State that must survive a crash before a message may be sent: the records of
//! controllers and of the service.
//!
//! A handler of a role returns a [`Step`]. It holds changes to the ledger and
//! messages; [`Step::commit`] is the only way to the messages. Steps of several
//! controllers on one host merge into one commit, so a window costs a host one
//! disk flush a round.
//!
//! The store sees keys and bytes ([`Change`]). Any store that applies a batch
//! as a whole will do.

mod fence;
mod group_lists;
mod log_line;
mod record_error;
mod records;
mod scope;
mod spent_token;

pub use fence::{Fence, Start};
pub use group_lists::GroupLists;
pub use log_line::{LogEvent, LogLine};
pub use record_error::RecordError;
pub use records::{Record, StampedRecord, annotations_prefix, log_prefix};
pub(crate) use records::{
    annotation_key, opened_key, read_record, session_key, window_keys, write_record,
};
pub use scope::Scope;
pub use spent_token::SpentToken;
pub(crate) use spent_token::{Share, SignedOpening};

pub use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Step};
