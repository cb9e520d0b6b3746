//! Keys that a verified plan's masks and noise rest on for a day at most (`docs/protocol.md`, *Keys of a
//! generation*). They are in memory only: a restart wipes them, and an erasure those that it concerns.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_bounded_influence::commit::Committer;
use alpheus_bounded_influence::terms::Terms;
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ControllerId, PlanId, StreamId};
use alpheus_time::{Span, Timestamp, Window};

use super::Controller;
use super::identity::Identity;
use super::plan_state::PlanState;
use super::tokens::meet;
use crate::announced_plan::AnnouncedPlan;
use crate::error::WindowRefusalError;
use crate::mask::generation::{
    Generation, KeySource, LIFE, RoundKeys, SET_BACK, is_fresh, pair_key, shown,
};
use crate::mask::{OwnKey, PairKeys};
use crate::membership::FixedMembership;
use crate::messages::MaskKey;

/// How long a generation then waits for its windows to be closed.
const SETTLE: Span = Span::seconds(2 * 86_400);
/// The generations of a controller that are not wiped.
#[derive(Default)]
pub(super) struct Generations {
    source: Option<KeySource>,
    /// Oldest first. The last one takes new windows.
    held: Vec<HeldGeneration>,
    /// How many there have been since the start.
    count: u64,
    /// How long it has been since the start, in microseconds: what the clock went forward between two looks
    /// at it. Time by which it is set back is not subtracted. But where it is set back between two looks by what has
    /// passed since the first, no time is seen to pass: so keys live longer by what it is set back then.
    age: u64,
    /// The clock at that age.
    seen: Option<Timestamp>,
}

struct HeldGeneration {
    number: u64,
    begun: Timestamp,
    /// The age at which it began.
    born: u64,
    /// `None` once wiped for an erasure. Then no plan gets keys from it any more.
    keys: Option<Generation>,
    /// By family: all plans of a query by epochs have the same keys.
    plans: HashMap<PlanId, PlanKeys>,
    /// Streams that were in tokens under its keys, also of plans that have ended since.
    covered: BTreeSet<StreamId>,
    /// Those of families that were forgotten. The service may call for such a family again, and then it
    /// has the same keys.
    forgotten: BTreeSet<StreamId>,
}

/// What a generation has for one plan, or for all plans of a query by epochs.
struct PlanKeys {
    agreement: AgreementKey,
    own: Arc<OwnKey>,
    noise: Secret<32>,
    /// The public half as it was signed last: for each plan of a family again, since positions
    /// differ.
    signed: Option<(MaskKey, Signed<MaskKey>)>,
    peers: HashMap<ControllerId, Peer>,
    /// Streams that were in tokens under these keys, or may have been: see [`HeldGeneration::forgotten`].
    covered: BTreeSet<StreamId>,
    /// In a bounded plan: what commits with a secret from these keys. It goes with them.
    committer: Option<Arc<Committer>>,
}

/// Another controller's key, and what ours agrees on with it.
struct Peer {
    key: AgreementPublic,
    begun: Timestamp,
    agreed: Secret<32>,
}

impl HeldGeneration {
    fn is_over(&self, age: u64) -> bool {
        age >= self.born.saturating_add(LIFE.0)
    }

    /// Whether it takes new windows.
    fn is_current(&self, age: u64, now: Timestamp) -> bool {
        let set_back = self.begun > now.plus(SET_BACK);
        self.keys.is_some() && !self.is_over(age) && !set_back
    }

    /// Its keys for a family, which are made unless they are there; none once it is wiped. They may be
    /// those of a family that was forgotten: an erasure of a stream that was in its tokens wipes them.
    fn keys_for(
        &mut self,
        family: PlanId,
        life: (&Secret<32>, &Secret<32>),
    ) -> Option<&mut PlanKeys> {
        let (keys, forgotten) = (self.keys.as_ref()?, &self.forgotten);
        let made = || PlanKeys { covered: forgotten.clone(), ..PlanKeys::new(keys, &family, life) };
        Some(self.plans.entry(family).or_insert_with(made))
    }
}

