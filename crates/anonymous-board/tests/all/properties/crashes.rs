//! Servers killed at every point of an epoch.

use crate::properties::town::Town;
use alpheus_anonymous_board::configuration::Party;
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::ledger::StateOrigin;

fn messages(town: &mut Town) -> Vec<alpheus_anonymous_board::writer::PendingWrite> {
    (0..6).map(|m| town.post(m, Content::Message(format!("message {m}").as_bytes())).0).collect()
}

/// Databases restart after every commit, after every second one, and so on. Table and reading stay
/// the same, the shares are the same bytes, and nobody burns the epoch.
#[test]
fn restarts_at_every_point_change_nothing() {
    let finished = |every| {
        let mut town = Town::new(9, 40, 20);
        town.restarts = every;
        messages(&mut town);
        let reading = town.finish().unwrap();
        let said = town.transcript();
        assert!(Party::ALL.iter().all(|by| said.abort_reason(*by).is_none()), "{every:?}");
        assert!(town.tables[0].is_some() && town.tables[0] == town.tables[1], "{every:?}");
        (reading, town.tables[0].clone())
    };
    let reference = finished(None);
    for every in 1..12 {
        assert!(finished(Some(every)) == reference, "restarted after every {every}");
    }
}

/// Each server is killed once after a commit and before anything is sent.
#[test]
fn statements_committed_and_not_sent_are_repeated() {
    for at in 0..14 {
        let mut town = Town::new(9, 40, 21);
        messages(&mut town);
        town.later(61);
        for step_number in 0..40 {
            for side in Side::BOTH {
                let i = side.index();
                while let Some(work) = town.databases[i].next_work() {
                    let done = work.run().unwrap();
                    town.databases[i].handle_result(done);
                }
                if step_number == at
                    && let Some(step) = town.databases[i].poll(town.now, &mut town.rng)
                {
                    // The statement is durable, but lost before it was sent.
                    drop(step.commit(&mut town.ledgers[i]));
                    town.restart(side, StateOrigin::Intact);
                }
            }
            town.turn();
            if step_number == 20 {
                town.later(11);
            }
        }
        assert_eq!(town.read().unwrap().size, 6, "killed at {at}");
    }
}
