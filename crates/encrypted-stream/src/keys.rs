//! Keys of one stream: a master secret, its daily subkeys, its key vectors `K(t)` and the
//! MACs of its borders (Zeph §3.3).
//!
//! Producer and controller derive the same keys. Nobody else has any.

use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::mac::{MacKey, Tag, TagError};
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::plan::Release;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Maximum number of words in an event: a block's number within its event has 12 bits.
pub const MAX_WORDS: usize = 2 << 12;

/// Microseconds in a day, the period of one subkey.
pub const DAY: u64 = Span::DAY.0;

/// The UTC day of a time, counted from 1970.
pub(crate) fn day_of(t: Timestamp) -> u64 {
    t.0 / DAY
}

/// The secret that a producer shares only with its owner's controller. Erasing every copy
/// erases the stream's data everywhere.
pub struct MasterSecret(Secret<32>);

impl MasterSecret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(secret: Secret<32>) -> Self {
        Self(secret)
    }

    /// Draws a fresh one.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self(Secret::random(rng))
    }

    /// The secret itself, to seal it for the owner's controller.
    #[must_use]
    pub fn secret(&self) -> &Secret<32> {
        &self.0
    }
}

/// Why there is no key for a time or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The time does not fit the cipher's 52 bits.
    #[error("the time {} µs is not below 2^52; check the clock and its unit", .0.0)]
    TimeBeyondLimit(Timestamp),
    /// The vector does not fit the cipher's 12-bit block number.
    #[error("{0} words are too many: an event has at most {MAX_WORDS}")]
    TooManyWords(usize),
    /// The time is in another day than the key's.
    #[error("the time {} µs is not in the day of this key", .0.0)]
    OtherDay(Timestamp),
}

/// The kind of a border, as its MAC states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BorderKind {
    /// The first border of a session; it has no ciphertext.
    Opening,
    /// A border within a session.
    Interior,
    /// The last border of a session that was closed in order.
    Closing,
}

/// The content of a border that its MAC covers, besides the stream and schema of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BorderClaim {
    /// The kind of border.
    pub kind: BorderKind,
    /// The session.
    pub session: u64,
    /// Its time: a multiple of the tick.
    pub t: Timestamp,
    /// Data events since the previous border.
    pub count: u64,
}

impl BorderClaim {
    fn parts(&self) -> [[u8; 8]; 4] {
        let kind: u64 = match self.kind {
            BorderKind::Opening => 0,
            BorderKind::Interior => 1,
            BorderKind::Closing => 2,
        };
        [kind, self.session, self.t.0, self.count].map(u64::to_be_bytes)
    }
}

/// The keys of one stream under one schema.
///
/// The subkeys are bound to the schema's hash, so a service that redefines the schema gets
/// noise.
pub struct StreamKeys {
    master: Secret<32>,
    stream: StreamId,
    schema: SchemaId,
    border: MacKey,
    /// The subkey used last. Nearly every call is for the same day.
    cached: DayKey,
}

impl StreamKeys {
    /// Derives the keys.
    #[must_use]
    pub fn new(master: &MasterSecret, stream: StreamId, schema: SchemaId) -> Self {
        let parts: [&[u8]; 2] = [&stream.0, &schema.0];
        let border = derive(master.0.expose(), labels::STREAM_BORDER, &parts);
        let master = master.0.duplicate();
        let cached = DayKey::derive(&master, stream, schema, 0);
        Self { master, stream, schema, border: MacKey::new(&border), cached }
    }

    /// Their source, for the stream's next controller.
    pub(crate) fn master(&self) -> MasterSecret {
        MasterSecret(self.master.duplicate())
    }

    /// The stream of these keys.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The schema that they are bound to.
    #[must_use]
    pub fn schema(&self) -> SchemaId {
        self.schema
    }

    /// The key of one day since the Unix epoch. It opens that day and no other, because no
    /// session continues past the first border of another day. Within a session, `K` at two
    /// times opens the sum of everything in between.
    #[must_use]
    pub fn day_key(&self, day: u64) -> DayKey {
        DayKey::derive(&self.master, self.stream, self.schema, day)
    }

    /// The secret of one day's key, to be sealed for a reader.
    pub(crate) fn day_secret(&self, day: u64) -> Secret<16> {
        DayKey::secret(&self.master, self.stream, self.schema, day)
    }

    /// Writes `K(t)`, the pad of time `t` in `session`.
    ///
    /// # Errors
    /// [`KeyError`] if `t` or the length is outside the range of the cipher.
    #[inline]
    pub fn key_vector(
        &mut self,
        session: u64,
        t: Timestamp,
        out: &mut [u64],
    ) -> Result<(), KeyError> {
        self.day_of(t).key_vector(session, t, out)
    }

