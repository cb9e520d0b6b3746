//! Writers and readers among equal servers that lie to them: whose writes are hidden together
//! is nobody's choice, and who may have read a table alone does not talk that over.

use crate::board::ring::{NOW, Ring, key, party, restated, server};
use crate::board::stub::{MANY, OTHER, Script, Stub};
use crate::common::deployment::until;
use crate::common::in_some_attempt;
use alpheus_anonymous_board::configuration::Board;
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Statement};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_anonymous_board::transcript::{Effect, Transcript};
use alpheus_anonymous_board::writer::Content;
use alpheus_board_service::client::{BoardError, Client, PostedWrite};
use alpheus_board_service::entry::Entry;
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Span;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::future::Future;
use std::time::Duration;

/// The honest one that is to be shut out.
const HONEST: usize = 0;
const LIAR: usize = 2;

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

async fn post(client: &Client) -> Result<PostedWrite, BoardError> {
    post_within(client, Span(0)).await
}

async fn post_within(client: &Client, spread: Span) -> Result<PostedWrite, BoardError> {
    let (view, member) = (client.view().await?, key(1));
    let rng = &mut ChaCha20Rng::from_seed([8; 32]);
    let entry = &mut Entry::Member(Box::new(member));
    client.post(&view, Content::Cover, entry, spread, rng).await
}

/// A server that keeps its Begin back from another one has that one refuse all writes that it
/// chooses: so a writer makes none before all have heard all.
#[test]
fn a_begin_that_is_kept_back_gets_no_write() {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 1);
    let all = Script::alike(&ring.statements);
    let mut kept_back = all.clone();
    kept_back[HONEST][LIAR] = Some(Vec::new());
    let client = Client::new(&stub.card).unwrap();
    {
        let mut script = stub.script();
        script.said = kept_back;
        // Several rounds of asking later.
        script.later = Some((30, all));
    }
    wait(post(&client)).unwrap();
    let script = stub.script();
    assert!(script.later.is_none(), "it wrote after {} answers", script.asked);
    assert_eq!(script.writes.len(), MANY);
}

/// One Begin for a writer, another for an honest server: no write is made, and the server is
/// shown what it lacks for the proof.
#[test]
fn two_begins_get_no_write_and_are_proven() {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 2);
    let second = restated(&ring.board, LIAR, ring.statements[LIAR][0].clone(), |what| {
        if let Body::Begin { agreement, .. } = what {
            *agreement = AgreementKey::from_seed(&Secret::from_bytes([9; 32])).public();
        }
    });
    stub.script().said = Script::alike(&ring.statements);
    stub.script().said[HONEST][LIAR] = Some(vec![second.clone()]);
    let client = Client::new(&stub.card).unwrap();
    let error = wait(post(&client)).err();
    let Some(BoardError::TwoBegins(of, via)) = error else { panic!("{error:?}") };
    assert_eq!((of, via), (party(LIAR), party(HONEST)));
    let script = stub.script();
    assert!(script.writes.is_empty());
    let shown = vec![(HONEST, LIAR, ring.statements[LIAR][0].clone())];
    assert_eq!(script.handed_on, shown);
    let mut heard = Transcript::new(&ring.board, NOW);
    assert_eq!(heard.record(party(LIAR), &second).unwrap(), Effect::New);
    let proof = heard.record(party(LIAR), &shown[0].2).unwrap();
    assert_eq!(proof, Effect::Fault(Fault::Equivocation));
}

/// A server that lacks a Begin when the write comes gets the very same write again: another
/// one would spend the quota twice, and be missing in the crowd of one of the servers.
#[test]
fn a_write_that_came_too_early_is_sent_again_as_it_was() {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 3);
    stub.script().said = Script::alike(&ring.statements);
    stub.script().refuses[HONEST] = (2, "beginning");
    let client = Client::new(&stub.card).unwrap();
    let posted = wait(post(&client)).unwrap();
    let script = stub.script();
    let came = |to| script.writes.iter().filter(|(via, _)| *via == to).count();
    assert_eq!([came(0), came(1), came(2)], [3, 1, 1]);
    assert!(script.writes.iter().all(|(_, write)| *write == posted.submission));
}

