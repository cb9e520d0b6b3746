//! What must follow from what the liar and the service were ordered to do.

use std::collections::BTreeSet;

use alpheus_bounded_influence::blame::LieError;
use alpheus_encrypted_stream::coordinator::{MemberFaultError, Outcome};
use alpheus_encrypted_stream::error::{ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{ControllerMessage, EdgeStatement};

use super::orders::{Orders, PartedEdge, about};
use super::{Play, Tally};
use crate::protocol::bounded::{last, named, struck as struck_edges};

type Ends = (u32, u32);

/// A window whose row failed, as its round of blame must have seen it.
struct Round<'a> {
    orders: &'a Orders,
    parted: Option<PartedEdge>,
    members: Vec<u32>,
    /// Struck edges that its members leave out.
    left_out: &'a BTreeSet<Ends>,
    /// By member.
    statements: Vec<(u32, Vec<EdgeStatement>)>,
}

impl Play {
    /// Exactly the liar is named, for what it did, and exactly its edges are struck.
    pub(super) fn check_who(&self, before: &BTreeSet<Ends>, tally: &mut Tally) {
        let (outcome, plot) = (last(&self.net), self.plot.borrow());
        let (start, liar) = (outcome.window.start.0, self.liar);
        let orders = plot.orders.get(&start);
        let parted = plot.parted.get(&start).copied().flatten();
        let mut expected: Vec<(u32, MemberFaultError)> = Vec::new();
        let is_given = |message: &ControllerMessage| match message {
            ControllerMessage::Contribution(signed) => {
                signed.dangerous_unverified().unwrap().scope.start == start
            }
            _ => false,
        };
        let gave = self.net.taken[self.since..].iter().any(|(at, m)| *at == liar && is_given(m));
        let fault = orders.and_then(|orders| orders.fault).filter(|_| gave);
        expected.extend(fault.map(|fault| (liar, MemberFaultError::Fault(fault))));
        let mut struck = before.clone();
        let is_in = outcome.opening_set.as_ref().is_some_and(|set| set.contains(liar));
        assert!(fault.is_none() || !is_in, "{orders:?}");
        let seen = parted.filter(|parted| parted.is_seen() && self.is_in(outcome, parted.other));
        let is_off = is_in && (orders.is_some_and(Orders::is_off) || seen.is_some());
        if outcome.result.is_ok() {
            assert!(!is_off, "{orders:?} {parted:?}");
        }
        if outcome.result == Err(ReleaseError::NotTheRow) {
            assert!(is_off, "{orders:?} {parted:?}");
            let round = self.round(outcome, (orders.unwrap(), parted), before);
            let all = before.union(&round.struck(liar)).copied().collect();
            let lie = round.lie(liar, &all, self.net.world.announced.tolerated());
            // Edges of one that is named are not struck: it is known to lie, and may have made them up.
            if lie.is_none() {
                struck = all;
            }
            expected.extend(lie);
            tally.hidden += u32::from(expected.is_empty() && struck != *before);
            tally.silent += u32::from(!outcome.silent.is_empty());
            round.check_silent(self, outcome);
        }
        assert_eq!(named(&self.net), expected, "{orders:?} {parted:?} {:?}", outcome.result);
        assert_eq!(struck_edges(&self.net), struck, "{orders:?} {parted:?}");
        tally.struck += u32::try_from(struck.len() - before.len()).unwrap();
        tally.note(&expected, parted);
        tally.disbelieved += self.check_aside();
    }

    fn is_in(&self, outcome: &Outcome, at: u32) -> bool {
        outcome.opening_set.as_ref().is_some_and(|set| set.contains(at))
    }

