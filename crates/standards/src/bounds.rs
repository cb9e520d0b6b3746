//! Bounds of an attribute from its type and the limits that a contract states, never wider
//! than both.

use crate::contract::Limits;
use crate::cursor::Clause;
use crate::kinds::{self, Kind};
use alpheus_policy::decimal::format_scaled;

/// Decimal places of a number whose places nobody states.
const DEFAULT_SCALE: u8 = 6;
/// Digits before the point that a number has room for, if no limit says how many it needs.
const USUAL_DIGITS: u32 = 12;
/// The most decimal places of an attribute.
const MAX_SCALE: u8 = 18;

/// A number's decimal places and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Decimal places; `None` for whole numbers.
    pub scale: Option<u8>,
    /// Where the number of places comes from.
    pub places: ScaleOrigin,
    /// Smallest value in units of the last place.
    pub min: i64,
    /// Largest value in units of the last place.
    pub max: i64,
    /// Whether the contract states the smallest value.
    pub min_is_stated: bool,
    /// Whether the contract states the largest value.
    pub max_is_stated: bool,
}

/// Where a number of decimal places comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOrigin {
    /// The contract states it.
    Stated,
    /// The contract states none.
    Usual,
    /// The contract states more than the bounds leave room for.
    Fewer,
}

impl Bounds {
    /// The smallest value as text.
    #[must_use]
    pub fn min_text(&self) -> String {
        format_scaled(self.min, self.scale.unwrap_or(0))
    }

    /// The largest value as text.
    #[must_use]
    pub fn max_text(&self) -> String {
        format_scaled(self.max, self.scale.unwrap_or(0))
    }
}

/// What became of a stated limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Where the limit stands.
    pub at: String,
    /// Why it could not be used, if so.
    pub problem: Option<&'static str>,
}

const NO_KIND: &str =
    "its type is not stated, so it does not become an attribute; state one and import again";
const NO_NUMBER: &str = "the limit is not a number that an attribute of 64 bits can hold";
const NONE_LEFT: &str =
    "no value is allowed: a lower limit is above an upper one, so it does not become an attribute";
const WIDER: &str = "wider than its type or another limit, which is used";

/// The bounds of a number, and what became of each limit that the contract states.
///
/// # Errors
/// If the kind is no number, or the limits leave none.
pub fn of(kind: Kind, limits: &Limits) -> Result<(Bounds, Vec<Use>), &'static str> {
    let mut uses = Vec::new();
    let mut bounds = by_type(kind, limits, &mut uses).ok_or(NO_KIND)?;
    uses.extend(limits.min.iter().map(|limit| lower(&mut bounds, limit, 0)));
    uses.extend(limits.above.iter().map(|limit| lower(&mut bounds, limit, 1)));
    uses.extend(limits.max.iter().map(|limit| upper(&mut bounds, limit, 0)));
    uses.extend(limits.below.iter().map(|limit| upper(&mut bounds, limit, 1)));
    if bounds.min <= bounds.max { Ok((bounds, uses)) } else { Err(NONE_LEFT) }
}

/// Bounds that no value is within.
const NOTHING: (i64, i64) = (i64::MAX, -i64::MAX);

fn lower(bounds: &mut Bounds, limit: &Clause<String>, step: i128) -> Use {
    let value = inward(&limit.value, bounds.scale.unwrap_or(0), true, step);
    let problem = match value.map(i64::try_from) {
        None => Some(NO_NUMBER),
        Some(Ok(value)) if value >= bounds.min => {
            (bounds.min, bounds.min_is_stated) = (value, true);
            None
        }
        // Above all numbers of 64 bits.
        Some(Err(_)) if value > Some(0) => {
            (bounds.min, bounds.max) = NOTHING;
            None
        }
        Some(Err(_)) if !bounds.min_is_stated => Some(NO_NUMBER),
        Some(_) => Some(WIDER),
    };
    Use { at: limit.at.clone(), problem }
}

