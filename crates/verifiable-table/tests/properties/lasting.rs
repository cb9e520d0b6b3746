//! Crashes, old backups and full stores do no harm.

use crate::commit;
use crate::support::{Server, Store, fetch, total, upload};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Address, Order};
use alpheus_verifiable_table::layout::{Declared, Layout, Moment, Row};
use alpheus_verifiable_table::ledger::{Change, Ledger, LedgerError};
use alpheus_verifiable_table::owner::{DamagedState, Owner};
use alpheus_verifiable_table::parameters::Set;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;

fn started(seed: u64) -> (TableKey, Owner, Server, Store, ChaCha20Rng) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (key, mut store) = (TableKey::random(&mut rng), Store::new());
    let column = Declared { min: 0, max: 1 << 20, optional: false, squares: false };
    let layout = Layout::new(vec![column], &[]).unwrap();
    let owner = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
    let owner = commit(owner, &mut store);
    let server = Server::new(owner.manifest());
    (key, owner, server, store, rng)
}

fn rows(from: i64, count: i64) -> Vec<Row> {
    (from..from + count).map(|i| vec![Some(i % 1000)]).collect()
}

/// Every address once, through appends, crashes between any two commits, old copies
/// and blocks written anew; and one block under it.
#[test]
fn no_label_is_used_twice() {
    let (key, mut owner, mut server, mut store, mut rng) = started(1);
    let mut made: BTreeMap<Address, Vec<u8>> = BTreeMap::new();
    let mut copies = vec![store.clone()];
    for life in 0..6 {
        for block in owner.append(&rows(life, 5000), &mut rng).unwrap().commit(&mut store).unwrap()
        {
            server.store(block.as_bytes()).unwrap();
            let other = made.insert(block.address(), block.as_bytes().to_vec());
            assert!(other.is_none(), "a label again");
        }
        if owner.blocks() > 0 {
            for _ in 0..2 {
                let opened = fetch(&owner, &server, 0).unwrap();
                let block = commit(owner.rewrite(&opened, &mut rng).unwrap(), &mut store);
                server.store(block.as_bytes()).unwrap();
                assert!(made.insert(block.address(), block.as_bytes().to_vec()).is_none());
            }
        }
        copies.push(store.clone());
        // Every other life begins from an older copy.
        if life % 2 == 1 {
            store = copies[copies.len() / 2].clone();
        }
        owner = Owner::open(&key, &store, &mut rng).unwrap();
    }
    assert!(made.len() > 8);
}

/// An owner restored from an old copy goes on; what it knows is answered right, and its
/// new blocks do not meet those that it has forgotten.
#[test]
fn a_restored_backup_does_no_harm() {
    let (key, mut owner, mut server, mut store, mut rng) = started(2);
    upload(&mut owner, &mut store, &mut server, &rows(0, 5000), &mut rng).unwrap();
    let backup = store.clone();
    upload(&mut owner, &mut store, &mut server, &rows(7, 9000), &mut rng).unwrap();
    let lost = owner.address(1).unwrap();

    let mut store = backup;
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(owner.rows(), 5000);
    upload(&mut owner, &mut store, &mut server, &rows(500, 8000), &mut rng).unwrap();
    assert_ne!(owner.address(1).unwrap(), lost);
    assert!(server.blocks.contains_key(&lost), "both are there");
    let expected: i128 =
        rows(0, 5000).iter().chain(&rows(500, 8000)).map(|row| i128::from(row[0].unwrap())).sum();
    assert_eq!(total(&owner, &server, Moment::Sum(0), 0, 13_000).unwrap(), expected);
    // The forgotten block where the new one stands is no less rejected.
    let mut forged = server.blocks[&lost].as_bytes().to_vec();
    let new = server.blocks[&owner.address(1).unwrap()].as_bytes();
    assert!(owner.open_block(1, &owner.all_columns(), &forged).is_err());
    forged[17..45].copy_from_slice(&new[17..45]);
    assert!(owner.open_block(1, &owner.all_columns(), &forged).is_err());
}

/// A crash after the commit and before the block was sent: it is sent again, the same
/// bytes.
#[test]
fn a_block_that_was_not_acknowledged_is_sent_again() {
    let (key, mut owner, mut server, mut store, mut rng) = started(3);
    let blocks = commit(owner.append(&rows(0, 4096), &mut rng).unwrap(), &mut store);
    let owner = &mut Owner::open(&key, &store, &mut rng).unwrap();
    let waiting: Vec<Address> = owner.outbox().copied().collect();
    assert_eq!(waiting, [blocks[0].address()]);
    let bytes = store[&Owner::outbox_key(&waiting[0])].clone();
    assert_eq!(bytes, blocks[0].as_bytes());
    server.store(&bytes).unwrap();
    server.store(&bytes).unwrap();
    commit(owner.acknowledged(&waiting[0]), &mut store);
    assert_eq!(Owner::open(&key, &store, &mut rng).unwrap().outbox().count(), 0);
    assert!(total(owner, &server, Moment::Sum(0), 0, 4096).is_ok());
}

/// A store that fails.
struct Full;

impl Ledger for Full {
    fn commit(&mut self, _: &[Change]) -> Result<(), LedgerError> {
        Err(LedgerError)
    }
}

/// Nothing comes out of a commit that failed, and its label is not used again.
#[test]
fn a_failed_commit_releases_nothing() {
    let (_, mut owner, _, mut store, mut rng) = started(4);
    let step = owner.append(&rows(0, 4096), &mut rng).unwrap();
    assert!(step.commit(&mut Full).is_err());
    let burnt = owner.address(0).unwrap();
    let next = commit(owner.append(&rows(0, 4096), &mut rng).unwrap(), &mut store);
    assert_ne!(next[0].address(), burnt);
}

#[test]
fn damaged_states_are_told_apart() {
    let (key, mut owner, _, mut store, mut rng) = started(5);
    commit(owner.append(&rows(0, 5000), &mut rng).unwrap(), &mut store);
    let nothing: Store = Store::new();
    assert_eq!(Owner::open(&key, &nothing, &mut rng).err(), Some(DamagedState::Empty));
    for (record, value) in &store {
        for cut in [0, value.len() / 2, value.len().saturating_sub(1)] {
            let mut damaged = store.clone();
            damaged.insert(record.clone(), value[..cut].to_vec());
            // The outbox's bytes are not the owner's to judge.
            assert!(record[0] == 3 || Owner::open(&key, &damaged, &mut rng).is_err());
        }
    }
    let mut other = store.clone();
    other.insert(vec![0], vec![2, 0]);
    assert_eq!(Owner::open(&key, &other, &mut rng).err(), Some(DamagedState::Format(2)));
    store.insert(vec![0x80, 1], b"an application's own".to_vec());
    assert!(Owner::open(&key, &store, &mut rng).is_ok());
}
