//! Known answers of making a key, byte by byte: `vectors/accountable-statistics/making.py`.

use crate::json::{array, cases, from_hex, small, told};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::keymaking::{Circle, KeyMaker, KeyWord, Patience};
use alpheus_accountable_statistics::messages::decode;
use alpheus_accountable_statistics::threshold::Committee;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use serde_json::Value;
use std::collections::BTreeMap;

/// Member 0.
fn maker(case: &Value, word: u64) -> KeyMaker {
    let c = &case["committee"];
    let purpose = Digest(array(&c["purpose"]));
    let committee = Committee::new(purpose, small(&c["members"]), small(&c["threshold"])).unwrap();
    let keys = case["keys"].as_array().unwrap().iter();
    let keys = keys.map(|key| array::<32>(key).try_into().unwrap()).collect();
    let epoch = KeyEpoch(case["epoch"].as_u64().unwrap());
    let circle = Circle::new(epoch, committee, keys).unwrap();
    let patience = Patience { word, attempt: 1000 };
    KeyMaker::restore(circle, SmootherId(0), patience, BTreeMap::new()).unwrap()
}

fn hear(maker: &mut KeyMaker, heard: &Value) {
    for one in heard.as_array().unwrap() {
        let word: Signed<KeyWord> = decode(&from_hex(&one["word"])).unwrap();
        maker.hear(SmootherId(small(&one["by"])), &word);
    }
}

/// All that a convener says of a key, with a member away and a complaint that is answered.
#[test]
fn a_key_is_made_by_the_scripts_words() {
    for case in cases("making") {
        let signing = SigningKey::from_seed(&Secret::from_bytes(array(&case["signing"])));
        let mut maker = maker(&case, case["patience"].as_u64().unwrap());
        let mut rng = told(&case["randomness"]);
        let (mut ledger, mut key) = (BTreeMap::new(), None);
        for stage in case["stages"].as_array().unwrap() {
            assert_eq!(key, None);
            hear(&mut maker, &stage["heard"]);
            let now = Time(stage["time"].as_u64().unwrap());
            let talk = maker.poll(now, &signing, &mut rng).commit(&mut ledger).unwrap();
            let said: Vec<Vec<u8>> =
                talk.words.iter().map(|word| postcard::to_allocvec(word).unwrap()).collect();
            let expected = stage["said"].as_array().unwrap().iter().map(from_hex);
            assert_eq!(said, expected.collect::<Vec<_>>(), "{now:?}");
            key = talk.key;
        }
        assert!(rng.0.is_empty(), "all of the randomness is used");
        let key = key.unwrap();
        assert_eq!(key.transcript(), &Digest(array(&case["settled"]["transcript"])));
        assert_eq!(key.key().0.as_bytes(), &array::<32>(&case["settled"]["key"]));
        let share = maker.share(&key).unwrap();
        assert_eq!(share.expose().expose(), &array::<32>(&case["settled"]["shares"][0]));
        assert_eq!(maker.faults().count(), 1, "who is away, and nobody else");
    }
}

#[test]
fn bad_words_name_who_said_them() {
    for (at, case) in cases("making_bad").iter().enumerate() {
        let signing = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let mut maker = maker(case, 10);
        let mut rng = told(&Value::from(""));
        maker.poll(Time(0), &signing, &mut rng).commit(&mut BTreeMap::new()).unwrap();
        hear(&mut maker, &case["heard"]);
        let _ = maker.poll(Time(1), &signing, &mut rng);
        let by = SmootherId(small(&case["by"]));
        let found: Vec<String> = maker
            .faults()
            .filter(|(named, _)| *named == by)
            .map(|(_, fault)| format!("{fault:?}"))
            .collect();
        let expected: Vec<&str> = case["fault"].as_str().into_iter().collect();
        assert_eq!(found, expected, "{at}");
    }
}
