//! What a lying service can try with members of a bounded plan: none of them signs what it should not.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{
    ControllerMessage, EdgeRequest, EdgeStatement, ServiceMessage, Strike,
};
use alpheus_policy::ids::StreamId;

use super::{Reading, values, world};
use crate::protocol::coordinator::key_of;
use crate::protocol::evil::{Draft, Evil};
use crate::protocol::world::{Setup, after};

/// All have accepted, and window 0 has closed.
fn evil() -> Evil {
    let mut evil = Evil::unannounced_in(world(Setup { windows: 4, ..Setup::new(3) }, values));
    evil.accept();
    evil
}

fn edges(
    evil: &mut Evil,
    p: u32,
    set: &ServiceMessage,
) -> Result<Signed<EdgeStatement>, WindowRefusalError> {
    let ServiceMessage::OpeningSet(signed) = set else { panic!("{set:?}") };
    let (plan, window) = (evil.world.id(), evil.report.window);
    let request = EdgeRequest { plan, window, opening_set: signed.digest() };
    let request = ServiceMessage::EdgeRequest(Signed::new(&request, &evil.world.service));
    match evil.ask(p, after(9), &request)? {
        ControllerMessage::Edges(signed) => Ok(signed),
        other => panic!("{other:?}"),
    }
}

/// M for a member, with these reasons to leave out edges.
fn with_strikes(evil: &Evil, draft: &Draft, to: u32, strikes: Vec<Strike>) -> ServiceMessage {
    match evil.membership(draft, to) {
        ServiceMessage::Membership { membership, proof } => {
            ServiceMessage::BoundedMembership { membership, proof, strikes }
        }
        other => panic!("{other:?}"),
    }
}

fn opened_by_all(evil: &mut Evil, number: u64) -> (Draft, ServiceMessage) {
    let draft = evil.gather_at(number);
    for p in 0..3 {
        let message = evil.membership(&draft, p);
        let answer = evil.ask(p, after(9), &message);
        assert!(matches!(answer, Ok(ControllerMessage::Contribution(_))), "{answer:?}");
    }
    let set = evil.set(&draft, &[0, 1, 2]);
    for p in 0..3 {
        let answer = evil.ask(p, after(9), &set);
        assert!(matches!(answer, Ok(ControllerMessage::BoundedOpening(_))), "{answer:?}");
    }
    (draft, set)
}

/// One M, one S, and the same bytes for each; another one is refused forever.
#[test]
fn a_window_has_one_membership_and_one_set() {
    let mut evil = evil();
    let draft = evil.gather_at(0);
    let first = evil.membership(&draft, 0);
    let given = evil.ask(0, after(9), &first).unwrap();
    assert_eq!(evil.ask(0, after(9), &first), Ok(given));
    let mut other = draft.clone();
    other.members.pop();
    let other = evil.membership(&other, 0);
    assert_eq!(evil.ask(0, after(9), &other), Err(WindowRefusalError::AlreadySpent));
    let set = evil.set(&draft, &[0, 1, 2]);
    let opened = evil.ask(0, after(9), &set).unwrap();
    assert_eq!(evil.ask(0, after(9), &set), Ok(opened));
    let smaller = evil.set(&draft, &[0, 1]);
    assert_eq!(evil.ask(0, after(9), &smaller), Err(WindowRefusalError::AlreadyOpened));
}

/// A statement of edges is about the opening that was signed, and the same each time.
#[test]
fn edges_are_stated_about_the_signed_opening_only() {
    let mut evil = evil();
    let draft = evil.gather_at(0);
    let set = evil.set(&draft, &[0, 1, 2]);
    assert_eq!(edges(&mut evil, 0, &set), Err(WindowRefusalError::NotOpened));
    let message = evil.membership(&draft, 0);
    evil.ask(0, after(9), &message).unwrap();
    assert_eq!(edges(&mut evil, 0, &set), Err(WindowRefusalError::NotOpened));
    evil.ask(0, after(9), &set).unwrap();
    let stated = edges(&mut evil, 0, &set).unwrap();
    assert_eq!(edges(&mut evil, 0, &set), Ok(stated.clone()));
    let smaller = evil.set(&draft, &[0, 1]);
    assert_eq!(edges(&mut evil, 0, &smaller), Err(WindowRefusalError::NotOpened));
    // After a restart its keys are gone: it makes no other one. What it opened it repeats.
    evil.start_again(after(9));
    assert_eq!(edges(&mut evil, 0, &set), Err(WindowRefusalError::KeysGone));
    let again = evil.ask(0, after(9), &set);
    assert!(matches!(again, Ok(ControllerMessage::BoundedOpening(_))), "{again:?}");
}

