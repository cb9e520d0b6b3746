//! Results as the aggregator shows them, and as far as they hold without believing it.

use crate::names::hex;
use crate::parties::{Parties, StatsError};
use crate::row::{CountOutcome, Row, by_time};
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::publication::Publication;
use alpheus_accountable_statistics::tally::{Tally, TallyDefinition};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What the aggregator shows of one aggregate or count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ShownResult {
    /// An aggregate, with what its smoothers have signed.
    Aggregate(Box<Publication>),
    /// A count, which no smoother sees.
    Count {
        /// Signed by the operator.
        question: Signed<TallyDefinition>,
        /// Its outcome, as the aggregator says.
        outcome: CountOutcome,
    },
}

impl ShownResult {
    /// Its name, which is the digest of what was signed. None if nobody has signed it.
    fn name(&self) -> Option<Digest> {
        match self {
            Self::Aggregate(shown) => shown.name(),
            Self::Count { question, .. } => Some(question.digest()),
        }
    }
}

/// Some results, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultsPage<T> {
    /// The results.
    pub results: Vec<T>,
    /// The last name, if there are more: ask for those after it.
    pub next: Option<Digest>,
}

/// The most results in a page.
pub const PAGE_RESULTS: usize = 1024;

/// How many results that nobody has signed are taken from an aggregator. It could continue forever.
const MAX_UNSIGNED: usize = 10_000;

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
    pinned: PinnedConfiguration,
    known: BTreeMap<Digest, (Publication, Row)>,
}

impl ResultsReader {
    /// For a deployment.
    #[must_use]
    pub fn new(pinned: &PinnedConfiguration) -> Self {
        Self { pinned: pinned.clone(), known: BTreeMap::new() }
    }

    /// Fetches all results, a page at a time.
    ///
    /// # Errors
    /// If the aggregator does not answer, or its pages are not in order.
    pub async fn fetch(&mut self, parties: &Parties) -> Result<HeldResults, StatsError> {
        let (mut held, mut after) = (HeldResults::default(), None);
        loop {
            let path = after.map_or_else(String::new, |after: Digest| format!("/{}", hex(&after)));
            let aggregator = &parties.aggregator;
            let page: ResultsPage<ShownResult> = aggregator.get(&format!("/v1/rows{path}")).await?;
            let next = page.next;
            if !follows(&page, after) {
                return Err(aggregator.malformed().into());
            }
            self.hold(page.results, &mut held);
            if next.is_none() || held.unsigned > MAX_UNSIGNED {
                break;
            }
            after = next;
        }
        // What the aggregator no longer shows is forgotten.
        let shown: BTreeSet<&str> = held.rows.iter().map(|row| row.name.as_str()).collect();
        self.known.retain(|_, (_, row)| shown.contains(row.name.as_str()));
        held.rows.sort_by(by_time);
        Ok(held)
    }

    /// Leaves out what nobody has signed.
    fn hold(&mut self, shown: Vec<ShownResult>, held: &mut HeldResults) {
        for shown in shown {
            let row = match shown {
                ShownResult::Aggregate(shown) => self.aggregate(*shown),
                ShownResult::Count { question, outcome } => {
                    let tally = Tally::open(&question, &self.pinned).ok();
                    tally.map(|tally| Row::of_count(&tally, outcome))
                }
            };
            match row {
                Some(row) => held.rows.push(row),
                None => held.unsigned += 1,
            }
        }
    }

    fn aggregate(&mut self, shown: Publication) -> Option<Row> {
        let name = shown.name()?;
        let before = self.known.remove(&name).filter(|(same, _)| *same == shown);
        let row = match before {
            Some((_, row)) => row,
            None => {
                let row = Row::published(&shown, &self.pinned);
                row.inspect_err(|why| tracing::warn!(%why, "a result does not hold")).ok()?
            }
        };
        self.known.insert(name, (shown, row.clone()));
        Some(row)
    }
}

