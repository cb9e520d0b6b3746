//! Plans that comply with a policy, and plans that are refused.

use super::*;
use crate::fraction::Fraction;
use crate::ids::{ConsumerId, OwnerId, StreamId};
use crate::layout::FieldStatistic;
use crate::plan::Integrity;
use crate::plan::{MaskStrategy, PlannedStream, PopulationBounds, Release};
use crate::policy::Policies;
use crate::schema::{CoarseBuckets, Generalisation};
use crate::select::ReleasePlan;
use crate::selection::Selection;
use alpheus_time::{Span, Timestamp};
use proptest::prelude::*;

const SCHEMA: &str = "
name: Rides
capacity: { population: 1000, events: 100 }
streamAttributes:
  - name: pulse
    type: integer
    min: 0
    max: 300
    aggregations: [var, histogram: { lo: 0, width: 20, bins: 10 },
      by: { attribute: height, lo: 0, width: 5, bins: 12, statistics: [mean] }]
  - name: height
    type: integer
    min: 0
    max: 9000
    aggregations: [sum, histogram: { lo: 0, width: 5, bins: 12 }, { threshold: 30 }]
  - name: steps
    type: integer
    min: 0
    max: 12
    aggregations: [histogram: { lo: 0, width: 1, bins: 12 }]
streamPolicyOptions:
  - { name: aggr, option: aggregate, clients: [small, medium], window: [10s, 1hr] }
  - { name: coarse, option: aggregate, clients: small, window: 10s, generalise: { attribute: height, width: 15 } }
  - { name: own, option: stream-aggregate, window: 1hr, to: coach }
  - { name: open, option: public }
  - { name: noisy, option: dp-aggregate, attributes: [pulse, height], budget: { perWindow: 1, total: 1, unit: event } }
  - { name: priv, option: private }
";

struct Case {
    schema: Schema,
    layout: Layout,
    plan: Plan,
}

/// A plan that the weakest choice of `aggr` allows.
fn case(statistics: &[FieldStatistic], attributes: &[u16]) -> Case {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    let layout = Layout::of(&schema).unwrap();
    let words = statistics.iter().flat_map(|statistic| {
        let field = layout.field(*statistic).unwrap();
        field.first..field.first + field.words()
    });
    let mut rows: Vec<Vec<u16>> = words.map(|word| vec![word]).collect();
    rows.push(vec![layout.check_word()]);
    let plan = Plan {
        nonce: [0; 16],
        name: "Out".into(),
        consumer: "app".into(),
        sealed_to: None,
        schema: schema.id(),
        group: Vec::new(),
        window: Span::seconds(10),
        grace: Span::seconds(5),
        from: Timestamp(0),
        release: Release { rows },
        select: ReleasePlan::default(),
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: attributes.to_vec(),
        population: PopulationBounds { min: 10, max: 1000 },
        alpha: Fraction::THIRD,
        colluders: 8,
        dropout: Fraction::FIFTH,
        delta_exponent: 9,
        masks: MaskStrategy::Clique,
        epoch: None,
        roster: Vec::new(),
        streams: Vec::new(),
    };
    Case { schema, layout, plan }
}

impl Case {
    fn policy(&self, choices: &str) -> ResolvedPolicy {
        let yaml = format!("default: {choices}");
        Policies::from_yaml(&yaml, &self.schema).unwrap().of_owner("o").clone()
    }

    fn under(&self, choices: &str) -> Result<(), ComplianceError> {
        check(&self.plan, &self.schema, &self.layout, &self.policy(choices))
    }

    /// All denials under a choice that does not allow the plan.
    fn denials(&self, choices: &str) -> Vec<RequirementError> {
        match self.under(choices) {
            Err(ComplianceError::Policy { denials, .. }) => denials,
            other => panic!("{other:?}"),
        }
    }
}

fn pulse() -> Case {
    case(&[FieldStatistic::Sum(0), FieldStatistic::EventCount], &[0])
}

const AGGR: &str = "{'*': {option: aggr, clients: small, window: 10s}}";
const COARSE: &str = "{'*': coarse}";

#[test]
fn an_aggregate_is_allowed_and_every_number_counts() {
    assert_eq!(pulse().under(AGGR), Ok(()));
    let mut case = pulse();
    case.plan.population.min = 9;
    assert_eq!(case.denials(AGGR), [RequirementError::Population { requested: 9, min: 10 }]);
    let mut case = pulse();
    case.plan.alpha = Fraction { numerator: 33, denominator: 100 };
    assert!(matches!(case.denials(AGGR)[..], [RequirementError::Alpha { .. }]));
    let mut case = pulse();
    case.plan.colluders = 7;
    assert_eq!(case.denials(AGGR), [RequirementError::Colluders { requested: 7, min: 8 }]);
    case.plan.colluders = 9;
    assert_eq!(case.under(AGGR), Ok(()));
    let mut case = pulse();
    case.plan.dropout = Fraction { numerator: 1, denominator: 4 };
    assert!(matches!(case.denials(AGGR)[..], [RequirementError::Dropout { .. }]));
    let hourly = "{'*': {option: aggr, clients: small, window: 1hr}}";
    let (requested, allowed) = (Span::seconds(10), Span::seconds(3600));
    assert_eq!(pulse().denials(hourly), [RequirementError::Window { requested, allowed }]);
    let mut case = pulse();
    case.plan.window = Span::seconds(7200);
    assert_eq!(case.under(hourly), Ok(()));
}

