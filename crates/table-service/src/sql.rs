//! Queries: plain SQL, parsed by the `sqlparser` library, over the names of a table's schema.

use super::index::{DAY, Selection};
use super::schema::{RESERVED, TableSchema};
use alpheus_input::calendar::day_number;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query,
    Select, SelectItem, SetExpr, Statement, UnaryOperator, Value,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::collections::BTreeSet;

/// A function of one or two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// Rows.
    Rows,
    /// Cells that are not empty.
    Count(u16),
    /// Σx.
    Sum(u16),
    /// Σx / n.
    Mean(u16),
    /// Population variance.
    Variance(u16),
    /// Population covariance of y and x, over rows that have both.
    Covariance(u16, u16),
    /// Least squares of y by x: the slope.
    Slope(u16, u16),
    /// Least squares of y by x: the intercept.
    Intercept(u16, u16),
    /// Σ w(r)·x over rows r of the table, w a polynomial in r.
    Weighted(u16, Vec<i64>),
    /// The value at a number of the polynomial whose coefficients the rows are.
    Polynomial(u16, u64),
}

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub alias: String,
    /// Its function.
    pub function: Function,
}

/// A valid query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableQuery {
    /// Whether the query asks for its plan only.
    pub explain: bool,
    /// The columns of the answer.
    pub items: Vec<Item>,
    /// The rows that it covers.
    pub rows: Selection,
}

/// Why a query is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// Not SQL.
    #[error("{0}")]
    Syntax(String),
    /// No statement, or not SELECT.
    #[error("a query must be `SELECT …` or `EXPLAIN SELECT …`")]
    NotSelect,
    /// An unsupported clause.
    #[error(
        "`{0}` is not supported; a query is `SELECT functions [FROM table] [WHERE day BETWEEN 'a' AND 'b' AND group = 'v'] [GROUP BY DAY(time), group]`"
    )]
    Clause(String),
    /// An unknown function, or invalid arguments.
    #[error(
        "`{0}` is not supported; use COUNT(*), COUNT(x), SUM(x), AVG(x), VAR(x), COV(y, x), REGRESSION(y ~ x), SLOPE(y, x), INTERCEPT(y, x), WEIGHTED(x, c0, c1, …), POLYNOMIAL(x, at)"
    )]
    Function(String),
    /// A column that the schema does not have.
    #[error("there is no column `{0}`; the schema has: {1}")]
    Column(String, String),
    /// A group that the schema does not have.
    #[error("there is no group `{0}` to filter or group by; the schema has: {1}")]
    Group(String, String),
    /// Not a date or time.
    #[error("`{0}` is neither a day such as '2013-05-01' nor a time in seconds since 1970")]
    Time(String),
    /// A repeated name.
    #[error("the answer has two columns named `{0}`; rename one of them with AS")]
    Twice(String),
    /// Invalid weights.
    #[error(
        "WEIGHTED takes a column and 1 to 8 coefficients, whole numbers below 2^63 in magnitude"
    )]
    Weights,
    /// An invalid point.
    #[error("POLYNOMIAL takes a column and a point, a whole number from 0 to 2^63 - 1")]
    Point,
    /// The coefficients of a polynomial are all rows.
    #[error("POLYNOMIAL uses all rows; remove WHERE and GROUP BY")]
    Whole,
}

/// Parses all queries of a text.
///
/// # Errors
/// [`SqlError`].
pub fn parse(text: &str, schema: &TableSchema) -> Result<Vec<TableQuery>, SqlError> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, text);
    let statements = statements.map_err(|error| SqlError::Syntax(error.to_string()))?;
    if statements.is_empty() {
        return Err(SqlError::NotSelect);
    }
    statements.into_iter().map(|statement| read(statement, schema)).collect()
}

