//! What the words in a column's name say about it.

/// The words of a name, in lower case: `ActivityHour`, `activity_hour` and `activity hour` have
/// the same.
#[must_use]
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut before, mut open) = (' ', false);
    for c in name.chars() {
        if !c.is_alphanumeric() {
            open = false;
        } else {
            let camel = before.is_lowercase() && c.is_uppercase();
            if !open || camel {
                found.push(String::new());
            }
            if let Some(word) = found.last_mut() {
                word.extend(c.to_lowercase());
            }
            open = true;
        }
        before = c;
    }
    found
}

/// Whether one of a name's words is in a list.
pub(crate) fn has(name: &str, list: &[&str]) -> bool {
    words(name).iter().any(|word| list.contains(&word.as_str()))
}

/// Whether a name is one of a list, apart from signs and case.
pub(crate) fn is(name: &str, list: &[&str]) -> bool {
    list.contains(&words(name).concat().as_str())
}

/// Words of times and dates, in several languages.
pub(crate) const TIMES: &[&str] = &[
    "time",
    "date",
    "datetime",
    "timestamp",
    "timestamps",
    "ts",
    "tstamp",
    "epoch",
    "unix",
    "when",
    "day",
    "hour",
    "moment",
    "instant",
    "created",
    "recorded",
    "measured",
    "observed",
    "utc",
    "gmt",
    "zeit",
    "datum",
    "uhrzeit",
    "zeitstempel",
    "zeitpunkt",
    "tag",
    "stunde",
    "messzeit",
    "fecha",
    "hora",
    "date",
    "heure",
    "jour",
    "horodatage",
    "data",
    "ora",
    "tijd",
    "dag",
    "uur",
    "dia",
    "dato",
    "tid",
    "yyyymmdd",
    "mst",
    "dt",
    "valid",
    "arrival",
    "period",
];

/// Names of columns that hold one part of a time.
pub(crate) const YEAR: &[&str] =
    &["year", "yr", "yyyy", "yy", "jahr", "ano", "año", "annee", "année", "jaar", "anno", "an"];
pub(crate) const MONTH: &[&str] =
    &["month", "mon", "mo", "mm", "mnth", "monat", "mes", "mois", "maand", "mese"];
pub(crate) const DAY: &[&str] =
    &["day", "dd", "dy", "dayofmonth", "dom", "mday", "tag", "dia", "día", "jour", "dag", "giorno"];
pub(crate) const HOUR: &[&str] =
    &["hour", "hr", "hh", "h", "hours", "hourofday", "stunde", "hora", "heure", "uur", "ora"];
pub(crate) const MINUTE: &[&str] = &["minute", "min", "mn", "mi", "mm", "minutes", "minuto"];
pub(crate) const SECOND: &[&str] = &["second", "sec", "ss", "seconds", "s", "sekunde", "segundo"];
pub(crate) const ORDINAL: &[&str] =
    &["doy", "dayofyear", "yday", "julianday", "jday", "julian", "ordinalday", "jd"];
pub(crate) const HHMM: &[&str] = &[
    "hhmm",
    "time",
    "hourmin",
    "hourminute",
    "hhmmss",
    "timeutc",
    "timegmt",
    "timeest",
    "utc",
    "gmt",
    "mst",
    "pst",
    "est",
    "cst",
    "lst",
    "cet",
    "localtime",
    "tijd",
    "zeit",
    "uhrzeit",
    "hora",
    "heure",
];

/// How strongly a word says that a column tells whose a reading is.
const OWNERS: &[(u32, &[&str])] = &[
    (
        100,
        &[
            "user",
            "userid",
            "uid",
            "person",
            "personid",
            "subject",
            "subjectid",
            "patient",
            "patientid",
            "participant",
            "participantid",
            "pid",
            "respondent",
            "owner",
            "customer",
            "customerid",
            "client",
            "clientid",
            "member",
            "athlete",
            "rider",
            "driver",
            "student",
            "employee",
            "player",
            "household",
            "householdid",
            "lclid",
            "animal",
            "individual",
            "account",
            "responseid",
            "volunteer",
            "worker",
            "kunde",
            "proband",
            "teilnehmer",
            "nutzer",
            "vid",
            "resident",
        ],
    ),
    (
        80,
        &[
            "station",
            "stations",
            "stationsid",
            "sensor",
            "sensorid",
            "stationid",
            "stationname",
            "stn",
            "site",
            "siteid",
            "siteno",
            "sitename",
            "location",
            "locationid",
            "meter",
            "meterid",
            "nmi",
            "mote",
            "moteid",
            "node",
            "nodeid",
            "ip",
            "host",
            "hostname",
            "house",
            "home",
            "building",
            "dwelling",
            "apartment",
            "room",
            "vehicle",
            "vehicleid",
            "bus",
            "car",
            "trip",
            "tripid",
            "plant",
            "well",
            "buoy",
            "gauge",
            "segment",
            "segmentid",
            "messstelle",
            "standort",
            "zaehler",
            "zähler",
            "estacion",
            "estación",
            "place",
            "spot",
            "shop",
            "store",
            "plate",
            "vessel",
            "mmsi",
            "turbine",
            "inverter",
        ],
    ),
    (
        60,
        &[
            "id", "device", "deviceid", "devid", "mac", "imei", "serial", "logger", "tagid",
            "beacon", "bike", "bikeid",
        ],
    ),
    (
        50,
        &[
            "country", "region", "city", "county", "state", "land", "district", "zone", "area",
            "province",
        ],
    ),
];

