//! Secrets sealed by the hybrid of X25519 and ML-KEM-768, beside X25519 alone: once for a stream,
//! or for an answer to a reader. Nothing of it is done for an event or a window.

use crate::measure::Effort;
use crate::report::Figure;
use alpheus_crypto::hybrid::{self, HybridKey};
use alpheus_crypto::seal::{self, SealingKey};
use alpheus_crypto::secret::Secret;
use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use std::hint::black_box;

const GROUP: &str = "seals";
const LABEL: &str = "bench";
const CONTEXT: [&[u8]; 2] = [&[1; 32], &[2; 16]];

/// Keys, a master secret, and the keys of some days for a reader.
pub(crate) fn figures(effort: Effort, mut say: impl FnMut(&str)) -> Vec<Figure> {
    say("seals: X25519 with ML-KEM-768, beside X25519 alone");
    let seed = Secret::from_bytes([7; 32]);
    let (classical, own) = (SealingKey::from_seed(&seed), HybridKey::from_seed(&seed));
    let keys = effort.compare(
        || drop(black_box(SealingKey::from_seed(&seed))),
        || drop(black_box(HybridKey::from_seed(&seed))),
    );
    let mut figures = vec![Figure::compared(GROUP, "a key from its seed".into(), "ns", keys)];
    let keys = (&classical, &own);
    figures.extend(figures_of::<32>(effort, keys, "a master secret", 1));
    figures.extend(figures_of::<16>(effort, keys, "keys of 30 days", 30));
    figures
}

/// Sealing and opening some secrets, each by itself or all together, and their bytes.
fn figures_of<const N: usize>(
    effort: Effort,
    (classical, own): (&SealingKey, &HybridKey),
    what: &str,
    secrets: usize,
) -> Vec<Figure> {
    let (mut rng, mut other) = (ChaCha12Rng::from_seed([3; 32]), ChaCha12Rng::from_seed([4; 32]));
    let (secret, all) = (Secret::from_bytes([9; N]), vec![9; N * secrets]);
    let mut each = || {
        let one = |_| seal::seal(&classical.public(), LABEL, &CONTEXT, &secret, &mut rng).ok();
        (0..secrets).filter_map(one).collect::<Vec<_>>()
    };
    let mut together = || hybrid::seal_bytes(own.public(), LABEL, &CONTEXT, &all, &mut other).ok();
    let (apart, whole) = (each(), together());
    let sealing = effort.compare(|| drop(black_box(each())), || drop(black_box(together())));
    let open = || {
        for sealed in &apart {
            drop(black_box(classical.open::<N>(LABEL, &CONTEXT, sealed)));
        }
    };
    let opening = effort.compare(open, || {
        if let Some(whole) = &whole {
            drop(black_box(own.open_bytes(LABEL, &CONTEXT, whole)));
        }
    });
    #[expect(clippy::cast_precision_loss, reason = "a few thousand bytes")]
    let bytes = |many: usize| many as f64;
    let before = bytes(apart.iter().map(seal::SealedSecret::length).sum());
    let now = bytes(whole.map_or(0, |whole| whole.as_bytes().len()));
    vec![
        Figure::compared(GROUP, format!("sealing {what}"), "ns", sealing),
        Figure::compared(GROUP, format!("opening {what}"), "ns", opening),
        Figure::alone(GROUP, format!("{what}, X25519 alone"), "bytes", before),
        Figure::alone(GROUP, format!("{what}, hybrid"), "bytes", now),
    ]
}
