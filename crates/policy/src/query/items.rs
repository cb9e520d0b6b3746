//! Parses select items: functions with arguments and aliases.

use super::ast::{BinRequest, Call, Item, SourceLocation, Word};
use super::error::{Location, QueryError, SyntaxError, nearest};
use super::function::Function;
use super::parser::Reader;
use crate::decimal::Decimal;
use sqlparser::tokenizer::Token;

/// Columns that every result has.
const RESERVED: &[&str] = &[
    "window_start",
    "window_end",
    "population",
    "silent",
    "excluded",
    "status",
    "noise",
    "mostly_noise",
    "windows",
    "streams_without_report",
    "integrity",
    "plan",
    "sealed",
    "members_left_out",
    "members_refused",
];

/// A select item that may not have an alias yet.
pub(super) struct RawItem {
    name: &'static str,
    call: Call,
    alias: Option<Word>,
    at: Location,
}

/// An argument as written.
enum Argument {
    Name(Word),
    Number(Decimal),
    Text(String),
    Star,
    Edges(Vec<Decimal>),
}

pub(super) fn item(reader: &mut Reader) -> Result<RawItem, QueryError> {
    let at = reader.here();
    if reader.peek() == &Token::Mul {
        let remedy = "single values are never released: write SUM(x), AVG(x) or another aggregate";
        return Err(reader.error(SyntaxError::Unsupported { what: "SELECT *", remedy }));
    }
    let word = reader.name("a function such as AVG(x)")?;
    if reader.peek() != &Token::LParen {
        let problem = match Function::named(&word.text) {
            Some((function, _)) => {
                SyntaxError::Arguments { function, form: Function::form(function) }
            }
            None => SyntaxError::BareAttribute { word: word.text },
        };
        return Err(QueryError::new(at, problem));
    }
    let Some((name, function)) = Function::named(&word.text) else {
        let suggestion = nearest(&word.text, Function::names());
        let known = Function::names().collect::<Vec<_>>().join(", ");
        return Err(QueryError::new(
            at,
            SyntaxError::UnknownFunction { word: word.text, suggestion, known },
        ));
    };
    reader.explained(
        SyntaxError::Arguments { function: name, form: Function::form(name) }.to_string(),
    );
    let arguments = arguments(reader)?;
    let call = call(name, function, arguments, at)?;
    reader.written("AVG(power) AS mean");
    let alias = if reader.word("AS") { Some(reader.name("a name for the column")?) } else { None };
    Ok(RawItem { name, call, alias, at })
}

fn arguments(reader: &mut Reader) -> Result<Vec<Argument>, QueryError> {
    reader.need_sign(&Token::LParen, "`(`")?;
    if reader.sees("DISTINCT") {
        let remedy = "if the schema offers a sketch, write APPROX_DISTINCT(x)";
        return Err(reader.error(SyntaxError::Unsupported { what: "DISTINCT", remedy }));
    }
    let mut arguments = vec![argument(reader)?];
    while reader.takes(&Token::Comma) {
        arguments.push(argument(reader)?);
    }
    reader.need_sign(&Token::RParen, "`,` or `)`")?;
    Ok(arguments)
}

fn argument(reader: &mut Reader) -> Result<Argument, QueryError> {
    if reader.takes(&Token::Mul) {
        return Ok(Argument::Star);
    }
    match reader.peek() {
        Token::SingleQuotedString(text) => {
            let text = text.clone();
            reader.parser.next_token();
            Ok(Argument::Text(text))
        }
        Token::Number(..) | Token::Minus | Token::Plus => number(reader).map(Argument::Number),
        _ => {
            let word = reader.name("an attribute or a number")?;
            match word.text.eq_ignore_ascii_case("EDGES") && reader.takes(&Token::LParen) {
                true => edges(reader).map(Argument::Edges),
                false => Ok(Argument::Name(word)),
            }
        }
    }
}

fn edges(reader: &mut Reader) -> Result<Vec<Decimal>, QueryError> {
    let mut edges = vec![number(reader)?];
    while reader.takes(&Token::Comma) {
        edges.push(number(reader)?);
    }
    reader.need_sign(&Token::RParen, "`,` or `)`")?;
    Ok(edges)
}