    /// Replaces the key vector of another time by `K(t)`, and writes `K(t)` minus the old
    /// vector, the encryption of zero.
    ///
    /// # Errors
    /// As [`StreamKeys::key_vector`]; nothing is written then.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        session: u64,
        t: Timestamp,
        keys: &mut [u64],
        difference: &mut [[u8; 8]],
    ) -> Result<(), KeyError> {
        self.day_of(t).replace(session, t, keys, difference)
    }

    /// Word `position` of `K(t)` alone.
    ///
    /// # Errors
    /// As [`StreamKeys::key_vector`].
    pub fn key_word(&mut self, session: u64, t: Timestamp, position: u16) -> Result<u64, KeyError> {
        self.day_of(t).key_word(session, t, position)
    }

    /// The token `τ = R·(K(from) − K(to))`. Added to the released sum of the ciphertexts
    /// over `(from, to]`, it yields that of the plaintexts.
    ///
    /// # Privacy
    /// Anyone who has it and the ciphertexts learns exactly `R·Σm` of that span.
    ///
    /// # Errors
    /// As [`StreamKeys::key_vector`].
    pub fn key_sum(
        &mut self,
        release: &Release,
        session: u64,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<u64>, KeyError> {
        let last = release.rows.iter().flatten().max();
        let words = last.map_or(0, |last| usize::from(*last) + 1);
        let mut from_vector = Zeroizing::new(vec![0; words]);
        let mut to_vector = Zeroizing::new(vec![0; words]);
        self.key_vector(session, from, &mut from_vector)?;
        self.key_vector(session, to, &mut to_vector)?;
        for (from, to) in from_vector.iter_mut().zip(to_vector.iter()) {
            *from = from.wrapping_sub(*to);
        }
        let mut token = vec![0; release.outputs()];
        release.add(&from_vector, &mut token);
        Ok(token)
    }

    /// Whether the ciphertexts' sum of the check word over `(from, to]` opens to zero. It
    /// does unless events are missing, duplicated or under other keys.
    ///
    /// # Errors
    /// As [`StreamKeys::key_vector`].
    pub fn check_word_opens(
        &mut self,
        session: u64,
        span: (Timestamp, Timestamp),
        position: u16,
        sum: u64,
    ) -> Result<bool, KeyError> {
        let from = self.key_word(session, span.0, position)?;
        let to = self.key_word(session, span.1, position)?;
        Ok(sum.wrapping_add(from).wrapping_sub(to) == 0)
    }

    /// The MAC of a border.
    #[must_use]
    pub fn border_tag(&self, claim: &BorderClaim) -> Tag {
        let parts = claim.parts();
        self.border.tag(labels::BORDER, &[&parts[0], &parts[1], &parts[2], &parts[3]])
    }

    /// Checks the MAC of a border.
    ///
    /// # Errors
    /// [`TagError`] if stream, schema, kind, session, time or count differ.
    pub fn verify_border(&self, claim: &BorderClaim, tag: &Tag) -> Result<(), TagError> {
        let parts = claim.parts();
        self.border.verify(labels::BORDER, &[&parts[0], &parts[1], &parts[2], &parts[3]], tag)
    }

    /// The MAC of what a tick frame states, by its parts.
    pub(crate) fn tick_tag(&self, parts: &[&[u8]]) -> Tag {
        self.border.tag(labels::TICK, parts)
    }

    /// The pad over the number of events that a tick frame states. Each frame has its own.
    pub(crate) fn count_pad(&self, session: u64, to: Timestamp) -> u64 {
        let parts = [session, to.0].map(u64::to_be_bytes);
        let tag = self.border.tag(labels::TICK_COUNT, &[&parts[0], &parts[1]]);
        tag.0.first_chunk().map_or(0, |half| u64::from_le_bytes(*half))
    }

    /// The subkey of the day that contains `t`.
    #[inline]
    fn day_of(&mut self, t: Timestamp) -> &DayKey {
        if self.cached.day != t.0 / DAY {
            self.cached = self.day_key(t.0 / DAY);
        }
        &self.cached
    }
}

/// The key of one stream for one day.
pub struct DayKey {
    day: u64,
    prf: Prf,
}

impl DayKey {
    fn derive(master: &Secret<32>, stream: StreamId, schema: SchemaId, day: u64) -> Self {
        Self::new(day, &Self::secret(master, stream, schema, day))
    }

    fn secret(master: &Secret<32>, stream: StreamId, schema: SchemaId, day: u64) -> Secret<16> {
        let parts: [&[u8]; 3] = [&stream.0, &schema.0, &day.to_be_bytes()];
        derive(master.expose(), labels::STREAM_DAY, &parts)
    }

    /// From a released secret.
    pub(crate) fn new(day: u64, secret: &Secret<16>) -> Self {
        Self { day, prf: Prf::new(secret) }
    }

    /// The day, counted from the Unix epoch.
    #[must_use]
    pub fn day(&self) -> u64 {
        self.day
    }

    /// Writes `K(t)` for a time in this day.
    ///
    /// # Errors
    /// [`KeyError`] if `t` is in another day, or `t` or the length is outside the range of
    /// the cipher.
    #[inline]
    pub fn key_vector(&self, session: u64, t: Timestamp, out: &mut [u64]) -> Result<(), KeyError> {
        self.prf.keystream(self.first_block(session, t, out.len())?, out);
        Ok(())
    }

    #[inline]
    fn replace(
        &self,
        session: u64,
        t: Timestamp,
        keys: &mut [u64],
        difference: &mut [[u8; 8]],
    ) -> Result<(), KeyError> {
        self.prf.replace(self.first_block(session, t, keys.len())?, keys, difference);
        Ok(())
    }

    /// Word `position` of `K(t)` alone.
    ///
    /// # Errors
    /// As [`DayKey::key_vector`].
    pub fn key_word(&self, session: u64, t: Timestamp, position: u16) -> Result<u64, KeyError> {
        let words = usize::from(position) + 1;
        let block = self.first_block(session, t, words)? + u128::from(position / 2);
        let mut pair = [0; 2];
        self.prf.keystream(block, &mut pair);
        Ok(pair[usize::from(position % 2)])
    }

    /// `session:64 ‖ t:52 ‖ 0:12`, the first block of a vector of `words`.
    #[inline]
    fn first_block(&self, session: u64, t: Timestamp, words: usize) -> Result<u128, KeyError> {
        if words > MAX_WORDS {
            return Err(KeyError::TooManyWords(words));
        }
        if t >= Timestamp::LIMIT {
            return Err(KeyError::TimeBeyondLimit(t));
        }
        if t.0 / DAY != self.day {
            return Err(KeyError::OtherDay(t));
        }
        Ok(u128::from(session) << 64 | u128::from(t.0) << 12)
    }
}