impl Generations {
    /// Drops what they have of a plan that has ended. The secret that its keys came from stays until its day is
    /// over, and so does the record of the streams that they covered.
    pub(super) fn end(&mut self, plan: &PlanId) {
        self.held.iter_mut().for_each(|held| drop(held.plans.remove(plan)));
    }

    /// Drops what they have of a family of which nothing is remembered any more. It may come back under the
    /// same keys, and nothing shows then that it is the same one: which streams its tokens were over counts for
    /// all families from now on.
    pub(super) fn forget(&mut self, family: &PlanId) {
        for held in &mut self.held {
            let gone = held.plans.remove(family);
            held.forgotten.extend(gone.into_iter().flat_map(|keys| keys.covered));
        }
    }

    /// Notes the time.
    fn pass(&mut self, now: Timestamp) {
        let seen = self.seen.replace(now).unwrap_or(now);
        self.age = self.age.saturating_add(now.0.saturating_sub(seen.0));
    }

    /// The generation for windows from now on.
    fn current(&mut self, now: Timestamp) -> Option<&mut HeldGeneration> {
        self.pass(now);
        if !self.held.last().is_some_and(|held| held.is_current(self.age, now)) {
            let keys = Some(self.source.as_mut()?.advance());
            self.count += 1;
            let (number, born, plans) = (self.count, self.age, HashMap::new());
            let (covered, forgotten) = Default::default();
            let begun = now;
            self.held.push(HeldGeneration { number, begun, born, keys, plans, covered, forgotten });
        }
        self.held.last_mut()
    }

    /// A generation's keys for a plan's family.
    fn of(&mut self, number: Option<u64>, family: &PlanId) -> Option<&mut PlanKeys> {
        let held = self.held.iter_mut().find(|held| Some(held.number) == number)?;
        held.plans.get_mut(family)
    }

    /// The committer that uses this generation's keys, if it exists already.
    pub(super) fn known_committer(
        &mut self,
        number: Option<u64>,
        family: &PlanId,
    ) -> Option<Arc<Committer>> {
        self.of(number, family)?.committer.clone()
    }

    /// The committer that uses this generation's keys under terms.
    pub(super) fn committer(
        &mut self,
        number: Option<u64>,
        family: &PlanId,
        terms: Terms,
    ) -> Option<Arc<Committer>> {
        let keys = self.of(number, family)?;
        let secret = || derive(keys.noise.expose(), labels::BOUNDED_SECRET, &[]);
        let made = keys.committer.get_or_insert_with(|| Arc::new(Committer::new(terms, secret())));
        Some(Arc::clone(made))
    }

    fn holds(&self, number: Option<u64>, family: &PlanId) -> bool {
        let mut held = self.held.iter();
        held.any(|held| Some(held.number) == number && held.plans.contains_key(family))
    }

    /// A window's token leaves, over the own streams at these positions.
    pub(super) fn cover(&mut self, joined: &PlanState, window: Window, accepted: &[u32]) {
        let streams: Vec<StreamId> = joined.streams_at(accepted).collect();
        self.cover_streams(joined.generation(window), &joined.family(), &streams);
    }

    fn cover_streams(&mut self, number: Option<u64>, family: &PlanId, streams: &[StreamId]) {
        let held = self.held.iter_mut().find(|held| Some(held.number) == number);
        let Some(held) = held else { return };
        held.covered.extend(streams);
        if let Some(keys) = held.plans.get_mut(family) {
            keys.covered.extend(streams);
        }
    }

    /// Wipes what opens tokens that a stream was in: the keys of those plans, and what they came
    /// from, also if the plan has ended. Keys that other plans have are kept: they do not depend on each
    /// other.
    fn wipe_covering(&mut self, stream: &StreamId) {
        for held in &mut self.held {
            held.plans.retain(|_, keys| !keys.covered.contains(stream));
            if held.covered.contains(stream) {
                held.keys = None;
            }
        }
    }
}

