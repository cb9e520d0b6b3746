//! A PKI, a server, an owner's folder, and rows whose sums are known.

use crate::common::{PATIENCE, Process, alpheus, route_server};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::Settings;
use alpheus_table_service::blocks::Tables;
use alpheus_table_service::remote::Remote;
use alpheus_table_service::serve::{Api, router};
use alpheus_table_service::state::TableState;
use alpheus_table_service::wire::BLOCKS;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SCHEMA: &str = "\
name: Street
parameters: L128
time: { column: timestamp }
columns:
  - { name: cars, min: 0, max: 100000 }
";

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) server: Process,
    pub(crate) url: String,
    pub(crate) storage: Storage,
}

/// Where the server keeps blocks, and what its environment says of that.
pub(crate) struct Storage {
    pub(crate) state: String,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl World {
    pub(crate) fn new(schema: &str) -> Self {
        Self::over(schema, Storage { state: "tables".to_owned(), environment: Vec::new() })
    }

    pub(crate) fn over(schema: &str, storage: Storage) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("schema.yaml"), schema).unwrap();
        let done = |args: &[&str]| {
            let mut command = alpheus(args.iter().copied());
            assert!(command.current_dir(folder.path()).status().unwrap().success(), "{args:?}");
        };
        done(&["ca", "init", "pki"]);
        done(&["ca", "issue", "pki", "--role", "server", "--name", "service"]);
        done(&["ca", "issue", "pki", "--role", "owner", "--name", "ada"]);
        done(&["ca", "issue", "pki", "--role", "owner", "--name", "eve"]);
        let (server, url) = start(folder.path().to_owned(), "127.0.0.1:0", &storage);
        let world = Self { folder, server, url, storage };
        world.done("create schema.yaml");
        world
    }

    /// The one table's folder at the server.
    pub(crate) fn table(&self) -> PathBuf {
        let entries = fs::read_dir(self.path("tables")).unwrap();
        // Beside it lies what a kill cut off, and what is left of a table that was dropped.
        let folders = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        folders.max_by_key(|path| fs::read_dir(path).unwrap().count()).unwrap()
    }

    /// The server as the owner of a table sees it.
    pub(crate) fn remote(&self, state: &TableState) -> Remote {
        let settings = Settings {
            identity: Some(self.path("pki/ada")),
            server: Some(self.url.clone()),
            ..Settings::default()
        };
        Remote::new(&settings, state.owner.manifest().data_set).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the server again, at the address that it had.
    pub(crate) fn restart_server(&mut self) {
        let address = self.url.replace("https://localhost", "127.0.0.1");
        (self.server, _) = start(self.folder.path().to_owned(), &address, &self.storage);
    }

    /// Serves the world's tables from this process, with something between them and the clients.
    pub(crate) fn serve_through(
        &self,
        layered: impl FnOnce(Router) -> Router,
    ) -> (Trigger, String) {
        let identity = IdentityFolder::open(&self.path("pki/service"), Role::Server).unwrap();
        let tables = Tables::open(&self.path("tables")).unwrap();
        route_server::serve(&identity.tls(), layered(router(Api::new(tables, u64::MAX))))
    }

    /// Starts a command that stores more blocks than so many, and kills it after those. Its server
    /// hangs then, so that it cannot have ended.
    pub(crate) fn killed_after(&mut self, blocks: usize, args: &str) -> Process {
        let gate = Arc::new(Gate { left: AtomicUsize::new(blocks), hangs: AtomicBool::default() });
        let between = Arc::clone(&gate);
        let (_trigger, url) = self.serve_through(|routes| {
            routes.layer(from_fn(move |request, next| Arc::clone(&between).pass(request, next)))
        });
        let own = std::mem::replace(&mut self.url, url);
        let mut process = Process::start(&mut self.command(args));
        self.url = own;
        let until = Instant::now() + PATIENCE;
        while !gate.hangs.load(Ordering::SeqCst) {
            let waits = !process.has_ended() && Instant::now() < until;
            assert!(waits, "it stored no more: {}", process.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        process.kill();
        process
    }

    /// `alpheus table …` as the owner whose identity it is.
    pub(crate) fn command_of(&self, owner: &str, args: &str) -> Command {
        let mut command = alpheus(["table"]);
        command.args(args.split(' ')).current_dir(self.folder.path());
        let identity = format!("pki/{owner}");
        let at = ["--identity", &identity, "--state", "ada", "--server", &self.url];
        command.args(at);
        command
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        self.command_of("ada", args)
    }

    pub(crate) fn run(&self, args: &str) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn done(&self, args: &str) {
        let ran = self.run(args);
        assert!(ran.status.success(), "{args}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// A query's rows.
    pub(crate) fn ask(&self, sql: &str) -> Vec<Value> {
        let ran = self.query(sql);
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        serde_json::from_slice(&ran.stdout).unwrap()
    }

    pub(crate) fn query(&self, sql: &str) -> Output {
        let mut command = self.command("query");
        command.arg(sql).args(["--format", "json"]).output().unwrap()
    }

    /// Hourly counts of cars, `count` rows whose numbers begin at `first`.
    pub(crate) fn write_rows(&self, name: &str, first: u64, count: u64) {
        let mut text = "timestamp,cars\n".to_owned();
        for row in first..first + count {
            text.push_str(&format!("{},{}\n", 1_367_366_400 + 3600 * row, cars(row)));
        }
        fs::write(self.path(name), text).unwrap();
    }
}

/// Lets so many blocks through.
struct Gate {
    left: AtomicUsize,
    /// Whether another one came.
    hangs: AtomicBool,
}

impl Gate {
    async fn pass(self: Arc<Self>, request: Request, next: Next) -> Response {
        let less = |left: usize| left.checked_sub(1);
        let is_block = request.uri().path() == BLOCKS;
        if is_block && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            self.hangs.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        next.run(request).await
    }
}

fn start(folder: PathBuf, api: &str, storage: &Storage) -> (Process, String) {
    let Storage { state, environment } = storage;
    let args = ["table", "serve", "--identity", "pki/service", "--state", state, "--api", api];
    let mut command = alpheus(args);
    command.current_dir(folder).envs(environment.iter().map(|(name, value)| (name, value)));
    let mut server = Process::start(&mut command);
    let url = server.wait_for_prefix("serving at ");
    // The certificate is good for this name.
    (server, url.replace("127.0.0.1", "localhost"))
}

/// What is counted in a row.
pub(crate) fn cars(row: u64) -> u64 {
    row * 7919 % 1009
}

/// The sum over rows 0 to `rows`.
pub(crate) fn total(rows: u64) -> String {
    (0..rows).map(cars).sum::<u64>().to_string()
}
