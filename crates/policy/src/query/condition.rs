//! `WHERE`: conditions on public metadata.

use super::ast::{Comparison, Condition, Word};
use super::error::{At, Problem, QueryError};
use super::lexer::place;
use super::parser::Reader;
use sqlparser::ast::{BinaryOperator, Expr, Spanned, UnaryOperator, Value, ValueWithSpan};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan};

const FORM: &str = "a condition such as region = 'California' or ageGroup IN ('young', 'senior')";

/// Reads the words with the SQL library's expression parser (precedence of
/// `NOT`, `AND`, `OR`, parentheses), then takes what has a meaning here.
pub(super) fn condition(reader: &mut Reader) -> Result<Condition, QueryError> {
    let start = reader.here();
    match reader.parser.parse_expr() {
        Ok(expression) => Taker { start }.condition(expression),
        Err(ParserError::RecursionLimitExceeded) => Err(QueryError::new(start, Problem::TooDeep)),
        Err(_) => Err(reader.expected(FORM)),
    }
}

/// Takes expressions apart; an expression without a place of its own is
/// pointed at by the start of the condition.
#[derive(Clone, Copy)]
struct Taker {
    start: At,
}

impl Taker {
    fn wrong(self, expression: &Expr) -> QueryError {
        let found = format!("`{}`", expression.to_string().chars().take(60).collect::<String>());
        QueryError::new(self.place(expression), Problem::Expected { expected: FORM, found })
    }

    fn place(self, expression: &Expr) -> At {
        let span = match expression {
            Expr::Identifier(name) => name.span,
            Expr::Value(ValueWithSpan { span, .. }) => *span,
            Expr::BinaryOp { left, .. } => return self.place(left),
            Expr::InList { expr, .. } | Expr::Nested(expr) | Expr::UnaryOp { expr, .. } => {
                return self.place(expr);
            }
            other => other.span(),
        };
        match place(&TokenWithSpan { token: Token::EOF, span }) {
            At { line: 0, .. } => self.start,
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

    /// The links of `a AND b AND …`, which lean left.
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
                Ok(Word { text: name.value.clone(), at: self.place(expression) })
            }
            Expr::Nested(inner) => self.attribute(inner),
            other => Err(self.wrong(other)),
        }
    }

    /// Text in quotes, a number, or a bare word as the paper writes it.
    fn value(self, expression: &Expr) -> Result<Word, QueryError> {
        let at = self.place(expression);
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
