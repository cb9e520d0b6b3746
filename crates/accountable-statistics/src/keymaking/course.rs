//! What follows from the convener's lists: the same for everybody who has them.

use super::Fault;
use super::words::{Circle, KeyWord, Kind, Prepared, Said, What};
use crate::error::BadDealing;
use crate::threshold::Member;
use crate::threshold::ceremony::{Announcement, Ceremony};
use crate::threshold::dealing::{Answer, Complaint, Dealing, Dealt, Pledge};
use crate::threshold::settling::Settled;
use alpheus_anonymous_credential::schedule::Time;
use std::collections::{BTreeMap, BTreeSet};

/// How far an attempt has come at one member.
#[derive(Default)]
pub(super) struct Course {
    pub(super) roster: Option<Roster>,
    pub(super) pledges: Option<BTreeMap<Member, Pledge>>,
    /// What was dealt by whoever has pledged, as far as it has come.
    pub(super) dealt: BTreeMap<Member, Result<Dealt, BadDealing>>,
    pub(super) outcome: Option<Outcome>,
    /// When the last of the convener's words came.
    pub(super) since: Option<Time>,
    /// The convener's words do not hold: nothing comes of this attempt.
    pub(super) spoilt: bool,
}

/// Who takes part.
pub(super) struct Roster {
    pub(super) ceremony: Ceremony,
    pub(super) present: BTreeSet<Member>,
    /// The key that a quorum has voted for at an earlier attempt: it may be in use already.
    pub(super) renews: Option<Prepared>,
}

/// Which dealings make up the key.
pub(super) struct Outcome {
    pub(super) settled: Settled,
    pub(super) dealt: Vec<Dealt>,
}

/// The words of a list, each by another member or of another kind, all of an attempt.
fn opened(circle: &Circle, attempt: u32, list: &[Said]) -> Result<Vec<KeyWord>, Fault> {
    let mut seen: BTreeSet<(Member, Kind)> = BTreeSet::new();
    let mut words = Vec::with_capacity(list.len());
    for said in list {
        let word = circle.open(said).filter(|word| word.attempt == attempt).ok_or(Fault::List)?;
        if !seen.insert((word.by.0, word.what.kind())) {
            return Err(Fault::List);
        }
        words.push(word);
    }
    Ok(words)
}

impl Roster {
    /// Reads the convener's list of announcements.
    pub(super) fn read(circle: &Circle, attempt: u32, list: &[Said]) -> Result<Self, Fault> {
        let (mut announced, mut best): (Vec<Announcement>, Option<Prepared>) = (Vec::new(), None);
        let committee = *circle.committee();
        for KeyWord { by, what, .. } in opened(circle, attempt, list)? {
            let What::Announcement(key, prepared) = what else { return Err(Fault::List) };
            if !prepared.as_deref().is_none_or(|shown| is_earlier(circle, attempt, shown)) {
                return Err(Fault::List);
            }
            let (committee, member) = (committee.digest(), by.0);
            announced.push(Announcement { committee, attempt, member, key });
            best = best
                .into_iter()
                .chain(prepared.map(|shown| *shown))
                .max_by_key(|shown| shown.attempt);
        }
        if announced.len() < circle.honest() {
            return Err(Fault::List);
        }
        let present = announced.iter().map(|one| one.member).collect();
        let ceremony = Ceremony::new(committee, attempt, &announced);
        Ok(Self { ceremony, present, renews: best })
    }

    /// Reads the convener's list of pledges.
    pub(super) fn pledges(
        &self,
        circle: &Circle,
        attempt: u32,
        list: &[Said],
    ) -> Result<BTreeMap<Member, Pledge>, Fault> {
        let mut pledges = BTreeMap::new();
        for KeyWord { by, what, .. } in opened(circle, attempt, list)? {
            let What::Pledge(ceremony, dealing) = what else { return Err(Fault::List) };
            let dealer = by.0;
            if !self.present.contains(&dealer) || ceremony != *self.ceremony.digest() {
                return Err(Fault::List);
            }
            pledges.insert(dealer, Pledge { ceremony, dealer, dealing });
        }
        if pledges.len() < circle.honest() { Err(Fault::List) } else { Ok(pledges) }
    }

    /// What a member has dealt, if it is what it has pledged.
    pub(super) fn dealt(&self, pledge: &Pledge, dealing: &[u8]) -> Result<Dealt, BadDealing> {
        Dealing::from_bytes(dealing, &self.ceremony)?.verify(&self.ceremony, pledge)
    }

    /// What a member complains of.
    pub(super) fn complaints(&self, accuser: Member, dealers: &[Member]) -> Vec<Complaint> {
        let ceremony = *self.ceremony.digest();
        dealers.iter().map(|dealer| Complaint { ceremony, dealer: *dealer, accuser }).collect()
    }

    /// Reads the convener's list of dealings, verdicts and answers. A dealing that does not hold
    /// is none.
    pub(super) fn outcome(
        &self,
        circle: &Circle,
        (attempt, pledges): (u32, &BTreeMap<Member, Pledge>),
        list: &[Said],
    ) -> Result<Outcome, Fault> {
        let (mut dealt, mut complaints, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for KeyWord { by, what, .. } in opened(circle, attempt, list)? {
            match what {
                What::Dealing(bytes) => {
                    let pledge = pledges.get(&by.0).ok_or(Fault::List)?;
                    dealt.extend(self.dealt(pledge, &bytes).ok());
                }
                What::Verdict(dealers) => complaints.extend(self.complaints(by.0, &dealers)),
                What::Answer(accuser, share) => {
                    let complaint = self.complaints(accuser, &[by.0]);
                    answers.extend(complaint.into_iter().map(|c| Answer { complaint: c, share }));
                }
                _ => return Err(Fault::List),
            }
        }
        let settled = Settled::new(&self.ceremony, &dealt, &complaints, &answers);
        Ok(Outcome { settled: settled.map_err(|_| Fault::Outcome)?, dealt })
    }
}

/// Whether it is a certificate of an earlier attempt.
pub(super) fn is_earlier(circle: &Circle, attempt: u32, prepared: &Prepared) -> bool {
    prepared.attempt < attempt && circle.has_prepared(prepared)
}
