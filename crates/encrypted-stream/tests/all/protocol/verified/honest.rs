//! Honest windows of verified plans, and what stays of them.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::error::{
    ExclusionError, PlanRefusalError, ReleaseError, WindowRefusalError,
};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{
    Closing, ControllerMessage, Retirement, ServiceMessage, WindowOutcome,
};
use alpheus_policy::ids::StreamId;
use alpheus_policy::plan::{Fraction, Integrity, NotVerifiableError, Plan};
use alpheus_policy::selection::{Comparison, Selection, SelectionStep};
use alpheus_time::{Timestamp, Window};

use super::{advance, gather, long, long_of, longer, now, parts, receipt, truth, whole};
use crate::protocol::evil::Evil;
use crate::protocol::identities::certified;
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after, policy, stream_id, transformer, window};

#[test]
fn the_members_decide_the_row_across_an_anchor_and_within_a_period() {
    for controllers in [1, 2, 3, 5] {
        let mut evil = long(controllers, 2, 1);
        let (draft, accepted) = gather(&mut evil, |_, streams| streams);
        assert_eq!(accepted.len(), 2 * controllers as usize);
        let members: Vec<u32> = (0..controllers).collect();
        let receipt = receipt(&mut evil, &draft, &members);
        let row = receipt.verify(&evil.world.announced, whole()).unwrap();
        assert_eq!(row.words(), truth(&evil, &accepted));
        assert_eq!((row.population(), row.signers()), (2 * controllers, controllers));
    }
}

#[test]
fn it_says_that_each_signer_could_have_changed_it() {
    let said = |controllers: u32| {
        let mut evil = long(controllers, 1, 1);
        let (draft, _) = gather(&mut evil, |_, streams| streams);
        let members: Vec<u32> = (0..controllers).collect();
        let receipt = receipt(&mut evil, &draft, &members);
        receipt.verify(&evil.world.announced, whole()).unwrap().to_string()
    };
    assert_eq!(said(3), "signed by 3 controllers, any of which could have changed it");
    assert_eq!(said(1), "signed by 1 controller, which could have changed it");
}

/// The coordinator needs no ciphertext: here it has none.
#[test]
fn no_ciphertext_of_the_service_is_in_the_row() {
    for controllers in [1, 3] {
        let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(controllers) }.verified());
        let report = net.world.report(0);
        net.world.transformer = transformer(&net.world.schema, &net.world.layout);
        let step = net.coordinator.handle_window_report(&report, after(0));
        net.run(after(0), step);
        let opened = net.outcomes[0].result.as_ref().unwrap();
        let all = 0..2 * controllers as usize;
        assert_eq!(opened.outputs, net.world.truth(all, 0));
        let receipt = opened.receipt.as_deref().unwrap();
        let row = receipt.verify(&net.world.announced, window(0)).unwrap();
        assert_eq!(row.words(), opened.outputs);
        assert_eq!(row.check(&opened.outputs, opened.population), Ok(()));
    }
}

/// Days end in the third window, so sessions change in it.
#[test]
fn windows_on_both_sides_of_midnight_open() {
    let mut net = Net::new(Setup { windows: 4, ..Setup::new(3) }.verified());
    for number in 0..4 {
        net.close(number);
        let opened = net.outcomes.last().unwrap().result.as_ref().unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..3, number), "window {number}");
    }
}

#[test]
fn a_restarted_service_has_the_same_receipt() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(3) }.verified());
    net.lost = |to, message| to == 1 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    assert!(net.outcomes.is_empty());
    net.lost = |_, _| false;
    net.restart_service(after(0));
    let opened = net.outcomes[0].result.as_ref().unwrap();
    assert_eq!(opened.outputs, net.world.truth(0..6, 0));
    let receipt = opened.receipt.as_deref().unwrap();
    assert!(receipt.verify(&net.world.announced, window(0)).is_ok());
}

