//! What a member keeps durably of a key that is being made. The caller puts all of a key
//! epoch under one prefix.

use super::words::{KeyWord, Kind, Prepared};
use crate::messages::{decode, encode};
use crate::threshold::{KeyShare, SharedKey};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use zeroize::Zeroizing;

const ATTEMPT: u8 = b'a';
const SEED: u8 = b's';
const DEALING: u8 = b'd';
const WORD: u8 = b'w';
const SHARE: u8 = b'v';
const PREPARED: u8 = b'p';

/// One record, read.
pub(super) enum Record {
    Attempt(u32),
    Seed(Secret<32>),
    Dealing(Vec<u8>),
    Word(Signed<KeyWord>),
    Share(Box<SharedKey>, Secret<32>),
    Prepared(Box<Prepared>),
}

pub(super) fn attempt(attempt: u32) -> Change {
    put(vec![ATTEMPT], encode(&attempt))
}

pub(super) fn seed(seed: Option<&Secret<32>>) -> Change {
    Change { key: vec![SEED], value: seed.map(|seed| Zeroizing::new(seed.expose().to_vec())) }
}

pub(super) fn dealing(dealing: Option<Vec<u8>>) -> Change {
    Change { key: vec![DEALING], value: dealing.map(Zeroizing::new) }
}

pub(super) fn word(kind: Kind, word: Option<&Signed<KeyWord>>) -> Change {
    let (kind, to) = (kind.0, kind.1.to_be_bytes());
    Change {
        key: vec![WORD, kind, to[0], to[1]],
        value: word.map(|word| Zeroizing::new(encode(word))),
    }
}

fn of_key(transcript: &Digest) -> Vec<u8> {
    [[SHARE].as_slice(), transcript.as_bytes()].concat()
}

pub(super) fn share(key: &SharedKey, share: &KeyShare) -> Change {
    let value = Zeroizing::new(encode(&(key, share.expose().expose())));
    Change { key: of_key(key.transcript()), value: Some(value) }
}

pub(super) fn no_share(transcript: &Digest) -> Change {
    Change { key: of_key(transcript), value: None }
}

pub(super) fn prepared(prepared: Option<&Prepared>) -> Change {
    Change { key: vec![PREPARED], value: prepared.map(|it| Zeroizing::new(encode(it))) }
}

pub(super) fn no_attempt() -> Change {
    Change { key: vec![ATTEMPT], value: None }
}

/// Reads a record.
pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Record, DamagedLog> {
    let record = match key.first() {
        Some(&ATTEMPT) => decode(value).map(Record::Attempt),
        Some(&SEED) => Secret::from_slice(value).map(Record::Seed),
        Some(&DEALING) => Some(Record::Dealing(value.to_vec())),
        Some(&WORD) => decode(value).map(Record::Word),
        Some(&SHARE) => decode::<(SharedKey, [u8; 32])>(value)
            .map(|(key, share)| Record::Share(Box::new(key), Secret::from_bytes(share))),
        Some(&PREPARED) => decode(value).map(|it| Record::Prepared(Box::new(it))),
        _ => None,
    };
    record.ok_or(DamagedLog)
}
