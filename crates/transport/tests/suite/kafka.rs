//! Tests of the store over Kafka: other clients, brokers that are killed, and refused
//! connections.

use crate::broker::{Broker, prefix};
use crate::kills;
use crate::world::*;
use alpheus_transport::kafka::{self, ClusterError, Options};
use alpheus_transport::{Batch, Error, Limits, NewRecord, Sequence, Store};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// Options of a new store, through the listener without access control.
pub(crate) fn options(broker: &Broker) -> Options {
    let mut options = Options::new(&broker.open, &prefix());
    options.max_staged = MAX_STAGED;
    options
}

/// Options of a store that accepts large batches.
fn large_batches(broker: &Broker) -> Options {
    let mut options = options(broker);
    options.max_staged = 64 << 20;
    options
}

/// Options through the listener with passwords and access lists.
fn secured(broker: &Broker, password: &str) -> Options {
    let mut options = Options::new(&broker.secured, &prefix());
    options.patience = Duration::from_secs(5);
    let properties = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n\
                      sasl.username=meter\nsasl.password=";
    options.read_properties(&format!("{properties}{password}")).unwrap();
    options
}

fn refusal(opened: Result<Arc<dyn Store>, Error>) -> ClusterError {
    match opened.map(drop) {
        Err(Error::Kafka(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Another client's producer. It is transactional if it has an id.
fn foreign(broker: &Broker, id: Option<&str>) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &broker.open);
    if let Some(id) = id {
        config.set("transactional.id", id);
    }
    let producer: BaseProducer = config.create().unwrap();
    if id.is_some() {
        producer.init_transactions(SOON).unwrap();
    }
    producer
}

fn send(producer: &BaseProducer, topic: &str, value: &str) {
    producer.send(BaseRecord::<(), str>::to(topic).partition(0).payload(value)).unwrap();
}

/// Waits for the given values. Another client's transaction ends a moment before the
/// partitions show it.
fn wait_for(store: &dyn Store, want: &[&str]) {
    let start = Instant::now();
    loop {
        let read = values(store, &topic("t").partition(0));
        if read == want {
            return;
        }
        assert!(start.elapsed() < SOON, "{read:?}, not {want:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn refused_connections_explain_the_missing_configuration() {
    let Some(broker) = Broker::shared() else { return };
    let wrong = refusal(kafka::open(&secured(broker, "wrong")));
    assert!(matches!(wrong, ClusterError::Authentication { .. }), "{wrong:?}");
    assert!(wrong.help().unwrap().contains("sasl"));

    let options = secured(broker, "meter");
    let forbidden = refusal(kafka::open(&options));
    assert!(
        matches!(&forbidden, ClusterError::Forbidden { on, .. } if *on == format!("{}store", options.prefix))
    );
    assert!(forbidden.help().unwrap().contains("transactional ids"));

    broker.order(&format!("allow {}", options.prefix));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&topic("t"), 1).unwrap();
    store.ensure_space(&space()).unwrap();
    store.commit(one(&topic("t").partition(0), b"x")).unwrap();
    assert_eq!(values(&*store, &topic("t").partition(0)), ["x"]);
}

#[test]
fn an_unreachable_broker_is_reported_within_the_patience() {
    if Broker::shared().is_none() {
        return;
    }
    let mut options = Options::new("127.0.0.1:1", "nobody.");
    options.patience = Duration::from_secs(2);
    let refused = refusal(kafka::open(&options));
    assert!(matches!(refused, ClusterError::Unreachable { .. }), "{refused:?}");
    assert!(refused.help().is_some());
    options.read_properties("no.such.property=secret").unwrap();
    let refused = refusal(kafka::open(&options));
    assert!(matches!(&refused, ClusterError::Property { name } if name == "no.such.property"));
    assert!(!format!("{refused:?}").contains("secret"));
}

#[test]
fn records_of_other_clients_are_read_unless_they_were_aborted() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let (name, partition) = (format!("{}t", options.prefix), topic("t").partition(0));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&partition.topic, 1).unwrap();
    let plain = foreign(broker, None);
    let transactional = foreign(broker, Some(&format!("{name}-other")));
    send(&plain, &name, "plain");
    plain.flush(SOON).unwrap();
    transactional.begin_transaction().unwrap();
    send(&transactional, &name, "aborted");
    transactional.flush(SOON).unwrap();
    store.commit(one(&partition, b"ours")).unwrap();
    // An open transaction hides all records behind it, and readers do not wait for it.
    let start = Instant::now();
    assert_eq!(values(&*store, &partition), ["plain"]);
    assert!(start.elapsed() < SOON);
    transactional.abort_transaction(SOON).unwrap();
    wait_for(&*store, &["plain", "ours"]);
    transactional.begin_transaction().unwrap();
    send(&transactional, &name, "aborted, too");
    transactional.flush(SOON).unwrap();
    transactional.abort_transaction(SOON).unwrap();
    let last = offsets(&*store, &partition)[1];
    let end = store.bounds(&partition).unwrap().end;
    let rest = store.read(&partition, alpheus_transport::Offset(last.0 + 1), Limits::default());
    let rest = rest.unwrap();
    assert!(rest.next_offset() >= end && rest.count() == 0, "only gaps follow");
    transactional.begin_transaction().unwrap();
    send(&transactional, &name, "committed");
    transactional.commit_transaction(SOON).unwrap();
    wait_for(&*store, &["plain", "ours", "committed"]);
}

#[test]
fn timestamps_are_exact_and_those_of_other_clients_are_read() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let (name, partition) = (format!("{}t", options.prefix), topic("t").partition(0));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&partition.topic, 1).unwrap();
    let times =
        [0, 1, 999, 1_000, 1_700_000_000_123_000, 1_700_000_000_123_456, 4_000_000_000_000_001];
    let mut batch = Batch::new();
    for timestamp in times {
        let headers: &[(&str, &[u8])] = &[("own", b"1")];
        batch.append(&partition, &NewRecord { timestamp, headers, ..Default::default() }).unwrap();
    }
    store.commit(batch).unwrap();
    let plain = foreign(broker, None);
    let headers = OwnedHeaders::new().insert(Header { key: "none", value: None::<&str> });
    let record = BaseRecord::<str, str>::to(&name).partition(0).key("k").headers(headers);
    plain.send(record.timestamp(1_700_000_000_123)).unwrap();
    plain.flush(SOON).unwrap();
    let read = read_all(&*store, &partition);
    let (theirs, ours) = read.split_last().unwrap();
    assert_eq!(ours.iter().map(|record| record.timestamp).collect::<Vec<_>>(), times);
    assert!(ours.iter().all(|record| record.headers().eq([("own", &b"1"[..])])));
    assert_eq!(
        theirs.timestamp, 1_700_000_000_123_000,
        "Kafka's timestamp, for a record without our header"
    );
    assert_eq!((&theirs.key[..], theirs.value.len()), (&b"k"[..], 0));
    assert_eq!(theirs.headers().collect::<Vec<_>>(), [("none", &b""[..])]);
}

