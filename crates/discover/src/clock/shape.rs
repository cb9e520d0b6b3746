//! The shape of a time's text, and the formats that the shape allows.

use super::{Region, interval, words};

/// Longest text that is taken for a time, in bytes.
const MAX_BYTES: usize = 72;

/// Orders of date fields that people use. `b` is a month's name.
const ORDERS: [&str; 16] = [
    "Ymd", "dmY", "mdY", "ymd", "dmy", "mdy", "dbY", "bdY", "Ybd", "dby", "bdy", "Yj", "Ym", "mY",
    "bY", "Yb",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A run of so many digits.
    Digits(usize),
    /// The digits behind a second's point.
    Fraction,
    Month,
    Weekday,
    Noon,
    Offset,
    Zone,
    Space,
    Literal(char),
}

/// The kind of a text: equal for texts that one format reads. None for what is no time.
#[must_use]
pub fn shape(text: &str) -> Option<String> {
    let Some((start, mark, end)) = interval::split(text) else { return shape_of_one(text) };
    Some(format!("{}{mark}{}", shape_of_one(start)?, shape_of_one(end)?))
}

/// The same for what is no interval.
pub(super) fn shape_of_one(text: &str) -> Option<String> {
    let tokens = tokens(text)?;
    let numbers = tokens.iter().filter(|token| matches!(token, Token::Digits(_))).count();
    if numbers == 0 || tokens.len() < 2 || is_serial(&tokens, numbers) {
        return None;
    }
    Some(tokens.iter().map(|token| token.sign()).collect())
}

/// Whether a text rather names something: `Z100234` or `T42`. No time begins with its zone.
fn is_serial(tokens: &[Token], numbers: usize) -> bool {
    match tokens[0] {
        Token::Offset | Token::Zone => true,
        Token::Noon | Token::Literal('T' | 'h' | 'W') => numbers == 1,
        _ => false,
    }
}

impl Token {
    fn sign(self) -> char {
        match self {
            Token::Digits(1 | 2) => '2',
            Token::Digits(count) => {
                char::from_digit(u32::try_from(count).unwrap_or(20).min(20), 36).unwrap_or('k')
            }
            Token::Fraction => 'F',
            Token::Month => 'B',
            Token::Weekday => 'A',
            Token::Noon => 'P',
            Token::Offset | Token::Zone => 'Z',
            Token::Space => ' ',
            Token::Literal(c) => c,
        }
    }
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let text = text.trim();
    if text.len() > MAX_BYTES {
        return None;
    }
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        if found.contains(&Token::Offset) && is_place(rest) {
            found.extend(rest.chars().map(Token::Literal));
            break;
        }
        let (token, length) = token(rest, c, &found)?;
        found.push(token);
        rest = rest.get(length..)?;
    }
    Some(found)
}

/// Whether a text is a place in brackets, such as `[Europe/London]`. Behind an offset it adds nothing,
/// so formats have it as it is.
fn is_place(text: &str) -> bool {
    let name = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let known = |name: &str| {
        matches!(name, "UTC" | "GMT") || (name.contains('/') && Region::parse(name).is_some())
    };
    name.is_some_and(known)
}

fn token(rest: &str, c: char, before: &[Token]) -> Option<(Token, usize)> {
    let run = |wanted: fn(char) -> bool| rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    if c.is_ascii_digit() {
        let length = run(|c| c.is_ascii_digit());
        let fraction = before.len() > 3
            && matches!(before[before.len() - 1], Token::Literal('.' | ','))
            && matches!(before[before.len() - 2], Token::Digits(2 | 6))
            && (before[before.len() - 3] == Token::Literal(':')
                || before[before.len() - 3] == Token::Literal('T'));
        return Some((if fraction { Token::Fraction } else { Token::Digits(length) }, length));
    }
    if c.is_whitespace() {
        return Some((Token::Space, run(char::is_whitespace)));
    }
    if matches!(c, '+' | '-') && before.iter().any(|t| matches!(t, Token::Literal(':' | 'T'))) {
        let length = rest[1..]
            .find(|c: char| !(c.is_ascii_digit() || c == ':'))
            .map_or(rest.len(), |n| n + 1);
        words::offset(rest.get(..length)?)?;
        return Some((Token::Offset, length));
    }
    if c.is_alphabetic() {
        return word(rest, run(|c| c.is_alphabetic() || c == '\''), before);
    }
    matches!(c, '-' | '/' | '.' | ':' | ',' | '_' | '[' | ']' | '(' | ')' | '@')
        .then_some((Token::Literal(c), c.len_utf8()))
}

