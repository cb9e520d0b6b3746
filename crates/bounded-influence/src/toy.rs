//! The equation of a row over a group so small that every forgery can be tried.

use crate::check::Committing;

const Q: u32 = 13;

/// Two bases, 1 and 5: value + 5 · blinding modulo 13. Its logarithms are known, so it binds nothing,
/// and accepts what chance lets pass.
#[derive(Clone, Copy, PartialEq)]
struct Toy(u32);

impl Committing for Toy {
    type Scalar = u32;

    fn to(value: &u32, blinding: &u32) -> Self {
        Self((value + 5 * blinding) % Q)
    }
}

/// Of all pairs of value and blinding, one in q opens a commitment, in each cell. So q^-k of all
/// forgeries of k cells pass at q, and 2^-252 of those of one cell at the real order.
#[test]
fn of_all_forged_rows_the_computed_share_is_accepted() {
    for cells in 1..=2_u32 {
        let commitments: Vec<Toy> = (0..cells).map(|cell| Toy::to(&(3 + cell), &7)).collect();
        let (mut accepted, mut tried) = (0_u32, 0);
        for forgery in 0..(Q * Q).pow(cells) {
            let scalar = |at: u32| forgery / Q.pow(at) % Q;
            let mut numbered = (0..cells).zip(&commitments);
            let opens =
                numbered.all(|(cell, c)| c.opens_to(&scalar(2 * cell), &scalar(2 * cell + 1)));
            accepted += u32::from(opens);
            tried += 1;
        }
        assert_eq!((accepted * Q.pow(cells), tried), (tried, Q.pow(2 * cells)));
    }
}
