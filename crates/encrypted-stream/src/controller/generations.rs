//! Keys that a verified plan's masks and noise rest on for a day at most (`docs/protocol.md`, *Keys of a
//! generation*). They are in memory only: a restart wipes them, and so does an erasure.

use std::collections::HashMap;

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Span, Timestamp, Window};

use super::Controller;
use super::identity::Identity;
use super::plan_state::PlanState;
use super::tokens::meet;
use crate::announced_plan::AnnouncedPlan;
use crate::error::WindowRefusalError;
use crate::mask::PairKeys;
use crate::mask::generation::{Generation, KeySource, RoundKeys, pair_key};
use crate::membership::FixedMembership;
use crate::messages::MaskKey;

/// How long a generation takes new windows.
const LIFE: Span = Span::seconds(86_400);
/// How long it then waits for its windows to be closed.
const SETTLE: Span = Span::seconds(2 * 86_400);
/// How long another controller's key is taken, from when its generation began: long enough for
/// windows that are under way when it ends.
const FRESH: Span = Span::seconds(2 * 86_400);

/// The generations of a controller that are not wiped.
#[derive(Default)]
pub(super) struct Generations {
    source: Option<KeySource>,
    /// Oldest first. The last one takes new windows.
    held: Vec<HeldGeneration>,
    /// How many there have been since the start.
    count: u64,
}

struct HeldGeneration {
    number: u64,
    begun: Timestamp,
    keys: Generation,
    plans: HashMap<PlanId, PlanKeys>,
}

/// What a generation has agreed on in one plan.
struct PlanKeys {
    agreement: AgreementKey,
    signed: Signed<MaskKey>,
    peers: HashMap<u32, Peer>,
}

/// Another controller's key, and what ours agrees on with it.
struct Peer {
    signed: Signed<MaskKey>,
    agreed: Secret<32>,
}

impl Generations {
    /// Wipes all of them. The next window begins another one.
    pub(super) fn wipe(&mut self) {
        self.held.clear();
    }

    /// Drops what they have of a plan that has ended.
    pub(super) fn end(&mut self, plan: &PlanId) {
        self.held.iter_mut().for_each(|held| drop(held.plans.remove(plan)));
    }

    /// The generation for windows from now on.
    fn current(&mut self, now: Timestamp) -> Option<&mut HeldGeneration> {
        if self.held.last().is_none_or(|held| now >= held.begun.plus(LIFE)) {
            let keys = self.source.as_mut()?.advance();
            self.count += 1;
            let (number, plans) = (self.count, HashMap::new());
            self.held.push(HeldGeneration { number, begun: now, keys, plans });
        }
        self.held.last_mut()
    }

    fn of(&mut self, number: Option<u64>) -> Option<&mut HeldGeneration> {
        self.held.iter_mut().find(|held| Some(held.number) == number)
    }
}

impl PlanKeys {
    /// The keys of the pads with each member, from the keys in M. Others keep theirs, which no
    /// round uses: it masks with members only.
    fn pairs(
        &mut self,
        life: &PairKeys,
        announced: &AnnouncedPlan,
        fixed: &FixedMembership,
        now: Timestamp,
    ) -> Result<PairKeys, WindowRefusalError> {
        let renewed = life.renewed(|position, key| {
            let Some(signed) = fixed.mask_key(position) else {
                return Ok(Secret::from_bytes(*key));
            };
            let peer = self.peer(position, signed, announced, now)?;
            Ok(pair_key(key, &peer.agreed))
        });
        // Keys of verified plans are stored compact.
        renewed?.ok_or(WindowRefusalError::KeysGone)
    }

    fn peer(
        &mut self,
        position: u32,
        signed: &Signed<MaskKey>,
        announced: &AnnouncedPlan,
        now: Timestamp,
    ) -> Result<&Peer, WindowRefusalError> {
        let bad = WindowRefusalError::BadMaskKey { position };
        let known = self.peers.get(&position).is_some_and(|peer| peer.signed == *signed);
        if !known {
            let key = announced.mask_key(position, signed).ok_or(bad)?;
            if now > key.begun.plus(FRESH) || key.begun > now.plus(LIFE) {
                return Err(bad);
            }
            let agreed = self.agreement.agree(&key.key).map_err(|_| bad)?;
            self.peers.insert(position, Peer { signed: signed.clone(), agreed });
        }
        self.peers.get(&position).ok_or(bad)
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
        let (controller, signing) = (joined.position, self.identity.signing());
        let held = self.generations.current(now).ok_or(WindowRefusalError::KeysGone)?;
        let (begun, keys) = (held.begun, &held.keys);
        let keys = held.plans.entry(*plan).or_insert_with(|| {
            let agreement = keys.agreement(plan);
            let key = MaskKey { plan: *plan, controller, begun, key: agreement.public() };
            PlanKeys { agreement, signed: Signed::new(&key, signing), peers: HashMap::new() }
        });
        Ok(Some((held.number, keys.signed.clone())))
    }

    /// Wipes generations that are over and whose windows are closed, and those that have waited
    /// long enough. A host that hears nothing calls it now and then.
    pub fn wipe_settled_keys(&mut self, now: Timestamp) {
        let is_over = |held: &HeldGeneration| now >= held.begun.plus(LIFE);
        let last = self.generations.held.len().saturating_sub(1);
        if last == 0 && !self.generations.held.iter().any(is_over) {
            return;
        }
        let plans = &self.plans;
        let in_use = |number: u64| plans.values().any(|joined| joined.uses(number));
        let mut at = 0..;
        self.generations.held.retain(|held| {
            let is_current = at.next() == Some(last) && !is_over(held);
            let waits = now < held.begun.plus(LIFE).plus(SETTLE) && in_use(held.number);
            is_current || waits
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

    pub(super) fn noise<'a>(&'a self, identity: &'a Identity) -> &'a Secret<32> {
        self.noise.as_ref().unwrap_or_else(|| identity.noise())
    }
}

impl PlanState {
    /// Agrees on keys with members that picked this controller, which a restart loses, and in a
    /// verified plan on those of the window's generation.
    pub(super) fn window_keys(
        &mut self,
        generations: &mut Generations,
        identity: &Identity,
        (fixed, pickers): (&FixedMembership, &[u32]),
        now: Timestamp,
    ) -> Result<WindowKeys, WindowRefusalError> {
        if let Some(masks) = &mut self.masks {
            meet(masks, identity, &self.announced, pickers)?;
        }
        if !self.is_verified() {
            return Ok(WindowKeys::default());
        }
        let number = self.generation(fixed.membership().window);
        let held = generations.of(number).ok_or(WindowRefusalError::KeysGone)?;
        let id = self.id();
        let noise = Some(held.keys.noise(identity.noise(), &id));
        let Some(masks) = &self.masks else { return Ok(WindowKeys { pads: None, noise }) };
        let own = held.keys.own_key(identity.own(), &id);
        let keys = held.plans.get_mut(&id).ok_or(WindowRefusalError::KeysGone)?;
        let pairs = keys.pairs(masks.pairs(), &self.announced, fixed, now)?;
        Ok(WindowKeys { pads: Some(RoundKeys::new(pairs, own)), noise })
    }

    /// Whether this window's token cannot be opened any more.
    pub(super) fn lacks_keys(&self, generations: &Generations, window: Window) -> bool {
        let number = self.generation(window);
        let needed = self.is_verified() && !self.announced.is_single();
        needed && !generations.held.iter().any(|held| Some(held.number) == number)
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
