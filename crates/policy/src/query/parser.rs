//! Parses statements and their clauses.

use super::ast::{ClauseLocations, Create, IntegrityChoice, Show, SourceLocation, Statement, Word};
use super::condition::condition;
use super::error::{Location, QueryError, SyntaxError, nearest};
use super::items::{item, item_aliases};
use super::lexer::{StreamDialect, end_of, location, words};
use super::settings::{settings, within};
use super::windows::{Windows, windows};
use crate::decimal::Decimal;
use crate::ids::labelled_hash;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The beginning of the name of a query that states none.
const UNNAMED: &str = "query";
const UNNAMED_LABEL: &str = "alpheus/unnamed-query/v1";

/// A query, as an example.
const AN_EXAMPLE: &str = "SELECT AVG(power) WINDOW TUMBLING (SIZE 1 HOUR) FROM Household";
/// Words with which statements and clauses begin.
const STATEMENTS: &[&str] = &["CREATE", "SELECT", "EXPLAIN", "SHOW", "DESCRIBE", "DROP"];
const CLAUSES: &[&str] = &["WINDOW", "FROM", "WHERE", "GROUP", "WITH", "WITHIN", "RELEASE", "AS"];

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
        false => Err(reader.unexpected_end(false)),
    }
}

/// Reads the words of a query one by one.
pub(super) struct Reader {
    pub(super) parser: Parser<'static>,
    end: Location,
    /// How the clause is written that is being read.
    form: String,
}

impl Reader {
    fn new(text: &str) -> Result<Reader, QueryError> {
        let parser = Parser::new(&StreamDialect).with_tokens_with_locations(words(text)?);
        Ok(Reader { parser, end: end_of(text), form: String::new() })
    }

    /// A clause begins. Until the next one begins, what is not expected is answered with this
    /// example of it, which can be pasted.
    pub(super) fn written(&mut self, example: impl Into<String>) {
        self.form = format!("write `{}`", example.into());
    }

    /// The same with a sentence in place of the example.
    pub(super) fn explained(&mut self, form: String) {
        self.form = form;
    }

    fn at_end(&self) -> bool {
        self.peek() == &Token::EOF
    }

    /// Something stands where a clause begins or the query ends.
    fn unexpected_end(&self, within_items: bool) -> QueryError {
        if STATEMENTS.iter().any(|word| self.sees(word)) {
            return self.error(SyntaxError::OneStatement);
        }
        let items = "`,` and another function, AS and a name for the column, or one of WINDOW, FROM, WHERE, GROUP BY, WITH, WITHIN, RELEASE TO";
        let end = "the end of the query or one of WINDOW, FROM, WHERE, GROUP BY, WITH, WITHIN, RELEASE TO";
        self.misspelt(if within_items { items } else { end }, CLAUSES)
    }

    /// Something other than one of these words, of which it may be meant to be one.
    fn misspelt(&self, expected: &'static str, words: &[&str]) -> QueryError {
        let meant = match self.peek() {
            Token::Word(word) if word.quote_style.is_none() => {
                nearest(&word.value, words.iter().copied())
            }
            _ => None,
        };
        let form = meant.map(|word| format!("did you mean `{word}`?"));
        self.not_found(expected, form.unwrap_or_default())
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
        self.not_found(expected, self.form.clone())
    }

