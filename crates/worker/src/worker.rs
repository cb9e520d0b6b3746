//! `alpheus worker`: takes part in a group until it is asked to stop. After an error it joins again:
//! what was not committed is done again, by itself or by others.

use crate::clock::{ClockError, WorkerClock};
use crate::group::{Group, Names, Work, WorkerError};
use crate::journal;
use crate::lane::Pace;
use crate::meter::Meter;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_node::service::health::{Part, State};
use alpheus_node::service::heartbeat::Heart;
use alpheus_node::service::shutdown::{self, Shutdown};
use alpheus_node::service::{kafka, process};
use alpheus_node::settings::kafka::{KafkaArgs, KafkaSettings};
use alpheus_node::settings::{Part as SettingsPart, Settings, path_flag};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_streams::ingest_keys;
use alpheus_time::Span;
use alpheus_transport::{Batch, Error, Membership, Ownership, Sequence, Store};
use rand_core::Rng;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  alpheus worker --identity pki/service --schema schema.yaml \\
      --kafka-brokers 127.0.0.1:9092 --kafka-prefix fitness.
  alpheus worker --config worker.toml --listen 127.0.0.1:9401

The service runs with `--engine job`. Start at most as many workers as the `events` topic has
partitions. You can stop workers and start others at any time. Run either workers or the Flink job,
not both.

Unless the schema says `frames: events`, the identity folder is the service's, with its ingest key.";

/// How long results wait for others to share their transaction.
const COMMIT: Duration = Duration::from_millis(200);
/// How long it waits for something to do. Records that come end the wait; each look at partitions without
/// any asks the brokers.
const WAIT: Duration = Duration::from_millis(500);
/// How long it waits for the service's topics before it looks again.
const TOPICS: Duration = Duration::from_secs(1);
/// How long it waits for a clock to be set before it asks the brokers again.
const CLOCKS: Duration = Duration::from_secs(5);
/// How long the brokers wait for an undecided transaction before they end it. Until then nobody reads on.
const TRANSACTION_SECONDS: u64 = 15;
/// It gives up after so many failures in a row, each within so long of joining.
const FAILURES: u32 = 20;
const STABLE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Arguments of `alpheus worker`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The service's identity folder, for its ingest keys; not needed with `frames: events`
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The schema of the streams: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// How long windows wait for streams that lag behind the fastest of their partition; streams
    /// further behind are left out [default: 5]
    #[arg(long, value_name = "SECONDS")]
    disorder: Option<u32>,
    /// After this time without a later event, the clock closes a partition's windows [default: 60]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u32>,
    /// How far a device's clock may be ahead; events further ahead become dead letters
    /// [default: 60]
    #[arg(long, value_name = "SECONDS")]
    skew: Option<u32>,
}

/// The table `worker` of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkerSettings {
    /// How far the streams of a partition may be behind the first of them.
    pub disorder_seconds: Option<u32>,
    /// After so long without a later event, the clock closes a partition's windows.
    pub idle_seconds: Option<u32>,
    /// How far a device's clock may be ahead.
    pub skew_seconds: Option<u32>,
}

impl SettingsPart for WorkerSettings {
    const KEY: &'static str = "worker";
}

impl WorkerSettings {
    fn pace(&self) -> Pace {
        let seconds = |set: Option<u32>, usual| Span::seconds(set.map_or(usual, u64::from));
        Pace {
            disorder: seconds(self.disorder_seconds, 5),
            idle: seconds(self.idle_seconds, 60),
            skew: seconds(self.skew_seconds, 60),
        }
    }
}

impl Args {
    fn settings(&self, globals: &Globals) -> Result<Settings, Failure> {
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let mut flags = vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("schema", path_flag(self.schema.as_ref())),
            ("worker.disorder-seconds", number(self.disorder)),
            ("worker.idle-seconds", number(self.idle)),
            ("worker.skew-seconds", number(self.skew)),
        ];
        flags.extend(self.kafka.flags());
        globals.settings(flags)
    }
}

/// A worker, in or out of its group.
struct Worker {
    kafka: KafkaSettings,
    schema: Schema,
    shape: Shape,
    pace: Pace,
    /// With one frame a tick: whose ingest keys open sessions.
    identity: Option<IdentityFolder>,
    instance: String,
    meter: Meter,
    heart: Heart,
    part: Part,
    stop: Shutdown,
}

