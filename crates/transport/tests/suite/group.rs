//! Tests of consumer groups: partitions are one process's at a time, positions are the group's, and
//! commits of a process that is not in the group any more count for nothing.

use crate::broker::Broker;
use crate::kafka::options;
use crate::world::*;
use alpheus_transport::kafka::{self, Options};
use alpheus_transport::{
    Batch, Group, Membership, NewRecord, Offset, Ownership, Partition, Store, Topic,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(120);
const PARTITIONS: u32 = 4;

/// A process of the group.
struct Process {
    store: Arc<dyn Store>,
    member: Box<dyn Membership>,
    own: BTreeSet<Partition>,
    left: usize,
}

impl Process {
    fn join(options: &Options, name: &str, shared: &Topic) -> Process {
        let group = Group::new("workers").unwrap();
        let (store, member) = kafka::join(options, &group, name).unwrap();
        store.ensure_topic(shared, PARTITIONS).unwrap();
        member.subscribe(std::slice::from_ref(shared)).unwrap();
        Process { store, member, own: BTreeSet::new(), left: 0 }
    }

    fn look(&mut self) {
        let Process { member, own, left, .. } = self;
        member
            .changes(&mut |change| match change {
                Ownership::Gained(gained) => own.extend(gained),
                Ownership::Leaving(leaving) => {
                    *left += leaving.len();
                    own.retain(|partition| !leaving.contains(partition));
                }
                Ownership::Lost(_) => panic!("no process was silent"),
            })
            .unwrap();
    }

    fn commit(
        &self,
        to: &Partition,
        value: &str,
        next: u64,
    ) -> Result<(), alpheus_transport::Error> {
        let mut batch = Batch::new();
        let record = NewRecord { value: value.as_bytes(), ..Default::default() };
        batch.append(to, &record).unwrap();
        batch.set_position(&Group::new("workers").unwrap(), to, Offset(next));
        self.store.commit(batch).map(|_| ())
    }

    fn position(&self, of: &Partition) -> Option<Offset> {
        self.store.position(&Group::new("workers").unwrap(), of).unwrap()
    }
}

fn until(processes: &mut [&mut Process], holds: impl Fn(&[&mut Process]) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds(processes) {
        assert!(Instant::now() < end, "partitions do not come");
        processes.iter_mut().for_each(|process| process.look());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn partitions_are_one_process_s_at_a_time_and_positions_are_the_groups() {
    let Some(broker) = Broker::shared() else { return };
    let (options, shared) = (options(broker), topic("t"));
    let mut first = Process::join(&options, "first", &shared);
    until(&mut [&mut first], |all| all[0].own.len() == 4);
    assert_eq!(first.position(&shared.partition(0)), None);
    for at in 0..PARTITIONS {
        first.commit(&shared.partition(at), "a", 1 + u64::from(at)).unwrap();
    }
    let mut second = Process::join(&options, "second", &shared);
    until(&mut [&mut first, &mut second], |all| all[0].own.len() == 2 && all[1].own.len() == 2);
    assert_eq!(first.left, 2, "only what moves was given up");
    assert!(first.own.is_disjoint(&second.own));
    let moved = second.own.first().unwrap().clone();
    assert_eq!(second.position(&moved), Some(Offset(1 + u64::from(moved.index))));
    second.commit(&moved, "b", 9).unwrap();
    // One that goes is not missed for long.
    drop(first);
    until(&mut [&mut second], |all| all[0].own.len() == 4);
    assert_eq!(second.position(&moved), Some(Offset(9)));
    assert_eq!(values(second.store.as_ref(), &moved), ["a", "b"]);
}

#[test]
fn commits_of_a_process_that_has_left_the_group_count_for_nothing() {
    let Some(broker) = Broker::shared() else { return };
    let (options, shared) = (options(broker), topic("t"));
    let mut first = Process::join(&options, "first", &shared);
    until(&mut [&mut first], |all| all[0].own.len() == 4);
    let to = shared.partition(0);
    first.commit(&to, "a", 1).unwrap();
    // Another process of its name is there, as after a restart.
    let second = Process::join(&options, "first", &shared);
    assert!(first.commit(&to, "b", 2).is_err());
    assert_eq!(second.position(&to), Some(Offset(1)));
    assert_eq!(values(second.store.as_ref(), &to), ["a"]);
}

#[test]
fn brokers_say_their_time_with_the_records_of_a_stamped_topic() {
    let Some(broker) = Broker::shared() else { return };
    let (options, plain, stamped) = (options(broker), topic("plain"), topic("stamped"));
    let mut one = Process::join(&options, "one", &plain);
    until(&mut [&mut one], |all| all[0].own.len() == 4);
    one.commit(&plain.partition(0), "a", 1).unwrap();
    assert_eq!(one.member.time(), None);
    one.store.ensure_stamped_topic(&stamped, PARTITIONS).unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let (before, begun) = (now(), Instant::now());
    one.commit(&stamped.partition(0), "b", 1).unwrap();
    let (said, after) = (one.member.time().unwrap(), now());
    assert!(begun <= said.sent && said.sent <= said.heard && said.heard <= Instant::now());
    // The broker is on this machine, and says milliseconds.
    assert!((before - 1000..=after).contains(&u128::from(said.at)), "{said:?}: {before} {after}");
    let refused = one.store.ensure_stamped_topic(&plain, PARTITIONS).unwrap_err().to_string();
    assert!(refused.contains("message.timestamp.type=CreateTime"), "{refused}");
}
