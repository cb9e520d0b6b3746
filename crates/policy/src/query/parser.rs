//! Parses statements and their clauses.

use super::ast::{ClauseLocations, Create, IntegrityChoice, Show, SourceLocation, Statement, Word};
use super::condition::condition;
use super::error::{Location, QueryError, SyntaxError};
use super::items::{item, item_aliases};
use super::lexer::{StreamDialect, end_of, location, words};
use super::settings::{settings, within};
use crate::decimal::Decimal;
use crate::ids::labelled_hash;
use alpheus_time::Span;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The beginning of the name of a query that states none.
const UNNAMED: &str = "query";
const UNNAMED_LABEL: &str = "alpheus/unnamed-query/v1";

/// Parses one statement, with an optional semicolon.
///
/// # Errors
/// If the statement is invalid: the offending word, its location, and what to write instead.
pub fn parse(text: &str) -> Result<Statement, QueryError> {
    let mut reader = Reader::new(text)?;
    let statement = statement(&mut reader)?;
    reader.takes(&Token::SemiColon);
    match reader.at_end() {
        true => Ok(statement),
        false => Err(reader.unexpected_end()),
    }
}

/// Reads the words of a query one by one.
pub(super) struct Reader {
    pub(super) parser: Parser<'static>,
    end: Location,
}

impl Reader {
    fn new(text: &str) -> Result<Reader, QueryError> {
        let parser = Parser::new(&StreamDialect).with_tokens_with_locations(words(text)?);
        Ok(Reader { parser, end: end_of(text) })
    }

    fn at_end(&self) -> bool {
        self.peek() == &Token::EOF
    }

    fn unexpected_end(&self) -> QueryError {
        let second = ["CREATE", "SELECT", "EXPLAIN", "SHOW", "DESCRIBE", "DROP"]
            .iter()
            .any(|word| self.sees(word));
        match second {
            true => self.error(SyntaxError::OneStatement),
            false => self.expected(
                "the end of the query or one of WINDOW, FROM, WHERE, GROUP BY, WITH, WITHIN, RELEASE TO",
            ),
        }
    }

    pub(super) fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    /// The location of the next word.
    pub(super) fn here(&self) -> Location {
        match self.parser.peek_token_ref() {
            TokenWithSpan { token: Token::EOF, .. } => self.end,
            word => location(word),
        }
    }

    pub(super) fn error(&self, problem: SyntaxError) -> QueryError {
        QueryError::new(self.here(), problem)
    }

    pub(super) fn expected(&self, expected: &'static str) -> QueryError {
        let found = match self.peek() {
            Token::EOF => "the end of the query".to_owned(),
            token => format!("`{}`", token.to_string().chars().take(60).collect::<String>()),
        };
        self.error(SyntaxError::Expected { expected, found })
    }

