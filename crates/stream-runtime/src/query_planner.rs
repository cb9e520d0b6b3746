//! From a query to plans: the planner, with masks chosen for the roster.

use super::bin_widths;
use super::refusal_ids::of_refusal;
use alpheus_encrypted_stream::mask::params::{MaskPreference, choose};
use alpheus_encrypted_stream::mask::quorum::Roster;
use alpheus_node::failure::{Category, Failure};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::plan::MaskStrategy;
use alpheus_policy::planner::{MaskRequest, PlanOptions, PlannedQuery, PlanningError, plan};
use alpheus_policy::query::{Create, MaskChoice};
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;

/// The graph of masks is disconnected with a probability below 10^-9 per epoch.
const MASK_DELTA_EXPONENT: u8 = 9;

/// Who asks a query, and when it starts.
#[derive(Clone, Copy)]
pub struct QueryContext<'a> {
    /// The current time.
    pub now: Timestamp,
    /// Where released windows start; by default at the next window.
    pub from: Option<Timestamp>,
    /// Who asks, unless the query says `RELEASE TO`.
    pub consumer: &'a str,
    /// The certificates of consumers that `RELEASE TO` may name.
    pub readers: &'a dyn Fn(&str) -> Option<ConsumerId>,
}

impl<'a> QueryContext<'a> {
    /// A query of the service itself, for windows from `from` on, without `RELEASE TO`.
    #[must_use]
    pub fn from(from: Timestamp) -> QueryContext<'a> {
        QueryContext { now: from, from: Some(from), consumer: "service", readers: &|_| None }
    }

    /// The same, with the consumers that `RELEASE TO` may name.
    #[must_use]
    pub fn with_readers(self, readers: &'a dyn Fn(&str) -> Option<ConsumerId>) -> QueryContext<'a> {
        QueryContext { readers, ..self }
    }
}

/// Plans a query over the catalogue's streams.
///
/// # Errors
/// [`PlanningError`] with every rule that is broken and the nearest query that would
/// be allowed.
pub fn plan_query(
    create: &Create,
    catalog: &Catalog,
    context: QueryContext<'_>,
    rng: &mut impl CryptoRng,
) -> Result<PlannedQuery, PlanningError> {
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let mut planned = plan(create, catalog, &options(context, &nonce))?;
    let widths = planned.plans.first().map(bin_widths::in_words);
    planned.accuracy.extend(widths.into_iter().flatten());
    Ok(planned)
}

/// Everything about a plan that is not in its query, with fresh bytes for its nonce.
#[must_use]
pub fn options<'a>(context: QueryContext<'a>, nonce: &'a [u8; 32]) -> PlanOptions<'a> {
    PlanOptions {
        now: context.now,
        from: context.from,
        nonce,
        consumer: context.consumer,
        readers: context.readers,
        grace: Span(0),
        mask_delta_exponent: MASK_DELTA_EXPONENT,
        masks: &masks,
    }
}

/// Explains why a query was refused, with a hint if there was no policies file.
#[must_use]
pub fn failure(refusal: &PlanningError, text: &str, place: &str, policies: bool) -> Failure {
    let category = if refusal.is_mistaken() { Category::Input } else { Category::Refused };
    let failure =
        Failure::new(category, refusal.explained(text)).at(place).with_id(of_refusal(refusal));
    let failure = refusal.query().into_iter().fold(failure, Failure::with_query);
    if policies || category == Category::Input {
        return failure;
    }
    failure.with_help(
        "without --policies, every owner chooses the first option that the schema offers for \
         each attribute; `alpheus query` with a DESCRIBE statement lists the options",
    )
}

fn masks(request: &MaskRequest<'_>) -> Option<MaskStrategy> {
    let wanted = request.wanted.map(preference);
    let roster = Roster::new(request.owners, request.tolerated, request.min_population);
    choose(wanted, &roster, request.delta_exponent).ok()
}

/// How a query wants masks to be shared.
pub(super) fn preference(choice: MaskChoice) -> MaskPreference {
    match choice {
        MaskChoice::Clique => MaskPreference::Clique,
        MaskChoice::Dream => MaskPreference::Dream,
        MaskChoice::Epoch => MaskPreference::Epoch,
        MaskChoice::Neighbours => MaskPreference::Neighbours,
    }
}
