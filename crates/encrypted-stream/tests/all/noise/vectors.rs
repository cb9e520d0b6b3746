//! Known answers from an independent script: `vectors/noise`.

use crate::noise::stream::Stream;
use crate::noise::totals::fresh;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::noise::{Coefficients, Shares, seed_generator};
use alpheus_policy::budget::{RowNoise, RunningNoise};
use alpheus_policy::ids::PlanId;
use alpheus_test_support::vectors::array;
use rand_core::Rng;
use serde_json::Value;
use std::num::NonZeroU32;

fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("noise/v1/{name}.json"))
}

fn noise(case: &Value) -> RowNoise {
    let (kind, of) = case["noise"].as_object().unwrap().iter().next().unwrap();
    let number = |name: &str| -> u128 { of[name].as_str().unwrap().parse().unwrap() };
    let small = |name: &str| u64::try_from(number(name)).unwrap();
    match kind.as_str() {
        "Laplace" => RowNoise::Laplace { above: small("above"), below: number("below") },
        "Skellam" => RowNoise::Skellam {
            above: small("above"),
            below: small("below"),
            granule: small("granule"),
        },
        "Gaussian" => RowNoise::Gaussian { variance: number("variance") },
        other => panic!("{other}"),
    }
}

fn honest(case: &Value) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(case["honest"].as_u64().unwrap()).unwrap()).unwrap()
}

fn text<T: std::str::FromStr>(case: &Value, name: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    case[name].as_str().unwrap().parse().unwrap()
}

/// Modulo 2^64.
fn word(text: &Value) -> u64 {
    text.as_str().unwrap().parse::<i128>().unwrap() as u64
}

#[test]
fn shares_match_the_script() {
    for case in cases("shares") {
        let shares = Shares::new(&[noise(&case)], honest(&case)).unwrap();
        let mut stream = Stream::new(text(&case, "seed"));
        for expected in case["draws"].as_array().unwrap() {
            assert_eq!(shares.draw(&mut stream).expose(), [word(expected)], "{}", case["noise"]);
        }
        assert_eq!(stream.next_u64(), text::<u64>(&case, "next"), "{}", case["noise"]);
    }
}

#[test]
fn invalid_noise_is_rejected_with_the_error_of_the_script() {
    for case in cases("shares_bad_noise") {
        let refused = Shares::new(&[noise(&case)], honest(&case)).unwrap_err();
        assert_eq!(format!("{refused:?}"), case["error"].as_str().unwrap(), "{case}");
    }
}

#[test]
fn coefficients_match_central_binomials() {
    let coefficients = Coefficients::new(1000);
    for case in cases("coefficients") {
        let k = usize::try_from(case["k"].as_u64().unwrap()).unwrap();
        let units = u128::from_str_radix(case["units"].as_str().unwrap(), 16).unwrap();
        assert_eq!(coefficients.as_units()[k], units, "{k}");
    }
}

#[test]
fn running_totals_match_the_script() {
    for case in cases("running") {
        let small = |name: &str| u8::try_from(case[name].as_u64().unwrap()).unwrap();
        let noise = RunningNoise {
            seed_scale: text(&case, "seed_scale"),
            fraction_bits: small("fraction_bits"),
            fine_bits: small("fine_bits"),
        };
        let windows = u32::from(small("windows"));
        let mut seeds = fresh(&[Some(noise)], windows);
        let mut stream = Stream::new(text(&case, "seed"));
        (0..windows).for_each(|_| seeds.extend(&mut stream).unwrap());
        let coefficients = Coefficients::new(windows);
        for share in case["shares"].as_array().unwrap() {
            let number = |value: &Value| value.as_u64().map(|t| t as u32);
            let (t, last) = (number(&share["t"]).unwrap(), number(&share["last"]));
            let drawn = seeds.share(&coefficients, t, last).unwrap();
            assert_eq!(drawn.expose(), [word(&share["share"])], "{case} {t} {last:?}");
        }
    }
}

/// From a controller's secret to its addend to a row.
#[test]
fn keyed_totals_match_the_script() {
    for case in cases("keyed_totals") {
        let number = |value: &Value| value.as_u64().map(|t| u32::try_from(t).unwrap());
        let bytes = |name: &str| array::<32>(&case, name);
        let small = |name: &str| u8::try_from(case[name].as_u64().unwrap()).unwrap();
        let noise = RunningNoise {
            seed_scale: text(&case, "seed_scale"),
            fraction_bits: small("fraction_bits"),
            fine_bits: small("fine_bits"),
        };
        let windows = number(&case["windows"]).unwrap();
        let (secret, plan) = (Secret::from_bytes(bytes("secret")), PlanId(bytes("plan")));
        let mut seeds = fresh(&[None, Some(noise)], windows);
        for place in 0..windows {
            seeds.extend(&mut seed_generator(&secret, &plan, place)).unwrap();
        }
        let coefficients = Coefficients::new(windows);
        for share in case["shares"].as_array().unwrap() {
            let (place, last) = (number(&share["place"]).unwrap(), number(&share["last"]));
            let drawn = seeds.share(&coefficients, place, last).unwrap();
            assert_eq!(drawn.expose(), [0, word(&share["share"])], "{place} {last:?}");
        }
    }
}
