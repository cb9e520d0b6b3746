//! Results computed from released rows, checked against exact fractions in Python and at
//! the bounds of packing.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test's way to fail, and numbers it knows"
)]

use alpheus_encrypted_stream::decode::{
    DecodeError, Output, Rational, decode, decode_noisy, decode_signed, signed_digits,
};
use alpheus_policy::select::{
    Bins, ByOutput, HistogramOutput, MomentOutput, RegressionOutput, ReleasePlan, SelectItem,
    Statistic, SumLocation,
};
use proptest::prelude::*;
use serde_json::Value;

fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("statistics/v1/{name}.json"))
}

/// A plan whose cells are limbs, so that its rows can hold any sums.
fn plan(statistics: Vec<Statistic>, cells: u16) -> ReleasePlan {
    let place = |i| SumLocation::Limbs { low: 2 * i, high: 2 * i + 1 };
    let item = |statistic| SelectItem { alias: String::new(), statistic };
    ReleasePlan {
        cells: (0..cells).map(place).collect(),
        items: statistics.into_iter().map(item).collect(),
    }
}

/// Rows that hold these sums as limbs, and the check word.
fn rows(cells: &[i128]) -> Vec<u64> {
    let limbs = |cell: &i128| [u64::from(*cell as u32), (*cell >> 32) as u64];
    cells.iter().flat_map(limbs).chain([0]).collect()
}

fn integer(case: &Value, name: &str) -> i128 {
    case[name].as_str().unwrap().parse().unwrap()
}

fn scale(case: &Value, name: &str) -> u8 {
    u8::try_from(case[name].as_u64().unwrap()).unwrap()
}

fn float(case: &Value, name: &str) -> Output {
    case[name].as_str().map_or(Output::Null, |text| Output::Float(text.parse().unwrap()))
}

#[test]
fn moments_are_rounded_once() {
    for case in cases("moments") {
        let cells = ["count", "sum", "squares"].map(|name| integer(&case, name));
        let moments = |output| Statistic::Moments {
            output,
            count: 0,
            sum: 1,
            squares: Some(2),
            scale: scale(&case, "scale"),
        };
        let outputs = [MomentOutput::Mean, MomentOutput::Variance, MomentOutput::Deviation];
        let plan = plan(outputs.map(moments).to_vec(), 3);
        // The squares of extreme cases do not fit in two limbs.
        if cells[2] >> 95 == 0 {
            let expected = ["mean", "variance", "deviation"].map(|name| float(&case, name));
            assert_eq!(decode(&plan, &rows(&cells)).unwrap(), expected, "{case}");
        }
    }
}

#[test]
fn rationals_round_to_nearest_even() {
    for case in cases("moments") {
        let [count, sum] = ["count", "sum"].map(|name| integer(&case, name));
        let scale = i32::from(scale(&case, "scale"));
        let mean = Rational::new(sum, count).map(|mean| mean.times_ten_to(-scale).to_f64());
        assert_eq!(mean.map_or(Output::Null, Output::Float), float(&case, "mean"), "{case}");
    }
    let half = |n: u32| num_bigint::BigInt::from(1) << n;
    let least = f64::from_bits(1);
    assert_eq!(Rational::new(1, half(1074)).unwrap().to_f64(), least);
    assert_eq!(Rational::new(1, half(1075)).unwrap().to_f64(), 0.0);
    assert_eq!(Rational::new(3, half(1075)).unwrap().to_f64(), 2.0 * least);
    assert_eq!(Rational::new(half(1074) + 1, half(2149)).unwrap().to_f64(), least);
    assert_eq!(Rational::new(half(1100), 1).unwrap().to_f64(), f64::INFINITY);
    assert_eq!(Rational::new(-1, 2).unwrap().to_f64(), -0.5);
    assert_eq!(Rational::new(1, -2).unwrap().to_f64(), -0.5);
    assert!(Rational::new(1, 0).is_none());
    assert_eq!(Rational::new(-4, 1).unwrap().sqrt_to_f64(), None);
    assert_eq!(Rational::new(9, 4).unwrap().sqrt_to_f64(), Some(1.5));
}

proptest! {
    /// The processor's division of two integer floats is correctly rounded.
    #[test]
    fn small_fractions_agree_with_the_processor(a in -(1i64 << 53)..1 << 53, b in 1i64..1 << 53) {
        let exact = Rational::new(a, b).unwrap();
        prop_assert_eq!(exact.to_f64(), a as f64 / b as f64);
        if a >= 0 {
            prop_assert_eq!(Rational::new(a, 1).unwrap().sqrt_to_f64(), Some((a as f64).sqrt()));
        }
    }
}

