//! Making the key of a key epoch though fewer than t smoothers are away, silent or lie.
//!
//! An attempt is one ceremony of [`crate::threshold`] in which a *convener* says what all
//! have heard, so that all settle the same; every attempt has another one. A key is used
//! once a quorum has signed its card, and its card is signed once a quorum has voted for
//! it. Whoever leaves an attempt shows the last such certificate that it has seen, and an
//! attempt whose roster shows one votes for that key again instead of making another:
//! so no two keys of a key epoch ever have a quorum's cards, whatever clocks say.
//!
//! Time is only for patience, and may be any clock that goes forward.

mod course;
mod records;
mod saying;
mod words;

pub use words::{Circle, KeyWord, Prepared, Said, Vote, What, shared_digest};

use crate::configuration::SmootherId;
use crate::error::{BadDealing, BadShare};
use crate::threshold::dealing::{Dealer, Dealing};
use crate::threshold::{KeyShare, Member, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{DamagedLog, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use course::{Course, Outcome, Roster, is_earlier};
use rand_core::CryptoRng;
use records::Record;
use saying::Saying;
use std::collections::{BTreeMap, BTreeSet};
use words::{ANNOUNCEMENT, DEALING, Kind, OUTCOME, PLEDGED, ROSTER, VOTE};

/// How long to wait for others, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For words that whoever keeps to the protocol says at once.
    pub word: u64,
    /// For an attempt, the first one; each later one has twice as long, up to 64 times.
    pub attempt: u64,
}

/// How a smoother has not kept to the protocol, as this one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Fault {
    /// It has not announced itself in time.
    #[error("has not announced itself")]
    Absent,
    /// It was to convene, and has not.
    #[error("was to put together what all have said, and has not")]
    Silent,
    /// Two words of one kind.
    #[error("has said two things where one is to be said")]
    Twice,
    /// The convener's word, by somebody else.
    #[error("has said what only the convener may say")]
    NotConvener,
    /// The certificate that it shows is none.
    #[error("shows a certificate that does not hold")]
    Prepared,
    /// A list of what was not said, of words that do not belong there, or of too few.
    #[error("has put together what was not said, or too little of it")]
    List,
    /// A dealing that does not hold.
    #[error("has dealt what does not hold: {0}")]
    Dealing(BadDealing),
    /// It has pledged, and shown no dealing.
    #[error("has pledged a dealing and not shown it")]
    NotShown,
    /// What it has sealed for this smoother does not open, or does not fit.
    #[error("has sealed a share that does not open or does not fit")]
    Share,
    /// It complains of as many dealers as the threshold.
    #[error("complains of as many dealers as the threshold; its own key may be wrong")]
    Complaints,
    /// It has not answered a complaint, or with a share that does not fit.
    #[error("has left a complaint without an answer that fits")]
    Answer,
    /// A list that settles no key.
    #[error("has put together what settles no key")]
    Outcome,
    /// A vote that is none of this attempt.
    #[error("has given as a vote what is none")]
    Vote,
}

impl From<BadDealing> for Fault {
    fn from(why: BadDealing) -> Self {
        Self::Dealing(why)
    }
}

/// What a smoother says, and the key whose card it is to sign.
#[derive(Debug, Default)]
pub struct Talk {
    /// To all smoothers.
    pub words: Vec<Signed<KeyWord>>,
    /// A quorum has voted for it at the running attempt: sign its card, with the share that
    /// [`KeyMaker::share`] gives, in the commit of this step. It may come again.
    pub key: Option<SharedKey>,
}

/// What somebody has said at its last attempt.
#[derive(Default)]
struct Heard {
    attempt: u32,
    words: BTreeMap<Kind, (What, Signed<KeyWord>)>,
}

/// One smoother's part in making a key.
pub struct KeyMaker {
    circle: Circle,
    id: SmootherId,
    patience: Patience,
    attempt: Option<u32>,
    /// When it was entered, by this run's clock.
    entered: Option<Time>,
    course: Course,
    /// Of this attempt; destroyed with the vote, or when the attempt is left.
    seed: Option<Secret<32>>,
    stored: Option<Vec<u8>>,
    dealer: Option<Dealer>,
    heard: BTreeMap<SmootherId, Heard>,
    prepared: Option<Prepared>,
    /// Of keys that it has voted for: any of them may be the one.
    shares: BTreeMap<Digest, (SharedKey, KeyShare)>,
    faults: BTreeSet<(SmootherId, Fault)>,
}