fn upper(bounds: &mut Bounds, limit: &Clause<String>, step: i128) -> Use {
    let value = inward(&limit.value, bounds.scale.unwrap_or(0), false, step);
    let problem = match value.map(i64::try_from) {
        None => Some(NO_NUMBER),
        Some(Ok(value)) if value <= bounds.max => {
            (bounds.max, bounds.max_is_stated) = (value, true);
            None
        }
        // Below all numbers of 64 bits.
        Some(Err(_)) if value < Some(0) => {
            (bounds.min, bounds.max) = NOTHING;
            None
        }
        Some(Err(_)) if !bounds.max_is_stated => Some(NO_NUMBER),
        Some(_) => Some(WIDER),
    };
    Use { at: limit.at.clone(), problem }
}

/// The bounds that the type alone sets.
fn by_type(kind: Kind, limits: &Limits, uses: &mut Vec<Use>) -> Option<Bounds> {
    let digits = stated_digits(limits, kind, uses);
    let own = match kind {
        Kind::Integer { bounds } => bounds.or_else(|| width(limits, uses)),
        _ => None,
    };
    let (scale, places, range) = match (narrower(digits, kind), kind) {
        (Kind::Decimal { precision, scale: 0 }, Kind::Float) => {
            (Some(0), ScaleOrigin::Stated, kinds::digits(precision))
        }
        (
            Kind::Decimal { precision, scale },
            Kind::Integer { .. } | Kind::Decimal { .. } | Kind::Float,
        ) => of_digits(precision, scale, limits),
        (Kind::Integer { .. }, _) => (None, ScaleOrigin::Stated, own),
        (Kind::Float, _) => (Some(places(limits)), ScaleOrigin::Usual, None),
        _ => return None,
    };
    let unit = 10i64.saturating_pow(u32::from(scale.unwrap_or(0)));
    let in_units = |(min, max): (i64, i64)| (min.saturating_mul(unit), max.saturating_mul(unit));
    let range = match (range, own.map(in_units)) {
        (Some(one), Some(other)) => Some((one.0.max(other.0), one.1.min(other.1))),
        (one, other) => one.or(other),
    };
    let (min, max) = range.unwrap_or((-i64::MAX, i64::MAX));
    let stated = range.is_some();
    Some(Bounds { scale, places, min, max, min_is_stated: stated, max_is_stated: stated })
}

/// Stated digits, with no more before the point than the type has.
fn narrower(digits: Option<Kind>, kind: Kind) -> Kind {
    let whole = |kind: Kind| match kind {
        Kind::Decimal { precision, scale } => Some(precision.saturating_sub(scale)),
        _ => None,
    };
    match (digits, whole(kind)) {
        (Some(own @ Kind::Decimal { scale, .. }), Some(of_type)) => {
            let whole = whole(own).unwrap_or(of_type).min(of_type);
            Kind::Decimal { precision: whole.saturating_add(scale), scale }
        }
        (digits, _) => digits.unwrap_or(kind),
    }
}

/// The places of a number with so many digits, and the bounds that these set. If 64 bits have no room
/// for all places within the limits, there are fewer of them: a limit is no place to save digits.
fn of_digits(
    precision: u32,
    scale: u32,
    limits: &Limits,
) -> (Option<u8>, ScaleOrigin, Option<(i64, i64)>) {
    let stated = u8::try_from(scale).unwrap_or(u8::MAX);
    if scale == 0 {
        return (None, ScaleOrigin::Stated, kinds::digits(precision));
    }
    if let Some(range) = kinds::digits(precision).filter(|_| stated <= MAX_SCALE) {
        return (Some(stated), ScaleOrigin::Stated, Some(range));
    }
    let whole = precision.saturating_sub(scale);
    let largest = kinds::digits(whole).map_or(i128::from(i64::MAX), |(_, max)| max.into());
    let usual = largest.min(10i128.pow(USUAL_DIGITS) - 1);
    let sides = [tightest(&limits.max, &limits.below), tightest(&limits.min, &limits.above)];
    let sizes = sides.map(|limit| limit.map_or(usual, |limit| limit.min(largest)));
    let fits = |scale: &u8| {
        let unit = 10i128.pow(u32::from(*scale));
        sizes.iter().all(|size| size.saturating_mul(unit) <= i64::MAX.into())
    };
    let scale = (0..=stated.min(MAX_SCALE)).rev().find(fits).unwrap_or(0);
    let places = if scale < stated { ScaleOrigin::Fewer } else { ScaleOrigin::Stated };
    (Some(scale), places, kinds::digits(whole.saturating_add(scale.into())))
}

