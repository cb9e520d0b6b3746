//! What a controller can try, one by one. Each is refused with its own error.

use crate::world::{Window, World, cell, one_cell, three_cells};
use alpheus_bounded_influence::check::{
    Checker, FaultError, FaultyError, Member, OpeningsError, RoundError, RowError,
};
use alpheus_bounded_influence::commit::Committer;
use alpheus_bounded_influence::messages::{Contribution, MaskedShare};
use alpheus_bounded_influence::terms::{Relation, Terms};
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::secret::Secret;

/// A window with two controllers, of which the one at 1 has two owners.
fn window(world: &World) -> Window {
    Window::new(world, &[&[&[7]], &[&[8], &[9]]], &[0])
}

/// What the checker says of the contribution at 1.
fn fault(world: &World, contribution: &Contribution) -> Option<FaultError> {
    let signed = world.sign(1, contribution);
    let member = World::member(1, contribution.owners.len());
    let found = world.check(&[(member, signed)]);
    assert_eq!(found.bounded.len() + found.faulty.len(), 1);
    found.faulty.first().map(|faulty| {
        assert_eq!(faulty.controller, 1);
        faulty.fault
    })
}

/// A committer for which these are the terms.
fn lax(terms: Terms) -> Committer {
    Committer::new(terms, Secret::from_bytes([66; 32]))
}

#[test]
fn a_garbage_share_opens_no_row() {
    let world = World::new(&one_cell(), 2, 10);
    let garbage = PublicScalar::from_hash("alpheus/test-garbage/v1", &[]);
    for of_values in [true, false] {
        let mut window = window(&world);
        let share = &mut window.contributions[1].share;
        let scalars = if of_values { &mut share.values } else { &mut share.blindings };
        scalars[0] = garbage;
        window.open(&world);
        let row = world.checker.row(&[0, 1], &window.opened(&world), None);
        assert_eq!(row, Err(RowError::Cell { cell: 0 }));
    }
}

#[test]
fn a_share_that_differs_from_its_commitments_opens_no_row() {
    let world = World::new(&three_cells(), 2, 11);
    for (of_values, cell) in [(true, 0), (true, 2), (false, 1)] {
        let owners: [&[&[i128]]; 2] = [&[&[1, 5, 25]], &[&[2, 3, 9]]];
        let mut window = Window::new(&world, &owners, &[0, 0, 0]);
        let share = &mut window.contributions[1].share;
        let scalars = if of_values { &mut share.values } else { &mut share.blindings };
        scalars[cell] = scalars[cell].plus(&PublicScalar::of(1));
        window.open(&world);
        let row = world.checker.row(&[0, 1], &window.opened(&world), None);
        assert_eq!(row, Err(RowError::Cell { cell }));
    }
}

#[test]
fn an_opening_that_differs_from_its_noise_opens_no_row() {
    let world = World::new(&one_cell(), 2, 12);
    let mut window = window(&world);
    let value = &mut window.openings[1].share.values[0];
    *value = value.plus(&PublicScalar::of(1));
    let row = world.checker.row(&[0, 1], &window.opened(&world), None);
    assert_eq!(row, Err(RowError::Cell { cell: 0 }));
}

#[test]
fn commitments_without_proofs_are_refused() {
    let world = World::new(&one_cell(), 2, 13);
    let honest = world.contribution(1, &[&[8], &[9]]);
    assert_eq!(fault(&world, &honest), None);
    let mut none = honest.clone();
    none.owners[0].proof.clear();
    assert_eq!(fault(&world, &none), Some(FaultError::Range));
    let mut zeros = honest.clone();
    zeros.owners[0].proof.fill(0);
    assert_eq!(fault(&world, &zeros), Some(FaultError::Range));
    let mut one_for_both = honest.clone();
    one_for_both.owners[1].proof = honest.owners[0].proof.clone();
    assert_eq!(fault(&world, &one_for_both), Some(FaultError::Range));
    let mut fewer = honest;
    fewer.owners[1].commitments.clear();
    assert_eq!(fault(&world, &fewer), Some(FaultError::Order));
}