fn read(statement: Statement, schema: &TableSchema) -> Result<TableQuery, SqlError> {
    let whole = statement.to_string();
    match statement {
        Statement::Query(query) => select(&query, schema),
        Statement::Explain { ref statement, .. } => {
            // ANALYZE would need an answer.
            if whole != format!("EXPLAIN {statement}") {
                return Err(SqlError::Clause(whole.chars().take(200).collect()));
            }
            Ok(TableQuery { explain: true, ..read((**statement).clone(), schema)? })
        }
        _ => Err(SqlError::NotSelect),
    }
}

fn select(query: &Query, schema: &TableSchema) -> Result<TableQuery, SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(SqlError::NotSelect) };
    refuse_others(query, select, schema)?;
    let mut items = Vec::new();
    for item in &select.projection {
        items.extend(read_item(item, schema)?);
    }
    if items.is_empty() {
        return Err(SqlError::NotSelect);
    }
    let mut rows = Selection::default();
    if let Some(condition) = &select.selection {
        read_condition(condition, schema, &mut rows)?;
    }
    let GroupByExpr::Expressions(groups, _) = &select.group_by else {
        return Err(SqlError::Clause(select.group_by.to_string()));
    };
    for group in groups {
        read_group(group, schema, &mut rows)?;
    }
    refuse_twice(&items, &rows, schema)?;
    let polynomial = items.iter().any(|item| matches!(item.function, Function::Polynomial(..)));
    if polynomial && rows != Selection::default() {
        return Err(SqlError::Whole);
    }
    Ok(TableQuery { explain: false, items, rows })
}

/// Rejects names that an answer would use twice: for its columns, its groups, or the fields
/// that every answer has.
fn refuse_twice(items: &[Item], rows: &Selection, schema: &TableSchema) -> Result<(), SqlError> {
    let mut names: BTreeSet<String> = RESERVED.iter().map(|&name| name.to_owned()).collect();
    let groups = rows.by_groups.iter().filter_map(|at| schema.groups.get(*at));
    let aliases = items.iter().map(|item| &item.alias);
    let mut all = groups.chain(aliases);
    match all.find(|name| !names.insert(name.to_lowercase())) {
        Some(twice) => Err(SqlError::Twice(twice.clone())),
        None => Ok(()),
    }
}

/// Refuses everything that would otherwise be ignored. The parts that were read are printed
/// as SQL, and must equal the query. So no clause can be missed, even if a later version of
/// the parser adds one.
fn refuse_others(query: &Query, select: &Select, schema: &TableSchema) -> Result<(), SqlError> {
    let clause = |text: String| Err(SqlError::Clause(text.chars().take(200).collect()));
    let GroupByExpr::Expressions(groups, _) = &select.group_by else {
        return clause(select.group_by.to_string());
    };
    let mut read = format!("SELECT {}", listed(&select.projection));
    if let [from] = select.from.as_slice() {
        if !from.to_string().eq_ignore_ascii_case(&schema.name) {
            return clause(format!("FROM {from}"));
        }
        read += &format!(" FROM {from}");
    }
    if let Some(condition) = &select.selection {
        read += &format!(" WHERE {condition}");
    }
    if !groups.is_empty() {
        read += &format!(" GROUP BY {}", listed(groups));
    }
    let whole = query.to_string();
    if whole == read { Ok(()) } else { clause(whole) }
}

fn listed(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A function's name in lower case and its arguments, if the call has nothing else, such as
/// DISTINCT, FILTER or OVER.
fn plain_call(call: &sqlparser::ast::Function) -> Option<(String, Vec<&FunctionArgExpr>)> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(argument) => Some(argument),
        _ => None,
    });
    let plain = format!("{}({})", call.name, listed(&list.args));
    let whole = call.to_string() == plain;
    let arguments = arguments.collect::<Option<_>>().filter(|_| whole)?;
    Some((call.name.to_string().to_lowercase(), arguments))
}

