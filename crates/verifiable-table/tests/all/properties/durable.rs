//! Properties: crashes, old backups and failing stores do no harm.

use crate::properties::commit;
use crate::support::{Server, Store, ask, fetch, total, upload};
use alpheus_crypto::ledger::FailingLedger;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Address, Order};
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, Moment, Row};
use alpheus_verifiable_table::ledger::UncommittedError;
use alpheus_verifiable_table::owner::{
    AppendError, CorrectError, Owner, Plan, PolynomialPlan, StateError, TotalError, WeightedPlan,
};
use alpheus_verifiable_table::parameters::Set;
use alpheus_verifiable_table::planner::Question;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;

pub(crate) fn started(seed: u64) -> (TableKey, Owner, Server, Store, ChaCha20Rng) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (key, mut store) = (TableKey::random(&mut rng), Store::new());
    let column = ColumnDeclaration { min: 0, max: 1 << 20, optional: false, squares: false };
    let layout = Layout::new(vec![column], &[]).unwrap();
    let owner = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
    let owner = commit(owner, &mut store);
    let server = Server::new(owner.manifest());
    (key, owner, server, store, rng)
}

pub(crate) fn rows(from: i64, count: i64) -> Vec<Row> {
    (from..from + count).map(|i| vec![Some(i % 1000)]).collect()
}

/// Every address has one block, through appends, crashes between any two commits, old copies
/// and rewritten blocks.
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
            assert!(other.is_none(), "a label was reused");
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
        // Every second start is from an older copy.
        if life % 2 == 1 {
            store = copies[copies.len() / 2].clone();
        }
        owner = Owner::open(&key, &store, &mut rng).unwrap();
    }
    assert!(made.len() > 8);
}

/// An owner restored from an old copy continues. Sums over its rows are right, and its new
/// blocks do not collide with the forgotten ones.
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
    // The forgotten block at the new one's address is rejected too.
    let mut forged = server.blocks[&lost].as_bytes().to_vec();
    let new = server.blocks[&owner.address(1).unwrap()].as_bytes();
    assert!(owner.open_block(1, &owner.all_columns(), &forged).is_err());
    forged[17..45].copy_from_slice(&new[17..45]);
    assert!(owner.open_block(1, &owner.all_columns(), &forged).is_err());
}

/// After a crash between commit and sending, the same bytes are sent.
#[test]
fn an_unacknowledged_block_is_sent_again() {
    let (key, mut owner, mut server, mut store, mut rng) = started(3);
    let blocks = commit(owner.append(&rows(0, 4096), &mut rng).unwrap(), &mut store);
    let owner = &mut Owner::open(&key, &store, &mut rng).unwrap();
    let outbox: Vec<Address> = owner.outbox().copied().collect();
    assert_eq!(outbox, [blocks[0].address()]);
    let bytes = store[&Owner::outbox_key(&outbox[0])].clone();
    assert_eq!(bytes, blocks[0].as_bytes());
    server.store(&bytes).unwrap();
    server.store(&bytes).unwrap();
    commit(owner.acknowledge(&outbox[0]).unwrap(), &mut store);
    assert_eq!(Owner::open(&key, &store, &mut rng).unwrap().outbox().count(), 0);
    assert!(total(owner, &server, Moment::Sum(0), 0, 4096).is_ok());
}

/// A failed commit releases nothing, and the owner makes no further changes. Otherwise a
/// later commit would add a block to the table that exists nowhere.
#[test]
fn a_failed_commit_releases_nothing_and_leaves_no_hole() {
    let (key, mut owner, mut server, mut store, mut rng) = started(4);
    let step = owner.append(&rows(0, 4096), &mut rng).unwrap();
    assert!(step.commit(&mut FailingLedger).is_err());
    let burnt = owner.address(0).unwrap();
    let refused = owner.append(&rows(0, 4096), &mut rng).err();
    assert_eq!(refused, Some(AppendError::Uncommitted(UncommittedError)));
    assert_eq!(owner.acknowledge(&burnt).err(), Some(UncommittedError));
    let refused = owner.correct(0, vec![Some(1)], None).err();
    assert_eq!(refused, Some(CorrectError::Uncommitted(UncommittedError)));

    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(owner.rows(), 0);
    upload(&mut owner, &mut store, &mut server, &rows(0, 5000), &mut rng).unwrap();
    assert_ne!(owner.address(0).unwrap(), burnt, "its label is not used again");
    let owner = Owner::open(&key, &store, &mut rng).unwrap();
    let expected: i128 = rows(0, 5000).iter().map(|row| i128::from(row[0].unwrap())).sum();
    assert_eq!(total(&owner, &server, Moment::Sum(0), 0, 5000).unwrap(), expected);
}