impl PlanKeys {
    /// A generation's keys for a family of plans, from a controller's secrets for life of self-masks and
    /// noise.
    fn new(keys: &Generation, family: &PlanId, (own, noise): (&Secret<32>, &Secret<32>)) -> Self {
        let agreement = keys.agreement(family);
        let (own, noise) = (Arc::new(keys.own_key(own, family)), keys.noise(noise, family));
        let (signed, peers, covered) = (None, HashMap::new(), BTreeSet::new());
        Self { agreement, own, noise, signed, peers, covered, committer: None }
    }

    /// The public half, signed for a plan and this controller's position in it.
    fn signed_for(
        &mut self,
        (plan, controller, begun): (PlanId, u32, Timestamp),
        signing: &SigningKey,
    ) -> Signed<MaskKey> {
        let key = MaskKey { plan, controller, begun, key: self.agreement.public() };
        match &self.signed {
            Some((same, signed)) if *same == key => signed.clone(),
            _ => {
                let signed = Signed::new(&key, signing);
                self.signed = Some((key, signed.clone()));
                signed
            }
        }
    }

    /// The keys of the pads with each member, from the keys in M. Others keep theirs, which no
    /// round uses: it masks with members only.
    fn pairs(
        &mut self,
        life: &PairKeys,
        announced: &AnnouncedPlan,
        fixed: &FixedMembership,
        fresh_at: Option<Timestamp>,
    ) -> Result<PairKeys, WindowRefusalError> {
        let renewed = life.renewed(|position, key| {
            let Some(signed) = fixed.mask_key(position) else {
                return Ok(Secret::from_bytes(*key));
            };
            let peer = self.peer(position, signed, announced, fresh_at)?;
            Ok(pair_key(key, &peer.agreed))
        });
        // Keys of verified plans are stored compact.
        renewed?.ok_or(WindowRefusalError::KeysGone)
    }

    /// Another member's key. At the token (`fresh_at`) it must be fresh. At the opening it is the key that
    /// the token was made with, whatever its age: to refuse it there would end the window.
    fn peer(
        &mut self,
        position: u32,
        signed: &Signed<MaskKey>,
        announced: &AnnouncedPlan,
        fresh_at: Option<Timestamp>,
    ) -> Result<&Peer, WindowRefusalError> {
        let bad = WindowRefusalError::BadMaskKey { position };
        let of = announced.plan().roster.get(position as usize).ok_or(bad)?;
        let MaskKey { begun, key, .. } = announced.mask_key(position, signed).ok_or(bad)?;
        let known = self.peers.get(of).is_some_and(|peer| (peer.begun, peer.key) == (begun, key));
        if !known {
            let agreed = self.agreement.agree(&key).map_err(|_| bad)?;
            self.peers.insert(*of, Peer { key, begun, agreed });
        }
        let fresh = |peer: &&Peer| fresh_at.is_none_or(|now| is_fresh(peer.begun, now, Span(0)));
        self.peers.get(of).filter(fresh).ok_or(bad)
    }
}

impl Controller {
    /// Where the controller's generations come from: 32 bytes drawn for this start. Without them
    /// it answers no window of a verified plan.
    pub fn draw_keys_from(&mut self, source: KeySource) {
        self.generations.source = Some(source);
    }

    /// In a verified plan: the signed key for the pads of a window that begins now, and its
    /// generation.
    pub(super) fn mask_key(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
    ) -> Result<Option<(u64, Signed<MaskKey>)>, WindowRefusalError> {
        let Some(joined) = self.plans.get(plan).filter(|joined| joined.is_verified()) else {
            return Ok(None);
        };
        let (controller, family, identity) = (joined.position, joined.family(), &self.identity);
        let held = self.generations.current(now).ok_or(WindowRefusalError::KeysGone)?;
        let (number, begun) = (held.number, shown(held.begun));
        let keys = held.keys_for(family, (identity.own(), identity.noise()));
        let keys = keys.ok_or(WindowRefusalError::KeysGone)?;
        let signed = keys.signed_for((*plan, controller, begun), identity.signing());
        Ok(Some((number, signed)))
    }

