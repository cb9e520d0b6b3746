//! People and their messages, shared by the tests.

use crate::support::{Person, Town, at, sealing, signing};
use alpheus_accountable_statistics::client::{Attempt, Client};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Turn};
use alpheus_accountable_statistics::messages::{
    ClosingTuple, Deposit, Entry, Grant, Release, SealedUpload, SlotRequest, Upload, decode,
    presentation_digest,
};
use alpheus_accountable_statistics::role_error::{ContributionError, SlotError};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::refutation::OpenPresentation;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::onetime::{OneTimeKey, OneTimePublic};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

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

/// Somebody with one person's upload credential and another's for slots.
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

/// An attempt that has requested nothing yet.
pub(crate) fn begun(
    town: &mut Town,
    person: &mut Person,
    agreed: &AgreedDefinition,
    value: i64,
) -> Attempt {
    let given = Contribution::Sample(value);
    let prover = Prover::new(*agreed.terms());
    let step = person.client.begin((agreed, &prover), given, at(70), &mut town.rng).unwrap();
    step.commit(&mut person.store).unwrap()
}

/// A grant signed by the smoother with this number, whether or not it should.
pub(crate) fn grant(
    agreed: &AgreedDefinition,
    by: u8,
    slot: u32,
    ephemeral: OneTimePublic,
) -> Signed<Grant> {
    let grant = Grant { aggregate: agreed.name(), slot, turn: Turn(0), revision: 77, ephemeral };
    Signed::new(&grant, &crate::support::signing(by))
}

/// Handles a grant and returns the resulting deposits.
pub(crate) fn taken(
    town: &mut Town,
    person: &mut Person,
    attempt: &mut Attempt,
    (by, signed): (u8, &Signed<Grant>),
) -> Result<Vec<(SmootherId, Deposit)>, ContributionError> {
    let (by, pinned) = (SmootherId(by.into()), &town.pinned);
    let step = attempt.handle_grant((by, signed), pinned, at(70), &mut town.rng)?;
    step.commit(&mut person.store).unwrap();
    Ok(attempt.deposits())
}

/// Both with a grant of slot 0, signed by its keeper.
pub(crate) fn rivals(
    town: &mut Town,
    agreed: &AgreedDefinition,
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

/// The smoothers' answers to deposits, each to its own.
pub(crate) fn answers(
    town: &mut Town,
    deposits: Vec<(SmootherId, Deposit)>,
) -> Vec<Result<(), SlotError>> {
    let answer =
        |(to, deposit)| town.receive(to, deposit, at(70)).map(|receipt| assert!(receipt.is_some()));
    deposits.into_iter().map(answer).collect()
}

/// What an aggregator that follows no rule can send of a release.
pub(crate) fn opened(agreed: &AgreedDefinition, release: &Release) -> Vec<(Entry, ClosingTuple)> {
    let key = sealing().unwrap();
    let open = |(entry, sealed): (&Entry, &SealedUpload)| {
        let context = [entry.aggregate.as_bytes().as_slice(), entry.content.as_bytes()];
        let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
        let bytes = key.open(&entry.ephemeral, context, sealed.as_bytes()).ok()?;
        let upload: Upload = decode(&bytes)?;
        let shown = OpenPresentation::from_bytes(&upload.presentation, agreed.quota).ok()?;
        let (slot, tag, tuple) = (entry.slot, shown.login.tag, upload.tuple);
        let presentation = presentation_digest(&upload.presentation);
        let shown = ClosingTuple { slot, tag, tuple, presentation };
        Some((*entry, shown))
    };
    let listed = release.slots.iter();
    listed.filter_map(|listed| open((&listed.entry, &listed.sealed))).collect()
}

/// A client that deposits what it likes, with a valid key, presentations and perhaps a grant.
pub(crate) struct Free {
    pub(crate) key: OneTimeKey,
    keeper: SmootherId,
    grant: Signed<Grant>,
    granted: Grant,
    key_epoch: KeyEpoch,
    presentations: Vec<(SmootherId, Vec<u8>)>,
}

impl Free {
    /// With slot 0, as its keeper would grant it.
    pub(crate) fn without(town: &mut Town, person: &mut Person, agreed: &AgreedDefinition) -> Self {
        let mut attempt = begun(town, person, agreed, 1);
        let ephemeral = attempt.ephemeral();
        let record = [b"w".as_slice(), ephemeral.as_bytes()].concat();
        let seed = Secret::from_slice(&person.store.get(&record).unwrap()[32..64]).unwrap();
        let key = OneTimeKey::from_seed(labels::STATISTICS_EPHEMERAL, &seed).unwrap();
        assert_eq!(key.public(), ephemeral);
        let asked = std::iter::from_fn(|| {
            let request = attempt.request().ok();
            attempt.handle_refusal();
            request
        });
        let presentations = asked.map(|(to, request)| (to, request.presentation)).collect();
        let granted =
            Grant { aggregate: agreed.name(), slot: 0, turn: Turn(0), revision: 77, ephemeral };
        let grant = Signed::new(&granted, &signing(0));
        let (keeper, key_epoch) = (SmootherId(0), agreed.key_epoch);
        Self { key, keeper, grant, granted, key_epoch, presentations }
    }

    /// With a slot that a keeper has granted.
    pub(crate) fn with_a_slot(
        town: &mut Town,
        person: &mut Person,
        agreed: &AgreedDefinition,
    ) -> Self {
        let mut free = Self::without(town, person, agreed);
        let (keeper, presentation) = free.presentations[0].clone();
        let (aggregate, ephemeral) = (agreed.name(), free.key.public());
        let request = SlotRequest { aggregate, ephemeral, presentation };
        let by = usize::from(keeper.0);
        let step = town.smoothers[by].handle_request(&request, at(70), &mut town.rng).unwrap();
        let grant = step.commit(&mut town.ledgers[by]).unwrap();
        let granted = grant.open(town.pinned.key(keeper).unwrap()).unwrap().into_inner();
        (free.keeper, free.grant, free.granted) = (keeper, grant, granted);
        free
    }

    /// The grant.
    pub(crate) fn grant(&self) -> Grant {
        self.granted
    }

    /// Uses a grant signed by the smoother with this number.
    pub(crate) fn use_grant(&mut self, grant: &Grant, by: u8) {
        (self.keeper, self.granted) = (SmootherId(by.into()), *grant);
        self.grant = Signed::new(grant, &signing(by));
    }

    pub(crate) fn entry(&self, content: Digest, sealed: &SealedUpload) -> Entry {
        Entry::of(&self.granted, self.key_epoch, content, sealed)
    }

    pub(crate) fn deposits(
        &self,
        content: Digest,
        sealed: &SealedUpload,
    ) -> Vec<(SmootherId, Deposit)> {
        let entry = postcard::to_allocvec(&self.entry(content, sealed)).unwrap();
        let rng = &mut ChaCha20Rng::from_seed([9; 32]);
        let signature = self.key.sign(labels::STATISTICS_DEPOSIT, &entry, rng).unwrap();
        let deposit = |(to, presentation): &(SmootherId, Vec<u8>)| {
            let (keeper, grant) = (self.keeper, self.grant.clone());
            let (sealed, presentation, receipts) =
                (sealed.clone(), presentation.clone(), Vec::new());
            (*to, Deposit { keeper, grant, content, sealed, signature, presentation, receipts })
        };
        self.presentations.iter().map(deposit).collect()
    }
}
