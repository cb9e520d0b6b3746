//! Columns whose names do not say what they measure and whose numbers have one size: they may each be
//! another owner's.

use crate::id_words::is_measured;
use crate::number::Decimal;
use crate::owner_guess::MEASURED;
use crate::owner_words::{may_count_people, owner_score};
use crate::profile::Column;
use crate::quantities::QUANTITIES;
use crate::totals::{TOTALS, seems_total};
use crate::units;
use crate::words::{CODES, FLAGS, LENGTHS, MONEY, READINGS, TIMES, has, is, qualifies, words};

/// Fewest columns that are asked about.
const MIN: usize = 3;

/// The greatest number of each is at most so many times that of another, if they have one size.
const WITHIN: i128 = 25;

/// Words of what is measured or counted, and of statistics, that no other list has.
const MEASURES: &[&str] = &[
    "abs",
    "absorbance",
    "acc",
    "accel",
    "adj",
    "alpha",
    "altitude",
    "ambient",
    "ammonia",
    "amplitude",
    "angle",
    "area",
    "ask",
    "avg",
    "axis",
    "balance",
    "bearing",
    "benzene",
    "beschleunigung",
    "beta",
    "bias",
    "bid",
    "births",
    "blue",
    "bmi",
    "bone",
    "brake",
    "breite",
    "cadence",
    "capital",
    "carbs",
    "cases",
    "ch4",
    "chlorophyll",
    "cholesterol",
    "clicks",
    "close",
    "comments",
    "coolant",
    "cpi",
    "cpu",
    "deaths",
    "deep",
    "delta",
    "demand",
    "density",
    "depth",
    "dew",
    "dewp",
    "dewpoint",
    "diameter",
    "dichte",
    "diff",
    "direction",
    "disk",
    "dividend",
    "downloads",
    "earnings",
    "ecg",
    "eco2",
    "eda",
    "education",
    "eeg",
    "elevation",
    "emg",
    "engine",
    "errors",
    "ertrag",
    "events",
    "exhaust",
    "experience",
    "failures",
    "fat",
    "fiber",
    "force",
    "freq",
    "front",
    "fuel",
    "gain",
    "gamma",
    "gear",
    "geschwindigkeit",
    "globalstrahlung",
    "goals",
    "green",
    "gsr",
    "gust",
    "gyro",
    "hdl",
    "heading",
    "heat",
    "height",
    "helligkeit",
    "high",
    "hits",
    "hours",
    "hum",
    "humid",
    "höhe",
    "idle",
    "impressions",
    "index",
    "indoor",
    "inflation",
    "inlet",
    "inner",
    "input",
    "inside",
    "intake",
    "intensity",
    "interest",
    "invest",
    "investment",
    "iowait",
    "kids",
    "labor",
    "labour",
    "last",
    "lat",
    "latency",
    "ldl",
    "left",
    "length",
    "licht",
    "light",
    "likes",
    "load",
    "lon",
    "losses",
    "loudness",
    "low",
    "lower",
    "länge",
    "mag",
    "magnetometer",
    "mass",
    "max",
    "mean",
    "median",
    "mem",
    "memory",
    "metering",
    "methane",
    "min",
    "minutes",
    "moderate",
    "mood",
    "motion",
    "motor",
    "moving",
    "nh3",
    "nitrate",
    "nmhc",
    "norm",
    "occupancy",
    "offset",
    "oil",
    "open",
    "orders",
    "orp",
    "outdoor",
    "outer",
    "outlet",
    "output",
    "outside",
    "packets",
    "pain",
    "parity",
    "perimeter",
    "phase",
    "pitch",
    "pm",
    "points",
    "population",
    "pos",
    "position",
    "precip",
    "pres",
    "press",
    "protein",
    "quality",
    "radiation",
    "range",
    "rank",
    "rate",
    "ratio",
    "reactive",
    "reads",
    "rear",
    "red",
    "regen",
    "rem",
    "replies",
    "requests",
    "resp",
    "respiration",
    "resting",
    "return",
    "returns",
    "richtung",
    "right",
    "roll",
    "rotation",
    "rpm",
    "runs",
    "rx",
    "salinity",
    "schnee",
    "score",
    "sedentary",
    "sessions",
    "shares",
    "signal",
    "size",
    "sleep",
    "snow",
    "snr",
    "sodium",
    "soil",
    "solar",
    "sound",
    "speed",
    "std",
    "stdev",
    "strahlung",
    "stress",
    "stride",
    "sugar",
    "sunshine",
    "supply",
    "taper",
    "tds",
    "temp",
    "tests",
    "theta",
    "thickness",
    "throttle",
    "throughput",
    "tiefe",
    "torque",
    "trips",
    "tvoc",
    "tx",
    "unemployment",
    "upper",
    "uv",
    "var",
    "vibration",
    "vigorous",
    "viscosity",
    "visits",
    "vol",
    "volume",
    "wage",
    "wages",
    "width",
    "wins",
    "wspm",
    "yaw",
    "yield",
];