#[test]
fn a_waiting_reader_is_woken_by_records_of_other_clients() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let (name, partition) = (format!("{}t", options.prefix), topic("t").partition(0));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&partition.topic, 1).unwrap();
    store.commit(one(&partition, b"ours")).unwrap();
    let plain = foreign(broker, None);
    let (mut seen, mut from) = (Sequence::default(), alpheus_transport::Offset(0));
    let start = Instant::now();
    for n in 0..3 {
        // Reads to the end, until librdkafka has no more events.
        loop {
            let fetched = store.read(&partition, from, Limits::default()).unwrap();
            let is_end = fetched.next_offset() == from;
            from = fetched.next_offset();
            let reached = store.wait(seen, Duration::from_millis(200)).unwrap();
            if is_end && reached == seen {
                break;
            }
            seen = reached;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                send(&plain, &name, "theirs");
                plain.flush(SOON).unwrap();
            });
            let reached = store.wait(seen, SOON).unwrap();
            assert!(reached > seen, "not woken, {n}");
            seen = reached;
        });
    }
    assert!(start.elapsed() < SOON);
}

/// Creates a topic as another client would.
fn create(broker: &Broker, name: &str, settings: &[(&str, &str)]) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &broker.open);
    let admin: AdminClient<_> = config.create().unwrap();
    let mut topic = NewTopic::new(name, 1, TopicReplication::Fixed(1));
    for (key, value) in settings {
        topic = topic.set(key, value);
    }
    let created = admin.create_topics([&topic], &AdminOptions::new());
    pollster::block_on(created).unwrap().remove(0).unwrap();
}

