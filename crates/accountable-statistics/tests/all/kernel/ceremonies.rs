//! A key without a trusted dealer, whatever fewer than t members do.

use crate::kernel::support::{Town, announced, rng, seed};
use alpheus_accountable_statistics::error::{
    DealerError, DealingError, SettlementError, ShareError,
};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::{
    Answer, Complaint, Dealer, Dealing, Pledge, VerifiedDealing,
};
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::seal::{SealedSecret, SealingKey, SealingPublic, seal};
use alpheus_crypto::secret::Secret;

/// Bytes of a sealed share.
const SEALED: usize = 80;

/// A pledge as anybody can make it, by the note.
fn pledge_of(ceremony: &Ceremony, dealer: u16, dealing: &[u8]) -> Pledge {
    let parts: [&[u8]; 3] = [ceremony.digest().as_bytes(), &dealer.to_be_bytes(), dealing];
    let dealing = labelled_hash(labels::STATISTICS_KEY_PLEDGE, &parts);
    Pledge { ceremony: *ceremony.digest(), dealer, dealing }
}

fn complaint(town: &Town, dealer: u16, accuser: u16) -> Complaint {
    Complaint { ceremony: *town.ceremony.digest(), dealer, accuser }
}

#[test]
fn a_dealing_must_be_pledged_and_proven() {
    let Town { ceremony, dealers, .. } = Town::new(4, 2);
    let bytes = dealers[0].dealing().to_bytes();
    let read = |bytes: &[u8]| Dealing::from_bytes(bytes, &ceremony);
    let verify =
        |bytes: &[u8], pledge: Pledge| read(bytes).unwrap().verify(&ceremony, &pledge).err();
    let pledge = dealers[0].pledge();
    assert_eq!(bytes.len(), Dealing::length(&ceremony));
    assert_eq!(verify(&bytes, pledge), None);
    let other = Digest([7; 32]);
    let others = [
        dealers[1].pledge(),
        Pledge { dealer: 1, ..pledge },
        Pledge { dealer: 7, ..pledge },
        Pledge { dealing: other, ..pledge },
        Pledge { ceremony: other, ..pledge },
        pledge_of(&ceremony, 9, &bytes),
    ];
    for other in others {
        assert_eq!(verify(&bytes, other), Some(DealingError::NotPledged));
    }
    let malformed = [&bytes[1..], &[&bytes[..], &[0]].concat(), &[&[0; 32], &bytes[32..]].concat()];
    for bytes in malformed {
        assert_eq!(read(bytes), Err(DealingError::Malformed));
    }
    // Another dealer's polynomial under a pledge of one's own, without knowing it.
    let copied = dealers[1].dealing().to_bytes();
    assert_eq!(verify(&copied, pledge_of(&ceremony, 0, &copied)), Some(DealingError::Proof));
}

/// A dealer that reveals early lets others choose their dealings by its own.
#[test]
fn a_dealing_is_revealed_only_after_the_pledges() {
    let Town { dealers, .. } = Town::new(4, 2);
    let pledges: Vec<Pledge> = dealers.iter().map(Dealer::pledge).collect();
    let show = |pledges: &[Pledge]| dealers[0].reveal(pledges).err();
    assert_eq!((show(&pledges), show(&pledges[..3])), (None, None));
    assert_eq!(show(&pledges[..2]), Some(DealerError::Pledges));
    assert_eq!(show(&pledges[1..]), Some(DealerError::Pledges));
    assert_eq!(show(&[pledges[0]; 4]), Some(DealerError::Pledges));
    let elsewhere = pledges.iter().map(|p| Pledge { ceremony: Digest([7; 32]), ..*p });
    let elsewhere: Vec<Pledge> = elsewhere.chain([pledges[0]]).collect();
    assert_eq!(show(&elsewhere), Some(DealerError::Pledges));
}

