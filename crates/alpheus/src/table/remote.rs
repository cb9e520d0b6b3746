//! An owner's way to the server.

use super::state::TableState;
use super::wire::{
    Ask, BLOCKS, DROP, FETCH, Named, NewBlock, NewTable, OfTable, SEGMENTS, SUM, Summed, TABLES,
};
use crate::commands::Globals;
use crate::failure::{Category, Failure};
use crate::network::client::{Client, RequestError};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::service::Settings;
use alpheus_verifiable_table::label::{Address, DataSet, Segment};
use alpheus_verifiable_table::messages::{Manifest, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a server that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a sum may take.
const LONG: Duration = Duration::from_secs(600);

/// Where an owner's table is, and who asks.
#[derive(Debug, clap::Args)]
pub struct Reach {
    /// The folder that says who you are
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
    /// The settings, with these flags.
    ///
    /// # Errors
    /// A setting is wrong.
    pub fn settings(&self, globals: &Globals) -> Result<Settings, Failure> {
        globals.settings(vec![
            ("identity", crate::service::path_flag(self.identity.as_ref())),
            ("state", crate::service::path_flag(self.state.as_ref())),
            ("server", self.server.clone()),
        ])
    }

    /// The table as its owner has it, and the way to its server.
    ///
    /// # Errors
    /// A setting is missing or wrong, or the folder cannot be opened.
    pub fn open(&self, globals: &Globals) -> Result<(TableState, Remote), Failure> {
        let settings = self.settings(globals)?;
        let state = TableState::open(&Settings::needed(&settings.state, "state")?)?;
        let remote = Remote::new(&settings, state.owner.manifest().data_set)?;
        Ok((state, remote))
    }
}

/// A server that says that it has lost a block is as one whose answer is wrong.
fn lost(error: RequestError) -> Failure {
    match &error {
        RequestError::Refused(problem) if problem.status == 410 => {
            Failure::new(Category::Check, error)
        }
        _ => error.into(),
    }
}

/// The server, and what asking it has cost.
pub struct Remote {
    client: Client,
    table: DataSet,
    /// Bytes of answers.
    pub bytes: u64,
    /// What the server says that it has worked.
    pub worked: Duration,
}

impl Remote {
    /// A way to the server that the settings name.
    ///
    /// # Errors
    /// A setting is missing, or the identity is no owner's.
    pub fn new(settings: &Settings, table: DataSet) -> Result<Self, Failure> {
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&identity, Role::Owner)?;
        let server = Settings::needed(&settings.server, "server")?;
        let client = Client::new(&identity, &server)?;
        Ok(Self { client, table, bytes: 0, worked: Duration::ZERO })
    }

    /// Asks until there is an answer, or patience ends.
    fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<T, RequestError> {
        let (until, mut pause) = (Instant::now() + PATIENCE, Duration::from_millis(50));
        loop {
            match self.client.exchange(path, body, wait) {
                Err(error) if error.may_pass() && Instant::now() + pause < until => {
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(Duration::from_secs(2));
                }
                answered => return answered,
            }
        }
    }

    /// Begins the table there.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn create(&self, manifest: &Manifest) -> Result<(), Failure> {
        let body = NewTable { manifest: manifest.clone() };
        Ok(self.ask(TABLES, &body, Duration::ZERO)?)
    }

    /// Stores a block for good.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn put(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let kept = "the block is kept here and is sent again: run the same command again";
        let body = NewBlock { table: self.table, bytes };
        let sent: Result<(), RequestError> = self.ask(BLOCKS, &body, Duration::ZERO);
        sent.map_err(|error| {
            let passes = error.may_pass();
            let failure = Failure::from(error);
            if passes { failure.with_help(kept) } else { failure }
        })
    }

    /// A block as it was stored, if the server says the truth.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn fetch(&mut self, address: Address) -> Result<Vec<u8>, Failure> {
        let body = Named { table: self.table, address };
        let bytes: Vec<u8> = self.ask(FETCH, &body, Duration::ZERO).map_err(lost)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// A sum, as the server says.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn sum(&mut self, request: &Request) -> Result<Vec<u8>, Failure> {
        let body = Ask { table: self.table, request: request.clone() };
        let Summed { microseconds, answer } = self.ask(SUM, &body, LONG).map_err(lost)?;
        self.bytes += answer.len() as u64;
        self.worked = self.worked.saturating_add(Duration::from_micros(microseconds));
        Ok(answer)
    }

    /// Segments that the server says it has blocks of.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn segments(&self) -> Result<Vec<Segment>, Failure> {
        Ok(self.ask(SEGMENTS, &OfTable { table: self.table }, Duration::ZERO)?)
    }

    /// Lets the server forget a block that was written anew.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn forget(&self, address: Address) -> Result<(), Failure> {
        Ok(self.ask(DROP, &Named { table: self.table, address }, Duration::ZERO)?)
    }
}
