//! What the service states to one of its consumers as evidence, for a data protection impact
//! assessment, in lines of [`alpheus_standards::evidence`].
//!
//! # Privacy
//! Rows and plans are those of the caller's own queries, which it can read anyway. Of others'
//! queries it has what `GET /v1/queries` shows.

use super::engine::Engine;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::evidence::exhibit;
use alpheus_policy::catalog::CatalogSchema;
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_standards::evidence::{FORMAT, Head, PublishedRow, Statement};
use alpheus_stream_runtime::ended_plans::{announcement, open};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::manager::Manager;
use alpheus_stream_runtime::receipts::{ReceiptParts, page};
use alpheus_stream_runtime::results::{Row, has_opened};
use alpheus_stream_runtime::storage::{Topics, read_on};
use alpheus_time::{Timestamp, Window};
use alpheus_transport::{Error, Store};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Longest text, in bytes: an answer has at most 64 MiB, and as JSON a text grows.
const MAX_TEXT: usize = 40 << 20;

/// The answer to `GET /v1/evidence`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceAnswer {
    /// The lines, each with its end.
    pub text: String,
    /// The signed [`EvidenceSeal`](alpheus_encrypted_stream::evidence::EvidenceSeal) of them, in
    /// hexadecimal digits.
    pub signed: String,
}

/// Why there is no statement.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// More happened than one holds.
    #[error(
        "the evidence for this period does not fit into one statement; ask for a shorter period"
    )]
    TooMuch,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// A plan in it is damaged.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// A statement without its plans and rows. They are read from the store, apart from the engine.
pub struct StatementDraft {
    statement: Statement,
    /// The caller's queries.
    names: BTreeSet<String>,
    /// With the digests of their announcements, which may not be kept once they end.
    running: Vec<(Plan, Option<String>)>,
    ended: Vec<PlanId>,
    schemas: Vec<CatalogSchema>,
    deployment: Deployment,
}

impl Engine {
    /// Begins a statement to a consumer about windows that start in a span of time.
    ///
    /// # Errors
    /// The store's error.
    pub fn evidence(
        &mut self,
        consumer: &str,
        span: Window,
        running: Vec<Value>,
    ) -> Result<StatementDraft, EvidenceError> {
        let head = self.head(consumer, span);
        let (manager, registry) = (&self.manager, &self.registry);
        let mut statement = Statement::new(&head, span, &manager.catalog);
        running.into_iter().for_each(|query| statement.query(query));
        statement.withdrawals(registry.withdrawals());
        statement.revocations(self.revocations.0.version(), registry.revoked());
        Ok(StatementDraft::of(statement, manager, (consumer, span), &self.deployment)?)
    }

    fn head(&mut self, consumer: &str, span: Window) -> Head {
        let Timestamp(now) = self.now();
        let streams = self.manager.catalog.streams();
        let owners: Vec<OwnerId> = streams.map(|stream| stream.owner).collect();
        Head {
            format: FORMAT,
            from: span.start.0 / 1000,
            until: span.end.0 / 1000,
            made: now / 1000,
            consumer: consumer.to_owned(),
            software: concat!("alpheus ", env!("CARGO_PKG_VERSION")),
            authority: HEXLOWER.encode(self.deployment.authority().as_bytes()),
            service: HEXLOWER.encode(self.deployment.service().as_bytes()),
            controllers: self.manager.controllers(),
            streams: owners.len(),
            owners: owners.into_iter().collect::<BTreeSet<_>>().len(),
        }
    }
}

fn digest(announced: &[u8]) -> String {
    exhibit(announced).to_string()
}

