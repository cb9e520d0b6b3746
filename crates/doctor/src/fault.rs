//! The faults that are distinguished.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! faults {
    ($($name:ident $id:literal $what:literal;)+) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Fault {
            $(#[doc = $what] $name,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The id that is printed. It does not change between versions.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// What is wrong, in general.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)+ }
            }
        }
    };
}

faults! {
    WrongKey "wrong-key" "A private key is not that of its certificate, or the certificate is from another authority.";
    SchemaVersion "schema-version" "A schema is not the one that the service serves.";
    Clock "clock" "A clock is wrong.";
    LostLedger "lost-ledger" "A controller continues from a ledger that may not be its latest.";
    DeadController "dead-controller" "A host of controllers is not running.";
    ExpiredCertificate "expired-certificate" "A TLS certificate has expired.";
    Partition "partition" "A host of controllers runs but does not reach the service.";
    FullDisk "full-disk" "A disk is full.";
    WrongRole "wrong-role" "A certificate is for another role.";
    WrongPort "wrong-port" "No process of Alpheus listens at an address.";
    WrongName "wrong-name" "A host's name leads nowhere, or its certificate is for another name.";
    StaleBackup "stale-backup" "The service continues from an older state than others have seen.";
    UnknownSession "unknown-session" "A device sends frames of a session that the service does not know.";
    ForgedFrames "forged-frames" "Frames were not made by the device of their stream.";
    BrittlePlan "brittle-plan" "One absent owner ends the windows of a query.";
    MissingPresence "missing-presence" "A host of controllers answers too late for windows.";
    BlockedAttribute "blocked-attribute" "Owners' policies forbid what a query asks.";
    BudgetSpent "budget-spent" "Privacy budgets of owners are spent.";
    OldBuild "old-build" "Two processes have different versions.";
    WrongCard "wrong-card" "A card is not this deployment's.";
    PartNotReady "part-not-ready" "A part of a process cannot do its work.";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A fault that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub fault: Fault,
    /// The cause, with the file, address or process.
    pub cause: String,
    /// What fixes it: a command, and what to do before or after it.
    pub fix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_on_the_wire() {
        for fault in Fault::ALL {
            let id = serde_json_like(*fault);
            assert_eq!(id, fault.id());
            assert!(fault.what().ends_with('.'), "{id}");
        }
        assert_eq!(Fault::ALL.len(), 21);
    }

    /// What serde's `kebab-case` makes of a variant's name.
    fn serde_json_like(fault: Fault) -> String {
        let mut id = String::new();
        for letter in format!("{fault:?}").chars() {
            if letter.is_uppercase() && !id.is_empty() {
                id.push('-');
            }
            id.extend(letter.to_lowercase());
        }
        id
    }
}