/// Each server gets the write at a moment of its own, drawn from the time that a writer allows: visitors of two of
/// them cannot be matched by when they came.
#[test]
fn servers_get_a_write_at_moments_of_their_own() {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 6);
    stub.script().said = Script::alike(&ring.statements);
    let client = Client::new(&stub.card).unwrap();
    in_some_attempt("moments that differ", || {
        stub.script().came_at.clear();
        wait(post_within(&client, Span(4_000_000))).unwrap();
        let came_at = stub.script().came_at.clone();
        assert_eq!(came_at.len(), MANY);
        let apart = *came_at.iter().max()? - *came_at.iter().min()?;
        // Once in a hundred times the draws are that near each other.
        (apart > Duration::from_millis(300)).then_some(())
    });
}

/// Another refusal ends it, at that server. The others have the write, so its writer waits for it.
#[test]
fn a_write_that_is_refused_for_good_is_not_sent_again() {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 4);
    stub.script().said = Script::alike(&ring.statements);
    stub.script().refuses[HONEST] = (1, "epoch");
    wait(post(&Client::new(&stub.card).unwrap())).unwrap();
    let script = stub.script();
    let came = |to| script.writes.iter().filter(|(via, _)| *via == to).count();
    assert_eq!([came(0), came(1), came(2)], [1, 1, 1]);
    drop(script);
    // If nobody takes it, there is nothing to wait for.
    for refuses in &mut stub.script().refuses {
        *refuses = (1, "epoch");
    }
    let refused = wait(post(&Client::new(&stub.card).unwrap()));
    assert!(matches!(refused.err(), Some(BoardError::Server(by, _)) if by == party(HONEST)));
}

/// All are bound and all shares but the liar's are out: it may have read the table. The servers'
/// statements by then.
fn bound(stub: &Stub, liar: usize) -> Vec<Vec<Signed<Statement>>> {
    let mut ring = Ring::of(&stub.configuration, 5);
    (0..4).for_each(|i| drop(ring.post(i, Content::Cover)));
    (ring.withheld, ring.idle) = (Some(liar), vec![liar]);
    ring.later(901);
    ring.turn();
    assert!(ring.transcript().agreed_latch().is_some());
    ring.statements
}

fn abort(board: &Board, by: usize, place: usize, why: BurnReason) -> Signed<Statement> {
    let (sequence, body) = (u8::try_from(place).unwrap(), Body::Abort { reason: why });
    let board = board.fingerprint();
    Signed::new(&Statement { board, epoch: NOW, by: party(by), sequence, body }, &server(by))
}

/// The reason that a waiting writer gets when the epoch is burnt.
fn burnt(stub: &Stub) -> BurnReason {
    let settled = wait(Client::new(&stub.card).unwrap().settle(NOW, &[]));
    let why = |error| match error {
        BoardError::NotRead(ReadError::Burnt(why)) => Ok(why),
        other => Err(other),
    };
    why(settled.unwrap_err()).unwrap()
}

const REASONS: [BurnReason; 7] = [
    BurnReason::Late,
    BurnReason::TooFew,
    BurnReason::Dwindled,
    BurnReason::Contradiction,
    BurnReason::Restored,
    BurnReason::Reported(crate::board::stub::OTHER),
    BurnReason::Blamed(crate::board::stub::OTHER, Fault::Set),
];

/// The liar is the first or the last that is asked; it gives any reason, and the others have
/// said nothing yet, or give no answer, or the liar's reason after it.
#[test]
fn the_warning_goes_before_every_reason() {
    for liar in [0, LIAR] {
        let stub = Stub::new();
        let before = bound(&stub, liar);
        for why in REASONS {
            let mut said = before.clone();
            let place = said[liar].len();
            said[liar].push(abort(&stub.card.board, liar, place, why));
            stub.script().said = Script::alike(&said);
            assert_eq!(burnt(&stub), BurnReason::Unshared, "{why}");
            // The others are heard by the liar alone.
            for by in (0..MANY).filter(|by| *by != liar) {
                stub.script().said[by] = [const { None }; MANY];
            }
            assert_eq!(burnt(&stub), BurnReason::Unshared, "{why}");
        }
        let read = stub.not_read();
        assert!(read.contains("do not write the same again"), "{read}");
    }
}

