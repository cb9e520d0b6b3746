//! `Neighbours` from plan to opening: honest runs with dropouts and restarts, and a service
//! that lies about the graph or cuts it.

use alpheus_crypto::merkle::Tree;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{MessageError, PlanRefusalError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{Ledger, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::mask::cuts::{self, Cuts, ROSTERS};
use alpheus_encrypted_stream::mask::params::{self, UnsafeMasksError};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    Announcement, ControllerMessage, Membership, Opening, Picks, ServiceMessage, Token, member_leaf,
};
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan, needed_picks};
use alpheus_time::{Span, Timestamp};

use crate::protocol::coordinator::signing_key;
use crate::protocol::evil::{Draft, Evil};
use crate::protocol::net::Net;
use crate::protocol::world::{EPOCH, Setup, after, announce, window};

pub const ALL: u32 = 40;
pub const CUTS: Cuts = Cuts { picks: 16, cut_off: 2 };
const MASKS: MaskStrategy = MaskStrategy::Neighbours { picks: CUTS.picks, cut_off: CUTS.cut_off };

pub fn setup() -> Setup {
    Setup { masks: MASKS, dropout: Fraction::TENTH, minimum: 10, ..Setup::new(ALL) }
}

/// Controllers of a plan with `Neighbours`, controlled by the test.
pub struct Sparse {
    pub evil: Evil,
    picks: Vec<Vec<u32>>,
}

impl Sparse {
    pub fn new() -> Self {
        Self::of(setup())
    }

    pub fn of(setup: Setup) -> Self {
        let mut evil = Evil::unannounced(setup);
        let announcement = evil.world.announcement();
        let heard = evil.inbox.open(&announcement).unwrap();
        let mut picks = Vec::new();
        for (controller, key) in evil.controllers.iter_mut().zip(evil.world.announced.verifying()) {
            let step = controller.handle(&heard, Timestamp(EPOCH));
            let said = step.commit(&mut evil.store).unwrap();
            let [ControllerMessage::Picks(signed), ControllerMessage::Acceptance(_)] = &said[..]
            else {
                panic!("{said:?}")
            };
            picks.push(signed.open(key).unwrap().picks.clone());
        }
        Self { evil, picks }
    }

    /// The members that picked a member.
    fn pickers(&self, draft: &Draft, of: u32) -> Vec<u32> {
        let members = draft.members.iter().map(|(member, ..)| *member);
        members.filter(|member| self.picks[*member as usize].contains(&of)).collect()
    }

    /// M with true lists of pickers, except for the changes of `lie`.
    pub fn introduction(
        &self,
        draft: &Draft,
        to: u32,
        lie: impl Fn(u32, &mut Vec<u32>),
    ) -> ServiceMessage {
        let list = |of: u32| {
            let mut pickers = self.pickers(draft, of);
            lie(of, &mut pickers);
            pickers
        };
        let leaves =
            draft.members.iter().map(|(p, d, _)| member_leaf(d, Some(&list(*p)))).collect();
        let tree = Tree::new(leaves);
        let membership = Membership {
            plan: self.evil.world.id(),
            window: draft.window,
            members: RosterSet::of(ALL, draft.members.iter().map(|(p, ..)| *p)),
            owners: draft.members.iter().map(|(.., owners)| *owners).collect(),
            root: tree.root(),
            mask_keys: self.evil.keys_of(draft),
        };
        let membership = Signed::new(&membership, &self.evil.world.service);
        let rank = draft.members.iter().position(|(p, ..)| *p == to).unwrap();
        let proof = tree.prove(rank).unwrap();
        ServiceMessage::Introduction { membership, proof, pickers: list(to) }
    }

    /// The tokens of all members for the same M.
    pub fn tokens(&mut self, draft: &Draft, lie: impl Fn(u32, &mut Vec<u32>)) -> Vec<Token> {
        let one = |to: u32| {
            let message = self.introduction(draft, to, &lie);
            self.evil.token_for(to, &message).unwrap()
        };
        (0..ALL).map(one).collect()
    }