fn read_item(item: &SelectItem, schema: &TableSchema) -> Result<Vec<Item>, SqlError> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
        _ => return Err(SqlError::Function(item.to_string())),
    };
    let Expr::Function(call) = expr else { return Err(SqlError::Function(expr.to_string())) };
    let wrong = || SqlError::Function(expr.to_string());
    let (name, arguments) = plain_call(call).ok_or_else(wrong)?;
    let read = Call { name: &name, arguments: &arguments, schema };
    let items = read.items()?.ok_or_else(wrong)?;
    Ok(named(items, alias))
}

/// Applies an alias. If a function has two columns, the alias follows the name of each.
fn named(mut items: Vec<Item>, alias: Option<String>) -> Vec<Item> {
    if let Some(alias) = alias {
        match items.as_mut_slice() {
            [one] => one.alias = alias,
            several => {
                for item in several {
                    let head = item.alias.split('_').next().unwrap_or_default();
                    item.alias = format!("{head}_{alias}");
                }
            }
        }
    }
    items
}

struct Call<'a> {
    name: &'a str,
    arguments: &'a [&'a FunctionArgExpr],
    schema: &'a TableSchema,
}

impl Call<'_> {
    fn items(&self) -> Result<Option<Vec<Item>>, SqlError> {
        let one = |alias: String, function| Ok(Some(vec![Item { alias, function }]));
        let name = |column| self.schema.name_of(column);
        match (self.name, self.arguments) {
            ("count", [FunctionArgExpr::Wildcard]) => one("count".to_owned(), Function::Rows),
            ("count" | "sum" | "avg" | "mean" | "var", [x]) => {
                let x = self.column(x)?;
                let (head, function) = match self.name {
                    "count" => ("count", Function::Count(x)),
                    "sum" => ("sum", Function::Sum(x)),
                    "var" => ("var", Function::Variance(x)),
                    _ => ("avg", Function::Mean(x)),
                };
                one(format!("{head}_{}", name(x)), function)
            }
            ("cov" | "slope" | "intercept", [y, x]) => {
                let (y, x) = (self.column(y)?, self.column(x)?);
                let function = match self.name {
                    "cov" => Function::Covariance(y, x),
                    "slope" => Function::Slope(y, x),
                    _ => Function::Intercept(y, x),
                };
                one(format!("{}_{}_{}", self.name, name(y), name(x)), function)
            }
            ("regression", arguments) => {
                let Some((y, x)) = self.regressed(arguments)? else { return Ok(None) };
                let both = format!("{}_{}", name(y), name(x));
                Ok(Some(vec![
                    Item { alias: format!("slope_{both}"), function: Function::Slope(y, x) },
                    Item {
                        alias: format!("intercept_{both}"),
                        function: Function::Intercept(y, x),
                    },
                ]))
            }
            ("weighted", [x, weights @ ..]) => {
                let x = self.column(x)?;
                let numbers: Option<Vec<i64>> = weights.iter().map(|w| number(w)).collect();
                let weights = numbers.filter(|numbers| (1..=8).contains(&numbers.len()));
                let weights = weights.ok_or(SqlError::Weights)?;
                one(format!("weighted_{}", name(x)), Function::Weighted(x, weights))
            }
            ("polynomial", [x, at]) => {
                let (x, at) = (self.column(x)?, number(at));
                let at = at.and_then(|at| u64::try_from(at).ok()).ok_or(SqlError::Point)?;
                one(format!("polynomial_{}", name(x)), Function::Polynomial(x, at))
            }
            _ => Ok(None),
        }
    }

    /// `y ~ x`, or `y, x`.
    fn regressed(&self, arguments: &[&FunctionArgExpr]) -> Result<Option<(u16, u16)>, SqlError> {
        match arguments {
            [FunctionArgExpr::Expr(Expr::BinaryOp { left, op, right })]
                if *op == BinaryOperator::PGRegexMatch =>
            {
                Ok(Some((self.named(left)?, self.named(right)?)))
            }
            [y, x] => Ok(Some((self.column(y)?, self.column(x)?))),
            _ => Ok(None),
        }
    }

    fn column(&self, argument: &FunctionArgExpr) -> Result<u16, SqlError> {
        match argument {
            FunctionArgExpr::Expr(expr) => self.named(expr),
            other => Err(SqlError::Function(format!("{}({other})", self.name))),
        }
    }

    fn named(&self, expr: &Expr) -> Result<u16, SqlError> {
        let name = identifier(expr).unwrap_or_else(|| expr.to_string());
        let columns = || {
            let names: Vec<&str> = self.schema.columns.iter().map(|c| c.name.as_str()).collect();
            names.join(", ")
        };
        self.schema.column(&name).ok_or_else(|| SqlError::Column(name, columns()))
    }
}

