//! Names of topics, state spaces and consumer groups, and locations in a topic.

use std::fmt;
use std::sync::Arc;

/// A name that stores cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a {kind} must be 1 to 249 characters of a-z A-Z 0-9 . _ -")]
pub struct NameError {
    /// `Topic`, `Space` or `Group`.
    pub kind: &'static str,
}

/// Maximum length of a name, as in Kafka.
const MAX_NAME: usize = 249;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// One to 249 characters of `[a-zA-Z0-9._-]`, so that every store can use it unchanged.
        /// Cheap to clone.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name.
            ///
            /// # Errors
            /// [`NameError`] if it is empty, too long or has other characters.
            pub fn new(name: &str) -> Result<Self, NameError> {
                if is_valid(name) {
                    Ok(Self(name.into()))
                } else {
                    Err(NameError { kind: stringify!($name) })
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The bytes that a store uses as a key.
            pub(crate) fn as_bytes(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

name!(
    /// A topic: partitions of records, each in the order in which they were appended.
    Topic
);
name!(
    /// A state space: an ordered map from key to value.
    Space
);
name!(
    /// A consumer group: readers that share one position per partition.
    Group
);

fn is_valid(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(good)
}

/// A partition of a topic. Its records have offsets and an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: Topic,
    /// The index of the partition, from 0.
    pub index: u32,
}

impl Topic {
    /// A partition of this topic. Its existence is checked when it is used.
    #[must_use]
    pub fn partition(&self, index: u32) -> Partition {
        Partition { topic: self.clone(), index }
    }
}

/// `topic/index`.
impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.index)
    }
}

/// The offset of a record in its partition. The next record has a larger offset. A store may
/// skip offsets, as Kafka does at the end of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The offsets of a partition: from `start` (inclusive) to `end` (exclusive). Retention has
/// deleted records before `start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest offset that can be read.
    pub start: Offset,
    /// Everything before this is decided. The next durable record gets this offset, or a later
    /// one if the store skips some.
    pub end: Offset,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_store_cannot_use_are_refused() {
        for bad in ["", "a/b", "a b", "ä", "x\0", &"x".repeat(250)] {
            assert!(matches!(Topic::new(bad), Err(NameError { kind: "Topic" })), "{bad}");
        }
        assert_eq!(Space::new("ledger.v1_a-b").unwrap().as_str(), "ledger.v1_a-b");
    }
}
