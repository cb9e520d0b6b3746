//! A consumer's connection to a service, over mutual TLS. Its answers are JSON, as the service gives it.

use crate::errors;
use crate::process::Home;
use alpheus_node::failure::Failure;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_streams::links;
use alpheus_streams::query::begun_query::BegunQuery;
use alpheus_streams::query::opener::{Opener, asks_verified};
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A consumer of a service.
#[pyclass(name = "Consumer", module = "alpheus._native", frozen)]
pub(crate) struct PyConsumer {
    home: Home,
    client: BlockingClient,
    opener: Opener,
}

impl PyConsumer {
    /// Asks the service, while other threads of Python run.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce() -> Result<T, RequestError> + Send,
    ) -> PyResult<T> {
        self.home.check()?;
        py.detach(ask).map_err(|error| errors::failure(&error.into()))
    }
}

#[pymethods]
impl PyConsumer {
    /// Connects to a service with the consumer's identity folder.
    #[staticmethod]
    fn connect(py: Python<'_>, server: &str, identity: PathBuf) -> PyResult<PyConsumer> {
        let connect = || -> Result<(BlockingClient, Opener), Failure> {
            let identity = open_identity(&identity, Role::Consumer)?;
            Ok((links::service(server, &identity)?, Opener::new(&identity)?))
        };
        let (client, opener) = py.detach(connect).map_err(|failure| errors::failure(&failure))?;
        Ok(PyConsumer { home: Home::here(), client, opener })
    }

    /// What the service says of a statement.
    fn statement(&self, py: Python<'_>, sql: &str) -> PyResult<String> {
        let statement = py.detach(|| self.opener.statement(sql));
        let statement = statement.map_err(|failure| errors::failure(&failure))?;
        let ask = || {
            let answer = self.client.post_json::<Value>("/v1/statements", &statement);
            self.opener.answered(sql, answer)
        };
        let said = self.ask(py, ask)?;
        let running = said.get("running").map(BegunQuery::read);
        let accepted = self.opener.accepted(sql, running.as_ref());
        accepted.map_err(|failure| errors::failure(&failure))?;
        Ok(said.to_string())
    }

    /// All running queries, with the names and units of their columns.
    fn queries(&self, py: Python<'_>) -> PyResult<String> {
        let known = || self.client.get_json::<Value>("/v1/queries", Duration::ZERO);
        Ok(self.ask(py, known)?.to_string())
    }

    /// The service's counts since its start.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let known = || self.client.get_json::<Value>("/v1/status", Duration::ZERO);
        Ok(self.ask(py, known)?.to_string())
    }

    /// Whether a statement begins a query whose rows are verified.
    #[staticmethod]
    fn asks_verified(sql: &str) -> bool {
        asks_verified(sql)
    }

    /// Rows of a query after a place, and the place after them. Waits some seconds for one. From then on
    /// rows that do not say that they are verified are refused, if they must be `verified`.
    fn rows(
        &self,
        py: Python<'_>,
        name: &str,
        after: u64,
        wait: u64,
        verified: bool,
    ) -> PyResult<(Vec<String>, u64)> {
        if verified {
            self.opener.declare_verified(name);
        }
        let rows = || self.client.block_on(self.opener.rows(self.client.http(), name, after, wait));
        let page = self.ask(py, rows)?;
        let rows = page.rows.into_iter().map(|row| Value::Object(row).to_string()).collect();
        Ok((rows, page.next))
    }
}
