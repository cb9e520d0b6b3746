//! The files of a deployment: those of a folder, or the example that is built in.

use super::Args;
use crate::folder::Folder;
use crate::generate::generate;
use crate::generate::profile::Profile;
use alpheus_input::rows::RecordedStream;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::role::{Name, Role};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::planner::{PlannedQuery, PlanningError};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::Create;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded_deployment::Controllers;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_streams::policy_refusal::failure;
use alpheus_streams::replay::groups::MissingGroups;
use alpheus_streams::replay::inputs as replay;
use alpheus_streams::replay::windows::{Audience, Longer, longer};
use alpheus_time::{Span, Timestamp};
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The limit on owners: each of their devices is a process.
pub(super) const MAX_OWNERS: u32 = 1000;
/// The most owners by default, unless the query needs more.
const USUAL_OWNERS: usize = 100;
/// Owners beyond the query's least, so that one that is away closes no window.
const SPARE_OWNERS: usize = 2;
/// A window takes about so many seconds of real time.
const SECONDS_A_WINDOW: u64 = 5;
/// Controllers, unless they are counted or too many for the query.
const USUAL_CONTROLLERS: u32 = 3;

const SCHEMA: &str = include_str!("../../../../examples/household/schema.yaml");
const SOURCE: &str = include_str!("../../../../examples/household/source.yaml");
const POLICIES: &str = include_str!("../../../../examples/household/policies.yaml");
const QUERY: &str = include_str!("../../../../examples/household/street.sql");
const PROFILE: &str = include_str!("../../../../examples/household/profile.yaml");

/// The files of a replay, as its command line names them.
#[derive(clap::Parser)]
struct ReplayLine {
    #[command(flatten)]
    files: alpheus_streams::replay::Args,
}

/// A stream of the recording and its device.
pub(super) struct DeviceStream {
    pub(super) recorded: RecordedStream,
    /// Which owner it has.
    pub(super) owner: usize,
}

/// The files, read.
pub(super) struct Inputs {
    pub(super) schema_file: PathBuf,
    pub(super) policies_file: PathBuf,
    pub(super) schema: Schema,
    pub(super) create: Create,
    /// The query's text, with the time for which windows wait, and where it came from.
    pub(super) query: (String, String),
    /// Names of the owners, as their certificates have them.
    pub(super) owners: Vec<String>,
    pub(super) streams: Vec<DeviceStream>,
    /// Number of controllers, and why there are no more.
    pub(super) controllers: (u32, Option<String>),
    /// What one controller would be better for, if more were asked for.
    pub(super) hint: Option<String>,
    /// Who takes part, and when they have data.
    pub(super) audiences: Vec<Audience>,
    /// If the query says how exact results have to be: the error of each column, in words.
    accuracy: Vec<String>,
    /// Groups that are too small for a result.
    missing: Option<MissingGroups>,
    /// What owners choose.
    policies: Policies,
    /// Owners of the whole recording.
    recorded: usize,
}

