//! librdkafka's clients: their configuration, and the errors they report asynchronously.

use super::options::Options;
use crate::error::Source;
use crate::error::cluster::{ClusterError, code, is_silence};
use crate::membership::BrokerTime;
use rdkafka::ClientContext;
use rdkafka::admin::AdminClient;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{Message, Timestamp};
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// KiB of prefetched records for each partition that is read.
const PREFETCH_KIB: &str = "8192";
/// How long a broker holds a request for a partition without records. A read takes this long
/// to detect that only a gap is left.
const FETCH_WAIT_MS: &str = "10";
/// How long after it was lost a broker may report ends of partitions that are too early: it has
/// them from a note that it writes every few seconds, until it leads the partitions again.
const RECOVERY: Duration = Duration::from_secs(60);
/// Maximum number of events to serve at a time.
const MAX_EVENTS: usize = 16;
/// Maximum duration of a transaction, a broker's default.
const MAX_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Maximum size of a message: the largest value of a state space with its framing.
const MAX_MESSAGE_BYTES: usize = 80 << 20;

/// The clients of a store.
pub(super) struct Clients {
    pub(super) consumer: Arc<BaseConsumer<Context>>,
    /// For reading a partition at a second position.
    pub(super) second_consumer: Arc<BaseConsumer<Context>>,
    pub(super) producer: BaseProducer<Context>,
    pub(super) admin: AdminClient<Context>,
    pub(super) patience: Duration,
    brokers: String,
    last_error: Arc<LastError>,
}

/// The clients' reports about brokers that do not answer.
#[derive(Debug, Default)]
struct LastError {
    /// The last error that explains it.
    cause: Mutex<Option<(Code, Source)>>,
    /// How often a broker was lost, and when last.
    lost: Mutex<(u64, Option<Instant>)>,
}

/// The asynchronous reports of a client.
#[derive(Debug, Default)]
pub(super) struct Context {
    last_error: Arc<LastError>,
    deliveries: Mutex<Deliveries>,
    /// The brokers' time, when it was last said.
    time: Mutex<Option<BrokerTime>>,
}

/// The delivery reports of a transaction.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// First and last offset, by the number attached to each record.
    pub(super) places: HashMap<usize, (i64, i64)>,
    /// The first record that could not be written: its topic and the error.
    pub(super) failed: Option<(String, KafkaError)>,
    /// When the transaction began.
    pub(super) begun: Option<Instant>,
}

impl Context {
    pub(super) fn deliveries(&self) -> MutexGuard<'_, Deliveries> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self) -> MutexGuard<'_, Option<BrokerTime>> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, _: &str) {
        let Some(code) = code(&error).filter(|&code| explains(code)) else { return };
        if is_silence(code) {
            let mut lost = self.last_error.lost.lock().unwrap_or_else(PoisonError::into_inner);
            *lost = (lost.0 + 1, Some(Instant::now()));
        }
        let mut last_error = self.last_error.cause.lock().unwrap_or_else(PoisonError::into_inner);
        // A specific error is not replaced by a mere timeout.
        if is_silence(code) && last_error.as_ref().is_some_and(|(known, _)| !is_silence(*known)) {
            return;
        }
        *last_error = Some((code, Source::new(error)));
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
                if let Timestamp::LogAppendTime(milliseconds) = message.timestamp()
                    && let (Ok(ms), Some(sent)) = (u64::try_from(milliseconds), deliveries.begun)
                {
                    let (at, heard) = (ms.saturating_mul(1_000), Instant::now());
                    *self.time() = Some(BrokerTime { at, sent, heard });
                }
            }
            Err((error, message)) => {
                let failed = || (message.topic().to_owned(), error.clone());
                deliveries.failed.get_or_insert_with(failed);
            }
        }
    }
}

impl Clients {
    /// Configures the clients of the writer with this transactional id. They connect later.
    pub(super) fn new(options: &Options, writer: &str) -> Result<Self, ClusterError> {
        options.check()?;
        let last_error = Arc::<LastError>::default();
        let patience = options.patience.clamp(Duration::from_secs(1), MAX_PATIENCE);
        let milliseconds = patience.as_millis().to_string();
        let base = base(options);
        let mut reading = base.clone();
        for (name, value) in [
            ("group.id", writer),
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
            ("transactional.id", writer),
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("transaction.timeout.ms", &milliseconds),
            ("message.timeout.ms", &milliseconds),
            ("linger.ms", "0"),
            ("queue.buffering.max.messages", "0"),
            ("message.max.bytes", &MAX_MESSAGE_BYTES.to_string()),
        ] {
            writing.set(name, value);
        }
        Ok(Self {
            consumer: Arc::new(made(&reading, &last_error)?),
            second_consumer: Arc::new(made(&reading, &last_error)?),
            producer: made(&writing, &last_error)?,
            admin: made(&base, &last_error)?,
            patience,
            brokers: options.brokers.clone(),
            last_error,
        })
    }

    /// Converts an error, using the last asynchronous one as the explanation.
    pub(super) fn refused(
        &self,
        action: &'static str,
        on: &str,
        error: KafkaError,
    ) -> ClusterError {
        if !code(&error).is_some_and(is_silence) {
            return ClusterError::of(action, on, error);
        }
        self.listen();
        let brokers = self.brokers.clone();
        let last_error =
            self.last_error.cause.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match last_error {
            Some((code, source)) if !is_silence(code) => {
                ClusterError::Authentication { brokers, source }
            }
            Some((_, source)) => ClusterError::Unreachable { brokers, source: Some(source) },
            None => ClusterError::Unreachable { brokers, source: Some(Source::new(error)) },
        }
    }

    /// Serves waiting events. These are never records.
    pub(super) fn listen(&self) {
        for _ in 0..MAX_EVENTS {
            let _ = (self.consumer.poll(Duration::ZERO), self.second_consumer.poll(Duration::ZERO));
        }
        self.producer.poll(Duration::ZERO);
    }

    /// How often a broker was lost so far.
    pub(super) fn losses(&self) -> u64 {
        self.listen();
        self.last_error.lost.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether a broker may have started again so recently that it still reports ends from before.
    pub(super) fn may_lag(&self) -> bool {
        let lost = *self.last_error.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.1.is_some_and(|at| at.elapsed() < RECOVERY)
    }

    /// Clears the last error, since the cluster has answered.
    pub(super) fn answered(&self) {
        *self.last_error.cause.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The brokers' time, when they last said it.
    pub(super) fn time(&self) -> Option<BrokerTime> {
        *self.producer.context().time()
    }

    /// The producer's delivery reports.
    pub(super) fn deliveries(&self) -> MutexGuard<'_, Deliveries> {
        self.producer.context().deliveries()
    }
}

/// The configuration that all clients share.
pub(super) fn base(options: &Options) -> ClientConfig {
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
    last_error: &Arc<LastError>,
) -> Result<T, ClusterError> {
    let context = Context { last_error: Arc::clone(last_error), ..Context::default() };
    T::from_config_and_context(config, context).map_err(|error| match error {
        // The message may contain a value, which may be a secret.
        KafkaError::ClientConfig(_, _, name, _) => ClusterError::Property { name },
        error => ClusterError::of("set up", "librdkafka", error),
    })
}
