//! A sender against a service that is slow, strict, new or restored from an older copy.

use super::*;
use crate::produce::outbox::OutboxError;
use crate::server::intake::Intake;
use crate::wire::Upload;
use alpheus_node::network::error::Problem;
use alpheus_node::service::health::Health;
use alpheus_node::service::shutdown::Trigger;
use alpheus_policy::ids::StreamId;
use alpheus_stream_runtime::refused_frames::{RefusalReason, RefusedFrame};
use alpheus_transport::Store;
use alpheus_transport::simulation::Machine;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::sync::Mutex;

/// Longer than any of these tests.
const POLL: Duration = Duration::from_secs(3600);
const STREAM: StreamId = StreamId([1; 16]);

/// An outbox, and the last upload that was taken of it.
type Last = ([u8; 16], u64);

/// A service with a bound on a request's bytes, which may not know the stream yet.
#[derive(Clone)]
struct Service {
    most: usize,
    /// Requests that it answers with `NotYours` first.
    ignorant: Arc<Mutex<u32>>,
    refuses: bool,
    /// Whether the stream is withdrawn.
    withdrawn: Arc<AtomicBool>,
    /// What it says of frames.
    says: Vec<RefusedFrame>,
    last: Arc<Mutex<Option<Last>>>,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Service {
    fn new(most: usize) -> Service {
        let (ignorant, withdrawn) = (Arc::default(), Arc::default());
        let (last, frames) = (Arc::default(), Arc::default());
        Service { most, ignorant, refuses: false, withdrawn, says: Vec::new(), last, frames }
    }

    fn frames(&self) -> Vec<Vec<u8>> {
        self.frames.lock().unwrap().clone()
    }
}

fn refused(status: u16) -> RequestError {
    let (rule, detail) = ("test".to_owned(), "the test refuses".to_owned());
    RequestError::Refused(Problem { rule, detail, help: None, query: None, status, id: None })
}

impl UploadClient for Service {
    fn send(&self, uploads: &[Upload]) -> Result<Receipt, RequestError> {
        if self.refuses {
            return Err(refused(403));
        }
        if postcard::to_allocvec(uploads).unwrap().len() > self.most {
            return Err(refused(413));
        }
        if self.withdrawn.load(Ordering::Relaxed) {
            return Ok(receipt(vec![UploadStatus::Withdrawn; uploads.len()]));
        }
        let mut ignorant = self.ignorant.lock().unwrap();
        if *ignorant > 0 {
            *ignorant -= 1;
            return Ok(receipt(vec![UploadStatus::NotYours; uploads.len()]));
        }
        let mut last = self.last.lock().unwrap();
        let mut repeated = false;
        let mut take = |upload: &Upload| {
            let became = crate::server::intake::not_wanted(*last, repeated, upload);
            repeated |= matches!(became, Some(UploadStatus::Before { .. }));
            if became.is_none() {
                *last = Some((upload.outbox, upload.number));
                self.frames.lock().unwrap().extend(upload.frames.clone());
            }
            became.unwrap_or(UploadStatus::Taken)
        };
        let uploads = uploads.iter().map(&mut take).collect();
        Ok(Receipt { uploads, refused: self.says.clone() })
    }
}

fn receipt(uploads: Vec<UploadStatus>) -> Receipt {
    Receipt { uploads, refused: Vec::new() }
}

fn outbox(store: &Arc<dyn Store>, seed: u64) -> Outbox {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Outbox::open(Arc::clone(store), STREAM, &mut rng).unwrap().0
}

fn frames(from: usize, to: usize, bytes: usize) -> Vec<Vec<u8>> {
    let one = |number: usize| {
        let mut frame = vec![7; bytes];
        frame[..8].copy_from_slice(&number.to_be_bytes());
        frame
    };
    (from..to).map(one).collect()
}

fn send_all(service: &Service, outbox: Outbox) -> Result<(), Failure> {
    Sender::start(service.clone(), outbox, Health::new().part("service"), POLL)
        .unwrap()
        .finish(&never())
}

/// Nobody asks to stop. (A trigger that is gone does.)
fn never() -> Shutdown {
    Box::leak(Box::new(Trigger::new())).shutdown()
}

#[test]
fn a_backlog_larger_than_a_request_may_be_arrives() {
    let (machine, service) = (Machine::new(), Service::new(3 << 20));
    let outbox = outbox(&machine.open().unwrap(), 1);
    // Frames of 857 words, 256 at a time: each batch is more than a megabyte.
    for batch in 0..20 {
        outbox.put(frames(256 * batch, 256 * (batch + 1), 8 * 857), None, &[]).unwrap();
    }
    send_all(&service, outbox).unwrap();
    assert!(service.frames() == frames(0, 256 * 20, 8 * 857), "frames are lost or out of order");
}

/// The device opens another session only where that heals, and once.
#[test]
fn a_device_learns_which_session_the_service_does_not_take() {
    for (reason, heals) in [
        (RefusalReason::UnknownSession, true),
        (RefusalReason::UnknownIngestKey, true),
        (RefusalReason::UnknownDevice, true),
        (RefusalReason::SessionEnded, true),
        (RefusalReason::Late, false),
        (RefusalReason::BadMac, false),
        (RefusalReason::ConflictingFrame, false),
        (RefusalReason::Other("future".to_owned()), false),
    ] {
        let (machine, mut service) = (Machine::new(), Service::new(3 << 20));
        service.says = vec![RefusedFrame { stream: STREAM, session: 7, reason: reason.clone() }];
        let outbox = outbox(&machine.open().unwrap(), 1);
        outbox.put(frames(0, 1, 100), None, &[]).unwrap();
        let sender = Sender::start(service, outbox, Health::new().part("service"), POLL).unwrap();
        let refused = sender.refused();
        sender.finish(&never()).unwrap();
        assert!(!refused.take(8), "another session is not meant");
        assert_eq!(refused.take(7), heals, "{reason:?}");
        assert!(!refused.take(7));
    }
}

/// The previous session as the next session's opening names it.
#[test]
fn an_outbox_remembers_the_last_session_and_border() {
    let machine = Machine::new();
    let store = machine.open().unwrap();
    assert_eq!(outbox(&store, 1).reached().unwrap(), None);
    let reached = Some((u64::MAX, alpheus_time::Timestamp(77)));
    outbox(&store, 1).put(frames(0, 1, 100), reached, &[]).unwrap();
    outbox(&store, 1).put(frames(1, 2, 100), None, &[]).unwrap();
    assert_eq!(outbox(&store, 1).reached().unwrap(), reached);
}

#[test]
fn an_upload_that_is_refused_for_good_ends_sending_with_the_reason() {
    let (machine, service) = (Machine::new(), Service::new(1000));
    let outbox = outbox(&machine.open().unwrap(), 1);
    outbox.put(frames(0, 1, 2000), None, &[]).unwrap();
    let failure = send_all(&service, outbox.clone()).unwrap_err();
    assert!(failure.to_string().contains("the test refuses"), "{failure}");
    assert!(matches!(outbox.put(frames(1, 2, 8), None, &[]), Err(OutboxError::Closed)));
}

#[test]
fn a_service_that_learns_of_the_stream_later_gets_it_all() {
    let (machine, service) = (Machine::new(), Service::new(1 << 20));
    let outbox = outbox(&machine.open().unwrap(), 1);
    *service.ignorant.lock().unwrap() = 3;
    outbox.put(frames(0, 10, 100), None, &[]).unwrap();
    send_all(&service, outbox).unwrap();
    assert_eq!(service.frames(), frames(0, 10, 100));
}

/// Nobody asks the device to stop, and its input has not ended.
#[test]
fn the_device_of_a_withdrawn_stream_ends_and_keeps_what_waits() {
    let (machine, service) = (Machine::new(), Service::new(1 << 20));
    let store = machine.open().unwrap();
    let own = put(outbox(&store, 1), 0, 5);
    service.withdrawn.store(true, Ordering::Relaxed);
    let part = Health::new().part("service");
    let sender = Sender::start(service.clone(), own.clone(), part, POLL).unwrap();
    while !sender.has_ended() {
        std::thread::sleep(LOOK);
    }
    assert!(matches!(own.put(frames(5, 6, 100), None, &[]), Err(OutboxError::Closed)));
    let failure = sender.finish(&never()).unwrap_err();
    assert!(failure.to_string().contains("the owner has withdrawn the stream"), "{failure}");
    assert_eq!(failure.category(), Category::Refused);
    // A service that was mistaken gets all of it from the next start.
    service.withdrawn.store(false, Ordering::Relaxed);
    send_all(&service, put(outbox(&store, 2), 5, 6)).unwrap();
    assert_eq!(service.frames(), frames(0, 6, 100));
}

#[test]
fn a_permanent_refusal_wakes_callers_that_wait_to_add_frames() {
    let machine = Machine::new();
    let service = Service { refuses: true, ..Service::new(1 << 20) };
    let outbox = outbox(&machine.open().unwrap(), 1);
    let health = Health::new();
    outbox.put(frames(0, 1, 100), None, &[]).unwrap();
    let sender = Sender::start(service, outbox.clone(), health.part("service"), POLL).unwrap();
    let refused =
        std::iter::repeat_with(|| outbox.put(frames(0, 1, 100), None, &[])).find(Result::is_err);
    assert!(matches!(refused, Some(Err(OutboxError::Closed))));
    assert!(!health.report().ready);
    assert!(sender.finish(&never()).is_err());
}

#[test]
fn a_device_restored_from_an_older_state_loses_nothing_new() {
    let (machine, service) = (Machine::new(), Service::new(1 << 20));
    let store = machine.open().unwrap();
    send_all(&service, put(outbox(&store, 1), 0, 5)).unwrap();
    // The copy is made here; then five more uploads arrive.
    let older: Vec<_> = store
        .scan(
            &alpheus_transport::Space::new("outbox").unwrap(),
            b"",
            std::ops::Bound::Unbounded,
            100,
        )
        .unwrap();
    send_all(&service, put(outbox(&store, 1), 5, 10)).unwrap();
    // Back to the copy, and on with other frames.
    let restored = Machine::new().open().unwrap();
    let space = alpheus_transport::Space::new("outbox").unwrap();
    restored.ensure_space(&space).unwrap();
    let mut batch = alpheus_transport::Batch::new();
    for (key, value) in older {
        batch.put(&space, key.to_vec(), value.to_vec()).unwrap();
    }
    restored.commit(batch).unwrap();
    send_all(&service, put(outbox(&restored, 2), 100, 120)).unwrap();
    let new = frames(100, 120, 100);
    let arrived = service.frames();
    assert!(new.iter().all(|frame| arrived.contains(frame)), "new frames were dropped");
    assert_eq!(arrived.len(), 10 + 20, "something came twice");
}

/// Each frame an upload of its own.
fn put(outbox: Outbox, from: usize, to: usize) -> Outbox {
    frames(from, to, 100).into_iter().for_each(|frame| outbox.put(vec![frame], None, &[]).unwrap());
    outbox
}

#[test]
fn a_service_restored_from_an_older_state_gets_what_waits_under_a_new_name() {
    let (machine, service) = (Machine::new(), Service::new(1 << 20));
    let store = machine.open().unwrap();
    send_all(&service, put(outbox(&store, 1), 0, 5)).unwrap();
    let (name, _) = service.last.lock().unwrap().unwrap();
    *service.last.lock().unwrap() = Some((name, 2));
    send_all(&service, put(outbox(&store, 1), 5, 8)).unwrap();
    assert_eq!(service.frames(), frames(0, 8, 100));
    assert_ne!(service.last.lock().unwrap().unwrap().0, name);
    // The renamed outbox continues after a restart.
    send_all(&service, put(outbox(&store, 1), 8, 9)).unwrap();
    assert_eq!(service.frames(), frames(0, 9, 100));
}

/// The service's own intake answers as the service above does.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_wait_for_each_other_hold_no_thread() {
    let store = Machine::new().open().unwrap();
    let topics = alpheus_stream_runtime::storage::Topics::new(1).unwrap();
    store.ensure_topic(&topics.events, 1).unwrap();
    store.ensure_space(&topics.service).unwrap();
    let intake = Intake::new(store, topics);
    let upload = |number| Upload { stream: STREAM, outbox: [1; 16], number, frames: vec![] };
    // More than there are threads for blocking work.
    let many = (1..=600).map(|number| {
        let (intake, upload) = (intake.clone(), upload(number));
        tokio::spawn(async move { intake.take("device", vec![upload]).await })
    });
    for taken in many.collect::<Vec<_>>() {
        taken.await.unwrap().unwrap().unwrap();
    }
}

/// A device that has sent all it had hears that the service refuses it, without another frame.
#[test]
fn an_idle_device_asks_whether_it_is_still_welcome() {
    let (machine, mut service) = (Machine::new(), Service::new(1 << 20));
    service.refuses = true;
    let outbox = outbox(&machine.open().unwrap(), 1);
    let part = Health::new().part("service");
    let sender = Sender::start(service, outbox.clone(), part, Duration::ZERO).unwrap();
    while !sender.has_ended() {
        std::thread::sleep(LOOK);
    }
    assert!(outbox.is_closed(), "nobody waits for it any longer");
    let failure = sender.finish(&never()).unwrap_err().to_string();
    assert!(failure.contains("the test refuses"), "{failure}");
}
