//! Repairs the end of fjall's journal after a crash, and detects damage.
//!
//! We write one change of the tables at a time, as one fjall batch, and flush it before the
//! next. So after a loss of power only the last batch of the newest journal may be torn: cut
//! short, or with holes where pages were not written. Fjall drops a batch that is cut short,
//! but refuses to open if there is a hole. If a length is damaged, it silently drops
//! everything that follows, including acknowledged data. So we read each journal before
//! fjall does. A torn last batch is cut off. A broken batch followed by a good one is
//! damage, which is an error.
//!
//! Fjall 3's journal, all integers little-endian:
//!
//! ```text
//! batch = 1 count:u32 seqno:u64  item*  3 xxh3(items):u64 "FJL" 3
//! item  = 2 kind:u8 compression:u8 tree:u64 key:u16 value:u32 stored:u32  key  stored value
//!       | 4 tree:u64
//! ```

use crate::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";

/// Cuts off a torn last batch of the newest journal in `data`.
pub(super) fn cut_torn_tail(data: &Path) -> Result<(), Error> {
    let mut journals = journals(data)?;
    let newest = journals.pop();
    for journal in &journals {
        let bytes = read(journal)?;
        if !matches!(examine(&bytes), Tail::Clean) {
            return Err(damaged(journal));
        }
    }
    let Some(newest) = newest else { return Ok(()) };
    match examine(&read(&newest)?) {
        Tail::Clean => Ok(()),
        Tail::Torn { keep } => cut(&newest, keep),
        Tail::CatalogError => Err(damaged(&newest)),
    }
}

/// The end of a journal.
#[derive(Debug, PartialEq, Eq)]
enum Tail {
    /// Nothing, or zeros, follow the last good batch.
    Clean,
    /// After `keep` bytes there is a part of a batch, and no good batch.
    Torn { keep: u64 },
    /// A good batch follows a broken one.
    CatalogError,
}

fn examine(bytes: &[u8]) -> Tail {
    let mut good = 0;
    while let Some(length) = bytes.get(good..).and_then(batch_len) {
        good += length;
    }
    let rest = bytes.get(good..).unwrap_or_default();
    if rest.iter().all(|&b| b == 0) {
        Tail::Clean
    } else if holds_batch(rest) {
        Tail::CatalogError
    } else {
        Tail::Torn { keep: good as u64 }
    }
}

/// The length of the batch at the start of `bytes`, if it is good.
fn batch_len(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    (take::<1>(&mut rest)? == [START]).then_some(())?;
    let count = u32::from_le_bytes(take(&mut rest)?);
    let _seqno = take::<8>(&mut rest)?;
    let items = rest;
    for _ in 0..count {
        skip_item(&mut rest)?;
    }
    let items = items.get(..items.len() - rest.len())?;
    (take::<1>(&mut rest)? == [END]).then_some(())?;
    let checksum = u64::from_le_bytes(take(&mut rest)?);
    rest = rest.strip_prefix(TRAILER)?;
    (xxh3_64(items) == checksum).then_some(bytes.len() - rest.len())
}

fn skip_item(rest: &mut &[u8]) -> Option<()> {
    match take::<1>(rest)? {
        [ITEM] => {
            let _kind_compression_tree = take::<10>(rest)?;
            let key = usize::from(u16::from_le_bytes(take(rest)?));
            let _value = take::<4>(rest)?;
            let stored = u32::from_le_bytes(take(rest)?) as usize;
            *rest = rest.get(key.checked_add(stored)?..)?;
        }
        [CLEAR] => drop(take::<8>(rest)?),
        _ => return None,
    }
    Some(())
}

/// Whether a good batch starts anywhere in `bytes`.
fn holds_batch(bytes: &[u8]) -> bool {
    let starts = bytes.iter().enumerate().filter(|&(_, &byte)| byte == START);
    starts.filter_map(|(at, _)| bytes.get(at..)).any(|rest| batch_len(rest).is_some())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

/// The journals, oldest first.
fn journals(data: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e: io::Error| Error::io(data, "list the journals", e);
    let mut found = Vec::new();
    for entry in fs::read_dir(data).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        found.extend(number.filter(|_| is_journal).map(|number| (number, path)));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn read(journal: &Path) -> Result<Vec<u8>, Error> {
    fs::read(journal).map_err(|e| Error::io(journal, "read the journal", e))
}

fn cut(journal: &Path, keep: u64) -> Result<(), Error> {
    let cut = || -> io::Result<()> {
        let file = File::options().write(true).open(journal)?;
        file.set_len(keep)?;
        file.sync_all()
    };
    cut().map_err(|e| Error::io(journal, "cut off the torn end", e))
}

fn damaged(journal: &Path) -> Error {
    let what = "the journal is broken before its end";
    Error::Corrupt { path: journal.to_owned(), what, source: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(seqno: u64, value: &[u8]) -> Vec<u8> {
        let mut items = vec![ITEM, 0, 0];
        items.extend_from_slice(&1u64.to_le_bytes());
        items.extend_from_slice(&3u16.to_le_bytes());
        for _ in 0..2 {
            items.extend_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        }
        items.extend_from_slice(b"key");
        items.extend_from_slice(value);
        let mut batch = vec![START, 1, 0, 0, 0];
        batch.extend_from_slice(&seqno.to_le_bytes());
        batch.extend_from_slice(&items);
        batch.push(END);
        batch.extend_from_slice(&xxh3_64(&items).to_le_bytes());
        batch.extend_from_slice(TRAILER);
        batch
    }

    #[test]
    fn damage_to_the_last_batch_is_a_torn_end_and_elsewhere_is_an_error() {
        let first = batch(1, b"one");
        let mut both = [first.clone(), batch(2, b"FJL\x03 in a value")].concat();
        both.extend_from_slice(&[0; 100]);
        assert_eq!(examine(&both), Tail::Clean);
        let keep = first.len() as u64;
        for at in 0..both.len() - 100 {
            // The checksum does not cover the sequence number, and it is not read here.
            let seqno = (5..13).contains(&(at % first.len()));
            if seqno || (at >= first.len() && at - first.len() < 13) {
                continue;
            }
            let mut bad = both.clone();
            bad[at] ^= 0x80;
            let kind = examine(&bad);
            if at < first.len() {
                assert_eq!(kind, Tail::CatalogError, "byte {at}");
            } else {
                assert_eq!(kind, Tail::Torn { keep }, "byte {at}");
            }
        }
    }

    #[test]
    fn a_journal_cut_anywhere_in_the_last_batch_is_torn() {
        let both = [batch(1, b"one"), batch(2, b"two")].concat();
        for cut in both.len() / 2 + 1..both.len() {
            assert_eq!(examine(&both[..cut]), Tail::Torn { keep: both.len() as u64 / 2 }, "{cut}");
        }
        assert_eq!(examine(&both[..both.len() / 2]), Tail::Clean);
        assert_eq!(examine(&[]), Tail::Clean);
    }
}
