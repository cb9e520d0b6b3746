//! What lines above a table say of numbers that stand for a missing one: those next to a word such as
//! "missing", and no others.

use crate::number::Decimal;

/// What says that something is missing.
const MISSING: &[&[&str]] = &[
    &["missing"],
    &["nodata"],
    &["no", "data"],
    &["no", "information"],
    &["no", "value"],
    &["not", "available"],
    &["unavailable"],
    &["not", "measured"],
    &["invalid"],
    &["fehlend"],
    &["fehlende"],
    &["fehlender"],
    &["fehlenden"],
    &["fehlt"],
    &["fehlwert"],
    &["fehlwerte"],
    &["keine", "daten"],
    &["manquant"],
    &["manquante"],
    &["manquants"],
    &["manquantes"],
];

/// What says that a number stands for something.
const LINKS: &[&str] = &[
    "=",
    ":",
    "(",
    "-",
    "is",
    "are",
    "as",
    "by",
    "with",
    "to",
    "for",
    "if",
    "where",
    "when",
    "means",
    "mean",
    "meaning",
    "denotes",
    "denote",
    "indicates",
    "indicate",
    "represents",
    "represent",
    "marks",
    "stands",
    "stand",
    "coded",
    "marked",
    "indicated",
    "represented",
    "denoted",
    "given",
    "shown",
    "set",
    "replaced",
    "filled",
    "flagged",
    "written",
    "recorded",
    "reported",
    "ist",
    "sind",
    "als",
    "mit",
    "bedeutet",
    "steht",
    "stehen",
    "für",
    "est",
    "sont",
    "par",
];

/// Words that may stand between what is missing and a link.
const NOUNS: &[&str] = &[
    "a",
    "an",
    "the",
    "that",
    "this",
    "value",
    "values",
    "data",
    "reading",
    "readings",
    "measurement",
    "measurements",
    "observation",
    "observations",
    "number",
    "numbers",
    "entry",
    "entries",
    "cell",
    "cells",
    "code",
    "codes",
    "flag",
    "marker",
    "indicator",
    "or",
    "wert",
    "werte",
    "zahl",
    "zahlen",
    "messwert",
    "messwerte",
    "valeur",
    "valeurs",
];

/// Words that may follow a number: it is no count of what they name.
const BEHIND: &[&str] =
    &["in", "if", "for", "where", "when", "throughout", "gekennzeichnet", "kodiert", "codiert"];

/// What joins numbers of a list.
const JOINS: &[&str] = &[",", "/", "and", "or", "und", "oder", "et", "ou"];

/// Words at most between a number and what says that it is a missing one.
const MAX_BETWEEN: usize = 8;

/// A number, or all below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    Number(Decimal),
    Negative,
}

/// A word or a sign of a line.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Mark(Mark),
    Word(String),
}

impl Token {
    fn is(&self, list: &[&str]) -> bool {
        matches!(self, Token::Word(own) if list.contains(&own.as_str()))
    }

    /// Whether it is a sign that ends what is said. A unit is none.
    fn ends(&self) -> bool {
        self.is(&[".", ",", ";", ":", ")", "(", "=", "/"])
    }
}

/// The numbers that stand for a missing one, as lines above the table say.
#[derive(Debug, Default)]
pub(crate) struct Legend {
    marked: Vec<Mark>,
}

impl Legend {
    pub(crate) fn of(above: &[String]) -> Legend {
        let mut legend = Legend::default();
        let mut line: Vec<Token> = Vec::new();
        for next in above {
            line.extend(tokens(next.trim_start_matches(['#', '%', ' '])));
            // It goes on in the next line.
            let open = |last: &Token| last.is(LINKS) && !last.ends();
            if !line.last().is_some_and(open) {
                legend.read(&line);
                line.clear();
            }
        }
        legend.read(&line);
        legend
    }

    /// Whether lines name this number.
    pub(crate) fn names(&self, number: Decimal) -> bool {
        self.marked.contains(&Mark::Number(number))
    }

    /// Whether lines say that all numbers below zero stand for missing ones.
    pub(crate) fn names_negative(&self) -> bool {
        self.marked.contains(&Mark::Negative)
    }

    fn read(&mut self, line: &[Token]) {
        for at in 0..line.len() {
            let says = |words: &&&[&str]| {
                let own = line.get(at..at + words.len());
                own.is_some_and(|own| own.iter().zip(**words).all(|(own, word)| own.is(&[word])))
            };
            if let Some(words) = MISSING.iter().find(says) {
                self.marked.extend(behind(&line[at + words.len()..]));
                self.marked.extend(before(&line[..at]));
            }
        }
    }
}

