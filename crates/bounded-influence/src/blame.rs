//! Who made a row fail: one round, in which nothing is opened.
//!
//! Each member of S commits to the difference of mask pad and opening pad on each of its edges. An
//! honest member's share is what its commitments and its edges say, and both honest ends of an edge
//! say the same.

use crate::check::{FailedWindow, OpenedContribution, ValueCommitment};
use crate::messages::{Edge, EdgeStatement, Opening};
use crate::share::{Answer, Share};
use alpheus_crypto::group::Element;
use alpheus_crypto::signed_message::Verified;
use alpheus_range_proof::Commitment;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, Neg};

/// Why a member is named. No member that keeps to the protocol does any of it, as long as no more
/// than t do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LieError {
    /// Its share is not what its own commitments and edges add up to.
    #[error("its share is not what its commitments and its edges add up to")]
    Unbalanced,
    /// Its statement has another form than the round asks for.
    #[error("its statement of edges does not have the form that the round asks for")]
    Malformed,
    /// It signed two statements for one round.
    #[error("it signed two different statements of edges for one round")]
    TwoStatements,
    /// It disagrees with more members than can be lying.
    #[error("it disagrees about pads with {0} members, more than may be lying")]
    Disagrees(u32),
}

/// What a round of blame shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Those that lied.
    pub named: BTreeMap<u32, LieError>,
    /// Edges about which both ends signed different things; one of both lied. The lower position is
    /// first. There are none of a member that is named: it is known to lie, and could make up one with
    /// each member.
    pub struck: BTreeSet<(u32, u32)>,
    /// Members that did not answer.
    pub silent: Vec<u32>,
}

/// Who judges rounds of blame, with what earlier ones in the plan have shown.
#[derive(Clone, Debug)]
pub struct Blame {
    colluders: u32,
    struck: BTreeSet<(u32, u32)>,
}

/// Why a controller makes no statement of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdgesError {
    /// The opening that it has signed is another one.
    #[error(
        "the controller has signed another opening for this window; make the answer with the set, the neighbours and the noise of that one"
    )]
    AnotherOpening,
    /// A commitment is the identity: a chance of 2^-252.
    #[error("a commitment is the identity; check the controllers' keys")]
    Identity,
}

impl Answer<'_> {
    /// This controller's statement of edges, for the opening that it has signed. It makes none for any
    /// other. So it makes one for each window: an answer with another set, other neighbours or
    /// other noise is not what it has signed.
    ///
    /// # Privacy
    /// Its readers learn nothing: each commitment is blinded by pads that are used once.
    ///
    /// # Errors
    /// [`EdgesError`].
    pub fn edges(&self, own: &Verified<Opening>) -> Result<EdgeStatement, EdgesError> {
        let (controller, scope, opening_set) = (self.masks.position, self.scope, self.opening_set);
        let signed = (own.controller, own.scope, own.opening_set, &own.share);
        if signed != (controller, scope, opening_set, self.share()) {
            return Err(EdgesError::AnotherOpening);
        }
        let committed = |pad: Share| pad.commitments().map_err(|_| EdgesError::Identity);
        let edge = |(other, pad)| Ok(Edge { other, commitments: committed(pad)? });
        let mut edges: Vec<Edge> = self.pads().map(edge).collect::<Result<_, _>>()?;
        edges.sort_by_key(|edge| edge.other);
        let consumer_pad = self.consumer_pad().map(committed).transpose()?;
        Ok(EdgeStatement { scope, controller, opening_set, edges, consumer_pad })
    }
}

impl EdgeStatement {
    /// Whether its commitment to the consumer's pad is that of this pad. The consumer checks it, and
    /// disputes the window if not.
    #[must_use]
    pub fn has_pad(&self, pad: &Share) -> bool {
        let expected = pad.commitments().ok();
        expected.is_some() && self.consumer_pad == expected
    }

    /// The edges that this controller leaves out from now on: those about which the other's signed
    /// statement for the same round says something else.
    #[must_use]
    pub fn strikes(&self, other: &Verified<Self>) -> bool {
        let same = self.scope == other.scope && self.opening_set == other.opening_set;
        same && self.about(other.controller) != other.about(self.controller)
    }

    fn about(&self, other: u32) -> Option<&[Element]> {
        let edge = self.edges.iter().find(|edge| edge.other == other);
        edge.map(|edge| edge.commitments.as_slice())
    }

    fn is_well_formed(
        &self,
        members: &BTreeSet<u32>,
        cells: usize,
        failed: &FailedWindow<'_>,
    ) -> bool {
        let edge = |edge: &Edge| {
            let known = edge.other != self.controller && members.contains(&edge.other);
            let ends = (edge.other.min(self.controller), edge.other.max(self.controller));
            known && edge.commitments.len() == cells && !failed.left_out.contains(&ends)
        };
        let pad = self.consumer_pad.as_ref().map(Vec::len);
        self.edges.iter().all(edge)
            && self.edges.is_sorted_by(|a, b| a.other < b.other)
            && pad == failed.sealed.then_some(cells)
    }