impl Inputs {
    /// Reads the folder's files, or writes the example into the state folder and reads that.
    pub(super) fn read(args: &Args, state: &Path) -> Result<Self, Failure> {
        let (folder, files) = files(args, state)?;
        let replay::Inputs { policies, queries, recording, .. } = replay::Inputs::read(&files)?;
        let asked = queries.into_iter().next().ok_or("there is no query").blame(Category::Input)?;
        let schema = alpheus_input::files::read_schema(&folder.schema)?;
        let (owners, streams, recorded) =
            choose(recording.streams, &asked.create, args.owners, &policies)?;
        // So that a window waits for its slowest device: the clock does, too.
        let grace = asked.create.grace.unwrap_or(Span(0)).max(schema.tick);
        let create = Create { grace: Some(grace), ..asked.create };
        let known: Vec<&RecordedStream> = streams.iter().map(|own| &own.recorded).collect();
        let catalog = |controllers| {
            let owners =
                AssumedOwners::recorded(known.iter().copied(), Controllers::Count(controllers));
            owners.catalog(&folder.schema, schema.clone(), &policies)
        };
        let refused = |refusal: &_| {
            let query = (asked.text.as_str(), asked.place.as_str());
            failure(refusal, query, Some(&folder.policies), Some(&schema))
        };
        let plan = |controllers| planned(&create, &catalog(controllers)?);
        let opens = |planned: &PlannedQuery| {
            let own = Audience::of(planned, &known);
            let all = own.iter().map(|own| own.present().len()).sum();
            (own.iter().map(Audience::openable).sum(), all)
        };
        let many = (args.controllers, owners.len());
        let ControllerChoice { planned, controllers, alone, hint } =
            guarded(many, plan, opens, refused)?;
        let audiences = Audience::of(&planned, &known);
        let missing = MissingGroups::of((&create, &catalog(controllers)?), &planned, &known);
        Ok(Self {
            schema_file: folder.schema,
            policies_file: folder.policies,
            schema,
            query: (create.to_string(), asked.place),
            create,
            owners,
            streams,
            controllers: (controllers, alone),
            hint,
            audiences,
            accuracy: planned.accuracy,
            missing,
            policies,
            recorded,
        })
    }

    /// The windows in which somebody who takes part has data, by their starts.
    pub(super) fn windows(&self) -> BTreeSet<u64> {
        self.audiences.iter().flat_map(|own| own.present().into_keys()).collect()
    }

    /// Longer windows, in which more owners have data. It takes a while: many lengths are planned.
    pub(super) fn longer(&self) -> Option<Longer> {
        let known: Vec<&RecordedStream> = self.streams.iter().map(|own| &own.recorded).collect();
        let owners = AssumedOwners::recorded(known.iter().copied(), Controllers::Count(1));
        let catalog = owners.catalog(&self.schema_file, self.schema.clone(), &self.policies);
        longer(&self.create, &catalog.ok()?, &known)
    }

    /// The first window of the recording.
    pub(super) fn begins(&self) -> Option<Timestamp> {
        let starts = self.streams.iter().filter_map(|device| device.recorded.range());
        starts.map(|range| range.0.floor(self.create.window)).min()
    }

    /// What takes part, what does not, and how exact results are.
    pub(super) fn summary(&self) -> String {
        let mut lines = vec![format!(
            "{} of {} owners of the recording take part, with {} devices; query {} in windows of {}",
            self.owners.len(),
            self.recorded,
            self.streams.len(),
            self.create.name,
            self.create.window,
        )];
        lines.extend(left_out(self.recorded, self.owners.len()));
        lines.extend(self.hint.iter().map(|hint| format!("help: {hint}")));
        lines.extend(self.accuracy.iter().map(|what| format!("{}: {what}", self.create.name)));
        if let Some(missing) = &self.missing {
            lines.push(format!("{}: {missing}", self.create.name));
            lines.push(format!("help: {}", missing.help()));
        }
        lines.join("\n")
    }

    /// How fast the clock goes by default.
    pub(super) fn usual_speed(&self) -> u32 {
        let seconds = self.create.window.0 / 1_000_000;
        u32::try_from((seconds / SECONDS_A_WINDOW).max(1)).unwrap_or(u32::MAX)
    }
}

/// The files to run, as a replay would read them: those of the folder, or of the example, which is
/// written into the state folder.
fn files(args: &Args, state: &Path) -> Result<(Folder, alpheus_streams::replay::Args), Failure> {
    let (folder, input) = match &args.dir {
        None => example(state)?,
        Some(folder) => {
            let folder = Folder::at(folder)?;
            let input = args.input.clone().map_or_else(|| folder.recording(), Ok)?;
            (folder, input)
        }
    };
    let query = args.query.as_ref().unwrap_or(&folder.query);
    let mut line: Vec<OsString> = ["replay", "--output", "-"].map(OsString::from).to_vec();
    for (flag, path) in [
        ("--schema", &folder.schema),
        ("--source", &folder.source),
        ("--input", &input),
        ("--policies", &folder.policies),
        ("--query", query),
    ] {
        line.extend([flag.into(), path.clone().into_os_string()]);
    }
    let ReplayLine { files } = ReplayLine::try_parse_from(line).blame(Category::Usage)?;
    Ok((folder, files))
}

