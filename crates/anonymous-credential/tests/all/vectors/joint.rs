//! Joint presentations, one for each verifier.

use super::*;
use alpheus_anonymous_credential::holder::{SubjectPresenter, present_together};
use alpheus_anonymous_credential::messages::JointPresentation;
use alpheus_anonymous_credential::subjects::Subject;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

fn subject(case: &Value, pinned: &PinnedConfiguration) -> Subject {
    let limit = small(case, "limit").try_into().unwrap();
    Subject::new(pinned, &Digest(array(case, "subject")), limit, Period(number(case, "period")))
}

fn verify(
    case: &Value,
    of: &Value,
    place: (usize, usize),
    bytes: &[u8],
) -> Result<Digest, VerifierError> {
    let pinned = pinned(of);
    let (verifier, subject) =
        (Verifier::new(issuer_key(of), pinned.clone()).unwrap(), subject(case, &pinned));
    let joint = JointPresentation::from_bytes(bytes, subject.limit(), place)?;
    assert_eq!(joint.to_bytes(), bytes);
    let proven = verifier.verify_joint(&subject, vec![joint]).pop().unwrap()?;
    Ok(proven.name(&subject).0)
}

#[test]
fn joint_presentations_match_byte_for_byte() {
    for case in cases("together") {
        let holders: Vec<&Value> = case["holders"].as_array().unwrap().iter().collect();
        let about = |of: &&Value| -> SubjectPresenter {
            holder(of, 0).for_subject(subject(&case, &pinned(of)), &Ledger::new()).unwrap()
        };
        let mut abouts: Vec<SubjectPresenter> = holders.iter().map(about).collect();
        let message = Digest(array(&case, "message"));
        let any = &mut ChaCha20Rng::from_seed([1; 32]);
        for _ in 0..small(&case, "index") {
            assert_eq!(present_together(&mut abouts, &message, any).unwrap().len(), holders.len());
        }
        let steps =
            scripted(&case, "randomness", |rng| present_together(&mut abouts, &message, rng))
                .unwrap();
        for (place, step) in steps.into_iter().enumerate() {
            let sent = step.commit(&mut Ledger::new()).unwrap();
            let list = |field: &str| from_hex(case[field][place].as_str().unwrap());
            assert_eq!(sent, list("showings"), "{place}");
            let limit = abouts[place].left() + small(&case, "index") + 1;
            assert_eq!(
                JointPresentation::length(limit.try_into().unwrap(), holders.len()),
                sent.len()
            );
            let tag = verify(&case, holders[place], (place, holders.len()), &sent).unwrap();
            assert_eq!(tag.as_bytes().as_slice(), list("tags"));
        }
    }
}

#[test]
fn bad_joint_presentations_are_rejected_with_the_expected_error() {
    for (name, case) in bad("together", "place alone length equation") {
        let place = (small(&case, "place") as usize, 3);
        let refusal = verify(&case, &case, place, &bytes(&case, "showing")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}
