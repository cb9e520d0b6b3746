//! What a consumer demands of rows.

use crate::query::noted_queries::NotedQuery;
use crate::query::receipts::RefusedRowError;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_policy::ids::PlanId;

/// Query, plan, and the consumer's own statement.
pub(super) type PlanKey = (String, PlanId, Option<String>);

/// What a consumer demands of the rows of a page.
#[derive(Clone, Copy)]
pub(super) struct Demand<'a> {
    /// The query.
    pub(super) name: &'a str,
    /// They must be verified or bounded.
    pub(super) required: bool,
    /// What the consumer noted of the query, unless that cannot be read.
    pub(super) noted: Result<Option<&'a NotedQuery>, &'a RefusedRowError>,
}

impl Demand<'_> {
    /// What is remembered of a plan, and of what the consumer asked for.
    pub(super) fn key(&self, plan: PlanId) -> PlanKey {
        let statement = self.noted.ok().flatten().map(|noted| noted.sql.clone());
        (self.name.to_owned(), plan, statement)
    }

    /// Of a query that the consumer noted: whether a plan is one that the service began for it.
    pub(super) fn check_begun(&self, announced: &AnnouncedPlan) -> Result<(), RefusedRowError> {
        let noted = self.noted.map_err(Clone::clone)?;
        noted.map_or(Ok(()), |noted| noted.check_begun(announced.plan()))
    }
}
