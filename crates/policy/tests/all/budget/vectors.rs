//! Known answers from an independent script: `vectors/budget`.

use alpheus_policy::budget::{
    Accounts, CalibrationError, Change, Charge, Cost, Epsilon, Mechanism, NoiseRequest, Rho,
    RowGroup, RowNoise, Rule, calibrate, calibrate_running, ln_inverse_delta, max_rho, min_epsilon,
};
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::layout::FieldStatistic;
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_test_support::vectors::number_of as number;
use alpheus_time::{Span, Timestamp, Window};
use serde_json::Value;
use std::num::NonZeroU32;

fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("budget/v1/{name}.json"))
}

fn text<T: std::str::FromStr>(value: &Value) -> T
where
    T::Err: std::fmt::Debug,
{
    value.as_str().unwrap().parse().unwrap()
}

fn mechanism(case: &Value) -> Mechanism {
    match case["mechanism"].as_str().unwrap() {
        "Laplace" => Mechanism::Laplace,
        "Skellam" => Mechanism::Skellam,
        "Gaussian" => Mechanism::Gaussian,
        other => panic!("{other}"),
    }
}

fn request(case: &Value) -> NoiseRequest {
    NoiseRequest {
        mechanism: case.get("mechanism").map_or(Mechanism::Gaussian, |_| mechanism(case)),
        micro_epsilon: number(&case["micro_epsilon"]),
        atto_delta: text(&case["atto_delta"]),
        events: case.get("events").map_or(1, text),
    }
}

#[test]
fn conversions_match_the_script() {
    for case in cases("conversions") {
        let epsilon = Epsilon::from_micro(number(&case["micro_epsilon"]));
        let delta = text(&case["atto_delta"]);
        assert_eq!(ln_inverse_delta(delta).unwrap().to_string(), case["ln"].as_str().unwrap());
        let rho = max_rho(epsilon, delta);
        assert_eq!(rho, Rho(text(&case["most_rho"])), "{case}");
        assert_eq!(min_epsilon(rho, delta), Some(Epsilon(text(&case["least_epsilon"]))), "{case}");
        assert_eq!(epsilon.rho(), Rho(text(&case["pure_rho"])), "{case}");
    }
}

/// Groups of sums of attributes 0, 1, …, on consecutive rows.
fn groups(case: &Value) -> (Vec<RowGroup>, usize) {
    let (mut next, mut groups) = (0u16, Vec::new());
    for (attribute, group) in (0u16..).zip(case["groups"].as_array().unwrap()) {
        let rows: u16 = number(&group[0]);
        groups.push(RowGroup {
            rows: (next..next + rows).collect(),
            statistic: FieldStatistic::Sum(attribute),
            event: Change { l1: text(&group[1]), l2_squared: text(&group[2]) },
        });
        next += rows;
    }
    (groups, usize::from(next))
}

fn noise(value: &Value) -> RowNoise {
    let (kind, of) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "Laplace" => RowNoise::Laplace { above: text(&of["above"]), below: text(&of["below"]) },
        "Skellam" => RowNoise::Skellam {
            above: text(&of["above"]),
            below: text(&of["below"]),
            granule: text(&of["granule"]),
        },
        "Gaussian" => RowNoise::Gaussian { variance: text(&of["variance"]) },
        other => panic!("{other}"),
    }
}

#[test]
fn noise_matches_the_script() {
    for case in cases("noise") {
        let (groups, outputs) = groups(&case);
        let calibrated = calibrate(&request(&case), &groups, outputs).unwrap();
        for (group, expected) in groups.iter().zip(case["noise"].as_array().unwrap()) {
            for row in &group.rows {
                assert_eq!(calibrated.rows[usize::from(*row)], noise(expected), "{case}");
            }
        }
        let units = text(&case["charge"]);
        let charge = match mechanism(&case) {
            Mechanism::Laplace => Cost::Pure(Epsilon(units)),
            _ => Cost::Concentrated(Rho(units)),
        };
        assert!(calibrated.charges.iter().all(|(_, own)| *own == charge), "{case}");
        assert_eq!(calibrated.charges.len(), groups.len());
    }
}

#[test]
fn bad_requests_have_the_errors_of_the_script() {
    for case in cases("noise_bad_asks") {
        let l1: u128 = text(&case["l1"]);
        let event = Change { l1, l2_squared: l1.saturating_mul(l1) };
        let group = RowGroup { rows: vec![0], statistic: FieldStatistic::Sum(0), event };
        let refused: CalibrationError = calibrate(&request(&case), &[group], 1).unwrap_err();
        assert_eq!(format!("{refused:?}"), case["error"].as_str().unwrap(), "{case}");
    }
}

#[test]
fn running_totals_match_the_script() {
    for case in cases("running") {
        let event = Change { l1: 500, l2_squared: 250_000 };
        let group = RowGroup { rows: vec![0], statistic: FieldStatistic::Sum(0), event };
        let honest = NonZeroU32::new(number(&case["honest"])).unwrap();
        let (windows, touched) = (number(&case["windows"]), number(&case["touched"]));
        let sized =
            calibrate_running(&request(&case), &[group], 1, windows, touched, honest).unwrap();
        let row = sized.rows[0].unwrap();
        assert_eq!(row.fraction_bits, number::<u8>(&case["fraction_bits"]), "{case}");
        assert_eq!(row.fine_bits, number::<u8>(&case["fine_bits"]), "{case}");
        // Never below the exact value, and above it only by rounding.
        let exact: u128 = text(&case["seed_scale"]);
        assert!(row.seed_scale >= exact && row.seed_scale - exact <= exact >> 100, "{case}");
    }
}

#[test]
fn accounts_allow_what_the_script_allows() {
    for case in cases("accounts") {
        let unit = match case["unit"].as_str().unwrap() {
            "event" => PrivacyUnit::Event,
            "person-per-window" => PrivacyUnit::PersonPerWindow,
            _ => PrivacyUnit::PersonPerPeriod(Span(number(&case["period"]))),
        };
        let budget = Budget {
            window_micro_epsilon: number(&case["per_window"]),
            total_micro_epsilon: number(&case["total"]),
            atto_delta: text(&case["atto_delta"]),
            unit,
        };
        let mut accounts = Accounts::default();
        for own in case["asks"].as_array().unwrap() {
            let units = text(&own["units"]);
            let (pure, of): (bool, fn(u128) -> Cost) = match own["kind"].as_str().unwrap() {
                "Pure" => (true, |units| Cost::Pure(Epsilon(units))),
                _ => (false, |units| Cost::Concentrated(Rho(units))),
            };
            let window = Window {
                start: Timestamp(number(&own["start"])),
                end: Timestamp(number(&own["end"])),
            };
            let plan = PlanId([number(&own["plan"]); 32]);
            let charge = Charge { plan, window, cost: of(units), slack_bits: 100 };
            let owner = OwnerId([1; 32]);
            match accounts.check(owner, 0, &budget, &charge) {
                Ok(record) => {
                    assert!(own["refused"].is_null(), "{own}");
                    record.iter().for_each(|record| accounts.apply(record));
                }
                Err(refused) => {
                    let rule = match refused.rule {
                        Rule::Window => "Window",
                        Rule::Total => "Total",
                        Rule::Period(_) => "Period",
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(rule, own["refused"]["rule"].as_str().unwrap(), "{own} {pure}");
                    let nearest = text::<u128>(&own["refused"]["nearest"]);
                    assert_eq!(refused.nearest, (nearest > 0).then(|| of(nearest)), "{own}");
                }
            }
        }
    }
}
