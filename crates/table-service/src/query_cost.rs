//! What answers have cost, for people: a note, and no part of an answer's rows.

use std::fmt;
use std::time::Duration;

/// Time and bytes of all answers to a command's queries.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryCost {
    /// What the server says that its sums took.
    pub server: Duration,
    /// What verifying and decrypting took here.
    pub owner: Duration,
    /// Bytes of sums and blocks.
    pub bytes: u64,
}

impl fmt::Display for QueryCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "{} bytes received and verified; the server took {:.1} ms, by its own account, and verifying {:.1} ms",
            self.bytes,
            ms(self.server),
            ms(self.owner)
        )
    }
}
