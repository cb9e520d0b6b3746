//! The ways to a board's servers, for writers, readers, the servers
//! themselves, and other parts that send uploads through a board.

use crate::board::card::Opened;
use crate::board::complaints::Complaints;
use crate::board::entry::Entry;
use crate::failure::{Category, Failure};
use crate::pass::clock;
use crate::pass::link::{Base, Link, LinkError};
use alpheus_anonymous_board::auditor::Verdict;
use alpheus_anonymous_board::coalition::parity::Grid;
use alpheus_anonymous_board::configuration::{Epoch, Party, Pinned, Time};
use alpheus_anonymous_board::error::NotWritten;
use alpheus_anonymous_board::messages::{Receipt, Statement, Submission, Why, WriteName};
use alpheus_anonymous_board::reader::{NotRead, Reading, read};
use alpheus_anonymous_board::transcript::{Heard, Transcript};
use alpheus_anonymous_board::writer::{Content, Fate, NoReceipt, Received, View, Written};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use axum::body::Body;
use axum::http::Request;
use http_body_util::{BodyExt, Limited};
use rand_core::CryptoRng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The rule of a refusal after which the same write is sent again.
pub(super) const BEGINNING: &str = "beginning";
/// How often it is sent, and how often an epoch is looked for that all have begun.
const TRIES: u32 = 40;
/// How often whoever waits asks again.
const AGAIN: Duration = Duration::from_millis(250);
/// How long after an epoch that is not published should be burnt it is still asked for,
/// in microseconds: clocks differ.
const LONGER: u64 = 10_000_000;
/// How long a large answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The ways to a board's servers. Clones share connections; for writers that must
/// not be linked by them, make a client for each.
#[derive(Clone)]
pub struct Client {
    board: Pinned,
    links: Arc<[Link]>,
}

/// Why something was not done with a board.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// A server does not answer, or refuses.
    #[error("the {0}: {1}")]
    Server(Party, LinkError),
    /// The answer makes no sense.
    #[error("the {0} answers something that this version of alpheus does not expect")]
    Malformed(Party),
    /// No write was made.
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
    /// A receipt is not what it should be.
    #[error(transparent)]
    Receipt(#[from] NoReceipt),
    /// The table is not there, or not to be believed.
    #[error(transparent)]
    NotRead(#[from] NotRead),
    /// The board has no such server.
    #[error("the board has no {0}")]
    NoServer(Party),
    /// A server has begun an epoch twice, or another one says so.
    #[error(
        "the {0} has begun the epoch with other keys toward the {1}, or that one says so falsely; nothing was written"
    )]
    TwoBegins(Party, Party),
    /// No epoch is open yet.
    #[error("the board's first epoch has not begun by this machine's clock; set it right, or wait")]
    NoEpoch,
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        let category = match &error {
            BoardError::Server(_, LinkError::Refused(problem)) if problem.status < 500 => {
                Category::Refused
            }
            BoardError::Server(..) | BoardError::Malformed(_) => Category::Io,
            BoardError::NotWritten(_) | BoardError::NoEpoch | BoardError::NoServer(_) => {
                Category::Usage
            }
            BoardError::Receipt(_) | BoardError::NotRead(_) | BoardError::TwoBegins(..) => {
                Category::Check
            }
        };
        Self::new(category, error)
    }
}

/// The longest that a submission to a board may be.
#[must_use]
pub fn largest(board: &Pinned) -> usize {
    // A row's write with all around it, in each envelope; a complaint holds one and a key.
    let row = 16 * 1024 + 4 * board.shape().width();
    let parts = |grid: &Grid| grid.word_bytes() + grid.servers() * (1024 + grid.key_bytes());
    row + board.grid().map_or(0, parts)
}

/// A write that all databases have.
pub struct Posted {
    /// What the writer keeps.
    pub written: Written,
    /// What it sent.
    pub submission: Submission,
    /// What it got.
    pub received: Received,
}