fn word(rest: &str, length: usize, before: &[Token]) -> Option<(Token, usize)> {
    let word = rest.get(..length)?;
    if word == "T" || word == "h" || word == "W" {
        return word.chars().next().map(|c| (Token::Literal(c), 1));
    }
    let dotted = ["a.m.", "p.m.", "A.M.", "P.M."].iter().find(|noon| rest.starts_with(**noon));
    if let Some(noon) = dotted {
        return Some((Token::Noon, noon.len()));
    }
    let lower = word.to_ascii_lowercase();
    let ends = rest.len() == length && before.contains(&Token::Literal(':'));
    if matches!(lower.as_str(), "am" | "pm") || (ends && matches!(lower.as_str(), "a" | "p")) {
        return Some((Token::Noon, length));
    }
    let dot = usize::from(rest.get(length..).is_some_and(|rest| rest.starts_with('.')));
    if words::month(word).is_some()
        && !before.contains(&Token::Month)
        && word.to_lowercase() != "mardi"
    {
        return Some((Token::Month, length + dot));
    }
    if words::is_weekday(word) {
        return Some((Token::Weekday, length + dot));
    }
    if word == "Z" {
        return Some((Token::Offset, length));
    }
    words::zone(word).map(|_| (Token::Zone, length))
}

/// The formats that can read a text and others of its shape: of a date, of a time of day, or
/// of both. The usual ones come first. Of an interval they read the start.
#[must_use]
pub fn formats(text: &str) -> Vec<String> {
    let Some((start, mark, _)) = interval::split(text) else { return formats_of_one(text) };
    formats_of_one(start).into_iter().map(|format| format!("{format}{mark}%*")).collect()
}

/// The same for what is no interval.
pub(super) fn formats_of_one(text: &str) -> Vec<String> {
    let Some(tokens) = tokens(text) else { return Vec::new() };
    if let Some(week) = week(&tokens) {
        return vec![week.to_owned()];
    }
    let twelve = tokens.contains(&Token::Noon);
    let mut search = Search { tokens: &tokens, twelve, found: Vec::new() };
    search.go(0, &State::default());
    let mut found = search.found;
    found.sort_by_key(|(order, _)| *order);
    found.dedup();
    let mut found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    // The same digits may be a week.
    if let [Token::Digits(4), Token::Literal(mark), Token::Digits(2)] = tokens.as_slice() {
        found.push(format!("%G{mark}%V"));
    }
    found
}

/// The format of an ISO week such as `2024-W05` or `2024W05-3`.
fn week(tokens: &[Token]) -> Option<&'static str> {
    use Token::{Digits, Literal};
    Some(match tokens {
        [Digits(4), Literal('-'), Literal('W'), Digits(2)] => "%G-W%V",
        [Digits(4), Literal('W'), Digits(2)] => "%GW%V",
        [Digits(4), Literal('-'), Literal('W'), Digits(2), Literal('-'), Digits(1)] => "%G-W%V-%u",
        [Digits(4), Literal('W'), Digits(3)] => "%GW%V%u",
        _ => return None,
    })
}

struct Search<'t> {
    tokens: &'t [Token],
    twelve: bool,
    found: Vec<(usize, String)>,
}

#[derive(Clone, Default)]
struct State {
    text: String,
    /// The date fields so far.
    date: String,
    /// The time fields so far.
    time: String,
    /// What stood between date fields of digits.
    between: Option<char>,
}

impl State {
    fn with(&self, text: &str, date: &str, time: &str) -> State {
        State {
            text: format!("{}{text}", self.text),
            date: format!("{}{date}", self.date),
            time: format!("{}{time}", self.time),
            between: self.between,
        }
    }

    fn lacks(&self, fields: &str) -> bool {
        fields.chars().all(|field| {
            let other = match field {
                'b' => 'm',
                'm' => 'b',
                'y' => 'Y',
                'Y' => 'y',
                other => other,
            };
            !self.date.contains(field) && !self.date.contains(other)
        })
    }
}