/// How strongly a name says that its column tells whose a reading is: 0 to 100. A name of two
/// words counts by each of them and by both together.
pub(crate) fn owner_score(name: &str) -> u32 {
    let words = words(name);
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.concat()).collect();
    let fits = |list: &[&str]| words.iter().chain(&pairs).any(|word| list.contains(&word.as_str()));
    OWNERS.iter().find(|(_, list)| fits(list)).map_or(0, |(score, _)| *score)
}

/// Whether a column of numbers may be an owner's by its name: one word, or one that says that it
/// is a number of something.
pub(crate) fn names_a_number(name: &str) -> bool {
    const NUMBERS: &[&str] = &["id", "no", "nr", "num", "number", "code", "key"];
    words(name).len() == 1 || has(name, NUMBERS)
}

/// A name that schemas and queries can use, different from `taken`.
pub(crate) fn schema_name(column: &str, taken: &mut Vec<String>) -> String {
    const MAX: usize = 40;
    let mut name = String::new();
    for c in column.chars().flat_map(plain_letters) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(MAX);
    let name = name.trim_end_matches('_');
    let first = name.chars().next();
    let reserved = RESERVED.contains(&name);
    let base = match first {
        None => "value".to_owned(),
        Some(c) if c.is_ascii_digit() => format!("c_{name}"),
        Some(_) if reserved => format!("{name}_value"),
        Some(_) => name.to_owned(),
    };
    let (mut unique, mut number) = (base.clone(), 2);
    while taken.contains(&unique) {
        unique = format!("{base}_{number}");
        number += 1;
    }
    taken.push(unique.clone());
    unique
}

/// Words that queries use themselves.
const RESERVED: &[&str] = &[
    "select",
    "from",
    "where",
    "group",
    "by",
    "as",
    "window",
    "size",
    "step",
    "between",
    "and",
    "or",
    "not",
    "in",
    "with",
    "create",
    "stream",
    "count",
    "sum",
    "avg",
    "mean",
    "var",
    "stddev",
    "min",
    "max",
    "histogram",
    "null",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
    "second",
    "minute",
    "hour",
    "day",
    "date",
    "time",
    "grace",
    "tumbling",
    "any",
    "all",
    "is",
    "like",
    "order",
    "limit",
    "every",
];

fn plain_letters(c: char) -> Vec<char> {
    let text = match c {
        'ä' | 'Ä' => "ae",
        'ö' | 'Ö' => "oe",
        'ü' | 'Ü' => "ue",
        'ß' => "ss",
        'à' | 'á' | 'â' | 'ã' | 'å' => "a",
        'ç' => "c",
        'è' | 'é' | 'ê' | 'ë' => "e",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'ñ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' => "o",
        'ù' | 'ú' | 'û' => "u",
        '%' => "_percent_",
        other => return vec![other],
    };
    text.chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        assert_eq!(words("ActivityHour"), ["activity", "hour"]);
        assert_eq!(words("Survey ResponseID"), ["survey", "response", "id"]);
        assert_eq!(owner_score("Survey ResponseID"), 100);
        assert_eq!(owner_score("STATIONS_ID"), 80);
        assert_eq!(owner_score("response time"), 0);
        assert!(names_a_number("site_no") && !names_a_number("meter reading"));
        assert_eq!(owner_score("subject#"), 100);
        assert_eq!(owner_score("STN"), 80);
        assert_eq!(owner_score("Source Device ID"), 60);
        assert_eq!(owner_score("Temperature"), 0);
    }

    #[test]
    fn names_for_schemas_are_plain_and_different() {
        let mut taken = Vec::new();
        for (column, expected) in [
            ("P(SUM)", "p_sum"),
            ("300037926 (Bohlweg)", "c_300037926_bohlweg"),
            ("Fahrräder", "fahrraeder"),
            ("Jitter(%)", "jitter_percent"),
            ("time", "time_value"),
            ("°C", "c"),
            ("气温", "value"),
            ("风速", "value_2"),
        ] {
            assert_eq!(schema_name(column, &mut taken), expected);
        }
    }
}
