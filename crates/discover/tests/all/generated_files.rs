//! Many files whose truth is known, each drawn from owners, times, forms and traps: what is
//! understood without a question is right, and what is usual needs none.

use alpheus_discover::{Hints, Understanding, understand};
use std::collections::BTreeMap;

/// Numbers in an order that nobody expects, the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<'l, T: ?Sized>(&mut self, list: &[&'l T]) -> &'l T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap_or(0)]
    }
}

/// Names of owners that are known, and those that are not.
const KNOWN: &[&str] = &[
    "user_id",
    "patient",
    "Device ID",
    "meter",
    "Kunden-Nr.",
    "Mitglied-Nr.",
    "station",
    "account",
    "household",
    "Badge",
    "host",
    "Matricule",
];
const UNKNOWN: &[&str] = &[
    "Boks", "ref", "kto", "besoek", "Anlage", "handle", "Ear tag", "Locker", "first", "key_hash",
    "numer", "spiller", "Fach-Nr", "wearer", "X1",
];
const PEOPLE: &[&str] = &[
    "zoe", "max", "kim", "lou", "pat", "sam", "ash", "bo", "cy", "dee", "eva", "finn", "gil",
    "ida", "jon",
];

/// How owners are written.
const STYLES: &[&str] =
    &["small", "thousands", "padded", "code", "name", "full name", "mail", "hex"];

fn owner(style: &str, own: u64) -> String {
    let name = PEOPLE[usize::try_from(own).unwrap_or(0) % PEOPLE.len()];
    match style {
        "small" => (own + 1).to_string(),
        "thousands" => (1001 + own * 7).to_string(),
        "padded" => format!("{:05}", own * 37 + 12),
        "code" => format!("Q-{own:03}"),
        "name" => name.to_owned(),
        "full name" => {
            let capital = name[..1].to_uppercase() + &name[1..];
            format!("{capital} Berg")
        }
        "mail" => format!("{name}@example.org"),
        _ => format!("{:010x}", (own + 3) * 79_191_313),
    }
}

/// How times are written.
const TIMES: &[&str] = &["iso", "german", "seconds", "milliseconds", "two columns"];

/// Days since March 2024 and seconds of the day as the file has them.
fn time(style: &str, day: u64, second: u64) -> String {
    let (month, day_of, since) = (day / 28 + 3, day % 28 + 1, 19_783 + day / 28 * 31 + day % 28);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    let unix = since * 86_400 + second;
    match style {
        "german" => format!("{day_of:02}.{month:02}.2024 {h:02}:{m:02}"),
        "seconds" => unix.to_string(),
        "milliseconds" => format!("{unix}000"),
        "two columns" => format!("2024-{month:02}-{day_of:02};{h:02}:{m:02}:{s:02}"),
        _ => format!("2024-{month:02}-{day_of:02}T{h:02}:{m:02}:{s:02}Z"),
    }
}

/// What beside the readings may mislead.
const TRAPS: &[&str] = &[
    "none",
    "none",
    "length",
    "position",
    "failure",
    "fahrenheit",
    "unit",
    "category",
    "planned",
    "birth",
    "total",
];

/// A file and its truth: sums in tenths.
struct File {
    text: String,
    about: String,
    owner: String,
    times: &'static [&'static str],
    sums: BTreeMap<&'static str, (u64, i64)>,
    /// Whether nobody could doubt what it is.
    usual: bool,
}

/// One file of a seed.
fn file(seed: u64) -> File {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9) + 7);
    let known = draw.below(2) == 0;
    let name = if known { draw.of(KNOWN) } else { draw.of(UNKNOWN) };
    let (style, clock, trap) = (draw.of(STYLES), draw.of(TIMES), draw.of(TRAPS));
    let (owners, days, first) = (6 + draw.below(10), 20 + draw.below(20), draw.below(3) > 0);
    // A length of time stands beside a date alone.
    let clock = if trap == "length" { "date" } else { clock };
    let times: &[&str] = match clock {
        "two columns" => &["date", "time"],
        "milliseconds" => &["t_ms"],
        "date" => &["date"],
        _ => &["time"],
    };
    let (before, behind) = extra_names(trap);
    let line = |own: &str, before: &str, at: &str, readings: &str, behind: &str| match first {
        true => format!("{own};{before}{at};{readings}{behind}\n"),
        false => format!("{before}{at};{own};{readings}{behind}\n"),
    };
    let mut text = line(name, before, &times.join(";"), "level;steps", behind);
    let mut sums = BTreeMap::new();
    for n in 0..days * owners {
        let (day, own) = (n / owners, n % owners);
        let second = draw.below(86_000);
        let at = match clock {
            "date" => time("two columns", day, 0)[..10].to_owned(),
            other => time(other, day, second),
        };
        let (level, steps) = (level(trap, &mut draw, n, own), draw.below(9000) as i64);
        let failed = trap == "failure" && n % 83 == 7;
        count(&mut sums, "level", level * i64::from(!failed), u64::from(!failed));
        count(&mut sums, "steps", steps * 10, 1);
        let (before, behind) = extra(trap, &mut draw, (day, second), steps);
        let readings = format!("{}.{};{steps}", level / 10, level % 10);
        text += &line(&owner(style, own), &before, &at, &readings, &behind);
    }
    let about = format!("{seed}: {name} as {style}, {clock}, {trap}, first {first}");
    let harmless = ["none", "unit", "category", "planned", "birth", "position"];
    let usual = known && harmless.contains(&trap);
    File { text, about, owner: name.to_owned(), times, sums, usual }
}

