//! Making the key of a key epoch while fewer than t smoothers are absent, silent or lie.
//!
//! An attempt is one ceremony of [`crate::threshold`]. Its *convener* lists what counts as
//! received, so that all settle the same key; every attempt has another convener. A key is used
//! once a quorum has signed its card, and its card is signed once a quorum has voted for it. A
//! smoother that leaves an attempt shows the last certificate of such votes that it has seen. An
//! attempt whose roster shows one votes for that key again instead of making another. So two keys
//! of a key epoch never both have a quorum's cards, whatever clocks say.
//!
//! Time is used for timeouts only, and may be any clock that moves forward.

mod fault;
mod messages;
mod outbox;
mod progress;
mod records;

pub use fault::FaultError;
pub use messages::{
    AttributedMessage, Content, KeyCertificate, KeyMessage, Participants, Vote, longest_message,
    shared_digest,
};

use crate::configuration::SmootherId;
use crate::error::ShareError;
use crate::messages::encode;
use crate::threshold::dealing::{Dealer, Dealing};
use crate::threshold::{KeyShare, Member, SharedKey};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{DamagedLedgerError, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use messages::{ANNOUNCEMENT, DEALING, Kind, OUTCOME, PLEDGED, ROSTER, VOTE};
use outbox::Outbox;
use progress::{Outcome, Progress, Roster, is_earlier};
use rand_core::CryptoRng;
use records::Record;
use std::collections::{BTreeMap, BTreeSet};

/// How long to wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For messages that honest members send at once.
    pub message: Span,
    /// For the first attempt. Each later one gets twice as long, up to 64 times.
    pub attempt: Span,
}

/// Messages to send, and a key whose card is to be signed.
#[derive(Debug, Default)]
pub struct KeymakingOutput {
    /// To all smoothers.
    pub messages: Vec<Signed<KeyMessage>>,
    /// A quorum has voted for this key at the current attempt. Sign its card, with the share from
    /// [`KeyMaker::share`], in the commit of this step. It may be returned again.
    pub key: Option<SharedKey>,
}

/// A member's messages of its last attempt.
#[derive(Default)]
struct MemberMessages {
    attempt: u32,
    messages: BTreeMap<Kind, (Content, Signed<KeyMessage>)>,
}

/// One smoother's part in making a key.
pub struct KeyMaker {
    participants: Participants,
    id: SmootherId,
    timeouts: Timeouts,
    attempt: Option<u32>,
    /// When it entered the attempt, by this run's clock.
    entered: Option<Timestamp>,
    /// When it was last polled.
    polled: Option<Timestamp>,
    progress: Progress,
    /// Of this attempt; destroyed with the vote or when the attempt is left.
    seed: Option<Secret<32>>,
    stored_dealing: Option<Vec<u8>>,
    dealer: Option<Dealer>,
    received: BTreeMap<SmootherId, MemberMessages>,
    certificate: Option<KeyCertificate>,
    /// Of keys that it has voted for: any of them may be chosen.
    shares: BTreeMap<Digest, (SharedKey, KeyShare)>,
    faults: BTreeSet<(SmootherId, FaultError)>,
}

/// How often an attempt's time is doubled at most.
const DOUBLINGS: u32 = 6;

