//! Results as the aggregator shows them, and as far as they hold without believing it.

use crate::parties::{Parties, StatsError};
use crate::row::Row;
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::publication::Publication;
use alpheus_accountable_statistics::tally::{Tally, TallyDefinition};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the aggregator shows of one aggregate or count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ShownResult {
    /// An aggregate, with what its smoothers have signed.
    Aggregate(Box<Publication>),
    /// A count, which no smoother sees.
    Count {
        /// Signed by the operator.
        question: Signed<TallyDefinition>,
        /// How many there were, once it is over.
        count: Option<u64>,
        /// Whether it is not over.
        open: bool,
    },
}

/// Results that hold.
#[derive(Clone, Debug, Default)]
pub struct HeldResults {
    /// Their rows, by time and place.
    pub rows: Vec<Row>,
    /// How many others the aggregator shows, which nobody has signed as they are.
    pub unsigned: usize,
}

/// The aggregator shows results that nobody has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the aggregator shows {0} results that its smoothers have not signed, which are left out; inform the smoothers' operators"
)]
pub struct UnsignedResultsError(pub usize);

/// Fetches results, and checks each of them once.
pub struct ResultsReader {
    pinned: Pinned,
    known: BTreeMap<Digest, (Publication, Row)>,
}

impl ResultsReader {
    /// For a deployment.
    #[must_use]
    pub fn new(pinned: &Pinned) -> Self {
        Self { pinned: pinned.clone(), known: BTreeMap::new() }
    }

    /// Fetches all results.
    ///
    /// # Errors
    /// If the aggregator does not answer.
    pub async fn fetch(&mut self, parties: &Parties) -> Result<HeldResults, StatsError> {
        let shown: Vec<ShownResult> = parties.aggregator.get("/v1/rows").await?;
        Ok(self.hold(shown))
    }

    /// Leaves out what nobody has signed.
    fn hold(&mut self, shown: Vec<ShownResult>) -> HeldResults {
        let mut held = HeldResults::default();
        let mut known = BTreeMap::new();
        for shown in shown {
            let row = match shown {
                ShownResult::Aggregate(shown) => self.aggregate(*shown, &mut known),
                ShownResult::Count { question, count, open } => {
                    let tally = Tally::open(&question, &self.pinned).ok();
                    tally.map(|tally| Row::of_count(&tally, count, open))
                }
            };
            match row {
                Some(row) => held.rows.push(row),
                None => held.unsigned += 1,
            }
        }
        self.known = known;
        let place = |row: &Row| (row.interval_start, row.aggregate.clone());
        held.rows.sort_by_key(place);
        held
    }

    fn aggregate(
        &mut self,
        shown: Publication,
        known: &mut BTreeMap<Digest, (Publication, Row)>,
    ) -> Option<Row> {
        let name = shown.definition.signatures().next()?.1.digest();
        let before = self.known.remove(&name).filter(|(same, _)| *same == shown);
        let row = match before {
            Some((_, row)) => row,
            None => {
                let row = Row::published(&shown, &self.pinned);
                row.inspect_err(|why| tracing::warn!(%why, "a result does not hold")).ok()?
            }
        };
        known.insert(name, (shown, row.clone()));
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{OPEN, RESULT};
    use crate::testing::TestDeployment;
    use alpheus_accountable_statistics::configuration::SmootherId;
    use alpheus_accountable_statistics::definition::Definition;
    use alpheus_accountable_statistics::endorsed::Endorsed;
    use alpheus_accountable_statistics::messages::{NoResultError, Outcome, PublishedResult};
    use alpheus_crypto::signed::Message;

    type End = Result<PublishedResult, NoResultError>;

    const FULL: End = Ok(PublishedResult::Full { count: 8, sum: 61, squares: None, uploads: 9 });

    fn endorsed<T: Message>(place: &TestDeployment, of: &[(u16, &T)]) -> Endorsed<T> {
        let mut endorsed = Endorsed::default();
        of.iter().for_each(|(by, what)| {
            endorsed.add(SmootherId(*by), place.signed_by((*by).into(), *what));
        });
        endorsed
    }

    fn shown(
        place: &TestDeployment,
        (definition, by): (&Definition, u16),
        ends: &[(u16, Digest, End)],
        claimed: Option<NoResultError>,
    ) -> ShownResult {
        let by: Vec<_> = (0..by).map(|id| (id, definition)).collect();
        let ends: Vec<(u16, Outcome)> = ends
            .iter()
            .map(|(id, aggregate, result)| {
                (*id, Outcome { aggregate: *aggregate, result: *result })
            })
            .collect();
        let ends: Vec<_> = ends.iter().map(|(id, outcome)| (*id, outcome)).collect();
        let (definition, outcomes) = (endorsed(place, &by), endorsed(place, &ends));
        ShownResult::Aggregate(Box::new(Publication { definition, outcomes, claimed }))
    }

    /// What is shown of a result is what t smoothers have signed of this aggregate; anything else is
    /// left out, and counted.
    #[test]
    fn results_hold_only_as_smoothers_have_signed_them() {
        let place = TestDeployment::new();
        let (definition, name, other) =
            (place.definition(0), place.agreed(0).name(), Digest([1; 32]));
        let mut reader = ResultsReader::new(&place.card.pinned);
        let mut held = |by, ends: &[(u16, Digest, End)], claimed| {
            let HeldResults { rows, unsigned } =
                reader.hold(vec![shown(&place, (&definition, by), ends, claimed)]);
            assert_eq!(rows.len() + unsigned, 1);
            rows.into_iter().next().map(|row| (row.state, row.count, row.sum, row.dummies))
        };
        let result = Some((RESULT.to_owned(), Some(8), Some(61), Some(1)));
        assert_eq!(held(4, &[(0, name, FULL), (3, name, FULL)], None), result);
        // The same again, and then a lie about what was checked before.
        assert_eq!(held(4, &[(0, name, FULL), (3, name, FULL)], None), result);
        assert_eq!(held(4, &[(0, name, FULL)], None), None, "one smoother");
        let more = Ok(PublishedResult::Full { count: 9, sum: 61, squares: None, uploads: 9 });
        assert_eq!(held(4, &[(0, name, FULL), (1, name, more)], None), None, "two results");
        assert_eq!(held(4, &[(0, other, FULL), (1, other, FULL)], None), None, "of another");
        assert_eq!(
            held(2, &[(0, name, FULL), (1, name, FULL)], None),
            None,
            "no quorum defined it"
        );
        assert_eq!(held(4, &[], None), Some((OPEN.to_owned(), None, None, None)));
        let (late, late_result) = (NoResultError::Late, Err(NoResultError::Late));
        let signed = Some((late.to_string(), None, None, None));
        let claimed = Some((format!("{late}, as the aggregator says"), None, None, None));
        let lates = [0, 1, 2].map(|by| (by, name, late_result));
        assert_eq!(held(4, &lates, Some(late)), signed);
        assert_eq!(held(4, &lates[..2], Some(late)), claimed, "no quorum");
        assert_eq!(held(4, &lates[..2], None), None);
        // It cannot hide a result behind a reason.
        assert_eq!(held(4, &[(0, name, FULL), (3, name, FULL)], Some(late)), result);
    }
}