fn count(
    sums: &mut BTreeMap<&'static str, (u64, i64)>,
    column: &'static str,
    tenths: i64,
    cells: u64,
) {
    let sum = sums.entry(column).or_default();
    *sum = (sum.0 + cells, sum.1 + tenths);
}

/// A reading in tenths.
fn level(trap: &str, draw: &mut Draw, n: u64, own: u64) -> i64 {
    let level = 190 + draw.below(60) as i64;
    match trap {
        "fahrenheit" if own < 2 => level * 9 / 5 + 320,
        "failure" if n % 83 == 7 => 850,
        _ => level,
    }
}

/// Names of what stands before the time, and behind the readings.
fn extra_names(trap: &str) -> (&'static str, &'static str) {
    match trap {
        "length" => ("", ";worked"),
        "position" => ("", ";lat;lon"),
        "unit" => ("", ";unit"),
        "category" => ("", ";activity"),
        "planned" => ("scheduled time;", ""),
        "birth" => ("birth date;", ""),
        "total" => ("", ";total"),
        _ => ("", ""),
    }
}

fn extra(trap: &str, draw: &mut Draw, (day, second): (u64, u64), steps: i64) -> (String, String) {
    let behind = match trap {
        "length" => format!(";{}:{:02}", 4 + draw.below(5), draw.below(60)),
        "position" => format!(";48.{:06};2.{:06}", draw.below(999_999), draw.below(999_999)),
        "unit" => ";count".to_owned(),
        "category" => format!(";{}", draw.of(&["run", "walk", "swim"])),
        "total" => format!(";{}", steps + 20),
        _ => String::new(),
    };
    let before = match trap {
        "planned" => format!("{};", time("iso", day, second / 2)),
        "birth" => format!("19{}-05-{:02};", 50 + draw.below(40), draw.below(28) + 1),
        _ => String::new(),
    };
    (before, behind)
}

/// A sum with one decimal or none, in tenths.
fn tenths_of(sum: &str) -> i64 {
    let (whole, tenths) = sum.split_once('.').unwrap_or((sum, "0"));
    let tenths: i64 = tenths.trim_end_matches('0').parse().unwrap_or(0);
    whole.parse::<i64>().unwrap_or(-1) * 10 + tenths
}

/// What of a file's understanding is not its truth.
fn wrong(found: &Understanding, file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    if found.owner.as_deref() != Some(file.owner.as_str()) {
        wrong.push(format!("owner {:?}", found.owner));
    }
    let times: Vec<&str> = found.time.columns.iter().map(|at| found.names[*at].as_str()).collect();
    if times != file.times {
        wrong.push(format!("times {times:?}"));
    }
    for (column, (count, tenths)) in &file.sums {
        let own = found.attributes.iter().find(|own| own.column == *column);
        let sum = own.map(|own| (own.total.count, own.total.sum.text()));
        if sum.as_ref().map(|(count, sum)| (*count, tenths_of(sum))) != Some((*count, *tenths)) {
            wrong.push(format!("{column} {sum:?}, not {count} and {tenths}"));
        }
    }
    for own in &found.attributes {
        if !file.sums.contains_key(own.column.as_str()) && own.column != "total" {
            wrong.push(format!("{} is measured", own.column));
        }
    }
    wrong
}

#[test]
fn what_is_understood_without_a_question_is_right() {
    let (mut silent, mut needless, mut answered) = (Vec::new(), Vec::new(), 0);
    for seed in 0..600 {
        let file = file(seed);
        let Ok(found) = understand(file.text.as_bytes(), &Hints::default()) else { continue };
        let wrong = wrong(&found, &file);
        if found.questions.is_empty() {
            answered += 1;
            if !wrong.is_empty() {
                silent.push(format!("{}: {wrong:?}", file.about));
            }
        } else if file.usual {
            needless.push(format!("{}: {:?}", file.about, found.questions));
        }
    }
    assert_eq!(silent, [""; 0], "{} files are wrong in silence", silent.len());
    assert_eq!(needless, [""; 0], "{} files are asked about", needless.len());
    assert!(answered > 150, "{answered} files are answered");
}
