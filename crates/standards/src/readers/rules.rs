//! Quality rules of all standards, as what statistics can answer of them.

use crate::contract::{Demand, Rule};
use crate::cursor::Cursor;

pub(super) const SQL: &str =
    "a query over rows in the clear, which nobody has here; only a count of all rows is recognised";
pub(super) const DISTINCT: &str =
    "needs to know which rows are equal, and a sum does not show that";
pub(super) const AGE: &str =
    "the age of the newest row is not a sum; a window without events shows late data";
pub(super) const WORDS: &str = "a rule in words, for people";
pub(super) const ENGINE: &str =
    "a check by a tool that reads rows in the clear, which nobody has here";
pub(super) const SINGLE: &str =
    "a check of single values where they are written; no statistic shows a single value";
pub(super) const SET: &str =
    "a set of allowed texts or codes; statistics here are of numbers and their bounds";
pub(super) const SOME: &str = "a check of some rows only, which says nothing about the others";
pub(super) const OTHER: &str = "a query over another table, which this schema does not have";
pub(super) const OFF: &str = "a check that is switched off";
pub(super) const SOFT: &str = "a check that tolerates some values, so it refuses none";
pub(super) const VERSION: &str = "some versions of the model lack the column";
pub(super) const LINK: &str = "compares rows with those of another table";

/// The rule at `at`, by its query or its metric. `tables` are the names of the table that it is about.
pub(super) fn quality(at: &Cursor<'_>, tables: &[String]) -> Rule {
    let (kind, demand) = demand(at, tables);
    Rule { at: at.path().to_owned(), kind, about: None, demand }
}

/// What a rule demands, and the part that says so. Its query decides, and its name only without one.
fn demand(at: &Cursor<'_>, tables: &[String]) -> (Option<String>, Demand) {
    if let Some(query) = at.get("query") {
        let query = query.noted().unwrap_or_default();
        return match counted(&query.value) {
            Some(table) if is_own(&table, tables) => (Some(query.at), Demand::Rows),
            Some(_) => (None, Demand::Other(OTHER)),
            None => (None, Demand::Other(SQL)),
        };
    }
    let kind = at.text("type").map(|noted| noted.value.to_ascii_lowercase()).unwrap_or_default();
    match kind.as_str() {
        "sql" => return (None, Demand::Other(SQL)),
        "text" => return (None, Demand::Other(WORDS)),
        "custom" => return (None, Demand::Other(ENGINE)),
        _ if at.get("implementation").is_some() => return (None, Demand::Other(ENGINE)),
        _ => {}
    }
    let stated = ["metric", "rule"].iter().find_map(|key| at.text(key));
    // A free name says which rule it is only where nothing else does.
    let named = stated.or_else(|| at.text("name"));
    let known = named.and_then(|noted| Some((noted.at, metric(&noted.value)?)));
    known.map_or((None, Demand::Other(ENGINE)), |(place, demand)| (Some(place), demand))
}

/// What a metric of a library demands.
pub(super) fn metric(name: &str) -> Option<Demand> {
    let folded: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match folded.to_ascii_lowercase().as_str() {
        "rowcount" | "countrows" | "tablerowcount" => Demand::Rows,
        "nullvalues" | "nullcheck" | "null" | "nullcount" | "nullpercent" | "missingvalues"
        | "missingcount" | "missingpercent" | "notnullproportion" | "completeness" => {
            Demand::Present(None)
        }
        "notnull" | "required" | "expectcolumnvaluestonotbenull" => Demand::Mandatory,
        "duplicatevalues"
        | "duplicatecount"
        | "uniquecheck"
        | "unique"
        | "uniqueness"
        | "uniquecombinationofcolumns"
        | "duplicatepercent"
        | "expectcolumnvaluestobeunique"
        | "distinctcount" => Demand::Other(DISTINCT),
        "freshness" | "timeliness" | "recency" => Demand::Other(AGE),
        "invalidvalues"
        | "validvalues"
        | "acceptedvalues"
        | "invalidcount"
        | "invalidpercent"
        | "expectcolumnvaluestobeinset" => Demand::Other(SET),
        "acceptedrange" | "expectcolumnvaluestobebetween" | "range" => Demand::Range,
        "relationships" | "referentialintegrity" | "foreignkey" => Demand::Other(LINK),
        _ => return None,
    })
}