#[test]
fn topics_with_unsuitable_settings_are_refused() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let prefix = options.prefix.clone();
    kafka::open(&options).unwrap();
    let make = |name: &str, settings: &[(&str, &str)]| {
        create(broker, &format!("{prefix}{name}"), settings)
    };
    let kept: &[(&str, &str)] = &[("retention.ms", "-1"), ("retention.bytes", "-1")];
    make("compacted", &[("cleanup.policy", "compact")]);
    make("narrow", &[("max.message.bytes", "1000")]);
    make("forgetful", &[]);
    make("bounded", &[("retention.ms", "-1"), ("retention.bytes", "1000000")]);
    make("small", kept);
    let store = kafka::open(&options).unwrap();
    for (name, setting) in [
        ("compacted", "cleanup.policy"),
        ("narrow", "max.message.bytes"),
        ("forgetful", "retention.ms"),
        ("bounded", "retention.bytes"),
    ] {
        let refused = store.ensure_topic(&topic(name), 1).unwrap_err();
        assert!(refused.to_string().contains(setting), "{refused}");
        assert!(refused.help().is_some());
    }
    // A record beyond the topic's limit is refused before it can abort the transaction.
    store.ensure_topic(&topic("small"), 1).unwrap();
    let small = topic("small").partition(0);
    let refused = store.commit(one(&small, &vec![0; (1 << 20) - 12])).unwrap_err();
    assert!(
        matches!(&refused, Error::Kafka(ClusterError::TooLarge { limit, .. }) if *limit < 1_050_000)
    );
    assert!(refused.help().unwrap().contains("max.message.bytes"));
    store.commit(one(&small, &vec![0; 1_000_000])).unwrap();
    let refused = store.ensure_topic(&topic("state.t"), 1).unwrap_err();
    assert!(matches!(refused, Error::Kafka(ClusterError::Reserved { .. })), "{refused}");
    // A state topic that would lose data is refused when the store is opened, and the current
    // writer is not fenced.
    make("state.forgotten", &[("cleanup.policy", "delete")]);
    let refused = refusal(kafka::open(&options));
    assert!(matches!(&refused, ClusterError::TopicSetting { want, .. } if want == "compact"));
    store.commit(one(&small, b"the writer still")).unwrap();
    let mut copies = self::options(broker);
    copies.min_copies = 2;
    let refused = refusal(kafka::open(&copies));
    assert!(
        matches!(refused, ClusterError::TopicSetting { setting: "replicas", .. }),
        "{refused:?}"
    );
}

/// A reader that sees a batch's record in one partition finds its other records, state and
/// position, too.
#[test]
fn concurrent_readers_see_complete_batches_only() {
    let Some(broker) = Broker::shared() else { return };
    let store = kafka::open(&options(broker)).unwrap();
    kills::prepare(&*store);
    let is_over = AtomicBool::new(false);
    let checks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut from, mut checked) = (0, 0);
            while !is_over.load(Ordering::SeqCst) {
                let first = topic("in").partition(0);
                let offset = alpheus_transport::Offset(from);
                let fetched = store.read(&first, offset, Limits::default()).unwrap();
                from = fetched.next_offset().0;
                let Some(latest) = fetched.last().map(|record| number(&record.value[..8])) else {
                    continue;
                };
                checked += 1;
                checks.store(checked, Ordering::SeqCst);
                let state = store.get(&space(), b"count").unwrap();
                assert!(state.is_some_and(|count| number(&count) >= latest), "state of {latest}");
                let other = values(&*store, &topic("in").partition(1));
                assert!(other.len() as u64 >= latest, "{} of {latest}", other.len());
            }
            checked
        });
        // Sixty batches, or more on a slow machine, until there were some checks.
        let enough =
            |n: &u64| *n <= 60 || checks.load(Ordering::SeqCst) <= 5 && !reader.is_finished();
        (1..).take_while(enough).for_each(|n| kills::produce(&*store, n));
        is_over.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 5);
    });
}

/// The size is one that the local store accepts, too.
#[test]
fn values_of_many_megabytes_are_kept() {
    let Some(broker) = Broker::shared() else { return };
    let options = large_batches(broker);
    let store = kafka::open(&options).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut batch = Batch::new();
    batch.put(&space(), "large", vec![5; 40 << 20]).unwrap();
    store.commit(batch).unwrap();
    drop(store);
    let value = kafka::open(&options).unwrap().get(&space(), b"large").unwrap().unwrap();
    assert!(value.len() == 40 << 20 && value.iter().all(|&byte| byte == 5));
}