/// A plan that never runs.
fn planned(
    create: &Create,
    catalog: &Catalog,
) -> Result<Result<PlannedQuery, PlanningError>, Failure> {
    let mut rng = entropy::rng()?;
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    Ok(plan_query(create, catalog, asking, &mut rng))
}

/// A plan and who guards the owners.
struct ControllerChoice {
    planned: PlannedQuery,
    controllers: u32,
    /// Why there is one, if that was not asked for.
    alone: Option<String>,
    /// What one would be better for, if more were asked for.
    hint: Option<String>,
}

/// Plans with so many controllers as are wanted. By default it is the usual number, if the query is
/// then answered for as many streams as with one, and in nine of ten windows; else one. `opens`
/// says in how many of how many windows enough owners would count.
fn guarded(
    (wanted, owners): (Option<u32>, usize),
    plan: impl Fn(u32) -> Result<Result<PlannedQuery, PlanningError>, Failure>,
    opens: impl Fn(&PlannedQuery) -> (usize, usize),
    refused: impl Fn(&PlanningError) -> Failure,
) -> Result<ControllerChoice, Failure> {
    let streams =
        |planned: &PlannedQuery| planned.plans.iter().map(|plan| plan.streams.len()).sum::<usize>();
    let one = plan(1)?;
    let many = wanted.unwrap_or(USUAL_CONTROLLERS);
    let usual = |planned| ControllerChoice { planned, controllers: many, alone: None, hint: None };
    let alone = |planned| {
        let alone = Some(alone(many, owners));
        ControllerChoice { planned, controllers: 1, alone, hint: None }
    };
    match (plan(many)?, one) {
        (Ok(planned), Err(_)) => Ok(usual(planned)),
        (Ok(planned), Ok(one)) => {
            let [(open, of), (opened, all)] = [opens(&planned), opens(&one)];
            let fewer = streams(&one) > streams(&planned);
            match wanted {
                None if fewer || opened * 9 > open * 10 => Ok(alone(one)),
                _ if opened > open => {
                    let hint = Some(better_alone(many, (open, of), (opened, all), "windows can open"));
                    Ok(ControllerChoice { hint, ..usual(planned) })
                }
                Some(_) if fewer => {
                    let (own, all) = (streams(&planned), streams(&one));
                    let hint = Some(better_alone(many, (own, all), (all, all), "streams take part"));
                    Ok(ControllerChoice { hint, ..usual(planned) })
                }
                _ => Ok(usual(planned)),
            }
        }
        (Err(_), Ok(one)) if wanted.is_none() => Ok(alone(one)),
        (Err(refusal), Ok(_)) => Err(refused(&refusal).with_help(format!(
            "the query is allowed with one controller (--controllers 1). With several, some may collude with the service, and their owners do not count, so {many} controllers need more than {owners} owners"
        ))),
        (Err(_), Err(refusal)) => Err(refused(&refusal)),
    }
}

/// That one controller does better than so many: how much of how much each has.
fn better_alone(
    many: u32,
    (own, of): (usize, usize),
    (best, all): (usize, usize),
    what: &str,
) -> String {
    format!(
        "with {many} controllers, {own} of {of} {what}; with one (--controllers 1), {best} of {all}. If there are several, some may collude with the service, and their owners do not count"
    )
}

/// Why one controller guards all.
fn alone(many: u32, owners: usize) -> String {
    format!(
        "one guards all {owners} owners: with {many}, some may collude with the service, and too few owners would count"
    )
}