    /// Wipes the keys that open tokens which an erased stream was in.
    pub(super) fn wipe_keys_of(&mut self, stream: &StreamId) {
        self.generations.wipe_covering(stream);
        self.forget_values_of(stream);
    }

    /// Wipes generations that are over and whose windows are closed, and those that have waited
    /// long enough. A host that hears nothing calls it now and then.
    pub fn wipe_settled_keys(&mut self, now: Timestamp) {
        self.generations.pass(now);
        let age = self.generations.age;
        let over = |held: &HeldGeneration| !held.is_current(age, now);
        let last = self.generations.held.len().saturating_sub(1);
        if last == 0 && !self.generations.held.iter().any(over) {
            return;
        }
        let plans = &self.plans;
        let in_use = |number: u64| plans.values().any(|joined| joined.uses(number));
        let mut at = 0..;
        self.generations.held.retain(|held| {
            let is_current = at.next() == Some(last) && !over(held);
            let until = held.born.saturating_add(LIFE.0 + SETTLE.0);
            is_current || (age < until && in_use(held.number))
        });
    }
}

/// In a verified plan, what a window's pads and noise are made of. Elsewhere nothing: they are made of
/// keys for life.
#[derive(Default)]
pub(super) struct WindowKeys {
    /// `None` as well if the plan names one controller.
    pads: Option<RoundKeys>,
    noise: Option<Secret<32>>,
}

impl WindowKeys {
    pub(super) fn pads(&self) -> Option<&RoundKeys> {
        self.pads.as_ref()
    }

    pub(super) fn into_pads(self) -> Option<RoundKeys> {
        self.pads
    }

    pub(super) fn noise<'a>(&'a self, identity: &'a Identity) -> &'a Secret<32> {
        self.noise.as_ref().unwrap_or_else(|| identity.noise())
    }
}

impl PlanState {
    /// Agrees on keys with members that picked this controller, which a restart loses, and in a
    /// verified plan on those of the window's generation. For the token, others' keys must be fresh at
    /// a time.
    pub(super) fn window_keys(
        &mut self,
        generations: &mut Generations,
        identity: &Identity,
        (fixed, pickers): (&FixedMembership, &[u32]),
        fresh_at: Option<Timestamp>,
    ) -> Result<WindowKeys, WindowRefusalError> {
        if let Some(masks) = &mut self.masks {
            meet(masks, identity, &self.announced, pickers)?;
        }
        if !self.is_verified() {
            return Ok(WindowKeys::default());
        }
        let number = self.generation(fixed.membership().window);
        let keys = generations.of(number, &self.family()).ok_or(WindowRefusalError::KeysGone)?;
        let noise = Some(keys.noise.duplicate());
        let Some(masks) = &self.masks else { return Ok(WindowKeys { pads: None, noise }) };
        let pairs = keys.pairs(masks.pairs(), &self.announced, fixed, fresh_at)?;
        Ok(WindowKeys { pads: Some(RoundKeys::new(pairs, Arc::clone(&keys.own))), noise })
    }

    /// Whether this window's token cannot be opened any more.
    pub(super) fn lacks_keys(&self, generations: &Generations, window: Window) -> bool {
        !self.announced.is_single() && self.has_no_keys(generations, window)
    }

    /// Whether what this window was answered with is wiped.
    pub(super) fn has_no_keys(&self, generations: &Generations, window: Window) -> bool {
        self.is_verified() && !generations.holds(self.generation(window), &self.family())
    }

    /// Whether a window that is not closed was answered with keys of this generation.
    fn uses(&self, number: u64) -> bool {
        self.rounds.values().any(|round| !round.closed && round.generation == Some(number))
    }