/// The same request gets the same bytes, also after a restart, until the window is closed.
#[test]
fn a_repeated_request_gets_the_same_bytes_and_a_closed_window_leaves_digests_only() {
    let mut evil = long(2, 1, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let first = receipt(&mut evil, &draft, &[0, 1]);
    evil.start_again(after(9));
    assert_eq!(receipt(&mut evil, &draft, &[0, 1]), first);
    let outcome = WindowOutcome::Opened { population: 2 };
    let closing = Closing { plan: evil.world.id(), window: whole(), outcome };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    assert_eq!(evil.say(0, after(9), &closing), None);
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let records: Vec<Record> =
        own.iter().map(|value| StampedRecord::read(value).unwrap().record).collect();
    let share = first.shares[0].clone();
    let digests = Record::Closed {
        plan: evil.world.id(),
        window: whole(),
        membership: first.membership.digest(),
        token: share.token.digest(),
        opening: share.opening.map(|opening| opening.digest()),
    };
    assert!(records.contains(&digests));
    assert!(!records.iter().any(|r| matches!(r, Record::Spent(_) | Record::Opened { .. })));
    for restart in [false, true] {
        if restart {
            evil.start_again(after(9));
        }
        let again = evil.ask(0, after(9), &evil.membership(&draft, 0));
        assert_eq!(again, Err(WindowRefusalError::Settled));
    }
}

/// An attribute is released once, no matter who decides the row.
#[test]
fn plain_and_verified_plans_do_not_release_an_attribute_twice() {
    for verified_first in [true, false] {
        let setup = Setup { streams_each: 2, ..Setup::new(2) };
        let setup = if verified_first { setup.verified() } else { setup.with_ticks() };
        let mut evil = Evil::new(Setup { alpha: Fraction::THIRD, ..setup });
        let integrity = if verified_first { Integrity::Plain } else { Integrity::Verified };
        let draft = evil.gather();
        evil.token(0, &draft).unwrap();
        let first = evil.world.id();
        evil.world.take_over(Plan { nonce: [99; 16], integrity, ..evil.world.plan.clone() });
        let refused = evil.say(0, after(0), &evil.world.announcement());
        let Some(ControllerMessage::PlanRefusal(refused)) = refused else { panic!("{refused:?}") };
        let key = evil.world.announced.verifying()[0];
        let reason = refused.open(&key).unwrap().reason.clone();
        assert!(matches!(reason, PlanRefusalError::Locked { .. }), "{reason}");
        let end = Signed::new(&Retirement { plan: first }, &evil.world.service);
        evil.say(0, after(0), &ServiceMessage::Retirement(end));
        evil.say(0, after(0), &evil.world.announcement());
        evil.report = evil.world.report(0);
        let presence = evil.presence(0, evil.streams(0)).1;
        let released = presence.excluded.iter().map(|(_, reason)| *reason).collect::<Vec<_>>();
        assert_eq!(released, [ExclusionError::Released; 2]);
    }
}

/// Windows and streams that controller 0 was not asked about, as owners read it.
fn unasked(evil: &Evil) -> Vec<(Window, Vec<StreamId>)> {
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let read = |value: &&[u8]| match StampedRecord::read(value).unwrap().record {
        Record::Log(LogLine { streams, event: LogEvent::NotSummoned { windows, .. }, .. }) => {
            Some((windows, streams))
        }
        _ => None,
    };
    own.iter().filter_map(read).collect()
}

fn lines(evil: &Evil) -> Vec<Window> {
    unasked(evil).into_iter().map(|(windows, _)| windows).collect()
}

/// The service says to controller 0 that a window opened.
fn says_opened(evil: &mut Evil, window: Window, now: Timestamp) {
    says(evil, window, now, WindowOutcome::Opened { population: 2 });
}

/// The same, that it did not open.
fn says_failed(evil: &mut Evil, window: Window, now: Timestamp) {
    says(evil, window, now, WindowOutcome::Failed(ReleaseError::OpeningLost));
}

fn says(evil: &mut Evil, window: Window, now: Timestamp, outcome: WindowOutcome) {
    let closing = Closing { plan: evil.world.id(), window, outcome };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    evil.say(0, now, &closing);
}

/// A host of several owners is asked about some of them only. The others read of it, and nobody else.
#[test]
fn owners_read_that_they_alone_were_left_out() {
    let mut evil = longer(4, 3, 3, 1);
    let windows = |evil: &mut Evil, leave_out: &[usize], erased: Option<u32>| {
        let (at, window) = (now(evil), evil.report.window);
        let streams = evil.streams(0).into_iter().enumerate();
        let named = streams.filter(|(place, _)| !leave_out.contains(place));
        let named = named.map(|(_, stream)| stream).collect();
        evil.presence_at(0, named, at);
        if let Some(stream) = erased {
            let (step, _) = evil.controllers[0].erase(&stream_id(stream), at).unwrap();
            step.commit(&mut evil.store).unwrap();
        }
        says_opened(evil, window, at);
        advance(evil);
        window
    };
    windows(&mut evil, &[], None);
    assert_eq!(unasked(&evil), []);
    let second = windows(&mut evil, &[0], None);
    let first_line = (second, vec![stream_id(0)]);
    assert_eq!(unasked(&evil), std::slice::from_ref(&first_line));
    // Who has withdrawn knows, and reads nothing more.
    let third = windows(&mut evil, &[0, 2], Some(0));
    assert_eq!(unasked(&evil), [first_line, (third, vec![stream_id(2)])]);
    // One that the controller itself leaves out was asked about.
    let (at, window) = (now(&evil), evil.report.window);
    let mut streams = evil.streams(0);
    parts(&mut streams[1])[0].words[0] ^= 1;
    let left_out = evil.presence_at(0, streams, at).1.excluded;
    assert!(left_out.iter().any(|(at, _)| *at == 1), "{left_out:?}");
    says_opened(&mut evil, window, at);
    assert_eq!(unasked(&evil).len(), 2);
}

/// A device that is off costs one line for all windows, up to a day.
#[test]
fn windows_without_the_same_streams_are_one_line() {
    let mut evil = longer(5, 3, 2, 1);
    let mut windows = Vec::new();
    for left_out in [0, 0, 0, 1, 0] {
        let (at, window) = (now(&evil), evil.report.window);
        let mut streams = evil.streams(0);
        streams.remove(left_out);
        evil.presence_at(0, streams, at);
        says_opened(&mut evil, window, at);
        advance(&mut evil);
        windows.push(window);
    }
    let three = Window { start: windows[0].start, end: windows[2].end };
    let expected = [(three, 0), (windows[3], 1), (windows[4], 0)];
    let expected = expected.map(|(windows, stream)| (windows, vec![stream_id(stream)]));
    let mut found = unasked(&evil);
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn owners_read_of_windows_that_nobody_asked_about() {
    let mut evil = Evil::new(Setup { windows: 5, ..Setup::new(3) }.verified());
    evil.gather();
    assert_eq!(lines(&evil), []);
    // Window 1 opens among the others, and the service says so.
    says_opened(&mut evil, window(1), after(1));
    assert_eq!(lines(&evil), [window(1)]);
    // It does not even say so of windows 2 and 3.
    for number in 1..4 {
        evil.world.report(number);
    }
    evil.gather_at(4);
    let left_out = Window { start: window(1).start, end: window(3).end };
    assert_eq!(lines(&evil), [left_out]);
}

/// What the service says of a window that is over, if it says anything.
type Ends = fn(&mut Evil, Window, Timestamp);

const ENDS: [Ends; 3] = [|_, _, _| (), says_failed, says_opened];

/// One window after the other: the service asks about these of controller 0's streams, by place, and
/// ends it. Returns their starts, and the end of the last.
fn asks(evil: &mut Evil, about: &[&[usize]], end: Ends) -> Vec<Timestamp> {
    let mut starts = Vec::new();
    for places in about {
        let (at, window) = (now(evil), evil.report.window);
        let streams = evil.streams(0);
        evil.presence_at(0, places.iter().map(|at| streams[*at].clone()).collect(), at);
        end(evil, window, at);
        advance(evil);
        starts.push(window.start);
    }
    starts.push(evil.report.window.start);
    starts
}

fn line(starts: &[Timestamp], from: usize, to: usize, stream: u32) -> (Window, Vec<StreamId>) {
    (Window { start: starts[from], end: starts[to] }, vec![stream_id(stream)])
}

/// No question about the owner has to come for that: else a service could leave them out for good.
#[test]
fn an_empty_summons_asks_nobody_whatever_the_service_says_of_the_window() {
    for end in ENDS {
        let mut evil = longer(6, 3, 1, 1);
        let starts = asks(&mut evil, &[&[0], &[], &[], &[]], end);
        // Unless it says how it ended, the last one may still be asked about.
        let lines = if std::ptr::fn_addr_eq(end, ENDS[0]) { 3 } else { 4 };
        assert_eq!(unasked(&evil), [line(&starts, 1, lines, 0)]);
        asks(&mut evil, &[&[0]], end);
        assert_eq!(unasked(&evil), [line(&starts, 1, 4, 0)]);
    }
}

#[test]
fn one_stream_of_several_is_not_left_out_in_silence_by_a_false_end() {
    for end in ENDS {
        let mut evil = longer(5, 3, 3, 1);
        let starts = asks(&mut evil, &[&[0, 1, 2], &[1, 2], &[1, 2], &[0, 1, 2]], end);
        assert_eq!(unasked(&evil), [line(&starts, 1, 3, 0)]);
    }
}

/// The end of a window about which nobody was asked, whatever it says, and nothing at all.
#[test]
fn an_end_without_a_summons_is_no_question() {
    for end in [says_failed as Ends, says_opened] {
        let mut evil = longer(5, 3, 1, 1);
        let mut starts = asks(&mut evil, &[&[0]], end);
        let (at, without) = (now(&evil), evil.report.window);
        end(&mut evil, without, at);
        starts.push(without.end);
        assert_eq!(unasked(&evil), [line(&starts, 1, 2, 0)]);
    }
    // The plan ends, and nothing was said of its last window.
    let mut evil = longer(5, 3, 2, 1);
    let starts = asks(&mut evil, &[&[0, 1], &[1]], ENDS[0]);
    let retirement = Signed::new(&Retirement { plan: evil.world.id() }, &evil.world.service);
    let at = now(&evil);
    evil.say(0, at, &ServiceMessage::Retirement(retirement));
    assert_eq!(unasked(&evil), [line(&starts, 1, 2, 0)]);
}

/// Of windows that did not open, and of those whose end is never heard.
#[test]
fn who_was_asked_about_reads_nothing_however_windows_end() {
    for end in ENDS {
        let mut evil = longer(5, 3, 2, 1);
        asks(&mut evil, &[&[0, 1], &[0, 1]], end);
        // A controller that was asked before its restart does not know what.
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (at, window) = (now(&evil), evil.report.window);
            let streams = evil.streams(0);
            evil.presence_at(0, streams, at);
            ends.push((window, at));
            advance(&mut evil);
        }
        evil.start_again(ends[1].1);
        ends.into_iter().for_each(|(window, at)| end(&mut evil, window, at));
        asks(&mut evil, &[&[0, 1]], end);
        assert_eq!(unasked(&evil), []);
    }
}

/// A host whose clock is behind refuses the summons, and yet it was asked.
#[test]
fn a_summons_that_is_refused_has_asked() {
    let mut evil = longer(5, 3, 1, 1);
    asks(&mut evil, &[&[0]], ENDS[0]);
    let (window, streams) = (evil.report.window, evil.streams(0));
    let refused = evil.ask(0, window.end, &evil.summons(0, streams)).map(drop);
    assert_eq!(refused, Err(WindowRefusalError::NotEnded));
    advance(&mut evil);
    asks(&mut evil, &[&[0]], ENDS[0]);
    assert_eq!(unasked(&evil), []);
}

/// One that names a stream twice is about no stream: it costs no memory, and silences no log.
#[test]
fn a_summons_that_is_not_well_formed_has_not_asked() {
    let mut evil = longer(5, 3, 1, 1);
    let mut starts = asks(&mut evil, &[&[0]], ENDS[0]);
    let (at, mut streams) = (now(&evil), evil.streams(0));
    streams.push(streams[0].clone());
    let refused = evil.ask(0, at, &evil.summons(0, streams)).map(drop);
    assert_eq!(refused, Err(WindowRefusalError::MalformedSummons));
    advance(&mut evil);
    starts.push(evil.report.window.start);
    asks(&mut evil, &[&[0]], ENDS[0]);
    assert_eq!(unasked(&evil), [line(&starts, 1, 2, 0)]);
}

/// A summons that was lost comes once more, after that of a later window.
#[test]
fn a_late_summons_takes_back_what_owners_have_read() {
    for about in [[0].as_slice(), &[0, 1]] {
        let mut evil = longer(6, 3, 2, 1);
        let mut late = None;
        let mut starts = Vec::new();
        for number in 0..5 {
            let (at, window, streams) = (now(&evil), evil.report.window, evil.streams(0));
            starts.push(window.start);
            match number {
                2 => {
                    let named = about.iter().map(|at| streams[*at].clone()).collect();
                    late = Some((evil.summons(0, named), at));
                }
                1 | 3 => drop(evil.presence_at(0, Vec::new(), at)),
                _ => drop(evil.presence_at(0, streams, at)),
            }
            advance(&mut evil);
        }
        let both = vec![stream_id(0), stream_id(1)];
        let windows = |from: usize, to: usize| Window { start: starts[from], end: starts[to] };
        assert_eq!(unasked(&evil), [(windows(1, 4), both.clone())]);
        let (late, at) = late.unwrap();
        evil.ask(0, at, &late).unwrap();
        let mut expected = vec![(windows(1, 2), both.clone()), (windows(3, 4), both)];
        expected.extend((about.len() == 1).then(|| (windows(2, 3), vec![stream_id(1)])));
        let mut found = unasked(&evil);
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

/// A controller checks the query's conditions against its own streams.
#[test]
fn streams_that_the_query_does_not_ask_for_are_refused() {
    let step = |value: &str| SelectionStep::Compare {
        attribute: "region".into(),
        comparison: Comparison::Equal,
        value: value.into(),
    };
    let setup = Setup::new(2).verified();
    let mut evil = Evil::unannounced(setup);
    let owner_key = evil.world.setup.owner_key(stream_id(0));
    let metadata = vec![("region".to_owned(), "here".to_owned())];
    let signed = evil.world.annotate(stream_id(0), 2, policy(&evil.world.setup));
    let own: Annotation = signed.dangerous_unverified().unwrap();
    let signed = Signed::new(&Annotation { metadata, ..own }, &owner_key);
    let step_of = evil.controllers[0].annotate(&signed, &certified(&owner_key), after(0)).unwrap();
    step_of.commit(&mut evil.store).unwrap();
    let plain = evil.world.plan.clone();
    let mut answer = |plan: Plan| {
        evil.world.take_over(plan);
        match evil.say(0, after(0), &evil.world.announcement()).unwrap() {
            ControllerMessage::PlanRefusal(refused) => {
                let key = evil.world.announced.verifying()[0];
                Err(refused.open(&key).unwrap().reason.clone())
            }
            _ => Ok(()),
        }
    };
    let with = |steps: Vec<SelectionStep>| Plan { selection: Selection { steps }, ..plain.clone() };
    let refused = Err(PlanRefusalError::NotSelected { stream: stream_id(0) });
    assert_eq!(answer(with(vec![step("there")])), refused);
    let group = vec![("region".to_owned(), "there".to_owned())];
    assert_eq!(answer(Plan { group, ..plain.clone() }), refused);
    assert_eq!(answer(with(vec![step("here")])), Ok(()));
}

/// Fewer controllers than can hide a part, and what cannot be verified at all.
#[test]
fn plans_that_cannot_be_verified_are_malformed() {
    use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
    use alpheus_encrypted_stream::error::PlanShapeError;
    use alpheus_encrypted_stream::messages::Announcement;
    let evil = long_of(Setup { windows: 9, ..Setup::new(2) }.verified(), |plan| plan);
    let open = |plan: Plan| {
        let certificates = evil.world.seats.iter().map(|(_, signed)| signed.clone()).collect();
        let announcement = Announcement { plan, certificates, consumer: None };
        let signed = Signed::new(&announcement, &evil.world.service);
        AnnouncedPlan::open(&signed, &evil.world.deployment).map(|_| ())
    };
    let plan = evil.world.plan.clone();
    assert_eq!(open(plan.clone()), Ok(()));
    let reason = PlanShapeError::NotVerifiable(NotVerifiableError::NoColluders);
    let none = Plan { alpha: Fraction::ZERO, ..plan.clone() };
    assert_eq!(open(none), Err(PlanRefusalError::Malformed(reason)));
    let selection = Selection { steps: vec![SelectionStep::Not] };
    let odd = Plan { selection, ..plan };
    assert_eq!(open(odd), Err(PlanRefusalError::Malformed(PlanShapeError::Selection)));
}
