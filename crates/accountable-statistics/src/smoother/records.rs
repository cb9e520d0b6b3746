//! What a smoother keeps durably: keys by key epoch; by aggregate, what it has signed.

use crate::configuration::KeyEpoch;
use crate::configuration::SmootherId;
use crate::definition::{Definition, Place};
use crate::endorsed::Endorsed;
use crate::messages::{Entry, Evidence, Grant, Outcome, Ready, decode, encode};
use crate::slots::Held;
use crate::threshold::SharedKey;
use alpheus_anonymous_credential::messages::TagId;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, put};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use serde::{Deserialize, Serialize};

/// A definition that this smoother has signed, as far as others must not overlap it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claimed {
    pub(super) place: Place,
    pub(super) start: Time,
    pub(super) end: Time,
}

const BEGUN: u8 = b'b';
const CARD: u8 = b'c';
const SHARE: u8 = b'k';
const CLAIM: u8 = b'p';
const AGGREGATE: u8 = b'a';

const DEFINITION: u8 = b'd';
const TAG: u8 = b't';
const GRANT: u8 = b'g';
const ENTRY: u8 = b'e';
const READY: u8 = b'r';
const OUTCOME: u8 = b'o';
const CERTIFICATE: u8 = b'q';
const FETCHED: u8 = b's';
const EVIDENCE: u8 = b'v';

/// One record, read.
pub(super) enum Record {
    /// The ledger is in use; nothing is signed up to this key epoch, and nothing kept of those
    /// before the other.
    Begun(Option<KeyEpoch>, KeyEpoch),
    Card(KeyEpoch, Box<Carded>),
    Share(KeyEpoch, Secret<32>),
    Claim(Digest, Claimed),
    Of(Digest, Box<Line>),
}

/// The public side of a key.
#[derive(Serialize, Deserialize)]
pub(super) struct Carded {
    pub(super) shared: SharedKey,
    /// A quorum has signed it alike.
    pub(super) endorsed: bool,
    /// This smoother's share was destroyed, and is not taken again.
    pub(super) erased: bool,
}

/// One record of an aggregate.
pub(super) enum Line {
    Definition(Endorsed<Definition>),
    Tag(TagId, VerifyingKey),
    Grant(Signed<Grant>),
    Entry(SmootherId, Signed<Grant>, Sealed, Signed<Entry>),
    Certificate(Endorsed<Entry>),
    Fetched(u32, Sealed),
    Evidence(Evidence),
    Ready(Ready, Vec<u8>),
    Outcome(Outcome),
}

pub(super) fn begun(sits_out: Option<KeyEpoch>, first: KeyEpoch) -> Change {
    put(vec![BEGUN], encode(&(sits_out, first)))
}

/// All of a key epoch's key.
pub(super) fn no_key(epoch: KeyEpoch) -> [Change; 2] {
    [CARD, SHARE].map(|kind| Change { key: of_epoch(kind, epoch), value: None })
}

pub(super) fn no_claim(name: &Digest) -> Change {
    Change { key: [[CLAIM].as_slice(), name.as_bytes()].concat(), value: None }
}

/// What outlives an aggregate's slots.
pub(super) fn no_aggregate(name: &Digest) -> [Change; 3] {
    [DEFINITION, READY, OUTCOME].map(|kind| Change { key: of(name, kind, &[]), value: None })
}

pub(super) fn no_evidence(name: &Digest, by: SmootherId) -> Change {
    Change { key: of(name, EVIDENCE, &by.0.to_be_bytes()), value: None }
}

pub(super) fn card(epoch: KeyEpoch, card: &Carded) -> Change {
    put(of_epoch(CARD, epoch), encode(card))
}

pub(super) fn share(epoch: KeyEpoch, share: Option<&Secret<32>>) -> Change {
    let value = share.map(|share| share.expose().to_vec().into());
    Change { key: of_epoch(SHARE, epoch), value }
}

pub(super) fn claim(name: &Digest, claimed: &Claimed) -> Change {
    put([[CLAIM].as_slice(), name.as_bytes()].concat(), encode(claimed))
}

pub(super) fn definition(name: &Digest, signed: &Endorsed<Definition>) -> Change {
    put(of(name, DEFINITION, &[]), encode(signed))
}

pub(super) fn tag(name: &Digest, tag: &TagId, ephemeral: &VerifyingKey) -> Change {
    put(of(name, TAG, tag.0.as_bytes()), ephemeral.as_bytes().to_vec())
}

pub(super) fn grant(name: &Digest, ephemeral: &VerifyingKey, signed: &Signed<Grant>) -> Change {
    put(of(name, GRANT, ephemeral.as_bytes()), encode(signed))
}

