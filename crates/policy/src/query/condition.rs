//! `WHERE`: conditions on public metadata.

use super::ast::{Condition, Word};
use super::error::{Location, QueryError, SyntaxError};
use super::lexer::{StreamDialect, location, words};
use super::parser::Reader;
use crate::selection::Comparison;
use sqlparser::ast::{BinaryOperator, Expr, Spanned, UnaryOperator, Value, ValueWithSpan};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

const FORM: &str =
    "a condition such as `region = 'California'` or `ageGroup IN ('young', 'senior')`";

/// Parses the condition with the SQL library's expression parser (precedence of `NOT`, `AND`,
/// `OR`, parentheses), then converts the expressions that are supported here.
pub(super) fn condition(reader: &mut Reader) -> Result<Condition, QueryError> {
    let start = reader.here();
    match reader.parser.parse_expr() {
        Ok(expression) => ConditionReader { start }.condition(expression),
        Err(ParserError::RecursionLimitExceeded) => {
            Err(QueryError::new(start, SyntaxError::TooDeep))
        }
        Err(_) => Err(reader.expected(FORM)),
    }
}

/// Whether conditions on this name can be read without quotes. Some words mean something else there, some
/// of them only in parentheses.
pub(super) fn is_readable(name: &str) -> bool {
    [format!("{name} = ''"), format!("({name} = '')"), format!("({name} IN (''))")]
        .iter()
        .all(|condition| is_about(condition, name))
}

fn is_about(condition: &str, name: &str) -> bool {
    let Ok(words) = words(condition) else { return false };
    let mut parser = Parser::new(&StreamDialect).with_tokens_with_locations(words);
    let read = match parser.parse_expr() {
        Ok(Expr::Nested(inner)) => *inner,
        Ok(read) => read,
        Err(_) => return false,
    };
    let (Expr::BinaryOp { left: of, .. } | Expr::InList { expr: of, .. }) = read else {
        return false;
    };
    matches!(*of, Expr::Identifier(read) if read.value == name && read.quote_style.is_none())
}

/// Converts expressions. An expression without its own location is reported at the start of
/// the condition.
#[derive(Clone, Copy)]
struct ConditionReader {
    start: Location,
}

impl ConditionReader {
    fn wrong(self, expression: &Expr) -> QueryError {
        let found = format!("`{}`", expression.to_string().chars().take(60).collect::<String>());
        QueryError::new(
            self.location(expression),
            SyntaxError::Expected { expected: FORM, found, form: String::new() },
        )
    }

    fn location(self, expression: &Expr) -> Location {
        let span = match expression {
            Expr::Identifier(name) => name.span,
            Expr::Value(ValueWithSpan { span, .. }) => *span,
            Expr::BinaryOp { left, .. } => return self.location(left),
            Expr::InList { expr, .. } | Expr::Nested(expr) | Expr::UnaryOp { expr, .. } => {
                return self.location(expr);
            }
            other => other.span(),
        };
        match location(&TokenWithSpan { token: Token::EOF, span }) {
            Location { line: 0, .. } => self.start,
            at => at,
        }
    }

    fn condition(self, expression: Expr) -> Result<Condition, QueryError> {
        match expression {
            Expr::Nested(inner) => self.condition(*inner),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                Ok(Condition::Not(Box::new(self.condition(*expr)?)))
            }
            Expr::BinaryOp { op: BinaryOperator::And, .. } => {
                self.chain(expression, &BinaryOperator::And).map(Condition::And)
            }
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => {
                self.chain(expression, &BinaryOperator::Or).map(Condition::Or)
            }
            Expr::BinaryOp { left, op, right } => self.compare(&left, &op, &right),
            Expr::InList { expr, list, negated } => {
                let values =
                    list.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?;
                Ok(Condition::In { attribute: self.attribute(&expr)?, values, negated })
            }
            other => Err(self.wrong(&other)),
        }
    }

    /// The links of `a AND b AND …`, which is left-associative.
    fn chain(
        self,
        expression: Expr,
        operator: &BinaryOperator,
    ) -> Result<Vec<Condition>, QueryError> {
        let mut links = Vec::new();
        let mut rest = expression;
        loop {
            match rest {
                Expr::BinaryOp { left, op, right } if op == *operator => {
                    links.push(self.condition(*right)?);
                    rest = *left;
                }
                first => {
                    links.push(self.condition(first)?);
                    links.reverse();
                    return Ok(links);
                }
            }
        }
    }

    fn compare(
        self,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
    ) -> Result<Condition, QueryError> {
        let comparison = match operator {
            BinaryOperator::Eq => Comparison::Equal,
            BinaryOperator::NotEq => Comparison::NotEqual,
            BinaryOperator::Lt => Comparison::Less,
            BinaryOperator::LtEq => Comparison::LessOrEqual,
            BinaryOperator::Gt => Comparison::Greater,
            BinaryOperator::GtEq => Comparison::GreaterOrEqual,
            _ => return Err(self.wrong(left)),
        };
        Ok(Condition::Compare {
            attribute: self.attribute(left)?,
            comparison,
            value: self.value(right)?,
        })
    }

    fn attribute(self, expression: &Expr) -> Result<Word, QueryError> {
        match expression {
            Expr::Identifier(name) => {
                Ok(Word { text: name.value.clone(), at: self.location(expression) })
            }
            Expr::Nested(inner) => self.attribute(inner),
            other => Err(self.wrong(other)),
        }
    }

    /// Quoted text, a number, or an unquoted word as in the paper.
    fn value(self, expression: &Expr) -> Result<Word, QueryError> {
        let at = self.location(expression);
        let text = match expression {
            Expr::Identifier(name) => name.value.clone(),
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
                text.clone()
            }
            Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. }) => {
                digits.clone()
            }
            Expr::Value(ValueWithSpan { value: Value::Boolean(yes), .. }) => yes.to_string(),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                format!("-{}", self.value(expr)?.text)
            }
            Expr::Nested(inner) => return self.value(inner),
            other => return Err(self.wrong(other)),
        };
        Ok(Word { text, at })
    }
}
