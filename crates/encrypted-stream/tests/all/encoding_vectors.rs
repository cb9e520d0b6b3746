//! Known answers from an independent script, `vectors/schema`: the words of events.

// The lint recognises test functions, but not their helpers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use alpheus_encrypted_stream::encode::{EncodeError, Encoder, Value};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::Value as Json;

fn cases(name: &str) -> Vec<Json> {
    alpheus_test_support::vectors::cases(&format!("schema/v1/{name}"))
}

fn encoder(case: &Json) -> Encoder {
    let schema = Schema::from_yaml(case["yaml"].as_str().unwrap()).unwrap();
    Encoder::new(&schema, &Layout::of(&schema).unwrap()).unwrap()
}

fn value(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Absent,
        Json::Bool(truth) => Value::Boolean(*truth),
        Json::Number(number) => Value::Number(number.as_i64().unwrap()),
        Json::String(text) => Value::Text(text.as_bytes()),
        other => panic!("not a value: {other}"),
    }
}

fn encode(encoder: &Encoder, event: &Json) -> Result<Vec<u64>, EncodeError> {
    let values: Vec<Value<'_>> = event["values"].as_array().unwrap().iter().map(value).collect();
    let mut words = vec![0u64; encoder.words().into()];
    encoder.encode(&values, &mut ChaCha20Rng::from_seed([7; 32]), |word, addend| {
        let word = &mut words[usize::from(word)];
        *word = word.wrapping_add(addend);
    })?;
    Ok(words)
}

#[test]
fn events_have_the_words_of_the_script() {
    for case in cases("encoding.json") {
        let encoder = encoder(&case);
        for event in case["events"].as_array().unwrap() {
            let mut found = encode(&encoder, event).unwrap();
            for word in event["random"].as_array().unwrap() {
                let word = usize::try_from(word.as_u64().unwrap()).unwrap();
                assert_ne!(std::mem::take(&mut found[word]), 0);
            }
            let found: Vec<String> = found.iter().map(|word| format!("{word:016x}")).collect();
            assert_eq!(serde_json::to_value(found).unwrap(), event["words"], "{}", event["values"]);
        }
    }
}

#[test]
fn invalid_events_are_rejected_with_the_error_of_the_script() {
    for case in cases("encoding_bad_values.json") {
        let error = format!("{:?}", encode(&encoder(&case), &case).unwrap_err());
        assert!(error.starts_with(case["error"].as_str().unwrap()), "{error}");
    }
}
