//! A client's check that its contributions count. It believes only what a quorum of smoothers has
//! signed. The aggregator merely publishes the content of the set that they opened, the same to all.

use super::contributor::Contributor;
use super::participation::{Kind, over};
use crate::contributor_state;
use crate::names::hex;
use crate::parties::{PUBLIC, Parties, StatsError, gather};
use alpheus_accountable_statistics::closing::{AgreedSet, CountedSet, Leaves};
use alpheus_accountable_statistics::configuration::{PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{End, Entry};
use alpheus_accountable_statistics::verdict::{Verdict, verdict};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger};
use alpheus_node::failure::Failure;
use rand_core::Rng;
use tokio::task::JoinSet;

#[cfg(test)]
mod tests;

/// Contributions are not known to count. Their receipts stay in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum InclusionError {
    /// They have a quorum's receipts, but are not in the set.
    #[error(
        "they have receipts of a quorum, but are not in the set that the smoothers opened; send the receipts to the smoothers' operators"
    )]
    LeftOut,
    /// The aggregator publishes another set.
    #[error(
        "the aggregator publishes a different set from the one that the smoothers opened; inform the smoothers' operators, and send them the receipts"
    )]
    OtherSet,
    /// The aggregator publishes no set.
    #[error(
        "the aggregator does not publish the set that it counted; start this client again later, or send the receipts to the smoothers' operators"
    )]
    NotShown,
    /// A quorum says that there is no result, and a smoother has signed one.
    #[error(
        "a smoother has signed a result, and others say that there is none; start this client again later, or send the receipts to the smoothers' operators"
    )]
    Disputed,
    /// Too few smoothers agree on the outcome.
    #[error(
        "too few smoothers say how the aggregate ended; start this client again later, or inform the smoothers' operators"
    )]
    NoVerdict,
}

/// The result of an inclusion check.
enum CheckResult {
    /// All contributions are settled.
    Done,
    /// This many contributions are not known to count.
    NotYet(InclusionError, u64),
}

/// The contributions to check in an aggregate.
struct Contributions {
    /// With a quorum's receipts.
    kept: Vec<(Entry, Change)>,
    /// Without them, and whether each is a sample.
    unconfirmed: Vec<(Entry, bool, Change)>,
}

/// Asks all smoothers how an aggregate ended.
async fn ended(
    parties: &Parties,
    agreed: &AgreedDefinition,
    pinned: &PinnedConfiguration,
) -> Option<Verdict> {
    let path = format!("/v1/ends/{}", hex(&agreed.name()));
    let mut asked: JoinSet<Option<(SmootherId, End)>> = JoinSet::new();
    for (id, party) in pinned.ids().zip(parties.smoothers.iter().cloned()) {
        let path = path.clone();
        asked.spawn(async move {
            let end = party.get::<Option<End>>(&path).await;
            let end = end.inspect_err(|error| tracing::debug!(%error, "cannot fetch the outcome"));
            end.ok()?.map(|end| (id, end))
        });
    }
    let ends: Vec<_> = gather(asked, pinned.quorum(), Option::is_some).await;
    verdict(&ends.into_iter().flatten().collect::<Vec<_>>(), agreed, pinned)
}

/// Fetches the opened set. It fetches all of it, so nobody learns which slots the client checks; and
/// through smoothers, one after the other from a random one on, so the aggregator does not learn the
/// address of anyone who has contributed. One that relays something else changes nothing.
async fn shown(
    parties: &Parties,
    agreed: &AgreedDefinition,
    set: &AgreedSet,
    first: usize,
) -> Result<CountedSet, InclusionError> {
    let path = format!("/v1/leaves/{}", hex(&agreed.name()));
    let mut failed = InclusionError::NotShown;
    let smoothers = parties.smoothers.iter();
    for party in smoothers.cycle().skip(first).take(parties.smoothers.len()) {
        let party = party.clone().within(PUBLIC);
        match party.get::<Leaves>(&path).await.map(|leaves| leaves.check(agreed, set)) {
            Ok(Ok(counted)) => return Ok(counted),
            Ok(Err(error)) => {
                tracing::warn!(aggregate = hex(&agreed.name()), %error);
                failed = InclusionError::OtherSet;
            }
            Err(error) => tracing::debug!(%error, "cannot fetch the set"),
        }
    }
    Err(failed)
}

