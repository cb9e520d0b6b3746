//! A stream that its owner moves from one host to another, while a query runs by epochs.

use super::epochs::{QUERY, Street, all};
use super::world::{Person, Town, at};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{ControllerChange, Placement};
use alpheus_encrypted_stream::error::MoveError;
use alpheus_streams::controller::guard::GuardError;
use alpheus_streams::server::registry::IntroductionError;
use alpheus_streams::wire::{
    Arrival, ArrivingKey, Departure, MoveReply, MoveRequest, Notice, Registration,
};
use alpheus_time::Timestamp;

/// Whose stream moves. It begins at the house of the same number.
const WHO: usize = 0;

impl Street {
    fn owner(&self) -> &Person {
        &self.people[WHO]
    }

    fn placement(
        &self,
        version: u32,
        (from, to): (usize, usize),
        border: Timestamp,
    ) -> Signed<Placement> {
        let moved = Some(ControllerChange { from: self.houses[from].id, at: border, lost: false });
        let (controller, producer) = (self.houses[to].id, "device".to_owned());
        let stream = self.owner().stream;
        let placement = Placement { stream, version, controller, producer, moved };
        Signed::new(&placement, &self.owner().identity.key)
    }

    fn leave(
        &mut self,
        (from, to): (usize, usize),
        version: u32,
        border: Timestamp,
        now: Timestamp,
    ) -> Result<MoveReply, GuardError> {
        let placement = self.placement(version, (from, to), border);
        let (owner, name) = (self.owner().certificate(), self.owner().name.clone());
        let key = self.houses[to].recipient.key().clone();
        let to = self.houses[to].guard().certificates().remove(0);
        let asked = MoveRequest { placement, owner, to, key };
        self.houses[from].guard().move_away(now, &name, &asked)
    }

    fn left(&mut self, route: (usize, usize), version: u32, border: u64, now: u64) -> Departure {
        match self.leave(route, version, at(border), at(now)).unwrap() {
            MoveReply::Leaves(left) => *left,
            early => panic!("{early:?}"),
        }
    }

    fn arrive(
        &mut self,
        (from, to): (usize, usize),
        left: &Departure,
        now: u64,
    ) -> Result<(), GuardError> {
        let before = self.houses[from].guard().certificates().remove(0);
        let key = ArrivingKey::Handed { handed: left.handed.clone(), before };
        let (placement, choice) = (left.placement.clone(), left.choice.clone());
        let (owner, name) = (self.owner().certificate(), self.owner().name.clone());
        let arrival = Arrival { placement, owner, choice, key };
        self.houses[to].guard().arrive(at(now), &name, &arrival)
    }

    fn tell(&mut self, house: usize) {
        self.houses[house].tell(&mut self.hall, &self.town);
    }

    /// A host's process and its machine end, and start again.
    fn crash(&mut self, house: usize, now: u64) {
        let house = &mut self.houses[house];
        house.guard = None;
        house.disk.crash(now);
        house.guard = Some(self.town.wake(house, at(now)).unwrap());
    }

    fn row(&mut self, window: u64, awake: &[usize], people: &[usize]) {
        self.send(window);
        let row = self.window(window, awake);
        self.check(&row, window, people);
    }

    /// A choice of the owner's, at a host.
    fn chooses(&mut self, house: usize, version: u32, now: u64) -> Result<(), GuardError> {
        let policy = self.town.policy();
        let choice = self.town.choice(&self.people[WHO], version, policy);
        let name = self.owner().name.clone();
        self.houses[house].guard().choose(at(now), &name, &choice)
    }

    /// Notices that a host has not delivered.
    fn notices(&mut self, house: usize) -> Vec<Notice> {
        let pending = self.houses[house].guard().notices().some(9).unwrap();
        pending.into_iter().map(|(_, notice)| notice).collect()
    }
}

/// The service hears of the move long before the border, and is restarted.
#[test]
fn each_host_answers_its_own_side_of_the_border() {
    let mut street = Street::new(3, QUERY);
    street.row(0, &all(3), &all(3));
    // Within the fourth window.
    let left = street.left((0, 1), 2, 7, 3);
    street.arrive((0, 1), &left, 3).unwrap();
    street.tell(1);
    street.restart(1, at(3));
    // Only the first host has it, while another one sleeps.
    street.row(1, &[0, 2], &[0, 2]);
    street.row(2, &all(3), &all(3));
    street.row(3, &all(3), &[1, 2]);
    street.row(4, &[1, 2], &all(3));
    street.row(5, &all(3), &all(3));
}