impl Search<'_> {
    fn go(&mut self, at: usize, state: &State) {
        const MAX_FOUND: usize = 64;
        if self.found.len() > MAX_FOUND {
            return;
        }
        let Some(token) = self.tokens.get(at) else { return self.end(state) };
        match token {
            Token::Digits(count) => self.digits(at, *count, state),
            Token::Fraction => self.go(at + 1, &state.with("%f", "", "f")),
            Token::Month if state.lacks("b") => self.go(at + 1, &state.with("%b", "b", "")),
            Token::Month => {}
            Token::Weekday => self.go(at + 1, &state.with("%a", "", "")),
            Token::Noon => self.go(at + 1, &state.with("%p", "", "")),
            Token::Offset => self.go(at + 1, &state.with("%z", "", "")),
            Token::Zone => self.go(at + 1, &state.with("%Z", "", "")),
            Token::Space => self.go(at + 1, &state.with(" ", "", "")),
            Token::Literal(c) => self.go(at + 1, &state.with(&c.to_string(), "", "")),
        }
    }

    /// What stands before a token, if it is no letter.
    fn mark_before(&self, at: usize) -> Option<char> {
        match self.tokens.get(at.checked_sub(1)?)? {
            Token::Literal(c) => Some(*c),
            Token::Space => Some(' '),
            _ => None,
        }
    }

    fn mark_after(&self, at: usize) -> Option<char> {
        match self.tokens.get(at + 1)? {
            Token::Literal(c) => Some(*c),
            _ => None,
        }
    }

    fn digits(&mut self, at: usize, count: usize, state: &State) {
        let mark = self.mark_before(at);
        if count <= 2
            && matches!(state.time.as_str(), "H" | "HM")
            && matches!(mark, Some(':' | '.' | 'h'))
        {
            let (text, field) = if state.time == "H" { ("%M", "M") } else { ("%S", "S") };
            // `1.2.3` is a version; a clock with dots has all its digits.
            if mark == Some('.') && count < 2 && state.date.is_empty() {
                return;
            }
            return self.go(at + 1, &state.with(text, "", field));
        }
        for (text, date) in date_fields(count) {
            if state.lacks(date) && (state.time.is_empty() || state.time.starts_with("HM")) {
                self.date_field(at, mark, (text, date), state);
            }
        }
        if !state.time.is_empty() {
            return;
        }
        let hour = if self.twelve { "%I" } else { "%H" };
        match count {
            1 | 2
                if matches!(self.mark_after(at), Some(':' | '.' | 'h'))
                    || self.is_lone_hour(at, state) =>
            {
                self.go(at + 1, &state.with(hour, "", "H"));
            }
            4 if state.date.len() >= 3 => self.go(at + 1, &state.with("%H%M", "", "HM")),
            6 if state.date.len() >= 3 => self.go(at + 1, &state.with("%H%M%S", "", "HMS")),
            _ => {}
        }
    }

    /// Whether digits may be an hour without minutes: behind a whole date, or before noon's
    /// mark.
    fn is_lone_hour(&self, at: usize, state: &State) -> bool {
        let noon = matches!(self.tokens.get(at + 1), Some(Token::Noon))
            || (matches!(self.tokens.get(at + 1), Some(Token::Space))
                && matches!(self.tokens.get(at + 2), Some(Token::Noon)));
        noon || (state.date.len() >= 3
            && at + 1 == self.tokens.len()
            && matches!(self.mark_before(at), Some(' ' | 'T' | '-' | ':')))
    }

    fn date_field(
        &mut self,
        at: usize,
        mark: Option<char>,
        (text, date): (&str, &str),
        state: &State,
    ) {
        let mut next = state.with(text, date, "");
        if !state.date.is_empty() {
            let allowed = matches!(mark, Some('-' | '/' | '.' | ' ' | '_'));
            let named = state.date.contains('b') || matches!(mark, Some(','));
            let same = state.between.is_none_or(|between| Some(between) == mark);
            if !(named || allowed && same) {
                return;
            }
            next.between = mark;
        }
        self.go(at + 1, &next);
    }

    fn end(&mut self, state: &State) {
        let order = ORDERS.iter().position(|order| *order == state.date);
        let short = state.date.len() < 3 && state.date != "Yj" && !state.date.contains('b');
        let dotted = short && (state.between == Some('.') || !state.time.is_empty());
        let clock_only =
            state.date.is_empty() && (state.time.len() > 1 || self.twelve) && self.is_clock(state);
        match order {
            Some(order) if !dotted => self.found.push((order, state.text.clone())),
            None if clock_only => self.found.push((ORDERS.len(), state.text.clone())),
            _ => {}
        }
    }

    /// Whether what has hours and minutes cannot be a number: `14.15` can, `14.15.30` cannot.
    fn is_clock(&self, state: &State) -> bool {
        let marks = ["%H:%M", "%Hh%M", "%H.%M.%S"];
        self.twelve || marks.iter().any(|marks| state.text.contains(marks))
    }
}