/// `precision` and `scale` beside a type without digits of its own.
fn stated_digits(limits: &Limits, kind: Kind, uses: &mut Vec<Use>) -> Option<Kind> {
    let number = |noted: &Clause<String>| noted.value.parse::<u32>().ok();
    let precision = number(limits.precision.as_ref()?)?;
    // Digits alone leave the places of the type as they are.
    let of_type = if let Kind::Decimal { scale, .. } = kind { scale } else { 0 };
    let scale = limits.scale.as_ref().and_then(number).unwrap_or(of_type);
    let used = limits.precision.iter().chain(&limits.scale);
    uses.extend(used.map(|noted| Use { at: noted.at.clone(), problem: None }));
    Some(Kind::Decimal { precision, scale })
}

/// The bounds of a width such as `i32`.
fn width(limits: &Limits, uses: &mut Vec<Use>) -> Option<(i64, i64)> {
    let width = limits.width.as_ref()?;
    let Some(Kind::Integer { bounds }) = kinds::of(&[&width.value]) else { return None };
    uses.push(Use { at: width.at.clone(), problem: None });
    bounds
}

/// Decimal places that hold every stated limit, and at least the usual ones.
fn places(limits: &Limits) -> u8 {
    let places = |noted: &Clause<String>| {
        let (_, digits, exponent) = parts(&noted.value)?;
        let places = u8::try_from(exponent.min(0).unsigned_abs()).ok()?;
        (places <= MAX_SCALE && digits.len() <= usize::from(MAX_SCALE)).then_some(places)
    };
    let needed = limits.stated().filter_map(places).max().unwrap_or(0).max(DEFAULT_SCALE);
    // Fewer, if a limit would not fit: it would be no limit then.
    let fits = |scale: &u8| {
        let has_room = |limit: &Clause<String>| fits(limit, *scale) || !fits(limit, 0);
        limits.stated().all(has_room)
    };
    (0..=needed).rev().find(fits).unwrap_or(0)
}

/// Whether 64 bits hold a limit in units of `10^-scale`.
fn fits(limit: &Clause<String>, scale: u8) -> bool {
    let units = inward(&limit.value, scale, true, 0);
    units.is_some_and(|units| i64::try_from(units).is_ok())
}

/// The size of the tightest of limits on one side, whole numbers above it included; none if 64 bits
/// do not hold it.
fn tightest(inclusive: &[Clause<String>], exclusive: &[Clause<String>]) -> Option<i128> {
    let size = |limit: &Clause<String>| {
        let [low, high] = [false, true].map(|up| inward(&limit.value, 0, up, 0));
        let size = low?.abs().max(high?.abs());
        i64::try_from(size).is_ok().then_some(size)
    };
    inclusive.iter().chain(exclusive).filter_map(size).min()
}

/// A limit in units of `10^-scale`. A finer limit is rounded inward, and an exclusive limit is a step
/// further in. A number far beyond 64 bits is `HUGE`.
fn inward(text: &str, scale: u8, up: bool, step: i128) -> Option<i128> {
    let (is_negative, digits, exponent) = parts(text)?;
    let shift = exponent.checked_add(i64::from(scale))?;
    // All digits before the last place, and whether there are others behind it.
    let length = i64::try_from(digits.len()).ok()?.checked_add(shift)?;
    let kept = usize::try_from(length).unwrap_or(0);
    let (size, is_finer) = match (digits.get(..kept), kept) {
        _ if digits.is_empty() => (0, false),
        (_, MAX_DIGITS..) => (HUGE, false),
        (Some(whole), _) => (whole.parse().unwrap_or(0), whole.len() < digits.len()),
        (None, _) => (format!("{digits:0<kept$}").parse().ok()?, false),
    };
    let (value, is_above) = if is_negative { (-size, false) } else { (size, true) };
    Some(match (is_finer, up) {
        (false, true) => value + step,
        (false, false) => value - step,
        // Cut toward zero, which is inward on one side alone.
        (true, true) => value + i128::from(is_above),
        (true, false) => value - i128::from(!is_above),
    })
}

