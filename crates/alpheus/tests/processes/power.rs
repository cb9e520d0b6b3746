//! The power fails while a deployment runs: stores drop and tear what was not
//! synced, flushes fail, disks fill up, all from a seed. Each window has one
//! row, which is the truth or says who was cut off, and nothing is released twice.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::embedded_replay::Scene;
use crate::common::recording::{Draw, Recording, check};
use crate::common::witness::Witness;
use alpheus_stream_runtime::embedded_deployment::{Controllers, Stores};
use alpheus_transport::simulation::{Fault, Machine};
use std::collections::BTreeSet;

const STREAMS: u64 = 4;
const WINDOWS: u64 = 48;

/// Two disks that fail, and one folder that does not.
struct House {
    service: Machine,
    private: Machine,
    fence: tempfile::TempDir,
    witness: Witness,
}

impl House {
    fn new() -> Self {
        Self {
            service: Machine::new(),
            private: Machine::new(),
            fence: tempfile::tempdir().unwrap(),
            witness: Witness::default(),
        }
    }

    fn stores(&self) -> Stores {
        Stores {
            service: self.service.open().unwrap(),
            private: self.private.open().unwrap(),
            fence: self.fence.path().join("fence"),
        }
    }

    /// Everything stops; what was not synced is gone, or some of it.
    fn pull_the_plug(&mut self, draw: &mut Draw, about: &str) {
        self.service.crash(draw.below(u64::MAX));
        self.private.crash(draw.below(u64::MAX));
        let stores = self.stores();
        self.witness.ledgers(stores.private.as_ref(), about);
        self.witness.results(stores.service.as_ref(), about);
        self.service.crash(0);
        self.private.crash(0);
    }

    /// One of the disks will fail soon.
    fn order_a_fault(&self, draw: &mut Draw) {
        let machine = if draw.below(2) == 0 { &self.service } else { &self.private };
        let fault = match draw.below(2) {
            0 => Fault::DiskFull,
            _ => Fault::SyncFails(draw.below(u64::MAX)),
        };
        machine.inject(fault, draw.below(40));
    }
}

/// Lives until a fault, or until it is tired; then the next one. Returns the
/// faults and the windows that they cost somebody.
fn ordeal(seed: u64, controllers: Controllers) -> (usize, BTreeSet<u64>) {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = Scene::new(&recording, controllers);
    let (mut house, mut draw) = (House::new(), Draw(seed));
    for life in 0.. {
        let about = format!("seed {seed}, life {life}, {controllers:?}");
        assert!(life < 100, "{about}: it does not come to an end");
        let patience = 1 + draw.below(12);
        let stores = house.stores();
        if life < 6 {
            house.order_a_fault(&mut draw);
        }
        let mut chunks = 0;
        let chunk = || {
            chunks += 1;
            (life >= 6 || chunks <= patience).then(|| 1 + draw.below(6))
        };
        let lived = scene.wake(stores, seed << 8 | life).and_then(|mut life| {
            let done = life.feed(chunk)?;
            Ok(done.then(|| life.results()))
        });
        house.pull_the_plug(&mut draw, &about);
        if let Ok(Some(rows)) = lived {
            let cut = check(&rows, &recording.truth(), &about);
            assert!(cut.len() as u64 <= life, "{about}: these windows were cut: {cut:?}");
            assert!(house.witness.tokens() > 0, "{about}");
            return (usize::try_from(life).unwrap(), cut);
        }
    }
    panic!("it never ends")
}

fn seeds() -> u64 {
    std::env::var("ALPHEUS_KILLS").map_or(20, |many| many.parse().unwrap())
}

fn torture(controllers: Controllers) {
    let (mut faults, mut cut) = (0, 0);
    for seed in 0..seeds() {
        let (met, windows) = ordeal(seed, controllers);
        (faults, cut) = (faults + met, cut + windows.len());
    }
    assert!(faults as u64 > seeds(), "only {faults} faults");
    println!("{faults} power failures cut streams off in {cut} windows");
}

#[test]
fn one_controller_survives_power_failures() {
    torture(Controllers::Count(1));
}

#[test]
fn a_controller_per_owner_survives_power_failures() {
    torture(Controllers::PerOwner);
}
