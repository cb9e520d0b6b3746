//! Bounded plans: windows in which members prove that each owner is in bounds, even if some lie.

mod apart;
mod attacks;
mod blame;
mod cells;
mod evidence;
mod honest;
mod receipts;
mod restarts;
mod service;
mod simulation;
mod sparse;
mod squares;

use std::cell::RefCell;
use std::collections::BTreeSet;

use alpheus_bounded_influence::check::Checker;
use alpheus_crypto::signed_message::{Message, Signed};
use alpheus_encrypted_stream::bounded_terms::checker_of;
use alpheus_encrypted_stream::coordinator::{
    MemberFaultError, Outcome, ServiceRecord, UnstatedEdgesError, WindowResult,
};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::messages::{BoundedOpening, Contribution, ControllerMessage};
use alpheus_encrypted_stream::producer::EventVector;
use alpheus_policy::layout::{FieldStatistic, Layout, Packing};
use alpheus_policy::plan::{Fraction, Integrity, Plan};
use alpheus_policy::select::{MomentOutput, ReleasePlan, SelectItem, Statistic, SumLocation};
use alpheus_time::Timestamp;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

use crate::devices;
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Lies, Net};
use crate::protocol::world::{EPOCH, Setup, World, master, window};

/// What a device sends in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// What an encoder makes of a value.
    Value(i64),
    /// What no encoder makes: this, added to the sum.
    Absurd(i64),
    /// A value without its square.
    Unsquared(i64),
}

/// Most events of a stream in a window that the plan allows.
pub const EVENTS: u64 = 3;

/// What the devices of these tests send: as many events as the stream's number, up to three.
pub fn values(stream: usize, number: u64) -> Vec<Reading> {
    let value = |event: usize| {
        Reading::Value(10 * i64::try_from(number).unwrap() + i64::try_from(stream + event).unwrap())
    };
    (0..1 + stream % 3).map(value).collect()
}

/// Where a statistic is in a release of all words.
fn located(layout: &Layout, of: FieldStatistic) -> SumLocation {
    let field = layout.fields.iter().find(|field| field.statistic == of).unwrap();
    let row = field.first;
    match field.packing {
        Packing::Whole => SumLocation::Whole { row },
        Packing::Digits { bits, .. } => SumLocation::Digit { row, bits, digit: 0 },
        Packing::Limbs => SumLocation::Limbs { low: row, high: row + 1 },
    }
}

fn moments(output: MomentOutput, squares: Option<u16>) -> Statistic {
    Statistic::Moments { output, count: 0, sum: 1, squares, scale: 0 }
}

/// A bounded plan over count and sum, or over as many cells as the setup says.
pub fn plan_of(world: &World) -> Plan {
    let (count, sum) = (FieldStatistic::EventCount, FieldStatistic::Sum(0));
    let (statistic, cells) = match world.setup.cells {
        1 => (Statistic::Sum { sum: 0, count: None, scale: 0 }, vec![sum]),
        2 => (moments(MomentOutput::Mean, None), vec![count, sum]),
        _ => {
            let squares = FieldStatistic::SumOfSquares(0);
            (moments(MomentOutput::Variance, Some(2)), vec![count, sum, squares])
        }
    };
    let cells = cells.into_iter().map(|of| located(&world.layout, of)).collect();
    let items = vec![SelectItem { alias: "x".into(), statistic }];
    let select = ReleasePlan { cells, items };
    let events = world.plan.privacy.as_ref().map_or(EVENTS, |privacy| privacy.events);
    Plan { integrity: Integrity::Bounded { events }, select, ..world.plan.clone() }
}

/// A world with a bounded plan, whose devices send this in each window.
pub fn world(setup: Setup, sent: impl Fn(usize, u64) -> Vec<Reading>) -> World {
    let mut world = World::with_data(setup.verified(), |_, _| false);
    world.frames.clear();
    let authority = world.authority.verifying_key();
    world.ingest = devices::ingest(authority, world.schema.id(), world.schema.tick);
    for number in 0..world.plan.streams.len() {
        send(&mut world, number, &sent);
    }
    let plan = plan_of(&world);
    world.take_over(plan);
    world
}

fn send(world: &mut World, number: usize, sent: &impl Fn(usize, u64) -> Vec<Reading>) {
    let (stream, mut frames) = (world.plan.streams[number].stream, Vec::new());
    let encoder = Encoder::new(&world.schema, &world.layout).unwrap();
    let sums = world.layout.fields.iter().find(|f| f.statistic == FieldStatistic::Sum(0)).unwrap();
    let (first, mut coins) = (sums.first, ChaCha20Rng::from_rng(&mut world.rng));
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let mut session = world.open(stream, &master(stream), &mut sink);
    for w in 0..world.setup.windows {
        for (at, one) in (1000..).zip(sent(number, w)) {
            let encode = |vector: &mut EventVector<'_>| {
                match one {
                    Reading::Value(value) => {
                        let value = [Value::Number(value)];
                        encoder.encode(&value, &mut coins, |w, by| vector.add(w, by)).unwrap();
                    }
                    Reading::Absurd(by) => {
                        let value = [Value::Number(0)];
                        encoder.encode(&value, &mut coins, |w, by| vector.add(w, by)).unwrap();
                        vector.add(first, by.cast_unsigned());
                    }
                    Reading::Unsquared(value) => {
                        let of = [Value::Number(value)];
                        encoder.encode(&of, &mut coins, |w, by| vector.add(w, by)).unwrap();
                        let (SumLocation::Whole { row } | SumLocation::Digit { row, .. }) =
                            located(&world.layout, FieldStatistic::SumOfSquares(0))
                        else {
                            panic!("squares of two words")
                        };
                        vector.add(row, (value * value).wrapping_neg().cast_unsigned());
                    }
                }
                Ok(())
            };
            session.event(Timestamp(window(w).start.0 + at), encode, &mut world.rng, &mut sink);
        }
    }
    session.advance(window(world.setup.windows).start, &mut world.rng, &mut sink);
    world.frames.extend(frames.into_iter().map(|frame| (stream, frame)));
}

