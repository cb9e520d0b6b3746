//! Messages on aggregates that a smoother does not know: its own, those of deleted days, and early
//! ones.

use super::*;
use crate::test_deployment::TestDeployment;
use alpheus_accountable_statistics::configuration::KeyEpoch;
use alpheus_accountable_statistics::keymaking::{Content, KeyMessage, Timeouts};
use alpheus_accountable_statistics::messages::Receipt;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_node::clock::ClockWriter;
use alpheus_node::ledger::OpenedLedger;
use alpheus_transport::simulation::Machine;
use tokio::sync::oneshot;

const PATIENCE: Timeouts =
    Timeouts { message: alpheus_time::Span(1), attempt: alpheus_time::Span(1) };
const DAY: u64 = 86_400_000_000;

/// The first smoother of a deployment, alone, and its clock.
struct Alone {
    place: TestDeployment,
    engine: Engine,
    clock_writer: ClockWriter,
}

impl Alone {
    fn new() -> Self {
        let place = TestDeployment::new();
        let file = place.folder.path().join("clock");
        let clock_writer = ClockWriter::create(&file, TestDeployment::now()).unwrap();
        let (store, fence) = (Machine::new().open().unwrap(), place.folder.path().join("fence"));
        let found: OpenedLedger =
            FencedLedger::open_spaces(store, &fence, None, ["stats", "stats-fence"]).unwrap();
        let clock = Clock::replayed(&file).unwrap();
        let keys = place.keys("smoother-1");
        let engine = super::super::restore(found, (&place.card, PATIENCE), &keys, clock).unwrap();
        Self { place, engine, clock_writer }
    }

    /// Makes all these calls.
    fn does(&mut self, calls: impl IntoIterator<Item = Call>) {
        let calls = calls.into_iter().chain([Call::Stop]).collect();
        assert!(engine::Engine::work(&mut self.engine, calls).unwrap().is_break());
    }

    /// The answer to a client's certificate.
    fn certify(&mut self, certificate: &Endorsed<Entry>) -> Result<(), StatementError> {
        let (reply, mut answer) = oneshot::channel();
        self.does([Call::Certify(Box::new(certificate.clone()), reply)]);
        answer.try_recv().unwrap()
    }

    fn entry(&self, agreed: &AgreedDefinition) -> Entry {
        let ephemeral = OneTimePublic::from_bytes([9; 32]);
        Entry {
            aggregate: agreed.name(),
            key_epoch: agreed.key_epoch,
            slot: 3,
            revision: 7,
            ephemeral,
            content: Digest([1; 32]),
            sealed: Digest([2; 32]),
        }
    }

    fn certificate(&self, entry: &Entry, by: impl IntoIterator<Item = u16>) -> Endorsed<Entry> {
        let mut endorsed = Endorsed::default();
        let signed = |by: u16| self.place.signed_by(by.into(), entry);
        by.into_iter().for_each(|by| endorsed.add(SmootherId(by), signed(by)));
        endorsed
    }

    /// Learns the aggregate's definition.
    fn learns(&mut self, agreed: &AgreedDefinition) {
        let mut endorsed = Endorsed::default();
        let signed = |by: u16| self.place.signed_by(by.into(), &**agreed);
        (0..4).for_each(|by| endorsed.add(SmootherId(by), signed(by)));
        let (reply, mut answer) = oneshot::channel();
        self.does([Call::Learn(Box::new(endorsed), reply)]);
        assert_eq!(answer.try_recv().unwrap(), Ok(()));
    }

    fn receipts(&self, entry: &Entry, by: u16, many: usize) -> Call {
        let receipt = Receipt { by: SmootherId(by), entry: self.place.signed_by(by.into(), entry) };
        Call::Messages(SmootherId(by), vec![PeerMessage::Receipt(Box::new(receipt)); many])
    }

    fn sits_out(&self, agreed: &AgreedDefinition) -> bool {
        self.engine.smoother.sits_out(agreed.key_epoch)
    }
}

/// The answer to a certificate follows its check: accepted, or an error.
#[test]
fn a_certificate_is_answered_once_it_is_checked() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let entry = alone.entry(&agreed);
    assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Err(StatementError::Unknown));
    alone.learns(&agreed);
    let few = alone.certificate(&entry, 1..3);
    assert_eq!(alone.certify(&few), Err(StatementError::NotCertified));
    assert_eq!(alone.certify(&Endorsed::default()), Err(StatementError::NotCertified));
    let elsewhere = Entry { slot: agreed.slots, ..entry };
    let elsewhere = alone.certificate(&elsewhere, 1..4);
    assert_eq!(alone.certify(&elsewhere), Err(StatementError::OtherSet));
    assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Ok(()));
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
    assert!(!alone.sits_out(&agreed));
}

