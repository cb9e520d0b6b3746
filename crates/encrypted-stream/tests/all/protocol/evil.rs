//! A malicious service: it holds the service's key and signs anything a test wants.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::{Proof, Tree, leaf};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::WindowReport;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::ledger::{Fence, Scope};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    ControllerMessage, MaskKey, Membership, Opening, OpeningSet, Presence, ServiceMessage,
    SummonedStream, Summons, Token,
};
use alpheus_time::{Timestamp, Window};

use crate::protocol::identities::other_keys;
use crate::protocol::world::{EPOCH, Memory, Setup, World, after, start, window};

/// Controllers that have accepted the plan, controlled by the test.
pub struct Evil {
    pub world: World,
    pub controllers: Vec<Controller>,
    pub inbox: Inbox,
    pub store: Memory,
    pub report: WindowReport,
    /// Keys for pads, by the digest of the presence that has them.
    pub mask_keys: BTreeMap<Digest, Signed<MaskKey>>,
}

/// M before it is signed, for the test to change.
#[derive(Clone)]
pub struct Draft {
    pub window: Window,
    pub members: Vec<(u32, Digest, u32)>,
}

impl Evil {
    /// All have accepted, and window 0 has closed.
    pub fn new(setup: Setup) -> Self {
        let mut evil = Self::unannounced(setup);
        evil.accept();
        evil
    }

    /// Nobody has received the plan yet.
    pub fn unannounced(setup: Setup) -> Self {
        Self::unannounced_in(World::new(setup))
    }

    /// The same in a world.
    pub fn unannounced_in(mut world: World) -> Self {
        let mut store = Memory::default();
        let count = world.setup.controllers;
        let controllers = (0..count).map(|p| world.controller(p, &mut store)).collect();
        let inbox = Inbox::new(world.deployment.clone());
        let report = world.report(0);
        Self { world, controllers, inbox, store, report, mask_keys: BTreeMap::new() }
    }

    /// All controllers accept the plan.
    pub fn accept(&mut self) {
        for p in 0..self.world.setup.controllers {
            let announcement = self.world.announcement();
            let answer = self.say(p, Timestamp(EPOCH), &announcement);
            assert!(matches!(answer, Some(ControllerMessage::Acceptance(_))));
        }
    }

    /// The first controller, restored from all that it has committed.
    pub fn start_again(&mut self, now: Timestamp) {
        let (store, fence) = (self.store.clone(), self.controllers[0].fence());
        self.restore(0, &store, now, Some(fence));
    }

    /// A controller is restored from a store, which all of them use from then on.
    pub fn restore(&mut self, p: u32, store: &Memory, now: Timestamp, fence: Option<Fence>) {
        let world = &self.world;
        let host = HostRecords::read(store.values(Scope::Host), &world.deployment).unwrap();
        let (identity, deployment) = (world.identity(p), world.deployment.clone());
        let values = store.values(Scope::Controller(identity.id()));
        let restored = Controller::restore(
            identity,
            deployment,
            world.held(p),
            &host,
            values,
            now,
            start(fence),
        );
        let (mut controller, step) = restored.unwrap();
        self.store = store.clone();
        step.commit(&mut self.store).unwrap();
        controller.note_fenced();
        controller.draw_keys_from(other_keys());
        self.controllers[p as usize] = controller;
    }

    /// Sends a message to a controller and returns its answer, once that is durable.
    pub fn say(
        &mut self,
        to: u32,
        now: Timestamp,
        message: &ServiceMessage,
    ) -> Option<ControllerMessage> {
        let heard = self.inbox.open(message).unwrap();
        let step = self.controllers[to as usize].handle(&heard, now);
        let said = step.commit(&mut self.store).unwrap().pop();
        self.controllers[to as usize].note_fenced();
        said
    }

    /// The same, with the reason of a refusal as the error.
    pub fn ask(
        &mut self,
        to: u32,
        now: Timestamp,
        message: &ServiceMessage,
    ) -> Result<ControllerMessage, WindowRefusalError> {
        let key = self.world.announced.verifying()[to as usize];
        match self.say(to, now, message).unwrap() {
            ControllerMessage::WindowRefusal(declined) => Err(declined.open(&key).unwrap().reason),
            answer => Ok(answer),
        }
    }

    /// Streams of a controller as the transformer sees them.
    pub fn streams(&self, of: u32) -> Vec<SummonedStream> {
        let own =
            |s: &&SummonedStream| self.world.plan.streams[s.position as usize].controller == of;
        self.report.complete.iter().filter(own).cloned().collect()
    }

    pub fn summons(&self, to: u32, streams: Vec<SummonedStream>) -> ServiceMessage {
        let (plan, window) = (self.world.id(), self.report.window);
        let summons = Summons { plan, window, controller: to, streams };
        ServiceMessage::Summons(Signed::new(&summons, &self.world.service))
    }

    /// Summons a controller with these streams and returns its answer.
    pub fn presence(&mut self, to: u32, streams: Vec<SummonedStream>) -> (Digest, Presence) {
        self.presence_at(to, streams, after(0))
    }

