//! An upload succeeds although one smoother answers wrongly, late or never.

use super::*;
use crate::keys;
use crate::test_deployment::TestDeployment;
use alpheus_accountable_statistics::messages::{ConflictingEntry, Receipt};
use alpheus_accountable_statistics::registrar::Registrar;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_node::network::base::Base;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// How a smoother answers a deposit.
#[derive(Clone, Copy)]
enum Manner {
    /// It stores its own. Asked to forward one, it answers with all smoothers' receipts.
    Forwarding,
    /// It stores its own, and answers nonsense when it is asked to forward one.
    Honest,
    /// Its receipt is for another upload.
    OfAnother,
    /// It claims a conflict, without proof.
    Lying,
    /// It always answers that it is busy.
    Busy,
    /// It never answers.
    Silent,
}

fn contributor(place: &TestDeployment) -> (ContributorState<Records>, Clock) {
    contributor_in(place, Records::new(), Records::clone)
}

/// A client with credentials from a local registrar.
pub(crate) fn contributor_in<L: Ledger>(
    place: &TestDeployment,
    mut ledger: L,
    records: impl Fn(&L) -> Records,
) -> (ContributorState<L>, Clock) {
    let (pinned, clock, mut rng) = (&place.card.pinned, Clock::Process, entropy::rng().unwrap());
    let keys = std::iter::once(keys::UPLOADS.to_owned()).chain((0..4).map(keys::slots_of));
    let keys = keys.map(|file| keys::issuing(&place.keys("registrar").join(file)).unwrap());
    let now = clock.now();
    let restored = Registrar::restore(pinned, keys.collect(), StateOrigin::New, &[], now);
    let mut registrar = restored.unwrap().0;
    let asking = Registration::begin(pinned, b"ada", Timing::Running, now, &mut rng).unwrap();
    let asking = asking.commit(&mut ledger).unwrap();
    let answers = registrar.handle(b"ada", &asking.requests(), now, &mut rng).unwrap();
    let answers = answers.commit(&mut Records::new()).unwrap();
    asking.handle(&answers).unwrap().commit(&mut ledger).unwrap();
    let period = running(pinned, &clock).unwrap();
    let client = Client::restore(pinned, period, records(&ledger)).unwrap().unwrap();
    (ContributorState { client, ledger }, clock)
}

/// An upload with a granted slot.
pub(crate) fn granted<L: Ledger>(
    place: &TestDeployment,
    state: &mut ContributorState<L>,
    clock: &Clock,
) -> Attempt {
    let (agreed, mut rng) = (place.agreed(0), entropy::rng().unwrap());
    let ContributorState { client, ledger } = state;
    let sample = Contribution::Sample(61);
    let prover = Prover::new(*agreed.terms());
    let begun = client.begin((&agreed, &prover), sample, clock.now(), &mut rng).unwrap();
    let mut attempt = begun.commit(ledger).unwrap();
    let turn = agreed.turn(clock.now()).unwrap();
    let (aggregate, ephemeral) = (agreed.name(), attempt.ephemeral());
    let grant = Grant { aggregate, slot: 3, revision: 7, turn, ephemeral };
    let keeper = agreed.keeper(&place.card.pinned, 3, turn);
    let signed = place.signed_by(keeper.0.into(), &grant);
    let pinned = &place.card.pinned;
    let made = attempt.handle_grant((keeper, &signed), pinned, clock.now(), &mut rng);
    made.unwrap().commit(ledger).unwrap();
    attempt
}

type Answer = (u16, Vec<u8>);

/// A server that gives every request the same answer, or none; another one to deposits that it is
/// asked to forward.
fn server(answer: Option<Answer>, forwarded: Option<Answer>) -> Base {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = Base::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            match &answer {
                // The client may have gone.
                Some(answer) => drop(answer_one(stream, answer, forwarded.as_ref())),
                None => open.push(stream),
            }
        }
    });
    base
}

fn answer_one(
    stream: TcpStream,
    answer: &Answer,
    forwarded: Option<&Answer>,
) -> std::io::Result<()> {
    let mut request = BufReader::new(stream);
    let (mut line, mut length, mut forwards) = (String::new(), 0, false);
    while line != "\r\n" {
        line.clear();
        if request.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_lowercase();
        forwards |= lower.contains(FORWARDED);
        let found = lower.strip_prefix("content-length:");
        length = found.map_or(length, |found| found.trim().parse().unwrap());
    }
    request.read_exact(&mut vec![0; length])?;
    let (status, body) = forwarded.filter(|_| forwards).unwrap_or(answer);
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    request.get_mut().write_all(&[head.as_bytes(), body].concat())
}