/// One reader is at the end and another at the beginning, in turn.
#[test]
fn readers_at_different_offsets_each_continue_where_they_stopped() {
    let Some(broker) = Broker::shared() else { return };
    let store = kafka::open(&options(broker)).unwrap();
    let partition = topic("t").partition(0);
    store.ensure_topic(&partition.topic, 1).unwrap();
    let (mut tail, mut seen) = (alpheus_transport::Offset(0), Vec::new());
    for n in 0..20u64 {
        store.commit(one(&partition, &n.to_le_bytes())).unwrap();
        for _ in 0..2 {
            let fetched = store.read(&partition, tail, Limits::default()).unwrap();
            tail = fetched.next_offset();
            seen.extend(fetched.map(|record| number(&record.value)));
        }
        assert_eq!(values(&*store, &partition).len() as u64, n + 1);
        assert_eq!(seen, (0..=n).collect::<Vec<_>>());
    }
}

/// The state is larger than the prefetch, with overwritten and deleted entries.
#[test]
fn a_large_state_is_complete_after_reopening() {
    let Some(broker) = Broker::shared() else { return };
    let options = large_batches(broker);
    let store = kafka::open(&options).unwrap();
    store.ensure_space(&space()).unwrap();
    let mut batch = Batch::new();
    for n in 0..3_000u64 {
        batch.put(&space(), n.to_be_bytes().to_vec(), vec![7; 4_000]).unwrap();
    }
    store.commit(batch).unwrap();
    let mut batch = Batch::new();
    for n in (0..3_000u64).step_by(3) {
        batch.delete(&space(), n.to_be_bytes().to_vec()).unwrap();
        batch.put(&space(), (n + 1).to_be_bytes().to_vec(), "").unwrap();
    }
    store.commit(batch).unwrap();
    drop(store);
    let store = kafka::open(&options).unwrap();
    let all = scan_all(&*store);
    assert_eq!(all.len(), 2_000);
    for (key, value) in all {
        let n = u64::from_be_bytes(key.as_ref().try_into().unwrap());
        assert_eq!(value.len(), if n % 3 == 1 { 0 } else { 4_000 }, "{n}");
    }
}

#[test]
fn a_broker_that_is_killed_and_restarted_loses_nothing() {
    let Some(broker) = Broker::start() else { return };
    // A broker starts slowly on a machine that has other work.
    let mut options = options(&broker);
    options.patience = Duration::from_secs(300);
    let store = kafka::open(&options).unwrap();
    kills::prepare(&*store);
    let (mut produced, start) = (0, Instant::now());
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(700));
                broker.order("kill");
                broker.order("start");
            }
        });
        while !killer.is_finished() || produced < 6 {
            produced += 1;
            kills::produce(&*store, produced);
            // The batch is durable. A broker that was killed before it marked the batch as readable
            // may only do so with the next one.
            if !kills::process(&*store).unwrap() {
                eprintln!("batch {produced} waits: {:?}", store.bounds(&kills::input()));
            }
        }
        killer.join().unwrap();
    });
    produced += 1;
    kills::produce(&*store, produced);
    assert!(kills::process(&*store).unwrap());
    assert!(start.elapsed() > Duration::from_secs(2), "{produced} batches");
    kills::check(&*store, produced);
    drop(store);
    kills::check(&*kafka::open(&options).unwrap(), produced);
}

#[test]
fn a_killed_process_leaves_complete_batches_only() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let location = format!("kafka {} {}", broker.open, options.prefix);
    let mut seeded = SplitMix(5);
    let mut count = 0;
    for _ in 0..kills::parameter("ALPHEUS_KILLS", 20) / 4 {
        // They take a while to connect.
        let life = Duration::from_millis(seeded.below(1_200));
        let killed = kills::run_and_kill(&location, kills::Life::Wrote, life);
        let acknowledged = killed.unwrap_or(count);
        count = kills::check(&*kafka::open(&options).unwrap(), acknowledged.max(count));
    }
    assert!(count > 5, "the children were killed too early: {count} batches");
}
