//! What a database keeps durably: by epoch, then by kind.

use crate::configuration::{Epoch, Party, Pinned};
use crate::envelope::canonical;
use crate::messages::{Statement, Submission, Tag, WriteName};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use serde::Serialize;

const SEED: u8 = b'k';
const WRITE: u8 = b'w';
const STATEMENT: u8 = b's';
const MASKED: u8 = b'm';
const TABLE: u8 = b't';
const CONFLICT: u8 = b'c';
const TURNED_AWAY: u8 = b'r';

/// One record, read.
pub(super) enum Record {
    Seed(Secret<32>),
    Write(WriteName, Box<(Tag, Submission)>),
    Statement(Party, Signed<Statement>),
    Masked(Vec<u8>),
    Table(Vec<u8>),
    Conflict(Party, Signed<Statement>),
    TurnedAway(Tag),
}

fn key(epoch: Epoch, kind: u8, rest: &[u8]) -> Vec<u8> {
    [&epoch.0.to_be_bytes(), [kind].as_slice(), rest].concat()
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    postcard::to_allocvec(value).expect("plain data serialises")
}

pub(super) fn seed(epoch: Epoch, seed: &Secret<32>) -> Change {
    put(key(epoch, SEED, &[]), seed.expose().to_vec())
}

pub(super) fn no_seed(epoch: Epoch) -> Change {
    Change { key: key(epoch, SEED, &[]), value: None }
}

pub(super) fn write(epoch: Epoch, name: &WriteName, tag: &Tag, submission: &Submission) -> Change {
    put(key(epoch, WRITE, name.0.as_ref()), encoded(&(tag, submission)))
}

pub(super) fn no_write(epoch: Epoch, name: &WriteName) -> Change {
    Change { key: key(epoch, WRITE, name.0.as_ref()), value: None }
}

pub(super) fn statement(epoch: Epoch, by: Party, place: usize, said: &Signed<Statement>) -> Change {
    put(statement_key(epoch, by, place), encoded(said))
}

pub(super) fn no_statement(epoch: Epoch, by: Party, place: usize) -> Change {
    Change { key: statement_key(epoch, by, place), value: None }
}

fn statement_key(epoch: Epoch, by: Party, place: usize) -> Vec<u8> {
    let place = u8::try_from(place).unwrap_or(u8::MAX);
    key(epoch, STATEMENT, &[number(by), place])
}

pub(super) fn masked(epoch: Epoch, share: Option<&[u8]>) -> Change {
    let value = share.map(|share| share.to_vec().into());
    Change { key: key(epoch, MASKED, &[]), value }
}

pub(super) fn table(epoch: Epoch, table: Option<&[u8]>) -> Change {
    let value = table.map(|table| table.to_vec().into());
    Change { key: key(epoch, TABLE, &[]), value }
}

pub(super) fn conflict(epoch: Epoch, by: Party, said: Option<&Signed<Statement>>) -> Change {
    let key = key(epoch, CONFLICT, &[number(by)]);
    Change { key, value: said.map(|said| encoded(said).into()) }
}

pub(super) fn turned_away(epoch: Epoch, tag: &Tag) -> Change {
    put(key(epoch, TURNED_AWAY, &tag.0), Vec::new())
}

pub(super) fn no_turned_away(epoch: Epoch, tag: &Tag) -> Change {
    Change { key: key(epoch, TURNED_AWAY, &tag.0), value: None }
}

/// A server in a key: its place.
fn number(by: Party) -> u8 {
    u8::try_from(by.index()).unwrap_or(u8::MAX)
}

/// Reads a record.
pub(super) fn read(
    board: &Pinned,
    key: &[u8],
    value: &[u8],
) -> Result<(Epoch, Record), DamagedLog> {
    let (epoch, rest) = key.split_first_chunk::<8>().ok_or(DamagedLog)?;
    let (kind, rest) = rest.split_first().ok_or(DamagedLog)?;
    let record = match *kind {
        SEED => Record::Seed(Secret::from_slice(value).ok_or(DamagedLog)?),
        WRITE => {
            let name = WriteName(Digest(rest.try_into().map_err(|_| DamagedLog)?));
            Record::Write(name, Box::new(canonical(value).ok_or(DamagedLog)?))
        }
        STATEMENT => {
            let by = rest.first().and_then(|by| board.parties().get(usize::from(*by)));
            let said = postcard::from_bytes(value).map_err(|_| DamagedLog)?;
            Record::Statement(*by.ok_or(DamagedLog)?, said)
        }
        MASKED => Record::Masked(value.to_vec()),
        TABLE => Record::Table(value.to_vec()),
        CONFLICT => {
            let by = rest.first().and_then(|by| board.parties().get(usize::from(*by)));
            let said = postcard::from_bytes(value).map_err(|_| DamagedLog)?;
            Record::Conflict(*by.ok_or(DamagedLog)?, said)
        }
        TURNED_AWAY if value.is_empty() => {
            Record::TurnedAway(Tag(rest.try_into().map_err(|_| DamagedLog)?))
        }
        _ => return Err(DamagedLog),
    };
    Ok((Epoch(u64::from_be_bytes(*epoch)), record))
}
