//! What a member stores durably while a key is made. The caller puts all of a key epoch under one
//! prefix.

use super::messages::{KeyCertificate, KeyMessage, Kind};
use crate::messages::{decode, encode};
use crate::threshold::{KeyShare, SharedKey};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use zeroize::Zeroizing;

const ATTEMPT: u8 = b'a';
const SEED: u8 = b's';
const DEALING: u8 = b'd';
const MESSAGE: u8 = b'w';
const SHARE: u8 = b'v';
const CERTIFICATE: u8 = b'p';

/// One decoded record.
pub(super) enum Record {
    Attempt(u32),
    Seed(Secret<32>),
    Dealing(Vec<u8>),
    Message(Signed<KeyMessage>),
    Share(Box<SharedKey>, Secret<32>),
    Certificate(Box<KeyCertificate>),
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

pub(super) fn message(kind: Kind, message: Option<&Signed<KeyMessage>>) -> Change {
    let (kind, to) = (kind.0, kind.1.to_be_bytes());
    Change {
        key: vec![MESSAGE, kind, to[0], to[1]],
        value: message.map(|message| Zeroizing::new(encode(message))),
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
    Change::remove(of_key(transcript))
}

pub(super) fn certificate(certificate: Option<&KeyCertificate>) -> Change {
    Change { key: vec![CERTIFICATE], value: certificate.map(|it| Zeroizing::new(encode(it))) }
}

pub(super) fn no_attempt() -> Change {
    Change::remove(vec![ATTEMPT])
}

/// Decodes a record.
pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Record, DamagedLedgerError> {
    let record = match key.first() {
        Some(&ATTEMPT) => decode(value).map(Record::Attempt),
        Some(&SEED) => Secret::from_slice(value).map(Record::Seed),
        Some(&DEALING) => Some(Record::Dealing(value.to_vec())),
        Some(&MESSAGE) => decode(value).map(Record::Message),
        Some(&SHARE) => decode::<(SharedKey, [u8; 32])>(value)
            .map(|(key, share)| Record::Share(Box::new(key), Secret::from_bytes(share))),
        Some(&CERTIFICATE) => decode(value).map(|it| Record::Certificate(Box::new(it))),
        _ => None,
    };
    record.ok_or(DamagedLedgerError)
}
