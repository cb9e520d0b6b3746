//! The key exchange of TLS: X25519MLKEM768 first (draft-ietf-tls-ecdhe-mlkem, group 0x11ec), so
//! that a recorded connection stays closed if one of X25519 and ML-KEM-768 is broken. A peer that
//! does not know it gets X25519 or a curve of NIST's.
//!
//! `ring` has no ML-KEM. `docs/decisions/0064-hybrid-key-exchange-of-tls.md` says why it is joined
//! with another crate here.

use crate::entropy;
use ml_kem::kem::{Ciphertext, Decapsulate, KeyExport};
use ml_kem::{B32, MlKem768, Seed, ml_kem_768};
use rustls::crypto::ring::{self, kx_group::X25519};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use zeroize::Zeroize;

/// Bytes of ML-KEM-768's public key, which a client's share begins with.
const PUBLIC: usize = 1_184;
/// Bytes of what ML-KEM-768 answers, which a server's share begins with.
const ENCAPSULATED: usize = 1_088;
/// Bytes of X25519's public key, which each share ends with.
const CLASSICAL: usize = 32;

const MALFORMED: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// `ring`, with the hybrid exchange before its own.
#[must_use]
pub fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.kx_groups.insert(0, &Hybrid);
    provider
}

/// The group of both.
#[derive(Debug)]
struct Hybrid;

/// A client's exchange, until the server answers.
struct Offer {
    secret: ml_kem_768::DecapsulationKey,
    classical: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut seed = Seed::default();
        fill(&mut seed)?;
        let secret = ml_kem_768::DecapsulationKey::from_seed(seed);
        seed.zeroize();
        let classical = X25519.start()?;
        let share = joined(&secret.encapsulation_key().to_bytes(), classical.pub_key());
        Ok(Box::new(Offer { secret, classical, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (theirs, classical) = halves::<PUBLIC>(share)?;
        let public = ml_kem_768::EncapsulationKey::new(theirs.into()).map_err(|_| MALFORMED)?;
        let classical = X25519.start_and_complete(classical)?;
        let mut random = B32::default();
        fill(&mut random)?;
        let (encapsulated, mut secret) = public.encapsulate_deterministic(&random);
        random.zeroize();
        let both = both_secrets(&mut secret, &classical.secret);
        let pub_key = joined(&encapsulated, &classical.pub_key);
        Ok(CompletedKeyExchange { group: self.name(), pub_key, secret: both })
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

impl ActiveKeyExchange for Offer {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (encapsulated, classical) = halves::<ENCAPSULATED>(share)?;
        let classical = self.classical.complete(classical)?;
        let mut secret = self.secret.decapsulate(<&Ciphertext<MlKem768>>::from(encapsulated));
        Ok(both_secrets(&mut secret, &classical))
    }

    // A client offers both at once, so that a server without ML-KEM needs no second round.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    entropy::fill(bytes).map_err(|_| Error::FailedToGetRandomBytes)
}

fn joined(post_quantum: &[u8], classical: &[u8]) -> Vec<u8> {
    [post_quantum, classical].concat()
}

/// The halves of a share that has the right length.
fn halves<const FIRST: usize>(share: &[u8]) -> Result<(&[u8; FIRST], &[u8]), Error> {
    let (first, classical) = share.split_first_chunk().ok_or(MALFORMED)?;
    if classical.len() == CLASSICAL { Ok((first, classical)) } else { Err(MALFORMED) }
}

/// ML-KEM's secret, which is wiped, then X25519's.
fn both_secrets(post_quantum: &mut B32, classical: &SharedSecret) -> SharedSecret {
    let both = joined(post_quantum, classical.secret_bytes());
    post_quantum.zeroize();
    SharedSecret::from(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's share, its exchange, and what the server makes of the share.
    fn exchange() -> (Box<dyn ActiveKeyExchange>, CompletedKeyExchange) {
        let offer = Hybrid.start().unwrap();
        let answer = Hybrid.start_and_complete(offer.pub_key()).unwrap();
        (offer, answer)
    }

    #[test]
    fn both_sides_get_one_secret_of_both_halves() {
        let (offer, answer) = exchange();
        assert_eq!((offer.pub_key().len(), answer.pub_key.len()), (1_216, 1_120));
        let secret = offer.complete(&answer.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), answer.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
        assert_ne!(secret.secret_bytes(), exchange().1.secret.secret_bytes());
    }

    /// Those who change a half get another secret, and the handshake fails.
    #[test]
    fn each_half_of_a_share_changes_the_secret() {
        for (place, changed) in [(0, 0), (ENCAPSULATED, 32)] {
            let (offer, answer) = exchange();
            let mut share = answer.pub_key;
            share[place] ^= 1;
            let secret = offer.complete(&share).unwrap();
            let halves = [secret.secret_bytes(), answer.secret.secret_bytes()]
                .map(|secret| secret[changed..changed + 32].to_vec());
            assert_ne!(halves[0], halves[1], "{place}");
        }
    }

    #[test]
    fn malformed_shares_are_refused() {
        let share = Hybrid.start().unwrap().pub_key().to_vec();
        let longer = [&share[..], &[0]].concat();
        // Coefficients must be below ML-KEM's modulus of 3,329: the first, of 12 bits, is not. And
        // X25519 has points of low order.
        let mut unreduced = share.clone();
        (unreduced[0], unreduced[1]) = (0x01, unreduced[1] & 0xf0 | 0x0d);
        let low = [&share[..PUBLIC], &[0; CLASSICAL]].concat();
        for bad in [&[], &share[1..], &share[..PUBLIC], &longer[..], &unreduced, &low] {
            let refused = Hybrid.start_and_complete(bad).err();
            assert_eq!(refused, Some(MALFORMED), "{} bytes", bad.len());
        }
        for length in [0, CLASSICAL, ENCAPSULATED, ENCAPSULATED + 31, ENCAPSULATED + 33] {
            let (offer, mut answer) = exchange();
            answer.pub_key.resize(length, 1);
            assert_eq!(offer.complete(&answer.pub_key).err(), Some(MALFORMED), "{length}");
        }
        let (offer, answer) = exchange();
        let low = [&answer.pub_key[..ENCAPSULATED], &[0; CLASSICAL]].concat();
        assert_eq!(offer.complete(&low).err(), Some(MALFORMED));
    }

    #[test]
    fn the_classical_half_serves_alone() {
        let offer = Hybrid.start().unwrap();
        let (group, share) = offer.hybrid_component().unwrap();
        assert_eq!(group, X25519.name());
        let answer = X25519.start_and_complete(share).unwrap();
        let secret = offer.complete_hybrid_component(&answer.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), answer.secret.secret_bytes());
    }
}
