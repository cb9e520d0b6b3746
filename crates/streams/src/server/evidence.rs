//! What the service states to one of its consumers as evidence, for a data protection impact
//! assessment, in lines of [`alpheus_standards::evidence`].
//!
//! # Privacy
//! Rows and plans are those of the caller's own queries, which it can read anyway. Of others'
//! queries it has what `GET /v1/queries` shows.

use super::engine::Engine;
use crate::runtime::embedded::RuntimeError;
use crate::runtime::receipts::{ReceiptParts, page};
use crate::runtime::results::{Row, has_opened};
use crate::runtime::storage::Topics;
use alpheus_encrypted_stream::evidence::exhibit;
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_standards::evidence::{FORMAT, Head, PublishedRow, Statement};
use alpheus_time::{Timestamp, Window};
use alpheus_transport::{Error, Limits, Store};
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

/// More happened than one statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is more evidence of this time than one statement holds; ask for a shorter time")]
pub struct TooMuchEvidenceError;

impl Engine {
    /// Begins a statement to a consumer about windows that start in a span of time: all but its
    /// rows. Also the names of its queries.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn evidence(
        &mut self,
        consumer: &str,
        span: Window,
        running: Vec<Value>,
    ) -> Result<(Statement, BTreeSet<String>), RuntimeError> {
        let head = self.head(consumer, span);
        let (manager, registry) = (&self.manager, &self.registry);
        let mut statement = Statement::new(&head, span, &manager.catalog);
        running.into_iter().for_each(|query| statement.query(query));
        let names = manager.names_of(consumer);
        let running = manager.catalog.queries().flat_map(|query| query.plans.clone());
        let running = running.map(|plan| (true, plan));
        let ended = manager.ended()?.into_iter().map(|plan| (false, plan));
        for (runs, plan) in running.chain(ended).filter(|(_, plan)| names.contains(&plan.name)) {
            let mut schemas = manager.catalog.schemas();
            let Some(schema) = schemas.find(|own| own.id == plan.schema) else { continue };
            let announced = manager.announcement(&plan.id())?;
            let bytes = announced.as_ref().map(postcard::to_allocvec).transpose();
            let bytes = bytes.map_err(|_| RuntimeError::DamagedPlans)?;
            let announced = bytes.map(|bytes| exhibit(&bytes).to_string());
            statement.plan(&plan, schema, (runs, announced));
        }
        statement.withdrawals(registry.withdrawals());
        statement.revocations(self.revocations.0.version(), registry.revoked());
        Ok((statement, names))
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

/// Adds the rows of these queries, and what they cost an owner.
///
/// # Errors
/// The store's error; within it, if it is too much.
pub fn add_rows(
    statement: &mut Statement,
    names: &BTreeSet<String>,
    (store, topics): (&dyn Store, &Topics),
) -> Result<Result<(), TooMuchEvidenceError>, Error> {
    let receipts = receipts(names, store, topics)?;
    let partition = topics.results.partition(0);
    let mut position = store.bounds(&partition)?.start;
    loop {
        let fetched = store.read(&partition, position, Limits::default())?;
        let next = fetched.next_offset();
        if next == position {
            statement.spent();
            return Ok(Ok(()));
        }
        // What cannot be read was shown to nobody.
        let rows = fetched.filter_map(|one| serde_json::from_slice::<Row>(&one.value).ok());
        for row in rows.filter(|row| names.contains(&row.query)) {
            if statement.covers(row.window_start) {
                let opened = has_opened(&row.status);
                let receipt = row.plan.and_then(|plan| receipts.get(&(plan, row.window_start)));
                let (plan, receipt, json) = (row.plan, receipt.cloned(), row.to_json());
                let query = row.query;
                statement.release(PublishedRow { query, plan, opened, row: json, receipt });
            }
        }
        if statement.text().len() > MAX_TEXT {
            return Ok(Err(TooMuchEvidenceError));
        }
        position = next;
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
