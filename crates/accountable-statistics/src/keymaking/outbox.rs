//! A member's next message: its own ones, and the convener's lists.

use super::messages::{
    ANNOUNCEMENT, ANSWER, AttributedMessage, Content, DEALING, KeyMessage, Kind, OUTCOME, PLEDGE,
    PLEDGED, ROSTER, VERDICT, VOTE, Vote, shared_digest,
};
use super::progress::{Progress, Roster};
use super::{FaultError, KeyMaker, dealer_of, records, share_of};
use crate::configuration::SmootherId;
use crate::threshold::Member;
use crate::threshold::ceremony::Announcement;
use crate::threshold::dealing::{Complaint, Pledge};
use alpheus_crypto::ledger::Change;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use rand_core::CryptoRng;

/// Changes to make durable, and messages to send then.
pub(super) struct Outbox<'a> {
    pub(super) changes: Vec<Change>,
    pub(super) messages: Vec<Signed<KeyMessage>>,
    signing: &'a SigningKey,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(signing: &'a SigningKey) -> Self {
        Self { changes: Vec::new(), messages: Vec::new(), signing }
    }
}

impl KeyMaker {
    /// Sends a message, once it is durable.
    pub(super) fn send(&mut self, content: Content, outbox: &mut Outbox<'_>) {
        let Some(attempt) = self.attempt else { return };
        let kind = content.kind();
        let message =
            KeyMessage { epoch: self.participants.epoch(), attempt, by: self.id, content };
        let signed = Signed::new(&message, outbox.signing);
        outbox.changes.push(records::message(kind, Some(&signed)));
        let own = self.received.entry(self.id).or_default();
        own.attempt = attempt;
        own.messages.insert(kind, (message.content, signed.clone()));
        outbox.messages.push(signed);
    }

    /// The next message, if there is one.
    pub(super) fn next_message(
        &mut self,
        now: Timestamp,
        outbox: &mut Outbox<'_>,
        rng: &mut impl CryptoRng,
    ) -> Option<Content> {
        let attempt = self.attempt?;
        if !self.has_sent(ANNOUNCEMENT) {
            return self.announcement(attempt);
        }
        let convenes = self.participants.convener(attempt) == self.id;
        if convenes && let Some(content) = self.convene(attempt, now) {
            return Some(content);
        }
        if self.has_sent(VOTE) || self.progress.invalid {
            return None;
        }
        if self.progress.roster.as_ref()?.renewal.is_some() {
            return self.vote(attempt, outbox);
        }
        self.restore_dealer(rng);
        self.pledge(outbox)
            .or_else(|| self.dealing())
            .or_else(|| self.verdict(now))
            .or_else(|| self.answer())
            .or_else(|| self.store_share(outbox))
            .or_else(|| {
                if self.progress.outcome.is_some() { self.vote(attempt, outbox) } else { None }
            })
    }

    fn announcement(&self, attempt: u32) -> Option<Content> {
        let (committee, seed) = (self.participants.committee(), self.seed.as_ref()?);
        let announced = Announcement::new(committee, attempt, self.id.0, seed).ok()?;
        Some(Content::Announcement(announced.key, self.certificate.clone().map(Box::new)))
    }

    fn restore_dealer(&mut self, rng: &mut impl CryptoRng) {
        let (Some(roster), Some(seed)) = (&self.progress.roster, &self.seed) else { return };
        if self.dealer.is_none() && roster.present.contains(&self.id.0) {
            self.dealer = dealer_of(roster, self.id, seed, self.stored_dealing.as_ref(), rng);
        }
    }

    fn pledge(&mut self, outbox: &mut Outbox<'_>) -> Option<Content> {
        let dealer = self.dealer.as_ref().filter(|_| !self.has_sent(PLEDGE))?;
        let (dealing, pledge) = (dealer.dealing().to_bytes(), dealer.pledge());
        outbox.changes.push(records::dealing(Some(dealing.clone())));
        self.stored_dealing = Some(dealing);
        Some(Content::Pledge(pledge.ceremony, pledge.dealing))
    }

