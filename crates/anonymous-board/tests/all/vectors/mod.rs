//! Known answers, made by independent Python (`vectors/anonymous-board`).

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod group;
mod parity;

use alpheus_anonymous_board::dpf::digest::Kappa;
use alpheus_anonymous_board::dpf::generate::from_roots;
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, KeyError, Shape, Side, Word, Words, scalar};
use alpheus_anonymous_board::row::{Format, Row};
use alpheus_crypto::secret::Secret;
use alpheus_test_support::vectors::{self, ScriptedRng, array_of as array, bytes_of as bytes};
use serde_json::Value;
use std::path::Path;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/anonymous-board/v1")
}

fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("anonymous-board/v1/{name}.json"))
}

fn number(value: &Value) -> u32 {
    vectors::number_of(value)
}

/// A case's permutations, table and keys.
fn setting(case: &Value) -> (Prgs, Shape, [Key; 2]) {
    let prgs =
        Prgs::new(&array(&case["tree"]), &array(&case["payload_key"]), &array(&case["hash"]));
    let shape = Shape::new(number(&case["rows"]), number(&case["blocks"])).unwrap();
    let levels = case["levels"].as_array().unwrap().iter();
    let levels = levels
        .map(|level| Word { seed: array(&level["seed"]), right: number(&level["right"]) == 1 });
    let words = Words {
        levels: levels.collect(),
        payload: bytes(&case["payload"]),
        check: array(&case["check"]),
    };
    let key =
        |i: usize| Key { root: Secret::from_bytes(array(&case["roots"][i])), words: words.clone() };
    (prgs, shape, [key(0), key(1)])
}

#[test]
fn keys_tables_and_digests_match_the_vectors() {
    for case in cases("key") {
        let (prgs, shape, keys) = setting(&case);
        let (row, message) = (number(&case["row"]), bytes(&case["message"]));
        let roots = [0, 1].map(|i| Secret::from_bytes(array(&case["roots"][i])));
        let made = from_roots(&prgs, &shape, row, &message, roots).unwrap();
        assert!(made[0].words == keys[0].words, "Gen");
        let kappa = Kappa(array(&case["kappa"]));
        for side in Side::BOTH {
            let key = &keys[side.index()];
            key.check(&shape).unwrap();
            let mut table = vec![0; shape.bytes()];
            let pass = Pass::new(&prgs, shape, side);
            let share = Share { root: &key.root, words: &key.words };
            let digest = pass.add_and_digest(&[share], &mut table, &kappa).unwrap()[0];
            assert_eq!(table, bytes(&case["tables"][side.index()]));
            assert_eq!(digest.0.to_vec(), bytes(&case["digest"]));
            assert_eq!(scalar::digest(&prgs, &shape, side, key, &kappa), digest.0);
        }
    }
}

#[test]
fn bad_keys_are_rejected_as_in_the_vectors() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json").filter(|n| n.starts_with("key_bad_")) else {
            continue;
        };
        for case in cases(name) {
            seen += 1;
            let (prgs, shape, keys) = setting(&case);
            let refused = keys.iter().find_map(|key| key.check(&shape).err());
            let expected = match case["refusal"].as_str().unwrap() {
                "audit" => None,
                "zero-check" => Some(KeyError::ZeroCheck),
                "depth" => Some(KeyError::Depth),
                "payload" => Some(KeyError::Payload),
                "root" => Some(KeyError::Root),
                other => panic!("{name}: no refusal `{other}`"),
            };
            assert_eq!(refused, expected, "{name}");
            if expected.is_none() {
                let kappa = Kappa(array(&case["kappa"]));
                let digests = Side::BOTH.map(|side| {
                    let key = &keys[side.index()];
                    let share = Share { root: &key.root, words: &key.words };
                    Pass::new(&prgs, shape, side).digests(&[share], &kappa).unwrap()[0].0.to_vec()
                });
                assert_eq!(digests[0], bytes(&case["digests"][0]), "{name}");
                assert_eq!(digests[1], bytes(&case["digests"][1]), "{name}");
                assert_ne!(digests[0], digests[1], "{name}: the audit lets it through");
            }
        }
    }
    assert_eq!(seen, 10);
}

#[test]
fn rows_match_the_vectors() {
    for case in cases("row") {
        let message = u16::try_from(number(&case["message"])).unwrap();
        let format = Format { max_message: message, recovery: case["recovery"].as_bool().unwrap() };
        let rows = case["rows"].as_array().unwrap();
        for row in rows {
            let holds = bytes(&row["holds"]);
            let mut random = ScriptedRng(bytes(&row["random"]));
            let encoded = format.encode(&holds, &mut random).unwrap();
            assert!(random.0.is_empty(), "all of the randomness is used");
            assert_eq!(encoded.to_vec(), bytes(&row["row"]));
            assert_eq!(format.decode(&encoded), Row::One(holds));
        }
        let mut both = [bytes(&rows[1]["holds"]), bytes(&rows[2]["holds"])];
        both.sort();
        let two = match format.decode(&bytes(&case["two"])) {
            Row::Two(mut two) => {
                two.sort();
                Some(two)
            }
            Row::Lost => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(two, format.recovery.then_some(both));
        assert_eq!(format.decode(&bytes(&case["three"])), Row::Lost);
    }
}
