//! What a service with its own key, and everything it has ever received, may send.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Tree;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::coordinator::WindowReport;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    Membership, OpeningSet, Presence, Retirement, ServiceMessage, Summons, member_leaf,
};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp, Window};

use crate::protocol::simulation::{Simulation, WINDOWS};
use crate::protocol::world::{EPOCH, GRACE, Setup, WINDOW, World};

/// The last presence of each controller, by plan and window.
pub type Presences = BTreeMap<(PlanId, Timestamp), BTreeMap<u32, (Digest, Verified<Presence>)>>;

/// A lie: a repeated old message, another summons, another membership or another opening
/// set, for either plan.
pub fn invent(simulation: &mut Simulation, to: u32) -> Option<ServiceMessage> {
    match simulation.pick(6) {
        0 => {
            let at = simulation.pick(simulation.said.len());
            simulation.said.get(at).cloned()
        }
        1 | 2 => summons(simulation, to),
        3 | 4 => membership(simulation, to),
        _ => opening_set(simulation),
    }
}

/// The true plan has ended, and another begins over the same data.
pub fn other_plan(simulation: &Simulation) -> [ServiceMessage; 2] {
    let retirement = Retirement { plan: simulation.world.id() };
    let retirement = Signed::new(&retirement, &simulation.world.service);
    [ServiceMessage::Retirement(retirement), simulation.rival.announcement()]
}

/// Summons for a window of either plan, with some streams left out.
fn summons(simulation: &mut Simulation, to: u32) -> Option<ServiceMessage> {
    let (plan, reports) = match simulation.pick(2) {
        0 => (simulation.world.id(), &simulation.reports),
        _ => (simulation.rival.id(), &simulation.rival_reports),
    };
    let reports = reports.clone();
    let at = simulation.pick(reports.len());
    let report = reports.get(at)?;
    let own = |position: u32| simulation.world.plan.streams[position as usize].controller == to;
    let mut streams = report.complete.clone();
    streams.retain(|stream| own(stream.position));
    streams.retain(|_| simulation.pick(4) > 0);
    let summons = Summons { plan, window: report.window, controller: to, streams };
    Some(ServiceMessage::Summons(Signed::new(&summons, &simulation.world.service)))
}

/// Another membership over true presences, with some left out and some counts invented.
fn membership(simulation: &mut Simulation, to: u32) -> Option<ServiceMessage> {
    let of_it = |(window, seen): (&_, &BTreeMap<_, _>)| seen.contains_key(&to).then_some(*window);
    let windows: Vec<_> = simulation.presences.iter().filter_map(of_it).collect();
    let at = simulation.pick(windows.len());
    let seen = simulation.presences.get(windows.get(at)?)?;
    let mut presences: BTreeMap<_, _> = seen
        .iter()
        .map(|(p, (digest, presence))| (*p, (*digest, presence.window, presence.owners)))
        .collect();
    let (plan, _) = *windows.get(at)?;
    let window = presences.get(&to)?.1;
    presences.retain(|p, _| *p == to || simulation.pick(4) > 0);
    let rank = presences.keys().position(|p| *p == to)?;
    let mut owners: Vec<u32> = presences.values().map(|(_, _, owners)| *owners).collect();
    if simulation.pick(4) == 0 {
        let at = simulation.pick(owners.len());
        owners[at] += 3;
    }
    let lists = pickers(simulation, &presences.keys().copied().collect::<Vec<_>>());
    let sparse = simulation.world.plan.masks.needed_picks().is_some();
    let member = |((digest, ..), list): (&(Digest, _, _), &Vec<u32>)| {
        member_leaf(digest, sparse.then_some(&list[..]))
    };
    let tree = Tree::new(presences.values().zip(&lists).map(member).collect());
    let membership = Membership {
        plan,
        window,
        members: RosterSet::of(simulation.world.setup.controllers, presences.keys().copied()),
        owners,
        root: tree.root(),
        mask_keys: Vec::new(),
    };
    let membership = Signed::new(&membership, &simulation.world.service);
    let proof = tree.prove(rank)?;
    Some(match sparse {
        true => ServiceMessage::Introduction { membership, proof, pickers: lists[rank].clone() },
        false => ServiceMessage::Membership { membership, proof },
    })
}

/// Who picked each of these members: the truth, except sometimes for one of them.
fn pickers(simulation: &mut Simulation, members: &[u32]) -> Vec<Vec<u32>> {
    let of = |member: &u32| -> Vec<u32> {
        let picked = |p: &&u32| simulation.picks.get(p).is_some_and(|own| own.contains(member));
        members.iter().filter(picked).copied().collect()
    };
    let mut lists: Vec<Vec<u32>> = members.iter().map(of).collect();
    for list in &mut lists {
        if simulation.pick(100) == 0 {
            list.pop();
        }
    }
    lists
}

/// Another opening set for some membership that was ever sent.
fn opening_set(simulation: &mut Simulation) -> Option<ServiceMessage> {
    let memberships: Vec<Signed<Membership>> = simulation
        .said
        .iter()
        .filter_map(|message| match message {
            ServiceMessage::Membership { membership, .. }
            | ServiceMessage::Introduction { membership, .. } => Some(membership.clone()),
            _ => None,
        })
        .collect();
    let at = simulation.pick(memberships.len());
    let signed = memberships.get(at)?;
    let membership = signed.open(&simulation.world.service.verifying_key()).ok()?;
    let members = membership.members.iter().filter(|_| simulation.pick(5) > 0);
    let members: Vec<u32> = members.collect();
    let set = OpeningSet {
        plan: membership.plan,
        window: membership.window,
        membership: signed.digest(),
        set: RosterSet::of(simulation.world.setup.controllers, members),
    };
    Some(ServiceMessage::OpeningSet(Signed::new(&set, &simulation.world.service)))
}

/// Another plan for the same data: with more grace, longer windows, or the same.
pub fn rival(setup: Setup, seed: u64) -> (World, Vec<WindowReport>) {
    let mut world = World::new(setup);
    let (grace, window) = match seed % 3 {
        0 => (Span(2 * GRACE.0), WINDOW),
        1 => (GRACE, Span(2 * WINDOW.0)),
        _ => (GRACE, WINDOW),
    };
    let plan = Plan { nonce: [255; 16], grace, window, ..world.plan.clone() };
    let windows = (0..WINDOWS * WINDOW.0 / window.0).map(|number| {
        let start = Timestamp(EPOCH + number * window.0);
        Window { start, end: start.plus(window) }
    });
    world.take_over(plan);
    let id = world.id();
    let reports = windows.map(|window| {
        let report = world.transformer.close(&id, window, 0).unwrap();
        let complete = report.complete().cloned().collect();
        WindowReport { window, complete, excluded: vec![], unreported: 0 }
    });
    let reports = reports.collect();
    (world, reports)
}
