//! Keys that last for a day at most: what masks and noise of verified plans rest on besides the keys
//! that a controller has for life (`docs/protocol.md`, *Keys of a generation*).
//!
//! Once a generation is wiped on both sides of a pair, nobody can compute that pair's pads again,
//! not even from all other keys. So what was kept of a window stays closed.

use std::sync::Arc;

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Span, Timestamp};
use zeroize::Zeroizing;

use crate::mask::pads::MaskError;
use crate::mask::pairs::{OwnKey, PairKeys};

/// How long a generation takes new windows.
pub(crate) const LIFE: Span = Span::seconds(86_400);
/// How long another controller's key is taken, from when its generation began: long enough for
/// windows that are under way when it ends.
pub(crate) const FRESH: Span = Span::seconds(2 * 86_400);
/// By how much the coordinator is stricter: clocks may differ so far, less the time from presence
/// to token, before a member refuses what the coordinator has passed on.
pub(crate) const MARGIN: Span = Span::seconds(86_400 / 2);

/// How far a controller's own generation may have begun in the future, on a clock that was set back,
/// before there is another one. So keys of honest controllers may be so much ahead of their clocks.
pub(crate) const SET_BACK: Span = Span::seconds(3_600);

/// What a key says of when its generation began: the hour. The instant would show, in every receipt, when the host
/// was last started and how wrong its clock is.
const SHOWN: Span = Span::seconds(3_600);

/// When a generation that began then says that it began.
pub(crate) fn shown(begun: Timestamp) -> Timestamp {
    begun.floor(SHOWN)
}

/// Whether another controller's key is taken at this time, with a margin for others' clocks.
pub(crate) fn is_fresh(begun: Timestamp, now: Timestamp, margin: Span) -> bool {
    let is_old = now.plus(margin) > begun.plus(FRESH);
    let is_future = begun.plus(margin) > now.plus(LIFE);
    !is_old && !is_future
}

/// Where a controller's generations come from. It only goes forward: who has it learns no earlier
/// generation. Not `Clone`, not `Debug`, wiped on drop. Keep it in memory, and write it nowhere.
pub struct KeySource(Secret<32>);

impl KeySource {
    /// A source that begins with these bytes, drawn for this start and this controller. Draw them where
    /// nobody can draw them again: a generator that lives on gives its earlier output to anyone who reads
    /// its state.
    #[must_use]
    pub fn new(start: Secret<32>) -> Self {
        Self(start)
    }

    /// The next generation. The value that it came from is wiped.
    pub fn advance(&mut self) -> Generation {
        let secret = derive(self.0.expose(), labels::GENERATION, &[]);
        self.0 = derive(self.0.expose(), labels::GENERATION_NEXT, &[]);
        Generation(secret)
    }
}

/// The secret x of a generation. Not `Clone`, not `Debug`, wiped on drop.
pub struct Generation(Secret<32>);

impl Generation {
    /// The controller's agreement key for a plan.
    #[must_use]
    pub fn agreement(&self, plan: &PlanId) -> AgreementKey {
        let seed = derive(self.0.expose(), labels::GENERATION_AGREEMENT, &[&plan.0]);
        AgreementKey::from_seed(&seed)
    }

    /// The key of its self-masks in a plan, from its secret for life and this one.
    #[must_use]
    pub fn own_key(&self, life: &Secret<32>, plan: &PlanId) -> OwnKey {
        OwnKey::derived(&joined(life.expose(), &self.0), labels::MASK_OWN_OF_GENERATION, plan)
    }

    /// The secret of its noise in a plan, from its secret for life and this one.
    #[must_use]
    pub fn noise(&self, life: &Secret<32>, plan: &PlanId) -> Secret<32> {
        derive(&joined(life.expose(), &self.0), labels::NOISE_OF_GENERATION, &[&plan.0])
    }
}

/// The key of a pair's pads, from their key for life and what their keys of two generations agree
/// on.
#[must_use]
pub fn pair_key(life: &[u8; 16], agreed: &Secret<32>) -> Secret<16> {
    derive(&joined(life, agreed), labels::MASK_PAIR_OF_GENERATION, &[])
}

