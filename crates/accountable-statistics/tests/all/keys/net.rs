//! Members that make a key, their messages, and what happens to those on the way.

use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::keymaking::{
    Content, FaultError, KeyMaker, KeyMessage, Participants, Timeouts,
};
use alpheus_accountable_statistics::threshold::{Committee, SharedKey};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::ledger::Ledger as _;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::Rng as _;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key epoch of these tests: member a mod n convenes attempt a.
const EPOCH: KeyEpoch = KeyEpoch(0);
/// In rounds of the net.
pub(crate) const TIMEOUTS: Timeouts = Timeouts { message: Span(12), attempt: Span(60) };

/// The maximum number of crashes.
const MAX_CRASHES: usize = 12;

/// The messages that a member sends to each other member instead of one of its own.
pub(crate) type Lie = Box<dyn Fn(SmootherId, KeyMessage) -> Vec<KeyMessage>>;

/// One member.
pub(crate) struct Member {
    pub(crate) maker: KeyMaker,
    pub(crate) ledger: Ledger,
    pub(crate) away: bool,
    /// No message has arrived since its last poll.
    idle: bool,
    lie: Option<Lie>,
    /// Messages on their way to each other member.
    sent: BTreeMap<SmootherId, Vec<Signed<KeyMessage>>>,
    /// What it has sent to others, for those that restart.
    shown: Vec<(SmootherId, Signed<KeyMessage>)>,
    /// The cards that it has signed, with their attempts, first to last.
    pub(crate) cards: Vec<(u32, SharedKey)>,
}

pub(crate) struct Net {
    pub(crate) participants: Participants,
    pub(crate) members: Vec<Member>,
    pub(crate) now: u64,
    pub(crate) rng: ChaCha20Rng,
    /// Chances of 256 that a message does not arrive in a round, and that a member crashes in one.
    pub(crate) late: u8,
    pub(crate) crashing: u8,
    pub(crate) crashes: usize,
}

pub(crate) fn signing(id: SmootherId) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([id.0.to_be_bytes()[1] + 1; 32]))
}

pub(crate) fn id(member: u16) -> SmootherId {
    SmootherId(member)
}

impl Net {
    pub(crate) fn new(n: u16, t: u16, seed: u8) -> Self {
        let purpose = labelled_hash("alpheus/test-purpose/v1", &[b"a day"]);
        let committee = Committee::new(purpose, n, t).unwrap();
        let keys = (0..n).map(|member| signing(id(member)).verifying_key()).collect();
        let participants = Participants::new(EPOCH, committee, keys).unwrap();
        let member = |member| Member {
            maker: restored(&participants, id(member), &Ledger::new()),
            ledger: Ledger::new(),
            away: false,
            idle: false,
            lie: None,
            sent: BTreeMap::new(),
            shown: Vec::new(),
            cards: Vec::new(),
        };
        let members = (0..n).map(member).collect();
        let rng = ChaCha20Rng::from_seed([seed; 32]);
        Self { participants, members, now: 0, rng, late: 0, crashing: 0, crashes: 0 }
    }

    pub(crate) fn member(&mut self, member: u16) -> &mut Member {
        &mut self.members[usize::from(member)]
    }

    /// Makes a member send other messages, or none, to each of the others.
    pub(crate) fn lies(
        &mut self,
        member: u16,
        lie: impl Fn(SmootherId, KeyMessage) -> Vec<KeyMessage> + 'static,
    ) {
        self.member(member).lie = Some(Box::new(lie));
    }

    fn chance(&mut self, of_256: u8) -> bool {
        self.rng.next_u32().to_be_bytes()[3] < of_256
    }

    /// All members do what they can. Then messages arrive or wait.
    pub(crate) fn round(&mut self) {
        self.now += 1;
        for member in 0..self.members.len() {
            if !self.members[member].away {
                self.poll(member);
            }
        }
        self.deliver();
        self.assert_one_key();
    }

