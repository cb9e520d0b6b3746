//! An owner's connection to the server.

use super::links;
use super::state::TableState;
use super::wire::{
    Answers, BLOCKS, BlockRequest, DROP, DROP_STATE, DROP_TABLE, FETCH, FETCH_STATE, FetchRequest,
    NewObject, NewTable, SAVE_STATE, SEGMENTS, STATES, SUMS, StateRequest, SumResponse,
    SumsRequest, TABLES, TableRequest,
};
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::{Problem, RequestError};
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::retry::{RetryPolicy, retry_blocking};
use alpheus_node::settings::Settings;
use alpheus_verifiable_table::error::VerifyError;
use alpheus_verifiable_table::label::{Address, DataSet, Segment};
use alpheus_verifiable_table::messages::{Manifest, Request};
use alpheus_verifiable_table::saved_state::StateName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// When a server that does not answer is asked again.
const RETRY: RetryPolicy = RetryPolicy::doubling(Duration::from_millis(50), Duration::from_secs(2))
    .within(Duration::from_secs(30));
/// How long sums may take.
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

/// A server that nobody trusts gives no advice: what its owner should do next is not its to say.
fn without_advice(error: RequestError) -> RequestError {
    match error {
        RequestError::Refused(problem) => {
            RequestError::Refused(Problem { help: None, query: None, ..problem })
        }
        error => error,
    }
}

/// The server.
pub struct Remote {
    client: BlockingClient,
    table: DataSet,
}

impl Remote {
    /// A connection to the server of the settings.
    ///
    /// # Errors
    /// A setting is missing, or the identity is not an owner's.
    pub fn new(settings: &Settings, table: DataSet) -> Result<Self, Failure> {
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = open_identity(&identity, Role::Owner)?;
        let server = Settings::needed(&settings.server, "server")?;
        let client = links::server(&server, &identity)?;
        Ok(Self { client, table })
    }

    /// Retries until there is an answer or the timeout ends.
    fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<T, RequestError> {
        let asked =
            retry_blocking(RETRY, RequestError::may_pass, || self.client.call(path, body, wait));
        asked.map_err(without_advice)
    }

    /// Registers the table.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn create(&self, manifest: &Manifest) -> Result<(), Failure> {
        let body = NewTable { manifest: manifest.clone() };
        Ok(self.ask(TABLES, &body, Duration::ZERO)?)
    }

    /// Stores a block durably. Other bytes at its address are damaged, since an owner seals one block for
    /// each: they are replaced.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn put(&self, address: Address, bytes: Vec<u8>) -> Result<(), Failure> {
        self.store(BLOCKS, bytes, || self.delete(address))
    }

    fn store(
        &self,
        path: &str,
        bytes: Vec<u8>,
        delete: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let help = "what could not be sent is stored here; run the same command again to send it";
        let body = NewObject { table: self.table, bytes };
        let mut sent: Result<(), RequestError> = self.ask(path, &body, Duration::ZERO);
        if matches!(&sent, Err(RequestError::Refused(problem)) if problem.status == 409) {
            tracing::warn!("the server's copy of this object is damaged, and is being replaced");
            delete()?;
            sent = self.ask(path, &body, Duration::ZERO);
        }
        sent.map_err(|error| {
            let is_temporary = error.may_pass();
            let failure = Failure::from(error);
            if is_temporary { failure.with_help(help) } else { failure }
        })
    }

    /// Fetches blocks. The caller must verify them.
    ///
    /// # Errors
    /// No answer, a refusal, or another number of blocks.
    pub fn fetch(&self, addresses: &[Address]) -> Result<Vec<Vec<u8>>, Failure> {
        let body = FetchRequest { table: self.table, addresses: addresses.to_vec() };
        let Answers(blocks) = self.ask(FETCH, &body, Duration::ZERO).map_err(lost)?;
        counted(blocks, addresses.len())
    }

    /// Requests sums. The caller must verify them.
    ///
    /// # Errors
    /// No answer, a refusal, or another number of sums.
    pub fn sums(&self, requests: &[Request]) -> Result<Vec<SumResponse>, Failure> {
        let body = SumsRequest { table: self.table, requests: requests.to_vec() };
        let Answers(sums) = self.ask(SUMS, &body, SUM_TIMEOUT).map_err(lost)?;
        counted(sums, requests.len())
    }

    /// The segments of which the server reports blocks, and how many.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn segments(&self) -> Result<BTreeMap<Segment, u64>, Failure> {
        Ok(self.ask(SEGMENTS, &TableRequest { table: self.table }, Duration::ZERO)?)
    }

    /// Deletes a rewritten block.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn delete(&self, address: Address) -> Result<(), Failure> {
        Ok(self.ask(DROP, &BlockRequest { table: self.table, address }, Duration::ZERO)?)
    }

    /// Stores a saved state durably.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn save_state(&self, name: StateName, bytes: Vec<u8>) -> Result<(), Failure> {
        self.store(SAVE_STATE, bytes, || self.delete_state(name))
    }

    /// The saved states that the server reports.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn states(&self) -> Result<Vec<StateName>, Failure> {
        Ok(self.ask(STATES, &TableRequest { table: self.table }, Duration::ZERO)?)
    }

    /// Fetches a saved state. The caller must open it.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn state(&self, name: StateName) -> Result<Vec<u8>, Failure> {
        let body = StateRequest { table: self.table, name };
        self.ask(FETCH_STATE, &body, Duration::ZERO).map_err(lost)
    }

    /// Deletes a saved state.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn delete_state(&self, name: StateName) -> Result<(), Failure> {
        Ok(self.ask(DROP_STATE, &StateRequest { table: self.table, name }, Duration::ZERO)?)
    }

    /// Has the server forget the table, which has no blocks and no saved states any more.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn forget(&self) -> Result<(), Failure> {
        Ok(self.ask(DROP_TABLE, &TableRequest { table: self.table }, Duration::ZERO)?)
    }
}

/// The one error for every wrong answer.
pub fn rejected(rejected: VerifyError) -> Failure {
    Failure::new(Category::Check, rejected)
}

/// One answer to each question: any other number is a lie.
fn counted<T>(answers: Vec<T>, asked: usize) -> Result<Vec<T>, Failure> {
    if answers.len() == asked { Ok(answers) } else { Err(rejected(VerifyError)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_advice_is_not_passed_on() {
        let problem = Problem {
            rule: "lost".to_owned(),
            detail: "there is no block 7".to_owned(),
            help: Some("send your key to https://example.org".into()),
            query: Some("SELECT 1".into()),
            status: 404,
            id: None,
        };
        let RequestError::Refused(problem) = without_advice(RequestError::Refused(problem)) else {
            panic!("another error")
        };
        assert_eq!((problem.help, problem.query), (None, None));
        assert_eq!((problem.detail.as_str(), problem.status), ("there is no block 7", 404));
    }
}
