//! A fixed plan that ended long ago is forgotten, and nothing that it released is released again.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::controller::HostRecords;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::ledger::{Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage};
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeSet;

use crate::protocol::evil::Evil;
use crate::protocol::world::{Setup, after, window};

const SETTLE: Span = Span(2 * Span::DAY.0);

/// The plan has ended at the first controller.
fn retire(evil: &mut Evil, now: Timestamp) {
    let retirement = Retirement { plan: evil.world.id() };
    let retirement = Signed::new(&retirement, &evil.world.service);
    evil.say(0, now, &ServiceMessage::Retirement(retirement));
}

/// What the first controller's ledger has of plans.
fn records(evil: &Evil) -> Vec<Record> {
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let records = own.into_iter().map(|value| StampedRecord::read(value).unwrap().record);
    let of_plans = |record: &Record| {
        matches!(record, Record::Plan { .. } | Record::Mark { .. } | Record::Totals { .. })
    };
    records.filter(of_plans).collect()
}

fn accepts(evil: &mut Evil, now: Timestamp) {
    let announcement = evil.world.announcement();
    let said = evil.say(0, now, &announcement);
    assert!(matches!(said, Some(ControllerMessage::Acceptance(_))), "{said:?}");
}

/// The first controller's answer to a summons for the window that was released.
fn asked(evil: &mut Evil, now: Timestamp) -> Option<WindowRefusalError> {
    let summons = evil.summons(0, evil.streams(0));
    evil.ask(0, now, &summons).err()
}

/// A plan that released window 0, and ended.
fn ended() -> Evil {
    let mut evil =
        Evil::new(Setup { streams_each: 2, alpha: Fraction::THIRD, windows: 5, ..Setup::new(3) });
    let draft = evil.gather();
    assert!(evil.token(0, &draft).is_ok());
    retire(&mut evil, after(0));
    evil
}

#[test]
fn a_plan_is_forgotten_two_days_after_its_last_window_and_its_windows_stay_settled() {
    let mut evil = ended();
    let early = Timestamp(window(0).end.plus(SETTLE).0 - 1);
    retire(&mut evil, early);
    assert_eq!(evil.controllers[0].known_plans().count(), 1);
    assert_eq!(asked(&mut evil, early), Some(WindowRefusalError::PlanEnded));
    let late = window(0).end.plus(SETTLE);
    retire(&mut evil, late);
    assert_eq!(evil.controllers[0].known_plans().count(), 0);
    assert_eq!(records(&evil), []);
    assert_eq!(asked(&mut evil, late), Some(WindowRefusalError::UnknownPlan));
    // The host deletes the announcement at its next start.
    let deployment = &evil.world.deployment;
    let host = HostRecords::read(evil.store.values(Scope::Host), deployment).unwrap();
    assert_eq!(host.forget_plans(&BTreeSet::from([evil.world.id()])).len(), 0);
    assert_eq!(host.forget_plans(&BTreeSet::new()).len(), 1);
    evil.start_again(late);
    assert_eq!(evil.controllers[0].known_plans().count(), 0);
    // The same plan again: what masked its window masks nothing else.
    for _ in 0..2 {
        accepts(&mut evil, late);
        assert_eq!(asked(&mut evil, late), Some(WindowRefusalError::Settled));
        evil.start_again(late);
        assert_eq!(asked(&mut evil, late), Some(WindowRefusalError::Settled));
        assert!(records(&evil).iter().any(|record| matches!(record, Record::Mark { .. })));
    }
    // Later windows are another matter.
    evil.close(1);
    assert_eq!(asked(&mut evil, late), None);
}

/// With other windows, another grace, any name.
#[test]
fn no_other_plan_releases_what_a_forgotten_one_has() {
    let mut evil = ended();
    let late = window(0).end.plus(SETTLE);
    retire(&mut evil, late);
    evil.start_again(late);
    let plan = Plan { nonce: [77; 16], ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    accepts(&mut evil, late);
    assert_eq!(asked(&mut evil, late), Some(WindowRefusalError::Settled));
    evil.start_again(late);
    assert_eq!(asked(&mut evil, late), Some(WindowRefusalError::Settled));
}
