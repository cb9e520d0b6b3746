//! From an agreed set to its result: the count first, and nothing more below the crowd.

use super::aggregate::AggregateState;
use super::shard::Shard;
use super::{Key, Output, Smoother, records};
use crate::configuration::SmootherId;
use crate::logarithm::{Bounds, Table};
use crate::messages::{NoResultError, Opening, PublishedResult, Ready, part};
use crate::results::publish;
use crate::role_error::StatementError;
use crate::sums::Part;
use crate::threshold::decryption::PartialDecryption;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use rand_core::CryptoRng;

/// Changes to commit and messages to send.
type Effects = (Vec<Change>, Vec<Output>);

impl Smoother {
    /// As [`Shard::handle_ready`].
    ///
    /// # Errors
    /// [`StatementError`]. A statement of its own that it has no record of makes it sit out.
    pub fn handle_ready(
        &mut self,
        ready: &Signed<Ready>,
        by: SmootherId,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let said = ready.dangerous_unverified().ok_or(StatementError::Signature(by))?;
        let over = said.key_epoch < self.first_epoch;
        let heard = match self.shard(&said.aggregate) {
            Some(mut shard) => shard.handle_ready(ready, by, now, rng),
            None if over => Err(StatementError::Over),
            None => {
                let key = self.pinned.key(by).ok_or(StatementError::Signature(by))?;
                ready.open(key).map_err(|_| StatementError::Signature(by))?;
                Err(self.not_here(said.key_epoch, by == self.id))
            }
        };
        match heard {
            Err(StatementError::Forgotten) => {
                let step = self.sit_out_for(said.key_epoch, now);
                Ok(step.map(|()| Vec::new()))
            }
            heard => heard,
        }
    }

    /// As [`Shard::handle_opening`].
    ///
    /// # Errors
    /// [`StatementError`]. A wrong one identifies its smoother; any t others open the sum.
    pub fn handle_opening(
        &mut self,
        opening: &Signed<Opening>,
        by: SmootherId,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let said = opening.dangerous_unverified().ok_or(StatementError::Signature(by))?;
        match self.shard(&said.ready.aggregate) {
            Some(mut shard) => shard.handle_opening(opening, by, now, rng),
            None => Err(self.not_here(said.ready.key_epoch, false)),
        }
    }
}

impl Shard<'_> {
    /// Records that a smoother would open a set. With a quorum for the set that this smoother
    /// agreed to, it opens its part of the count.
    ///
    /// # Errors
    /// [`StatementError`]; [`StatementError::Forgotten`] is for [`Smoother::handle_ready`].
    pub fn handle_ready(
        &mut self,
        signed: &Signed<Ready>,
        by: SmootherId,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let key = self.smoother.pinned.key(by).ok_or(StatementError::Signature(by))?;
        let ready = signed.open(key).map_err(|_| StatementError::Signature(by))?.into_inner();
        let agreed = self.state.definition();
        if ready.aggregate != agreed.name() {
            return Err(StatementError::Unknown);
        }
        if by == self.smoother.id && self.state.ready != Some(ready) {
            return Err(StatementError::Forgotten);
        }
        if ready.key_epoch != agreed.key_epoch {
            return Err(StatementError::OtherSet);
        }
        if *self.state.ready_by.entry(by).or_insert(ready) != ready {
            return Err(StatementError::Equivocation(by));
        }
        if by != self.smoother.id {
            self.state.signed_ready_by.entry(by).or_insert_with(|| signed.clone());
        }
        self.advance(now, rng)
    }

    /// Accepts another smoother's partial decryption of the set that this one agreed to as well.
    ///
    /// # Errors
    /// [`StatementError`]. A wrong one identifies its smoother; any t others open the sum.
    pub fn handle_opening(
        &mut self,
        opening: &Signed<Opening>,
        by: SmootherId,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let key = self.smoother.pinned.key(by).ok_or(StatementError::Signature(by))?;
        let opening = opening.open(key).map_err(|_| StatementError::Signature(by))?;
        if opening.ready.aggregate != self.state.definition().name() {
            return Err(StatementError::Unknown);
        }
        if self.state.ready != Some(opening.ready) {
            return Err(StatementError::OtherSet);
        }
        let epoch = opening.ready.key_epoch;
        let shared = &self.smoother.keys.get(&epoch).ok_or(StatementError::Unknown)?.card.shared;
        let of = part(opening.part).ok_or(StatementError::Signature(by))?;
        let ciphertext = self.state.sums.ciphertext(of).ok_or(StatementError::OtherSet)?;
        let wrong = |why| StatementError::Partial(by, why);
        let partial = PartialDecryption::from_bytes(&opening.partial).map_err(wrong)?;
        if partial.member() != by.0 {
            return Err(StatementError::Signature(by));
        }
        let context = opening.ready.context();
        let verified = shared.verify(partial, &ciphertext, &context).map_err(wrong)?;
        self.state.partials.entry(of).or_default().insert(by, verified);
        self.advance(now, rng)
    }

    /// Proceeds as far as the statements so far allow.
    fn advance(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let nothing = || Ok(Step::default());
        let (smoother, state) = (self.smoother, &mut *self.state);
        let epoch = state.definition().key_epoch;
        let sits_out = Some(epoch) <= smoother.sits_out;
        let over = now >= state.definition().deadline() || state.outcome().is_some();
        if sits_out || over || !state.has_quorum(smoother.pinned.quorum()) {
            return nothing();
        }
        let Some(key) = smoother.keys.get(&epoch) else { return nothing() };
        if *key.card.shared.key() != state.definition().key {
            // Uploads are encrypted to the definition's key: a part under another one opens nothing.
            return nothing();
        }
        let by = Opener { id: smoother.id, key, signing: smoother.key, table: smoother.table };
        let (changes, outputs) = state.open(&by, rng)?;
        Ok(Step::new(changes, outputs))
    }
}

