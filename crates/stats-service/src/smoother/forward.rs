//! Forwards deposits of clients to the other smoothers. Those that come while others are on their
//! way to a smoother wait, and go there together.

use super::api::ForwardedAnswers;
use crate::parties::{BRIEF, PartyClient, gather};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::messages::{Deposit, DepositResponse, ForwardedDeposit};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Deposits that wait for one smoother; the client asks that smoother itself for any further one.
const WAITING: usize = 1024;
/// As many go together.
const TOGETHER: usize = 64;
/// How long a client waits for others: less than it waits for the keeper.
const PATIENCE: Duration = Duration::from_secs(3);

/// A deposit under way, and who waits for the answer.
pub struct WaitingDeposit(Box<Deposit>, oneshot::Sender<Option<DepositResponse>>);

/// Forwards deposits. Clones share their queues.
#[derive(Clone, Default)]
pub struct Forwarder(BTreeMap<SmootherId, mpsc::Sender<WaitingDeposit>>);

impl Forwarder {
    /// One for these smoothers, and the queue of each, for [`run`].
    #[must_use]
    pub fn new(
        others: impl Iterator<Item = SmootherId>,
    ) -> (Self, BTreeMap<SmootherId, mpsc::Receiver<WaitingDeposit>>) {
        let queues = others.map(|id| (id, mpsc::channel(WAITING)));
        let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
        for (id, (sender, receiver)) in queues {
            senders.insert(id, sender);
            receivers.insert(id, receiver);
        }
        (Self(senders), receivers)
    }

    /// Forwards a deposit to the others, and waits until `needed` of them have stored it and the
    /// rest had some time.
    pub async fn forward(&self, deposit: &ForwardedDeposit, needed: usize) -> ForwardedAnswers {
        let mut sent = JoinSet::new();
        for (to, deposit) in deposit.for_others() {
            let Some(queue) = self.0.get(&to) else { continue };
            let (reply, answer) = oneshot::channel();
            if queue.try_send(WaitingDeposit(Box::new(deposit), reply)).is_ok() {
                sent.spawn(async move {
                    let answered = tokio::time::timeout(PATIENCE, answer).await;
                    Some((to, answered.ok()?.ok()??))
                });
            }
        }
        let stored = |answer: &Option<(SmootherId, DepositResponse)>| {
            matches!(answer, Some((_, DepositResponse::Stored(_))))
        };
        gather(sent, needed, stored).await.into_iter().flatten().collect()
    }
}

/// Sends what waits for one smoother, for as long as the process runs.
pub async fn run(party: PartyClient, mut queue: mpsc::Receiver<WaitingDeposit>) {
    let party = party.within(BRIEF);
    loop {
        let mut waiting = Vec::new();
        if queue.recv_many(&mut waiting, TOGETHER).await == 0 {
            return;
        }
        // Nobody waits any more for what has waited long.
        waiting.retain(|WaitingDeposit(_, reply)| !reply.is_closed());
        let (deposits, replies): (Vec<Box<Deposit>>, Vec<_>) =
            waiting.into_iter().map(|WaitingDeposit(deposit, reply)| (deposit, reply)).unzip();
        if deposits.is_empty() {
            continue;
        }
        let answers = party.post::<Vec<Option<DepositResponse>>>("/v1/deposits", &deposits).await;
        let answers = answers.inspect_err(|error| {
            tracing::debug!(%error, "a smoother takes no deposits");
        });
        for (reply, answer) in replies.into_iter().zip(answers.unwrap_or_default()) {
            // The client may have gone.
            let _ = reply.send(answer);
        }
    }
}
