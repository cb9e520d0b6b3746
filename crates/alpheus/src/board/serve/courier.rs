//! Fetches what the other servers have said, and what follows from it: writes that
//! this database lacks, and the other one's share. Everybody asks, nobody pushes:
//! what was missed is asked for again. What a server does not say itself is asked of
//! who has heard it, and now and then servers compare what they have heard.

use super::engine::{Job, Wants};
use crate::board::client::Client;
use crate::service::engine::{Handle, NotDone};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(100);
/// Every how many rounds servers compare what they have heard.
const COMPARED: u32 = 20;

/// Runs for as long as the engine does.
pub async fn run(client: Client, party: Party, engine: Handle<Job>) {
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(ROUND).await;
        round = round.wrapping_add(1);
        match engine.ask(Job::Wants).await {
            Ok(wants) => {
                if round.is_multiple_of(COMPARED) {
                    compare(&client, party, &engine, &wants.compared).await;
                }
                fetch(&client, party, &engine, wants).await;
            }
            Err(NotDone::Stopped) => return,
            Err(NotDone::Busy) => {}
        }
        engine.tell(Job::Tick).await;
    }
}

async fn fetch(client: &Client, party: Party, engine: &Handle<Job>, wants: Wants) {
    for (of, epoch, from) in wants.statements {
        if of == party {
            continue;
        }
        let third = Party::ALL.into_iter().find(|third| *third != of && *third != party);
        for via in [Some(of), third].into_iter().flatten() {
            match client.statements(via, of, epoch, from).await {
                Ok(said) if said.is_empty() => break,
                Ok(said) => {
                    engine.tell(Job::Hear(of, epoch, said)).await;
                    break;
                }
                Err(error) => tracing::debug!(%error, "asking for statements"),
            }
        }
    }
    let Party::Database(side) = party else { return };
    let other = Party::Database(side.other());
    for (epoch, name) in wants.writes {
        match client.submission(other, epoch, &name).await {
            Ok(submission) => engine.tell(Job::Forwarded(Box::new(submission))).await,
            Err(error) => tracing::debug!(%error, "asking for a write"),
        }
    }
    for epoch in wants.shares {
        match client.share(other, epoch).await {
            Ok(share) => engine.tell(Job::Share(epoch, share)).await,
            Err(error) => tracing::debug!(%error, "asking for a share"),
        }
    }
}

/// Fetches, where another server has heard something else, what it has heard: with what
/// this one has heard it proves who said both.
async fn compare(client: &Client, party: Party, engine: &Handle<Job>, epochs: &[Epoch]) {
    for via in Party::ALL.into_iter().filter(|via| *via != party) {
        for epoch in epochs.iter().copied() {
            let Ok(heard) = client.heard(via, epoch).await else { break };
            let differs = engine.ask(|reply| Job::Differs(epoch, heard, reply)).await;
            for (of, place) in differs.unwrap_or_default() {
                // One's own statements are known; who has others of them has forged none.
                if of == party {
                    continue;
                }
                if let Ok(said) = client.statements(via, of, epoch, place).await {
                    engine.tell(Job::Hear(of, epoch, said.into_iter().take(1).collect())).await;
                }
            }
        }
    }
}
