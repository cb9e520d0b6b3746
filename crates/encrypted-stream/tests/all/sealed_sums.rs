//! Sums that are sealed to a consumer: known answers from an independent script
//! (`vectors/consumer`), and removal of pads over every set that may open.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::known_answers::{array, bytes, cases, words};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::prf::PadDigest;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::consumer::{ConsumerPad, ConsumerSecrets, SealedSum, pad_digest};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Storage, Terms, WindowMembers};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::MaskStrategy;
use alpheus_time::{Span, Timestamp, Window};
use proptest::prelude::*;
use serde::Deserialize;

fn key(seed: [u8; 32]) -> AgreementKey {
    AgreementKey::from_seed(&Secret::from_bytes(seed))
}

#[derive(Deserialize)]
struct SealedCase {
    seed: String,
    public: String,
    seats: Vec<String>,
    plan: String,
    start: u64,
    end: u64,
    membership: String,
    members: Vec<u32>,
    pads: Vec<Vec<String>>,
    words: Vec<String>,
    opened: Vec<String>,
    encoded: String,
}

impl SealedCase {
    fn sum(&self) -> SealedSum {
        SealedSum {
            plan: PlanId(array(&self.plan)),
            window: Window { start: Timestamp(self.start), end: Timestamp(self.end) },
            membership: Digest(array(&self.membership)),
            set: RosterSet::of(u32::try_from(self.seats.len()).unwrap(), self.members.clone()),
            words: words(&self.words),
        }
    }
}

#[test]
fn sums_pads_and_encodings_match_the_vectors() {
    for case in cases::<SealedCase>("consumer/v1/sealed.json") {
        let (sum, mut total) = (case.sum(), words(&case.opened));
        assert_eq!(sum.to_bytes(), bytes(&case.encoded));
        assert_eq!(SealedSum::from_bytes(&bytes(&case.encoded)), Ok(sum.clone()));
        let seed = Secret::from_bytes(array(&case.seed));
        let consumer = ConsumerSecrets::from_seed(&seed).request("any").agreement.unwrap();
        assert_eq!(consumer, AgreementPublic(array(&case.public)));
        let at = pad_digest(&sum.plan, sum.window, &sum.membership);
        for (position, expected) in case.members.iter().zip(&case.pads) {
            let seat = key(array(&case.seats[*position as usize]));
            let pad = ConsumerPad::agree(&seat, &consumer).unwrap();
            let mut alone = vec![0; total.len()];
            pad.add_to(&at, &mut alone);
            assert_eq!(alone, words(expected));
            pad.add_to(&at, &mut total);
        }
        assert_eq!(total, sum.words);
    }
}

#[derive(Deserialize)]
struct Bad {
    encoded: String,
    error: String,
}

#[test]
fn invalid_bytes_are_rejected_with_a_specific_error() {
    for name in ["version", "truncated", "trailing", "spelling", "beyond_roster", "bitmap_length"] {
        for case in cases::<Bad>(&format!("consumer/v1/sealed_bad_{name}.json")) {
            let refused =
                format!("{:?}", SealedSum::from_bytes(&bytes(&case.encoded)).unwrap_err());
            assert!(refused.starts_with(&case.error), "{name}: {refused}");
        }
    }
}

/// A roster of controllers that mask with each other, and a consumer.
struct Roster {
    maskers: Vec<Masker>,
    /// Each controller's side, and the consumer's.
    pads: Vec<(ConsumerPad, ConsumerPad)>,
}

const WINDOW: Window = Window { start: Timestamp(0), end: Timestamp(10_000_000) };
const PLAN: PlanId = PlanId([1; 32]);