#[test]
fn anothers_commitments_are_refused() {
    let world = World::new(&one_cell(), 2, 14);
    let of_another = world.contribution(0, &[&[7]]);
    let mut copied = world.contribution(1, &[&[8]]);
    copied.owners = of_another.owners.clone();
    assert_eq!(fault(&world, &copied), Some(FaultError::Range));
    // Nor do those of one's own last window hold in this one.
    let mut later = World::new(&one_cell(), 2, 14);
    later.at(15);
    let mut old = later.contribution(1, &[&[8]]);
    old.owners = world.contribution(1, &[&[8]]).owners;
    assert_eq!(fault(&later, &old), Some(FaultError::Range));
}

#[test]
fn a_message_of_another_round_or_sender_names_nobody() {
    let mut world = World::new(&one_cell(), 2, 16);
    let (old, other) = (world.contribution(1, &[&[8]]), world.contribution(0, &[&[8]]));
    let old_opening = world.opening(1, &world.sign(1, &old).digest(), &[0]);
    let placed = |world: &World, contribution: &Contribution| {
        let signed = [(World::member(1, 1), world.sign(1, contribution))];
        world.check(&signed).misplaced
    };
    assert!(placed(&world, &old).is_empty());
    assert_eq!(placed(&world, &other), [1]);
    world.at(17);
    assert_eq!(placed(&world, &old), [1]);
    let new = [world.contribution(0, &[&[7]]), world.contribution(1, &[&[8]])];
    let bounded = world.bounded(&new);
    let opening = |p: u32| world.opening(p, &world.sign(p, &new[p as usize]).digest(), &[0]);
    let (first, second) = (opening(0), opening(1));
    let misplaced = |second| {
        world.open(&bounded, &[first.clone(), second]).err().map_or(vec![], |e| e.misplaced)
    };
    assert!(misplaced(second.clone()).is_empty());
    assert_eq!(misplaced(old_opening), [1]);
    // Of another contribution of the same controller, or for another set.
    assert_eq!(misplaced(world.opening(1, &world.scope.plan, &[0])), [1]);
    let mut other_set = second;
    other_set.opening_set = world.scope.plan;
    assert_eq!(misplaced(other_set), [1]);
}

#[test]
fn values_moved_between_cells_open_no_row() {
    // Two sums with the same bounds: what is moved stays in both.
    let terms = Terms::new(&[cell(-20, 100), cell(-20, 100)], &[], 10, 2).unwrap();
    let world = World::new(&terms, 2, 18);
    let mut window = Window::new(&world, &[&[&[1, 2]], &[&[30, 40]]], &[0, 0]);
    let share = &mut window.contributions[1].share;
    share.values[0] = share.values[0].plus(&PublicScalar::of(5));
    share.values[1] = share.values[1].minus(&PublicScalar::of(5));
    window.open(&world);
    let row = world.checker.row(&[0, 1], &window.opened(&world), None);
    assert_eq!(row, Err(RowError::Cell { cell: 0 }));
    // Nor can the commitments of two cells change places.
    let mut swapped = world.contribution(1, &[&[30, 40]]);
    swapped.owners[0].commitments.reverse();
    assert_eq!(fault(&world, &swapped), Some(FaultError::Range));
}

#[test]
fn values_moved_between_owners_are_out_of_bounds() {
    let world = World::new(&one_cell(), 2, 19);
    // 60 and 90 as 20 and 130: the sum is the same, but one owner exceeds its bounds.
    let above = lax(Terms::new(&[cell(20, 140)], &[], 10, 2).unwrap());
    let moved = world.contribution_by(&above, 1, &[&[20], &[130]]);
    assert_eq!(fault(&world, &moved), Some(FaultError::Range));
}