/// The table whose rows a query counts, if it does nothing else.
fn counted(query: &str) -> Option<String> {
    let lower = query.to_ascii_lowercase();
    let words: Vec<&str> = lower.trim().trim_end_matches(';').split_whitespace().collect();
    let words: Vec<&str> = match words.as_slice() {
        [head @ .., "as", _, "from", table] => [head, &["from", table]].concat(),
        other => other.to_vec(),
    };
    match words.as_slice() {
        ["select", "count(*)" | "count(1)", "from", table] => Some((*table).to_owned()),
        _ => None,
    }
}

/// Whether a table of a query is one with these names, or stands for whichever it is asked of.
fn is_own(table: &str, names: &[String]) -> bool {
    const ANY: &[&str] = &["object", "table", "model", "this", "schema"];
    let letters = |text: &str| text.trim_matches(['"', '`', '\'', '[', ']']).to_lowercase();
    let braces = ['$', '{', '}', ' '];
    if table.contains('{') {
        return ANY.contains(&table.trim_matches(braces));
    }
    let last = letters(table.rsplit('.').next().unwrap_or_default());
    names.iter().any(|name| letters(name.rsplit('.').next().unwrap_or_default()) == last)
}

/// The table of a list of checks in the language SodaCL, from its key: `checks for orders`. A list for
/// a part of a table, as `checks for orders [daily]`, is about some of its rows only.
pub(super) fn soda_table(key: &str) -> Option<(String, bool)> {
    let mut words = key.split_whitespace();
    let is_list = words.next() == Some("checks") && words.next() == Some("for");
    let table = words.next().filter(|_| is_list)?;
    let name = table.split('[').next().unwrap_or_default();
    Some((name.to_owned(), name.len() < table.len() || words.next().is_some()))
}

/// What a check in the language SodaCL demands, such as `missing_count(name) = 0`.
pub(super) fn soda(check: &str) -> Demand {
    let head = check.trim();
    let (name, rest) = head.split_at(head.find([' ', '(', '<', '>', '=']).unwrap_or(head.len()));
    let column = rest.strip_prefix('(').and_then(|rest| rest.split(')').next());
    let column = column.map(|column| column.trim().to_owned()).filter(|column| !column.is_empty());
    match (name, column) {
        ("row_count", None) => Demand::Rows,
        ("missing_count" | "missing_percent", Some(column)) => Demand::Present(Some(column)),
        ("avg", Some(column)) => Demand::Mean(column),
        ("sum", Some(column)) => Demand::Sum(column),
        ("duplicate_count" | "duplicate_percent" | "distinct_count", _) => Demand::Other(DISTINCT),
        ("freshness", _) => Demand::Other(AGE),
        ("invalid_count" | "invalid_percent", _) => Demand::Other(SET),
        _ => Demand::Other(ENGINE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_of_all_rows_is_one() {
        for query in [
            "SELECT COUNT(*) FROM orders",
            "SELECT count(*) as row_count\nFROM {model}\n",
            "select count(1) from a.b;",
            "SELECT COUNT(*) FROM ${object}",
        ] {
            let table = counted(query).unwrap();
            assert!(is_own(&table, &["Orders".into(), "x.b".into()]), "{query}");
        }
        assert!(!is_own(&counted("SELECT COUNT(*) FROM other").unwrap(), &["orders".into()]));
        assert!(!is_own("{other}", &["orders".into()]));
        for query in [
            "SELECT COUNT(*) FROM orders WHERE total < 0",
            "SELECT COUNT(DISTINCT a) FROM orders",
            "SELECT COUNT(*) FROM orders, people",
            "SELECT AVG(x) FROM orders",
        ] {
            assert_eq!(counted(query), None, "{query}");
        }
    }

    #[test]
    fn checks_of_soda_name_their_table() {
        for (key, is) in [
            ("checks for orders", Some(("orders", false))),
            ("checks for orders [daily]", Some(("orders", true))),
            ("checks for orders[daily]", Some(("orders", true))),
            ("filter orders [daily]", None),
            ("checks", None),
        ] {
            let is = is.map(|(name, part): (&str, bool)| (name.to_owned(), part));
            assert_eq!(soda_table(key), is, "{key}");
        }
    }

    #[test]
    fn checks_of_soda_are_distinguished() {
        assert_eq!(soda("row_count > 1000"), Demand::Rows);
        assert_eq!(soda("missing_count(a b) = 0"), Demand::Present(Some("a b".into())));
        assert_eq!(soda("avg(x) between 1 and 2"), Demand::Mean("x".into()));
        assert_eq!(soda("sum(x) > 5"), Demand::Sum("x".into()));
        assert_eq!(soda("freshness(t::datetime) < 1d"), Demand::Other(AGE));
        assert_eq!(soda("anomaly score for x"), Demand::Other(ENGINE));
    }
}
