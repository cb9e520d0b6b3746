//! Known answers made by an independent script, range proofs included, and everything that must be
//! rejected, each with its expected error: `vectors/accountable-statistics`.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod entries;
mod json;
mod keymaking;
mod uploads;

use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::sums::{Ciphertext, Part, Sums};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::{
    Complaint, Dealer, Dealing, Pledge, VerifiedDealing,
};
use alpheus_accountable_statistics::threshold::decryption::PartialDecryption;
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{
    Binding, Checker, Contribution, Prover, Terms, ThresholdKey, Tuple, message_base,
};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::secret::Secret;
use json::{array, cases, element, from_hex, script_rng, small};
use serde_json::Value;

fn interval(case: &Value) -> Interval {
    let end = |name: &str| case[name].as_i64().unwrap();
    Interval::new(end("lowest"), end("highest"), case["square"].as_bool().unwrap()).unwrap()
}

fn terms(case: &Value) -> Terms {
    Terms::new(ThresholdKey(element(&case["key"])), interval(case))
}

fn binding(case: &Value) -> Binding {
    let b = &case["binding"];
    Binding {
        tag: element(&b["tag"]),
        aggregate: Digest(array(&b["aggregate"])),
        ephemeral: OneTimePublic::from_bytes(array(&b["ephemeral"])),
    }
}

#[test]
fn digests_and_bases_match_the_script() {
    for case in cases("terms") {
        assert_eq!(message_base(), element(&case["message_base"]));
        assert_eq!(terms(&case).digest(), &Digest(array(&case["terms_digest"])));
        assert_eq!(binding(&case).digest(), Digest(array(&case["binding_digest"])));
    }
}

/// The same randomness gives the same ciphertexts and proof of equations. The range proof has
/// randomness of its own: the script's is checked, and so is ours.
#[test]
fn tuples_match_the_script() {
    for case in cases("tuple") {
        let (terms, binding, bytes) = (terms(&case), binding(&case), from_hex(&case["tuple"]));
        let theirs = Tuple::from_bytes(&bytes, terms.interval()).unwrap();
        assert_eq!(theirs.to_bytes(), bytes);
        assert_eq!(theirs.digest(), Digest(array(&case["digest"])));
        assert!(Checker::new(terms).check(binding, theirs).is_ok(), "{}", case["value"]);
        let given = case["value"].as_i64().map_or(Contribution::Dummy, Contribution::Sample);
        let rng = &mut script_rng(&case["randomness"]);
        let ours = Prover::new(terms).prove(given, &binding, rng).unwrap().to_bytes();
        assert!(rng.is_used_up(), "all of the randomness is used");
        let before_range = bytes.len() - from_hex(&case["range"]).len();
        assert_eq!(ours[..before_range], bytes[..before_range]);
        let ours = Tuple::from_bytes(&ours, terms.interval()).unwrap();
        assert!(Checker::new(terms).check(binding, ours).is_ok(), "{}", case["value"]);
    }
}

fn refusal(terms: Terms, binding: Binding, bytes: &[u8]) -> String {
    match Tuple::from_bytes(bytes, terms.interval()) {
        Err(malformed) => format!("{malformed:?}"),
        Ok(tuple) => format!("{:?}", Checker::new(terms).check(binding, tuple).unwrap_err()),
    }
}

#[test]
fn bad_tuples_are_rejected_with_the_expected_error() {
    for name in ["equation", "range", "binding", "mixed", "length"] {
        for (at, case) in cases(&format!("tuple_bad_{name}")).iter().enumerate() {
            let refused = refusal(terms(case), binding(case), &from_hex(&case["tuple"]));
            assert_eq!(refused, case["error"].as_str().unwrap(), "{name} {at}");
        }
    }
}

#[test]
fn bad_encodings_are_rejected_with_the_expected_error() {
    for group in cases("tuple_bad_encoding") {
        let good = from_hex(&group["tuple"]);
        assert!(Tuple::from_bytes(&good, &interval(&group)).is_ok());
        for case in group["cases"].as_array().unwrap() {
            let (mut bytes, at) = (good.clone(), usize::from(small(&case["at"])));
            bytes[at..at + 32].copy_from_slice(&from_hex(&case["chunk"]));
            let refused = refusal(terms(&group), binding(&group), &bytes);
            assert_eq!(refused, case["error"].as_str().unwrap(), "{at}");
        }
    }
}

