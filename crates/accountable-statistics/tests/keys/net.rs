//! Members who make a key, what they say, and what becomes of it on the way.

use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::keymaking::{Circle, Fault, KeyMaker, KeyWord, Patience, What};
use alpheus_accountable_statistics::threshold::{Committee, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::ledger::Ledger as _;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::Rng as _;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key epoch of these tests: at attempt a, member a mod n convenes.
const EPOCH: KeyEpoch = KeyEpoch(0);
/// Rounds of the net.
pub(crate) const PATIENCE: Patience = Patience { word: 12, attempt: 60 };

/// After so many crashes there are no more.
const MOST_CRASHES: usize = 12;

/// What a member makes of its own words, for each of the others.
pub(crate) type Lie = Box<dyn Fn(SmootherId, KeyWord) -> Vec<KeyWord>>;

/// One member.
pub(crate) struct Member {
    pub(crate) maker: KeyMaker,
    pub(crate) ledger: Ledger,
    pub(crate) away: bool,
    lie: Option<Lie>,
    /// For each of the others, what is on its way to it.
    sent: BTreeMap<SmootherId, Vec<Signed<KeyWord>>>,
    /// What it has shown to others, for whoever starts anew.
    shown: Vec<(SmootherId, Signed<KeyWord>)>,
    /// Whose card it has signed at which attempt, first to last.
    pub(crate) cards: Vec<(u32, SharedKey)>,
}

pub(crate) struct Net {
    pub(crate) circle: Circle,
    pub(crate) members: Vec<Member>,
    pub(crate) now: u64,
    pub(crate) rng: ChaCha20Rng,
    /// Of 256: how likely a word does not arrive in a round, and a member crashes in one.
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
        let purpose = labelled("alpheus/test-purpose/v1", &[b"a day"]);
        let committee = Committee::new(purpose, n, t).unwrap();
        let keys = (0..n).map(|member| signing(id(member)).verifying_key()).collect();
        let circle = Circle::new(EPOCH, committee, keys).unwrap();
        let member = |member| Member {
            maker: restored(&circle, id(member), &Ledger::new()),
            ledger: Ledger::new(),
            away: false,
            lie: None,
            sent: BTreeMap::new(),
            shown: Vec::new(),
            cards: Vec::new(),
        };
        let members = (0..n).map(member).collect();
        let rng = ChaCha20Rng::from_seed([seed; 32]);
        Self { circle, members, now: 0, rng, late: 0, crashing: 0, crashes: 0 }
    }

    pub(crate) fn member(&mut self, member: u16) -> &mut Member {
        &mut self.members[usize::from(member)]
    }

    /// A member that says something else, or nothing, to each of the others.
    pub(crate) fn lies(
        &mut self,
        member: u16,
        lie: impl Fn(SmootherId, KeyWord) -> Vec<KeyWord> + 'static,
    ) {
        self.member(member).lie = Some(Box::new(lie));
    }

    fn chance(&mut self, of_256: u8) -> bool {
        self.rng.next_u32().to_be_bytes()[3] < of_256
    }

    /// Everybody does what there is to do; then what was said arrives, or waits.
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
            (Time(self.now), self.crashes < MOST_CRASHES && self.chance(self.crashing));
        let by = id(u16::try_from(at).unwrap());
        let lost = self.chance(128);
        let (rng, member) = (&mut self.rng, &mut self.members[at]);
        let step = member.maker.poll(now, &signing(by), rng);
        if crash && lost {
            // Before it is durable: nothing has left.
            self.restart(by);
            return;
        }
        let talk = step.commit(&mut member.ledger).unwrap();
        let attempt = member.maker.attempt().unwrap();
        if let Some(key) = talk.key {
            // Its card is signed in that commit.
            let signed = member.cards.iter().any(|(at, known)| (*at, known) == (attempt, &key));
            if !signed {
                member.cards.push((attempt, key));
            }
        }
        if crash {
            // After it is durable, before it has left.
            self.restart(by);
            let said = self.members[at].maker.said();
            self.send(by, said);
            return;
        }
        self.send(by, talk.words);
    }

    fn send(&mut self, by: SmootherId, words: Vec<Signed<KeyWord>>) {
        let others: Vec<SmootherId> = self.ids().filter(|to| *to != by).collect();
        let member = &mut self.members[usize::from(by.0)];
        for word in words {
            for to in &others {
                let opened = word.open(&signing(by).verifying_key()).unwrap().into_inner();
                let told = match &member.lie {
                    None => vec![word.clone()],
                    Some(lie) => {
                        lie(*to, opened).iter().map(|w| Signed::new(w, &signing(by))).collect()
                    }
                };
                member.shown.extend(told.iter().map(|word| (*to, word.clone())));
                member.sent.entry(*to).or_default().extend(told);
            }
        }
    }

    fn deliver(&mut self) {
        for by in self.ids() {
            let sent = std::mem::take(&mut self.members[usize::from(by.0)].sent);
            for (to, words) in sent {
                for word in words {
                    if self.members[usize::from(to.0)].away || self.chance(self.late) {
                        let sent = &mut self.members[usize::from(by.0)].sent;
                        sent.entry(to).or_default().push(word);
                    } else {
                        self.members[usize::from(to.0)].maker.hear(by, &word);
                    }
                }
            }
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SmootherId> + use<> {
        (0..u16::try_from(self.members.len()).unwrap()).map(id)
    }

    /// A member starts from its ledger, and hears again what was said to it.
    pub(crate) fn restart(&mut self, by: SmootherId) {
        self.crashes += 1;
        let at = usize::from(by.0);
        let mut maker = restored(&self.circle, by, &self.members[at].ledger);
        for other in self.ids().filter(|other| *other != by) {
            let from = &self.members[usize::from(other.0)];
            let waiting = from.sent.get(&by);
            for (to, word) in &from.shown {
                let on_its_way = waiting.is_some_and(|words| words.contains(word));
                if *to == by && !on_its_way {
                    maker.hear(other, word);
                }
            }
        }
        self.members[at].maker = maker;
    }

    /// The key that a quorum has signed at one attempt, by members that do not lie; a liar has
    /// signed everything.
    pub(crate) fn decided(&self) -> BTreeSet<Digest> {
        let liars = self.members.iter().filter(|member| member.lie.is_some()).count();
        let mut signed: BTreeMap<(u32, Digest), usize> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.lie.is_none()) {
            for (attempt, key) in &member.cards {
                *signed.entry((*attempt, *key.transcript())).or_default() += 1;
            }
        }
        let enough = |count: &usize| count + liars >= self.circle.quorum();
        signed.iter().filter(|(_, count)| enough(count)).map(|((_, key), _)| *key).collect()
    }

    fn assert_one_key(&self) {
        assert!(self.decided().len() <= 1, "two keys of one key epoch");
    }

    /// Goes on until all that are there and keep to the protocol have signed one card.
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

    /// As many as the threshold hold shares of it, without whoever lies.
    fn assert_held(&self, key: &SharedKey) {
        let honest = self.members.iter().filter(|member| member.lie.is_none());
        let holders = honest.filter(|member| member.maker.share(key).is_some()).count();
        assert!(holders >= usize::from(key.committee().threshold()), "{holders} shares");
    }

    pub(crate) fn faults(&self) -> BTreeSet<(SmootherId, Fault)> {
        let honest = self.members.iter().filter(|member| member.lie.is_none() && !member.away);
        honest.flat_map(|member| member.maker.faults().copied()).collect()
    }

    /// Everybody who is blamed for something by somebody that keeps to the protocol.
    pub(crate) fn blamed(&self) -> BTreeSet<u16> {
        self.faults().into_iter().map(|(by, _)| by.0).collect()
    }

    /// A member deals so that what is sealed for another does not open.
    pub(crate) fn misdeal(&mut self, by: u16, to: u16) {
        let n = self.members.len();
        while !self.member(by).ledger.contains_key(b"d".as_slice()) {
            self.round_but_silent(by);
        }
        let member = self.member(by);
        let mut dealing = member.ledger[b"d".as_slice()].clone();
        let at = dealing.len() - (n - usize::from(to)) * 80 + 40;
        dealing[at] ^= 1;
        let (key, word) =
            member.ledger.iter().find(|(key, _)| key.starts_with(&[b'w', 2])).unwrap();
        let (key, word) = (key.clone(), word.clone());
        let word: Signed<KeyWord> = postcard_of(&word);
        let mut word = word.open(&signing(id(by)).verifying_key()).unwrap().into_inner();
        let ceremony = self.ceremony_of(by);
        let parts: [&[u8]; 3] = [ceremony.as_bytes(), &by.to_be_bytes(), &dealing];
        let pledge = labelled(alpheus_crypto::labels::STATISTICS_KEY_PLEDGE, &parts);
        word.what = What::Pledge(ceremony, pledge);
        let signed = Signed::new(&word, &signing(id(by)));
        let member = self.member(by);
        let put = alpheus_crypto::ledger::put;
        let changes = [put(b"d".to_vec(), dealing), put(key, bytes_of(&signed))];
        member.ledger.commit(&changes).unwrap();
        self.restart(id(by));
        self.send(id(by), vec![signed]);
    }

    /// The pledge that a member is about to say does not leave.
    fn round_but_silent(&mut self, by: u16) {
        let lie = self.member(by).lie.take();
        self.member(by).lie = Some(Box::new(|_, word| match word.what {
            What::Pledge(..) => vec![],
            _ => vec![word],
        }));
        self.round();
        self.member(by).lie = lie;
    }

    /// The ceremony that a member is in, from its roster.
    fn ceremony_of(&mut self, by: u16) -> Digest {
        use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
        let attempt = self.member(by).maker.attempt().unwrap();
        let convener = self.circle.convener(attempt);
        let shown = &self.members[usize::from(convener.0)].shown;
        let roster = shown.iter().find_map(|(_, word)| {
            let word = word.open(&signing(convener).verifying_key()).unwrap().into_inner();
            match word.what {
                What::Roster(list) => Some(list),
                _ => None,
            }
        });
        let committee = *self.circle.committee();
        let announced = roster.unwrap().into_iter().map(|(member, word)| {
            let word = word.open(&signing(member).verifying_key()).unwrap().into_inner();
            let What::Announcement(key, _) = word.what else { panic!("no announcement") };
            Announcement { committee: committee.digest(), attempt, member: member.0, key }
        });
        *Ceremony::new(committee, attempt, &announced.collect::<Vec<_>>()).digest()
    }
}

pub(crate) fn restored(circle: &Circle, by: SmootherId, ledger: &Ledger) -> KeyMaker {
    KeyMaker::restore(circle.clone(), by, PATIENCE, ledger.clone()).unwrap()
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
