//! Records that must be durable before a message leaves. A holder's values contain secrets. All
//! roles of Alpheus share these types.

pub use alpheus_crypto::ledger::{
    Change, DamagedLedgerError, Ledger, LedgerError, StateOrigin, Step,
};

pub(crate) use alpheus_crypto::ledger::put;
