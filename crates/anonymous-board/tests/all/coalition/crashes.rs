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