    /// Whether the next word is this keyword, unquoted.
    pub(super) fn sees(&self, keyword: &str) -> bool {
        matches!(self.peek(), Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    /// Consumes the keyword if it is next.
    pub(super) fn word(&mut self, keyword: &str) -> bool {
        let seen = self.sees(keyword);
        if seen {
            self.parser.next_token();
        }
        seen
    }

    /// Consumes the keyword, which must be next.
    pub(super) fn need(&mut self, keyword: &'static str) -> Result<(), QueryError> {
        if self.word(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    /// Consumes the sign if it is next.
    pub(super) fn takes(&mut self, sign: &Token) -> bool {
        self.parser.consume_token(sign)
    }

    /// Consumes the sign, which must be next.
    pub(super) fn need_sign(&mut self, sign: &Token, name: &'static str) -> Result<(), QueryError> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(name)) }
    }

    /// A name, quoted or not.
    pub(super) fn name(&mut self, expected: &'static str) -> Result<Word, QueryError> {
        let at = self.here();
        let Token::Word(word) = self.peek() else { return Err(self.expected(expected)) };
        let text = word.value.clone();
        if text.is_empty() {
            return Err(self.expected(expected));
        }
        self.parser.next_token();
        Ok(Word { text, at })
    }

    /// An integer.
    pub(super) fn whole(
        &mut self,
        what: &'static str,
        range: &'static str,
    ) -> Result<u32, QueryError> {
        let Token::Number(digits, false) = self.peek() else { return Err(self.expected(what)) };
        let number =
            digits.parse().map_err(|_| self.error(SyntaxError::OutOfRange { what, range }))?;
        self.parser.next_token();
        Ok(number)
    }
}

fn statement(reader: &mut Reader) -> Result<Statement, QueryError> {
    if reader.word("CREATE") {
        return Ok(Statement::Create(create(reader)?));
    }
    if reader.sees("SELECT") {
        return Ok(Statement::Create(unnamed(reader)?));
    }
    if reader.word("EXPLAIN") {
        let privacy = reader.word("PRIVACY");
        if reader.sees("SELECT") {
            return Ok(Statement::Explain { privacy, create: unnamed(reader)? });
        }
        if !reader.word("CREATE") {
            return Err(reader.expected("CREATE STREAM or SELECT"));
        }
        return Ok(Statement::Explain { privacy, create: create(reader)? });
    }
    if reader.word("SHOW") {
        return show(reader).map(Statement::Show);
    }
    if reader.word("DESCRIBE") {
        return reader.name("the name of a schema or a query").map(Statement::Describe);
    }
    if reader.word("DROP") {
        reader.need("STREAM")?;
        return reader.name("the name of a running query").map(Statement::Drop);
    }
    Err(reader.expected("CREATE STREAM, SELECT, EXPLAIN, SHOW, DESCRIBE or DROP STREAM"))
}

fn show(reader: &mut Reader) -> Result<Show, QueryError> {
    for (word, show) in
        [("STREAMS", Show::Streams), ("SCHEMAS", Show::Schemas), ("QUERIES", Show::Queries)]
    {
        if reader.word(word) {
            return Ok(show);
        }
    }
    Err(reader.expected("STREAMS, SCHEMAS or QUERIES"))
}

fn create(reader: &mut Reader) -> Result<Create, QueryError> {
    reader.need("STREAM")?;
    let name = reader.name("a name for the result stream")?;
    let columns = if reader.takes(&Token::LParen) { Some(names(reader)?) } else { None };
    reader.need("AS")?;
    let create = select(reader, name, columns)?;
    let verified = create.settings.integrity.is_some_and(IntegrityChoice::is_verified);
    if verified && !is_plain_name(&create.name.text) {
        return Err(QueryError::new(create.name.at, SyntaxError::VerifiedName));
    }
    Ok(create)
}

/// Whether a name is one that no other name looks like: an identifier in ASCII.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    let part = |ch: char| ch.is_ascii_alphanumeric() || ch == '_' || ch == '-';
    let start = |ch: char| ch.is_ascii_alphabetic() || ch == '_';
    name.starts_with(start) && name.chars().all(part)
}

/// A query without `CREATE STREAM`. Its name follows from what it asks, so the same query has the
/// same name.
fn unnamed(reader: &mut Reader) -> Result<Create, QueryError> {
    let at = reader.here();
    let mut create = select(reader, Word { text: UNNAMED.to_owned(), at }, None)?;
    let [a, b, c, d, ..] = labelled_hash(UNNAMED_LABEL, &[create.to_string().as_bytes()]);
    create.name.text = format!("{UNNAMED}_{a:02x}{b:02x}{c:02x}{d:02x}");
    Ok(create)
}

fn select(
    reader: &mut Reader,
    name: Word,
    columns: Option<Vec<Word>>,
) -> Result<Create, QueryError> {
    reader.need("SELECT")?;
    let mut items = vec![item(reader)?];
    while reader.takes(&Token::Comma) {
        items.push(item(reader)?);
    }
    let clauses = clauses(reader)?;
    let items = item_aliases(items, columns, &clauses.group_by)?;
    clauses.with(name, items, reader)
}

fn names(reader: &mut Reader) -> Result<Vec<Word>, QueryError> {
    let mut names = vec![reader.name("the name of a column")?];
    while reader.takes(&Token::Comma) {
        names.push(reader.name("the name of a column")?);
    }
    reader.need_sign(&Token::RParen, "`)`")?;
    Ok(names)
}

/// The clauses after the items, each at most once and in any order.
#[derive(Default)]
struct Clauses {
    window: Option<Windows>,
    from: Option<(Word, Option<(u32, u32)>)>,
    places: ClauseLocations,
    filter: Option<super::ast::Condition>,
    group_by: Vec<Word>,
    settings: Option<super::ast::Settings>,
    within: Option<(Decimal, Location)>,
    release_to: Option<Word>,
}

fn clauses(reader: &mut Reader) -> Result<Clauses, QueryError> {
    let mut clauses = Clauses::default();
    loop {
        let at = reader.here();
        let duplicate = |clause| QueryError::new(at, SyntaxError::Duplicate { clause });
        let clause = if reader.word("WINDOW") {
            ("WINDOW", clauses.window.replace(windows(reader, &mut clauses.places)?).is_some())
        } else if reader.word("FROM") {
            ("FROM", clauses.from.replace(from(reader, &mut clauses.places)?).is_some())
        } else if reader.word("WHERE") {
            ("WHERE", clauses.filter.replace(condition(reader)?).is_some())
        } else if reader.word("GROUP") {
            reader.need("BY")?;
            ("GROUP BY", !std::mem::replace(&mut clauses.group_by, columns(reader)?).is_empty())
        } else if reader.word("WITH") {
            ("WITH", clauses.settings.replace(settings(reader)?).is_some())
        } else if reader.word("WITHIN") {
            ("WITHIN", clauses.within.replace((within(reader)?, at)).is_some())
        } else if reader.word("RELEASE") {
            reader.need("TO")?;
            ("RELEASE TO", clauses.release_to.replace(consumer(reader)?).is_some())
        } else {
            return unsupported_clause(reader).map_or(Ok(clauses), Err);
        };
        if let (clause, true) = clause {
            return Err(duplicate(clause));
        }
    }
}

/// Well-known SQL clauses that encrypted streams do not support.
fn unsupported_clause(reader: &Reader) -> Option<QueryError> {
    let (what, remedy) = [
        (
            "JOIN",
            "JOIN",
            "to relate two attributes, use REGR_SLOPE or SUM_BY if the schema offers them",
        ),
        ("HAVING", "HAVING", "filter the result stream instead"),
        ("ORDER", "ORDER BY", "results are already in the order of their windows"),
        ("LIMIT", "LIMIT", "drop the stream when you have enough results"),
        ("EMIT", "EMIT", "each window is released once, after it closes; remove the clause"),
        (
            "PARTITION",
            "PARTITION BY",
            "use GROUP BY with metadata, which returns one result for each group",
        ),
    ]
    .into_iter()
    .find(|(word, ..)| reader.sees(word))
    .map(|(_, what, remedy)| (what, remedy))?;
    Some(reader.error(SyntaxError::Unsupported { what, remedy }))
}

impl Clauses {
    fn with(
        self,
        name: Word,
        items: Vec<super::ast::Item>,
        reader: &Reader,
    ) -> Result<Create, QueryError> {
        let missing = |clause, example| reader.error(SyntaxError::Missing { clause, example });
        let Windows { window, cumulating, grace } =
            self.window.ok_or_else(|| missing("WINDOW", "WINDOW TUMBLING (SIZE 1 HOUR)"))?;
        let (from, population) =
            self.from.ok_or_else(|| missing("FROM", "FROM and the name of a schema"))?;
        let mut settings = self.settings.unwrap_or_default();
        if let Some((margin, at)) = self.within {
            settings.accuracy.within = Some(margin);
            settings.accuracy.at = SourceLocation(at);
        }
        Ok(Create {
            name,
            items,
            window,
            cumulating,
            grace,
            from,
            population,
            filter: self.filter,
            group_by: self.group_by,
            places: self.places,
            settings,
            release_to: self.release_to,
        })
    }
}

/// `WINDOW …`.
struct Windows {
    window: Span,
    cumulating: Option<Span>,
    grace: Option<Span>,
}

/// Maximum number of steps of cumulating windows.
const MAX_STEPS: u64 = 1 << 17;

fn windows(reader: &mut Reader, places: &mut ClauseLocations) -> Result<Windows, QueryError> {
    for word in ["HOPPING", "SESSION", "SLIDING"] {
        if reader.sees(word) {
            let remedy = "released windows may not overlap: use WINDOW TUMBLING (SIZE 1 HOUR)";
            return Err(
                reader.error(SyntaxError::Unsupported { what: "an overlapping window", remedy })
            );
        }
    }
    let cumulating = reader.word("CUMULATING");
    if !cumulating && !reader.word("TUMBLING") {
        return Err(reader.expected("TUMBLING, or CUMULATING for running totals"));
    }
    reader.need_sign(&Token::LParen, "`(`")?;
    reader.need(if cumulating { "STEP" } else { "SIZE" })?;
    places.window = SourceLocation(reader.here());
    let window = span(reader, false)?;
    let cumulating = if cumulating { Some(whole_size(reader, window)?) } else { None };
    let mut grace = None;
    if reader.takes(&Token::Comma) {
        reader.need("GRACE")?;
        reader.need("PERIOD")?;
        grace = Some(span(reader, true)?);
    }
    reader.need_sign(&Token::RParen, "`)`, or `, GRACE PERIOD 5 SECONDS)`")?;
    Ok(Windows { window, cumulating, grace })
}

/// `, SIZE …`: the extent of running totals, in whole steps.
fn whole_size(reader: &mut Reader, step: Span) -> Result<Span, QueryError> {
    reader.need_sign(&Token::Comma, "`, SIZE 365 DAYS`, the extent of the totals")?;
    reader.need("SIZE")?;
    let at = reader.here();
    let size = span(reader, false)?;
    let range = "a multiple of STEP, and at most 131072 steps";
    let whole = size.0.is_multiple_of(step.0) && size.0 / step.0 <= MAX_STEPS;
    let error = QueryError::new(at, SyntaxError::OutOfRange { what: "SIZE", range });
    if whole { Ok(size) } else { Err(error) }
}

/// Units of time, in microseconds.
const UNITS: &[(&str, &str, u64)] = &[
    ("MILLISECOND", "MILLISECONDS", 1_000),
    ("SECOND", "SECONDS", 1_000_000),
    ("MINUTE", "MINUTES", 60_000_000),
    ("HOUR", "HOURS", 3_600_000_000),
    ("DAY", "DAYS", 86_400_000_000),
    ("WEEK", "WEEKS", 604_800_000_000),
];

fn span(reader: &mut Reader, zero: bool) -> Result<Span, QueryError> {
    const RANGE: &str = "a whole number of time units, above 0 and below ten years";
    let at = reader.here();
    let number = u64::from(reader.whole("a whole number such as 1", RANGE)?);
    let unit = UNITS.iter().find(|(one, many, _)| reader.sees(one) || reader.sees(many));
    let Some((.., unit)) = unit else {
        return Err(
            reader.expected("a unit of time: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS")
        );
    };
    reader.parser.next_token();
    let length = number.saturating_mul(*unit);
    match (length > 0 || zero) && length < 520 * 604_800_000_000 {
        true => Ok(Span(length)),
        false => Err(QueryError::new(
            at,
            SyntaxError::OutOfRange { what: "a length of time", range: RANGE },
        )),
    }
}

fn from(
    reader: &mut Reader,
    places: &mut ClauseLocations,
) -> Result<(Word, Option<(u32, u32)>), QueryError> {
    const RANGE: &str = "two whole numbers, the first at least 1 and at most the second";
    let schema = reader.name("the name of a schema")?;
    places.population = SourceLocation(schema.at);
    if !reader.word("BETWEEN") {
        return Ok((schema, None));
    }
    let at = reader.here();
    places.population = SourceLocation(at);
    let min = reader.whole("the minimum population", RANGE)?;
    reader.need("AND")?;
    let max = reader.whole("the maximum population", RANGE)?;
    match min >= 1 && min <= max {
        true => Ok((schema, Some((min, max)))),
        false => {
            Err(QueryError::new(at, SyntaxError::OutOfRange { what: "BETWEEN", range: RANGE }))
        }
    }
}

fn columns(reader: &mut Reader) -> Result<Vec<Word>, QueryError> {
    let mut columns = vec![reader.name("the name of a metadata attribute")?];
    while reader.takes(&Token::Comma) {
        let at = reader.here();
        let column = reader.name("the name of a metadata attribute")?;
        if columns.contains(&column) {
            return Err(QueryError::new(at, SyntaxError::SameAlias { alias: column.text }));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn consumer(reader: &mut Reader) -> Result<Word, QueryError> {
    let at = reader.here();
    if let Token::SingleQuotedString(text) = reader.peek() {
        let text = text.clone();
        reader.parser.next_token();
        return Ok(Word { text, at });
    }
    reader.name("the name of a consumer")
}