/// A liar that says to writers that it was never bound, and to the others that it is: its
/// reason is not heeded before all have ended the epoch, and what they say then is the warning.
#[test]
fn a_reason_in_place_of_a_latch_waits_for_the_others() {
    for liar in [0, LIAR] {
        let stub = Stub::new();
        let mut truth = bound(&stub, liar);
        let latch = truth[liar].pop().unwrap();
        assert!(matches!(opened(&latch, liar).body, Body::Latch { .. }));
        let place = truth[liar].len();
        truth[liar].push(abort(&stub.card.board, liar, place, BurnReason::Late));
        let now = Script::alike(&truth);
        for by in (0..MANY).filter(|by| *by != liar) {
            let place = truth[by].len();
            truth[by].push(abort(&stub.card.board, by, place, BurnReason::Unshared));
        }
        {
            let mut script = stub.script();
            (script.said, script.asked) = (now, 0);
            script.later = Some((30, Script::alike(&truth)));
        }
        assert_eq!(burnt(&stub), BurnReason::Unshared);
        assert!(stub.script().later.is_none(), "it heeded the first abort");
    }
}

fn opened(said: &Signed<Statement>, by: usize) -> Statement {
    said.open(&server(by).verifying_key()).unwrap().into_inner()
}

/// An abort that is no warning is reported as it is, once all have ended the epoch.
#[test]
fn an_epoch_that_ends_before_anybody_is_bound_may_be_written_again() {
    let stub = Stub::new();
    let mut said = Ring::of(&stub.configuration, 6).statements;
    for (by, said) in said.iter_mut().enumerate() {
        said.push(abort(&stub.card.board, by, 1, BurnReason::TooFew));
    }
    stub.script().said = Script::alike(&said);
    assert_eq!(burnt(&stub), BurnReason::TooFew);
    let read = stub.not_read();
    assert!(read.contains("burnt") && !read.contains("do not write the same again"), "{read}");
}

/// A server that serves other bytes than it signed, or none, keeps nobody from reading the table that
/// another one has.
#[test]
fn a_table_is_read_from_any_server_that_has_it() {
    let stub = Stub::new();
    let mut ring = Ring::of(&stub.configuration, 7);
    (0..3).for_each(|i| drop(ring.post(i, Content::Message(format!("message {i}").as_bytes()))));
    ring.later(901);
    ring.turn();
    let table = ring.tables[HONEST].as_ref().unwrap().to_vec();
    let other: Vec<u8> = table.iter().map(|byte| !byte).collect();
    stub.script().said = Script::alike(&ring.statements);
    stub.script().tables = [Some(other.clone()), None, Some(table)];
    let read = stub.read();
    let mut messages: Vec<&str> = read.lines().collect();
    messages.sort_unstable();
    assert_eq!(messages, ["message 0", "message 1", "message 2"]);
    stub.script().tables = [None, Some(other), None];
    let said = stub.not_read();
    assert!(said.contains("not the one that the databases signed"), "{said}");
    assert!(said.contains("alpheus errors board-disagrees"), "{said}");
}

/// A server that takes requests and never answers does not keep a writer from the statements of the
/// others, of which it may have to complain.
#[test]
fn a_server_that_never_answers_holds_up_no_others() {
    in_some_attempt("requests before others are asked for its statements", asks_the_others_first);
}

fn asks_the_others_first() -> Option<()> {
    let stub = Stub::new();
    let ring = Ring::of(&stub.configuration, 8);
    stub.script().said = Script::alike(&ring.statements);
    stub.script().stalls = Some(HONEST);
    let client = Client::new(&stub.card).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _asking = runtime.spawn(async move { client.transcript(NOW).await.map(drop) });
    let mut first = until("request for the others' statements", || {
        stub.script().asked_of.get(..2).map(<[usize]>::to_vec)
    });
    runtime.shutdown_background();
    // It would ask others for the statements of the one that does not answer only after a while.
    first.sort_unstable();
    (first == [OTHER.index(), LIAR]).then_some(())
}
