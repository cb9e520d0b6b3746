//! Checks parameters, blocks and answers against vectors from an independent script, to the
//! byte.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod json;

use crate::support::{Server, Store, ask};
use alpheus_crypto::secret::Secret;
use alpheus_test_support::vectors::{CountingRng, hex};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::VerifyError;
use alpheus_verifiable_table::label::Order;
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, Moment, Row};
use alpheus_verifiable_table::ledger::PendingStep;
use alpheus_verifiable_table::messages::Block;
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::parameters::Set;
use num_bigint::BigUint;
use sha2::{Digest, Sha256};

fn commit<T>(step: PendingStep<T>, store: &mut Store) -> T {
    step.commit(store).unwrap()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn key() -> TableKey {
    TableKey::new(Secret::from_bytes(std::array::from_fn(|i| u8::try_from(i).unwrap())))
}

fn set(case: &serde_json::Value, field: &str) -> Set {
    Set::from_name(json::text(case, field)).unwrap()
}

#[test]
fn parameters_match_the_vectors() {
    let cases = json::cases("parameters");
    assert_eq!(cases.len(), Set::ALL.len());
    for case in cases {
        let ring = set(&case, "name").ring();
        let numbers = |field: &str| -> Vec<u64> {
            case[field].as_array().unwrap().iter().filter_map(serde_json::Value::as_u64).collect()
        };
        assert_eq!(ring.degree() as u64, json::number(&case, "n"));
        assert_eq!(ring.limbs(), numbers("q").len());
        assert_eq!(ring.modulus(), numbers("q").into_iter().map(BigUint::from).product());
        let t: u128 = numbers("t").into_iter().map(u128::from).product();
        assert_eq!(ring.plain_modulus(), t);
    }
}

/// Whole blocks cover encoding, encryption, hash, masks, products and packing.
#[test]
fn blocks_match_the_vectors() {
    for case in json::cases("block") {
        let set = set(&case, "set");
        let column = |min, max, optional| ColumnDeclaration { min, max, optional, squares: true };
        let layout = Layout::new(vec![column(-1000, 1000, false), column(0, 777, true)], &[(0, 1)]);
        let order = Order::new(u8::try_from(json::number(&case, "order")).unwrap()).unwrap();
        let (mut rng, mut store) = (CountingRng(32), Store::new());
        let owner = Owner::create(&key(), set, order, layout.unwrap(), &mut rng);
        let mut owner = commit(owner, &mut store);
        let row = |i: i64| -> Row {
            vec![Some(i * 7919 % 2001 - 1000), (i % 5 != 3).then_some(i * i % 777)]
        };
        let rows: Vec<Row> = (0..i64::try_from(set.ring().degree()).unwrap()).map(row).collect();
        let blocks = commit(owner.append(&rows, &mut rng).unwrap(), &mut store);
        let bytes = blocks[0].as_bytes();
        assert_eq!(bytes.len() as u64, json::number(&case, "length"));
        assert_eq!(hex(&bytes[45..77]), json::text(&case, "seed"), "the seed of c1");
        let tag = json::bytes(&case, "tag_product").len();
        let (body, products) = bytes.split_at(bytes.len() - 4 * tag);
        assert_eq!(hex(&body[body.len() - tag..]), json::text(&case, "tag_beside"));
        assert_eq!(hex(&products[2 * tag..3 * tag]), json::text(&case, "tag_product"));
        assert_eq!(digest(bytes), json::text(&case, "block"));
    }
}

#[test]
fn answers_match_the_vectors_and_forgeries_are_rejected() {
    let column = ColumnDeclaration { min: 0, max: 500, optional: false, squares: false };
    let layout = Layout::new(vec![column], &[]).unwrap();
    let (mut rng, mut store) = (CountingRng(32), Store::new());
    let step = Owner::create(&key(), Set::L128, Order::ONE, layout, &mut rng);
    let mut owner = commit(step, &mut store);
    let rows: Vec<Row> = (0..4096).map(|i| vec![Some(i * 31 % 500)]).collect();
    let blocks = commit(owner.append(&rows, &mut rng).unwrap(), &mut store);
    let mut server = Server::new(owner.manifest());
    server.store(blocks[0].as_bytes()).unwrap();
    let plan = owner.plan(Moment::Sum(0), 0, 4096).unwrap();
    let question = plan.question().unwrap();
    let honest = server.answer(question.request()).unwrap();
    for case in json::cases("answer") {
        assert_eq!(digest(&honest), json::text(&case, "answer"));
        let sum: i128 = ask(&owner, &server, question).unwrap().slots().iter().sum();
        assert_eq!(sum, json::number(&case, "sum").into());
    }
    for case in ["answer_bad_tag", "answer_bad_bytes"].into_iter().flat_map(json::cases) {
        let mut forged = honest.clone();
        forged.resize(usize::try_from(json::number(&case, "length")).unwrap(), 0);
        for (at, byte) in case["changed"].as_object().unwrap() {
            forged[at.parse::<usize>().unwrap()] = u8::try_from(byte.as_u64().unwrap()).unwrap();
        }
        assert_ne!(forged, honest);
        let error = owner.verify(question, &forged).err().map(|VerifyError| "Rejected");
        assert_eq!(error, case["error"].as_str(), "{}", case["why"]);
    }
}

#[test]
fn bytes_that_are_not_a_block_are_rejected_with_a_specific_error() {
    let column = ColumnDeclaration { min: 0, max: 500, optional: false, squares: false };
    let layout = Layout::new(vec![column], &[]).unwrap();
    let (mut rng, mut store) = (CountingRng(32), Store::new());
    let owner = Owner::create(&key(), Set::L128, Order::ONE, layout, &mut rng);
    let manifest = commit(owner, &mut store).manifest().clone();
    let mut bytes = vec![0; manifest.block_length()];
    let error = |bytes: &[u8]| Block::from_bytes(&manifest, bytes).err().map(|e| e.to_string());
    assert!(error(&bytes).unwrap().contains("format 0"));
    assert!(error(&bytes[1..]).unwrap().contains("send all of it"));
    bytes[0] = 2;
    assert!(error(&bytes).unwrap().contains("another table"));
    bytes[1..17].copy_from_slice(&manifest.data_set.0);
    assert_eq!(error(&bytes), None);
}
