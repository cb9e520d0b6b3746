//! Row and blame over a group so small that every forgery can be tried.

use crate::blame::with_edges;
use crate::check::{ValueCommitment, add_cells, unopened};
use std::ops::{AddAssign, Neg};

const Q: u32 = 13;

/// Two bases, 1 and 5: value + 5 · blinding modulo 13. Its logarithms are known, so it binds nothing,
/// and accepts what chance lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Toy(u32);

impl ValueCommitment for Toy {
    type Scalar = u32;

    fn to(value: &u32, blinding: &u32) -> Self {
        Self((value + 5 * blinding) % Q)
    }
}

impl AddAssign for Toy {
    fn add_assign(&mut self, other: Self) {
        self.0 = (self.0 + other.0) % Q;
    }
}

impl Neg for Toy {
    type Output = Self;

    fn neg(self) -> Self {
        Self((Q - self.0) % Q)
    }
}

/// Every list of so many scalars.
fn all(scalars: u32) -> impl Iterator<Item = Vec<u32>> {
    (0..Q.pow(scalars)).map(move |one| (0..scalars).map(|at| one / Q.pow(at) % Q).collect())
}

fn opens(total: &[Toy], values: &[u32], blindings: &[u32]) -> bool {
    unopened(total, values, blindings).next().is_none()
}

/// The commitments of a row of three members, whose cells are 3, 4 and so on with blindings of 7.
fn total(cells: u32) -> Vec<Toy> {
    let mut total = vec![Toy::default(); cells as usize];
    for member in [1, 2, 0] {
        let own: Vec<Toy> =
            (0..cells).map(|cell| Toy::to(&((1 + cell) * member), &member)).collect();
        add_cells(&mut total, &own);
    }
    total
}

/// Of all pairs of value and blinding, one in q opens a sum of commitments, in each cell. So q^-k of all
/// forgeries of k cells pass at q, and 2^-252 of those of one cell at the real order.
#[test]
fn of_all_forged_rows_the_computed_share_is_accepted() {
    for cells in 1..=2_u32 {
        let total = total(cells);
        let honest: Vec<u32> = (0..cells).map(|cell| 3 * (1 + cell)).collect();
        assert!(opens(&total, &honest, &vec![3; cells as usize]));
        let half = cells as usize;
        let accepted =
            all(2 * cells).filter(|forged| opens(&total, &forged[..half], &forged[half..]));
        assert_eq!(u32::try_from(accepted.count()).unwrap(), Q.pow(cells));
    }
}

/// A row with a value taken from one cell and added to another, which leaves the sum of all cells as it was, is not accepted.
#[test]
fn of_rows_with_values_moved_between_cells_none_is_accepted() {
    let total = total(2);
    for by in 1..Q {
        assert!(!opens(&total, &[(3 + by) % Q, (6 + Q - by) % Q], &[3, 3]));
        assert!(!opens(&total, &[3, 6], &[(3 + by) % Q, (3 + Q - by) % Q]));
    }
}

/// A member with a share that is 1 more than it committed to states two edges. Of all statements, those hold
/// whose sum hides the 1: one in q. None of them is the honest one, so each differs from what another member says.
#[test]
fn of_all_statements_the_computed_share_covers_a_lie() {
    let (committed, blinding, pads) = (4, 9, [Toy(2), Toy(11)]);
    // It is at 1: the edge with 0 is subtracted, and that with 2 added.
    let balances = |value: u32, pads: [Toy; 2]| {
        let cell = with_edges(Toy::to(&committed, &blinding), 1, [0, 2].into_iter().zip(pads));
        cell.opens_to(&value, &blinding)
    };
    // Of a share under pads of these commitments: 11 − 2 more than the value.
    let share = committed + 9;
    assert!(balances(share, pads) && !balances(share + 1, pads));
    let stated = |list: Vec<u32>| [Toy(list[0]), Toy(list[1])];
    let hide: Vec<[Toy; 2]> =
        all(2).map(stated).filter(|pads| balances(share + 1, *pads)).collect();
    assert_eq!(u32::try_from(hide.len()).unwrap(), Q);
    assert!(hide.iter().all(|one| one[0] != pads[0] || one[1] != pads[1]));
}
