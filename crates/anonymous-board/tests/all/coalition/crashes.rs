//! Servers killed at every point of an epoch.

use crate::coalition::ring::{NOW, Ring, party};
use alpheus_anonymous_board::messages::BurnReason;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::ledger::StateOrigin;

fn posted(seed: u8) -> Ring {
    let mut ring = Ring::new(3, 40, seed);
    for i in 0..6 {
        ring.post(i, Content::Message(format!("message {i}").as_bytes()));
    }
    ring
}

/// Servers restart after every commit, after every second one, and so on. Table and reading stay
/// the same, the shares are the same bytes, and nobody burns the epoch.
#[test]
fn restarts_at_every_point_change_nothing() {
    let finished = |every| {
        let mut ring = posted(20);
        ring.restarts = every;
        let reading = ring.finish().unwrap();
        let said = ring.transcript();
        assert!(
            ring.board.parties().iter().all(|by| said.abort_reason(*by).is_none()),
            "{every:?}"
        );
        (reading, ring.tables.clone())
    };
    let reference = finished(None);
    for every in 1..10 {
        assert!(finished(Some(every)) == reference, "restarted after every {every}");
    }
}

/// Each server is killed at each of its steps, after a commit and before anything is sent.
#[test]
fn statements_committed_and_not_sent_are_repeated() {
    for victim in 0..3 {
        for at in 0..8 {
            let mut ring = posted(21);
            ring.later(61);
            for step_number in 0..12 {
                ring.compute(victim);
                let (now, rng) = (ring.now, &mut ring.rng);
                if step_number == at
                    && let Some(step) = ring.servers[victim].poll(now, rng)
                {
                    // The statement is durable, but lost before it was sent.
                    drop(step.commit(&mut ring.ledgers[victim]));
                    ring.restart(victim, StateOrigin::Intact);
                }
                ring.turn();
            }
            assert_eq!(ring.read().unwrap().size, 6, "server {victim} killed at {at}");
        }
    }
}

/// A server that was killed may be a copy of the whole machine, with its fence. So it burns the
/// epoch, unless it is bound to its share: then it can only send the same bytes again.
#[test]
fn a_killed_server_burns_the_epoch_until_it_is_bound() {
    let mut burnt = 0;
    for commits in 0..40 {
        let mut ring = posted(23);
        ring.later(61);
        // It answers nobody after so many of its commits.
        ring.killed = Some((1, commits));
        ring.turn();
        let heard = ring.servers[1].transcript(NOW).unwrap();
        let bound = heard.latch(party(1)).is_some();
        let why = heard.abort_reason(party(1));
        let read = ring.read().is_ok();
        if ring.killed.is_some() {
            assert!(read && burnt > 0, "it has fewer commits");
            return;
        }
        assert!(bound || why == Some(BurnReason::Killed), "after {commits}: {why:?}");
        assert_eq!(read, bound && why.is_none(), "after {commits}");
        burnt += usize::from(why.is_some());
    }
    panic!("it makes fewer commits than that");
}

/// A server that ends before its first epoch starts again, however it ends.
#[test]
fn a_server_may_end_before_its_first_epoch() {
    let mut ring = Ring::started(&crate::coalition::ring::configuration(3, 40), 25);
    ring.restart(0, StateOrigin::Intact);
    ring.kill(0);
    ring.turn();
    ring.post(0, Content::Cover);
    ring.post(1, Content::Cover);
    assert_eq!(ring.finish().unwrap().size, 2);
}

/// A copy that was made after an orderly end looks whole. Another server has a statement that the
/// copy lacks: it burns what has begun, and later epochs go on.
#[test]
fn a_peer_shows_that_a_copy_is_old() {
    let mut ring = posted(24);
    ring.servers[1].stop().commit(&mut ring.ledgers[1]).unwrap();
    let old = ring.ledgers[1].clone();
    ring.later(61);
    ring.turn();
    let said = ring.statements[1].clone();
    ring.ledgers[1] = old;
    ring.kill_quietly(1);
    assert!(ring.servers[1].transcript(NOW).unwrap().abort_reason(party(1)).is_none());
    // What it knows proves nothing; what it does not know does.
    for said in &said {
        let step = ring.servers[1].handle_statement(said, party(1), NOW).unwrap();
        ring.commit(1, step);
    }
    let heard = ring.servers[1].transcript(NOW).unwrap();
    assert_eq!(heard.abort_reason(party(1)), Some(BurnReason::Restored));
    assert_eq!(heard.statement_count(party(1)), 2, "it says so once, in place of its next");
    ring.later(60);
    while let Some(step) = ring.servers[1].poll(ring.now, &mut ring.rng) {
        ring.commit(1, step);
    }
    for said in &said {
        let step = ring.servers[1].handle_statement(said, party(1), NOW).unwrap();
        assert!(ring.commit(1, step).is_empty(), "and it burns no later epoch");
    }
}

/// An older copy of a ledger may lack sent statements. At every point up to the share the epoch is
/// burnt, and no second share is sent.
#[test]
fn a_server_from_an_old_copy_burns_the_epoch() {
    let mut ring = posted(22);
    let old = ring.ledgers[1].clone();
    ring.later(61);
    ring.withheld = Some(0);
    ring.turn();
    let left = ring.shares[1].clone();
    assert!(left.is_some(), "its share has left");
    ring.ledgers[1] = old;
    ring.restart(1, StateOrigin::Restored);
    let own = ring.servers[1].transcript(NOW).unwrap();
    assert_eq!(own.abort_reason(party(1)), Some(BurnReason::Restored));
    ring.withheld = None;
    ring.later(5);
    ring.turn();
    assert!(ring.shares[1] == left, "and no other one does");
    assert!(ring.read().is_err());
}
