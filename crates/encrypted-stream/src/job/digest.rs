//! Digests of sets. The digests of parts add up to the digest of the whole, in any order.

use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::Timestamp;

use crate::sums::add;

/// Words in a digest.
pub(super) const WORDS: usize = 4;

/// A digest of a window's streams or of its controllers: Σ SHA-256(label; plan, start,
/// member) over the set, as four big-endian words modulo 2^64. A missing, duplicate or
/// wrong member changes it. It protects against accidents, not against the job's operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetDigest(pub [u64; WORDS]);

impl SetDigest {
    /// The digest of streams.
    #[must_use]
    pub fn of_streams(
        plan: &PlanId,
        start: Timestamp,
        streams: impl IntoIterator<Item = StreamId>,
    ) -> SetDigest {
        let mut digest = SetDigest::default();
        streams.into_iter().for_each(|stream| {
            digest.add(labels::JOB_STREAM_SET, plan, start, &stream.0);
        });
        digest
    }

    /// The digest of controllers, by position in the roster.
    #[must_use]
    pub fn of_controllers(plan: &PlanId, start: Timestamp, controllers: &[u32]) -> SetDigest {
        let mut digest = SetDigest::default();
        for controller in controllers {
            digest.add(labels::JOB_TOKEN_SET, plan, start, &controller.to_be_bytes());
        }
        digest
    }

    fn add(&mut self, label: &str, plan: &PlanId, start: Timestamp, member: &[u8]) {
        let hash = labelled_hash(label, &[&plan.0, &start.0.to_be_bytes(), member]);
        let (words, _) = hash.as_bytes().as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        add(&mut self.0, &words);
    }
}