/// This holds for rows of a tail too.
#[test]
fn a_dropped_step_ends_the_owners_changes_like_a_failed_one() {
    let (key, mut owner, _, mut store, mut rng) = started(6);
    commit(owner.append(&rows(0, 10), &mut rng).unwrap(), &mut store);
    drop(owner.append(&rows(10, 10), &mut rng).unwrap());
    assert!(owner.append(&rows(20, 10), &mut rng).is_err());
    let mut owner = Owner::open(&key, &store, &mut rng).unwrap();
    assert_eq!(owner.rows(), 10);
    commit(owner.append(&rows(10, 10), &mut rng).unwrap(), &mut store);
    assert_eq!(Owner::open(&key, &store, &mut rng).unwrap().rows(), 20);
}

/// Otherwise a lost record would shift the rows after it.
#[test]
fn a_tail_with_a_gap_is_damaged() {
    let (key, mut owner, _, mut store, mut rng) = started(7);
    for part in 0..3 {
        commit(owner.append(&rows(10 * part, 10), &mut rng).unwrap(), &mut store);
    }
    let middle = [&[2], 10_u64.to_be_bytes().as_slice()].concat();
    assert!(store.remove(&middle).is_some());
    assert_eq!(Owner::open(&key, &store, &mut rng).err(), Some(StateError::Record(2)));
}

