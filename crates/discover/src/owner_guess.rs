//! Columns that may say whose a row is though no word of their names says so. A file that is taken
//! for one owner's is answered without a crowd, so a doubt is asked about, with that column as the
//! guess.

use crate::form::Form;
use crate::hints::Hints;
use crate::id_words::{is_id, is_measured};
use crate::kind_names::names_kinds;
use crate::owner_words::{NUMBERS, VERSIONS, may_count_people, owner_score};
use crate::persons::is_persons_name;
use crate::profile::Column;
use crate::profile::Profile;
use crate::quantities::QUANTITIES;
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::slow::moves_slowly;
use crate::table::Table;
use crate::time_parts;
use crate::times::TimePlan;
use crate::units;
use crate::words::{
    CODES, FLAGS, KINDS, LENGTHS, MONEY, ORDINAL, READINGS, TIMES, has, is, qualifies, worded,
    words,
};
use std::collections::BTreeMap;

/// What says of a column that it numbers things or persons.
const TAGS: &[&str] =
    &["tag", "tags", "chip", "card", "ear", "license", "licence", "locker", "permit", "seat"];

/// Last words of names of places, each of which may be somebody's.
const PLACES: &[&str] = &[
    "bay",
    "bed",
    "berth",
    "bett",
    "bettplatz",
    "booth",
    "box",
    "cabin",
    "cage",
    "chair",
    "cubicle",
    "desk",
    "kabine",
    "lit",
    "parcel",
    "parzelle",
    "pen",
    "platz",
    "plot",
    "room",
    "slot",
    "stall",
    "stellplatz",
    "table",
    "tank",
    "tent",
    "tisch",
    "zelt",
    "zimmer",
];

/// What texts in a column may name instead: things, places within one life, and what a row is
/// about.
pub(crate) const THINGS: &[&str] = &[
    "note",
    "notes",
    "notiz",
    "notizen",
    "comment",
    "comments",
    "kommentar",
    "remark",
    "remarks",
    "bemerkung",
    "description",
    "beschreibung",
    "text",
    "message",
    "meldung",
    "reason",
    "error",
    "meal",
    "food",
    "dish",
    "drink",
    "mahlzeit",
    "product",
    "products",
    "produkt",
    "item",
    "items",
    "article",
    "artikel",
    "sku",
    "activity",
    "aktivität",
    "exercise",
    "workout",
    "sport",
    "song",
    "track",
    "artist",
    "album",
    "title",
    "genre",
    "operation",
    "transaction",
    "buchungstext",
    "verwendungszweck",
    "libelle",
    "libellé",
    "concepto",
    "omschrijving",
    "payee",
    "merchant",
    "vendor",
    "shop",
    "weather",
    "summary",
    "icon",
    "seasons",
    "holiday",
    "holidays",
    "cbwd",
    "wd",
    "trend",
    "platform",
    "operator",
    "network",
    "shift",
    "side",
    "condition",
    "conditions",
    "wetter",
    "weekday",
    "wday",
    "dayofweek",
    "wochentag",
    "month",
    "season",
    "language",
    "currency",
    "unit",
    "units",
    "einheit",
    "url",
    "file",
    "filename",
    "datei",
    "dateiname",
    "path",
    "page",
    "referrer",
    "referer",
    "agent",
    "browser",
    "os",
    "method",
    "verb",
    "event",
    "action",
    "model",
    "brand",
    "version",
    "color",
    "colour",
    "farbe",
    "direction",
    "wind",
    "phase",
    "stage",
    "step",
    "state",
    "zone",
    "tz",
    "timezone",
    "level",
    "label",
    "tariff",
    "tarif",
    "source",
    "sourcename",
    "app",
    "symptom",
    "symptoms",
    "medication",
    "drug",
    "medicine",
    "mood",
    "stimmung",
    "topic",
    "payment",
    "pos",
    "position",
    "shape",
    "size",
    "material",
    "kategorie",
    "rating",
    "grade",
    "result",
    "format",
    "lesson",
    "fach",
    "course",
    "project",
    "projekt",
    "task",
    "aufgabe",
    "cause",
    "alarm",
    "quarter",
    "country",
    "muscle",
    "route",
];

/// Short names of quantities and counts.
pub(crate) const MEASURED: &[&str] = &[
    "sys",
    "dia",
    "systole",
    "diastole",
    "hr",
    "rate",
    "reps",
    "sets",
    "set",
    "score",
    "age",
    "alter",
    "visitors",
    "people",
    "persons",
    "procs",
    "tests",
    "pain",
    "rpe",
    "spo2",
    "count",
    "cloud",
    "clouds",
    "cloudiness",
    "cloudcover",
    "bewölkung",
    "nubosité",
    "nubosidad",
    "metar",
    "synop",
    "wth",
    "irradiance",
    "radiation",
    "insolation",
    "ghi",
    "dni",
    "dhi",
    "strahlung",
    "globalstrahlung",
    "rayonnement",
];

