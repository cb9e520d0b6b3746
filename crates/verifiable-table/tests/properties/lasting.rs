//! Crashes, old backups and full stores do no harm.

use crate::commit;
use crate::support::{Server, Store, ask, fetch, total, upload};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Address, Order};
use alpheus_verifiable_table::layout::{Declared, Layout, Moment, Row};
use alpheus_verifiable_table::ledger::{Change, Ledger, LedgerError, Uncommitted};
use alpheus_verifiable_table::owner::{
    AppendError, CorrectError, DamagedState, Missing, Owner, Plan, PolynomialPlan, WeightedPlan,
};
use alpheus_verifiable_table::parameters::Set;
use alpheus_verifiable_table::planner::Question;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;

pub(crate) fn started(seed: u64) -> (TableKey, Owner, Server, Store, ChaCha20Rng) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (key, mut store) = (TableKey::random(&mut rng), Store::new());
    let column = Declared { min: 0, max: 1 << 20, optional: false, squares: false };
    let layout = Layout::new(vec![column], &[]).unwrap();
    let owner = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
    let owner = commit(owner, &mut store);
    let server = Server::new(owner.manifest());
    (key, owner, server, store, rng)
}

pub(crate) fn rows(from: i64, count: i64) -> Vec<Row> {
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
    commit(owner.acknowledged(&waiting[0]).unwrap(), &mut store);
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

/// Nothing comes out of a commit that failed, and nothing is built on it: a later commit
/// would make a block part of the table that exists nowhere.
#[test]
fn a_failed_commit_releases_nothing_and_leaves_no_hole() {
    let (key, mut owner, mut server, mut store, mut rng) = started(4);
    let step = owner.append(&rows(0, 4096), &mut rng).unwrap();
    assert!(step.commit(&mut Full).is_err());
    let burnt = owner.address(0).unwrap();
    let refused = owner.append(&rows(0, 4096), &mut rng).err();
    assert_eq!(refused, Some(AppendError::Uncommitted(Uncommitted)));
    assert_eq!(owner.acknowledged(&burnt).err(), Some(Uncommitted));
    let refused = owner.correct(0, vec![Some(1)], None).err();
    assert_eq!(refused, Some(CorrectError::Uncommitted(Uncommitted)));

    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(owner.rows(), 0);
    upload(&mut owner, &mut store, &mut server, &rows(0, 5000), &mut rng).unwrap();
    assert_ne!(owner.address(0).unwrap(), burnt, "its label is not used again");
    let owner = Owner::open(&key, &store, &mut rng).unwrap();
    let expected: i128 = rows(0, 5000).iter().map(|row| i128::from(row[0].unwrap())).sum();
    assert_eq!(total(&owner, &server, Moment::Sum(0), 0, 5000).unwrap(), expected);
}

/// A step that was dropped is as one that failed: rows of a tail too.
#[test]
fn a_step_that_is_dropped_ends_the_owners_changes() {
    let (key, mut owner, _, mut store, mut rng) = started(6);
    commit(owner.append(&rows(0, 10), &mut rng).unwrap(), &mut store);
    drop(owner.append(&rows(10, 10), &mut rng).unwrap());
    assert!(owner.append(&rows(20, 10), &mut rng).is_err());
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(owner.rows(), 10);
    commit(owner.append(&rows(10, 10), &mut rng).unwrap(), &mut store);
    assert_eq!(Owner::open(&key, &store, &mut rng).unwrap().rows(), 20);
}

/// A record of the tail that is lost does not shift the rows after it.
#[test]
fn a_tail_with_a_hole_is_damaged() {
    let (key, mut owner, _, mut store, mut rng) = started(7);
    for part in 0..3 {
        commit(owner.append(&rows(10 * part, 10), &mut rng).unwrap(), &mut store);
    }
    let middle = [&[2], 10_u64.to_be_bytes().as_slice()].concat();
    assert!(store.remove(&middle).is_some());
    assert_eq!(Owner::open(&key, &store, &mut rng).err(), Some(DamagedState::Record(2)));
}

/// A plan's questions are those of its moment; put together with the tail and the
/// corrections of another moment they would be a wrong sum without a word.
#[test]
fn a_plan_is_good_until_the_table_changes() {
    let (key, mut owner, mut server, mut store, mut rng) = started(8);
    upload(&mut owner, &mut store, &mut server, &rows(0, 5000), &mut rng).unwrap();
    let opened = fetch(&owner, &server, 0).unwrap();
    commit(owner.correct(7, vec![Some(1_000_000)], Some(&opened)).unwrap(), &mut store);
    let stale = |owner: &Owner, change: &str, plans: &(Plan, WeightedPlan, PolynomialPlan)| {
        let (plan, weighted, polynomial) = plans;
        let asked = |question: &Question| ask(owner, &server, question).ok();
        let found = owner.total(plan, plan.question().and_then(asked).as_ref(), |_| None);
        assert_eq!(found, Err(Missing::Stale), "{change}");
        let answers: Vec<_> = weighted.questions().iter().filter_map(asked).collect();
        let found = owner.weighted_total(weighted, &answers, |_| None);
        assert_eq!(found, Err(Missing::Stale), "{change}");
        let opened = polynomial.question().and_then(asked);
        let found = owner.polynomial_value(polynomial, opened.as_ref());
        assert_eq!(found, Err(Missing::Stale), "{change}");
    };
    let plans = |owner: &Owner| {
        let weighted = owner.plan_weighted(Moment::Sum(0), 0, 5000, &[1]).unwrap();
        let polynomial = owner.plan_polynomial(0, 1).unwrap();
        (owner.plan(Moment::Sum(0), 0, 5000).unwrap(), weighted, polynomial)
    };
    let made = plans(&owner);
    commit(owner.append(&rows(5000, 4096), &mut rng).unwrap(), &mut store);
    stale(&owner, "the tail was sealed", &made);
    let made = plans(&owner);
    commit(owner.rewrite(&opened, &mut rng).unwrap(), &mut store);
    stale(&owner, "a block was written anew", &made);
    let made = plans(&owner);
    commit(owner.correct(8999, vec![Some(3)], None).unwrap(), &mut store);
    stale(&owner, "a row was corrected", &made);
    let made = plans(&owner);
    let owner = Owner::open(&key, &store, &mut rng).unwrap();
    stale(&owner, "the table was opened anew", &made);
}

/// An opened block of another table, at the same place, is none of this one.
#[test]
fn an_opened_block_belongs_to_its_table() {
    let (_, mut owner, mut server, mut store, mut rng) = started(9);
    upload(&mut owner, &mut store, &mut server, &rows(0, 4096), &mut rng).unwrap();
    let (_, mut other, mut theirs, mut their_store, mut rng) = started(10);
    upload(&mut other, &mut their_store, &mut theirs, &rows(5, 4096), &mut rng).unwrap();
    let opened = fetch(&other, &theirs, 0).unwrap();
    let plan = owner.plan(Moment::Sum(0), 0, 10).unwrap();
    assert_eq!(owner.total(&plan, None, |_| Some(&opened)), Err(Missing::Block(0)));
    let refused = owner.correct(0, vec![Some(1)], Some(&opened)).err();
    assert_eq!(refused, Some(CorrectError::Closed(0)));
    assert_eq!(owner.rewrite(&opened, &mut rng).err(), Some(CorrectError::Closed(0)));
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
