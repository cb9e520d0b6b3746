//! librdkafka's clients: how they are set up, and what they hear meanwhile.

use super::options::Options;
use super::refused::{Refused, code, is_silence};
use crate::error::Source;
use rdkafka::ClientContext;
use rdkafka::admin::AdminClient;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of prefetched records for each partition that is read.
const PREFETCH_KIB: &str = "8192";
/// How long a broker holds a request for records of a partition that has none: so
/// long a read takes to see that a gap is all there is.
const FETCH_WAIT_MS: &str = "10";
/// How many events are served at a time.
const EVENTS: usize = 16;
/// The longest that a transaction may take by a broker's default.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Room for the largest value of a state space with its framing.
const MESSAGE_MAX: usize = 80 << 20;

/// The clients of a store.
pub(super) struct Clients {
    pub(super) consumer: Arc<BaseConsumer<Context>>,
    /// For those who read a partition at another place meanwhile.
    pub(super) wanderer: Arc<BaseConsumer<Context>>,
    pub(super) producer: BaseProducer<Context>,
    pub(super) admin: AdminClient<Context>,
    pub(super) patience: Duration,
    brokers: String,
    heard: Arc<Heard>,
}

/// The last errors that explain why nobody answers.
#[derive(Debug, Default)]
struct Heard(Mutex<Option<(Code, Source)>>);

/// What a client is told on the side.
#[derive(Debug, Default)]
pub(super) struct Context {
    heard: Arc<Heard>,
    deliveries: Mutex<Deliveries>,
}

/// Where the records of one transaction went.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// First and last offset, by the number that went along with a record.
    pub(super) places: HashMap<usize, (i64, i64)>,
    /// The first record that could not be written: its topic, and why.
    pub(super) failed: Option<(String, KafkaError)>,
}

impl Context {
    pub(super) fn deliveries(&self) -> MutexGuard<'_, Deliveries> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, _: &str) {
        let Some(code) = code(&error).filter(|&code| explains(code)) else { return };
        let mut heard = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Who is refused by name is not merely silent.
        if is_silence(code) && heard.as_ref().is_some_and(|(known, _)| !is_silence(*known)) {
            return;
        }
        *heard = Some((code, Source::new(error)));
    }
}

const fn explains(code: Code) -> bool {
    matches!(code, Code::Authentication | Code::SaslAuthenticationFailed | Code::SSL)
        || is_silence(code)
}

impl ConsumerContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let mut deliveries = self.deliveries();
        match result {
            Ok(message) => {
                let at = message.offset();
                let place = deliveries.places.entry(number).or_insert((at, at));
                *place = (place.0.min(at), place.1.max(at));
            }
            Err((error, message)) => {
                let failed = || (message.topic().to_owned(), error.clone());
                deliveries.failed.get_or_insert_with(failed);
            }
        }
    }
}

impl Clients {
    /// Sets the clients up; nothing is connected yet.
    pub(super) fn new(options: &Options) -> Result<Self, Refused> {
        options.check()?;
        let heard = Arc::<Heard>::default();
        let patience = options.patience.clamp(Duration::from_secs(1), LONGEST);
        let milliseconds = patience.as_millis().to_string();
        let base = base(options);
        let mut reading = base.clone();
        for (name, value) in [
            ("group.id", options.writer_id().as_str()),
            ("isolation.level", "read_committed"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("enable.partition.eof", "true"),
            ("auto.offset.reset", "error"),
            ("fetch.wait.max.ms", FETCH_WAIT_MS),
            ("fetch.queue.backoff.ms", "5"),
            ("fetch.error.backoff.ms", "100"),
            ("queued.max.messages.kbytes", PREFETCH_KIB),
        ] {
            reading.set(name, value);
        }
        let mut writing = base.clone();
        for (name, value) in [
            ("transactional.id", options.writer_id().as_str()),
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("transaction.timeout.ms", &milliseconds),
            ("message.timeout.ms", &milliseconds),
            ("linger.ms", "0"),
            ("queue.buffering.max.messages", "0"),
            ("message.max.bytes", &MESSAGE_MAX.to_string()),
        ] {
            writing.set(name, value);
        }
        Ok(Self {
            consumer: Arc::new(made(&reading, &heard)?),
            wanderer: Arc::new(made(&reading, &heard)?),
            producer: made(&writing, &heard)?,
            admin: made(&base, &heard)?,
            patience,
            brokers: options.brokers.clone(),
            heard,
        })
    }

    /// What a failure means, given what was heard meanwhile.
    pub(super) fn refused(&self, action: &'static str, on: &str, error: KafkaError) -> Refused {
        if !code(&error).is_some_and(is_silence) {
            return Refused::of(action, on, error);
        }
        self.listen();
        let brokers = self.brokers.clone();
        let heard = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match heard {
            Some((code, source)) if !is_silence(code) => {
                Refused::Authentication { brokers, source }
            }
            Some((_, source)) => Refused::Unreachable { brokers, source: Some(source) },
            None => Refused::Unreachable { brokers, source: Some(Source::new(error)) },
        }
    }

    /// Serves what waits to be told; no record comes this way.
    pub(super) fn listen(&self) {
        for _ in 0..EVENTS {
            let _ = (self.consumer.poll(Duration::ZERO), self.wanderer.poll(Duration::ZERO));
        }
        self.producer.poll(Duration::ZERO);
    }

    /// Forgets what was heard: somebody has answered.
    pub(super) fn answered(&self) {
        *self.heard.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What the producer is told about records.
    pub(super) fn deliveries(&self) -> MutexGuard<'_, Deliveries> {
        self.producer.context().deliveries()
    }
}

/// What all clients have in common.
fn base(options: &Options) -> ClientConfig {
    let mut base = ClientConfig::new();
    base.set("reconnect.backoff.ms", "20").set("reconnect.backoff.max.ms", "1000");
    for (name, value) in &options.properties {
        base.set(name, value);
    }
    base.set("bootstrap.servers", &options.brokers);
    base
}

fn made<T: FromClientConfigAndContext<Context>>(
    config: &ClientConfig,
    heard: &Arc<Heard>,
) -> Result<T, Refused> {
    let context = Context { heard: Arc::clone(heard), ..Context::default() };
    T::from_config_and_context(config, context).map_err(|error| match error {
        // What it says may repeat a value, which may be a secret.
        KafkaError::ClientConfig(_, _, name, _) => Refused::Property { name },
        error => Refused::of("set up", "librdkafka", error),
    })
}