/// More digits than any number of 64 bits has.
const MAX_DIGITS: usize = 21;
/// Beyond all numbers of 64 bits.
const HUGE: i128 = 10i128.pow(30);

/// A number's sign, its digits without zeros around them, and the power of ten behind the last one.
fn parts(text: &str) -> Option<(bool, String, i64)> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, behind) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{behind}");
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let power = i64::from(power.parse::<i32>().ok()?);
    let kept = digits.trim_end_matches('0');
    let zeros = digits.len() - kept.len();
    let exponent = power - i64::try_from(behind.len()).ok()? + i64::try_from(zeros).ok()?;
    Some((text.starts_with('-'), kept.trim_start_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_leave_room_for_the_limits() {
        let wide = |precision, scale| Kind::Decimal { precision, scale };
        for (kind, stated, expected) in [
            (
                wide(38, 18),
                ["0", "", "1000", ""],
                (Some(15), ScaleOrigin::Fewer, "1000.000000000000000"),
            ),
            (wide(76, 38), ["", "", "", ""], (Some(6), ScaleOrigin::Fewer, "9223372036854.775807")),
            (
                wide(38, 18),
                ["0", "", "", ""],
                (Some(6), ScaleOrigin::Fewer, "9223372036854.775807"),
            ),
            (
                wide(38, 18),
                ["-1", "", "1e15", ""],
                (Some(3), ScaleOrigin::Fewer, "1000000000000000.000"),
            ),
            (
                wide(38, 18),
                ["0", "", "", "8"],
                (Some(18), ScaleOrigin::Stated, "7.999999999999999999"),
            ),
            (
                wide(38, 18),
                ["0", "", "9.5", ""],
                (Some(17), ScaleOrigin::Fewer, "9.50000000000000000"),
            ),
            (wide(19, 9), ["", "", "", ""], (Some(8), ScaleOrigin::Fewer, "9999999999.99999999")),
            (wide(38, 2), ["", "", "", ""], (Some(2), ScaleOrigin::Stated, "92233720368547758.07")),
            (
                wide(18, 18),
                ["", "", "", ""],
                (Some(18), ScaleOrigin::Stated, "0.999999999999999999"),
            ),
            (wide(38, 0), ["0", "", "7", ""], (None, ScaleOrigin::Stated, "7")),
            (
                Kind::Float,
                ["0", "", "1e13", ""],
                (Some(5), ScaleOrigin::Usual, "10000000000000.00000"),
            ),
        ] {
            let (bounds, uses) = of(kind, &limits(stated)).unwrap();
            let found = (bounds.scale, bounds.places, bounds.max_text());
            let (scale, places, max) = expected;
            assert_eq!(found, (scale, places, max.to_owned()), "{kind:?} {stated:?}");
            assert!(uses.iter().all(|own| own.problem.is_none()), "{kind:?} {stated:?}");
        }
    }

    #[test]
    fn digits_beside_a_type_never_widen_it() {
        let wide = Kind::Decimal { precision: 5, scale: 2 };
        let (precision, scale) = (noted("20").pop(), noted("2").pop());
        let (bounds, _) = of(wide, &Limits { precision, scale, ..Limits::default() }).unwrap();
        assert_eq!(bounds.max_text(), "999.99");
    }

    fn noted(text: &str) -> Vec<Clause<String>> {
        let all = text.split_whitespace();
        all.map(|text| Clause { value: text.to_owned(), at: text.to_owned() }).collect()
    }

    fn limits([min, above, max, below]: [&str; 4]) -> Limits {
        let (min, above, max, below) = (noted(min), noted(above), noted(max), noted(below));
        Limits { min, above, max, below, ..Limits::default() }
    }

    fn bounds(kind: Kind, stated: [&str; 4]) -> (String, String, usize) {
        let (bounds, uses) = of(kind, &limits(stated)).unwrap();
        let problems = uses.iter().filter(|own| own.problem.is_some()).count();
        (bounds.min_text(), bounds.max_text(), problems)
    }

    #[test]
    fn bounds_are_never_wider_than_stated() {
        let any = Kind::Integer { bounds: None };
        let short = Kind::Integer { bounds: Some((-32768, 32767)) };
        let cents = Kind::Decimal { precision: 12, scale: 2 };
        let max = "9223372036854775807";
        for (kind, stated, expected) in [
            (any, ["18", "", "", "100"], ("18", "99", 0)),
            (any, ["", "", "", ""], ("-9223372036854775807", max, 0)),
            (any, ["0.5", "", "1.5", ""], ("1", "1", 0)),
            (any, ["", "0.5", "", "1.5"], ("1", "1", 0)),
            (short, ["-100000", "", "5", ""], ("-32768", "5", 1)),
            (cents, ["", "0", "", ""], ("0.01", "9999999999.99", 0)),
            (cents, ["0", "", "1000000", ""], ("0.00", "1000000.00", 0)),
            (Kind::Float, ["0", "", "0.1234567", ""], ("0.0000000", "0.1234567", 0)),
            (any, ["0 5", "", "9 7 8", ""], ("5", "7", 1)),
            (Kind::Float, ["1e-20", "", "0.0010000000000000002", ""], ("0.000001", "0.001000", 0)),
            (
                Kind::Float,
                ["-0.0010000000000000002", "", "-1e-20", ""],
                ("-0.001000", "-0.000001", 0),
            ),
            (cents, ["", "1e-400", "123456789.12345678901", ""], ("0.01", "123456789.12", 0)),
            (any, ["", "-0.5", "", "0.5"], ("0", "0", 0)),
            (any, ["2020-01-01", "", "7", ""], ("-9223372036854775807", "7", 1)),
        ] {
            let (low, high, problems) = bounds(kind, stated);
            assert_eq!((low.as_str(), high.as_str(), problems), expected, "{kind:?} {stated:?}");
        }
        assert_eq!(of(Kind::Boolean, &Limits::default()), Err(NO_KIND));
        // Where limits contradict each other, no value is allowed, and not every one.
        assert_eq!(of(any, &limits(["5", "", "1", ""])), Err(NONE_LEFT));
        assert_eq!(of(short, &limits(["40000", "", "", ""])), Err(NONE_LEFT));
        // So do limits that 64 bits cannot hold, on the side of what they exclude.
        let large = "99999999999999999999";
        assert_eq!(of(any, &limits([large, "", "", ""])), Err(NONE_LEFT));
        assert_eq!(
            of(Kind::Float, &limits(["", "", "", "-1000000000000000000000"])),
            Err(NONE_LEFT)
        );
        assert_eq!(
            bounds(any, ["", "", large, ""]),
            ("-9223372036854775807".into(), max.into(), 1)
        );
        assert_eq!(bounds(any, ["0", "", "1e3", ""]), ("0".into(), "1000".into(), 0));
        assert_eq!(bounds(any, ["ten", "", "7", ""]).2, 1);
    }

    #[test]
    fn digits_and_widths_hold_together() {
        let precision = noted("3").pop();
        let short = Kind::Integer { bounds: Some((-128, 127)) };
        let (bounds, _) = of(short, &Limits { precision, ..Limits::default() }).unwrap();
        assert_eq!((bounds.min, bounds.max), (-128, 127));
        // The bounds of the type are whole numbers, and those of the digits are not.
        let (precision, scale) = (noted("9").pop(), noted("2").pop());
        let (bounds, _) = of(short, &Limits { precision, scale, ..Limits::default() }).unwrap();
        assert_eq!((bounds.scale, bounds.min, bounds.max), (Some(2), -12_800, 12_700));
    }
}
