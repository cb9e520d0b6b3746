//! A service that asks controllers again for something else, that parts members, and that publishes other rows and
//! receipts. It has its own key, and a colluding member's.

use std::cell::RefCell;
use std::rc::Rc;

use alpheus_bounded_influence::check::Checker;
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{EdgeRequest, EdgeStatement, ServiceMessage, Strike};
use alpheus_encrypted_stream::receipt::BoundedReceipt;
use alpheus_time::Timestamp;

use super::Dice;
use super::orders::{PartedEdge, Plot, about};
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Forges, Net};

/// Asks for the same again, for another S, and for edges of another S.
pub(super) fn ask_again(net: &mut Net, now: Timestamp, dice: &Dice) {
    let last = net.sent.iter().rev().find_map(|(_, message)| match message {
        ServiceMessage::OpeningSet(signed) => Some(signed.clone()),
        _ => None,
    });
    let Some(signed) = last else { return };
    let mut set = signed.dangerous_unverified().unwrap();
    let to = dice.below(5);
    net.ask(now, to, &ServiceMessage::OpeningSet(signed.clone()));
    let count = u32::try_from(set.set.count()).unwrap();
    let gone = dice.below(count) as usize;
    let kept = set.set.iter().enumerate().filter(|(at, _)| *at != gone);
    set.set = RosterSet::of(5, kept.map(|(_, member)| member));
    let key = net.world.service.clone();
    let other = Signed::new(&set, &key);
    net.ask(now, to, &ServiceMessage::OpeningSet(other.clone()));
    for opening_set in [other.digest(), signed.digest()] {
        let request = EdgeRequest { plan: set.plan, window: set.window, opening_set };
        let request = ServiceMessage::EdgeRequest(Signed::new(&request, &key));
        net.ask(now, to, &request);
    }
}

/// In M: a statement that the liar signs afterwards parts it from a member, at one end or at both. Before it, what
/// no member may believe.
pub(super) fn forges_of(net: &Net, liar: u32, dice: Dice, plot: Rc<RefCell<Plot>>) -> Forges {
    let (service, key) = (net.world.service.clone(), key_of(&net.world, liar));
    Box::new(move |to, message| {
        let (membership, proof, mut strikes) = match message {
            ServiceMessage::Membership { membership, proof } => (membership, proof, vec![]),
            ServiceMessage::BoundedMembership { membership, proof, strikes } => {
                (membership, proof, strikes)
            }
            message => return vec![message],
        };
        let start = membership.dangerous_unverified().unwrap().window.start.0;
        let plot = &mut *plot.borrow_mut();
        let with = |strikes| {
            let (membership, proof) = (membership.clone(), proof.clone());
            ServiceMessage::BoundedMembership { membership, proof, strikes }
        };
        let mut all = Vec::new();
        if plot.reached.insert((start, to)) {
            let bad = bad_strike(plot, (to, liar), (&service, &key), &dice);
            all.extend(bad.map(|bad| with(vec![bad])));
        }
        if !plot.parted.contains_key(&start) {
            let parted = part(plot, liar, &dice);
            plot.parted.insert(start, parted);
        }
        let parted = plot.parted[&start];
        strikes.extend(parted.and_then(|parted| strike(plot, (to, liar), parted, &key)));
        all.push(match strikes.is_empty() {
            true => ServiceMessage::Membership { membership, proof },
            false => with(strikes),
        });
        all
    })
}

/// The last round of blame in which these have stated an edge between them.
fn last_between(plot: &Plot, liar: u32, other: u32) -> Option<(EdgeStatement, EdgeStatement)> {
    let read = |at: (u64, u32)| plot.stated.get(&at)?.dangerous_unverified();
    let rounds = plot.stated.keys().rev().filter(|(_, at)| *at == liar);
    let mut rounds =
        rounds.filter_map(|(start, _)| Some((read((*start, liar))?, read((*start, other))?)));
    rounds.find(|(own, theirs)| about(own, other).is_some() && about(theirs, liar).is_some())
}

fn part(plot: &Plot, liar: u32, dice: &Dice) -> Option<PartedEdge> {
    let other = (liar + 1 + dice.below(4)) % 5;
    let (liar_knows, other_knows) =
        [(true, false), (false, true), (true, true)][dice.below(3) as usize];
    let can = dice.says(4) && !plot.struck.contains(&other);
    last_between(plot, liar, other).filter(|_| can)?;
    Some(PartedEdge { other, liar_knows, other_knows })
}

/// Why one end leaves out the edge.
fn strike(
    plot: &Plot,
    (to, liar): (u32, u32),
    parted: PartedEdge,
    key: &SigningKey,
) -> Option<Strike> {
    let is_asked = to == liar && parted.liar_knows || to == parted.other && parted.other_knows;
    let (mut lie, theirs) = last_between(plot, liar, parted.other).filter(|_| is_asked)?;
    let theirs = plot.stated[&(theirs.scope.start, parted.other)].clone();
    lie.edges.retain(|edge| edge.other != parted.other);
    let lie = Signed::new(&lie, key);
    Some(match to == liar {
        true => Strike { own: lie, other: theirs },
        false => Strike { own: theirs, other: lie },
    })
}

