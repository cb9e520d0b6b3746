//! A second database that lies: the honest one, with its ledger in hand, serving its requests from
//! this process. It believes its lies, and goes on from them.

use crate::common::route_server;
use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::configuration::{Board, Epoch, Party};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{Body, Statement, Submission, Tag, WriteDigest, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_board_service::card::VerifiedCard;
use alpheus_board_service::client::Client;
use alpheus_board_service::keys;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_time::Timestamp;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use data_encoding::HEXLOWER;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub(crate) const LIAR: Party = Party::Database(Side::Second);
const HONEST: Party = Party::Database(Side::First);
/// Between two rounds of fetching.
const ROUND: Duration = Duration::from_millis(50);

/// What it does wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// It opens wrong digests for the writes of these members.
    pub(crate) fails: BTreeSet<Tag>,
    /// It adds noise to every second row of its share.
    pub(crate) garbles: bool,
    /// It answers nobody.
    pub(crate) silent: bool,
    /// It shows this member alone a wrong digest of its write: who reaches it as `localhost`.
    pub(crate) deceives: Option<Tag>,
}

struct State {
    board: Board,
    key: SigningKey,
    key_file: PathBuf,
    members: Members,
    database: Database,
    ledger: BTreeMap<Vec<u8>, Vec<u8>>,
    rng: ChaCha20Rng,
    plan: Plan,
    /// The digests that it would have opened honestly.
    honest: BTreeMap<Epoch, Vec<WriteDigest>>,
    shares: BTreeMap<Epoch, Arc<Vec<u8>>>,
    tables: BTreeMap<Epoch, Arc<Vec<u8>>>,
    reveals: BTreeMap<Epoch, Vec<u8>>,
    /// Who came in each epoch, with which writes.
    came: BTreeMap<Epoch, BTreeSet<(Tag, WriteName)>>,
    tags: BTreeMap<WriteName, Tag>,
    /// The epochs that it has seen open and that have not ended for all. It listens on after its own
    /// end, as servers do.
    followed: BTreeSet<Epoch>,
    /// Whether the deceived member has seen the wrong digest.
    deceived: bool,
}

type SharedState = Arc<Mutex<Option<State>>>;

/// The lying database.
pub(crate) struct Liar {
    shared: SharedState,
    stopped: Arc<AtomicBool>,
    pub(crate) at: String,
    _serving: Trigger,
}

impl Liar {
    /// Starts to listen, with the identity in this folder. Without a card it answers nothing.
    pub(crate) fn listen(identity: &Path, now: &Arc<AtomicU64>) -> Self {
        let identity = IdentityFolder::open(identity, Role::Board).unwrap();
        let files = TlsFiles { client_ca: None, ..identity.tls() };
        let shared = SharedState::default();
        let (answering, now) = (Arc::clone(&shared), Arc::clone(now));
        let routes = Router::new().fallback(
            move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
                let host = headers.get(HOST).and_then(|host| host.to_str().ok()).or(uri.host());
                let is_victim = host.is_some_and(|host| host.starts_with("localhost"));
                let parts = uri.path().trim_start_matches("/v1/").split('/');
                let asked: Vec<&str> = std::iter::once(method.as_str()).chain(parts).collect();
                let mut state = answering.lock().unwrap();
                let Some(state) = state.as_mut().filter(|state| !state.plan.silent) else {
                    return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "not now"));
                };
                if let (true, ["GET", "statements", at, "1", from]) = (is_victim, asked.as_slice())
                {
                    return state.deceive(Epoch(at.parse().unwrap()), from.parse().unwrap());
                }
                state.answer(&asked, &body, Timestamp(now.load(Ordering::SeqCst)))
            },
        );
        let (serving, at) = route_server::serve(&files, routes);
        Self { shared, stopped: Arc::default(), at, _serving: serving }
    }

    /// Takes its place in the board.
    pub(crate) fn start(
        &self,
        folder: &Path,
        card: &VerifiedCard,
        plan: Plan,
        now: &Arc<AtomicU64>,
    ) {
        let key_file = folder.join("second.key");
        let load = || keys::load(&key_file).unwrap();
        let seed = Secret::<32>::random(&mut alpheus_node::entropy::rng().unwrap());
        let members = keys::members(&folder.join("members.txt")).unwrap();
        let at = Timestamp(now.load(Ordering::SeqCst));
        let restored = Database::restore(&card.board, LIAR, load(), StateOrigin::New, [], at);
        let state = State {
            board: card.board.clone(),
            key: load(),
            key_file: key_file.clone(),
            members,
            database: restored.unwrap().0,
            ledger: BTreeMap::new(),
            rng: ChaCha20Rng::from_seed(*seed.expose()),
            plan,
            honest: BTreeMap::new(),
            shares: BTreeMap::new(),
            tables: BTreeMap::new(),
            reveals: BTreeMap::new(),
            came: BTreeMap::new(),
            tags: BTreeMap::new(),
            followed: BTreeSet::new(),
            deceived: false,
        };
        *self.shared.lock().unwrap() = Some(state);
        let (shared, stopped) = (Arc::clone(&self.shared), Arc::clone(&self.stopped));
        let (client, now) = (Client::new(card).unwrap(), Arc::clone(now));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(ROUND);
                let now = Timestamp(now.load(Ordering::SeqCst));
                runtime.block_on(round(&shared, &client, now));
            }
        });
    }

    pub(crate) fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.shared.lock().unwrap().as_mut().unwrap().plan);
    }

    /// Who came in an epoch: each write with its member.
    pub(crate) fn came(&self, epoch: Epoch) -> BTreeSet<(Tag, WriteName)> {
        let state = self.shared.lock().unwrap();
        state.as_ref().unwrap().came.get(&epoch).cloned().unwrap_or_default()
    }

    /// What it has received.
    pub(crate) fn transcript(&self, epoch: Epoch) -> Option<Transcript> {
        self.shared.lock().unwrap().as_ref().unwrap().database.transcript(epoch).cloned()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn locked(shared: &SharedState) -> MutexGuard<'_, Option<State>> {
    shared.lock().unwrap()
}

