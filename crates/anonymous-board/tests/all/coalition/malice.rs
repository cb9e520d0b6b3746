//! One server lies in each of its messages, to all or to one. Whether a write is accepted and the
//! epoch succeeds must not depend on the written row.

use crate::coalition::ring::{NOW, Ring, party, server};
use crate::malice::{
    self, Foreknowledge, IN, Lie, NO_SET, NamedLie, OUT, Observation,
    assert_no_lie_reveals_the_row, assert_no_lie_to_one_reveals_the_row, differs, observations,
};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::coalition::audit::{Answer, evaluation_points, points};
use alpheus_anonymous_board::coalition::field::{Binary, Field};
use alpheus_anonymous_board::coalition::gate::{Proof, Sums};
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Submission, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, Fate};
use chacha20::ChaCha20Rng;

const LIAR: usize = 1;
const ROWS: u32 = 8;

/// A liar's knowledge. Only the harness knows the row, to check that its detector works.
struct Shadow {
    victim: WriteName,
    submission: Submission,
    honest: Vec<Answer>,
    row: u32,
}

impl malice::Shadow for Shadow {
    fn victim(&self) -> WriteName {
        self.victim
    }
}

/// Commits to and opens the answers with the victim's changed.
fn recommit(shadow: &Shadow, said: &Transcript, body: &mut Body, change: impl Fn(&mut Answer)) {
    let Some(candidates) = said.candidates() else { return };
    let Ok(at) = candidates.writes.binary_search(&shadow.victim) else { return };
    let mut changed = shadow.honest.clone();
    change(&mut changed[at]);
    match body {
        Body::Commit { digests, .. } => {
            *digests = said.answer_commitment(party(LIAR), &candidates.digest, &changed, &[9; 32]);
        }
        Body::Answer { answers, nonce } => (*answers, *nonce) = (changed, [9; 32]),
        _ => {}
    }
}

/// The victim's answer with something else in row 3 of the liar's share, which is the written row
/// or not.
fn other_row(shadow: &Shadow, said: &Transcript, body: &mut Body, copy: usize) {
    let Some(candidates) = said.candidates() else { return };
    let member = crate::coalition::ring::key(0).verifying_key();
    let bound = said.bound(&Members::tag_of(&member)).unwrap();
    let points = points(&bound, shadow.submission.common.as_ref().unwrap()).swap_remove(copy);
    let (r, s) = (points.r.power(ROWS - 3), points.s.power(ROWS - 3));
    let m = Binary::from_hash("alpheus/test/v1", &[]);
    let both = r.times(&s).times(&m);
    let sums = Sums { r: r.times(&m), s: s.times(&m), both, plain: m };
    let none = Proof::from_bytes(&[0; 7 * 16]).unwrap();
    let error =
        evaluation_points(candidates.randomness.as_ref())[copy].open(&sums, &none).to_bytes();
    recommit(shadow, said, body, |answer| {
        let numbers = answer.0[copy].as_flattened_mut();
        numbers.iter_mut().zip(&error).for_each(|(byte, e)| *byte ^= e);
    });
}

