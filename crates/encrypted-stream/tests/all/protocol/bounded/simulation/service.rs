//! A service that asks controllers again for something else, and that publishes other rows and receipts. It
//! has its own key, and a colluding member's.

use alpheus_bounded_influence::check::Checker;
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    ControllerMessage, EdgeRequest, EdgeStatement, ServiceMessage, Strike,
};
use alpheus_encrypted_stream::receipt::BoundedReceipt;
use alpheus_time::Timestamp;

use super::Dice;
use crate::protocol::coordinator::key_of;
use crate::protocol::net::Net;

/// Asks for the same again, for another S, for edges of another S, and for a part between two that agree.
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
    part(net, now, to);
}

/// The service says that a member and another one differ, with a statement of its own making.
fn part(net: &mut Net, now: Timestamp, to: u32) {
    let asked = net.sent.iter().rev().find_map(|(at, message)| match message {
        ServiceMessage::Membership { membership, proof } if *at == to => {
            Some((membership.clone(), proof.clone()))
        }
        _ => None,
    });
    let stated = net.heard.iter().rev().find_map(|(from, message)| match message {
        ControllerMessage::Edges(signed) if *from == to => Some(signed.clone()),
        _ => None,
    });
    let (Some((membership, proof)), Some(own)) = (asked, stated) else { return };
    let mut lie: EdgeStatement = own.dangerous_unverified().unwrap();
    lie.controller = (to + 1) % 5;
    lie.edges.clear();
    let strike = Strike { own, other: Signed::new(&lie, &net.world.service) };
    let strikes = vec![strike];
    net.ask(now, to, &ServiceMessage::BoundedMembership { membership, proof, strikes });
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
