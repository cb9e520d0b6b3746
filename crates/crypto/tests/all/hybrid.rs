//! Sealing secrets by a hybrid KEM.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::hybrid::{
    HybridKey, HybridLengthError, HybridPublic, HybridSealed, PUBLIC_BYTES, seal, seal_bytes,
};
use alpheus_crypto::seal::{SealingKeyError, UnsealError};
use alpheus_crypto::secret::Secret;
use alpheus_test_support::vectors::{self, ScriptedRng, bytes};
use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use serde_json::Value;

fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("crypto/v1/{name}.json"))
}

fn key(case: &Value) -> HybridKey {
    HybridKey::from_seed(&Secret::from_slice(&bytes(case, "seed")).unwrap())
}

fn opened(case: &Value) -> Option<Vec<u8>> {
    let sealed = HybridSealed::try_from(bytes(case, "sealed")).ok()?;
    let (label, context) = (case["label"].as_str().unwrap(), bytes(case, "context"));
    let opened = key(case).open_bytes(label, &[&context], &sealed);
    opened.ok().map(|opened| opened.to_vec())
}

/// Keys and randomness are those of the draft of X-Wing.
#[test]
fn keys_and_sealed_secrets_match_the_known_answers() {
    for case in cases("hybrid") {
        let key = key(&case);
        assert_eq!(key.public().as_bytes(), bytes(&case, "public"));
        assert_eq!(opened(&case), Some(bytes(&case, "secret")));
        let mut drawn = ScriptedRng(bytes(&case, "randomness"));
        let (label, context) = (case["label"].as_str().unwrap(), bytes(&case, "context"));
        let secret = bytes(&case, "secret");
        let sealed = seal_bytes(key.public(), label, &[&context], &secret, &mut drawn).unwrap();
        assert_eq!(sealed.as_bytes(), bytes(&case, "sealed"));
        assert!(drawn.0.is_empty(), "64 bytes are drawn");
    }
    for kind in ["key", "label", "context", "bytes"] {
        for case in cases(&format!("hybrid_bad_{kind}")) {
            assert_eq!(opened(&case), None, "{kind}");
        }
    }
}

/// A key of which one half is no key is refused: what is sealed for it would rest on the other.
#[test]
fn half_a_key_is_no_key() {
    let rng = &mut ChaCha12Rng::from_seed([3; 32]);
    let secret = Secret::from_bytes([1; 32]);
    for case in cases("hybrid_bad_public") {
        let weak = HybridPublic::try_from(bytes(&case, "public")).unwrap();
        assert!(!weak.is_good());
        assert_eq!(seal(&weak, "use", &[], &secret, rng).err(), Some(SealingKeyError));
    }
    assert!(key(&cases("hybrid")[0]).public().is_good());
}

#[test]
fn every_byte_of_a_sealed_secret_counts() {
    let key = HybridKey::from_seed(&Secret::from_bytes([1; 32]));
    let rng = &mut ChaCha12Rng::from_seed([4; 32]);
    let secret = Secret::from_bytes([7; 32]);
    let sealed = seal(key.public(), "use", &[b"stream"], &secret, rng).unwrap();
    assert_eq!(key.open("use", &[b"stream"], &sealed).unwrap().expose(), secret.expose());
    let good = Vec::from(sealed);
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 1;
        let damaged = HybridSealed::try_from(damaged).unwrap();
        assert_eq!(key.open::<32>("use", &[b"stream"], &damaged).err(), Some(UnsealError), "{at}");
    }
}

/// A seal without ML-KEM, or for a key without it, does not pass for a hybrid one.
#[test]
fn other_lengths_are_refused_where_they_are_decoded() {
    for length in [0, 32, 80, 1135] {
        assert_eq!(HybridSealed::try_from(vec![1; length]).err(), Some(HybridLengthError));
        let encoded = postcard::to_allocvec(&vec![1_u8; length]).unwrap();
        assert!(postcard::from_bytes::<HybridSealed>(&encoded).is_err());
    }
    for length in [0, 32, PUBLIC_BYTES - 1, PUBLIC_BYTES + 1] {
        assert_eq!(HybridPublic::try_from(vec![1; length]).err(), Some(HybridLengthError));
        let encoded = postcard::to_allocvec(&vec![1_u8; length]).unwrap();
        assert!(postcard::from_bytes::<HybridPublic>(&encoded).is_err());
    }
    let key = HybridKey::from_seed(&Secret::from_bytes([1; 32])).public().clone();
    let encoded = postcard::to_allocvec(&key).unwrap();
    assert_eq!(postcard::from_bytes::<HybridPublic>(&encoded), Ok(key));
}