    /// S for that M.
    pub fn set(
        &self,
        draft: &Draft,
        members: &[u32],
        lie: impl Fn(u32, &mut Vec<u32>),
    ) -> ServiceMessage {
        let ServiceMessage::Introduction { membership, .. } = self.introduction(draft, 0, lie)
        else {
            panic!()
        };
        let set = alpheus_encrypted_stream::messages::OpeningSet {
            plan: self.evil.world.id(),
            window: draft.window,
            membership: membership.digest(),
            set: RosterSet::of(ALL, members.iter().copied()),
        };
        ServiceMessage::OpeningSet(Signed::new(&set, &self.evil.world.service))
    }

    /// The sum of some members' ciphertexts, tokens and openings.
    pub fn sum(&self, of: &[u32], tokens: &[Token], openings: &[&Opening]) -> Vec<u64> {
        let tokens: Vec<&Token> = of.iter().map(|p| &tokens[*p as usize]).collect();
        self.evil.add_up(of, &tokens, openings)
    }

    pub fn truth(&self, of: &[u32]) -> Vec<u64> {
        self.evil.world.truth(of.iter().map(|p| *p as usize), 0)
    }
}

pub fn honest(_: u32, _: &mut Vec<u32>) {}

pub fn all_but(out: &[u32]) -> Vec<u32> {
    (0..ALL).filter(|p| !out.contains(p)).collect()
}

fn opened(net: &Net, number: usize) -> Vec<u64> {
    net.outcomes[number]
        .result
        .as_ref()
        .unwrap_or_else(|failure| panic!("{failure}"))
        .outputs
        .clone()
}

#[test]
fn the_test_plan_uses_the_minimum_that_meets_its_bound() {
    assert_eq!(cuts::least(ALL, 0, 9), Some(CUTS));
}

#[test]
fn with_neighbours_windows_open_and_each_controller_agrees_on_few_keys() {
    let mut net = Net::new(setup());
    for number in 0..3 {
        net.close(number);
        assert_eq!(opened(&net, number as usize), net.world.truth(0..ALL as usize, number));
    }
    let introduced = |(_, m): &&(u32, _)| matches!(m, ServiceMessage::Introduction { .. });
    assert_eq!(net.sent.iter().filter(introduced).count(), 3 * ALL as usize);
    assert!(!net.sent.iter().any(|(_, m)| matches!(m, ServiceMessage::Membership { .. })));
}

#[test]
fn a_controller_that_drops_out_is_left_out_and_can_return() {
    let mut net = Net::new(setup());
    let report = net.world.report(0);
    let step = net.coordinator.handle_window_report(&report, after(0));
    net.sleep_after_presence = vec![7];
    net.run(after(0), step);
    net.timeout(after(0).plus(Span::seconds(2)));
    let rest = (0..ALL as usize).filter(|p| *p != 7);
    assert_eq!(opened(&net, 0), net.world.truth(rest, 0));
    (net.asleep, net.sleep_after_presence) = (vec![3], vec![]);
    net.close(1);
    net.timeout(after(1).plus(Span::seconds(2)));
    assert_eq!(opened(&net, 1), net.world.truth((0..ALL as usize).filter(|p| *p != 3), 1));
    net.asleep.clear();
    net.close(2);
    assert_eq!(opened(&net, 2), net.world.truth(0..ALL as usize, 2));
}

#[test]
fn a_controller_that_accepts_late_is_introduced_then() {
    let mut net = Net::unannounced(crate::protocol::world::World::new(setup()));
    net.asleep = vec![5];
    let step = net.coordinator.announce();
    net.run(Timestamp(EPOCH), step);
    net.asleep.clear();
    // It is summoned, does not know the plan, receives it, and is summoned again.
    net.close(0);
    assert!(net.outcomes.is_empty());
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(opened(&net, 0), net.world.truth(0..ALL as usize, 0));
}

#[test]
fn a_controller_sends_lost_picks_again() {
    let mut net = Net::new(setup());
    // The service loses the picks: they were not in its store.
    let picks: Vec<Vec<u8>> = net.store.map.keys().filter(|key| key[0] == b's').cloned().collect();
    assert_eq!(picks.len(), ALL as usize);
    net.store.map.remove(&picks[9]);
    net.restart_service(Timestamp(EPOCH));
    net.close(0);
    assert!(net.outcomes.is_empty(), "its presence is not taken yet");
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(opened(&net, 0), net.world.truth(0..ALL as usize, 0));
}