/// Runs the command until it is asked to stop.
///
/// # Errors
/// A setting is missing or wrong, or the cluster cannot be used for long.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.settings(globals)?;
    let schema = alpheus_streams::settings::schema(&settings)?;
    let mut kafka = Settings::needed(&settings.kafka, "kafka.brokers")?;
    kafka.timeout_seconds.get_or_insert(TRANSACTION_SECONDS);
    let own = settings.part::<WorkerSettings>()?;
    let layout = Layout::of(&schema).blame(Category::Input)?;
    let identity = if schema.frames.is_events() {
        None
    } else {
        let folder = Settings::needed(&settings.identity, "identity")?;
        Some(IdentityFolder::open(&folder, Role::Server)?)
    };
    let mut name = [0; 8];
    entropy::rng()?.fill_bytes(&mut name);
    let worker = Worker {
        kafka,
        // The lanes know the skew.
        shape: Shape::of(&schema, &layout, Span(0)),
        schema,
        pace: own.pace(),
        identity,
        instance: name.iter().map(|byte| format!("{byte:02x}")).collect(),
        meter: Meter::default(),
        heart: Heart::watched(&globals.health, "worker"),
        part: globals.health.part("group"),
        stop: shutdown::on_signal().blame(Category::Io)?,
    };
    worker.meter.register(&globals.metrics);
    globals.metrics.watch_health(&globals.health);
    process::register(&globals.metrics);
    worker.run()
}

impl Worker {
    fn run(&self) -> Result<(), Failure> {
        let (mut failures, mut joined) = (0, false);
        let mut backoff = Backoff::new(RetryPolicy::doubling(PAUSE, MAX_PAUSE));
        loop {
            let begun = Instant::now();
            let ended = self.attend(&mut joined);
            let Err(error) = ended else { return Ok(()) };
            let is_last = self.stop.is_stopping();
            if is_last
                && matches!(error, StoppedError::Worker(WorkerError::Store(Error::NotInGroup)))
            {
                // What was not committed is done by others already.
                tracing::warn!(%error, "ends");
                return Ok(());
            }
            self.part.set(State::Failed);
            if begun.elapsed() > STABLE {
                failures = 0;
                backoff.reset();
            }
            failures += 1;
            let is_first = !joined
                && matches!(
                    error,
                    StoppedError::Failure(_) | StoppedError::Worker(WorkerError::Join(_))
                );
            if is_first || failures >= FAILURES || is_last {
                return Err(error.into());
            }
            tracing::warn!(%error, "joins the group again");
            let until = Instant::now() + backoff.pause();
            while Instant::now() < until && !self.stop.is_stopping() {
                self.heart.beat();
                std::thread::sleep(COMMIT);
            }
        }
    }

    /// Takes part in the group until it is asked to stop, or something fails.
    fn attend(&self, joined: &mut bool) -> Result<(), StoppedError> {
        let names = Names::new(0)?;
        let (store, member) =
            kafka::join(&self.kafka, &names.group, &self.instance).map_err(WorkerError::from)?;
        *joined = true;
        let Some(partitions) = self.wait_for_topics(store.as_ref(), &names)? else { return Ok(()) };
        let names = Names::new(partitions)?;
        store.ensure_stamped_topic(&names.journals, partitions).map_err(WorkerError::from)?;
        store.ensure_topic(&names.parts, partitions).map_err(WorkerError::from)?;
        let Some(clock) = self.agree_on_time((store.as_ref(), member.as_ref()), &names)? else {
            return Ok(());
        };
        let ingest = self.identity.as_ref();
        let ingest =
            ingest.map(|folder| ingest_keys::server_check(folder, &self.schema)).transpose()?;
        let (pace, shape) = (self.pace, self.shape);
        let work = Work { names: names.clone(), shape, pace, commit: COMMIT };
        let counted = (self.meter.clone(), self.heart.clone());
        let group = Group::open(store.clone(), work, ingest, counted)?;
        member.subscribe(&group.shared()).map_err(WorkerError::from)?;
        self.meter.joined.inc();
        self.part.set(State::Ready);
        note!("taking part in the group");
        Ok(self.work(&store, member.as_ref(), (group, clock), &names)?)
    }