impl KeyMaker {
    /// A smoother's part, from its ledger; without records for a new key. A smoother that may have
    /// forgotten its messages takes no part.
    ///
    /// # Errors
    /// [`DamagedLedgerError`].
    pub fn restore(
        participants: Participants,
        id: SmootherId,
        timeouts: Timeouts,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, DamagedLedgerError> {
        let mut maker = Self {
            participants,
            id,
            timeouts,
            attempt: None,
            entered: None,
            polled: None,
            progress: Progress::default(),
            seed: None,
            stored_dealing: None,
            dealer: None,
            received: BTreeMap::new(),
            certificate: None,
            shares: BTreeMap::new(),
            faults: BTreeSet::new(),
        };
        for (key, value) in records {
            match records::read(&key, &value)? {
                Record::Attempt(attempt) => maker.attempt = Some(attempt),
                Record::Seed(seed) => maker.seed = Some(seed),
                Record::Dealing(dealing) => maker.stored_dealing = Some(dealing),
                Record::Message(message) => maker.handle(&message, id),
                Record::Certificate(certificate) => maker.certificate = Some(*certificate),
                Record::Share(key, share) => {
                    let share =
                        KeyShare::restore(&key, id.0, &share).map_err(|_| DamagedLedgerError)?;
                    maker.shares.insert(*key.transcript(), (*key, share));
                }
            }
        }
        Ok(maker)
    }

    /// Its messages from before a restart, to be sent again.
    #[must_use]
    pub fn sent(&self) -> Vec<Signed<KeyMessage>> {
        let own = self.received.get(&self.id).into_iter();
        own.flat_map(|received| received.messages.values().map(|(_, message)| message.clone()))
            .collect()
    }

    /// The attempt that it takes part in.
    #[must_use]
    pub fn attempt(&self) -> Option<u32> {
        self.attempt
    }

    /// Which members have broken the protocol since this start, and how.
    pub fn faults(&self) -> impl Iterator<Item = &(SmootherId, FaultError)> {
        self.faults.iter()
    }

    fn blame(&mut self, by: impl Into<SmootherId>, fault: FaultError) {
        let by = by.into();
        if by != self.id {
            self.faults.insert((by, fault));
        }
    }

    /// Accepts a message, in any order and any number of times. One without its smoother's
    /// signature is ignored. Poll next.
    pub fn handle(&mut self, signed: &Signed<KeyMessage>, by: SmootherId) {
        let Some(message) = self.participants.open(&(by, signed.clone())) else { return };
        let long = encode(&message).len() > longest_message(self.participants.members());
        if long || !message.content.is_well_formed(self.participants.committee()) {
            self.blame(by, FaultError::Malformed);
            return;
        }
        if message.content.is_from_convener() && self.participants.convener(message.attempt) != by {
            self.blame(by, FaultError::NotConvener);
            return;
        }
        let received = self.received.entry(by).or_default();
        if message.attempt > received.attempt {
            *received = MemberMessages { attempt: message.attempt, messages: BTreeMap::new() };
        }
        if message.attempt < received.attempt {
            return;
        }
        let kind = message.content.kind();
        let (known, _) =
            received.messages.entry(kind).or_insert((message.content.clone(), signed.clone()));
        if *known != message.content {
            self.blame(by, FaultError::Twice);
        }
    }

    /// Does what time and the messages so far allow, and returns new messages. Those of an earlier
    /// run are in [`KeyMaker::sent`].
    pub fn poll(
        &mut self,
        now: Timestamp,
        signing: &SigningKey,
        rng: &mut impl CryptoRng,
    ) -> Step<KeymakingOutput> {
        let mut outbox = Outbox::new(signing);
        self.polled = Some(now);
        let entered = *self.entered.get_or_insert(now);
        if let Some(attempt) = self.next_attempt(now, entered) {
            self.enter(attempt, now, &mut outbox, rng);
        }
        loop {
            self.read(now);
            let Some(content) = self.next_message(now, &mut outbox, rng) else { break };
            self.send(content, &mut outbox);
        }
        self.certify(&mut outbox);
        let attempt = self.attempt;
        let running = self.certificate.as_ref().filter(|known| Some(known.attempt) == attempt);
        let key = running.map(|certificate| certificate.key.clone());
        let Outbox { changes, messages, .. } = outbox;
        Step::new(changes, KeymakingOutput { messages, key })
    }

    /// When to poll next, unless a message arrives first. Before the first poll: at once.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let (Some(polled), Some(entered), Some(attempt)) =
            (self.polled, self.entered, self.attempt)
        else {
            return Some(Timestamp(0));
        };
        let since = self.progress.since.unwrap_or(entered);
        let waits = [1, 3].map(|times| since.plus(self.message_timeouts(times)));
        let end = entered.plus(self.attempt_limit(attempt));
        waits.into_iter().chain([end]).filter(|due| *due > polled).min()
    }

    fn message_timeouts(&self, times: u64) -> Span {
        Span(self.timeouts.message.0.saturating_mul(times))
    }

    fn attempt_limit(&self, attempt: u32) -> Span {
        Span(self.timeouts.attempt.0.saturating_mul(1 << attempt.min(DOUBLINGS)))
    }

    /// The share of a key, if it has one: it voted for the key.
    #[must_use]
    pub fn share(&self, key: &SharedKey) -> Option<KeyShare> {
        let (_, share) = self.shares.get(key.transcript())?;
        KeyShare::restore(key, self.id.0, &share.expose()).ok()
    }

