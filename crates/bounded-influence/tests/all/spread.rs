//! Sums of squares that are those of no events.

use crate::world::{World, digest, three_cells};
use alpheus_bounded_influence::commit::OwnerValues;

/// They fit each form, so their proof would hold. An honest controller leaves them out all the same.
#[test]
fn squares_are_as_large_as_the_sum_demands() {
    let world = World::new(&three_cells(), 2, 70);
    let is_in = |values: [i128; 3]| {
        let owner = OwnerValues::new(digest(&[b"owner"]), values.to_vec());
        world.committers[0].admit(vec![owner]).unwrap().counted() == 1
    };
    assert!(is_in([0, 0, 0]) && is_in([3, 15, 75]) && is_in([3, 14, 66]) && is_in([2, -4, 8]));
    assert!(!is_in([3, 15, 0]) && !is_in([3, 15, 74]) && !is_in([3, 14, 65]) && !is_in([2, -4, 7]));
}
