//! Splits a query's text into words with locations.

use super::error::{Location, QueryError, SyntaxError};
use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Maximum number of words and signs in a query.
pub(super) const MAX_WORDS: usize = 8192;

/// SQL in which an unquoted name may contain `-`, as in the paper's `heart-rate`.
#[derive(Debug)]
pub(super) struct StreamDialect;

impl Dialect for StreamDialect {
    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '-'
    }
}

/// Splits text into words, without comments and white space.
pub(super) fn words(text: &str) -> Result<Vec<TokenWithSpan>, QueryError> {
    let blanked = without_comments(text);
    let tokens =
        Tokenizer::new(&StreamDialect, &blanked).tokenize_with_location().map_err(|error| {
            let at = Location {
                line: short(error.location.line),
                column: short(error.location.column),
                length: 1,
            };
            QueryError::new(at, SyntaxError::Unreadable { reason: error.message })
        })?;
    let words: Vec<_> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    match words.get(MAX_WORDS) {
        None => Ok(words),
        Some(word) => {
            Err(QueryError::new(location(word), SyntaxError::TooLong { limit: MAX_WORDS }))
        }
    }
}

/// The location of a word.
pub(super) fn location(word: &TokenWithSpan) -> Location {
    let (start, end) = (word.span.start, word.span.end);
    let length = if start.line == end.line { end.column.saturating_sub(start.column) } else { 1 };
    Location { line: short(start.line), column: short(start.column), length: short(length).max(1) }
}

/// The location after the last character.
pub(super) fn end_of(text: &str) -> Location {
    let text = text.trim_end();
    let line = text.lines().count().max(1);
    let column = text.lines().last().map_or(0, |line| line.chars().count()) + 1;
    Location { line: short(line as u64), column: short(column as u64), length: 1 }
}

fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The text with comments replaced by spaces, so that locations do not change. The
/// tokenizer would read `--` as part of a name, since names may contain `-`.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = Inside::Code;
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        let next = chars.peek().copied();
        let (blank, then) = inside.step(ch, next);
        out.push(if blank && ch != '\n' { ' ' } else { ch });
        if let (Inside::BlockEnd, Some(_)) = (then, next) {
            out.push(' ');
            chars.next();
            inside = Inside::Code;
        } else {
            inside = then;
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Inside {
    Code,
    Quotes(char),
    Line,
    Block,
    BlockEnd,
}

impl Inside {
    /// Whether `ch` belongs to a comment, and what follows it.
    fn step(self, ch: char, next: Option<char>) -> (bool, Inside) {
        match (self, ch, next) {
            (Inside::Code, '-', Some('-')) => (true, Inside::Line),
            (Inside::Code, '/', Some('*')) => (true, Inside::Block),
            (Inside::Code, '\'' | '"' | '`', _) => (false, Inside::Quotes(ch)),
            (Inside::Quotes(quote), _, _) if ch == quote => (false, Inside::Code),
            (Inside::Line, '\n', _) => (true, Inside::Code),
            (Inside::Block, '*', Some('/')) => (true, Inside::BlockEnd),
            (Inside::Line | Inside::Block | Inside::BlockEnd, _, _) => (true, self),
            (same, _, _) => (false, same),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_and_locations_kept() {
        let text = "a-- x'\n/* ' */ b 'c--d' \"e/*f\"";
        assert_eq!(without_comments(text), "a     \n        b 'c--d' \"e/*f\"");
        assert_eq!(without_comments("a /* open"), "a        ");
        let words = words(text).unwrap();
        assert_eq!(words.len(), 4);
        assert_eq!(location(&words[1]), Location { line: 2, column: 9, length: 1 });
    }

    #[test]
    fn a_name_may_contain_a_hyphen() {
        let words = words("heart-rate -5").unwrap();
        assert_eq!(words[0].token.to_string(), "heart-rate");
        assert_eq!(words.len(), 3);
    }

    #[test]
    fn an_unclosed_string_is_reported_where_it_opens() {
        let error = words("SELECT\n  'abc").unwrap_err();
        assert_eq!((error.at.line, error.at.column), (2, 3));
    }
}