/// The service cannot part two members that agree: both of their own signatures would have to differ.
#[test]
fn edges_are_left_out_only_for_two_signed_and_differing_statements() {
    let mut evil = evil();
    let (_, set) = opened_by_all(&mut evil, 0);
    let [zero, one, two] = [0, 1, 2].map(|p| edges(&mut evil, p, &set).unwrap());
    let draft = evil.gather_at(1);
    let mut refused = |own: &Signed<EdgeStatement>, other: &Signed<EdgeStatement>| {
        let strike = Strike { own: own.clone(), other: other.clone() };
        let message = with_strikes(&evil, &draft, 0, vec![strike]);
        evil.ask(0, after(9), &message).err()
    };
    let bad = Some(WindowRefusalError::BadStrike);
    // They agree; they are others'; they are its own; the service made one up.
    assert_eq!(refused(&zero, &one), bad);
    assert_eq!(refused(&one, &two), bad);
    assert_eq!(refused(&zero, &zero), bad);
    let mut lie: EdgeStatement = one.dangerous_unverified().unwrap();
    lie.edges.clear();
    let forged = Signed::new(&lie, &evil.world.service);
    let mut refused = |own: &Signed<EdgeStatement>, other: &Signed<EdgeStatement>| {
        let strike = Strike { own: own.clone(), other: other.clone() };
        let message = with_strikes(&evil, &draft, 0, vec![strike]);
        evil.ask(0, after(9), &message).err()
    };
    assert_eq!(refused(&zero, &forged), bad);
    // A statement of another round proves nothing.
    let mut old = lie.clone();
    old.scope.start += 1;
    let key = key_of(&evil.world, 1);
    let mut refused = |own: &Signed<EdgeStatement>, other: &Signed<EdgeStatement>| {
        let strike = Strike { own: own.clone(), other: other.clone() };
        let message = with_strikes(&evil, &draft, 0, vec![strike]);
        evil.ask(0, after(9), &message).err()
    };
    assert_eq!(refused(&zero, &Signed::new(&old, &key)), bad);
    // A colluder that signs a lie parts itself from the member, and nobody else.
    assert_eq!(refused(&zero, &Signed::new(&lie, &key)), None);
}

/// Without any neighbour nothing would hide its sum.
#[test]
fn a_member_whose_edges_are_all_struck_gives_nothing() {
    let mut evil = evil();
    let (_, set) = opened_by_all(&mut evil, 0);
    let zero = edges(&mut evil, 0, &set).unwrap();
    let strike = |p: u32| {
        let lie =
            EdgeStatement { controller: p, edges: vec![], ..zero.dangerous_unverified().unwrap() };
        Strike { own: zero.clone(), other: Signed::new(&lie, &key_of(&evil.world, p)) }
    };
    let strikes = vec![strike(1), strike(2)];
    let draft = evil.gather_at(1);
    let message = with_strikes(&evil, &draft, 0, strikes);
    assert_eq!(evil.ask(0, after(9), &message), Err(WindowRefusalError::NoNeighbours));
}

/// What the owners' log of a controller says of windows out of bounds: their streams.
fn said_out_of_bounds(evil: &Evil, p: usize) -> Vec<Vec<StreamId>> {
    let values = evil.store.values(Scope::Controller(evil.controllers[p].id()));
    let line = |value| match StampedRecord::read(value).unwrap().record {
        Record::Log(LogLine { streams, event: LogEvent::OutOfBounds { .. }, .. }) => Some(streams),
        _ => None,
    };
    values.into_iter().filter_map(line).collect()
}

/// A presence says that an owner is out of bounds, and a later one of the same window that it is not: then its
/// log must not go on saying it. The same if the controller was restarted in between.
#[test]
fn a_line_that_is_no_longer_true_is_taken_back() {
    for restarts in [false, true] {
        let setup = Setup { streams_each: 2, one_owner: true, ..Setup::new(3) };
        let sent = |stream, number| match stream {
            1 => vec![Reading::Value(1); 7],
            _ => values(stream, number),
        };
        let mut evil = Evil::unannounced_in(world(setup, sent));
        evil.accept();
        let own = evil.streams(0);
        let both: Vec<StreamId> = own
            .iter()
            .map(|stream| evil.world.plan.streams[stream.position as usize].stream)
            .collect();
        assert_eq!(evil.presence(0, own.clone()).1.owners, 0, "all of its events are too many");
        assert_eq!(said_out_of_bounds(&evil, 0), std::slice::from_ref(&both));
        if restarts {
            evil.start_again(after(0));
        }
        let fitting = evil.presence(0, own[..1].to_vec()).1;
        assert_eq!((fitting.owners, fitting.excluded.len()), (1, 0));
        assert!(said_out_of_bounds(&evil, 0).is_empty(), "restarts: {restarts}");
        // The other stream alone is out of bounds, which is another line.
        assert_eq!(evil.presence(0, own[1..].to_vec()).1.owners, 0);
        assert_eq!(said_out_of_bounds(&evil, 0), [both[1..].to_vec()]);
        // What the ledger holds now is what a restart finds.
        evil.start_again(after(0));
        assert_eq!(evil.presence(0, own).1.owners, 0);
        assert_eq!(said_out_of_bounds(&evil, 0), [both]);
    }
}