    /// Destroys everything that a key was made from, once a quorum has signed its card. Take the
    /// [share](KeyMaker::share) first.
    pub fn end(self) -> Step<()> {
        let mut changes = vec![
            records::no_attempt(),
            records::seed(None),
            records::dealing(None),
            records::certificate(None),
        ];
        let own =
            self.received.get(&self.id).into_iter().flat_map(|received| received.messages.keys());
        changes.extend(own.map(|kind| records::message(*kind, None)));
        changes.extend(self.shares.keys().map(records::no_share));
        Step::new(changes, ())
    }

    /// The attempt to enter now, if any: the first; the next when this one has had its time; or a
    /// later one that t others are in, one of them honest.
    fn next_attempt(&self, now: Timestamp, entered: Timestamp) -> Option<u32> {
        let announced = self.received.iter().filter(|(by, received)| {
            **by != self.id && received.messages.contains_key(&ANNOUNCEMENT)
        });
        let mut attempts: Vec<u32> = announced.map(|(_, received)| received.attempt).collect();
        attempts.sort_unstable_by(|a, b| b.cmp(a));
        let others = attempts.get(self.participants.threshold() - 1).copied();
        let Some(attempt) = self.attempt else { return Some(others.unwrap_or(0)) };
        let over = now >= entered.plus(self.attempt_limit(attempt));
        let next = if over { attempt.checked_add(1) } else { None };
        next.max(others).filter(|due| *due > attempt)
    }

    /// Leaves the current attempt for good.
    fn enter(
        &mut self,
        attempt: u32,
        now: Timestamp,
        outbox: &mut Outbox<'_>,
        rng: &mut impl CryptoRng,
    ) {
        self.blame_silence();
        let sent = self.received.remove(&self.id).unwrap_or_default().messages;
        outbox.changes.extend(sent.keys().map(|kind| records::message(*kind, None)));
        let seed = Secret::random(rng);
        outbox.changes.push(records::attempt(attempt));
        outbox.changes.push(records::seed(Some(&seed)));
        outbox.changes.push(records::dealing(None));
        (self.attempt, self.entered, self.seed) = (Some(attempt), Some(now), Some(seed));
        (self.progress, self.stored_dealing, self.dealer) = (Progress::default(), None, None);
    }

    /// Blames a convener that has kept an attempt from ending.
    fn blame_silence(&mut self) {
        let Some(attempt) = self.attempt else { return };
        let Progress { roster, pledges, outcome, invalid, .. } = &self.progress;
        let fresh = roster.as_ref().is_none_or(|roster| roster.renewal.is_none());
        let ended = roster.is_some() && (!fresh || pledges.is_some() && outcome.is_some());
        if !ended && !invalid {
            self.blame(self.participants.convener(attempt), FaultError::Silent);
        }
    }

    /// A member's message of a kind at the current attempt.
    fn message(&self, by: SmootherId, kind: Kind) -> Option<&Content> {
        let received =
            self.received.get(&by).filter(|received| Some(received.attempt) == self.attempt)?;
        received.messages.get(&kind).map(|(content, _)| content)
    }

    fn has_sent(&self, kind: Kind) -> bool {
        self.message(self.id, kind).is_some()
    }

    fn ids(&self) -> impl Iterator<Item = SmootherId> + use<> {
        (0..self.participants.committee().members()).map(SmootherId)
    }

    /// Reads the convener's lists and the dealings.
    fn read(&mut self, now: Timestamp) {
        let Some(attempt) = self.attempt else { return };
        let convener = self.participants.convener(attempt);
        if let Err(fault) = self.read_lists(attempt, convener, now) {
            self.progress.invalid = true;
            self.blame(convener, fault);
        }
        self.read_dealings();
    }

    fn read_lists(
        &mut self,
        attempt: u32,
        convener: SmootherId,
        now: Timestamp,
    ) -> Result<(), FaultError> {
        if self.progress.invalid {
            return Ok(());
        }
        if self.progress.roster.is_none()
            && let Some(Content::Roster(list)) = self.message(convener, ROSTER)
        {
            let roster = Roster::read(&self.participants, attempt, list)?;
            let absent = self.ids().filter(|id| {
                !roster.present.contains(&id.0) && self.message(*id, ANNOUNCEMENT).is_none()
            });
            let absent: Vec<SmootherId> = absent.collect();
            absent.into_iter().for_each(|id| self.blame(id, FaultError::Absent));
            (self.progress.roster, self.progress.since) = (Some(roster), Some(now));
        }
        let Some(roster) = &self.progress.roster else { return Ok(()) };
        if self.progress.pledges.is_none()
            && let Some(Content::Pledged(list)) = self.message(convener, PLEDGED)
        {
            let pledges = roster.pledges(&self.participants, attempt, list)?;
            (self.progress.pledges, self.progress.since) = (Some(pledges), Some(now));
        }
        let (Some(roster), Some(pledges)) = (&self.progress.roster, &self.progress.pledges) else {
            return Ok(());
        };
        if self.progress.outcome.is_none()
            && let Some(Content::Outcome(list)) = self.message(convener, OUTCOME)
        {
            let outcome: Outcome = roster.outcome(&self.participants, (attempt, pledges), list)?;
            let open =
                |dealer: &&Member| outcome.dealings.iter().any(|dealt| dealt.dealer() == **dealer);
            let open: Vec<Member> =
                outcome.settlement.left_out().iter().filter(open).copied().collect();
            (self.progress.outcome, self.progress.since) = (Some(outcome), Some(now));
            open.into_iter().for_each(|dealer| self.blame(SmootherId(dealer), FaultError::Answer));
        }
        Ok(())
    }

