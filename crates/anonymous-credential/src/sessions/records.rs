//! A shard's records, and restoration from them.

use super::{Session, Shard, TagUse};
use crate::configuration::PinnedConfiguration;
use crate::ledger::{Change, DamagedLedgerError, StateOrigin, Step, put};
use crate::messages::{SessionId, TagId};
use crate::schedule::Epoch;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

const CLOCK: &[u8] = b"clock";
const FROM: &[u8] = b"from";
const TAG: &[u8] = b"tag";
const SESSION: &[u8] = b"session";
const VOID: &[u8] = b"void";

impl Shard {
    /// Restores a shard from its ledger; commit the step to use it.
    ///
    /// A [`StateOrigin::Restored`] ledger is not trusted. Its records are deleted, and the shard
    /// serves only epochs whose logins had not opened yet. So a holder is locked out for the
    /// rest of the running epoch at most. The clock must be right then, since there is no record
    /// to check it against.
    ///
    /// # Errors
    /// [`DamagedLedgerError`].
    pub fn restore(
        pinned: PinnedConfiguration,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        origin: StateOrigin,
        now: Timestamp,
    ) -> Result<Step<Self>, DamagedLedgerError> {
        let records: Vec<_> = records.into_iter().collect();
        let mut shard = Self {
            pinned,
            tags: BTreeMap::new(),
            sessions: BTreeMap::new(),
            void: BTreeSet::new(),
            clock: None,
            serves_from: Epoch(0),
        };
        let begun = records.iter().any(|(key, _)| key == FROM);
        match origin {
            StateOrigin::New if records.is_empty() => Ok(shard.begin(Vec::new())),
            StateOrigin::Intact if begun => {
                let mut records = records.iter();
                records.try_for_each(|(key, value)| {
                    shard.read(key, value).ok_or(DamagedLedgerError)
                })?;
                Ok(Step::new(Vec::new(), shard))
            }
            StateOrigin::Restored => {
                let gone = records.into_iter().map(|(key, _)| Change { key, value: None });
                let mut changes: Vec<Change> = gone.collect();
                shard.serves_from = first_unopened(&shard.pinned, now);
                changes.extend(shard.tick(now));
                Ok(shard.begin(changes))
            }
            StateOrigin::New | StateOrigin::Intact => Err(DamagedLedgerError),
        }
    }

    /// Writes the record that every shard's ledger has.
    fn begin(self, mut changes: Vec<Change>) -> Step<Self> {
        changes.push(put(FROM.to_vec(), self.serves_from.0.to_be_bytes().to_vec()));
        Step::new(changes, self)
    }

    /// Reads one record; `None` if it is damaged.
    fn read(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        if key == CLOCK {
            self.clock = Some(Epoch(number(value)?));
        } else if key == FROM {
            self.serves_from = Epoch(number(value)?);
        } else if let Some(rest) = key.strip_prefix(TAG) {
            let (epoch, id) = rest.split_first_chunk()?;
            let key = (Epoch(u64::from_be_bytes(*epoch)), tag_id(id)?);
            self.tags.insert(key, read_tag_use(value)?);
        } else if let Some(rest) = key.strip_prefix(VOID) {
            let (epoch, name) = rest.split_first_chunk()?;
            self.void.insert((Epoch(u64::from_be_bytes(*epoch)), SessionId(tag_id(name)?)));
        } else {
            let id = SessionId(tag_id(key.strip_prefix(SESSION)?)?);
            self.sessions.insert(id, read_session(value)?);
        }
        Some(())
    }
}

fn first_unopened(pinned: &PinnedConfiguration, now: Timestamp) -> Epoch {
    let schedule = &pinned.schedule;
    let running = schedule.epoch_at(now).unwrap_or(Epoch(0));
    let candidates = [running, running.next(), running.next().next()];
    let unopened = candidates.into_iter().find(|epoch| schedule.opens(*epoch) > now);
    // Codes may have spent tags of this many more epochs.
    unopened.map_or(Epoch(u64::MAX), |epoch| Epoch(epoch.0.saturating_add(schedule.ahead)))
}

pub(super) fn clock(epoch: Epoch) -> Change {
    put(CLOCK.to_vec(), epoch.0.to_be_bytes().to_vec())
}

fn tag_key(epoch: Epoch, id: TagId) -> Vec<u8> {
    [TAG, &epoch.0.to_be_bytes(), id.0.as_bytes()].concat()
}

fn session_key(id: SessionId) -> Vec<u8> {
    [SESSION, id.0.0.as_bytes()].concat()
}

pub(super) fn no_tag(epoch: Epoch, id: TagId) -> Change {
    Change { key: tag_key(epoch, id), value: None }
}

fn void_key(epoch: Epoch, SessionId(name): SessionId) -> Vec<u8> {
    [VOID, &epoch.0.to_be_bytes(), name.0.as_bytes()].concat()
}

/// No value: the key is the whole record.
pub(super) fn void(epoch: Epoch, name: SessionId) -> Change {
    put(void_key(epoch, name), Vec::new())
}

pub(super) fn no_void(epoch: Epoch, name: SessionId) -> Change {
    Change { key: void_key(epoch, name), value: None }
}

pub(super) fn no_session(id: SessionId) -> Change {
    Change { key: session_key(id), value: None }
}

/// 0, or 1 (pending) or 2 (active) and the session, or 3 (admitted) and the scan.
pub(super) fn tag(epoch: Epoch, id: TagId, spent: TagUse) -> Change {
    let value = match spent {
        TagUse::Login => vec![0],
        TagUse::Pending(by) => [&[1], by.0.0.as_bytes().as_slice()].concat(),
        TagUse::Active(by) => [&[2], by.0.0.as_bytes().as_slice()].concat(),
        TagUse::Admitted(scan) => [&[3], scan.as_bytes().as_slice()].concat(),
    };
    put(tag_key(epoch, id), value)
}

/// holder ‖ first:64 ‖ epoch:64 ‖ tag ‖ ended:8.
pub(super) fn session(id: SessionId, session: &Session) -> Change {
    let value = [
        session.holder.as_bytes().as_slice(),
        &session.first.0.to_be_bytes(),
        &session.epoch.0.to_be_bytes(),
        session.tag.as_bytes(),
        &[u8::from(session.ended)],
    ];
    put(session_key(id), value.concat())
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn tag_id(bytes: &[u8]) -> Option<TagId> {
    bytes.try_into().ok().map(|bytes| TagId(Digest(bytes)))
}

fn read_tag_use(value: &[u8]) -> Option<TagUse> {
    match value.split_first()? {
        (0, []) => Some(TagUse::Login),
        (1, by) => Some(TagUse::Pending(SessionId(tag_id(by)?))),
        (2, by) => Some(TagUse::Active(SessionId(tag_id(by)?))),
        (3, scan) => Some(TagUse::Admitted(tag_id(scan)?.0)),
        _ => None,
    }
}

fn read_session(value: &[u8]) -> Option<Session> {
    let (holder, rest) = value.split_first_chunk::<32>()?;
    let (first, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (tag, rest) = rest.split_first_chunk()?;
    let [ended @ (0 | 1)] = rest else { return None };
    Some(Session {
        holder: VerifyingKey::from_bytes(*holder).ok()?,
        first: Epoch(u64::from_be_bytes(*first)),
        epoch: Epoch(u64::from_be_bytes(*epoch)),
        tag: Element::from_bytes(tag).ok()?,
        ended: *ended == 1,
    })
}
