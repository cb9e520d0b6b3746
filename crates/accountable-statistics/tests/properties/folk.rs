//! People and what they send: shared by the tests.

use crate::support::{Person, Town, at, sealing, signing};
use alpheus_accountable_statistics::client::{Attempt, Client};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Turn};
use alpheus_accountable_statistics::messages::{
    Deposit, Entry, Grant, Release, Shown, SlotRequest, Upload, decode, showing_digest,
};
use alpheus_accountable_statistics::refused::{NoSlot, NotContributed};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::messages::Login;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;

/// A ledger that stores nothing and says so.
pub(crate) struct Broken;

impl Ledger for Broken {
    fn commit(&mut self, _: &[Change]) -> Result<(), LedgerError> {
        Err(LedgerError)
    }
}

pub(crate) fn people(town: &mut Town, count: u8) -> Vec<Person> {
    (0..count).map(|account| town.person(&[account]).unwrap()).collect()
}

/// Another device with somebody's credentials, as of when they were issued.
pub(crate) fn copy(town: &Town, person: &Person) -> Person {
    let is_credential =
        |(key, _): &(Vec<u8>, Vec<u8>)| key.windows(10).any(|part| part == b"credential");
    let store: crate::support::Ledger =
        person.store.clone().into_iter().filter(is_credential).collect();
    restored(town, store)
}

/// Somebody who has one person's upload credential and another's for slots.
pub(crate) fn mixed(town: &Town, uploads: &Person, slots: &Person) -> Person {
    let mut store = copy(town, slots).store;
    store.retain(|key, _| key.first() != Some(&b'u'));
    store.extend(copy(town, uploads).store.into_iter().filter(|(key, _)| key[0] == b'u'));
    restored(town, store)
}

pub(crate) fn restored(town: &Town, store: crate::support::Ledger) -> Person {
    let period = alpheus_anonymous_credential::schedule::Period(crate::support::TODAY / 7);
    let client = Client::restore(&town.pinned, period, store.clone()).unwrap().unwrap();
    Person { client, store }
}

/// An attempt that has asked for nothing yet.
pub(crate) fn begun(town: &mut Town, person: &mut Person, agreed: &Agreed, value: i64) -> Attempt {
    let given = Contribution::Sample(value);
    let step = person.client.begin(at(70), agreed, given, &mut town.rng).unwrap();
    step.commit(&mut person.store).unwrap()
}

/// A grant as the smoother with this number would sign it, whatever it should.
pub(crate) fn grant(agreed: &Agreed, by: u8, slot: u32, ephemeral: VerifyingKey) -> Signed<Grant> {
    let grant = Grant { aggregate: agreed.name(), slot, turn: Turn(0), revision: 77, ephemeral };
    Signed::new(&grant, &crate::support::signing(by))
}

/// Takes a grant and gives the deposits that follow.
pub(crate) fn taken(
    town: &mut Town,
    person: &mut Person,
    attempt: &mut Attempt,
    (by, signed): (u8, &Signed<Grant>),
) -> Result<Vec<(SmootherId, Deposit)>, NotContributed> {
    let prover = Prover::new(*attempt.agreed().terms());
    let by = SmootherId(by.into());
    let client = &mut person.client;
    let step = attempt.granted(client, &prover, (by, signed), at(70), &mut town.rng)?;
    step.commit(&mut person.store).unwrap();
    Ok(attempt.deposits())
}

/// Both with a grant of slot 0, signed by its keeper.
pub(crate) fn rivals(
    town: &mut Town,
    agreed: &Agreed,
    people: &mut [Person],
) -> Vec<(Attempt, Vec<(SmootherId, Deposit)>)> {
    let rival = |person: &mut Person| {
        let mut attempt = begun(town, person, agreed, 50);
        let granted = grant(agreed, 0, 0, attempt.ephemeral());
        let deposits = taken(town, person, &mut attempt, (0, &granted)).unwrap();
        (attempt, deposits)
    };
    people.iter_mut().take(2).map(rival).collect()
}

/// What the smoothers say to deposits, each to its own.
pub(crate) fn answers(
    town: &mut Town,
    deposits: Vec<(SmootherId, Deposit)>,
) -> Vec<Result<(), NoSlot>> {
    let answer =
        |(to, deposit)| town.receive(to, deposit, at(70)).map(|receipt| assert!(receipt.is_some()));
    deposits.into_iter().map(answer).collect()
}

