//! One smoother that answers wrongly, always later, or not at all does not end an upload.

use super::*;
use crate::pass::link::Base;
use crate::stats::keys;
use crate::stats::testing::Place;
use alpheus_accountable_statistics::messages::{InPlace, Receipt};
use alpheus_accountable_statistics::registrar::Registrar;
use alpheus_crypto::ledger::Log;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// How a smoother answers a deposit.
#[derive(Clone, Copy)]
enum Manner {
    Honest,
    /// Its receipt is of another upload.
    OfAnother,
    /// It says that the slot is another's, and shows nothing of that other's.
    Lying,
    /// As a server says it that has too much to do.
    Busy,
    /// Nothing ever comes.
    Silent,
}

fn person(place: &Place) -> (Person<Records>, Clock) {
    person_in(place, Records::new(), Records::clone)
}

/// A client with its credentials in a ledger, whose registrar is here.
pub(crate) fn person_in<L: Ledger>(
    place: &Place,
    mut ledger: L,
    records: impl Fn(&L) -> Records,
) -> (Person<L>, Clock) {
    let (pinned, clock, mut rng) =
        (&place.card.pinned, Clock::of(None).unwrap(), entropy::rng().unwrap());
    let keys = std::iter::once(keys::UPLOADS.to_owned()).chain((0..4).map(keys::slots_of));
    let keys = keys.map(|file| keys::issuing(&place.keys("registrar").join(file)).unwrap());
    let now = clock.now();
    let restored = Registrar::restore(pinned, keys.collect(), Log::New, &[], now);
    let mut registrar = restored.unwrap().0;
    let asking = Registering::begin(pinned, b"ada", now, Which::Running, &mut rng).unwrap();
    let asking = asking.commit(&mut ledger).unwrap();
    let answers = registrar.register(now, b"ada", &asking.requests(), &mut rng).unwrap();
    let answers = answers.commit(&mut Records::new()).unwrap();
    asking.finish(&answers).unwrap().commit(&mut ledger).unwrap();
    let period = running(pinned, &clock).unwrap();
    let client = Client::restore(pinned, period, records(&ledger)).unwrap().unwrap();
    (Person { client, ledger }, clock)
}

/// An upload that its keeper has given a slot.
pub(crate) fn granted<L: Ledger>(place: &Place, person: &mut Person<L>, clock: &Clock) -> Attempt {
    let (agreed, mut rng) = (place.agreed(0), entropy::rng().unwrap());
    let Person { client, ledger } = person;
    let sample = Contribution::Sample(61);
    let begun = client.begin(clock.now(), &agreed, sample, &mut rng).unwrap();
    let mut attempt = begun.commit(ledger).unwrap();
    let turn = agreed.turn(clock.now()).unwrap();
    let (aggregate, ephemeral) = (agreed.name(), attempt.ephemeral());
    let grant = Grant { aggregate, slot: 3, revision: 7, turn, ephemeral };
    let keeper = agreed.keeper(&place.card.pinned, 3, turn);
    let signed = place.signed_by(keeper.0.into(), &grant);
    let prover = Prover::new(*agreed.terms());
    let made = attempt.granted(client, &prover, (keeper, &signed), clock.now(), &mut rng);
    made.unwrap().commit(ledger).unwrap();
    attempt
}

/// A server that answers each request alike, or never if there is no answer.
fn server(answer: Option<(u16, Vec<u8>)>) -> Base {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = Base::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            match &answer {
                // Who asks has gone away, perhaps.
                Some(answer) => drop(answer_one(stream, answer)),
                None => open.push(stream),
            }
        }
    });
    base
}

fn answer_one(stream: TcpStream, (status, body): &(u16, Vec<u8>)) -> std::io::Result<()> {
    let mut request = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        if request.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_lowercase();
        let found = lower.strip_prefix("content-length:");
        length = found.map_or(length, |found| found.trim().parse().unwrap());
    }
    request.read_exact(&mut vec![0; length])?;
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    request.get_mut().write_all(&[head.as_bytes(), body].concat())
}

