//! Windows in which nobody lies.

use crate::world::{NOISE, Window, World, digest, one_cell, three_cells};
use alpheus_bounded_influence::check::{Checker, Member, RowError};
use alpheus_bounded_influence::commit::{CommitError, Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::{Contribution, MaskedShare};
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
    let world = World::sealed(&one_cell(), 2, 4);
    let window = Window::new(&world, &[&[&[7]], &[&[8]]], &[0]);
    let opened = window.opened(&world);
    // As if it were no sealed row; and with no pad, or that of a row with more cells.
    let plain = Checker::new(one_cell()).row(&[0, 1], &opened, None);
    assert_eq!(plain, Err(RowError::Cell { cell: 0 }));
    for pad in [None, Some(&MaskedShare::zero(2))] {
        assert_eq!(world.checker.row(&[0, 1], &opened, pad), Err(RowError::Pad));
    }
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
    let proofs =
        |c: &Contribution| c.owners.iter().map(|one| one.proof.clone()).collect::<Vec<_>>();
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

/// A device that reports too much costs its owner the window. Its controller is honest, and holds.
#[test]
fn an_owner_out_of_bounds_costs_its_controller_nothing() {
    let world = World::new(&one_cell(), 1, 9);
    let name = |at: u8| digest(&[b"owner", &[at]]);
    let owner = |(at, value): (u8, i128)| OwnerValues::new(name(at), vec![value]);
    let owners = [(0, 8), (1, 101), (2, -21), (3, 9)].map(owner).into();
    let committer = &world.committers[0];
    let admitted = committer.admit(owners).unwrap();
    assert_eq!((admitted.counted(), admitted.left_out()), (2, &[name(1), name(2)][..]));
    let (owners, sum) = committer.owners(&world.scope, 0, &admitted).unwrap();
    let share = world.masks(0, |masks| masks.masked(sum, &world.scope));
    let contribution = Contribution { scope: world.scope, controller: 0, share, owners };
    // M counts what its controller counted.
    let member = Member { controller: 0, counted: admitted.counted(), listed: 4 };
    let found = world.check(&[(member, world.sign(0, &contribution))]);
    assert_eq!((found.bounded.len(), found.faulty), (1, vec![]));
}

#[test]
fn what_is_out_of_bounds_is_not_committed_to() {
    let committer = Committer::new(three_cells(), Secret::from_bytes([1; 32]));
    let world = World::new(&one_cell(), 1, 7);
    let owner = digest(&[b"owner"]);
    let admit = |values: &[i128]| committer.admit(vec![OwnerValues::new(owner, values.to_vec())]);
    let is_left_out = |values: &[i128]| admit(values).unwrap().left_out() == [owner];
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
        assert!(is_left_out(&values), "{values:?}");
    }
    assert_eq!(admit(&[1, 5]).err(), Some(CommitError::Cells));
    assert!(!is_left_out(&[1, 5, 25]));
    let twice = || OwnerValues::new(owner, vec![1, 1, 1]);
    let twice = committer.admit(vec![twice(), twice()]);
    assert_eq!(twice.err(), Some(CommitError::Twice { owner }));
    // What was checked under other terms is not committed to.
    let other = world.committers[0].owners(&world.scope, 0, &admit(&[1, 5, 25]).unwrap());
    assert_eq!(other.err(), Some(CommitError::Terms));
}

/// No draw keeps an honest controller from opening.
#[test]
fn noise_out_of_range_becomes_its_end() {
    let world = World::new(&one_cell(), 1, 10);
    assert_eq!(Noise::new(&one_cell(), &[0, 0]).err(), Some(CommitError::Cells));
    for (drawn, kept) in [(4, 3), (-400, -3), (2, 2)] {
        let window = Window::new(&world, &[&[&[7]]], &[drawn]);
        let row = world.checker.row(&[0], &window.opened(&world), None).unwrap();
        assert_eq!(row.values(), [7 - kept]);
    }
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