/// Fetches what it lacks, and makes its next statements.
async fn round(shared: &SharedState, client: &Client, now: Timestamp) {
    let epochs: Vec<Epoch> =
        locked(shared).as_ref().unwrap().database.unfinished_epochs().collect();
    let followed = locked(shared).as_mut().unwrap().follow(&epochs);
    for epoch in followed {
        for by in [HONEST, Party::Auditor] {
            let from = locked(shared).as_ref().unwrap().count(epoch, by);
            for said in client.statements(by, by, epoch, from).await.unwrap_or_default() {
                locked(shared).as_mut().unwrap().hear(&said, by, epoch);
            }
        }
    }
    for epoch in epochs {
        let missing = locked(shared).as_ref().unwrap().database.missing_writes(epoch);
        for (name, _) in missing {
            if let Ok(write) = client.submission(HONEST, epoch, &name).await {
                locked(shared).as_mut().unwrap().take_forwarded(write);
            }
        }
        let shares = locked(shared).as_ref().unwrap().database.missing_shares(epoch);
        for by in shares {
            if let Ok(share) = client.share(by, epoch).await {
                let _ = locked(shared).as_mut().unwrap().database.handle_share(share, by, epoch);
            }
        }
    }
    locked(shared).as_mut().unwrap().act(now);
}

impl State {
    fn count(&self, epoch: Epoch, by: Party) -> usize {
        self.database.transcript(epoch).map_or(0, |heard| heard.statement_count(by))
    }

    /// The epochs of which it wants statements: these, and those that ended for it but not for all.
    fn follow(&mut self, unfinished: &[Epoch]) -> Vec<Epoch> {
        self.followed.extend(unfinished);
        let Self { followed, database, .. } = self;
        followed.retain(|epoch| !database.transcript(*epoch).is_some_and(Transcript::has_ended));
        followed.iter().copied().collect()
    }

    fn hear(&mut self, said: &Signed<Statement>, by: Party, epoch: Epoch) {
        if let Ok(step) = self.database.handle_statement(said, by, epoch) {
            let outputs = step.commit(&mut self.ledger).unwrap();
            self.publish(outputs);
        }
    }

    fn take_forwarded(&mut self, write: Submission) {
        if let Ok(step) = self.database.handle_forwarded(write, HONEST, &self.members) {
            step.commit(&mut self.ledger).unwrap();
        }
    }

    fn act(&mut self, now: Timestamp) {
        while let Some(work) = self.database.next_work() {
            let done = work.run().unwrap();
            self.database.handle_result(done);
        }
        self.scout(now);
        while !self.holds_back() {
            let Some(step) = self.database.poll(now, &mut self.rng) else { return };
            let outputs = step.commit(&mut self.ledger).unwrap();
            let lied = outputs.iter().any(|output| self.lie(output, now));
            if lied {
                return;
            }
            self.publish(outputs);
        }
    }

