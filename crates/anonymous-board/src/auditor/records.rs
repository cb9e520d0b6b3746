//! The records that an auditor keeps durably, keyed by epoch, server and number.

use crate::configuration::{Epoch, Party};
use crate::messages::{Reveal, Statement, WriteName};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use serde::Serialize;

/// In place of a statement's number: the statement that conflicts with a server's others.
const CONFLICT: u8 = 255;
/// The auditor's seed of an epoch.
const SEED: u8 = 254;
/// A database's reveal.
const REVEAL: u8 = 253;
/// A write of which a complaint was judged. Its name follows.
const JUDGED: u8 = 252;

/// A decoded record.
pub(super) enum Record {
    Statement(Signed<Statement>),
    Conflict(Signed<Statement>),
    Seed(Secret<32>),
    Reveal(Signed<Reveal>),
    Judged(WriteName),
}

/// Whether the record of this key is the auditor's seed of an epoch.
pub(super) fn is_seed(key: &[u8]) -> bool {
    matches!(key.split_first_chunk::<8>(), Some((_, [_, SEED])))
}

fn key(epoch: Epoch, by: Party, number: u8) -> Vec<u8> {
    let by = u8::try_from(by.index()).unwrap_or(u8::MAX);
    [epoch.0.to_be_bytes().as_slice(), &[by, number]].concat()
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    postcard::to_allocvec(value).expect("plain data serialises")
}

pub(super) fn statement(
    epoch: Epoch,
    by: Party,
    number: usize,
    signed: &Signed<Statement>,
) -> Change {
    let number = u8::try_from(number).unwrap_or(u8::MAX);
    put(key(epoch, by, number), encoded(signed))
}

pub(super) fn conflict(epoch: Epoch, by: Party, signed: &Signed<Statement>) -> Change {
    put(key(epoch, by, CONFLICT), encoded(signed))
}

pub(super) fn seed(epoch: Epoch, seed: &Secret<32>) -> Change {
    put(key(epoch, Party::Auditor, SEED), seed.expose().to_vec())
}

pub(super) fn reveal(epoch: Epoch, by: Party, signed: &Signed<Reveal>) -> Change {
    put(key(epoch, by, REVEAL), encoded(signed))
}

fn judged_key(epoch: Epoch, write: &WriteName) -> Vec<u8> {
    [key(epoch, Party::Auditor, JUDGED).as_slice(), write.0.as_ref()].concat()
}

pub(super) fn judged(epoch: Epoch, write: &WriteName) -> Change {
    put(judged_key(epoch, write), Vec::new())
}

pub(super) fn remove_judged(epoch: Epoch, write: &WriteName) -> Change {
    Change { key: judged_key(epoch, write), value: None }
}

/// Removes the auditor's seed and the reveals: after this, nobody can open the keys any more.
pub(super) fn remove_check(epoch: Epoch) -> Vec<Change> {
    let databases = Party::ALL.into_iter().map(|by| (by, REVEAL));
    let all = databases.chain([(Party::Auditor, SEED)]);
    all.map(|(by, number)| Change { key: key(epoch, by, number), value: None }).collect()
}

/// Removes the statements of a server, of which there are so many.
pub(super) fn remove_statements(
    epoch: Epoch,
    by: Party,
    many: usize,
) -> impl Iterator<Item = Change> {
    let many = u8::try_from(many).unwrap_or(u8::MAX);
    let numbers = (0..many).chain([CONFLICT]);
    numbers.map(move |number| Change { key: key(epoch, by, number), value: None })
}

/// Decodes a record.
pub(super) fn read(key: &[u8], value: &[u8]) -> Result<(Epoch, Party, Record), DamagedLedgerError> {
    let (epoch, rest) = key.split_first_chunk::<8>().ok_or(DamagedLedgerError)?;
    let ([by, number], name) = rest.split_first_chunk::<2>().ok_or(DamagedLedgerError)?;
    let by = *Party::ALL.get(usize::from(*by)).ok_or(DamagedLedgerError)?;
    if name.is_empty() == (*number == JUDGED) {
        return Err(DamagedLedgerError);
    }
    let signed = || postcard::from_bytes(value).map_err(|_| DamagedLedgerError);
    let record = match *number {
        CONFLICT => Record::Conflict(signed()?),
        SEED => Record::Seed(Secret::from_slice(value).ok_or(DamagedLedgerError)?),
        JUDGED => {
            let name = <[u8; 32]>::try_from(name).map_err(|_| DamagedLedgerError)?;
            Record::Judged(WriteName(Digest(name)))
        }
        REVEAL => Record::Reveal(postcard::from_bytes(value).map_err(|_| DamagedLedgerError)?),
        _ => Record::Statement(signed()?),
    };
    Ok((Epoch(u64::from_be_bytes(*epoch)), by, record))
}