/// A decimal with an optional sign.
pub(super) fn number(reader: &mut Reader) -> Result<Decimal, QueryError> {
    let negative = reader.takes(&Token::Minus);
    if !negative {
        reader.takes(&Token::Plus);
    }
    let Token::Number(digits, false) = reader.peek() else {
        return Err(reader.expected("a number"));
    };
    let range = "a decimal of at most 18 places that fits in 64 bits without its point";
    let number = Decimal::parse(digits)
        .and_then(|number| if negative { number.negated() } else { Some(number) });
    let number =
        number.ok_or_else(|| reader.error(SyntaxError::OutOfRange { what: "a number", range }))?;
    reader.parser.next_token();
    Ok(number)
}

fn call(
    name: &'static str,
    function: Function,
    arguments: Vec<Argument>,
    at: Location,
) -> Result<Call, QueryError> {
    use Argument::{Name, Number, Star, Text};
    let wrong = || {
        QueryError::new(at, SyntaxError::Arguments { function: name, form: Function::form(name) })
    };
    let mut arguments = arguments.into_iter();
    let three = (arguments.next(), arguments.next(), arguments.next());
    let call = match (function, three) {
        (Function::Histogram, (Some(Name(x)), second, third)) => {
            let bins = bins(second, third, arguments.next(), at)?;
            Call::Histogram(x, bins.ok_or_else(wrong)?)
        }
        (Function::Percentile, (Some(Name(x)), Some(Number(p)), None)) => {
            let (numerator, denominator) = proportion(p, at)?;
            Call::Percentile(x, numerator, denominator)
        }
        (Function::TopK, (Some(Name(x)), Some(Number(k)), None)) => {
            Call::TopK(x, small(k, "the number of bins that TOPK lists", at)?)
        }
        (Function::Regression(_), (Some(Name(y)), Some(Name(x)), None)) => {
            Call::Pair(function, y, x)
        }
        (Function::By(_), (Some(Name(x)), Some(Name(by)), None)) => Call::By(function, x, by, None),
        (Function::By(_), (Some(Name(x)), Some(Name(by)), Some(Number(width)))) => {
            Call::By(function, x, by, Some(positive(width, at)?))
        }
        (Function::Frequency, (Some(Name(x)), Some(Text(item)), None)) => Call::Frequency(x, item),
        (Function::Count, (Some(Star), None, None)) => Call::Events,
        (of_one, (Some(Name(x)), None, None)) if takes_one(of_one) => Call::Of(of_one, x),
        _ => return Err(wrong()),
    };
    if arguments.next().is_some() { Err(wrong()) } else { Ok(call) }
}

/// Whether a function takes one attribute and nothing else.
fn takes_one(function: Function) -> bool {
    match function {
        Function::Histogram
        | Function::Percentile
        | Function::TopK
        | Function::Regression(_)
        | Function::By(_)
        | Function::Frequency => false,
        Function::Count
        | Function::Sum
        | Function::Moments(_)
        | Function::FromHistogram(_)
        | Function::Side { .. }
        | Function::Any
        | Function::All
        | Function::Distinct => true,
    }
}

/// The bins after the attribute of `HISTOGRAM`, or `None` if the arguments are wrong.
fn bins(
    second: Option<Argument>,
    third: Option<Argument>,
    fourth: Option<Argument>,
    at: Location,
) -> Result<Option<BinRequest>, QueryError> {
    use Argument::{Edges, Number};
    match (second, third, fourth) {
        (None, None, None) => Ok(Some(BinRequest::Native)),
        (Some(Edges(edges)), None, None) => {
            ascending(&edges, at)?;
            Ok(Some(BinRequest::Edges(edges)))
        }
        (Some(Number(lo)), Some(Number(width)), Some(Number(bins))) => {
            uniform(lo, width, bins, at).map(Some)
        }
        _ => Ok(None),
    }
}

fn out_of_range<T>(at: Location, what: &'static str, range: &'static str) -> Result<T, QueryError> {
    Err(QueryError::new(at, SyntaxError::OutOfRange { what, range }))
}

