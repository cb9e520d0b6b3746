//! The randomness of one window's share. It derives from the controller's secret and
//! from what the share is for. So the same request gets the same share after any
//! restart, and no other request ever gets it.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

/// ChaCha20 under `KDF(secret; plan, start of the window, H(M), H(S))`. A lone
/// controller opens with its token and omits H(S). Wiped when dropped.
///
/// # Privacy
/// The output looks uniform to anyone who lacks `secret`, even if they choose plan, M
/// and S, assuming that HKDF and ChaCha20 are pseudorandom. Two sets never share a
/// draw, so the difference of two answers would still contain noise. The ledger must
/// ensure that only one is ever answered.
#[must_use]
pub fn generator(
    secret: &Secret<32>,
    plan: &PlanId,
    window: Window,
    membership: &Digest,
    set: Option<&Digest>,
) -> ChaCha20Rng {
    let start = window.start.0.to_be_bytes();
    let set = set.map_or(&[][..], |set| &set.0);
    let parts: [&[u8]; 4] = [&plan.0, &start, &membership.0, set];
    let seed = derive::<32>(secret.expose(), labels::NOISE_SHARE, &parts);
    ChaCha20Rng::from_seed(*seed.expose())
}

/// ChaCha20 under `KDF(secret; plan, place)`: the source of the seeds of the window
/// number `place` in the plan's running totals, whatever S is. Wiped when dropped.
///
/// # Privacy
/// As for [`generator`]. It does not depend on M or S, so every request draws the same
/// seeds. [`Seeds`](super::Seeds) and the ledger decide what may be released of them.
#[must_use]
pub fn seed_generator(secret: &Secret<32>, plan: &PlanId, place: u32) -> ChaCha20Rng {
    let parts: [&[u8]; 2] = [&plan.0, &place.to_be_bytes()];
    let seed = derive::<32>(secret.expose(), labels::NOISE_SEED, &parts);
    ChaCha20Rng::from_seed(*seed.expose())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Timestamp;
    use rand_core::Rng;

    #[test]
    fn a_share_depends_on_its_whole_context() {
        let window = |start| Window { start: Timestamp(start), end: Timestamp(9) };
        let draw = |secret: u8, plan: u8, start, m: u8, s: Option<u8>| {
            let secret = Secret::from_bytes([secret; 32]);
            let set = s.map(|s| Digest([s; 32]));
            let (plan, m) = (PlanId([plan; 32]), Digest([m; 32]));
            generator(&secret, &plan, window(start), &m, set.as_ref()).next_u64()
        };
        let all = [
            draw(1, 1, 1, 1, Some(1)),
            draw(2, 1, 1, 1, Some(1)),
            draw(1, 2, 1, 1, Some(1)),
            draw(1, 1, 2, 1, Some(1)),
            draw(1, 1, 1, 2, Some(1)),
            draw(1, 1, 1, 1, Some(2)),
            draw(1, 1, 1, 1, None),
        ];
        let different: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(draw(1, 1, 1, 1, None), draw(1, 1, 1, 1, None));
    }

    #[test]
    fn seeds_depend_on_secret_plan_and_place() {
        let draw = |secret: u8, plan: u8, place| {
            let secret = Secret::from_bytes([secret; 32]);
            seed_generator(&secret, &PlanId([plan; 32]), place).next_u64()
        };
        let all = [draw(1, 1, 0), draw(2, 1, 0), draw(1, 2, 0), draw(1, 1, 1), draw(1, 1, 256)];
        let different: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(draw(1, 1, 1), draw(1, 1, 1));
    }
}
