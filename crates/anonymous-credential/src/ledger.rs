//! What must outlive a crash before a message may leave; a holder's values hold
//! secrets. The types are those of all roles of Alpheus.

pub use alpheus_crypto::ledger::{Change, DamagedLog, Ledger, LedgerError, Log, Step};

pub(crate) use alpheus_crypto::ledger::put;
