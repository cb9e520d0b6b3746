//! What a smoother hears of aggregates that it does not know: its own words, words of days that
//! it has forgotten, and words that come too early.

use super::*;
use crate::pass::ledger::Found;
use crate::stats::clock::Hand;
use crate::stats::testing::Place;
use alpheus_accountable_statistics::keymaking::Patience;
use alpheus_accountable_statistics::messages::Receipt;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_transport::simulated::Machine;
use tokio::sync::oneshot;

const PATIENCE: Patience = Patience { word: 1, attempt: 1 };
const DAY: u64 = 86_400_000_000;

/// The first smoother of a place, alone, and its clock.
struct Alone {
    place: Place,
    engine: Engine,
    hand: Hand,
}

impl Alone {
    fn new() -> Self {
        let place = Place::new();
        let file = place.folder.path().join("clock");
        let hand = Hand::create(&file, Place::now()).unwrap();
        let (store, fence) = (Machine::new().open().unwrap(), place.folder.path().join("fence"));
        let found: Found =
            FencedLedger::open_spaces(store, &fence, None, ["stats", "stats-fence"]).unwrap();
        let clock = Clock::of(Some(&file)).unwrap();
        let keys = place.keys("smoother-1");
        let engine = super::super::restore(found, (&place.card, PATIENCE), &keys, clock).unwrap();
        Self { place, engine, hand }
    }

    /// Does what it is asked, all of it.
    fn does(&mut self, jobs: impl IntoIterator<Item = Job>) {
        let (to, mut waiting) = mpsc::channel(64);
        jobs.into_iter().for_each(|job| to.try_send(job).ok().unwrap());
        to.try_send(Job::Stop).ok().unwrap();
        self.engine.work(&mut waiting).unwrap();
    }

    /// What it says to a client's certificate.
    fn certify(&mut self, certificate: &Endorsed<Entry>) -> Result<(), NotHeard> {
        let (reply, mut answer) = oneshot::channel();
        self.does([Job::Certify(Box::new(certificate.clone()), reply)]);
        answer.try_recv().unwrap()
    }

    fn entry(&self, agreed: &Agreed) -> Entry {
        let ephemeral = SigningKey::from_seed(&Secret::from_bytes([9; 32])).verifying_key();
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

    /// Knows the aggregate from now on.
    fn learns(&mut self, agreed: &Agreed) {
        let mut endorsed = Endorsed::default();
        let signed = |by: u16| self.place.signed_by(by.into(), &**agreed);
        (0..4).for_each(|by| endorsed.add(SmootherId(by), signed(by)));
        let (reply, mut answer) = oneshot::channel();
        self.does([Job::Learn(Box::new(endorsed), reply)]);
        assert_eq!(answer.try_recv().unwrap(), Ok(()));
    }

    fn receipts(&self, entry: &Entry, by: u16, many: usize) -> Job {
        let receipt = Receipt { by: SmootherId(by), entry: self.place.signed_by(by.into(), entry) };
        Job::Heard(SmootherId(by), vec![Said::Receipt(Box::new(receipt)); many])
    }

    fn sits_out(&self, agreed: &Agreed) -> bool {
        self.engine.smoother.sits_out(agreed.key_epoch)
    }
}

/// Who posts a certificate is answered when it was checked: it is taken, or the reason is said.
#[test]
fn a_certificate_is_answered_once_it_is_checked() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let entry = alone.entry(&agreed);
    assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Err(NotHeard::Unknown));
    alone.learns(&agreed);
    let few = alone.certificate(&entry, 1..3);
    assert_eq!(alone.certify(&few), Err(NotHeard::NotCertified));
    assert_eq!(alone.certify(&Endorsed::default()), Err(NotHeard::NotCertified));
    let elsewhere = Entry { slot: agreed.slots, ..entry };
    let elsewhere = alone.certificate(&elsewhere, 1..4);
    assert_eq!(alone.certify(&elsewhere), Err(NotHeard::OtherSet));
    assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Ok(()));
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
    assert!(!alone.sits_out(&agreed));
}

