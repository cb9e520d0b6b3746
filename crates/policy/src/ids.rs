//! Names of the things that policies speak about.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; $len]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

id!(
    /// One person's one stream; random or a hash, so that it names nobody.
    StreamId, 16
);
id!(
    /// An owner: the hash of their public key.
    OwnerId, 32
);
id!(
    /// A privacy controller: the fingerprint of its certificate.
    ControllerId, 32
);
id!(
    /// A schema: the hash of its resolved content, so that two files that mean
    /// the same have the same id and any change of meaning changes it.
    SchemaId, 32
);
id!(
    /// A plan: its hash.
    PlanId, 32
);

/// SHA-256 over a label and parts, each preceded by its length.
#[must_use]
pub fn labelled_hash(label: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
