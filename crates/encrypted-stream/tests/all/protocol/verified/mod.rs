//! Verified plans: what the members of a window decide, whatever the service says.

mod exclusions;
mod honest;
mod keys;
mod lies;
mod masks;
mod noise;
mod receipts;
mod simulation;
mod thief;
mod written_keys;

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ExclusionError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{
    ControllerMessage, OpeningSet, Segments, ServiceMessage, SummonedStream,
};
use alpheus_encrypted_stream::receipt::{Receipt, Share};
use alpheus_encrypted_stream::tick::parts::PartialSum;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp, Window};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::world::{EPOCH, GRACE, Setup, WINDOW, after, window};

/// A verified plan with windows of three ticks, of which the second ends at an anchor. All have
/// accepted it, and the window is closed at the service.
pub fn long(controllers: u32, streams_each: u32, seed: u8) -> Evil {
    longer(1, controllers, streams_each, seed)
}

/// The same with data for so many windows from this one on.
pub fn longer(windows: u64, controllers: u32, streams_each: u32, seed: u8) -> Evil {
    let windows = 3 * windows + 6;
    let setup = Setup { streams_each, windows, seed, ..Setup::new(controllers) };
    long_of(setup.verified(), |plan| plan)
}

/// The same with another plan.
pub fn long_of(setup: Setup, change: impl Fn(Plan) -> Plan) -> Evil {
    let mut evil = Evil::unannounced(setup);
    let plan = Plan { window: Span(3 * WINDOW.0), ..evil.world.plan.clone() };
    evil.world.take_over(change(plan));
    evil.accept();
    let (id, before) = (evil.world.id(), evil.world.plan.window_at(window(2).start));
    evil.world.transformer.close(&id, before, 0).unwrap();
    let report = evil.world.transformer.close(&id, whole(), 0).unwrap();
    evil.report.window = whole();
    evil.report.complete = report.complete().cloned().collect();
    evil
}

/// The window: ticks 5 to 7. The day's session opened three ticks before.
pub fn whole() -> Window {
    Window { start: window(5).start, end: window(7).end }
}

/// A time at which the window that was closed last is over, grace and two ticks included.
pub fn now(evil: &Evil) -> Timestamp {
    evil.report.window.end.plus(Span(2 * WINDOW.0)).plus(GRACE)
}

/// Closes the plan's next window at the service.
pub fn advance(evil: &mut Evil) {
    let (id, next) = (evil.world.id(), evil.world.plan.window_at(evil.report.window.end));
    let report = evil.world.transformer.close(&id, next, 0).unwrap();
    evil.report.window = next;
    evil.report.complete = report.complete().cloned().collect();
}

/// What these streams have in it.
pub fn truth(evil: &Evil, streams: &[u32]) -> Vec<u64> {
    truth_in(evil, streams, whole())
}

/// What these streams have in a window of three ticks.
pub fn truth_in(evil: &Evil, streams: &[u32], within: Window) -> Vec<u64> {
    let of = |tick| evil.world.truth(streams.iter().map(|at| *at as usize), tick);
    let first = (within.start.0 - EPOCH) / WINDOW.0;
    let ticks = [first, first + 1, first + 2].map(of);
    (0..ticks[0].len()).map(|word| ticks.iter().map(|tick| tick[word]).sum()).collect()
}

/// The parts of sums of a stream's first session.
pub fn parts(stream: &mut SummonedStream) -> &mut Vec<PartialSum> {
    match &mut stream.segments {
        Segments::OfTicks { sums, .. } => &mut sums[0],
        Segments::OfEvents(_) => unreachable!("a stream of events"),
    }
}

/// Presences of all controllers, each summoned with these of its streams. Also returns the streams
/// that they accept.
pub fn gather(
    evil: &mut Evil,
    mut tell: impl FnMut(u32, Vec<SummonedStream>) -> Vec<SummonedStream>,
) -> (Draft, Vec<u32>) {
    let (mut members, mut accepted) = (Vec::new(), Vec::new());
    for p in 0..evil.world.setup.controllers {
        let streams = tell(p, evil.streams(p));
        let (digest, presence) = evil.presence_at(p, streams, now(evil));
        members.push((p, digest, presence.owners));
        accepted.extend(presence.accepted);
    }
    (Draft { window: evil.report.window, members }, accepted)
}

/// The receipt of a window over these members, all of whom answer.
pub fn receipt(evil: &mut Evil, draft: &Draft, members: &[u32]) -> Receipt {
    try_receipt(evil, draft, members).unwrap()
}

/// The same, if they do. Else why the first one refuses.
pub fn try_receipt(
    evil: &mut Evil,
    draft: &Draft,
    members: &[u32],
) -> Result<Receipt, WindowRefusalError> {
    let single = evil.world.setup.controllers == 1;
    let ServiceMessage::Membership { membership, .. } = evil.membership(draft, 0) else {
        unreachable!()
    };
    let mut tokens = Vec::new();
    for (p, ..) in &draft.members {
        let message = evil.membership(draft, *p);
        match evil.ask(*p, now(evil), &message)? {
            ControllerMessage::Token(token) => tokens.push((*p, token)),
            other => panic!("{other:?}"),
        }
    }
    let set = evil.set(draft, members);
    let mut shares = Vec::new();
    for (p, token) in tokens.into_iter().filter(|(p, _)| members.contains(p)) {
        let opening = match single {
            true => None,
            false => match evil.ask(p, now(evil), &set)? {
                ControllerMessage::Opening(opening) => Some(opening),
                other => panic!("{other:?}"),
            },
        };
        shares.push(Share { token, opening });
    }
    let opening_set = (!single).then(|| opening_set(set));
    let (exclusions, listing) = (Vec::new(), evil.world.announced.listing().cloned());
    Ok(Receipt { membership, opening_set, shares, exclusions, listing })
}

fn opening_set(message: ServiceMessage) -> Signed<OpeningSet> {
    match message {
        ServiceMessage::OpeningSet(set) => set,
        other => panic!("{other:?}"),
    }
}

/// Why the first stream of controller 0 is left out after tampering; the second one stays in.
pub fn tampered(tamper: impl FnOnce(&mut SummonedStream)) -> ExclusionError {
    let mut evil = long(2, 2, 1);
    let mut streams = evil.streams(0);
    tamper(&mut streams[0]);
    let presence = evil.presence_at(0, streams, after(9)).1;
    assert_eq!(presence.accepted, vec![1]);
    presence.excluded[0].1
}
