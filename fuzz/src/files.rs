//! What a process reads back from its own disk, and tokens that people bring.

use alpheus_anonymous_board::configuration::{Board, Configuration, Schedule, Servers};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::writer::PendingWrite;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::backup::archive::{Item, Reader};
use alpheus_pass_service::issuer::oidc::{Provider, ProviderSettings};
use alpheus_time::{Span, Timestamp};
use std::sync::OnceLock;

/// Bytes of a backup's start that hold no whole header.
const NO_HEADER: usize = 28;
/// A token of nobody, for keys that are read.
const TOKEN: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImEifQ.eyJpc3MiOiJodHRwczovL2EudGVzdCJ9.AAAA";
/// The keys of a provider: one of each kind.
const KEYS: &[u8] = include_bytes!("../seeds/id_token/keys.json");

/// A member's write on its own disk is read, and written as the same bytes.
pub fn saved_write(data: &[u8]) {
    let Some(board) = board() else { return };
    let Some(write) = PendingWrite::from_bytes(board, data) else { return };
    let written = write.dangerous_to_bytes();
    let again = PendingWrite::from_bytes(board, &written).map(|write| write.dangerous_to_bytes());
    assert_eq!(again.as_deref(), Some(&*written), "written back");
}

/// A part of a backup is read, and written again; bytes that no key has locked are no backup.
pub fn backup(data: &[u8]) {
    if let Ok(item) = postcard::from_bytes::<Item>(data) {
        let written = postcard::to_allocvec(&item).unwrap_or_default();
        let again = postcard::from_bytes::<Item>(&written).ok();
        let again = again.and_then(|item| postcard::to_allocvec(&item).ok());
        assert_eq!(again, Some(written), "written back");
    }
    // A header says how hard its key is to derive, which may take long.
    if data.len() < NO_HEADER {
        assert!(Reader::open(data, b"no key").is_err(), "nobody locked this");
    }
}

/// An ID token, and the keys of a provider. Nobody has signed what a fuzzer makes.
pub fn id_token(data: &[u8]) {
    static PROVIDER: OnceLock<Option<Provider>> = OnceLock::new();
    let of = |keys| {
        let (url, client) = ("https://a.test".to_owned(), "alpheus".to_owned());
        Provider::with_keys(ProviderSettings { url, client, authority: None }, keys)
    };
    if let Some(provider) = of(data) {
        assert!(provider.subject(TOKEN).is_err(), "nobody signed this");
    }
    let provider = PROVIDER.get_or_init(|| of(KEYS)).as_ref();
    assert!(provider.is_some(), "keys of each kind are read");
    if let (Some(provider), Ok(token)) = (provider, std::str::from_utf8(data)) {
        assert!(provider.subject(token).is_err(), "nobody signed this");
    }
}

/// A small board.
fn board() -> Option<&'static Board> {
    static BOARD: OnceLock<Option<Board>> = OnceLock::new();
    let open = || {
        let keys = [1, 2, 3].map(|seed| SigningKey::from_seed(&Secret::from_bytes([seed; 32])));
        let configuration = Configuration {
            board: [1; 32],
            format: Format { max_message: 144, recovery: false },
            rows: 64,
            writers: 64,
            min_writes: 2,
            schedule: Schedule {
                start: Timestamp(0),
                length: Span(1_000_000),
                complaints: Span(1_000_000),
                patience: Span(1_000_000),
            },
            servers: Servers::Audited([0, 1, 2].map(|at: usize| keys[at].verifying_key())),
            admission: Digest([2; 32]),
        };
        let signed = Signed::new(&configuration, &keys[0]);
        Board::open(&signed, &keys[0].verifying_key()).ok()
    };
    BOARD.get_or_init(open).as_ref()
}
