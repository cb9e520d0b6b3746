//! Honest windows: rows are the truth, owners out of bounds cost nobody else anything, and what stays.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::error::{ExclusionError, PlanRefusalError, PlanShapeError};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{Announcement, ControllerMessage, ServiceMessage};
use alpheus_policy::bounded_terms::NotBoundableError;
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::Span;

use super::{
    EVENTS, Reading, five, last, named, net, net_of, opened, plan_of, truth, values, world,
};
use crate::protocol::noise::four;
use crate::protocol::sealed_results;
use crate::protocol::world::{Setup, World, after};

#[test]
fn rows_are_the_truth_and_their_receipts_hold() {
    let mut net = net(Setup { streams_each: 2, ..Setup::new(3) });
    for number in 0..3 {
        net.close(number);
        let (outputs, cells) = opened(&net);
        assert_eq!((cells, outputs.population), (truth(0..6, number), 6), "window {number}");
        assert_eq!((outputs.members, outputs.silent), (3, 0));
        assert!(outputs.receipt.is_none() && named(&net).is_empty());
    }
    assert!(net.dropped.is_empty(), "{:?}", net.dropped);
}

/// Silent owners do not count, and owners with several streams count once.
#[test]
fn owners_without_data_and_with_several_streams() {
    let setup = Setup { streams_each: 2, one_owner: true, ..Setup::new(3) };
    let sent = |stream: usize, number| if stream < 3 { values(stream, number) } else { vec![] };
    let mut net = net_of(world(setup, sent));
    net.close(0);
    let (outputs, cells) = opened(&net);
    assert_eq!((cells, outputs.population, outputs.silent), (truth(0..3, 0), 2, 1));
}

#[test]
fn a_window_opens_without_members_that_give_nothing() {
    let mut net = net(five());
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    net.timeout(after(0).plus(Span::seconds(3)));
    let (outputs, cells) = opened(&net);
    assert_eq!((cells, outputs.members), (truth(0..4, 0), 4));
}

/// A device that reports more than any can costs its owner the window, and nobody else anything. The
/// same if it claims to have no events, or if it overflows.
#[test]
fn an_absurd_value_costs_its_owner_the_window() {
    let most = (i64::MAX >> 8) as u64 * EVENTS;
    for absurd in [-1, i64::try_from(most).unwrap() + 1, i64::MIN, i64::MAX] {
        let sent = move |stream, number| match stream {
            2 => vec![Reading::Absurd(absurd)],
            _ => values(stream, number),
        };
        let mut net = net_of(world(Setup { streams_each: 2, ..Setup::new(3) }, sent));
        net.close(0);
        let (outputs, cells) = opened(&net);
        assert_eq!((cells, outputs.population), (truth([0, 1, 3, 4, 5], 0), 5), "{absurd}");
        assert_eq!(last(&net).excluded.get(&ExclusionError::OutOfBounds), Some(&1));
        assert!(named(&net).is_empty());
        let row = last(&net).result.as_ref().unwrap().bounded.clone().unwrap();
        let checker = super::checker(&net.world);
        let row = row.verify(&net.world.announced, &checker, last(&net).window).unwrap();
        assert_eq!(row.exclusions().len(), 1, "its controller has signed that");
        // Its owner reads it, and nobody else does. Another summons adds nothing.
        let window = last(&net).window;
        net.close_again(after(0));
        let lines = |at: u32| -> Vec<_> {
            let line = records(&net, at).into_iter().filter_map(|record| match record {
                Record::Log(LogLine { at, streams, event: LogEvent::OutOfBounds { name, .. } }) => {
                    Some((at, streams, name))
                }
                _ => None,
            });
            line.collect()
        };
        let of = net.world.plan.streams[2];
        let line = (window.end, vec![of.stream], net.world.plan.name.clone());
        assert_eq!(lines(of.controller), [line]);
        let others = (0..3).filter(|at| *at != of.controller);
        assert!(others.into_iter().all(|at| lines(at).is_empty()));
    }
}

