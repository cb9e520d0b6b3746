//! The demo's owners and what they record: generated, or from a file.

use super::Args;
use crate::generate::generate;
use crate::generate::profile::Profile;
use alpheus_input::files::unpacked;
use alpheus_input::rows::{Recording, read};
use alpheus_input::source::Source;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::{Frames, Schema};
use std::fs::File;
use std::path::Path;

const SEED: u64 = 1;

/// Owners, their recordings, and the service's queries.
pub(super) struct World {
    /// The schema.
    pub schema: Schema,
    /// The owners' choices.
    pub policies: Policies,
    /// What their devices record.
    pub recording: Recording,
    /// A query that the policies allow.
    pub allowed: Question,
    /// A query that they do not allow.
    pub forbidden: Question,
    /// A query whose rows the controllers sign.
    pub signed: Question,
}

/// A query and its text.
pub(super) struct Question {
    /// As typed.
    pub text: String,
    /// As parsed.
    pub create: Create,
}

/// The files that make a world.
struct Files {
    schema: &'static str,
    source: &'static str,
    policies: &'static str,
    forbidden: &'static str,
    /// The name of the speed.
    speed: &'static str,
}

const MADE_UP: Files = Files {
    schema: include_str!("../../../../examples/fitness/schema.yaml"),
    source: include_str!("../../../../examples/fitness/source.yaml"),
    policies: include_str!("../../../../examples/fitness/policies.yaml"),
    forbidden: include_str!("../../../../examples/fitness/queries/forbidden.sql"),
    speed: "speed",
};
const PROFILE: &str = include_str!("../../../../examples/fitness/profile.yaml");

const RECORDED: Files = Files {
    schema: include_str!("../../../../examples/real/fitness/schema.yaml"),
    source: include_str!("../../../../examples/real/fitness/source.yaml"),
    policies: include_str!("../../../../examples/real/fitness/policies.min10.yaml"),
    forbidden: "-- Refused: this query is about one person at a time.
CREATE STREAM OnePerson AS
SELECT AVG(speed_mps)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM Fitness BETWEEN 1 AND 1;
",
    speed: "speed_mps",
};

impl World {
    /// Generates a world, or reads it.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub(super) fn load(args: &Args) -> Result<World, Failure> {
        let files = if args.input.is_some() { &RECORDED } else { &MADE_UP };
        let mut schema = Schema::from_yaml(files.schema).blame(Category::Input)?;
        // Signed rows begin at an anchor, and the demo is shorter than an hour.
        schema.frames = Frames::Ticks { anchor: schema.tick };
        let source = Source::parse(files.source, &schema).blame(Category::Input)?;
        let mut recording = match &args.input {
            Some(path) => recorded(path, &source, &schema)?,
            None => made_up(args.owners, &source, &schema)?,
        };
        recording.streams.truncate(usize::try_from(args.owners).unwrap_or(usize::MAX));
        Ok(World {
            policies: Policies::from_yaml(files.policies, &schema).blame(Category::Input)?,
            allowed: question(&format!(
                "CREATE STREAM HeartRate AS
SELECT COUNT(heart_rate), AVG(heart_rate), VAR(heart_rate), HISTOGRAM(heart_rate, 0, 20, 10)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM {} BETWEEN 10 AND 1000;
",
                schema.name
            ))?,
            forbidden: question(files.forbidden)?,
            signed: question(&format!(
                "CREATE STREAM Speed AS
SELECT AVG({})
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM {} BETWEEN 10 AND 1000
WITH (integrity = 'verified', alpha = '1/3');
",
                files.speed, schema.name
            ))?,
            schema,
            recording,
        })
    }

    /// Position of the attribute that the allowed query asks for.
    pub(super) fn attribute(&self) -> usize {
        let named = |name: &str| name == "heart_rate";
        self.schema.attributes.iter().position(|a| named(&a.name)).unwrap_or(0)
    }
}

fn recorded(path: &Path, source: &Source, schema: &Schema) -> Result<Recording, Failure> {
    let file = File::open(path).blame_io(path)?;
    read(unpacked(path, file), source, schema, schema.tick).blame_input(path)
}

fn made_up(owners: u32, source: &Source, schema: &Schema) -> Result<Recording, Failure> {
    let mut profile = Profile::parse(PROFILE, schema).blame(Category::Input)?;
    profile.streams = owners;
    let mut csv = Vec::new();
    generate(schema, &profile, SEED, &mut csv).blame(Category::Io)?;
    read(csv.as_slice(), source, schema, schema.tick).blame(Category::Input)
}

fn question(text: &str) -> Result<Question, Failure> {
    match parse(text) {
        Ok(Statement::Create(create)) => Ok(Question { text: text.to_owned(), create }),
        Ok(_) => {
            Err(Failure::new(Category::Input, "the demo's query is not a CREATE STREAM statement"))
        }
        Err(error) => Err(Failure::new(Category::Input, error.render(text))),
    }
}
