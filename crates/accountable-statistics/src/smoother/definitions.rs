//! What a smoother signs and adopts: key cards and definitions.

use super::aggregate::AggregateState;
use super::records::{self, CardRecord, Claim};
use super::{Key, Smoother};
use crate::configuration::KeyEpoch;
use crate::definition::{AgreedDefinition, Definition};
use crate::endorsement::Endorsed;
use crate::messages::Card;
use crate::role_error::AgreementError;
use crate::threshold::{KeyShare, SharedKey};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

/// The most definitions of one key epoch that a smoother signs: it remembers each until the epoch is
/// over for good. A road network of a thousand places with one each half hour has fewer.
const MAX_PROPOSALS: usize = 1 << 16;

impl Smoother {
    /// Signs the public side of a key that a quorum has voted for at an attempt, and stores its
    /// share if it has one. [`KeyMaker`](crate::keymaking::KeyMaker) says when.
    ///
    /// # Errors
    /// [`AgreementError::OtherKey`] if a quorum has signed another key of that key epoch, or if
    /// this smoother has destroyed its share of this one.
    pub fn sign_card(
        &mut self,
        epoch: KeyEpoch,
        attempt: u32,
        shared: SharedKey,
        share: Option<KeyShare>,
    ) -> Result<Step<Signed<Card>>, AgreementError> {
        if self.sits_out(epoch) {
            return Err(AgreementError::SitsOut);
        }
        if epoch < self.first_epoch {
            return Err(AgreementError::Time);
        }
        let known = self.keys.remove(&epoch);
        let committee = self.pinned.committee(epoch).map_err(|_| AgreementError::OtherKey)?;
        let other = |card: &CardRecord| card.endorsed && card.shared != shared || card.erased;
        let refused = known.as_ref().is_some_and(|key| other(&key.card));
        if refused || *shared.committee() != committee {
            known.map(|key| self.keys.insert(epoch, key));
            return Err(AgreementError::OtherKey);
        }
        let same = known.filter(|key| key.card.shared == shared);
        let endorsed = same.as_ref().is_some_and(|key| key.card.endorsed);
        let share = share.or(same.and_then(|key| key.share));
        let said = Card { key_epoch: epoch, attempt, key: shared.clone() };
        let said = Signed::new(&said, &self.key);
        let card = CardRecord { shared, endorsed, erased: false };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes = vec![records::card(epoch, &card), records::share(epoch, secret.as_ref())];
        self.keys.insert(epoch, Key { card, share });
        Ok(Step::new(changes, said))
    }

    /// Learns that a quorum has signed the same key of a key epoch; only then is the key used. A
    /// key whose card it signed at another attempt is dropped. `share` is from a smoother that has
    /// voted for this key.
    ///
    /// # Errors
    /// [`AgreementError::OtherKey`] if a quorum has signed another one: too many smoothers are
    /// faulty.
    pub fn handle_card(
        &mut self,
        card: &Endorsed<Card>,
        share: Option<KeyShare>,
    ) -> Result<Step<()>, AgreementError> {
        let opened = card.open(&self.pinned, self.pinned.quorum());
        let card = opened.map_err(|_| AgreementError::OtherKey)?.into_inner();
        let Card { key_epoch, key: shared, .. } = card;
        if key_epoch < self.first_epoch {
            return Err(AgreementError::Time);
        }
        let (erased, known) = match self.keys.remove(&key_epoch) {
            Some(known) if known.card.shared != shared && known.card.endorsed => {
                self.keys.insert(key_epoch, known);
                return Err(AgreementError::OtherKey);
            }
            Some(Key { card, share }) if card.shared == shared => (card.erased, share),
            Some(Key { card, .. }) => (card.erased, None),
            None => (false, None),
        };
        let kept = !erased && !self.sits_out(key_epoch);
        let share = known.or(share).filter(|_| kept);
        let card = CardRecord { shared, endorsed: true, erased };
        let secret = share.as_ref().map(KeyShare::expose);
        let changes =
            vec![records::card(key_epoch, &card), records::share(key_epoch, secret.as_ref())];
        self.keys.insert(key_epoch, Key { card, share });
        Ok(Step::new(changes, ()))
    }

    /// Signs a definition that the definer has proposed, unless it overlaps one that this smoother
    /// has signed or adopted.
    ///
    /// # Errors
    /// [`AgreementError`].
    pub fn handle_proposal(
        &mut self,
        proposed: &Signed<Definition>,
        now: Timestamp,
    ) -> Result<Step<Signed<Definition>>, AgreementError> {
        let definition = proposed.open(&self.pinned.definer);
        let definition = definition.map_err(|_| AgreementError::NotProposed)?.into_inner();
        definition.check(&self.pinned)?;
        let current = self.pinned.key_epoch(now).ok_or(AgreementError::Time)?.0;
        let epoch = definition.key_epoch;
        let near = epoch.0 == current || epoch.0 == current.saturating_add(1);
        if self.sits_out(epoch) {
            return Err(AgreementError::SitsOut);
        }
        if definition.start <= now || !near {
            return Err(AgreementError::Time);
        }
        let key = self.keys.get(&epoch).ok_or(AgreementError::OtherKey)?;
        if *key.card.shared.key() != definition.key || !key.card.endorsed {
            return Err(AgreementError::OtherKey);
        }
        let signed = Signed::new(&definition, &self.key);
        let name = signed.digest();
        let overlaps = |other: &Claim| {
            let times = other.start < definition.end && definition.start < other.end;
            times && other.location.overlaps(&definition.location)
        };
        let others = || self.claims.iter().filter(|(known, _)| **known != name);
        if others().any(|(_, claimed)| overlaps(claimed)) {
            return Err(AgreementError::Overlaps);
        }
        let same = |claimed: &Claim| self.pinned.key_epoch(claimed.start) == Some(epoch);
        if others().filter(|(_, claimed)| same(claimed)).count() >= MAX_PROPOSALS {
            return Err(AgreementError::TooMany);
        }
        Ok(Step::new(vec![self.claim(name, &definition)], signed))
    }

    /// Claims the location and time of a definition.
    fn claim(&mut self, name: Digest, definition: &Definition) -> Change {
        let Definition { location, start, end, .. } = definition.clone();
        let claimed = Claim { location, start, end };
        let change = records::claim(&name, &claimed);
        self.claims.insert(name, claimed);
        change
    }

    /// Adopts a definition that a quorum has signed, even if this smoother has signed another one
    /// in its place: that one can no longer get a quorum.
    ///
    /// # Errors
    /// [`AgreementError`]; [`AgreementError::Overlaps`] shows that too many smoothers are faulty.
    pub fn handle_definition(
        &mut self,
        signed: &Endorsed<Definition>,
    ) -> Result<Step<AgreedDefinition>, AgreementError> {
        let agreed = AgreedDefinition::open(signed, &self.pinned)?;
        let name = agreed.name();
        if self.aggregates.contains_key(&name) {
            return Ok(Step::new(vec![records::definition(&name, signed)], agreed));
        }
        if agreed.key_epoch < self.first_epoch {
            return Err(AgreementError::Time);
        }
        if self.aggregates.values().any(|known| known.definition().overlaps(&agreed)) {
            return Err(AgreementError::Overlaps);
        }
        let claim = self.claim(name, &agreed);
        let state = AggregateState::new(agreed.clone(), &self.pinned, self.id);
        self.aggregates.insert(name, state.ok_or(AgreementError::OtherKey)?);
        Ok(Step::new(vec![claim, records::definition(&name, signed)], agreed))
    }
}