/// The positions of columns whose names say nothing of what they measure, if several of them have
/// numbers of one size.
pub(crate) fn find(columns: &[Column]) -> Option<Vec<usize>> {
    let fits = |column: &Column| {
        let name = &column.name;
        (is_word(name) || is_code(name)) && !says_measure(name) && !column.is_truth()
    };
    let found: Vec<usize> = (0..columns.len()).filter(|at| fits(&columns[*at])).collect();
    let mut sizes: Vec<Decimal> = found.iter().filter_map(|at| size(&columns[*at])).collect();
    sizes.sort_unstable();
    let near = |few: &[Decimal]| match few {
        [least, .., most] => least.times(WITHIN) >= *most,
        _ => false,
    };
    let one_station = shares_number(found.iter().map(|at| &*columns[*at].name));
    // A device's other columns say what it measures.
    let most = found.len() * 2 > columns.len();
    (most && sizes.windows(MIN).any(near) && !one_station).then_some(found)
}

/// The greatest number of a column, whatever its sign.
fn size(column: &Column) -> Option<Decimal> {
    let (least, most) = column.whole_range()?;
    Some(most.max(Decimal::ZERO.minus(least))).filter(|size| *size > Decimal::ZERO)
}

/// Whether a name is of plain words: of a person, a place or a thing.
fn is_word(name: &str) -> bool {
    let plain = |c: char| c.is_alphabetic() || matches!(c, ' ' | '-' | '_' | '\'' | '.');
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    // As `acc_x`, `acc_y` and `acc_z`.
    let short = words(name).last().is_none_or(|word| word.chars().count() < 2);
    letters >= 3 && name.chars().all(plain) && !short && !is_axis(name)
}

/// Whether a name ends with that of an axis, as in `accX` and `gyry`.
fn is_axis(name: &str) -> bool {
    const STEMS: &[&str] =
        &["acc", "accel", "gyr", "gyro", "mag", "rot", "lin", "grav", "pos", "vel"];
    let lower = name.to_lowercase();
    lower.strip_suffix(['x', 'y', 'z']).is_some_and(|stem| STEMS.contains(&stem))
}

/// Whether a name is that of a device or an account: of digits and their separators, a hexadecimal
/// number, or a few letters and a long number.
fn is_code(name: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | ' ');
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let letters = || name.chars().filter(|c| c.is_alphabetic());
    let longest = name.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    let hex =
        digits >= 2 && digits + letters().count() >= 6 && letters().all(|c| c.is_ascii_hexdigit());
    let bare = letters().next().is_none() && digits >= 3;
    let numbered = longest >= 3 && letters().count() <= 12;
    name.chars().all(plain) && (bare || hex || numbered)
}

/// Whether names have one long number, that of a station with several gauges.
fn shares_number<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    const LONG: usize = 6;
    let longest = |name: &'a str| {
        name.split(|c: char| !c.is_ascii_digit()).max_by_key(|own| own.len()).unwrap_or_default()
    };
    let mut numbers = names.map(longest);
    let first = numbers.next().unwrap_or_default();
    first.len() >= LONG && numbers.all(|own| own == first)
}

/// Whether a name has a word of a quantity, a unit, a count or a statistic.
fn says_measure(name: &str) -> bool {
    /// Long enough to stand within other words, as in `Lufttemperatur`.
    const LONG: usize = 6;
    const LISTS: [&[&str]; 10] =
        [QUANTITIES, READINGS, MONEY, CODES, FLAGS, LENGTHS, TIMES, MEASURED, TOTALS, MEASURES];
    let lower = name.to_lowercase();
    let within = QUANTITIES.iter().any(|word| word.len() >= LONG && lower.contains(word));
    let bare = |word: &String| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let stems = words(name).iter().map(bare).collect::<Vec<_>>().join(" ");
    let known = |list: &&[&str]| has(name, list) || is(name, list) || has(&stems, list);
    let unit =
        units::is_unit(name) || units::of_name(name).is_some() || units::is_written_out(name);
    let identifies = owner_score(name) > 0 && name.chars().any(|c| c.is_ascii_digit());
    let counts = may_count_people(name) || seems_total(name) || qualifies(name);
    within || LISTS.iter().any(known) || unit || counts || (is_measured(name) && !identifies)
}