/// Who opens, and with what.
struct Opener<'a> {
    id: SmootherId,
    key: &'a Key,
    signing: &'a SigningKey,
    table: &'a Table,
}

impl AggregateState {
    /// Whether a quorum would open the set that this smoother agreed to. No other quorum would then
    /// open another one.
    fn has_quorum(&self, quorum: usize) -> bool {
        let Some(ready) = self.ready else { return false };
        self.ready_by.values().filter(|other| **other == ready).count() >= quorum
    }

    fn open(
        &mut self,
        by: &Opener<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<Effects, StatementError> {
        let mut outputs = Vec::new();
        outputs.extend(self.make(Part::Count, by, rng)?);
        let count = match self.read(Part::Count, by, Bounds::count(self.definition().slots)) {
            SumState::Number(count) => count,
            SumState::NotYet => return Ok((self.noted(), outputs)),
            SumState::Never => return Ok(self.ended(Err(NoResultError::Unreadable), by, outputs)),
        };
        if count < self.definition().crowd() {
            return Ok(self.ended(Err(NoResultError::TooFew), by, outputs));
        }
        // A mean has no squares: a definition with both is rejected.
        for part in Part::of(&self.definition().interval) {
            outputs.extend(self.make(*part, by, rng)?);
        }
        match self.sums_of(count, by) {
            Ok(Some(published)) => Ok(self.ended(Ok(published), by, outputs)),
            Ok(None) => Ok((self.noted(), outputs)),
            Err(reason) => Ok(self.ended(Err(reason), by, outputs)),
        }
    }

    /// Writes what it has agreed to again, with what depends on it: the first commit may not be on
    /// disk yet.
    fn noted(&self) -> Vec<Change> {
        let ready = self.ready.iter();
        ready.map(|ready| records::ready(ready, &self.sums.to_bytes())).collect()
    }

    fn ended(
        &mut self,
        result: Result<PublishedResult, NoResultError>,
        by: &Opener<'_>,
        mut outputs: Vec<Output>,
    ) -> Effects {
        let (change, outcome) = self.end(result);
        outputs.push(Output::Outcome(Signed::new(&outcome, by.signing)));
        (vec![change], outputs)
    }

    /// What is published, once all parts are open.
    fn sums_of(
        &mut self,
        count: u64,
        by: &Opener<'_>,
    ) -> Result<Option<PublishedResult>, NoResultError> {
        let interval = self.definition().interval;
        let offsets = match self.read(Part::Value, by, Bounds::value(&interval, count)) {
            SumState::Number(offsets) => offsets,
            SumState::NotYet => return Ok(None),
            SumState::Never => return Err(NoResultError::Unreadable),
        };
        let squares = if interval.square() {
            match self.read(Part::Square, by, Bounds::square(&interval, count, offsets)) {
                SumState::Number(squares) => Some(squares),
                SumState::NotYet => return Ok(None),
                SumState::Never => return Err(NoResultError::Unreadable),
            }
        } else {
            None
        };
        let moments = interval.moments(count, offsets, squares);
        Ok(Some(publish(self.definition().rule, &moments, self.sums.tuples())))
    }

    /// This smoother's own partial decryption of a part, made once.
    fn make(
        &mut self,
        part: Part,
        by: &Opener<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<Option<Output>, StatementError> {
        let (Some(share), Some(ready)) = (&by.key.share, self.ready) else { return Ok(None) };
        let Some(ciphertext) = self.sums.ciphertext(part) else { return Ok(None) };
        if self.openings.contains_key(&part) {
            return Ok(None);
        }
        let (shared, context) = (&by.key.card.shared, ready.context());
        let partial = share.dangerous_open(shared, &ciphertext, &context, rng)?;
        let bytes = partial.to_bytes();
        if let Ok(verified) = shared.verify(partial, &ciphertext, &context) {
            self.partials.entry(part).or_default().insert(by.id, verified);
        }
        let opening = Opening { ready, part: part.number(), partial: bytes };
        let signed = Signed::new(&opening, by.signing);
        self.openings.insert(part, signed.clone());
        Ok(Some(Output::Opening(signed)))
    }

    /// A part's sum, once t partial decryptions have arrived. It is searched for once.
    fn read(&mut self, part: Part, by: &Opener<'_>, bounds: Bounds) -> SumState {
        if let Some(known) = self.sums_read.get(&part) {
            return *known;
        }
        let read = self.search(part, by, bounds);
        if read != SumState::NotYet {
            self.sums_read.insert(part, read);
        }
        read
    }

    fn search(&self, part: Part, by: &Opener<'_>, bounds: Bounds) -> SumState {
        let Some(ready) = self.ready else { return SumState::NotYet };
        // Only tuples of one party, whose blindings cancel out, add up to nothing.
        let Some(ciphertext) = self.sums.ciphertext(part) else { return SumState::Never };
        let partials = self.partials.get(&part).into_iter().flat_map(|of| of.values().cloned());
        let partials: Vec<_> = partials.collect();
        let shared = &by.key.card.shared;
        let Ok(opened) = shared.combine(&ciphertext, &ready.context(), &partials) else {
            return SumState::NotYet;
        };
        by.table.read(opened.total(), &bounds).map_or(SumState::Never, SumState::Number)
    }
}

/// The state of a part's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumState {
    /// The sum.
    Number(u64),
    /// Too few partial decryptions so far.
    NotYet,
    /// Not a number that can be found.
    Never,
}
