//! Parses `WITH (…)`.

use super::ast::{IntegrityChoice, MaskChoice, MembershipChoice, Settings, SourceLocation};
use super::error::{Location, QueryError, SyntaxError, nearest};
use super::items::number;
use super::parser::Reader;
use crate::budget::Mechanism;
use crate::decimal::Decimal;
use crate::fraction::Fraction;
use sqlparser::tokenizer::Token;

/// Names of settings, each with a value as an example.
const KNOWN: &[(&str, &str)] = &[
    ("epsilon", "0.5"),
    ("delta", "1e-9"),
    ("mechanism", "'skellam'"),
    ("events", "60"),
    ("error", "5 %"),
    ("typical", "300"),
    ("values", "24"),
    ("alpha", "'1/3'"),
    ("dropout", "0.2"),
    ("masks", "'epoch'"),
    ("mask_delta", "1e-9"),
    ("membership", "'epochs'"),
    ("integrity", "'verified'"),
];

fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

pub(super) fn settings(reader: &mut Reader) -> Result<Settings, QueryError> {
    let mut settings = Settings::default();
    any_setting(reader);
    reader.need_sign(&Token::LParen, "`(`")?;
    loop {
        any_setting(reader);
        setting(reader, &mut settings)?;
        if !reader.takes(&Token::Comma) {
            reader.need_sign(&Token::RParen, "`,` or `)`")?;
            return Ok(settings);
        }
    }
}

fn any_setting(reader: &mut Reader) {
    let names: Vec<&str> = names().collect();
    let names = names.join(", ");
    reader.explained(format!("write `WITH (epsilon = 0.5)`; the settings are {names}"));
}

fn setting(reader: &mut Reader, settings: &mut Settings) -> Result<(), QueryError> {
    let name = reader.name("the name of a setting")?;
    let is_meant = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(&name.text);
    if let Some((name, value)) = KNOWN.iter().find(is_meant) {
        reader.written(format!("WITH ({name} = {value})"));
    }
    reader.need_sign(&Token::Eq, "`=`")?;
    let at = reader.here();
    let again = match name.text.to_ascii_lowercase().as_str() {
        "epsilon" => settings.epsilon.replace(positive(reader, at, "epsilon")?).is_some(),
        "delta" => settings.delta.replace(delta(reader, at)?).is_some(),
        "mechanism" => settings.mechanism.replace(mechanism(reader)?).is_some(),
        "events" => settings.events.replace(events(reader, at, "events")?).is_some(),
        "error" => {
            settings.accuracy.at = SourceLocation(at);
            settings.accuracy.error.replace(share(reader, at)?).is_some()
        }
        "typical" => settings.accuracy.typical.replace(typical(reader, at)?).is_some(),
        "values" => settings.accuracy.values.replace(events(reader, at, "values")?).is_some(),
        "alpha" => settings.alpha.replace(fraction(reader, at, "alpha")?).is_some(),
        "dropout" => settings.dropout.replace(fraction(reader, at, "dropout")?).is_some(),
        "masks" => settings.masks.replace(masks(reader)?).is_some(),
        "membership" => settings.membership.replace(membership(reader)?).is_some(),
        "integrity" => settings.integrity.replace(integrity(reader)?).is_some(),
        "mask_delta" => settings.mask_delta_exponent.replace(power(reader, at)?).is_some(),
        _ => {
            let suggestion = nearest(&name.text, names());
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(QueryError::new(
                name.at,
                SyntaxError::UnknownSetting { word: name.text, suggestion, known },
            ));
        }
    };
    if again {
        return Err(QueryError::new(
            name.at,
            SyntaxError::Duplicate { clause: "setting of this name" },
        ));
    }
    Ok(())
}

/// The content of a quoted text.
fn quoted(reader: &mut Reader) -> Option<String> {
    let Token::SingleQuotedString(text) = reader.peek() else { return None };
    let text = text.clone();
    reader.parser.next_token();
    Some(text)
}

fn decimal(reader: &mut Reader, error: &QueryError) -> Result<Decimal, QueryError> {
    match quoted(reader) {
        Some(text) => Decimal::parse(text.trim()).ok_or_else(|| error.clone()),
        None => number(reader),
    }
}

fn positive(reader: &mut Reader, at: Location, what: &'static str) -> Result<Decimal, QueryError> {
    let error = QueryError::new(
        at,
        SyntaxError::OutOfRange { what, range: "a number above 0, such as 0.5" },
    );
    let number = decimal(reader, &error)?;
    match number <= Decimal::ZERO {
        true => Err(error),
        false => Ok(number),
    }
}

fn delta(reader: &mut Reader, at: Location) -> Result<Decimal, QueryError> {
    let number = positive(reader, at, "delta")?;
    let range = "above 0 and below 1, such as 1e-9";
    let error = QueryError::new(at, SyntaxError::OutOfRange { what: "delta", range });
    if number < Decimal::from_scaled(1, 0) { Ok(number) } else { Err(error) }
}

fn events(reader: &mut Reader, at: Location, what: &'static str) -> Result<u64, QueryError> {
    let range = "a whole number of at least 1";
    let error = QueryError::new(at, SyntaxError::OutOfRange { what, range });
    let number = decimal(reader, &error)?.scaled(0).and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or(error)
}