    /// The same at another time.
    pub fn presence_at(
        &mut self,
        to: u32,
        streams: Vec<SummonedStream>,
        now: Timestamp,
    ) -> (Digest, Presence) {
        let summons = self.summons(to, streams);
        let key = self.world.announced.verifying()[to as usize];
        match self.ask(to, now, &summons).unwrap() {
            ControllerMessage::Presence(signed) => {
                let (digest, presence) = (signed.digest(), signed.open(&key).unwrap().into_inner());
                let key = presence.mask_key.clone();
                self.mask_keys.extend(key.map(|key| (digest, key)));
                (digest, presence)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The keys of M's members, in a verified plan.
    pub fn keys_of(&self, draft: &Draft) -> Vec<Signed<MaskKey>> {
        let keys = draft.members.iter().filter_map(|(_, digest, _)| self.mask_keys.get(digest));
        keys.cloned().collect()
    }

    /// Summons all of them honestly and returns the honest M.
    pub fn gather(&mut self) -> Draft {
        let count = self.world.setup.controllers;
        let one = |p: u32| {
            let streams = self.streams(p);
            let (digest, presence) = self.presence(p, streams);
            (p, digest, presence.owners)
        };
        Draft { window: window(0), members: (0..count).map(one).collect() }
    }

    /// Closes a window at the transformer, unless it is closed already.
    pub fn close(&mut self, number: u64) {
        if self.report.window != window(number) {
            self.report = self.world.report(number);
        }
    }

    /// The same for any window, once it is over.
    pub fn gather_at(&mut self, number: u64) -> Draft {
        self.close(number);
        let count = self.world.setup.controllers;
        let one = |p: u32| {
            let streams = self.streams(p);
            let (digest, presence) = self.presence_at(p, streams, after(number));
            (p, digest, presence.owners)
        };
        Draft { window: window(number), members: (0..count).map(one).collect() }
    }

    /// The token of a window, once it is over.
    pub fn token_at(&mut self, to: u32, draft: &Draft) -> Token {
        let (key, message) =
            (self.world.announced.verifying()[to as usize], self.membership(draft, to));
        match self.ask(to, draft.window.end.plus(crate::protocol::world::GRACE), &message).unwrap()
        {
            ControllerMessage::Token(signed) => signed.open(&key).unwrap().into_inner(),
            other => panic!("{other:?}"),
        }
    }

    /// The opening of a window, once it is over.
    pub fn opening_at(&mut self, to: u32, draft: &Draft, set: &ServiceMessage) -> Opening {
        let key = self.world.announced.verifying()[to as usize];
        match self.ask(to, draft.window.end.plus(crate::protocol::world::GRACE), set).unwrap() {
            ControllerMessage::Opening(signed) => signed.open(&key).unwrap().into_inner(),
            other => panic!("{other:?}"),
        }
    }

    /// M, signed, for one of its members.
    pub fn membership(&self, draft: &Draft, to: u32) -> ServiceMessage {
        let tree = Tree::new(draft.members.iter().map(|(_, d, _)| leaf(d.as_bytes())).collect());
        let signed = self.sign(draft, tree.root());
        let rank = draft.members.iter().position(|(p, ..)| *p == to);
        let proof = rank.and_then(|rank| tree.prove(rank));
        let nothing = Proof { index: 0, size: 1, path: vec![] };
        ServiceMessage::Membership { membership: signed, proof: proof.unwrap_or(nothing) }
    }

    fn sign(&self, draft: &Draft, root: Digest) -> Signed<Membership> {
        let membership = Membership {
            plan: self.world.id(),
            window: draft.window,
            members: RosterSet::of(
                self.world.setup.controllers,
                draft.members.iter().map(|(p, ..)| *p),
            ),
            owners: draft.members.iter().map(|(_, _, owners)| *owners).collect(),
            root,
            mask_keys: self.keys_of(draft),
        };
        Signed::new(&membership, &self.world.service)
    }

    pub fn token(&mut self, to: u32, draft: &Draft) -> Result<Token, WindowRefusalError> {
        let message = self.membership(draft, to);
        self.token_for(to, &message)
    }

    pub fn token_for(
        &mut self,
        to: u32,
        message: &ServiceMessage,
    ) -> Result<Token, WindowRefusalError> {
        let key = self.world.announced.verifying()[to as usize];
        match self.ask(to, after(0), message)? {
            ControllerMessage::Token(signed) => Ok(signed.open(&key).unwrap().into_inner()),
            other => panic!("{other:?}"),
        }
    }

    /// S, signed, for a membership.
    pub fn set(&self, draft: &Draft, members: &[u32]) -> ServiceMessage {
        let ServiceMessage::Membership { membership, .. } = self.membership(draft, 0) else {
            panic!()
        };
        let set = OpeningSet {
            plan: self.world.id(),
            window: draft.window,
            membership: membership.digest(),
            set: RosterSet::of(self.world.setup.controllers, members.iter().copied()),
        };
        ServiceMessage::OpeningSet(Signed::new(&set, &self.world.service))
    }

    pub fn opening(
        &mut self,
        to: u32,
        set: &ServiceMessage,
    ) -> Result<Opening, WindowRefusalError> {
        let key = self.world.announced.verifying()[to as usize];
        match self.ask(to, after(0), set)? {
            ControllerMessage::Opening(signed) => Ok(signed.open(&key).unwrap().into_inner()),
            other => panic!("{other:?}"),
        }
    }

    /// What the service can compute from the ciphertexts of some streams and any tokens and
    /// openings that it has.
    pub fn add_up(&self, streams: &[u32], tokens: &[&Token], openings: &[&Opening]) -> Vec<u64> {
        let (plan, window) = (self.world.id(), self.report.window);
        let mut sum = self.world.transformer.sum(&plan, window, streams).unwrap();
        for (word, at) in sum.iter_mut().zip(0..) {
            tokens.iter().for_each(|t| *word = word.wrapping_add(t.words[at]));
            openings.iter().for_each(|o| *word = word.wrapping_sub(o.words[at]));
        }
        sum
    }
}
