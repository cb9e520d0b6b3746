//! Fetches what the other servers have said, and what follows from it: writes that
//! this database lacks, and the other one's share. Everybody asks, nobody pushes:
//! what was missed is asked for again.

use super::engine::{Handle, Job, Wants};
use crate::board::client::Client;
use alpheus_anonymous_board::configuration::Party;
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(100);

/// Runs for as long as the engine does.
pub async fn run(client: Client, party: Party, engine: Handle) {
    loop {
        tokio::time::sleep(ROUND).await;
        match engine.ask(Job::Wants).await {
            Ok(wants) => fetch(&client, party, &engine, wants).await,
            Err(super::engine::NotDone::Stopped) => return,
            Err(super::engine::NotDone::Busy) => {}
        }
        engine.tell(Job::Tick).await;
    }
}

async fn fetch(client: &Client, party: Party, engine: &Handle, wants: Wants) {
    for (of, epoch, from) in wants.statements {
        if of == party {
            continue;
        }
        match client.statements(of, epoch, from).await {
            Ok(said) if said.is_empty() => {}
            Ok(said) => engine.tell(Job::Hear(of, epoch, said)).await,
            Err(error) => tracing::debug!(%error, "asking for statements"),
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
