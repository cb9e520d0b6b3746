//! The paper's applications, and the values of their events.

use super::EVENTS;
use crate::BenchError;
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_input::rows::Cell;
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Create, IntegrityChoice, Statement, parse};
use alpheus_policy::schema::{AttributeKind, Frames, Schema};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use std::fmt;

/// Start of the first window: the start of an hour.
pub(super) const START: Timestamp = Timestamp(1_699_999_200_000_000);
/// Length of a window, unless an [`Application`] has another, and the tick.
pub(super) const WINDOW: Span = Span::seconds(10);
/// The number of different events, used in turn.
const POOL: usize = 64;

/// The words that a run releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The application's query.
    Query,
    /// Every word of the layout, each in its own row.
    AllWords,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Release::Query => "its query",
            Release::AllWords => "all words",
        })
    }
}

/// All names.
pub(in super::super) const APPLICATIONS: [&str; 3] =
    ["fitness", "web-analytics", "car-maintenance"];

/// One application.
pub(super) struct Application {
    pub(super) name: String,
    /// One of [`APPLICATIONS`].
    key: String,
    pub(super) schema: Schema,
    pub(super) layout: Layout,
    pub(super) encoder: Encoder,
    pub(super) query: Create,
    pub(super) policies: Policies,
    /// Whether costly set-ups are measured for this application only.
    pub(super) stands_for_all: bool,
    /// Length of a window.
    pub(super) window: Span,
    /// Events of a stream in a window.
    pub(super) steps: u32,
    events: Vec<Vec<Cell>>,
}

/// Schema, policies and query of the examples.
macro_rules! example {
    ($folder:literal, $query:literal) => {
        [
            include_str!(concat!("../../../examples/", $folder, "/schema.yaml")),
            include_str!(concat!("../../../examples/", $folder, "/queries/", $query)),
        ]
    };
}

/// The schema and the query of one of [`APPLICATIONS`].
fn files(name: &str) -> Result<[&'static str; 2], BenchError> {
    Ok(match name {
        "fitness" => example!("fitness", "heart-rate.sql"),
        "web-analytics" => example!("web-analytics", "flows.sql"),
        "car-maintenance" => example!("car-maintenance", "fleet.sql"),
        _ => return Err(BenchError::Schema),
    })
}

impl Application {
    /// Fitness, web analytics and car maintenance.
    pub(super) fn all() -> Result<Vec<Application>, BenchError> {
        APPLICATIONS.into_iter().map(|name| Application::of(name, None)).collect()
    }

    /// One of [`APPLICATIONS`], over its own schema or a wider one, with a frame for each event.
    pub(super) fn of(name: &str, wider: Option<&Schema>) -> Result<Application, BenchError> {
        let [schema, query] = files(name)?;
        let own = || Schema::from_yaml(schema).map_err(|_| BenchError::Schema);
        let schema = wider.cloned().map_or_else(own, Ok)?;
        Application::new(name, Schema { frames: Frames::Events, ..schema }, query)
    }

    fn new(name: &str, schema: Schema, query: &str) -> Result<Application, BenchError> {
        let layout = Layout::of(&schema).map_err(|_| BenchError::Schema)?;
        let Ok(Statement::Create(query)) = parse(query) else { return Err(BenchError::Query) };
        let policies = format!(
            "schema: {}\nservice: bench\ndefault:\n  \"*\": {{ option: {}, clients: small, window: 10s }}\n",
            schema.name,
            if name == "car-maintenance" { "fleet" } else { "aggr" },
        );
        let policies = Policies::from_yaml(&policies, &schema).map_err(|_| BenchError::Schema)?;
        let mut rng = ChaCha12Rng::from_seed([5; 32]);
        Ok(Application {
            name: format!("{name} ({} words)", layout.words - 1),
            key: name.to_owned(),
            encoder: Encoder::new(&schema, &layout).map_err(|_| BenchError::Schema)?,
            events: (0..POOL).map(|_| event(&schema, &mut rng)).collect(),
            stands_for_all: name == "fitness",
            window: WINDOW,
            steps: EVENTS,
            schema,
            layout,
            query,
            policies,
        })
    }

    /// The same with one frame a tick.
    pub(super) fn with_ticks(&self) -> Result<Application, BenchError> {
        let frames = Frames::Ticks { anchor: Span::seconds(3600) };
        let [_, query] = files(&self.key)?;
        Application::new(&self.key, Schema { frames, ..self.schema.clone() }, query)
    }

    /// The same with one frame a tick, and windows of so many ticks with so many events each.
    pub(super) fn in_windows_of(&self, ticks: u32, events: u32) -> Result<Application, BenchError> {
        let mut own = self.with_ticks()?;
        own.window = Span(WINDOW.0 * u64::from(ticks));
        (own.query.window, own.steps) = (own.window, ticks * events);
        Ok(own)
    }

    /// The same, and the query asks for verified rows. [`START`] is an anchor, where such plans begin.
    pub(super) fn verified(mut self) -> Application {
        self.query.settings.integrity = Some(IntegrityChoice::Verified);
        self
    }

    /// The values of a device's event: the same in every job.
    pub(super) fn event(&self, device: usize, number: usize) -> &[Cell] {
        &self.events[(device * 7 + number * 13) % POOL]
    }
}

/// All values present; numbers mostly within the bins of histograms.
fn event(schema: &Schema, rng: &mut ChaCha12Rng) -> Vec<Cell> {
    let mut value = |kind: &AttributeKind| match *kind {
        AttributeKind::Number { min, max, .. } => {
            let low = min.max(0);
            let range = (max.abs_diff(low) / 16).max(max.abs_diff(low).min(60));
            Cell::Number(low.saturating_add_unsigned(rng.next_u64() % range.max(1)))
        }
        AttributeKind::Boolean => Cell::Boolean(rng.next_u32() & 1 == 1),
        AttributeKind::Text { .. } => Cell::Text("text".into()),
    };
    schema.attributes.iter().map(|attribute| value(&attribute.kind)).collect()
}
