//! Writers admitted by a doorkeeper: what its permit allows, and what not.

use crate::properties::town::{Town, key};
use alpheus_anonymous_board::admission::{Admission, AdmissionError, Doorkeeper, Permit};
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Submission, WriteName};
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;

const BOARD: [u8; 32] = [7; 32];
const NAME: WriteName = WriteName(Digest([5; 32]));

fn door() -> Doorkeeper {
    Doorkeeper::new(key(100).verifying_key(), Digest([6; 32]), BOARD)
}

fn admitted(by: &SigningKey, board: [u8; 32], epoch: Epoch) -> Signed<Permit> {
    Signed::new(&Permit { board, epoch, writer: key(101).verifying_key() }, by)
}

fn ticket(admitted: &Signed<Permit>, writer: &SigningKey, name: &WriteName) -> Vec<u8> {
    let signature = writer.sign(labels::BOARD_TICKET, name.0.as_ref());
    Doorkeeper::ticket(admitted, signature)
}

#[test]
fn a_permit_is_for_one_board_one_epoch_and_one_writer() {
    let (keeper, writer) = (key(100), key(101));
    let good = admitted(&keeper, BOARD, Epoch(3));
    let tag = |epoch, ticket: &[u8]| door().tag(epoch, &NAME, ticket);
    let known = Doorkeeper::tag_of(&writer.verifying_key());
    assert_eq!(tag(Epoch(3), &ticket(&good, &writer, &NAME)), Ok(known));
    let other_name = WriteName(Digest([6; 32]));
    let mut longer = ticket(&good, &writer, &NAME);
    longer.push(0);
    let bad = [
        ("another epoch", Epoch(4), ticket(&good, &writer, &NAME)),
        ("another write", Epoch(3), ticket(&good, &writer, &other_name)),
        ("another writer", Epoch(3), ticket(&good, &key(102), &NAME)),
        ("another door", Epoch(3), ticket(&admitted(&key(102), BOARD, Epoch(3)), &writer, &NAME)),
        ("another board", Epoch(3), ticket(&admitted(&keeper, [8; 32], Epoch(3)), &writer, &NAME)),
        ("more bytes", Epoch(3), longer),
        ("nothing", Epoch(3), Vec::new()),
    ];
    for (what, epoch, ticket) in bad {
        assert_eq!(tag(epoch, &ticket), Err(AdmissionError), "{what}");
    }
}

/// A different key or pass configuration makes a different door.
#[test]
fn another_key_or_other_passes_make_another_door() {
    let digest = |key: &SigningKey, passes| {
        Doorkeeper::new(key.verifying_key(), Digest([passes; 32]), BOARD).digest()
    };
    let digests = [digest(&key(1), 1), digest(&key(2), 1), digest(&key(1), 2)];
    assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[1] != digests[2]);
}

#[test]
fn an_admitted_writer_writes_once() {
    let mut town = Town::new(9, 30, 90);
    let (keeper, writer) = (key(100), key(101));
    let word = admitted(&keeper, town.board.board, Epoch(0));
    let door = Doorkeeper::new(keeper.verifying_key(), Digest([6; 32]), town.board.board);
    assert_eq!(door.check(Epoch(0), &word), Ok(writer.verifying_key()));
    let tag = Doorkeeper::tag_of(&writer.verifying_key());
    let mut write = |content| -> Submission {
        let view = View::open(&town.board, &town.transcript()).unwrap();
        let signed = |name: &WriteName| ticket(&word, &writer, name);
        view.write(content, tag, signed, &mut town.rng).unwrap().1
    };
    let [first, second] = [Content::Message(b"once"), Content::Message(b"twice")].map(&mut write);
    for side in Side::BOTH {
        let mut submit = |submission: &Submission| {
            let database = &mut town.databases[side.index()];
            let step = database.handle_submission(submission.clone(), town.now, &door)?;
            step.commit(&mut town.ledgers[side.index()]).unwrap();
            Ok::<_, SubmissionError>(())
        };
        assert_eq!(submit(&first), Ok(()));
        assert_eq!(submit(&first), Ok(()), "the same again");
        assert_eq!(submit(&second), Err(SubmissionError::Spent));
    }
}