fn committee(case: &Value) -> Committee {
    let c = &case["committee"];
    let purpose = Digest(array(&c["purpose"]));
    Committee::new(purpose, small(&c["members"]), small(&c["threshold"])).unwrap()
}

/// A ceremony's members' seeds, and the ceremony that they announce.
fn ceremony(case: &Value) -> (Vec<Secret<32>>, Ceremony) {
    let attempt = case["attempt"].as_u64().unwrap().try_into().unwrap();
    let committee = committee(case);
    let seeds = case["seeds"].as_array().unwrap().iter();
    let seeds: Vec<Secret<32>> = seeds.map(|seed| Secret::from_bytes(array(seed))).collect();
    let announced = (0..)
        .zip(&seeds)
        .map(|(member, seed)| Announcement::new(&committee, attempt, member, seed).unwrap());
    let ceremony = Ceremony::new(committee, attempt, &announced.collect::<Vec<_>>());
    assert_eq!(ceremony.digest(), &Digest(array(&case["ceremony"])));
    (seeds, ceremony)
}

fn dealers(case: &Value) -> (Vec<Dealer>, Vec<VerifiedDealing>) {
    let (seeds, ceremony) = ceremony(case);
    let one = |((member, dealer), seed): ((u16, &Value), &Secret<32>)| {
        let rng = &mut script_rng(&dealer["randomness"]);
        let made = Dealer::new(&ceremony, member, seed, rng).unwrap();
        assert!(rng.is_used_up(), "all of the randomness is used");
        assert_eq!(made.dealing().to_bytes(), from_hex(&dealer["dealing"]));
        assert_eq!(made.pledge().dealing, Digest(array(&dealer["pledge"])));
        for (accuser, share) in (0..).zip(dealer["shares"].as_array().unwrap()) {
            let complaint = Complaint { ceremony: *ceremony.digest(), dealer: member, accuser };
            let answers = made.answers(&[complaint]);
            // With t = 1 any complaint is the accuser's fault.
            let shares: Vec<[u8; 32]> = answers.iter().map(|answer| answer.share).collect();
            let one = ceremony.committee().threshold() == 1;
            assert_eq!(shares, if one { vec![] } else { vec![array::<32>(share)] });
        }
        let dealing = Dealing::from_bytes(&from_hex(&dealer["dealing"]), &ceremony).unwrap();
        let dealt = dealing.verify(&ceremony, &made.pledge()).unwrap();
        (made, dealt)
    };
    (0..).zip(case["dealers"].as_array().unwrap()).zip(&seeds).map(one).unzip()
}

fn same_key(key: &SharedKey, expected: &Value) {
    assert_eq!(key.key().0, element(&expected["key"]));
    assert_eq!(key.transcript(), &Digest(array(&expected["transcript"])));
    let shares = expected["shares"].as_array().unwrap();
    for (member, share) in (0..).zip(shares) {
        let restored = KeyShare::restore(key, member, &Secret::from_bytes(array(share)));
        assert_eq!(restored.unwrap().member(), member);
    }
}

#[test]
fn keys_match_the_script() {
    for case in cases("key") {
        let ((dealers, dealt), (_, ceremony)) = (dealers(&case), ceremony(&case));
        let committee = ceremony.committee();
        assert_eq!(committee.digest(), Digest(array(&case["digest"])));
        let settled = Settlement::new(&ceremony, &dealt, &[], &[]).unwrap();
        same_key(settled.key(), &case["settled"]);
        for (member, dealer) in (0..).zip(&dealers) {
            let taken = dealt.iter().map(|dealt| dealer.open_share(dealt).unwrap());
            let share = settled.share(member, taken.collect()).unwrap();
            let expected = &case["settled"]["shares"][usize::from(member)];
            assert_eq!(*share.expose().expose(), array::<32>(expected));
        }
        if committee.threshold() > 1 {
            let without = Settlement::new(&ceremony, &dealt[1..], &[], &[]).unwrap();
            same_key(without.key(), &case["without_first"]);
        }
    }
}