fn busy() -> Option<(u16, Vec<u8>)> {
    Some((503, br#"{"rule":"busy","detail":"no","status":503}"#.to_vec()))
}

/// A fake smoother.
fn front(place: &TestDeployment, id: usize, entry: Entry, manner: Manner) -> Base {
    let other = Entry { slot: entry.slot + 1, ..entry };
    let by = SmootherId(u16::try_from(id).unwrap());
    let receipt = |entry: &Entry| {
        let entry = place.signed_by(id, entry);
        Receipt { by, entry }
    };
    let said = |answer: DepositResponse| Some((200, postcard::to_allocvec(&answer).unwrap()));
    let forwarded = matches!(manner, Manner::Forwarding).then(|| {
        let all = (0..4_u16).map(|id| {
            let (by, entry) = (SmootherId(id), place.signed_by(id.into(), &entry));
            (by, DepositResponse::Stored(Receipt { by, entry }))
        });
        (200, postcard::to_allocvec(&all.collect::<Vec<_>>()).unwrap())
    });
    let answer = match manner {
        Manner::Forwarding | Manner::Honest => said(DepositResponse::Stored(receipt(&entry))),
        Manner::OfAnother => said(DepositResponse::Stored(receipt(&other))),
        Manner::Lying => said(DepositResponse::Conflict(ConflictingEntry::Signed(receipt(&entry)))),
        Manner::Busy => busy(),
        Manner::Silent => None,
    };
    server(answer, forwarded)
}

/// Deposits with smoothers of these manners.
async fn deposited(manners: [Manner; 4]) -> (TestDeployment, ContributorState<Records>, Attempt) {
    let mut place = TestDeployment::new();
    let (mut state, clock) = contributor(&place);
    let mut attempt = granted(&place, &mut state, &clock);
    let entry = *attempt.entry().unwrap();
    for (id, manner) in manners.into_iter().enumerate() {
        place.card.smoothers[id].0 = front(&place, id, entry, manner);
    }
    let parties = Parties::new(&place.card).unwrap();
    let receipts = deposit(&mut attempt, &parties, &place.card.pinned).await;
    receipts.commit(&mut state.ledger).unwrap();
    (place, state, attempt)
}

/// Deposits with three honest smoothers and one other.
async fn certified_despite(manner: Manner) -> bool {
    let honest = Manner::Honest;
    let (place, state, attempt) = deposited([manner, honest, honest, honest]).await;
    let receipts = attempt.receipts();
    assert!(receipts.iter().all(|receipt| receipt.by.0 != 0), "it gave none");
    let stored = Attempt::restore_all(attempt.definition(), &state.ledger).unwrap();
    assert_eq!(stored[0].receipts(), receipts, "they are durable");
    attempt.certificate(&place.card.pinned).is_some()
}

#[tokio::test]
async fn an_upload_is_certified_despite_a_receipt_for_something_else() {
    assert!(certified_despite(Manner::OfAnother).await);
}

#[tokio::test]
async fn an_upload_is_certified_despite_a_false_conflict() {
    assert!(certified_despite(Manner::Lying).await);
}

/// A retry would count twice once the smoothers sign the first attempt.
#[tokio::test]
async fn unproven_conflicts_do_not_lose_an_upload() {
    let (lying, honest) = (Manner::Lying, Manner::Honest);
    let (place, _, attempt) = deposited([lying, lying, honest, honest]).await;
    assert!(attempt.certificate(&place.card.pinned).is_none());
    assert!(!attempt.is_lost(&place.card.pinned));
}

#[tokio::test]
async fn an_upload_is_certified_despite_a_busy_smoother() {
    assert!(certified_despite(Manner::Busy).await);
}

#[tokio::test]
async fn an_upload_is_certified_despite_a_silent_smoother() {
    assert!(certified_despite(Manner::Silent).await);
}

#[tokio::test]
async fn a_party_that_stays_busy_is_given_up() {
    let mut place = TestDeployment::new();
    place.card.smoothers[0].0 = server(busy(), None);
    let parties = Parties::new(&place.card).unwrap();
    let answer = send::<()>(&parties.smoothers[0], "/v1/slots", &(), Duration::ZERO).await;
    assert!(answer.is_err_and(|error| is_busy(&error)));
}

/// Over one connection: nobody but the keeper is asked, or could answer.
#[tokio::test]
async fn a_keeper_that_forwards_brings_all_receipts() {
    let place = TestDeployment::new();
    let (mut state, clock) = contributor(&place);
    let keeper = granted(&place, &mut state, &clock).forwarded().unwrap().0;
    let mut manners = [Manner::Silent; 4];
    manners[usize::from(keeper.0)] = Manner::Forwarding;
    let (place, _, attempt) = deposited(manners).await;
    assert!(attempt.is_certified_everywhere(&place.card.pinned));
    assert!(attempt.forwarded().is_none(), "there is nothing left to forward");
}
