//! What a member says next: its own words, and the lists of whoever convenes.

use super::course::{Course, Roster};
use super::words::{
    ANNOUNCEMENT, ANSWER, DEALING, KeyWord, Kind, OUTCOME, PLEDGE, PLEDGED, ROSTER, Said, VERDICT,
    VOTE, Vote, What, shared_digest,
};
use super::{Fault, KeyMaker, dealer_of, records, share_of};
use crate::configuration::SmootherId;
use crate::threshold::Member;
use crate::threshold::ceremony::Announcement;
use crate::threshold::dealing::{Complaint, Pledge};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::ledger::Change;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;

/// What is to be made durable, and then said.
pub(super) struct Saying<'a> {
    pub(super) changes: Vec<Change>,
    pub(super) words: Vec<Signed<KeyWord>>,
    signing: &'a SigningKey,
}

impl<'a> Saying<'a> {
    pub(super) fn new(signing: &'a SigningKey) -> Self {
        Self { changes: Vec::new(), words: Vec::new(), signing }
    }
}

impl KeyMaker {
    /// Says something, once it is durable.
    pub(super) fn say(&mut self, what: What, saying: &mut Saying<'_>) {
        let Some(attempt) = self.attempt else { return };
        let kind = what.kind();
        let word = KeyWord { epoch: self.circle.epoch(), attempt, by: self.id, what };
        let signed = Signed::new(&word, saying.signing);
        saying.changes.push(records::word(kind, Some(&signed)));
        let own = self.heard.entry(self.id).or_default();
        own.attempt = attempt;
        own.words.insert(kind, (word.what, signed.clone()));
        saying.words.push(signed);
    }

    /// The next word, if there is one to say.
    pub(super) fn next(
        &mut self,
        now: Time,
        saying: &mut Saying<'_>,
        rng: &mut impl CryptoRng,
    ) -> Option<What> {
        let attempt = self.attempt?;
        if !self.own(ANNOUNCEMENT) {
            return self.announcement(attempt);
        }
        let convenes = self.circle.convener(attempt) == self.id;
        if convenes && let Some(what) = self.convene(attempt, now) {
            return Some(what);
        }
        if self.own(VOTE) || self.course.spoilt {
            return None;
        }
        if self.course.roster.as_ref()?.renews.is_some() {
            return self.vote(attempt, saying);
        }
        self.restore_dealer(rng);
        self.pledge(saying)
            .or_else(|| self.dealing())
            .or_else(|| self.verdict(now))
            .or_else(|| self.answer())
            .or_else(|| self.take_share(saying))
            .or_else(
                || if self.course.outcome.is_some() { self.vote(attempt, saying) } else { None },
            )
    }

    fn announcement(&self, attempt: u32) -> Option<What> {
        let (committee, seed) = (self.circle.committee(), self.seed.as_ref()?);
        let announced = Announcement::new(committee, attempt, self.id.0, seed).ok()?;
        Some(What::Announcement(announced.key, self.prepared.clone().map(Box::new)))
    }

    fn restore_dealer(&mut self, rng: &mut impl CryptoRng) {
        let (Some(roster), Some(seed)) = (&self.course.roster, &self.seed) else { return };
        if self.dealer.is_none() && roster.present.contains(&self.id.0) {
            self.dealer = dealer_of(roster, self.id, seed, self.stored.as_ref(), rng);
        }
    }

    fn pledge(&mut self, saying: &mut Saying<'_>) -> Option<What> {
        let dealer = self.dealer.as_ref().filter(|_| !self.own(PLEDGE))?;
        let (dealing, pledge) = (dealer.stored().to_bytes(), dealer.pledge());
        saying.changes.push(records::dealing(Some(dealing.clone())));
        self.stored = Some(dealing);
        Some(What::Pledge(pledge.ceremony, pledge.dealing))
    }

