//! Which windows of a recording have no result, why, and windows of which length would have one.

use super::Args;
use super::edges;
use super::groups::{self, MissingGroups};
use super::inputs::{Inputs, QueryFile};
use super::larger::{Larger, larger};
use super::margins;
use crate::assumed_owners::{AssumedOwners, consumer};
use alpheus_input::rows::RecordedStream;
use alpheus_node::local_time::local_time;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::ids::StreamId;
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::query::Create;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::results::{BUDGETS_SPENT, Row, has_opened};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::Path;

/// Windows that are listed.
const LISTED: usize = 8;
/// Lengths that are offered, in seconds and as a query says them.
const LENGTHS: [(u64, &str); 20] = [
    (1, "1 SECOND"),
    (2, "2 SECONDS"),
    (5, "5 SECONDS"),
    (10, "10 SECONDS"),
    (30, "30 SECONDS"),
    (60, "1 MINUTE"),
    (120, "2 MINUTES"),
    (300, "5 MINUTES"),
    (600, "10 MINUTES"),
    (900, "15 MINUTES"),
    (1800, "30 MINUTES"),
    (3600, "1 HOUR"),
    (7200, "2 HOURS"),
    (10_800, "3 HOURS"),
    (21_600, "6 HOURS"),
    (43_200, "12 HOURS"),
    (86_400, "1 DAY"),
    (172_800, "2 DAYS"),
    (604_800, "1 WEEK"),
    (2_419_200, "4 WEEKS"),
];

/// A window's start, and its group.
pub type WindowOfGroup = (u64, Vec<(String, String)>);

/// Who takes part in a plan, and when they have data.
pub struct Audience {
    group: Vec<(String, String)>,
    /// The plan's minimum population.
    least: u32,
    window: Span,
    /// How many controllers may collude with the service.
    tolerated: usize,
    /// The position of each owner's controller, and the windows in which the owner has data, by
    /// their starts.
    owners: Vec<(u32, BTreeSet<u64>)>,
}

impl Audience {
    /// Those of a planned query's plans, which were made over these streams in this order as
    /// [`AssumedOwners::recorded`] has them.
    pub fn of(planned: &PlannedQuery, streams: &[&RecordedStream]) -> Vec<Audience> {
        let places: HashMap<StreamId, usize> =
            (0..streams.len()).map(|at| (AssumedOwners::stream(at), at)).collect();
        let of_plan = |plan: &alpheus_policy::plan::Plan| {
            let mut owners: BTreeMap<&str, (u32, BTreeSet<u64>)> = BTreeMap::new();
            for planned in &plan.streams {
                let place = places.get(&planned.stream);
                let Some(stream) = place.and_then(|at| streams.get(*at)) else { continue };
                let (controller, own) = owners.entry(&stream.owner).or_default();
                *controller = planned.controller;
                own.extend(stream.events().map(|event| event.time.floor(plan.window).0));
            }
            Audience {
                group: plan.group.clone(),
                least: plan.population.min,
                window: plan.window,
                tolerated: plan.tolerated() as usize,
                owners: owners.into_values().collect(),
            }
        };
        planned.plans.iter().map(of_plan).collect()
    }

    /// The number of owners with data in each window that has any, by the window's start.
    #[must_use]
    pub fn present(&self) -> BTreeMap<u64, u32> {
        self.present_in(self.window)
    }

    /// The same in windows of another length, a multiple.
    fn present_in(&self, window: Span) -> BTreeMap<u64, u32> {
        let mut present = BTreeMap::new();
        for (_, owner) in &self.owners {
            let starts: BTreeSet<u64> =
                owner.iter().map(|start| Timestamp(*start).floor(window).0).collect();
            starts.into_iter().for_each(|start| *present.entry(start).or_default() += 1);
        }
        present
    }

    /// In how many windows controllers would count enough owners: each counts those of as many
    /// controllers as may collude, and have the most, for nothing.
    #[must_use]
    pub fn openable(&self) -> usize {
        let mut present: BTreeMap<u64, BTreeMap<u32, u32>> = BTreeMap::new();
        for (controller, owner) in &self.owners {
            for start in owner {
                *present.entry(*start).or_default().entry(*controller).or_default() += 1;
            }
        }
        let counted = |window: BTreeMap<u32, u32>| {
            let mut sizes: Vec<u32> = window.into_values().collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            sizes.iter().skip(self.tolerated).sum::<u32>()
        };
        present.into_values().map(counted).filter(|many| *many >= self.least).count()
    }

