//! Known answers made by an independent script: `vectors/crypto`.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash, link};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::mac::{MacKey, Tag};
use alpheus_crypto::merkle::{Proof, leaf, root};
use alpheus_crypto::prf::{PadDigest, Prf};
use alpheus_crypto::seal::{SealedSecret, SealingKey, UnsealError};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_test_support::vectors::{array, bytes, hex_list, text, word, words};
use serde_json::Value;

/// All cases of a file.
fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("crypto/v1/{name}"))
}

fn parts(case: &Value) -> Vec<Vec<u8>> {
    hex_list(case, "parts")
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// The name by which bad vectors expect an error.
fn name(error: impl std::fmt::Debug) -> String {
    match format!("{error:?}").as_str() {
        "TagError" => "BadTag".into(),
        "LowOrderError" => "LowOrder".into(),
        "ProofError" => "BadProof".into(),
        variant => variant.into(),
    }
}

#[test]
fn hashes_match_the_known_answers() {
    for case in cases("labelled_hash.json") {
        let digest = labelled_hash(text(&case, "label"), &slices(&parts(&case)));
        assert_eq!(digest.0, array(&case, "digest"));
    }
    for case in cases("link.json") {
        let h = link(word(text(&case, "session")), case["t"].as_u64().unwrap());
        assert_eq!(h, word(text(&case, "h")));
    }
}

#[test]
fn derived_keys_match_the_known_answers() {
    for case in cases("derive.json") {
        let (secret, parts) = (bytes(&case, "secret"), parts(&case));
        let expected = bytes(&case, "key");
        let label = text(&case, "label");
        match expected.len() {
            16 => assert!(derive::<16>(&secret, label, &slices(&parts)).expose()[..] == expected),
            32 => assert!(derive::<32>(&secret, label, &slices(&parts)).expose()[..] == expected),
            80 => assert!(derive::<80>(&secret, label, &slices(&parts)).expose()[..] == expected),
            other => panic!("no test derives {other} bytes"),
        }
    }
}

#[test]
fn keystreams_and_pads_match_the_known_answers() {
    for case in cases("keystream.json") {
        let prf = Prf::new(&Secret::from_bytes(array(&case, "key")));
        let expected = words(&case, "words");
        let mut out = vec![1; expected.len()];
        prf.keystream(u128::from_be_bytes(array(&case, "first")), &mut out);
        assert_eq!(out, expected);
    }
    for case in cases("mask_pad.json") {
        let prf = Prf::new(&Secret::from_bytes(array(&case, "key")));
        let (digest, expected) =
            (PadDigest::from_bytes(&array(&case, "digest")), words(&case, "words"));
        let mut out = vec![0; expected.len()];
        prf.add_pad(&digest, &mut out);
        assert_eq!(out, expected);
        prf.subtract_pad(&digest, &mut out);
        assert!(out.iter().all(|word| *word == 0));
    }
}

fn mac(case: &Value) -> Result<(), String> {
    let key = MacKey::new(&Secret::from_bytes(array(case, "key")));
    let tag = Tag(array(case, "tag"));
    key.verify(text(case, "label"), &slices(&parts(case)), &tag).map_err(name)
}

#[test]
fn tags_match_the_known_answers() {
    for case in cases("mac.json") {
        assert_eq!(mac(&case), Ok(()));
    }
    for kind in ["tag", "label", "key", "boundary"] {
        for case in cases(&format!("mac_bad_{kind}.json")) {
            assert_eq!(mac(&case), Err(text(&case, "error").into()), "{kind}");
        }
    }
}

fn signature(case: &Value) -> Result<(), String> {
    let key = VerifyingKey::from_bytes(array(case, "public")).map_err(name)?;
    let signature = Signature::from_bytes(&array(case, "signature"));
    key.verify(text(case, "label"), &bytes(case, "message"), &signature).map_err(name)
}

#[test]
fn signatures_match_the_known_answers() {
    for case in cases("signature.json") {
        assert_eq!(signature(&case), Ok(()));
        let key = SigningKey::from_seed(&Secret::from_bytes(array(&case, "seed")));
        assert_eq!(key.verifying_key().as_bytes(), &array(&case, "public"));
        let made = key.sign(text(&case, "label"), &bytes(&case, "message"));
        assert_eq!(made.to_bytes(), array(&case, "signature"));
    }
    let kinds =
        ["message", "label", "malleated", "small_order_key", "small_order_point", "no_point"];
    for kind in kinds {
        for case in cases(&format!("signature_bad_{kind}.json")) {
            assert_eq!(signature(&case), Err(text(&case, "error").into()), "{kind}");
        }
    }
}

fn unsealed(case: &Value) -> Result<Secret<32>, UnsealError> {
    let key = SealingKey::from_seed(&Secret::from_bytes(array(case, "seed")));
    let sealed = SealedSecret::from_bytes(&bytes(case, "sealed")).ok_or(UnsealError)?;
    key.open(text(case, "label"), &[&bytes(case, "context")], &sealed)
}

#[test]
fn sealed_secrets_match_the_known_answers() {
    for case in cases("sealed.json") {
        let key = SealingKey::from_seed(&Secret::from_bytes(array(&case, "seed")));
        assert_eq!(key.public().0, array(&case, "public"));
        assert_eq!(unsealed(&case).map(|it| *it.expose()), Ok(array(&case, "secret")));
    }
    for kind in ["key", "label", "context", "bytes", "low_order"] {
        for case in cases(&format!("sealed_bad_{kind}.json")) {
            assert!(unsealed(&case).is_err(), "{kind}");
        }
    }
}

#[test]
fn agreed_keys_match_the_known_answers() {
    for case in cases("agreement.json") {
        let (seeds, publics) = (hex_list(&case, "seeds"), hex_list(&case, "publics"));
        for (ours, theirs) in [(0, 1), (1, 0)] {
            let seed = Secret::from_bytes(seeds[ours].clone().try_into().unwrap());
            let key = AgreementKey::from_seed(&seed);
            assert_eq!(key.public().0.to_vec(), publics[ours]);
            let their = AgreementPublic(publics[theirs].clone().try_into().unwrap());
            assert!(key.agree(&their).unwrap().expose()[..] == bytes(&case, "key"));
        }
    }
    for case in cases("agreement_bad_low_order.json") {
        let key = AgreementKey::from_seed(&Secret::from_bytes(array(&case, "seed")));
        let refusal = key.agree(&AgreementPublic(array(&case, "their"))).err();
        assert_eq!(refusal.map(name).as_deref(), Some(text(&case, "error")));
    }
}

fn proof(case: &Value) -> Result<(), String> {
    let path = hex_list(case, "path").into_iter().map(|h| Digest(h.try_into().unwrap())).collect();
    let number = |field: &str| case[field].as_u64().unwrap();
    let proof = Proof { index: number("index"), size: number("size"), path };
    proof.verify(&leaf(&bytes(case, "leaf")), &Digest(array(case, "root"))).map_err(name)
}

#[test]
fn roots_and_proofs_match_the_known_answers() {
    for case in cases("merkle_root.json") {
        let leaves = hex_list(&case, "leaves").iter().map(|data| leaf(data)).collect();
        assert_eq!(root(leaves).0, array(&case, "root"));
    }
    for case in cases("merkle_proof.json") {
        assert_eq!(proof(&case), Ok(()));
    }
    for kind in ["index", "size", "leaf", "path", "inner_node"] {
        for case in cases(&format!("merkle_bad_{kind}.json")) {
            assert_eq!(proof(&case), Err(text(&case, "error").into()), "{kind}: {case}");
        }
    }
}
