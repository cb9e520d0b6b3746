//! Terms, bindings and keys that several tests share.

use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::{Binding, Checker, Prover, Terms, ThresholdKey};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::labelled;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

pub fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

/// The key that tests which never decrypt encrypt to.
pub fn terms(interval: Interval) -> Terms {
    terms_of(&SecretScalar::from_small(77), interval)
}

pub fn terms_of(key: &SecretScalar, interval: Interval) -> Terms {
    Terms::new(ThresholdKey(Element::base().times(key).unwrap()), interval)
}

pub fn prover(terms: Terms) -> Prover {
    Prover::new(terms)
}

pub fn checker(terms: Terms) -> Checker {
    Checker::new(terms)
}

/// Of one slot of the aggregate "here".
pub fn binding(slot: u32) -> Binding {
    Binding {
        tag: Element::hashed("alpheus/test-tag/v1", &[&slot.to_be_bytes()]),
        aggregate: labelled("alpheus/test-aggregate/v1", &[b"here"]),
        slot,
        revision: 9,
        ephemeral: SigningKey::from_seed(&Secret::from_bytes([3; 32])).verifying_key(),
    }
}