    fn poll(&mut self, at: usize) {
        let (now, crash) =
            (Timestamp(self.now), self.crashes < MAX_CRASHES && self.chance(self.crashing));
        let by = id(u16::try_from(at).unwrap());
        let lost = self.chance(128);
        let (rng, member) = (&mut self.rng, &mut self.members[at]);
        let early = member.idle && Some(now) < member.maker.deadline();
        let step = member.maker.poll(now, &signing(by), rng);
        member.idle = true;
        if crash && lost {
            // Before it is durable: nothing has been sent.
            self.restart(by);
            return;
        }
        let output = step.commit(&mut member.ledger).unwrap();
        assert!(!early || output.messages.is_empty(), "nothing to send before the deadline");
        let attempt = member.maker.attempt().unwrap();
        if let Some(key) = output.key {
            // Its card is signed in that commit.
            let signed = member.cards.iter().any(|(at, known)| (*at, known) == (attempt, &key));
            if !signed {
                member.cards.push((attempt, key));
            }
        }
        if crash {
            // After it is durable, before it is sent.
            self.restart(by);
            let sent = self.members[at].maker.sent();
            self.send(by, sent);
            return;
        }
        self.send(by, output.messages);
    }

    fn send(&mut self, by: SmootherId, messages: Vec<Signed<KeyMessage>>) {
        let others: Vec<SmootherId> = self.ids().filter(|to| *to != by).collect();
        let member = &mut self.members[usize::from(by.0)];
        for message in messages {
            for to in &others {
                let opened = message.open(&signing(by).verifying_key()).unwrap().into_inner();
                let sent = match &member.lie {
                    None => vec![message.clone()],
                    Some(lie) => lie(*to, opened)
                        .iter()
                        .map(|message| Signed::new(message, &signing(by)))
                        .collect(),
                };
                member.shown.extend(sent.iter().map(|message| (*to, message.clone())));
                member.sent.entry(*to).or_default().extend(sent);
            }
        }
    }

