//! What the policy manager knows: schemas, annotated streams, running queries.
//!
//! All of it is public. The catalog does no I/O; whoever holds it feeds it
//! annotations whose signatures were checked, and keeps it across restarts.

use crate::ids::{ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use crate::layout::{Layout, LayoutError};
use crate::locks::{Locked, Locks};
use crate::plan::Plan;
use crate::policy::ResolvedPolicy;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schemas, streams and running queries.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    schemas: BTreeMap<SchemaId, CatalogSchema>,
    streams: BTreeMap<StreamId, CatalogStream>,
    queries: BTreeMap<String, RunningQuery>,
    /// The query that each running plan belongs to.
    names: BTreeMap<PlanId, String>,
    locks: Locks,
}

/// A schema with what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSchema {
    /// Its id.
    pub id: SchemaId,
    /// The schema.
    pub schema: Schema,
    /// How its events lie in words.
    pub layout: Layout,
}

/// A stream as its owner annotated it (paper's figure 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogStream {
    /// The stream.
    pub stream: StreamId,
    /// Whose it is.
    pub owner: OwnerId,
    /// Who holds its key.
    pub controller: ControllerId,
    /// What it is a stream of.
    pub schema: SchemaId,
    /// Public facts, by which queries select and group.
    pub metadata: Vec<(String, String)>,
    /// What its owner allows.
    pub policy: ResolvedPolicy,
}

impl CatalogStream {
    /// The value of a metadata attribute.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.metadata.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A query and the plans that answer it, one for each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningQuery {
    /// Name of the stream of results.
    pub name: String,
    /// The query as SQL.
    pub sql: String,
    /// Its plans.
    pub plans: Vec<Plan>,
}

/// A query that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// Another query has the name.
    #[error("a query called `{0}` is running: choose another name or drop it first")]
    NameTaken(String),
    /// Another query has the data.
    #[error(transparent)]
    Locked(#[from] Locked),
}

impl Catalog {
    /// Registers a schema.
    ///
    /// # Errors
    /// Where its events cannot be laid out in words.
    pub fn add_schema(&mut self, schema: Schema) -> Result<SchemaId, LayoutError> {
        let (id, layout) = (schema.id(), Layout::of(&schema)?);
        self.schemas.insert(id, CatalogSchema { id, schema, layout });
        Ok(id)
    }

    /// The schema of this name, in its highest version.
    #[must_use]
    pub fn schema(&self, name: &str) -> Option<&CatalogSchema> {
        self.schemas
            .values()
            .filter(|known| known.schema.name == name)
            .max_by_key(|known| (known.schema.version, known.id))
    }

    /// All schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &CatalogSchema> {
        self.schemas.values()
    }

    /// Registers a stream, or an owner's new choice for one. Running plans are
    /// not changed: each controller asks the annotation in force window by window.
    pub fn put_stream(&mut self, stream: CatalogStream) {
        self.streams.insert(stream.stream, stream);
    }

    /// Forgets a stream whose annotation was revoked.
    pub fn remove_stream(&mut self, stream: &StreamId) -> Option<CatalogStream> {
        self.streams.remove(stream)
    }

    /// All streams, ascending by id.
    pub fn streams(&self) -> impl Iterator<Item = &CatalogStream> {
        self.streams.values()
    }

    /// All running queries, ascending by name.
    pub fn queries(&self) -> impl Iterator<Item = &RunningQuery> {
        self.queries.values()
    }

    /// The running query of this name.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&RunningQuery> {
        self.queries.get(name)
    }

    /// The running query that a plan belongs to.
    #[must_use]
    pub fn query_of(&self, plan: &PlanId) -> Option<&RunningQuery> {
        self.queries.get(self.names.get(plan)?)
    }

    /// What is locked.
    #[must_use]
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Starts a query: takes its locks, or changes nothing. At a restart the
    /// same call puts back what was running.
    ///
    /// # Errors
    /// Where the name or an attribute of a stream is taken.
    pub fn start(&mut self, query: RunningQuery) -> Result<(), NotStarted> {
        if self.queries.contains_key(&query.name) {
            return Err(NotStarted::NameTaken(query.name));
        }
        let mut locks = self.locks.clone();
        query.plans.iter().try_for_each(|plan| locks.take(plan))?;
        self.locks = locks;
        self.names.extend(query.plans.iter().map(|plan| (plan.id(), query.name.clone())));
        self.queries.insert(query.name.clone(), query);
        Ok(())
    }

    /// Ends a query and frees what it held.
    pub fn stop(&mut self, name: &str) -> Option<RunningQuery> {
        let query = self.queries.remove(name)?;
        for plan in &query.plans {
            let id = plan.id();
            self.names.remove(&id);
            self.locks.free(&id);
        }
        Some(query)
    }
}
