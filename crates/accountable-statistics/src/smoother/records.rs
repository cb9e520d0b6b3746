//! What a smoother stores durably: keys by key epoch; what it has signed, by aggregate.

use crate::configuration::KeyEpoch;
use crate::configuration::SmootherId;
use crate::definition::{Definition, Location};
use crate::endorsement::Endorsed;
use crate::messages::{Entry, Evidence, Grant, Outcome, Ready, SealedUpload, decode, encode};
use crate::slots::StoredDeposit;
use crate::threshold::SharedKey;
use alpheus_anonymous_credential::messages::TagId;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, put};
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// The location and time of a definition that this smoother has signed: no other may overlap it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) location: Location,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
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

/// One decoded record.
pub(super) enum Record {
    /// The ledger is in use. Nothing is signed up to the first key epoch; everything before the
    /// second is pruned.
    Begun(Option<KeyEpoch>, KeyEpoch),
    Card(KeyEpoch, Box<CardRecord>),
    Share(KeyEpoch, Secret<32>),
    Claim(Digest, Claim),
    Of(Digest, Box<AggregateRecord>),
}

/// The public side of a key.
#[derive(Serialize, Deserialize)]
pub(super) struct CardRecord {
    pub(super) shared: SharedKey,
    /// A quorum has signed it alike.
    pub(super) endorsed: bool,
    /// This smoother's share was destroyed, and is not accepted again.
    pub(super) erased: bool,
}

/// One record of an aggregate.
pub(super) enum AggregateRecord {
    Definition(Endorsed<Definition>),
    Tag(TagId, OneTimePublic),
    Grant(Signed<Grant>),
    Entry(SmootherId, Signed<Grant>, SealedUpload, Signed<Entry>),
    Certificate(Endorsed<Entry>),
    Fetched(u32, SealedUpload),
    Evidence(Evidence),
    Ready(Ready, Vec<u8>),
    Outcome(Outcome),
}

pub(super) fn begun(sits_out: Option<KeyEpoch>, first: KeyEpoch) -> Change {
    put(vec![BEGUN], encode(&(sits_out, first)))
}

/// Removes all records of a key epoch's key.
pub(super) fn no_key(epoch: KeyEpoch) -> [Change; 2] {
    [CARD, SHARE].map(|kind| Change::remove(of_epoch(kind, epoch)))
}

pub(super) fn no_claim(name: &Digest) -> Change {
    Change::remove([[CLAIM].as_slice(), name.as_bytes()].concat())
}

/// Removes what outlives an aggregate's slots.
pub(super) fn no_aggregate(name: &Digest) -> [Change; 3] {
    [DEFINITION, READY, OUTCOME].map(|kind| Change::remove(of(name, kind, &[])))
}

pub(super) fn no_evidence(name: &Digest, by: SmootherId) -> Change {
    Change::remove(of(name, EVIDENCE, &by.0.to_be_bytes()))
}

pub(super) fn card(epoch: KeyEpoch, card: &CardRecord) -> Change {
    put(of_epoch(CARD, epoch), encode(card))
}

pub(super) fn share(epoch: KeyEpoch, share: Option<&Secret<32>>) -> Change {
    let value = share.map(|share| share.expose().to_vec().into());
    Change { key: of_epoch(SHARE, epoch), value }
}

pub(super) fn claim(name: &Digest, claimed: &Claim) -> Change {
    put([[CLAIM].as_slice(), name.as_bytes()].concat(), encode(claimed))
}

pub(super) fn definition(name: &Digest, signed: &Endorsed<Definition>) -> Change {
    put(of(name, DEFINITION, &[]), encode(signed))
}

pub(super) fn tag(name: &Digest, tag: &TagId, ephemeral: &OneTimePublic) -> Change {
    put(of(name, TAG, tag.0.as_bytes()), ephemeral.as_bytes().to_vec())
}

pub(super) fn grant(name: &Digest, ephemeral: &OneTimePublic, signed: &Signed<Grant>) -> Change {
    put(of(name, GRANT, ephemeral.as_bytes()), encode(signed))
}

