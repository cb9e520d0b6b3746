//! A holder's records, which contain its secrets, and restoration from them.

use super::{Holder, PendingRequest, StoredPresentation};
use crate::configuration::PinnedConfiguration;
use crate::ledger::{Change, Step, put};
use crate::messages::{Request, SessionId, TagId};
use crate::schedule::{Epoch, Period};
use crate::subjects::Subject;
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use std::collections::{BTreeMap, BTreeSet};

const REQUEST: &[u8] = b"request";
const CREDENTIAL: &[u8] = b"credential";
const SHOWN: &[u8] = b"shown";
const ABOUT: &[u8] = b"about";
/// Marks a presentation as a part of a login code.
const CODE: &[u8] = b"code";

/// A stored record is damaged. Without its records a holder does not know what it has burnt.
/// Restore them from a copy that is as recent, or wait for the next period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record of the credential is damaged; restore it, or wait for the next period")]
pub struct DamagedRecordError;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

impl PendingRequest {
    /// The pending request for a period, if there is one.
    ///
    /// # Errors
    /// [`DamagedRecordError`].
    pub fn restore(
        pinned: PinnedConfiguration,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecordError> {
        let Some(value) = records.get(&key(REQUEST, period)) else { return Ok(None) };
        let read = || {
            let (m1, rest) = scalar(value)?;
            let (r1, rest) = scalar(rest)?;
            let request = Request::from_bytes(rest).ok()?;
            Some(Self { pinned, m1, r1, request })
        };
        read().map(Some).ok_or(DamagedRecordError)
    }
}

impl Holder {
    /// The credential of a period and its presentations, if there is one.
    ///
    /// # Errors
    /// [`DamagedRecordError`].
    pub fn restore(
        pinned: PinnedConfiguration,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecordError> {
        let Some(value) = records.get(&key(CREDENTIAL, period)) else { return Ok(None) };
        let read = || {
            let (m1, rest) = scalar(value)?;
            let (u, rest) = rest.split_first_chunk()?;
            let u = Element::from_bytes(u).ok()?;
            let mac = Element::from_bytes(rest.try_into().ok()?).ok()?;
            let prefix = key(SHOWN, period);
            let ours = records.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
            let presentations = ours.map(|(k, v)| read_presentation(&k[prefix.len()..], v));
            let presentations = presentations.collect::<Option<_>>()?;
            let codes = read_codes(period, records)?;
            Some(Self { pinned, period, m1, u, mac, presentations, codes })
        };
        read().map(Some).ok_or(DamagedRecordError)
    }
}

/// Deletes a holder's records of all periods before `period`. They include secrets with which a
/// thief could find the presentations of those periods.
pub fn forget_before(period: Period, records: &Records) -> Step<()> {
    let over = |key: &&Vec<u8>| {
        let mut kinds = [REQUEST, CREDENTIAL, SHOWN, ABOUT, CODE].into_iter();
        let rest = kinds.find_map(|kind| key.strip_prefix(kind));
        let of = rest.and_then(<[u8]>::first_chunk).map(|of| u64::from_be_bytes(*of));
        of.is_some_and(|of| of < period.0)
    };
    let gone = records.keys().filter(over);
    Step::new(gone.map(|key| Change { key: key.clone(), value: None }).collect(), ())
}

fn key(kind: &[u8], period: Period) -> Vec<u8> {
    [kind, &period.0.to_be_bytes()].concat()
}

/// m1 ‖ r1 ‖ request.
pub(super) fn request(requesting: &PendingRequest) -> Change {
    let PendingRequest { m1, r1, request, .. } = requesting;
    let (m1, r1) = (m1.expose(), r1.expose());
    let value = [m1.expose().as_slice(), r1.expose(), &request.to_bytes()].concat();
    put(key(REQUEST, request.period), value)
}

pub(super) fn no_request(period: Period) -> Change {
    Change { key: key(REQUEST, period), value: None }
}

/// m1 ‖ U ‖ U'.
pub(super) fn credential(holder: &Holder) -> Change {
    let m1 = holder.m1.expose();
    let value = [m1.expose().as_slice(), holder.u.as_bytes(), holder.mac.as_bytes()].concat();
    put(key(CREDENTIAL, holder.period), value)
}

pub(super) fn presentation_key(period: Period, epoch: Epoch, index: u32) -> Vec<u8> {
    let mut key = key(SHOWN, period);
    key.extend_from_slice(&epoch.0.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

/// `code ‖ period:64 ‖ epoch:64`, without a value.
pub(super) fn code(period: Period, epoch: Epoch) -> Change {
    put(code_key(period, epoch), Vec::new())
}

pub(super) fn no_code(period: Period, epoch: Epoch) -> Change {
    Change { key: code_key(period, epoch), value: None }
}

fn code_key(period: Period, epoch: Epoch) -> Vec<u8> {
    [&key(CODE, period), &epoch.0.to_be_bytes()[..]].concat()
}

fn read_codes(period: Period, records: &Records) -> Option<BTreeSet<Epoch>> {
    let prefix = key(CODE, period);
    let ours = records.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
    let epochs =
        ours.map(|(k, _)| Some(Epoch(u64::from_be_bytes(k[prefix.len()..].try_into().ok()?))));
    epochs.collect()
}

/// session ‖ seed ‖ bytes.
pub(super) fn presentation(
    period: Period,
    epoch: Epoch,
    index: u32,
    stored: &StoredPresentation,
) -> Change {
    put(presentation_key(period, epoch, index), presentation_value(stored))
}

fn presentation_value(stored: &StoredPresentation) -> Vec<u8> {
    let session = stored.session.0.0;
    [session.as_bytes().as_slice(), stored.seed.expose(), &stored.bytes].concat()
}

/// `about ‖ period:64 ‖ F' ‖ epoch:64 ‖ index:32`.
pub(super) fn subject_presentation(
    subject: &Subject,
    index: u32,
    stored: &StoredPresentation,
) -> Change {
    let mut key = subject_key(subject);
    key.extend_from_slice(&subject.epoch().0.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    put(key, presentation_value(stored))
}

fn subject_key(subject: &Subject) -> Vec<u8> {
    [&key(ABOUT, subject.period()), subject.fingerprint().as_bytes().as_slice()].concat()
}

/// Presentations about a subject.
pub(super) fn read_subject(
    subject: &Subject,
    records: &Records,
) -> Result<BTreeMap<(Epoch, u32), StoredPresentation>, DamagedRecordError> {
    let prefix = subject_key(subject);
    let ours = records.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
    let stored = ours.map(|(k, v)| read_presentation(&k[prefix.len()..], v));
    stored.collect::<Option<_>>().ok_or(DamagedRecordError)
}

fn read_presentation(key: &[u8], value: &[u8]) -> Option<((Epoch, u32), StoredPresentation)> {
    let (epoch, index) = key.split_first_chunk()?;
    let index = u32::from_be_bytes(index.try_into().ok()?);
    let (session, rest) = value.split_first_chunk()?;
    let (seed, bytes) = rest.split_first_chunk()?;
    let stored = StoredPresentation {
        session: SessionId(TagId(Digest(*session))),
        seed: Secret::from_bytes(*seed),
        bytes: bytes.to_vec(),
    };
    Some(((Epoch(u64::from_be_bytes(*epoch)), index), stored))
}

fn scalar(bytes: &[u8]) -> Option<(SecretScalar, &[u8])> {
    let (scalar, rest) = bytes.split_first_chunk()?;
    Some((SecretScalar::from_bytes(&Secret::from_bytes(*scalar)).ok()?, rest))
}
