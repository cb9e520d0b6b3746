//! A key without a dealer, and what t of n open with it.

use crate::support::{Ceremony, binding, interval, key, rng};
use alpheus_accountable_statistics::error::{
    BadDealing, BadPartial, BadShare, NotDealt, NotOpened, NotSettled,
};
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::sums::{Ciphertext, Part, Sums};
use alpheus_accountable_statistics::threshold::dealing::{
    Answer, Complaint, Dealer, Dealing, Dealt, Pledge,
};
use alpheus_accountable_statistics::threshold::decrypting::{Partial, VerifiedPartial};
use alpheus_accountable_statistics::threshold::settling::Settled;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Checker, Contribution, Prover, Terms};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingKey, SealingPublic, seal};
use alpheus_crypto::secret::Secret;

fn context(what: &[u8]) -> Digest {
    labelled("alpheus/test-context/v1", &[what])
}

/// The count of three samples and a dummy.
fn three(key: &SharedKey) -> Ciphertext {
    let terms = Terms::new(*key.key(), interval(0, 3, false));
    let (prover, checker) = (Prover::new(terms), Checker::new(terms));
    let mut sums = Sums::new(&terms, binding(0).aggregate);
    let given = [1, 2, 3].map(Contribution::Sample).into_iter().chain([Contribution::Dummy]);
    for (slot, contribution) in (0..).zip(given) {
        let tuple = prover.prove(contribution, &binding(slot), &mut rng(1)).unwrap();
        sums.add(&checker.check(binding(slot), tuple).unwrap()).unwrap();
    }
    sums.ciphertext(Part::Count).unwrap()
}

fn partial(key: &SharedKey, share: &KeyShare, of: &Ciphertext, context: &Digest) -> Partial {
    share.dangerous_open(key, of, context, &mut rng(2)).unwrap()
}

fn verified(key: &SharedKey, share: &KeyShare, of: &Ciphertext, c: &Digest) -> VerifiedPartial {
    let sent = Partial::from_bytes(&partial(key, share, of, c).to_bytes()).unwrap();
    key.verify(sent, of, c).unwrap()
}

#[test]
fn any_t_members_open_and_fewer_do_not() {
    for (members, threshold) in [(1, 1), (4, 2), (7, 3)] {
        let (key, shares) = key(members, threshold);
        let (sum, context, table) = (three(&key), context(b""), Table::new(8));
        let partials: Vec<VerifiedPartial> =
            shares.iter().map(|share| verified(&key, share, &sum, &context)).collect();
        for subset in 0_u32..1 << members {
            let some = (0..members).filter(|member| subset >> member & 1 == 1);
            let some: Vec<VerifiedPartial> =
                some.map(|member| partials[usize::from(member)].clone()).collect();
            let opened = key.combine(&sum, &context, &some);
            if some.len() < usize::from(threshold) {
                let needed = usize::from(threshold);
                assert_eq!(opened.err(), Some(NotOpened { have: some.len(), needed }));
            } else {
                let read = table.read(opened.unwrap().total(), &Bounds::count(4));
                assert_eq!(read, Ok(3), "{subset:b} of {members}");
            }
        }
        let twice = vec![partials[0].clone(); usize::from(threshold) + 1];
        assert_eq!(key.combine(&sum, &context, &twice).is_ok(), threshold == 1);
    }
}

#[test]
fn a_wrong_partial_decryption_is_caught_by_name_and_anothers_is_used() {
    let (key, shares) = key(4, 2);
    let (sum, context) = (three(&key), context(b""));
    // Another member's share under one's own name: a share that is not the key's.
    let mut bytes = partial(&key, &shares[1], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&2_u16.to_be_bytes());
    let wrong = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(BadPartial::Wrong(2)));
    // An element that is off by B, with the honest proof.
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[2..34].copy_from_slice(key.key().0.as_bytes());
    let wrong = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(BadPartial::Wrong(2)));
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&4_u16.to_be_bytes());
    let nobody = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(nobody, &sum, &context), Err(BadPartial::NoMember(4)));
    for length in [0, 1, 2, 33, 34, Partial::LENGTH - 1, Partial::LENGTH + 1] {
        bytes.resize(length, 0);
        assert_eq!(Partial::from_bytes(&bytes), Err(BadPartial::Malformed));
    }
    let others = [&shares[0], &shares[3]].map(|share| verified(&key, share, &sum, &context));
    let opened = key.combine(&sum, &context, &others).unwrap();
    assert_eq!(Table::new(8).read(opened.total(), &Bounds::count(4)), Ok(3));
}