    /// Its group.
    #[must_use]
    pub fn group(&self) -> &[(String, String)] {
        &self.group
    }
}

/// A length of windows, and how many of how many windows would have a result.
pub struct Longer {
    text: &'static str,
    open: usize,
    of: usize,
    least: u32,
}

impl Longer {
    /// How many of a hundred windows have data of enough owners.
    pub(super) fn percent(&self) -> usize {
        (self.open * 100).checked_div(self.of).unwrap_or(0)
    }
}

impl std::fmt::Display for Longer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Longer { text, open, of, least } = self;
        write!(
            f,
            "ask for longer windows: with `SIZE {text}`, {least} owners or more have data in {open} of {of} windows"
        )
    }
}

/// The shortest windows that are longer than those of the query, that policies allow, and of which
/// nine in ten have data of enough owners; else those of which the most have, if half have. None if
/// no more than of the query's own have: then owners are not what its windows lack.
#[must_use]
pub fn longer(create: &Create, catalog: &Catalog, streams: &[&RecordedStream]) -> Option<Longer> {
    if create.cumulating.is_some() {
        return None;
    }
    let audiences = Audience::of(&planned(create, catalog)?, streams);
    let of_length = |window: Span, text| {
        let present = |own: &Audience| {
            let all = own.present_in(window).into_values();
            all.map(|many| many >= own.least).collect::<Vec<_>>()
        };
        let present: Vec<bool> = audiences.iter().flat_map(present).collect();
        let least = audiences.iter().map(|own| own.least).max().unwrap_or(1);
        let open = present.iter().filter(|is_open| **is_open).count();
        Longer { text, open, of: present.len(), least }
    };
    let own = of_length(create.window, "").percent();
    let mut best: Option<Longer> = None;
    for (seconds, text) in LENGTHS {
        let window = Span::seconds(seconds);
        if window <= create.window || !window.0.is_multiple_of(create.window.0) {
            continue;
        }
        let found = of_length(window, text);
        let asked = Create { window, ..create.clone() };
        if best.as_ref().map_or(50.max(own + 1), |best| best.percent() + 1) > found.percent()
            || planned(&asked, catalog).is_none()
        {
            continue;
        }
        let is_enough = found.percent() >= 90;
        best = Some(found);
        if is_enough {
            break;
        }
    }
    best
}

pub(super) fn planned(create: &Create, catalog: &Catalog) -> Option<PlannedQuery> {
    // A plan that runs gets a fresh nonce. This one never runs.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    plan_query(create, catalog, asking, &mut rng).ok()
}

/// What is shown of the windows of each query.
pub(super) struct WindowReport {
    queries: Vec<OfQuery>,
    /// Rows that were refused, if results have margins of noise.
    refused: u64,
}

struct OfQuery {
    name: String,
    missing: Option<MissingGroups>,
    windows: usize,
    /// Windows without a result: start, end, their group, and why.
    closed: Vec<(u64, u64, String, String)>,
    larger: Option<Larger>,
    longer: Option<Longer>,
    /// Whether some have none because budgets are spent.
    is_spent: bool,
    /// Columns that are mostly noise.
    noisy: Vec<String>,
    /// That the recording covers a part of the first or the last window.
    covered: Option<String>,
}

/// What makes budgets last longer.
const LAST_LONGER: &str = "budgets last longer with a smaller epsilon, with longer (so fewer) windows, or with options that have a larger budget";

impl WindowReport {
    /// Of these rows, and of so many rows of the recording that were refused.
    pub(super) fn of(inputs: &Inputs, rows: &[Row], refused: u64, args: &Args) -> WindowReport {
        let streams: Vec<&RecordedStream> = inputs.recording.streams.iter().collect();
        let owners = AssumedOwners::recorded(streams.iter().copied(), args.controllers.0);
        let catalog = owners.catalog(Path::new(""), inputs.schema.clone(), &inputs.policies);
        let catalog = catalog.unwrap_or_default();
        let of = |query: &QueryFile| of_query(query, rows, &catalog, &streams);
        let queries = inputs.queries.iter().map(of).collect();
        let is_noisy = rows.iter().any(|row| row.noise.is_some());
        WindowReport { queries, refused: if is_noisy { refused } else { 0 } }
    }

