//! The second number of BETWEEN: how many owners it leaves out, and which windows a larger one opens.

use super::windows::{Audience, Longer, longer, planned};
use alpheus_input::rows::RecordedStream;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::planner::{ExclusionError, PlannedQuery};
use alpheus_policy::query::Create;
use std::fmt;

/// A larger maximum, and what it changes.
pub struct Larger {
    /// The population of the query that is offered.
    population: (u32, u32),
    /// Owners who are left out, and all of them.
    left: (u32, u32),
    /// How many of how many windows have data of enough owners, if those are more.
    open: Option<(usize, usize, u32)>,
    /// Else the windows that a larger maximum and longer windows open together.
    longer: Option<Longer>,
}

impl Larger {
    /// Whether more windows would open.
    #[must_use]
    pub fn opens_more(&self) -> bool {
        self.open.is_some() || self.longer.is_some()
    }
}

impl fmt::Display for Larger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((least, most), (left, all)) = (self.population, self.left);
        write!(
            f,
            "raise the second number of BETWEEN, which leaves {left} of {all} owners out of the whole query"
        )?;
        match (self.open, &self.longer) {
            (Some((open, of, needed)), _) => write!(
                f,
                ": with `BETWEEN {least} AND {most}`, {needed} owners or more have data in {open} of {of} windows"
            ),
            (None, Some(longer)) => write!(f, ". With `BETWEEN {least} AND {most}`, {longer}"),
            (None, None) => Ok(()),
        }
    }
}

/// A maximum that leaves nobody out, if that of the query, which was planned so, does and policies
/// allow one.
#[must_use]
pub fn larger(
    (create, catalog): (&Create, &Catalog),
    own: &PlannedQuery,
    streams: &[&RecordedStream],
) -> Option<Larger> {
    let is_full = |reason: &ExclusionError| {
        matches!(
            reason,
            ExclusionError::BeyondMaximum { .. } | ExclusionError::MaximumTooLow { .. }
        )
    };
    own.excluded.iter().find(|excluded| is_full(&excluded.reason))?;
    let (least, _) = create.population?;
    let asked = |most| Create { population: Some((least, most)), ..create.clone() };
    let wide = planned(&asked(u32::MAX), catalog)?;
    // The smallest number with the same owners.
    let most = owners(&wide).max()?.max(least);
    let wide = planned(&asked(most), catalog)?;
    let [(open, of), (opened, _)] = [&wide, own].map(|planned| windows(planned, streams));
    let needed = wide.plans.iter().map(|plan| plan.population.min).max().unwrap_or(1);
    let all: u32 = owners(&wide).sum();
    let left = all.checked_sub(owners(own).sum()).filter(|left| *left > 0)?;
    let open = (open > opened).then_some((open, of, needed));
    let both = || {
        let alone = longer(create, catalog, streams).map_or(0, |own| own.percent());
        longer(&asked(most), catalog, streams).filter(|both| both.percent() > alone)
    };
    let longer = if open.is_none() { both() } else { None };
    Some(Larger { population: (least, most), left: (left, all), open, longer })
}

/// The number of owners of each group.
fn owners(planned: &PlannedQuery) -> impl Iterator<Item = u32> {
    planned.plans.iter().map(|plan| plan.owners_per_controller().iter().sum())
}

/// In how many of all windows with data enough owners count.
fn windows(planned: &PlannedQuery, streams: &[&RecordedStream]) -> (usize, usize) {
    let audiences = Audience::of(planned, streams);
    let open = audiences.iter().map(Audience::openable).sum();
    (open, audiences.iter().map(|own| own.present().len()).sum())
}
