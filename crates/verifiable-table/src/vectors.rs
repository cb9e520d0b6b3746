//! Checks transforms against values from an independent script.

use crate::arithmetic::lanes::Backend;
use crate::arithmetic::ntt::Ntt;
use crate::sampling::Stream;
use alpheus_crypto::prf::Prf;
use alpheus_test_support::vectors::{self, hex};
use serde_json::Value;
use sha2::{Digest, Sha256};

#[test]
fn transforms_match_the_vectors() {
    let cases: Vec<Value> = vectors::cases("verifiable-table/v1/ntt.json");
    assert_eq!(cases.len(), 5);
    for case in cases {
        let (n, p) = (case["n"].as_u64().unwrap(), case["p"].as_u64().unwrap());
        for backend in [Backend::Portable, Backend::detect()] {
            let ntt = Ntt::new(p, usize::try_from(n).unwrap(), backend);
            let mut words = vec![0; usize::try_from(n).unwrap()];
            Stream::new(&Prf::from_bytes(&[0; 16]), n).residues(p, &mut words);
            let coefficients = words.clone();
            ntt.forward(&mut words);
            let first: Vec<u64> =
                case["first"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
            assert_eq!(words[..4], first, "n = {n}, p = {p}");
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let digest = hex(&Sha256::digest(&bytes));
            assert_eq!(case["values"], digest, "n = {n}, p = {p}, {}", backend.name());
            ntt.inverse(&mut words);
            assert_eq!(words, coefficients);
        }
    }
}
