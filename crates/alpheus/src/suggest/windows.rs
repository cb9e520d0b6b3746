//! What becomes of a recording: in which windows enough owners have data, and what results lack.

use super::left_out;
use alpheus_input::rows::{RecordedStream, Recording};
use alpheus_node::failure::{Category, Failure};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::planner::suggest::Suggestion;
use alpheus_policy::planner::{PlannedQuery, plan};
use alpheus_policy::query::{Accuracy, Create, Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::query_planner::{QueryContext, options};
use alpheus_streams::assumed_owners::consumer;
use alpheus_streams::replay::groups::MissingGroups;
use alpheus_streams::replay::larger::{Larger, larger};
use alpheus_streams::replay::windows::{Audience, longer};
use alpheus_time::Timestamp;
use serde::Serialize;
use std::io::{self, Write};

/// The query is allowed, but of no use.
#[derive(Debug, thiserror::Error)]
#[error("no window of this recording would open, so there would be no result")]
struct NoWindowError;

/// How many windows of a recording have data of enough owners.
#[derive(Serialize)]
pub(super) struct Windows {
    open: usize,
    of: usize,
    /// The number of owners that a window needs.
    least: u32,
    /// The most owners with data in any of them.
    most: u32,
    /// What to ask for instead, if most windows have too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    longer: Option<String>,
    /// A larger maximum of owners, if the query's own leaves some out.
    #[serde(skip_serializing_if = "Option::is_none")]
    larger: Option<String>,
    /// Groups that have no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_groups: Option<MissingGroups>,
    /// What results lack that margins of noise do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

impl Windows {
    /// Those of a query over the owners of a recording.
    pub(super) fn of(
        planned: &PlannedQuery,
        (create, catalog): (&Create, &Catalog),
        recording: &Recording,
    ) -> Windows {
        let filled = recording.streams.iter().filter(|stream| !stream.is_empty());
        let streams: Vec<&RecordedStream> = filled.collect();
        let audiences = Audience::of(planned, &streams);
        let open: usize = audiences.iter().map(Audience::openable).sum();
        let present: Vec<u32> =
            audiences.iter().flat_map(|own| own.present().into_values()).collect();
        let (of, most) = (present.len(), present.into_iter().max().unwrap_or(0));
        let least = planned.plans.iter().map(|plan| plan.population.min).max().unwrap_or(1);
        let longer = if open * 2 < of { longer(create, catalog, &streams) } else { None };
        let larger = if open < of { larger((create, catalog), planned, &streams) } else { None };
        let larger = larger.filter(Larger::opens_more).map(|own| own.to_string());
        let missing_groups = MissingGroups::of((create, catalog), planned, &streams);
        // The planner states the limit on events that it chose.
        let events = match parse(&planned.sql) {
            Ok(Statement::Create(planned)) => left_out::beyond_events(&planned, recording),
            _ => None,
        };
        let (longer, left_out) = (longer.map(|own| own.to_string()), events.into_iter().collect());
        Windows { open, of, least, most, longer, larger, missing_groups, left_out }
    }

    /// Fails if none would open.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let help = || {
            "bring data of more owners, or let owners accept a smaller number of them (`clients` in policies.yaml)".to_owned()
        };
        let remedy = self.larger.as_ref().or(self.longer.as_ref()).cloned();
        match self.open {
            0 => {
                Err(Failure::new(Category::Check, NoWindowError)
                    .with_help(remedy.unwrap_or_else(help)))
            }
            _ => Ok(()),
        }
    }

    /// Those of a suggested query, under the suggested policies.
    pub(super) fn after(
        change: &Suggestion,
        (catalog, schema): (&Catalog, &Schema),
        recording: &Recording,
    ) -> Option<Windows> {
        let Ok(Statement::Create(mut create)) = parse(&change.query) else { return None };
        // Which windows open does not depend on the error, which may take other bounds than the schema's.
        create.settings.accuracy = Accuracy::default();
        let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
        let planned = plan(&create, catalog, &options(asking, &[0; 32])).ok()?;
        let mut windows = Windows::of(&planned, (&create, catalog), recording);
        let beyond = |own| left_out::beyond_bounds(own, schema, recording);
        windows.left_out.extend(change.changes.iter().filter_map(beyond));
        Some(windows)
    }

    /// Says whether a query that is allowed has results.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Windows { open, of, least, most, .. } = self;
        match (*open, *of) {
            (0, _) => writeln!(
                out,
                "Policies allow the query as it is, but no window of this recording would open: each needs data of {least} owners, and none has data of more than {most}."
            )?,
            (open, of) if open < of => writeln!(
                out,
                "Policies allow the query as it is. {open} of {of} windows of this recording have data of enough owners; the others would not open."
            )?,
            _ if self.missing_groups.is_some() => {
                writeln!(out, "Policies allow the query as it is, but not for all groups.")?;
            }
            _ => writeln!(out, "Nothing needs to change: the query is answered as it is.")?,
        }
        self.write_rest(out)
    }

    fn write_rest(&self, out: &mut impl Write) -> io::Result<()> {
        let Windows { longer, larger, missing_groups, left_out, .. } = self;
        if let Some(missing) = missing_groups {
            writeln!(out, "{missing}")?;
            writeln!(out, "To have results of them, {}.", missing.help())?;
        }
        larger
            .iter()
            .try_for_each(|larger| writeln!(out, "To have more of the windows, {larger}."))?;
        longer.iter().try_for_each(|longer| writeln!(out, "To have more of them, {longer}."))?;
        left_out.iter().try_for_each(|what| writeln!(out, "{what}"))
    }

    /// How many open with a change.
    pub(super) fn write_after(&self, out: &mut impl Write) -> io::Result<()> {
        let Windows { open, of, least, most, .. } = self;
        writeln!(out, "{open} of {of} windows of this recording then have data of enough owners.")?;
        if *open == 0 {
            writeln!(
                out,
                "Each needs data of {least} owners, and none has data of more than {most}."
            )?;
        }
        self.write_rest(out)
    }
}
