//! Sends writes and knocks, and looks at the crowd that a write can expect.

use super::{BEGINNING, BEGINNINGS, BoardError, Client, PostedWrite};
use crate::entry::Entry;
use crate::moments::{wait_until, within};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::messages::{Receipt, Submission, knock_name};
use alpheus_anonymous_board::transcript::Crowd;
use alpheus_anonymous_board::writer::{Content, PendingWrite, Receipts, View};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::retry::retry;
use alpheus_time::Span;
use rand_core::CryptoRng;

/// How many epochs back to look for a published one.
const MAX_EPOCHS_BACK: u64 = 8;

impl Client {
    /// Creates a write and submits it to all databases, to each at a moment drawn from `spread`
    /// ([`moments::spread`](crate::moments::spread)). If some do not give a receipt, it leaves a
    /// knock at those that answer.
    ///
    /// # Errors
    /// [`BoardError`]: no database has the write.
    ///
    /// # Privacy
    /// As [`View::write`]. The network sees that a member writes now; for a writer with a pass it
    /// sees its network address.
    pub async fn post(
        &self,
        view: &View,
        content: Content<'_>,
        entry: &mut Entry,
        spread: Span,
        rng: &mut (impl CryptoRng + Send),
    ) -> Result<PostedWrite, BoardError> {
        let tag = entry.tag();
        let (written, submission) = view.write(content, tag, |name| entry.ticket(name), rng)?;
        let (receipts, failed) = self.submit_to_each(&submission, spread).await;
        if let Some(error) = failed {
            self.knock(view.epoch(), entry).await;
            if receipts.iter().all(Option::is_none) {
                return Err(error);
            }
            tracing::warn!(%error, "not every database has confirmed the write");
        }
        let received = written.handle_some_receipts(receipts)?;
        Ok(PostedWrite { written, submission, received })
    }

    /// Submits an existing write to all databases, at once.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn submit(
        &self,
        written: &PendingWrite,
        submission: &Submission,
    ) -> Result<Receipts, BoardError> {
        let (receipts, failed) = self.submit_to_each(submission, Span(0)).await;
        failed.map_or(Ok(()), Err)?;
        Ok(written.handle_some_receipts(receipts)?)
    }

    /// The receipts of the databases that give one, in order, and the first error.
    async fn submit_to_each(
        &self,
        submission: &Submission,
        spread: Span,
    ) -> (Vec<Option<Signed<Receipt>>>, Option<BoardError>) {
        let all = |to: &Party| {
            let (client, to, submission) = (self.clone(), *to, submission.clone());
            let sent = async move {
                // Without randomness there was no write.
                if let Ok(moment) = within(spread) {
                    wait_until(moment).await;
                }
                client.submit_to(to, &submission).await
            };
            (to, tokio::spawn(sent))
        };
        let sent: Vec<_> = self.board.databases().iter().map(all).collect();
        let (mut receipts, mut failed) = (Vec::with_capacity(sent.len()), None);
        for (to, receipt) in sent {
            match receipt.await.unwrap_or(Err(BoardError::Malformed(to))) {
                Ok(receipt) => receipts.push(Some(receipt)),
                Err(error) => {
                    receipts.push(None);
                    failed = failed.or(Some(error));
                }
            }
        }
        (receipts, failed)
    }

    /// Leaves a knock at each database that answers: its writer came, and may not have reached all.
    /// Returns the number of those that took it.
    ///
    /// # Privacy
    /// The databases learn who came, as from a write.
    pub async fn knock(&self, epoch: Epoch, entry: &mut Entry) -> usize {
        let ticket = entry.ticket(&knock_name(&self.board.fingerprint(), epoch));
        let knock = |to: &Party| {
            let (client, to, ticket) = (self.clone(), *to, ticket.clone());
            let path = format!("/v1/knocks/{}", epoch.0);
            tokio::spawn(async move { client.send::<()>(to, &path, &ticket).await })
        };
        let mut taken = 0;
        for left in self.board.databases().iter().map(knock).collect::<Vec<_>>() {
            match left.await {
                Ok(Ok(())) => taken += 1,
                Ok(Err(error)) => tracing::debug!(%error, "a knock is not taken"),
                Err(_) => {}
            }
        }
        taken
    }

    /// The crowd of the last epoch that was published.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn last_crowd(&self) -> Result<Option<Crowd>, BoardError> {
        let now = self.now()?.0;
        for epoch in (now.saturating_sub(MAX_EPOCHS_BACK)..=now).rev().map(Epoch) {
            let transcript = self.transcript(epoch).await?;
            if transcript.agreed_table().is_some() {
                return Ok(transcript.crowd());
            }
        }
        Ok(None)
    }

    /// Checks that a message is likely to have a crowd of this size: the board reveals no smaller
    /// one, or the last published one was as large.
    ///
    /// # Errors
    /// [`BoardError::SmallCrowd`], or no server answers.
    pub async fn expect_crowd(&self, wanted: u32) -> Result<(), BoardError> {
        if self.board.min_writes >= wanted {
            return Ok(());
        }
        let found = self.last_crowd().await?.map_or(0, |crowd| crowd.accepted);
        let enough = usize::try_from(wanted).is_ok_and(|wanted| found >= wanted);
        if enough { Ok(()) } else { Err(BoardError::SmallCrowd { wanted, found }) }
    }

    /// Submits a write to one database. If it does not know yet that all have begun, the same write
    /// is sent again: a new write would spend the quota a second time.
    pub(crate) async fn submit_to(
        &self,
        to: Party,
        submission: &Submission,
    ) -> Result<Signed<Receipt>, BoardError> {
        let begins = |error: &BoardError| matches!(error, BoardError::Server(_, error) if error.rule() == Some(BEGINNING));
        retry(BEGINNINGS, begins, || self.send(to, "/v1/submissions", submission)).await
    }
}