/// Both, one behind the other.
fn joined(life: &[u8], short: &Secret<32>) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(life.len() + 32));
    bytes.extend_from_slice(life);
    bytes.extend_from_slice(short.expose());
    bytes
}

/// The keys that take the place of those for life in the pads of one round.
pub struct RoundKeys {
    pub(super) pairs: PairKeys,
    pub(super) own: Arc<OwnKey>,
}

impl RoundKeys {
    /// Keys with the same peers as those for life.
    #[must_use]
    pub fn new(pairs: PairKeys, own: impl Into<Arc<OwnKey>>) -> Self {
        Self { pairs, own: own.into() }
    }

    /// The key of the self-mask, for shares that are no words.
    pub(crate) fn own(&self) -> &Prf {
        &self.own.0
    }

    /// The keys of the pads with these others, for shares that are no words.
    ///
    /// # Errors
    /// [`MaskError::NoKey`].
    pub(crate) fn with_others(&self, others: &[u32]) -> Result<Vec<(u32, Prf)>, MaskError> {
        // A vector that grows leaves keys behind where it was.
        let mut keys = Vec::with_capacity(others.len());
        for position in others.iter().copied() {
            keys.push((position, self.pairs.key(position).ok_or(MaskError::NoKey { position })?));
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_differ_and_depend_on_the_start_alone() {
        let plan = PlanId([1; 32]);
        let public = |start: u8, number: usize| {
            let mut source = KeySource::new(Secret::from_bytes([start; 32]));
            let all: Vec<Generation> = (0..=number).map(|_| source.advance()).collect();
            all[number].agreement(&plan).public()
        };
        assert_eq!(public(1, 2), public(1, 2));
        let mut seen = vec![public(1, 0), public(1, 1), public(1, 2), public(2, 0), public(2, 1)];
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn a_key_says_the_hour_in_which_its_generation_began() {
        let hour = 1_700_000_000_000_000 / SHOWN.0 * SHOWN.0;
        for within in [0, 1, SHOWN.0 - 1] {
            assert_eq!(shown(Timestamp(hour + within)), Timestamp(hour));
        }
        assert_eq!(shown(Timestamp(hour + SHOWN.0)), Timestamp(hour + SHOWN.0));
    }

    /// Ten thousand keys, clocks of their controllers, of the service and of members. Keys of an honest
    /// controller are passed on, and nobody refuses a key that is passed on.
    #[test]
    fn what_the_coordinator_takes_members_take_and_honest_keys_it_takes() {
        let mut state = 1_u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) % most
        };
        let (now, most) = (Timestamp(1_700_000_000_000_000), MARGIN.0);
        let mut taken = 0;
        for _ in 0..10_000 {
            let near = |by: u64| Timestamp(now.0 + by - most);
            // A key may be ahead of its host's clock, and what it says of its age is rounded up.
            let own = near(SHOWN.0 + below(2 * most - SET_BACK.0 - SHOWN.0 + 1));
            let member = near(below(2 * most + 1));
            let honest = shown(Timestamp(own.0 + SET_BACK.0 - below(LIFE.0 + SET_BACK.0)));
            assert!(is_fresh(honest, now, MARGIN));
            let any = Timestamp(now.0 + below(8 * LIFE.0) - 4 * LIFE.0);
            if is_fresh(any, now, MARGIN) {
                taken += 1;
                assert!(is_fresh(any, member, Span(0)));
            }
        }
        assert!(taken > 1_000, "{taken}");
        let edge = |begun: u64| is_fresh(Timestamp(begun), now, Span(0));
        assert!(edge(now.0 - FRESH.0) && !edge(now.0 - FRESH.0 - 1));
        assert!(edge(now.0 + LIFE.0) && !edge(now.0 + LIFE.0 + 1));
        let ahead = |clock: u64| is_fresh(Timestamp(now.0 + clock + SET_BACK.0), now, MARGIN);
        assert!(ahead(MARGIN.0 - SET_BACK.0) && !ahead(MARGIN.0 - SET_BACK.0 + 1));
    }
}