#[test]
fn a_restart_between_token_and_opening_changes_nothing() {
    for (controllers, service) in [(true, false), (false, true), (true, true)] {
        let mut net = Net::new(setup());
        net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
        net.close(0);
        net.lost = |_, _| false;
        if controllers {
            net.restore_controllers(after(0), true);
        }
        if service {
            net.restart_service(after(0));
        }
        net.timeout(after(0).plus(Span::seconds(3)));
        assert_eq!(opened(&net, 0), net.world.truth(0..ALL as usize, 0));
        net.close(1);
        assert_eq!(opened(&net, 1), net.world.truth(0..ALL as usize, 1));
    }
}

#[test]
fn a_closed_windows_records_are_removed_from_ledgers() {
    let mut net = Net::new(Setup { windows: 130, ..setup() });
    (0..130).for_each(|number| net.close(number));
    let left = |of: fn(&Record) -> bool| {
        let values = (0..ALL)
            .flat_map(|p| net.store.values(Scope::Controller(net.controllers[p as usize].id())));
        values.filter(|value| of(&StampedRecord::read(value).unwrap().record)).count()
    };
    let windows = left(|record| matches!(record, Record::Pickers { .. })) / ALL as usize;
    assert!((64..100).contains(&windows), "{windows}");
    assert_eq!(left(|record| matches!(record, Record::Roster { .. })), ALL as usize);
}

/// The design's first attack on a sparse graph: drop the victim's neighbours.
#[test]
fn a_controller_cut_off_by_drops_refuses_because_of_its_own_picks() {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let victim = 11;
    let needed = needed_picks(CUTS.picks);
    let lost: Vec<u32> = sparse.picks[victim as usize][..4].to_vec();
    let refused = WindowRefusalError::TooFewPicks { held: needed - 1, needed };
    // Left out of M.
    let mut fewer = draft.clone();
    fewer.members.retain(|(p, ..)| !lost.contains(p));
    let message = sparse.introduction(&fewer, victim, honest);
    assert_eq!(sparse.evil.token_for(victim, &message).map(|_| ()), Err(refused));
    // In M, but dropped before S: as many as the quorum permits.
    let tokens = sparse.tokens(&draft, honest);
    let set = sparse.set(&draft, &all_but(&lost), honest);
    assert_eq!(sparse.evil.opening(victim, &set).map(|_| ()), Err(refused));
    // The others may answer, but their answers without the victim's open nothing.
    let rest: Vec<u32> = all_but(&lost).into_iter().filter(|p| *p != victim).collect();
    let openings: Vec<(u32, Opening)> =
        rest.iter().filter_map(|p| Some((*p, sparse.evil.opening(*p, &set).ok()?))).collect();
    let answered: Vec<u32> = openings.iter().map(|(p, _)| *p).collect();
    let openings: Vec<&Opening> = openings.iter().map(|(_, opening)| opening).collect();
    assert_ne!(sparse.sum(&answered, &tokens, &openings), sparse.truth(&answered));
    assert!(answered.len() >= 30, "{answered:?}");
}

#[test]
fn colluders_that_pick_the_victim_do_not_replace_its_own_picks() {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let victim = 11;
    let lost: Vec<u32> = sparse.picks[victim as usize][..4].to_vec();
    let mut fewer = draft.clone();
    fewer.members.retain(|(p, ..)| !lost.contains(p));
    // The service claims that all members picked it.
    let everybody = |of: u32, pickers: &mut Vec<u32>| {
        if of == victim {
            *pickers = all_but(&[&lost[..], &[victim]].concat());
        }
    };
    let message = sparse.introduction(&fewer, victim, everybody);
    let needed = needed_picks(CUTS.picks);
    let refused = WindowRefusalError::TooFewPicks { held: needed - 1, needed };
    assert_eq!(sparse.evil.token_for(victim, &message).map(|_| ()), Err(refused));
}