impl Client {
    /// Ways to the servers of a card.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn new(card: &Opened) -> Result<Self, Failure> {
        let link = |at: &Base| Link::new(at.clone(), card.authority.as_deref());
        let links = card.at.iter().map(link).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { board: card.board.clone(), links: links.into() })
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> &Pinned {
        &self.board
    }

    /// The epoch that is open by this machine's clock.
    ///
    /// # Errors
    /// [`BoardError::NoEpoch`].
    pub fn now(&self) -> Result<Epoch, BoardError> {
        self.board.schedule.at(Time(clock::now().0)).ok_or(BoardError::NoEpoch)
    }

    /// Statements of one server, from one on, as `via` has heard them.
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
        let most = 64 * 1024 + 1024 * self.board.writers as usize;
        self.get(via, &format!("/v1/statements/{}/{}/{from}", epoch.0, of.index()), most).await
    }

    /// The digests of all statements that `via` has heard of an epoch.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn heard(&self, via: Party, epoch: Epoch) -> Result<Vec<Vec<Digest>>, BoardError> {
        self.get(via, &format!("/v1/heard/{}", epoch.0), 64 * 1024).await
    }

    /// What all servers have said of an epoch, by each itself or by who has heard it.
    ///
    /// # Errors
    /// [`BoardError`]: of some server nothing could be had of anybody.
    pub async fn transcript(&self, epoch: Epoch) -> Result<Transcript, BoardError> {
        let mut transcript = Transcript::new(&self.board, epoch);
        self.fill(&mut transcript).await?;
        Ok(transcript)
    }

    /// Adds what was said since: of each server its own answer, and if that has nothing
    /// new what the others have heard, so that none can be silent toward some.
    async fn fill(&self, transcript: &mut Transcript) -> Result<(), BoardError> {
        let mut failed = None;
        for of in self.board.parties().iter().copied() {
            let (from, mut answered, mut error) = (transcript.heard_of(of), false, None);
            let others = self.board.parties().iter().copied().filter(|via| *via != of);
            for via in std::iter::once(of).chain(others) {
                match self.statements(via, of, transcript.epoch(), from).await {
                    Ok(said) if said.is_empty() => answered = true,
                    Ok(said) if said.iter().all(|s| hear(transcript, of, s)) => {
                        answered = true;
                        break;
                    }
                    Ok(_) => error = Some(BoardError::Malformed(via)),
                    Err(problem) => error = Some(problem),
                }
            }
            failed = failed.or(error.filter(|_| !answered));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits until all databases have begun the epoch that is open, and each has heard it of
    /// all others as it is heard here: one that has not would refuse the write, and who shows
    /// other keys to some chooses whose writes are taken.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn view(&self) -> Result<View, BoardError> {
        for _ in 0..TRIES {
            if let Some(view) = self.begun(self.now()?).await? {
                return Ok(view);
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(NotWritten::NotBegun.into())
    }

    async fn begun(&self, epoch: Epoch) -> Result<Option<View>, BoardError> {
        let (mut transcript, databases) =
            (Transcript::new(&self.board, epoch), self.board.databases());
        for of in databases.iter().copied() {
            for said in self.statements(of, of, epoch, 0).await? {
                transcript.hear(of, &said).map_err(|_| BoardError::Malformed(of))?;
            }
        }
        for via in databases.iter().copied() {
            let heard = self.heard(via, epoch).await?;
            for of in databases.iter().copied().filter(|of| *of != via) {
                let theirs = heard.get(of.index()).and_then(|heard| heard.first());
                match (transcript.digests(of).next(), theirs) {
                    (Some(ours), Some(theirs)) if ours == *theirs => {}
                    (Some(_), Some(_)) => {
                        self.hand_on(via, of, &transcript).await;
                        return Err(BoardError::TwoBegins(of, via));
                    }
                    _ => return Ok(None),
                }
            }
        }
        Ok(View::open(&self.board, &transcript).ok())
    }

    /// Shows a server with what another has begun here: with what it has heard itself it
    /// has the proof.
    async fn hand_on(&self, to: Party, of: Party, transcript: &Transcript) {
        let path = format!("/v1/statements/{}/{}", transcript.epoch().0, of.index());
        let Some(begin) = transcript.statements(of).next() else { return };
        if let Err(error) = self.send::<()>(to, &path, begin).await {
            tracing::warn!(%error, "handing on what a server has begun with");
        }
    }

    /// Makes a write and gives it to all databases.
    ///
    /// # Errors
    /// [`BoardError`].
    ///
    /// # Privacy
    /// As [`View::write`]. Everybody on the way sees that a member writes now; of one that
    /// comes in by a pass they see its network address.
    pub async fn post(
        &self,
        view: &View,
        content: Content<'_>,
        entry: &mut Entry<'_>,
        rng: &mut (impl CryptoRng + Send),
    ) -> Result<Posted, BoardError> {
        let tag = entry.tag();
        let (written, submission) = view.write(content, tag, |name| entry.ticket(name), rng)?;
        let received = self.submit(&written, &submission).await?;
        Ok(Posted { written, submission, received })
    }

    /// Gives a write that was made before to all databases.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn submit(
        &self,
        written: &Written,
        submission: &Submission,
    ) -> Result<Received, BoardError> {
        let all = |to: &Party| {
            let (client, to, submission) = (self.clone(), *to, submission.clone());
            let sent = async move { client.hand_in(to, &submission).await };
            (to, tokio::spawn(sent))
        };
        let sent: Vec<_> = self.board.databases().iter().map(all).collect();
        let mut receipts: Vec<Signed<Receipt>> = Vec::with_capacity(sent.len());
        for (to, receipt) in sent {
            receipts.push(receipt.await.map_err(|_| BoardError::Malformed(to))??);
        }
        Ok(written.received(receipts)?)
    }

    /// Gives a write to one database: the same again to one that has not heard yet that all
    /// have begun, since another write would spend the quota a second time.
    async fn hand_in(
        &self,
        to: Party,
        submission: &Submission,
    ) -> Result<Signed<Receipt>, BoardError> {
        let mut tries = 0;
        loop {
            match self.send(to, "/v1/submissions", submission).await {
                Err(BoardError::Server(_, LinkError::Refused(problem)))
                    if problem.rule == BEGINNING && tries < TRIES =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                done => return done,
            }
            tries += 1;
        }
    }

    /// A write of one database, for another.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn submission(
        &self,
        of: Party,
        epoch: Epoch,
        name: &WriteName,
    ) -> Result<Submission, BoardError> {
        let most = largest(&self.board);
        self.get(of, &format!("/v1/submissions/{}/{}", epoch.0, name.0), most).await
    }

    /// The masked share of one database.
    ///
    /// # Errors
    /// [`BoardError`].
    pub async fn share(&self, of: Party, epoch: Epoch) -> Result<Vec<u8>, BoardError> {
        self.bytes(of, &format!("/v1/shares/{}", epoch.0), self.board.shape().bytes()).await
    }

    /// An epoch's table of one database, checked and read, with the bytes.
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

    /// Waits for the end of an epoch; complains for those of these writes that are left
    /// out by a server's fault, until the auditor has judged. The table, and what became
    /// of each write. A server that does not answer is asked again, as long as the epoch
    /// may still be published.
    ///
    /// # Errors
    /// [`BoardError`]; of an epoch that is burnt, why.
    pub async fn settled(
        &self,
        epoch: Epoch,
        posted: &[Posted],
    ) -> Result<(Reading, Vec<Fate>), BoardError> {
        let mut transcript = Transcript::new(&self.board, epoch);
        let mut complaints = Complaints::default();
        loop {
            let filled = self.fill(&mut transcript).await;
            complaints.look(&self.board, &transcript, posted);
            complaints.send(self).await;
            let published =
                self.board.databases().iter().all(|by| transcript.published(*by).is_some());
            if published && let Some((reading, table)) = self.either_table(&transcript).await? {
                let fate = |p: &Posted| p.written.became(&transcript, &table);
                return Ok((reading, posted.iter().map(fate).collect()));
            }
            // One server's word ends nothing: another may be bound and give its share still.
            if let Some(why) = transcript.burnt().filter(|_| !published)
                && (why.warns() || transcript.ended())
            {
                return Err(NotRead::Burnt(why).into());
            }
            let last = self.board.schedule.burns(epoch).0.saturating_add(LONGER);
            if clock::now().0 > last {
                if transcript.unshared() {
                    return Err(NotRead::Burnt(Why::Unshared).into());
                }
                return Err(filled.err().unwrap_or(NotRead::NotPublished.into()));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The table of whichever database gives it; none if none answers now.
    async fn either_table(
        &self,
        transcript: &Transcript,
    ) -> Result<Option<(Reading, Vec<u8>)>, BoardError> {
        for by in self.board.databases().iter().copied() {
            match self.table(by, transcript).await {
                Ok(read) => return Ok(Some(read)),
                Err(BoardError::Server(..) | BoardError::Malformed(_)) => {}
                Err(BoardError::NotRead(NotRead::OtherTable)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn link(&self, to: Party) -> Result<&Link, BoardError> {
        self.links.get(to.index()).ok_or(BoardError::NoServer(to))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        of: Party,
        path: &str,
        most: usize,
    ) -> Result<T, BoardError> {
        let bytes = self.bytes(of, path, most).await?;
        postcard::from_bytes(&bytes).map_err(|_| BoardError::Malformed(of))
    }

    async fn bytes(&self, of: Party, path: &str, most: usize) -> Result<Vec<u8>, BoardError> {
        let link = self.link(of)?;
        let request = Request::get(path).body(Body::empty());
        let request = request.map_err(|_| BoardError::Malformed(of))?;
        let server = |error| BoardError::Server(of, error);
        let slow = |_| LinkError::Unreachable(link.base().origin(), "it took too long".into());
        let whole = async {
            let answer = link.send(request).await.map_err(server)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), most.max(64 << 10)).collect().await;
            let bytes = body.map_err(|_| BoardError::Malformed(of))?.to_bytes().to_vec();
            if status.is_success() {
                return Ok(bytes);
            }
            let problem = serde_json::from_slice(&bytes).map_err(|_| BoardError::Malformed(of))?;
            Err(server(LinkError::Refused(problem)))
        };
        tokio::time::timeout(PATIENCE, whole).await.map_err(slow).map_err(server)?
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

/// Takes a statement; false for one that is nobody's or out of turn.
fn hear(transcript: &mut Transcript, of: Party, said: &Signed<Statement>) -> bool {
    let heard = transcript.hear(of, said);
    if let Ok(Heard::Fault(fault)) = heard {
        tracing::warn!(%of, %fault, "both statements are signed: show them to the operators");
    }
    heard.is_ok()
}

/// Whether a complaint was upheld: what the auditor answers.
#[must_use]
pub fn upheld(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Upheld(..))
}