    /// Whether it waits: it wants to see the other's commitment before it commits to a lie, and would
    /// itself end the epoch that it has made too small.
    fn holds_back(&self) -> bool {
        let mut epochs = self.database.unfinished_epochs();
        let (fails, deceives) = (!self.plan.fails.is_empty(), self.plan.deceives.is_some());
        (fails || deceives)
            && epochs.any(|epoch| {
                let ended =
                    self.database.transcript(epoch).and_then(|heard| heard.abort_reason(HONEST));
                match self.count(epoch, LIAR) {
                    3 if deceives => !self.deceived && self.count(epoch, HONEST) >= 3,
                    _ if deceives => false,
                    3 => !self.honest.contains_key(&epoch) && self.count(epoch, HONEST) >= 3,
                    5 => ended.is_none(),
                    _ => false,
                }
            })
    }

    /// Runs a copy of itself ahead, to see what it would open.
    fn scout(&mut self, now: Timestamp) {
        let epochs: Vec<Epoch> = self.database.unfinished_epochs().collect();
        for epoch in epochs {
            let lies = !self.plan.fails.is_empty() || self.plan.deceives.is_some();
            if !lies || self.count(epoch, HONEST) < 4 || self.honest.contains_key(&epoch) {
                continue;
            }
            let mut ledger = self.ledger.clone();
            let restored = Database::restore(
                &self.board,
                LIAR,
                self.own_key(),
                StateOrigin::Intact,
                ledger.clone(),
                now,
            );
            let mut copy = restored.unwrap().0;
            for _ in 0..4 {
                while let Some(work) = copy.next_work() {
                    let done = work.run().unwrap();
                    copy.handle_result(done);
                }
                while let Some(step) = copy.poll(now, &mut self.rng) {
                    step.commit(&mut ledger).unwrap();
                }
            }
            let opened = copy.transcript(epoch).unwrap().opened_digests(Side::Second);
            if let Some(Ok(opened)) = opened {
                self.honest.insert(epoch, opened.to_vec());
            }
        }
    }

    fn own_key(&self) -> SigningKey {
        keys::load(&self.key_file).unwrap()
    }

    /// Replaces a statement by a lie in its ledger, and goes on from there.
    fn lie(&mut self, output: &Output, now: Timestamp) -> bool {
        let Output::Statement(spoken) = output else { return false };
        if spoken.by != LIAR {
            return false;
        }
        let key = self.board.key(LIAR).unwrap();
        let mut statement = spoken.signed.open(key).unwrap().into_inner();
        let truth = statement.body.clone();
        let fails = !self.plan.fails.is_empty();
        match &mut statement.body {
            Body::Commit { candidates, digests } if fails => {
                if let Some(wrong) = self.wrong(spoken.epoch) {
                    let heard = self.database.transcript(spoken.epoch).unwrap();
                    *digests = heard.digest_commitment(Side::Second, candidates, &wrong, &[9; 32]);
                }
            }
            Body::Open { digests, nonce } if fails => {
                if let Some(wrong) = self.wrong(spoken.epoch) {
                    (*digests, *nonce) = (wrong, [9; 32]);
                }
            }
            Body::Latch { set, share, .. } if self.plan.garbles => {
                let width = self.board.shape().width();
                let number = spoken.epoch.0.to_be_bytes();
                let masked = |key: &[u8]| key.starts_with(&number) && key.get(8) == Some(&b'm');
                let (_, bytes) = self.ledger.iter_mut().find(|(key, _)| masked(key)).unwrap();
                bytes.chunks_exact_mut(width).step_by(2).for_each(|row| row[5] ^= 0x55);
                *share = Transcript::share_digest(Side::Second, set, bytes);
            }
            _ => {}
        }
        if statement.body == truth {
            return false;
        }
        let lie = postcard::to_allocvec(&Signed::new(&statement, &self.key)).unwrap();
        let honest = postcard::to_allocvec(&spoken.signed).unwrap();
        self.ledger.values_mut().filter(|value| **value == honest).for_each(|v| v.clone_from(&lie));
        let (records, origin) = (self.ledger.clone(), StateOrigin::Intact);
        let restored = Database::restore(&self.board, LIAR, self.own_key(), origin, records, now);
        let (database, step) = restored.unwrap();
        self.database = database;
        let outputs = step.commit(&mut self.ledger).unwrap();
        self.publish(outputs);
        true
    }

    /// The digests that it opens: wrong for the writes of its victims.
    fn wrong(&self, epoch: Epoch) -> Option<Vec<WriteDigest>> {
        let mut digests = self.honest.get(&epoch)?.clone();
        let candidates = self.database.transcript(epoch)?.candidates()?;
        for (name, digest) in candidates.writes.iter().zip(&mut digests) {
            let tag = self.tags.get(name);
            let is_deceived = tag.is_some() && tag == self.plan.deceives.as_ref();
            if is_deceived || tag.is_some_and(|tag| self.plan.fails.contains(tag)) {
                digest.digest.0[0] ^= 1;
            }
        }
        Some(digests)
    }