/// A service that reports different dropouts to two halves.
#[test]
fn contradictory_reports_of_who_dropped_do_not_open_together() {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let tokens = sparse.tokens(&draft, honest);
    let sets = [all_but(&[39]), all_but(&[38])];
    let messages = [&sets[0], &sets[1]].map(|set| sparse.set(&draft, set, honest));
    let mut openings = Vec::new();
    for p in 0..38_u32 {
        let message = &messages[(p % 2) as usize];
        openings.push(sparse.evil.opening(p, message).unwrap());
        let other = &messages[1 - (p % 2) as usize];
        assert_eq!(
            sparse.evil.opening(p, other).map(|_| ()),
            Err(WindowRefusalError::AlreadyOpened)
        );
    }
    for half in [0, 1] {
        let of: Vec<u32> = (0..38).filter(|p| p % 2 == half).collect();
        let said: Vec<&Opening> = of.iter().map(|p| &openings[*p as usize]).collect();
        assert_ne!(sparse.sum(&of, &tokens, &said), sparse.truth(&of));
    }
    let of: Vec<u32> = (0..38).collect();
    let said: Vec<&Opening> = openings.iter().collect();
    assert_ne!(sparse.sum(&of, &tokens, &said), sparse.truth(&of));
}

/// Different graphs for different controllers: only the truth opens.
#[test]
fn false_lists_of_pickers_open_nothing() {
    assert!(opens(honest));
    let own = Sparse::new().picks.swap_remove(4);
    // Whatever it receives, 4 masks with the members that it picked as well.
    let omitted = |of: u32, pickers: &mut Vec<u32>| {
        let one = pickers.iter().position(|picker| !own.contains(picker));
        if let (4, Some(one)) = (of, one) {
            pickers.remove(one);
        }
    };
    assert!(!opens(omitted));
    let invented = |of: u32, pickers: &mut Vec<u32>| {
        let stranger = (5..ALL).find(|p| !pickers.contains(p) && !own.contains(p));
        if let (4, Some(stranger)) = (of, stranger) {
            pickers.push(stranger);
            pickers.sort_unstable();
        }
    };
    assert!(!opens(invented));
    assert!(!opens(|_, pickers| pickers.clear()));
}

/// Whether a window opens if all receive the same M, true or not.
fn opens(lie: impl Fn(u32, &mut Vec<u32>) + Copy) -> bool {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let tokens = sparse.tokens(&draft, lie);
    let all = all_but(&[]);
    let set = sparse.set(&draft, &all, lie);
    let openings: Vec<Opening> =
        all.iter().map(|p| sparse.evil.opening(*p, &set).unwrap()).collect();
    let openings: Vec<&Opening> = openings.iter().collect();
    sparse.sum(&all, &tokens, &openings) == sparse.truth(&all)
}

#[test]
fn lists_of_pickers_that_are_not_in_m_get_no_token() {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let good = sparse.introduction(&draft, 4, honest);
    let ServiceMessage::Introduction { membership, proof, pickers } = &good else { panic!() };
    let with = |pickers: Vec<u32>| {
        let (membership, proof) = (membership.clone(), proof.clone());
        ServiceMessage::Introduction { membership, proof, pickers }
    };
    let refused = |sparse: &mut Sparse, message| sparse.evil.token_for(4, &message).unwrap_err();
    let shorter = pickers[1..].to_vec();
    assert_eq!(refused(&mut sparse, with(shorter)), WindowRefusalError::PresenceMisstated);
    let mut doubled = pickers.clone();
    doubled.insert(0, pickers[0]);
    let myself = vec![4];
    for bad in [doubled, myself, vec![ALL], pickers.iter().rev().copied().collect()] {
        assert_eq!(refused(&mut sparse, with(bad)), WindowRefusalError::MalformedMembership);
    }
    let plain = ServiceMessage::Membership { membership: membership.clone(), proof: proof.clone() };
    assert_eq!(refused(&mut sparse, plain), WindowRefusalError::MalformedMembership);
    assert!(sparse.evil.token_for(4, &good).is_ok());
}

#[test]
fn a_clique_takes_no_introductions() {
    let mut evil = Evil::new(Setup::new(3));
    let draft = evil.gather();
    let ServiceMessage::Membership { membership, proof } = evil.membership(&draft, 1) else {
        panic!()
    };
    let message = ServiceMessage::Introduction { membership, proof, pickers: vec![] };
    assert_eq!(evil.token_for(1, &message).unwrap_err(), WindowRefusalError::MalformedMembership);
}

#[test]
fn different_pickers_make_a_different_m() {
    let mut sparse = Sparse::new();
    let draft = sparse.evil.gather();
    let first = sparse.introduction(&draft, 4, honest);
    let token = sparse.evil.token_for(4, &first).unwrap();
    assert_eq!(sparse.evil.token_for(4, &first), Ok(token));
    let other = sparse.introduction(&draft, 4, |of, pickers| {
        if of == 4 {
            pickers.pop();
        }
    });
    assert_eq!(sparse.evil.token_for(4, &other), Err(WindowRefusalError::AlreadySpent));
}