pub(super) fn entry(held: &StoredDeposit) -> Change {
    let StoredDeposit { entry, keeper, grant, sealed, receipt } = held;
    let key = of(&entry.aggregate, ENTRY, &entry.slot.to_be_bytes());
    put(key, encode(&(keeper, grant, sealed, receipt)))
}

pub(super) fn certificate(entry: &Entry, certificate: &Endorsed<Entry>) -> Change {
    put(of(&entry.aggregate, CERTIFICATE, &entry.slot.to_be_bytes()), encode(certificate))
}

pub(super) fn fetched(name: &Digest, slot: u32, sealed: &SealedUpload) -> Change {
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
    Change::remove(of(name, TAG, tag.0.as_bytes()))
}

pub(super) fn no_grant(name: &Digest, ephemeral: &OneTimePublic) -> Change {
    Change::remove(of(name, GRANT, ephemeral.as_bytes()))
}

/// Removes all records of a slot.
pub(super) fn no_entry(name: &Digest, slot: u32) -> [Change; 3] {
    [ENTRY, CERTIFICATE, FETCHED].map(|kind| Change::remove(of(name, kind, &slot.to_be_bytes())))
}

fn of_epoch(kind: u8, epoch: KeyEpoch) -> Vec<u8> {
    [[kind].as_slice(), &epoch.0.to_be_bytes()].concat()
}

fn of(name: &Digest, kind: u8, rest: &[u8]) -> Vec<u8> {
    [[AGGREGATE].as_slice(), name.as_bytes(), &[kind], rest].concat()
}

/// Decodes a record.
pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Record, DamagedLedgerError> {
    let (kind, rest) = key.split_first().ok_or(DamagedLedgerError)?;
    let number = || {
        let bytes = <[u8; 8]>::try_from(rest).map_err(|_| DamagedLedgerError)?;
        Ok(KeyEpoch(u64::from_be_bytes(bytes)))
    };
    Ok(match *kind {
        BEGUN => {
            let (sits_out, first) = decode(value).ok_or(DamagedLedgerError)?;
            Record::Begun(sits_out, first)
        }
        CARD => Record::Card(number()?, Box::new(decode(value).ok_or(DamagedLedgerError)?)),
        SHARE => Record::Share(number()?, Secret::from_slice(value).ok_or(DamagedLedgerError)?),
        CLAIM => {
            let name = Digest(rest.try_into().map_err(|_| DamagedLedgerError)?);
            Record::Claim(name, decode(value).ok_or(DamagedLedgerError)?)
        }
        AGGREGATE => {
            let (name, rest) = rest.split_first_chunk().ok_or(DamagedLedgerError)?;
            let line = read_line(rest, value).ok_or(DamagedLedgerError)?;
            Record::Of(Digest(*name), Box::new(line))
        }
        _ => return Err(DamagedLedgerError),
    })
}

fn read_line(key: &[u8], value: &[u8]) -> Option<AggregateRecord> {
    let (kind, rest) = key.split_first()?;
    Some(match *kind {
        DEFINITION => AggregateRecord::Definition(decode(value)?),
        TAG => {
            let key = OneTimePublic::from_bytes(value.try_into().ok()?);
            AggregateRecord::Tag(TagId(Digest(rest.try_into().ok()?)), key)
        }
        GRANT => AggregateRecord::Grant(decode(value)?),
        ENTRY => {
            let (keeper, grant, sealed, receipt) = decode(value)?;
            AggregateRecord::Entry(keeper, grant, sealed, receipt)
        }
        CERTIFICATE => AggregateRecord::Certificate(decode(value)?),
        FETCHED => {
            AggregateRecord::Fetched(u32::from_be_bytes(rest.try_into().ok()?), decode(value)?)
        }
        EVIDENCE => AggregateRecord::Evidence(decode(value)?),
        READY => {
            let (ready, sums) = decode(value)?;
            AggregateRecord::Ready(ready, sums)
        }
        OUTCOME => AggregateRecord::Outcome(decode(value)?),
        _ => return None,
    })
}