/// The most times that an attempt's time is doubled.
const DOUBLINGS: u32 = 6;

impl KeyMaker {
    /// A smoother's part, as its ledger has it; none of it for a new key. A smoother that may
    /// have forgotten what it has said takes no part.
    ///
    /// # Errors
    /// [`DamagedLog`].
    pub fn restore(
        circle: Circle,
        id: SmootherId,
        patience: Patience,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, DamagedLog> {
        let mut maker = Self {
            circle,
            id,
            patience,
            attempt: None,
            entered: None,
            course: Course::default(),
            seed: None,
            stored: None,
            dealer: None,
            heard: BTreeMap::new(),
            prepared: None,
            shares: BTreeMap::new(),
            faults: BTreeSet::new(),
        };
        for (key, value) in records {
            match records::read(&key, &value)? {
                Record::Attempt(attempt) => maker.attempt = Some(attempt),
                Record::Seed(seed) => maker.seed = Some(seed),
                Record::Dealing(dealing) => maker.stored = Some(dealing),
                Record::Word(word) => maker.hear(id, &word),
                Record::Prepared(prepared) => maker.prepared = Some(*prepared),
                Record::Share(key, share) => {
                    let share = KeyShare::restore(&key, id.0, &share).map_err(|_| DamagedLog)?;
                    maker.shares.insert(*key.transcript(), (*key, share));
                }
            }
        }
        Ok(maker)
    }

    /// What was said before a restart, to be said again.
    #[must_use]
    pub fn said(&self) -> Vec<Signed<KeyWord>> {
        let own = self.heard.get(&self.id).into_iter();
        own.flat_map(|heard| heard.words.values().map(|(_, word)| word.clone())).collect()
    }

    /// The attempt that it takes part in.
    #[must_use]
    pub fn attempt(&self) -> Option<u32> {
        self.attempt
    }

    /// Who has not kept to the protocol, and how, since this start.
    pub fn faults(&self) -> impl Iterator<Item = &(SmootherId, Fault)> {
        self.faults.iter()
    }

    fn blame(&mut self, by: impl Into<SmootherId>, fault: Fault) {
        let by = by.into();
        if by != self.id {
            self.faults.insert((by, fault));
        }
    }

    /// Hears a word, in any order and as often as it comes. What does not bear its smoother's
    /// signature was said by nobody.
    pub fn hear(&mut self, by: SmootherId, signed: &Signed<KeyWord>) {
        let Some(word) = self.circle.open(&(by, signed.clone())) else { return };
        if word.what.is_the_conveners() && self.circle.convener(word.attempt) != by {
            self.blame(by, Fault::NotConvener);
            return;
        }
        let heard = self.heard.entry(by).or_default();
        if word.attempt > heard.attempt {
            *heard = Heard { attempt: word.attempt, words: BTreeMap::new() };
        }
        if word.attempt < heard.attempt {
            return;
        }
        let kind = word.what.kind();
        let (known, _) = heard.words.entry(kind).or_insert((word.what.clone(), signed.clone()));
        if *known != word.what {
            self.blame(by, Fault::Twice);
        }
    }

    /// Does what time and all that was heard allow, and says what is to be said. What was said
    /// in an earlier run is not in it: see [`KeyMaker::said`].
    pub fn poll(
        &mut self,
        now: Time,
        signing: &SigningKey,
        rng: &mut impl CryptoRng,
    ) -> Step<Talk> {
        let mut saying = Saying::new(signing);
        let entered = *self.entered.get_or_insert(now);
        if let Some(attempt) = self.due(now, entered) {
            self.enter(attempt, now, &mut saying, rng);
        }
        loop {
            self.read(now);
            let Some(what) = self.next(now, &mut saying, rng) else { break };
            self.say(what, &mut saying);
        }
        self.certify(&mut saying);
        let attempt = self.attempt;
        let running = self.prepared.as_ref().filter(|known| Some(known.attempt) == attempt);
        let key = running.map(|prepared| prepared.key.clone());
        let Saying { changes, words, .. } = saying;
        Step::new(changes, Talk { words, key })
    }

    /// The share of a key, if it has one: it voted for it.
    #[must_use]
    pub fn share(&self, key: &SharedKey) -> Option<KeyShare> {
        let (_, share) = self.shares.get(key.transcript())?;
        KeyShare::restore(key, self.id.0, &share.expose()).ok()
    }

    /// A quorum has signed a key's card: everything that the key was made from is destroyed.
    /// Take the [share](KeyMaker::share) before.
    pub fn end(self) -> Step<()> {
        let mut changes = vec![
            records::no_attempt(),
            records::seed(None),
            records::dealing(None),
            records::prepared(None),
        ];
        let own = self.heard.get(&self.id).into_iter().flat_map(|heard| heard.words.keys());
        changes.extend(own.map(|kind| records::word(*kind, None)));
        changes.extend(self.shares.keys().map(records::no_share));
        Step::new(changes, ())
    }

    /// The attempt to enter, if one is due: the first; the next when this one has had its time;
    /// or a later one that t others are in, one of whom keeps to the protocol.
    fn due(&self, now: Time, entered: Time) -> Option<u32> {
        let announced = self
            .heard
            .iter()
            .filter(|(by, heard)| **by != self.id && heard.words.contains_key(&ANNOUNCEMENT));
        let mut attempts: Vec<u32> = announced.map(|(_, heard)| heard.attempt).collect();
        attempts.sort_unstable_by(|a, b| b.cmp(a));
        let others = attempts.get(self.circle.threshold() - 1).copied();
        let Some(attempt) = self.attempt else { return Some(others.unwrap_or(0)) };
        let limit = self.patience.attempt.saturating_mul(1 << attempt.min(DOUBLINGS));
        let over = now.0.saturating_sub(entered.0) >= limit;
        let next = if over { attempt.checked_add(1) } else { None };
        next.max(others).filter(|due| *due > attempt)
    }

    /// Leaves the running attempt for good.
    fn enter(
        &mut self,
        attempt: u32,
        now: Time,
        saying: &mut Saying<'_>,
        rng: &mut impl CryptoRng,
    ) {
        self.blame_silence();
        let said = self.heard.remove(&self.id).unwrap_or_default().words;
        saying.changes.extend(said.keys().map(|kind| records::word(*kind, None)));
        let seed = Secret::random(rng);
        saying.changes.push(records::attempt(attempt));
        saying.changes.push(records::seed(Some(&seed)));
        saying.changes.push(records::dealing(None));
        (self.attempt, self.entered, self.seed) = (Some(attempt), Some(now), Some(seed));
        (self.course, self.stored, self.dealer) = (Course::default(), None, None);
    }

    /// Names a convener that has kept an attempt from ending.
    fn blame_silence(&mut self) {
        let Some(attempt) = self.attempt else { return };
        let Course { roster, pledges, outcome, spoilt, .. } = &self.course;
        let fresh = roster.as_ref().is_none_or(|roster| roster.renews.is_none());
        let ended = roster.is_some() && (!fresh || pledges.is_some() && outcome.is_some());
        if !ended && !spoilt {
            self.blame(self.circle.convener(attempt), Fault::Silent);
        }
    }

    /// What a member has said of a kind at the running attempt.
    fn word(&self, by: SmootherId, kind: Kind) -> Option<&What> {
        let heard = self.heard.get(&by).filter(|heard| Some(heard.attempt) == self.attempt)?;
        heard.words.get(&kind).map(|(what, _)| what)
    }

    fn own(&self, kind: Kind) -> bool {
        self.word(self.id, kind).is_some()
    }

    fn ids(&self) -> impl Iterator<Item = SmootherId> + use<> {
        (0..self.circle.committee().members()).map(SmootherId)
    }

    /// Reads what the convener has put together, and what was dealt.
    fn read(&mut self, now: Time) {
        let Some(attempt) = self.attempt else { return };
        let convener = self.circle.convener(attempt);
        if let Err(fault) = self.read_lists(attempt, convener, now) {
            self.course.spoilt = true;
            self.blame(convener, fault);
        }
        self.read_dealings();
    }

    fn read_lists(&mut self, attempt: u32, convener: SmootherId, now: Time) -> Result<(), Fault> {
        if self.course.spoilt {
            return Ok(());
        }
        if self.course.roster.is_none()
            && let Some(What::Roster(list)) = self.word(convener, ROSTER)
        {
            let roster = Roster::read(&self.circle, attempt, list)?;
            let absent = self.ids().filter(|id| {
                !roster.present.contains(&id.0) && self.word(*id, ANNOUNCEMENT).is_none()
            });
            let absent: Vec<SmootherId> = absent.collect();
            absent.into_iter().for_each(|id| self.blame(id, Fault::Absent));
            (self.course.roster, self.course.since) = (Some(roster), Some(now));
        }
        let Some(roster) = &self.course.roster else { return Ok(()) };
        if self.course.pledges.is_none()
            && let Some(What::Pledged(list)) = self.word(convener, PLEDGED)
        {
            let pledges = roster.pledges(&self.circle, attempt, list)?;
            (self.course.pledges, self.course.since) = (Some(pledges), Some(now));
        }
        let (Some(roster), Some(pledges)) = (&self.course.roster, &self.course.pledges) else {
            return Ok(());
        };
        if self.course.outcome.is_none()
            && let Some(What::Outcome(list)) = self.word(convener, OUTCOME)
        {
            let outcome: Outcome = roster.outcome(&self.circle, (attempt, pledges), list)?;
            let open =
                |dealer: &&Member| outcome.dealt.iter().any(|dealt| dealt.dealer() == **dealer);
            let open: Vec<Member> =
                outcome.settled.left_out().iter().filter(open).copied().collect();
            (self.course.outcome, self.course.since) = (Some(outcome), Some(now));
            open.into_iter().for_each(|dealer| self.blame(SmootherId(dealer), Fault::Answer));
        }
        Ok(())
    }

    fn read_dealings(&mut self) {
        let (Some(roster), Some(pledges)) = (&self.course.roster, &self.course.pledges) else {
            return;
        };
        let mut found = Vec::new();
        for (member, pledge) in pledges {
            let new = !self.course.dealt.contains_key(member);
            if let (true, Some(What::Dealing(bytes))) =
                (new, self.word(SmootherId(*member), DEALING))
            {
                found.push((*member, roster.dealt(pledge, bytes)));
            }
        }
        for (member, dealt) in found {
            if let Err(why) = dealt {
                self.blame(SmootherId(member), Fault::Dealing(why));
            }
            self.course.dealt.insert(member, dealt);
        }
    }

    /// Notes a quorum of votes.
    fn certify(&mut self, saying: &mut Saying<'_>) {
        let Some(attempt) = self.attempt else { return };
        let Some(key) = self.following().cloned() else { return };
        if self.prepared.as_ref().is_some_and(|known| known.attempt == attempt) {
            return;
        }
        let (digest, mut votes) = (shared_digest(&key), Vec::new());
        for by in self.ids() {
            let Some(What::Vote(vote)) = self.word(by, VOTE) else { continue };
            match self.circle.vote(attempt, (by, vote)) {
                Some(other) if other == digest => votes.push((by, vote.clone())),
                // The convener may have told it something else.
                Some(_) => {}
                None => self.blame(by, Fault::Vote),
            }
        }
        if votes.len() >= self.circle.quorum() {
            let prepared = Prepared { key, attempt, votes };
            saying.changes.push(records::prepared(Some(&prepared)));
            self.prepared = Some(prepared);
        }
    }

    /// The key that follows from the convener's words.
    fn following(&self) -> Option<&SharedKey> {
        let roster = self.course.roster.as_ref()?;
        match &roster.renews {
            Some(prepared) => Some(&prepared.key),
            None => self.course.outcome.as_ref().map(|outcome| outcome.settled.key()),
        }
    }

    /// Whether what somebody announces may stand on a roster.
    fn announces(&self, attempt: u32, what: &What) -> Result<(), Fault> {
        match what {
            What::Announcement(_, Some(shown)) if !is_earlier(&self.circle, attempt, shown) => {
                Err(Fault::Prepared)
            }
            _ => Ok(()),
        }
    }
}

/// A dealer again, from what is stored.
fn dealer_of(
    roster: &Roster,
    id: SmootherId,
    seed: &Secret<32>,
    stored: Option<&Vec<u8>>,
    rng: &mut impl CryptoRng,
) -> Option<Dealer> {
    match stored {
        None => Dealer::new(&roster.ceremony, id.0, seed, rng).ok(),
        Some(bytes) => {
            let dealing = Dealing::from_bytes(bytes, &roster.ceremony).ok()?;
            Dealer::restore(&roster.ceremony, id.0, seed, dealing).ok()
        }
    }
}

/// The share that follows from an outcome, and dealers whose shares it lacks.
fn share_of(
    outcome: &Outcome,
    dealer: &Dealer,
    id: SmootherId,
) -> (Result<KeyShare, BadShare>, Vec<Member>) {
    let (mut taken, mut unfit) = (Vec::new(), Vec::new());
    for dealt in &outcome.dealt {
        match dealer.take(dealt) {
            Ok(share) => taken.push(share),
            Err(_) => unfit.push(dealt.dealer()),
        }
    }
    (outcome.settled.share(id.0, taken), unfit)
}