impl Contributor {
    /// Checks that the contributions to ended aggregates count.
    ///
    /// # Errors
    /// If its ledger cannot be written.
    pub(super) async fn check_inclusion(&mut self) -> Result<(), Failure> {
        for name in self.participations.keys().copied().collect::<Vec<Digest>>() {
            let now = self.clock.now();
            let is_empty = !contributor_state::lock(&self.state).ledger().awaits(&name);
            let Some(participation) = self.participations.get_mut(&name) else { continue };
            let idle = participation.under_way == 0 && participation.open.is_empty();
            if participation.over || !idle || now < participation.agreed.release() {
                continue;
            }
            let last = now >= over(&participation.agreed);
            if !is_empty && !last && !participation.check_is_due(&mut self.rng) {
                continue;
            }
            let agreed = participation.agreed.clone();
            let done = match self.check_one(&agreed).await? {
                CheckResult::NotYet(why, many) if last => {
                    *self.summary.complaints.entry(why).or_default() += many;
                    true
                }
                CheckResult::NotYet(..) => false,
                CheckResult::Done => true,
            };
            if let Some(participation) = self.participations.get_mut(&name) {
                participation.over = done;
            }
        }
        Ok(())
    }

    fn contributions(&self, name: &Digest) -> Contributions {
        let mut state = contributor_state::lock(&self.state);
        let ledger = state.ledger();
        Contributions { kept: ledger.kept(name), unconfirmed: ledger.unconfirmed(name) }
    }

    async fn check_one(&mut self, agreed: &AgreedDefinition) -> Result<CheckResult, StatsError> {
        let name = agreed.name();
        let many = contributor_state::lock(&self.state).ledger().count(&name);
        if many == 0 {
            return Ok(CheckResult::Done);
        }
        // Over connections that no upload has used.
        let parties = self.parties.unlinked();
        let drawn = self.rng.next_u64().checked_rem(parties.smoothers.len() as u64).unwrap_or(0);
        let first = usize::try_from(drawn).unwrap_or(0);
        let about = format!("{} from {}", agreed.location.as_str(), agreed.start.0 / 1000);
        match ended(&parties, agreed, &self.card.pinned).await {
            None => Ok(CheckResult::NotYet(InclusionError::NoVerdict, many)),
            Some(Verdict::Disputed) => Ok(CheckResult::NotYet(InclusionError::Disputed, many)),
            Some(Verdict::Without(why)) => {
                let given = self.contributions(&name);
                println!("{about}: {why}; {} contributions are in no result", given.kept.len());
                self.settle(given, |_| false)?;
                Ok(CheckResult::Done)
            }
            Some(Verdict::Result(_, set)) => match shown(&parties, agreed, &set, first).await {
                Err(why) => Ok(CheckResult::NotYet(why, many)),
                Ok(counted) => {
                    self.compare(&about, self.contributions(&name), &counted)?;
                    Ok(CheckResult::Done)
                }
            },
        }
    }

    /// Compares the contributions with the set. Receipts of contributions that do not count are kept.
    fn compare(
        &mut self,
        about: &str,
        given: Contributions,
        counts: &CountedSet,
    ) -> Result<(), StatsError> {
        let Contributions { kept, unconfirmed } = given;
        let (kept, lost): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|(entry, _)| counts.has(entry));
        println!("{about}: result; {} contributions counted, {} left out", kept.len(), lost.len());
        if !lost.is_empty() {
            *self.summary.complaints.entry(InclusionError::LeftOut).or_default() +=
                lost.len() as u64;
        }
        self.settle(Contributions { kept, unconfirmed }, |entry| counts.has(entry))
    }

    /// Deletes contributions whose fate is known now.
    fn settle(
        &mut self,
        given: Contributions,
        counts: impl Fn(&Entry) -> bool,
    ) -> Result<(), StatsError> {
        let mut gone: Vec<Change> =
            given.kept.into_iter().map(|(_, forgotten)| forgotten).collect();
        for (entry, sample, forgotten) in given.unconfirmed {
            match (counts(&entry), sample) {
                (true, true) => self.counts(Kind::Sample),
                (true, false) => self.counts(Kind::Dummy),
                (false, sample) => self.summary.unplaced += u64::from(sample),
            }
            gone.push(forgotten);
        }
        Ok(contributor_state::lock(&self.state).ledger().commit(&gone)?)
    }
}
