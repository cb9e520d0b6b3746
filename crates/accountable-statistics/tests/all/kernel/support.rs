//! Terms, bindings and keys that several tests share.

use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::{
    Dealer, Dealing, Pledge, ReceivedShare, VerifiedDealing,
};
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Binding, Terms, ThresholdKey};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::secret::Secret;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

pub(crate) fn interval(lowest: i64, highest: i64, square: bool) -> Interval {
    Interval::new(lowest, highest, square).unwrap()
}

/// Terms under a key for tests that never decrypt.
pub(crate) fn terms(interval: Interval) -> Terms {
    terms_of(&SecretScalar::from_small(77), interval)
}

pub(crate) fn terms_of(key: &SecretScalar, interval: Interval) -> Terms {
    Terms::new(ThresholdKey(Element::base().times(key).unwrap()), interval)
}

/// A binding to one tag in the aggregate "here".
pub(crate) fn binding(tag: u32) -> Binding {
    Binding {
        tag: Element::from_hash("alpheus/test-tag/v1", &[&tag.to_be_bytes()]),
        aggregate: labelled_hash("alpheus/test-aggregate/v1", &[b"here"]),
        ephemeral: OneTimePublic::from_bytes([3; 32]),
    }
}

/// Members that are about to have a key, and all their messages.
pub(crate) struct Town {
    pub(crate) ceremony: Ceremony,
    pub(crate) dealers: Vec<Dealer>,
    pub(crate) dealt: Vec<VerifiedDealing>,
}

pub(crate) fn seed(member: u16) -> Secret<32> {
    Secret::from_bytes([u8::try_from(member).unwrap() + 1; 32])
}

pub(crate) fn announced(committee: &Committee, attempt: u32) -> Vec<Announcement> {
    let announce = |member| Announcement::new(committee, attempt, member, &seed(member)).unwrap();
    (0..committee.members()).map(announce).collect()
}

impl Town {
    pub(crate) fn new(members: u16, threshold: u16) -> Self {
        Self::attempt(members, threshold, 0)
    }

    pub(crate) fn attempt(members: u16, threshold: u16, attempt: u32) -> Self {
        let purpose = labelled_hash("alpheus/test-purpose/v1", &[b"a day"]);
        let committee = Committee::new(purpose, members, threshold).unwrap();
        let ceremony = Ceremony::new(committee, attempt, &announced(&committee, attempt));
        let rng = &mut rng(9);
        let dealer = |member| Dealer::new(&ceremony, member, &seed(member), rng).unwrap();
        let dealers: Vec<Dealer> = (0..members).map(dealer).collect();
        let pledges: Vec<Pledge> = dealers.iter().map(Dealer::pledge).collect();
        let dealt = |dealer: &Dealer| {
            let sent = dealer.reveal(&pledges).unwrap().to_bytes();
            let sent = Dealing::from_bytes(&sent, &ceremony).unwrap();
            sent.verify(&ceremony, &dealer.pledge()).unwrap()
        };
        let dealt = dealers.iter().map(dealt).collect();
        Self { ceremony, dealers, dealt }
    }

    /// A member's shares from every dealer, in order.
    pub(crate) fn taken(&self, member: u16) -> Vec<ReceivedShare> {
        let dealer = &self.dealers[usize::from(member)];
        self.dealt.iter().map(|dealt| dealer.open_share(dealt).unwrap()).collect()
    }

    pub(crate) fn settled(&self) -> Settlement {
        Settlement::new(&self.ceremony, &self.dealt, &[], &[]).unwrap()
    }
}

/// A key and every member's share of it.
pub(crate) fn key(members: u16, threshold: u16) -> (SharedKey, Vec<KeyShare>) {
    let town = Town::new(members, threshold);
    let settled = town.settled();
    let share = |member| settled.share(member, town.taken(member)).unwrap();
    (settled.key().clone(), (0..members).map(share).collect())
}