#[test]
fn streams_count_against_the_capacity_regardless_of_owner() {
    let mut case = pulse();
    let stream = |controller| PlannedStream {
        stream: StreamId([0; 16]),
        owner: OwnerId([0; 32]),
        controller,
    };
    case.plan.streams = vec![stream(0); 1000];
    assert_eq!(case.under(AGGR), Ok(()));
    case.plan.streams.push(stream(0));
    assert_eq!(case.under(AGGR), Err(ComplianceError::TooManyStreams { streams: 1001, max: 1000 }));
}

/// An owner who picks none of several gets the most private.
#[test]
fn a_choice_left_open_is_the_most_private() {
    let denials = pulse().denials("{'*': aggr}");
    assert!(denials.contains(&RequirementError::Population { requested: 10, min: 100 }));
    assert!(denials.iter().any(|denial| matches!(denial, RequirementError::Window { .. })));
}

#[test]
fn private_allows_nothing_and_public_everything() {
    for choices in ["{}", "{pulse: priv}", "{height: open}"] {
        assert_eq!(
            pulse().under(choices),
            Err(ComplianceError::Private { attribute: 0 }),
            "{choices}"
        );
    }
    let mut case = pulse();
    case.plan.population.min = 1;
    case.plan.alpha = Fraction::ZERO;
    assert_eq!(case.under("{pulse: open}"), Ok(()));
}

#[test]
fn an_option_for_one_consumer_is_sealed_to_that_consumer() {
    let mut case = pulse();
    case.plan.population.min = 1;
    case.plan.window = Span::seconds(3600);
    assert_eq!(
        case.denials("{pulse: own}"),
        [RequirementError::Consumer { allowed: vec!["coach".into()] }]
    );
    // Without a seal, the service would open and see the result.
    case.plan.consumer = "coach".into();
    assert_eq!(
        case.denials("{pulse: own}"),
        [RequirementError::Consumer { allowed: vec!["coach".into()] }]
    );
    case.plan.sealed_to = Some(ConsumerId([1; 32]));
    assert_eq!(case.under("{pulse: own}"), Ok(()));
    // One alternative is enough, and the error names the closest one.
    assert_eq!(case.under("{pulse: [noisy, own]}"), Ok(()));
    case.plan.window = Span::seconds(10);
    let refused = case.under("{pulse: [noisy, own]}").unwrap_err();
    assert!(matches!(&refused, ComplianceError::Policy { option, .. } if option == "own"));
    assert_eq!(refused.rule(), "window");
}

#[test]
fn a_plan_without_noise_is_refused_where_noise_is_required() {
    let refused = pulse().under("{pulse: noisy}").unwrap_err();
    assert_eq!(refused.rule(), "needs-noise");
}

#[test]
fn every_attribute_that_a_row_derives_from_must_allow_it() {
    let by = FieldStatistic::By { of: 0, by: 1, aggregation: 2, order: 1 };
    let case = case(&[by], &[0, 1]);
    assert_eq!(case.under(AGGR), Ok(()));
    let choices = "{pulse: {option: aggr, clients: small, window: 10s}}";
    assert_eq!(case.under(choices), Err(ComplianceError::Private { attribute: 1 }));
}

#[test]
fn generalised_rows_are_unions_of_the_options_buckets() {
    let histogram = FieldStatistic::Histogram(1, 1);
    let mut case = case(&[histogram], &[1]);
    let first = case.layout.field(histogram).unwrap().first;
    let mut under = |cells: &[&[u16]]| {
        let rows = cells.iter().map(|row| row.iter().map(|cell| first + cell).collect());
        case.plan.release.rows = rows.collect();
        case.plan.release.rows.push(vec![case.layout.check_word()]);
        case.under(COARSE).map_err(|refused| refused.rule())
    };
    assert_eq!(under(&[&[0, 1, 2], &[3, 4, 5], &[6, 7, 8, 9, 10, 11]]), Ok(()));
    assert_eq!(under(&[&[0, 1, 2, 9, 10, 11]]), Ok(()));
    // [1..3] and [2..4] have the right width and differ in two single bins.
    for bad in [&[&[1, 2, 3][..]][..], &[&[0]], &[&[0, 1, 2, 3]], &[&[0, 1, 2], &[3, 4]]] {
        assert_eq!(under(bad), Err("generalise"), "{bad:?}");
    }
}