/// The date fields that so many digits may be, with their letters.
fn date_fields(count: usize) -> &'static [(&'static str, &'static str)] {
    match count {
        1 => &[("%m", "m"), ("%d", "d")],
        2 => &[("%m", "m"), ("%d", "d"), ("%y", "y")],
        3 => &[("%j", "j")],
        4 => &[("%Y", "Y")],
        6 => &[("%y%m%d", "ymd"), ("%d%m%y", "dmy"), ("%m%d%y", "mdy")],
        7 => &[("%Y%j", "Yj")],
        8 => &[("%Y%m%d", "Ymd"), ("%d%m%Y", "dmY"), ("%m%d%Y", "mdY")],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_shape_has_its_formats() {
        for (text, expected) in [
            ("2018-03-06", "%Y-%m-%d"),
            ("2018-03-06T14:15:30.250Z", "%Y-%m-%dT%H:%M:%S.%f%z"),
            ("2018-03-06 14:15:30+01:00", "%Y-%m-%d %H:%M:%S%z"),
            ("06.03.2018 14:15", "%d.%m.%Y %H:%M|%m.%d.%Y %H:%M"),
            ("3/6/2018 2:15 PM", "%d/%m/%Y %I:%M %p|%m/%d/%Y %I:%M %p"),
            ("06-Mar-18", "%d-%b-%y"),
            ("Mar 6, 2018 14:15", "%b %d, %Y %H:%M"),
            ("[06/Mar/2018:14:15:30 +0000]", "[%d/%b/%Y:%H:%M:%S %z]"),
            ("Tue, 06 Mar 2018 14:15:30 GMT", "%a, %d %b %Y %H:%M:%S %Z"),
            ("20180306 1415", "%Y%m%d %H%M|%d%m%Y %H%M|%m%d%Y %H%M"),
            ("20180306T141530", "%Y%m%dT%H%M%S|%d%m%YT%H%M%S|%m%d%YT%H%M%S"),
            ("14:15", "%H:%M"),
            ("14:15:30.5", "%H:%M:%S.%f"),
            ("18.00.00", "%y.%m.%d|%d.%m.%y|%m.%d.%y|%H.%M.%S"),
            ("1.2.3", ""),
            ("2:15 pm", "%I:%M %p"),
            ("02:15 p", "%I:%M %p"),
            ("2018-03-06 14", "%Y-%m-%d %H"),
            ("2018-03", "%Y-%m|%G-%V"),
            ("2018-Mar", "%Y-%b"),
            ("2018 Mar", "%Y %b"),
            ("2018-03-06T14:15+01:00[Europe/Berlin]", "%Y-%m-%dT%H:%M%z[Europe/Berlin]"),
            ("2018-03-06T14:15[Europe/Berlin]", ""),
            ("2018-03-06T14:15+01:00 [Europe/Nowhere]", ""),
            ("14:15:30 06.03.2018", "%H:%M:%S %d.%m.%Y|%H:%M:%S %m.%d.%Y"),
            ("Mar 6, 2018 @ 14:15:30.250", "%b %d, %Y @ %H:%M:%S.%f"),
            ("2018-W10", "%G-W%V"),
            ("2018W10", "%GW%V"),
            ("2018-W10-2", "%G-W%V-%u"),
            ("2018-03-06 14:15 to 2018-03-06 14:30", "%Y-%m-%d %H:%M to %*"),
            ("2018-03-06T14:15:00.0/2018-03-06T14:16:00.0", "%Y-%m-%dT%H:%M:%S.%f/%*"),
            ("2018-03-06 14:15 - 14:30", "%Y-%m-%d %H:%M - %*"),
            ("2018-03/2018-04", "%Y-%m/%*|%G-%V/%*"),
            ("20180306:1415", "%Y%m%d:%H%M|%d%m%Y:%H%M|%m%d%Y:%H%M"),
            ("14:15 - 14:30", ""),
            ("2018-03-06 - 14:30", "%Y-%m-%d - %H:%M"),
            ("2018-03-06 to 5", ""),
            ("fish", ""),
            ("12.5", ""),
            ("415,4", ""),
            ("a-1", ""),
            ("1-2", ""),
        ] {
            assert_eq!(formats(text).join("|"), expected, "{text}");
        }
        let three = formats("06/03/18");
        assert_eq!(three, ["%y/%m/%d", "%d/%m/%y", "%m/%d/%y"]);
    }

    #[test]
    fn texts_of_one_shape_are_alike() {
        assert_eq!(shape("4/12/2016 0:00"), shape("10/1/2016 23:59"));
        assert_ne!(shape("4/12/2016 0:00"), shape("4/12/16 0:00"));
        assert_eq!(shape("12-Jan-2016"), shape("3-May-2017"));
        assert_eq!(shape("12:00:00.1"), shape("12:00:00.123456"));
        assert_eq!(shape("Sensor 5").or(shape("iPhone G6")).or(shape("17")), None);
    }

    proptest! {
        #[test]
        fn any_text_has_formats_that_can_be_used(text: String) {
            let _ = shape(&text);
            for format in formats(&text) {
                prop_assert!(Format::part(&format).is_ok());
            }
        }

        #[test]
        fn likely_texts_do_not_panic(text in "[0-9TZapmJan:./ ,+-]{0,30}") {
            let _ = shape(&text);
            for format in formats(&text) {
                let _ = Format::part(&format).map(|f| f.micros(&text, 0));
            }
        }
    }
}