/// A change to each statement that servers of this mode alone make.
const LIES: &[NamedLie<Shadow>] = &[
    (
        "another nonce",
        |_, _, body| {
            if let Body::Answer { nonce, .. } = body {
                nonce[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "an answer fewer",
        |_, _, body| {
            if let Body::Answer { answers, .. } = body {
                answers.pop();
            }
        },
        NO_SET,
    ),
    (
        "the honest answers under another nonce",
        |shadow, said, body| {
            recommit(shadow, said, body, |_| ());
        },
        IN,
    ),
    ("a bit of f", |s, said, body| recommit(s, said, body, |a| a.0[0][0][0] ^= 1), OUT),
    ("a bit of g", |s, said, body| recommit(s, said, body, |a| a.0[0][1][5] ^= 1), OUT),
    ("a bit of h", |s, said, body| recommit(s, said, body, |a| a.0[1][2][9] ^= 1), OUT),
    ("a bit of the gate", |s, said, body| recommit(s, said, body, |a| a.0[1][3][15] ^= 1), OUT),
    ("another row, first copy", |s, said, body| other_row(s, said, body, 0), OUT),
    ("another row, second copy", |s, said, body| other_row(s, said, body, 1), OUT),
    (
        "other openings agreed on",
        |_, _, body| {
            if let Body::Agree { opens, .. } = body {
                opens.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "something out of turn",
        |_, _, body| {
            if let Body::Commit { .. } = body {
                *body = Body::Close { writes: Vec::new(), came: 0 };
            }
        },
        NO_SET,
    ),
    (
        "a statement of mode 1",
        |_, _, body| {
            if let Body::Answer { nonce, .. } = body {
                *body = Body::Open { digests: Vec::new(), nonce: *nonce };
            }
        },
        NO_SET,
    ),
];

/// A change to each statement of a server.
fn lies() -> Vec<NamedLie<Shadow>> {
    <Shadow as malice::Shadow>::COMMON_LIES.iter().chain(LIES).copied().collect()
}

/// Writes repeatedly until a write goes to the wanted row.
fn post_to(ring: &mut Ring, row: u32) -> Submission {
    let width = ring.board.shape().width();
    loop {
        // The writer will draw the same randomness.
        let mut same = ChaCha20Rng::deserialize_state(&ring.rng.serialize_state());
        let mark = ring.board.format.encode(b"the victim's", &mut same).unwrap();
        let (written, submission) = ring.write(0, Content::Message(b"the victim's"));
        let mut table = vec![0; ring.board.shape().bytes()];
        table[row as usize * width..][..width].copy_from_slice(&mark);
        if written.fate_in(&table) == Fate::Delivered {
            (0..ring.many()).for_each(|i| drop(ring.submit(i, &submission).unwrap()));
            return submission;
        }
    }
}

fn stage(row: u32) -> (Ring, Submission) {
    let mut ring = Ring::new(3, ROWS, 40);
    let submission = post_to(&mut ring, row);
    (1..4).for_each(|member| drop(ring.post(member, Content::Cover)));
    (ring, submission)
}

static HONEST_ANSWERS: Foreknowledge<Vec<Answer>> = Foreknowledge::new();

/// Runs an epoch in which a server lies, to everybody or to one receiver, and returns what can be
/// seen.
fn run(lie: Lie<Shadow>, row: u32, toward: Option<usize>) -> Observation {
    let honest = HONEST_ANSWERS.of(row, || {
        let (mut honest, _) = stage(row);
        honest.later(61);
        honest.turn();
        honest.transcript().opened_answers(party(LIAR)).unwrap().unwrap().to_vec()
    });
    let (mut ring, submission) = stage(row);
    let victim = submission.name(&ring.board.fingerprint());
    let shadow = Shadow { victim, submission, honest, row };
    ring.later(61);
    if let Some(hearer) = toward {
        let version = move |said: &Transcript, body: &mut Body| lie(&shadow, said, body);
        ring.versions.push((LIAR, hearer, Box::new(version)));
        for _ in 0..5 {
            ring.turn();
            ring.later(11);
        }
    } else {
        for _ in 0..5 {
            ring.turn_with(&mut |by, said, body| {
                if by == LIAR {
                    lie(&shadow, said, body);
                }
            });
            ring.later(11);
        }
    }
    let own = party(0);
    let heard = ring.servers[0].transcript(NOW).unwrap();
    let accepted = heard.set().and_then(Result::ok).map(|set| set.accepted.contains(&victim));
    (accepted, format!("{:?} {:?}", heard.abort_reason(own), heard.published_table(own).is_some()))
}

#[test]
fn what_a_lying_server_sees_does_not_depend_on_the_row() {
    assert_no_lie_reveals_the_row(&lies(), |lie, row| run(lie, row, None));
}

/// The same lies, to one honest server only, so that the honest servers have different views.
#[test]
fn what_it_sees_after_lying_to_one_receiver_does_not_depend_on_the_row() {
    let receivers = [0, 2];
    assert_no_lie_to_one_reveals_the_row(&lies(), &receivers, |lie, row, receiver| {
        run(lie, row, Some(receiver))
    });
}

/// The same harness with a lie that does depend on the row, which only the harness can tell. The
/// detector notices it.
#[test]
fn a_lie_that_depends_on_the_row_is_detected() {
    let leak: Lie<Shadow> = |shadow, said, body| {
        if shadow.row == 3 {
            recommit(shadow, said, body, |answer| answer.0[0][0][0] ^= 1);
        }
    };
    let seen = observations(&[0, 3, 7], |row| run(leak, row, None));
    assert!(differs(&seen), "{seen:?}");
    assert_eq!(seen[&3].first().map(|s| s.0), Some(OUT));
}

/// Two honest servers with different candidates open nothing: two openings of one proof would
/// reveal something about the row.
#[test]
fn nothing_is_opened_at_two_places() {
    let (mut ring, _) = stage(3);
    ring.later(61);
    let version = |_: &Transcript, body: &mut Body| {
        if let Body::Candidates { coin, .. } = body {
            coin[0] ^= 1;
        }
    };
    ring.versions.push((LIAR, 0, Box::new(version)));
    ring.turn();
    for i in [0, 2] {
        let heard = ring.servers[i].transcript(NOW).unwrap();
        assert!(heard.opened_answers(party(i)).is_none() && heard.abort_reason(party(i)).is_some());
    }
}

/// A share that does not match the latch is rejected, whichever byte differs.
#[test]
fn only_the_latched_share_is_accepted() {
    let (mut ring, _) = stage(3);
    ring.withheld = Some(LIAR);
    ring.later(61);
    ring.turn();
    let share = ring.shares[LIAR].clone().unwrap();
    assert_eq!(ring.servers[0].missing_shares(NOW), vec![party(LIAR)]);
    for at in (0..share.len()).step_by(211) {
        let mut other = share.to_vec();
        other[at] ^= 1;
        assert!(ring.servers[0].handle_share(other, party(LIAR), NOW).is_err());
    }
    assert!(ring.servers[0].handle_share(share.to_vec(), party(LIAR), NOW).is_ok());
}

/// A server waits for another's commitment and answers, and repeats them. A commitment covers its
/// maker, so this fails.
#[test]
fn a_server_that_repeats_anothers_answers_is_blamed() {
    let (mut ring, _) = stage(3);
    ring.later(61);
    ring.turn_with(&mut |by, transcript, body| {
        let Some(said) = transcript.statements(party(0)).last().filter(|_| by == LIAR) else {
            return;
        };
        let said = said.open(&server(0).verifying_key()).unwrap().into_inner().body;
        if let (Body::Commit { .. }, Body::Commit { .. })
        | (Body::Answer { .. }, Body::Answer { .. }) = (&*body, &said)
        {
            *body = said;
        }
    });
    for honest in [0, 2] {
        let heard = ring.servers[honest].transcript(NOW).unwrap();
        let blamed = BurnReason::Blamed(party(LIAR), Fault::Digests);
        assert_eq!(heard.abort_reason(party(honest)), Some(blamed));
    }
    assert!(ring.shares.iter().all(Option::is_none));
}