    fn dealing(&self) -> Option<Content> {
        let dealer = self.dealer.as_ref().filter(|_| !self.has_sent(DEALING))?;
        let pledges: Vec<Pledge> = self.progress.pledges.as_ref()?.values().copied().collect();
        Some(Content::Dealing(dealer.reveal(&pledges).ok()?.to_bytes()))
    }

    /// Whether so many message timeouts have passed since the convener's last list.
    fn has_timed_out(&self, now: Timestamp, times: u64) -> bool {
        let since = self.progress.since.or(self.entered);
        since.is_some_and(|since| now >= since.plus(self.message_timeouts(times)))
    }

    fn verdict(&mut self, now: Timestamp) -> Option<Content> {
        if self.has_sent(VERDICT) {
            return None;
        }
        let (dealer, pledges) = (self.dealer.as_ref()?, self.progress.pledges.as_ref()?);
        let missing = pledges.keys().filter(|member| !self.progress.dealings.contains_key(member));
        let missing: Vec<Member> = missing.copied().collect();
        if !missing.is_empty() && !self.has_timed_out(now, 1) {
            return None;
        }
        let dealt = self.progress.dealings.values().filter_map(|dealt| dealt.as_ref().ok());
        let unfit = dealt.filter(|dealt| dealer.open_share(dealt).is_err());
        let unfit: Vec<Member> = unfit.map(|dealt| dealt.dealer()).collect();
        missing.iter().for_each(|member| self.blame(SmootherId(*member), FaultError::NotShown));
        unfit.iter().for_each(|member| self.blame(SmootherId(*member), FaultError::Share));
        Some(Content::Verdict(unfit))
    }

    /// A member's complaints at the current attempt.
    fn complaints(&self, by: SmootherId) -> Vec<Complaint> {
        let (Some(roster), Some(Content::Verdict(dealers))) =
            (&self.progress.roster, self.message(by, VERDICT))
        else {
            return Vec::new();
        };
        roster.complaints(by.0, dealers)
    }

    /// An answer to a complaint about this member's dealing, which all have seen.
    fn answer(&mut self) -> Option<Content> {
        let dealer = self.dealer.as_ref().filter(|_| self.has_sent(DEALING))?;
        let mut answer = None;
        let mut faulty = Vec::new();
        for by in self.ids().filter(|by| !self.has_sent((ANSWER, by.0))) {
            let complaints = self.complaints(by);
            if complaints.len() >= self.participants.threshold() {
                faulty.push(by);
            }
            answer = answer.or_else(|| dealer.answers(&complaints).into_iter().next());
        }
        faulty.into_iter().for_each(|by| self.blame(by, FaultError::Complaints));
        answer.map(|answer| Content::Answer(answer.complaint.accuser, answer.share))
    }

    /// Stores this member's share of the settled key.
    fn store_share(&mut self, outbox: &mut Outbox<'_>) -> Option<Content> {
        let (outcome, dealer) = (self.progress.outcome.as_ref()?, self.dealer.as_ref()?);
        let key = outcome.settlement.key().clone();
        if self.shares.contains_key(key.transcript()) {
            return None;
        }
        let (share, unfit) = share_of(outcome, dealer, self.id);
        unfit.into_iter().for_each(|member| self.blame(SmootherId(member), FaultError::Share));
        let share = share.ok()?;
        outbox.changes.push(records::share(&key, &share));
        self.shares.insert(*key.transcript(), (key, share));
        None
    }

    /// A vote for the resulting key; for a new key, only with a share of it. Destroys the seed.
    fn vote(&mut self, attempt: u32, outbox: &mut Outbox<'_>) -> Option<Content> {
        let renewal = self.progress.roster.as_ref()?.renewal.is_some();
        let key = self.resulting_key()?;
        if !renewal && !self.shares.contains_key(key.transcript()) {
            return None;
        }
        let vote = Vote { epoch: self.participants.epoch(), attempt, key: shared_digest(key) };
        outbox.changes.extend([records::seed(None), records::dealing(None)]);
        (self.seed, self.stored_dealing, self.dealer) = (None, None, None);
        Some(Content::Vote(Signed::new(&vote, outbox.signing)))
    }
}

