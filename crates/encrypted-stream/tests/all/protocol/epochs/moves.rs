//! Streams that move to another controller while a query runs by epochs, under a service that calls
//! whom it likes, replays, and withholds.

use alpheus_encrypted_stream::annotation::{ControllerChange, Placement};
use alpheus_encrypted_stream::controller::Luggage;
use alpheus_encrypted_stream::error::{CertificateError, MoveError};
use alpheus_encrypted_stream::handover::{HandedOver, Purpose};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use super::*;
use crate::protocol::identities::{certified, owner, owner_key};

/// The stream that moves. It begins at the controller of the same number.
const STREAM: usize = 2;

fn setup() -> Setup {
    Setup { minimum: 2, windows: 6, ..Setup::new(4) }
}

impl Epochs {
    fn moving(&self) -> StreamId {
        self.all.streams[STREAM].stream
    }

    /// The owner's placement, by which the stream moves.
    fn placement(
        &self,
        version: u32,
        (from, to): (usize, usize),
        at: Timestamp,
        lost: bool,
    ) -> Signed<Placement> {
        let moved = Some(ControllerChange { from: self.all.roster[from], at, lost });
        let (stream, controller) = (self.moving(), self.all.roster[to]);
        let placement = Placement { stream, version, controller, producer: "watch".into(), moved };
        Signed::new(&placement, &owner_key(stream))
    }

    fn leave(
        &mut self,
        (from, to): (usize, usize),
        placement: &Signed<Placement>,
        now: Timestamp,
    ) -> Result<Signed<HandedOver>, MoveError> {
        let (certificate, key) = (self.world.seats[to].1.clone(), self.controllers[to].hybrid());
        let to = (&certificate, key.clone());
        let (owner, mut rng) =
            (owner(self.moving()), ChaCha20Rng::from_seed([version(placement); 32]));
        let step = self.controllers[from].move_away(placement, &owner, to, now, &mut rng)?;
        let handed = step.commit(&mut self.store).unwrap().pop().unwrap();
        self.controllers[from].note_fenced();
        Ok(handed)
    }

    fn arrive(
        &mut self,
        (from, to): (usize, usize),
        placement: &Signed<Placement>,
        handed: &Signed<HandedOver>,
        now: Timestamp,
    ) -> Result<(), MoveError> {
        let (stream, before) = (self.moving(), self.world.seats[from].1.clone());
        let owner = owner(stream);
        let purpose = Purpose { stream, schema: self.world.schema.id(), owner: owner.id() };
        let opened = placement.open(owner.key()).unwrap();
        let sealed = (&purpose, &opened);
        let (master, luggage) = self.controllers[to].open_carried(sealed, handed, &before)?;
        self.take(to, placement, Some(master), luggage, now)
    }

    fn take(
        &mut self,
        to: usize,
        placement: &Signed<Placement>,
        master: Option<alpheus_encrypted_stream::keys::MasterSecret>,
        luggage: Luggage,
        now: Timestamp,
    ) -> Result<(), MoveError> {
        let stream = self.moving();
        let owner = owner(stream);
        let (schema, layout) = (Arc::clone(&self.world.schema), Arc::clone(&self.world.layout));
        let held = HeldStream { stream, owner: owner.id(), schema, layout, master };
        let choice = self.world.annotate(stream, 1, policy(&self.world.setup));
        let signed = (placement, &choice);
        let step = self.controllers[to].take_over(held, signed, luggage, &owner, now)?;
        step.commit(&mut self.store).unwrap();
        self.controllers[to].note_fenced();
        Ok(())
    }

    /// The honest service takes the stream as its owner has placed it.
    fn placed(&mut self, at: usize) {
        self.all.streams[STREAM].controller = at as u32;
    }

    /// Whether a controller attends a window with the stream.
    fn attends(&mut self, at: usize, number: u64) -> bool {
        let stream = self.moving();
        let attended = self.attendance(at, number);
        attended.is_ok_and(|attended| {
            attended.entry.owners.iter().any(|listed| listed.streams.contains(&stream))
        })
    }
}

