//! Open presentations, and proofs that one is not of a valid credential.

use super::*;
use alpheus_anonymous_credential::error::RefutationError;
use alpheus_anonymous_credential::refutation::{OpenPresentation, Refutation};
use alpheus_anonymous_credential::subjects::Subject;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

fn subject(case: &Value) -> Subject {
    let limit = small(case, "limit").try_into().unwrap();
    let (name, period) = (Digest(array(case, "subject")), Period(number(case, "period")));
    Subject::new(&pinned(case), &name, limit, period)
}

/// The same subject in the period after.
fn next_period(case: &Value) -> Subject {
    let limit = small(case, "limit").try_into().unwrap();
    let period = Period(number(case, "period") + 1);
    Subject::new(&pinned(case), &Digest(array(case, "subject")), limit, period)
}

fn shown(case: &Value) -> OpenPresentation {
    let (bytes, limit) = (bytes(case, "showing"), subject(case).limit());
    let open = OpenPresentation::from_bytes(&bytes, limit).unwrap();
    assert_eq!(open.to_bytes(), bytes);
    assert_eq!(OpenPresentation::length(limit), bytes.len());
    open
}

fn verifier(case: &Value) -> Verifier {
    Verifier::new(issuer_key(case), pinned(case)).unwrap()
}

fn accepted(case: &Value, open: &OpenPresentation) -> Result<(), VerifierError> {
    let verdicts = verifier(case).verify_open(&subject(case), vec![open.clone()]);
    verdicts.into_iter().next().unwrap().map(drop)
}

#[test]
fn an_open_presentation_matches_byte_for_byte_and_needs_no_key() {
    for case in cases("open") {
        let holder = holder(&case, 0);
        let mut about = holder.for_subject(subject(&case), &Ledger::new()).unwrap();
        let message = Digest(array(&case, "message"));
        let any = &mut ChaCha20Rng::from_seed([1; 32]);
        for _ in 0..small(&case, "index") {
            let _ = about.present(&message, any).unwrap();
        }
        let step = scripted(&case, "randomness", |rng| about.present_openly(&message, rng));
        let sent = step.unwrap().commit(&mut Ledger::new()).unwrap();
        assert_eq!(sent, bytes(&case, "showing"));
        let open = shown(&case);
        assert_eq!((open.check(&subject(&case)), accepted(&case, &open)), (Ok(()), Ok(())));
        // Nothing of it can be refuted, and with another V the proof is invalid for everybody.
        let refuted = verifier(&case).refute(&subject(&case), &open, &message, any);
        assert_eq!(refuted, Err(RefutationError::Right));
        let other = OpenPresentation { v: Element::base(), ..open.clone() };
        let invalid = Err(VerifierError::Proof);
        assert_eq!((other.check(&subject(&case)), accepted(&case, &other)), (invalid, invalid));
        // Nor does it hold in another period, whose tags are others.
        let next = next_period(&case);
        let elsewhere = verifier(&case).verify_open(&next, vec![open.clone()]).pop().unwrap();
        assert_eq!(elsewhere.map(drop), Err(VerifierError::Epoch));
        assert_eq!(open.check(&next), Err(VerifierError::Epoch));
    }
}

/// Its proof holds for its V, and nobody could refute that one: V + C' is the identity.
#[test]
fn an_open_presentation_that_cannot_be_refuted_is_invalid() {
    for case in cases("open_bad_vanishing") {
        let (open, about) = (shown(&case), Digest(array(&case, "about")));
        let rng = &mut ChaCha20Rng::from_seed([1; 32]);
        let refuted = verifier(&case).refute(&subject(&case), &open, &about, rng);
        assert_eq!(refuted, Err(RefutationError::NotProven));
        assert_eq!(open.check(&subject(&case)), Err(VerifierError::Proof));
        assert_eq!(accepted(&case, &open), Err(VerifierError::Proof));
    }
}

#[test]
fn a_refutation_matches_byte_for_byte_and_convinces_everybody() {
    for case in cases("refutation") {
        let (open, about) = (shown(&case), Digest(array(&case, "about")));
        // The proof alone is right: only the verifier knows better.
        assert_eq!(open.check(&subject(&case)), Ok(()));
        assert_eq!(accepted(&case, &open), Err(VerifierError::Proof));
        let made = scripted(&case, "randomness", |rng| {
            verifier(&case).refute(&subject(&case), &open, &about, rng).unwrap()
        });
        let bytes = bytes(&case, "refutation");
        assert_eq!(made.to_bytes(), bytes);
        assert_eq!(
            (bytes.len(), Refutation::from_bytes(&bytes)),
            (Refutation::LENGTH, Ok(made.clone()))
        );
        assert_eq!(made.verify(&subject(&case), &open, &about), Ok(()));
        let elsewhere = made.verify(&next_period(&case), &open, &about);
        assert_eq!(elsewhere, Err(VerifierError::Epoch));
    }
}

#[test]
fn false_refutations_convince_nobody() {
    for (name, case) in bad("refutation", "equation place encoding") {
        let (open, about) = (shown(&case), Digest(array(&case, "about")));
        let refuted = Refutation::from_bytes(&bytes(&case, "refutation"))
            .map_err(VerifierError::from)
            .and_then(|made| made.verify(&subject(&case), &open, &about));
        assert_eq!(format!("{:?}", refuted.unwrap_err()), text(&case, "error"), "{name}");
    }
}
