//! How many controllers it takes to open a window. The planner and `EXPLAIN` use this,
//! and the protocol enforces it.

use crate::fraction::Fraction;

/// `⌊(N+t)/2⌋ + 1`: two sets of this many have an honest controller in common.
#[must_use]
pub fn majority(controllers: u32, tolerated: u32) -> u32 {
    narrow((u64::from(controllers) + u64::from(tolerated)) / 2).saturating_add(1)
}

/// The least |S| for a membership of `members` controllers:
/// `max(⌊(N+t)/2⌋+1, |M| − max([N ≥ 4], ⌊d|M|⌋))`, where `[N ≥ 4]` is 1 if N is
/// at least 4, else 0. Under `Neighbours`, use t + 2r for t.
///
/// The first part prevents two disjoint honest groups from each opening the window. The
/// second prevents the service from dropping more controllers than may fail.
#[must_use]
pub fn min_opening(controllers: u32, tolerated: u32, members: u32, dropout: Fraction) -> u32 {
    let spared = narrow(dropout.floor_of(members as usize) as u64).max(u32::from(controllers >= 4));
    majority(controllers, tolerated).max(members.saturating_sub(spared))
}

/// The smallest number of controllers whose opening the member with the most owners
/// counts as `population`. It counts its own owners, then those of the others from the
/// largest down, without the `discounted` largest of them.
#[must_use]
pub fn min_controllers_for(owners: &[u32], discounted: u32, population: u32) -> u32 {
    let mut owners = owners.to_vec();
    owners.sort_unstable_by(|a, b| b.cmp(a));
    let (mut size, mut counted) = (0, 0_u64);
    for (rank, at_controller) in (0_u32..).zip(&owners) {
        if counted >= u64::from(population) {
            break;
        }
        size += 1;
        if rank == 0 || rank > discounted {
            counted += u64::from(*at_controller);
        }
    }
    size
}

/// Rosters have fewer than 2^32 controllers: positions in a plan are `u32`.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