/// Most columns of whole numbers that may be names by these numbers alone.
const MAX_NUMBERS: usize = 2;

/// Fewest values of a column of several owners.
const MIN: u64 = 3;

/// Whether the column at a position may be an owner's.
type Rule<'r> = &'r dyn Fn(usize, &Column) -> bool;

/// The column that is likeliest to say whose a row is, and what to ask.
pub(crate) fn asked(
    (text, table): (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    (hints, known): (&Hints, Option<usize>),
) -> Option<(usize, String)> {
    if !table.has_header {
        return None;
    }
    let all = || {
        let columns = profile.columns.iter().enumerate();
        let said = |name: &String| hints.measure.contains(name) || hints.leave_out.contains(name);
        let open = move |at: usize, own: &Column| known != Some(at) && !said(&own.name);
        columns.filter(move |(at, own)| open(*at, own) && fits(profile, time, *at, own))
    };
    let measured = |at: usize| {
        let other = |(own, column): (usize, &Column)| {
            own != at && column.is_number() && !time.columns.contains(&own)
        };
        profile.columns.iter().enumerate().any(other)
    };
    let first = time.columns.iter().min().copied().unwrap_or(0);
    let numbers = |at: usize, column: &Column| {
        measured(at) && column.is_integer() && numbers(column, at < first)
    };
    // Numbers of many columns side by side are readings.
    let several = all().filter(|(at, own)| numbers(*at, own)).count() > MAX_NUMBERS;
    let numbered = |at: usize, column: &Column| {
        let rows = (text, &table.form);
        let names = !several && numbers(at, column);
        names && !has_rare_ends(rows, at) && !moves_slowly(rows, at, column.distinct())
    };
    // So are counts of many things, such as `CO2_NR` and `H2O_NR`.
    let ends_so = |own: &Column| own.is_number() && is_numbered(&own.name);
    let counts = all().filter(|(_, own)| ends_so(own)).count() > 2 * MAX_NUMBERS;
    let rules: [Rule<'_>; 4] = [
        &|at, own| {
            let numbers = measured(at) && own.is_integer() && !may_count_people(&own.name);
            named(&own.name) && (is_text(own) || numbers) && !(counts && ends_so(own))
        },
        &|_, own| is_text(own) && (are_persons(own) || are_codes(own)),
        &numbered,
        &|_, own| is_text(own),
    ];
    let found = rules.iter().find_map(|rule| all().find(|(at, own)| rule(*at, own)));
    found.map(|(at, column)| (at, question(column)))
}

/// Asks about numbers that count people or name them: a word for one is the same as that for several.
pub(crate) fn counted(
    rows: (&str, &Form),
    profile: &Profile,
    time: &TimePlan,
    hints: &Hints,
) -> Option<String> {
    let open = |(at, own): &(usize, &Column)| {
        let said = hints.measure.contains(&own.name) || hints.leave_out.contains(&own.name);
        let both = may_count_people(&own.name) && owner_score(&own.name) > 0;
        let often = own.distinct() > 1 && own.distinct() * 5 <= own.filled;
        both && often && own.is_integer() && !said && !time.columns.contains(at)
    };
    let mut all = profile.columns.iter().enumerate().filter(open);
    let (_, column) = all.find(|(at, _)| !has_rare_ends(rows, *at))?;
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(
        "The numbers of `{name}` may count people or name them. Use `--measure {word}` if they count, or `--owner {word}` if each names the owner of a row."
    ))
}

