//! An owner's connection to the server.

use super::links;
use super::state::TableState;
use super::wire::{
    BLOCKS, BlockRequest, DROP, FETCH, NewBlock, NewTable, SEGMENTS, SUM, SumRequest, SumResponse,
    TABLES, TableRequest,
};
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::retry::{RetryPolicy, retry_blocking};
use alpheus_node::settings::Settings;
use alpheus_verifiable_table::label::{Address, DataSet, Segment};
use alpheus_verifiable_table::messages::{Manifest, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::Duration;

/// When a server that does not answer is asked again.
const RETRY: RetryPolicy = RetryPolicy::doubling(Duration::from_millis(50), Duration::from_secs(2))
    .within(Duration::from_secs(30));
/// How long a sum may take.
const SUM_TIMEOUT: Duration = Duration::from_secs(600);

/// The owner's identity, its folder, and the server.
#[derive(Debug, clap::Args)]
pub struct Reach {
    /// Your identity
    #[arg(long, value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// The table's folder: its key, schema and state
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// The server that stores it
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
}

impl Reach {
    /// The settings with these flags.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn settings(&self, globals: &Globals) -> Result<Settings, Failure> {
        globals.settings(vec![
            ("identity", alpheus_node::settings::path_flag(self.identity.as_ref())),
            ("state", alpheus_node::settings::path_flag(self.state.as_ref())),
            ("server", self.server.clone()),
        ])
    }

    /// The owner's state of the table, and the connection to its server.
    ///
    /// # Errors
    /// A setting is missing or invalid, or the folder cannot be opened.
    pub fn open(&self, globals: &Globals) -> Result<(TableState, Remote), Failure> {
        let settings = self.settings(globals)?;
        let state = TableState::open(&Settings::needed(&settings.state, "state")?)?;
        let remote = Remote::new(&settings, state.owner.manifest().data_set)?;
        Ok((state, remote))
    }
}

/// A server that reports a lost block counts as one with a wrong answer.
fn lost(error: RequestError) -> Failure {
    match &error {
        RequestError::Refused(problem) if problem.status == 410 => {
            Failure::new(Category::Check, error)
        }
        _ => error.into(),
    }
}

/// The server, and the cost of its answers so far.
pub struct Remote {
    client: BlockingClient,
    table: DataSet,
    /// Bytes of answers.
    pub bytes: u64,
    /// Time that the server reports to have spent.
    pub server_time: Duration,
}

impl Remote {
    /// A connection to the server of the settings.
    ///
    /// # Errors
    /// A setting is missing, or the identity is not an owner's.
    pub fn new(settings: &Settings, table: DataSet) -> Result<Self, Failure> {
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&identity, Role::Owner)?;
        let server = Settings::needed(&settings.server, "server")?;
        let client = links::server(&server, &identity)?;
        Ok(Self { client, table, bytes: 0, server_time: Duration::ZERO })
    }

    /// Retries until there is an answer or the timeout ends.
    fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<T, RequestError> {
        retry_blocking(RETRY, RequestError::may_pass, || self.client.call(path, body, wait))
    }

    /// Registers the table.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn create(&self, manifest: &Manifest) -> Result<(), Failure> {
        let body = NewTable { manifest: manifest.clone() };
        Ok(self.ask(TABLES, &body, Duration::ZERO)?)
    }

    /// Stores a block durably.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn put(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let help = "the block is stored here; run the same command again to send it";
        let body = NewBlock { table: self.table, bytes };
        let sent: Result<(), RequestError> = self.ask(BLOCKS, &body, Duration::ZERO);
        sent.map_err(|error| {
            let is_temporary = error.may_pass();
            let failure = Failure::from(error);
            if is_temporary { failure.with_help(help) } else { failure }
        })
    }

    /// Fetches a block. The caller must verify it.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn fetch(&mut self, address: Address) -> Result<Vec<u8>, Failure> {
        let body = BlockRequest { table: self.table, address };
        let bytes: Vec<u8> = self.ask(FETCH, &body, Duration::ZERO).map_err(lost)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// Requests a sum. The caller must verify it.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn sum(&mut self, request: &Request) -> Result<Vec<u8>, Failure> {
        let body = SumRequest { table: self.table, request: request.clone() };
        let SumResponse { microseconds, answer } =
            self.ask(SUM, &body, SUM_TIMEOUT).map_err(lost)?;
        self.bytes += answer.len() as u64;
        self.server_time = self.server_time.saturating_add(Duration::from_micros(microseconds));
        Ok(answer)
    }

    /// The segments of which the server reports blocks.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn segments(&self) -> Result<Vec<Segment>, Failure> {
        Ok(self.ask(SEGMENTS, &TableRequest { table: self.table }, Duration::ZERO)?)
    }

    /// Deletes a rewritten block.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn delete(&self, address: Address) -> Result<(), Failure> {
        Ok(self.ask(DROP, &BlockRequest { table: self.table, address }, Duration::ZERO)?)
    }
}