fn version(placement: &Signed<Placement>) -> u8 {
    placement.dangerous_unverified().unwrap().version as u8
}

/// The whole way: every window has all streams, the last one before the border at the old controller
/// and the first one after it at the new one.
#[test]
fn a_stream_that_moves_is_in_every_window_once() {
    let mut epochs = Epochs::new(setup());
    let outcome = |epochs: &mut Epochs, number| {
        let opened = epochs.window(number, ALL).unwrap().result.unwrap();
        assert_eq!(opened.outputs, epochs.world.truth(0..4, number), "window {number}");
    };
    outcome(&mut epochs, 0);
    let border = window(3).start;
    let placement = epochs.placement(2, (2, 1), border, false);
    let handed = epochs.leave((2, 1), &placement, after(0)).unwrap();
    epochs.arrive((2, 1), &placement, &handed, after(0)).unwrap();
    outcome(&mut epochs, 1);
    outcome(&mut epochs, 2);
    epochs.placed(1);
    outcome(&mut epochs, 3);
    outcome(&mut epochs, 4);
}

/// A service that calls both for every window never gets the stream twice, at whichever step each of them
/// crashes.
#[test]
fn no_window_is_answered_by_both() {
    for crashes in [false, true] {
        let mut epochs = Epochs::new(setup());
        let placement = epochs.placement(2, (2, 1), window(2).start, false);
        let handed = epochs.leave((2, 1), &placement, Timestamp(EPOCH)).unwrap();
        let crash = |epochs: &mut Epochs, at: usize, now| {
            let (store, fence) = (epochs.store.clone(), epochs.controllers[at].fence());
            epochs.restore(at, &store, now, Some(fence));
        };
        if crashes {
            crash(&mut epochs, 2, Timestamp(EPOCH));
        }
        assert_eq!(
            epochs.leave((2, 1), &placement, after(0)),
            Ok(handed.clone()),
            "the same again"
        );
        // What is handed over is withheld for two windows.
        let mut seen = Vec::new();
        for number in 0..6 {
            if number == 3 {
                epochs.arrive((2, 1), &placement, &handed, after(2)).unwrap();
                epochs.placed(1);
                if crashes {
                    crash(&mut epochs, 1, after(2));
                    crash(&mut epochs, 2, after(2));
                }
                epochs.arrive((2, 1), &placement, &handed, after(2)).unwrap();
            }
            seen.push([epochs.attends(2, number), epochs.attends(1, number)]);
        }
        let (old, new, nobody) = ([true, false], [false, true], [false, false]);
        assert_eq!(seen, [old, old, nobody, new, new, new], "crashes: {crashes}");
    }
}

/// Placements of earlier moves win nowhere, in whatever order a service shows them.
#[test]
fn an_older_placement_wins_at_no_controller() {
    let mut epochs = Epochs::new(setup());
    let there = epochs.placement(2, (2, 1), window(1).start, false);
    let away = epochs.leave((2, 1), &there, Timestamp(EPOCH)).unwrap();
    epochs.arrive((2, 1), &there, &away, Timestamp(EPOCH)).unwrap();
    let on = epochs.placement(3, (1, 0), window(2).start, false);
    let on_away = epochs.leave((1, 0), &on, after(0)).unwrap();
    epochs.arrive((1, 0), &on, &on_away, after(0)).unwrap();
    let back = epochs.placement(4, (0, 2), window(3).start, false);
    let back_away = epochs.leave((0, 2), &back, after(1)).unwrap();
    epochs.arrive((0, 2), &back, &back_away, after(1)).unwrap();
    let older = |version, known| Err(MoveError::NotLater { version, known });
    // Also after a restart.
    for restart in [false, true] {
        if restart {
            for at in 0..3 {
                let (store, fence) = (epochs.store.clone(), epochs.controllers[at].fence());
                epochs.restore(at, &store, after(1), Some(fence));
            }
            epochs.placed(2);
        }
        assert_eq!(epochs.arrive((2, 1), &there, &away, after(1)), older(2, 3));
        assert_eq!(epochs.leave((2, 1), &there, after(1)).map(drop), older(2, 4));
        assert_eq!(epochs.arrive((1, 0), &on, &on_away, after(1)), older(3, 4));
        let second = epochs.placement(5, (1, 3), window(4).start, false);
        assert_eq!(epochs.leave((1, 3), &second, after(1)).map(drop), Err(MoveError::MovedAway));
        let mine = owner(epochs.moving());
        let informed = epochs.controllers[2].give_up(&on, &mine, after(1)).unwrap();
        assert!(informed.is_empty(), "an older placement changes nothing");
    }
    let at = |epochs: &mut Epochs, number| [0, 1, 2].map(|at| epochs.attends(at, number));
    assert_eq!(at(&mut epochs, 2), [true, false, false]);
    assert_eq!(at(&mut epochs, 3), [false, false, true]);
}

