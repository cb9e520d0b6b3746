//! Known answers of making a key, byte by byte: `vectors/accountable-statistics/making.py`.

use crate::vectors::json::{array, cases, from_hex, script_rng, small};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::keymaking::{KeyMaker, KeyMessage, Participants, Timeouts};
use alpheus_accountable_statistics::messages::decode;
use alpheus_accountable_statistics::threshold::Committee;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// Member 0.
fn maker(case: &Value, timeout: u64) -> KeyMaker {
    let c = &case["committee"];
    let purpose = Digest(array(&c["purpose"]));
    let committee = Committee::new(purpose, small(&c["members"]), small(&c["threshold"])).unwrap();
    let keys = case["keys"].as_array().unwrap().iter();
    let keys = keys.map(|key| array::<32>(key).try_into().unwrap()).collect();
    let epoch = KeyEpoch(case["epoch"].as_u64().unwrap());
    let participants = Participants::new(epoch, committee, keys).unwrap();
    let timeouts = Timeouts { message: Span(timeout), attempt: Span(1000) };
    KeyMaker::restore(participants, SmootherId(0), timeouts, BTreeMap::new()).unwrap()
}

fn hear(maker: &mut KeyMaker, heard: &Value) {
    for one in heard.as_array().unwrap() {
        let word: Signed<KeyMessage> = decode(&from_hex(&one["word"])).unwrap();
        maker.handle(&word, SmootherId(small(&one["by"])));
    }
}

/// All messages of a convener, with an absent member and an answered complaint.
#[test]
fn keymaking_matches_the_scripts_messages() {
    for case in cases("making") {
        let signing = SigningKey::from_seed(&Secret::from_bytes(array(&case["signing"])));
        let mut maker = maker(&case, case["patience"].as_u64().unwrap());
        let mut rng = script_rng(&case["randomness"]);
        let (mut ledger, mut key) = (BTreeMap::new(), None);
        for stage in case["stages"].as_array().unwrap() {
            assert_eq!(key, None);
            hear(&mut maker, &stage["heard"]);
            let now = Timestamp(stage["time"].as_u64().unwrap());
            let output = maker.poll(now, &signing, &mut rng).commit(&mut ledger).unwrap();
            let sent: Vec<Vec<u8>> = output
                .messages
                .iter()
                .map(|message| postcard::to_allocvec(message).unwrap())
                .collect();
            let expected = stage["said"].as_array().unwrap().iter().map(from_hex);
            assert_eq!(sent, expected.collect::<Vec<_>>(), "{now:?}");
            key = output.key;
        }
        assert!(rng.is_used_up(), "all of the randomness is used");
        let key = key.unwrap();
        assert_eq!(key.transcript(), &Digest(array(&case["settled"]["transcript"])));
        assert_eq!(key.key().0.as_bytes(), &array::<32>(&case["settled"]["key"]));
        let share = maker.share(&key).unwrap();
        assert_eq!(share.expose().expose(), &array::<32>(&case["settled"]["shares"][0]));
        assert_eq!(maker.faults().count(), 1, "who is away, and nobody else");
    }
}

#[test]
fn bad_messages_blame_their_sender() {
    for (at, case) in cases("making_bad").iter().enumerate() {
        let signing = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let mut maker = maker(case, 10);
        let mut rng = script_rng(&Value::from(""));
        maker.poll(Timestamp(0), &signing, &mut rng).commit(&mut BTreeMap::new()).unwrap();
        hear(&mut maker, &case["heard"]);
        let _ = maker.poll(Timestamp(1), &signing, &mut rng);
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
