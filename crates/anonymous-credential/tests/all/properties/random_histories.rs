//! Any order of logins, re-ups, retries, logouts, crashes and lost stores, by anybody with
//! copies of a pass. Each pass has one live session at any time, and a holder that waits gets
//! in.

use crate::properties::town::{Device, Dies, Town};
use crate::support::{Ledger, at};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, Timing};
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_anonymous_credential::sessions::Shard;
use alpheus_time::Timestamp;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    Wait(u64),
    LogIn(usize, bool),
    ReUp(usize, Dies),
    Resend(usize),
    LogOut(usize),
    /// A shard restarts.
    Shard(usize, bool),
    /// A device restarts.
    Device(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let device = 0_usize..3;
    prop_oneof![
        3 => (1_u64..9).prop_map(Act::Wait),
        3 => (device.clone(), any::<bool>()).prop_map(|(d, next)| Act::LogIn(d, next)),
        4 => (device.clone(), prop_oneof![3 => Just(None), 1 => (0_usize..3).prop_map(Some)])
            .prop_map(|(d, dies)| Act::ReUp(d, dies)),
        2 => device.clone().prop_map(Act::Resend),
        1 => device.clone().prop_map(Act::LogOut),
        1 => (0_usize..2, prop::bool::weighted(0.7)).prop_map(|(s, whole)| Act::Shard(s, whole)),
        1 => device.prop_map(Act::Device),
    ]
}

struct World {
    town: Town,
    /// The first two devices share a pass, the third has another.
    devices: Vec<Device>,
    sessions: Vec<(usize, SessionId)>,
    seconds: u64,
}

impl World {
    fn new() -> Self {
        let mut town = Town::new(1, 70);
        let ada = town.device(b"ada");
        let copy = town.copy(&ada);
        let bob = town.device(b"bob");
        Self { town, devices: vec![ada, copy, bob], sessions: Vec::new(), seconds: 1 }
    }

    fn now(&self) -> Timestamp {
        at(self.seconds)
    }

    fn send(&mut self, device: usize, sent: &OutboundMessage, dies: Dies) {
        let now = self.now();
        self.sessions.push((device / 2, sent.session));
        // Any refusal is allowed; what counts is who is served.
        if !sent.is_re_up() {
            self.town.log_in(sent, now).ok();
        } else if matches!(self.town.re_up(sent, dies, now), Ok(None)) {
            self.town.restart(StateOrigin::Intact, now);
        }
    }

    fn act(&mut self, act: Act) {
        let now = self.now();
        match act {
            Act::Wait(seconds) => self.seconds += seconds,
            Act::LogIn(device, next) => {
                let which = if next { Timing::Next } else { Timing::Running };
                let shown = self.town.present(&mut self.devices[device], which, now);
                shown.iter().for_each(|sent| self.send(device, sent, None));
            }
            Act::ReUp(device, dies) => {
                let carried = self.town.carry(&mut self.devices[device], now);
                carried.iter().for_each(|sent| self.send(device, sent, dies));
            }
            Act::Resend(device) => {
                let holder = &self.devices[device].holder;
                let Some(step) = holder.newest().map(|epoch| holder.resend(epoch)) else { return };
                let sent = step.unwrap().commit(&mut Ledger::new()).unwrap();
                self.send(device, &sent, None);
            }
            Act::LogOut(device) => {
                let last = self.sessions.iter().rev().find(|(pass, _)| *pass == device / 2);
                if let Some((_, session)) = last.copied() {
                    self.town.log_out(&self.devices[device], session).ok();
                }
            }
            Act::Shard(shard, whole) => self.restart(shard, whole),
            Act::Device(device) => {
                let Device { holder, store } = &mut self.devices[device];
                let restored = Holder::restore(self.town.pinned(), holder.period(), store);
                *holder = restored.unwrap().unwrap();
            }
        }
    }

    fn restart(&mut self, shard: usize, whole: bool) {
        let (now, pinned) = (self.now(), self.town.pinned());
        let log = if whole { StateOrigin::Intact } else { StateOrigin::Restored };
        let (shard, ledger) = &mut self.town.shards[shard];
        let step = Shard::restore(pinned, ledger.clone(), log, now).unwrap();
        *shard = step.commit(ledger).unwrap();
    }

    fn live(&mut self, pass: usize) -> Vec<SessionId> {
        let now = self.now();
        let mut sessions: Vec<SessionId> =
            self.sessions.iter().filter(|(p, _)| *p == pass).map(|(_, id)| *id).collect();
        sessions.sort();
        sessions.dedup();
        sessions.retain(|id| self.town.is_live(*id, now));
        sessions
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn each_pass_has_one_session_and_a_holder_that_waits_gets_in(acts in prop::collection::vec(act(), 1..50)) {
        let mut world = World::new();
        for act in acts {
            world.act(act);
            for pass in 0..2 {
                let live = world.live(pass);
                prop_assert!(live.len() <= 1, "{live:?} after {act:?}");
            }
        }
        // Nobody is locked out for longer than an epoch: in the first one that had not opened
        // yet a holder logs in and is served.
        let unopened = (0..).find(|epoch| 15 * epoch > world.seconds + 3).unwrap();
        world.seconds = 15 * unopened;
        let now = world.now();
        for device in [0, 2] {
            let sent = world.town.present(&mut world.devices[device], Timing::Running, now).unwrap();
            prop_assert!(world.town.log_in(&sent, now).is_ok());
            prop_assert!(world.town.is_live(sent.session, now));
        }
    }
}