/// It has lost the definition too, and what it has signed is shown to it by whoever has it.
#[test]
fn own_words_of_an_aggregate_that_is_not_known_make_a_smoother_sit_out() {
    let ways: [fn(&Alone, &Entry) -> Job; 3] = [
        |alone, entry| Job::Certified(vec![alone.certificate(entry, 0..3)]),
        |alone, entry| alone.receipts(entry, 0, 1),
        |alone, entry| {
            let Entry { aggregate, key_epoch, content, .. } = *entry;
            let ready = Ready { aggregate, key_epoch, ledger: content, tuples: content };
            let ready = alone.place.signed_by(0, &ready);
            Job::Heard(SmootherId(0), vec![Said::Ready(ready)])
        },
    ];
    for own in ways {
        let mut alone = Alone::new();
        let agreed = alone.place.agreed(0);
        let entry = alone.entry(&agreed);
        // What others have signed says nothing about this one.
        let others = alone.certificate(&entry, 1..4);
        let receipts = alone.receipts(&entry, 1, 1);
        alone.does([Job::Certified(vec![others]), receipts]);
        assert!(!alone.sits_out(&agreed));
        let job = own(&alone, &entry);
        alone.does([job]);
        assert!(alone.sits_out(&agreed));
    }
    // A client learns that it was taken note of.
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let own = alone.certificate(&alone.entry(&agreed), 0..3);
    assert_eq!((alone.certify(&own), alone.sits_out(&agreed)), (Ok(()), true));
}

/// What comes before its definition waits for it.
#[test]
fn words_that_come_before_their_definition_are_heard_after_it() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let entry = alone.entry(&agreed);
    let early: Vec<Job> = (1..4).map(|by| alone.receipts(&entry, by, 1)).collect();
    alone.does(early);
    assert_eq!(alone.engine.early.len(), 3);
    alone.learns(&agreed);
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
    assert!(alone.engine.early.is_empty());
}

/// Peers say for days what they have said; of days that a smoother has forgotten it keeps nothing,
/// or there would be no room for what comes too early.
#[test]
fn words_of_days_that_are_forgotten_take_nobodys_room() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    let old = alone.entry(&agreed);
    let later = Time(Place::now().0 + 4 * DAY);
    alone.hand.set(later).unwrap();
    alone.does([Job::Tick]);
    assert!(alone.engine.smoother.first_epoch() > agreed.key_epoch);
    let jobs = [alone.receipts(&old, 1, EARLY), alone.receipts(&old, 0, 1)];
    alone.does(jobs);
    assert!(alone.engine.early.is_empty() && !alone.sits_out(&agreed));
    let agreed = alone.place.agreed(4 * 24);
    let entry = alone.entry(&agreed);
    let early: Vec<Job> = (1..4).map(|by| alone.receipts(&entry, by, 1)).collect();
    alone.does(early);
    alone.learns(&agreed);
    assert_eq!(alone.engine.smoother.certified(&agreed.name(), 3), Some(&entry));
}

/// Certificates are shown some slots at a time, from any slot on.
#[test]
fn certificates_are_shown_from_a_slot_on() {
    let mut alone = Alone::new();
    let agreed = alone.place.agreed(0);
    alone.learns(&agreed);
    for slot in [3, 5, 8] {
        let entry = Entry { slot, ..alone.entry(&agreed) };
        assert_eq!(alone.certify(&alone.certificate(&entry, 1..4)), Ok(()));
    }
    let mut shown = |from| {
        let (reply, mut answer) = oneshot::channel();
        alone.does([Job::Certificates(agreed.name(), from, reply)]);
        let part: Vec<Endorsed<Entry>> = answer.try_recv().unwrap();
        part.iter().map(|one| one.dangerous_unverified().unwrap().slot).collect::<Vec<_>>()
    };
    assert_eq!((shown(0), shown(4), shown(9)), (vec![3, 5, 8], vec![5, 8], vec![]));
}