/// The convener's part.
impl KeyMaker {
    fn convene(&mut self, attempt: u32, now: Timestamp) -> Option<Content> {
        let Progress { roster, pledges, .. } = &self.progress;
        match (roster, pledges) {
            (None, _) if !self.has_sent(ROSTER) => self.roster(attempt, now),
            (Some(Roster { renewal: None, .. }), None) if !self.has_sent(PLEDGED) => {
                self.pledged(now)
            }
            (Some(Roster { renewal: None, .. }), Some(_)) if !self.has_sent(OUTCOME) => {
                self.outcome(now)
            }
            _ => None,
        }
    }

    /// Messages of a kind, as they were signed.
    fn messages(&self, by: &[SmootherId], kind: impl Fn(Kind) -> bool) -> Vec<AttributedMessage> {
        let received = |by: &SmootherId| {
            let received =
                self.received.get(by).filter(|received| Some(received.attempt) == self.attempt);
            let messages = received.into_iter().flat_map(|received| &received.messages);
            let ours = messages.filter(|(other, _)| kind(**other));
            ours.map(|(_, (_, signed))| (*by, signed.clone())).collect::<Vec<_>>()
        };
        by.iter().flat_map(received).collect()
    }

    fn roster(&mut self, attempt: u32, now: Timestamp) -> Option<Content> {
        let mut good = Vec::new();
        for by in self.ids() {
            match self
                .message(by, ANNOUNCEMENT)
                .map(|content| self.check_announcement(attempt, content))
            {
                Some(Ok(())) => good.push(by),
                Some(Err(fault)) => self.blame(by, fault),
                None => {}
            }
        }
        let enough = good.len() >= self.participants.honest() && self.has_timed_out(now, 1);
        let all = good.len() == self.participants.members();
        (all || enough).then(|| Content::Roster(self.messages(&good, |kind| kind == ANNOUNCEMENT)))
    }

    /// The members on the roster.
    fn present(&self) -> Vec<SmootherId> {
        let roster = self.progress.roster.as_ref();
        roster.into_iter().flat_map(|roster| &roster.present).map(|id| SmootherId(*id)).collect()
    }

    fn pledged(&self, now: Timestamp) -> Option<Content> {
        let (present, ceremony) =
            (self.present(), *self.progress.roster.as_ref()?.ceremony.digest());
        let ours = |by: &SmootherId| match self.message(*by, PLEDGE) {
            Some(Content::Pledge(other, _)) => *other == ceremony,
            _ => false,
        };
        let pledged: Vec<SmootherId> = present.iter().filter(|by| ours(by)).copied().collect();
        let pledges = self.messages(&pledged, |kind| kind == PLEDGE);
        let enough = pledges.len() >= self.participants.honest() && self.has_timed_out(now, 1);
        (pledges.len() == present.len() || enough).then_some(Content::Pledged(pledges))
    }

    fn outcome(&mut self, now: Timestamp) -> Option<Content> {
        let present = self.present();
        let all = present.iter().all(|by| self.message(*by, VERDICT).is_some());
        let complaints = present.iter().flat_map(|by| self.complaints(*by));
        let answered = complaints.into_iter().all(|complaint| {
            let grounded = self.complaints(SmootherId(complaint.accuser)).len();
            let kind = (ANSWER, complaint.accuser);
            grounded >= self.participants.threshold()
                || self.message(SmootherId(complaint.dealer), kind).is_some()
        });
        let complete = all && answered;
        if !complete && !self.has_timed_out(now, 3) {
            return None;
        }
        let dealers: Vec<SmootherId> =
            self.progress.pledges.as_ref()?.keys().map(|id| SmootherId(*id)).collect();
        let mut list = self.messages(&dealers, |kind| kind == DEALING || kind.0 == ANSWER);
        list.extend(self.messages(&present, |kind| kind == VERDICT));
        let (roster, pledges) = (self.progress.roster.as_ref()?, self.progress.pledges.as_ref()?);
        // With too many at fault nothing is settled, and the convener is not to blame.
        roster.outcome(&self.participants, (self.attempt?, pledges), &list).ok()?;
        Some(Content::Outcome(list))
    }
}