/// `2 %`, `'2 %'` or `0.02`, as a share.
fn share(reader: &mut Reader, at: Location) -> Result<Decimal, QueryError> {
    let range = "above 0 and below 100 %, such as 5 %";
    let error = QueryError::new(at, SyntaxError::OutOfRange { what: "error", range });
    let (text, percent) = match quoted(reader) {
        Some(text) => match text.trim().strip_suffix('%') {
            Some(number) => (number.trim().to_owned(), true),
            None => (text.trim().to_owned(), false),
        },
        None => (number(reader)?.to_string(), reader.takes(&Token::Mod)),
    };
    let text = if percent { format!("{text}e-2") } else { text };
    let whole = Decimal::from_scaled(1, 0);
    Decimal::parse(&text).filter(|own| *own > Decimal::ZERO && *own < whole).ok_or(error)
}

/// A mean other than 0, of which an error can be a share.
fn typical(reader: &mut Reader, at: Location) -> Result<Decimal, QueryError> {
    let range = "a number other than 0, in the unit of the attribute";
    let error = QueryError::new(at, SyntaxError::OutOfRange { what: "typical", range });
    let number = decimal(reader, &error)?;
    if number == Decimal::ZERO { Err(error) } else { Ok(number) }
}

/// `5 OF 95 %` after `WITHIN`: a margin. Margins are those of 95 % of results.
pub(super) fn within(reader: &mut Reader) -> Result<Decimal, QueryError> {
    reader.written("WITHIN 5 OF 95 %");
    let at = reader.here();
    let margin = positive(reader, at, "WITHIN")?;
    reader.written(format!("WITHIN {margin} OF 95 %"));
    if !reader.word("OF") {
        return Err(reader.expected("OF 95 %, the share of results within the margin"));
    }
    let at = reader.here();
    let confidence = number(reader)?;
    reader.need_sign(&Token::Mod, "`%`")?;
    let range = "95 %, the share of results for which errors are computed";
    match confidence == Decimal::from_scaled(95, 0) {
        true => Ok(margin),
        false => Err(QueryError::new(at, SyntaxError::OutOfRange { what: "the share", range })),
    }
}

fn mechanism(reader: &mut Reader) -> Result<Mechanism, QueryError> {
    let all = [Mechanism::Laplace, Mechanism::Skellam, Mechanism::Gaussian];
    let name = word(reader);
    let found = all.into_iter().find(|mechanism| mechanism.to_string() == name);
    let found = found.ok_or_else(|| reader.expected("'laplace', 'skellam' or 'gaussian'"))?;
    reader.parser.next_token();
    Ok(found)
}

/// A word, quoted or not, in lower case.
fn word(reader: &mut Reader) -> String {
    match reader.peek() {
        Token::SingleQuotedString(text) => text.to_ascii_lowercase(),
        Token::Word(word) => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// `1/3`, `'1/3'` or a decimal, from 0 to below 1.
fn fraction(reader: &mut Reader, at: Location, what: &'static str) -> Result<Fraction, QueryError> {
    let error = QueryError::new(
        at,
        SyntaxError::OutOfRange { what, range: "from 0 to below 1, such as '1/3' or 0.2" },
    );
    let parts = match quoted(reader) {
        Some(text) => text.split_once('/').map_or_else(
            || Decimal::parse(text.trim()).and_then(Decimal::fraction),
            |(above, below)| Some((above.trim().parse().ok()?, below.trim().parse().ok()?)),
        ),
        None => {
            let above = number(reader)?;
            match reader.takes(&Token::Div) {
                true => whole(above).zip(whole(number(reader)?)),
                false => above.fraction(),
            }
        }
    };
    match parts {
        Some((numerator, denominator)) if numerator < denominator => {
            Ok(reduced(numerator, denominator))
        }
        _ => Err(error),
    }
}

fn whole(number: Decimal) -> Option<u32> {
    number.scaled(0).and_then(|number| u32::try_from(number).ok())
}

/// The fraction in lowest terms, so that equal fractions give equal plans.
fn reduced(numerator: u32, denominator: u32) -> Fraction {
    let (mut a, mut b) = (denominator, numerator);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Fraction { numerator: numerator / a, denominator: denominator / a }
}

fn masks(reader: &mut Reader) -> Result<MaskChoice, QueryError> {
    let choice = match word(reader).as_str() {
        "clique" => MaskChoice::Clique,
        "dream" => MaskChoice::Dream,
        "epoch" => MaskChoice::Epoch,
        "neighbours" => MaskChoice::Neighbours,
        _ => return Err(reader.expected("'clique', 'dream', 'epoch' or 'neighbours'")),
    };
    reader.parser.next_token();
    Ok(choice)
}

fn membership(reader: &mut Reader) -> Result<MembershipChoice, QueryError> {
    let choice = match word(reader).as_str() {
        "fixed" => MembershipChoice::Fixed,
        "epochs" => MembershipChoice::Epochs,
        _ => return Err(reader.expected("'fixed' or 'epochs'")),
    };
    reader.parser.next_token();
    Ok(choice)
}

fn integrity(reader: &mut Reader) -> Result<IntegrityChoice, QueryError> {
    let name = word(reader);
    let found = IntegrityChoice::ALL.into_iter().find(|choice| choice.word() == name);
    let found = found.ok_or_else(|| reader.expected("'plain', 'verified' or 'bounded'"))?;
    reader.parser.next_token();
    Ok(found)
}

/// A power of ten such as `1e-9`, as its exponent.
fn power(reader: &mut Reader, at: Location) -> Result<u8, QueryError> {
    let range = "a power of ten from 1e-9 to 1e-18";
    let error = QueryError::new(at, SyntaxError::OutOfRange { what: "mask_delta", range });
    let number = decimal(reader, &error)?;
    (9..=18).find(|places| Decimal::from_scaled(1, *places) == number).ok_or(error)
}