#[test]
fn bad_dealings_are_rejected_with_the_expected_error() {
    for group in cases("dealing_bad") {
        let (_, ceremony) = ceremony(&group);
        for (at, case) in group["cases"].as_array().unwrap().iter().enumerate() {
            let pledge = Pledge {
                ceremony: *ceremony.digest(),
                dealer: small(&case["dealer"]),
                dealing: Digest(array(&case["pledge"])),
            };
            let dealing = Dealing::from_bytes(&from_hex(&case["dealing"]), &ceremony);
            let verified = dealing.and_then(|dealing| dealing.verify(&ceremony, &pledge));
            let refused = format!("{:?}", verified.unwrap_err());
            assert_eq!(refused, case["error"].as_str().unwrap(), "{at}");
        }
    }
}

/// The sums of a vector's tuples, all in one slot.
fn sums(group: &Value, key: &SharedKey) -> Sums {
    let terms = Terms::new(*key.key(), interval(group));
    let (checker, binding) = (Checker::new(terms), binding(group));
    let mut sums = Sums::new(&terms, binding.aggregate);
    for tuple in group["tuples"].as_array().unwrap() {
        let tuple = Tuple::from_bytes(&from_hex(tuple), terms.interval()).unwrap();
        sums.add(&checker.check(binding, tuple).unwrap()).unwrap();
    }
    sums
}

/// The key of `key.json` with the group's committee.
fn key_of(group: &Value) -> (SharedKey, Vec<KeyShare>) {
    let same = |case: &Value| case["committee"] == group["committee"];
    let case = cases("key").into_iter().find(same).unwrap();
    let ((_, dealt), (_, ceremony)) = (dealers(&case), ceremony(&case));
    let key = Settlement::new(&ceremony, &dealt, &[], &[]).unwrap().key().clone();
    let shares = (0..).zip(case["settled"]["shares"].as_array().unwrap());
    let restore = |(member, share): (u16, &Value)| {
        KeyShare::restore(&key, member, &Secret::from_bytes(array(share))).unwrap()
    };
    let shares = shares.map(restore).collect();
    (key, shares)
}

fn ciphertext(sums: &Sums, part: &Value) -> Ciphertext {
    let parts = [Part::Count, Part::Value, Part::Square];
    sums.ciphertext(parts[usize::from(small(part))]).unwrap()
}

#[test]
fn partial_decryptions_match_the_script_and_open() {
    for group in cases("partial") {
        let (key, shares) = key_of(&group);
        let (sums, context) = (sums(&group, &key), Digest(array(&group["context"])));
        for case in group["cases"].as_array().unwrap() {
            let sum = ciphertext(&sums, &case["part"]);
            let made = |share: &KeyShare| {
                let member = usize::from(share.member());
                let rng = &mut script_rng(&case["randomness"][member]);
                let partial = share.dangerous_open(&key, &sum, &context, rng).unwrap();
                assert_eq!(partial.to_bytes(), from_hex(&case["partials"][member]));
                key.verify(partial, &sum, &context).unwrap()
            };
            let verified: Vec<_> = shares.iter().map(made).collect();
            for two in verified.windows(2) {
                let opened = key.combine(&sum, &context, two).unwrap();
                assert_eq!(opened.total().element(), Ok(element(&case["opened"])));
            }
        }
    }
}

#[test]
fn bad_partial_decryptions_are_rejected_with_the_expected_error() {
    for group in cases("partial_bad") {
        let (key, _) = key_of(&group);
        let sum = ciphertext(&sums(&group, &key), &group["part"]);
        let context = Digest(array(&group["context"]));
        for (at, case) in group["cases"].as_array().unwrap().iter().enumerate() {
            let read = PartialDecryption::from_bytes(&from_hex(&case["partial"]));
            let verified = read.and_then(|partial| key.verify(partial, &sum, &context));
            let refused = format!("{:?}", verified.unwrap_err());
            assert_eq!(refused, case["error"].as_str().unwrap(), "{at}");
        }
    }
}
