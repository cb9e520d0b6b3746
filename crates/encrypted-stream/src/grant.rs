//! Raw access: an owner allows a named consumer to read days of a stream, and the
//! controller releases the keys of those days, sealed (Zeph §2.2, the first kind of
//! consumer).
//!
//! # Privacy
//! Anyone with a day's key can read every event of that day of that stream, for as long as
//! its ciphertexts exist. With one frame a tick that is every tick, and no single event. They learn nothing of any other day. No session spans two days,
//! so not even the sums between two granted days are revealed. Keys that were released
//! cannot be taken back, neither by a withdrawal nor by an erasure.

use std::collections::BTreeMap;

use alpheus_crypto::hybrid::{HybridKey, HybridPublic, HybridSealed, seal_bytes};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_time::{Timestamp, Window};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::certificate::CertifiedOwner;
use crate::error::{GrantError, RawReadError};
use crate::frame::{Frame, FrameView, Words};
use crate::keys::{DAY, DayKey};
use crate::tick::claim::Claim;

/// Maximum number of days in a grant: their keys are sealed whenever the reader asks.
const MAX_DAYS: u64 = 366;

/// Days in UTC, counted from the Unix epoch, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Days {
    /// From the first to the last day.
    ///
    /// # Errors
    /// [`GrantError::Days`] if there is no day, or there are too many.
    pub fn new(first: u64, last: u64) -> Result<Days, GrantError> {
        let fits = first <= last && last - first < MAX_DAYS && last < Timestamp::LIMIT.0 / DAY;
        if fits { Ok(Days { first, last }) } else { Err(GrantError::Days { most: MAX_DAYS }) }
    }

    /// Whether a time is in one of them.
    #[must_use]
    pub fn contain(&self, t: Timestamp) -> bool {
        (self.first..=self.last).contains(&(t.0 / DAY))
    }

    /// Whether any of them has a part of a window.
    pub(crate) fn overlap(&self, window: Window) -> bool {
        self.first <= window.end.0 / DAY && window.start.0 / DAY <= self.last
    }

    /// Both ends, for contexts.
    fn edges(self) -> [[u8; 8]; 2] {
        [self.first, self.last].map(u64::to_be_bytes)
    }

    /// These days, the others, and those between them.
    pub(crate) fn with(self, other: Days) -> Days {
        Days { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The days that are over by `now`; `None` if there are none.
    pub(crate) fn over_by(self, now: Timestamp) -> Option<Days> {
        let last = self.last.min((now.0 / DAY).checked_sub(1)?);
        (self.first <= last).then_some(Days { first: self.first, last })
    }
}

/// An owner's signed statement on what one consumer may read of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The stream.
    pub stream: StreamId,
    /// The reader: the fingerprint of a consumer's certificate.
    pub reader: ConsumerId,
    /// When the owner signed it, on the owner's clock. A later one replaces an earlier one.
    /// After an untrusted restore of a controller's ledger, earlier ones are void.
    pub at: Timestamp,
    /// Which days; `None` stops the access.
    pub days: Option<Days>,
}

impl Message for Grant {
    const LABEL: &'static str = labels::GRANT;
}

/// Opens a grant, if this owner signed it and is the one `expected`.
///
/// # Errors
/// [`GrantError`].
pub fn open(
    signed: &Signed<Grant>,
    owner: &CertifiedOwner,
    expected: &OwnerId,
) -> Result<Verified<Grant>, GrantError> {
    let opened = signed.open(owner.key()).map_err(|_| GrantError::Unsigned)?;
    if owner.id() != *expected {
        return Err(GrantError::WrongOwner);
    }
    if let Some(days) = opened.days {
        Days::new(days.first, days.last)?;
    }
    Ok(opened)
}

/// The stream whose days are granted, and the controller that releases their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedStream {
    /// The stream.
    pub stream: StreamId,
    /// Its schema.
    pub schema: SchemaId,
    /// Its owner.
    pub owner: OwnerId,
    /// The controller that seals the keys.
    pub controller: ControllerId,
}

/// Length of a day's secret.
const SECRET: usize = 16;

impl GrantedStream {
    /// Seals one secret for each of the days, in their order: one encapsulation for all.
    pub(crate) fn seal(
        &self,
        authority: &VerifyingKey,
        (reader, key): (&ConsumerId, &HybridPublic),
        (days, secrets): (Days, &[Secret<SECRET>]),
        rng: &mut impl CryptoRng,
    ) -> Result<HandedDays, GrantError> {
        // At its final size: a growing one would leave copies behind.
        let mut all = Zeroizing::new(Vec::with_capacity(SECRET * secrets.len()));
        secrets.iter().for_each(|secret| all.extend_from_slice(secret.expose()));
        let edges = days.edges();
        let context = self.context(authority, reader, &edges);
        let sealed = seal_bytes(key, labels::GRANT_DAYS, &context, &all, rng);
        Ok(HandedDays { days, sealed: sealed.map_err(|_| GrantError::HalfHybrid)? })
    }

