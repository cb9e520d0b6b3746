//! Formats statements as SQL, so that an error can suggest a query to run.

use super::ast::{
    BinRequest, Call, Condition, Create, Item, MaskChoice, MembershipChoice, Settings, Show,
    Statement, Word,
};
use super::condition::is_readable;
use super::items::default_alias;
use crate::decimal::Decimal;
use crate::fraction::Fraction;
use crate::selection::Comparison;
use alpheus_time::Span;
use std::fmt::{self, Display, Formatter};

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Create(create) => create.fmt(f),
            Statement::Explain { privacy: false, create } => write!(f, "EXPLAIN {create}"),
            Statement::Explain { privacy: true, create } => write!(f, "EXPLAIN PRIVACY {create}"),
            Statement::Show(Show::Streams) => f.write_str("SHOW STREAMS"),
            Statement::Show(Show::Schemas) => f.write_str("SHOW SCHEMAS"),
            Statement::Show(Show::Queries) => f.write_str("SHOW QUERIES"),
            Statement::Describe(name) => write!(f, "DESCRIBE {name}"),
            Statement::Drop(name) => write!(f, "DROP STREAM {name}"),
        }
    }
}

impl Display for Word {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut chars = self.text.chars();
        let starts = chars.next().is_some_and(|ch| ch.is_alphabetic() || ch == '_');
        let plain = starts && chars.all(|ch| ch.is_alphanumeric() || ch == '_' || ch == '-');
        match plain && !self.text.contains("--") {
            true => f.write_str(&self.text),
            false => InQuotes(&self.text).fmt(f),
        }
    }
}

/// A name in quotes.
struct InQuotes<'a>(&'a str);

impl Display for InQuotes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// A name in a condition, where more words than elsewhere mean something else.
struct ComparedName<'a>(&'a Word);

impl Display for ComparedName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &self.0.text;
        if is_readable(text) { self.0.fmt(f) } else { InQuotes(text).fmt(f) }
    }
}

/// Text as a value.
struct QuotedText<'a>(&'a str);

impl Display for QuotedText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// Items separated by commas.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, thing) in self.0.iter().enumerate() {
            write!(f, "{}{thing}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Display for Create {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE STREAM {} AS\nSELECT {}\n", self.name, List(&self.items))?;
        match self.cumulating {
            None => write!(f, "WINDOW TUMBLING (SIZE {}", QuerySpan(self.window))?,
            Some(size) => {
                let step = QuerySpan(self.window);
                write!(f, "WINDOW CUMULATING (STEP {step}, SIZE {}", QuerySpan(size))?;
            }
        }
        if let Some(grace) = self.grace {
            write!(f, ", GRACE PERIOD {}", QuerySpan(grace))?;
        }
        write!(f, ")\nFROM {}", self.from)?;
        if let Some((min, max)) = self.population {
            write!(f, " BETWEEN {min} AND {max}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, "\nWHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            write!(f, "\nGROUP BY {}", List(&self.group_by))?;
        }
        self.settings.fmt(f)?;
        if let Some(margin) = self.settings.accuracy.within {
            write!(f, "\nWITHIN {margin} OF 95 %")?;
        }
        match &self.release_to {
            Some(consumer) => write!(f, "\nRELEASE TO {}", QuotedText(&consumer.text)),
            None => Ok(()),
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        match &self.call {
            Call::Events => f.write_str("*")?,
            Call::Of(_, x) | Call::Histogram(x, BinRequest::Native) => write!(f, "{x}")?,
            Call::Histogram(x, BinRequest::Uniform { lo, width, bins }) => {
                write!(f, "{x}, {lo}, {width}, {bins}")?
            }
            Call::Histogram(x, BinRequest::Edges(edges)) => {
                write!(f, "{x}, EDGES({})", List(edges))?
            }
            Call::Percentile(x, numerator, denominator) => {
                let places = denominator.ilog10();
                let p =
                    Decimal::from_scaled(i64::from(*numerator), u8::try_from(places).unwrap_or(9));
                write!(f, "{x}, {p}")?;
            }
            Call::TopK(x, k) => write!(f, "{x}, {k}")?,
            Call::Pair(_, y, x) => write!(f, "{y}, {x}")?,
            Call::By(_, x, by, None) => write!(f, "{x}, {by}")?,
            Call::By(_, x, by, Some(width)) => write!(f, "{x}, {by}, {width}")?,
            Call::Frequency(x, item) => write!(f, "{x}, {}", QuotedText(item))?,
        }
        match self.alias == default_alias(self.name, &self.call) {
            true => f.write_str(")"),
            false => write!(f, ") AS {}", Word::new(&self.alias)),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Compare { attribute, comparison, value } => {
                write!(f, "{} {comparison} {}", ComparedName(attribute), QuotedText(&value.text))
            }
            Condition::In { attribute, values, negated } => {
                let values: Vec<_> = values.iter().map(|value| QuotedText(&value.text)).collect();
                write!(
                    f,
                    "{}{} IN ({})",
                    ComparedName(attribute),
                    if *negated { " NOT" } else { "" },
                    List(&values)
                )
            }
            Condition::And(links) => chain(f, links, " AND "),
            Condition::Or(links) => chain(f, links, " OR "),
            Condition::Not(inner) => write!(f, "NOT ({inner})"),
        }
    }
}