/// Five controllers, of which one may collude and two may drop out.
pub fn five() -> Setup {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Setup { dropout, windows: 6, ..Setup::new(5) }
}

/// All controllers have accepted the plan.
pub fn net_of(world: World) -> Net {
    let mut net = Net::unannounced(world);
    let step = net.coordinator.announce();
    net.run(Timestamp(EPOCH), step);
    net
}

/// The same with the usual values.
pub fn net(setup: Setup) -> Net {
    net_of(world(setup, values))
}

/// Count and sum of these streams in a window.
pub fn truth(streams: impl IntoIterator<Item = usize>, number: u64) -> Vec<i128> {
    let sent = streams.into_iter().flat_map(|stream| values(stream, number));
    let one = |sent| match sent {
        Reading::Value(value) | Reading::Absurd(value) | Reading::Unsquared(value) => {
            i128::from(value)
        }
    };
    let all: Vec<i128> = sent.map(one).collect();
    vec![i128::try_from(all.len()).unwrap(), all.iter().sum()]
}

/// What anybody with the plan's terms checks with.
pub fn checker(world: &World) -> Checker {
    checker_of(&world.plan, &world.schema).unwrap()
}

/// The last outcome.
pub fn last(net: &Net) -> &Outcome {
    net.outcomes.last().unwrap()
}

/// What the last window opened to, as its row and as its receipt show it.
pub fn opened(net: &Net) -> (&WindowResult, Vec<i128>) {
    let outcome = last(net);
    let opened = outcome.result.as_ref().unwrap();
    let receipt = opened.bounded.as_ref().unwrap();
    let row = receipt.verify(&net.world.announced, &checker(&net.world), outcome.window).unwrap();
    row.check(&opened.outputs, opened.population).unwrap();
    (opened, row.cells().to_vec())
}

/// Who is named in the last window, and why.
pub fn named(net: &Net) -> Vec<(u32, MemberFaultError)> {
    let position = |id| net.world.announced.position(id).unwrap();
    last(net).faults.iter().map(|(id, why)| (position(id), *why)).collect()
}

/// Who has not stated its edges in the last window, and why.
pub fn silent(net: &Net) -> Vec<(u32, UnstatedEdgesError)> {
    let position = |id| net.world.announced.position(id).unwrap();
    last(net).silent.iter().map(|(id, why)| (position(id), *why)).collect()
}

/// The edges that the service knows as struck. The lower position is first.
pub fn struck(net: &Net) -> BTreeSet<(u32, u32)> {
    let values = net.store.values(Scope::Service(net.world.id()));
    // The first byte is the format's.
    let records = values.into_iter().map(|value| postcard::from_bytes(&value[1..]).unwrap());
    let ends = records.filter_map(|record| match record {
        ServiceRecord::Struck { ends, .. } => Some(ends),
        _ => None,
    });
    ends.collect()
}

/// A member that changes what it sends, and signs that.
pub fn liar<T: Message>(
    net: &Net,
    at: u32,
    of: impl Fn(&ControllerMessage) -> Option<Signed<T>> + 'static,
    into: impl Fn(Signed<T>) -> ControllerMessage + 'static,
    change: impl Fn(&mut T) + 'static,
) -> Lies {
    let key = key_of(&net.world, at);
    Box::new(move |from, answer| match of(&answer).filter(|_| from == at) {
        Some(signed) => {
            let mut message = signed.dangerous_unverified().unwrap();
            change(&mut message);
            vec![into(Signed::new(&message, &key))]
        }
        None => vec![answer],
    })
}

/// A member that changes its contribution, and opens what it has changed.
pub fn lies_in_contribution(
    net: &Net,
    at: u32,
    change: impl Fn(&mut Contribution) + 'static,
) -> Lies {
    let (key, given) = (key_of(&net.world, at), RefCell::new(None));
    Box::new(move |from, answer| match &answer {
        ControllerMessage::Contribution(signed) if from == at => {
            let mut own: Contribution = signed.dangerous_unverified().unwrap();
            change(&mut own);
            let signed = Signed::new(&own, &key);
            *given.borrow_mut() = Some(signed.digest());
            vec![ControllerMessage::Contribution(signed)]
        }
        ControllerMessage::BoundedOpening(signed) if from == at => {
            let mut own: BoundedOpening = signed.dangerous_unverified().unwrap();
            own.contribution = given.borrow().unwrap_or(own.contribution);
            vec![ControllerMessage::BoundedOpening(Signed::new(&own, &key))]
        }
        _ => vec![answer],
    })
}

/// Several of them, each of its own message.
pub fn both(one: Lies, other: Lies) -> Lies {
    Box::new(move |from, answer| {
        one(from, answer).into_iter().flat_map(|answer| other(from, answer)).collect()
    })
}