/// Otherwise its answers, with the tail and the corrections of another state, would silently
/// give a wrong sum.
#[test]
fn a_plan_is_stale_once_the_table_changes() {
    let (key, mut owner, mut server, mut store, mut rng) = started(8);
    upload(&mut owner, &mut store, &mut server, &rows(0, 5000), &mut rng).unwrap();
    let opened = fetch(&owner, &server, 0).unwrap();
    commit(owner.correct(7, vec![Some(1_000_000)], Some(&opened)).unwrap(), &mut store);
    let stale = |owner: &Owner, change: &str, plans: &(Plan, WeightedPlan, PolynomialPlan)| {
        let (plan, weighted, polynomial) = plans;
        let answer = |question: &Question| ask(owner, &server, question).ok();
        let sum = owner.total(plan, plan.question().and_then(answer).as_ref(), |_| None);
        assert_eq!(sum, Err(TotalError::Stale), "{change}");
        let answers: Vec<_> = weighted.questions().iter().filter_map(answer).collect();
        let sum = owner.weighted_total(weighted, &answers, |_| None);
        assert_eq!(sum, Err(TotalError::Stale), "{change}");
        let opened = polynomial.question().and_then(answer);
        let value = owner.polynomial_value(polynomial, opened.as_ref());
        assert_eq!(value, Err(TotalError::Stale), "{change}");
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
    stale(&owner, "a block was rewritten", &made);
    let made = plans(&owner);
    commit(owner.correct(8999, vec![Some(3)], None).unwrap(), &mut store);
    stale(&owner, "a row was corrected", &made);
    let made = plans(&owner);
    let owner = Owner::open(&key, &store, &mut rng).unwrap();
    stale(&owner, "the table was reopened", &made);
}

/// Even at the same block number.
#[test]
fn an_opened_block_is_valid_for_its_own_table_only() {
    let (_, mut owner, mut server, mut store, mut rng) = started(9);
    upload(&mut owner, &mut store, &mut server, &rows(0, 4096), &mut rng).unwrap();
    let (_, mut other, mut theirs, mut their_store, mut rng) = started(10);
    upload(&mut other, &mut their_store, &mut theirs, &rows(5, 4096), &mut rng).unwrap();
    let opened = fetch(&other, &theirs, 0).unwrap();
    let plan = owner.plan(Moment::Sum(0), 0, 10).unwrap();
    assert_eq!(owner.total(&plan, None, |_| Some(&opened)), Err(TotalError::MissingBlock(0)));
    let refused = owner.correct(0, vec![Some(1)], Some(&opened)).err();
    assert_eq!(refused, Some(CorrectError::NotOpen(0)));
    assert_eq!(owner.rewrite(&opened, &mut rng).err(), Some(CorrectError::NotOpen(0)));
}

#[test]
fn a_damaged_state_is_rejected_with_a_specific_error() {
    let (key, mut owner, _, mut store, mut rng) = started(5);
    commit(owner.append(&rows(0, 5000), &mut rng).unwrap(), &mut store);
    let nothing: Store = Store::new();
    assert_eq!(Owner::open(&key, &nothing, &mut rng).err(), Some(StateError::Empty));
    for (record, value) in &store {
        for cut in [0, value.len() / 2, value.len().saturating_sub(1)] {
            let mut damaged = store.clone();
            damaged.insert(record.clone(), value[..cut].to_vec());
            // The owner does not read the bytes in the outbox, and a mark is empty.
            let unread = record[0] == 3 || value.is_empty();
            assert!(unread || Owner::open(&key, &damaged, &mut rng).is_err());
        }
    }
    let mut other = store.clone();
    other.insert(vec![0], vec![3, 0]);
    assert_eq!(Owner::open(&key, &other, &mut rng).err(), Some(StateError::Format(3)));
    store.insert(vec![0x80, 1], b"an application's own".to_vec());
    assert!(Owner::open(&key, &store, &mut rng).is_ok());
}

/// A verified answer counts only for the question that it answers, and a weighted sum takes
/// blocks of its own table only.
#[test]
fn an_answer_to_another_question_is_not_added_up() {
    let (_, mut owner, mut server, mut store, mut rng) = started(11);
    upload(&mut owner, &mut store, &mut server, &rows(0, 3 * 4096), &mut rng).unwrap();
    let sum = |from, to| owner.plan(Moment::Sum(0), from, to).unwrap();
    let answer = |question: Option<&Question>| ask(&owner, &server, question.unwrap()).unwrap();
    let (plan, other) = (sum(0, 2 * 4096), sum(4096, 3 * 4096));
    let (right, wrong) = (answer(plan.question()), answer(other.question()));
    assert!(owner.total(&plan, Some(&right), |_| None).is_ok());
    let missing = TotalError::MissingAnswer;
    assert_eq!(owner.total(&plan, Some(&wrong), |_| None), Err(missing));
    assert_eq!(owner.total(&plan, None, |_| None), Err(missing));
    let weighted = |from, to| owner.plan_weighted(Moment::Sum(0), from, to, &[1, 2]).unwrap();
    let plan = weighted(0, 2 * 4096);
    let [constant, linear] = [0, 1].map(|power| answer(plan.questions().get(power)));
    let swapped = owner.weighted_total(&plan, &[linear, constant], |_| None);
    assert_eq!(swapped, Err(missing));
    let point = |x| owner.plan_polynomial(0, x).unwrap();
    let (zero, one) = (point(0), point(1));
    let wrong = answer(one.question());
    assert_eq!(owner.polynomial_value(&zero, Some(&wrong)), Err(missing));
    let (_, mut other, mut theirs, mut their_store, mut rng) = started(12);
    upload(&mut other, &mut their_store, &mut theirs, &rows(5, 4096), &mut rng).unwrap();
    let opened = fetch(&other, &theirs, 0).unwrap();
    let part = weighted(0, 10);
    let found = owner.weighted_total(&part, &[], |_| Some(&opened));
    assert_eq!(found, Err(TotalError::MissingBlock(0)));
}
