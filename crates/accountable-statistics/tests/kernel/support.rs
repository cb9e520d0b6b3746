//! Terms, bindings and keys that several tests share.

use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::threshold::dealing::{Dealer, Dealing, Dealt, TakenShare};
use alpheus_accountable_statistics::threshold::settling::Settled;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Binding, Terms, ThresholdKey};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::labelled;
use alpheus_crypto::seal::{SealingKey, SealingPublic};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

pub(crate) fn interval(lowest: i64, highest: i64, square: bool) -> Interval {
    Interval::new(lowest, highest, square).unwrap()
}

/// Terms under the key that tests which never decrypt encrypt to.
pub(crate) fn terms(interval: Interval) -> Terms {
    terms_of(&SecretScalar::from_small(77), interval)
}

pub(crate) fn terms_of(key: &SecretScalar, interval: Interval) -> Terms {
    Terms::new(ThresholdKey(Element::base().times(key).unwrap()), interval)
}

/// Of one slot of the aggregate "here".
pub(crate) fn binding(slot: u32) -> Binding {
    Binding {
        tag: Element::hashed("alpheus/test-tag/v1", &[&slot.to_be_bytes()]),
        aggregate: labelled("alpheus/test-aggregate/v1", &[b"here"]),
        slot,
        revision: 9,
        ephemeral: SigningKey::from_seed(&Secret::from_bytes([3; 32])).verifying_key(),
    }
}

/// Members who are about to have a key, and all that they say.
pub(crate) struct Ceremony {
    pub(crate) committee: Committee,
    pub(crate) keys: Vec<SealingKey>,
    pub(crate) dealers: Vec<Dealer>,
    pub(crate) dealt: Vec<Dealt>,
}

impl Ceremony {
    pub(crate) fn new(members: u16, threshold: u16) -> Self {
        let purpose = labelled("alpheus/test-purpose/v1", &[b"a day"]);
        let committee = Committee::new(purpose, members, threshold).unwrap();
        let seed =
            |member: u16, tens| Secret::from_bytes([u8::try_from(member).unwrap() + tens; 32]);
        let keys: Vec<SealingKey> =
            (0..members).map(|member| SealingKey::from_seed(&seed(member, 100))).collect();
        let public: Vec<SealingPublic> = keys.iter().map(SealingKey::public).collect();
        let rng = &mut rng(9);
        let dealer =
            |member: u16| Dealer::new(committee, &public, member, &seed(member, 1), rng).unwrap();
        let dealers: Vec<Dealer> = (0..members).map(dealer).collect();
        let dealt = |(member, dealer): (u16, &Dealer)| {
            let sent = Dealing::from_bytes(&dealer.dealing().to_bytes(), &committee).unwrap();
            sent.verify(&committee, member, &dealer.pledge()).unwrap()
        };
        let dealt = (0..members).zip(&dealers).map(dealt).collect();
        Self { committee, keys, dealers, dealt }
    }

    /// What a member takes of every dealer in order.
    pub(crate) fn taken(&self, member: u16) -> Vec<TakenShare> {
        let key = &self.keys[usize::from(member)];
        self.dealt.iter().map(|dealt| dealt.take(member, key).unwrap()).collect()
    }

    pub(crate) fn settled(&self) -> Settled {
        Settled::new(&self.committee, &self.dealt, &[], &[]).unwrap()
    }
}

/// A key and every member's share of it.
pub(crate) fn key(members: u16, threshold: u16) -> (SharedKey, Vec<KeyShare>) {
    let ceremony = Ceremony::new(members, threshold);
    let settled = ceremony.settled();
    let share = |member| settled.share(member, ceremony.taken(member)).unwrap();
    (settled.key().clone(), (0..members).map(share).collect())
}
