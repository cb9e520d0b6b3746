//! Groups of a recording that are too small for a plan, so that no row says anything about them.

use super::output::counted;
use super::windows::planned;
use alpheus_input::rows::RecordedStream;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::planner::{ExclusionError, PlannedQuery, selection};
use alpheus_policy::query::{Create, Word};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Groups that are named.
const LISTED: usize = 10;

/// Groups without a result.
///
/// # Privacy
/// Facts that queries group by are public, so the number of a group's owners is, too.
#[derive(Serialize)]
pub struct MissingGroups {
    groups: usize,
    owners: usize,
    missing: Vec<MissingGroup>,
    /// What to ask for instead.
    help: &'static str,
    /// The owners of missing groups.
    missing_owners: usize,
}

#[derive(Serialize)]
struct MissingGroup {
    group: String,
    owners: usize,
    /// How many it would need, in words.
    needed: String,
}

impl MissingGroups {
    /// Those of a query that was planned over these streams, if there are any.
    #[must_use]
    pub fn of(
        (create, catalog): (&Create, &Catalog),
        known: &PlannedQuery,
        streams: &[&RecordedStream],
    ) -> Option<MissingGroups> {
        if create.group_by.is_empty() {
            return None;
        }
        let filter = create.filter.as_ref().map(selection).unwrap_or_default();
        let mut groups: BTreeMap<Vec<(String, String)>, BTreeSet<&str>> = BTreeMap::new();
        for stream in streams {
            let fact = |name: &str| stream.metadata.get(name).map(String::as_str);
            let value = |word: &Word| Some((word.text.clone(), fact(&word.text)?.to_owned()));
            let group = create.group_by.iter().map(value).collect::<Option<Vec<_>>>();
            if let Some(group) = group.filter(|_| filter.selects(fact)) {
                groups.entry(group).or_default().insert(&stream.owner);
            }
        }
        let all = groups.len();
        let owners = groups.values().flatten().collect::<BTreeSet<_>>().len();
        groups.retain(|group, _| known.plans.iter().all(|plan| plan.group != *group));
        if groups.is_empty() {
            return None;
        }
        let missing_owners = groups.values().flatten().collect::<BTreeSet<_>>().len();
        let (asked, most) = create.population.unwrap_or((1, u32::MAX));
        let any = planned(&Create { population: Some((1, most)), ..create.clone() }, catalog);
        let missing = |(group, owners): (Vec<(String, String)>, BTreeSet<&str>)| MissingGroup {
            group: name(&group),
            owners: owners.len(),
            needed: needed((asked, any.as_ref()), owners.len()),
        };
        let missing = groups.into_iter().map(missing).collect();
        let help = match create.group_by.len() {
            1 => "leave out GROUP BY, or bring data of more owners",
            _ => {
                "group by fewer facts, so that groups have more owners, or bring data of more owners"
            }
        };
        Some(MissingGroups { groups: all, owners, missing, help, missing_owners })
    }

    /// What to ask for instead.
    #[must_use]
    pub fn help(&self) -> &'static str {
        self.help
    }
}

/// Lists the first, with their owners and what they lack.
impl fmt::Display for MissingGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingGroups { groups, owners, missing, missing_owners, .. } = self;
        write!(
            f,
            "{} of {groups} groups, with {missing_owners} of {owners} owners, have no result:",
            missing.len()
        )?;
        for MissingGroup { group, owners, needed } in missing.iter().take(LISTED) {
            write!(f, "\n    `{group}`: {}, {needed}", counted(*owners as u64, "owner"))?;
        }
        match missing.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\n    … and {more} more"),
        }
    }
}

/// A group as people read it: `region=north, tariff=G1`.
#[must_use]
pub fn name(group: &[(String, String)]) -> String {
    let facts: Vec<String> = group.iter().map(|(fact, value)| format!("{fact}={value}")).collect();
    // A terminal would obey what a value holds besides text.
    facts.join(", ").replace(char::is_control, "\u{fffd}")
}

/// What keeps a group of so many owners from a result: the minimum of policies, as a plan without the
/// query's own minimum has it, or that minimum.
fn needed((asked, any): (u32, Option<&PlannedQuery>), owners: usize) -> String {
    let reasons = || any.iter().flat_map(|planned| &planned.excluded).map(|own| &own.reason);
    let too_few = |exactly: bool| {
        reasons().find_map(|reason| match reason {
            ExclusionError::TooFew { needed, present, counted, .. }
                if !exactly || *present as usize == owners =>
            {
                Some((*needed, (exactly && counted < present).then_some(*counted)))
            }
            _ => None,
        })
    };
    let of_query = asked as usize > owners;
    // Owners who allow nothing are not counted, so the reason may be one of fewer.
    let policies = too_few(true).or_else(|| if of_query { None } else { too_few(false) });
    match policies {
        Some((needed, Some(counted))) => format!(
            "who count as {counted} because some controllers may collude; policies ask for {needed}"
        ),
        Some((needed, None)) if asked > needed => {
            format!("policies ask for {needed}, the query for {asked}")
        }
        Some((needed, None)) => format!("policies ask for {needed}"),
        None if of_query => format!("the query asks for {asked}"),
        None => "who do not take part".to_owned(),
    }
}