#[test]
fn a_plan_that_picks_too_few_is_refused_with_the_numbers() {
    let mut evil = Evil::unannounced(setup());
    let tell = |evil: &mut Evil, masks| {
        let plan = Plan { masks, ..evil.world.plan.clone() };
        let certificates = evil.world.seats.iter().map(|(_, seat)| seat.clone()).collect();
        let signed =
            Signed::new(&Announcement { plan, certificates, consumer: None }, &evil.world.service);
        let key = evil.world.announced.verifying()[2];
        match evil.say(2, Timestamp(EPOCH), &ServiceMessage::Announcement(signed)).unwrap() {
            ControllerMessage::PlanRefusal(refusal) => refusal.open(&key).unwrap().reason.clone(),
            other => panic!("{other:?}"),
        }
    };
    for (picks, cut_off) in [(15, 2), (16, 1), (0, 2), (40, 2), (16, 20), (u32::MAX, u32::MAX)] {
        let refused = tell(&mut evil, MaskStrategy::Neighbours { picks, cut_off });
        let (least_picks, least_cut_off) = (CUTS.picks, CUTS.cut_off);
        let numbers = PlanRefusalError::TooFewPicks { picks, cut_off, least_picks, least_cut_off };
        assert_eq!(refused, numbers);
    }
    // More colluders require other numbers.
    let plan = Plan { alpha: Fraction::THIRD, ..evil.world.plan.clone() };
    let refused = params::check(&plan);
    assert!(
        matches!(refused, Err(UnsafeMasksError::TooFewPicks { stated: CUTS, .. })),
        "{refused:?}"
    );
}

#[test]
fn a_controller_picks_in_a_limited_number_of_rosters() {
    let mut net = Net::new(setup());
    let id = net.controllers[0].id();
    for number in 1..ROSTERS {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.to_be_bytes());
        let record = Record::Roster { digest: alpheus_crypto::hash::Digest(digest) };
        let stamped = StampedRecord { sequence: 1, fenced: 0, clock: Timestamp(EPOCH), record };
        net.store.commit(&[stamped.put(id)]).unwrap();
    }
    net.restore_controllers(Timestamp(EPOCH), true);
    // A known roster is never one too many, whatever the plan.
    net.close(0);
    assert_eq!(opened(&net, 0), net.world.truth(0..ALL as usize, 0));
    let masks = MaskStrategy::Neighbours { picks: 21, cut_off: 2 };
    let other = Plan { masks, ..net.plan_again(9, window(1).start) };
    let step = net.coordinator.retire();
    net.run(after(0), step);
    let world = &net.world;
    let announced = announce(&other, &world.seats, &world.service, &world.deployment);
    let answers: Vec<_> = net
        .controllers
        .iter_mut()
        .map(|c| c.handle_announcement(&announced, Timestamp(EPOCH)).map(drop))
        .collect();
    let refused = |answer: &Result<_, PlanRefusalError>| {
        matches!(answer, Err(PlanRefusalError::TooManyRosters { most: ROSTERS }))
    };
    assert!(refused(&answers[0]), "{:?}", answers[0]);
    assert!(!answers[1..].iter().any(refused));
}

#[test]
fn picks_that_do_not_fit_the_plan_are_dropped() {
    let mut net = Net::new(setup());
    let key = signing_key(&net, 3);
    let mut tell = |picks: Vec<u32>, controller| {
        let picks = Picks { plan: net.world.id(), controller, picks };
        let signed = ControllerMessage::Picks(Signed::new(&picks, &key));
        let message = net.coordinator.verify(&signed, 3)?;
        net.coordinator.handle(&message, Timestamp(EPOCH), &net.world).map(|_| ())
    };
    assert_eq!(tell((4..20).collect(), 3), Err(MessageError::Malformed), "it has said others");
    let bad = [(3..19).collect(), (4..19).collect(), (30..46).collect(), vec![7; 16]];
    for picks in bad {
        assert_eq!(tell(picks, 3), Err(MessageError::Malformed));
    }
    assert_eq!(tell((4..20).collect(), 2), Err(MessageError::Malformed), "another's picks");
}
