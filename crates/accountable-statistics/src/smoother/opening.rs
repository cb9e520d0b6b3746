//! From one agreed set to its result: the count first, and nothing more below the crowd.

use super::running::Running;
use super::shard::Shard;
use super::{Key, Output, Smoother, records};
use crate::configuration::SmootherId;
use crate::logarithm::{Bounds, Table};
use crate::messages::{Opening, Published, Ready, Reason, part};
use crate::refused::NotHeard;
use crate::results::publish;
use crate::sums::Part;
use crate::threshold::decrypting::Partial;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;

/// What changed and what is to be said.
type Said = (Vec<Change>, Vec<Output>);

impl Smoother {
    /// As [`Shard::hear_ready`].
    ///
    /// # Errors
    /// [`NotHeard`]. One of its own that it does not remember makes it sit out.
    pub fn hear_ready(
        &mut self,
        now: Time,
        by: SmootherId,
        ready: &Signed<Ready>,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let said = ready.dangerous_unverified().ok_or(NotHeard::Signature(by))?;
        let over = said.key_epoch < self.first;
        let heard = match self.shard(&said.aggregate) {
            Some(mut shard) => shard.hear_ready(now, by, ready, rng),
            None if over => Err(NotHeard::Over),
            None => {
                let key = self.pinned.key(by).ok_or(NotHeard::Signature(by))?;
                ready.open(key).map_err(|_| NotHeard::Signature(by))?;
                Err(self.not_here(said.key_epoch, by == self.id))
            }
        };
        match heard {
            Err(NotHeard::Forgotten) => {
                let step = self.sit_out_for(said.key_epoch, now);
                Ok(step.then(|()| Step::new(Vec::new(), Vec::new())))
            }
            heard => heard,
        }
    }

    /// As [`Shard::hear_opening`].
    ///
    /// # Errors
    /// [`NotHeard`]; a wrong one names its smoother, and any t others open the sum.
    pub fn hear_opening(
        &mut self,
        now: Time,
        by: SmootherId,
        opening: &Signed<Opening>,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let said = opening.dangerous_unverified().ok_or(NotHeard::Signature(by))?;
        match self.shard(&said.ready.aggregate) {
            Some(mut shard) => shard.hear_opening(now, by, opening, rng),
            None => Err(self.not_here(said.ready.key_epoch, false)),
        }
    }
}

impl Shard<'_> {
    /// Notes that a smoother would open a set; with a quorum for the one that this smoother
    /// agreed to, it opens its part of the count.
    ///
    /// # Errors
    /// [`NotHeard`]; [`NotHeard::Forgotten`] is for [`Smoother::hear_ready`].
    pub fn hear_ready(
        &mut self,
        now: Time,
        by: SmootherId,
        signed: &Signed<Ready>,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let key = self.common.pinned.key(by).ok_or(NotHeard::Signature(by))?;
        let ready = signed.open(key).map_err(|_| NotHeard::Signature(by))?.into_inner();
        let agreed = self.running.agreed();
        if ready.aggregate != agreed.name() {
            return Err(NotHeard::Unknown);
        }
        if by == self.common.id && self.running.ready != Some(ready) {
            return Err(NotHeard::Forgotten);
        }
        if ready.key_epoch != agreed.key_epoch {
            return Err(NotHeard::OtherSet);
        }
        if *self.running.readies.entry(by).or_insert(ready) != ready {
            return Err(NotHeard::Equivocation(by));
        }
        if by != self.common.id {
            self.running.heard.entry(by).or_insert_with(|| signed.clone());
        }
        self.advance(now, rng)
    }

    /// Takes another smoother's partial decryption of the set that this one agreed to too.
    ///
    /// # Errors
    /// [`NotHeard`]; a wrong one names its smoother, and any t others open the sum.
    pub fn hear_opening(
        &mut self,
        now: Time,
        by: SmootherId,
        opening: &Signed<Opening>,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let key = self.common.pinned.key(by).ok_or(NotHeard::Signature(by))?;
        let opening = opening.open(key).map_err(|_| NotHeard::Signature(by))?;
        if opening.ready.aggregate != self.running.agreed().name() {
            return Err(NotHeard::Unknown);
        }
        if self.running.ready != Some(opening.ready) {
            return Err(NotHeard::OtherSet);
        }
        let epoch = opening.ready.key_epoch;
        let shared = &self.common.keys.get(&epoch).ok_or(NotHeard::Unknown)?.card.shared;
        let of = part(opening.part).ok_or(NotHeard::Signature(by))?;
        let ciphertext = self.running.sums.ciphertext(of).ok_or(NotHeard::OtherSet)?;
        let wrong = |why| NotHeard::Partial(by, why);
        let partial = Partial::from_bytes(&opening.partial).map_err(wrong)?;
        if partial.member() != by.0 {
            return Err(NotHeard::Signature(by));
        }
        let context = opening.ready.context();
        let verified = shared.verify(partial, &ciphertext, &context).map_err(wrong)?;
        self.running.partials.entry(of).or_default().insert(by, verified);
        self.advance(now, rng)
    }

    /// Goes as far as what was heard allows.
    fn advance(
        &mut self,
        now: Time,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let nothing = || Ok(Step::new(Vec::new(), Vec::new()));
        let (common, running) = (self.common, &mut *self.running);
        let epoch = running.agreed().key_epoch;
        let sits_out = Some(epoch) <= common.sits_out;
        let over = now >= running.agreed().deadline() || running.outcome().is_some();
        if sits_out || over || !running.has_quorum(common.pinned.quorum()) {
            return nothing();
        }
        let Some(key) = common.keys.get(&epoch) else { return nothing() };
        let by = By { id: common.id, key, signing: common.key, table: common.table };
        let (changes, outputs) = running.open(&by, rng)?;
        Ok(Step::new(changes, outputs))
    }
}