#[test]
fn a_partial_decryption_serves_its_own_sum_and_context_alone() {
    let (key, shares) = key(4, 2);
    let (sum, own, other) = (three(&key), context(b"own"), context(b"other"));
    let made = partial(&key, &shares[0], &sum, &own);
    assert_eq!(key.verify(made.clone(), &sum, &other), Err(BadPartial::Wrong(0)));
    let of_one = Sums::new(&Terms::new(*key.key(), interval(0, 3, false)), own);
    assert!(of_one.ciphertext(Part::Count).is_none());
    let a = key.verify(made, &sum, &own).unwrap();
    let b = verified(&key, &shares[1], &sum, &other);
    assert_eq!(key.combine(&sum, &own, &[a, b]).err(), Some(NotOpened { have: 1, needed: 2 }));
}

#[test]
fn shares_are_stored_and_others_are_refused() {
    let (key, shares) = key(4, 2);
    let stored = shares[1].expose();
    assert_eq!(KeyShare::restore(&key, 1, &stored).unwrap().member(), 1);
    assert_eq!(KeyShare::restore(&key, 2, &stored).err(), Some(BadShare));
    assert_eq!(KeyShare::restore(&key, 9, &stored).err(), Some(BadShare));
    let zero = Secret::from_bytes([0; 32]);
    assert_eq!(KeyShare::restore(&key, 1, &zero).err(), Some(BadShare));
}

#[test]
fn committees_need_two_thirds_and_more() {
    let new = |members, threshold| Committee::new(context(b""), members, threshold).is_ok();
    assert!(new(1, 1) && new(2, 1) && new(4, 2) && new(7, 3) && new(64, 22));
    assert!(!new(3, 2) && !new(6, 3) && !new(0, 0) && !new(4, 0) && !new(0, 1) && !new(65, 2));
    let bytes = postcard::to_allocvec(&(context(b""), 3_u16, 2_u16)).unwrap();
    assert!(postcard::from_bytes::<Committee>(&bytes).is_err());
}

#[test]
fn a_dealing_is_its_dealers_pledged_and_proven_one() {
    let Ceremony { committee, dealers, .. } = Ceremony::new(4, 2);
    let bytes = dealers[0].dealing().to_bytes();
    let read = |bytes: &[u8]| Dealing::from_bytes(bytes, &committee);
    let verify = |dealing: Dealing, dealer, pledge: Pledge| {
        dealing.verify(&committee, dealer, &pledge).err()
    };
    let dealing = || read(&bytes).unwrap();
    assert_eq!(bytes.len(), Dealing::length(&committee));
    assert_eq!(verify(dealing(), 0, dealers[0].pledge()), None);
    let not_pledged = Some(BadDealing::NotPledged);
    assert_eq!(verify(dealing(), 0, dealers[1].pledge()), not_pledged);
    assert_eq!(verify(dealing(), 1, dealers[0].pledge()), not_pledged);
    assert_eq!(verify(dealing(), 7, dealers[0].pledge()), not_pledged);
    assert_eq!(verify(dealing(), 0, Pledge(context(b""))), not_pledged);
    assert_eq!(read(&bytes[1..]), Err(BadDealing::Malformed));
    assert_eq!(read(&[&bytes[..], &[0]].concat()), Err(BadDealing::Malformed));
    assert_eq!(read(&[&[0; 32], &bytes[32..]].concat()), Err(BadDealing::Malformed));
    let other = Committee::new(context(b""), 5, 2).unwrap();
    assert_eq!(Dealing::from_bytes(&bytes, &other), Err(BadDealing::Malformed));
    // Another's polynomial with a pledge of one's own: whoever does not know it.
    let copied = read(&dealers[1].dealing().to_bytes()).unwrap();
    let pledged = pledge_of(&committee, 0, &copied);
    assert_eq!(verify(copied, 0, pledged), Some(BadDealing::Proof));
}

