//! Properties: a saved state and the key replace a lost ledger.

use crate::properties::commit;
use crate::properties::durable::{rows, started};
use crate::support::{Store, fetch, total, upload};
use alpheus_crypto::ledger::{Change, Ledger};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::layout::Moment;
use alpheus_verifiable_table::ledger::UncommittedError;
use alpheus_verifiable_table::owner::{Owner, SaveError};
use alpheus_verifiable_table::saved_state::{OpenedState, SavedState};
use chacha20::ChaCha20Rng;

/// All records, as an application reads them.
fn records(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Saves a state, and has the server acknowledge it.
fn save(owner: &mut Owner, store: &mut Store, rng: &mut ChaCha20Rng) -> SavedState {
    let state = commit(owner.save(&records(store), rng).unwrap(), store);
    assert_eq!(store[&Owner::state_key()], state.as_bytes());
    commit(owner.acknowledge_state().unwrap(), store);
    assert_eq!((owner.saved(), owner.has_unsaved()), (Some(state.name()), false));
    state
}

fn open(key: &TableKey, state: &SavedState) -> OpenedState {
    key.open_state(&state.name(), state.as_bytes()).unwrap()
}

fn recovered(key: &TableKey, state: &SavedState) -> Store {
    let mut store = Store::new();
    store.commit(&open(key, state).into_changes()).unwrap();
    store
}

/// Rows in blocks, rows in the tail, corrections, and the application's records.
#[test]
fn a_recovered_owner_gives_the_same_answers_and_goes_on() {
    let (key, mut owner, mut server, mut store, mut rng) = started(20);
    upload(&mut owner, &mut store, &mut server, &rows(0, 9000), &mut rng).unwrap();
    let opened = fetch(&owner, &server, 1).unwrap();
    commit(owner.correct(4100, vec![Some(77_777)], Some(&opened)).unwrap(), &mut store);
    let own = [0x80, 5];
    store.commit(&[Change::put(own.to_vec(), b"an application's".to_vec())]).unwrap();
    let state = save(&mut owner, &mut store, &mut rng);
    let sums = |owner: &Owner, server| {
        let ranges = [(0, 9000), (10, 4101), (4099, 8999), (8192, 8500)];
        ranges.map(|(from, to)| total(owner, server, Moment::Sum(0), from, to).unwrap())
    };
    let expected = sums(&owner, &server);
    drop((owner, store));

    let mut store = recovered(&key, &state);
    assert_eq!(store[own.as_slice()], b"an application's");
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(sums(&owner, &server), expected);
    assert_eq!((owner.saved(), owner.has_unsaved()), (Some(state.name()), false));
    assert_eq!(owner.corrected_rows().collect::<Vec<_>>(), [4100]);
    // It goes on as the lost one would have.
    upload(&mut owner, &mut store, &mut server, &rows(9000, 4000), &mut rng).unwrap();
    assert!(owner.has_unsaved());
    let next = save(&mut owner, &mut store, &mut rng);
    assert_eq!(next.name().version, state.name().version + 1);
    assert_eq!(open(&key, &next).previous(), open(&key, &state).id());
    assert_ne!(open(&key, &state).previous(), open(&key, &next).id());
    let again = Owner::open(&key, &recovered(&key, &next), &mut rng).unwrap();
    assert_eq!(again.rows(), 13_000);
}

/// An owner knows the last state that it made from any other, also from one of its own.
#[test]
fn only_the_last_state_passes_for_it() {
    let (key, mut owner, mut server, mut store, mut rng) = started(24);
    assert!(owner.check_saved(&[]).is_err(), "none was made");
    upload(&mut owner, &mut store, &mut server, &rows(0, 10), &mut rng).unwrap();
    let first = save(&mut owner, &mut store, &mut rng);
    assert!(owner.check_saved(first.as_bytes()).is_ok());
    // What only the application has changed is saved, too.
    let change = Change::put(vec![0x80, 6], vec![1]);
    commit(owner.record(vec![change]).unwrap(), &mut store);
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert!(owner.has_unsaved());
    let next = save(&mut owner, &mut store, &mut rng);
    assert!(owner.check_saved(next.as_bytes()).is_ok());
    assert!(owner.check_saved(first.as_bytes()).is_err(), "an older one");
    for at in [0, 5, 20, 30, 50, 90, 110, next.as_bytes().len() - 1] {
        let mut forged = next.as_bytes().to_vec();
        forged[at] ^= 1;
        assert!(owner.check_saved(&forged).is_err(), "byte {at}");
    }
    assert!(owner.check_saved(&next.as_bytes()[1..]).is_err());
    // It also opens for its table's key alone: another one has another data set.
    let (_, other, ..) = started(25);
    assert!(other.check_saved(next.as_bytes()).is_err());
}

/// Of two copies that go separate ways neither's state replaces the other's.
#[test]
fn states_of_two_copies_do_not_replace_each_other() {
    let (key, mut owner, mut server, mut store, mut rng) = started(21);
    upload(&mut owner, &mut store, &mut server, &rows(0, 10), &mut rng).unwrap();
    let first = save(&mut owner, &mut store, &mut rng);
    let mut branches = [(); 2].map(|()| {
        let mut copy = store.clone();
        let mut owner = Owner::open(&key, &copy, &mut rng).unwrap();
        commit(owner.append(&rows(10, 10), &mut rng).unwrap(), &mut copy);
        save(&mut owner, &mut copy, &mut rng)
    });
    branches.sort_by_key(SavedState::name);
    let [a, b] = branches.each_ref().map(|state| open(&key, state));
    assert_eq!(a.name().version, b.name().version);
    assert_ne!(a.name(), b.name());
    assert_eq!([a.previous(), b.previous()], [open(&key, &first).id(); 2]);
    assert!(a.previous() != b.id() && b.previous() != a.id());
    // Neither passes for the other.
    assert!(key.open_state(&a.name(), branches[1].as_bytes()).is_err());
}

/// The same bytes, and only once all that they name is at the server.
#[test]
fn an_unacknowledged_state_is_sent_again_and_nothing_is_saved_before_it() {
    let (key, mut owner, mut server, mut store, mut rng) = started(22);
    let blocks = commit(owner.append(&rows(0, 5000), &mut rng).unwrap(), &mut store);
    let refused = owner.save(&records(&store), &mut rng).err();
    assert_eq!(refused, Some(SaveError::Waiting), "a block waits");
    let address = server.store(blocks[0].as_bytes()).unwrap();
    commit(owner.acknowledge(&address).unwrap(), &mut store);
    let state = commit(owner.save(&records(&store), &mut rng).unwrap(), &mut store);
    // Killed before it was acknowledged.
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    let unsent = owner.unsent_state().unwrap();
    assert_eq!((unsent.name, unsent.replaces), (state.name(), None));
    assert_eq!(store[&Owner::state_key()], state.as_bytes());
    commit(owner.append(&rows(5000, 10), &mut rng).unwrap(), &mut store);
    let refused = owner.save(&records(&store), &mut rng).err();
    assert_eq!(refused, Some(SaveError::Waiting), "a state waits");
    commit(owner.acknowledge_state().unwrap(), &mut store);
    assert!(owner.unsent_state().is_none() && !store.contains_key(&Owner::state_key()));
    commit(owner.save(&records(&store), &mut rng).unwrap(), &mut store);
    assert_eq!(owner.unsent_state().unwrap().replaces, Some(state.name()));
}

/// Otherwise a recovered table would lack rows, or be another.
#[test]
fn only_current_records_of_the_same_table_are_saved() {
    let (_, mut owner, _, mut store, mut rng) = started(23);
    let (_, mut other, _, mut others, _) = started(24);
    let before = records(&store);
    commit(owner.append(&rows(0, 10), &mut rng).unwrap(), &mut store);
    commit(other.append(&rows(0, 10), &mut rng).unwrap(), &mut others);
    for (wrong, what) in [(before, "older"), (records(&others), "another table's"), (vec![], "no")]
    {
        let refused = owner.save(&wrong, &mut rng).err();
        assert_eq!(refused, Some(SaveError::Records), "{what} records");
    }
    let step = owner.append(&rows(10, 10), &mut rng).unwrap();
    let refused = owner.save(&records(&store), &mut rng).err();
    assert_eq!(refused, Some(SaveError::Uncommitted(UncommittedError)));
    commit(step, &mut store);
    assert!(owner.save(&records(&store), &mut rng).is_ok());
}

/// A new table has something to save, and a table that only acknowledges has not.
#[test]
fn what_is_unsaved_is_known_after_a_restart() {
    let (key, mut owner, mut server, mut store, mut rng) = started(25);
    assert!(owner.has_unsaved());
    let first = save(&mut owner, &mut store, &mut rng);
    assert_eq!(first.name().version, 1);
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert!(!owner.has_unsaved());
    upload(&mut owner, &mut store, &mut server, &rows(0, 4096), &mut rng).unwrap();
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert!(owner.has_unsaved());
    let second = save(&mut owner, &mut store, &mut rng);
    assert_eq!(second.name().version, 2);
    assert!(!Owner::open(&key, &store, &mut rng).unwrap().has_unsaved());
}
