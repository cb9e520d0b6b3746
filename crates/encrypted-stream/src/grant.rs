//! Raw access: an owner lets a named consumer read days of a stream, and its controller
//! hands out the keys of those days, sealed (Zeph §2.2, the first kind of consumer).
//!
//! # Privacy
//! Whoever gets a day's key reads every event of that day of that stream, for as long as
//! somebody keeps its ciphertexts, and nothing of any other day: no session is of two, so
//! not even the sums between two granted days. What was handed out cannot be taken back: not by a withdrawal, nor by an erasure.

use std::collections::BTreeMap;

use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingPublic, seal};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Signed, Verified};
use alpheus_policy::ids::{ConsumerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::time::Timestamp;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::annotation::owner_id;
use crate::consumer::Consumer;
use crate::error::{GrantRefused, NotReadable};
use crate::frame::{Frame, FrameView};
use crate::keys::{DAY, DayKey};

/// Days of a grant at most: each of its keys is sealed whenever the reader asks.
const MOST_DAYS: u64 = 366;

/// Days, counted from the Unix epoch, both ends in it. A day is UTC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Days {
    /// From the first to the last.
    ///
    /// # Errors
    /// [`GrantRefused::Days`] if there is none, or there are too many.
    pub fn new(first: u64, last: u64) -> Result<Days, GrantRefused> {
        let fits = first <= last && last - first < MOST_DAYS && last < Timestamp::LIMIT.0 / DAY;
        if fits { Ok(Days { first, last }) } else { Err(GrantRefused::Days { most: MOST_DAYS }) }
    }

    /// Whether a time is in one of them.
    #[must_use]
    pub fn contain(&self, t: Timestamp) -> bool {
        (self.first..=self.last).contains(&(t.0 / DAY))
    }

    /// Those that are over by `now`; none if none is.
    pub(crate) fn over_by(self, now: Timestamp) -> Option<Days> {
        let last = self.last.min((now.0 / DAY).checked_sub(1)?);
        (self.first <= last).then_some(Days { first: self.first, last })
    }
}

/// An owner's signed word on what one consumer may read of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The stream.
    pub stream: StreamId,
    /// Who may: the fingerprint of a consumer's certificate.
    pub reader: ConsumerId,
    /// When the owner signed it, by the owner's clock: a later one replaces an earlier, and
    /// one from before a controller's ledger was restored untrusted counts no more.
    pub at: Timestamp,
    /// Which days; none: no more of them.
    pub days: Option<Days>,
}

impl Message for Grant {
    const LABEL: &'static str = labels::GRANT;
}

/// Opens a grant, if this owner signed it with this key.
///
/// # Errors
/// [`GrantRefused`].
pub fn open(
    signed: &Signed<Grant>,
    key: &VerifyingKey,
    owner: &OwnerId,
) -> Result<Verified<Grant>, GrantRefused> {
    let opened = signed.open(key).map_err(|_| GrantRefused::Unsigned)?;
    if owner_id(key) != *owner {
        return Err(GrantRefused::WrongOwner);
    }
    if let Some(days) = opened.days {
        Days::new(days.first, days.last)?;
    }
    Ok(opened)
}

/// What one day's key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedDay {
    /// The stream.
    pub stream: StreamId,
    /// What it is a stream of.
    pub schema: SchemaId,
    /// Who may read it.
    pub reader: ConsumerId,
    /// The day.
    pub day: u64,
}

impl GrantedDay {
    fn context(&self) -> ([u8; 8], [&[u8]; 3]) {
        (self.day.to_be_bytes(), [&self.stream.0, &self.schema.0, &self.reader.0])
    }

    pub(crate) fn seal(
        &self,
        to: &SealingPublic,
        secret: &Secret<16>,
        rng: &mut impl CryptoRng,
    ) -> Result<HandedDay, GrantRefused> {
        let (day, [stream, schema, reader]) = self.context();
        let context = [stream, schema, reader, &day];
        let sealed = seal(to, labels::GRANTED_DAY, &context, secret, rng);
        let sealed = sealed.map_err(|_| GrantRefused::NoSealing)?;
        Ok(HandedDay { day: self.day, sealed })
    }

    fn open(&self, consumer: &Consumer, sealed: &Sealed) -> Result<Secret<16>, NotReadable> {
        let (day, [stream, schema, reader]) = self.context();
        let key = consumer.sealing().ok_or(NotReadable::NoSealing)?;
        let opened = key.open(labels::GRANTED_DAY, &[stream, schema, reader, &day], sealed);
        opened.map_err(|_| NotReadable::NotForYou { day: self.day })
    }
}

/// One day's key, sealed for the reader. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDay {
    /// The day.
    pub day: u64,
    /// 16 bytes.
    pub sealed: Sealed,
}

/// A reader's keys of one stream, day by day.
pub struct RawReader {
    days: BTreeMap<u64, DayKey>,
    /// Of an event. Shorter ones would be read too: pads of the first words are the same.
    words: usize,
}

impl RawReader {
    /// Opens what a controller handed out, for events of `words` words, as the schema's
    /// layout has them.
    ///
    /// # Errors
    /// [`NotReadable`] if it is for another reader, stream or schema, or damaged.
    pub fn new(
        consumer: &Consumer,
        (stream, schema, words): (StreamId, SchemaId, u16),
        handed: &[HandedDay],
    ) -> Result<RawReader, NotReadable> {
        let open = |HandedDay { day, sealed }: &HandedDay| {
            let granted = GrantedDay { stream, schema, reader: consumer.id(), day: *day };
            Ok((*day, DayKey::new(*day, &granted.open(consumer, sealed)?)))
        };
        let days = handed.iter().map(open).collect::<Result<_, _>>()?;
        Ok(RawReader { days, words: words.into() })
    }

    /// The days that it reads.
    pub fn days(&self) -> impl Iterator<Item = u64> + '_ {
        self.days.keys().copied()
    }

    /// Decrypts an event: its words, the check word last. None for borders, which hold
    /// nothing.
    ///
    /// # Errors
    /// [`NotReadable::OtherDay`] if the event, or the one that it follows, is of a day
    /// without a key here; [`NotReadable::Length`] if it has not an event's words;
    /// [`NotReadable::CheckWord`] if it is no event under these keys.
    pub fn read(&self, frame: &FrameView<'_>) -> Result<Option<Vec<u64>>, NotReadable> {
        let Frame::Data { link, words } = frame else { return Ok(None) };
        let mut event: Vec<u64> = words.iter().collect();
        if event.len() != self.words {
            return Err(NotReadable::Length { expected: self.words, found: event.len() });
        }
        let mut pad = zeroize::Zeroizing::new(vec![0; event.len()]);
        for (t, add) in [(link.t, false), (link.previous, true)] {
            let day = t.0 / DAY;
            let key = self.days.get(&day).ok_or(NotReadable::OtherDay { day })?;
            let none = |_| NotReadable::OtherDay { day };
            key.key_vector(link.session, t, &mut pad).map_err(none)?;
            for (word, pad) in event.iter_mut().zip(pad.iter()) {
                *word = if add { word.wrapping_add(*pad) } else { word.wrapping_sub(*pad) };
            }
        }
        if event.last() == Some(&0) { Ok(Some(event)) } else { Err(NotReadable::CheckWord) }
    }
}