    /// The same of a statement whose edges ascend, as those of a right form do.
    fn about_in_order(&self, other: u32) -> Option<&[Element]> {
        let at = self.edges.binary_search_by_key(&other, |edge| edge.other).ok()?;
        Some(self.edges.get(at)?.commitments.as_slice())
    }

    /// Whether Com(Z − o) = Σ V − V_η + Σ ±Q + R in every cell.
    fn balances(&self, opened: &OpenedContribution) -> bool {
        let scalars = opened.share.values.iter().zip(&opened.share.blindings);
        let mut cells = opened.total.iter().zip(scalars).enumerate();
        cells.all(|(cell, (total, (value, blinding)))| {
            let at = |list: &[Element]| list.get(cell).map(Commitment::of).unwrap_or_default();
            let pads = self.edges.iter().map(|edge| (edge.other, at(&edge.commitments)));
            let mut sum = with_edges(*total, self.controller, pads);
            self.consumer_pad.iter().for_each(|pad| sum += at(pad));
            sum.opens_to(value, blinding)
        })
    }
}

/// A cell of a controller with its edges' pads: those with later controllers are added, others subtracted.
pub(crate) fn with_edges<C: AddAssign + Neg<Output = C>>(
    mut sum: C,
    controller: u32,
    pads: impl Iterator<Item = (u32, C)>,
) -> C {
    pads.for_each(|(other, pad)| sum += if other > controller { pad } else { -pad });
    sum
}

impl Blame {
    /// Nothing is known yet. At most `colluders` members lie.
    #[must_use]
    pub fn new(colluders: u32) -> Self {
        Self { colluders, struck: BTreeSet::new() }
    }

    /// The same, where these edges were struck in earlier windows. The lower position is first. They are those
    /// whose evidence is kept, so that the same members are named after a restart.
    #[must_use]
    pub fn knowing(mut self, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        self.struck.extend(edges);
        self
    }

    /// Judges the statements of a failed window. Statements of another round count as none, since
    /// anybody can send them again. The same statement twice is one, so members may be asked again.
    pub fn judge(
        &self,
        failed: &FailedWindow<'_>,
        signed: &[impl Borrow<Verified<EdgeStatement>>],
    ) -> Judgement {
        let members: BTreeSet<u32> = failed.opened.iter().map(|one| one.controller).collect();
        let mut judgement = Judgement::default();
        let (mut by_member, mut stated) = (BTreeMap::<u32, Vec<_>>::new(), BTreeMap::new());
        for statement in signed.iter().map(Borrow::borrow) {
            by_member.entry(statement.controller).or_default().push(statement);
        }
        for opened in failed.opened {
            let controller = opened.controller;
            let own = by_member.get(&controller).map_or(&[][..], Vec::as_slice);
            let mut own = own.iter().copied().filter(|statement| is_of(statement, opened));
            let Some(first) = own.next() else {
                judgement.silent.push(controller);
                continue;
            };
            let cells = opened.total.len();
            let lie = if own.any(|other| other.digest() != first.digest()) {
                Some(LieError::TwoStatements)
            } else if !first.is_well_formed(&members, cells, failed) {
                Some(LieError::Malformed)
            } else {
                (!first.balances(opened)).then_some(LieError::Unbalanced)
            };
            lie.map(|lie| judgement.named.insert(controller, lie));
            if lie.is_none_or(|lie| lie == LieError::Unbalanced) {
                stated.insert(controller, first);
            }
        }
        judgement.struck = differing(&stated);
        let all: BTreeSet<(u32, u32)> = self.struck.union(&judgement.struck).copied().collect();
        for member in members {
            let ends = |pair: &&(u32, u32)| pair.0 == member || pair.1 == member;
            let differs = u32::try_from(all.iter().filter(ends).count()).unwrap_or(u32::MAX);
            if differs > self.colluders {
                judgement.named.entry(member).or_insert(LieError::Disagrees(differs));
            }
        }
        let is_named = |at: &u32| judgement.named.contains_key(at);
        judgement.struck.retain(|(one, other)| !is_named(one) && !is_named(other));
        judgement
    }
}

fn is_of(statement: &EdgeStatement, opened: &OpenedContribution) -> bool {
    let stated = (statement.scope, statement.opening_set, statement.controller);
    stated == (opened.scope, opened.opening_set, opened.controller)
}

/// The edges about which two statements of this round, both of a right form, differ. An edge that only
/// one has is one of them.
fn differing(stated: &BTreeMap<u32, &Verified<EdgeStatement>>) -> BTreeSet<(u32, u32)> {
    let mut struck = BTreeSet::new();
    for (one, statement) in stated {
        for (other, opposite) in stated.range(one + 1..) {
            if statement.about_in_order(*other) != opposite.about_in_order(*one) {
                struck.insert((*one, *other));
            }
        }
    }
    struck
}