impl StatementDraft {
    /// A statement to a consumer about a span of time, and which plans it is of.
    ///
    /// # Errors
    /// The store's error.
    pub fn of(
        statement: Statement,
        manager: &Manager,
        (consumer, span): (&str, Window),
        deployment: &Deployment,
    ) -> Result<StatementDraft, Error> {
        let names = manager.names_of(consumer);
        let (store, topics) = (manager.service.store(), manager.service.topics());
        let own = manager.catalog.queries().filter(|query| names.contains(&query.name));
        let announced = |plan: &Plan| {
            let stored = announcement(store.as_ref(), &topics.service, plan.id())?;
            Ok((plan.clone(), stored.as_deref().map(digest)))
        };
        let running =
            own.flat_map(|query| &query.plans).map(announced).collect::<Result<_, Error>>()?;
        let ended = manager.ended.of(&names, span);
        let schemas = manager.catalog.schemas().cloned().collect();
        let deployment = deployment.clone();
        Ok(StatementDraft { statement, names, running, ended, schemas, deployment })
    }

    /// The statement with its plans and rows, and what they cost an owner.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub fn complete(
        mut self,
        store: &dyn Store,
        topics: &Topics,
    ) -> Result<Statement, EvidenceError> {
        for (plan, announced) in std::mem::take(&mut self.running) {
            self.plan((true, &plan), announced)?;
        }
        for id in std::mem::take(&mut self.ended) {
            // One that has become old since is not there any more.
            let Some(stored) = announcement(store, &topics.service, id)? else { continue };
            let plan = open(&stored, &self.deployment)?;
            self.plan((false, &plan), Some(digest(&stored)))?;
        }
        self.rows(store, topics)?;
        self.statement.spent();
        Ok(self.statement)
    }

    /// Adds a plan, and the digest of its announcement.
    fn plan(
        &mut self,
        (runs, plan): (bool, &Plan),
        announced: Option<String>,
    ) -> Result<(), EvidenceError> {
        if let Some(schema) = self.schemas.iter().find(|own| own.id == plan.schema) {
            self.statement.plan(plan, schema, (runs, announced));
        }
        self.fits()
    }

    fn rows(&mut self, store: &dyn Store, topics: &Topics) -> Result<(), EvidenceError> {
        let receipts = receipts(&self.names, store, topics)?;
        let partition = topics.results.partition(0);
        let mut position = store.bounds(&partition)?.start;
        read_on(store, &partition, &mut position, |fetched| {
            // What cannot be read was shown to nobody.
            let rows = fetched.filter_map(|one| serde_json::from_slice::<Row>(&one.value).ok());
            for row in rows.filter(|row| self.names.contains(&row.query)) {
                if !self.statement.covers(row.window_start) {
                    continue;
                }
                let opened = has_opened(&row.status);
                // By epochs a receipt is of its list's plan, and a row's cost of the terms.
                let signed = row.verified.or(row.plan);
                let receipt = signed.and_then(|plan| receipts.get(&(plan, row.window_start)));
                let (plan, receipt, json) = (row.plan, receipt.cloned(), row.to_json());
                let query = row.query;
                self.statement.release(PublishedRow { query, plan, opened, row: json, receipt });
            }
            self.fits()
        })
    }

    fn fits(&self) -> Result<(), EvidenceError> {
        if self.statement.text().len() > MAX_TEXT { Err(EvidenceError::TooMuch) } else { Ok(()) }
    }
}

/// Digests of the receipts of these queries, by plan and start in milliseconds.
fn receipts(
    names: &BTreeSet<String>,
    store: &dyn Store,
    topics: &Topics,
) -> Result<HashMap<(PlanId, u64), String>, Error> {
    let mut found = HashMap::new();
    for name in names {
        let (mut parts, mut after) = (ReceiptParts::default(), 0);
        loop {
            let (read, next) = page(store, topics, name, after)?;
            for (plan, window, receipt) in read.into_iter().filter_map(|one| parts.take(one)) {
                let digest = receipt.map(|receipt| exhibit(&receipt.to_bytes()).to_string());
                found.extend(digest.ok().map(|digest| ((plan, window.start.0 / 1000), digest)));
            }
            if next == after {
                break;
            }
            after = next;
        }
    }
    Ok(found)
}