    fn not_found(&self, expected: &'static str, form: String) -> QueryError {
        let found = match self.peek() {
            Token::EOF => "the end of the query".to_owned(),
            token => format!("`{}`", token.to_string().chars().take(60).collect::<String>()),
        };
        self.error(SyntaxError::Expected { expected, found, form })
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
    reader.written(AN_EXAMPLE);
    if reader.word("CREATE") {
        return Ok(Statement::Create(create(reader)?));
    }
    if reader.sees("SELECT") {
        return Ok(Statement::Create(unnamed(reader)?));
    }
    if reader.word("EXPLAIN") {
        reader.written(format!("EXPLAIN {AN_EXAMPLE}"));
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
        reader.written("SHOW STREAMS");
        return show(reader).map(Statement::Show);
    }
    if reader.word("DESCRIBE") {
        reader.written("DESCRIBE Household");
        return reader.name("the name of a schema or a query").map(Statement::Describe);
    }
    if reader.word("DROP") {
        reader.written("DROP STREAM Hourly");
        reader.need("STREAM")?;
        return reader.name("the name of a running query").map(Statement::Drop);
    }
    let expected = "CREATE STREAM, SELECT, EXPLAIN, SHOW, DESCRIBE or DROP STREAM";
    match reader.peek() {
        Token::Word(_) => Err(reader.misspelt(expected, STATEMENTS)),
        _ => Err(reader.expected(expected)),
    }
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
    reader.written(format!("CREATE STREAM Hourly AS {AN_EXAMPLE}"));
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
    reader.written("SELECT AVG(power)");
    let mut items = vec![item(reader)?];
    while reader.takes(&Token::Comma) {
        reader.written("SELECT SUM(power), AVG(power)");
        items.push(item(reader)?);
    }
    let clauses = clauses(reader)?;
    let items = item_aliases(items, columns, &clauses.group_by)?;
    clauses.with(name, items, reader)
}

fn names(reader: &mut Reader) -> Result<Vec<Word>, QueryError> {
    reader.written(format!("CREATE STREAM Hourly (mean) AS {AN_EXAMPLE}"));
    let mut names = vec![reader.name("the name of a column")?];
    while reader.takes(&Token::Comma) {
        names.push(reader.name("the name of a column")?);
    }
    reader.need_sign(&Token::RParen, "`,` or `)`")?;
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
            reader.explained(String::new());
            ("WHERE", clauses.filter.replace(condition(reader)?).is_some())
        } else if reader.word("GROUP") {
            reader.written("GROUP BY region");
            reader.need("BY")?;
            ("GROUP BY", !std::mem::replace(&mut clauses.group_by, columns(reader)?).is_empty())
        } else if reader.word("WITH") {
            ("WITH", clauses.settings.replace(settings(reader)?).is_some())
        } else if reader.word("WITHIN") {
            ("WITHIN", clauses.within.replace((within(reader)?, at)).is_some())
        } else if reader.word("RELEASE") {
            reader.written("RELEASE TO hospital");
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
    /// Whether none was read, so that what follows belongs to the items.
    fn is_empty(&self) -> bool {
        let Self { window, from, filter, group_by, settings, within, release_to, .. } = self;
        window.is_none()
            && from.is_none()
            && filter.is_none()
            && group_by.is_empty()
            && settings.is_none()
            && within.is_none()
            && release_to.is_none()
    }

    fn with(
        self,
        name: Word,
        items: Vec<super::ast::Item>,
        reader: &Reader,
    ) -> Result<Create, QueryError> {
        let is_empty = self.is_empty();
        let ends = reader.at_end() || reader.peek() == &Token::SemiColon;
        let missing = |clause, example| match ends {
            true => reader.error(SyntaxError::Missing { clause, example }),
            false => reader.unexpected_end(is_empty),
        };
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

fn from(
    reader: &mut Reader,
    places: &mut ClauseLocations,
) -> Result<(Word, Option<(u32, u32)>), QueryError> {
    const RANGE: &str = "two whole numbers, the first at least 1 and at most the second: write `BETWEEN 10 AND 1000`";
    reader.explained("write `FROM Household` (SHOW SCHEMAS lists all)".to_owned());
    let schema = reader.name("the name of a schema")?;
    places.population = SourceLocation(schema.at);
    if !reader.word("BETWEEN") {
        return Ok((schema, None));
    }
    let at = reader.here();
    places.population = SourceLocation(at);
    reader.written("BETWEEN 10 AND 1000");
    let min = reader.whole("a whole number, the minimum number of owners in a window", RANGE)?;
    reader.written(format!("BETWEEN {min} AND {}", min.max(1000)));
    if !reader.word("AND") {
        return Err(
            reader.expected("AND and a whole number, the maximum number of owners in a window")
        );
    }
    let max = reader.whole("a whole number, the maximum number of owners in a window", RANGE)?;
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
