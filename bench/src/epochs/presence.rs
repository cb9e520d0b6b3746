//! Who is awake in which window.

use chacha20::ChaCha20Rng;
use rand_core::Rng;

/// Controllers that fall asleep and wake up, each by itself. In the long run a fixed share of
/// them is awake.
pub(super) struct Population {
    awake: Vec<bool>,
    lots: Vec<u32>,
    stays: f64,
    wakes: f64,
}

impl Population {
    /// `presence` of them are awake, and each of these still is in the next window with the
    /// chance `stays`.
    pub(super) fn new(controllers: u32, presence: f64, stays: f64, rng: &mut ChaCha20Rng) -> Self {
        let asleep = 1.0 - presence;
        // As many wake up as fall asleep.
        let wakes = if asleep > 0.0 { (presence * (1.0 - stays) / asleep).min(1.0) } else { 1.0 };
        let stays = if asleep > 0.0 { stays } else { 1.0 };
        Self {
            awake: (0..controllers).map(|_| happens(presence, rng)).collect(),
            lots: (0..controllers).map(|_| rng.next_u32()).collect(),
            stays,
            wakes,
        }
    }

    /// The next window.
    pub(super) fn step(&mut self, rng: &mut ChaCha20Rng) {
        for awake in &mut self.awake {
            *awake = happens(if *awake { self.stays } else { self.wakes }, rng);
        }
    }

    /// Those that are awake, ascending.
    pub(super) fn awake(&self) -> Vec<u32> {
        (0..).zip(&self.awake).filter_map(|(at, awake)| awake.then_some(at)).collect()
    }

    pub(super) fn is_awake(&self, at: u32) -> bool {
        self.awake.get(at as usize).copied().unwrap_or(false)
    }

    /// The first bits of the lots that the authority drew.
    pub(super) fn lots(&self) -> &[u32] {
        &self.lots
    }
}

/// Whether something of this chance happens.
pub(super) fn happens(chance: f64, rng: &mut ChaCha20Rng) -> bool {
    (rng.next_u32() as f64) < chance * 4_294_967_296.0
}