/// Who opens, and with what.
struct By<'a> {
    id: SmootherId,
    key: &'a Key,
    signing: &'a SigningKey,
    table: &'a Table,
}

impl Running {
    /// A quorum would open the set that this smoother agreed to: no other quorum would open
    /// another.
    fn has_quorum(&self, quorum: usize) -> bool {
        let Some(ready) = self.ready else { return false };
        self.readies.values().filter(|other| **other == ready).count() >= quorum
    }

    fn open(&mut self, by: &By<'_>, rng: &mut impl CryptoRng) -> Result<Said, NotHeard> {
        let mut outputs = Vec::new();
        outputs.extend(self.make(Part::Count, by, rng)?);
        let count = match self.read(Part::Count, by, Bounds::count(self.agreed().slots)) {
            Read::Number(count) => count,
            Read::NotYet => return Ok((self.noted(), outputs)),
            Read::Never => return Ok(self.ended(Err(Reason::Unreadable), by, outputs)),
        };
        if count < self.agreed().crowd() {
            return Ok(self.ended(Err(Reason::TooFew), by, outputs));
        }
        // Of a mean no squares are there: a definition that asks for both is refused.
        for part in Part::of(&self.agreed().interval) {
            outputs.extend(self.make(*part, by, rng)?);
        }
        match self.sums_of(count, by) {
            Ok(Some(published)) => Ok(self.ended(Ok(published), by, outputs)),
            Ok(None) => Ok((self.noted(), outputs)),
            Err(reason) => Ok(self.ended(Err(reason), by, outputs)),
        }
    }

    /// What it has agreed to, written again with what rests on it: the first commit may be on its
    /// way to the disk yet.
    fn noted(&self) -> Vec<Change> {
        let ready = self.ready.iter();
        ready.map(|ready| records::ready(ready, &self.sums.to_bytes())).collect()
    }

    fn ended(
        &mut self,
        result: Result<Published, Reason>,
        by: &By<'_>,
        mut outputs: Vec<Output>,
    ) -> Said {
        let (change, outcome) = self.end(result);
        outputs.push(Output::Outcome(Signed::new(&outcome, by.signing)));
        (vec![change], outputs)
    }

    /// What is published, once all parts are open.
    fn sums_of(&mut self, count: u64, by: &By<'_>) -> Result<Option<Published>, Reason> {
        let interval = self.agreed().interval;
        let offsets = match self.read(Part::Value, by, Bounds::value(&interval, count)) {
            Read::Number(offsets) => offsets,
            Read::NotYet => return Ok(None),
            Read::Never => return Err(Reason::Unreadable),
        };
        let squares = if interval.square() {
            match self.read(Part::Square, by, Bounds::square(&interval, count, offsets)) {
                Read::Number(squares) => Some(squares),
                Read::NotYet => return Ok(None),
                Read::Never => return Err(Reason::Unreadable),
            }
        } else {
            None
        };
        let moments = interval.moments(count, offsets, squares);
        Ok(Some(publish(self.agreed().rule, &moments)))
    }

    /// This smoother's own partial decryption of a part, made once.
    fn make(
        &mut self,
        part: Part,
        by: &By<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<Option<Output>, NotHeard> {
        let (Some(share), Some(ready)) = (&by.key.share, self.ready) else { return Ok(None) };
        let Some(ciphertext) = self.sums.ciphertext(part) else { return Ok(None) };
        if self.made.contains_key(&part) {
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
        self.made.insert(part, signed.clone());
        Ok(Some(Output::Opening(signed)))
    }

    /// A part's sum, once t partial decryptions are there. It is searched for once.
    fn read(&mut self, part: Part, by: &By<'_>, bounds: Bounds) -> Read {
        if let Some(known) = self.read.get(&part) {
            return *known;
        }
        let read = self.search(part, by, bounds);
        if read != Read::NotYet {
            self.read.insert(part, read);
        }
        read
    }

    fn search(&self, part: Part, by: &By<'_>, bounds: Bounds) -> Read {
        let Some(ready) = self.ready else { return Read::NotYet };
        // Only tuples of one party, whose blindings cancel out, add up to nothing.
        let Some(ciphertext) = self.sums.ciphertext(part) else { return Read::Never };
        let partials = self.partials.get(&part).into_iter().flat_map(|of| of.values().cloned());
        let partials: Vec<_> = partials.collect();
        let shared = &by.key.card.shared;
        let Ok(opened) = shared.combine(&ciphertext, &ready.context(), &partials) else {
            return Read::NotYet;
        };
        by.table.read(opened.total(), &bounds).map_or(Read::Never, Read::Number)
    }
}

/// What became of a part's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// It.
    Number(u64),
    /// Partial decryptions are lacking.
    NotYet,
    /// It is no number that could be found.
    Never,
}