    /// Waits until the service has made its topics. How many partitions that of events has; none if the
    /// process is asked to stop.
    fn wait_for_topics(
        &self,
        store: &dyn Store,
        names: &Names,
    ) -> Result<Option<u32>, WorkerError> {
        let job = &names.topics.job;
        let needed = [&job.instructions, &job.tokens, &job.summaries, &job.sums, &job.dead_letters];
        let mut said = false;
        while !self.stop.is_stopping() {
            self.heart.beat();
            let mut missing = None;
            for topic in needed {
                if store.partitions(topic)?.is_none() {
                    missing = Some(topic);
                }
            }
            match (missing, store.partitions(&names.topics.events)?) {
                // If partitions were added since, the journals say how many count.
                (None, Some(events)) => {
                    return Ok(Some(store.partitions(&names.journals)?.unwrap_or(events)));
                }
                (missing, _) => {
                    if !std::mem::replace(&mut said, true) {
                        let topic = missing.unwrap_or(&names.topics.events);
                        tracing::warn!(%topic, "waits for the service to make its topics");
                    }
                    std::thread::sleep(TOPICS);
                }
            }
        }
        Ok(None)
    }

    /// Waits until the machine's clock and the brokers' are near. None if the process is asked to stop.
    fn agree_on_time(
        &self,
        (store, member): (&dyn Store, &dyn Membership),
        names: &Names,
    ) -> Result<Option<WorkerClock>, WorkerError> {
        let (mut clock, mut said) = (WorkerClock::new(self.pace.skew), None);
        while !self.stop.is_stopping() {
            self.heart.beat();
            let asked = said.is_some_and(|at: Instant| at.elapsed() < CLOCKS);
            if !asked {
                ask_the_time((store, member), names, &mut clock)?;
                match clock.read(clock::now(), Instant::now()) {
                    Ok(_) => return Ok(Some(clock)),
                    Err(ClockError::Unknown) => return Err(ClockError::Unknown.into()),
                    Err(error) => {
                        self.part.set(State::Failed);
                        if said.replace(Instant::now()).is_none() {
                            tracing::error!(%error, "waits outside of the group");
                        }
                    }
                }
            }
            std::thread::sleep(COMMIT);
        }
        Ok(None)
    }

    fn work(
        &self,
        store: &Arc<dyn Store>,
        member: &dyn Membership,
        (mut group, mut clock): (Group, WorkerClock),
        names: &Names,
    ) -> Result<(), WorkerError> {
        let mut seen = Sequence::default();
        while !self.stop.is_stopping() {
            let mut failed = None;
            member.changes(&mut |change: Ownership| {
                if failed.is_none() {
                    failed = group.change(change).err();
                }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            clock.hear(member.time());
            if clock.is_to_ask(Instant::now()) {
                ask_the_time((store.as_ref(), member), names, &mut clock)?;
            }
            if !group.turn(clock.read(clock::now(), Instant::now())?)? {
                seen = store.wait(seen, if group.has_results() { COMMIT } else { WAIT })?;
            }
        }
        group.end()
    }
}

/// The brokers say their time with a record that they take.
fn ask_the_time(
    (store, member): (&dyn Store, &dyn Membership),
    names: &Names,
    clock: &mut WorkerClock,
) -> Result<(), WorkerError> {
    let mut batch = Batch::new();
    journal::ask_the_time(&mut batch, &names.journals.partition(0))?;
    store.commit(batch)?;
    clock.hear(member.time());
    Ok(())
}

/// Why a worker does not continue.
#[derive(Debug, thiserror::Error)]
enum StoppedError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("{0}")]
    Failure(Failure),
}

impl From<Failure> for StoppedError {
    fn from(failure: Failure) -> StoppedError {
        StoppedError::Failure(failure)
    }
}

impl From<StoppedError> for Failure {
    fn from(stopped: StoppedError) -> Failure {
        match stopped {
            StoppedError::Failure(failure) => failure,
            StoppedError::Worker(WorkerError::Join(error)) => error.into(),
            StoppedError::Worker(error) => Failure::new(Category::Io, error),
        }
    }
}