    /// Prints what has no result, why, and what to ask for instead.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.queries.iter().try_for_each(|query| query.write(out))?;
        margins::not_covered(self.refused).iter().try_for_each(|what| writeln!(out, "{what}"))
    }

    /// What to ask for instead, if that is known.
    pub(super) fn remedy(&self) -> Option<String> {
        let larger = self.queries.iter().find_map(|query| query.larger.as_ref());
        let longer = self.queries.iter().find_map(|query| query.longer.as_ref());
        let longer = longer.map(ToString::to_string);
        match larger {
            Some(larger) if larger.opens_more() || longer.is_none() => Some(larger.to_string()),
            _ => longer,
        }
    }
}

impl OfQuery {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let OfQuery { name, missing, larger, longer, is_spent, noisy, covered, .. } = self;
        if let Some(missing) = missing {
            writeln!(out, "{name}: {missing}\nhelp: {}", missing.help())?;
        }
        self.write_closed(out)?;
        larger.iter().try_for_each(|larger| writeln!(out, "help: {larger}"))?;
        longer.iter().try_for_each(|longer| writeln!(out, "help: {longer}"))?;
        if *is_spent {
            writeln!(out, "help: {LAST_LONGER}")?;
        }
        noisy.iter().chain(covered).try_for_each(|what| writeln!(out, "{name}: {what}"))
    }

    fn write_closed(&self, out: &mut impl Write) -> io::Result<()> {
        let OfQuery { name, windows, closed, .. } = self;
        if closed.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "{name}: {} of {windows} windows have no result; times in this machine's zone:",
            closed.len()
        )?;
        for (start, end, group, why) in closed.iter().take(LISTED) {
            let group = if group.is_empty() { String::new() } else { format!(", `{group}`") };
            writeln!(out, "    {} to {}{group}: {why}", local_time(*start), local_time(*end))?;
        }
        match closed.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => {
                writeln!(out, "    … and {more} more; the column `status` of the results says why")
            }
        }
    }
}

fn of_query(
    query: &QueryFile,
    rows: &[Row],
    catalog: &Catalog,
    streams: &[&RecordedStream],
) -> OfQuery {
    let create = &query.create;
    let own: Vec<&Row> = rows.iter().filter(|row| row.query == create.name.text).collect();
    let is_closed =
        |row: &&Row| !has_opened(&row.status) || (row.population == 0 && row.windows.is_none());
    let (name, windows) = (create.name.text.clone(), own.len());
    // How few have data is not said, as it is not in the results: what is printed may be shown to others.
    let why = |row: &Row| match row.status.as_str() {
        status if has_opened(status) => "nobody who takes part has data".to_owned(),
        status => status.to_owned(),
    };
    let line = |row: &Row| (row.window_start, row.window_end, groups::name(&row.group), why(row));
    let closed = own.iter().copied().filter(is_closed).map(line);
    let mut closed: Vec<(u64, u64, String, String)> = closed.collect();
    closed.sort();
    let mostly = closed.len() * 2 > windows;
    let is_lacking = !closed.is_empty() || !create.group_by.is_empty();
    let known = is_lacking.then(|| planned(create, catalog)).flatten();
    let asked = (create, catalog);
    let missing = known.as_ref().and_then(|known| MissingGroups::of(asked, known, streams));
    let known = known.as_ref().filter(|_| !closed.is_empty());
    let larger = known.and_then(|known| larger(asked, known, streams));
    let longer = if mostly { longer(create, catalog, streams) } else { None };
    let is_spent = closed.iter().any(|(.., why)| why.contains(BUDGETS_SPENT));
    let noisy = margins::mostly_noise(create, &own);
    let covered = edges::partly_covered(create, &own, streams);
    OfQuery { name, missing, windows, closed, larger, longer, is_spent, noisy, covered }
}
