//! Known answers of `vectors/access-pass`, from a script that shares no code with this crate.

use crate::client::{connection_nonce, request_key};
use crate::code::Binding;
use crate::error::GatewayError;
use crate::messages::Challenge;
use crate::private_token::TokenChallenge;
use crate::request::{Stamp, Stamper, Target, tag};
use alpheus_anonymous_credential::messages::{SessionId, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::mac::MacKey;
use alpheus_crypto::secret::Secret;
use alpheus_test_support::vectors::{self, array as bytes, hex};
use data_encoding::BASE64URL;
use serde_json::Value;

fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("access-pass/v1/{name}.json"))
}

fn session(case: &Value) -> SessionId {
    SessionId(TagId(Digest(bytes(case, "session"))))
}

#[test]
fn both_sides_of_a_connection_get_the_same_key() {
    for case in cases("connection") {
        let key = |field| AgreementKey::from_seed(&Secret::from_bytes(bytes(&case, field)));
        let (gateway, client) = (key("gateway_seed"), key("client_seed"));
        assert_eq!(gateway.public().0, bytes(&case, "gateway_public"));
        assert_eq!(client.public().0, bytes(&case, "client_public"));
        let challenge = Challenge(bytes(&case, "challenge"));
        let nonce = connection_nonce(&challenge, &gateway.public(), &client.public());
        assert_eq!(nonce, bytes(&case, "nonce"));
        let until = case["until"].as_u64().unwrap().to_be_bytes();
        let known = MacKey::new(&Secret::from_bytes(bytes(&case, "key")));
        let agreements =
            [client.agree(&gateway.public()), gateway.agree(&client.public())].map(Result::unwrap);
        for agreed in agreements {
            let key = request_key(&agreed, session(&case), &nonce);
            let confirmation = key.tag(labels::PASS_CONFIRMATION, &[&nonce, &until]);
            assert_eq!(confirmation.0, bytes(&case, "confirmation"));
            let parts: [&[u8]; 1] = [b"any"];
            assert_eq!(key.tag("label", &parts), known.tag("label", &parts));
        }
    }
}

#[test]
fn stamps_match_the_vectors() {
    for case in cases("request") {
        let text = |field: &str| case[field].as_str().unwrap().to_owned();
        let (method, authority, path) = (text("method"), text("authority"), text("path"));
        let target = Target { method: &method, authority: &authority, path: &path };
        let (counter, id) = (case["counter"].as_u64().unwrap(), session(&case));
        let key = MacKey::new(&Secret::from_bytes(bytes(&case, "key")));
        let stamp = Stamp { session: id, counter, tag: tag(&key, id, counter, &target) };
        assert_eq!(stamp.to_string(), text("stamp"));
        assert_eq!(text("stamp").parse(), Ok(stamp));
        if counter == 0 {
            assert_eq!(Stamper::new(id, key).stamp(&target), Ok(stamp));
        }
    }
}

#[test]
fn malformed_stamps_are_rejected() {
    for case in cases("request_bad_stamp") {
        let refused = case["stamp"].as_str().unwrap().parse::<Stamp>();
        assert_eq!(refused, Err(GatewayError::Malformed), "{}", case["why"]);
        assert_eq!(case["error"], "Malformed");
    }
}

#[test]
fn challenges_of_privacy_pass_match_the_vectors() {
    for case in cases("challenge") {
        let text = |field: &str| case[field].as_str().unwrap().to_owned();
        let (fingerprint, epoch) = (Digest(bytes(&case, "fingerprint")), case["epoch"].as_u64());
        let key = BASE64URL.encode(&bytes::<96>(&case, "key"));
        let (issuer, origin) = (text("issuer"), text("origin"));
        let epoch = Epoch(epoch.unwrap());
        let challenge = TokenChallenge::of(&fingerprint, epoch, &issuer, &origin, key);
        assert_eq!(hex(&challenge.to_bytes()), text("challenge"));
        assert_eq!(challenge.header(), text("header"));
    }
}

#[test]
fn bindings_of_codes_match_the_vectors() {
    for case in cases("binding") {
        let binding = match case["step"].as_u64() {
            Some(step) => Binding::Step(step),
            None => Binding::Gate(bytes(&case, "nonce")),
        };
        assert_eq!(binding.challenge(), bytes::<32>(&case, "challenge"));
    }
}
