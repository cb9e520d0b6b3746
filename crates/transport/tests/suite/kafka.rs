//! What holds over Kafka alone: other clients beside ours, brokers that die, doors
//! that do not open.

use crate::broker::{Broker, prefix};
use crate::kills;
use crate::world::*;
use alpheus_transport::kafka::{self, Options, Refused};
use alpheus_transport::{Batch, Error, Limits, NewRecord, Sequence, Store};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// A store of its own, through the open door.
pub(crate) fn options(broker: &Broker) -> Options {
    let mut options = Options::new(&broker.open, &prefix());
    options.max_staged = MAX_STAGED;
    options
}

/// The same through the door with passwords and access lists.
fn secured(broker: &Broker, password: &str) -> Options {
    let mut options = Options::new(&broker.secured, &prefix());
    options.patience = Duration::from_secs(5);
    let properties = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n\
                      sasl.username=meter\nsasl.password=";
    options.read_properties(&format!("{properties}{password}")).unwrap();
    options
}

fn refusal(opened: Result<Arc<dyn Store>, Error>) -> Refused {
    match opened.map(drop) {
        Err(Error::Kafka(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

/// Somebody else's producer; transactional if it has an id.
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

#[test]
fn doors_that_do_not_open_say_what_would_open_them() {
    let Some(broker) = Broker::shared() else { return };
    let wrong = refusal(kafka::open(&secured(broker, "wrong")));
    assert!(matches!(wrong, Refused::Authentication { .. }), "{wrong:?}");
    assert!(wrong.help().unwrap().contains("sasl"));

    let options = secured(broker, "meter");
    let forbidden = refusal(kafka::open(&options));
    assert!(
        matches!(&forbidden, Refused::Forbidden { on, .. } if *on == format!("{}store", options.prefix))
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
fn nobody_there_is_told_in_time() {
    if Broker::shared().is_none() {
        return;
    }
    let mut options = Options::new("127.0.0.1:1", "nobody.");
    options.patience = Duration::from_secs(2);
    let refused = refusal(kafka::open(&options));
    assert!(matches!(refused, Refused::Unreachable { .. }), "{refused:?}");
    assert!(refused.help().is_some());
    options.read_properties("no.such.property=secret").unwrap();
    let refused = refusal(kafka::open(&options));
    assert!(matches!(&refused, Refused::Property { name } if name == "no.such.property"));
    assert!(!format!("{refused:?}").contains("secret"));
}

/// Records of others, before, between and after ours; what they aborted is not there.
#[test]
fn records_of_others_are_read_and_what_was_aborted_is_not() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let (name, partition) = (format!("{}t", options.prefix), topic("t").partition(0));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&partition.topic, 1).unwrap();
    let plain = foreign(broker, None);
    let sure = foreign(broker, Some(&format!("{name}-other")));
    send(&plain, &name, "plain");
    plain.flush(SOON).unwrap();
    sure.begin_transaction().unwrap();
    send(&sure, &name, "aborted");
    sure.flush(SOON).unwrap();
    store.commit(one(&partition, b"ours")).unwrap();
    // What is not decided yet hides all that follows it.
    let before = store.bounds(&partition);
    sure.abort_transaction(SOON).unwrap();
    assert!(before.is_ok());
    assert_eq!(values(&*store, &partition), ["plain", "ours"]);
    sure.begin_transaction().unwrap();
    send(&sure, &name, "aborted, too");
    sure.flush(SOON).unwrap();
    sure.abort_transaction(SOON).unwrap();
    let end = store.bounds(&partition).unwrap().end;
    let last = offsets(&*store, &partition)[1];
    let rest = store.read(&partition, alpheus_transport::Offset(last.0 + 1), Limits::default());
    let rest = rest.unwrap();
    assert_eq!((rest.next_offset(), rest.count()), (end, 0), "only gaps are left");
    sure.begin_transaction().unwrap();
    send(&sure, &name, "committed");
    sure.commit_transaction(SOON).unwrap();
    assert_eq!(values(&*store, &partition), ["plain", "ours", "committed"]);
}

#[test]
fn times_are_exact_to_us_and_whole_milliseconds_to_others() {
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
    assert_eq!(theirs.timestamp, 1_700_000_000_123_000);
    assert_eq!((&theirs.key[..], theirs.value.len()), (&b"k"[..], 0));
    assert_eq!(theirs.headers().collect::<Vec<_>>(), [("none", &b""[..])]);
}

#[test]
fn a_reader_who_waits_is_woken_by_records_of_others() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let (name, partition) = (format!("{}t", options.prefix), topic("t").partition(0));
    let store = kafka::open(&options).unwrap();
    store.ensure_topic(&partition.topic, 1).unwrap();
    store.commit(one(&partition, b"ours")).unwrap();
    assert_eq!(values(&*store, &partition), ["ours"]);
    let plain = foreign(broker, None);
    let (mut seen, start) = (Sequence::default(), Instant::now());
    // Ends of partitions that were read wake too: until it is quiet.
    while let reached = store.wait(seen, Duration::from_millis(300)).unwrap()
        && reached > seen
    {
        seen = reached;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            send(&plain, &name, "theirs");
            plain.flush(SOON).unwrap();
        });
        while values(&*store, &partition).len() < 2 {
            let reached = store.wait(seen, SOON).unwrap();
            assert!(reached > seen, "nobody woke us");
            seen = reached;
        }
    });
    assert!(start.elapsed() < SOON);
}