fn identifier(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    }
}

fn number(argument: &FunctionArgExpr) -> Option<i64> {
    let FunctionArgExpr::Expr(expr) = argument else { return None };
    literal(expr)?.parse().ok()
}

/// The text of a number or of a quoted string.
fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.to_string()),
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(format!("-{}", literal(expr)?)),
        _ => None,
    }
}

/// Whether an expression refers to time: the time column, `day`, or DAY of it.
fn is_time(expr: &Expr, schema: &TableSchema) -> bool {
    match expr {
        Expr::Identifier(name) => {
            let name = &name.value;
            name.eq_ignore_ascii_case("day") || name.eq_ignore_ascii_case(schema.time.name())
        }
        Expr::Function(call) => {
            let Some((name, arguments)) = plain_call(call) else { return false };
            let [inner] = arguments.as_slice() else { return false };
            let inner = inner.to_string();
            let of_time = inner.eq_ignore_ascii_case(schema.time.name())
                || inner.eq_ignore_ascii_case("timestamp");
            name == "day" && of_time
        }
        _ => false,
    }
}

fn read_condition(
    condition: &Expr,
    schema: &TableSchema,
    rows: &mut Selection,
) -> Result<(), SqlError> {
    match condition {
        Expr::Nested(inner) => read_condition(inner, schema, rows),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            read_condition(left, schema, rows)?;
            read_condition(right, schema, rows)
        }
        Expr::Between { expr, negated: false, low, high } if is_time(expr, schema) => {
            let (from, to) = (moment(low)?.0, moment(high)?.1);
            let (a, b) = rows.between.unwrap_or((i64::MIN, i64::MAX));
            rows.between = Some((a.max(from), b.min(to)));
            Ok(())
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let name = identifier(left).ok_or_else(|| SqlError::Clause(condition.to_string()))?;
            let value = literal(right).ok_or_else(|| SqlError::Clause(condition.to_string()))?;
            rows.equal.push((group(&name, schema)?, value));
            Ok(())
        }
        _ => Err(SqlError::Clause(condition.to_string())),
    }
}

fn read_group(expr: &Expr, schema: &TableSchema, rows: &mut Selection) -> Result<(), SqlError> {
    if is_time(expr, schema)
        && !matches!(expr, Expr::Identifier(name) if !name.value.eq_ignore_ascii_case("day"))
    {
        rows.by_day = true;
        return Ok(());
    }
    let name = identifier(expr).ok_or_else(|| SqlError::Clause(format!("GROUP BY {expr}")))?;
    rows.by_groups.push(group(&name, schema)?);
    Ok(())
}

fn group(name: &str, schema: &TableSchema) -> Result<usize, SqlError> {
    let unknown = || SqlError::Group(name.to_owned(), schema.groups.join(", "));
    schema.group(name).ok_or_else(unknown)
}

/// First and last microsecond of a day or a second.
fn moment(expr: &Expr) -> Result<(i64, i64), SqlError> {
    let text = literal(expr).ok_or_else(|| SqlError::Time(expr.to_string()))?;
    let wrong = || SqlError::Time(text.clone());
    if let Ok(seconds) = text.parse::<i64>() {
        let from = seconds.checked_mul(1_000_000).ok_or_else(wrong)?;
        return Ok((from, from.saturating_add(999_999)));
    }
    let from = day_number(&text).map_err(|_| wrong())? * DAY;
    Ok((from, from + DAY - 1))
}

#[cfg(test)]
mod tests;