impl Roster {
    fn new(size: u8) -> Roster {
        let seat = |p: u8| key([0x40, p, 3, 4, 5, 6, 7, 8].repeat(4).try_into().unwrap());
        let (keys, consumer): (Vec<_>, _) = ((0..size).map(seat).collect(), seat(99));
        let publics: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        let terms = Terms {
            plan: PLAN,
            controllers: u32::from(size),
            window: Span::seconds(10),
            masks: MaskStrategy::Clique,
            may_be_alone: false,
        };
        let masker = |(p, key): (u32, &AgreementKey)| {
            let pairs = PairKeys::agree(key, &publics, p, Storage::Compact).unwrap();
            let own = OwnKey::new(&Secret::from_bytes(key.public().0), &PLAN);
            Masker::with(terms, pairs, own).unwrap()
        };
        let maskers = (0..).zip(&keys).map(masker).collect();
        let pad = |key: &AgreementKey| {
            let theirs = ConsumerPad::agree(key, &consumer.public()).unwrap();
            (theirs, ConsumerPad::agree(&consumer, &key.public()).unwrap())
        };
        Roster { maskers, pads: keys.iter().map(pad).collect() }
    }

    /// `Σ_S (T − o)` of a membership and a set, each token under the consumer's pad.
    fn sum(&mut self, round: &WindowMembers<'_>, set: &RosterSet, at: &PadDigest) -> Vec<u64> {
        let opening = labelled_hash("S", &[&postcard::to_allocvec(set).unwrap()]);
        let mut sum = vec![0_u64; 4];
        for p in set.iter() {
            let (masker, pad) = (&mut self.maskers[p as usize], &self.pads[p as usize].0);
            let mut token = tau(p);
            pad.add_to(at, &mut token);
            let token = masker.token(round, token).unwrap();
            let opened = masker.opening(round, set, &opening, 4).unwrap();
            let terms = token.iter().zip(&opened).map(|(t, o)| t.wrapping_sub(*o));
            sum.iter_mut().zip(terms).for_each(|(word, term)| *word = word.wrapping_add(term));
        }
        sum
    }

    /// The rows that the consumer reads if `set` is the stated opening set.
    fn read(&self, sum: &[u64], set: &RosterSet, at: &PadDigest) -> Vec<u64> {
        let mut words = sum.to_vec();
        set.iter().for_each(|p| self.pads[p as usize].1.subtract_from(at, &mut words));
        words
    }
}

/// The key part of a controller's token, its check word zero.
fn tau(p: u32) -> Vec<u64> {
    vec![u64::from(p) << 40, u64::from(p) + 1, u64::MAX - u64::from(p), 0]
}

fn truth(set: &RosterSet) -> Vec<u64> {
    let add = |sum: Vec<u64>, p| sum.iter().zip(tau(p)).map(|(a, b)| a.wrapping_add(b)).collect();
    set.iter().fold(vec![0; 4], add)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any M and any S within it, exactly the pads of S remain. The consumer can
    /// remove them only with this S and this M.
    #[test]
    fn pads_are_removable_for_exactly_one_set_and_membership(
        size in 2_u8..9,
        members in any::<u8>(),
        opened in any::<u8>(),
        other in any::<u8>(),
    ) {
        let n = u32::from(size);
        let of = |bits: u8| RosterSet::of(n, (0..n).filter(|p| bits >> p & 1 == 1));
        let members = of(members | 0b11);
        let set = RosterSet::of(n, members.iter().filter(|p| *p < 2 || opened >> p & 1 == 1));
        let membership = labelled_hash("M", &[&postcard::to_allocvec(&members).unwrap()]);
        let round = WindowMembers { window: WINDOW, members: &members, membership, pickers: &[] };
        let at = pad_digest(&PLAN, WINDOW, &membership);
        let mut roster = Roster::new(size);
        let sum = roster.sum(&round, &set, &at);
        let truth = truth(&set);
        prop_assert!(sum.iter().zip(&truth).all(|(padded, true_)| padded != true_));
        prop_assert_eq!(roster.read(&sum, &set, &at), truth);
        let other = of(other);
        if other != set {
            prop_assert_ne!(roster.read(&sum, &other, &at)[3], 0);
        }
        let elsewhere = pad_digest(&PLAN, WINDOW, &labelled_hash("M", &[]));
        prop_assert_ne!(roster.read(&sum, &set, &elsewhere)[3], 0);
        let later = Window { start: WINDOW.end, end: WINDOW.end.plus(Span::seconds(10)) };
        let later = pad_digest(&PLAN, later, &membership);
        prop_assert_ne!(roster.read(&sum, &set, &later)[3], 0);
    }
}
