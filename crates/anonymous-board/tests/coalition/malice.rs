//! One server lies, in each of its messages, to all or to one: whether a write is accepted,
//! and whether the epoch goes through, must not depend on the row that was written.

use crate::ring::{NOW, Ring, party, server};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::coalition::audit::{Answer, places, points};
use alpheus_anonymous_board::coalition::field::{Binary, Field};
use alpheus_anonymous_board::coalition::gate::{Proof, Sums};
use alpheus_anonymous_board::messages::{Fault, Submission, What, Why, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::hash::Digest;
use std::collections::{BTreeMap, BTreeSet};

const LIAR: usize = 1;
const ROWS: u32 = 8;

/// What a liar knows; of the row only the harness does, to see that its detector works.
struct Shadow {
    victim: WriteName,
    submission: Submission,
    honest: Vec<Answer>,
    row: u32,
}

/// What everybody can see: whether the victim is in the set, and how it ended.
type Seen = (Option<bool>, String);
type Lie = fn(&Shadow, &Transcript, &mut What);

const IN: Option<bool> = Some(true);
const OUT: Option<bool> = Some(false);
const NO_SET: Option<bool> = None;

/// Commits to and opens the victim's answer changed, all others as they are.
fn recommit(shadow: &Shadow, said: &Transcript, what: &mut What, change: impl Fn(&mut Answer)) {
    let Some(candidates) = said.candidates() else { return };
    let Ok(at) = candidates.writes.binary_search(&shadow.victim) else { return };
    let mut changed = shadow.honest.clone();
    change(&mut changed[at]);
    match what {
        What::Commit { digests, .. } => {
            *digests = said.answer_binding(party(LIAR), &candidates.digest, &changed, &[9; 32]);
        }
        What::Answer { answers, nonce } => (*answers, *nonce) = (changed, [9; 32]),
        _ => {}
    }
}

/// The victim's answer as it were with something else in row 3 of the liar's share, which is
/// the written row or not.
fn other_row(shadow: &Shadow, said: &Transcript, what: &mut What, copy: usize) {
    let Some(candidates) = said.candidates() else { return };
    let member = crate::ring::key(0).verifying_key();
    let bound = said.bound(&Members::tag_of(&member)).unwrap();
    let points = points(&bound, shadow.submission.common.as_ref().unwrap()).swap_remove(copy);
    let (r, s) = (points.r.power(ROWS - 3), points.s.power(ROWS - 3));
    let m = Binary::hashed("alpheus/test/v1", &[]);
    let both = r.times(&s).times(&m);
    let sums = Sums { r: r.times(&m), s: s.times(&m), both, plain: m };
    let none = Proof::from_bytes(&[0; 7 * 16]).unwrap();
    let error = places(candidates.drawn.as_ref())[copy].open(&sums, &none).to_bytes();
    recommit(shadow, said, what, |answer| {
        let numbers = answer.0[copy].as_flattened_mut();
        numbers.iter_mut().zip(&error).for_each(|(byte, e)| *byte ^= e);
    });
}

/// Every statement of a server, changed, and what becomes of the victim's write if everybody
/// hears it so.
const LIES: &[(&str, Lie, Option<bool>)] = &[
    ("nothing", |_, _, _| (), IN),
    (
        "the victim is not listed at close",
        |shadow, _, what| {
            if let What::Close { writes } = what {
                writes.retain(|write| *write != shadow.victim);
            }
        },
        IN,
    ),
    (
        "a write that nobody made is listed",
        |_, _, what| {
            if let What::Close { writes } = what {
                writes.push(WriteName(Digest([255; 32])));
            }
        },
        IN,
    ),
    (
        "the victim is no candidate",
        |shadow, _, what| {
            if let What::Candidates { writes, .. } = what {
                writes.retain(|write| *write != shadow.victim);
            }
        },
        NO_SET,
    ),
    (
        "another coin",
        |_, _, what| {
            if let What::Candidates { coin, .. } = what {
                coin[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "another commitment",
        |_, _, what| {
            if let What::Commit { digests, .. } = what {
                digests.0[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "other candidates committed to",
        |_, _, what| {
            if let What::Commit { candidates, .. } = what {
                candidates.0[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "another nonce",
        |_, _, what| {
            if let What::Answer { nonce, .. } = what {
                nonce[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "an answer fewer",
        |_, _, what| {
            if let What::Answer { answers, .. } = what {
                answers.pop();
            }
        },
        NO_SET,
    ),
    (
        "the honest answers under another nonce",
        |shadow, said, what| {
            recommit(shadow, said, what, |_| ());
        },
        IN,
    ),
    ("a bit of f", |s, said, what| recommit(s, said, what, |a| a.0[0][0][0] ^= 1), OUT),
    ("a bit of g", |s, said, what| recommit(s, said, what, |a| a.0[0][1][5] ^= 1), OUT),
    ("a bit of h", |s, said, what| recommit(s, said, what, |a| a.0[1][2][9] ^= 1), OUT),
    ("a bit of the gate", |s, said, what| recommit(s, said, what, |a| a.0[1][3][15] ^= 1), OUT),
    ("another row, first copy", |s, said, what| other_row(s, said, what, 0), OUT),
    ("another row, second copy", |s, said, what| other_row(s, said, what, 1), OUT),
    (
        "another set",
        |_, _, what| {
            if let What::Agree { set, .. } = what {
                set.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "other openings agreed on",
        |_, _, what| {
            if let What::Agree { opens, .. } = what {
                opens.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "another size",
        |_, _, what| {
            if let What::Agree { size, .. } = what {
                *size += 1;
            }
        },
        IN,
    ),
    (
        "a latch of another set",
        |_, _, what| {
            if let What::Latch { set, .. } = what {
                set.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "a latch of another share",
        |_, _, what| {
            if let What::Latch { share, .. } = what {
                share.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "another table",
        |_, _, what| {
            if let What::Publish { table, .. } = what {
                table.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "something out of turn",
        |_, _, what| {
            if let What::Commit { .. } = what {
                *what = What::Close { writes: Vec::new() };
            }
        },
        NO_SET,
    ),
    (
        "what is mode 1's",
        |_, _, what| {
            if let What::Answer { nonce, .. } = what {
                *what = What::Open { digests: Vec::new(), nonce: *nonce };
            }
        },
        NO_SET,
    ),
];

/// A writer that tries until its write goes to the row that is wanted.
fn post_to(ring: &mut Ring, row: u32) -> Submission {
    let width = ring.board.shape().width();
    loop {
        // What the writer will draw.
        let mark = ring.board.format.encode(b"the victim's", &mut ring.rng.clone()).unwrap();
        let (written, submission) = ring.write(0, Content::Message(b"the victim's"));
        let mut table = vec![0; ring.board.shape().bytes()];
        table[row as usize * width..][..width].copy_from_slice(&mark);
        if written.fate(&table) == Fate::Delivered {
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

/// Runs an epoch in which a server lies, to everybody or to one, and tells what can be seen.
fn run(lie: Lie, row: u32, toward: Option<usize>) -> Seen {
    let (mut honest, _) = stage(row);
    honest.later(61);
    honest.turn();
    let honest = honest.transcript().answered(party(LIAR)).unwrap().unwrap().to_vec();
    let (mut ring, submission) = stage(row);
    let victim = submission.name(&ring.board.fingerprint());
    let shadow = Shadow { victim, submission, honest, row };
    ring.later(61);
    if let Some(hearer) = toward {
        let version = move |said: &Transcript, what: &mut What| lie(&shadow, said, what);
        ring.versions.push((LIAR, hearer, Box::new(version)));
        for _ in 0..5 {
            ring.turn();
            ring.later(11);
        }
    } else {
        for _ in 0..5 {
            ring.turn_with(&mut |by, said, what| {
                if by == LIAR {
                    lie(&shadow, said, what);
                }
            });
            ring.later(11);
        }
    }
    let own = party(0);
    let heard = ring.servers[0].transcript(NOW).unwrap();
    let accepted = heard.set().and_then(Result::ok).map(|set| set.accepted.contains(&victim));
    (accepted, format!("{:?} {:?}", heard.aborted(own), heard.published(own).is_some()))
}

/// Rows of which what is seen is not what is seen of the others.
fn told(seen: &BTreeMap<u32, BTreeSet<Seen>>) -> bool {
    seen.values().collect::<BTreeSet<_>>().len() > 1
}

#[test]
fn what_a_lying_server_sees_does_not_depend_on_the_row() {
    for (name, lie, expected) in LIES {
        let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
        for row in [0, 3, 7] {
            let one = run(*lie, row, None);
            assert_eq!(one.0, *expected, "{name}: the lie is told, and does what it is known to");
            seen.entry(row).or_default().insert(one);
        }
        assert!(!told(&seen), "{name}: {seen:?}");
    }
}

/// The same lies, to one honest server alone, so that the honest ones see different things.
#[test]
fn what_it_sees_of_one_hearer_does_not_either() {
    for (name, lie, _) in LIES {
        for hearer in [0, 2] {
            let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
            for row in [0, 3] {
                seen.entry(row).or_default().insert(run(*lie, row, Some(hearer)));
            }
            assert!(!told(&seen), "{name}, to {hearer}: {seen:?}");
        }
    }
}

/// The same harness with a lie that does depend on the row, as only the harness can tell
/// it: the detector sees that.
#[test]
fn a_lie_that_depends_on_the_row_is_seen() {
    let leak: Lie = |shadow, said, what| {
        if shadow.row == 3 {
            recommit(shadow, said, what, |answer| answer.0[0][0][0] ^= 1);
        }
    };
    let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
    for row in [0, 3, 7] {
        seen.entry(row).or_default().insert(run(leak, row, None));
    }
    assert!(told(&seen), "{seen:?}");
    assert_eq!(seen[&3].first().map(|s| s.0), Some(OUT));
}

/// Two honest servers that were told different candidates open nothing: two places of one
/// proof would tell of the row.
#[test]
fn nothing_is_opened_at_two_places() {
    let (mut ring, _) = stage(3);
    ring.later(61);
    let version = |_: &Transcript, what: &mut What| {
        if let What::Candidates { coin, .. } = what {
            coin[0] ^= 1;
        }
    };
    ring.versions.push((LIAR, 0, Box::new(version)));
    ring.turn();
    for i in [0, 2] {
        let heard = ring.servers[i].transcript(NOW).unwrap();
        assert!(heard.answered(party(i)).is_none() && heard.aborted(party(i)).is_some());
    }
}

/// A share that is not the one latched is not taken, whatever byte is changed.
#[test]
fn a_share_is_the_latched_one_or_none() {
    let (mut ring, _) = stage(3);
    ring.withheld = Some(LIAR);
    ring.later(61);
    ring.turn();
    let share = ring.shares[LIAR].clone().unwrap();
    assert_eq!(ring.servers[0].wants_shares(NOW), vec![party(LIAR)]);
    for at in (0..share.len()).step_by(211) {
        let mut other = share.to_vec();
        other[at] ^= 1;
        assert!(ring.servers[0].hear_share(party(LIAR), NOW, other).is_err());
    }
    assert!(ring.servers[0].hear_share(party(LIAR), NOW, share.to_vec()).is_ok());
}

/// A server that waits for another's commitment and answers, and says the same: a commitment
/// names who made it.
#[test]
fn who_repeats_anothers_answers_is_blamed() {
    let (mut ring, _) = stage(3);
    ring.later(61);
    ring.turn_with(&mut |by, transcript, what| {
        let Some(said) = transcript.statements(party(0)).last().filter(|_| by == LIAR) else {
            return;
        };
        let said = said.open(&server(0).verifying_key()).unwrap().into_inner().what;
        if let (What::Commit { .. }, What::Commit { .. })
        | (What::Answer { .. }, What::Answer { .. }) = (&*what, &said)
        {
            *what = said;
        }
    });
    for honest in [0, 2] {
        let heard = ring.servers[honest].transcript(NOW).unwrap();
        let blamed = Why::Blamed(party(LIAR), Fault::Digests);
        assert_eq!(heard.aborted(party(honest)), Some(blamed));
    }
    assert!(ring.shares.iter().all(Option::is_none));
}