/// Whether a page's names rise, after those of the page before. So nothing is shown twice, and there
/// is an end.
fn follows(page: &ResultsPage<ShownResult>, after: Option<Digest>) -> bool {
    let names = page.results.iter().filter_map(ShownResult::name);
    let names: Vec<Digest> = after.into_iter().chain(names).collect();
    let rise = names.is_sorted_by(|a, b| a < b);
    let last = names.last().copied();
    let ends = |next| page.results.is_empty() || last > Some(next);
    rise && page.results.len() <= PAGE_RESULTS && !page.next.is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::name_in;
    use crate::row::{OPEN, RESULT};
    use crate::test_deployment::{TestDeployment, answering};
    use alpheus_accountable_statistics::configuration::SmootherId;
    use alpheus_accountable_statistics::definition::Definition;
    use alpheus_accountable_statistics::endorsement::Endorsed;
    use alpheus_accountable_statistics::messages::{NoResultError, Outcome, PublishedResult};
    use alpheus_crypto::signed_message::Message;

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

    /// Of a result, only the parts that t smoothers have signed for this aggregate are shown; anything else
    /// is left out, and counted.
    #[test]
    fn results_hold_only_as_smoothers_have_signed_them() {
        let place = TestDeployment::new();
        let (definition, name, other) =
            (place.definition(0), place.agreed(0).name(), Digest([1; 32]));
        let mut reader = ResultsReader::new(&place.card.pinned);
        let mut held = |by, ends: &[(u16, Digest, End)], claimed| {
            let mut held = HeldResults::default();
            reader.hold(vec![shown(&place, (&definition, by), ends, claimed)], &mut held);
            let HeldResults { rows, unsigned } = held;
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

    type Page = ResultsPage<ShownResult>;

    /// What a reader finds if these are the pages, by the name that they come after.
    async fn fetched(
        place: &TestDeployment,
        page: impl Fn(Option<Digest>) -> Page + Clone + Send + Sync + 'static,
    ) -> Result<HeldResults, StatsError> {
        let answer = move |path: &str| {
            let name = path.strip_prefix("/v1/rows/").map(|name| name_in(name).unwrap());
            postcard::to_allocvec(&page(name)).unwrap()
        };
        let (_serving, aggregator) = answering(answer).await;
        let parties = Parties { aggregator, ..Parties::new(&place.card).unwrap() };
        ResultsReader::new(&place.card.pinned).fetch(&parties).await
    }

    #[tokio::test]
    async fn all_pages_are_fetched_and_only_pages_in_order() {
        let place = TestDeployment::new();
        let open = |later| shown(&place, (&place.definition(later), 4), &[], None);
        let mut all: Vec<ShownResult> = (0..3).map(open).collect();
        all.sort_by_key(ShownResult::name);
        let names: Vec<Digest> = all.iter().filter_map(ShownResult::name).collect();
        let page = |at: &[usize], next: Option<usize>| Page {
            results: at.iter().map(|at| all[*at].clone()).collect(),
            next: next.map(|next| names[next]),
        };
        let after = |first: Page, one: Page, two: Page| {
            let names = names.clone();
            move |name: Option<Digest>| match name {
                None => first.clone(),
                Some(name) if name == names[1] => two.clone(),
                Some(_) => one.clone(),
            }
        };
        let pages = after(page(&[0], Some(0)), page(&[1], Some(1)), page(&[2], None));
        let held = fetched(&place, pages).await.unwrap();
        assert_eq!((held.rows.len(), held.unsigned), (3, 0));
        assert!(held.rows.is_sorted_by_key(|row| row.interval_start));
        let none = || page(&[], None);
        for (what, first, one) in [
            ("the same page again", page(&[0], Some(0)), page(&[0], Some(0))),
            ("a page that goes back", page(&[1], Some(1)), page(&[0], None)),
            ("names that fall", page(&[1, 0], None), none()),
            ("a name twice", page(&[0, 0], None), none()),
            ("an empty page before another", page(&[], Some(0)), none()),
            ("a cursor before the page's end", page(&[0, 1], Some(0)), none()),
        ] {
            let lied = fetched(&place, after(first, one.clone(), one)).await;
            assert!(matches!(lied, Err(StatsError::Link(_))), "{what}: {lied:?}");
        }
        // One that has no end, of what nobody has signed.
        let nobody = shown(&place, (&place.definition(0), 0), &[], None);
        let endless = Page { results: vec![nobody; PAGE_RESULTS], next: Some(names[0]) };
        let held = fetched(&place, move |_| endless.clone()).await.unwrap();
        assert!(held.rows.is_empty() && held.unsigned > MAX_UNSIGNED);
    }
}