#[test]
fn what_is_handed_over_holds_for_one_move_and_one_controller() {
    let mut epochs = Epochs::new(setup());
    let placement = epochs.placement(2, (2, 1), window(1).start, false);
    let handed = epochs.leave((2, 1), &placement, Timestamp(EPOCH)).unwrap();
    let not = Err(MoveError::NotHandedOver);
    let other = epochs.placement(3, (2, 1), window(2).start, false);
    assert_eq!(epochs.arrive((2, 1), &other, &handed, Timestamp(EPOCH)), not);
    // Another controller can read nothing of it.
    assert_eq!(epochs.arrive((2, 3), &placement, &handed, Timestamp(EPOCH)), not);
    // Nobody but the previous controller can have signed it.
    assert_eq!(epochs.arrive((0, 1), &placement, &handed, Timestamp(EPOCH)), not);
    let opened = handed.dangerous_unverified().unwrap();
    let forged = Signed::new(&opened, &owner_key(epochs.moving()));
    assert_eq!(epochs.arrive((2, 1), &placement, &forged, Timestamp(EPOCH)), not);
    // A placement that another owner signs moves nothing.
    let stranger = certified(&owner_key(epochs.all.streams[0].stream));
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let certificate = epochs.world.seats[1].1.clone();
    let to = (&certificate, epochs.controllers[1].hybrid().clone());
    let moved =
        epochs.controllers[2].move_away(&placement, &stranger, to, Timestamp(EPOCH), &mut rng);
    assert_eq!(moved.map(drop).err(), Some(MoveError::NotTheOwners));
    // Nothing is sealed for a key that the next controller's certificate does not name.
    let other = (&certificate, epochs.controllers[3].hybrid().clone());
    let mine = owner(epochs.moving());
    let moved =
        epochs.controllers[2].move_away(&placement, &mine, other, Timestamp(EPOCH), &mut rng);
    assert_eq!(moved.map(drop).err(), Some(CertificateError::OtherHybrid.into()));
    epochs.arrive((2, 1), &placement, &handed, Timestamp(EPOCH)).unwrap();
}

/// Windows that are over may have been answered.
#[test]
fn a_border_in_the_past_is_refused_and_the_earliest_is_named() {
    let mut epochs = Epochs::new(setup());
    let placement = epochs.placement(2, (2, 1), window(1).start, false);
    let earliest = after(1);
    let early = Err(MoveError::BorderTooEarly { earliest });
    assert_eq!(epochs.leave((2, 1), &placement, after(1)).map(drop), early);
    assert!(epochs.attends(2, 1), "nothing has changed");
}

