//! What a service with its own key, and all it has ever heard, may say.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::{Tree, leaf};
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    ControllerMessage, Membership, OpeningSet, Presence, ServiceMessage,
};
use alpheus_policy::time::Timestamp;

use crate::simulation::Simulation;
use crate::world::window;

/// A lie: an old message again, another membership, another opening set.
pub fn invent(simulation: &mut Simulation, to: u32) -> Option<ServiceMessage> {
    match simulation.pick(3) {
        0 => {
            let at = simulation.pick(simulation.said.len());
            simulation.said.get(at).cloned()
        }
        1 => membership(simulation, to),
        _ => opening_set(simulation),
    }
}

/// The last presence of each controller for a window.
fn presences(
    simulation: &Simulation,
    start: Timestamp,
) -> BTreeMap<u32, (Digest, Verified<Presence>)> {
    let mut presences = BTreeMap::new();
    for (from, message) in &simulation.heard {
        let ControllerMessage::Presence(signed) = message else { continue };
        let key = simulation.world.announced.verifying()[*from as usize];
        let presence = signed.open(&key).unwrap();
        if presence.window.start == start {
            presences.insert(*from, (signed.digest(), presence));
        }
    }
    presences
}

/// Another membership over true presences, some left out, some counts invented.
fn membership(simulation: &mut Simulation, to: u32) -> Option<ServiceMessage> {
    let window = window(simulation.pick(4) as u64);
    let mut presences = presences(simulation, window.start);
    presences.retain(|p, _| *p == to || simulation.pick(4) > 0);
    let rank = presences.keys().position(|p| *p == to)?;
    let mut owners: Vec<u32> = presences.values().map(|(_, p)| p.owners).collect();
    if simulation.pick(2) == 0 {
        let at = simulation.pick(owners.len());
        owners[at] += 3;
    }
    let tree = Tree::new(presences.values().map(|(d, _)| leaf(d.as_bytes())).collect());
    let membership = Membership {
        plan: simulation.world.id(),
        window,
        members: RosterSet::of(simulation.world.setup.controllers, presences.keys().copied()),
        owners,
        root: tree.root(),
    };
    let membership = Signed::new(&membership, &simulation.world.service);
    Some(ServiceMessage::Membership { membership, proof: tree.prove(rank)? })
}

/// Another opening set against some membership that was ever said.
fn opening_set(simulation: &mut Simulation) -> Option<ServiceMessage> {
    let memberships: Vec<Signed<Membership>> = simulation
        .said
        .iter()
        .filter_map(|message| match message {
            ServiceMessage::Membership { membership, .. } => Some(membership.clone()),
            _ => None,
        })
        .collect();
    let at = simulation.pick(memberships.len());
    let signed = memberships.get(at)?;
    let membership = signed.open(&simulation.world.service.verifying_key()).ok()?;
    let members = membership.members.iter().filter(|_| simulation.pick(5) > 0);
    let members: Vec<u32> = members.collect();
    let set = OpeningSet {
        plan: simulation.world.id(),
        window: membership.window,
        membership: signed.digest(),
        set: RosterSet::of(simulation.world.setup.controllers, members),
    };
    Some(ServiceMessage::OpeningSet(Signed::new(&set, &simulation.world.service)))
}
