//! What a smoother signs and works by: keys' cards and definitions.

use super::records::{self, Carded, Claimed};
use super::running::Running;
use super::{Key, Smoother};
use crate::configuration::KeyEpoch;
use crate::definition::{Agreed, Definition};
use crate::endorsed::Endorsed;
use crate::messages::Card;
use crate::refused::NotDefined;
use crate::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed::Signed;

impl Smoother {
    /// Signs the public side of a key that a quorum has voted for at an attempt, and takes its
    /// share of it if it has one. [`KeyMaker`](crate::keymaking::KeyMaker) says when.
    ///
    /// # Errors
    /// [`NotDefined::OtherKey`] if a quorum has signed another key of that key epoch, or if it
    /// has destroyed its share of this one.
    pub fn hold(
        &mut self,
        epoch: KeyEpoch,
        attempt: u32,
        shared: SharedKey,
        share: Option<KeyShare>,
    ) -> Result<Step<Signed<Card>>, NotDefined> {
        if self.sits_out(epoch) {
            return Err(NotDefined::SitsOut);
        }
        if epoch < self.first {
            return Err(NotDefined::Time);
        }
        let known = self.keys.remove(&epoch);
        let committee = self.pinned.committee(epoch).map_err(|_| NotDefined::OtherKey)?;
        let other = |card: &Carded| card.endorsed && card.shared != shared || card.erased;
        let refused = known.as_ref().is_some_and(|key| other(&key.card));
        if refused || *shared.committee() != committee {
            known.map(|key| self.keys.insert(epoch, key));
            return Err(NotDefined::OtherKey);
        }
        let same = known.filter(|key| key.card.shared == shared);
        let endorsed = same.as_ref().is_some_and(|key| key.card.endorsed);
        let share = share.or(same.and_then(|key| key.share));
        let said = Card { key_epoch: epoch, attempt, key: shared.clone() };
        let said = Signed::new(&said, &self.key);
        let card = Carded { shared, endorsed, erased: false };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes = vec![records::card(epoch, &card), records::share(epoch, secret.as_ref())];
        self.keys.insert(epoch, Key { card, share });
        Ok(Step::new(changes, said))
    }

    /// Learns that a quorum has the same key of a key epoch: only then is it used. One whose
    /// card it has signed at another attempt is none. `share` is of a smoother that has voted
    /// for this one.
    ///
    /// # Errors
    /// [`NotDefined::OtherKey`] if a quorum has signed another one: more are faulty than may be.
    pub fn learn_key(
        &mut self,
        card: &Endorsed<Card>,
        share: Option<KeyShare>,
    ) -> Result<Step<()>, NotDefined> {
        let opened = card.open(&self.pinned, self.pinned.quorum());
        let card = opened.map_err(|_| NotDefined::OtherKey)?.into_inner();
        let Card { key_epoch, key: shared, .. } = card;
        if key_epoch < self.first {
            return Err(NotDefined::Time);
        }
        let (erased, known) = match self.keys.remove(&key_epoch) {
            Some(known) if known.card.shared != shared && known.card.endorsed => {
                self.keys.insert(key_epoch, known);
                return Err(NotDefined::OtherKey);
            }
            Some(Key { card, share }) if card.shared == shared => (card.erased, share),
            Some(Key { card, .. }) => (card.erased, None),
            None => (false, None),
        };
        let kept = !erased && !self.sits_out(key_epoch);
        let share = known.or(share).filter(|_| kept);
        let card = Carded { shared, endorsed: true, erased };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes =
            vec![records::card(key_epoch, &card), records::share(key_epoch, secret.as_ref())];
        self.keys.insert(key_epoch, Key { card, share });
        Ok(Step::new(changes, ()))
    }

    /// Signs a definition that whoever may define has proposed, unless it overlaps one that this
    /// smoother has signed or knows.
    ///
    /// # Errors
    /// [`NotDefined`].
    pub fn define(
        &mut self,
        now: Time,
        proposed: &Signed<Definition>,
    ) -> Result<Step<Signed<Definition>>, NotDefined> {
        let definition = proposed.open(&self.pinned.definer);
        let definition = definition.map_err(|_| NotDefined::NotProposed)?.into_inner();
        definition.check(&self.pinned)?;
        let running = self.pinned.key_epoch(now).ok_or(NotDefined::Time)?.0;
        let epoch = definition.key_epoch;
        let near = epoch.0 == running || epoch.0 == running.saturating_add(1);
        if self.sits_out(epoch) {
            return Err(NotDefined::SitsOut);
        }
        if definition.start <= now || !near {
            return Err(NotDefined::Time);
        }
        let key = self.keys.get(&epoch).ok_or(NotDefined::OtherKey)?;
        if *key.card.shared.key() != definition.key || !key.card.endorsed {
            return Err(NotDefined::OtherKey);
        }
        let signed = Signed::new(&definition, &self.key);
        let name = signed.digest();
        let overlaps = |other: &Claimed| {
            let times = other.start < definition.end && definition.start < other.end;
            times && other.place.overlaps(&definition.place)
        };
        if self.claims.iter().any(|(known, claimed)| *known != name && overlaps(claimed)) {
            return Err(NotDefined::Overlaps);
        }
        Ok(Step::new(vec![self.claim(name, &definition)], signed))
    }

    /// Claims place and time for a definition.
    fn claim(&mut self, name: Digest, definition: &Definition) -> Change {
        let Definition { place, start, end, .. } = definition.clone();
        let claimed = Claimed { place, start, end };
        let change = records::claim(&name, &claimed);
        self.claims.insert(name, claimed);
        change
    }

    /// Works by a definition that a quorum has signed from now on, also if this smoother has signed
    /// another one in its place: that one can have no quorum any more.
    ///
    /// # Errors
    /// [`NotDefined`]; [`NotDefined::Overlaps`] shows that more smoothers than may be are faulty.
    pub fn learn(&mut self, signed: &Endorsed<Definition>) -> Result<Step<Agreed>, NotDefined> {
        let agreed = Agreed::open(signed, &self.pinned)?;
        let name = agreed.name();
        if self.running.contains_key(&name) {
            return Ok(Step::new(vec![records::definition(&name, signed)], agreed));
        }
        if agreed.key_epoch < self.first {
            return Err(NotDefined::Time);
        }
        if self.running.values().any(|known| known.agreed().overlaps(&agreed)) {
            return Err(NotDefined::Overlaps);
        }
        let claim = self.claim(name, &agreed);
        let running = Running::new(agreed.clone(), &self.pinned, self.id);
        self.running.insert(name, running.ok_or(NotDefined::OtherKey)?);
        Ok(Step::new(vec![claim, records::definition(&name, signed)], agreed))
    }
}