fn chain(f: &mut Formatter<'_>, links: &[Condition], between: &str) -> fmt::Result {
    for (position, link) in links.iter().enumerate() {
        f.write_str(if position == 0 { "" } else { between })?;
        match link {
            Condition::And(_) | Condition::Or(_) => write!(f, "({link})")?,
            _ => link.fmt(f)?,
        }
    }
    Ok(())
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fraction =
            |Fraction { numerator, denominator }: Fraction| format!("'{numerator}/{denominator}'");
        let settings: Vec<String> = [
            self.epsilon.map(|epsilon| format!("epsilon = {epsilon}")),
            self.delta.map(|delta| format!("delta = {delta}")),
            self.mechanism.map(|mechanism| format!("mechanism = '{mechanism}'")),
            self.events.map(|events| format!("events = {events}")),
            self.accuracy.error.map(|error| format!("error = {}", Percent(error))),
            self.accuracy.typical.map(|typical| format!("typical = {typical}")),
            self.accuracy.values.map(|values| format!("values = {values}")),
            self.alpha.map(|alpha| format!("alpha = {}", fraction(alpha))),
            self.dropout.map(|dropout| format!("dropout = {}", fraction(dropout))),
            self.masks.map(|masks| format!("masks = '{masks}'")),
            self.membership.map(|membership| format!("membership = '{membership}'")),
            self.integrity.map(|integrity| format!("integrity = '{}'", integrity.word())),
            self.mask_delta_exponent.map(|exponent| format!("mask_delta = 1e-{exponent}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if settings.is_empty() { Ok(()) } else { write!(f, "\nWITH ({})", settings.join(", ")) }
    }
}

/// A share as a percentage.
pub(crate) struct Percent(pub(crate) Decimal);

impl Display for Percent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match Decimal::parse(&format!("{}e2", self.0)) {
            Some(percent) => write!(f, "{percent} %"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Display for MembershipChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MembershipChoice::Fixed => "fixed",
            MembershipChoice::Epochs => "epochs",
        })
    }
}

impl Display for MaskChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MaskChoice::Clique => "clique",
            MaskChoice::Dream => "dream",
            MaskChoice::Epoch => "epoch",
            MaskChoice::Neighbours => "neighbours",
        })
    }
}

/// A duration in the syntax of queries, in the largest unit that divides it.
pub(crate) struct QuerySpan(pub(crate) Span);

impl Display for QuerySpan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let units = [
            ("DAY", 86_400_000_000),
            ("HOUR", 3_600_000_000),
            ("MINUTE", 60_000_000),
            ("SECOND", 1_000_000),
        ];
        let length = self.0.0;
        let (unit, size) = units
            .into_iter()
            .find(|(_, size)| length > 0 && length.is_multiple_of(*size))
            .unwrap_or(("MILLISECOND", 1_000));
        let number = length / size;
        write!(f, "{number} {unit}{}", if number == 1 { "" } else { "S" })
    }
}