#[test]
fn topics_that_could_not_keep_the_promises_are_refused() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let prefix = options.prefix.clone();
    kafka::open(&options).unwrap();
    let make = |name: &str, settings: &[(&str, &str)]| {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &broker.open);
        let admin: rdkafka::admin::AdminClient<_> = config.create().unwrap();
        let name = format!("{prefix}{name}");
        let mut topic =
            rdkafka::admin::NewTopic::new(&name, 1, rdkafka::admin::TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let options = rdkafka::admin::AdminOptions::new();
        pollster::block_on(admin.create_topics([&topic], &options)).unwrap().remove(0).unwrap();
    };
    make("compacted", &[("cleanup.policy", "compact")]);
    make("narrow", &[("max.message.bytes", "1000")]);
    make("small", &[]);
    let store = kafka::open(&options).unwrap();
    for (name, setting) in [("compacted", "cleanup.policy"), ("narrow", "max.message.bytes")] {
        let refused = store.ensure_topic(&topic(name), 1).unwrap_err();
        assert!(refused.to_string().contains(setting), "{refused}");
        assert!(refused.help().is_some());
    }
    // A record beyond the topic's limit is refused before it harms the transaction.
    store.ensure_topic(&topic("small"), 1).unwrap();
    let small = topic("small").partition(0);
    let refused = store.commit(one(&small, &vec![0; (1 << 20) - 12])).unwrap_err();
    assert!(
        matches!(&refused, Error::Kafka(Refused::TooLarge { limit, .. }) if *limit < 1_050_000)
    );
    assert!(refused.help().unwrap().contains("max.message.bytes"));
    store.commit(one(&small, &vec![0; 1_000_000])).unwrap();
    let refused = store.ensure_topic(&topic("state.t"), 1).unwrap_err();
    assert!(matches!(refused, Error::Kafka(Refused::Reserved { .. })), "{refused}");
    // State that would be forgotten is refused when the store is opened.
    make("state.forgotten", &[("cleanup.policy", "delete")]);
    let refused = refusal(kafka::open(&options));
    assert!(matches!(&refused, Refused::TopicSetting { want: "compact", .. }), "{refused:?}");
}

#[test]
fn a_broker_that_is_killed_and_comes_back_loses_nothing() {
    let Some(broker) = Broker::start() else { return };
    let options = options(&broker);
    let store = kafka::open(&options).unwrap();
    kills::prepare(&*store);
    let (mut made, start) = (0, Instant::now());
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(700));
                broker.order("kill");
                broker.order("start");
            }
        });
        while !killer.is_finished() {
            made += 1;
            kills::produce(&*store, made);
            assert!(kills::process(&*store).unwrap());
        }
        killer.join().unwrap();
    });
    assert!(made > 5 && start.elapsed() > Duration::from_secs(2), "{made} batches");
    kills::check(&*store, made);
    drop(store);
    kills::check(&*kafka::open(&options).unwrap(), made);
}

#[test]
fn a_process_that_is_killed_leaves_whole_batches() {
    let Some(broker) = Broker::shared() else { return };
    let options = options(broker);
    let place = format!("kafka {} {}", broker.open, options.prefix);
    let mut seeded = Seeded(5);
    let mut count = 0;
    for _ in 0..kills::parameter("ALPHEUS_KILLS", 20) / 4 {
        let life = Duration::from_millis(300 + seeded.below(1_200));
        let acknowledged = kills::live_and_die(&place, life).unwrap_or(count);
        count = kills::check(&*kafka::open(&options).unwrap(), acknowledged.max(count));
    }
    assert!(count > 5, "the children hardly lived: {count} batches");
}
