//! Connections to a board's servers, for writers, readers, the servers themselves, and other parts
//! that send uploads through a board.

mod complaints;
mod submission;
mod versions;

use crate::card::VerifiedCard;
use crate::links;
use alpheus_anonymous_board::auditor::Verdict;
use alpheus_anonymous_board::coalition::audit::Answer;
use alpheus_anonymous_board::coalition::parity::Grid;
use alpheus_anonymous_board::configuration::{Board, Epoch, Party};
use alpheus_anonymous_board::error::WriteError;
use alpheus_anonymous_board::messages::{
    BurnReason, Reveal, Statement, Submission, WriteDigest, WriteName,
};
use alpheus_anonymous_board::reader::{ReadError, Reading, read};
use alpheus_anonymous_board::transcript::{Effect, Transcript};
use alpheus_anonymous_board::writer::{Fate, PendingWrite, ReceiptError, Receipts, View};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Attempts, RetryPolicy};
use alpheus_time::Timestamp;
use axum::http::Method;
use complaints::Complaints;
use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The rule of a refusal that is retried with the same write.
pub(crate) const BEGINNING: &str = "beginning";
/// How a write is sent again, and how an epoch that all databases have begun is looked for. The pauses
/// are short and do not grow: what is waited for is seconds away.
const BEGINNINGS: RetryPolicy =
    RetryPolicy::every(Duration::from_millis(250)).within(Duration::from_secs(20));
/// The least and the most time between two looks at an epoch that is not over. Looks are no retries: they
/// go on until a time of the schedule, however many there are.
const LOOK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// How long a client keeps asking for an unpublished epoch after its burn time, in microseconds:
/// clocks differ.
const CLOCK_TOLERANCE: u64 = 10_000_000;
/// The least and the most time that a server has to answer with statements, beyond what a slow line
/// needs for them: a tenth of the time for complaints, within these. A server that never answers must
/// not outlast it.
const STATEMENTS_PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));
/// Bytes that the slowest line carries in a second.
const SLOWEST: u32 = 64 << 10;
/// The timeout for a large response.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connections to a board's servers. Clones share them. Writers, and epochs of one writer, that must
/// not be linked by their connections each need [their own](Client::unlinked).
#[derive(Clone)]
pub struct Client {
    board: Board,
    links: Arc<[HttpClient]>,
}

/// A request to a board failed.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// A server does not answer or refuses.
    #[error("the {0}: {1}")]
    Server(Party, RequestError),
    /// The response is malformed.
    #[error(
        "the {0} sent a response that this version of alpheus does not understand; check that both run the same version"
    )]
    Malformed(Party),
    /// The write could not be created.
    #[error(transparent)]
    NotWritten(#[from] WriteError),
    /// A receipt is invalid.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The table is missing or invalid.
    #[error(transparent)]
    NotRead(#[from] ReadError),
    /// The board has no such server.
    #[error("the board has no {0}")]
    NoServer(Party),
    /// A server has begun an epoch with two sets of keys, or another server claims so.
    #[error(
        "the {0} began the epoch with different keys for the {1}, or the {1} falsely claims that it did; nothing was written; inform the operators of both"
    )]
    TwoBegins(Party, Party),
    /// The crowd may be smaller than the writer wants.
    #[error(
        "the last table held {found} writes, but --crowd asks for {wanted}; nothing was sent; wait until more members write, or ask for less"
    )]
    SmallCrowd {
        /// What the writer asks for.
        wanted: u32,
        /// What the last published table had.
        found: usize,
    },
    /// The first epoch has not begun.
    #[error(
        "the board's first epoch has not begun by this machine's clock; set the clock, or wait"
    )]
    NoEpoch,
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        let category = match &error {
            BoardError::Server(_, RequestError::Refused(problem)) if problem.status < 500 => {
                Category::Refused
            }
            BoardError::Server(..) | BoardError::Malformed(_) => Category::Io,
            BoardError::NotWritten(_) | BoardError::NoEpoch | BoardError::NoServer(_) => {
                Category::Usage
            }
            BoardError::SmallCrowd { .. } => Category::Refused,
            BoardError::Receipt(_) | BoardError::NotRead(_) | BoardError::TwoBegins(..) => {
                Category::Check
            }
        };
        Self::new(category, error)
    }
}

