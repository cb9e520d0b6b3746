//! With `Neighbours`, r honest members of an opening set may be cut off unnoticed. Each
//! controller discounts them in populations, quorums and noise.

use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::mask::cuts;
use alpheus_encrypted_stream::messages::{Opening, ServiceMessage};
use alpheus_encrypted_stream::noise::generator;
use alpheus_policy::plan::Fraction;

use crate::protocol::evil::Draft;
use crate::protocol::neighbours::{ALL, CUTS, Sparse, all_but, honest, setup};
use crate::protocol::noise::Noise;
use crate::protocol::world::{Setup, window};

/// The first member's answer to an S without the last `missing` members.
fn answer(sparse: &mut Sparse, missing: u32) -> Result<Opening, WindowRefusalError> {
    let draft = sparse.evil.gather();
    sparse.tokens(&draft, honest);
    let out: Vec<u32> = (ALL - missing..ALL).collect();
    let set = sparse.set(&draft, &all_but(&out), honest);
    sparse.evil.opening(0, &set)
}

/// Nobody may collude here, so only the r members are missing from the population.
#[test]
fn controllers_that_may_be_cut_off_do_not_count_as_population() {
    let minimum = ALL - 2 - CUTS.cut_off;
    let enough = &mut Sparse::of(Setup { minimum, ..setup() });
    assert!(answer(enough, 2).is_ok());
    let few = &mut Sparse::of(Setup { minimum: minimum + 1, ..setup() });
    let refused = WindowRefusalError::PopulationTooSmall { counted: minimum, needed: minimum + 1 };
    assert_eq!(answer(few, 2).map(|_| ()), Err(refused));
}

/// Any number of members may drop out here, so only the majority binds: two sets that share
/// an honest controller which is cut off in neither.
#[test]
fn controllers_that_may_be_cut_off_count_twice_against_a_quorum() {
    let dropout = Fraction { numerator: 9, denominator: 10 };
    let quorum = ALL / 2 + 1 + CUTS.cut_off;
    assert_eq!(quorum, cuts::quorum(ALL, 0, CUTS.cut_off));
    let few = &mut Sparse::of(Setup { dropout, ..setup() });
    let refused = WindowRefusalError::BelowQuorum { held: quorum - 1, needed: quorum };
    assert_eq!(answer(few, ALL - quorum + 1).map(|_| ()), Err(refused));
    // One more makes a quorum, even with too few of the member's own picks in it.
    let enough = &mut Sparse::of(Setup { dropout, ..setup() });
    assert!(!matches!(answer(enough, ALL - quorum), Err(WindowRefusalError::BelowQuorum { .. })));
}

#[test]
fn shares_of_noise_suffice_without_controllers_that_may_be_cut_off() {
    // Wide enough that two different draws are almost never equal.
    let mut noise = Noise::new(3);
    (noise.micro_epsilon, noise.budget.window_micro_epsilon) = (2_500, 2_500);
    let noise = Some(noise);
    let mut sparse = Sparse::of(Setup { noise, seed: 2, ..setup() });
    let draft = sparse.evil.gather();
    let tokens = sparse.tokens(&draft, honest);
    let all = all_but(&[39]);
    let set = sparse.set(&draft, &all, honest);
    let openings: Vec<Opening> =
        all.iter().map(|p| sparse.evil.opening(*p, &set).unwrap()).collect();
    let opened = sparse.sum(&all, &tokens, &openings.iter().collect::<Vec<_>>());
    let noise = opened[0].wrapping_sub(sparse.truth(&all)[0]).cast_signed();
    let drawn = |floor| shares(&sparse, &draft, &set, &all, floor);
    let floor = ALL - 1 - CUTS.cut_off;
    assert_eq!(noise, -drawn(floor));
    // Two floors may draw the same in one window, but not in twenty.
    let differs = |number| {
        let draft = Draft { window: window(number), ..draft.clone() };
        let drawn = |floor| shares(&sparse, &draft, &set, &all, floor);
        drawn(floor) != drawn(ALL - 1)
    };
    assert!((0..20).any(differs), "another floor draws otherwise");
}

/// What these members draw from their secrets if `floor` of them must suffice.
fn shares(
    sparse: &Sparse,
    draft: &Draft,
    set: &ServiceMessage,
    members: &[u32],
    floor: u32,
) -> i64 {
    let ServiceMessage::OpeningSet(signed) = set else { panic!() };
    let ServiceMessage::Introduction { membership, .. } = sparse.introduction(draft, 0, honest)
    else {
        panic!()
    };
    let world = &sparse.evil.world;
    let of = |p: &u32| {
        let seed = [world.seats[*p as usize].0; 32];
        let secret = derive::<32>(&seed, labels::IDENTITY_NOISE, &[]);
        let (membership, digest) = (membership.digest(), signed.digest());
        let mut generator =
            generator(&secret, &world.id(), draft.window, &membership, Some(&digest));
        let shares = world.announced.shares(floor).unwrap().unwrap();
        shares.draw(&mut generator).expose()[0].cast_signed()
    };
    members.iter().map(of).sum()
}
