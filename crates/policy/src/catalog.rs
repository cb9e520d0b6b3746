//! The policy manager's data: schemas, annotated streams, running queries.
//!
//! All of it is public. The catalog does no I/O. The caller adds annotations after
//! checking their signatures, and persists the catalog across restarts.

use crate::ids::{ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use crate::layout::{Layout, LayoutError};
use crate::locks::{LockError, Locks};
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

/// A schema with its id and layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSchema {
    /// Its id.
    pub id: SchemaId,
    /// The schema.
    pub schema: Schema,
    /// How its events are laid out in words.
    pub layout: Layout,
}

/// A stream as its owner annotated it (paper's figure 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogStream {
    /// The stream.
    pub stream: StreamId,
    /// Its owner.
    pub owner: OwnerId,
    /// The controller that holds its key.
    pub controller: ControllerId,
    /// The schema of its events.
    pub schema: SchemaId,
    /// Public attributes, by which queries select and group streams.
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

    /// Whether it is of the schema and the group of a plan without roster.
    #[must_use]
    pub fn may_join(&self, terms: &Plan) -> bool {
        self.schema == terms.schema && terms.group.iter().all(|pair| self.metadata.contains(pair))
    }
}

/// A query and the plans that answer it, one for each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningQuery {
    /// Name of the result stream.
    pub name: String,
    /// The query as SQL.
    pub sql: String,
    /// Its plans.
    pub plans: Vec<Plan>,
}

/// The query cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another running query has this name.
    #[error("a query named `{0}` is already running; choose another name or drop it first")]
    NameTaken(String),
    /// Another running query releases the same data.
    #[error(transparent)]
    Locked(#[from] LockError),
}

impl Catalog {
    /// Registers a schema.
    ///
    /// # Errors
    /// If its events cannot be laid out in words.
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

    /// Registers a stream, or a new policy for one. Running plans do not change: for each
    /// window, controllers check the annotation in force.
    pub fn put_stream(&mut self, stream: CatalogStream) {
        self.streams.insert(stream.stream, stream);
    }

    /// Removes a stream whose annotation was revoked.
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

    /// The locks that running queries hold.
    #[must_use]
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// The streams that may take part in a plan without roster.
    pub fn streams_of<'a>(&'a self, terms: &'a Plan) -> impl Iterator<Item = &'a CatalogStream> {
        self.streams.values().filter(|stream| stream.may_join(terms))
    }

    /// The first of these attributes of a stream that a running query holds: by its plan, or
    /// because the stream may take part in its next epoch.
    #[must_use]
    pub fn holder(&self, stream: &CatalogStream, attributes: &[u16]) -> Option<LockError> {
        self.locks.holder(stream.stream, attributes).or_else(|| {
            let plans = self.queries.values().flat_map(|query| &query.plans);
            let mut joined = plans.filter(|plan| plan.is_terms() && stream.may_join(plan));
            joined.find_map(|plan| {
                let held = attributes.iter().find(|at| plan.attributes.contains(at))?;
                let (stream, attribute, holder) = (stream.stream, *held, plan.id());
                Some(LockError { stream, attribute, holder })
            })
        })
    }

    /// Starts a query: takes its locks, or changes nothing. After a restart, the same
    /// call restores what was running.
    ///
    /// # Errors
    /// If the name or an attribute of a stream is taken.
    pub fn start(&mut self, query: RunningQuery) -> Result<(), StartError> {
        if self.queries.contains_key(&query.name) {
            return Err(StartError::NameTaken(query.name));
        }
        let mut locks = self.locks.clone();
        query.plans.iter().try_for_each(|plan| locks.take(plan))?;
        self.locks = locks;
        self.names.extend(query.plans.iter().map(|plan| (plan.id(), query.name.clone())));
        self.queries.insert(query.name.clone(), query);
        Ok(())
    }

    /// Ends a query and frees its locks.
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