    /// The days with their secrets.
    fn open(
        &self,
        authority: &VerifyingKey,
        (reader, key): (&ConsumerId, &HybridKey),
        handed: &HandedDays,
    ) -> Option<Vec<(u64, Secret<SECRET>)>> {
        let days = Days::new(handed.days.first, handed.days.last).ok()?;
        let edges = days.edges();
        let context = self.context(authority, reader, &edges);
        let opened = key.open_bytes(labels::GRANT_DAYS, &context, &handed.sealed);
        let opened = opened.ok()?;
        let (secrets, rest) = opened.as_chunks::<SECRET>();
        let each = || days.first..=days.last;
        if each().count() != secrets.len() || !rest.is_empty() {
            return None;
        }
        Some(each().zip(secrets.iter().map(|secret| Secret::from_bytes(*secret))).collect())
    }

    /// What the sealed secrets are bound to.
    fn context<'a>(
        &'a self,
        authority: &'a VerifyingKey,
        reader: &'a ConsumerId,
        [first, last]: &'a [[u8; 8]; 2],
    ) -> [&'a [u8]; 8] {
        let Self { stream, schema, owner, controller } = self;
        let sender: [&[u8]; 2] = [authority.as_bytes(), &controller.0];
        [sender[0], sender[1], &reader.0, &owner.0, &stream.0, &schema.0, first, last]
    }
}

/// The keys of some days, sealed for the reader together. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDays {
    /// The days.
    pub days: Days,
    /// 16 bytes for each, in their order.
    pub sealed: HybridSealed,
}

/// A reader's keys of one stream, day by day.
pub struct RawReader {
    days: BTreeMap<u64, DayKey>,
    /// Words of an event. Without this check shorter ones would be read too, because the
    /// pads of the first words are the same.
    words: usize,
}

impl RawReader {
    /// Opens the keys that a controller of this authority's deployment released for this reader.
    pub(crate) fn new(
        authority: &VerifyingKey,
        reader: (&ConsumerId, &HybridKey),
        (granted, words): (&GrantedStream, u16),
        handed: &[HandedDays],
    ) -> Result<RawReader, RawReadError> {
        let mut days = BTreeMap::new();
        for answer in handed {
            let Days { first, last } = answer.days;
            let opened = granted.open(authority, reader, answer);
            let opened = opened.ok_or(RawReadError::NotForYou { first, last })?;
            days.extend(opened.into_iter().map(|(day, secret)| (day, DayKey::new(day, &secret))));
        }
        Ok(RawReader { days, words: words.into() })
    }

    /// The days that it can read.
    pub fn days(&self) -> impl Iterator<Item = u64> + '_ {
        self.days.keys().copied()
    }

    /// Decrypts an event into its words, with the check word last. `None` for a border,
    /// which holds no data.
    ///
    /// # Errors
    /// [`RawReadError::OtherDay`] if the event, or the one before it, is of a day without a
    /// key here. [`RawReadError::Length`] if the number of words is not that of an event.
    /// [`RawReadError::CheckWord`] if it is no event under these keys.
    pub fn read(&self, frame: &FrameView<'_>) -> Result<Option<Vec<u64>>, RawReadError> {
        let Frame::Data { link, words } = frame else { return Ok(None) };
        self.open(link.session, (link.previous, link.t), words).map(Some)
    }

    /// Decrypts a tick into the sum of its events, with the check word last.
    ///
    /// The key of a tick that ends at midnight is half the next day's.
    ///
    /// # Errors
    /// As [`RawReader::read`].
    pub fn read_tick(&self, claim: &Claim, words: &Words<'_>) -> Result<Vec<u64>, RawReadError> {
        self.open(claim.session, (claim.from, claim.to), words)
    }

    fn open(
        &self,
        session: u64,
        (previous, t): (Timestamp, Timestamp),
        words: &Words<'_>,
    ) -> Result<Vec<u64>, RawReadError> {
        let mut event: Vec<u64> = words.iter().collect();
        if event.len() != self.words {
            return Err(RawReadError::Length { expected: self.words, found: event.len() });
        }
        let mut pad = zeroize::Zeroizing::new(vec![0; event.len()]);
        for (t, add) in [(t, false), (previous, true)] {
            let day = t.0 / DAY;
            let key = self.days.get(&day).ok_or(RawReadError::OtherDay { day })?;
            let none = |_| RawReadError::OtherDay { day };
            key.key_vector(session, t, &mut pad).map_err(none)?;
            for (word, pad) in event.iter_mut().zip(pad.iter()) {
                *word = if add { word.wrapping_add(*pad) } else { word.wrapping_sub(*pad) };
            }
        }
        if event.last() == Some(&0) { Ok(event) } else { Err(RawReadError::CheckWord) }
    }
}
