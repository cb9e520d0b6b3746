//! What the liar and the service are ordered to do in a window, and what must follow from that.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_bounded_influence::blame::LieError;
use alpheus_bounded_influence::check::FaultError;
use alpheus_crypto::group::Element;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::messages::{Contribution, EdgeStatement};

use super::Dice;

/// What the liar does to its contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Truth,
    Nothing,
    /// That of an earlier window.
    Old,
    NoProofs,
    NoOwners,
    SwappedCells,
    /// The share is more than its commitments, in this cell.
    Off(usize),
    /// It is less than them, in the first cell's blinding.
    OffBlinding,
}

/// What it does to its statement of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum States {
    Truth,
    Nothing,
    OthersPad,
    DropsEdge,
    Reversed,
    NoEdges,
    /// So that its own equation holds again, in the first cell.
    Covers,
    /// An edge that there is not, with this member.
    MakesUp(u32),
}

/// What the liar is ordered to do in one window, and what came of it. It does the same whenever it is asked.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub(super) gives: Gives,
    pub(super) by: i64,
    /// By how much its opening is more than it should be.
    pub(super) opening: i64,
    pub(super) states: States,
    /// Which edges it changes.
    pub(super) at: (u32, u32),
    /// Whether it also tells the truth about its edges, after the lie.
    pub(super) twice: bool,
    /// What is wrong with its proofs.
    pub(super) fault: Option<FaultError>,
    /// By how much its opened share is more than its commitments: two cells and a blinding.
    pub(super) off: [i64; 3],
    /// What it really did to its statement.
    pub(super) did: States,
    /// The other end of the edge that it covers itself with.
    pub(super) covered: Option<u32>,
}

/// An edge of the liar that the service has one end leave out, or both, with a statement that the liar has
/// signed afterwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartedEdge {
    pub(super) other: u32,
    pub(super) liar_knows: bool,
    pub(super) other_knows: bool,
}

/// All of that, by the start of windows.
#[derive(Default)]
pub(super) struct Plot {
    pub(super) orders: BTreeMap<u64, Orders>,
    pub(super) parted: BTreeMap<u64, Option<PartedEdge>>,
    /// The liar's contributions as it signed them.
    pub(super) given: BTreeMap<u64, Signed<Contribution>>,
    /// What controllers have stated in truth.
    pub(super) stated: BTreeMap<(u64, u32), Signed<EdgeStatement>>,
    /// Members that have had M.
    pub(super) reached: BTreeSet<(u64, u32)>,
    /// Members whose edge with the liar is struck.
    pub(super) struck: BTreeSet<u32>,
}

impl Plot {
    /// What the liar does in a window.
    pub(super) fn orders(&mut self, start: u64, dice: &Dice) -> &mut Orders {
        self.orders.entry(start).or_insert_with(|| Orders::draw(dice))
    }
}

impl Orders {
    fn draw(dice: &Dice) -> Self {
        let gives = match dice.below(14) {
            0 => Gives::Old,
            1 => Gives::Nothing,
            2 => Gives::NoProofs,
            3 => Gives::NoOwners,
            4 => Gives::SwappedCells,
            5 => Gives::Off(1),
            6 => Gives::OffBlinding,
            7..=9 => Gives::Off(0),
            _ => Gives::Truth,
        };
        let states = match dice.below(10) {
            0 => States::OthersPad,
            1 => States::DropsEdge,
            2 => States::Reversed,
            3 => States::NoEdges,
            4..=6 => States::Covers,
            7 => States::MakesUp(dice.below(5)),
            8 => States::Nothing,
            _ => States::Truth,
        };
        let opening = if dice.says(6) { 1 + i64::from(dice.below(9)) } else { 0 };
        Self {
            gives,
            by: 1 + i64::from(dice.below(1_000)),
            opening,
            states,
            at: (dice.below(60), dice.below(60)),
            twice: dice.says(5),
            fault: None,
            off: [0; 3],
            did: States::Truth,
            covered: None,
        }
    }

    pub(super) fn is_off(&self) -> bool {
        self.off != [0; 3]
    }

    /// What its statements show of it, if `many` different ones were heard. An edge that it made up is
    /// one of the round only if nobody leaves it out.
    pub(super) fn lie(&self, many: usize, may_have: impl Fn(u32) -> bool) -> Option<LieError> {
        let unbalanced = |is: bool| is.then_some(LieError::Unbalanced);
        match self.did {
            _ if many == 0 => None,
            _ if many > 1 => Some(LieError::TwoStatements),
            States::Reversed => Some(LieError::Malformed),
            States::MakesUp(other) if !may_have(other) => Some(LieError::Malformed),
            States::OthersPad | States::DropsEdge | States::NoEdges | States::MakesUp(_) => {
                unbalanced(true)
            }
            States::Covers => unbalanced(self.off[1..] != [0; 2]),
            States::Truth | States::Nothing => unbalanced(self.is_off()),
        }
    }
}

impl PartedEdge {
    /// Whether the two ends do different things.
    pub(super) fn is_seen(&self) -> bool {
        self.liar_knows != self.other_knows
    }
}

/// What a member says of its edge with another.
pub(super) fn about(stated: &EdgeStatement, other: u32) -> Option<&[Element]> {
    let edge = stated.edges.iter().find(|edge| edge.other == other);
    edge.map(|edge| edge.commitments.as_slice())
}
