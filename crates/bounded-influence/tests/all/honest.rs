//! Windows in which nobody lies.

use crate::world::{NOISE, Window, World, digest, one_cell, three_cells};
use alpheus_bounded_influence::check::RowError;
use alpheus_bounded_influence::commit::{CommitError, Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::MaskedShare;
use alpheus_bounded_influence::share::Share;
use alpheus_crypto::prf::{PadDigest, Prf};
use alpheus_crypto::secret::Secret;
use proptest::prelude::*;

#[test]
fn a_row_is_the_sum_of_the_owners_values_less_noise() {
    let world = World::new(&three_cells(), 3, 1);
    let owners: [&[&[i128]]; 3] = [&[&[3, 15, 75], &[0, 0, 0]], &[&[2, -4, 8]], &[]];
    let window = Window::new(&world, &owners, &[1, -2, 3]);
    let row = world.checker.row(&[0, 1, 2], &window.opened(&world), None).unwrap();
    assert_eq!((row.values(), row.owners()), (&[5 - 3, 11 + 6, 83 - 9][..], 3));
}

#[test]
fn members_that_are_not_opened_leave_no_trace() {
    let mut world = World::new(&one_cell(), 4, 2);
    world.opened = vec![0, 2, 3];
    let window = Window::new(&world, &[&[&[7]], &[&[50]], &[&[-20]], &[&[100]]], &[NOISE.into()]);
    let row = world.checker.row(&world.opened, &window.opened(&world), None).unwrap();
    assert_eq!((row.values(), row.members()), (&[87 - 9][..], &[0, 2, 3][..]));
}

#[test]
fn a_lone_controller_opens_by_itself() {
    let world = World::new(&one_cell(), 1, 3);
    let window = Window::new(&world, &[&[&[7], &[8]]], &[-3]);
    let row = world.checker.row(&[0], &window.opened(&world), None).unwrap();
    assert_eq!(row.values(), [18]);
}

#[test]
fn only_the_consumer_opens_a_sealed_row() {
    let mut world = World::new(&one_cell(), 2, 4);
    world.sealed = true;
    let window = Window::new(&world, &[&[&[7]], &[&[8]]], &[0]);
    let opened = window.opened(&world);
    assert_eq!(world.checker.row(&[0, 1], &opened, None), Err(RowError::Cell { cell: 0 }));
    let mut pads = Share::zero(1);
    (0..2).for_each(|p| pads.add(&world.pad(p)));
    let row = world.checker.row(&[0, 1], &opened, Some(&pads.dangerous_reveal()));
    assert_eq!(row.unwrap().values(), [15]);
    // With the pad of one controller only, nobody opens it.
    let one = world.pad(0).dangerous_reveal();
    assert!(world.checker.row(&[0, 1], &opened, Some(&one)).is_err());
}

#[test]
fn the_same_request_gets_the_same_bytes_and_another_gets_others() {
    let mut world = World::new(&one_cell(), 2, 5);
    let first = world.contribution(0, &[&[7], &[8]]);
    assert_eq!(world.contribution(0, &[&[7], &[8]]), first);
    let other = world.contribution(0, &[&[7], &[9]]);
    // No proof of one statement is in another, not even of an owner whose values are the same.
    let proofs = |c: &alpheus_bounded_influence::messages::Contribution| {
        c.owners.iter().map(|one| one.proof.clone()).collect::<Vec<_>>()
    };
    assert!(proofs(&other).iter().all(|proof| !proofs(&first).contains(proof)));
    world.at(6);
    let later = world.contribution(0, &[&[7], &[8]]);
    let same = |a: &[u8], b: &[u8]| a[..64] == b[..64];
    assert!(!same(&proofs(&later)[0], &proofs(&first)[0]));
    assert!(
        later.owners.iter().all(|one| {
            first.owners.iter().all(|earlier| earlier.commitments != one.commitments)
        })
    );
}

#[test]
fn what_is_out_of_bounds_is_not_committed_to() {
    let committer = Committer::new(three_cells(), Secret::from_bytes([1; 32]));
    let scope = World::new(&three_cells(), 1, 7).scope;
    let owner = digest(&[b"owner"]);
    let refused = |values: &[i128]| {
        let owners = [OwnerValues::new(owner, values.to_vec())];
        committer.owners(&scope, 0, &owners).err()
    };
    // Cells out of bounds, sums that their count does not allow, squares that their sum does not allow.
    for values in [
        [4, 0, 0],
        [-1, 0, 0],
        [3, 16, 75],
        [1, 6, 30],
        [1, -3, 9],
        [1, 5, 26],
        [0, 0, 1],
        [1, 0, i128::MAX],
    ] {
        assert_eq!(refused(&values), Some(CommitError::OutOfBounds { owner }), "{values:?}");
    }
    assert_eq!(refused(&[1, 5]), Some(CommitError::Cells));
    assert_eq!(refused(&[1, 5, 25]), None);
    let twice = || OwnerValues::new(owner, vec![1, 1, 1]);
    let twice = committer.owners(&scope, 0, &[twice(), twice()]);
    assert_eq!(twice.err(), Some(CommitError::Twice { owner }));
    let noise = Noise::new(vec![0, 4, 0]);
    let noise = committer.noise(&scope, 0, &owner, &noise);
    assert_eq!(noise.err(), Some(CommitError::NoiseOutOfRange));
}

#[test]
fn pads_are_bytes_of_the_function_modulo_the_order() {
    let (key, digest) = (Secret::from_bytes([9; 16]), PadDigest::new(&digest(&[b"pad"])));
    let pad = Share::pad(2, &Prf::new(&key), &digest).dangerous_reveal();
    let again = Share::pad(2, &Prf::new(&key), &digest).dangerous_reveal();
    assert_eq!(pad, again);
    let all: Vec<_> = pad.values.iter().chain(&pad.blindings).map(|s| s.to_bytes()).collect();
    assert!((1..4).all(|at| all[..at].iter().all(|earlier| *earlier != all[at])));
    assert_ne!(pad, MaskedShare::zero(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever owners have and whichever members are opened, the row is their sum.
    #[test]
    fn any_values_in_bounds_add_up(
        values in prop::collection::vec(prop::collection::vec(-20_i128..=100, 0..3), 2..5),
        noise in -3_i128..=3,
        left_out in 0_u32..5,
    ) {
        let mut world = World::new(&one_cell(), values.len() as u32, 8);
        world.opened.retain(|p| *p != left_out || values.len() == 2);
        let cells: Vec<Vec<&[i128]>> =
            values.iter().map(|own| own.iter().map(std::slice::from_ref).collect()).collect();
        let owners: Vec<&[&[i128]]> = cells.iter().map(Vec::as_slice).collect();
        let window = Window::new(&world, &owners, &[noise]);
        let row = world.checker.row(&world.opened, &window.opened(&world), None).unwrap();
        let truth: i128 =
            world.opened.iter().map(|p| values[*p as usize].iter().sum::<i128>() - noise).sum();
        prop_assert_eq!(row.values(), [truth]);
    }
}
