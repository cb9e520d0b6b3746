//! Certificates of devices and of ingest keys, as an independent script writes them: the Java
//! side reads the same ones (`vectors/ticks`).

use crate::vectors::json::{array, bytes, text};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Role};
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("ticks/v1/{file}"))
}

fn signed(case: &Value) -> Result<Signed<Certificate>, postcard::Error> {
    postcard::from_bytes(&bytes(case, "certificate"))
}

#[test]
fn certificates_match_the_script() {
    for case in cases("certificate.json") {
        let authority = VerifyingKey::from_bytes(array(&case, "authority")).unwrap();
        let opened = signed(&case).unwrap().open(&authority).unwrap();
        assert_eq!(opened.digest(), Digest(array(&case, "digest")));
        assert_eq!(opened.party.verifying.as_bytes(), &array::<32>(&case, "verifying"));
        let seed = Secret::from_bytes(array(&case, "seed"));
        match text(&case, "role") {
            "device" => {
                assert_eq!((opened.party.role, opened.party.sealing), (Role::Device, None));
                assert_eq!(SigningKey::from_seed(&seed).verifying_key(), opened.party.verifying);
            }
            _ => {
                assert_eq!(opened.party.role, Role::Ingest);
                assert_eq!(Some(SealingKey::from_seed(&seed).public()), opened.party.sealing);
            }
        }
    }
}

#[test]
fn what_the_authority_did_not_sign_is_no_certificate() {
    let mut unsigned = 0;
    for case in cases("certificate_bad_content.json") {
        if text(&case, "error") == "Unsigned" {
            let authority = VerifyingKey::from_bytes(array(&case, "authority")).unwrap();
            assert!(signed(&case).unwrap().open(&authority).is_err());
            unsigned += 1;
        }
    }
    assert_eq!(unsigned, 2);
}
