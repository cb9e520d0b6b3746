//! Equal servers by hand, over real sockets: each says what a test has it say.

use crate::board::ring::{NOW, configuration, key, pinned, server};
use crate::common::route_server;
use alpheus_anonymous_board::configuration::{Configuration, Party};
use alpheus_anonymous_board::messages::{Receipt, Statement, Submission};
use alpheus_board_service::card::{Card, Content, VerifiedCard};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_time::{Span, Timestamp};
use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// How many servers.
pub(crate) const MANY: usize = 3;
/// One of them, in a reason.
pub(crate) const OTHER: Party = Party::Server(1);
/// Longer than any test takes.
const LENGTH: u64 = 900_000_000;

type StatementList = Vec<Signed<Statement>>;
/// What one server says that another has said, if it answers at all.
pub(crate) type Statements = Option<StatementList>;

/// What servers say, and what was said to them.
#[derive(Default)]
pub(crate) struct Script {
    /// Of whom, by whom.
    pub(crate) said: [[Statements; MANY]; MANY],
    /// From so many requests for statements on they say this instead.
    pub(crate) later: Option<(usize, [[Statements; MANY]; MANY])>,
    /// One that takes requests and never answers.
    pub(crate) stalls: Option<usize>,
    /// Whose statements the others were asked for, in order.
    pub(crate) asked_of: Vec<usize>,
    /// The bytes that each serves as the table.
    pub(crate) tables: [Option<Vec<u8>>; MANY],
    /// So many times each refuses a write, by which rule.
    pub(crate) refuses: [(usize, &'static str); MANY],
    /// Requests for statements, or for what was heard.
    pub(crate) asked: usize,
    /// Writes, as they came, and to whom.
    pub(crate) writes: Vec<(usize, Submission)>,
    /// When they came.
    pub(crate) came_at: Vec<Instant>,
    /// Statements that somebody handed on: to whom, of whom.
    pub(crate) handed_on: Vec<(usize, usize, Signed<Statement>)>,
}

impl Script {
    /// All servers say the same of everybody.
    pub(crate) fn alike(said: &[StatementList]) -> [[Statements; MANY]; MANY] {
        std::array::from_fn(|_| std::array::from_fn(|of| Some(said[of].clone())))
    }

    fn statements(&mut self, via: usize, of: usize) -> Result<StatementList, ApiError> {
        self.asked += 1;
        if let Some((_, later)) = self.later.take_if(|(from, _)| *from <= self.asked) {
            self.said = later;
        }
        self.said[via][of].clone().ok_or_else(|| ApiError::missing("nothing"))
    }

    fn answer(&mut self, via: usize, board: Digest, asked: &[&str], body: &[u8]) -> Answer {
        match asked {
            ["GET", "statements", _, of, from] => {
                let of = of.parse().unwrap();
                self.asked_of.push(of);
                let said = self.statements(via, of)?;
                encode(&said.iter().skip(from.parse().unwrap()).collect::<Vec<_>>())
            }
            ["GET", "digests", _] => {
                let heard = (0..MANY).map(|of| self.statements(via, of));
                let heard = heard.collect::<Result<Vec<_>, _>>()?;
                let digests = heard.iter().map(|said| said.iter().map(Signed::digest).collect());
                encode(&digests.collect::<Vec<Vec<Digest>>>())
            }
            ["GET", "tables", _] => {
                self.tables[via].clone().ok_or_else(|| ApiError::missing("nothing"))
            }
            ["POST", "statements", _, of] => {
                self.handed_on.push((via, of.parse().unwrap(), decode(body)?));
                encode(&())
            }
            ["POST", "submissions"] => {
                let submission: Submission = decode(body)?;
                let write = submission.name(&board);
                self.writes.push((via, submission));
                self.came_at.push(Instant::now());
                let (times, rule) = &mut self.refuses[via];
                if *times > 0 {
                    *times -= 1;
                    return Err(ApiError::new(StatusCode::CONFLICT, rule, "not now"));
                }
                let by = Party::Server(u8::try_from(via).unwrap());
                encode(&Signed::new(&Receipt { board, epoch: NOW, by, write }, &server(via)))
            }
            _ => Err(ApiError::missing("nothing")),
        }
    }
}

type Answer = Result<Vec<u8>, ApiError>;

/// Three servers of a board whose first epoch has just begun.
pub(crate) struct Stub {
    pub(crate) configuration: Configuration,
    pub(crate) card: VerifiedCard,
    script: Arc<Mutex<Script>>,
    folder: tempfile::TempDir,
    _running: Vec<Trigger>,
}

impl Stub {
    pub(crate) fn new() -> Self {
        let mut configuration = configuration(MANY, 60);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        configuration.schedule.start = Timestamp(u64::try_from(now).unwrap());
        configuration.schedule.length = Span(LENGTH);
        let folder = tempfile::tempdir().unwrap();
        for args in [vec!["init"], vec!["issue", "--role", "board", "--name", "server"]] {
            let mut command = crate::common::alpheus(["ca", args[0], "pki"]);
            crate::common::ended_well(command.args(&args[1..]).current_dir(folder.path()));
        }
        let script = Arc::new(Mutex::new(Script::default()));
        let board = pinned(&configuration).fingerprint();
        let started: Vec<(Trigger, String)> =
            (0..MANY).map(|via| serve(folder.path(), via, board, &script)).collect();
        let (running, at) = started.into_iter().unzip();
        let authority = std::fs::read_to_string(folder.path().join("pki/ca.pem")).unwrap();
        let card = Card::new(
            &Content::new(&configuration, at, Some(authority), None, &key(255)),
            &key(255),
        );
        let text = serde_json::to_string(&card).unwrap();
        std::fs::write(folder.path().join("board.json"), text).unwrap();
        let card = card.open().unwrap();
        Self { configuration, card, script, folder, _running: running }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// The messages that `alpheus board read` prints.
    pub(crate) fn read(&self) -> String {
        crate::common::ended_well(&mut self.reading()).0
    }

    /// What `alpheus board read` says of the epoch, which it does not read.
    pub(crate) fn not_read(&self) -> String {
        let output = self.reading().output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn reading(&self) -> Command {
        let read = ["board", "read", "--card", "board.json", "--epoch", "0"];
        let mut command = crate::common::alpheus(read);
        command.current_dir(self.folder.path());
        command
    }
}

/// Serves one of them from this process.
fn serve(
    folder: &Path,
    via: usize,
    board: Digest,
    script: &Arc<Mutex<Script>>,
) -> (Trigger, String) {
    let identity = IdentityFolder::open(&folder.join("pki/server"), Role::Board).unwrap();
    // As a board's server has it: it asks nobody who they are.
    let files = TlsFiles { client_ca: None, ..identity.tls() };
    let script = Arc::clone(script);
    let routes = Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| async move {
        let parts = uri.path().trim_start_matches("/v1/").split('/');
        let asked: Vec<&str> = std::iter::once(method.as_str()).chain(parts).collect();
        if script.lock().unwrap().stalls == Some(via) {
            std::future::pending::<()>().await;
        }
        script.lock().unwrap().answer(via, board, &asked, &body)
    });
    route_server::serve(&files, routes)
}