/// A signed policy may be coarser than anything that the schema offers now. A packed word
/// reveals each of its bins, not their sum.
#[test]
fn a_packed_word_is_not_a_bucket() {
    let histogram = FieldStatistic::Histogram(2, 0);
    let mut case = case(&[histogram], &[2]);
    let field = case.layout.field(histogram).unwrap();
    let word = field.first;
    let width = i64::try_from(field.cells_of(word).len()).unwrap();
    case.plan.release.rows = vec![vec![word], vec![case.layout.check_word()]];
    let mut policy = case.policy("{steps: {option: aggr, clients: small, window: 10s}}");
    let generalise = |width| Generalisation { attribute: 2, to: CoarseBuckets::Width(width) };
    let mut under = |width| {
        policy.attributes[2].alternatives[0].generalise = vec![generalise(width)];
        check(&case.plan, &case.schema, &case.layout, &policy).map_err(|refused| refused.rule())
    };
    assert!(width > 1, "the field is packed");
    assert_eq!(under(1), Ok(()));
    assert_eq!(under(width), Err("generalise"));
}

#[test]
fn an_attribute_seen_only_in_buckets_has_no_sum() {
    for statistic in
        [FieldStatistic::Sum(1), FieldStatistic::Threshold { of: 1, aggregation: 2, order: 0 }]
    {
        let denials = case(&[statistic], &[1]).denials(COARSE);
        assert_eq!(denials, [RequirementError::NotBucketed { attribute: 1, row: 0 }]);
    }
    // The other attribute's sums are not affected.
    assert_eq!(pulse().under(COARSE), Ok(()));
}

#[test]
fn a_plan_that_contradicts_itself_is_refused_under_any_policy() {
    let refused = |change: fn(&mut Plan)| {
        let mut case = pulse();
        change(&mut case.plan);
        case.under("{'*': open}").unwrap_err().rule()
    };
    assert_eq!(refused(|plan| plan.schema.0[0] ^= 1), "schema");
    assert_eq!(refused(|plan| plan.window = Span(0)), "tick");
    assert_eq!(refused(|plan| plan.window = Span::seconds(15)), "tick");
    assert_eq!(refused(|plan| plan.population.min = 0), "population");
    assert_eq!(refused(|plan| plan.population = PopulationBounds { min: 5, max: 4 }), "population");
    assert_eq!(refused(|plan| plan.population.max = 1001), "capacity");
    assert_eq!(refused(|plan| plan.alpha.denominator = 0), "fraction");
    assert_eq!(refused(|plan| plan.attributes.clear()), "attributes");
    assert_eq!(refused(|plan| plan.attributes = vec![1]), "attributes");
    assert_eq!(refused(|plan| plan.attributes = vec![0, 0]), "attributes");
    assert_eq!(refused(|plan| plan.attributes = vec![0, 9]), "attributes");
    assert_eq!(refused(|plan| plan.release.rows.clear()), "release");
    assert_eq!(refused(|plan| plan.release.rows.truncate(2)), "release");
    assert_eq!(refused(|plan| plan.release.rows.push(vec![0])), "release");
}

#[test]
fn rows_that_have_no_meaning_are_refused() {
    let pairs = case(&[FieldStatistic::Sum(0)], &[0]);
    let check = pairs.layout.check_word();
    let packed = pairs.layout.field(FieldStatistic::Histogram(2, 0)).unwrap();
    assert!(matches!(packed.packing, crate::layout::Packing::Digits { .. }));
    for row in [
        vec![],
        vec![0, 0],
        vec![1, 0],
        vec![0, 1],
        vec![0, check],
        vec![check],
        vec![check + 1],
        vec![packed.first, packed.first + 1],
    ] {
        let mut case = case(&[FieldStatistic::Sum(0)], &[0, 1]);
        case.plan.release.rows.insert(0, row.clone());
        assert_eq!(case.under("{'*': open}").unwrap_err().rule(), "release", "{row:?}");
    }
}

proptest! {
    /// No plan makes the check panic.
    #[test]
    fn any_release_is_checked_without_a_panic(
        rows in prop::collection::vec(prop::collection::vec(0u16..60, 0..5), 0..6),
        attributes in prop::collection::vec(0u16..4, 0..3),
        window in 0u64..40_000_000,
        alpha in (0u32..4, 0u32..4),
    ) {
        let mut case = pulse();
        case.plan.release.rows.splice(0..0, rows);
        case.plan.attributes = attributes;
        case.plan.window = Span(window);
        case.plan.alpha = Fraction { numerator: alpha.0, denominator: alpha.1 };
        let _ = case.under(COARSE);
    }
}