    fn read_dealings(&mut self) {
        let (Some(roster), Some(pledges)) = (&self.progress.roster, &self.progress.pledges) else {
            return;
        };
        let mut found = Vec::new();
        for (member, pledge) in pledges {
            let new = !self.progress.dealings.contains_key(member);
            if let (true, Some(Content::Dealing(bytes))) =
                (new, self.message(SmootherId(*member), DEALING))
            {
                found.push((*member, roster.verify_dealing(pledge, bytes)));
            }
        }
        for (member, dealt) in found {
            if let Err(why) = dealt {
                self.blame(SmootherId(member), FaultError::Dealing(why));
            }
            self.progress.dealings.insert(member, dealt);
        }
    }

    /// Records a quorum of votes.
    fn certify(&mut self, outbox: &mut Outbox<'_>) {
        let Some(attempt) = self.attempt else { return };
        let Some(key) = self.resulting_key().cloned() else { return };
        if self.certificate.as_ref().is_some_and(|known| known.attempt == attempt) {
            return;
        }
        let (digest, mut votes) = (shared_digest(&key), Vec::new());
        for by in self.ids() {
            let Some(Content::Vote(vote)) = self.message(by, VOTE) else { continue };
            match self.participants.vote(attempt, (by, vote)) {
                Some(other) if other == digest => votes.push((by, vote.clone())),
                // The convener may have sent it something else.
                Some(_) => {}
                None => self.blame(by, FaultError::Vote),
            }
        }
        if votes.len() >= self.participants.quorum() {
            let certificate = KeyCertificate { key, attempt, votes };
            outbox.changes.push(records::certificate(Some(&certificate)));
            self.certificate = Some(certificate);
        }
    }

    /// The key that results from the convener's lists.
    fn resulting_key(&self) -> Option<&SharedKey> {
        let roster = self.progress.roster.as_ref()?;
        match &roster.renewal {
            Some(certificate) => Some(&certificate.key),
            None => self.progress.outcome.as_ref().map(|outcome| outcome.settlement.key()),
        }
    }

    /// Whether an announcement may be on a roster.
    fn check_announcement(&self, attempt: u32, content: &Content) -> Result<(), FaultError> {
        match content {
            Content::Announcement(_, Some(shown))
                if !is_earlier(&self.participants, attempt, shown) =>
            {
                Err(FaultError::Prepared)
            }
            _ => Ok(()),
        }
    }
}

/// The dealer again, from the stored dealing.
fn dealer_of(
    roster: &Roster,
    id: SmootherId,
    seed: &Secret<32>,
    stored_dealing: Option<&Vec<u8>>,
    rng: &mut impl CryptoRng,
) -> Option<Dealer> {
    match stored_dealing {
        None => Dealer::new(&roster.ceremony, id.0, seed, rng).ok(),
        Some(bytes) => {
            let dealing = Dealing::from_bytes(bytes, &roster.ceremony).ok()?;
            Dealer::restore(&roster.ceremony, id.0, seed, dealing).ok()
        }
    }
}

/// The share that results from an outcome, and the dealers whose shares do not fit.
fn share_of(
    outcome: &Outcome,
    dealer: &Dealer,
    id: SmootherId,
) -> (Result<KeyShare, ShareError>, Vec<Member>) {
    let (mut taken, mut unfit) = (Vec::new(), Vec::new());
    for dealt in &outcome.dealings {
        match dealer.open_share(dealt) {
            Ok(share) => taken.push(share),
            Err(_) => unfit.push(dealt.dealer()),
        }
    }
    (outcome.settlement.share(id.0, taken), unfit)
}