/// The maximum size of a submission to a board.
#[must_use]
pub fn max_body(board: &Board) -> usize {
    // Each envelope holds a row's write and overhead; a complaint holds a submission and a key.
    let row = 16 * 1024 + 4 * board.shape().width();
    let parts = |grid: &Grid| grid.word_bytes() + grid.servers() * (1024 + grid.key_bytes());
    row + board.grid().map_or(0, parts)
}

/// The maximum size of a server's statement: it lists up to all writes of an epoch, with what the server
/// opens of each.
#[must_use]
pub fn max_statement(board: &Board) -> usize {
    let write = size_of::<WriteDigest>().max(size_of::<Answer>());
    4096 + write.saturating_mul(board.writers as usize)
}

/// The maximum size of what a database reveals to the auditor: a key for each write.
fn max_reveal(board: &Board) -> usize {
    let key = 1024 + board.shape().width();
    4096 + key.saturating_mul(board.writers as usize)
}

/// A write that databases have.
pub struct PostedWrite {
    /// The writer's record.
    pub written: PendingWrite,
    /// The submission.
    pub submission: Submission,
    /// The receipts of those that gave one.
    pub received: Receipts,
}

impl Client {
    /// Connects to the servers of a card.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn new(card: &VerifiedCard) -> Result<Self, Failure> {
        let link = |at: &Base| links::server(at.clone(), card.authority.as_deref());
        let links = card.at.iter().map(link).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { board: card.board.clone(), links: links.into() })
    }

    /// A client of the same servers over connections of its own: no server, and nobody behind a
    /// proxy, can link its requests with this one's.
    #[must_use]
    pub fn unlinked(&self) -> Self {
        let links = self.links.iter().map(HttpClient::unlinked).collect();
        Self { board: self.board.clone(), links }
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The current epoch by this machine's clock.
    ///
    /// # Errors
    /// [`BoardError::NoEpoch`].
    pub fn now(&self) -> Result<Epoch, BoardError> {
        self.board.schedule.epoch_at(Timestamp(clock::now().0)).ok_or(BoardError::NoEpoch)
    }

    /// Statements of a server from index `from` on, as `via` has received them.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn statements(
        &self,
        via: Party,
        of: Party,
        epoch: Epoch,
        from: usize,
    ) -> Result<Vec<Signed<Statement>>, BoardError> {
        let bytes = 64 * 1024 + 1024 * self.board.writers as usize;
        let (least, most) = STATEMENTS_PATIENCE;
        let tenth = Duration::from_micros(self.board.schedule.complaints.0 / 10);
        let for_size = Duration::from_secs(bytes as u64) / SLOWEST;
        let limits = Limits { bytes, time: tenth.clamp(least, most) + for_size };
        let path = format!("/v1/statements/{}/{}/{from}", epoch.0, of.index());
        let answer = self.ask(via, &path, limits).await?;
        postcard::from_bytes(&answer).map_err(|_| BoardError::Malformed(via))
    }

    /// The digests of all statements in an epoch that `via` has received.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn digests(&self, via: Party, epoch: Epoch) -> Result<Vec<Vec<Digest>>, BoardError> {
        self.get(via, &format!("/v1/digests/{}", epoch.0), 64 * 1024).await
    }

    /// All servers' statements of an epoch, from each server or from others that received them.
    ///
    /// # Errors
    /// [`BoardError`]: some server's statements are not available from any server.
    pub async fn transcript(&self, epoch: Epoch) -> Result<Transcript, BoardError> {
        let mut transcript = Transcript::new(&self.board, epoch);
        self.fill(&mut transcript).await?;
        Ok(transcript)
    }

    /// Adds new statements. It asks each server for its own; if there is nothing new, it asks the
    /// others, so no server can be silent toward some clients only.
    ///
    /// All servers' statements are asked for at once, so one that does not answer holds up only what it
    /// is asked for.
    async fn fill(&self, transcript: &mut Transcript) -> Result<(), BoardError> {
        let transcript = Mutex::new(transcript);
        let each = self.board.parties().iter().map(|of| self.fill_from(*of, &transcript));
        join_all(each).await.into_iter().collect()
    }

    async fn fill_from(
        &self,
        of: Party,
        transcript: &Mutex<&mut Transcript>,
    ) -> Result<(), BoardError> {
        let (epoch, from) = {
            let transcript = transcript.lock().await;
            (transcript.epoch(), transcript.statement_count(of))
        };
        let (mut answered, mut error) = (false, None);
        let others = self.board.parties().iter().copied().filter(|via| *via != of);
        for via in std::iter::once(of).chain(others) {
            match self.statements(via, of, epoch, from).await {
                Ok(said) if said.is_empty() => answered = true,
                Ok(said) => {
                    let mut transcript = transcript.lock().await;
                    if said.iter().all(|said| hear(&mut transcript, of, said)) {
                        return Ok(());
                    }
                    error = Some(BoardError::Malformed(via));
                }
                Err(problem) => error = Some(problem),
            }
        }
        error.filter(|_| !answered).map_or(Ok(()), Err)
    }

    /// Waits until all databases have begun the current epoch, and each has received the others'
    /// statements as they are received here. A database that lacks them would refuse the write. A
    /// server with different keys for some clients could choose whose writes are accepted.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn view(&self) -> Result<View, BoardError> {
        let mut attempts = Attempts::new(BEGINNINGS);
        loop {
            if let Some(view) = self.view_of(self.now()?).await? {
                return Ok(view);
            }
            if !attempts.again().await {
                return Err(WriteError::NotBegun.into());
            }
        }
    }

    /// The same for one epoch, without waiting. None if not all have begun and know that.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn view_of(&self, epoch: Epoch) -> Result<Option<View>, BoardError> {
        let (mut transcript, databases) =
            (Transcript::new(&self.board, epoch), self.board.databases());
        for of in databases.iter().copied() {
            for said in self.statements(of, of, epoch, 0).await? {
                transcript.record(of, &said).map_err(|_| BoardError::Malformed(of))?;
            }
        }
        for via in databases.iter().copied() {
            let heard = self.digests(via, epoch).await?;
            for of in databases.iter().copied().filter(|of| *of != via) {
                let theirs = heard.get(of.index()).and_then(|heard| heard.first());
                match (transcript.digests(of).next(), theirs) {
                    (Some(ours), Some(theirs)) if ours == *theirs => {}
                    (Some(_), Some(_)) => {
                        self.hand_on(via, of, &transcript, 0).await;
                        return Err(BoardError::TwoBegins(of, via));
                    }
                    _ => return Ok(None),
                }
            }
        }
        Ok(View::open(&self.board, &transcript).ok())
    }

    /// A write that a database has stored, for another database.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn submission(
        &self,
        of: Party,
        epoch: Epoch,
        name: &WriteName,
    ) -> Result<Submission, BoardError> {
        let max_bytes = max_body(&self.board);
        self.get(of, &format!("/v1/submissions/{}/{}", epoch.0, name.0), max_bytes).await
    }

    /// A database's keys of the accepted writes, sealed for the auditor.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn reveal(&self, of: Party, epoch: Epoch) -> Result<Signed<Reveal>, BoardError> {
        let max_bytes = max_reveal(&self.board);
        self.get(of, &format!("/v1/reveals/{}", epoch.0), max_bytes).await
    }

    /// The masked share of one database.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn share(&self, of: Party, epoch: Epoch) -> Result<Vec<u8>, BoardError> {
        self.bytes(of, &format!("/v1/shares/{}", epoch.0), self.board.shape().bytes()).await
    }

    /// An epoch's table from one database, verified and decoded, and its bytes.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn table(
        &self,
        of: Party,
        transcript: &Transcript,
    ) -> Result<(Reading, Vec<u8>), BoardError> {
        let path = format!("/v1/tables/{}", transcript.epoch().0);
        let table = self.bytes(of, &path, self.board.shape().bytes()).await?;
        Ok((read(&self.board, transcript, &table)?, table))
    }

    /// Waits for the end of an epoch, and returns the table and the fate of each write. It complains
    /// to the auditor about writes that a server left out. It retries servers that do not answer as
    /// long as the epoch may still be published.
    ///
    /// # Errors
    /// [`BoardError`]; for a burnt epoch, the reason.
    pub async fn settle(
        &self,
        epoch: Epoch,
        posted: &[PostedWrite],
    ) -> Result<(Reading, Vec<Fate>), BoardError> {
        self.settle_keeping(epoch, posted, &|_| Ok(())).await
    }

    /// The same, for writers that keep their writes. `keep` keeps a write again before a complaint
    /// about it is sent: from then on it may reveal the key of one side only.
    pub(crate) async fn settle_keeping(
        &self,
        epoch: Epoch,
        posted: &[PostedWrite],
        keep: &(dyn Fn(&PostedWrite) -> Result<(), Failure> + Sync),
    ) -> Result<(Reading, Vec<Fate>), BoardError> {
        let mut transcript = Transcript::new(&self.board, epoch);
        let mut complaints = Complaints::default();
        loop {
            let filled = self.fill(&mut transcript).await;
            complaints.look(&self.board, &transcript, posted, keep);
            complaints.send(self, &transcript).await;
            let published =
                self.board.databases().iter().all(|by| transcript.published_table(*by).is_some());
            if published && let Some((reading, table)) = self.either_table(&transcript).await? {
                let fate = |p: &PostedWrite| p.written.fate(&transcript, &table);
                return Ok((reading, posted.iter().map(fate).collect()));
            }
            let last = self.board.schedule.burn_time(epoch).0.saturating_add(CLOCK_TOLERANCE);
            let is_over = clock::now().0 > last;
            // One server's statement ends nothing: another may be bound and still give its share. The
            // auditor may still have to hear who is to blame.
            if let Some(why) = transcript.burn_reason().filter(|_| !published)
                && (why.warns() || transcript.has_ended())
                && (is_over || !complaints.are_open())
            {
                return Err(ReadError::Burnt(why).into());
            }
            if is_over {
                if transcript.may_have_been_read() {
                    return Err(ReadError::Burnt(BurnReason::Unshared).into());
                }
                return Err(filled.err().unwrap_or(ReadError::NotPublished.into()));
            }
            let left = clock::until(self.board.schedule.end(epoch));
            // Nothing happens before the epoch ends, unless it closes early.
            tokio::time::sleep((left / 50).clamp(LOOK.0, LOOK.1)).await;
        }
    }

    /// The table from the first database that returns it; none if no database answers now.
    async fn either_table(
        &self,
        transcript: &Transcript,
    ) -> Result<Option<(Reading, Vec<u8>)>, BoardError> {
        for by in self.board.databases().iter().copied() {
            match self.table(by, transcript).await {
                Ok(read) => return Ok(Some(read)),
                Err(BoardError::Server(..) | BoardError::Malformed(_)) => {}
                Err(BoardError::NotRead(ReadError::OtherTable)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn link(&self, to: Party) -> Result<&HttpClient, BoardError> {
        self.links.get(to.index()).ok_or(BoardError::NoServer(to))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        of: Party,
        path: &str,
        max_bytes: usize,
    ) -> Result<T, BoardError> {
        let bytes = self.bytes(of, path, max_bytes).await?;
        postcard::from_bytes(&bytes).map_err(|_| BoardError::Malformed(of))
    }

    async fn bytes(&self, of: Party, path: &str, max_bytes: usize) -> Result<Vec<u8>, BoardError> {
        self.ask(of, path, Limits { bytes: max_bytes.max(64 << 10), time: PATIENCE }).await
    }

    async fn ask(&self, of: Party, path: &str, limits: Limits) -> Result<Vec<u8>, BoardError> {
        let answer = self.link(of)?.exchange(Method::GET, path, &[], Vec::new(), limits).await;
        answer.map_err(|error| BoardError::Server(of, error))
    }

    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        to: Party,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, BoardError> {
        let body = postcard::to_allocvec(body).map_err(|_| BoardError::Malformed(to))?;
        let answer = self.link(to)?.post(path, body).await;
        let answer = answer.map_err(|error| BoardError::Server(to, error))?;
        postcard::from_bytes(&answer).map_err(|_| BoardError::Malformed(to))
    }
}

/// Records a statement; false for an invalid signature or a statement out of order.
fn hear(transcript: &mut Transcript, of: Party, said: &Signed<Statement>) -> bool {
    let heard = transcript.record(of, said);
    if let Ok(Effect::Fault(fault)) = heard {
        tracing::warn!(%of, %fault, "two signed statements conflict; report them to the operators");
    }
    heard.is_ok()
}

/// The auditor's response: whether the complaint was upheld.
#[must_use]
pub fn upheld(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Upheld(..))
}