    fn dealing(&self) -> Option<What> {
        let dealer = self.dealer.as_ref().filter(|_| !self.own(DEALING))?;
        let pledges: Vec<Pledge> = self.course.pledges.as_ref()?.values().copied().collect();
        Some(What::Dealing(dealer.show(&pledges).ok()?.to_bytes()))
    }

    /// Whether so many times the patience for a word are over since the convener's last one.
    fn is_over(&self, now: Time, times: u64) -> bool {
        let since = self.course.since.or(self.entered);
        let wait = self.patience.word.saturating_mul(times);
        since.is_some_and(|since| now.0.saturating_sub(since.0) >= wait)
    }

    fn verdict(&mut self, now: Time) -> Option<What> {
        if self.own(VERDICT) {
            return None;
        }
        let (dealer, pledges) = (self.dealer.as_ref()?, self.course.pledges.as_ref()?);
        let missing = pledges.keys().filter(|member| !self.course.dealt.contains_key(member));
        let missing: Vec<Member> = missing.copied().collect();
        if !missing.is_empty() && !self.is_over(now, 1) {
            return None;
        }
        let dealt = self.course.dealt.values().filter_map(|dealt| dealt.as_ref().ok());
        let unfit = dealt.filter(|dealt| dealer.take(dealt).is_err());
        let unfit: Vec<Member> = unfit.map(|dealt| dealt.dealer()).collect();
        missing.iter().for_each(|member| self.blame(SmootherId(*member), Fault::NotShown));
        unfit.iter().for_each(|member| self.blame(SmootherId(*member), Fault::Share));
        Some(What::Verdict(unfit))
    }

    /// What somebody complains of, at the running attempt.
    fn complaints(&self, by: SmootherId) -> Vec<Complaint> {
        let (Some(roster), Some(What::Verdict(dealers))) =
            (&self.course.roster, self.word(by, VERDICT))
        else {
            return Vec::new();
        };
        roster.complaints(by.0, dealers)
    }

    /// An answer to somebody who complains of this member's dealing, which all have seen.
    fn answer(&mut self) -> Option<What> {
        let dealer = self.dealer.as_ref().filter(|_| self.own(DEALING))?;
        let mut answer = None;
        let mut faulty = Vec::new();
        for by in self.ids().filter(|by| !self.own((ANSWER, by.0))) {
            let complaints = self.complaints(by);
            if complaints.len() >= self.circle.threshold() {
                faulty.push(by);
            }
            answer = answer.or_else(|| dealer.answers(&complaints).into_iter().next());
        }
        faulty.into_iter().for_each(|by| self.blame(by, Fault::Complaints));
        answer.map(|answer| What::Answer(answer.complaint.accuser, answer.share))
    }

    /// Takes this member's share of what was settled; the seed is destroyed with it.
    fn take_share(&mut self, saying: &mut Saying<'_>) -> Option<What> {
        let (outcome, dealer) = (self.course.outcome.as_ref()?, self.dealer.as_ref()?);
        let key = outcome.settled.key().clone();
        if self.shares.contains_key(key.transcript()) {
            return None;
        }
        let (share, unfit) = share_of(outcome, dealer, self.id);
        unfit.into_iter().for_each(|member| self.blame(SmootherId(member), Fault::Share));
        let share = share.ok()?;
        saying.changes.push(records::share(&key, &share));
        self.shares.insert(*key.transcript(), (key, share));
        None
    }

    /// A vote for the key that follows: of one that is new, by whoever has a share of it.
    fn vote(&mut self, attempt: u32, saying: &mut Saying<'_>) -> Option<What> {
        let renews = self.course.roster.as_ref()?.renews.is_some();
        let key = self.following()?;
        if !renews && !self.shares.contains_key(key.transcript()) {
            return None;
        }
        let vote = Vote { epoch: self.circle.epoch(), attempt, key: shared_digest(key) };
        saying.changes.extend([records::seed(None), records::dealing(None)]);
        (self.seed, self.stored, self.dealer) = (None, None, None);
        Some(What::Vote(Signed::new(&vote, saying.signing)))
    }
}