fn ascending(edges: &[Decimal], at: Location) -> Result<(), QueryError> {
    match edges.is_sorted_by(|low, high| low < high) && edges.len() <= usize::from(u16::MAX) {
        true => Ok(()),
        false => out_of_range(at, "EDGES", "strictly ascending lower edges"),
    }
}

fn uniform(
    lo: Decimal,
    width: Decimal,
    bins: Decimal,
    at: Location,
) -> Result<BinRequest, QueryError> {
    let bins = small(bins, "the number of bins", at)?;
    Ok(BinRequest::Uniform { lo, width: positive(width, at)?, bins })
}

fn positive(width: Decimal, at: Location) -> Result<Decimal, QueryError> {
    match width <= Decimal::ZERO {
        true => out_of_range(at, "the width of a bin", "above 0"),
        false => Ok(width),
    }
}

fn small(number: Decimal, what: &'static str, at: Location) -> Result<u16, QueryError> {
    match number
        .scaled(0)
        .and_then(|number| u16::try_from(number).ok())
        .filter(|number| *number > 0)
    {
        Some(number) => Ok(number),
        None => out_of_range(at, what, "a whole number from 1 to 65535"),
    }
}

fn proportion(p: Decimal, at: Location) -> Result<(u32, u32), QueryError> {
    match p.fraction().filter(|(numerator, denominator)| numerator <= denominator) {
        Some(fraction) => Ok(fraction),
        None => out_of_range(
            at,
            "the share that PERCENTILE takes",
            "between 0 and 1, such as 0.95, with at most 9 places",
        ),
    }
}

/// Gives every item an alias: from the list of columns, from `AS`, or
/// `<function>_<attribute>`. Aliases are distinct, and neither they nor groups are reserved.
pub(super) fn item_aliases(
    items: Vec<RawItem>,
    columns: Option<Vec<Word>>,
    group_by: &[Word],
) -> Result<Vec<Item>, QueryError> {
    if let Some(columns) = &columns
        && columns.len() != items.len()
    {
        let at = columns.first().map_or_else(Location::default, |column| column.at);
        return Err(QueryError::new(
            at,
            SyntaxError::Columns { columns: columns.len(), items: items.len() },
        ));
    }
    if let Some(word) = group_by.iter().find(|word| RESERVED.contains(&word.text.as_str())) {
        let group = word.text.clone();
        return Err(QueryError::new(word.at, SyntaxError::ReservedGroup { group }));
    }
    let mut columns = columns.into_iter().flatten();
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for raw in items {
        let alias = columns
            .next()
            .or(raw.alias)
            .unwrap_or_else(|| Word { text: default_alias(raw.name, &raw.call), at: raw.at });
        let taken = out.iter().any(|item| item.alias == alias.text) || group_by.contains(&alias);
        if RESERVED.contains(&alias.text.as_str()) {
            return Err(QueryError::new(
                alias.at,
                SyntaxError::ReservedAlias { alias: alias.text },
            ));
        }
        if taken {
            return Err(QueryError::new(alias.at, SyntaxError::SameAlias { alias: alias.text }));
        }
        out.push(Item {
            alias: alias.text,
            name: raw.name,
            call: raw.call,
            at: SourceLocation(raw.at),
        });
    }
    Ok(out)
}

/// `<function>_<attribute>` in lower case, with `_` for `-`.
pub(crate) fn default_alias(name: &str, call: &Call) -> String {
    let attributes: Vec<&str> = match call {
        Call::Events => vec![],
        Call::Of(_, x)
        | Call::Histogram(x, _)
        | Call::Percentile(x, ..)
        | Call::TopK(x, _)
        | Call::Frequency(x, _) => {
            vec![x.text.as_str()]
        }
        Call::Pair(_, y, x) => vec![y.text.as_str(), x.text.as_str()],
        Call::By(_, x, by, _) => vec![x.text.as_str(), by.text.as_str()],
    };
    let parts: Vec<&str> = std::iter::once(name).chain(attributes).collect();
    parts.join("_").to_lowercase().replace('-', "_")
}