/// Member 0's dealing with other sealed bytes for member 1.
fn misdealt(town: &Town, sealed: &SealedSecret) -> VerifiedDealing {
    let mut bytes = town.dealers[0].dealing().to_bytes();
    let at = bytes.len() - 3 * SEALED;
    bytes[at..at + SEALED].copy_from_slice(&sealed.to_bytes());
    let dealing = Dealing::from_bytes(&bytes, &town.ceremony).unwrap();
    dealing.verify(&town.ceremony, &pledge_of(&town.ceremony, 0, &bytes)).unwrap()
}

/// Sealed by member 0 for member 1's key, addressed to `to`.
fn sealed_for_1(town: &Town, share: &[u8; 32], to: u16) -> SealedSecret {
    let (digest, label) = (*town.ceremony.digest(), labels::STATISTICS_KEY_SHARE);
    let context: [&[u8]; 3] = [digest.as_bytes(), &[0, 0], &to.to_be_bytes()];
    let key = announced(town.ceremony.committee(), 0)[1].key;
    seal(&key, label, &context, &Secret::from_bytes(*share), &mut rng(7)).unwrap()
}

#[test]
fn a_share_that_does_not_fit_leads_to_a_complaint() {
    let town = Town::new(4, 2);
    let own = complaint(&town, 0, 1);
    let share = town.dealers[0].answers(&[own])[0].share;
    let others = town.dealers[0].answers(&[complaint(&town, 0, 2)])[0].share;
    // A correctly sealed share is accepted. Another share, another context or an invalid scalar is
    // not.
    let good = misdealt(&town, &sealed_for_1(&town, &share, 1));
    assert!(town.dealers[1].open_share(&good).is_ok());
    for (share, to) in [(others, 1), (share, 2), ([0xff; 32], 1), ([0; 32], 1)] {
        let dealt = misdealt(&town, &sealed_for_1(&town, &share, to));
        assert_eq!(town.dealers[1].open_share(&dealt).err(), Some(own));
        assert!(town.dealers[2].open_share(&dealt).is_ok());
    }
    assert_eq!(
        town.dealers[1].open_share(&misdealt(&town, &SealedSecret::dummy(SEALED))).err(),
        Some(own)
    );
}

#[test]
fn an_answered_complaint_changes_nothing() {
    let town = Town::new(4, 2);
    let own = complaint(&town, 0, 1);
    let answers = town.dealers[0].answers(&[own]);
    let settled = Settlement::new(&town.ceremony, &town.dealt, &[own], &answers).unwrap();
    assert_eq!(settled.left_out(), [0_u16; 0]);
    // A member that has not received the complaint has the same key, public shares and transcript.
    assert_eq!(settled.key(), town.settled().key());
    // The accuser gets its share from the answer.
    let mut taken = town.taken(1);
    taken.remove(0);
    assert_eq!(settled.share(1, taken).unwrap().member(), 1);
    assert_eq!(settled.share(2, Vec::new()).err(), Some(ShareError));
}

#[test]
fn a_dealer_that_does_not_answer_is_left_out() {
    let town = Town::new(4, 2);
    let own = complaint(&town, 0, 1);
    let good = town.dealers[0].answers(&[own])[0];
    let others = town.dealers[0].answers(&[complaint(&town, 0, 2)])[0].share;
    let silent = Settlement::new(&town.ceremony, &town.dealt[1..], &[], &[]).unwrap();
    let lies = [others, [0xff; 32]].map(|share| vec![Answer { share, ..good }]);
    for answers in lies.into_iter().chain([vec![]]) {
        let without = Settlement::new(&town.ceremony, &town.dealt, &[own], &answers).unwrap();
        assert_eq!(without.left_out(), [0]);
        assert_ne!(without.key().key(), town.settled().key().key());
        assert_eq!(without.key(), silent.key());
    }
}

