//! A holder's records, which hold its secrets, and its restoration from them.

use super::{Holder, Requesting, Shown};
use crate::configuration::Pinned;
use crate::ledger::{Change, Step, put};
use crate::messages::{Request, SessionId, TagId};
use crate::schedule::{Epoch, Period};
use crate::subjects::Subject;
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use std::collections::BTreeMap;

const REQUEST: &[u8] = b"request";
const CREDENTIAL: &[u8] = b"credential";
const SHOWN: &[u8] = b"shown";
const ABOUT: &[u8] = b"about";

/// A stored record is damaged. Without its records a holder does not know what
/// it has burnt: restore them from a copy that is as new, or wait for the next
/// period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record of the credential is damaged; restore it, or wait for the next period")]
pub struct DamagedRecord;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

impl Requesting {
    /// What waits for an answer of a period, if something does.
    ///
    /// # Errors
    /// [`DamagedRecord`].
    pub fn restore(
        pinned: Pinned,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecord> {
        let Some(value) = records.get(&key(REQUEST, period)) else { return Ok(None) };
        let read = || {
            let (m1, rest) = scalar(value)?;
            let (r1, rest) = scalar(rest)?;
            let request = Request::from_bytes(rest).ok()?;
            Some(Self { pinned, m1, r1, request })
        };
        read().map(Some).ok_or(DamagedRecord)
    }
}

impl Holder {
    /// The credential of a period and all that was shown of it, if there is one.
    ///
    /// # Errors
    /// [`DamagedRecord`].
    pub fn restore(
        pinned: Pinned,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecord> {
        let Some(value) = records.get(&key(CREDENTIAL, period)) else { return Ok(None) };
        let read = || {
            let (m1, rest) = scalar(value)?;
            let (u, rest) = rest.split_first_chunk()?;
            let u = Element::from_bytes(u).ok()?;
            let mac = Element::from_bytes(rest.try_into().ok()?).ok()?;
            let prefix = key(SHOWN, period);
            let ours = records.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
            let shown = ours.map(|(k, v)| read_shown(&k[prefix.len()..], v)).collect::<Option<_>>();
            Some(Self { pinned, period, m1, u, mac, shown: shown? })
        };
        read().map(Some).ok_or(DamagedRecord)
    }
}

/// Removes all that a holder's records hold of periods before this one: secrets, too,
/// by which whoever takes them would find the showings of those periods.
pub fn forget_before(period: Period, records: &Records) -> Step<()> {
    let over = |key: &&Vec<u8>| {
        let mut kinds = [REQUEST, CREDENTIAL, SHOWN, ABOUT].into_iter();
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
pub(super) fn request(requesting: &Requesting) -> Change {
    let Requesting { m1, r1, request, .. } = requesting;
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

pub(super) fn shown_key(period: Period, epoch: Epoch, index: u32) -> Vec<u8> {
    let mut key = key(SHOWN, period);
    key.extend_from_slice(&epoch.0.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

/// session ‖ seed ‖ bytes.
pub(super) fn shown(period: Period, epoch: Epoch, index: u32, shown: &Shown) -> Change {
    put(shown_key(period, epoch, index), shown_value(shown))
}

fn shown_value(shown: &Shown) -> Vec<u8> {
    let session = shown.session.0.0;
    [session.as_bytes().as_slice(), shown.seed.expose(), &shown.bytes].concat()
}

/// `about ‖ period:64 ‖ F' ‖ epoch:64 ‖ index:32`.
pub(super) fn about(subject: &Subject, index: u32, shown: &Shown) -> Change {
    let mut key = about_key(subject);
    key.extend_from_slice(&subject.epoch().0.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    put(key, shown_value(shown))
}

fn about_key(subject: &Subject) -> Vec<u8> {
    [&key(ABOUT, subject.period()), subject.fingerprint().as_bytes().as_slice()].concat()
}

/// What was shown about a subject.
pub(super) fn read_about(
    subject: &Subject,
    records: &Records,
) -> Result<BTreeMap<(Epoch, u32), Shown>, DamagedRecord> {
    let prefix = about_key(subject);
    let ours = records.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
    let shown = ours.map(|(k, v)| read_shown(&k[prefix.len()..], v));
    shown.collect::<Option<_>>().ok_or(DamagedRecord)
}

fn read_shown(key: &[u8], value: &[u8]) -> Option<((Epoch, u32), Shown)> {
    let (epoch, index) = key.split_first_chunk()?;
    let index = u32::from_be_bytes(index.try_into().ok()?);
    let (session, rest) = value.split_first_chunk()?;
    let (seed, bytes) = rest.split_first_chunk()?;
    let shown = Shown {
        session: SessionId(TagId(Digest(*session))),
        seed: Secret::from_bytes(*seed),
        bytes: bytes.to_vec(),
    };
    Some(((Epoch(u64::from_be_bytes(*epoch)), index), shown))
}

fn scalar(bytes: &[u8]) -> Option<(SecretScalar, &[u8])> {
    let (scalar, rest) = bytes.split_first_chunk()?;
    Some((SecretScalar::from_bytes(&Secret::from_bytes(*scalar)).ok()?, rest))
}
