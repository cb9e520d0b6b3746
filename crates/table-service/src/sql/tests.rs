//! Which queries are accepted, and which are refused.

use super::*;

fn schema() -> TableSchema {
    TableSchema::parse(
        "name: Counts\ntime: { column: timestamp }\ngroups: [street]\ncolumns:\n  - { name: Cars, min: 0, max: 9 }\n  - { name: trucks, min: 0, max: 9 }\n",
    )
    .unwrap()
}

#[test]
fn valid_queries_are_parsed() {
    let text = "SELECT MEAN(cars), AVG(trucks) AS t, VAR(cars), COV(cars, trucks), REGRESSION(trucks ~ cars), COUNT(*), WEIGHTED(cars, -1, 2) \
         FROM counts WHERE day BETWEEN '1970-01-02' AND '1970-01-03' AND street = 'a' GROUP BY DAY(timestamp), street; EXPLAIN SELECT POLYNOMIAL(cars, 7)";
    let [one, two] = parse(text, &schema()).unwrap().try_into().unwrap();
    let aliases: Vec<&str> = one.items.iter().map(|item| item.alias.as_str()).collect();
    let expected = [
        "avg_cars",
        "t",
        "var_cars",
        "cov_cars_trucks",
        "slope_trucks_cars",
        "intercept_trucks_cars",
        "count",
        "weighted_cars",
    ];
    assert_eq!(aliases, expected);
    assert_eq!(one.items[4].function, Function::Slope(1, 0));
    assert_eq!(one.items[7].function, Function::Weighted(0, vec![-1, 2]));
    assert_eq!(one.rows.between, Some((DAY, 3 * DAY - 1)));
    assert_eq!((one.rows.by_day, one.rows.by_groups.as_slice()), (true, &[0][..]));
    assert_eq!(one.rows.equal, [(0, "a".to_owned())]);
    assert!(two.explain && two.items[0].function == Function::Polynomial(0, 7));
}

fn refused(queries: &[(&str, &str)]) {
    for (text, expected) in queries {
        let error = parse(text, &schema()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn invalid_names_and_arguments_are_refused() {
    refused(&[
        ("SELECT SUM(cars), SUM(Cars)", "two columns named `sum_cars`"),
        ("SELECT COUNT(*) AS Verified", "two columns named `Verified`"),
        ("SELECT SUM(cars) AS Street GROUP BY street", "two columns named `Street`"),
        ("SELECT SUM(cars) GROUP BY street, street", "two columns named `street`"),
        ("SELECT POLYNOMIAL(cars, 2) GROUP BY day", "uses all rows"),
        ("SELECT POLYNOMIAL(cars, -2)", "from 0 to 2^63"),
        ("SELECT WEIGHTED(cars, 1.5)", "whole numbers"),
        ("SELECT WEIGHTED(cars)", "1 to 8 coefficients"),
    ]);
}

#[test]
fn unsupported_sql_is_refused_with_a_specific_error() {
    refused(&[
        ("", "a query must be"),
        ("DROP TABLE counts", "a query must be"),
        ("SELECT", "Expected: an expression"),
        ("SELECT cars", "`cars` is not supported; use COUNT"),
        ("SELECT MEDIAN(cars)", "`MEDIAN(cars)` is not supported"),
        ("SELECT SUM(bikes)", "no column `bikes`; the schema has: Cars, trucks"),
        ("SELECT SUM(cars) LIMIT 3", "is not supported; a query"),
        ("SELECT SUM(cars) FROM other", "`FROM other`"),
        ("SELECT SUM(cars) FROM counts c", "`FROM counts c`"),
        ("SELECT SUM(cars) FROM counts, counts", "is not supported"),
        ("SELECT SUM(cars) FROM counts JOIN other ON true", "is not supported"),
        ("SELECT COUNT(DISTINCT cars)", "`COUNT(DISTINCT cars)` is not supported"),
        ("SELECT SUM(ALL cars)", "`SUM(ALL cars)`"),
        ("SELECT SUM(cars) FILTER (WHERE cars > 100)", "FILTER (WHERE cars > 100)` is not"),
        ("SELECT AVG(cars) OVER (PARTITION BY street)", "OVER (PARTITION BY street)`"),
        ("SELECT SUM(cars ORDER BY cars)", "`SUM(cars ORDER BY cars)`"),
        ("SELECT SUM(cars) WITHIN GROUP (ORDER BY cars)", "WITHIN GROUP"),
        ("SELECT SUM(cars) IGNORE NULLS OVER ()", "IGNORE NULLS"),
        ("SELECT SUM(x => cars)", "is not supported"),
        ("SELECT SUM(cars) FROM counts FETCH FIRST 1 ROWS ONLY", "FETCH FIRST 1 ROWS ONLY` is not"),
        ("SELECT SUM(cars) FROM counts OFFSET 2", "OFFSET 2` is not"),
        ("SELECT SUM(cars) ORDER BY 1", "ORDER BY 1` is not"),
        ("SELECT SUM(cars) FROM counts FOR UPDATE", "FOR UPDATE` is not"),
        ("SELECT SUM(cars) INTO other FROM counts", "INTO other"),
        ("SELECT SUM(cars) FROM counts HAVING SUM(cars) > 2", "HAVING SUM(cars) > 2` is not"),
        ("SELECT DISTINCT SUM(cars)", "SELECT DISTINCT"),
        ("WITH x AS (SELECT 1) SELECT SUM(cars)", "WITH x AS"),
        ("SELECT SUM(cars) GROUP BY ROLLUP(street)", "is not supported"),
        ("SELECT SUM(cars) GROUP BY DAY(DISTINCT timestamp)", "is not supported"),
        ("SELECT SUM(cars) GROUP BY DAY(timestamp) OVER ()", "is not supported"),
        ("EXPLAIN ANALYZE SELECT SUM(cars)", "`EXPLAIN ANALYZE SELECT"),
        ("SELECT SUM(cars) FROM counts WINDOW ü AS (ORDER BY x)", "is not supported"),
        ("SELECT SUM(cars) WHERE cars > 3", "`cars > 3`"),
        ("SELECT SUM(cars) WHERE day BETWEEN 'x' AND '1970-01-01'", "`x` is neither"),
        ("SELECT SUM(cars) WHERE day NOT BETWEEN 1 AND 2", "is not supported"),
        ("SELECT SUM(cars) GROUP BY city", "no group `city`"),
    ]);
}
