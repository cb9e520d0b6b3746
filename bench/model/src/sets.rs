//! Any two sets that can open a window share an honest member.

use alpheus_policy::plan::Fraction;
use alpheus_policy::quorum;

/// How many members an opening set must have.
pub type Least = fn(controllers: u32, tolerated: u32, members: u32) -> u32;

/// The real quorum. Its second part is as loose as it can be, so that only the first is relied on.
#[must_use]
pub fn least(controllers: u32, tolerated: u32, members: u32) -> u32 {
    let dropout = Fraction { numerator: 1, denominator: 1 };
    quorum::min_opening(controllers, tolerated, members, dropout)
}

/// Two sets without an honest member in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disjoint {
    /// N.
    pub controllers: u32,
    /// t.
    pub tolerated: u32,
    /// Both sets, as bits. The colluders are the last t members.
    pub sets: [u32; 2],
}

/// Compares all pairs of opening sets, over all memberships, of all rosters of up to so many
/// controllers. Returns how many pairs there were, or the first that share no honest member.
///
/// # Errors
/// [`Disjoint`].
pub fn all_share_an_honest_member(most: u32, least: Least) -> Result<u64, Disjoint> {
    let mut pairs = 0;
    for (controllers, tolerated) in (2..=most).flat_map(|n| (0..n - 1).map(move |t| (n, t))) {
        let sets = opening_sets(controllers, tolerated, least);
        let honest = (1_u32 << (controllers - tolerated)) - 1;
        for (at, one) in sets.iter().enumerate() {
            for other in &sets[at..] {
                pairs += 1;
                if one & other & honest == 0 {
                    return Err(Disjoint { controllers, tolerated, sets: [*one, *other] });
                }
            }
        }
    }
    Ok(pairs)
}

/// Each S of each M.
fn opening_sets(controllers: u32, tolerated: u32, least: Least) -> Vec<u32> {
    let mut sets = Vec::new();
    for members in 1..1_u32 << controllers {
        let needed = least(controllers, tolerated, members.count_ones());
        sets.extend((1..=members).filter(|set| set & !members == 0 && set.count_ones() >= needed));
    }
    sets
}