/// What an aggregator that does as it likes can show of a release.
pub(crate) fn opened(agreed: &Agreed, release: &Release) -> Vec<(Entry, Shown)> {
    let open = |(entry, sealed): (&Entry, &_)| {
        let context = [
            entry.aggregate.as_bytes().to_vec(),
            entry.slot.to_be_bytes().to_vec(),
            entry.revision.to_be_bytes().to_vec(),
            entry.ephemeral.as_bytes().to_vec(),
        ];
        let context = context.each_ref().map(Vec::as_slice);
        let bytes = sealing().open_bytes(labels::STATISTICS_SEALED, &context, sealed).ok()?;
        let upload: Upload = decode(&bytes)?;
        let login = Login::from_bytes(&upload.showing, agreed.quota).ok()?;
        let showing = showing_digest(&upload.showing);
        let shown = Shown { slot: entry.slot, tag: login.tag, tuple: upload.tuple, showing };
        Some((*entry, shown))
    };
    let listed = release.listed.iter();
    listed.filter_map(|listed| open((&listed.entry, &listed.sealed))).collect()
}

/// A client that deposits what it likes, with a key, showings and perhaps a grant that are good.
pub(crate) struct Free {
    key: SigningKey,
    keeper: SmootherId,
    grant: Signed<Grant>,
    granted: Grant,
    key_epoch: KeyEpoch,
    showings: Vec<(SmootherId, Vec<u8>)>,
}

impl Free {
    /// With slot 0, as its keeper would grant it.
    pub(crate) fn without(town: &mut Town, person: &mut Person, agreed: &Agreed) -> Self {
        let mut attempt = begun(town, person, agreed, 1);
        let ephemeral = attempt.ephemeral();
        let record = [b"w".as_slice(), ephemeral.as_bytes()].concat();
        let seed = &person.store.get(&record).unwrap()[32..64];
        let key = SigningKey::from_seed(&derive(seed, labels::STATISTICS_EPHEMERAL, &[]));
        assert_eq!(key.verifying_key(), ephemeral);
        let asked = std::iter::from_fn(|| {
            let request = attempt.request().ok();
            attempt.refused();
            request
        });
        let showings = asked.map(|(to, request)| (to, request.showing)).collect();
        let granted =
            Grant { aggregate: agreed.name(), slot: 0, turn: Turn(0), revision: 77, ephemeral };
        let grant = Signed::new(&granted, &signing(0));
        let (keeper, key_epoch) = (SmootherId(0), agreed.key_epoch);
        Self { key, keeper, grant, granted, key_epoch, showings }
    }

    /// With a slot that a keeper has given.
    pub(crate) fn with_a_slot(town: &mut Town, person: &mut Person, agreed: &Agreed) -> Self {
        let mut free = Self::without(town, person, agreed);
        let (keeper, showing) = free.showings[0].clone();
        let (aggregate, ephemeral) = (agreed.name(), free.key.verifying_key());
        let request = SlotRequest { aggregate, ephemeral, showing };
        let by = usize::from(keeper.0);
        let step = town.smoothers[by].request(at(70), &request, &mut town.rng).unwrap();
        let grant = step.commit(&mut town.ledgers[by]).unwrap();
        let granted = grant.open(town.pinned.key(keeper).unwrap()).unwrap().into_inner();
        (free.keeper, free.grant, free.granted) = (keeper, grant, granted);
        free
    }

    /// What it is granted.
    pub(crate) fn grant(&self) -> Grant {
        self.granted
    }

    /// Takes a grant as the smoother with this number would sign it.
    pub(crate) fn take(&mut self, by: u8, grant: &Grant) {
        (self.keeper, self.granted) = (SmootherId(by.into()), *grant);
        self.grant = Signed::new(grant, &signing(by));
    }

    pub(crate) fn entry(&self, content: Digest, sealed: &Sealed) -> Entry {
        Entry::of(&self.granted, self.key_epoch, content, sealed)
    }

    pub(crate) fn deposits(&self, content: Digest, sealed: &Sealed) -> Vec<(SmootherId, Deposit)> {
        let entry = postcard::to_allocvec(&self.entry(content, sealed)).unwrap();
        let signature = self.key.sign(labels::STATISTICS_DEPOSIT, &entry);
        let deposit = |(to, showing): &(SmootherId, Vec<u8>)| {
            let (keeper, grant) = (self.keeper, self.grant.clone());
            let (sealed, showing, receipts) = (sealed.clone(), showing.clone(), Vec::new());
            (*to, Deposit { keeper, grant, content, sealed, signature, showing, receipts })
        };
        self.showings.iter().map(deposit).collect()
    }
}