#[test]
fn regression_is_in_natural_units() {
    for case in cases("pairs") {
        let cells = ["count", "x", "y", "xx", "xy", "yy"].map(|name| integer(&case, name));
        let pair = |output| Statistic::Regression {
            output,
            count: 0,
            x: 1,
            y: 2,
            xx: Some(3),
            xy: 4,
            yy: Some(5),
            x_scale: scale(&case, "x_scale"),
            y_scale: scale(&case, "y_scale"),
        };
        let outputs = [
            RegressionOutput::Slope,
            RegressionOutput::Intercept,
            RegressionOutput::RSquared,
            RegressionOutput::Covariance,
        ];
        let names = ["slope", "intercept", "r_squared", "covariance"];
        let expected = names.map(|name| float(&case, name));
        let plan = plan(outputs.map(pair).to_vec(), 6);
        assert_eq!(decode(&plan, &rows(&cells)).unwrap(), expected, "{case}");
    }
}

#[test]
fn digits_and_limbs_are_read_as_written() {
    for case in cases("packing") {
        let (bits, word) = (scale(&case, "bits"), case["word"].as_u64().unwrap());
        let expected: Vec<i64> = serde_json::from_value(case["digits"].clone()).unwrap();
        assert_eq!(signed_digits(word, bits).collect::<Vec<_>>(), expected, "{case}");
        let place = |digit| SumLocation::Digit { row: 0, bits, digit };
        let digits = u8::try_from(expected.len()).unwrap();
        let plan = ReleasePlan { cells: (0..digits).map(place).collect(), items: vec![] };
        let cells = alpheus_encrypted_stream::decode::cells(&plan, &[word, 0]).unwrap();
        assert_eq!(cells, expected.into_iter().map(i128::from).collect::<Vec<_>>());
    }
    for case in cases("limbs") {
        let limbs = ["low", "high"].map(|name| case[name].as_u64().unwrap());
        let plan =
            ReleasePlan { cells: vec![SumLocation::Limbs { low: 0, high: 1 }], items: vec![] };
        let rows = [limbs[0], limbs[1], 0];
        let cells = alpheus_encrypted_stream::decode::cells(&plan, &rows).unwrap();
        assert_eq!(cells, [integer(&case, "value")]);
    }
}

proptest! {
    /// Digits whose sums reach the ends of their declared range do not affect their
    /// neighbours.
    #[test]
    fn digits_never_carry(
        bits in 2u8..=64,
        events in proptest::collection::vec((any::<u8>(), any::<i64>()), 0..40),
        extreme: bool,
    ) {
        let per_word = 64 / usize::from(bits);
        let (low, high) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
        let mut sums = vec![0i64; per_word];
        let mut word = 0u64;
        for (digit, value) in events {
            let digit = usize::from(digit) % per_word;
            // Up to the window's declared bound.
            let (least, most) = (low - sums[digit].min(0), high - sums[digit].max(0));
            let value = if extreme && value < 0 { least } else if extreme { most }
                else { value.clamp(least, most) };
            sums[digit] += value;
            word = word.wrapping_add((value as u64) << (digit * usize::from(bits)));
        }
        prop_assert_eq!(signed_digits(word, bits).collect::<Vec<_>>(), sums);
    }
}

#[test]
fn invalid_rows_and_plans_are_rejected_with_a_specific_error() {
    for case in cases("decode_bad_rows") {
        let plan: ReleasePlan = serde_json::from_value(case["plan"].clone()).unwrap();
        let rows: Vec<u64> = serde_json::from_value(case["rows"].clone()).unwrap();
        let error = decode(&plan, &rows).unwrap_err();
        let name = format!("{error:?}");
        assert!(name.starts_with(case["error"].as_str().unwrap()), "{case}: {name}");
    }
}

fn bins(edges: &[i64], min: i64, max: i64, scale: u8) -> Bins {
    let cells = (0..u16::try_from(edges.len()).unwrap()).map(|i| vec![i]).collect();
    Bins { edges: edges.to_vec(), cells, min, max, scale }
}

fn read(output: HistogramOutput, bins: &Bins, counts: &[i128]) -> Output {
    let statistic = Statistic::Histogram { output, bins: bins.clone() };
    let plan = plan(vec![statistic], u16::try_from(counts.len()).unwrap());
    decode(&plan, &rows(counts)).unwrap().remove(0)
}