/// A reason to leave out an edge that is none.
fn bad_strike(
    plot: &Plot,
    (to, liar): (u32, u32),
    (service, key): (&SigningKey, &SigningKey),
    dice: &Dice,
) -> Option<Strike> {
    let (start, own) = plot
        .stated
        .iter()
        .rev()
        .find_map(|((start, at), own)| (*at == to).then(|| (*start, own.clone())))?;
    let other = (to + 1 + dice.below(4)) % 5;
    let theirs = plot.stated.get(&(start, other)).cloned();
    let said: EdgeStatement = own.dangerous_unverified().unwrap();
    match (dice.below(4), theirs) {
        // The service signs it itself.
        (0, _) => {
            let lie = EdgeStatement { controller: other, edges: vec![], ..said };
            Some(Strike { own, other: Signed::new(&lie, service) })
        }
        // Two that agree.
        (1, Some(theirs))
            if about(&theirs.dangerous_unverified().unwrap(), to) == about(&said, other) =>
        {
            Some(Strike { own, other: theirs })
        }
        // Of others, the wrong way round.
        (2, Some(theirs)) => Some(Strike { own: theirs, other: own }),
        // The liar signs something about another window.
        (3, _) if to != liar => {
            let mut lie = EdgeStatement { controller: liar, edges: vec![], ..said };
            lie.scope.start += 1;
            Some(Strike { own, other: Signed::new(&lie, key) })
        }
        _ => None,
    }
}

/// What it publishes, with the key of the member that lies.
pub(super) struct Forger<'a> {
    pub(super) net: &'a Net,
    pub(super) checker: &'a Checker,
    pub(super) liar: u32,
}

impl Forger<'_> {
    /// Publishes lies in the place of an honest row. Returns how many were refused, which is all that say
    /// anything else.
    pub(super) fn publish(
        &self,
        honest: &BoundedReceipt,
        earlier: Option<&BoundedReceipt>,
        dice: &Dice,
    ) -> u32 {
        let (announced, mut refused) = (&self.net.world.announced, 0);
        let window = self.net.outcomes.last().unwrap().window;
        let row = honest.verify(announced, self.checker, window).unwrap();
        for _ in 0..3 {
            let mut lied = honest.clone();
            self.lie(&mut lied, earlier.unwrap_or(honest), dice);
            match lied.verify(announced, self.checker, window) {
                Ok(held) => assert_eq!(held.cells(), row.cells(), "{window:?}"),
                Err(_) => refused += 1,
            }
            let mut words = row.words().to_vec();
            let word = dice.below(u32::try_from(words.len()).unwrap()) as usize;
            words[word] ^= 1 << dice.below(64);
            assert!(row.check(&words, row.population()).is_err(), "{window:?}");
            refused += 1;
        }
        refused
    }

    fn lie(&self, own: &mut BoundedReceipt, other: &BoundedReceipt, dice: &Dice) {
        let count = u32::try_from(own.shares.len()).unwrap();
        let (one, two) = (dice.below(count) as usize, dice.below(count) as usize);
        let service = &self.net.world.service;
        match dice.below(10) {
            0 => own.shares.swap(one, two),
            1 => own.shares[one] = own.shares[two].clone(),
            2 => drop(own.shares.remove(one)),
            3 => own.shares[one].opening = own.shares[two].opening.clone(),
            4 => {
                let theirs = dice.below(u32::try_from(other.shares.len()).unwrap());
                own.shares[one] = other.shares[theirs as usize].clone();
            }
            5 => {
                let mut membership = own.membership.dangerous_unverified().unwrap();
                let at = one % membership.owners.len();
                membership.owners[at] = membership.owners[at].wrapping_add(1);
                own.membership = Signed::new(&membership, service);
            }
            6 => {
                let mut set = own.opening_set.dangerous_unverified().unwrap();
                set.set = RosterSet::of(5, set.set.iter().skip(1));
                own.opening_set = Signed::new(&set, service);
                own.shares.remove(0);
            }
            7 => *own = other.clone(),
            _ => self.collude(own, dice),
        }
    }

    /// The member signs something else afterwards.
    fn collude(&self, own: &mut BoundedReceipt, dice: &Dice) {
        let key = key_of(&self.net.world, self.liar);
        let is_its = |share: &&mut alpheus_encrypted_stream::receipt::BoundedShare| {
            let given = share.contribution.dangerous_unverified().unwrap();
            given.controller == self.liar
        };
        let Some(share) = own.shares.iter_mut().find(is_its) else { return };
        let mut given = share.contribution.dangerous_unverified().unwrap();
        let by = PublicScalar::of(1 + i64::from(dice.below(100)));
        match dice.below(4) {
            0 => given.share.values[0] = given.share.values[0].plus(&by),
            1 => given.share.blindings[1] = given.share.blindings[1].plus(&by),
            2 => given.owners.iter_mut().for_each(|owner| owner.proof.fill(0)),
            _ => given.owners.clear(),
        }
        let mut opening = share.opening.dangerous_unverified().unwrap();
        share.contribution = Signed::new(&given, &key);
        opening.contribution = share.contribution.digest();
        share.opening = Signed::new(&opening, &key);
    }
}
