//! Fetches the other servers' statements, the writes that this database lacks, and the other
//! databases' shares. Every server pulls and none pushes, so a missed item is requested again. If a
//! server does not give its own statements, this one asks the servers that have received them.
//! From time to time, servers compare the statements they have received.

use super::engine::{Call, FetchList};
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
pub async fn run(client: Client, party: Party, engine: Handle<Call>) {
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(ROUND).await;
        round = round.wrapping_add(1);
        match engine.ask(Call::FetchList).await {
            Ok(wants) => {
                if round.is_multiple_of(COMPARE_EVERY) {
                    compare(&client, party, &engine, &wants.compared).await;
                }
                fetch(&client, party, &engine, wants, round.is_multiple_of(ASK_OTHERS_EVERY)).await;
            }
            Err(EngineError::Stopped) => return,
            Err(EngineError::Busy) => {}
        }
        engine.tell(Call::Tick).await;
    }
}

async fn fetch(
    client: &Client,
    party: Party,
    engine: &Handle<Call>,
    wants: FetchList,
    widely: bool,
) {
    for wanted in wants.statements {
        fetch_statements(client, party, engine, wanted, widely).await;
    }
    for (listed, epoch, name) in wants.writes {
        for of in listed {
            match client.submission(of, epoch, &name).await {
                Ok(write) if write.name(&client.board().fingerprint()) == name => {
                    engine.tell(Call::Forwarded(of, Box::new(write))).await;
                    break;
                }
                Ok(_) => tracing::warn!(%of, "the server returned a different write"),
                Err(error) => tracing::debug!(%error, "cannot fetch a write"),
            }
        }
    }
    for (of, epoch) in wants.reveals {
        match client.reveal(of, epoch).await {
            Ok(reveal) => engine.tell(Call::Reveal(of, epoch, Box::new(reveal))).await,
            Err(error) => tracing::debug!(%error, "cannot fetch a reveal"),
        }
    }
    for (of, epoch) in wants.shares {
        match client.share(of, epoch).await {
            Ok(share) => engine.tell(Call::Share(of, epoch, share)).await,
            Err(error) => tracing::debug!(%error, "cannot fetch a share"),
        }
    }
}

/// Fetches new statements of a server, from itself or from others.
async fn fetch_statements(
    client: &Client,
    party: Party,
    engine: &Handle<Call>,
    (of, epoch, from): (Party, Epoch, usize),
    widely: bool,
) {
    let others = client.board().parties().iter().copied();
    let others = others.filter(|via| *via != of && *via != party);
    let is_own = of == party;
    // A statement of this server that only another one has shows that the state here is an old
    // copy. It is never asked of itself, and all others are asked.
    let itself = (!is_own).then_some(of);
    for via in itself.into_iter().chain(others.filter(|_| !is_own || widely)) {
        match client.statements(via, of, epoch, from).await {
            Ok(said) if said.is_empty() && (widely || is_own) => {}
            Ok(said) if said.is_empty() => return,
            Ok(said) => {
                engine.tell(Call::Hear(of, epoch, said)).await;
                if !is_own {
                    return;
                }
            }
            Err(error) => tracing::debug!(%error, "cannot fetch statements"),
        }
    }
}

/// Fetches statements that differ from the ones received here. Two signed statements that
/// conflict prove that their signer equivocated.
async fn compare(client: &Client, party: Party, engine: &Handle<Call>, epochs: &[Epoch]) {
    let parties = client.board().parties().iter().copied();
    for via in parties.filter(|via| *via != party) {
        for epoch in epochs.iter().copied() {
            let Ok(heard) = client.digests(via, epoch).await else { break };
            let differs = engine.ask(|reply| Call::Differs(epoch, heard, reply)).await;
            for (of, place) in differs.unwrap_or_default() {
                if let Ok(said) = client.statements(via, of, epoch, place).await {
                    engine.tell(Call::Hear(of, epoch, said.into_iter().take(1).collect())).await;
                }
            }
        }
    }
}
