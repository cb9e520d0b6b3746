//! The write of one epoch: made at its moment, sent until every database has confirmed it, and kept
//! until the table is there. Nothing here that others can see depends on whether it is a message.

use super::store::{EpochWrite, MemberFolder};
use super::{message_fate, report};
use crate::card::VerifiedCard;
use crate::client::{BEGINNING, BoardError, Client, PostedWrite};
use crate::entry::EntryArgs;
use crate::moments::{LAST, part, spread, wait_until, within};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::messages::{Receipt, Submission};
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{RetryPolicy, retry};
use std::collections::BTreeSet;
use std::time::Duration;

/// The pause before a database is asked again. It does not grow: the time for a write is short, and the
/// schedule's clock ends it.
const PAUSE: Duration = Duration::from_millis(500);

/// What the writes of all epochs share.
pub(super) struct Slots {
    /// Asks no server: each epoch's requests go over connections of their own.
    pub(super) client: Client,
    pub(super) card: VerifiedCard,
    pub(super) entry: EntryArgs,
    pub(super) folder: MemberFolder,
    pub(super) crowd: Option<u32>,
    pub(super) repeats: u32,
}

/// The write of one epoch.
struct Slot<'a> {
    all: &'a Slots,
    /// Shares no connection with other epochs: a server could link the writes of a holder by it.
    client: Client,
}

impl Slots {
    /// Writes in an epoch, unless an earlier process did, and waits for its end.
    pub(super) async fn run(&self, epoch: Epoch) -> Result<(), Failure> {
        Slot { all: self, client: self.client.unlinked() }.run(epoch).await
    }

    /// The oldest message that no other epoch's write holds.
    fn next_message(&self) -> Result<Option<(String, super::store::Message)>, Failure> {
        let mut held = BTreeSet::new();
        for epoch in self.folder.writes()? {
            let write = self.folder.write(self.client.board(), epoch)?;
            held.extend(write.and_then(|write| write.message));
        }
        for name in self.folder.queued()?.into_iter().filter(|name| !held.contains(name)) {
            if let Some(message) = self.folder.message(&name)? {
                return Ok(Some((name, message)));
            }
        }
        Ok(None)
    }
}

impl Slot<'_> {
    async fn run(&self, epoch: Epoch) -> Result<(), Failure> {
        let made = match self.all.folder.write(self.client.board(), epoch)? {
            Some(made) => Some(made),
            None => self.make(epoch).await?,
        };
        let Some(mut made) = made else { return report(epoch, "no write could be made") };
        self.send(&mut made).await?;
        self.all.folder.keep(&made)?;
        report(epoch, "written")?;
        let EpochWrite { written, submission, receipts, message } = made;
        let received = written.handle_some_receipts(receipts.clone()).blame(Category::Check)?;
        let posted = [PostedWrite { written, submission, received }];
        wait_until(self.client.board().schedule.end(epoch)).await;
        let keep = |posted: &PostedWrite| {
            let copy = EpochWrite {
                written: posted.written.duplicate(),
                submission: posted.submission.clone(),
                receipts: receipts.clone(),
                message: message.clone(),
            };
            self.all.folder.keep(&copy)
        };
        let settled = self.client.settle_keeping(epoch, &posted, &keep).await;
        message_fate::note(&self.all.folder, self.all.repeats, epoch, message.as_deref(), settled)
    }

    /// Makes the epoch's write and keeps it, once all databases have begun. None if they do not in
    /// time.
    async fn make(&self, epoch: Epoch) -> Result<Option<EpochWrite>, Failure> {
        let Some(view) = self.view(epoch).await else { return Ok(None) };
        let mut entry = self.all.entry.open(&self.all.card, epoch).await?;
        let crowded = match self.all.crowd {
            Some(wanted) => self.client.expect_crowd(wanted).await.is_ok(),
            None => true,
        };
        let (tag, mut rng) = (entry.tag(), entropy::rng()?);
        // No step between choosing a message and keeping the write can wait, so no other epoch's
        // write chooses the same.
        let message = if crowded { self.all.next_message()? } else { None };
        let content = match &message {
            Some((_, message)) => Content::Message(&message.text),
            None => Content::Cover,
        };
        let made = view.write(content, tag, |name| entry.ticket(name), &mut rng);
        let (written, submission) = made.blame(Category::Input)?;
        let receipts = vec![None; self.client.board().databases().len()];
        let message = message.map(|(name, _)| name);
        let made = EpochWrite { written, submission, receipts, message };
        self.all.folder.keep(&made)?;
        Ok(Some(made))
    }

    /// The epoch as all databases have begun it. Until they have, it leaves one knock.
    async fn view(&self, epoch: Epoch) -> Option<View> {
        let mut knocked = false;
        while clock::now() < part(self.client.board(), epoch, LAST) {
            match self.client.view_of(epoch).await {
                Ok(Some(view)) => return Some(view),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, epoch = epoch.0, "cannot write yet; will retry");
                    knocked = knocked || self.knock(epoch).await;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    async fn knock(&self, epoch: Epoch) -> bool {
        match self.all.entry.open(&self.all.card, epoch).await {
            Ok(mut entry) => self.client.knock(epoch, &mut entry).await > 0,
            Err(failure) => {
                tracing::warn!(%failure, "cannot knock");
                false
            }
        }
    }

    /// Sends the write to each database that has not confirmed it, each at a moment of its own.
    async fn send(&self, made: &mut EpochWrite) -> Result<(), Failure> {
        let (board, epoch) = (self.client.board(), made.written.epoch());
        let mut sent = Vec::new();
        for (at, to) in board.databases().iter().copied().enumerate() {
            if made.receipts.get(at).is_some_and(Option::is_some) {
                continue;
            }
            let moment = within(spread(board, epoch))?;
            let (client, submission) = (self.client.clone(), made.submission.clone());
            let task = async move {
                wait_until(moment).await;
                send_to(&client, to, &submission).await
            };
            sent.push((at, tokio::spawn(task)));
        }
        for (at, task) in sent {
            let mut one = vec![None; made.receipts.len()];
            if let Some(place) = one.get_mut(at) {
                *place = task.await.blame(Category::Io)?;
            }
            // A receipt that is invalid is none.
            if made.written.handle_some_receipts(one.clone()).is_ok() {
                made.receipts
                    .iter_mut()
                    .zip(one)
                    .for_each(|(held, new)| *held = held.take().or(new));
            }
        }
        let over = clock::now() >= board.schedule.end(epoch);
        if made.receipts.iter().any(Option::is_none) && !over {
            self.knock(epoch).await;
        }
        Ok(())
    }
}

/// Sends a write to one database until it confirms it, refuses it for good, or the epoch is over.
async fn send_to(client: &Client, to: Party, submission: &Submission) -> Option<Signed<Receipt>> {
    let is_over = || clock::now() >= client.board().schedule.end(submission.epoch);
    if is_over() {
        return None;
    }
    let may_pass = |error: &BoardError| !is_over() && !is_refused_for_good(error);
    let send = || client.submit_to(to, submission);
    match retry(RetryPolicy::every(PAUSE), may_pass, send).await {
        Ok(receipt) => Some(receipt),
        Err(error) => {
            tracing::warn!(%error, %to, "the write is not confirmed");
            None
        }
    }
}

/// Whether the same write can never be accepted.
fn is_refused_for_good(error: &BoardError) -> bool {
    matches!(error, BoardError::Server(_, RequestError::Refused(problem))
        if problem.status < 500 && ![BEGINNING, "epoch"].contains(&problem.rule.as_str()))
}
