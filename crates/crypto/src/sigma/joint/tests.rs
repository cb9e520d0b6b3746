//! Joint proofs hold one by one, each only in its own context.

use super::*;
use crate::sigma::{Claim, check_all};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

const LABEL: &str = "alpheus/test-together/v1";
const OWN: OwnCounts = OwnCounts { secrets: 1, equations: 1 };

/// own·G + shared·H, and shared·G: the second equation is the same in all.
fn statement(field: u8, images: &[Element; 2]) -> Statement {
    let mut s = Statement::new(LABEL, &[&[field]]);
    let (own, shared) = (s.secret(), s.secret());
    let [g, h] = [Element::base(), Element::second_base()].map(|base| s.element(&base));
    let [one, same] = images.map(|image| s.element(&image));
    s.equation(one, &[(1, own, g), (1, shared, h)]);
    s.equation(same, &[(1, shared, g)]);
    s
}

struct JointProofs {
    images: Vec<[Element; 2]>,
    proofs: Vec<(Proof, JointContext)>,
}

fn joint_proofs(count: u32, wrong: Option<usize>, rng: &mut ChaCha20Rng) -> JointProofs {
    let shared = SecretScalar::random(rng);
    let owned: Vec<SecretScalar> = (0..count).map(|_| SecretScalar::random(rng)).collect();
    let (g, h) = (Element::base(), Element::second_base());
    let image = |own: &SecretScalar| {
        [Element::combine(&[(own, &g), (&shared, &h)], &[], &[]), g.times(&shared)]
            .map(Result::unwrap)
    };
    let images: Vec<[Element; 2]> = owned.iter().map(image).collect();
    let statements: Vec<Statement> = images.iter().map(|images| statement(1, images)).collect();
    let other = SecretScalar::random(rng);
    let joined = statements.iter().zip(&owned).enumerate().map(|(at, (statement, own))| {
        let own = if wrong == Some(at) { &other } else { own };
        JointStatement { statement, witness: vec![own, &shared], openings: Vec::new() }
    });
    let proofs = prove_together(&joined.collect::<Vec<_>>(), OWN, rng).unwrap();
    JointProofs { images, proofs }
}

fn claim(field: u8, images: &[Element; 2], (proof, beside): &(Proof, JointContext)) -> Claim {
    Claim::joint(statement(field, images), proof.clone(), beside).unwrap()
}

#[test]
fn each_of_several_joint_proofs_is_checked_alone() {
    let rng = &mut ChaCha20Rng::from_seed([1; 32]);
    for count in [1, 2, 5] {
        let JointProofs { images, proofs } = joint_proofs(count, None, rng);
        let claims = images.iter().zip(&proofs).map(|(images, proof)| claim(1, images, proof));
        let claims: Vec<Claim> = claims.collect();
        assert!(claims.iter().all(Claim::holds) && check_all(&claims).is_ok());
        // Shared secrets are proven once.
        assert!(proofs.iter().all(|(proof, _)| proof.commitments[1] == proofs[0].0.commitments[1]));
        assert!(proofs.iter().all(|(proof, _)| proof.responses[1] == proofs[0].0.responses[1]));
    }
}

#[test]
fn an_invalid_proof_does_not_invalidate_the_others() {
    let JointProofs { images, proofs } =
        joint_proofs(3, Some(1), &mut ChaCha20Rng::from_seed([2; 32]));
    let holds = images.iter().zip(&proofs).map(|(images, proof)| claim(1, images, proof).holds());
    assert_eq!(holds.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_joint_proof_holds_only_in_its_own_context() {
    let rng = &mut ChaCha20Rng::from_seed([3; 32]);
    let JointProofs { images, proofs } = joint_proofs(3, None, rng);
    let strangers = joint_proofs(3, None, rng).proofs;
    let (proof, beside) = &proofs[1];
    let holds = |images, beside: JointContext| claim(1, images, &(proof.clone(), beside)).holds();
    assert!(holds(&images[1], beside.clone()));
    assert!(!holds(&images[0], beside.clone()), "another's statement");
    assert!(!claim(2, &images[1], &proofs[1]).holds(), "another field");
    for position in [0, 2] {
        assert!(
            !holds(&images[1], JointContext { position, ..beside.clone() }),
            "position {position}"
        );
    }
    let mut swapped = beside.clone();
    swapped.others.swap(0, 1);
    assert!(!holds(&images[1], swapped));
    let mut fewer = beside.clone();
    fewer.others.pop();
    assert!(!holds(&images[1], fewer));
    assert!(!holds(&images[1], strangers[1].1.clone()));
    let statement = statement(1, &images[1]);
    let far = JointContext { position: 3, ..beside.clone() };
    assert!(Claim::joint(statement, proof.clone(), &far).is_none());
    // A joint proof does not hold without its context.
    assert!(!Claim::new(self::statement(1, &images[1]), proof.clone()).holds());
}

#[test]
fn witnesses_of_the_wrong_length_make_no_proof() {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let secret = SecretScalar::random(rng);
    let images = [Element::base(), Element::second_base()];
    let statement = statement(1, &images);
    let joined = |witness| JointStatement { statement: &statement, witness, openings: Vec::new() };
    let refused = prove_together(&[joined(vec![&secret])], OWN, rng).err();
    assert_eq!(refused, Some(ProvingError::WitnessLength));
    assert_eq!(prove_together(&[], OWN, rng).err(), Some(ProvingError::WitnessLength));
}