    /// The generation whose keys a window was answered with, since the start.
    fn generation(&self, window: Window) -> Option<u64> {
        self.rounds.get(&window.start)?.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u8) -> StreamId {
        StreamId([number; 16])
    }

    fn with_plans(plans: &[(u8, &[u8])]) -> Generations {
        let source = Some(KeySource::new(Secret::from_bytes([1; 32])));
        let mut generations = Generations { source, ..Generations::default() };
        generations.current(Timestamp(5)).unwrap();
        let life = Secret::from_bytes([2; 32]);
        for (id, covered) in plans {
            let plan = PlanId([*id; 32]);
            let held = generations.current(Timestamp(5)).unwrap();
            assert!(held.keys_for(plan, (&life, &life)).is_some());
            let covered: Vec<StreamId> = covered.iter().map(|number| stream(*number)).collect();
            generations.cover_streams(Some(1), &plan, &covered);
        }
        generations
    }

    /// A host's other plans keep the keys that open their windows, and nothing that makes the wiped ones
    /// again.
    #[test]
    fn wiping_what_covers_a_stream_leaves_other_plans_and_not_the_source() {
        let (one, other, third) = (PlanId([1; 32]), PlanId([2; 32]), PlanId([3; 32]));
        let mut generations = with_plans(&[(1, &[4, 5]), (2, &[6]), (3, &[])]);
        generations.wipe_covering(&stream(7));
        assert!(generations.holds(Some(1), &one), "it was in no token");
        assert!(generations.held[0].keys.is_some());
        generations.wipe_covering(&stream(5));
        let held = |plan| generations.holds(Some(1), plan);
        assert_eq!([held(&one), held(&other), held(&third)], [false, true, true]);
        assert!(generations.held[0].keys.is_none());
        // New windows have new keys.
        assert_eq!(generations.current(Timestamp(6)).unwrap().number, 2);
    }

    /// An end wipes a plan's keys, and what they came from would give them again.
    #[test]
    fn what_a_plan_covered_counts_once_it_has_ended() {
        for (erased, is_kept) in [(5, false), (7, true)] {
            let mut generations = with_plans(&[(1, &[4, 5]), (2, &[6])]);
            generations.end(&PlanId([1; 32]));
            generations.wipe_covering(&stream(erased));
            assert_eq!(generations.held[0].keys.is_some(), is_kept);
            assert!(generations.holds(Some(1), &PlanId([2; 32])));
        }
    }

    /// The service makes a host forget a family, and calls for it again: its keys are those of before.
    #[test]
    fn an_erasure_wipes_the_keys_of_a_family_that_was_forgotten_and_came_back() {
        let life = Secret::from_bytes([2; 32]);
        let (family, other) = (PlanId([1; 32]), PlanId([2; 32]));
        for (erased, is_kept) in [(5, false), (7, true)] {
            let mut generations = with_plans(&[(1, &[4, 5]), (2, &[6])]);
            for _ in 0..2 {
                generations.forget(&family);
                assert!(!generations.holds(Some(1), &family));
                let held = generations.current(Timestamp(5)).unwrap();
                assert!(held.keys_for(family, (&life, &life)).is_some());
            }
            generations.wipe_covering(&stream(erased));
            assert_eq!(generations.holds(Some(1), &family), is_kept);
            assert!(generations.holds(Some(1), &other), "it was made before");
            let held = generations.held.first_mut().unwrap();
            assert_eq!(held.keys_for(PlanId([3; 32]), (&life, &life)).is_some(), is_kept);
        }
    }

    #[test]
    fn age_counts_what_a_clock_goes_forward_between_looks() {
        let mut generations = Generations::default();
        for now in [10, 30, 5, 6, 6, 1, 100] {
            generations.pass(Timestamp(now));
        }
        assert_eq!(generations.age, 20 + 1 + 99);
        // Whatever passed between two looks is lost if the clock is set back by it.
        generations.pass(Timestamp(100));
        assert_eq!(generations.age, 20 + 1 + 99);
    }
}
