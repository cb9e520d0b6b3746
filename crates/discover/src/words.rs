//! What the words in a column's name say about it.

pub(crate) use crate::vocabulary::*;

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
    // As in `Acct #`, and not in `# of visitors`.
    if !found.is_empty() && name.trim_end().ends_with(['#', '\u{2116}']) {
        found.push("no".to_owned());
    }
    found
}

/// A name as a word of a command line: in quotes, if it has other signs than letters.
pub(crate) fn worded(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_.:/@+-".contains(c);
    match name {
        plain_name if !name.is_empty() && name.chars().all(plain) => plain_name.to_owned(),
        _ => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

/// Whether one of a name's words is in a list.
pub(crate) fn has(name: &str, list: &[&str]) -> bool {
    words(name).iter().any(|word| list.contains(&word.as_str()))
}

/// Whether a name is one of a list, apart from signs and case.
pub(crate) fn is(name: &str, list: &[&str]) -> bool {
    list.contains(&words(name).concat().as_str())
}

/// Whether a name says that its column tells how good or how sure the readings beside it are.
pub(crate) fn qualifies(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "flag",
        "flags",
        "quality",
        "qualifier",
        "qualifiers",
        "qc",
        "qa",
        "qn",
        "uncert",
        "uncertainty",
        "unsicherheit",
        "incertitude",
        "incertidumbre",
        "filter",
        "filtered",
        "statut",
        "zustand",
        "validity",
        "confidence",
    ];
    let status = |word: &String| word.ends_with("status");
    has(name, WORDS) || words(name).iter().any(status)
}

/// Whether what stands around a number says that it is money.
pub(crate) fn is_money(around: &str) -> bool {
    const SIGNS: &[&str] = &["$", "€", "£", "¥", "₹", "kr", "zł", "Rs."];
    let code = around.len() == 3 && around.bytes().all(|byte| byte.is_ascii_uppercase());
    code || SIGNS.contains(&around)
}

/// Words that say that a time is local, in some of the languages of [`TIMES`].
pub(crate) const LOCAL: &[&str] =
    &["local", "localtime", "lokal", "lokale", "lokalzeit", "ortszeit", "locale", "lokaal"];

/// Words of columns of zones.
pub(crate) const ZONES: &[&str] = &["tz", "timezone", "zone", "zeitzone"];

/// Whether a name says that its column holds offsets from UTC.
pub(crate) fn is_offset(name: &str) -> bool {
    const WHOLE: &[&str] = &["utcoffset", "gmtoffset", "tzoffset", "timezoneoffset", "zoneoffset"];
    const OF: &[&str] = &["utc", "gmt", "time", "local", "from", "to", "zeit"];
    const OFFSETS: &[&str] = &["offset", "offsets", "versatz"];
    let of_zone = has(name, OFFSETS) && (has(name, OF) || has(name, ZONES));
    has(name, WHOLE) || of_zone
}

/// Words that say that a time is the end of something, or of another thing.
pub(crate) const ENDS: &[&str] = &[
    "end", "ended", "ends", "ending", "ende", "bis", "to", "until", "till", "stop", "stopped",
    "stops", "finish", "finished", "fin", "fine", "hasta", "expires", "expiry", "close", "closed",
    "due", "deadline", "austritt", "ausgang", "exit", "checkout", "sortie", "salida", "dropoff",
    "returned", "next", "previous", "prev",
];

/// Words that say that a time is that of a change to the record.
pub(crate) const RECORDS: &[&str] = &[
    "updated",
    "update",
    "modified",
    "exported",
    "export",
    "inserted",
    "uploaded",
    "upload",
    "synced",
    "sync",
    "ingested",
    "downloaded",
    "change",
    "changed",
    "changes",
    "edited",
    "revised",
    "revision",
    "refreshed",
    "retrieved",
    "scraped",
    "geändert",
];

/// Words that say that a date is that of a birth.
pub(crate) const BIRTHS: &[&str] = &[
    "birth",
    "birthdate",
    "birthday",
    "born",
    "dob",
    "geburt",
    "geburtsdatum",
    "geburtstag",
    "geboren",
    "naissance",
    "nacimiento",
    "nascita",
    "geboortedatum",
];

/// Words that say that a time is that of a plan or a wish, and not of what happened.
pub(crate) const PLANS: &[&str] = &[
    "prescribed",
    "scheduled",
    "planned",
    "plan",
    "expected",
    "estimated",
    "eta",
    "etd",
    "ordered",
    "requested",
    "booked",
    "reserved",
    "announced",
    "geplant",
    "soll",
    "bestellt",
    "gebucht",
    "verordnet",
    "prévu",
    "prevu",
    "programado",
    "previsto",
    "gepland",
];

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
        assert_eq!(words("Acct #"), ["acct", "no"]);
        assert_eq!((words("#"), words("# of items")), (vec![], vec!["of".into(), "items".into()]));
    }

    #[test]
    fn names_are_words_of_a_command_line() {
        for (name, word) in [
            ("kwh", "kwh"),
            ("Zähler-1", "Zähler-1"),
            ("start station id", "'start station id'"),
            ("Puls [bpm]", "'Puls [bpm]'"),
            ("driver's id", "'driver'\\''s id'"),
            ("", "''"),
        ] {
            assert_eq!(worded(name), word);
        }
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