/// The numbers behind what is missing: `missing: -9, -99`, `missing values are coded as -9`.
fn behind(line: &[Token]) -> Vec<Mark> {
    // What names a number, as in `missing value 99`.
    const NAMES: &[&str] = &["value", "code", "flag", "marker", "indicator", "wert", "valeur"];
    // `No data for 99` names none.
    const OTHERS: &[&str] = &["for", "if", "where", "when", "für"];
    let fits = |token: &&Token| (token.is(LINKS) && !token.is(OTHERS)) || token.is(NOUNS);
    let between = line.iter().take(MAX_BETWEEN).take_while(fits).count();
    let named = line[..between].iter().any(|token| token.is(NAMES));
    let linked = named || line[..between].iter().any(|token| token.is(LINKS));
    // Cells of a row: `missing value;99`, `missing,-9`.
    let is_cell = match line.get(between..).unwrap_or_default() {
        [cut, Token::Mark(mark @ Mark::Number(_)), ..] => {
            cut.is(&[",", ";"]) && (named || is_negative(*mark))
        }
        _ => false,
    };
    let between = between + usize::from(is_cell);
    let list = list(line[between..].iter());
    let last = list.last().map_or(0, |(at, _)| between + at + 1);
    let next = line.get(last);
    let counts = next.is_some_and(|next| !(next.ends() || next.is(BEHIND) || next.is(JOINS)));
    let marked = list.iter().map(|(_, marked)| *marked);
    let sure = |marked: &Mark| linked || is_negative(*marked);
    let all: Vec<Mark> = marked.filter(sure).collect();
    // All below zero: `by negative numbers`.
    let negative = |all: &[Mark]| all == [Mark::Negative];
    if counts && !(negative(&all) && next.is_some_and(|next| next.is(NOUNS))) {
        return Vec::new();
    }
    all
}

/// The numbers before what is missing: `-9 = missing`, `99 means that a value is missing`. But not
/// `99 readings are missing`.
fn before(line: &[Token]) -> Vec<Mark> {
    let fits = |token: &&Token| token.is(LINKS) || token.is(NOUNS);
    let between = line.iter().rev().take(MAX_BETWEEN).take_while(fits).count();
    let (line, between) = line.split_at(line.len() - between);
    let list = list(line.iter().rev());
    let only_is = matches!(between, [only] if only.is(&["is", "are", "ist", "sind"]));
    let linked = between.first().is_some_and(|first| first.is(LINKS)) && !only_is;
    let Some((last, _)) = list.last() else { return Vec::new() };
    let first = line.len().checked_sub(last + 2).map(|at| &line[at]);
    let open = first.is_none_or(|first| {
        first.is(&[".", ",", ";", ":", "(", "=", "value", "values", "code", "codes"])
    });
    let nouns = between.iter().all(|token| token.is(NOUNS));
    list.into_iter()
        .map(|(_, marked)| marked)
        .filter(|marked| match marked {
            Mark::Negative => !nouns && between.iter().any(|token| token.is(LINKS)),
            Mark::Number(_) if is_negative(*marked) => linked || between.is_empty(),
            Mark::Number(_) => linked && open,
        })
        .collect()
}

fn is_negative(marked: Mark) -> bool {
    match marked {
        Mark::Number(number) => number < Decimal::ZERO,
        Mark::Negative => true,
    }
}

/// The numbers that a text begins with, each with its place.
fn list<'t>(tokens: impl Iterator<Item = &'t Token>) -> Vec<(usize, Mark)> {
    let mut found: Vec<(usize, Mark)> = Vec::new();
    for (at, token) in tokens.enumerate() {
        match token {
            Token::Mark(marked) => found.push((at, *marked)),
            joins if joins.is(JOINS) && !found.is_empty() => {}
            _ => break,
        }
    }
    found
}

/// The words, the numbers and the signs of a line. Quotes are none.
fn tokens(line: &str) -> Vec<Token> {
    let text: Vec<char> = line.to_lowercase().replace('\u{2212}', "-").chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(first) = text.get(at).copied() {
        let digits = number(&text, at);
        let length = match digits {
            0 if first.is_alphanumeric() => {
                text[at..].iter().take_while(|c| c.is_alphanumeric()).count()
            }
            0 => 1,
            length => length,
        };
        let own: String = text[at..at + length].iter().collect();
        let spaced = |at: Option<&char>| at.is_none_or(|c| c.is_whitespace());
        let dash = first == '-' && length == 1;
        if dash && !(spaced(at.checked_sub(1).map(|at| &text[at])) && spaced(text.get(at + 1))) {
            found.push(Token::Word("joined".to_owned()));
        } else if digits > 0 {
            let value = Decimal::read(&own.replace(',', "."));
            found.extend(value.map(|value| Token::Mark(Mark::Number(value))));
        } else if own.starts_with("negativ") {
            found.push(Token::Mark(Mark::Negative));
        } else if !first.is_whitespace() && !matches!(first, '"' | '\'' | '_' | '`' | '#') {
            found.push(Token::Word(own));
        }
        at += length;
    }
    found
}

/// How long the number is that begins here, with its sign and its decimals.
fn number(text: &[char], at: usize) -> usize {
    let digit = |at: usize| text.get(at).is_some_and(char::is_ascii_digit);
    let joined = at.checked_sub(1).is_some_and(|at| text[at].is_alphanumeric());
    let signed = usize::from(text[at] == '-' && !joined);
    let digits = |from: usize| text[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = at + signed;
    if !digit(end) {
        return 0;
    }
    end += digits(end);
    if text.get(end).is_some_and(|c| matches!(c, '.' | ',')) && digit(end + 1) {
        end += 1 + digits(end + 1);
    }
    // A part of a word, such as `99th`.
    if text.get(end).is_some_and(|c| c.is_alphanumeric()) { 0 } else { end - at }
}
