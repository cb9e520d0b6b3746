//! Ledgers restored from older copies: what they have forgotten counts as
//! released, whichever plan, opening set or later copy is tried.

use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::error::Refused;
use alpheus_encrypted_stream::ledger::{Fence, Scope};
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage, Summons};
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_policy::time::{Span, Timestamp};

use crate::evil::{Draft, Evil};
use crate::world::{GRACE, Memory, Setup, WINDOW, after, stream_id, window};

fn three() -> Evil {
    Evil::new(Setup { streams_each: 2, alpha: Fraction::THIRD, ..Setup::new(3) })
}
fn five() -> Evil {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Evil::new(Setup { dropout, ..Setup::new(5) })
}

fn restore_at(evil: &mut Evil, p: u32, store: &Memory, now: Timestamp, fence: Option<Fence>) {
    let world = &evil.world;
    let host = HostRecords::read(store.values(Scope::Host), &world.deployment).unwrap();
    let identity = world.identity(p);
    let values = store.values(Scope::Controller(identity.id()));
    let (c, step) = Controller::restore(
        identity,
        world.deployment.clone(),
        world.held(p),
        &host,
        values,
        now,
        fence,
    )
    .unwrap();
    let mut next = store.clone();
    step.commit(&mut next).unwrap();
    evil.controllers[p as usize] = c;
    evil.store = next;
}

fn retire(evil: &mut Evil, p: u32, now: Timestamp) {
    let plan = evil.world.id();
    let message =
        ServiceMessage::Retirement(Signed::new(&Retirement { plan }, &evil.world.service));
    evil.say(p, now, &message);
}

/// Old ledger + another plan over the same attribute.
fn second_release(change: impl Fn(&Plan) -> Plan, when: Timestamp) -> Result<(), Refused> {
    let mut evil = Evil::new(Setup { streams_each: 3, ..Setup::new(1) });
    let old = evil.store.clone();
    let draft = evil.gather();
    evil.token(0, &draft).unwrap(); // window 0 released under plan A
    let fence = evil.controllers[0].fence();
    restore_at(&mut evil, 0, &old, after(0), Some(fence));
    // plan A itself is refused
    let streams = evil.streams(0);
    let summons = evil.summons(0, streams);
    assert_eq!(evil.ask(0, after(0), &summons), Err(Refused::CountsAsReleased));
    retire(&mut evil, 0, after(0));
    let plan = change(&evil.world.plan);
    evil.world.take_over(plan);
    let w = evil.world.plan.window_at(window(0).start);
    let announcement = evil.world.announcement();
    let said = evil.say(0, when, &announcement);
    assert!(matches!(said, Some(ControllerMessage::Acceptance(_))), "{said:?}");
    let report = evil.world.transformer.close(&evil.world.id(), w, 0).unwrap();
    evil.report.window = w;
    evil.report.complete = report.complete().cloned().collect();
    // only two of the three streams this time
    let streams: Vec<_> = evil.streams(0).into_iter().take(2).collect();
    let (plan, window) = (evil.world.id(), w);
    let summons = Summons { plan, window, controller: 0, streams };
    let summons = ServiceMessage::Summons(Signed::new(&summons, &evil.world.service));
    let key = evil.world.announced.verifying()[0];
    let ControllerMessage::Presence(signed) = evil.ask(0, when, &summons)? else { panic!() };
    let presence = signed.open(&key).unwrap();
    if presence.accepted.is_empty() {
        return Err(Refused::Overlaps);
    }
    let draft = Draft { window: w, members: vec![(0, signed.digest(), presence.owners)] };
    let message = evil.membership(&draft, 0);
    match evil.ask(0, when, &message)? {
        ControllerMessage::Token(_) => Ok(()),
        o => panic!("{o:?}"),
    }
}

#[test]
fn another_plan_with_more_grace_gets_nothing_that_had_begun() {
    let r = second_release(
        |p| Plan { nonce: [50; 16], grace: GRACE.0.checked_add(1).map(Span).unwrap(), ..p.clone() },
        Timestamp(after(0).0 + 1),
    );
    assert!(r.is_err(), "window 0 released twice");
}

#[test]
fn another_plan_with_longer_windows_gets_nothing_that_had_begun() {
    let r = second_release(
        |p| Plan { nonce: [51; 16], window: Span(2 * WINDOW.0), ..p.clone() },
        after(5),
    );
    assert!(r.is_err(), "span of window 0 released twice");
}

#[test]
fn a_later_copy_does_not_pass_for_the_latest_after_an_older_one() {
    let mut evil = three();
    let b1 = evil.store.clone(); // older backup
    let draft = evil.gather();
    // some more records, so that the second backup is later than the first
    for v in 2..8 {
        let signed = evil.world.annotate(stream_id(0), v, crate::world::policy(&evil.world.setup));
        let owner = crate::world::owner_key(stream_id(0)).verifying_key();
        evil.controllers[0]
            .annotate(after(0), &owner, &signed)
            .unwrap()
            .commit(&mut evil.store)
            .unwrap();
    }
    let b2 = evil.store.clone(); // later backup, before the spend
    evil.token(0, &draft).unwrap();
    let fence = evil.controllers[0].fence();
    restore_at(&mut evil, 0, &b1, after(0), Some(fence));
    let fence = evil.controllers[0].fence(); // what the host writes now
    restore_at(&mut evil, 0, &b2, after(0), Some(fence));
    let streams: Vec<_> = evil.streams(0).into_iter().take(1).collect();
    let summons = evil.summons(0, streams);
    assert_eq!(evil.ask(0, after(0), &summons), Err(Refused::CountsAsReleased));
}

#[test]
fn no_second_set_is_opened_where_the_ledger_holds_no_first() {
    let mut evil = five();
    let draft = evil.gather();
    let tokens: Vec<_> = (0..5).map(|p| evil.token(p, &draft).unwrap()).collect();
    let old = evil.store.clone();
    let all = evil.set(&draft, &[0, 1, 2, 3, 4]);
    let openings: Vec<_> = (0..5).map(|p| evil.opening(p, &all).unwrap()).collect();
    let first = evil.add_up(
        &[0, 1, 2, 3, 4],
        &tokens.iter().collect::<Vec<_>>(),
        &openings.iter().collect::<Vec<_>>(),
    );
    assert_eq!(first, evil.world.truth(0..5, 0));
    let fences: Vec<_> = evil.controllers.iter().map(Controller::fence).collect();
    for p in 0..5 {
        restore_at(&mut evil, p, &old, after(0), Some(fences[p as usize]));
    }
    let four = evil.set(&draft, &[0, 1, 2, 3]);
    let openings: Vec<_> = (0..4).filter_map(|p| evil.opening(p, &four).ok()).collect();
    let second = evil.add_up(
        &[0, 1, 2, 3],
        &tokens.iter().take(4).collect::<Vec<_>>(),
        &openings.iter().collect::<Vec<_>>(),
    );
    assert_ne!(second, evil.world.truth(0..4, 0), "stream 4 alone is known by difference");
}