/// The convener's part.
impl KeyMaker {
    fn convene(&mut self, attempt: u32, now: Time) -> Option<What> {
        let Course { roster, pledges, .. } = &self.course;
        match (roster, pledges) {
            (None, _) if !self.own(ROSTER) => self.roster(attempt, now),
            (Some(Roster { renews: None, .. }), None) if !self.own(PLEDGED) => self.pledged(now),
            (Some(Roster { renews: None, .. }), Some(_)) if !self.own(OUTCOME) => self.outcome(now),
            _ => None,
        }
    }

    /// Words of a kind, as they were signed.
    fn words(&self, by: &[SmootherId], kind: impl Fn(Kind) -> bool) -> Vec<Said> {
        let heard = |by: &SmootherId| {
            let heard = self.heard.get(by).filter(|heard| Some(heard.attempt) == self.attempt);
            let words = heard.into_iter().flat_map(|heard| &heard.words);
            let ours = words.filter(|(other, _)| kind(**other));
            ours.map(|(_, (_, signed))| (*by, signed.clone())).collect::<Vec<_>>()
        };
        by.iter().flat_map(heard).collect()
    }

    fn roster(&mut self, attempt: u32, now: Time) -> Option<What> {
        let mut good = Vec::new();
        for by in self.ids() {
            match self.word(by, ANNOUNCEMENT).map(|what| self.announces(attempt, what)) {
                Some(Ok(())) => good.push(by),
                Some(Err(fault)) => self.blame(by, fault),
                None => {}
            }
        }
        let enough = good.len() >= self.circle.honest() && self.is_over(now, 1);
        let all = good.len() == self.circle.members();
        (all || enough).then(|| What::Roster(self.words(&good, |kind| kind == ANNOUNCEMENT)))
    }

    /// Those on the roster.
    fn present(&self) -> Vec<SmootherId> {
        let roster = self.course.roster.as_ref();
        roster.into_iter().flat_map(|roster| &roster.present).map(|id| SmootherId(*id)).collect()
    }

    fn pledged(&self, now: Time) -> Option<What> {
        let (present, ceremony) = (self.present(), *self.course.roster.as_ref()?.ceremony.digest());
        let ours = |by: &SmootherId| match self.word(*by, PLEDGE) {
            Some(What::Pledge(other, _)) => *other == ceremony,
            _ => false,
        };
        let pledged: Vec<SmootherId> = present.iter().filter(|by| ours(by)).copied().collect();
        let pledges = self.words(&pledged, |kind| kind == PLEDGE);
        let enough = pledges.len() >= self.circle.honest() && self.is_over(now, 1);
        (pledges.len() == present.len() || enough).then_some(What::Pledged(pledges))
    }

    fn outcome(&mut self, now: Time) -> Option<What> {
        let present = self.present();
        let all = present.iter().all(|by| self.word(*by, VERDICT).is_some());
        let complaints = present.iter().flat_map(|by| self.complaints(*by));
        let answered = complaints.into_iter().all(|complaint| {
            let grounded = self.complaints(SmootherId(complaint.accuser)).len();
            let kind = (ANSWER, complaint.accuser);
            grounded >= self.circle.threshold()
                || self.word(SmootherId(complaint.dealer), kind).is_some()
        });
        let complete = all && answered;
        if !complete && !self.is_over(now, 3) {
            return None;
        }
        let dealers: Vec<SmootherId> =
            self.course.pledges.as_ref()?.keys().map(|id| SmootherId(*id)).collect();
        let mut list = self.words(&dealers, |kind| kind == DEALING || kind.0 == ANSWER);
        list.extend(self.words(&present, |kind| kind == VERDICT));
        let (roster, pledges) = (self.course.roster.as_ref()?, self.course.pledges.as_ref()?);
        // With more at fault than may be nothing is settled, and it is not this one's fault.
        roster.outcome(&self.circle, (self.attempt?, pledges), &list).ok()?;
        Some(What::Outcome(list))
    }
}
