//! Every domain-separation label, in one place so that no two uses share one.
//!
//! A label ends in its version. Whoever changes what is hashed, derived, MACed
//! or signed under a label gives it a new version, so that old and new never
//! mean each other.

/// AES subkey of one stream for one day (HKDF).
pub const STREAM_DAY: &str = "alpheus/stream/day/v1";
/// Key for the MACs of one stream's borders (HKDF).
pub const STREAM_BORDER: &str = "alpheus/stream/border/v1";
/// A border event under its stream's border key (HMAC).
pub const BORDER: &str = "alpheus/border/v1";
/// A key agreed by two parties, bound to both public keys (HKDF).
pub const AGREEMENT: &str = "alpheus/agreement/v1";
/// Pads between two controllers, from what they agreed on (HKDF).
pub const MASK_PAIR: &str = "alpheus/mask/pair/v1";
/// Which rounds two controllers share a mask in, from the same (HKDF).
pub const MASK_GRAPH: &str = "alpheus/mask/graph/v1";
/// A controller's masks of its own, from a secret of its own (HKDF).
pub const MASK_OWN: &str = "alpheus/mask/own/v1";
/// What a mask pad is bound to: purpose, plan, window, membership, opening set (hash).
pub const MASK_PAD: &str = "alpheus/mask/pad/v1";
/// What a round's graph is bound to: strategy, plan, epoch or round (hash).
pub const MASK_ROUND: &str = "alpheus/mask/round/v1";

/// The labels of this file, for the test that they differ.
#[cfg(test)]
const ALL: &[&str] = &[
    STREAM_DAY,
    STREAM_BORDER,
    BORDER,
    AGREEMENT,
    MASK_PAIR,
    MASK_GRAPH,
    MASK_OWN,
    MASK_PAD,
    MASK_ROUND,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn labels_differ_and_are_versioned() {
        let distinct: HashSet<_> = super::ALL.iter().collect();
        assert_eq!(distinct.len(), super::ALL.len());
        assert!(
            super::ALL.iter().all(|label| label.starts_with("alpheus/") && label.contains("/v"))
        );
    }
}
