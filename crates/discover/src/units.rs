//! Units of columns: from their names, a row of units, a column of units, or the lines above.

use crate::words::has;
use std::collections::BTreeSet;

/// Units that may stand in round brackets, behind a comma or at the end of a name, in lower case.
const KNOWN: &[&str] = &[
    "%", "°c", "°f", "c", "f", "k", "degc", "deg c", "degf", "celsius", "m", "cm", "mm", "km",
    "ft", "feet", "mi", "miles", "in", "inches", "inch", "s", "sec", "seconds", "ms", "min",
    "minutes", "h", "hr", "hours", "hz", "khz", "mhz", "v", "mv", "kv", "volt", "volts", "a", "ma",
    "amp", "w", "kw", "mw", "wh", "kwh", "mwh", "var", "kvar", "kva", "va", "psi", "pa", "hpa",
    "kpa", "mbar", "bar", "g", "kg", "mg", "lb", "lbs", "l", "ml", "m3", "m³", "gal", "ppm", "ppb",
    "lx", "lux", "db", "dbm", "dba", "bpm", "rpm", "kcal", "cal", "j", "kj", "usd", "eur", "gbp",
    "chf", "$", "€", "£", "steps", "grams", "u", "deg", "degrees", "°", "ntu", "ph", "µg/m3",
    "ug/m3", "μg/m3", "mg/m3", "vdc", "percent", "knots", "kn", "kt", "mph", "kmh", "km/h", "m/s",
    "mps", "kmph", "wm2", "count", "counts", "bytes", "b", "kb", "mb", "gb", "kib", "mib", "gib",
    "tb", "us/cm", "ms/cm", "mws", "mmhg", "kvarh", "varh", "gwh", "nm", "µsv", "usv", "msv", "bq",
    "psu", "mmol", "kohm", "ohm", "ω", "thm", "therm", "therms", "ccf",
];

pub(crate) fn is_unit(text: &str) -> bool {
    let lower = text.to_lowercase();
    let compound = |c: char| matches!(c, '/' | '%' | '°' | '²' | '³' | '^' | 'µ' | 'μ');
    KNOWN.contains(&lower.as_str())
        || (text.contains(compound) && text.len() <= 16 && !text.contains(':'))
}

/// Units of medicine and of trade, which hardly stand at the end of a name.
const OTHERS: &[&str] = &[
    "dl",
    "mmol/l",
    "umol/l",
    "µmol/l",
    "μmol/l",
    "nmol/l",
    "pmol/l",
    "mmol/mol",
    "ng/ml",
    "ug/ml",
    "iu/l",
    "u/l",
    "miu/l",
    "meq/l",
    "mg/dl",
    "g/dl",
    "oz",
    "fl oz",
    "stone",
    "st",
    "pounds",
    "pound",
    "kilograms",
    "kilogram",
    "gram",
    "kilometers",
    "kilometres",
    "kilometer",
    "meter",
    "meters",
    "metres",
    "mile",
    "yd",
    "yards",
    "fahrenheit",
    "kelvin",
    "liter",
    "litre",
    "liters",
];

/// Whether a text can hardly be anything but a unit: a known one, or one of two that are known,
/// such as `km/h`.
pub(crate) fn is_written_out(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    let known = |unit: &str| KNOWN.contains(&unit) || OTHERS.contains(&unit);
    let both = |(above, below): (&str, &str)| known(above) && known(below);
    known(&lower) || lower.split_once('/').is_some_and(both)
}

/// The unit that a column's name ends with, if it does.
#[must_use]
pub(crate) fn of_name(name: &str) -> Option<String> {
    if let Some((inner, _)) = name.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        let inner = inner.trim();
        return (!inner.is_empty() && inner.len() <= 24).then(|| inner.to_owned());
    }
    let mut parts = name.split('(');
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let inner = part.split(')').next().unwrap_or_default().trim();
        if is_unit(inner) && !is_subscript(before, inner) {
            return Some(inner.to_owned());
        }
        before = part;
    }
    let before = name.split('(').next().unwrap_or(name).trim();
    if let Some((_, behind)) = before.rsplit_once(", ") {
        let behind = behind.trim();
        if is_unit(behind) {
            return Some(behind.to_owned());
        }
    }
    // As members of JSON objects are written: `heart.bpm`.
    let (first, last) = before.rsplit_once(['_', ' ', '.'])?;
    if is_period(first, last) {
        return before.contains('%').then(|| "%".to_owned());
    }
    // One letter is more often a name than a unit.
    let short = last.len() < 2 && last.chars().all(char::is_alphanumeric);
    let lower = last.to_lowercase();
    let other = match AMBIGUOUS.iter().find(|(units, _)| is(units, &lower)) {
        Some((_, measured)) => !has(first, measured),
        None => is(NAMES, &lower),
    };
    (!short && !other && is_unit(last)).then(|| last.to_owned())
}

