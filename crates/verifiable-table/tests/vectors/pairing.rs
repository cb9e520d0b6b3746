//! The paper's own scheme against an independent script over an independent library.

use crate::{Counting, digest, hex, json, key};
use alpheus_verifiable_table::label::Column;
use alpheus_verifiable_table::label::DataSet;
use alpheus_verifiable_table::messages::Weights;
use alpheus_verifiable_table::pairing::messages::{Block, Function, Shape, Statistic};
use alpheus_verifiable_table::pairing::owner::Owner;
use alpheus_verifiable_table::pairing::parameters::PairingSet;
use alpheus_verifiable_table::pairing::server::Evaluation;
use alpheus_verifiable_table::pairing::verifier::{Prepared, Verifier};

const SHAPE: Shape = Shape { set: PairingSet::P80, columns: 2, bound: 1000 };

fn blocks() -> (DataSet, Vec<Block>) {
    let mut rng = Counting(32);
    let mut owner = Owner::begin(&key(), SHAPE, &mut rng).unwrap();
    let item =
        |column: i64, block: i64, slot: i64| (slot * 37 + column * 11 + block * 501) % 2001 - 1000;
    let columns = |block| [0, 1].map(|c| (0..8192).map(|slot| item(c, block, slot)).collect());
    let blocks = [0, 1].map(|block| owner.seal(&columns(block), &mut rng).unwrap());
    (owner.data_set(), blocks.to_vec())
}

/// Encryption, hash and tags: the bytes of whole blocks.
#[test]
fn blocks_are_the_scripts() {
    let (_, blocks) = blocks();
    for case in json::cases("pairing_block") {
        let bytes = blocks[0].to_bytes();
        assert_eq!(bytes.len() as u64, json::number(&case, "length"));
        let tag = 25 + 32 + 8192 * 32;
        assert_eq!(hex(&bytes[tag..tag + 288]), json::text(&case, "tag"));
        for (block, expected) in blocks.iter().zip(case["blocks"].as_array().unwrap()) {
            assert_eq!(digest(&block.to_bytes()), expected.as_str().unwrap());
        }
    }
}

/// A sum and a sum of products, prepared, and the honest answer.
fn asked(of: &str, verifier: &Verifier, blocks: &[Block]) -> (Prepared, Vec<u8>) {
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
fn answers_are_the_scripts_and_its_forgeries_are_rejected() {
    let ((data_set, blocks), verifier) = (blocks(), Verifier::new(&key(), SHAPE).unwrap());
    for case in json::cases("pairing_answer") {
        let (prepared, honest) = asked(json::text(&case, "of"), &verifier, &blocks);
        assert_eq!(honest.len() as u64, json::number(&case, "length"));
        assert_eq!(digest(&honest), json::text(&case, "answer"));
        let opened = prepared.verify(&data_set, &honest).unwrap().decrypt();
        let ends = [opened.slots()[0], opened.slots()[8191]];
        let expected = case["ends"].as_array().unwrap().iter().map(|x| x.as_i64().unwrap());
        assert!(expected.map(i128::from).eq(ends), "{ends:?}");
    }
    for case in ["pairing_bad_tag", "pairing_bad_bytes"].into_iter().flat_map(json::cases) {
        let (prepared, honest) = asked(json::text(&case, "of"), &verifier, &blocks);
        let mut forged = honest.clone();
        forged.resize(usize::try_from(json::number(&case, "length")).unwrap(), 0);
        for (at, run) in case["changed"].as_object().unwrap() {
            let (at, run) = (at.parse::<usize>().unwrap(), json::from_hex(run.as_str().unwrap()));
            forged[at..at + run.len()].copy_from_slice(&run);
        }
        assert_ne!(forged, honest);
        let refused = prepared.verify(&data_set, &forged).err();
        let refused = refused.map(|error| format!("{error:?}"));
        assert_eq!(refused.as_deref(), case["error"].as_str(), "{}", case["why"]);
    }
}