pub(super) fn entry(held: &Held) -> Change {
    let Held { entry, keeper, grant, sealed, receipt } = held;
    let key = of(&entry.aggregate, ENTRY, &entry.slot.to_be_bytes());
    put(key, encode(&(keeper, grant, sealed, receipt)))
}

pub(super) fn certificate(entry: &Entry, certificate: &Endorsed<Entry>) -> Change {
    put(of(&entry.aggregate, CERTIFICATE, &entry.slot.to_be_bytes()), encode(certificate))
}

pub(super) fn fetched(name: &Digest, slot: u32, sealed: &Sealed) -> Change {
    put(of(name, FETCHED, &slot.to_be_bytes()), encode(sealed))
}

/// The first of each smoother and aggregate: one is enough.
pub(super) fn evidence(name: &Digest, by: SmootherId, evidence: &Evidence) -> Change {
    put(of(name, EVIDENCE, &by.0.to_be_bytes()), encode(evidence))
}

pub(super) fn ready(ready: &Ready, sums: &[u8]) -> Change {
    put(of(&ready.aggregate, READY, &[]), encode(&(ready, sums)))
}

pub(super) fn outcome(outcome: &Outcome) -> Change {
    put(of(&outcome.aggregate, OUTCOME, &[]), encode(outcome))
}

pub(super) fn no_tag(name: &Digest, tag: &TagId) -> Change {
    Change { key: of(name, TAG, tag.0.as_bytes()), value: None }
}

pub(super) fn no_grant(name: &Digest, ephemeral: &VerifyingKey) -> Change {
    Change { key: of(name, GRANT, ephemeral.as_bytes()), value: None }
}

/// All of a slot.
pub(super) fn no_entry(name: &Digest, slot: u32) -> [Change; 3] {
    [ENTRY, CERTIFICATE, FETCHED]
        .map(|kind| Change { key: of(name, kind, &slot.to_be_bytes()), value: None })
}

fn of_epoch(kind: u8, epoch: KeyEpoch) -> Vec<u8> {
    [[kind].as_slice(), &epoch.0.to_be_bytes()].concat()
}

fn of(name: &Digest, kind: u8, rest: &[u8]) -> Vec<u8> {
    [[AGGREGATE].as_slice(), name.as_bytes(), &[kind], rest].concat()
}

/// Reads a record.
pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Record, DamagedLog> {
    let (kind, rest) = key.split_first().ok_or(DamagedLog)?;
    let number = || {
        let bytes = <[u8; 8]>::try_from(rest).map_err(|_| DamagedLog)?;
        Ok(KeyEpoch(u64::from_be_bytes(bytes)))
    };
    Ok(match *kind {
        BEGUN => {
            let (sits_out, first) = decode(value).ok_or(DamagedLog)?;
            Record::Begun(sits_out, first)
        }
        CARD => Record::Card(number()?, Box::new(decode(value).ok_or(DamagedLog)?)),
        SHARE => Record::Share(number()?, Secret::from_slice(value).ok_or(DamagedLog)?),
        CLAIM => {
            let name = Digest(rest.try_into().map_err(|_| DamagedLog)?);
            Record::Claim(name, decode(value).ok_or(DamagedLog)?)
        }
        AGGREGATE => {
            let (name, rest) = rest.split_first_chunk().ok_or(DamagedLog)?;
            let line = read_line(rest, value).ok_or(DamagedLog)?;
            Record::Of(Digest(*name), Box::new(line))
        }
        _ => return Err(DamagedLog),
    })
}

fn read_line(key: &[u8], value: &[u8]) -> Option<Line> {
    let (kind, rest) = key.split_first()?;
    Some(match *kind {
        DEFINITION => Line::Definition(decode(value)?),
        TAG => {
            let key = VerifyingKey::from_bytes(value.try_into().ok()?).ok()?;
            Line::Tag(TagId(Digest(rest.try_into().ok()?)), key)
        }
        GRANT => Line::Grant(decode(value)?),
        ENTRY => {
            let (keeper, grant, sealed, receipt) = decode(value)?;
            Line::Entry(keeper, grant, sealed, receipt)
        }
        CERTIFICATE => Line::Certificate(decode(value)?),
        FETCHED => Line::Fetched(u32::from_be_bytes(rest.try_into().ok()?), decode(value)?),
        EVIDENCE => Line::Evidence(decode(value)?),
        READY => {
            let (ready, sums) = decode(value)?;
            Line::Ready(ready, sums)
        }
        OUTCOME => Line::Outcome(decode(value)?),
        _ => return None,
    })
}