    fn deliver(&mut self) {
        for by in self.ids() {
            let sent = std::mem::take(&mut self.members[usize::from(by.0)].sent);
            for (to, messages) in sent {
                for message in messages {
                    if self.members[usize::from(to.0)].away || self.chance(self.late) {
                        let sent = &mut self.members[usize::from(by.0)].sent;
                        sent.entry(to).or_default().push(message);
                    } else {
                        let member = &mut self.members[usize::from(to.0)];
                        member.idle = false;
                        member.maker.handle(&message, by);
                    }
                }
            }
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SmootherId> + use<> {
        (0..u16::try_from(self.members.len()).unwrap()).map(id)
    }

    /// Restarts a member from its ledger and sends it earlier messages again.
    pub(crate) fn restart(&mut self, by: SmootherId) {
        self.crashes += 1;
        let at = usize::from(by.0);
        let mut maker = restored(&self.participants, by, &self.members[at].ledger);
        for other in self.ids().filter(|other| *other != by) {
            let from = &self.members[usize::from(other.0)];
            let waiting = from.sent.get(&by);
            for (to, message) in &from.shown {
                let on_its_way = waiting.is_some_and(|messages| messages.contains(message));
                if *to == by && !on_its_way {
                    maker.handle(message, other);
                }
            }
        }
        (self.members[at].maker, self.members[at].idle) = (maker, false);
    }

    /// Keys that a quorum has signed at one attempt. Only members that do not lie are counted one
    /// by one; a liar has signed everything.
    pub(crate) fn decided(&self) -> BTreeSet<Digest> {
        let liars = self.members.iter().filter(|member| member.lie.is_some()).count();
        let mut signed: BTreeMap<(u32, Digest), usize> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.lie.is_none()) {
            for (attempt, key) in &member.cards {
                *signed.entry((*attempt, *key.transcript())).or_default() += 1;
            }
        }
        let enough = |count: &usize| count + liars >= self.participants.quorum();
        signed.iter().filter(|(_, count)| enough(count)).map(|((_, key), _)| *key).collect()
    }

    fn assert_one_key(&self) {
        assert!(self.decided().len() <= 1, "two keys of one key epoch");
    }

    /// Continues until all present honest members have signed one card.
    pub(crate) fn made(&mut self, rounds: usize) -> SharedKey {
        for _ in 0..rounds {
            self.round();
            let there = |member: &&Member| !member.away && member.lie.is_none();
            let last: Vec<_> =
                self.members.iter().filter(there).map(|member| member.cards.last()).collect();
            if let Some(Some((attempt, key))) = last.first()
                && last.iter().all(|card| *card == Some(&(*attempt, key.clone())))
            {
                let key = key.clone();
                self.assert_held(&key);
                return key;
            }
        }
        panic!("no key in {rounds} rounds: {:?}", self.faults());
    }

    /// As many honest members as the threshold hold shares of it.
    fn assert_held(&self, key: &SharedKey) {
        let honest = self.members.iter().filter(|member| member.lie.is_none());
        let holders = honest.filter(|member| member.maker.share(key).is_some()).count();
        assert!(holders >= usize::from(key.committee().threshold()), "{holders} shares");
    }

    pub(crate) fn faults(&self) -> BTreeSet<(SmootherId, FaultError)> {
        let honest = self.members.iter().filter(|member| member.lie.is_none() && !member.away);
        honest.flat_map(|member| member.maker.faults().copied()).collect()
    }

    /// Everybody whom an honest member blames for something.
    pub(crate) fn blamed(&self) -> BTreeSet<u16> {
        self.faults().into_iter().map(|(by, _)| by.0).collect()
    }

    /// Makes a member deal so that what is sealed for another does not open.
    pub(crate) fn misdeal(&mut self, by: u16, to: u16) {
        let n = self.members.len();
        while !self.member(by).ledger.contains_key(b"d".as_slice()) {
            self.round_but_silent(by);
        }
        let member = self.member(by);
        let mut dealing = member.ledger[b"d".as_slice()].clone();
        let at = dealing.len() - (n - usize::from(to)) * 80 + 40;
        dealing[at] ^= 1;
        let (key, message) =
            member.ledger.iter().find(|(key, _)| key.starts_with(&[b'w', 2])).unwrap();
        let (key, message) = (key.clone(), message.clone());
        let message: Signed<KeyMessage> = postcard_of(&message);
        let mut message = message.open(&signing(id(by)).verifying_key()).unwrap().into_inner();
        let ceremony = self.ceremony_of(by);
        let parts: [&[u8]; 3] = [ceremony.as_bytes(), &by.to_be_bytes(), &dealing];
        let pledge = labelled_hash(alpheus_crypto::labels::STATISTICS_KEY_PLEDGE, &parts);
        message.content = Content::Pledge(ceremony, pledge);
        let signed = Signed::new(&message, &signing(id(by)));
        let member = self.member(by);
        let put = alpheus_crypto::ledger::put;
        let changes = [put(b"d".to_vec(), dealing), put(key, bytes_of(&signed))];
        member.ledger.commit(&changes).unwrap();
        self.restart(id(by));
        self.send(id(by), vec![signed]);
    }

    /// Withholds the pledge that a member is about to send.
    fn round_but_silent(&mut self, by: u16) {
        let lie = self.member(by).lie.take();
        self.member(by).lie = Some(Box::new(|_, message| match message.content {
            Content::Pledge(..) => vec![],
            _ => vec![message],
        }));
        self.round();
        self.member(by).lie = lie;
    }

    /// The ceremony that a member is in, from its roster.
    fn ceremony_of(&mut self, by: u16) -> Digest {
        use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
        let attempt = self.member(by).maker.attempt().unwrap();
        let convener = self.participants.convener(attempt);
        let shown = &self.members[usize::from(convener.0)].shown;
        let roster = shown.iter().find_map(|(_, message)| {
            let message = message.open(&signing(convener).verifying_key()).unwrap().into_inner();
            match message.content {
                Content::Roster(list) => Some(list),
                _ => None,
            }
        });
        let committee = *self.participants.committee();
        let announced = roster.unwrap().into_iter().map(|(member, message)| {
            let message = message.open(&signing(member).verifying_key()).unwrap().into_inner();
            let Content::Announcement(key, _) = message.content else { panic!("no announcement") };
            Announcement { committee: committee.digest(), attempt, member: member.0, key }
        });
        *Ceremony::new(committee, attempt, &announced.collect::<Vec<_>>()).digest()
    }
}

pub(crate) fn restored(participants: &Participants, by: SmootherId, ledger: &Ledger) -> KeyMaker {
    KeyMaker::restore(participants.clone(), by, TIMEOUTS, ledger.clone()).unwrap()
}

pub(crate) fn postcard_of<T: serde::de::DeserializeOwned + serde::Serialize>(bytes: &[u8]) -> T {
    alpheus_accountable_statistics::messages::decode(bytes).unwrap()
}

pub(crate) fn bytes_of<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap()
}

impl Member {
    pub(crate) fn honest(&mut self) {
        self.lie = None;
    }
}