/// A day of which the owner bounds the sets has one controller.
#[test]
fn with_a_bound_on_sets_the_border_is_at_midnight() {
    let mut epochs = Epochs::new(Setup { sets_per_day: Some(2), ..setup() });
    let within = epochs.placement(2, (2, 1), window(1).start, false);
    let refused = epochs.leave((2, 1), &within, Timestamp(EPOCH)).map(drop);
    assert_eq!(refused, Err(MoveError::WithinDay));
    let midnight = epochs.placement(2, (2, 1), window(2).start, false);
    let handed = epochs.leave((2, 1), &midnight, Timestamp(EPOCH)).unwrap();
    epochs.arrive((2, 1), &midnight, &handed, Timestamp(EPOCH)).unwrap();
}

/// An owner who chooses such a bound on the day of the move is in no later sum of that day: nobody knows which
/// sets the previous controller had.
#[test]
fn a_bound_that_is_chosen_on_the_day_of_the_move_leaves_the_stream_out_for_the_day() {
    let mut epochs = Epochs::new(setup());
    let placement = epochs.placement(2, (2, 1), window(3).start, false);
    let handed = epochs.leave((2, 1), &placement, Timestamp(EPOCH)).unwrap();
    epochs.arrive((2, 1), &placement, &handed, Timestamp(EPOCH)).unwrap();
    assert!(epochs.attends(1, 3));
    let bounded = policy(&Setup { sets_per_day: Some(2), ..setup() });
    let stream = epochs.moving();
    let choice = epochs.world.annotate(stream, 2, bounded);
    let step = epochs.controllers[1].annotate(&choice, &owner(stream), after(3)).unwrap();
    step.commit(&mut epochs.store).unwrap();
    assert!(!epochs.attends(1, 4));
}

/// A controller that comes back from a copy from before the move waits for its owner; and once it hears of
/// the later placement, it answers nothing, even if the owner confirms by mistake.
#[test]
fn an_old_copy_of_the_controller_before_answers_nothing_once_it_hears_of_the_move() {
    for informed in [true, false] {
        let mut epochs = Epochs::new(setup());
        let old = epochs.store.clone();
        let placement = epochs.placement(2, (2, 1), window(1).start, false);
        epochs.leave((2, 1), &placement, Timestamp(EPOCH)).unwrap();
        epochs.restore(2, &old, after(0), None);
        assert!(!epochs.attends(2, 2));
        let (stream, now) = (epochs.moving(), after(0));
        let mine = owner(stream);
        if informed {
            let step = epochs.controllers[2].give_up(&placement, &mine, now).unwrap();
            step.commit(&mut epochs.store).unwrap();
        }
        let choice = epochs.world.annotate(stream, 2, policy(&setup()));
        let step = epochs.controllers[2].annotate(&choice, &mine, now).unwrap();
        step.commit(&mut epochs.store).unwrap();
        assert_eq!(epochs.attends(2, 3), !informed);
    }
}

/// If the previous controller is lost, the next one answers from a border that is later than all that could have
/// been answered.
#[test]
fn from_a_lost_controller_a_stream_comes_with_its_key_alone() {
    let mut epochs = Epochs::new(setup());
    let (stream, now) = (epochs.moving(), after(1));
    let key = || Some(crate::protocol::world::master(stream));
    let early = epochs.placement(2, (2, 1), window(1).start, true);
    let refused = epochs.take(1, &early, key(), Luggage::Lost, now);
    assert_eq!(refused, Err(MoveError::BorderTooEarly { earliest: now }));
    // A placement that says nothing of a loss needs what the previous controller signs.
    let whole = epochs.placement(2, (2, 1), window(3).start, false);
    let refused = epochs.take(1, &whole, key(), Luggage::Lost, now);
    assert_eq!(refused, Err(MoveError::OtherControllers));
    let lost = epochs.placement(2, (2, 1), window(3).start, true);
    assert_eq!(epochs.leave((2, 1), &lost, now).map(drop), Err(MoveError::OtherControllers));
    epochs.take(1, &lost, key(), Luggage::Lost, now).unwrap();
    epochs.placed(1);
    assert_eq!([epochs.attends(1, 2), epochs.attends(1, 3)], [false, true]);
}
