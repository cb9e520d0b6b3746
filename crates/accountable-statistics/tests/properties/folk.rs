//! People and what they send: shared by the tests.

use crate::support::{Person, Town, at, sealing};
use alpheus_accountable_statistics::client::{Attempt, Client};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{Agreed, Turn};
use alpheus_accountable_statistics::messages::{
    Deposit, Entry, Grant, Release, Shown, Upload, decode, showing_digest,
};
use alpheus_accountable_statistics::refused::{NoSlot, NotContributed};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::messages::Login;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError};
use alpheus_crypto::sign::VerifyingKey;
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
