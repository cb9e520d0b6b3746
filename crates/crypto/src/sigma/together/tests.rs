//! What belongs together holds together, each part alone, and nowhere else.

use super::*;
use crate::sigma::{Claim, check_all};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const LABEL: &str = "alpheus/test-together/v1";
const OWN: Own = Own { secrets: 1, equations: 1 };

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

struct Shown {
    images: Vec<[Element; 2]>,
    proofs: Vec<(Proof, Beside)>,
}

fn shown(many: u32, wrong: Option<usize>, rng: &mut ChaCha20Rng) -> Shown {
    let shared = SecretScalar::random(rng);
    let owned: Vec<SecretScalar> = (0..many).map(|_| SecretScalar::random(rng)).collect();
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
        Joined { statement, witness: vec![own, &shared], openings: Vec::new() }
    });
    let proofs = prove_together(&joined.collect::<Vec<_>>(), OWN, rng).unwrap();
    Shown { images, proofs }
}

fn claim(field: u8, images: &[Element; 2], (proof, beside): &(Proof, Beside)) -> Claim {
    Claim::beside(statement(field, images), proof.clone(), beside).unwrap()
}

#[test]
fn each_of_what_was_proven_together_is_checked_alone() {
    let rng = &mut ChaCha20Rng::from_seed([1; 32]);
    for many in [1, 2, 5] {
        let Shown { images, proofs } = shown(many, None, rng);
        let claims = images.iter().zip(&proofs).map(|(images, proof)| claim(1, images, proof));
        let claims: Vec<Claim> = claims.collect();
        assert!(claims.iter().all(Claim::holds) && check_all(&claims).is_ok());
        // What is shared is proven once.
        assert!(proofs.iter().all(|(proof, _)| proof.commitments[1] == proofs[0].0.commitments[1]));
        assert!(proofs.iter().all(|(proof, _)| proof.responses[1] == proofs[0].0.responses[1]));
    }
}

#[test]
fn a_part_that_is_wrong_says_nothing_of_the_others() {
    let Shown { images, proofs } = shown(3, Some(1), &mut ChaCha20Rng::from_seed([2; 32]));
    let holds = images.iter().zip(&proofs).map(|(images, proof)| claim(1, images, proof).holds());
    assert_eq!(holds.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_part_holds_at_its_place_beside_the_others_and_nowhere_else() {
    let rng = &mut ChaCha20Rng::from_seed([3; 32]);
    let Shown { images, proofs } = shown(3, None, rng);
    let strangers = shown(3, None, rng).proofs;
    let (proof, beside) = &proofs[1];
    let holds = |images, beside: Beside| claim(1, images, &(proof.clone(), beside)).holds();
    assert!(holds(&images[1], beside.clone()));
    assert!(!holds(&images[0], beside.clone()), "another's statement");
    assert!(!claim(2, &images[1], &proofs[1]).holds(), "another field");
    for place in [0, 2] {
        assert!(!holds(&images[1], Beside { place, ..beside.clone() }), "place {place}");
    }
    let mut turned = beside.clone();
    turned.others.swap(0, 1);
    assert!(!holds(&images[1], turned));
    let mut fewer = beside.clone();
    fewer.others.pop();
    assert!(!holds(&images[1], fewer));
    assert!(!holds(&images[1], strangers[1].1.clone()));
    let statement = statement(1, &images[1]);
    let far = Beside { place: 3, ..beside.clone() };
    assert!(Claim::beside(statement, proof.clone(), &far).is_none());
    // One that was made with others is none by itself, and the other way round.
    assert!(!Claim::new(self::statement(1, &images[1]), proof.clone()).holds());
}

#[test]
fn witnesses_that_do_not_fit_make_no_proof() {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let secret = SecretScalar::random(rng);
    let images = [Element::base(), Element::second_base()];
    let statement = statement(1, &images);
    let joined = |witness| Joined { statement: &statement, witness, openings: Vec::new() };
    let refused = prove_together(&[joined(vec![&secret])], OWN, rng).err();
    assert_eq!(refused, Some(NotProven::WitnessLength));
    assert_eq!(prove_together(&[], OWN, rng).err(), Some(NotProven::WitnessLength));
}
