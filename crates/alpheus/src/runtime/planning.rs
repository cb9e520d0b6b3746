//! From a query to plans: the planner, with masks that suit the roster.

use crate::failure::{Category, Failure};
use alpheus_encrypted_stream::mask::params::{Wanted, choose};
use alpheus_encrypted_stream::mask::quorum::Roster;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::plan::MaskStrategy;
use alpheus_policy::planner::{MaskRequest, PlanOptions, PlannedQuery, Refusal, plan};
use alpheus_policy::query::{Create, MaskChoice};
use alpheus_policy::time::{Span, Timestamp};
use rand_core::CryptoRng;

/// A graph of masks falls apart with a chance below 10^-9 in an epoch.
const MASK_DELTA_EXPONENT: u8 = 9;

/// Who asks, and since when.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The clock's time.
    pub now: Timestamp,
    /// Where released windows start; by default at the next that begins.
    pub from: Option<Timestamp>,
    /// Who asks, unless the query says `RELEASE TO`.
    pub consumer: &'a str,
    /// The certificates of consumers that `RELEASE TO` may name.
    pub readers: &'a dyn Fn(&str) -> Option<ConsumerId>,
}

impl<'a> Asking<'a> {
    /// By the service itself, for windows from `from` on. `RELEASE TO` names nobody.
    #[must_use]
    pub fn from(from: Timestamp) -> Asking<'a> {
        Asking { now: from, from: Some(from), consumer: "service", readers: &|_| None }
    }

    /// The same, where these are the consumers that `RELEASE TO` may name.
    #[must_use]
    pub fn with_readers(self, readers: &'a dyn Fn(&str) -> Option<ConsumerId>) -> Asking<'a> {
        Asking { readers, ..self }
    }
}

/// Plans a query over the catalogue's streams.
///
/// # Errors
/// [`Refusal`] with every rule that is broken and the nearest query that would
/// be allowed.
pub fn plan_query(
    create: &Create,
    catalog: &Catalog,
    asked: Asking<'_>,
    rng: &mut impl CryptoRng,
) -> Result<PlannedQuery, Refusal> {
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let options = PlanOptions {
        now: asked.now,
        from: asked.from,
        nonce: &nonce,
        consumer: asked.consumer,
        readers: asked.readers,
        grace: Span(0),
        mask_delta_exponent: MASK_DELTA_EXPONENT,
        masks: &masks,
    };
    plan(create, catalog, &options)
}

/// Says why a query is not planned, and what might be the matter where nobody
/// wrote down what owners chose.
pub(crate) fn failure(refusal: &Refusal, text: &str, place: &str, policies: bool) -> Failure {
    let category = if refusal.is_mistaken() { Category::Input } else { Category::Refused };
    let failure = Failure::new(category, refusal.render(text)).at(place);
    if policies || category == Category::Input {
        return failure;
    }
    failure.with_help(
        "no --policies were given, so that every owner chose the first option that the schema \
         offers for each attribute; `alpheus query` with a DESCRIBE of the schema lists them",
    )
}

fn masks(request: &MaskRequest<'_>) -> Option<MaskStrategy> {
    let wanted = request.wanted.map(|choice| match choice {
        MaskChoice::Clique => Wanted::Clique,
        MaskChoice::Dream => Wanted::Dream,
        MaskChoice::Epoch => Wanted::Epoch,
        MaskChoice::Neighbours => Wanted::Neighbours,
    });
    let roster = Roster::new(request.owners, request.alpha, request.min_population);
    choose(wanted, &roster, request.dropout, request.delta_exponent).ok()
}