/// The smoother has lost the definition, too, and receives its own signature from others.
#[test]
fn own_signatures_on_an_unknown_aggregate_make_a_smoother_sit_out() {
    let sources: [fn(&Alone, &Entry) -> Call; 3] = [
        |alone, entry| Call::Certified(vec![alone.certificate(entry, 0..3)]),
        |alone, entry| alone.receipts(entry, 0, 1),
        |alone, entry| {
            let Entry { aggregate, key_epoch, content, .. } = *entry;
            let ready = Ready { aggregate, key_epoch, ledger: content, tuples: content };
            let ready = alone.place.signed_by(0, &ready);
            Call::Messages(SmootherId(0), vec![PeerMessage::Ready(ready)])
        },
    ];
    for own in sources {
        let mut alone = Alone::new();
        let agreed = alone.place.agreed(0);
        let entry = alone.entry(&agreed);
        // Signatures of others say nothing about this one.
        let others = alone.certificate(&entry, 1..4);
        let receipts = alone.receipts(&entry, 1, 1);
        alone.does([Call::Certified(vec![others]), receipts]);
        assert!(!alone.sits_out(&agreed));
        let call = own(&alone, &entry);
        alone.does([call]);
        assert!(alone.sits_out(&agreed));
    }
    // A client learns that it was accepted.
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let own = alone.certificate(&alone.entry(&agreed), 0..3);
    assert_eq!((alone.certify(&own), alone.sits_out(&agreed)), (Ok(()), true));
}

/// Messages wait for their definition.
#[test]
fn early_messages_are_handled_once_the_definition_arrives() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let entry = alone.entry(&agreed);
    let early: Vec<Call> = (1..4).map(|by| alone.receipts(&entry, by, 1)).collect();
    alone.does(early);
    assert_eq!(alone.engine.early.len(), 3);
    alone.learns(&agreed);
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
    assert!(alone.engine.early.is_empty());
}

/// Peers repeat their messages for days. A smoother keeps none of days it has deleted, so there is
/// room for early ones.
#[test]
fn messages_of_deleted_days_take_no_room() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let old = alone.entry(&agreed);
    let later = alpheus_time::Timestamp(TestDeployment::now().0 + 4 * DAY);
    alone.clock_writer.set(later).unwrap();
    alone.does([Call::Tick]);
    assert!(alone.engine.smoother.first_epoch() > agreed.key_epoch);
    let calls = [alone.receipts(&old, 1, EARLY), alone.receipts(&old, 0, 1)];
    alone.does(calls);
    assert!(alone.engine.early.is_empty() && !alone.sits_out(&agreed));
    let agreed = alone.place.agreed(4 * 24);
    let entry = alone.entry(&agreed);
    let early: Vec<Call> = (1..4).map(|by| alone.receipts(&entry, by, 1)).collect();
    alone.does(early);
    alone.learns(&agreed);
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
}

/// Certificates are listed some slots at a time, from any slot on.
#[test]
fn certificates_are_listed_from_a_slot_on() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    alone.learns(&agreed);
    for slot in [3, 5, 8] {
        let entry = Entry { slot, ..alone.entry(&agreed) };
        assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Ok(()));
    }
    let mut shown = |from| {
        let (reply, mut answer) = oneshot::channel();
        alone.does([Call::Certificates(agreed.name(), from, reply)]);
        let part: Vec<Endorsed<Entry>> = answer.try_recv().unwrap();
        part.iter().map(|one| one.dangerous_unverified().unwrap().slot).collect::<Vec<_>>()
    };
    assert_eq!((shown(0), shown(4), shown(9)), (vec![3, 5, 8], vec![5, 8], vec![]));
}

/// Messages on the creation of keys that this smoother has not begun are kept within each peer's share
/// of number and bytes, and only of days that can come.
#[test]
fn early_key_messages_are_few_short_and_near() {
    let mut alone = Alone::new();
    alone.does([Call::Tick]);
    let running = alone.engine.key_store.pinned().key_epoch(TestDeployment::now()).unwrap();
    let mut send = |epoch: u64, size: usize, many: usize| {
        let content = Content::Dealing(vec![7; size]);
        let word = KeyMessage { epoch: KeyEpoch(epoch), attempt: 0, by: SmootherId(1), content };
        let word = PeerMessage::Word(alone.place.signed_by(1, &word));
        alone.does([Call::Messages(SmootherId(1), vec![word; many])]);
        alone.engine.key_store.early_of(SmootherId(1))
    };
    let soon = running.0 + 2;
    assert_eq!(send(soon, 1 << 20, 1), (0, 0), "longer than any honest one");
    assert_eq!(send(soon + 1, 9, 1), (0, 0), "too far away");
    assert_eq!(send(running.0.wrapping_sub(2), 9, 1), (0, 0), "long over");
    assert_eq!(send(soon, 9, 1).0, 1);
    let (many, held) = send(soon, 12_000, 2000);
    assert!(many <= 1024 && held <= 16 << 20, "{many} {held}");
}

/// A smoother that sends nothing but rejected messages does not fill the log, and the next page waits
/// for what was sent.
#[test]
fn rejected_messages_are_counted() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    alone.learns(&agreed);
    let forged =
        Receipt { by: SmootherId(1), entry: alone.place.signed_by(2, &alone.entry(&agreed)) };
    let forged = PeerMessage::Receipt(Box::new(forged));
    let (reply, mut answer) = oneshot::channel();
    alone.does([Call::Messages(SmootherId(1), vec![forged; 300]), Call::Done(reply)]);
    assert_eq!(alone.engine.rejected, [(SmootherId(1), 300)].into());
    assert_eq!(answer.try_recv(), Ok(()));
}
