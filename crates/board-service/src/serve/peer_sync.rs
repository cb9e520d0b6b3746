//! Fetches the other servers' statements, the writes that this database lacks, and the other
//! databases' shares. Every server pulls and none pushes, so a missed item is requested again. If a
//! server does not give its own statements, this one asks the servers that have received them.
//! From time to time, servers compare the statements they have received.

use super::engine::{FetchList, Job};
use crate::client::Client;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_node::engine::{EngineError, Handle};
use std::time::Duration;

/// Time between rounds.
const ROUND: Duration = Duration::from_millis(100);
/// Every so many rounds, the other servers are asked for the statements of a server that has
/// nothing new: it may be silent toward this server alone.
const ASK_OTHERS_EVERY: u32 = 5;
/// Every so many rounds, servers compare the statements they have received.
const COMPARE_EVERY: u32 = 20;

/// Runs for as long as the engine does.
pub async fn run(client: Client, party: Party, engine: Handle<Job>) {
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(ROUND).await;
        round = round.wrapping_add(1);
        match engine.ask(Job::FetchList).await {
            Ok(wants) => {
                if round.is_multiple_of(COMPARE_EVERY) {
                    compare(&client, party, &engine, &wants.compared).await;
                }
                fetch(&client, party, &engine, wants, round.is_multiple_of(ASK_OTHERS_EVERY)).await;
            }
            Err(EngineError::Stopped) => return,
            Err(EngineError::Busy) => {}
        }
        engine.tell(Job::Tick).await;
    }
}

async fn fetch(
    client: &Client,
    party: Party,
    engine: &Handle<Job>,
    wants: FetchList,
    widely: bool,
) {
    for (of, epoch, from) in wants.statements {
        if of == party {
            continue;
        }
        let others = client.board().parties().iter().copied();
        let others = others.filter(|via| *via != of && *via != party);
        for via in std::iter::once(of).chain(others) {
            match client.statements(via, of, epoch, from).await {
                Ok(said) if said.is_empty() && widely => {}
                Ok(said) if said.is_empty() => break,
                Ok(said) => {
                    engine.tell(Job::Hear(of, epoch, said)).await;
                    break;
                }
                Err(error) => tracing::debug!(%error, "cannot fetch statements"),
            }
        }
    }
    for (listed, epoch, name) in wants.writes {
        for of in listed {
            match client.submission(of, epoch, &name).await {
                Ok(write) if write.name(&client.board().fingerprint()) == name => {
                    engine.tell(Job::Forwarded(of, Box::new(write))).await;
                    break;
                }
                Ok(_) => tracing::warn!(%of, "the server returned a different write"),
                Err(error) => tracing::debug!(%error, "cannot fetch a write"),
            }
        }
    }
    for (of, epoch) in wants.shares {
        match client.share(of, epoch).await {
            Ok(share) => engine.tell(Job::Share(of, epoch, share)).await,
            Err(error) => tracing::debug!(%error, "cannot fetch a share"),
        }
    }
}

/// Fetches statements that differ from the ones received here. Two signed statements that
/// conflict prove that their signer equivocated.
async fn compare(client: &Client, party: Party, engine: &Handle<Job>, epochs: &[Epoch]) {
    let parties = client.board().parties().iter().copied();
    for via in parties.filter(|via| *via != party) {
        for epoch in epochs.iter().copied() {
            let Ok(heard) = client.digests(via, epoch).await else { break };
            let differs = engine.ask(|reply| Job::Differs(epoch, heard, reply)).await;
            for (of, place) in differs.unwrap_or_default() {
                // This server knows its own statements.
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