/// More events than the plan allows are out of bounds as well, and with them the owner's other stream.
#[test]
fn too_many_events_cost_the_owner_all_streams() {
    let setup = Setup { streams_each: 2, one_owner: true, ..Setup::new(3) };
    let sent = |stream, number| match stream {
        2 => vec![Reading::Value(1); 7],
        _ => values(stream, number),
    };
    let mut net = net_of(world(setup, sent));
    net.close(0);
    let (outputs, cells) = opened(&net);
    assert_eq!((cells, outputs.population), (truth([0, 1, 4, 5], 0), 2));
    assert_eq!(last(&net).excluded.get(&ExclusionError::OutOfBounds), Some(&2));
}

/// With noise, the row is the truth and as much noise as members have proven to be in range.
#[test]
fn noise_is_proven_to_be_in_range() {
    let sent = |stream: usize, _| vec![Reading::Value(i64::try_from(stream).unwrap())];
    let mut net = net_of(world(four(3, 3), sent));
    let mut rows = Vec::new();
    for number in 0..3 {
        net.close(number);
        let (_, cells) = opened(&net);
        rows.push(cells[1] - 6);
        assert!(rows.iter().all(|noise| noise.abs() < 10_000), "{rows:?}");
    }
    assert!(rows.iter().any(|noise| *noise != rows[0]), "{rows:?}");
}

fn records(net: &crate::protocol::net::Net, of: u32) -> Vec<Record> {
    let scope = Scope::Controller(net.controllers[of as usize].id());
    let values = net.store.values(scope);
    values.into_iter().map(|value| StampedRecord::read(value).unwrap().record).collect()
}

/// A controller's answers are in its ledger before they leave; once the window is closed, their digests are.
#[test]
fn what_was_said_is_durable_and_then_digests_are() {
    let mut net = net(Setup::new(3));
    net.lost = |_, message| matches!(message, ServiceMessage::Closing(_));
    net.close(0);
    let (mut given, mut open) = (0, 0);
    for record in records(&net, 1) {
        match record {
            Record::Contributed(spent) => {
                given += 1;
                let sent = ControllerMessage::Contribution(spent.answer);
                assert!(net.heard.contains(&(1, sent)));
            }
            Record::BoundedOpened { answer, .. } => {
                open += 1;
                let sent = ControllerMessage::BoundedOpening(answer);
                assert!(net.heard.contains(&(1, sent)));
            }
            Record::Spent(_) | Record::Opened { .. } => panic!("words in a bounded plan"),
            _ => {}
        }
    }
    assert_eq!((given, open), (1, 1));
    net.lost = |_, _| false;
    net.close(1);
    let kept = records(&net, 1);
    let closed = kept.iter().filter(|record| matches!(record, Record::Closed { .. })).count();
    assert_eq!(closed, 1);
}

/// Plans that are not of the form that members can serve.
#[test]
fn other_forms_are_refused() {
    let world = world(Setup::new(3), values);
    let open = |world: &World, plan: Plan| {
        let certificates = world.seats.iter().map(|(_, signed)| signed.clone()).collect();
        let consumer = plan.sealed_to.map(|_| sealed_results::certificate());
        let announcement = Announcement { plan, certificates, consumer };
        let signed = Signed::new(&announcement, &world.service);
        AnnouncedPlan::open(&signed, &world.deployment).map(drop)
    };
    let form = |reason| Err(PlanRefusalError::Malformed(PlanShapeError::BoundedForm(reason)));
    let plan = plan_of(&world);
    assert_eq!(open(&world, plan.clone()), Ok(()));
    let sealed_to = Some(sealed_results::id());
    let sealed = Plan { sealed_to, ..plan.clone() };
    assert_eq!(open(&world, sealed), form(NotBoundableError::Sealed));
    let masks = MaskStrategy::Neighbours { picks: 2, cut_off: 0 };
    assert_eq!(open(&world, Plan { masks, ..plan }), form(NotBoundableError::Picks));
    let lone = World::with_data(Setup::new(1).verified(), |_, _| false);
    assert_eq!(open(&lone, plan_of(&lone)), form(NotBoundableError::Alone));
    let mut many = world.plan.clone();
    let mut owner = many.streams[0];
    many.streams.clear();
    for number in 0..257_u16 {
        owner.stream = crate::protocol::world::stream_id(number.into());
        owner.owner.0[..2].copy_from_slice(&number.to_be_bytes());
        many.streams.push(owner);
    }
    assert_eq!(open(&world, many), form(NotBoundableError::Owners { found: 257 }));
}