/// A pledge as anybody can make it: by the protocol's note.
fn pledge_of(committee: &Committee, dealer: u16, dealing: &Dealing) -> Pledge {
    let (committee, dealer) = (committee.digest(), dealer.to_be_bytes());
    let parts: [&[u8]; 3] = [committee.as_bytes(), &dealer, &dealing.to_bytes()];
    Pledge(labelled(labels::STATISTICS_KEY_PLEDGE, &parts))
}

/// Member 0's dealing with another thing sealed for member 1.
fn misdealt(ceremony: &Ceremony, sealed: &Sealed) -> Dealt {
    let committee = ceremony.committee;
    let mut bytes = ceremony.dealers[0].dealing().to_bytes();
    let at = bytes.len() - 3 * sealed.length();
    bytes[at..at + sealed.length()].copy_from_slice(&sealed.to_bytes());
    let dealing = Dealing::from_bytes(&bytes, &committee).unwrap();
    let pledge = pledge_of(&committee, 0, &dealing);
    dealing.verify(&committee, 0, &pledge).unwrap()
}

fn sealed_for_1(ceremony: &Ceremony, share: &[u8; 32], to: u16) -> Sealed {
    let (digest, label) = (ceremony.committee.digest(), labels::STATISTICS_KEY_SHARE);
    let context: [&[u8]; 3] = [digest.as_bytes(), &[0, 0], &to.to_be_bytes()];
    let key = ceremony.keys[1].public();
    seal(&key, label, &context, &Secret::from_bytes(*share), &mut rng(7)).unwrap()
}

#[test]
fn a_share_that_does_not_fit_is_complained_of_and_answered() {
    let mut ceremony = Ceremony::new(4, 2);
    let complaint = Complaint { dealer: 0, accuser: 1 };
    let answer = ceremony.dealers[0].answer(complaint).unwrap();
    let other = Complaint { dealer: 0, accuser: 2 };
    let others = ceremony.dealers[0].answer(other).unwrap().share;
    // Sealed as it should be, it is taken; another share, another context, no scalar not.
    let good = misdealt(&ceremony, &sealed_for_1(&ceremony, &answer.share, 1));
    assert!(good.take(1, &ceremony.keys[1]).is_ok());
    let bad = [(others, 1), (answer.share, 2), ([0xff; 32], 1), ([0; 32], 1)];
    for (share, to) in bad {
        let dealt = misdealt(&ceremony, &sealed_for_1(&ceremony, &share, to));
        assert_eq!(dealt.take(1, &ceremony.keys[1]).err(), Some(complaint));
        assert!(dealt.take(2, &ceremony.keys[2]).is_ok());
        assert!(dealt.take(1, &ceremony.keys[2]).is_err());
    }
    assert_eq!(ceremony.dealers[1].answer(complaint).err(), Some(NotDealt::NotAboutMe));
    let nobodys = Complaint { dealer: 0, accuser: 4 };
    assert_eq!(ceremony.dealers[0].answer(nobodys).err(), Some(NotDealt::NoMember));
    ceremony.dealt[0] = good;
    let Ceremony { committee, dealt, .. } = &ceremony;
    let settled = Settled::new(committee, dealt, &[complaint], &[answer]).unwrap();
    // Answered: the dealer stays, and the accuser has its share from the answer.
    assert_eq!(settled.left_out(), [0_u16; 0]);
    let mut taken = ceremony.taken(1);
    taken.remove(0);
    let share = settled.share(1, taken).unwrap();
    assert_eq!(share.member(), 1);
    assert_eq!(settled.share(2, Vec::new()).err(), Some(BadShare));
    // Not answered, or answered wrongly: left out, and the key is the others'.
    let lie = Answer { share: others, ..answer };
    for answers in [vec![], vec![lie], vec![Answer { share: [0xff; 32], ..answer }]] {
        let without = Settled::new(committee, dealt, &[complaint], &answers).unwrap();
        assert_eq!(without.left_out(), [0]);
        assert_ne!(without.key().key(), settled.key().key());
        let silent = Settled::new(committee, &dealt[1..], &[], &[]).unwrap();
        assert_eq!(silent.key(), without.key());
    }
    assert_ne!(settled.key().transcript(), ceremony.settled().key().transcript());
    assert_eq!(settled.key().key(), ceremony.settled().key().key());
}

