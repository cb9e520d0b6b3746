//! What a client believes of an aggregate's end: what its smoothers have signed. The aggregator
//! only shows what is in the set that they have opened, to everybody alike.

use super::contributor::Contributor;
use super::known::{Kind, over};
use crate::failure::Failure;
use crate::stats::names::hex;
use crate::stats::person;
use crate::stats::ways::{StatsError, Ways, gathered};
use alpheus_accountable_statistics::closing::{Counted, Leaves, OneSet};
use alpheus_accountable_statistics::configuration::{Pinned, SmootherId};
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::messages::{End, Entry};
use alpheus_accountable_statistics::verdict::{Verdict, verdict};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger};
use tokio::task::JoinSet;

#[cfg(test)]
mod tests;

/// Why contributions are not known to count. Their receipts stay in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Complaint {
    /// They have receipts of a quorum, and are not in the set.
    #[error(
        "they have receipts of a quorum, and are not in the set that the smoothers have opened; show the receipts to whoever runs the smoothers"
    )]
    LeftOut,
    /// What the aggregator shows is something else.
    #[error(
        "the aggregator shows another set than the smoothers have opened; tell whoever runs the smoothers, and show the receipts"
    )]
    OtherSet,
    /// The aggregator shows nothing.
    #[error(
        "the aggregator does not show what it has counted; start this again later, or show the receipts to whoever runs the smoothers"
    )]
    NotShown,
    /// Too few smoothers say how the aggregate ended.
    #[error(
        "too few smoothers say how the aggregate ended; start this again later, or tell whoever runs the smoothers"
    )]
    NoVerdict,
}

/// What a look brought.
enum Look {
    /// Nothing is left to look at.
    Done,
    /// So many contributions are not known to count.
    NotYet(Complaint, u64),
}

/// What there is to look for in an aggregate.
struct Given {
    /// With receipts of a quorum.
    kept: Vec<(Entry, Change)>,
    /// Without, and whether it is a sample.
    doubtful: Vec<(Entry, bool, Change)>,
}

impl Given {
    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.doubtful.is_empty()
    }

    fn many(&self) -> u64 {
        (self.kept.len() + self.doubtful.len()) as u64
    }
}

/// Asks all smoothers how an aggregate ended.
async fn ended(ways: &Ways, agreed: &Agreed, pinned: &Pinned) -> Option<Verdict> {
    let path = format!("/v1/ends/{}", hex(&agreed.name()));
    let mut asked: JoinSet<Option<(SmootherId, End)>> = JoinSet::new();
    for (id, way) in pinned.ids().zip(ways.smoothers.iter().cloned()) {
        let path = path.clone();
        asked.spawn(async move {
            let end = way.get::<Option<End>>(&path).await;
            let end = end.inspect_err(|error| tracing::debug!(%error, "asking how it ended"));
            end.ok()?.map(|end| (id, end))
        });
    }
    let ends: Vec<_> = gathered(asked, pinned.quorum(), Option::is_some).await;
    verdict(&ends.into_iter().flatten().collect::<Vec<_>>(), agreed, pinned)
}

/// What is in the set that was opened. All of it is fetched, so nobody learns what is looked for.
async fn shown(ways: &Ways, agreed: &Agreed, set: &OneSet) -> Result<Counted, Complaint> {
    let path = format!("/v1/leaves/{}", hex(&agreed.name()));
    let leaves = ways.aggregator.get::<Leaves>(&path).await.map_err(|error| {
        tracing::debug!(%error, "asking what counts");
        Complaint::NotShown
    })?;
    leaves.check(agreed, set).map_err(|error| {
        tracing::warn!(aggregate = hex(&agreed.name()), %error);
        Complaint::OtherSet
    })
}

impl Contributor {
    /// Looks whether what was given to aggregates that have ended is counted.
    ///
    /// # Errors
    /// If its ledger cannot be written.
    pub(super) async fn look_after(&mut self) -> Result<(), Failure> {
        for name in self.known.keys().copied().collect::<Vec<Digest>>() {
            let (now, nothing) = (self.clock.now(), self.given(&name).is_empty());
            let Some(known) = self.known.get_mut(&name) else { continue };
            let idle = known.under_way == 0 && known.open.is_empty();
            if known.over || !idle || now < known.agreed.release() {
                continue;
            }
            let last = now >= over(&known.agreed);
            if !nothing && !last && !known.looks(&mut self.rng) {
                continue;
            }
            let agreed = known.agreed.clone();
            let done = match self.look(&agreed).await? {
                Look::NotYet(why, many) if last => {
                    *self.summary.complaints.entry(why).or_default() += many;
                    true
                }
                Look::NotYet(..) => false,
                Look::Done => true,
            };
            if let Some(known) = self.known.get_mut(&name) {
                known.over = done;
            }
        }
        Ok(())
    }

    fn given(&self, name: &Digest) -> Given {
        let mut person = person::lock(&self.person);
        let book = person.ledger();
        Given { kept: book.kept(name, &self.card.pinned), doubtful: book.doubtful(name) }
    }

    async fn look(&mut self, agreed: &Agreed) -> Result<Look, StatsError> {
        let given = self.given(&agreed.name());
        if given.is_empty() {
            return Ok(Look::Done);
        }
        // Over connections that no upload has used.
        let ways = Ways::new(&self.card).map_err(|error| StatsError::Machine(error.to_string()))?;
        let about = format!("{} from {}", agreed.place.as_str(), agreed.start.0 / 1000);
        match ended(&ways, agreed, &self.card.pinned).await {
            None => Ok(Look::NotYet(Complaint::NoVerdict, given.many())),
            Some(Verdict::Without(why)) => {
                println!("{about}: {why}; {} contributions are in no result", given.kept.len());
                self.settle(given, |_| false)?;
                Ok(Look::Done)
            }
            Some(Verdict::Result(_, set)) => match shown(&ways, agreed, &set).await {
                Err(why) => Ok(Look::NotYet(why, given.many())),
                Ok(counted) => {
                    self.compare(&about, given, &counted)?;
                    Ok(Look::Done)
                }
            },
        }
    }

    /// Holds what was given against what counts. Receipts of what does not stay.
    fn compare(&mut self, about: &str, given: Given, counts: &Counted) -> Result<(), StatsError> {
        let Given { kept, doubtful } = given;
        let (kept, lost): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|(entry, _)| counts.has(entry));
        println!("{about}: result; {} contributions counted, {} left out", kept.len(), lost.len());
        if !lost.is_empty() {
            *self.summary.complaints.entry(Complaint::LeftOut).or_default() += lost.len() as u64;
        }
        self.settle(Given { kept, doubtful }, |entry| counts.has(entry))
    }

    /// Forgets what was given, of which is known now what became of it.
    fn settle(&mut self, given: Given, counts: impl Fn(&Entry) -> bool) -> Result<(), StatsError> {
        let mut gone: Vec<Change> =
            given.kept.into_iter().map(|(_, forgotten)| forgotten).collect();
        for (entry, sample, forgotten) in given.doubtful {
            match (counts(&entry), sample) {
                (true, true) => self.counts(Kind::Sample),
                (true, false) => self.counts(Kind::Dummy),
                (false, sample) => self.summary.unplaced += u64::from(sample),
            }
            gone.push(forgotten);
        }
        Ok(person::lock(&self.person).ledger().commit(&gone)?)
    }
}
