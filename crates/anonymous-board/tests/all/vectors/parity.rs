//! Mode 2: keys by parity, their audit, and what is rejected.

use crate::vectors::{array, bytes, cases, folder, number};
use alpheus_anonymous_board::coalition::audit::{
    Answer, CheckedPart, CommonPart, Part, PartError, accepts, evaluation_points,
};
use alpheus_anonymous_board::coalition::engine::{Engine, Parity};
use alpheus_anonymous_board::coalition::parity::{Grid, KeyError, Permutation};
use alpheus_anonymous_board::dpf::Shape;
use alpheus_crypto::hash::Digest;
use serde_json::Value;

/// A case's construction, common part and server parts.
struct Setting {
    engine: Parity,
    bound: Digest,
    common: CommonPart,
    parts: Vec<Part>,
}

fn setting(case: &Value) -> Setting {
    let shape = Shape::new(number(&case["rows"]), number(&case["blocks"])).unwrap();
    let servers = u8::try_from(number(&case["servers"])).unwrap();
    let permutation = Permutation::new(&array(&case["permutation"]));
    let list = |name: &str| case[name].as_array().unwrap().clone();
    let common = CommonPart {
        nonce: array(&case["nonce"]),
        keys: list("bindings").iter().map(|b| Digest(array(b))).collect(),
        word: bytes(&case["word"]),
    };
    let part = |part: &Value| postcard::from_bytes(&bytes(part)).unwrap();
    Setting {
        engine: Parity::new(permutation, Grid::new(shape, servers).unwrap()),
        bound: Digest(array(&case["bound"])),
        common,
        parts: list("parts").iter().map(part).collect(),
    }
}

/// Each server's table and answer, or the first rejection.
fn run(case: &Value) -> Result<Vec<(Vec<u8>, Answer)>, PartError> {
    let Setting { engine, bound, common, parts } = setting(case);
    let points = evaluation_points(&bytes(&case["drawn"]));
    let one = |(server, part)| {
        let held = CheckedPart::open(&engine, &bound, server, &common, part)?;
        let mut table = engine.table();
        let answer = held.add(&engine, &points, &mut table);
        Ok((table.to_vec(), answer))
    };
    (0..).zip(parts).map(one).collect()
}

fn answers(run: &[(Vec<u8>, Answer)]) -> Vec<Answer> {
    run.iter().map(|(_, answer)| *answer).collect()
}

#[test]
fn tables_and_answers_match_the_vectors() {
    for case in cases("parity") {
        let run = run(&case).unwrap();
        for (i, (table, answer)) in run.iter().enumerate() {
            assert_eq!(*table, bytes(&case["tables"][i]));
            let flat = answer.0.as_flattened().as_flattened().to_vec();
            assert_eq!(flat, bytes(&case["answers"][i]));
        }
        assert!(accepts(&answers(&run)));
        assert!(!accepts(&answers(&run)[1..]), "all are needed");
        let (row, message) = (number(&case["row"]) as usize, bytes(&case["message"]));
        let mut sum = vec![0; run[0].0.len()];
        run.iter().for_each(|(table, _)| sum.iter_mut().zip(table).for_each(|(a, b)| *a ^= b));
        assert_eq!(sum[row * message.len()..][..message.len()], message);
    }
}

#[test]
fn bad_parts_are_rejected_as_in_the_vectors() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json").filter(|n| n.starts_with("parity_bad_")) else {
            continue;
        };
        for case in cases(name) {
            seen += 1;
            let expected = match case["refusal"].as_str().unwrap() {
                "audit" => None,
                "commitments" => Some(PartError::Commitments),
                "other-key" => Some(PartError::OtherKey),
                "proof" => Some(PartError::Proof),
                "length" => Some(PartError::Key(KeyError::Length)),
                "flag" => Some(PartError::Key(KeyError::Flag)),
                "words" => Some(PartError::Key(KeyError::Words)),
                other => panic!("{name}: no refusal `{other}`"),
            };
            match run(&case) {
                Err(refused) => assert_eq!(Some(refused), expected, "{name}"),
                Ok(run) => {
                    assert_eq!(expected, None, "{name}");
                    assert!(!accepts(&answers(&run)), "{name}: the audit lets it through");
                }
            }
        }
    }
    assert_eq!(seen, 11);
}
