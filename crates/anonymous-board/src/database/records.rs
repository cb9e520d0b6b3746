//! The records that a database keeps durably, keyed by epoch, then by kind.

use crate::configuration::{Board, Epoch, Party};
use crate::envelope::canonical;
use crate::messages::{Statement, Submission, Tag, WriteName};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use serde::Serialize;

const SEED: u8 = b'k';
const WRITE: u8 = b'w';
const STATEMENT: u8 = b's';
const MASKED: u8 = b'm';
const TABLE: u8 = b't';
const CONFLICT: u8 = b'c';
const OTHER_QUOTA: u8 = b'q';

/// The key of how the process ended. It has no epoch, so it is shorter than all others.
pub(super) const END: &[u8] = b"end";
/// The process ended in an orderly way.
pub(super) const ORDERLY: &[u8] = b"orderly";

/// A decoded record.
pub(super) enum Record {
    Seed(Secret<32>),
    Write(WriteName, Box<(Tag, Submission)>),
    Statement(Party, Signed<Statement>),
    Masked(Vec<u8>),
    Table(Vec<u8>),
    Conflict(Party, Signed<Statement>),
    OtherQuota(Tag),
}

/// Whether the record of this key is the seed of an epoch's secrets.
pub(super) fn is_seed(key: &[u8]) -> bool {
    matches!(key.split_first_chunk::<8>(), Some((_, [SEED])))
}

fn key(epoch: Epoch, kind: u8, rest: &[u8]) -> Vec<u8> {
    [&epoch.0.to_be_bytes(), [kind].as_slice(), rest].concat()
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    postcard::to_allocvec(value).expect("plain data serialises")
}

pub(super) fn end(orderly: bool) -> Change {
    put(END.to_vec(), if orderly { ORDERLY.to_vec() } else { b"unknown".to_vec() })
}

pub(super) fn seed(epoch: Epoch, seed: &Secret<32>) -> Change {
    put(key(epoch, SEED, &[]), seed.expose().to_vec())
}

pub(super) fn remove_seed(epoch: Epoch) -> Change {
    Change { key: key(epoch, SEED, &[]), value: None }
}

pub(super) fn write(epoch: Epoch, name: &WriteName, tag: &Tag, submission: &Submission) -> Change {
    put(key(epoch, WRITE, name.0.as_ref()), encoded(&(tag, submission)))
}

pub(super) fn remove_write(epoch: Epoch, name: &WriteName) -> Change {
    Change { key: key(epoch, WRITE, name.0.as_ref()), value: None }
}

pub(super) fn statement(
    epoch: Epoch,
    by: Party,
    sequence: usize,
    signed: &Signed<Statement>,
) -> Change {
    put(statement_key(epoch, by, sequence), encoded(signed))
}

pub(super) fn remove_statement(epoch: Epoch, by: Party, sequence: usize) -> Change {
    Change { key: statement_key(epoch, by, sequence), value: None }
}

fn statement_key(epoch: Epoch, by: Party, sequence: usize) -> Vec<u8> {
    let sequence = u8::try_from(sequence).unwrap_or(u8::MAX);
    key(epoch, STATEMENT, &[index(by), sequence])
}

pub(super) fn masked(epoch: Epoch, share: Option<&[u8]>) -> Change {
    let value = share.map(|share| share.to_vec().into());
    Change { key: key(epoch, MASKED, &[]), value }
}

pub(super) fn table(epoch: Epoch, table: Option<&[u8]>) -> Change {
    let value = table.map(|table| table.to_vec().into());
    Change { key: key(epoch, TABLE, &[]), value }
}

pub(super) fn conflict(epoch: Epoch, by: Party, signed: Option<&Signed<Statement>>) -> Change {
    let key = key(epoch, CONFLICT, &[index(by)]);
    Change { key, value: signed.map(|signed| encoded(signed).into()) }
}

pub(super) fn other_quota(epoch: Epoch, tag: &Tag) -> Change {
    put(key(epoch, OTHER_QUOTA, &tag.0), Vec::new())
}

pub(super) fn remove_other_quota(epoch: Epoch, tag: &Tag) -> Change {
    Change { key: key(epoch, OTHER_QUOTA, &tag.0), value: None }
}

/// A server's index, for keys.
fn index(by: Party) -> u8 {
    u8::try_from(by.index()).unwrap_or(u8::MAX)
}

/// Decodes a record.
pub(super) fn read(
    board: &Board,
    key: &[u8],
    value: &[u8],
) -> Result<(Epoch, Record), DamagedLedgerError> {
    let (epoch, rest) = key.split_first_chunk::<8>().ok_or(DamagedLedgerError)?;
    let (kind, rest) = rest.split_first().ok_or(DamagedLedgerError)?;
    let record = match *kind {
        SEED => Record::Seed(Secret::from_slice(value).ok_or(DamagedLedgerError)?),
        WRITE => {
            let name = WriteName(Digest(rest.try_into().map_err(|_| DamagedLedgerError)?));
            Record::Write(name, Box::new(canonical(value).ok_or(DamagedLedgerError)?))
        }
        STATEMENT => {
            let by = rest.first().and_then(|by| board.parties().get(usize::from(*by)));
            let signed = postcard::from_bytes(value).map_err(|_| DamagedLedgerError)?;
            Record::Statement(*by.ok_or(DamagedLedgerError)?, signed)
        }
        MASKED => Record::Masked(value.to_vec()),
        TABLE => Record::Table(value.to_vec()),
        CONFLICT => {
            let by = rest.first().and_then(|by| board.parties().get(usize::from(*by)));
            let signed = postcard::from_bytes(value).map_err(|_| DamagedLedgerError)?;
            Record::Conflict(*by.ok_or(DamagedLedgerError)?, signed)
        }
        OTHER_QUOTA if value.is_empty() => {
            Record::OtherQuota(Tag(rest.try_into().map_err(|_| DamagedLedgerError)?))
        }
        _ => return Err(DamagedLedgerError),
    };
    Ok((Epoch(u64::from_be_bytes(*epoch)), record))
}