/// The command is cut short after each step, and run again at another time, once for another host; and
/// the hosts crash.
#[test]
fn a_move_that_was_cut_short_goes_on_as_it_stands() {
    let mut street = Street::new(3, QUERY);
    let left = street.left((0, 1), 2, 4, 1);
    for to in [1, 2] {
        street.crash(0, 1);
        let again = street.left((0, to), 3, 8, 2);
        assert_eq!((&again.placement, &again.handed), (&left.placement, &left.handed));
        assert_eq!(again.choice, left.choice);
    }
    street.arrive((0, 1), &left, 2).unwrap();
    street.crash(1, 2);
    street.arrive((0, 1), &left, 2).unwrap();
    street.tell(1);
    // The owner has chosen otherwise since, and that stays.
    street.chooses(1, 2, 3).unwrap();
    street.arrive((0, 1), &left, 3).unwrap();
    let [Notice::Registered(registration)] = &street.notices(1)[..] else { panic!("no notice") };
    assert_eq!(registration.annotation.dangerous_unverified().unwrap().version, 2);
    street.tell(1);
    street.row(0, &all(3), &all(3));
    street.row(1, &all(3), &all(3));
    street.row(2, &[1, 2], &all(3));
    street.row(3, &[1, 2], &all(3));
}

#[test]
fn a_border_in_the_past_changes_nothing() {
    let mut street = Street::new(2, QUERY);
    let early = street.leave((0, 1), 2, at(2), at(5)).unwrap();
    assert!(matches!(early, MoveReply::TooEarly { earliest } if earliest == at(5)), "{early:?}");
    street.chooses(0, 2, 5).unwrap();
    street.tell(0);
    street.row(0, &all(2), &all(2));
}

/// What the first host still has to do with the stream: only to destroy its key, of which the service
/// hears nothing.
#[test]
fn a_host_that_a_stream_has_left_refuses_its_owner_and_sends_no_notice() {
    let mut street = Street::new(3, QUERY);
    let (left, next) = (street.left((0, 1), 2, 2, 1), street.houses[1].id);
    street.arrive((0, 1), &left, 1).unwrap();
    street.tell(1);
    assert!(street.notices(0).is_empty());
    let name = street.owner().name.clone();
    let refused = street.chooses(0, 2, 2);
    assert!(matches!(refused, Err(GuardError::Moved(to)) if to == next), "{refused:?}");
    let withdrawal = Town::withdrawal(street.owner(), false);
    let refused = street.houses[0].guard().withdraw(at(2), &name, &withdrawal);
    assert!(matches!(refused, Err(GuardError::Moved(to)) if to == next), "{refused:?}");
    street.row(0, &all(3), &all(3));
    let erasure = Town::withdrawal(street.owner(), true);
    assert!(street.houses[0].guard().withdraw(at(3), &name, &erasure).unwrap().is_some());
    street.crash(0, 3);
    assert!(street.notices(0).is_empty());
    street.row(1, &[1, 2], &all(3));
    // Without its key it does not come back.
    let back = street.left((1, 0), 3, 8, 4);
    let refused = street.arrive((1, 0), &back, 4);
    assert!(matches!(refused, Err(GuardError::Move(MoveError::Withdrawn))), "{refused:?}");
}

#[test]
fn a_stream_moves_back_and_is_one_stream_all_the_time() {
    let mut street = Street::new(3, QUERY);
    let there = street.left((0, 1), 2, 2, 1);
    street.arrive((0, 1), &there, 1).unwrap();
    street.tell(1);
    street.row(0, &all(3), &all(3));
    street.row(1, &[1, 2], &all(3));
    let back = street.left((1, 0), 3, 6, 4);
    street.arrive((1, 0), &back, 4).unwrap();
    street.tell(0);
    street.row(2, &[1, 2], &[0, 1, 2]);
    street.row(3, &[0, 2], &[0, 2]);
    street.crash(0, 8);
    street.row(4, &all(3), &all(3));
}

/// The first host comes back from a copy from before the move, and the service knows better.
#[test]
fn a_host_that_comes_back_from_an_old_copy_gives_the_stream_up() {
    let mut street = Street::new(3, QUERY);
    let old = street.houses[0].disk.copy();
    let left = street.left((0, 1), 2, 2, 1);
    street.arrive((0, 1), &left, 1).unwrap();
    street.tell(1);
    street.houses[0].guard = None;
    street.houses[0].disk = old;
    street.houses[0].guard = Some(street.town.wake(&street.houses[0], at(2)).unwrap());
    let [Notice::Registered(own)] = &street.notices(0)[..] else { panic!("no notice") };
    let (own, stream) = (Registration::clone(own), street.owner().stream);
    let host = street.houses[0].name.clone();
    let super::world::Hall { registry, manager, .. } = &mut street.hall;
    let answer = registry.register(manager, &street.town.deployment, &host, own);
    let Err(IntroductionError::Moved(stands)) = answer else { panic!("{answer:?}") };
    street.houses[0].guard().give_up(at(2), &stream, &stands).unwrap();
    assert!(street.notices(0).is_empty());
    let refused = street.chooses(0, 5, 2);
    assert!(matches!(refused, Err(GuardError::Moved(_))), "{refused:?}");
    // It has nothing to hand over.
    let refused = street.leave((0, 2), 9, at(9), at(2));
    assert!(matches!(refused, Err(GuardError::Move(MoveError::MovedAway))), "{refused:?}");
    street.row(1, &[1, 2], &all(3));
}