    /// Its statements as the deceived member receives them: true up to its candidates. Then it commits
    /// to and opens a wrong digest.
    fn deceive(&mut self, epoch: Epoch, from: usize) -> Result<Vec<u8>, ApiError> {
        let heard = self.database.transcript(epoch).cloned();
        let heard = heard.ok_or_else(|| ApiError::missing("nothing"))?;
        let mut said: Vec<_> = heard.statements(LIAR).take(3).cloned().collect();
        if let (Some(wrong), Some(candidates)) = (self.wrong(epoch), heard.candidates()) {
            let (candidates, nonce) = (candidates.digest, [9; 32]);
            let digests = heard.digest_commitment(Side::Second, &candidates, &wrong, &nonce);
            let commit = Body::Commit { candidates, digests };
            for (sequence, body) in (3..).zip([commit, Body::Open { digests: wrong, nonce }]) {
                let board = self.board.fingerprint();
                let statement = Statement { board, epoch, by: LIAR, sequence, body };
                said.push(Signed::new(&statement, &self.key));
            }
            self.deceived |= from <= 3;
        }
        encode(&said.into_iter().skip(from).collect::<Vec<_>>())
    }

    fn publish(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Share(epoch, share) => drop(self.shares.insert(epoch, share)),
                Output::Table(epoch, table) => drop(self.tables.insert(epoch, table)),
                Output::Reveal(epoch, reveal) => {
                    self.reveals.insert(epoch, encode(reveal.as_ref()).unwrap());
                }
                Output::Statement(_) | Output::ShareRemoved(_) => {}
            }
        }
    }

    fn answer(&mut self, asked: &[&str], body: &[u8], now: Timestamp) -> Result<Vec<u8>, ApiError> {
        let missing = || ApiError::missing("nothing");
        let epoch = |text: &str| Epoch(text.parse().unwrap());
        match asked {
            ["GET", "statements", at, of, from] => {
                let of = Party::ALL[of.parse::<usize>().unwrap()];
                let heard = self.database.transcript(epoch(at));
                let said = heard.into_iter().flat_map(|heard| heard.statements(of));
                encode(&said.skip(from.parse().unwrap()).collect::<Vec<_>>())
            }
            ["GET", "digests", at] => {
                let heard = self.database.transcript(epoch(at));
                let of = |of| heard.into_iter().flat_map(move |heard| heard.digests(of)).collect();
                encode(&Party::ALL.into_iter().map(of).collect::<Vec<Vec<Digest>>>())
            }
            ["POST", "statements", ..] => encode(&()),
            ["POST", "submissions"] => {
                let write: Submission = decode(body)?;
                let name = write.name(&self.board.fingerprint());
                let (at, tag) = (write.epoch, self.members.tag(write.epoch, &name, &write.ticket));
                let taken = self.database.handle_submission(write, now, &self.members);
                let refused = |error: alpheus_anonymous_board::error::SubmissionError| {
                    ApiError::new(StatusCode::CONFLICT, "refused", error.to_string())
                };
                let receipt = taken.map_err(refused)?.commit(&mut self.ledger).unwrap();
                let tag = tag.unwrap();
                self.came.entry(at).or_default().insert((tag, name));
                self.tags.insert(name, tag);
                encode(&receipt)
            }
            ["GET", "submissions", at, name] => {
                let name = HEXLOWER.decode(name.as_bytes()).unwrap().try_into().unwrap();
                let held = self.database.submission(epoch(at), &WriteName(Digest(name)));
                encode(held.ok_or_else(missing)?)
            }
            ["GET", "shares", at] => {
                self.shares.get(&epoch(at)).map(|share| share.to_vec()).ok_or_else(missing)
            }
            ["GET", "tables", at] => {
                self.tables.get(&epoch(at)).map(|table| table.to_vec()).ok_or_else(missing)
            }
            ["GET", "reveals", at] => self.reveals.get(&epoch(at)).cloned().ok_or_else(missing),
            _ => Err(missing()),
        }
    }
}

/// The member's tag.
pub(crate) fn tag_of(key: &Path) -> Tag {
    Members::tag_of(&keys::load(key).unwrap().verifying_key())
}

/// The key file of a member in a folder.
pub(crate) fn key_file(folder: &Path, member: usize) -> PathBuf {
    folder.join(format!("member-{member}.key"))
}