#[test]
fn a_dealer_that_t_members_accuse_is_left_out_whatever_it_answers() {
    let town = Town::new(4, 2);
    let said = [1, 2].map(|accuser| complaint(&town, 3, accuser));
    let answers = town.dealers[3].answers(&said);
    assert_eq!(answers.len(), 2);
    let settled = Settlement::new(&town.ceremony, &town.dealt, &said, &answers).unwrap();
    assert_eq!(settled.left_out(), [3]);
    // A repeated complaint counts once; one by nobody does not count.
    let said = [said[0], said[0], complaint(&town, 3, 9)];
    let settled = Settlement::new(&town.ceremony, &town.dealt, &said, &answers).unwrap();
    assert_eq!(settled.left_out(), [0_u16; 0]);
}

/// At most t − 1 dealers are at fault, so a member that complains of t is at fault itself: it may
/// have started with an old key. Nobody publishes a share for it, and nobody is left out.
#[test]
fn an_accuser_of_t_dealers_gets_no_answer() {
    let town = Town::new(4, 2);
    let said = [0, 1].map(|dealer| complaint(&town, dealer, 3));
    assert!(town.dealers[0].answers(&said).is_empty());
    assert_eq!(town.dealers[0].answers(&said[..1]).len(), 1);
    assert!(town.dealers[2].answers(&said[..1]).is_empty());
    let settled = Settlement::new(&town.ceremony, &town.dealt, &said, &[]).unwrap();
    assert_eq!(settled.left_out(), [0_u16; 0]);
}

/// A message that was signed in another attempt, or on another day, is valid only there.
#[test]
fn messages_of_another_ceremony_do_not_count() {
    let (one, two) = (Town::attempt(4, 2, 0), Town::attempt(4, 2, 1));
    assert_ne!(one.ceremony.digest(), two.ceremony.digest());
    let old = complaint(&one, 0, 1);
    assert!(two.dealers[0].answers(&[old]).is_empty());
    let settled = Settlement::new(&two.ceremony, &two.dealt, &[old], &[]).unwrap();
    assert_eq!(settled.left_out(), [0_u16; 0]);
    let dealing = || one.dealers[0].dealing().clone();
    let verified = dealing().verify(&two.ceremony, &one.dealers[0].pledge());
    assert_eq!(verified.err(), Some(DealingError::NotPledged));
    let mixed = Settlement::new(&two.ceremony, &one.dealt, &[], &[]);
    assert_eq!(mixed.err(), Some(SettlementError::OtherCeremony));
    assert!(two.dealers[1].open_share(&one.dealt[0]).is_err());
    // The same seeds deal other polynomials, and open nothing of the other attempt.
    assert_ne!(one.settled().key().key(), two.settled().key().key());
    let restored = Dealer::restore(&two.ceremony, 0, &seed(0), dealing());
    assert_eq!(restored.err(), Some(DealerError::OtherDealing));
}

#[test]
fn a_key_needs_more_dealers_than_can_be_at_fault() {
    let Town { ceremony, dealt, .. } = Town::new(4, 2);
    let settled = Settlement::new(&ceremony, &dealt[2..], &[], &[]);
    assert_eq!(settled.err(), Some(SettlementError::TooManyLeftOut(vec![0, 1])));
    let twice = [dealt.clone(), vec![dealt[1].clone()]].concat();
    assert_eq!(Settlement::new(&ceremony, &twice, &[], &[]).err(), Some(SettlementError::Twice(1)));
}

/// A member whose dealing was left out holds a share all the same.
#[test]
fn a_dealer_that_was_left_out_has_a_share() {
    let town = Town::new(4, 2);
    let settled = Settlement::new(&town.ceremony, &town.dealt[1..], &[], &[]).unwrap();
    assert_eq!(settled.share(0, town.taken(0)).unwrap().member(), 0);
}