#[test]
fn negative_huge_and_wrapped_values_are_refused() {
    let world = World::new(&one_cell(), 2, 20);
    let forged = |lowest: i128, highest: i128, value: i128| {
        let terms = Terms::new(&[cell(lowest, highest)], &[], 10, 2).unwrap();
        fault(&world, &world.contribution_by(&lax(terms), 1, &[&[value]]))
    };
    assert_eq!(forged(-100, 20, -21), Some(FaultError::Range));
    assert_eq!(forged(0, 120, 101), Some(FaultError::Range));
    assert_eq!(forged(0, 1 << 60, 1 << 59), Some(FaultError::Range));
    // y + 2^64 and y + 2^100: what words of 64 bits would not tell from y.
    let wrapped = (1 << 64) + 7;
    assert_eq!(forged(wrapped - 60, wrapped + 60, wrapped), Some(FaultError::Range));
    assert_eq!(forged((1 << 100) - 60, (1 << 100) + 60, 1 << 100), Some(FaultError::Range));
    // In bounds of other terms, and of ours: still refused, since the forms differ.
    assert_eq!(forged(-21, 99, 50), Some(FaultError::Range));
    assert_eq!(forged(-20, 100, 50), None);
}

#[test]
fn sums_and_squares_that_a_count_does_not_allow_are_refused() {
    let world = World::new(&three_cells(), 2, 21);
    let forged = |lowest: i64, highest: i64, values: [i128; 3]| {
        let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest, highest };
        let cells = [cell(0, 3), cell(-24, 24), cell(0, 192)];
        let terms = Terms::new(&cells, &[relation], 10, 2).unwrap();
        fault(&world, &world.contribution_by(&lax(terms), 1, &[&values]))
    };
    // Each cell is within its own bounds, and one event would be out of −2 ..= 5.
    assert_eq!(forged(-8, 8, [1, 6, 36]), Some(FaultError::Range));
    assert_eq!(forged(-8, 8, [1, -3, 9]), Some(FaultError::Range));
    assert_eq!(forged(-8, 8, [2, 3, 60]), Some(FaultError::Range));
    assert_eq!(forged(-2, 5, [2, 3, 9]), None);
}

#[test]
fn an_owner_twice_is_refused() {
    let world = World::new(&one_cell(), 2, 22);
    let contribution = world.contribution(1, &[&[8], &[9]]);
    let says = |member: Member, contribution: &Contribution| {
        let signed = [(member, world.sign(1, contribution))];
        world.check(&signed).faulty
    };
    let owners = [FaultyError { controller: 1, fault: FaultError::Owners }];
    let member = |counted, listed| Member { controller: 1, counted, listed };
    assert_eq!(says(member(2, 2), &contribution), []);
    // More commitments than M counts, and fewer.
    assert_eq!(says(member(1, 2), &contribution), owners);
    assert_eq!(says(member(3, 3), &contribution), owners);
    // The same commitment in the place of two owners; both in another order.
    let order = [FaultyError { controller: 1, fault: FaultError::Order }];
    let mut twice = contribution.clone();
    twice.owners[1] = twice.owners[0].clone();
    assert_eq!(says(member(2, 2), &twice), order);
    let mut turned = contribution;
    turned.owners.reverse();
    assert_eq!(says(member(2, 2), &turned), order);
}

#[test]
fn noise_out_of_range_fails_the_window_and_names_its_controller() {
    let world = World::new(&one_cell(), 2, 23);
    let window = window(&world);
    let bounded = world.bounded(&window.contributions);
    let digest = world.sign(1, &window.contributions[1]).digest();
    let mut wide = cell(-20, 100);
    wide.noise = 50;
    let wide = lax(Terms::new(&[wide], &[], 10, 2).unwrap());
    let mut openings = window.openings.clone();
    openings[1] = world.opening_by(&wide, 1, &digest, &[40]);
    let at_1 = [FaultyError { controller: 1, fault: FaultError::Noise }];
    assert_eq!(world.open(&bounded, &openings).unwrap_err().faulty, at_1);
    openings[1] = window.openings[1].clone();
    openings[1].noise = None;
    assert_eq!(world.open(&bounded, &openings).unwrap_err().faulty, at_1);
    openings[1].noise = window.openings[0].noise.clone();
    assert_eq!(world.open(&bounded, &openings).unwrap_err().faulty, at_1);
}

