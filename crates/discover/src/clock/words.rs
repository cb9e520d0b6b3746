//! Names of months and of zones in texts.

/// How months begin in English, German, French, Spanish, Italian, Dutch and Portuguese. The
/// first that fits decides.
const MONTHS: [&[&str]; 12] = [
    &["jan", "gen", "ene"],
    &["feb", "fev", "fév"],
    &["mar", "mär", "mrz", "maa"],
    &["apr", "avr", "abr"],
    &["may", "mai", "mei", "mag", "maj"],
    &["jun", "juin", "giu"],
    &["jul", "juil", "lug"],
    &["aug", "aoû", "aou", "ago"],
    &["sep", "set"],
    &["oct", "okt", "ott", "out"],
    &["nov"],
    &["dec", "dez", "déc", "dic"],
];

/// Longest name of a month that is looked at, in bytes.
const MAX_MONTH: usize = 16;

/// The month, from 1, that a word names.
#[must_use]
pub fn month(word: &str) -> Option<u8> {
    if word.len() > MAX_MONTH || word.chars().count() < 3 {
        return None;
    }
    let word = word.to_lowercase();
    let fits = |names: &[&str]| names.iter().any(|name| word.starts_with(name));
    let at = MONTHS.iter().position(|names| fits(names))?;
    u8::try_from(at + 1).ok()
}

/// Whether a word is a day of the week in English, German or French.
#[must_use]
pub fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 21] = [
        "mon", "tue", "wed", "thu", "fri", "sat", "sun", "mo", "di", "mi", "do", "fr", "sa", "so",
        "lun", "mar", "mer", "jeu", "ven", "sam", "dim",
    ];
    let word = word.to_lowercase();
    let long = ["day", "tag", "woch", "di"].iter().any(|end| word.contains(end));
    DAYS.iter().any(|day| word == *day || (day.len() == 3 && word.starts_with(day) && long))
}

/// Hours and minutes east of Greenwich, by the zone's usual letters.
const ZONES: [(&str, i32); 30] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("Z", 0),
    ("WET", 0),
    ("CET", 60),
    ("MET", 60),
    ("MEZ", 60),
    ("BST", 60),
    ("WEST", 60),
    ("CEST", 120),
    ("MESZ", 120),
    ("MEST", 120),
    ("EET", 120),
    ("SAST", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("JST", 540),
    ("KST", 540),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
];

/// Seconds east of Greenwich of a zone's letters, such as `CET`.
#[must_use]
pub fn zone(word: &str) -> Option<i32> {
    let found = ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, minutes)| minutes * 60)
}

/// Seconds east of Greenwich of an offset such as `+01:00`, `-0730`, `+2`, `Z` or `UTC+1`.
#[must_use]
pub fn offset(text: &str) -> Option<i32> {
    let text = text.trim();
    if let Some(seconds) = zone(text) {
        return Some(seconds);
    }
    let text = ["UTC", "GMT"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
    let (sign, digits) = match text.chars().next()? {
        '+' => (1, text.get(1..)?),
        '-' => (-1, text.get(1..)?),
        '\u{2212}' => (-1, text.get(3..)?),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let whole = |text: &str| {
        let good = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if good { text.parse::<i32>().ok() } else { None }
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// An offset in seconds as it is written: `+01:00`.
#[must_use]
pub fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Whether `AM` or `PM` says that it is after noon; `a.m.` and `p` say it too. Cells of whole files
/// go through here, so nothing is allocated.
pub(crate) fn after_noon(word: &str) -> Option<bool> {
    let mut letters =
        word.bytes().filter(|byte| *byte != b'.').map(|byte| byte.to_ascii_lowercase());
    let after = match letters.next()? {
        b'a' => false,
        b'p' => true,
        _ => return None,
    };
    let ends = letters.next().is_none_or(|letter| letter == b'm') && letters.next().is_none();
    ends.then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_and_zones_are_known() {
        for (word, number) in [
            ("Jan", 1),
            ("März", 3),
            ("mai", 5),
            ("JUN", 6),
            ("juillet", 7),
            ("août", 8),
            ("Dez", 12),
        ] {
            assert_eq!(month(word), Some(number), "{word}");
        }
        assert_eq!(month("xyz").or(month("T")).or(month("PM")), None);
        for (text, seconds) in [
            ("+01:00", 3600),
            ("-0730", -27_000),
            ("Z", 0),
            ("+2", 7200),
            ("UTC-4", -14_400),
            ("CEST", 7200),
        ] {
            assert_eq!(offset(text), Some(seconds), "{text}");
        }
        assert_eq!(offset("+25:00").or(offset("1")).or(offset("local")), None);
        assert_eq!(offset_text(-12_600), "-03:30");
        assert!(is_weekday("Wednesday") && is_weekday("Mo") && !is_weekday("Model"));
    }

    #[test]
    fn halves_of_a_day_are_read_with_dots_and_short() {
        for (word, after) in [("AM", false), ("a.m.", false), ("p", true), ("P.M.", true)] {
            assert_eq!(after_noon(word), Some(after), "{word}");
        }
        for word in ["", ".", "m", "amm", "ax", "pmp", "noon"] {
            assert_eq!(after_noon(word), None, "{word}");
        }
    }
}
