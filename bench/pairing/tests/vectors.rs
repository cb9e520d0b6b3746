//! Checks the paper's own scheme against vectors from an independent script and library, to the
//! byte.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::secret::Secret;
use alpheus_pairing_table::messages::{Block, Function, Shape, Statistic};
use alpheus_pairing_table::owner::Owner;
use alpheus_pairing_table::parameters::PairingSet;
use alpheus_pairing_table::server::Evaluation;
use alpheus_pairing_table::verifier::{PreparedFunction, Verifier};
use alpheus_test_support::vectors::{self, CountingRng, from_hex, hex, text};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::VerifyError;
use alpheus_verifiable_table::label::{Column, DataSet};
use alpheus_verifiable_table::messages::Weights;
use serde_json::Value;
use sha2::{Digest, Sha256};

const SHAPE: Shape = Shape { set: PairingSet::P80, columns: 2, bound: 1000 };

/// Every case of a file.
fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("verifiable-table/v1/{name}.json"))
}

fn length(case: &Value) -> usize {
    usize::try_from(case["length"].as_u64().unwrap()).unwrap()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn key() -> TableKey {
    TableKey::new(Secret::from_bytes(std::array::from_fn(|i| u8::try_from(i).unwrap())))
}

fn blocks() -> (DataSet, Vec<Block>) {
    let mut rng = CountingRng(32);
    let mut owner = Owner::begin(&key(), SHAPE, &mut rng).unwrap();
    let item =
        |column: i64, block: i64, slot: i64| (slot * 37 + column * 11 + block * 501) % 2001 - 1000;
    let columns = |block| [0, 1].map(|c| (0..8192).map(|slot| item(c, block, slot)).collect());
    let blocks = [0, 1].map(|block| owner.seal(&columns(block), &mut rng).unwrap());
    (owner.data_set(), blocks.to_vec())
}

/// Whole blocks cover encryption, hash and tags.
#[test]
fn blocks_match_the_vectors() {
    let (_, blocks) = blocks();
    for case in cases("pairing_block") {
        let bytes = blocks[0].to_bytes();
        assert_eq!(bytes.len(), length(&case));
        let tag = 25 + 32 + 8192 * 32;
        assert_eq!(hex(&bytes[tag..tag + 288]), text(&case, "tag"));
        for (block, expected) in blocks.iter().zip(case["blocks"].as_array().unwrap()) {
            assert_eq!(digest(&block.to_bytes()), expected.as_str().unwrap());
        }
    }
}

/// A prepared sum or sum of products, and its honest answer.
fn prepare(of: &str, verifier: &Verifier, blocks: &[Block]) -> (PreparedFunction, Vec<u8>) {
    let (x, y) = (Column(0), Column(1));
    let of = match of {
        "sum" => Statistic::Sum(x, Weights::Ones),
        _ => Statistic::Products(x, y, Weights::Ones),
    };
    let function = Function { of, from: 0, to: 2 };
    let mut evaluation = Evaluation::new(&SHAPE, &function).unwrap();
    blocks.iter().for_each(|block| evaluation.add(block).unwrap());
    let answer = evaluation.answer().unwrap().to_bytes();
    (verifier.prepare(function).unwrap(), answer)
}

#[test]
fn answers_match_the_vectors_and_forgeries_are_rejected() {
    let ((data_set, blocks), verifier) = (blocks(), Verifier::new(&key(), SHAPE).unwrap());
    for case in cases("pairing_answer") {
        let (prepared, honest) = prepare(text(&case, "of"), &verifier, &blocks);
        assert_eq!(honest.len(), length(&case));
        assert_eq!(digest(&honest), text(&case, "answer"));
        let opened = prepared.verify(&data_set, &honest).unwrap().decrypt();
        let ends = [opened.slots()[0], opened.slots()[8191]];
        let expected = case["ends"].as_array().unwrap().iter().map(|x| x.as_i64().unwrap());
        assert!(expected.map(i128::from).eq(ends), "{ends:?}");
    }
    for case in ["pairing_bad_tag", "pairing_bad_bytes"].into_iter().flat_map(cases) {
        let (prepared, honest) = prepare(text(&case, "of"), &verifier, &blocks);
        let mut forged = honest.clone();
        forged.resize(length(&case), 0);
        for (at, run) in case["changed"].as_object().unwrap() {
            let (at, run) = (at.parse::<usize>().unwrap(), from_hex(run.as_str().unwrap()));
            forged[at..at + run.len()].copy_from_slice(&run);
        }
        assert_ne!(forged, honest);
        let error = prepared.verify(&data_set, &forged).err().map(|VerifyError| "Rejected");
        assert_eq!(error, case["error"].as_str(), "{}", case["why"]);
    }
}
