//! Group commit with a disk whose speed the test controls.

use super::*;
use crate::names::Topic;
use crate::record::NewRecord;
use crate::store::Store;
use crate::tables::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Each flush reports its start, and ends when the test allows it.
struct Slow {
    begun: Sender<()>,
    may_end: Mutex<Receiver<()>>,
}

impl Tables for Slow {
    fn apply(&self, _: Vec<Op>) -> Result<(), Error> {
        self.begun.send(()).unwrap();
        self.may_end.lock().unwrap().recv().unwrap();
        Ok(())
    }

    fn get(&self, _: Table, _: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }

    fn floor(&self, _: Table, _: &[u8], _: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }

    fn range(
        &self,
        _: Table,
        _: Range<'_>,
        _: &mut dyn FnMut(Bytes, Bytes) -> bool,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn keys(&self, _: Table, _: Range<'_>, _: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        Ok(())
    }

    fn all(&self, _: &mut dyn FnMut(Table, Bytes, Bytes) -> bool) -> Result<(), Error> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

#[test]
fn commits_during_a_flush_share_the_next_flush() {
    const WAIT: u64 = 7;
    let ((begun, begins), (end, may_end)) = (channel(), channel());
    let slow = Slow { begun, may_end: Mutex::new(may_end) };
    let engine = Engine::open(slow, PathBuf::new(), 1 << 20).unwrap();
    let topic = Topic::new("t").unwrap();
    end.send(()).unwrap();
    engine.ensure_topic(&topic, 1).unwrap();
    begins.recv().unwrap();
    let before = engine.stats();
    let commit = || {
        let mut batch = Batch::new();
        let record = NewRecord { value: b"r", ..Default::default() };
        batch.append(&topic.partition(0), &record).unwrap();
        engine.commit(batch).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(commit);
        begins.recv().unwrap();
        (0..WAIT).for_each(|_| drop(scope.spawn(commit)));
        while engine.queue.waiting() as u64 != WAIT {
            std::thread::yield_now();
        }
        assert!(begins.try_recv().is_err(), "one flush at a time");
        (0..2).for_each(|_| end.send(()).unwrap());
    });
    let after = engine.stats();
    assert_eq!((after.batches - before.batches, after.syncs - before.syncs), (1 + WAIT, 2));
}