#[test]
fn a_row_needs_one_share_of_each_member() {
    let world = World::new(&one_cell(), 3, 24);
    let window = Window::new(&world, &[&[&[7]], &[&[8]], &[&[9]]], &[0]);
    let opened = window.opened(&world);
    let row = |members: &[u32], opened: &[_]| world.checker.row(members, opened, None);
    assert!(row(&[0, 1, 2], &opened).is_ok());
    let none = Err(RowError::Round(RoundError::Members));
    assert_eq!(row(&[0, 1, 2], &opened[..2]), none);
    assert_eq!(row(&[0, 1], &opened), none);
    let twice = [opened[0].clone(), opened[1].clone(), opened[1].clone()];
    assert_eq!(row(&[0, 1, 1], &twice), none);
    assert_eq!(row(&[0, 1], &opened[..2]), Err(RowError::Cell { cell: 0 }));
    let other = World::new(&one_cell(), 3, 25);
    let other = Window::new(&other, &[&[&[7]], &[&[8]], &[&[9]]], &[0]).opened(&other);
    let mixed = [opened[0].clone(), opened[1].clone(), other[2].clone()];
    assert_eq!(row(&[0, 1, 2], &mixed), none);
    let pad = MaskedShare::zero(1);
    assert_eq!(world.checker.row(&[0, 1, 2], &opened, Some(&pad)), Err(RowError::Pad));
}

/// Errors in a request name no member: all of these messages are honest.
#[test]
fn requests_that_are_none_of_the_plan_name_nobody() {
    let world = World::new(&one_cell(), 2, 26);
    let window = window(&world);
    let signed = world.signed(&window.contributions);
    let says = |checker: &Checker, signed: &[_]| checker.contributions(&world.scope, signed).err();
    let (ours, others) = (&world.checker, Checker::new(three_cells()));
    assert_eq!(says(ours, &signed), None);
    assert_eq!(says(&others, &signed), Some(RoundError::Terms));
    let twice = [signed[0].clone(), signed[0].clone()];
    assert_eq!(says(ours, &twice), Some(RoundError::Members));
    let listed = Member { controller: 1, counted: 2, listed: 1 };
    let beyond = [signed[0].clone(), (listed, signed[1].1.clone())];
    assert_eq!(says(ours, &beyond), Some(RoundError::Counted { controller: 1 }));
    let bounded = world.bounded(&window.contributions);
    let openings: Vec<_> = bounded
        .into_iter()
        .zip([0, 1])
        .map(|(of, p)| (of, world.sign(p, &window.openings[p as usize])))
        .collect();
    let says = |checker: &Checker, openings: &[_]| checker.openings(&world.set, openings).err();
    assert_eq!(says(ours, &openings), None);
    let round = |error| Some(OpeningsError::Round(error));
    assert_eq!(says(&others, &openings), round(RoundError::Terms));
    assert_eq!(says(ours, &[]), round(RoundError::Members));
    let twice = [openings[1].clone(), openings[1].clone()];
    assert_eq!(says(ours, &twice), round(RoundError::Members));
    let later = World::new(&one_cell(), 2, 27);
    let of_later = later.bounded(&self::window(&later).contributions);
    let mixed = [openings[0].clone(), (of_later[1].clone(), openings[1].1.clone())];
    assert_eq!(says(ours, &mixed), round(RoundError::Members));
}

/// A share with a scalar too many or too few, in a contribution and in an opening.
#[test]
fn shares_of_another_length_are_refused() {
    let world = World::new(&one_cell(), 2, 28);
    let lengths: [fn(&mut MaskedShare); 2] =
        [|share| share.values.push(PublicScalar::of(0)), |share| share.blindings.truncate(0)];
    for change in lengths {
        let window = window(&world);
        let mut contribution = window.contributions[1].clone();
        change(&mut contribution.share);
        assert_eq!(fault(&world, &contribution), Some(FaultError::Cells));
        let bounded = world.bounded(&window.contributions);
        let mut openings = window.openings.clone();
        change(&mut openings[1].share);
        let at_1 = [FaultyError { controller: 1, fault: FaultError::Cells }];
        assert_eq!(world.open(&bounded, &openings).unwrap_err().faulty, at_1);
    }
}
