//! The files of a deployment: those of a folder, or the example that is built in.

use super::Args;
use alpheus_input::rows::RecordedStream;
use alpheus_node::clock;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::role::{Name, Role};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::Create;
use alpheus_policy::schema::Schema;
use alpheus_streams::generate::generate;
use alpheus_streams::generate::profile::Profile;
use alpheus_streams::replay::inputs as replay;
use clap::Parser;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Owners, unless the query needs more.
const USUAL_OWNERS: usize = 24;
/// Owners beyond the query's least, so that one that is away closes no window.
const SPARE_OWNERS: usize = 2;
/// A window takes about so many seconds of real time.
const SECONDS_A_WINDOW: u64 = 5;

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
    /// The query's text and file.
    pub(super) query: (String, PathBuf),
    /// Names of the owners, as their certificates have them.
    pub(super) owners: Vec<String>,
    pub(super) streams: Vec<DeviceStream>,
    /// Owners of the whole recording.
    recorded: usize,
}

impl Inputs {
    /// Reads the folder's files, or writes the example into the state folder and reads that.
    pub(super) fn read(args: &Args, state: &Path) -> Result<Self, Failure> {
        let (folder, input) = match &args.dir {
            None => example(state)?,
            Some(folder) => {
                let folder = std::fs::canonicalize(folder).blame_io(folder)?;
                let input = args.input.clone().map_or_else(|| recording_in(&folder), Ok)?;
                (folder, input)
            }
        };
        let [schema_file, source, policies_file, query] =
            ["schema.yaml", "source.yaml", "policies.yaml", "query.sql"]
                .map(|name| folder.join(name));
        let mut line: Vec<OsString> =
            ["replay", "--output", "results.csv"].map(OsString::from).to_vec();
        let files = [("--schema", &schema_file), ("--source", &source), ("--input", &input)];
        for (flag, path) in
            files.into_iter().chain([("--policies", &policies_file), ("--query", &query)])
        {
            line.extend([flag.into(), path.clone().into_os_string()]);
        }
        let ReplayLine { files } = ReplayLine::try_parse_from(line).blame(Category::Usage)?;
        let replay::Inputs { policies, queries, recording, .. } = replay::Inputs::read(&files)?;
        let asked = queries.into_iter().next().ok_or("there is no query").blame(Category::Input)?;
        let schema = alpheus_input::files::read_schema(&schema_file)?;
        let (owners, streams, recorded) =
            choose(recording.streams, &asked.create, args.owners, &policies)?;
        let query = (asked.text, query);
        Ok(Self {
            schema_file,
            policies_file,
            schema,
            create: asked.create,
            query,
            owners,
            streams,
            recorded,
        })
    }

    /// What takes part.
    pub(super) fn summary(&self) -> String {
        format!(
            "{} of {} owners of the recording take part, with {} devices; query {} in windows of {} s",
            self.owners.len(),
            self.recorded,
            self.streams.len(),
            self.create.name,
            self.create.window.0 / 1_000_000,
        )
    }

    /// How fast the clock goes by default.
    pub(super) fn usual_speed(&self) -> u32 {
        let seconds = self.create.window.0 / 1_000_000;
        u32::try_from((seconds / SECONDS_A_WINDOW).max(1)).unwrap_or(u32::MAX)
    }
}

/// The built-in example, as files in the state folder: a recording that begins now.
fn example(state: &Path) -> Result<(PathBuf, PathBuf), Failure> {
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
    Ok((folder, path))
}

/// The only recording of a folder.
fn recording_in(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).blame_io(folder)?.filter_map(Result::ok);
    let is_recording = |path: &PathBuf| {
        let name = path.to_string_lossy();
        // `alpheus init` writes its first answer there.
        let is_answer = path.ends_with("answer.csv");
        path.is_file() && !is_answer && (name.ends_with(".csv") || name.ends_with(".csv.gz"))
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_recording).collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => Err("the folder holds no recording (.csv or .csv.gz)"),
        (Some(_), false) => Err("the folder holds several recordings"),
    }
    .blame_input(folder)
    .map_err(|failure| failure.with_help("name the recording with --input"))
}

type Chosen = (Vec<String>, Vec<DeviceStream>, usize);

/// The owners with the most events, and their streams.
fn choose(
    streams: Vec<RecordedStream>,
    create: &Create,
    wanted: Option<u32>,
    policies: &Policies,
) -> Result<Chosen, Failure> {
    let mut events: BTreeMap<&str, usize> = BTreeMap::new();
    for stream in &streams {
        *events.entry(&stream.owner).or_default() += stream.len();
    }
    let (recorded, least) =
        (events.len(), create.population.map_or(1, |(least, _)| least as usize));
    let usual = USUAL_OWNERS.max(least.saturating_add(SPARE_OWNERS));
    let many = wanted.map_or(usual, |wanted| wanted as usize).min(recorded);
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