#[test]
fn quantiles_name_the_bin_of_the_value() {
    for case in cases("quantiles") {
        let counts: Vec<i128> = serde_json::from_value(case["counts"].clone()).unwrap();
        let edges: Vec<i64> = (0..counts.len()).map(|i| 10 * i as i64).collect();
        let [numerator, denominator] =
            ["numerator", "denominator"].map(|name| case[name].as_u64().unwrap() as u32);
        let output = HistogramOutput::Quantile { numerator, denominator };
        let expected = case["bin"]
            .as_i64()
            .map_or(Output::Null, |bin| Output::decimal(10 * i128::from(bin), 1));
        assert_eq!(read(output, &bins(&edges, 0, 10_000, 1), &counts), expected, "{case}");
    }
}

#[test]
fn extremes_bound_every_value() {
    use HistogramOutput::{Counts, Max, Min, Mode, Range, Top};
    let tens = bins(&[0, 10, 20, 30], -5, 99, 1);
    let middle = [0, 3, 7, 0];
    let decimal = |scaled| Output::decimal(scaled, 1);
    assert_eq!(read(Min, &tens, &middle), decimal(10));
    assert_eq!(read(Max, &tens, &middle), decimal(29));
    assert_eq!(read(Range, &tens, &middle), decimal(19));
    assert_eq!(read(Mode, &tens, &middle), decimal(20));
    assert_eq!(read(Counts, &tens, &middle), Output::Integers(middle.to_vec()));
    // The end bins reach to the declared minimum and maximum.
    assert_eq!(read(Min, &tens, &[1, 0, 0, 1]), decimal(-5));
    assert_eq!(read(Max, &tens, &[1, 0, 0, 1]), decimal(99));
    let top = read(Top { k: 2 }, &tens, &[4, 0, 9, 4]);
    assert_eq!(serde_json::to_string(&top).unwrap(), r#"[["2",9],["0",4]]"#);
    for output in [Min, Max, Range, Mode, Counts, Top { k: 1 }] {
        assert_eq!(read(output, &tens, &[0; 4]), Output::Null);
    }
}

#[test]
fn with_bins_of_one_unit_extremes_are_exact() {
    let units = bins(&[0, 1, 2, 3, 4], 0, 4, 0);
    assert_eq!(read(HistogramOutput::Min, &units, &[0, 1, 0, 1, 0]), Output::decimal(1, 0));
    assert_eq!(read(HistogramOutput::Max, &units, &[0, 1, 0, 1, 0]), Output::decimal(3, 0));
}

#[test]
fn sums_are_exact_and_null_without_data() {
    let sum = |count| Statistic::Sum { sum: 0, count, scale: 3 };
    let side = Statistic::SideSum { sum: 0, count: 1, scale: 3 };
    let count = Statistic::Count { count: 1, of: None };
    let above = Statistic::Count { count: 1, of: Some(2) };
    let plan = plan(vec![sum(None), sum(Some(1)), side, count, above], 3);
    let json = |cells| serde_json::to_string(&decode(&plan, &rows(cells)).unwrap()).unwrap();
    assert_eq!(json(&[-5, 0, 0]), r#"["-0.005",null,null,null,null]"#);
    assert_eq!(json(&[-5, 0, 4]), r#"["-0.005",null,null,null,0]"#);
    let large = i128::from(i64::MAX) * 1000;
    let text =
        r#"["9223372036854775807.000","9223372036854775807.000","9223372036854775807.000",2,2]"#;
    assert_eq!(json(&[large, 2, 9]), text);
}

#[test]
fn buckets_are_objects_from_lower_edge_to_value() {
    let by = |output| Statistic::By {
        output,
        counts: bins(&[-50, 0, 50], -500, 500, 1),
        sums: Some((3..6).map(|i| vec![i]).collect()),
        squares: Some((6..9).map(|i| vec![i]).collect()),
        scale: 0,
    };
    let outputs = [ByOutput::Count, ByOutput::Sum, ByOutput::Mean, ByOutput::Variance];
    let plan = plan(outputs.map(by).to_vec(), 9);
    let json = |cells| serde_json::to_string(&decode(&plan, &rows(cells)).unwrap()).unwrap();
    let text = json(&[2, 0, 3, 7, 0, 3, 25, 0, 3]);
    let expected = r#"[{"-5":2,"5":3},{"-5":"7","5":"3"},{"-5":3.5,"5":1.0},{"-5":0.25,"5":0.0}]"#;
    assert_eq!(text, expected);
    assert_eq!(json(&[0; 9]), "[null,null,null,null]");
}

#[test]
fn truth_values_and_sketches_are_decoded() {
    let cells = vec![0, 1, 2, 3];
    let plan = plan(
        vec![
            Statistic::Any { cell: 0 },
            Statistic::All { cell: 0 },
            Statistic::Any { cell: 1 },
            Statistic::All { cell: 1 },
            Statistic::Distinct { cells: cells.clone() },
            Statistic::Frequency { cells: vec![1, 3] },
        ],
        4,
    );
    let json = |cells| serde_json::to_string(&decode(&plan, &rows(cells)).unwrap()).unwrap();
    // −4·ln(1/4) = 5.5.
    assert_eq!(json(&[0, 3, 1, 9]), "[false,true,true,false,6,3]");
    assert_eq!(json(&[1, 3, 1, 9]), "[true,false,true,false,null,3]");
}

#[test]
fn a_check_word_other_than_zero_is_an_error() {
    let plan = plan(vec![Statistic::Count { count: 0, of: None }], 1);
    assert_eq!(decode(&plan, &[5, 0, 1]), Err(DecodeError::CheckWordNotZero));
}

/// With noise, a zero count does not mean no data, no sum is an error, and results that no
/// data could have are null.
#[test]
fn noisy_sums_are_decoded_as_they_are() {
    let moments =
        |output| Statistic::Moments { output, count: 0, sum: 1, squares: Some(2), scale: 0 };
    let three = bins(&[0, 10, 20], 0, 30, 0);
    let histogram = |output| Statistic::Histogram { output, bins: three.clone() };
    let by = |output| Statistic::By {
        output,
        counts: three.clone(),
        sums: Some(vec![vec![2], vec![1], vec![0]]),
        squares: None,
        scale: 0,
    };
    let statistics = vec![
        Statistic::Count { count: 0, of: None },
        Statistic::Sum { sum: 1, count: Some(0), scale: 1 },
        moments(MomentOutput::Mean),
        moments(MomentOutput::Variance),
        histogram(HistogramOutput::Counts),
        histogram(HistogramOutput::Mode),
        by(ByOutput::Count),
        by(ByOutput::Mean),
        Statistic::Distinct { cells: vec![0, 1] },
    ];
    let plan = plan(statistics, 3);
    let json = |cells: &[i128]| {
        serde_json::to_string(&decode_noisy(&plan, &rows(cells)).unwrap()).unwrap()
    };
    let below = r#"[-2,"0.8",null,null,[-2,8,0],"10",{"0":-2,"10":8,"20":0},{"0":null,"10":1.0,"20":null},null]"#;
    assert_eq!(json(&[-2, 8, 0]), below);
    let nothing = r#"[0,"-0.3",null,null,[0,-3,0],null,{"0":0,"10":-3,"20":0},{"0":null,"10":null,"20":null},null]"#;
    assert_eq!(json(&[0, -3, 0]), nothing);
    // Four values with sum 8 have mean 2, whatever the squares are.
    assert!(json(&[4, 8, 1]).starts_with(r#"[4,"0.8",2.0,null,"#));
    let reversed = [rows(&[1, 1, 1]), vec![]].concat().into_iter().rev().collect::<Vec<_>>();
    assert_eq!(decode_noisy(&plan, &reversed), Err(DecodeError::CheckWordNotZero));
}

/// In rows that members sign, squares of no events cost the columns that read them, and no other.
#[test]
fn signed_sums_without_a_variance_have_their_other_columns() {
    let moments =
        |output| Statistic::Moments { output, count: 0, sum: 1, squares: Some(2), scale: 0 };
    let statistics = vec![
        Statistic::Count { count: 0, of: None },
        moments(MomentOutput::Mean),
        moments(MomentOutput::Variance),
        moments(MomentOutput::Deviation),
    ];
    let plan = plan(statistics, 3);
    let cells = [3, 3_000, 0];
    assert_eq!(decode(&plan, &rows(&cells)), Err(DecodeError::Impossible { item: 2 }));
    let json = |cells| serde_json::to_string(&decode_signed(&plan, &rows(cells)).unwrap()).unwrap();
    assert_eq!(json(&cells), "[3,1000.0,null,null]");
    assert_eq!(json(&[2, 4, 10]), "[2,2.0,1.0,1.0]");
    assert_eq!(json(&[0, 0, 0]), "[null,null,null,null]");
    assert_eq!(decode_signed(&plan, &[5, 0, 0, 1]), Err(DecodeError::CheckWordNotZero));
}
