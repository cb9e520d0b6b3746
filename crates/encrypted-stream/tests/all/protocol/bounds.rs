//! Bounds of a plan and of a membership that the service may not choose itself.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::ledger::{Record, Scope, StampedRecord};
use alpheus_encrypted_stream::mask::params;
use alpheus_encrypted_stream::messages::{Announcement, ControllerMessage, ServiceMessage};
use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan};
use alpheus_time::Timestamp;

use crate::protocol::evil::Evil;
use crate::protocol::net::Net;
use crate::protocol::noise::Noise;
use crate::protocol::world::{EPOCH, Setup};

fn three() -> Evil {
    Evil::new(Setup { streams_each: 2, alpha: Fraction::THIRD, ..Setup::new(3) })
}

#[test]
fn a_plan_cannot_choose_how_often_its_masks_may_fail() {
    let world = Evil::unannounced(Setup::new(3)).world;
    let controller = |number: u32| {
        let mut id = [0; 32];
        id[..4].copy_from_slice(&number.to_be_bytes());
        ControllerId(id)
    };
    let plan = |bits, delta_exponent| Plan {
        masks: MaskStrategy::Epoch { bits },
        delta_exponent,
        roster: (0..300).map(controller).collect(),
        alpha: Fraction::THIRD,
        ..world.plan.clone()
    };
    assert_eq!((params::largest_b(101, 9), params::largest_b(101, 0)), (Some(1), Some(3)));
    assert!(params::check(&plan(1, 9)).is_ok());
    for delta_exponent in [0, 5, 8] {
        assert!(params::check(&plan(1, delta_exponent)).is_ok());
        assert!(params::check(&plan(3, delta_exponent)).is_err(), "{delta_exponent}");
    }
}

#[test]
fn a_release_with_no_or_too_many_rows_is_refused_even_without_own_streams() {
    for rows in [vec![], vec![vec![0], vec![]], vec![vec![0]; 8194]] {
        let mut evil = Evil::unannounced(Setup { alpha: Fraction::ZERO, ..Setup::new(3) });
        let mut plan = evil.world.plan.clone();
        plan.streams.retain(|stream| stream.controller != 2);
        plan.release.rows = rows;
        let certificates = evil.world.seats.iter().map(|(_, seat)| seat.clone()).collect();
        let announcement = Announcement { plan, certificates, consumer: None };
        let signed = Signed::new(&announcement, &evil.world.service);
        let said = evil.say(2, Timestamp(EPOCH), &ServiceMessage::Announcement(signed));
        assert!(!matches!(said, Some(ControllerMessage::Acceptance(_))), "{said:?}");
    }
}

#[test]
fn a_membership_with_more_owners_than_the_plan_lists_gets_no_token() {
    let mut evil = three();
    let mut draft = evil.gather();
    assert_eq!(evil.world.plan.streams.len(), 6, "two owners at each");
    draft.members[1].2 = 3;
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::OwnersInvented));
    draft.members[1].2 = 2;
    assert!(evil.token(0, &draft).is_ok());
}

#[test]
fn a_membership_that_could_never_open_is_refused_before_any_mask() {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    let mut evil = Evil::new(Setup { dropout, ..Setup::new(5) });
    let mut draft = evil.gather();
    draft.members.truncate(2);
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::BelowQuorum { held: 2, needed: 3 }));
}

/// Bytes of a controller's ledger (the owners' log, and everything else) and of the
/// service's records.
fn sizes(net: &Net) -> [usize; 3] {
    let (mut log, mut ledger) = (0, 0);
    let prefix = Scope::Controller(net.controllers[0].id()).prefix();
    for (key, value) in net.store.map.iter().filter(|(key, _)| key.starts_with(&prefix)) {
        let is_line = matches!(StampedRecord::read(value).unwrap().record, Record::Log(_));
        *(if is_line { &mut log } else { &mut ledger }) += key.len() + value.len();
    }
    let service = Scope::Service(net.world.id()).prefix();
    let service = net.store.map.iter().filter(|(key, _)| key.starts_with(&service));
    [log, ledger, service.map(|(key, value)| key.len() + value.len()).sum()]
}

/// A window leaves only its two lines in the owners' log for good. After 256 windows
/// everything else has been deleted as often as it was written, so nothing else has grown.
#[test]
fn ledgers_grow_only_by_the_owners_log() {
    let turn = 256;
    for noise in [None, Some(Noise::totals(3 * turn, 1, 2_500_000))] {
        let windows = u64::from(3 * turn);
        let mut net = Net::new(Setup { noise, windows, ..Setup::new(2) });
        (0..u64::from(2 * turn)).for_each(|number| net.close(number));
        let before = sizes(&net);
        (u64::from(2 * turn)..windows).for_each(|number| net.close(number));
        let after = sizes(&net);
        let each = |at: usize| (after[at] as f64 - before[at] as f64) / f64::from(turn);
        println!("bytes a window: log {}, ledger {}, service {}", each(0), each(1), each(2));
        assert!((100.0..600.0).contains(&each(0)), "{}", each(0));
        // Larger numbers take a byte more.
        assert!(each(1).abs() < 1.0 && each(2).abs() < 1.0, "{} {}", each(1), each(2));
    }
}