/// The built-in example, as files in the state folder: a recording that begins now.
fn example(state: &Path) -> Result<(Folder, PathBuf), Failure> {
    let folder = state.join("example");
    std::fs::create_dir(&folder).blame_io(&folder)?;
    let files = [
        ("schema.yaml", SCHEMA),
        ("source.yaml", SOURCE),
        ("policies.yaml", POLICIES),
        ("query.sql", QUERY),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).blame_io(&folder)?;
    }
    let schema = Schema::from_yaml(SCHEMA).blame(Category::Input)?;
    let mut profile = Profile::parse(PROFILE, &schema).blame(Category::Input)?;
    profile.start = clock::now().floor(schema.tick).0 / 1_000_000;
    let path = folder.join("recording.csv");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).blame_io(&path)?);
    generate(&schema, &profile, profile.start, &mut file).blame_io(&path)?;
    std::io::Write::flush(&mut file).blame_io(&path)?;
    Ok((Folder::at(&folder)?, path))
}

/// How many owners take part by default, if a recording has so many.
fn usual(least: usize) -> usize {
    USUAL_OWNERS.max(least.saturating_add(SPARE_OWNERS))
}

/// The message about owners who do not take part.
fn left_out(recorded: usize, many: usize) -> Option<String> {
    let left = recorded.checked_sub(many).filter(|left| *left > 0)?;
    let owners = if left == 1 { "owner" } else { "owners" };
    let all = match recorded <= MAX_OWNERS as usize {
        true => format!(": --owners {recorded} takes all, with a process for each device"),
        false => ", which `alpheus replay` makes".to_owned(),
    };
    Some(format!(
        "{left} {owners} with the fewest events left out, so results differ from those of a replay of all{all}"
    ))
}

type OwnerSelection = (Vec<String>, Vec<DeviceStream>, usize);

/// The owners with the most events, and their streams.
fn choose(
    streams: Vec<RecordedStream>,
    create: &Create,
    wanted: Option<u32>,
    policies: &Policies,
) -> Result<OwnerSelection, Failure> {
    let mut events: BTreeMap<&str, usize> = BTreeMap::new();
    for stream in &streams {
        *events.entry(&stream.owner).or_default() += stream.len();
    }
    let (recorded, least) =
        (events.len(), create.population.map_or(1, |(least, _)| least as usize));
    let many = wanted.map_or_else(|| usual(least), |wanted| wanted as usize).min(recorded);
    if many < least {
        let what = format!("the query needs {least} owners, and {many} would take part");
        return Err(Failure::new(Category::Input, what)
            .at(create.name.to_string())
            .with_id(ErrorId::PopulationShort)
            .with_help(format!("the recording has {recorded} owners")));
    }
    let mut ranked: Vec<(usize, String)> =
        events.into_iter().map(|(owner, events)| (events, owner.to_owned())).collect();
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    ranked.truncate(many);
    let place: BTreeMap<String, usize> =
        ranked.iter().enumerate().map(|(index, (_, key))| (key.clone(), index)).collect();
    let streams = streams.into_iter().filter(|stream| !stream.is_empty()).filter_map(|recorded| {
        let owner = *place.get(&recorded.owner)?;
        Some(DeviceStream { recorded, owner })
    });
    let named = policies.named().next().is_some();
    let name =
        |(index, (_, key)): (usize, &(usize, String))| match Name::new(Role::Owner, key.clone()) {
            // Policies name owners as the recording does.
            Ok(name) if named => name.name,
            _ => format!("owner-{}", index + 1),
        };
    Ok((ranked.iter().enumerate().map(name).collect(), streams.collect(), recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_that_are_left_out_are_said() {
        assert_eq!([usual(1), usual(150)], [100, 152]);
        assert_eq!(left_out(24, 24), None);
        let said = left_out(200, 100).unwrap();
        assert!(said.starts_with("100 owners with the fewest events left out"), "{said}");
        assert!(said.contains("--owners 200 takes all"), "{said}");
        let said = left_out(1350, 100).unwrap();
        assert!(said.ends_with("a replay of all, which `alpheus replay` makes"), "{said}");
    }
}
