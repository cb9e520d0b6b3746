//! A board for tests.

use alpheus_anonymous_board::configuration::{Board, Configuration, Schedule, Servers};
use alpheus_anonymous_board::row::Format;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};

/// A server's key: of the databases 1 and 2, of the auditor 3.
pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([number; 32]))
}

/// A board of so many writers.
pub(crate) fn board(writers: u32) -> Board {
    let configuration = Configuration {
        board: [0; 32],
        format: Format::RECOVERED,
        rows: 10,
        writers,
        min_writes: 2,
        schedule: Schedule {
            start: Timestamp(0),
            length: Span(1),
            complaints: Span(1),
            patience: Span(1),
        },
        servers: Servers::Audited([1, 2, 3].map(|number| key(number).verifying_key())),
        admission: Digest([0; 32]),
    };
    let signed = Signed::new(&configuration, &key(4));
    Board::open(&signed, &key(4).verifying_key()).unwrap()
}