/// Asks about a column beside an area that is taken as the owner, if it has more values: people of
/// a city are no city.
pub(crate) fn within_area(
    table: (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    (hints, area): (&Hints, usize),
) -> Option<String> {
    let own = &profile.columns[area];
    if owner_score(&own.name) > 50 {
        return None;
    }
    let (at, _) = asked(table, profile, time, (hints, Some(area)))?;
    let column = &profile.columns[at];
    let (name, word, area, other) =
        (&column.name, worded(&column.name), &own.name, worded(&own.name));
    (column.distinct() > own.distinct()).then(|| {
        format!(
            "`{area}` is taken as the owner, but `{name}` has more values that repeat, such as those of people or devices. Use `--owner {word}` if it names the owner of a row, `--owner {other}` if `{area}` does, or `--owner none` if all rows belong to one owner."
        )
    })
}

/// Whether a column has a value in nearly each row, several of them repeat, and its name says
/// nothing else of it.
fn fits(profile: &Profile, time: &TimePlan, at: usize, column: &Column) -> bool {
    let name = &column.name;
    let full = !column.has_gaps(profile.rows);
    let most = if is_text(column) { column.filled / 2 } else { column.filled / 3 };
    let known = |list: &[&str]| has(name, list) || is(name, list);
    let part = time_parts::alone(column).is_some() || has(name, ORDINAL);
    let moment = time.columns.contains(&at) || column.times() > 0 || is(name, TIMES) || part;
    let measures =
        known(MEASURED) || known(QUANTITIES) || known(READINGS) || known(MONEY) || known(LENGTHS);
    let numbered = has(name, NUMBERS) || has(name, TAGS);
    let kinds = is(name, KINDS) || names_kinds(name);
    let classifies = known(FLAGS) || kinds || known(THINGS) || known(CODES);
    let version = has(name, VERSIONS);
    full && (MIN..=most).contains(&column.distinct())
        && !moment
        && !version
        && !measures
        && (numbered || !classifies)
        && !qualifies(name)
        && units::of_name(name).is_none()
        && (numbered || !column.is_number() || !is_measured(name))
}

fn is_text(column: &Column) -> bool {
    column.numbers * 10 < column.filled && column.times() == 0
}

/// Whether a name says that its column numbers something.
fn named(name: &str) -> bool {
    let known = has(name, NUMBERS) || has(name, TAGS) || names_a_place(name);
    known || owner_score(name) > 0 || is_id(name)
}

/// Whether a name is that of a place which may be somebody's.
pub(crate) fn names_a_place(name: &str) -> bool {
    words(name).last().is_some_and(|word| PLACES.contains(&word.as_str()))
}

/// Whether a name is that of a number and says of nobody.
fn is_numbered(name: &str) -> bool {
    has(name, &["no", "nr", "num", "number"]) && owner_score(name) == 0
}

/// Whether nearly all texts are the names of persons.
fn are_persons(column: &Column) -> bool {
    let alike = column.texts.keys().filter(|text| is_persons_name(text)).count();
    alike * 10 >= column.texts.len() * 9
}

/// Whether nearly all texts have a digit or a sign of addresses.
fn are_codes(column: &Column) -> bool {
    let sign = |c: char| c.is_ascii_digit() || matches!(c, '@' | '#' | '+' | '_');
    let coded = column.texts.keys().filter(|text| text.contains(sign)).count();
    coded * 10 >= column.texts.len() * 9
}

/// Whether whole numbers are those of names: none has a sign, and they have one width, or lie far
/// apart, or stand before the time where measurements seldom do.
fn numbers(column: &Column, before_time: bool) -> bool {
    let Some((least, most)) = column.whole_range() else { return false };
    if least.digits < 0 || column.written.around.values().any(|count| *count > 0) {
        return false;
    }
    let often = column.distinct() * 5 <= column.filled;
    let one_width = column.digits.is_some_and(|(short, long)| short == long && short > 2);
    let span = most.digits - least.digits;
    // Rounded measurements lie apart too.
    let sparse = i128::from(column.distinct()) * 20 <= span && most.digits % 10 != 0;
    column.is_written_as_code()
        || (often && before_time)
        || (often && one_width && (sparse || least.digits > 2 * span))
}

/// Whether the least and the greatest numbers are much rarer than those between, as of what is
/// measured: people of low and of high numbers are as busy as others.
fn has_rare_ends((text, form): (&str, &Form), at: usize) -> bool {
    let (mut counts, mut rows): (BTreeMap<i64, u64>, u64) = (BTreeMap::new(), 0);
    scan(text, form, |_, scanned| {
        if let ScannedRow::Row(row) = scanned
            && let Some(number) = row.get(at).and_then(|cell| cell.parse().ok())
        {
            *counts.entry(number).or_default() += 1;
        }
        rows += 1;
        rows < SAMPLE
    });
    let counts: Vec<u64> = counts.into_values().collect();
    let fifth = counts.len() / 5;
    if fifth == 0 {
        return false;
    }
    let middle = &counts[fifth..counts.len() - fifth];
    let between: u64 = middle.iter().sum();
    let ends = counts.iter().sum::<u64>() - between;
    // As means: ends of two fifths, and what is between.
    ends * 3 * middle.len() as u64 <= between * 2 * fifth as u64
}

fn question(column: &Column) -> String {
    let (name, word, values) = (&column.name, worded(&column.name), column.distinct());
    let measures = match column.is_number() {
        true => format!(", `--measure {word}` if it is a measurement"),
        false => String::new(),
    };
    format!(
        "`{name}` has {values} different values that repeat, such as those of people or devices, and nothing else says whose a row is. Use `--owner {word}` if it names the owner of a row{measures}, or `--owner none` if all rows belong to one owner. Taken as one owner's, the answer would show single readings."
    )
}