/// Whether a lone letter in brackets right behind a short name is an index, as in `pts(h)`, and no
/// unit.
fn is_subscript(before: &str, inner: &str) -> bool {
    const INDEXES: &[&str] = &["h", "j", "k", "b", "u"];
    const SHORT: usize = 4;
    let joined = before.ends_with(|c: char| c.is_alphanumeric());
    joined && before.chars().count() <= SHORT && is(INDEXES, inner) && !has(before, LENGTHS)
}

/// The unit that is a whole name, such as `kWh`, but for what is in brackets. One letter is more often a
/// name, and so are some words.
pub(crate) fn whole_name(name: &str) -> Option<String> {
    const WORDS: &[&str] =
        &["amp", "b", "bar", "ma", "mb", "mi", "mm", "nm", "ph", "st", "stone", "va"];
    // `Gb(i)` is a quantity with an index.
    let (name, index) = name.split_once('(').unwrap_or((name, ""));
    let is_index = index.trim_end_matches(')').chars().count() == 1 && !name.ends_with(' ');
    let name = name.trim();
    let lower = name.to_lowercase();
    let other = [DOUBTFUL, NAMES, WORDS].iter().any(|list| is(list, &lower)) || is_index;
    let short = name.chars().count() < 2 && name.chars().all(char::is_alphanumeric);
    // `P/L` and `Soll/Haben` are two words, and `KWH/hh` is a unit.
    let two = name.split_once(['/', '^']).is_some_and(|(first, _)| {
        let unit = first.len() > 1 && !is(NAMES, &first.to_lowercase()) && is_written_out(first);
        !unit && !is_written_out(name)
    });
    let share = name.contains('%') && name != "%";
    (!short && !other && !two && !share && is_unit(name)).then(|| name.to_owned())
}