#[test]
fn whom_t_members_complain_of_is_left_out_whatever_it_answers() {
    let Ceremony { committee, dealers, dealt, .. } = Ceremony::new(4, 2);
    let complaints = [1, 2].map(|accuser| Complaint { dealer: 3, accuser });
    let answers = complaints.map(|complaint| dealers[3].answer(complaint).unwrap());
    let settled = Settled::new(&committee, &dealt, &complaints, &answers).unwrap();
    assert_eq!(settled.left_out(), [3]);
    // A complaint said twice is one; one of nobody is none.
    let said = [complaints[0], complaints[0], Complaint { dealer: 3, accuser: 9 }];
    let settled = Settled::new(&committee, &dealt, &said, &answers).unwrap();
    assert_eq!(settled.left_out(), [0_u16; 0]);
}

#[test]
fn a_key_needs_more_dealers_than_can_be_at_fault() {
    let Ceremony { committee, dealt, .. } = Ceremony::new(4, 2);
    let settled = Settled::new(&committee, &dealt[2..], &[], &[]);
    assert_eq!(settled.err(), Some(NotSettled::TooManyLeftOut(vec![0, 1])));
    let twice = [dealt.clone(), vec![dealt[1].clone()]].concat();
    let settled = Settled::new(&committee, &twice, &[], &[]);
    assert_eq!(settled.err(), Some(NotSettled::Twice(1)));
    let other = Committee::new(context(b"another day"), 4, 2).unwrap();
    let settled = Settled::new(&other, &dealt, &[], &[]);
    assert_eq!(settled.err(), Some(NotSettled::OtherCommittee));
}

/// Members whose dealing was left out still hold shares, and open with them.
#[test]
fn who_was_left_out_can_still_open() {
    let ceremony = Ceremony::new(4, 2);
    let settled = Settled::new(&ceremony.committee, &ceremony.dealt[1..], &[], &[]).unwrap();
    let key = settled.key();
    let shares = [0, 3].map(|member| settled.share(member, ceremony.taken(member)).unwrap());
    let (sum, context) = (three(key), context(b""));
    let partials = shares.each_ref().map(|share| verified(key, share, &sum, &context));
    let opened = key.combine(&sum, &context, &partials).unwrap();
    assert_eq!(Table::new(8).read(opened.total(), &Bounds::count(4)), Ok(3));
}

#[test]
fn a_dealer_is_the_same_after_a_restart() {
    let Ceremony { committee, keys, dealers, .. } = Ceremony::new(4, 2);
    let seed = |byte| Secret::from_bytes([byte; 32]);
    let stored = dealers[2].dealing().clone();
    let again = Dealer::restore(committee, 2, &seed(3), stored.clone()).unwrap();
    assert_eq!(again.pledge(), dealers[2].pledge());
    let complaint = Complaint { dealer: 2, accuser: 0 };
    assert_eq!(again.answer(complaint), dealers[2].answer(complaint));
    let other = Dealer::restore(committee, 2, &seed(4), stored);
    assert_eq!(other.err(), Some(NotDealt::OtherDealing));
    let public: Vec<SealingPublic> = keys.iter().map(SealingKey::public).collect();
    let new = |keys: &[SealingPublic], member| {
        Dealer::new(committee, keys, member, &seed(1), &mut rng(1)).err()
    };
    assert_eq!(new(&public, 4), Some(NotDealt::NoMember));
    assert_eq!(new(&public[1..], 0), Some(NotDealt::Keys));
    let low_order = [&public[..3], &[SealingPublic([0; 32])]].concat();
    assert_eq!(new(&low_order, 0), Some(NotDealt::Keys));
}