fn busy() -> Option<(u16, Vec<u8>)> {
    Some((503, br#"{"rule":"busy","detail":"no","status":503}"#.to_vec()))
}

/// A smoother's front.
fn front(place: &Place, id: usize, entry: Entry, manner: Manner) -> Base {
    let other = Entry { slot: entry.slot + 1, ..entry };
    let by = SmootherId(u16::try_from(id).unwrap());
    let receipt = |entry: &Entry| {
        let entry = place.signed_by(id, entry);
        Receipt { by, entry }
    };
    let said = |answer: Deposited| Some((200, postcard::to_allocvec(&answer).unwrap()));
    server(match manner {
        Manner::Honest => said(Deposited::Kept(receipt(&entry))),
        Manner::OfAnother => said(Deposited::Kept(receipt(&other))),
        Manner::Lying => said(Deposited::Taken(InPlace::Signed(receipt(&entry)))),
        Manner::Busy => busy(),
        Manner::Silent => None,
    })
}

/// Deposits where each smoother answers in its manner.
async fn deposited(manners: [Manner; 4]) -> (Place, Person<Records>, Attempt) {
    let mut place = Place::new();
    let (mut person, clock) = person(&place);
    let mut attempt = granted(&place, &mut person, &clock);
    let entry = *attempt.entry().unwrap();
    for (id, manner) in manners.into_iter().enumerate() {
        place.card.smoothers[id].0 = front(&place, id, entry, manner);
    }
    let ways = Ways::new(&place.card).unwrap();
    let person = Arc::new(Mutex::new(person));
    deposit(&person, &mut attempt, &ways, &place.card.pinned).await.unwrap();
    let person = Arc::into_inner(person).unwrap().into_inner().unwrap();
    (place, person, attempt)
}

/// Deposits where three smoothers are honest and one is not.
async fn certified_despite(manner: Manner) -> bool {
    let honest = Manner::Honest;
    let (place, person, attempt) = deposited([manner, honest, honest, honest]).await;
    let receipts = attempt.receipts();
    assert!(receipts.iter().all(|receipt| receipt.by.0 != 0), "it gave none");
    let stored = Attempt::restore_all(attempt.agreed(), &person.ledger).unwrap();
    assert_eq!(stored[0].receipts(), receipts, "they are durable");
    attempt.certificate(&place.card.pinned).is_some()
}

#[tokio::test]
async fn an_upload_is_certified_though_a_receipt_is_of_something_else() {
    assert!(certified_despite(Manner::OfAnother).await);
}

#[tokio::test]
async fn an_upload_is_certified_though_a_smoother_says_that_the_slot_is_anothers() {
    assert!(certified_despite(Manner::Lying).await);
}

/// Given again, it would count twice as soon as they sign it after all.
#[tokio::test]
async fn an_upload_is_not_lost_by_smoothers_that_only_say_so() {
    let (lying, honest) = (Manner::Lying, Manner::Honest);
    let (place, _, attempt) = deposited([lying, lying, honest, honest]).await;
    assert!(attempt.certificate(&place.card.pinned).is_none());
    assert!(!attempt.is_lost(&place.card.pinned));
}

#[tokio::test]
async fn an_upload_is_certified_though_a_smoother_is_always_busy() {
    assert!(certified_despite(Manner::Busy).await);
}

#[tokio::test]
async fn an_upload_is_certified_though_a_smoother_does_not_answer() {
    assert!(certified_despite(Manner::Silent).await);
}

#[tokio::test]
async fn who_says_for_ever_that_it_is_busy_is_given_up() {
    let mut place = Place::new();
    place.card.smoothers[0].0 = server(busy());
    let ways = Ways::new(&place.card).unwrap();
    let answer = send::<()>(&ways.smoothers[0], "/v1/slots", &(), Duration::ZERO).await;
    assert!(answer.is_err_and(|error| is_busy(&error)));
}