/// Whether a name ends with the length of the time that is measured, as in `% in 4 hours`.
fn is_period(first: &str, last: &str) -> bool {
    const PERIODS: &[&str] =
        &["s", "sec", "seconds", "min", "minutes", "h", "hr", "hours", "d", "days"];
    let number = first.rsplit(['_', ' ', '.']).next().unwrap_or_default();
    is(PERIODS, &last.to_lowercase())
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// Units of a time's length that are other words too, as in `avg_hr` and `temp_min`.
const DOUBTFUL: &[&str] = &["hr", "min", "h"];
/// Words that say that a column measures lengths of time.
const LENGTHS: &[&str] = &[
    "duration", "dauer", "elapsed", "time", "zeit", "sleep", "asleep", "awake", "active", "moving",
    "interval", "length", "uptime", "runtime", "age", "delay",
];
/// Words of what is measured in milliseconds, besides.
const INSTANTS: &[&str] = &[
    "duration", "dauer", "elapsed", "t", "time", "zeit", "interval", "delay", "latency", "lag",
    "lat", "ping", "rtt", "jitter", "response", "timeout", "period", "rr", "ibi", "nn", "hrv",
    "rmssd", "sdnn", "qrs", "qt", "qtc", "pr", "ptt", "pep", "lvet", "offset", "gap", "age",
    "wait", "uptime", "runtime", "reaction", "render", "query", "request", "cpu", "gc", "ttfb",
    "load",
];
const PRESSURES: &[&str] = &[
    "pressure",
    "press",
    "pres",
    "druck",
    "luftdruck",
    "baro",
    "barometer",
    "barometric",
    "vpd",
    "vapor",
    "vapour",
    "presión",
    "pression",
    "slp",
    "mslp",
    "stress",
    "suction",
    "vacuum",
];
const POWERS: &[&str] =
    &["power", "apparent", "leistung", "scheinleistung", "load", "rated", "s", "potencia"];
const CURRENTS: &[&str] = &["current", "strom", "stromstärke", "amperage", "loop", "i", "charge"];

/// Units that end a name as other words too, such as `va` for a value, `ms` for meters in a second
/// and `amp` for an amplitude, with the words of what they measure.
const AMBIGUOUS: &[(&[&str], &[&str])] = &[
    (DOUBTFUL, LENGTHS),
    (&["ms"], INSTANTS),
    (&["pa"], PRESSURES),
    (&["va"], POWERS),
    (&["ma", "amp"], CURRENTS),
];
/// Units that end a name as other words: `speed_in`, `step_count`.
const NAMES: &[&str] = &["in", "u", "var", "count", "counts", "cal", "kt", "kn", "steps"];

fn is(list: &[&str], word: &str) -> bool {
    list.contains(&word)
}

/// The unit in a cell of a row of units.
#[must_use]
pub(crate) fn of_cell(cell: &str) -> Option<String> {
    let cell = cell.trim().trim_start_matches(['[', '(', '#']).trim_end_matches([']', ')']).trim();
    let text =
        cell.chars().any(char::is_alphabetic) || cell.chars().any(|c| matches!(c, '%' | '°'));
    let text = text && !is_width(cell);
    (text && cell.len() <= 24 && cell != "-").then(|| cell.to_owned())
}

/// Whether a cell below a name gives a width and a kind, as in the tables of water authorities: `15s`, `20d`, `14n`.
pub(crate) fn is_width(cell: &str) -> bool {
    let digits = cell.strip_suffix(['s', 'd', 'n']);
    digits.is_some_and(|own| !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The unit that a line above the table gives to a column: `T = Temperature (in 0.1 degC)`, or
/// a line that names the unit of the only column, or that has it below such a word.
#[must_use]
pub(crate) fn of_lines(lines: &[String], name: &str, is_only: bool) -> Option<String> {
    for (left, right) in legends(lines) {
        if left == name {
            return of_legend(right);
        }
        if is_only && says_unit(left) && !says_unit_name(left) && (1..=16).contains(&right.len()) {
            return Some(right.to_owned());
        }
    }
    lines.windows(2).filter(|_| is_only).find_map(below_its_word)
}

/// The unit that one line has below the word for it in another: `Meter;Unit;Step` and `4711;kWh;15`.
fn below_its_word(lines: &[String]) -> Option<String> {
    let [above, below] = lines else { return None };
    [';', '\t', ',', '|'].into_iter().find_map(|mark| {
        let cells = |line: &str| -> Vec<String> {
            line.split(mark).map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
        };
        let (names, values) = (cells(above), cells(below));
        let pairs = || names.iter().zip(&values).filter(|_| names.len() == values.len());
        let (_, unit) = pairs().find(|(name, value)| says_unit(name) && is_written_out(value))?;
        Some(unit.clone())
    })
}

/// Whether a word says that what follows is a unit.
fn says_unit(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["unit", "einheit", "eenheid", "unidad"].iter().any(|word| lower.contains(word))
}

/// What lines above the table say, each of the name before it.
fn legends(lines: &[String]) -> impl Iterator<Item = (&str, &str)> {
    lines.iter().filter_map(|line| {
        let line = line.trim_start_matches(['#', '%', ' ']);
        let (left, right) = line.split_once([';', '=', ':', ',', '\t'])?;
        Some((left.trim(), right.trim().trim_end_matches([',', ';'])))
    })
}

/// Words for numbers that name something. Others that end so do not say it, as `barcode` and
/// `decode`.
const CODES: &[&str] = &[
    "code",
    "areacode",
    "countrycode",
    "errorcode",
    "eventcode",
    "fehlercode",
    "foutcode",
    "kwaliteitscode",
    "ländercode",
    "landcode",
    "postcode",
    "qualitycode",
    "statuscode",
    "typecode",
    "weathercode",
    "weercode",
    "wettercode",
    "zipcode",
];

/// Whether a line above the table says that a column's numbers are codes: by such a word, or since it
/// gives some of them a meaning each, as in `1=dry, 2=rain, 3=snow`. Numbers with a unit are measured.
#[must_use]
pub(crate) fn are_codes(lines: &[String], name: &str) -> bool {
    const MEANINGS: usize = 3;
    const FIRST_WORDS: usize = 4;
    let is_code = |word: String| {
        let mut parts = word.split(|c: char| !c.is_alphanumeric());
        parts.any(|part| CODES.contains(&part.strip_suffix('s').unwrap_or(part)))
    };
    let mut own = legends(lines).filter(|(left, _)| *left == name);
    own.any(|(_, says)| {
        let mut first = says.split_whitespace().take(FIRST_WORDS).map(str::to_lowercase);
        let meanings: BTreeSet<&str> = says.split('=').filter_map(number_at_end).collect();
        of_legend(says).is_none() && (first.any(is_code) || meanings.len() >= MEANINGS)
    })
}

/// The digits that a text ends with.
fn number_at_end(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let digits = &text[text.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
    (!digits.is_empty()).then_some(digits)
}

fn says_unit_name(left: &str) -> bool {
    left.to_lowercase().contains("name")
}

/// What stands behind the last `in` within brackets, else a known unit in brackets.
fn of_legend(text: &str) -> Option<String> {
    let mut found = None;
    for part in text.split('(').skip(1) {
        let inner = part.split(')').next().unwrap_or_default().trim();
        if let Some(unit) = inner.strip_prefix("in ") {
            found = Some(unit.trim().to_owned());
        } else if is_unit(inner) {
            found = Some(inner.to_owned());
        }
    }
    found.or_else(|| of_name(text)).filter(|unit| unit.len() <= 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_in_names() {
        for (name, unit) in [
            ("Pressure [mWS]", Some("mWS")),
            ("Water Temp, °C (LGR S/N: 10229557)", Some("°C")),
            ("Abs Pres, psi (LGR S/N: 10229557)", Some("psi")),
            ("Glucose Value (mg/dL)", Some("mg/dL")),
            ("energy_kwh", Some("kwh")),
            ("SpO2 %", Some("%")),
            ("heart.rate.bpm", Some("bpm")),
            ("PM2.5", None),
            ("Systolic (mmHg)", Some("mmHg")),
            ("avg_hr", None),
            ("temp_min", None),
            ("bytes_in", None),
            ("duration_min", Some("min")),
            ("% in 4 hours", Some("%")),
            ("load_15_min", None),
            ("CO(GT)", None),
            ("P(SUM)", None),
            ("300037926 (Bohlweg)", None),
            ("b3006", None),
            ("flow_va", None),
            ("wind_ms", None),
            ("station_pa", None),
            ("temp_ma", None),
            ("wave amp", None),
            ("apparent_power_va", Some("va")),
            ("rtt_ms", Some("ms")),
            ("air_pressure_pa", Some("pa")),
            ("loop_current_mA", Some("mA")),
            ("pts(h)", None),
            ("Gb(k)", None),
            ("sleep(h)", Some("h")),
            ("Time (h)", Some("h")),
            ("T(K)", Some("K")),
            ("U(V)", Some("V")),
            ("dist(m)", Some("m")),
        ] {
            assert_eq!(of_name(name).as_deref(), unit, "{name}");
        }
    }

    #[test]
    fn a_whole_name_may_be_a_unit() {
        assert_eq!(whole_name("kWh (d)").as_deref(), Some("kWh"));
        for unit in ["kWh", "°C", "%", "KWH/hh", "mg/dL"] {
            assert_eq!(whole_name(&format!("{unit} (mean)")).as_deref(), Some(unit));
        }
        for name in ["T", "count", "pH", "min", "steps", "temp", "", "Gb(i)", "MJ(h)"] {
            assert_eq!(whole_name(name), None, "{name}");
        }
    }

    #[test]
    fn units_are_found_above_and_below_the_header() {
        let lines =
            ["T    = Temperatuur (in 0.1 graden) / Temperature (in 0.1 degrees Celsius)"
                .to_owned()];
        assert_eq!(of_lines(&lines, "T", false).as_deref(), Some("0.1 degrees Celsius"));
        let lines = ["#ts_unitname;meter + NAP".to_owned(), "#ts_unitsymbol;m+NAP".to_owned()];
        assert_eq!(of_lines(&lines, "Value", true).as_deref(), Some("m+NAP"));
        let lines = ["Meter;Unité;Step;".to_owned(), "4711;kWh;15;".to_owned()];
        assert_eq!(of_lines(&lines, "Value", true).as_deref(), Some("kWh"));
        assert_eq!(of_lines(&lines, "Value", false), None);
        let lines = ["Meter;Unit;Step".to_owned(), "4711;North;15".to_owned()];
        assert_eq!(of_lines(&lines, "Value", true), None);
        assert_eq!(of_cell("[degC]").as_deref(), Some("degC"));
        assert_eq!(of_cell("-"), None);
        // A width and a kind, not 14 newtons.
        assert_eq!((of_cell("14n"), of_cell("5s"), of_cell("ns")), (None, None, Some("ns".into())));
    }

    #[test]
    fn lines_above_say_which_numbers_are_codes() {
        let codes = |line: &str| are_codes(&[line.to_owned()], "X");
        assert!(codes("X = Weercode (00-99), visueel / Present weather code (00-99)"));
        assert!(codes("# X: 0=dry, 1=rain, 2=snow"));
        // Yes and no have a share, and what has a unit a mean.
        assert!(!codes("X = Fog 0=no occurrence, 1=occurred / Mist 0=niet, 1=wel"));
        assert!(!codes("X = Wind (in degrees) (360=north, 90=east, 180=south)"));
        assert!(!codes("Y = Weather code"));
        assert!(codes("X: Weather-code, WMO 4677") && codes("X: Statuscodes"));
        // Other words end so as well.
        assert!(!codes("X: Barcode") && !codes("X: volts after decode"));
    }
}