    fn round<'a>(
        &self,
        outcome: &Outcome,
        (orders, parted): (&'a Orders, Option<PartedEdge>),
        left_out: &'a BTreeSet<Ends>,
    ) -> Round<'a> {
        let members: Vec<u32> = outcome.opening_set.as_ref().unwrap().iter().collect();
        let of = |member: u32| {
            let mut own: Vec<EdgeStatement> = Vec::new();
            for (at, message) in &self.net.taken[self.since..] {
                let ControllerMessage::Edges(signed) = message else { continue };
                let stated = signed.dangerous_unverified().unwrap();
                let is_own = *at == member && stated.scope.start == outcome.window.start.0;
                if is_own && !own.contains(&stated) {
                    own.push(stated);
                }
            }
            (member, own)
        };
        let statements = members.iter().map(|member| of(*member)).collect();
        Round { orders, parted, members, left_out, statements }
    }

    /// Nobody leaves out an edge for a reason that is none.
    fn check_aside(&self) -> u32 {
        let mut disbelieved = 0;
        for (at, answer) in &self.net.aside[self.aside..] {
            let ControllerMessage::WindowRefusal(signed) = answer else {
                panic!("controller {at} answered {answer:?}")
            };
            let reason = signed.dangerous_unverified().unwrap().reason;
            let is_bad = reason == WindowRefusalError::BadStrike;
            assert!(is_bad || self.restored, "{reason}");
            disbelieved += u32::from(is_bad);
        }
        disbelieved
    }
}

impl Round<'_> {
    fn of(&self, member: u32) -> &[EdgeStatement] {
        let own = self.statements.iter().find(|(at, _)| *at == member);
        own.map_or(&[], |(_, own)| own.as_slice())
    }

    /// What the liar's statement shows of it.
    fn stated_lie(&self, liar: u32) -> Option<LieError> {
        let ends = |other: u32| (liar.min(other), liar.max(other));
        let may = |other| self.members.contains(&other) && !self.left_out.contains(&ends(other));
        self.orders.lie(self.of(liar).len(), may)
    }

    /// The edges about which the liar and another have said different things.
    fn struck(&self, liar: u32) -> BTreeSet<Ends> {
        let own = match (self.of(liar), self.stated_lie(liar)) {
            ([], _) | (_, Some(LieError::TwoStatements | LieError::Malformed)) => {
                return BTreeSet::new();
            }
            (own, _) => &own[0],
        };
        let others = self.statements.iter().filter(|(at, _)| *at != liar);
        let differs = |(at, theirs): &(u32, Vec<EdgeStatement>)| {
            let differs = about(own, *at) != about(theirs.first()?, liar);
            differs.then_some((liar.min(*at), liar.max(*at)))
        };
        let struck: BTreeSet<Ends> = others.filter_map(differs).collect();
        // A lie that it covers itself with is seen at that edge and nowhere else.
        if let (Some(covered), None) = (self.orders.covered, self.stated_lie(liar)) {
            let parted = self.parted.filter(PartedEdge::is_seen).map(|parted| parted.other);
            let others = struck.iter().map(|(one, two)| if *one == liar { *two } else { *one });
            assert!(others.clone().all(|at| at == covered || Some(at) == parted), "{struck:?}");
            let answered = !self.of(covered).is_empty();
            assert_eq!(others.clone().any(|at| at == covered), answered, "{struck:?}");
        }
        struck
    }

    /// Why the liar is named, if it is.
    fn lie(
        &self,
        liar: u32,
        struck: &BTreeSet<Ends>,
        most: u32,
    ) -> Option<(u32, MemberFaultError)> {
        let own = struck.iter().filter(|(one, two)| *one == liar || *two == liar);
        let differs = u32::try_from(own.count()).unwrap();
        let too_many = (differs > most).then_some(LieError::Disagrees(differs));
        let lie = self.stated_lie(liar).or(too_many)?;
        Some((liar, MemberFaultError::Lie(lie)))
    }

    /// Those are silent that the service has heard nothing of.
    fn check_silent(&self, play: &Play, outcome: &Outcome) {
        let at = |id| play.net.world.announced.position(id).unwrap();
        let silent: Vec<u32> = outcome.silent.iter().map(|(id, _)| at(id)).collect();
        let nothing = self.statements.iter().filter(|(_, own)| own.is_empty());
        assert_eq!(silent, nothing.map(|(at, _)| *at).collect::<Vec<u32>>());
    }
}

impl Tally {
    fn note(&mut self, named: &[(u32, MemberFaultError)], parted: Option<PartedEdge>) {
        for (_, why) in named {
            let kind = match why {
                MemberFaultError::Fault(fault) => format!("{fault:?}"),
                MemberFaultError::Lie(LieError::Disagrees(_)) => "Disagrees".to_owned(),
                MemberFaultError::Lie(lie) => format!("{lie:?}"),
            };
            *self.named.entry(kind).or_default() += 1;
        }
        let Some(parted) = parted else { return };
        self.parted[usize::from(!parted.is_seen())] += 1;
    }
}
