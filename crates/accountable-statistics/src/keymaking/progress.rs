//! What results from the convener's lists: the same for everybody who has them.

use super::FaultError;
use super::messages::{AttributedMessage, Content, KeyCertificate, KeyMessage, Kind, Participants};
use crate::error::DealingError;
use crate::threshold::Member;
use crate::threshold::ceremony::{Announcement, Ceremony};
use crate::threshold::dealing::{Answer, Complaint, Dealing, Pledge, VerifiedDealing};
use crate::threshold::settlement::Settlement;
use alpheus_time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// How far an attempt has come at one member.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) roster: Option<Roster>,
    pub(super) pledges: Option<BTreeMap<Member, Pledge>>,
    /// Dealings of members that have pledged, as far as they have arrived.
    pub(super) dealings: BTreeMap<Member, Result<VerifiedDealing, DealingError>>,
    pub(super) outcome: Option<Outcome>,
    /// When the convener's last list arrived.
    pub(super) since: Option<Timestamp>,
    /// The convener's lists are invalid: the attempt fails.
    pub(super) invalid: bool,
}

/// The members that take part.
pub(super) struct Roster {
    pub(super) ceremony: Ceremony,
    pub(super) present: BTreeSet<Member>,
    /// The key that a quorum voted for at an earlier attempt: it may be in use already.
    pub(super) renewal: Option<KeyCertificate>,
}

/// The dealings that make up the key.
pub(super) struct Outcome {
    pub(super) settlement: Settlement,
    pub(super) dealings: Vec<VerifiedDealing>,
}

/// The messages of a list: each by another member or of another kind, all of one attempt.
fn open_list(
    participants: &Participants,
    attempt: u32,
    list: &[AttributedMessage],
) -> Result<Vec<KeyMessage>, FaultError> {
    let mut seen: BTreeSet<(Member, Kind)> = BTreeSet::new();
    let mut messages = Vec::with_capacity(list.len());
    for signed in list {
        let message = participants
            .open(signed)
            .filter(|message| message.attempt == attempt)
            .filter(|message| message.content.is_well_formed(participants.committee()))
            .ok_or(FaultError::List)?;
        if !seen.insert((message.by.0, message.content.kind())) {
            return Err(FaultError::List);
        }
        messages.push(message);
    }
    Ok(messages)
}

impl Roster {
    /// Reads the convener's list of announcements.
    pub(super) fn read(
        participants: &Participants,
        attempt: u32,
        list: &[AttributedMessage],
    ) -> Result<Self, FaultError> {
        let (mut announced, mut best): (Vec<Announcement>, Option<KeyCertificate>) =
            (Vec::new(), None);
        let committee = *participants.committee();
        for KeyMessage { by, content, .. } in open_list(participants, attempt, list)? {
            let Content::Announcement(key, certificate) = content else {
                return Err(FaultError::List);
            };
            if !certificate.as_deref().is_none_or(|shown| is_earlier(participants, attempt, shown))
            {
                return Err(FaultError::List);
            }
            let (committee, member) = (committee.digest(), by.0);
            announced.push(Announcement { committee, attempt, member, key });
            best = best
                .into_iter()
                .chain(certificate.map(|shown| *shown))
                .max_by_key(|shown| shown.attempt);
        }
        if announced.len() < participants.honest() {
            return Err(FaultError::List);
        }
        let present = announced.iter().map(|one| one.member).collect();
        let ceremony = Ceremony::new(committee, attempt, &announced);
        Ok(Self { ceremony, present, renewal: best })
    }

    /// Reads the convener's list of pledges.
    pub(super) fn pledges(
        &self,
        participants: &Participants,
        attempt: u32,
        list: &[AttributedMessage],
    ) -> Result<BTreeMap<Member, Pledge>, FaultError> {
        let mut pledges = BTreeMap::new();
        for KeyMessage { by, content, .. } in open_list(participants, attempt, list)? {
            let Content::Pledge(ceremony, dealing) = content else { return Err(FaultError::List) };
            let dealer = by.0;
            if !self.present.contains(&dealer) || ceremony != *self.ceremony.digest() {
                return Err(FaultError::List);
            }
            pledges.insert(dealer, Pledge { ceremony, dealer, dealing });
        }
        if pledges.len() < participants.honest() { Err(FaultError::List) } else { Ok(pledges) }
    }

    /// A member's dealing, if it is the one that it pledged.
    pub(super) fn verify_dealing(
        &self,
        pledge: &Pledge,
        dealing: &[u8],
    ) -> Result<VerifiedDealing, DealingError> {
        Dealing::from_bytes(dealing, &self.ceremony)?.verify(&self.ceremony, pledge)
    }

    /// A member's complaints.
    pub(super) fn complaints(&self, accuser: Member, dealers: &[Member]) -> Vec<Complaint> {
        let ceremony = *self.ceremony.digest();
        dealers.iter().map(|dealer| Complaint { ceremony, dealer: *dealer, accuser }).collect()
    }

    /// Reads the convener's list of dealings, verdicts and answers. Invalid dealings are dropped.
    pub(super) fn outcome(
        &self,
        participants: &Participants,
        (attempt, pledges): (u32, &BTreeMap<Member, Pledge>),
        list: &[AttributedMessage],
    ) -> Result<Outcome, FaultError> {
        let (mut dealings, mut complaints, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for KeyMessage { by, content, .. } in open_list(participants, attempt, list)? {
            match content {
                Content::Dealing(bytes) => {
                    let pledge = pledges.get(&by.0).ok_or(FaultError::List)?;
                    dealings.extend(self.verify_dealing(pledge, &bytes).ok());
                }
                Content::Verdict(dealers) => complaints.extend(self.complaints(by.0, &dealers)),
                Content::Answer(accuser, share) => {
                    let complaint = self.complaints(accuser, &[by.0]);
                    answers.extend(complaint.into_iter().map(|c| Answer { complaint: c, share }));
                }
                _ => return Err(FaultError::List),
            }
        }
        let settlement = Settlement::new(&self.ceremony, &dealings, &complaints, &answers);
        Ok(Outcome { settlement: settlement.map_err(|_| FaultError::Outcome)?, dealings })
    }
}

/// Whether it is a certificate of an earlier attempt.
pub(super) fn is_earlier(
    participants: &Participants,
    attempt: u32,
    certificate: &KeyCertificate,
) -> bool {
    certificate.attempt < attempt && participants.is_valid_certificate(certificate)
}