/// A member that announces nothing, two keys or one of small order gets no share. It stops nobody
/// from dealing, and has no ground to complain.
#[test]
fn a_member_without_a_good_key_gets_no_share_and_stops_nobody() {
    let committee = *Town::new(4, 2).ceremony.committee();
    let all = announced(&committee, 0);
    let two_keys = Announcement { key: all[0].key, ..all[3] };
    let small = Announcement { key: SealingPublic([0; 32]), ..all[3] };
    let elsewhere = Announcement { attempt: 1, ..all[3] };
    let lists = [
        vec![],
        vec![all[3], two_keys],
        vec![small],
        vec![elsewhere],
        vec![Announcement { committee: Digest([7; 32]), ..all[3] }],
    ];
    let mut digests = Vec::new();
    for list in lists {
        let ceremony = Ceremony::new(committee, 0, &[&all[..3], &list].concat());
        digests.push(*ceremony.digest());
        let dealer = |member| Dealer::new(&ceremony, member, &seed(member), &mut rng(1));
        assert_eq!(dealer(3).err(), Some(DealerError::NotAnnounced));
        let dealers: Vec<Dealer> = (0..3).map(|member| dealer(member).unwrap()).collect();
        let dealt = dealers
            .iter()
            .map(|dealer| dealer.dealing().clone().verify(&ceremony, &dealer.pledge()).unwrap());
        let dealt: Vec<VerifiedDealing> = dealt.collect();
        let settled = Settlement::new(&ceremony, &dealt, &[], &[]).unwrap();
        let taken = dealt.iter().map(|dealt| dealers[1].open_share(dealt).unwrap()).collect();
        assert!(settled.share(1, taken).is_ok());
        let unfounded = Complaint { ceremony: *ceremony.digest(), dealer: 0, accuser: 3 };
        assert!(dealers[0].answers(&[unfounded]).is_empty());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    assert_ne!(digests[0], *Ceremony::new(committee, 0, &all).digest());
}

/// Days are erased. Of a settled key a member keeps its share and, for years, everything that was
/// broadcast and its long-term keys. None of that opens a dealing once the attempt's seed is gone:
/// only keys from that seed do.
#[test]
fn nothing_that_outlives_a_ceremony_opens_a_dealing() {
    let town = Town::new(4, 2);
    let committee = town.ceremony.committee();
    let seeds = [seed(0), seed(1)];
    for (member, own) in (0..).zip(&seeds) {
        let key = SealingKey::from_seed(own).public();
        let today = Announcement::new(committee, 0, member, own).unwrap().key;
        let tomorrow = Announcement::new(committee, 1, member, own).unwrap().key;
        assert!(
            today != key
                && today != tomorrow
                && today == announced(committee, 0)[usize::from(member)].key
        );
    }
    let other = Dealer::restore(&town.ceremony, 1, &seed(9), town.dealers[1].dealing().clone());
    assert!(other.is_err());
}

#[test]
fn a_dealer_is_the_same_after_a_restart() {
    let town = Town::new(4, 2);
    let stored = || town.dealers[2].dealing().clone();
    let restore = |member, own| Dealer::restore(&town.ceremony, member, &own, stored());
    let again = restore(2, seed(2)).unwrap();
    assert_eq!(again.pledge(), town.dealers[2].pledge());
    let said = [complaint(&town, 2, 0)];
    assert_eq!(again.answers(&said), town.dealers[2].answers(&said));
    assert!(town.dealt.iter().all(|dealt| again.open_share(dealt).is_ok()));
    assert_eq!(restore(2, seed(3)).err(), Some(DealerError::OtherDealing));
    assert_eq!(restore(4, seed(2)).err(), Some(DealerError::NoMember));
    let nobody = Announcement::new(town.ceremony.committee(), 0, 4, &seed(4));
    assert_eq!(nobody.err(), Some(DealerError::NoMember));
    let other = Dealer::new(&town.ceremony, 2, &seed(3), &mut rng(1));
    assert_eq!(other.err(), Some(DealerError::NotAnnounced));
}
