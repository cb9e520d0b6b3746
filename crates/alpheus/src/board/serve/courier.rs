//! Fetches what the other servers have said, and what follows from it: writes that
//! this database lacks, and the others' shares. Everybody asks, nobody pushes:
//! what was missed is asked for again. What a server does not say itself is asked of
//! who has heard it, and now and then servers compare what they have heard.

use super::engine::{Job, Wants};
use crate::board::client::Client;
use crate::service::engine::{Handle, NotDone};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(100);
/// Every how many rounds a server that has nothing new for this one is looked for at the
/// others too: who says nothing to this one may say it to them.
const WIDELY: u32 = 5;
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
                fetch(&client, party, &engine, wants, round.is_multiple_of(WIDELY)).await;
            }
            Err(NotDone::Stopped) => return,
            Err(NotDone::Busy) => {}
        }
        engine.tell(Job::Tick).await;
    }
}

async fn fetch(client: &Client, party: Party, engine: &Handle<Job>, wants: Wants, widely: bool) {
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
                Err(error) => tracing::debug!(%error, "asking for statements"),
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
                Ok(_) => tracing::warn!(%of, "another write than the one that was asked for"),
                Err(error) => tracing::debug!(%error, "asking for a write"),
            }
        }
    }
    for (of, epoch) in wants.shares {
        match client.share(of, epoch).await {
            Ok(share) => engine.tell(Job::Share(of, epoch, share)).await,
            Err(error) => tracing::debug!(%error, "asking for a share"),
        }
    }
}

/// Fetches, where another server has heard something else, what it has heard: with what
/// this one has heard it proves who said both.
async fn compare(client: &Client, party: Party, engine: &Handle<Job>, epochs: &[Epoch]) {
    let parties = client.board().parties().iter().copied();
    for via in parties.filter(|via| *via != party) {
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
